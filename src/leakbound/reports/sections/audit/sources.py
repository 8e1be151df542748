"""What the page says of members and others: whether they come from one source, as far as a classifier can tell."""

from __future__ import annotations

from markupsafe import Markup

from leakbound.core.findings import Finding, Term
from leakbound.core.reasons import words
from leakbound.reports.below_chance import below_chance
from leakbound.reports.numbers import digits, percent
from leakbound.reports.phrases import plural
from leakbound.reports.sections.audit.result import Result
from leakbound.reports.sections.quantities import shown

FOUND = (
    "<b>Members and others do not come from one source.</b> Without the model, a classifier that sees only the {units} "
    "tells them apart with an AUC of {area} ({level}: {interval}). An attack on the model may succeed for "
    "the same reason."
)
WITHHELD = "No verdict, limit or ε is given for {title}; accept_shift (--accept-shift) gives them all the same."
ACCEPTED = "This was accepted: what follows is read as if the model alone caused it."
NOT_FOUND = (
    "Without the model, a classifier that sees only the {units} does not tell members from others (AUC {area}, "
    "{level}: {interval}). With so many {units} it finds, 9 times out of 10, a difference that it can turn into "
    "an AUC of {smallest}{shift}; a smaller difference may be there."
)
ONE_COLUMN = ", such as a shift of one column by {shift} standard deviations"
UNTESTED = "Whether members and others come from one source was not tested: {reason}."


def without_model(result: Result) -> Finding | None:
    """Return the finding, with or without a value; None where leakbound drew the membership."""
    findings = (finding for finding in result.findings if finding.quantity == "membership_without_model")
    return next(findings, None)


def differ(result: Result) -> bool:
    """Whether members and others differ, as a classifier without the model shows."""
    finding = without_model(result)
    return finding is not None and (finding.low or 0.0) > 0.5


def accepted(result: Result) -> bool:
    """Whether the user accepts that."""
    return bool(result.about.plan.get("accept_shift"))


def warning(result: Result) -> Markup:
    """Write the warning that members and others differ, which comes first; else nothing."""
    finding = without_model(result)
    if finding is None or not differ(result):
        return Markup("")
    rest = Markup(ACCEPTED) if accepted(result) else Markup(WITHHELD).format(title=result.title)
    return Markup(" ").join([_numbers(FOUND, result, finding), rest])


def below(result: Result) -> Term | None:
    """Return why attacks that are wrong more often than a guess leave no verdict; None if there are none."""
    found = below_chance(result.findings)
    if found is None or "attack" not in found.values:
        return found
    return Term(found.id, **{**found.values, "attack": result.attack_title(str(found.values["attack"]))})


def warning_below(result: Result, *, alone: bool) -> Markup:
    """Write the warning that attacks are wrong more often than a guess; else nothing."""
    found = below(result)
    if found is None:
        return Markup("")
    sentence = Markup("<b>{words}.</b>").format(words=words(found))
    return sentence if alone else Markup("{title}: {sentence}").format(title=result.title, sentence=sentence)


def note(result: Result) -> Markup:
    """Say that no difference was found, and how large one would have to be; or why there was no test."""
    finding = without_model(result)
    if finding is None or differ(result):
        return Markup("")
    if finding.reason is not None:
        return Markup(UNTESTED).format(reason=words(finding.reason))
    shift = finding.detail.get("smallest_shift")
    column = "" if shift is None else ONE_COLUMN.format(shift=digits(shift, most=2).value)
    smallest = digits(finding.detail["smallest_auc"], most=2).value
    return _numbers(NOT_FOUND, result, finding, smallest=smallest, shift=column)


def _numbers(pattern: str, result: Result, finding: Finding, **gaps: str) -> Markup:
    """Fill a sentence with the area and its interval."""
    text = shown(finding)
    level = percent(result.about.confidence if finding.confidence is None else finding.confidence)
    units = plural(result.about.unit)
    return Markup(pattern).format(area=text.value, interval=text.interval, level=level, units=units, **gaps)
