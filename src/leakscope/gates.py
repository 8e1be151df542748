"""Gates: what makes a pipeline stop, and with which exit code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leakscope.plans.limits import Limit
from leakscope.report import Report


def refuted(report: Report) -> list[str]:
    """The claims that a report refutes, in words."""
    verdicts = [(curve.release, curve.verdict) for curve in report.curves if curve.verdict is not None]
    return [f"{release}: {made.claim}" for release, made in verdicts if made.word == "refuted"]


def failures(report: Report, limits: Sequence[str]) -> list[str]:
    """The limits that the strongest attack on a release exceeds, or that could not be measured, in words.

    Parameters
    ----------
    report : Report
    limits : sequence of str
        As ``tpr@0.01=0.05``: compared with the point value of the strongest attack.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from leakscope.gates import failures
    >>> from leakscope.report import Report
    >>> failures(Report({"releases": [{"name": "forest"}]}), ["auc=0.6"])
    ['forest: auc=0.6 could not be measured: there is no such finding']
    """
    names = [release["name"] for release in report.about["releases"]]
    names = names or list(dict.fromkeys(finding.release for finding in report.findings))  # a bound is of no release
    return [
        said for text in limits for release in names for said in _exceeded(report, release, Limit.parse(text), text)
    ]


def exit_code(report: Report, limits: Sequence[str] = ()) -> int:
    """2 if a claim is refuted, else 3 if a limit is exceeded or could not be measured, else 0."""
    if refuted(report):
        return 2
    return 3 if failures(report, limits) else 0


def _exceeded(report: Report, release: str, gate: Limit, text: str) -> Iterator[str]:
    """Whether the strongest attack on a release passes a limit, in words."""
    found = [
        finding
        for finding in report.findings
        if finding.release == release
        and finding.side != "upper"  # a ceiling is not what was found
        and finding.quantity == gate.quantity
        and (gate.at is None or finding.at.get("fpr") == gate.at)
    ]
    values = [(finding.value, finding.attack) for finding in found if finding.value is not None]
    if not values:
        reasons = {finding.reason for finding in found} or {"there is no such finding"}
        yield f"{release}: {text} could not be measured: {'; '.join(sorted(reasons))}"
        return
    value, attack = max(values)
    if value > gate.limit:
        yield f"{release}: {text} is exceeded: {attack or 'the generalisation gap'} reaches {value:.4g}"
