"""The plans of protection: which statistic of which data, what is promised, by which noise and coupling."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from leakscope.core.checks import one_of
from leakscope.plans.bounds import Adjacency, Batches, Scales, StatisticPlan, TrainingPlan
from leakscope.plans.plan import FilePath, a_fraction, columns

Coupling = Literal["auto", "swap", "mixture_swap", "complement", "average_swap"]
Fits = Annotated[int, Field(ge=2, description="fits of the statistic that the calibration may take")]
Inside = Annotated[float, a_fraction(above=True, below=True)]
MaybeInside = Annotated[float | None, a_fraction(above=True, below=True)]
NOISES = ("gaussian", "gaussian_diagonal", "gaussian_isotropic", "laplace", "norm", "ball")
TARGETS = (("advantage",), ("fpr", "fnr"), ("epsilon", "delta"))


class CalibrationPlan(StatisticPlan):
    """How much noise a statistic needs for a promise."""

    eta: Annotated[float, a_fraction(most=0.5, above=True, below=True)] = Field(
        description="allowed accuracy above the better prior guess"
    )
    k: int | None = Field(
        default=None, ge=1, description="records that are drawn into the data in use; half unless given"
    )
    promise: Literal["every", "average"] = Field(
        default="every", description="to every record, or average: to a record drawn at random"
    )
    noise: str = Field(
        default="gaussian", description="one of gaussian, gaussian_diagonal, gaussian_isotropic, laplace, norm, ball"
    )
    noise_scale: Scales | None = Field(
        default=None,
        description="scale of the noise, declared before looking at the data, or one for each number, as 0.4,1.2; it "
        "is refused unless it keeps the promise; the least that does unless given",
    )
    coupling: Coupling = Field(
        default="auto", description="proof of the promise: auto, swap, mixture_swap, complement or average_swap"
    )
    confidence: Inside = Field(default=0.95, description="of a certificate from sampled pairs")
    fits: Fits = 2000
    games: int = Field(default=2000, ge=0, description="simulated releases that the best attack is tried on; 0: none")
    delta: Inside = Field(default=1e-5, description="of the epsilon of practical membership privacy")
    clip: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="with compare, no value of a column without a range is larger: for differential privacy",
    )
    ranges: tuple[str, ...] = Field(
        default=(),
        description="with compare, the least and the largest value of columns, as wage=0:80,age=18:99: for "
        "differential privacy; of other columns the range of the data, which favours it",
    )
    compare: bool = Field(default=False, description="beside it the noise that other methods need for the same promise")
    pairs_seed: int = Field(default=0, ge=0, description="of the pairs and the simulated releases, never of a real one")

    @field_validator("noise")
    @classmethod
    def _family(cls, noise: str) -> str:
        return noise if "(" in noise else one_of("noise", noise, NOISES)  # a noise as it is, from Python

    @field_validator("ranges", mode="before")
    @classmethod
    def _ranges(cls, ranges: object) -> tuple[str, ...]:
        texts = columns(ranges)
        for text in texts:
            _range(text)
        return texts

    @property
    def declared_ranges(self) -> dict[str, tuple[float, float]]:
        """The least and the largest value of each column that was declared."""
        return dict(_range(text) for text in self.ranges)

    @model_validator(mode="after")
    def _declared(self) -> CalibrationPlan:
        if self.noise_scale is not None and self.noise not in NOISES:
            raise ValueError(f"noise_scale is that of a noise by name ({', '.join(NOISES)}), got noise {self.noise}")
        return self

    @model_validator(mode="after")
    def _promised(self) -> CalibrationPlan:
        if self.promise == "every" and self.coupling == "average_swap":
            raise ValueError("coupling average_swap promises nothing to every record; it needs promise = average")
        if self.ranges and not self.compare:
            raise ValueError(f"ranges are for compare: they belong to no other noise than theirs, got {self.ranges[0]}")
        if self.clip is not None and not self.compare:
            raise ValueError(f"clip is for compare: it belongs to no other noise than theirs, got clip = {self.clip:g}")
        return self


def _range(text: str) -> tuple[str, tuple[float, float]]:
    """Read a column with its least and its largest value, as ``"wage=0:80"``."""
    name, _, ends = text.rpartition("=")
    low, _, high = ends.partition(":")
    try:
        least, largest = float(low), float(high)
    except ValueError:
        least, largest = math.nan, math.nan
    if not name or not (math.isfinite(least) and math.isfinite(largest) and least < largest):
        raise ValueError(f"a range is a column with its least and its largest value, as wage=0:80; got {text!r}")
    return name, (least, largest)


class ProtectionPlan(CalibrationPlan):
    """A statistic that is released with its noise and a certificate."""

    ledger: FilePath | None = Field(
        default=None, description="private file that remembers the draw, for further releases of it"
    )
    declare: bool = Field(default=False, description="only announce this query in the ledger, before its first release")
    insecure_seed: int | None = Field(
        default=None, ge=0, description="draw and noise from this seed: for tests, not for publication"
    )

    @model_validator(mode="after")
    def _announced(self) -> ProtectionPlan:
        if self.declare and self.ledger is None:
            raise ValueError("declare needs a ledger")
        return self

    @model_validator(mode="after")
    def _public(self) -> ProtectionPlan:
        """Check that levels and edges are declared: if read from the file, publishing them would reveal it."""
        missing = [name for name in self.by if self.statistic == "table" and name not in self.levels]
        if missing:
            raise ValueError(
                f"a table is published with the levels that you declare: levels of {missing[0]} are missing, "
                f"as --levels {missing[0]}=a,b,c"
            )
        if self.statistic == "histogram" and "edges" not in self.set:
            raise ValueError(
                "a histogram is published with the edges that you declare, as --set edges=[0,20,40]: "
                "bins over the range of the data would tell its ends"
            )
        return self


class MultiplierPlan(TrainingPlan):
    """The noise multiplier of DP-SGD for a promise."""

    batches: Batches = "poisson"
    advantage: MaybeInside = Field(default=None, description="largest tpr - fpr of any attack")
    fpr: MaybeInside = Field(default=None, description="with fnr: no attack has fewer misses at this rate")
    fnr: MaybeInside = Field(default=None, description="least misses at fpr")
    epsilon: float | None = Field(default=None, ge=0, allow_inf_nan=False, description="of (epsilon, delta)-DP")
    delta: MaybeInside = Field(default=None, description="of (epsilon, delta)-DP")
    adjacency: Adjacency = "replace_one"

    @property
    def target(self) -> dict[str, float]:
        """What the noise has to keep, by name."""
        words = {name: getattr(self, name) for names in TARGETS for name in names}
        return {name: value for name, value in words.items() if value is not None}

    @model_validator(mode="after")
    def _one_target(self) -> MultiplierPlan:
        if tuple(self.target) not in TARGETS:
            names = ", ".join(self.target) or "none"
            raise ValueError(f"give advantage, or fpr and fnr, or epsilon and delta; got {names}")
        # a coin with probability fpr has fnr = 1 - fpr: such a target limits no attack
        if self.fpr is not None and self.fnr is not None and self.fnr >= 1 - self.fpr:
            guess = f"{1 - self.fpr:g}, that of a guess at fpr = {self.fpr:g}"
            raise ValueError(f"fnr must be < {guess}; got {self.fnr:g}")
        return self
