"""The sentences of the summary: patterns with gaps for numbers, never free text.

Every sentence is ``Markup``: what is filled in is escaped, and ``striptags`` gives the plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from markupsafe import Markup

from leakscope.findings import Finding
from leakscope.report.numbers import count, down, near, parameter, percent, up
from leakscope.report.results import Result, shown

SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
PLURALS = {"person": "people"}
GIVES_AWAY = (  # from this share of the way between guessing and certainty on: 90, 75, 60 of 100 at even odds
    (0.8, "gives its training data away almost completely"),
    (0.5, "gives much of its training data away"),
    (0.2, "reveals something about most {units}"),
)
PLANTED = "Whether a canary was planted in the data of {title} is guessed right in {right} of 100 cases."
SUMMARY = (
    "An attacker who guesses whether a random {unit} was used for training is right in "
    "<b>{right} of 100 cases</b>{interval}; {blind}."
)
COUNTED = (
    "An attacker who guesses whether a {unit} was used for training is right in "
    "<b>{right} of {games} cases</b>{interval}: too few for a curve."
)
MOST_EXPOSED = (
    "For the most exposed {unit} the attacker won {every}{won} of {games} games, that is "
    "<b>at least {least} of 100</b> ({level}, all {units} at once)."
)
EXCLUDED = "A leak larger than {most} of 100 by these attacks is excluded at {level}; a better attack may exist."
BOUNDS = {
    "lower": "some attacker is right in at least {right} of 100 cases{level}{by}.",
    "upper": "no attacker is right in more than {right} of 100 cases{level}{by}.",
    "point": "the best possible attacker is right in {right} of 100 cases{level}{by}.",
}
BY = {"delgrosso2021, Theorem 2": "by the gap between training and test error alone"}
GREEK = {"epsilon": "ε", "delta": "δ", "eta": "η", "mu": "μ"}
PARAMETER = re.compile(r"\b(epsilon|delta|mu|eta) = (inf|\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?![\w.]*\w)")
_KEY = re.compile(r"\b([a-z]+)((?:19|20)\d\d)\b")
NOBODY = "No {unit} is exposed beyond chance; {games} games would show a {unit} at {least} of 100 or more."


def say(pattern: str, **gaps: object) -> Markup:
    """A sentence with its gaps filled and escaped.

    Examples
    --------
    >>> print(say("<b>{name}</b> leaks.", name="a < b"))
    <b>a &lt; b</b> leaks.
    """
    made = Markup(pattern).format(**gaps)
    unit = str(gaps.get("unit", ""))
    return Markup(made.replace(f" a {unit}", f" {article(unit)} {unit}")) if unit and " a {unit}" in pattern else made


def article(unit: str) -> str:
    """``a record``, ``an image``, ``a user``."""
    return "an" if unit[:1].lower() in "aeio" else "a"


def joined(sentences: Iterable[Markup]) -> Markup:
    """Sentences that are not empty, with a space between."""
    return Markup(" ").join(sentence for sentence in sentences if sentence)


def plural(unit: str) -> str:
    """Several of a unit."""
    return PLURALS.get(unit, f"{unit}s")


def several(n: int, unit: str) -> str:
    """``1,500 records``, ``1 record``."""
    return f"{count(n)} {unit if n == 1 else plural(unit)}"


def listed(items: Iterable[str]) -> str:
    """``a, b and c``."""
    *others, last = items
    return f"{', '.join(others)} and {last}" if others else last


def capital(text: str) -> str:
    """First letter large, the rest untouched."""
    return text[:1].upper() + text[1:]


def sentence(text: str) -> str:
    """With a full stop."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def cited(source: str) -> str:
    """Keys of the bibliography as a name and a year.

    Examples
    --------
    >>> cited("yeom2018, Adversary 2")
    'Yeom 2018, Adversary 2'
    """
    return _KEY.sub(lambda found: f"{found[1].capitalize()} {found[2]}", source)


def lettered(text: str) -> Markup:
    r"""Parameters with Greek letters and powers of ten.

    Examples
    --------
    >>> lettered("delta = 1e-05 <b>")
    Markup('δ\xa0=\xa010<sup>−5</sup> &lt;b&gt;')
    """
    parts, end = [], 0
    for found in PARAMETER.finditer(text):
        before, letter, value = text[end : found.start()], GREEK[found[1]], parameter(float(found[2]))
        parts.append(say("{before}{letter}\u00a0=\u00a0{value}", before=before, letter=letter, value=value))
        end = found.end()
    return Markup("").join([*parts, Markup.escape(text[end:])])


def level(result: Result, finding: Finding | None = None) -> str:
    """Confidence of a finding, or of the audit, in percent."""
    own = None if finding is None else finding.confidence
    return percent(result.about["confidence"] if own is None else own)


def question(results: Sequence[Result]) -> str:
    """The plan's title, or the question that every audit asks."""
    if results[0].about["title"]:
        return results[0].about["title"]
    if results[0].facts["game"] == "scores":
        return "How much do these scores reveal about who is in the training data?"
    if len(results) == 1:
        return f"How much does {results[0].title} reveal about who is in its training data?"
    names = f"{results[0].title} and {results[-1].title}" if len(results) == 2 else f"{_small(len(results))} models"
    return f"How much do {names} reveal about who is in their training data?"


def facts(results: Sequence[Result]) -> list[str]:
    """Records, models, attacks, date, version: the line under the title."""
    about = results[0].about
    judged = {result.facts["judged"] for result in results}
    most = several(max(judged), about["unit"])
    line = [
        "Membership audit",
        most if len(judged) == 1 else f"up to {most}",
        _trained(results),
        several(len(about["attacks"]), "attack"),
        about["date"],
        f"leakscope {about['leakscope']}",
    ]
    return [part for part in line if part]


def _trained(results: Sequence[Result]) -> str:
    """How many models were trained, and on what."""
    n, unit, first = len(results), results[0].about["unit"], results[0].facts
    if len({(result.facts["game"], result.facts["models"]) for result in results}) > 1:
        return f"{n} releases"
    times = f"{'1 model' if n == 1 else f'{n} models, each'} trained {several(first['models'], 'time')}"
    return {
        "half_split": f"{times} on a random half",
        "one_model": f"{several(n, 'trained model')}, {several(first['references'], 'reference')}",
        "per_datum": f"{times} with or without one {unit}",
        "average_datum": f"{times} with or without a random {unit}",
        "canaries": f"{times} with a random half of the canaries",
        "scores": f"scores of {several(first['targets'], 'model')}",
        "signals": f"signals of {several(first['models'], 'model')}",
    }[first["game"]]


def lede(results: Sequence[Result]) -> Markup:
    """What was found, a sentence a release."""
    return joined(_found(result, alone=len(results) == 1) for result in results)


def _found(result: Result, alone: bool) -> Markup:
    """The first pattern that fits the lower end of the success."""
    success, unit, scores = result.success, result.about["unit"], result.facts["game"] == "scores"
    title = "The release" if scores else capital(result.title)
    if success is None:
        return say("None of the attacks could be played against {title}.", title=result.title)
    gained = (result.strength - result.blind) / (1 - result.blind)
    if gained > 0 and _planted(result) and not result.n_exposed:  # made to be found: they say little of the others
        return say(PLANTED, title=result.title, right=shown(success).value)
    for least, words in GIVES_AWAY:
        if gained >= least - 1e-12:
            return say("{title} " + words + ".", title=title, units=plural(unit))
    if result.n_exposed:
        words = "{title} leaks little about a typical {unit}, but exposes {exposed} of {all}."
        n_records = count(result.games["records"]) if result.games else ""
        return say(words, title=title, unit=unit, exposed=count(result.n_exposed), all=n_records)
    if gained > 0 and result.first_exposed is None:
        return say("{title} leaks a little; no {unit} could be tested by itself.", title=title, unit=unit)
    if gained > 0:
        return say("{title} leaks a little about everybody and exposes nobody beyond chance.", title=title)
    return _no_leak(result, success, alone)


def _planted(result: Result) -> bool:
    return result.facts["game"] == "canaries"


def _no_leak(result: Result, success: Finding, alone: bool) -> Markup:
    """What can be said where the success is not above guessing."""
    found = "These attacks found no leak." if alone else "In {title} these attacks found no leak."
    if any(each.quantity == "auc" and each.attack and (each.low or 0.0) > 0.5 for each in result.findings):
        found = "In {title} no attack guesses better than blindly, but the findings show one that ranks members higher."
    known = [each for each in result.findings if each.quantity == "success" and each.high is not None and each.attack]
    success = max(known, key=lambda each: each.high or 0.0, default=success)
    most = shown(success).high
    excluded = say(EXCLUDED, most=most, level=level(result, success)) if most else Markup("")
    return joined([say(found, title=result.title), excluded])


def summary(result: Result) -> Markup:
    """The paragraph beside the big number."""
    success, unit = result.success, "planted canary" if _planted(result) else result.about["unit"]
    if success is None:
        return joined([say("None of the attacks could be played; the findings below say why."), bounds(result)])
    text = shown(success)
    if result.too_few:
        right = f"{round((success.value or 0) * result.n_games)}"
        interval = _interval(result, success, " of 100")
        return say(COUNTED, unit=unit, right=right, games=result.n_games, interval=interval)
    average = say(SUMMARY, unit=unit, right=text.value, interval=_interval(result, success), blind=blind(result.blind))
    return joined([average, exposure(result), bounds(result)])


def bounds(result: Result) -> Markup:
    """What theorems say of the success of any attack, a sentence each; a bound that says nothing is left out."""
    telling = (
        finding
        for finding in result.bounds
        if ((sure(finding).value or 0.0) > result.blind if finding.side == "lower" else (finding.value or 0.0) < 1)
    )
    return joined(_bound(result, finding) for finding in telling)


def _bound(result: Result, finding: Finding) -> Markup:
    """Some attacker is right at least so often, or none more often."""
    by = next((words for key, words in BY.items() if finding.source.startswith(key)), f"by {cited(finding.source)}")
    sampled = finding.confidence is not None and finding.confidence < 1
    at = f" ({level(result, finding)})" if sampled else ""
    pattern = BOUNDS[finding.side]
    large = "for large n, " if finding.status == "asymptotic" else ""
    return say(
        capital(large + pattern), right=shown(sure(finding)).value, level=at, by=f", {by}" if finding.source else ""
    )


def sure(finding: Finding) -> Finding:
    """A lower bound from a sample as what it proves at its confidence: the lower end."""
    if finding.side != "lower" or finding.low is None:
        return finding
    return replace(finding, value=finding.low, low=None, high=None)


def _interval(result: Result, finding: Finding, unit: str = "") -> str:
    """`` (95 %: 91.1 to 91.5)``, or nothing."""
    text = shown(finding)
    return f" ({level(result, finding)}: {text.interval}{unit})" if text.low and text.high else ""


def blind(share: float) -> str:
    """What an attacker gets who looks at nothing."""
    right = near(100 * share, 1).removesuffix(".0")
    return f"guessing {'blindly' if share == 0.5 else 'from the prior alone'} gives {right}"


def exposure(result: Result) -> Markup:
    """The most exposed record, and how many are exposed."""
    games, unit = result.games, result.about["unit"]
    if games is None:
        return Markup("")
    if result.first_exposed is None:
        words = "{models} models cannot single out a {unit}; {needed} would."
        return say(words, models=count(result.n_played), unit=unit, needed=count(games["models_needed"]))
    if not games["exposed"]:
        least = up(100 * games["smallest_detectable"])
        return say(NOBODY, unit=unit, games=count(result.n_played), least=least)
    words = "{exposed} of {all} {are} exposed beyond chance."
    are = "is" if games["exposed"] == 1 else "are"
    many = say(words, exposed=count(games["exposed"]), all=several(games["records"], unit), are=are)
    return joined([_most_exposed(result), many])


def _most_exposed(result: Result) -> Markup:
    """Games won against the most exposed record, and what they prove."""
    worst, unit = result.most_exposed, result.about["unit"]
    if worst is None:
        return Markup("")
    won, games = worst.detail["won"], worst.detail["games"]
    return say(
        MOST_EXPOSED,
        unit=unit,
        every="all " if won == games else "",
        won=count(int(won)),
        games=count(int(games)),
        least=least_of_100(worst.low),
        level=level(result, worst),
        units=plural(unit),
    )


def least_of_100(low: float | None) -> str:
    """A lower limit in whole cases of 100."""
    return down(round(100 * (low or 0.0), 9))


def _small(n: int) -> str:
    return SMALL[n] if n < len(SMALL) else count(n)
