"""The sentences of a report about an attribute: patterns with gaps for numbers, never free text."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from leakbound.reports.numbers import count, near, percent, settled
from leakbound.reports.phrases import plural
from leakbound.reports.sections.attribute.result import AttributeResult
from leakbound.reports.sections.quantities import shown
from leakbound.reports.sections.words import capital, joined, listed, say, several

ADDS = "{title} reveals {attribute}: <b>{gain} of 100</b> members more are guessed right with it than without."
NOTHING = "These attacks found nothing that {title} adds to what can be guessed of {attribute} without it."
NONE = "None of the attacks could be played against {title}."
SUMMARY = (
    "{strategy} guesses {attribute} of {right} of 100 members right{interval}. Without the release {baseline} gets "
    "{without}; a guess among {values} values gets {chance}. Only the difference, {gain} of 100 ({level}: {ends}), is "
    "what the release adds.{outside}"
)
OUTSIDE = " Of {units} that were not in, the same attack gets {right}."
OVER = {
    "models": (
        "Intervals of correct guesses speak of training the models again, that of what the release adds also of "
        "drawing other {units}."
    ),
    "points": "Intervals speak of drawing other {units}; the models are fixed.",
}
UNDER = (
    "Filled dots: cases of 100 in which the attacker is right about a member, hollow ones about a {unit} that was not "
    "in. Dashed: the best guess without the release; right of it a release reveals something. {over}"
)


def question(results: Sequence[AttributeResult]) -> str:
    """Return the plan's title, or the question that every such audit asks."""
    first = results[0]
    if first.about.title:
        return first.about.title
    who = first.title if len(results) == 1 else listed(result.title for result in results)
    does = "does" if len(results) == 1 else "do"
    return f"How well {does} {who} reveal {first.facts.attribute} of the {plural(first.about.unit)} in the data?"


def facts(results: Sequence[AttributeResult]) -> list[str]:
    """List records, values, models, strategies, date, version: the line under the title."""
    about, first = results[0].about, results[0].facts
    line = [
        "Attribute audit",
        several(first.attacked, about.unit),
        several(first.values, "value"),
        f"{several(first.models, 'model')} on random halves",
        several(len(results[0].strategies), "attack"),
        about.date,
        f"leakbound {about.leakbound}",
    ]
    return [part for part in line if part]


def lede(results: Sequence[AttributeResult]) -> Markup:
    """Say what was found, a sentence a release."""
    return joined(_found(result) for result in results)


def _found(result: AttributeResult) -> Markup:
    gain, attribute = result.gain, result.facts.attribute
    if gain is None:
        return say(NONE, title=result.title)
    if (gain.low or 0.0) <= 0:
        return say(NOTHING, title=result.title, attribute=attribute)
    return say(ADDS, title=result.title, attribute=attribute, gain=shown(gain).value)


def summary(result: AttributeResult) -> Markup:
    """Write the paragraph next to the big number."""
    gain, inside = result.gain, result.find("attribute_accuracy", result.best, True)
    if gain is None or inside is None:
        return say("None of the attacks could be played; the findings below say why.")
    outside = result.find("attribute_accuracy", result.best, False)
    level = percent(result.about.confidence)
    others = ""
    if outside is not None:
        others = OUTSIDE.format(units=plural(result.about.unit), right=shown(outside).value)
    text = shown(inside)
    return say(
        SUMMARY,
        strategy=result.attack_title(result.best),
        attribute=result.facts.attribute,
        right=text.value,
        interval=f" ({level}: {text.interval})" if text.interval else "",
        baseline=result.baseline_title.lower(),
        without=of_100(result.baseline_accuracy),
        values=count(result.facts.values),
        chance=of_100(result.facts.chance),
        gain=shown(gain).value,
        level=level,
        ends=shown(gain).interval,
        outside=others,
    )


def under(results: Sequence[AttributeResult]) -> Markup:
    """How to read the figure, and what an interval is over."""
    unit = results[0].about.unit
    kinds = {finding.interval_over for result in results for finding in result.findings if finding.value is not None}
    over = OVER["models" if "models" in kinds else "points"].format(units=plural(unit))
    return say(UNDER, unit=unit, over=over)


def played(result: AttributeResult) -> str:
    """Say what was played, in a few sentences."""
    facts, unit = result.facts, result.about.unit
    models = several(facts.models, "model")
    digest = f", digest {facts.data.digest}" if facts.data.digest else ""
    parts = [
        f"{capital(models)}, each trained on a random half of the {plural(unit)}; {several(facts.attacked, unit)} "
        f"are attacked.",
        f"{several(facts.population, unit)} are population: in no model and not attacked." if facts.population else "",
        f"Data: {facts.data.name}, {several(facts.data.records, unit)}{digest}.",
        f"{facts.description}.",
    ]
    return " ".join(part for part in parts if part)


def of_100(fraction: float) -> str:
    """Write a fraction as cases of 100, to one decimal."""
    return near(settled(100 * fraction), 1)
