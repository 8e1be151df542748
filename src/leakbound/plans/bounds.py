"""The plans of bounds: what a theorem is asked about.

`BOUND_PLANS` has the class of each row of ``leakbound.bounds.BOUNDS``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from leakbound.core.checks import one_of, positive
from leakbound.plans.limits import PROVED, Limit
from leakbound.plans.plan import (
    ColumnNames,
    FilePath,
    FilePlan,
    Inside,
    OneText,
    PagePlan,
    Plan,
    a_fraction,
    columns,
)
from leakbound.plans.statistics import REGRESSIONS, STATISTICS

Adjacency = Annotated[
    Literal["add_remove", "replace_one"], Field(description="neighbouring data sets: add_remove or replace_one")
]
Batches = Annotated[
    Literal["poisson", "fixed"], Field(description="poisson: a coin for each record; fixed: as many records in each")
]
Sampling = Annotated[
    Literal["fixed", "poisson"], Field(description="fixed: a fixed number of records is in; poisson: a coin for each")
]
Prior = Annotated[Inside, Field(description="fraction of the records that are in, k/n")]
Delta = Annotated[float, a_fraction(below=True), Field(description="of (epsilon, delta)-DP")]
Size = Annotated[int | None, Field(ge=1, description="records that are in, in place of prior")]
Source = Annotated[FilePath, Field(description="a .csv, .parquet or .npz file, or digits, breast_cancer, wine")]
Drop = Annotated[ColumnNames, Field(description="columns of the file that are not used")]
DropMissing = Annotated[bool, Field(description="leave out rows with a missing value in a column that is used")]
Id = Annotated[
    str | None,
    Field(description="the column of names of records; not used"),
]
Group = Annotated[
    str | None,
    Field(
        min_length=1,
        description="the column that says whose each row is, if a person has several; they are left out together",
    ),
]
COUNTS = ("histogram", "table")
EDGES = "as --set edges=[0,20,40] (in Python set={'edges': [0, 20, 40]})"  # how the bins of a histogram are declared
GROUPED = "mean"  # with columns in ``by`` it is one of each group


def as_levels(name: str) -> str:
    """Say how the levels of a column are declared, on the command line and in Python."""
    return f"as --levels {name}=a,b,c (in Python levels={{{name!r}: ['a', 'b', 'c']}})"


def _scales(scales: object) -> object:
    """Read scales from a text of the command line, or from a single number."""
    if isinstance(scales, str):
        return tuple(scales.split(","))
    return (scales,) if isinstance(scales, int | float) else scales


def _positive_scales(scales: tuple[float, ...], field: ValidationInfo) -> tuple[float, ...]:
    name = field.field_name or "scale"
    for scale in scales:
        positive(name, scale)
    if not scales:
        raise ValueError(f"{name} must be a number > 0, or one for each coordinate; got none")
    return scales


Scales = Annotated[tuple[float, ...], BeforeValidator(_scales), AfterValidator(_positive_scales), OneText()]
AtMost = Annotated[
    str | None, Field(description="find the parameter that keeps accuracy=0.55, eta=, advantage= or tpr@0.01=")
]


class DpPlan(PagePlan):
    """(epsilon, delta)-differential privacy."""

    epsilon: float | None = Field(default=None, ge=0, description="of (epsilon, delta)-DP")
    at_most: AtMost = None
    delta: Delta = 0.0
    adjacency: Adjacency = "replace_one"
    sampling: Sampling = "fixed"
    prior: Prior = 0.5

    @model_validator(mode="after")
    def _parameter(self) -> DpPlan:
        _either("epsilon", self.epsilon, self.at_most)
        return self


class GaussianPlan(PagePlan):
    """Gaussian differential privacy."""

    mu: float | None = Field(default=None, ge=0, description="of mu-GDP: the shift in standard deviations")
    at_most: AtMost = None
    delta: Delta = 1e-5
    adjacency: Adjacency = "replace_one"
    sampling: Sampling = "fixed"
    prior: Prior = 0.5

    @model_validator(mode="after")
    def _parameter(self) -> GaussianPlan:
        _either("mu", self.mu, self.at_most)
        return self


class TrainingPlan(Plan):
    """How long and with which batches DP-SGD trains: sample rate and steps, or epochs, batch size and records."""

    sample_rate: Annotated[float, a_fraction(above=True)] | None = Field(
        default=None, description="probability of a record to be in a batch"
    )
    steps: int | None = Field(default=None, ge=1, description="number of batches")
    epochs: float | None = Field(default=None, gt=0, description="passes over the records, in place of steps")
    batch_size: int | None = Field(default=None, ge=1, description="mean size of a batch, in place of sample_rate")
    records: int | None = Field(default=None, ge=1, description="of the training data, with epochs and batch_size")

    @property
    def rate(self) -> float:
        """Return the probability of a record to be in a batch."""
        if self.batch_size is not None and self.records is not None:
            return self.batch_size / self.records
        return self.sample_rate or 0.0

    @property
    def n_steps(self) -> int:
        """Return the number of batches; a last one that is not full is counted."""
        if self.epochs is not None:
            return math.ceil(round(self.epochs / self.rate, 9))
        return self.steps or 0

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        by_steps = {"sample_rate": self.sample_rate, "steps": self.steps}
        by_epochs = {"epochs": self.epochs, "batch_size": self.batch_size, "records": self.records}
        given = [name for name, value in (by_steps | by_epochs).items() if value is not None]
        if given not in (list(by_steps), list(by_epochs)):
            raise ValueError(
                f"give sample_rate and steps, or epochs, batch_size and records; got {', '.join(given) or 'none'}"
            )
        if self.batch_size is not None and self.records is not None and self.batch_size > self.records:
            raise ValueError(f"batch_size must be <= records, got {self.batch_size:,} of {self.records:,}")
        return self


class DpsgdPlan(TrainingPlan, PagePlan):
    """Training by DP-SGD."""

    noise_multiplier: float = Field(gt=0, description="standard deviation of the noise over the clipping norm")
    batches: Batches = "poisson"
    delta: Delta = 1e-5
    adjacency: Adjacency = "replace_one"
    prior: Prior = 0.5


class DataPlan(FilePlan, PagePlan):
    """A bound or a release of the records of a file."""

    data: Source
    drop_missing: DropMissing = False


class PmpPlan(DataPlan):
    """Practical membership privacy: the attacker knows the 2n records, not which half of them was used."""

    drop: Drop = ()
    mechanism: Literal["mean", "exponential"] = Field(
        default="mean", description="mean: with Gaussian noise; exponential: the geometric median among candidates"
    )
    clip: float = Field(gt=0, description="records are scaled down to this Euclidean norm")
    scale: float | None = Field(default=None, gt=0, description="mean: standard deviation of the noise")
    delta: Delta = 1e-5
    epsilon: float | None = Field(default=None, gt=0, description="exponential: epsilon of its DP promise")
    at_most: AtMost = None
    candidates: int = Field(default=32, ge=2, description="exponential: random unit vectors to choose from")
    method: Literal["auto", "exact", "sampled"] = Field(default="auto", description="auto: exact to 36 records")
    n_subsets: int = Field(default=2**16, ge=2, description="sampled: number of random halves")
    confidence: Inside = Field(default=0.95, description="sampled: of the interval")
    seed: int = Field(default=0, ge=0, description="of the candidates and of the random halves")

    @model_validator(mode="after")
    def _parameter(self) -> PmpPlan:
        if self.mechanism == "mean" and (self.scale is None or self.epsilon is not None or self.at_most is not None):
            raise ValueError("the mechanism mean takes scale, and no epsilon or at_most")
        if self.mechanism == "exponential":
            if self.scale is not None:
                raise ValueError("the mechanism exponential takes epsilon or at_most, and no scale")
            _either("epsilon", self.epsilon, self.at_most, ("accuracy", "eta"))
        return self


class LeakagePlan(DataPlan):
    """Per-datum leakage of the mean of a table."""

    drop: Drop = ()
    id: Id = None
    covariance: Literal["diagonal", "full", "ledoit_wolf"] = Field(
        default="diagonal", description="of the records: diagonal, full or ledoit_wolf"
    )
    released: int | None = Field(default=None, ge=2, description="records behind the mean; all unless given")
    rate: Annotated[float, a_fraction(above=True)] = Field(
        default=1.0, description="fraction of the records that are drawn into the mean"
    )
    delta: Delta = 1e-5


class TablePlan(DataPlan):
    """Counts of a table, published without noise."""

    by: tuple[str, ...] = Field(description='columns whose values make the cells, as a,b or a,"b, c"')
    sampling: Sampling = "fixed"
    prior: Prior = 0.5
    k: Size = None
    eta: Annotated[float | None, a_fraction(most=0.5, above=True, below=True)] = Field(
        default=None, description="wanted: say which cells to merge for it"
    )

    @field_validator("by", mode="before")
    @classmethod
    def _columns(cls, by: object) -> tuple[str, ...]:
        if not (names := columns(by)):
            raise ValueError(f"name at least one column, as a,b; got {by!r}")
        return names

    @model_validator(mode="after")
    def _part(self) -> TablePlan:
        _in_place_of_prior(self)
        return self


class TotalPlan(DataPlan):
    """The total of a column, published without noise."""

    column: str = Field(min_length=1, description="the column that is summed")
    id: Id = None
    round: float = Field(default=1.0, gt=0, description="values are rounded to multiples of this")
    sampling: Sampling = "poisson"
    prior: Prior = 0.5
    k: Size = None

    @model_validator(mode="after")
    def _part(self) -> TotalPlan:
        _in_place_of_prior(self)
        return self


class StatisticPlan(DataPlan):
    """A statistic of the records of a file."""

    label: str | None = Field(default=None, min_length=1, description="response column of a regression")
    drop: Drop = ()
    drop_missing: bool = Field(
        default=False,
        description="leave out rows with a missing value in a column that is used; not under promise anyone",
    )
    statistic: str = Field(
        default="mean",
        min_length=1,
        description=f"one of {', '.join(STATISTICS)}, or module:function",
    )
    by: tuple[str, ...] = Field(
        default=(), description="columns of a table, a histogram, or of groups of a mean, as a,b"
    )
    levels: dict[str, tuple[Any, ...]] = Field(
        default={},
        description="public levels of a column of a table or of groups, as sector=care,trade, once for each column; "
        "those of the file unless given, which are not published",
    )
    set: dict[str, Any] = Field(
        default={}, description="parameters of the statistic, as bins=10 or probabilities=[0.5]"
    )
    id: Id = None
    group: Group = None

    @field_validator("statistic")
    @classmethod
    def _known(cls, statistic: str) -> str:
        return statistic if ":" in statistic else one_of("statistic", statistic, (*STATISTICS, "module:function"))

    @field_validator("by", mode="before")
    @classmethod
    def _columns(cls, by: object) -> tuple[str, ...]:
        return columns(by)

    @model_validator(mode="after")
    def _of_columns(self) -> Self:
        if self.by and self.statistic not in (*COUNTS, GROUPED):
            raise ValueError(f"statistic {self.statistic} takes no by; {', '.join((*COUNTS, GROUPED))} do")
        if not self.by and self.statistic in COUNTS:
            raise ValueError(f"statistic {self.statistic} needs by: the columns that it counts")
        if self.label is not None and self.statistic not in REGRESSIONS and ":" not in self.statistic:
            raise ValueError(f"statistic {self.statistic} takes no label; drop leaves a column out, got {self.label!r}")
        return self

    @model_validator(mode="after")
    def _one_name(self) -> Self:
        if self.id is not None and self.group is not None:
            raise ValueError(f"group names the units that are left out; give no id beside it, got {self.id!r}")
        return self

    @model_validator(mode="after")
    def _levels_of_columns(self) -> Self:
        if self.levels and (not self.by or self.statistic == "histogram"):
            raise ValueError(
                f"levels are those of the columns by which a table or a mean is, got statistic {self.statistic}"
                f"{'' if self.by else ' without by'}"
            )
        for name in self.levels:
            one_of("column of levels", name, self.by)
        return self


class LeaveOneOutPlan(StatisticPlan):
    """A statistic of all records with noise that was declared beforehand, and who could tell that a record is in it."""

    noise_scale: Scales = Field(
        description="standard deviation of the Gaussian noise, or one for each number, as 0.4,1.2; declared before "
        "looking at the data"
    )
    eta: Annotated[float | None, a_fraction(most=0.5, above=True, below=True)] = Field(
        default=None, description="wanted: say how many records the noise does not cover"
    )
    delta: Delta = 1e-5
    seed: int = Field(default=0, ge=0, description="of a function with an argument rng; the same for all records")


class GapPlan(PagePlan):
    """A generalisation gap."""

    gap: float = Field(description="expected loss of other records minus that of members")
    low: float = Field(default=0.0, description="least possible loss")
    high: float = Field(default=1.0, description="largest possible loss")
    prior: Prior = 0.5


class InformationPlan(PagePlan):
    """Mutual information between membership and release."""

    information: float = Field(ge=0, description="nats")
    prior: Prior = 0.5


class RegressionPlan(DataPlan):
    """Least squares with a fixed design."""

    drop: Drop = ()
    id: Id = None
    noise_std: float = Field(default=1.0, gt=0, description="standard deviation of the response's noise")


BOUND_PLANS: Mapping[str, type[PagePlan]] = MappingProxyType(
    {
        "dp": DpPlan,
        "gaussian": GaussianPlan,
        "dpsgd": DpsgdPlan,
        "pmp": PmpPlan,
        "leakage": LeakagePlan,
        "table": TablePlan,
        "total": TotalPlan,
        "leave-one-out": LeaveOneOutPlan,
        "gap": GapPlan,
        "information": InformationPlan,
        "regression": RegressionPlan,
    }
)


def _either(name: str, value: float | None, at_most: str | None, known: tuple[str, ...] = PROVED) -> None:
    """Check that either a parameter is given, or the limit that it shall keep."""
    if (value is None) == (at_most is None):
        raise ValueError(f"give {name}, or at_most to find it; got {'neither' if value is None else 'both'}")
    if at_most is not None:
        Limit.parse(at_most, "at_most", known)


def _in_place_of_prior(plan: TablePlan | TotalPlan) -> None:
    """Check that a number of records comes with a fixed size, where it replaces the prior."""
    if plan.k is not None and (plan.sampling == "poisson" or "prior" in plan.model_fields_set):
        raise ValueError("k is for sampling = fixed, in place of prior")
