"""A release that has been observed, and how a number about it becomes a finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Int, Shaped

from leakbound.auditing.baseline import SourceTest
from leakbound.core.findings import AVERAGE, BoundType, Finding, Scope, Term
from leakbound.core.intervals import Interval
from leakbound.core.tradeoff.claims import Claim
from leakbound.core.types import NotApplicable, Scores, Signals
from leakbound.data import Data
from leakbound.dpsgd.diagnostics import StepDiagnostics
from leakbound.releases.structure import Structure

Array = np.ndarray


@dataclass(frozen=True)
class FindingSpec:
    """What a finding is about."""

    quantity: str
    bound_type: BoundType
    attack: str = ""
    source: str = ""
    operating_point: Mapping[str, float] = field(default_factory=dict)
    assumptions: Sequence[Term] = ()
    per_record: bool = False
    scope: Scope = AVERAGE


@dataclass(frozen=True)
class ObservedRelease:
    """A release that has been observed, with what the report says about it."""

    name: str
    signals: Signals
    data: Data | None = None
    claims: Sequence[Claim] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    sources: SourceTest | None = None
    n_shared: int = 0
    structure: Structure | None = None
    names: Shaped[Array, " N"] | None = None
    slices: Mapping[str, Shaped[Array, " N"]] = field(default_factory=dict)
    labels: Shaped[Array, " N"] | Shaped[Array, "N L"] | None = None
    other_recipe: Term | None = None
    n_looks: int = 1
    is_scored: bool = False  # seen by a score of the user's own, and not by predictions
    measured: Sequence[tuple[FindingSpec, Interval | NotApplicable]] = ()  # beside the attacks: controls
    diagnostics: StepDiagnostics = field(
        default_factory=StepDiagnostics
    )  # of trainings by DP-SGD, beside the signals of the points

    def finding(self, spec: FindingSpec, number: Interval | NotApplicable) -> Finding:
        """Make a finding of this release from a measured number, or from the reason why there is none."""
        game, scope = self.signals.game, spec.scope
        if scope.kind == "average" and game.kind == "per_datum":  # an average over a single record
            scope = Scope("one")
        common: dict[str, Any] = {
            "operating_point": spec.operating_point,
            "bound_type": spec.bound_type,
            "scope": scope,
            "release": self.name,
            "attack": spec.attack,
            "game": Term(game.kind.replace(" ", "_"), others=game.others),
            "assumptions": spec.assumptions,
            "source": spec.source,
            "per_record": spec.per_record,
        }
        if isinstance(number, NotApplicable):
            return Finding(spec.quantity, None, reason=number.reason, **common)
        ends = {
            name: getattr(number, name) for name in ("low", "high", "confidence", "interval_over", "method", "detail")
        }
        if number.refused:  # a value without an interval is an estimate, and shows nothing about anybody
            ends |= {"low": None, "high": None, "confidence": None, "refused": number.refused}
            common["bound_type"] = "point"
        return Finding(spec.quantity, number.value, **ends, **common)

    @property
    def n_units(self) -> int:
        """How many records, or units of several, are target points."""
        points = self.signals.game.target_points
        if self.group is None and points.ndim == 1:
            return len(points)
        return len(np.unique(points if self.group is None else self.group))

    @property
    def target_names(self) -> list[str] | None:
        """What the owner calls each target point; None where they have no names, or units have several rows."""
        points = self.signals.points
        names = points.names if self.names is None and points is not None else self.names
        if names is None or self.group is not None:
            return None
        return names[self.signals.game.target_points].tolist()

    @property
    def label(self) -> Shaped[Array, " N"] | Shaped[Array, "N L"] | None:
        """Label or response of each record; None where none is known."""
        points = self.signals.points
        if self.labels is not None:
            return self.labels
        return self.signals.labels if points is None or points.y is None else points.y

    @property
    def group(self) -> Shaped[Array, " J"] | None:
        """Unit of each target point, where a unit has several rows."""
        points = self.signals.points
        if points is None or points.group is None:
            return None
        return points.group[self.signals.game.target_points]

    @property
    def has_units(self) -> bool:
        """Whether some unit has several records."""
        return self.group is not None and len(np.unique(self.group)) < len(self.group)

    @property
    def unit(self) -> Int[Array, " J"] | None:
        """Index of the unit of each target point, in the order of their names; None where each is one by itself."""
        return None if self.group is None else np.unique(self.group, return_inverse=True)[1]

    @property
    def member_by_unit(self) -> Bool[Array, "T U"]:
        """Membership of the target units in the data of each target."""
        member = self.signals.game.target_member
        return member if self.group is None else member[:, np.unique(self.group, return_index=True)[1]]

    def by_unit(self, scores: Scores) -> Scores:
        """Scores of units with several rows: the mean over the rows of each, in the order of their names."""
        if self.group is None:
            return scores
        _, first, unit, rows = np.unique(self.group, return_index=True, return_inverse=True, return_counts=True)
        # sort the columns by unit, so that each unit is a run of columns that one sum covers
        order = np.argsort(unit, kind="stable")
        starts = np.r_[0, np.cumsum(rows)[:-1]]
        mean = np.add.reduceat(scores.value[:, order], starts, axis=1, dtype=np.float64) / rows
        value = mean.astype(scores.value.dtype)
        return replace(scores, value=value, member=scores.member[:, first], points=None)
