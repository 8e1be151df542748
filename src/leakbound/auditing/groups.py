"""Group by group: what each attack reaches in each class, or in each tenth of the response.

An average over all records hides a rare class. So every group of `leakbound.data.groups` is measured with every attack,
with a threshold of its own, at prior 1/2. What is reported of a group is the attack with the largest lower end, at a
level at which the intervals of all groups and attacks hold together (Bonferroni): any of them may be picked out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Int

from leakbound.auditing.observed import FindingSpec, ObservedRelease
from leakbound.auditing.records import baseline_accuracy_of
from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.intervals import Interval
from leakbound.core.on_disk import taken
from leakbound.core.types import NotApplicable, Scores
from leakbound.data.groups import Group, groups_by_columns, groups_by_label, least_size
from leakbound.data.points import names_classes
from leakbound.metrics.best_guess import accuracies
from leakbound.metrics.records import games_won, models_needed
from leakbound.reports.about import FEWEST_OF_SLICE, GroupFacts, GroupsFacts, term_facts

Array = np.ndarray
PRIOR = 0.5
GAMES = (
    "half_split",
    "fresh",
    "forgotten",
    "one_model",
    "synthetic",
    "signals",
    "scores",
)  # in which the records are attacked themselves, and many of them


@dataclass(frozen=True)
class GroupLevels:
    """Confidence of the intervals of a group for the verdict of a policy."""

    release: float  # of the upper ends
    refusal: float  # of the lower ends, and of the records that are exposed


@dataclass(frozen=True, eq=False)
class OnGroups:
    """What one attack reaches on each measured group."""

    attack: str
    source: str
    reported: Mapping[int, Interval]  # by the index of the group, at the level of the report
    release: Mapping[int, Interval] = field(default_factory=dict)  # at the levels of a policy; empty without one
    refusal: Mapping[int, Interval] = field(default_factory=dict)
    # whether each unit is exposed at the refusal level; None without a policy, or where no single record can be tested
    exposed: Bool[Array, " U"] | None = None


@dataclass(frozen=True, eq=False)
class Grouped:
    """The groups of a release."""

    groups: Sequence[Group]
    n_units: int  # target units
    n_models: int  # attacked models
    baseline_accuracy: float  # chance to guess right about one of them without an attack
    is_measured: Bool[Array, " G"]  # whether each group has 10 members and 10 others in a model on average
    reason: Term | None = None  # why there are no groups

    @classmethod
    def of(cls, observed: ObservedRelease) -> Grouped:
        """Group the units that are attacked, where the game is about many records and something is known of them."""
        game, groups = observed.signals.game, []
        reason = Term("no_groups_in_game")
        if game.kind in GAMES and game.is_target_point.ndim == 1 and observed.n_units > 1:
            groups = _groups(observed)
            reason = None if groups else Term("no_classes_known")
        is_measured = np.zeros(len(groups), dtype=bool)
        if groups:
            member = observed.member_by_unit
            is_measured[:] = [_is_large(member, group) for group in groups]
        n_units = observed.n_units
        return cls(groups, n_units, game.n_targets, baseline_accuracy_of(observed), is_measured, reason)

    @property
    def measured(self) -> Int[Array, " g"]:
        """Indices of the groups that are measured."""
        return np.flatnonzero(self.is_measured)

    def levels(self, release: float, refusal: float) -> GroupLevels:
        """Share the error level of a refusal over the measured groups, too."""
        return GroupLevels(release, 1 - (1 - refusal) / max(len(self.measured), 1))

    def attacked(
        self, attack: str, source: str, scores: Scores, reported: float, levels: GroupLevels | None
    ) -> OnGroups:
        """Measure one attack on each group, at the confidence of the report and at the levels of a policy."""
        confidences = [reported] if levels is None else [reported, levels.release, levels.refusal]
        intervals: list[dict[int, Interval]] = [{} for _ in confidences]
        for idx in self.measured.tolist():
            units = self.groups[idx].units
            # a threshold of its own for each group: one for all would be that of the largest group
            part = replace(scores, value=taken(scores.value, units), member=taken(scores.member, units), points=None)
            for of_level, interval in zip(intervals, accuracies(part, PRIOR, confidences), strict=True):
                of_level[idx] = interval
        if levels is None:
            return OnGroups(attack, source, intervals[0])
        exposed = None
        if self.n_models > 1:
            exposed = games_won(scores, levels.refusal, baseline_accuracy=self.baseline_accuracy).exposed
        of_report, of_release, of_refusal = intervals
        return OnGroups(attack, source, of_report, of_release, of_refusal, exposed)

    def models_needed(self, level: float) -> int:
        """Return with how many models a record that is always guessed right is shown to be exposed."""
        return models_needed(self.n_units, level, self.baseline_accuracy)

    def findings(self, observed: ObservedRelease, attacks: Sequence[OnGroups], confidence: float) -> Iterator[Finding]:
        """Yield the accuracy on each group by its strongest attack; of a judged one that is too small, the reason."""
        n_intervals = len(self.measured) * len(attacks)
        for idx, group in enumerate(self.groups):
            spec = FindingSpec("accuracy", "lower", scope=Scope("group", name=group.name))
            spec = replace(spec, operating_point={"prior": PRIOR})
            detail: dict[str, float] = {"records": len(group), "judged": int(group.is_judged)}
            if group.ends:
                detail["from"], detail["to"] = group.ends
            if not attacks or not self.is_measured[idx]:
                if group.is_judged:
                    reason = (
                        NotApplicable("few_of_each", fewest=FEWEST_OF_SLICE) if attacks else NotApplicable("no_attack")
                    )
                    yield replace(observed.finding(spec, reason), detail=detail)
                continue
            # the attack with the largest lower end may be picked out, for all intervals hold at once
            worst = max(attacks, key=lambda on: (on.reported[idx].low, on.reported[idx].value))
            number = worst.reported[idx]
            finding = observed.finding(replace(spec, attack=worst.attack, source=worst.source), number)
            detail["largest"] = max(on.reported[idx].value for on in attacks)
            method = (*finding.method, Term("all_groups_at_once", intervals=n_intervals))
            yield replace(finding, detail={**finding.detail, **detail}, method=method, confidence=confidence)

    def facts(self, exposed: Bool[Array, " U"] | None, n_attacks: int) -> GroupsFacts | None:
        """Say how records are grouped, and how many of each group the strongest attack on all records exposes."""
        if self.reason is not None and self.reason.id == "no_groups_in_game":
            return None
        return GroupsFacts(
            groups=tuple(
                GroupFacts(
                    name=group.name,
                    records=len(group),
                    judged=group.is_judged,
                    joined=group.joined,
                    models_needed=group.models_needed,
                    exposed=None if exposed is None else int(exposed[group.units].sum()),
                )
                for group in self.groups
            ),
            least=least_size(self.n_models),
            intervals=len(self.measured) * n_attacks,
            left_out=0,
            reason=None if self.reason is None else term_facts([self.reason])[0],
        )


@dataclass(frozen=True, eq=False)
class AttackedGroups:
    """The groups of a release with all attacks on them: what a policy judges."""

    grouped: Grouped
    attacks: Sequence[OnGroups]
    levels: GroupLevels


def _groups(observed: ObservedRelease) -> list[Group]:
    """Group by the labels; where there are none, by the columns that the user compares."""
    game, label = observed.signals.game, observed.label
    if label is not None:
        # a classifier is right or wrong about each record; of signals from elsewhere the labels must tell
        is_classifier = "correct" in observed.signals.arrays
        if game.kind in ("signals", "scores") and label.ndim == 1:
            is_classifier |= names_classes(label)
        return groups_by_label(label[game.target_points], observed.unit, game.n_targets, is_classifier)
    columns = {name: values[game.target_points] for name, values in observed.slices.items()}
    return groups_by_columns(columns, observed.unit, game.n_targets)


def _is_large(member: Bool[Array, "T U"], group: Group) -> bool:
    """Whether a group has 10 members and 10 others in a model on average."""
    n_members = np.count_nonzero(member[:, group.units]) / len(member)
    return round(min(n_members, len(group) - n_members)) >= FEWEST_OF_SLICE  # of 20 records about half are members
