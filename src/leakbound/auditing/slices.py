"""By slice: what the strongest attack reveals about each group of records, with intervals that hold for all groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool

from leakbound import metrics
from leakbound.auditing.observed import FindingSpec, ObservedRelease
from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.intervals import Interval
from leakbound.core.types import Attack, NotApplicable, Scores
from leakbound.data.groups import level_of_units
from leakbound.data.slices import SEVERAL, cut
from leakbound.reports.about import FEWEST_OF_SLICE, SliceFacts

Array = np.ndarray


@dataclass(frozen=True)
class BySlice:
    """What is reported of the slices of a release: nothing unless there are some."""

    findings: Sequence[Finding] = ()
    facts: SliceFacts | None = None


@dataclass(frozen=True, eq=False)
class _Slice:
    """The target units of one level of a column."""

    scope: Scope
    units: Bool[Array, " U"]
    column_idx: int
    ends: dict[str, float] = field(default_factory=dict)  # of numbers: the smallest and the largest value

    @property
    def n_units(self) -> int:
        return int(np.count_nonzero(self.units))


def by_slice(
    observed: ObservedRelease, attack: Attack | None, fpr: Sequence[float], confidence: float, prior: float = 0.5
) -> BySlice:
    """Measure one attack on each slice of the records.

    The scores are those of the attack on all records; within a slice, and among the records outside of it, the
    thresholds are chosen anew, as for all records. The intervals are those of ``leakbound.metrics`` on the scores of
    the slice, each at a level at which all of them hold together (Bonferroni): of every slice that is large enough,
    the accuracy, the accuracy on the rest of the records, and the true positive rate at each rate of interest. So any
    slice may be picked out afterwards. The attack is one that was chosen on all records, not on a slice.
    """
    if not observed.slices:
        return BySlice()
    # the level of a unit with several records is that of its records, or "several values"
    columns = tuple(observed.slices)
    slices = [part for column_idx in range(len(columns)) for part in _slices(observed, column_idx)]
    name = "" if attack is None else attack.name
    try:
        if attack is None:
            raise NotApplicable("no_attack")
        if observed.signals.game.is_target_point.ndim == 2:
            raise NotApplicable("target_of_its_own")
        scores = observed.by_unit(attack(observed.signals))
    except NotApplicable as reason:
        spec = FindingSpec("accuracy", "lower", name, operating_point={"prior": prior})
        findings = [_finding(observed, spec, part, reason, confidence, 0) for part in slices]
        return BySlice(findings, SliceFacts(attack=name, columns=columns, intervals=0, left_out=0))

    n_measured = sum(_few(scores, part.units) is None for part in slices)
    n_intervals = n_measured * (2 + len(fpr))  # the accuracies of slice and rest, and the rates
    level = 1 - (1 - confidence) / max(n_intervals, 1)
    findings = []
    for part in slices:
        spec = FindingSpec("accuracy", "lower", name, attack.source, {"prior": prior})
        number, rest = _accuracy(scores, part.units, prior, level), _accuracy(scores, ~part.units, prior, level)
        finding = _finding(observed, spec, part, number, confidence, n_intervals)
        if isinstance(number, Interval) and isinstance(rest, Interval):
            of_rest = {"rest": rest.value, "rest_low": rest.low, "rest_high": rest.high}
            finding = replace(finding, detail={**finding.detail, **of_rest})
        findings.append(finding)
    for part in slices:
        if _few(scores, part.units) is None:
            for rate, number in _rates(scores, part.units, fpr, level):
                spec = FindingSpec("tpr", "lower", name, attack.source, {"fpr": rate})
                findings.append(_finding(observed, spec, part, number, confidence, n_intervals))
    return BySlice(findings, SliceFacts(attack=name, columns=columns, intervals=n_intervals, left_out=0))


def _slices(observed: ObservedRelease, column_idx: int) -> Iterator[_Slice]:
    """Yield the slices of a column that have target units."""
    column = list(observed.slices)[column_idx]
    levels = cut(observed.slices[column])
    level = levels.of_record
    if observed.signals.game.target_points.ndim == 1:  # otherwise each model has its own targets: slices are only named
        level = level_of_units(level[observed.signals.game.target_points], observed.unit, len(levels.names))
    for place, name in enumerate((*levels.names, SEVERAL)):
        units = level == place
        if units.any():
            ends: dict[str, float] = {}
            if place < len(levels.ends):
                ends["from"], ends["to"] = levels.ends[place]
            yield _Slice(Scope.of_slice(column, name), units, column_idx, ends)


def _of(scores: Scores, units: Bool[Array, " U"]) -> Scores:
    """Keep the scores of some units."""
    return replace(scores, value=scores.value[:, units], member=scores.member[:, units], points=None)


def _few(scores: Scores, units: Bool[Array, " U"]) -> NotApplicable | None:
    """Return the reason why these units are too few to be measured, if they are."""
    n_models, member = len(scores.member), scores.member[:, units]
    n_members = np.count_nonzero(member) / n_models
    n_others = member.shape[1] - n_members
    if min(n_members, n_others) >= FEWEST_OF_SLICE:
        return None
    # without the counts: where there is no other, they tell of each of these records that it is a member
    return NotApplicable("few_of_each", fewest=FEWEST_OF_SLICE)


def _accuracy(scores: Scores, units: Bool[Array, " U"], prior: float, level: float) -> Interval | NotApplicable:
    """Measure the accuracy on some units, or say why it is not measured."""
    few = _few(scores, units)
    if few is not None:
        return few
    try:
        return metrics.accuracy(_of(scores, units), prior, level)
    except NotApplicable as reason:
        return reason


def _rates(
    scores: Scores, units: Bool[Array, " U"], fpr: Sequence[float], level: float
) -> Iterator[tuple[float, Interval | NotApplicable]]:
    """Yield each false positive rate with the true positive rate on some units, or why it is not measured."""
    own_scores = _of(scores, units)
    for rate in fpr:
        try:
            yield rate, metrics.tpr_at_fpr(own_scores, rate, level)
        except NotApplicable as reason:
            yield rate, reason


def _finding(
    observed: ObservedRelease,
    spec: FindingSpec,
    part: _Slice,
    number: Interval | NotApplicable,
    confidence: float,
    n_intervals: int,
) -> Finding:
    """Make a number a finding about its slice; its confidence is that of all slices at once."""
    finding = observed.finding(replace(spec, scope=part.scope), number)
    detail = {**finding.detail, "column": part.column_idx, "records": part.n_units, **part.ends}
    if finding.value is None:
        return replace(finding, detail=detail)
    method = (*finding.method, Term("all_slices_at_once", intervals=n_intervals))
    level = None if finding.confidence is None else confidence
    return replace(finding, detail=detail, method=method, confidence=level)
