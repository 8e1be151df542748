"""The plans of protection: which statistic of which data, what is promised, by which noise and coupling."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from leakscope.checks import one_of
from leakscope.plans.bounds import Adjacency, Batches, Drop, Source
from leakscope.plans.plan import PagePlan, Plan, columns

Coupling = Literal["auto", "swap", "mixture_swap", "complement", "average_swap"]
Fits = Annotated[int, Field(ge=2, description="fits of the statistic that the calibration may take")]
NOISES = ("gaussian", "gaussian_diagonal", "gaussian_isotropic", "laplace", "norm", "ball")
STATISTICS = ("mean", "sum", "second_moment", "covariance", "histogram", "table", "quantiles", "ols", "logistic")
COUNTS = ("histogram", "table")
REGRESSIONS = ("ols", "logistic")
TARGETS = (("advantage",), ("fpr", "fnr"), ("epsilon", "delta"))


class CalibrationPlan(PagePlan):
    """How much noise a statistic needs for a promise."""

    data: Source
    label: str | None = Field(
        default=None, min_length=1, description="response column of ols, logistic and functions of (x, y)"
    )
    drop: Drop = ()
    statistic: str = Field(
        default="mean",
        min_length=1,
        description="one of mean, sum, second_moment, covariance, histogram, table, quantiles, ols, logistic, or "
        "module:function",
    )
    by: tuple[str, ...] = Field(default=(), description='columns of a histogram or a table, as a,b or a,"b, c"')
    set: dict[str, Any] = Field(
        default={}, description="parameters of the statistic, as bins=10 or probabilities=[0.5]"
    )
    eta: float = Field(gt=0, lt=0.5, description="allowed accuracy above the better prior guess")
    k: int | None = Field(
        default=None, ge=1, description="records that are drawn into the data in use; half unless given"
    )
    promise: Literal["every", "average"] = Field(
        default="every", description="to every record, or average: to a record drawn at random"
    )
    noise: str = Field(
        default="gaussian", description="one of gaussian, gaussian_diagonal, gaussian_isotropic, laplace, norm, ball"
    )
    coupling: Coupling = Field(
        default="auto", description="proof of the promise: auto, swap, mixture_swap, complement or average_swap"
    )
    confidence: float = Field(default=0.95, gt=0, lt=1, description="of a certificate from sampled pairs")
    fits: Fits = 2000
    games: int = Field(default=2000, ge=0, description="simulated releases that the best attack is tried on; 0: none")
    delta: float = Field(default=1e-5, gt=0, lt=1, description="of the epsilon of practical membership privacy")
    clip: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="with compare, no value is larger: differential privacy needs such a limit",
    )
    compare: bool = Field(default=False, description="beside it the noise that other methods need for the same promise")
    pairs_seed: int = Field(default=0, ge=0, description="of the pairs and the simulated releases, never of a real one")

    @field_validator("statistic")
    @classmethod
    def _known(cls, statistic: str) -> str:
        return statistic if ":" in statistic else one_of("statistic", statistic, (*STATISTICS, "module:function"))

    @field_validator("noise")
    @classmethod
    def _family(cls, noise: str) -> str:
        return noise if "(" in noise else one_of("noise", noise, NOISES)  # a noise as it is, from Python

    @field_validator("by", mode="before")
    @classmethod
    def _columns(cls, by: object) -> tuple[str, ...]:
        return columns(by)

    @model_validator(mode="after")
    def _of_columns(self) -> CalibrationPlan:
        if bool(self.by) != (self.statistic in COUNTS):
            raise ValueError(
                f"statistic {self.statistic} {'takes no by' if self.by else 'needs by: the columns that it counts'}"
            )
        if self.label is not None and self.statistic not in REGRESSIONS and ":" not in self.statistic:
            raise ValueError(f"statistic {self.statistic} takes no label; drop leaves a column out, got {self.label!r}")
        return self

    @model_validator(mode="after")
    def _promised(self) -> CalibrationPlan:
        if self.promise == "every" and self.coupling == "average_swap":
            raise ValueError("coupling average_swap promises nothing to every record; it needs promise = average")
        if self.clip is not None and not self.compare:
            raise ValueError(f"clip is for compare: it belongs to no other noise than theirs, got clip = {self.clip:g}")
        return self


class ProtectionPlan(CalibrationPlan):
    """A statistic that is released with its noise and a certificate."""

    ledger: str | None = Field(
        default=None, min_length=1, description="private file that remembers the draw, for further releases of it"
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


class MultiplierPlan(Plan):
    """The noise multiplier of DP-SGD for a promise."""

    sample_rate: float = Field(gt=0, le=1, description="probability of a record to be in a batch")
    steps: int = Field(ge=1, description="number of batches")
    batches: Batches = "poisson"
    advantage: float | None = Field(default=None, gt=0, lt=1, description="largest tpr - fpr of any attack")
    fpr: float | None = Field(default=None, gt=0, lt=1, description="with fnr: no attack has fewer misses at this rate")
    fnr: float | None = Field(default=None, gt=0, lt=1, description="least misses at fpr")
    epsilon: float | None = Field(default=None, ge=0, allow_inf_nan=False, description="of (epsilon, delta)-DP")
    delta: float | None = Field(default=None, gt=0, lt=1, description="of (epsilon, delta)-DP")
    adjacency: Adjacency = "replace_one"

    @property
    def target(self) -> dict[str, float]:
        """What the noise has to keep, by name."""
        words = {name: getattr(self, name) for names in TARGETS for name in names}
        return {name: value for name, value in words.items() if value is not None}

    @model_validator(mode="after")
    def _one_target(self) -> MultiplierPlan:
        if tuple(self.target) not in TARGETS:
            given = ", ".join(self.target) or "none"
            raise ValueError(f"give advantage, or fpr and fnr, or epsilon and delta; got {given}")
        if self.fpr is not None and self.fnr is not None and self.fnr >= 1 - self.fpr:
            guess = f"{1 - self.fpr:g}, that of a guess at fpr = {self.fpr:g}"
            raise ValueError(f"fnr must be < {guess}; got {self.fnr:g}")
        return self
