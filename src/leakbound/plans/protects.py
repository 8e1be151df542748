"""The plans of protection: which statistic of which data, what is promised, by which noise and coupling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, field_validator, model_validator

from leakbound.core.checks import one_of
from leakbound.plans.bounds import EDGES, GROUPED, Adjacency, Batches, StatisticPlan, TrainingPlan, as_levels
from leakbound.plans.choices import name_of, table_of
from leakbound.plans.moved import OF_PROTECTIONS, Moved
from leakbound.plans.plan import DependsOn, FilePath, a_fraction
from leakbound.plans.promises import (
    Anyone,
    Design,
    Drawn,
    File,
    P,
    Promise,
    as_promise,
    promise_like,
)

MaybeInside = Annotated[float | None, a_fraction(above=True, below=True)]
TARGETS = (("advantage",), ("fpr", "fnr"), ("epsilon", "delta"))
NO_CHOICE = (
    "choose what is promised: promise = anyone (differential privacy: ranges or levels must be declared), file (who is "
    "left out of this file) or drawn (who is among k of the n records)"
)
# Rules of statistics offices: the common threshold, and the least that makes sense.
RULES: Mapping[str, tuple[float, float]] = {
    "minimum": (10, 1),
    "dominance_n": (2, 1),
    "dominance_k": (0.9, 0),
    "p": (0.1, 0),
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


def printed(plan: CalibrationPlan) -> dict[str, Any]:
    """Return what a page prints of a plan: its fields and those of its promise, without secrets."""
    content = plan.model_dump(exclude={*NOT_PRINTED, "promise", "compare"})
    if isinstance(plan.compare, tuple):
        content["compare"] = [_table(promise) for promise in plan.compare]
    else:
        content["compare"] = plan.compare
    return content | {"promise": None if plan.promise is None else _table(plan.promise)}


def _table(promise: Promise) -> dict[str, Any]:
    """Write a promise as a table of the plan; a noise from Python by the name of its class."""
    ((name, fields),) = table_of(promise).items()
    noise = fields.get("noise", "")
    return {name: fields if isinstance(noise, str) else fields | {"noise": f"{type(noise).__name__} (from Python)"}}


def _promise(value: Any) -> Any:
    return None if value is None else as_promise(value)


def _compared(value: Any) -> Any:
    """Read what to compare with: true or "all", or promises of which more is declared."""
    if isinstance(value, bool):
        return value
    given = value if isinstance(value, list | tuple) else [value]
    promises = tuple(as_promise(each) for each in given if each != "all")
    return promises or bool(given)


class CalibrationPlan(StatisticPlan):
    """How much noise a statistic needs for a promise."""

    moved: ClassVar[Mapping[str, Moved]] = OF_PROTECTIONS

    eta: Annotated[float, a_fraction(most=0.5, above=True, below=True)] = Field(
        description="allowed accuracy above the better prior guess"
    )
    promise: Annotated[Promise | None, BeforeValidator(_promise)] = Field(
        default=None,
        description="anyone: differential privacy, for whoever may be in any file; file: who is left out of this file; "
        "drawn: who is among k of the n records; its fields after commas, as drawn,k=100",
    )
    budget: Annotated[float | None, a_fraction(most=0.5, above=True, below=True)] = Field(
        default=None,
        description="allowed accuracy above the prior guess of all releases of the ledger together, fixed by the "
        "first; that of this query unless given; not of promise drawn",
    )
    compare: Annotated[bool | tuple[Promise, ...], BeforeValidator(_compared)] = Field(
        default=False,
        description="for the owner, what every promise would cost, and of promise drawn the noise that other methods "
        "need: all, or a promise with its fields, as drawn,fits=500",
    )
    rules: dict[str, Any] = Field(
        default={},
        description="thresholds of the rules of statistics offices that are checked for the owner, as minimum=10, "
        "dominance_n=2, dominance_k=0.9 or p=0.1",
    )
    depends_on: DependsOn = ()

    @property
    def limits(self) -> dict[float, float]:
        """The largest true positive rate that is allowed, by false positive rate."""
        return self.promise.limits if isinstance(self.promise, File) else {}

    @property
    def rates(self) -> tuple[float, ...]:
        """False positive rates of interest: those of the plan and those of its limits."""
        return (*self.fpr, *(rate for rate in self.limits if rate not in self.fpr))

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

    @property
    def chosen(self) -> Design | None:
        """How the promise is kept; None without a choice."""
        return None if self.promise is None else self.promise.design

    @property
    def promise_name(self) -> str:
        """The name of the promise; none without a choice."""
        return "" if self.promise is None else name_of(type(self.promise))

    def under(self, kind: type[P]) -> P:
        """Return the promise if it is of this kind, else the one to compare with."""
        others = self.compare if isinstance(self.compare, tuple) else ()
        for promise in (self.promise, *others):
            if isinstance(promise, kind):
                return promise
        return promise_like(kind, self.promise)

    @model_validator(mode="after")
    def _promised(self) -> CalibrationPlan:
        promise = self.promise
        if promise is None:
            return self
        if self.group is not None and not isinstance(promise, File):
            raise ValueError(f"group belongs to promise file, got promise {self.promise_name}; {NO_GROUP[self.chosen]}")
        if isinstance(promise, Anyone):
            self._check_others(promise.others)
            if self.drop_missing:
                raise ValueError(NO_DROP_MISSING)
        if self.budget is not None and isinstance(promise, Drawn):
            raise ValueError("budget belongs to promise anyone or file, got promise drawn")
        if self.budget is not None and self.budget < self.eta:
            raise ValueError(f"budget is that of all releases together, and must be >= eta = {self.eta:g}")
        return self

    def _check_others(self, others: Sequence[str]) -> None:
        """Check that the level of all other values is beside declared ones."""
        for name in others:
            if name not in self.levels:
                raise ValueError(f"others takes the values of {name} beside its declared levels: {as_levels(name)}")
            if "others" in self.levels[name]:
                raise ValueError(f"the level others of {name} is declared already: leave it out, or leave others out")


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
        "(promise drawn: none unless given)",
    )
    another_promise: bool = Field(
        default=False,
        description="release although these data were released under another promise, in a ledger of its own; no joint "
        "number is promised over both",
    )
    allow_known_people: bool = Field(
        default=False,
        description="release although another ledger of this promise holds these people, or their records; the "
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
        if isinstance(self.promise, Drawn):
            raise ValueError("promise drawn releases one statistic at a time; several take promise = anyone or file")
        if self.compare:
            raise ValueError("compare shows what each promise would cost for one statistic; leave it out for several")
        if self.weight != 1 and isinstance(self.promise, File) and self.promise.scale is not None:
            raise ValueError(f"a scale is declared, and shares no eta: give no weight, got {self.weight:g}")
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
