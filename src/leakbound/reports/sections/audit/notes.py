"""Captions of figures: how many models, records and games, and what an interval is over."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from leakbound.reports import Curve, phrases
from leakbound.reports.about import GamesFacts
from leakbound.reports.numbers import THIN, count, percent
from leakbound.reports.phrases import plural
from leakbound.reports.sections.audit.result import Result, most_exposed, record_name
from leakbound.reports.sections.audit.words import level
from leakbound.reports.sections.curves import LEAST_ALARMS, REGIONS, formula
from leakbound.reports.sections.quantities import shown
from leakbound.reports.sections.words import capital, joined, listed, say, several

OVER = {
    "models": "Intervals speak of training the models again; the {units} are fixed.",
    "points": "Intervals speak of drawing other {units}; the models are fixed.",
}
THESE_MODELS = "Those of a TPR for these models speak of drawing other {units}, with these models alone."
TOO_FEW_MODELS = (
    "Where a rate has too few models for an interval, whole models shift their scores, and models that were "
    "not trained may change the rate: it is an estimate and shows nothing about anybody."
)
SUMMARY = (
    "Numbers are cases of 100 in which the attacker is right, when {fraction} of the {units} are members. "
    "They are lower bounds: a better attack may exist. {over}"
)
KNOWN_POOL = "The attacker knows the pool of {units} from which halves are drawn (Jälkö et al., arXiv:2605.25819)."
DOUBLED = (
    "The halves have a fixed size, so that one {unit} comes in where another goes out: a claim for adding or "
    "removing one {unit} is used twice, and its ceiling has the doubled parameter."
)
RECORDS = (
    "An average hides people. Against each {unit} the attacker played {games} games, one for each attacked "
    "model; guessing from the prior wins about {baseline}."
)
HISTOGRAM = (
    "Height: number of {units} ({size}). Dotted: what guessing from the prior would give. "
    '<span class="at">Blue</span>: {first} games or more, which happens to none of {all} {units} by '
    "guessing, at {level} confidence. "
    "Against half of the {units} the attacker wins at least {median} of the games."
)
CEILINGS = {
    "claimed": "The ceiling",
    "certified": "The certified ceiling",
    "asymptotic": "The asymptotic curve",
}
OTHERS = (
    "An attack says nothing new if another one is right more often and finds more of the members at each of the rates "
    "of false alarms. All findings have its numbers."
)
ENTERED = (
    "The curve of {attack}{on} lies partly in this region, by no more than chance explains: the test, which takes the "
    "number of guesses into account, does not refute the claim."
)
STRIPS = (
    "Each tick is one of the {models} models and its probability for the true label: "
    '<span class="at">above the line</span> when the {unit} was in its training data, <b>below</b> when it '
    "was not. Where the two groups separate, the {unit} is exposed.{both} “≥ … in 100” is a {level} lower "
    "bound for all {units} at once."
)


def summary(results: Sequence[Result]) -> Markup:
    """Explain the unit of the numbers, and what the interval is over."""
    priors = sorted({result.prior for result in results})
    fraction = "half" if priors == [0.5] else listed(percent(prior) for prior in priors)
    return say(SUMMARY, fraction=fraction, units=plural(results[0].about.unit), over=over(results, ("accuracy",)))


def known_pool(results: Sequence[Result]) -> Markup:
    """Say what an attacker knows who compares a half with other halves of the same records."""
    if not any(result.knows_the_pool for result in results):
        return Markup("")
    return say(KNOWN_POOL, units=plural(results[0].about.unit))


def over(results: Sequence[Result], quantities: Sequence[str] = ()) -> str:
    """Say what the intervals of these quantities average over; of all of the page if none are named."""
    findings = [
        finding
        for result in results
        for finding in result.findings
        if finding.value is not None and (not quantities or finding.quantity in quantities)
    ]
    kinds = {finding.interval_over for finding in findings if finding.quantity != "tpr_these_models"}
    units = plural(results[0].about.unit)
    sentences = [words.format(units=units) for kind, words in OVER.items() if kind in kinds]
    if any(finding.quantity == "tpr_these_models" for finding in findings):
        sentences.append(THESE_MODELS.format(units=units))
    if any(finding.refused == "too_few_models" for finding in findings):
        sentences.append(TOO_FEW_MODELS)
    return " ".join(sentences)


def curves_intro(results: Sequence[Result]) -> Markup:
    """How to read attack against ceiling."""
    roles = {curve.role for result in results for curve in result.ceilings}
    tested = any(verdict.word != "cannot_be_tested" for result in results for verdict in result.verdicts)
    first = [
        say(REGIONS["claimed"]) if tested else Markup(""),
        say(REGIONS["certified"]) if "certified" in roles and not tested else Markup(""),
        say(REGIONS["asymptotic"], units=plural(results[0].about.unit)) if "asymptotic" in roles else Markup(""),
    ]
    if not any(first):
        return say("The fraction of members that each attack finds, at every rate of false alarms.")
    return joined(
        [*first, *(_inside(result) for result in results), *(_entered(result, len(results) == 1) for result in results)]
    )


def _entered(result: Result, alone: bool) -> Markup:
    """Say what it means that a curve is above a ceiling which no test refutes."""
    if not result.verdicts or any(verdict.word == "refuted" for verdict in result.verdicts):
        return Markup("")
    ceilings = [curve for curve in result.ceilings if curve.role in ("claimed", "certified")]
    for curve in result.curves:
        if curve.role != "measured" or curve.name != result.best or curve.n_nonmember <= LEAST_ALARMS:
            continue
        rates = np.geomspace(LEAST_ALARMS / curve.n_nonmember, 1.0, 200)
        found = np.asarray(curve.tradeoff.tpr_at(rates))
        if any((found > np.asarray(ceiling.tradeoff.tpr_at(rates)) + 1e-9).any() for ceiling in ceilings):
            on = "" if alone else f" on {result.title}"
            return say(ENTERED, attack=result.attack_title(curve.name), on=on)
    return Markup("")


def found(results: Sequence[Result]) -> str:
    """Say in a few words what the curves show."""
    if len(results) > 1:
        return several(len(results), "model")
    result = results[0]
    for fpr in result.about.fpr:
        finding = result.find("tpr", result.best, fpr=fpr) if result.best else None
        if finding is not None:
            return f"{shown(finding).value}{THIN}% of the members found at {percent(fpr)}"
    return several(len(result.attacks_that_ran), "attack")


def not_drawn(results: Sequence[Result]) -> Markup:
    """Say that some attacks have no curve here."""
    n_others = max((len(result.attacks_that_ran) - len(result.telling) for result in results), default=0)
    return say("Attacks that say nothing new are not drawn.") if n_others else Markup("")


def exposed(results: Sequence[Result]) -> str:
    """Say in a few words how many records are exposed."""
    tested = [result for result in results if result.games is not None and result.first_exposed is not None]
    if len(results) > 1 or not tested or tested[0].games is None:
        return ""
    return f"{count(tested[0].n_exposed)} of {count(tested[0].games.records)} exposed beyond chance"


def _inside(result: Result) -> Markup:
    """Where an attack is inside the forbidden region, its whole interval included."""
    for verdict in result.verdicts:
        at = verdict.operating_point
        if verdict.word == "refuted" and at.get("low", 0.0) > at.get("ceiling", 1.0):
            attack, fpr = result.attack_title(verdict.attack), percent(at["fpr"])
            words = "{attack} on {title} lies inside it at {fpr} false alarms."
            return say(words, attack=attack, title=result.title, fpr=fpr)
    return Markup("")


def curves(result: Result) -> Markup:
    """Games behind the curves, the band and the ceiling of one release."""
    measured = [curve for curve in result.curves if curve.role == "measured"]
    return joined(
        [
            _games(result, max((curve.n_nonmember for curve in measured), default=0)),
            _band(result, next((curve.confidence for curve in measured if _has_band(result, curve)), None)),
            *(_ceiling(curve) for curve in result.ceilings),
        ]
    )


def _games(result: Result, n_nonmember: int) -> Markup:
    if not n_nonmember:
        return Markup("")
    return say(
        "{inside} member and {outside} non-member games ({models}, {records}).",
        inside=count(result.n_games - n_nonmember),
        outside=count(n_nonmember),
        models=several(result.facts.targets, "model"),
        records=several(result.facts.target_points, result.about.unit),
    )


def _has_band(result: Result, curve: Curve) -> bool:
    """Whether a curve is the strongest attack's, the only one whose band is drawn, and has intervals."""
    return curve.name == result.best and len(curve.band_fpr) > 0


def _band(result: Result, confidence: float | None) -> Markup:
    """Level and method of the band; the method is that of the members found."""
    if confidence is None:
        return Markup("")
    tprs = [finding for finding in result.findings if finding.quantity == "tpr" and finding.method]
    names = dict.fromkeys(phrases.method(finding.method) for finding in tprs)
    methods = "".join(f", {name}" for name in names)
    return say(
        "Band of the strongest attack: {level}, at each rate by itself{methods}.",
        level=percent(confidence),
        methods=methods,
    )


def _ceiling(curve: Curve) -> Markup:
    """Write the formula of a ceiling, in the game that was played."""
    text = formula(curve.tradeoff)
    return say("{name} is {formula}.", name=CEILINGS[curve.role], formula=text) if text else Markup("")


def doubled(results: Sequence[Result]) -> Markup:
    """Why the parameters of the ceiling differ from those of an add/remove claim."""
    for result in results:
        adjacencies = {curve.verdict.claim.adjacency for curve in result.ceilings if curve.verdict is not None}
        if result.facts.sampling == "fixed" and "add_remove" in adjacencies:
            return say(DOUBLED, unit=result.about.unit)
    return Markup("")


def records_intro(results: Sequence[Result]) -> Markup:
    """Games against single records."""
    n_games = sorted({result.n_played for result in results if result.games})
    games = listed(map(count, n_games))
    baseline = listed(count(round(results[0].prior_accuracy_in_game * n)) for n in n_games)
    return say(RECORDS, unit=results[0].about.unit, games=games, baseline=baseline)


def histograms(results: Sequence[Result]) -> Markup:
    """Legend of the histograms, and the median record."""
    known = [result for result in results if result.first_exposed]
    drawn = [(result, result.games) for result in known if result.games and result.games.won]
    many, about = len(drawn) > 1, results[0].about
    sizes = list(dict.fromkeys(count(games.records) for _, games in drawn))
    where = "each panel" if len(sizes) == 1 else "the panels"
    n_records = listed(sizes)
    return say(
        HISTOGRAM,
        units=plural(about.unit),
        size=f"{n_records} in {where}; vertical scales differ" if many else f"{n_records} in all",
        first=listed(dict.fromkeys(count(result.first_exposed or 0) for result, _ in drawn)),
        all=n_records,
        level=level(results[0]),
        median=listed(f"{median(games)}{f' ({result.title})' if many else ''}" for result, games in drawn),
    )


def median(games: GamesFacts) -> str:
    """Fraction of the games that the attacker wins at least, against half of the records."""
    won, n_records = games.won, 0  # won[n]: records against which n games are won
    n_games = len(won) - 1
    for n in range(n_games, 0, -1):
        n_records += won[n]
        if 2 * n_records >= sum(won):
            return percent(n / n_games)
    return percent(0.0)


def strips(results: Sequence[Result]) -> Markup:
    """Legend of the record table."""
    unit = results[0].about.unit
    models = listed(dict.fromkeys(count(result.n_played) for result in results if result.games))
    both = _in_both(results)
    both = f" {both}" if both else ""
    return say(STRIPS, models=models, both=both, unit=unit, units=plural(unit), level=level(results[0]))


def _in_both(results: Sequence[Result]) -> str:
    """Name the records that are in the tables of several releases."""
    listings = [record_name(result.records, row) for result in results for row in most_exposed(result.records)]
    both = [name for name in dict.fromkeys(listings) if listings.count(name) > 1]
    if not both:
        return ""
    unit = results[0].about.unit
    name, are = (unit, "is") if len(both) == 1 else (plural(unit), "are")
    return f"{capital(name)} {listed(both)} {are} in more than one list."
