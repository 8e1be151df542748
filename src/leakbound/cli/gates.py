"""Gates: what makes a pipeline stop, and with which exit code."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from leakbound.core.findings import Finding
from leakbound.reports import Report, phrases
from leakbound.reports.about import AuditAbout, decisions_of, failed_of
from leakbound.reports.results.words import listed

NO_MODELS = ("no_reference", "few_references", "no_reference_of_both", "no_reference_with", "no_reference_without")
_FALSE = {  # claims that an accountant denies: nothing is measured, so they are not refuted
    "cannot_hold": "cannot hold: the training as declared gives more",
    "not_supported": "is not supported: the accountant shows more for the training as declared",
}


def refuted(report: Report) -> list[str]:
    """List the claims that a report refutes, in words."""
    verdicts = [(curve.release, curve.verdict) for curve in report.curves if curve.verdict is not None]
    return [f"{release}: {phrases.claim(verdict)}" for release, verdict in verdicts if verdict.word == "refuted"]


def failures(report: Report) -> list[str]:
    """List what stops a release: verdicts of a policy, and claims that cannot hold or could not be tested, in words."""
    lines = []
    # a policy stops a release without a verdict as well
    if decisions_of(report.about):
        lines += [f"{name}: the policy has no verdict: it could not be audited" for name in failed_of(report.about)]
    lines += [
        f"{decision.release}: the policy says {phrases.DECISIONS[decision.verdict]}"
        for decision in decisions_of(report.about)
        if decision.verdict != "release"
    ]
    # claims: those that are false, then those that nobody could test
    verdicts = [(curve.release, curve.verdict) for curve in report.curves if curve.verdict is not None]
    lines += [
        f"{name}: {phrases.claim(verdict)} {_FALSE[verdict.word]}"
        for name, verdict in verdicts
        if verdict.word in _FALSE
    ]
    shifted = unaccepted_shifts(report)
    lines += [
        f"{name}: {phrases.claim(verdict)} could not be tested: {shifted[name]}"
        for name, verdict in verdicts
        if name in shifted
    ]
    return lines


def unaccepted_shifts(report: Report) -> dict[str, str]:
    """Releases whose members and others do not come from one source, with why; none where the user accepts that.

    Limits and claims about them are not tested: what an attack reaches may come from that difference.
    """
    if report.about.plan.get("accept_shift"):
        return {}
    return {
        finding.release: f"members and others do not come from one source: without the model they are told apart with "
        f"an AUC of {finding.value:.3g} (at least {finding.low:.3g}); accept_shift (--accept-shift) tests it all "
        "the same"
        for finding in report.findings
        if finding.quantity == "membership_without_model" and finding.low is not None and finding.low > 0.5
    }


def times(report: Report, seconds_a_model: Mapping[str, float]) -> list[str]:
    """Say how long the models would take that a policy's verdict asks for: to the terminal, for a report has no times.

    Only of releases of which models were made in this run, with what one took.
    """
    lines = []
    for decision in decisions_of(report.about):
        if decision.release not in seconds_a_model:
            continue
        seconds = seconds_a_model[decision.release]
        a_fit = f"{seconds:.2g}" if seconds < 10 else f"{seconds:,.0f}"
        reasons = [check.reason.values for check in decision.checks if check.reason is not None]
        for needed in sorted({int(values["needed"]) for values in reasons if "needed" in values}):
            time_of_all = _rounded(needed * seconds)
            lines += [f"{decision.release}: {needed:,} models: about {time_of_all} at {a_fit} s a fit"]
    return lines


def _rounded(seconds: float) -> str:
    """Write a time with its unit.

    >>> _rounded(4.2), _rounded(1520), _rounded(41000)
    ('5 s', '26 min', '12 h')
    """
    if seconds < 100:
        return f"{math.ceil(seconds)} s"
    if seconds < 6000:
        return f"{math.ceil(seconds / 60)} min"
    return f"{math.ceil(seconds / 3600):,} h"


def remarks(report: Report) -> list[str]:
    """Say of each release which attacks a policy does not know of, because there are no models to compare with.

    The attacks with references are the strongest ones: a limit that is kept without them says less.
    """
    lines = []
    for decision in decisions_of(report.about):
        of_attacks = [finding for finding in report.findings if finding.release == decision.release and finding.attack]
        ran = dict.fromkeys(finding.attack for finding in of_attacks if finding.value is not None)
        missing = _without_references(of_attacks)
        if missing:
            lines.append(
                f"{decision.release}: compared with what {_titles(report, ran)} reached; {_titles(report, missing)} "
                "did not run, for there are no reference models to compare with, and these attacks are mostly "
                "stronger: give the recipe (--model, or references= in Python), or say which attacks are enough "
                "(attacks, --attack, or a policy with attacks = [...])"
            )
    return lines


def exit_code(report: Report) -> int:
    """2 if a claim is refuted, else 3 if a policy or a claim is not known to be kept, else 0.

    1 if there is nothing of these, and a model could not be audited.
    """
    if refuted(report):
        return 2
    if failures(report):
        return 3
    return 1 if failed_of(report.about) else 0


def _titles(report: Report, names: Iterable[str]) -> str:
    """Name attacks as the report does."""
    known = report.about.attacks if isinstance(report.about, AuditAbout) else {}
    titles = [known[name].title if name in known and known[name].title else name for name in names]
    return listed(titles or ["no attack"])


def _without_references(findings: Iterable[Finding]) -> list[str]:
    """List the attacks that did not run because there are no, or too few, models to compare with."""
    lacking = [finding for finding in findings if finding.reason is not None and finding.reason.id in NO_MODELS]
    return list(dict.fromkeys(finding.attack for finding in lacking))
