"""Groups by default: the one of which most is revealed, and what is said of the classes that are measured together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from leakbound.core.findings import Finding
from leakbound.core.reasons import words as reason_words
from leakbound.reports.about import FEWEST_OF_SLICE, GroupFacts
from leakbound.reports.numbers import count, near, percent
from leakbound.reports.phrases import plural
from leakbound.reports.sections.audit.result import Result
from leakbound.reports.sections.quantities import shown
from leakbound.reports.sections.words import listed, say, several

MOST_SHOWN = 20  # groups of a page
MOST_JOINED = 8  # names of a joined group
WORST = "Whether a {unit} of {group} is in is guessed right in {value}{interval} of 100 cases."
ONE_EXPOSED = "The exposed {unit} is of {group}, which has {records}."
EXPOSED = "{n} of the {all} exposed {units} {are} of {group}, which has {records}."
INTRO = (
    "Every attack is measured on every group, with a threshold of its own{at_prior}; shown is the attack with the "
    "largest lower end. All {intervals} intervals hold at once at {level}, so that the worst group may be picked out."
)
ABOVE = "Above the baseline of 50: {names}."
NONE_ABOVE = "In no group is an attack shown to be right more often than the baseline, 50 of 100."
NOT_ALL = "These are the {most} of {n} groups of which most is revealed."
JOINED = "{name} is of {parts}, which have fewer than {least} {units}{needed}."
NEEDED = "; with {models} models each of them would be judged by itself"
NO_CLASSES = "No classes are known, so no group of {units} was looked at by itself: give <code>slice=</code>."
LEFT_OUT = "{n} of fewer than {fewest} {units} {are} left out of this report."


def measured(result: Result) -> list[Finding]:
    """Return the groups of a release that were measured, the worst first: that with the largest lower end."""
    known = [finding for finding in result.groups if finding.value is not None]
    return sorted(known, key=lambda finding: (-(finding.low or 0.0), -(finding.value or 0.0)))


def worst(result: Result) -> Finding | None:
    """Return the group of which most is revealed; None where there are not several."""
    known = measured(result)
    return known[0] if known and len(result.groups) > 1 else None


def are_slices(result: Result) -> bool:
    """Whether the groups are slices that the user named, and that are shown as such."""
    names = {finding.scope.name for finding in result.slices}
    return bool(result.groups) and all(finding.scope.name in names for finding in result.groups)


def headline(result: Result) -> Markup:
    """Name the worst group where its average is above that of all, or records are exposed."""
    finding = worst(result)
    if finding is None:
        return Markup("")
    sentences = []
    if _is_above_all(result, finding) or result.n_exposed:
        text = shown(finding)
        sentences.append(
            say(
                WORST,
                unit=result.about.unit,
                group=finding.scope.name,
                value=text.value,
                interval=f" ({text.low} to {text.high})" if text.low and text.high else "",
            )
        )
    if result.n_exposed:
        sentences.append(exposed(result))
    return Markup(" ").join(sentence for sentence in sentences if sentence)


def exposed(result: Result) -> Markup:
    """Say which group has most of the exposed records; nothing where that is not known, or not published."""
    facts = result.facts.groups
    if facts is None:
        return Markup("")
    judged = [group for group in facts.groups if group.judged]
    groups = [group for group in judged if group.exposed]
    if not groups or len(judged) < 2:  # a joined group of all records has all that are exposed
        return Markup("")
    most = max(groups, key=lambda group: (group.exposed or 0, -group.records))
    records = count(most.records)
    if result.n_exposed == 1:
        return say(ONE_EXPOSED, unit=result.about.unit, group=most.name, records=records)
    return say(
        EXPOSED,
        n=count(most.exposed or 0),
        all=count(result.n_exposed),
        units=plural(result.about.unit),
        are="is" if most.exposed == 1 else "are",
        group=most.name,
        records=records,
    )


def intro(result: Result) -> Markup:
    """Say what was measured, and what the intervals cover."""
    facts = result.facts.groups
    if facts is None or not facts.intervals:
        return Markup("")
    return say(
        INTRO,
        intervals=count(facts.intervals),
        level=percent(result.about.confidence),
        at_prior="" if result.prior == 0.5 else ", at prior ½",
    )


def sentences(result: Result) -> Iterator[Markup]:
    """Say which groups are above the baseline, which are joined, which are not measured, and which are not here."""
    facts, units = result.facts.groups, plural(result.about.unit)
    if facts is None:
        return
    if facts.reason is not None:
        yield say(NO_CLASSES, units=units)
        return
    yield from _of_measured(measured(result))
    for group in facts.groups:
        if group.joined:
            yield _joined(group, facts.least, units)
    for finding in result.groups:
        if finding.reason is not None:
            yield say("Not measured: {name}: {reason}.", name=finding.scope.name, reason=reason_words(finding.reason))
    if facts.left_out:
        are = "is" if facts.left_out == 1 else "are"
        yield say(LEFT_OUT, n=several(facts.left_out, "group"), fewest=FEWEST_OF_SLICE, units=units, are=are)


def _of_measured(known: Sequence[Finding]) -> Iterator[Markup]:
    """Say which groups are above the baseline, and how many are shown."""
    above = [finding.scope.name for finding in known if (finding.low or 0.0) > 0.5]
    if above:
        yield say(ABOVE, names=_some(above))
    elif known:
        yield say(NONE_ABOVE)
    if len(known) > MOST_SHOWN:
        yield say(NOT_ALL, most=count(MOST_SHOWN), n=count(len(known)))


def _joined(group: GroupFacts, least: int, units: str) -> Markup:
    """Name what a joined group is made of, and the number of models that would judge each part by itself."""
    needed = say(NEEDED, models=count(group.models_needed)) if group.models_needed else ""
    parts = _some(group.joined)
    name = group.name[0].upper() + group.name[1:]
    return say(JOINED, name=name, parts=parts, least=count(least), units=units, needed=needed)


def _is_above_all(result: Result, finding: Finding) -> bool:
    """Whether a group is above all records, both as parts of the way from their baseline to certainty."""
    accuracy = result.accuracy
    if accuracy is None or accuracy.high is None or finding.low is None:
        return False
    baseline = result.prior_accuracy
    return (finding.low - 0.5) / 0.5 > (accuracy.high - baseline) / (1 - baseline)


def _some(names: Sequence[str]) -> str:
    """List names; of many only the first ones."""
    n_more = len(names) - MOST_JOINED
    return f"{', '.join(names[:MOST_JOINED])} and {n_more:,} more" if n_more > 0 else listed(names)


def of_100(finding: Finding) -> str:
    """``77 (74..81)``, or a dash."""
    if finding.value is None:
        return "-"
    text = shown(finding)
    return f"{text.value} ({text.low}..{text.high})" if text.low and text.high else near(100 * finding.value, 1)
