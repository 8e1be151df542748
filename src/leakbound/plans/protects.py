"""The plans of protection: which statistic of which data, what is promised, by which noise and coupling."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from leakbound.core.checks import one_of
from leakbound.plans.bounds import (
    EDGES,
    GROUPED,
    Adjacency,
    Batches,
    Group,
    Id,
    Scales,
    StatisticPlan,
    TrainingPlan,
    as_levels,
)
from leakbound.plans.limits import Limit
from leakbound.plans.plan import DependsOn, FilePath, a_fraction, columns

Coupling = Literal["auto", "swap", "mixture_swap", "complement", "average_swap"]
Fits = Annotated[int, Field(ge=2, description="fits of the statistic that the calibration may take")]
Inside = Annotated[float, a_fraction(above=True, below=True)]
MaybeInside = Annotated[float | None, a_fraction(above=True, below=True)]
GAUSSIAN = ("gaussian", "gaussian_diagonal", "gaussian_isotropic")
NOISES = (*GAUSSIAN, "laplace", "norm", "ball")
TARGETS = (("advantage",), ("fpr", "fnr"), ("epsilon", "delta"))
NO_CHOICE = (
    "choose what is promised: promise = anyone (differential privacy: ranges or levels must be declared), file (who is "
    "left out of this file) or drawn (who is among k of the n records)"
)
Promise = Literal["anyone", "file", "drawn"]
Design = Literal["dp", "leave-one-out", "half"]
# Rules of statistics offices: the common threshold, and the least that makes sense.
RULES: Mapping[str, tuple[float, float]] = {
    "minimum": (10, 1),
    "dominance_n": (2, 1),
    "dominance_k": (0.9, 0),
    "p": (0.1, 0),
}
DESIGN_OF: Mapping[Promise, Design] = {"anyone": "dp", "file": "leave-one-out", "drawn": "half"}
PROMISE_OF: Mapping[str, Promise] = {design: promise for promise, design in DESIGN_OF.items()}
# Fields that belong to some designs alone, with their defaults: elsewhere they would do nothing.
OF_DESIGN: Mapping[str, tuple[Design, ...]] = {
    "k": ("half",),
    "about": ("half",),
    "coupling": ("half",),
    "fits": ("half",),
    "games": ("half", "leave-one-out"),
    "delta": ("half", "dp"),
    "noise": ("half", "leave-one-out"),
    "clip": ("half",),
    "group": ("leave-one-out",),
    "budget": ("dp", "leave-one-out"),
    "allow_exact": ("leave-one-out",),
    "at_most": ("leave-one-out",),
    "declare": ("half", "leave-one-out"),
    "others": ("dp",),
}


# Where a person is one row: what to do with several.
_ONE_ROW = "a person is one row: aggregate the rows of each person to one first, and remove duplicates"
NO_GROUP: Mapping[Design | None, str] = {
    "dp": f"under promise anyone {_ONE_ROW}",
    "half": f"under promise drawn {_ONE_ROW}",
}


NO_DROP_MISSING = (
    "under promise anyone drop_missing is refused: n is public, and n without the incomplete rows would tell whether "
    "somebody's row is complete; a value that is missing is in no count and no sum, which have noise"
)

# Fields of a plan that no page prints: secrets, and where the work is done.
NOT_PRINTED = {"ledger", "known_ledgers", "insecure_seed", "depends_on"}


class CalibrationPlan(StatisticPlan):
    """How much noise a statistic needs for a promise."""

    eta: Annotated[float, a_fraction(most=0.5, above=True, below=True)] = Field(
        description="allowed accuracy above the better prior guess"
    )
    promise: Promise | None = Field(
        default=None,
        description="anyone: differential privacy, for whoever may be in any file; file: who is left out of this file; "
        "drawn: who is among k of the n records",
    )
    budget: Annotated[float | None, a_fraction(most=0.5, above=True, below=True)] = Field(
        default=None,
        description="allowed accuracy above the prior guess of all releases of the ledger together, fixed by the "
        "first; that of this query unless given",
    )
    k: int | None = Field(
        default=None, ge=1, description="half: records that are drawn into the data in use; half of all unless given"
    )
    about: Literal["every", "average"] = Field(
        default="every", description="half: the promise is to every record, or average: to a record drawn at random"
    )
    at_most: tuple[str, ...] = Field(
        default=(),
        description="leave-one-out: limits that are declared beforehand on how often the record left out is "
        "recognised, as tpr@0.001=0.003: at most 0.3 % of cases at 0.1 % false positives; the noise keeps them as well",
    )
    id: Id = None
    group: Group = None
    allow_exact: bool = Field(
        default=False,
        description="leave-one-out: release numbers exactly that are the same whoever is left out, or for so many of "
        "them that the promise needs no noise",
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
        description="the least and the largest value of columns, as wage=0:80,age=18:99, for differential privacy: "
        "design dp needs them, and moves values outside to the nearer end; with compare, other columns have the range "
        "of the data, which favours it",
    )
    others: tuple[str, ...] = Field(
        default=(),
        description="columns of by, as sector,sex, with one more level, called others: it takes every value without a "
        "level of its own, and missing ones; with one for every column the counts of a table add up to n",
    )
    compare: bool = Field(
        default=False,
        description="for the owner, what every design would cost; half: the noise that other methods need for the same "
        "promise",
    )
    rules: dict[str, Any] = Field(
        default={},
        description="thresholds of the rules of statistics offices that are checked for the owner, as minimum=10, "
        "dominance_n=2, dominance_k=0.9 or p=0.1",
    )
    depends_on: DependsOn = ()
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

    @field_validator("at_most", mode="before")
    @classmethod
    def _one_limit(cls, limits: Any) -> Any:
        return (limits,) if isinstance(limits, str) else limits

    @field_validator("at_most")
    @classmethod
    def _limits(cls, limits: tuple[str, ...]) -> tuple[str, ...]:
        rates = []
        for text in limits:
            limit = Limit.parse(text, "at_most", ("tpr",))
            rates.append(limit.fpr or 0.0)
            if limit.limit <= rates[-1]:
                raise ValueError(
                    f"at_most {text}: a guess by chance is right as often at {rates[-1]:g} false positives; give a "
                    "larger limit"
                )
        if len(set(rates)) < len(rates):
            raise ValueError(f"at_most has two limits at one rate: {', '.join(limits)}")
        return limits

    @property
    def limits(self) -> dict[float, float]:
        """The largest true positive rate that is allowed, by false positive rate."""
        parsed = [Limit.parse(text, "at_most", ("tpr",)) for text in self.at_most]
        return {limit.fpr or 0.0: limit.limit for limit in parsed}

    @property
    def rates(self) -> tuple[float, ...]:
        """False positive rates of interest: those of the plan and those of its limits."""
        return (*self.fpr, *(rate for rate in self.limits if rate not in self.fpr))

    @field_validator("others", mode="before")
    @classmethod
    def _columns_of_others(cls, others: object) -> tuple[str, ...]:
        return columns(others)

    @field_validator("rules")
    @classmethod
    def _thresholds(cls, rules: dict[str, Any]) -> dict[str, Any]:
        for name, value in rules.items():
            least = RULES[one_of("rule", name, RULES)][1]
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
                raise ValueError(f"the threshold {name} must be a number >= {least:g}, got {value!r}")
        return rules

    @property
    def thresholds(self) -> dict[str, float]:
        """The thresholds of the rules of statistics offices: those of the plan, and those that are common."""
        return {name: float(self.rules.get(name, common)) for name, (common, _) in RULES.items()}

    @field_validator("promise", mode="before")
    @classmethod
    def _known_promise(cls, promise: Any) -> Any:
        if promise in ("every", "average"):
            raise ValueError(
                f"promise is anyone, file or drawn; to every record or to a random one is about = {promise}"
            )
        return promise

    @property
    def chosen(self) -> Design | None:
        """The design, which follows from the promise; None without a choice."""
        return None if self.promise is None else DESIGN_OF[self.promise]

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
    def _designed(self) -> CalibrationPlan:
        design = self.chosen
        if design is None:
            return self
        self._check_fields_of(design)
        if self.id is not None and self.group is not None:
            raise ValueError(f"group names the units that are left out; give no id beside it, got {self.id!r}")
        if design == "leave-one-out" and self.noise not in GAUSSIAN:
            raise ValueError(f"design leave-one-out takes the noise {', '.join(GAUSSIAN)}, got {self.noise}")
        if design == "dp" and self.noise_scale is not None:
            raise ValueError("design dp takes no noise_scale: it follows from the declared ranges and levels alone")
        if design == "dp" and self.drop_missing:
            raise ValueError(NO_DROP_MISSING)
        if self.budget is not None and self.budget < self.eta:
            raise ValueError(f"budget is that of all releases together, and must be >= eta = {self.eta:g}")
        return self

    def _check_fields_of(self, design: Design) -> None:
        """Refuse fields that do nothing in a design."""
        for name, designs in OF_DESIGN.items():
            if design in designs or getattr(self, name, None) == _default_of(type(self), name):
                continue
            is_compared = self.compare and name == "fits"  # those of design half, which is shown with it
            no_games = name == "games" and self.games == 0  # as every design that has none
            if not (is_compared or no_games):
                instead = f"; {NO_GROUP[design]}" if name == "group" and design in NO_GROUP else ""
                raise ValueError(f"{name} belongs to design {' or '.join(designs)}, got design {design}{instead}")

    @model_validator(mode="after")
    def _with_others(self) -> CalibrationPlan:
        for name in self.others:
            if name not in self.levels:
                raise ValueError(f"others takes the values of {name} beside its declared levels: {as_levels(name)}")
            if "others" in self.levels[name]:
                raise ValueError(f"the level others of {name} is declared already: leave it out, or leave others out")
        return self

    @model_validator(mode="after")
    def _promised(self) -> CalibrationPlan:
        if self.about == "every" and self.coupling == "average_swap":
            raise ValueError("coupling average_swap promises nothing to every record; it needs about = average")
        if self.ranges and not self.compare and self.chosen not in ("dp", None):
            raise ValueError(
                f"ranges are for differential privacy (promise = anyone, or compare), got {self.ranges[0]}"
            )
        if self.clip is not None and not self.compare:
            raise ValueError(f"clip is for compare: it belongs to no other noise than theirs, got clip = {self.clip:g}")
        return self


def _default_of(kind: type[CalibrationPlan], name: str) -> Any:
    field = kind.model_fields.get(name)
    return None if field is None else field.default


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


def _range_of_levels(name: str, text: str, levels: Sequence[Any]) -> tuple[int, int]:
    """Find the places of the first and the last level of a range, as ``"low:high"``; a level may hold a colon."""
    known = [str(level) for level in levels]
    for place in (place for place, letter in enumerate(text) if letter == ":"):
        first, last = text[:place], text[place + 1 :]
        if first in known and last in known and known.index(first) < known.index(last):
            return known.index(first), known.index(last)
    raise ValueError(
        f"merge joins neighbouring levels in their declared order, as {name}={known[0]}:{known[-1]}; got {name}={text}"
    )


class ProtectionPlan(CalibrationPlan):
    """A statistic that is released with its noise and a certificate."""

    ledger: FilePath | None = Field(
        default=None,
        description="private file that remembers who is in use, and what was released; beside the data unless given "
        "(half: none unless given)",
    )
    another_design: bool = Field(
        default=False,
        description="release although these data were released under another design, in a ledger of its own; no joint "
        "number is promised over both",
    )
    allow_known_people: bool = Field(
        default=False,
        description="release although another ledger of this design holds these people, or their records; the "
        "certificate says so, and nothing adds up the two",
    )
    known_ledgers: FilePath | None = Field(
        default=None,
        description="list of the ledgers begun so far, which are asked whether they hold these people; none: no list; "
        "that of the user unless given",
    )
    declare: bool = Field(default=False, description="only announce this query in the ledger, before its first release")
    insecure_seed: int | None = Field(
        default=None, ge=0, description="draw and noise from this seed: for tests, not for publication"
    )

    merge: dict[str, tuple[str, ...]] = Field(
        default={},
        description="neighbouring levels of a table that are published as one, as age=20-29:40-49, once for each "
        "column",
    )
    non_negative: bool = Field(
        default=False,
        description="publish the counts of a table or of groups as the nearest ones >= 0, which costs nothing of the "
        "promise; small counts are then too large on average",
    )

    @property
    def publishes_counts(self) -> bool:
        """Whether a table of counts is made of what is released: of cells, or of groups beside their means."""
        return self.statistic == "table" or (self.statistic == GROUPED and bool(self.by))

    @property
    def merged_levels(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """By column, the places of the first and the last level of each range that is published as one."""
        return {
            name: tuple(_range_of_levels(name, text, self.levels[name]) for text in ranges)
            for name, ranges in self.merge.items()
        }

    @property
    def ledger_file(self) -> str | None:
        """The ledger: the one that was named, else the one beside the data; of design half none unless named."""
        if self.ledger is not None or self.chosen == "half":
            return self.ledger
        return f"{self.data}.ledger"

    @model_validator(mode="after")
    def _announced(self) -> ProtectionPlan:
        if self.declare and self.ledger is None and self.chosen == "half":
            raise ValueError("declare needs a ledger")
        return self

    @model_validator(mode="after")
    def _published(self) -> ProtectionPlan:
        """Check what is made of a table after its release."""
        if self.merge and self.statistic != "table":
            raise ValueError(f"merge is for tables of counts, got statistic {self.statistic}")
        if self.non_negative and not self.publishes_counts:
            instead = "; a histogram is published as it was released" if self.statistic == "histogram" else ""
            raise ValueError(
                "non_negative is for counts: statistic table, or mean with by, under any promise; got statistic "
                f"{self.statistic}{instead}"
            )
        for name in self.merge:
            one_of("column of merge", name, self.by)
        for name, ranges in self.merged_levels.items():
            places = sorted(ranges)
            if any(second[0] <= first[1] for first, second in pairwise(places)):
                raise ValueError(f"ranges of merge share a level of {name}: {', '.join(self.merge[name])}")
        return self

    @model_validator(mode="after")
    def _public(self) -> ProtectionPlan:
        """Check that levels and edges are declared: if read from the file, publishing them would reveal it."""
        missing = [name for name in self.by if self.statistic != "histogram" and name not in self.levels]
        if missing:
            raise ValueError(
                f"a table is published with the levels that you declare: levels of {missing[0]} are missing, "
                f"{as_levels(missing[0])}"
            )
        if self.statistic == "histogram" and "edges" not in self.set:
            raise ValueError(
                f"a histogram is published with the edges that you declare, {EDGES}: "
                "bins over the range of the data would tell its ends"
            )
        return self


class WeightedPlan(ProtectionPlan):
    """One of several statistics that are released together: what all of them share, and its own name and weight."""

    name: str = Field(default="", max_length=60, description="what the page calls it")
    weight: float = Field(
        default=1.0,
        gt=0,
        allow_inf_nan=False,
        description="relative size of its part of eta: the square of mu = 2 Phi^-1(1/2 + eta) is in proportion to it",
    )

    @model_validator(mode="after")
    def _of_several(self) -> WeightedPlan:
        if self.chosen == "half":
            raise ValueError("design half releases one statistic at a time; several take promise = anyone or file")
        if self.compare:
            raise ValueError("compare shows what each design would cost for one statistic; leave it out for several")
        if self.weight != 1 and self.noise_scale is not None:
            raise ValueError(f"a noise_scale is declared, and shares no eta: give no weight, got {self.weight:g}")
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
