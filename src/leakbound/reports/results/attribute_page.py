"""What ``attribute.md.jinja`` is handed: every number as finished text, every sentence by its id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from leakbound.reports import Report
from leakbound.reports.numbers import count, near, percent, settled
from leakbound.reports.phrases import plural
from leakbound.reports.publication import is_for_owner
from leakbound.reports.results.attribute import BASELINES, AttributeResult, attribute_results, ordered
from leakbound.reports.results.dots import Dot, dot
from leakbound.reports.results.findings import FindingRow, Text, finding_row, not_run, with_interval
from leakbound.reports.results.made import ChartName, attack_method, made, stored
from leakbound.reports.results.quantities import shown
from leakbound.reports.results.words import capital, listed, note, several, unit_words
from leakbound.reports.sentences import Sentence, Texts

NONE = Sentence("value.none")


def attribute_page(report: Report) -> Texts:
    """Write an audit of an attribute down."""
    results = attribute_results(report)
    first, about = results[0], results[0].about
    unit, words = about.unit, unit_words(about.unit)
    title: Text = about.title or _question(results)
    tables = [Texts(title=result.title, rows=_rows(result)) for result in results]
    return Texts(
        title=title,
        attacked=several(first.facts.attacked, unit),
        values=several(first.facts.values, "value"),
        models=several(first.facts.models, "model"),
        n_attacks=several(len(first.strategies), "attack"),
        date=about.date,
        **words,
        a_unit_begun=capital(words["a_unit"]),
        units_begun=capital(words["units"]),
        is_for_owner=is_for_owner(report),
        answer=[_answer(result) for result in results],
        releases=[_release(result, place, len(results) > 1) for place, result in enumerate(results)],
        over=_over(results),
        interval=Sentence("interval.head_at", {"level": percent(about.confidence)}),
        tables=tables,
        n_findings=several(sum(len(table.rows) for table in tables), "number"),
        attacks=[attack_method(name, facts) for name, facts in about.attacks.items()],
        notes=[note(text) for text in about.notes],
        owner_notes=[note(text) for text in about.owner_notes],
        stored=stored(about),
        made=made(report, results),
    )


def _question(results: Sequence[AttributeResult]) -> Sentence:
    """Ask what every such audit asks."""
    gaps = {
        "who": listed(result.title for result in results),
        "attribute": results[0].facts.attribute,
        "units": plural(results[0].about.unit),
    }
    return Sentence("attribute.question" if len(results) == 1 else "attribute.question_of_several", gaps)


def _answer(result: AttributeResult) -> Sentence:
    """Say what a release adds."""
    gaps: dict[str, Text] = {"title": result.title, "attribute": result.facts.attribute}
    if result.gain is None:
        return Sentence("attribute.none", gaps)
    if (result.gain.low or 0.0) <= 0:
        return Sentence("attribute.nothing", gaps)
    return Sentence("attribute.adds", {**gaps, "gain": shown(result.gain).value})


def _release(result: AttributeResult, place: int, has_others: bool) -> Texts:
    """Write a release down."""
    strategies = [finding for finding in result.findings if finding.attack in result.strategies]
    return Texts(
        title=result.title,
        heading=result.title if has_others else "",
        gain=NONE if result.gain is None else shown(result.gain).value,
        has_gain=result.gain is not None,
        summary=list(_summary(result)),
        chart=ChartName(f"guesses{place}"),
        dots=guesses_of(result),
        baseline=result.baseline_title.lower(),
        without=_of_100(result.baseline_accuracy),
        rows=list(_strategies(result)),
        not_run=list(not_run(strategies, result.attack_title)),
        played=_played(result),
    )


def _summary(result: AttributeResult) -> Iterator[Sentence]:
    """Say how often the best strategy is right, and how often one is without the release."""
    gain, inside = result.gain, result.find("attribute_accuracy", result.best, True)
    if gain is None or inside is None:
        yield Sentence("attribute.none_below")
        return
    right, level = shown(inside), percent(result.about.confidence)
    gaps: dict[str, Text] = {"strategy": result.attack_title(result.best), "attribute": result.facts.attribute}
    gaps |= {"right": right.value, "level": level, "interval": right.interval}
    yield Sentence("attribute.right_with_interval" if right.interval else "attribute.right", gaps)
    gaps |= {"baseline": result.baseline_title.lower(), "without": _of_100(result.baseline_accuracy)}
    gaps |= {"values": count(result.facts.values), "chance": _of_100(result.facts.chance)}
    yield Sentence("attribute.without", gaps)
    yield Sentence("attribute.difference", {"gain": shown(gain).value, "level": level, "ends": shown(gain).interval})
    outside = result.find("attribute_accuracy", result.best, False)
    if outside is not None:
        yield Sentence("attribute.outside", {"units": plural(result.about.unit), "right": shown(outside).value})


def guesses_of(result: AttributeResult) -> Sequence[Dot]:
    """List the strategies of a release that ran, the weakest first; all of them if none did."""
    rows = []
    for name in reversed(result.strategies):
        title = result.attack_title(name)
        inside, outside = (result.find("attribute_accuracy", name, side) for side in (True, False))
        row = dot(title, inside, "best" if name == result.best else "attack")
        if inside is not None and outside is not None and outside.value is not None:
            row = replace(row, outside=100 * outside.value)
        rows.append(row)
    played = [row for row in rows if row.value is not None]
    return played or rows  # the table of all findings says why the others did not run


def _strategies(result: AttributeResult) -> Iterator[Texts]:
    """List the strategies, then the ways to guess without the release."""
    for name in (*result.strategies, *BASELINES):
        inside, outside = (result.find("attribute_accuracy", name, side) for side in (True, False))
        gain = result.find("attribute_gain", name)
        yield Texts(
            name=result.attack_title(name),
            inside=with_interval(inside),
            outside=with_interval(outside),
            gain=with_interval(gain),
        )
    chance = _of_100(result.facts.chance)
    yield Texts(name=Sentence("attribute.chance"), inside=chance, outside=chance, gain=NONE)


def _over(results: Sequence[AttributeResult]) -> Sentence:
    """Say what an interval is over."""
    kinds = {finding.interval_over for result in results for finding in result.findings if finding.value is not None}
    over = "models" if "models" in kinds else "points"
    return Sentence(f"attribute.over_{over}", {"units": plural(results[0].about.unit)})


def _rows(result: AttributeResult) -> list[FindingRow]:
    """Write the findings down, their attacks by their titles."""
    found = ordered(result)
    return [finding_row(result.about, finding, result.attack_title(finding.attack)) for finding in found]


def _played(result: AttributeResult) -> Texts:
    """Say what was played."""
    facts, unit = result.facts, result.about.unit
    return Texts(
        models=several(facts.models, "model"),
        attacked=several(facts.attacked, unit),
        population=several(facts.population, unit) if facts.population else "",
        data=facts.data.name,
        records=several(facts.data.records, unit),
        digest=facts.data.digest,
        description=facts.description,
    )


def _of_100(fraction: float) -> str:
    """Write a fraction as cases of 100, to one decimal."""
    return near(settled(100 * fraction), 1)
