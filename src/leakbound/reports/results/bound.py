"""A bound as its page and charts read it: its findings by release, its headline, and its ranking of the records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from leakbound.core.findings import Finding
from leakbound.reports import Curve, Report, phrases
from leakbound.reports.about import BoundAbout, about_as
from leakbound.reports.phrases import place
from leakbound.reports.results.parts import Part, parts_of
from leakbound.reports.results.ranking import Ranking


@dataclass(frozen=True)
class BoundResult:
    """A bound: its findings by release, its headline, and its ranking of the records."""

    findings: Sequence[Finding]
    curves: Sequence[Curve]
    about: BoundAbout
    ranking: Ranking | None

    @property
    def parts(self) -> tuple[Part, ...]:
        """The findings by release and scope, in order."""
        return parts_of(self.findings, self.about)

    @cached_property
    def headline(self) -> Finding | None:
        """The number that is printed large: the largest accuracy of the kind that is given first.

        Without an accuracy the first finding that has a value.
        """
        known = [finding for finding in self.findings if finding.value is not None and not finding.attack]
        accuracy = [finding for finding in known if finding.quantity == "accuracy"]
        if not accuracy:
            return known[0] if known else None
        return max(
            (finding for finding in accuracy if kind(finding) == kind(accuracy[0])),
            key=lambda finding: finding.value or 0.0,
        )

    @property
    def accuracies(self) -> tuple[Finding, ...]:
        """Every accuracy."""
        return tuple(
            finding for finding in self.findings if finding.quantity == "accuracy" and finding.value is not None
        )

    @property
    def peers(self) -> tuple[Finding, ...]:
        """The number of the headline, of other releases or scopes."""
        head = self.headline
        if head is None or head.quantity != "accuracy":
            return ()
        return tuple(
            finding
            for finding in self.accuracies
            if kind(finding) == kind(head) and place(finding) not in ("", place(head))
        )

    @property
    def successes(self) -> tuple[Finding, ...]:
        """Every accuracy at the prior of the headline: lower bounds, exact values and upper bounds of it."""
        return tuple(finding for finding in self.accuracies if finding.operating_point.get("prior", 0.5) == self.prior)

    @property
    def prior(self) -> float:
        """Fraction of the records that are members, in the headline."""
        return 0.5 if self.headline is None else self.headline.operating_point.get("prior", 0.5)

    @property
    def prior_accuracy(self) -> float:
        """Accuracy of a guess from the prior alone."""
        return max(self.prior, 1 - self.prior)

    @property
    def ceilings(self) -> tuple[Curve, ...]:
        """Curves that no attacker exceeds."""
        return tuple(curve for curve in self.curves if curve.role != "measured")

    @property
    def advantage(self) -> float:
        """The largest advantage that a curve allows."""
        return max((curve.tradeoff.advantage() for curve in self.curves), default=1.0)


def curve_name(curve: Curve, row: str) -> str:
    """Name a curve: whom it is about where that is not everybody, else its own name."""
    return curve.name if curve.scope.kind == "every" else phrases.scope(curve.scope, row)


def kind(finding: Finding) -> tuple[str, str, str, tuple[tuple[str, float], ...]]:
    """Return what must be equal for two findings to be compared: all but whom they are about."""
    return finding.bound_type, finding.status, finding.source, tuple(sorted(finding.operating_point.items()))


def bound_result(report: Report) -> BoundResult:
    """Read the bound of a report."""
    about = about_as(BoundAbout, report.about)
    result = BoundResult(report.findings, report.curves, about, None)
    if not report.record_table or not len(next(iter(report.record_table.values()))):
        return result
    bound_type = "upper" if result.headline is None else result.headline.bound_type
    ranking = Ranking(report.record_table, about.unit, bound_type, result.prior_accuracy)
    return BoundResult(report.findings, report.curves, about, ranking)
