"""The plans of protection: which statistic of which data, what is promised, by which noise and coupling."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from leakscope.plans.bounds import Adjacency, Drop, Source
from leakscope.plans.plan import PagePlan, Plan

Coupling = Literal["auto", "swap", "mixture_swap", "complement", "average_swap"]
NoiseName = Literal["gaussian", "gaussian_diagonal", "gaussian_isotropic", "laplace", "norm", "ball"]
Fits = Annotated[int, Field(ge=2, description="fits of the statistic that the calibration may take")]


class CalibrationPlan(PagePlan):
    """How much noise a statistic needs for a promise."""

    data: Source
    label: str | None = Field(default=None, min_length=1, description="ols, logistic: the response column")
    drop: Drop = ()
    statistic: str = Field(
        default="mean",
        min_length=1,
        description="mean, sum, second_moment, covariance, histogram, table, quantiles, ols, logistic or "
        "module:function",
    )
    by: tuple[str, ...] = Field(default=(), description="histogram, table: their columns, as a,b")
    set: dict[str, Any] = Field(
        default={}, description="parameters of the statistic, as bins=10 or probabilities=[0.5]"
    )
    eta: float = Field(gt=0, lt=0.5, description="allowed accuracy above the better prior guess")
    k: int | None = Field(
        default=None, ge=1, description="records that are drawn into the data in use; half unless given"
    )
    promise: Literal["every", "average"] = Field(
        default="every", description="every record, or average: a record drawn at random"
    )
    noise: NoiseName = Field(
        default="gaussian", description="gaussian, gaussian_diagonal, gaussian_isotropic, laplace, norm or ball"
    )
    coupling: Coupling = Field(default="auto", description="auto, swap, mixture_swap, complement or average_swap")
    confidence: float = Field(default=0.95, gt=0, lt=1, description="of a certificate from sampled pairs")
    fits: Fits = 2000
    games: int = Field(default=2000, ge=0, description="simulated releases that the best attack is tried on; 0: none")
    delta: float = Field(default=1e-5, gt=0, lt=1, description="of the epsilon of practical membership privacy")
    clip: float | None = Field(
        default=None, gt=0, description="compare: no value is larger, so that differential privacy has a sensitivity"
    )
    compare: bool = Field(default=False, description="the noise of other methods for the same promise beside it")
    pairs_seed: int = Field(default=0, ge=0, description="of the pairs and the simulated releases, never of a real one")

    @field_validator("by", mode="before")
    @classmethod
    def _columns(cls, by: object) -> tuple[str, ...]:
        texts = (by,) if isinstance(by, str) else tuple(by) if isinstance(by, (list, tuple)) else ()
        return tuple(name.strip() for text in texts for name in str(text).split(",") if name.strip())

    @model_validator(mode="after")
    def _of_columns(self) -> CalibrationPlan:
        if bool(self.by) != (self.statistic in ("histogram", "table")):
            raise ValueError(
                f"statistic {self.statistic} {'takes no by' if self.by else 'needs by: the columns that it counts'}"
            )
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
    advantage: float | None = Field(default=None, gt=0, lt=1, description="largest tpr - fpr of any attack")
    fpr: float | None = Field(default=None, ge=0, lt=1, description="with fnr: no attack has fewer misses at this rate")
    fnr: float | None = Field(default=None, gt=0, le=1, description="least misses at fpr")
    epsilon: float | None = Field(default=None, ge=0, description="of (epsilon, delta)-DP")
    delta: float | None = Field(default=None, ge=0, lt=1, description="of (epsilon, delta)-DP")
    adjacency: Adjacency = "replace_one"
