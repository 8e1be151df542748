"""What may be said of two reports: a difference is one only where the intervals do not overlap."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from markupsafe import Markup

from leakbound.core.findings import Finding
from leakbound.reports import Curve, Report
from leakbound.reports.about import AuditAbout, TheoremFacts, releases_of
from leakbound.reports.comparison import Comparison, apart
from leakbound.reports.numbers import MINUS, count, percent, plain_number, powers
from leakbound.reports.phrases import plural
from leakbound.reports.results.audit import Result, results
from leakbound.reports.results.bound import bound_result
from leakbound.reports.sections import findings
from leakbound.reports.sections.attribute.result import AttributeResult, attribute_results
from leakbound.reports.sections.parts import Part
from leakbound.reports.sections.quantities import FRACTIONS, shown
from leakbound.reports.sections.words import Words, capital, joined, say

Kind = Literal["measured", "gain", "ceiling"]
STRONGEST = "the strongest attack"  # the key of whichever attack is the strongest on a release
APART = {
    "measured": (
        "{more} reveals more than {less}: an attacker is right in <b>{high} of 100 cases</b> ({high_interval}) against "
        "{low} ({low_interval}); the intervals do not overlap."
    ),
    "gain": (
        "{more} reveals more than {less}: it adds <b>{high} of 100 correct guesses</b> ({high_interval}) against {low} "
        "({low_interval}); the intervals do not overlap."
    ),
}
NOT_APART = {
    "measured": (
        "No difference between {first} and {second} is shown: an attacker is right in <b>{one} of 100 cases</b> "
        "({one_interval}) and in {other} ({other_interval}); the intervals overlap."
    ),
    "gain": (
        "No difference between {first} and {second} is shown: they add <b>{one} of 100 correct guesses</b> "
        "({one_interval}) and {other} ({other_interval}); the intervals overlap."
    ),
}
CEILINGS = "{more} allows more than {less}: at most <b>{high} of 100 cases</b> against at most {low}{asymptotic}."
SAME_CEILING = "{first} and {second} allow the same: at most <b>{right} of 100 cases</b>{asymptotic}."
MIXED = (
    "{measured} was measured: an attacker is right in <b>{right} of 100 cases</b> ({interval}). {ceiling} is a "
    "ceiling: at most {most} of 100. Whether a ceiling holds for a model is tested by an audit with that claim."
)
NOT_COMPARED = "{first} and {second} cannot be compared in one number: {why}."
JUDGED = (
    "A difference is stated only where two intervals ({level}) do not overlap. If there is none, that happens in at "
    "most {most} of the comparisons of two independent audits."
)
OTHER_RECORDS = "The two audits are of different records, which may be the reason for a difference."
OTHER_GAMES = "The two audits played different games ({first}, {second}), which may be the reason for a difference."
EXPOSED = "{Units} exposed beyond chance"
ONE_MODEL = "The interval of {name} is over the records of its models: it says nothing of other trainings."


@dataclass(frozen=True)
class Standing:
    """The number by which a report is compared."""

    name: str
    kind: Kind
    finding: Finding | None
    prior: float | None = None
    why: str = ""
    curve: Curve | None = None
    curve_title: str = ""
    digest: str = ""
    game: str = ""


@dataclass(frozen=True)
class Verdict:
    """What is said of two reports."""

    first: Standing
    second: Standing
    sentence: Markup
    notes: Markup
    is_first_larger: bool | None


def verdict(comparison: Comparison) -> Verdict:
    """Judge two reports by the strongest attack on, or the largest ceiling of, each.

    >>> import leakbound as ls
    >>> same = ls.compare(ls.bound("dp", epsilon=1.0), ls.bound("dp", epsilon=1.0))
    >>> verdict(same).sentence.striptags()
    'The first report and the second report allow the same: at most 73.2 of 100 cases.'
    """
    first, second = _named(
        _standing(comparison.first, comparison.names[0]), _standing(comparison.second, comparison.names[1]), comparison
    )
    why = _why_not(first, second)
    if why:
        sentence = say(NOT_COMPARED, first=first.name, second=second.name, why=why)
        return Verdict(first, second, begun(sentence), Markup(""), None)
    if first.kind != second.kind:
        return Verdict(first, second, begun(_mixed(first, second)), Markup(""), None)
    is_larger = _value(first) > _value(second)
    if first.kind == "ceiling":
        is_shown = _value(first) != _value(second)
        sentence = _of_ceilings(first, second, is_larger) if is_shown else _same_ceiling(first, second)
        return Verdict(first, second, begun(sentence), Markup(""), is_larger if is_shown else None)
    if first.finding is not None and second.finding is not None and apart(first.finding, second.finding):
        more, less = (first, second) if is_larger else (second, first)
        sentence = say(
            APART[first.kind], more=more.name, less=less.name, **_numbers(more, "high"), **_numbers(less, "low")
        )
        return Verdict(first, second, begun(sentence), _notes(first, second), is_larger)
    sentence = say(
        NOT_APART[first.kind],
        first=first.name,
        second=second.name,
        **_numbers(first, "one"),
        **_numbers(second, "other"),
    )
    return Verdict(first, second, begun(sentence), _notes(first, second), None)


def begun(sentence: Words) -> Words:
    """Begin with a capital, unless the first word is the name of a release, which stays as it is.

    >>> begun("the first report"), begun("forest")
    ('The first report', 'forest')
    """
    return capital(sentence) if sentence.startswith("the ") else sentence


def _standing(report: Report, name: str) -> Standing:
    return STANDINGS[report.about.kind](report, name)


def _of_audit(report: Report, name: str) -> Standing:
    """Take the release of an audit that reveals most, by its strongest attack."""
    found = results(report)
    result = max(found, key=lambda result: result.strength)
    why = ""
    if result.too_few:
        why = f"{result.title} has {result.n_games} guesses, too few for a percentage"
    elif result.is_withheld:
        why = f"members and others of {result.title} do not come from one source"
    else:
        below = next((result for result in found if result.below_chance is not None), None)
        if below is not None:
            why = f"attacks on {below.title} are wrong more often than a guess, so that there is no verdict on it"
    curves = {curve.name: curve for curve in result.curves if curve.role == "measured"}
    return Standing(
        result.title,
        "measured",
        result.accuracy,
        result.prior,
        why,
        curves.get(result.best),
        result.attack_title(result.best) if result.best else "",
        result.facts.data.digest,
        result.facts.game,
    )


def _of_attribute(report: Report, name: str) -> Standing:
    """Take the release that adds most to guesses of an attribute."""
    found = attribute_results(report)

    def least(gain: Finding | None) -> float:
        return -2.0 if gain is None or gain.low is None else gain.low

    result = max(found, key=lambda result: least(result.gain))
    return Standing(result.title, "gain", result.gain, digest=result.facts.data.digest, game=result.facts.attribute)


def _of_ceiling(report: Report, name: str) -> Standing:
    """Take the accuracy that a bound, or the promise of a protected release, allows."""
    accuracy = next(
        (
            finding
            for finding in _ceilings(report)
            if finding.quantity == "accuracy" and finding.bound_type != "lower" and finding.value is not None
        ),
        None,
    )
    curve = next((curve for curve in report.curves if curve.role != "measured"), None)
    prior = None if accuracy is None else accuracy.operating_point.get("prior")
    return Standing(name, "ceiling", accuracy, prior, curve=curve)


def _ceilings(report: Report) -> list[Finding]:
    """List findings that no attack measured, those that come first on the page first."""
    if report.about.kind != "bound":
        return [finding for finding in report.findings if not finding.attack and not finding.release]
    headline = bound_result(report).headline
    return [] if headline is None else [headline]


STANDINGS: Mapping[str, Callable[[Report, str], Standing]] = {
    "audit": _of_audit,
    "attribute": _of_attribute,
    "bound": _of_ceiling,
    "protected": _of_ceiling,
}


def _named(first: Standing, second: Standing, comparison: Comparison) -> tuple[Standing, Standing]:
    """Add the names of the reports where the releases have the same name."""
    if first.name != second.name:
        return first, second
    names = [f"{standing.name} ({name})" for standing, name in zip((first, second), comparison.names, strict=True)]
    return replace(first, name=names[0]), replace(second, name=names[1])


def _why_not(first: Standing, second: Standing) -> str:
    """Say why two numbers cannot be compared; empty where they can."""
    for standing in (first, second):
        if standing.why:
            return standing.why
        if standing.finding is None or standing.finding.value is None:
            return f"{standing.name} has none"
        if standing.kind != "ceiling" and (standing.finding.low is None or standing.finding.high is None):
            return f"that of {standing.name} has no interval"
    if "gain" in (first.kind, second.kind) and first.kind != second.kind:
        return "one is about an attribute, the other about membership"
    if first.kind == "gain" and first.game != second.game:
        return f"the attributes differ, {first.game} and {second.game}"
    if first.prior != second.prior and None not in (first.prior, second.prior):
        priors = " and ".join(plain_number(float(standing.prior or 0.0)) for standing in (first, second))
        return f"their accuracies are at different priors, {priors}"
    return ""


def _mixed(first: Standing, second: Standing) -> Markup:
    measured, ceiling = (first, second) if first.kind == "measured" else (second, first)
    numbers = _numbers(measured, "right")
    return say(
        MIXED,
        measured=measured.name,
        right=numbers["right"],
        interval=numbers["right_interval"],
        ceiling=begun(ceiling.name),
        most=_text(ceiling),
    )


def _of_ceilings(first: Standing, second: Standing, is_first_larger: bool) -> Markup:
    more, less = (first, second) if is_first_larger else (second, first)
    return say(
        CEILINGS,
        more=more.name,
        less=less.name,
        high=_text(more),
        low=_text(less),
        asymptotic=_asymptotic(first, second),
    )


def _same_ceiling(first: Standing, second: Standing) -> Markup:
    return say(
        SAME_CEILING, first=first.name, second=second.name, right=_text(first), asymptotic=_asymptotic(first, second)
    )


def _asymptotic(first: Standing, second: Standing) -> str:
    """Say which number is proved only in the limit."""
    statuses = [standing.finding.status for standing in (first, second) if standing.finding is not None]
    return " (for large n)" if "asymptotic" in statuses else ""


def _value(standing: Standing) -> float:
    return 0.0 if standing.finding is None else standing.finding.value or 0.0


def _text(standing: Standing) -> str:
    return "" if standing.finding is None else shown(standing.finding).value


def _numbers(standing: Standing, gap: str) -> dict[str, str]:
    """Fill the gaps of a number and of its interval."""
    if standing.finding is None:
        return {}
    digits = shown(standing.finding)
    return {gap: digits.value, f"{gap}_interval": digits.interval}


def _notes(first: Standing, second: Standing) -> Markup:
    """Say how the difference was judged, and what may be its reason."""
    levels = {standing.finding.confidence or 0.0 for standing in (first, second) if standing.finding is not None}
    level = " and ".join(percent(value) for value in sorted(levels))
    notes = [say(JUDGED, level=level, most=percent(round(1 - min(levels), 12)))]
    if first.digest and second.digest and first.digest != second.digest:
        notes.append(Markup(OTHER_RECORDS))
    if first.game != second.game:
        notes.append(say(OTHER_GAMES, first=first.game.replace("_", " "), second=second.game.replace("_", " ")))
    notes += [
        say(ONE_MODEL, name=standing.name)
        for standing in (first, second)
        if standing.finding is not None and standing.finding.interval_over == "points"
    ]
    return joined(notes)


@dataclass(frozen=True)
class CompareRow:
    """A number of both reports, as the table prints it."""

    release: str
    quantity: Markup
    first: Markup
    second: Markup
    difference: Markup
    is_apart: bool


def strongest(comparison: Comparison) -> list[CompareRow]:
    """Compare the strongest attack on each, whichever it is; empty where not both are audits of membership."""
    if comparison.first.about.kind != "audit" or comparison.second.about.kind != "audit":
        return []
    one, other = (max(results(report), key=lambda result: result.strength) for report in _both(comparison))
    rows = []
    wanted: list[tuple[str, dict[str, float]]] = [("accuracy", {})]
    wanted += [("tpr", {"fpr": fpr}) for fpr in one.about.fpr if fpr in other.about.fpr]
    wanted.append(("auc", {}))
    for quantity, at in wanted:
        before, after = (result.find(quantity, result.best, **at) for result in (one, other))
        if before is None or after is None or before.operating_point != after.operating_point:
            continue
        name = findings.quantity(replace(one, about=_of_the_strongest(one)), replace(before, attack=STRONGEST))
        rows.append(_row("", name, before, after))
    worst = one.most_exposed, other.most_exposed
    if worst[0] is not None and worst[1] is not None:
        rows.append(_row("", findings.quantity(one, worst[0]), worst[0], worst[1]))
    if one.games is not None and other.games is not None and one.first_exposed and other.first_exposed:
        units = capital(plural(one.about.unit))
        counts = [f"{count(result.n_exposed)} of {count(result.facts.target_points)}" for result in (one, other)]
        difference = f"{other.n_exposed - one.n_exposed:+,}".replace("-", MINUS)
        texts = [Markup.escape(text) for text in (*counts, difference)]
        rows.append(CompareRow("", say(EXPOSED, Units=units), *texts, is_apart=False))
    return rows


def all_rows(comparison: Comparison) -> list[CompareRow]:
    """Compare every number of the two reports that at least one of them has."""
    several = len({pair.key.release for pair in comparison.pairs}) > 1
    rows = []
    for pair in comparison.pairs:
        known = [
            (report, finding)
            for report, finding in zip(_both(comparison), (pair.before, pair.after), strict=True)
            if finding is not None and finding.value is not None
        ]
        if not known:
            continue
        report, finding = known[0]
        name = findings.quantity(_subject(report, finding), finding)
        release = begun_release(comparison, pair.key.release) if several else ""
        rows.append(_row(release, name, pair.before, pair.after, pair.apart))
    return rows


def begun_release(comparison: Comparison, name: str) -> str:
    """Return a release in words."""
    for report in _both(comparison):
        for facts in releases_of(report.about):
            if facts.name == name:
                return facts.title or name
    return name


def _both(comparison: Comparison) -> tuple[Report, Report]:
    return comparison.first, comparison.second


def _of_the_strongest(result: Result) -> AuditAbout:
    """Return the facts of an audit in which the strongest attack is called so."""
    title = TheoremFacts(title="the strongest attack", source="", summary="")
    return result.about.model_copy(update={"attacks": {**result.about.attacks, STRONGEST: title}})


def _subject(report: Report, finding: Finding) -> findings.Shown:
    """Return what a finding is about, as the table of all findings asks for it."""
    found: Sequence[Result] | Sequence[AttributeResult] = ()
    if report.about.kind == "audit":
        found = results(report)
    elif report.about.kind == "attribute":
        found = attribute_results(report)
    for result in found:
        if result.facts.name == finding.release:
            return result
    return Part(finding.release, (finding,), report.about, finding.scope)


def _row(
    release: str, name: Markup, before: Finding | None, after: Finding | None, is_apart: bool | None = None
) -> CompareRow:
    if is_apart is None:
        is_apart = before is not None and after is not None and apart(before, after)
    return CompareRow(release, name, _cell(before), _cell(after), _difference(before, after), is_apart)


def _cell(finding: Finding | None) -> Markup:
    """Write a number with its interval; a dash where there is none."""
    if finding is None or finding.value is None:
        return Markup("—")
    value, interval = findings.numbers(finding)
    if not shown(finding).interval and not finding.refused:
        return powers(value)
    return say('{value} <span class="q">({interval})</span>', value=powers(value), interval=powers(interval))


def _difference(before: Finding | None, after: Finding | None) -> Markup:
    """Write the second number less the first one, in the unit of the quantity."""
    if before is None or after is None or before.value is None or after.value is None:
        return Markup("—")
    difference = after.value - before.value
    if not math.isfinite(difference) or before.quantity == "most_exposed":  # correct guesses, of different numbers
        return Markup("—")
    if before.quantity in findings.OF_100:
        text = f"{100 * difference:+.1f} of 100"
    elif before.quantity in FRACTIONS:
        text = f"{100 * difference:+.1f} points"
    else:
        text = f"{difference:+.3g}"
    return Markup.escape(text.replace("-", MINUS))
