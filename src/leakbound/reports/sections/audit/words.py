"""The sentences of the summary: patterns with gaps for numbers, never free text.

Every sentence is ``Markup``: what is filled in is escaped, and ``striptags`` gives the plain text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup

from leakbound.core.findings import Finding
from leakbound.reports.about import AuditAbout
from leakbound.reports.numbers import count, down, parameter, percent
from leakbound.reports.phrases import plural
from leakbound.reports.sections.audit import groups, sources
from leakbound.reports.sections.audit.result import Result, most_exposed, record_name
from leakbound.reports.sections.audit.statements import Numbers, Statements, statements
from leakbound.reports.sections.quantities import shown
from leakbound.reports.sections.words import baseline, begun, capital, cited, joined, least_of_100, say, several

SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
HEADLINES = {
    "nothing_played": "None of the attacks could be played against {title}.",
    "almost_perfect": "From {title}, membership can be inferred almost perfectly.",
    "high": "From {title}, membership can be inferred with high accuracy.",
    "clear": "From {title}, membership can be inferred clearly better than by guessing.",
    "high_perhaps": (
        "From {title}, membership can be inferred with high accuracy, perhaps {perhaps} ({low} to {high} of 100)."
    ),
    "clear_perhaps": (
        "From {title}, membership can be inferred clearly better than by guessing, perhaps {perhaps} ({low} to {high} "
        "of 100)."
    ),
    "exposed_perhaps": (
        "{title} exposes {exposed} of {all}; about a typical {unit}, up to {high} of 100 is not excluded: {few} are "
        "too few to say."
    ),
    "little_perhaps": (
        "{title} leaks at least a little, perhaps {perhaps} ({low} to {high} of 100): {few} are too few to say."
    ),
    "not_shown": "In {title} no leak is shown, but up to {high} of 100 is not excluded: {few} are too few to say.",
    "some_exposed": "{title} leaks little about a typical {unit}, but exposes {exposed} of {all}.",
    "little": "{title} leaks a little on average; no single {unit} is shown to be exposed.",
    "little_untested": "{title} leaks a little; no {unit} could be tested by itself.",
    "too_few": "{title}: {records} and {models} are too few for a verdict in words; the numbers are below.",
    "refuted_only": "In {title} no attack is right more often than a guess, but a claim is refuted; see below.",
    "ranking_only": (
        "In {title} no attack is right more often than a guess, but the findings show one that ranks members higher."
    ),
    "no_leak": "In {title} these attacks found no leak.",
    "no_leak_alone": "These attacks found no leak.",  # of an audit of one release
}
FAILED = "<b>{name} could not be audited</b>{why}."
WITHOUT_GROUPS = ("nothing_played", "too_few", "planted")  # headlines that nothing is said of a group after
INFERRED = ("almost_perfect", "high", "high_perhaps", "clear", "clear_perhaps")  # of models that should change
LEAKS_PERHAPS = {"clear": "clearly", "high": "much", "almost_perfect": "almost everything"}
INFERRED_PERHAPS = {"high": "with high accuracy", "almost_perfect": "almost perfectly"}
PLANTED = "Whether a canary was planted in the data of {title} is guessed right in {right} of 100 cases."
SUMMARY = (
    "An attacker who guesses whether a random {unit} was used for training is right in "
    "<b>{right} of 100 cases</b>{interval}; {baseline}."
)
COUNTED = (
    "An attacker who guesses whether a {unit} was used for training is right in "
    "<b>{right} of {games} cases</b>{interval}: too few for a curve."
)
MOST_EXPOSED = (
    "For the most exposed {unit}{name} the attacker won {every}{won} of {games} games, that is "
    "<b>at least {least} of 100</b> ({level}, all {units} at once)."
)
EXCLUDED = "A leak larger than {most} of 100 by these attacks is excluded at {level}; a better attack may exist."
BOUNDS = {
    "lower": "some attacker is right in at least {right} of 100 cases{level}{by}.",
    "upper": "no attacker is right in more than {right} of 100 cases{level}{by}.",
    "point": "the best possible attacker is right in {right} of 100 cases{level}{by}.",
}
BY = {"delgrosso2021, Theorem 2": "by the gap between training and test error alone"}
EPSILON = "Any true ε is at least {least} at δ\u00a0=\u00a0{delta} ({level}, by {attack}){claims}."
OF_CLAIMS = "; the bound of a claim is smaller, because claims are tested at 99.9\u00a0%"
NOT_SHOWN = {
    "not_shown": "No {unit} is shown to be exposed beyond chance; ",
    "not_shown_though_inferred": (
        "Although membership is inferred on average, no single {unit} is shown to be exposed beyond chance: "
    ),
}
SHOWN_IF = "{games} games would show a {unit} that is guessed right in at least {first} of them."
SHOWN_IF_ALL = "{games} games would show only a {unit} that is guessed right in all of them."


def level(result: Result, finding: Finding | None = None) -> str:
    """Confidence of a finding, or of the audit, in percent."""
    own = None if finding is None else finding.confidence
    return percent(result.about.confidence if own is None else own)


def question(results: Sequence[Result]) -> str:
    """Return the plan's title, or the question that every audit asks."""
    if results[0].about.title:
        return results[0].about.title
    if results[0].facts.game == "scores":
        return "How much do these scores reveal about who is in the training data?"
    if len(results) == 1:
        return f"How much does {results[0].title} reveal about who is in its training data?"
    names = f"{results[0].title} and {results[-1].title}" if len(results) == 2 else f"{_small(len(results))} models"
    return f"How much do {names} reveal about who is in their training data?"


def facts(results: Sequence[Result]) -> list[str]:
    """List records, models, attacks, date, version: the line under the title."""
    about = results[0].about
    n_records = {result.facts.target_points for result in results}
    most = several(max(n_records), about.unit)
    sampled_from = results[0].facts.sampled_from  # one sample is drawn for all models
    if sampled_from is not None:
        most = f"a random sample of {count(max(n_records))} of {several(sampled_from, about.unit)}"
    line = [
        "Membership audit",
        most if len(n_records) == 1 else f"up to {most}",
        _trained(results),
        several(_n_attacks(results), "attack"),
        _author(about),
        about.date,
        f"leakbound {about.leakbound}",
    ]
    return [part for part in line if part]


def _n_attacks(results: Sequence[Result]) -> int:
    """Count the attacks that ran on some release; those that could not are listed with their reasons."""
    return len({name for result in results for name in result.attacks_that_ran})


def _author(about: AuditAbout) -> str:
    """Who made the audit, if the plan says it."""
    author = str(about.plan.get("author") or "")
    return f"by {author}" if author else ""


def _trained(results: Sequence[Result]) -> str:
    """How many models were trained, and on what."""
    n, unit, first = len(results), results[0].about.unit, results[0].facts
    if len({(result.facts.game, result.facts.models) for result in results}) > 1:
        return f"{n} releases"
    times = f"{'1 model' if n == 1 else f'{n} models, each'} trained {several(first.models, 'time')}"
    return {
        "half_split": f"{times} on a random half",
        "one_model": f"{several(n, 'trained model')}, {several(first.references, 'reference')}",
        "per_datum": f"{times} with or without one {unit}",
        "average_datum": f"{times} with or without a random {unit}",
        "canaries": f"{times} with a random half of the canaries",
        "scores": f"scores of {several(first.targets, 'model')}",
        "signals": f"signals of {several(first.models, 'model')}",
    }[first.game]


def lede(results: Sequence[Result]) -> Markup:
    """Say what was found, a sentence a release."""
    failed = results[0].about.failed
    warnings = [say(FAILED, name=name, why=f": {failed[name]}" if failed[name] else "") for name in failed]
    warnings += [sources.warning(result) for result in results]
    comparable = [
        result
        for result in results
        if (not sources.differ(result) or sources.accepted(result)) and sources.below(result) is None
    ]
    warnings += [sources.warning_below(result, alone=len(results) == 1) for result in results]
    return joined([*warnings, *(_found(result, alone=len(results) == 1) for result in comparable)])


def chosen(result: Result) -> Statements:
    """Which sentences apply to a release, from all of its numbers."""
    known = [finding for finding in result.findings if finding.quantity == "accuracy" and finding.attack]
    return statements(
        Numbers(
            accuracy_low=None if result.accuracy is None else result.strength,
            accuracy_high=max((finding.high for finding in known if finding.high is not None), default=None),
            accuracy=None if result.accuracy is None else result.accuracy.value,
            baseline=result.prior_accuracy,
            n_records=result.facts.target_points,
            n_models=result.facts.targets,
            n_played=result.n_played,
            first_exposed=result.first_exposed,
            n_exposed=result.n_exposed,
            refuted=any(verdict.word == "refuted" for verdict in result.verdicts),
            ranks_members_higher=any(
                finding.quantity == "auc" and finding.attack and (finding.low or 0.0) > 0.5
                for finding in result.findings
            ),
            planted=_planted(result),
        )
    )


def _found(result: Result, alone: bool) -> Markup:
    """Write the headline of a release."""
    choice, unit = chosen(result), result.about.unit
    if choice.headline == "planted" and result.accuracy is not None:
        return say(PLANTED, title=result.title, right=shown(result.accuracy).value)
    pattern = HEADLINES["no_leak_alone" if alone and choice.headline == "no_leak" else choice.headline]
    headline = say(
        pattern,
        title="the release" if result.facts.game == "scores" else result.title,
        unit=unit,
        exposed=count(result.n_exposed),
        all=count(result.games.records) if result.games else "",
        records=several(result.facts.target_points, unit),
        models=several(result.facts.targets, "model"),
        **({} if choice.perhaps is None else _open_between(result, choice)),
    )
    of_group = Markup("") if choice.headline in WITHOUT_GROUPS else groups.headline(result)
    return joined([begun(headline, result.title), _excluded(result) if choice.excluded else Markup(""), of_group])


def _open_between(result: Result, choice: Statements) -> dict[str, str]:
    """Write both ends of an accuracy that is not known well enough for one word, and what there is too little of."""
    phrases = LEAKS_PERHAPS if choice.headline == "little_perhaps" else INFERRED_PERHAPS
    models = result.facts.targets
    return {
        "perhaps": phrases.get(choice.perhaps or "", ""),
        "low": "" if result.accuracy is None else shown(result.accuracy).low,
        "high": _largest_end(result) or "100",
        "few": several(models, "model") if models > 1 else several(result.facts.target_points, result.about.unit),
    }


def _planted(result: Result) -> bool:
    return result.facts.game == "canaries"


def _excluded(result: Result) -> Markup:
    """How large a leak by these attacks may still be."""
    most = _largest_end(result)
    return say(EXCLUDED, most=most, level=level(result, result.accuracy)) if most else Markup("")


def _largest_end(result: Result) -> str:
    """Write the largest upper end of the accuracy over the attacks."""
    known = [
        finding
        for finding in result.findings
        if finding.quantity == "accuracy" and finding.high is not None and finding.attack
    ]
    return shown(max(known, key=lambda finding: finding.high or 0.0)).high if known else ""


def summary(result: Result) -> Markup:
    """Write the paragraph next to the big number."""
    accuracy, unit = result.accuracy, "planted canary" if _planted(result) else result.about.unit
    if accuracy is None:
        return joined([say("None of the attacks could be played; the findings below say why."), bounds(result)])
    text = shown(accuracy)
    if result.too_few:
        right = f"{round((accuracy.value or 0) * result.n_games)}"
        interval = _interval(result, accuracy, " of 100")
        return joined([say(COUNTED, unit=unit, right=right, games=result.n_games, interval=interval), epsilon(result)])
    average = say(
        SUMMARY,
        unit=unit,
        right=text.value,
        interval=_interval(result, accuracy),
        baseline=baseline(result.prior_accuracy),
    )
    return joined([average, exposure(result), bounds(result), epsilon(result), sources.note(result)])


def prepared(result: Result) -> Markup:
    """Say what leakbound did to the data of its own accord."""
    return say("{done}.", done=result.facts.prepared) if result.facts.prepared else Markup("")


def bounds(result: Result) -> Markup:
    """State the theorems on the accuracy of any attack, a sentence each; one that says nothing is left out.

    So is each where members and others differ by themselves: the theorems are about draws from one source.
    """
    if sources.differ(result) and not sources.accepted(result):
        return Markup("")
    telling = (
        finding
        for finding in result.bounds
        if (
            (sure(finding).value or 0.0) > result.prior_accuracy
            if finding.bound_type == "lower"
            else (finding.value or 0.0) < 1
        )
    )
    return joined(_bound(result, finding) for finding in telling)


def epsilon(result: Result) -> Markup:
    """State the lower bound of epsilon in the games that are played for it: about one record, or planted canaries."""
    finding = result.find("epsilon")
    if result.facts.game not in ("per_datum", "canaries") or finding is None or not finding.low or not finding.attack:
        return Markup("")
    return say(
        EPSILON,
        least=down(finding.low, 2),
        delta=parameter(finding.operating_point["delta"]),
        level=level(result, finding),
        attack=result.attack_title(finding.attack),
        claims=OF_CLAIMS if any(verdict.claim.adjacency for verdict in result.verdicts) else "",
    )


def _bound(result: Result, finding: Finding) -> Markup:
    """Say that some attacker is right at least so often, or none more often."""
    by = BY.get(finding.source, f"by {cited(finding.source)}")
    sampled = finding.confidence is not None and finding.confidence < 1
    at = f" ({level(result, finding)})" if sampled else ""
    pattern = BOUNDS[finding.bound_type]
    large = "for large n, " if finding.status == "asymptotic" else ""
    return say(
        capital(large + pattern), right=shown(sure(finding)).value, level=at, by=f", {by}" if finding.source else ""
    )


def sure(finding: Finding) -> Finding:
    """Replace a lower bound from a sample by what it proves at its confidence: the lower end."""
    if finding.bound_type != "lower" or finding.low is None:
        return finding
    return replace(finding, value=finding.low, low=None, high=None)


def _interval(result: Result, finding: Finding, unit: str = "") -> str:
    """`` (95 %: 91.1 to 91.5)``, or nothing."""
    text = shown(finding)
    return f" ({level(result, finding)}: {text.interval}{unit})" if text.low and text.high else ""


def exposure(result: Result) -> Markup:
    """Describe the most exposed record, and say how many are exposed."""
    games, unit, choice = result.games, result.about.unit, chosen(result)
    if games is None or choice.records == "none":
        return Markup("")
    if choice.records == "untestable":
        words = "{models} models cannot single out a {unit}; {needed} would."
        return say(words, models=count(result.n_played), unit=unit, needed=count(games.models_needed))
    if choice.records != "exposed":
        first = result.first_exposed or 0
        words = SHOWN_IF_ALL if first == result.n_played else SHOWN_IF
        shown_if = say(words, unit=unit, games=count(result.n_played), first=count(first))
        return Markup("").join([say(NOT_SHOWN[choice.records], unit=unit), shown_if])
    words = "{exposed} of {all} {are} exposed beyond chance."
    are = "is" if games.exposed == 1 else "are"
    many = say(words, exposed=count(games.exposed), all=several(games.records, unit), are=are)
    return joined([_most_exposed(result), many])


def _most_exposed(result: Result) -> Markup:
    """Correct guesses about the most exposed record, and what they prove."""
    worst, unit = result.most_exposed, result.about.unit
    if worst is None:
        return Markup("")
    won, games = worst.detail["won"], worst.detail["games"]
    return say(
        MOST_EXPOSED,
        unit=unit,
        name=_name_of_most_exposed(result),
        every="all " if won == games else "",
        won=count(int(won)),
        games=count(int(games)),
        least=least_of_100(worst.low),
        level=level(result, worst),
        units=plural(unit),
    )


def _name_of_most_exposed(result: Result) -> str:
    """Write ``, P-1032,``; nothing where the records have no names, or the report is without records."""
    first = most_exposed(result.records)[:1]
    return f", {record_name(result.records, first[0])}," if first and "name" in result.records else ""


def _small(n: int) -> str:
    return SMALL[n] if n < len(SMALL) else count(n)
