"""The sentences of a bound: what a theorem allows any attacker, in patterns with gaps."""

from __future__ import annotations

from markupsafe import Markup

from leakbound.core import reasons
from leakbound.core.findings import Finding, Term
from leakbound.reports.about import BoundAbout
from leakbound.reports.numbers import THIN, count, digits, percent
from leakbound.reports.phrases import of_cells, place, row_word, title
from leakbound.reports.sections import findings as rows
from leakbound.reports.sections.bound.ranking import MOST
from leakbound.reports.sections.bound.result import BoundResult, curve_name
from leakbound.reports.sections.curves import REGIONS, formula
from leakbound.reports.sections.parts import Part
from leakbound.reports.sections.quantities import NO_DIFFERENCE, shown
from leakbound.reports.sections.words import baseline, capital, cited, joined, lettered, listed, say, sentence, several

WHO = {"upper": "an attacker", "lower": "some attacker", "point": "the best attacker"}
MUCH = {"upper": "at most ", "lower": "at least ", "point": ""}
LEDE = (
    "{who} who guesses whether {target} is in the data is right in <b>{much}{right} of 100 cases</b>{scope}; "
    "{baseline}."
)
DRAWN = {  # by the game
    "fixed_number": "Where {k} of the {n} {units} are drawn at random into the data",
    "each_by_a_coin": "Where each of the {n} {units} is in the data with probability {prior}",
    "random_half": "Where a random half of the {n} {units} is the data",
}
EVERY = ", whoever the {unit} is and whatever the attacker computes"
EXCEPT = ", except with probability {alpha} over the sampling"
CAVEATS = {
    "asymptotic": "This is asymptotic: an approximation for large n, certified for no particular one.",
    "estimated": "This is an estimate, not a guarantee.",
}
MEANING = {
    ("upper", "certified"): "An upper bound holds for every attacker, known or not.",
    ("lower", "certified"): "A lower bound holds for at least one attacker; others may do better.",
    ("point", "certified"): "An exact value is both: some attacker reaches it, and none exceeds it.",
}
FOUND = {
    "upper": "no attacker finds more than {fraction} of the members",
    "lower": "some attacker finds at least {fraction} of the members",
    "point": "the best attacker finds {fraction} of the members",
}
SPREAD = (
    "Height: number of {rows} ({n} in all{scale}), by the accuracy of the attacker. Against half of the {rows} it is "
    "{much}{median} of 100."
)

INTERNAL = "<b>Internal.</b> This part shows {rows}: it is not for anybody who may not see the data."
INTERNAL_PAGE = (
    "<b>Internal.</b> The whole page is for the owner of the data alone: every number is an exact function of the data."
)

WHAT = {  # in place of what a command says of itself
    "dp": "The ceiling follows from ε and δ alone: it holds for any data and any attacker.",
    "gaussian": "The ceiling follows from μ alone: it holds for any data and any attacker.",
    "dpsgd": "The ceiling follows from noise, sample rate and steps: it holds for any data and any network.",
    "pmp": "It holds for an attacker who knows these {units}, but not which half of them was used.",
    "leakage": "It compares the mean with a given {unit} and without, for every {unit} of the table.",
    "table": "The counts have no noise; what is hidden is which of the {units} are in.",
    "total": "The total has no noise; what is hidden is which of the {units} are in.",
    "leave-one-out": "It compares the statistic with and without a given {unit}, under the declared noise.",
    "gap": "A model that is better on its training data than on other data betrays members.",
    "information": "The less a release tells about who is in, the less any attacker can guess.",
    "regression": "It is the accuracy of the best attacker on the coefficients of this regression.",
}
COUNTED = {"table", "total", "pmp", "leave-one-out"}  # bounds whose subject says how many records there are


def _is_counted(about: BoundAbout) -> bool:
    """Whether the subject says how many records there are: of a leakage, unless the mean is of another number."""
    return about.bound in COUNTED or (about.bound == "leakage" and not about.plan.get("released"))


def question(result: BoundResult) -> str:
    """Return the title, or the question that this bound answers."""
    return result.about.title or result.about.question


def facts(result: BoundResult) -> list[Markup]:
    """List what is bounded, records, date, version: the line under the title."""
    about = result.about
    size = several(about.data.records, result.unit) if about.data else ""
    line = [
        say("Bound"),
        lettered(about.subject),
        say("{size}", size="" if _is_counted(about) else size),
        say("{date}", date=about.date),
        say("leakbound {version}", version=about.leakbound),
    ]
    return [part for part in line if part]


def lede(result: BoundResult) -> Markup:
    """Say what the theorem allows, in cases of 100."""
    head = result.headline
    if head is None:
        why_not = dict.fromkeys(reasons.words(finding.reason) for finding in result.findings if finding.reason)
        why = listed(why_not) if why_not else "there is no finding"
        return say("This theorem gives no number here: {why}", why=sentence(why))
    if head.quantity != "accuracy":
        return joined([_plainly(result, head), _caveat(head)])
    large = "for large n, " if head.status == "asymptotic" else ""
    drawn = _drawn(result, head)
    who = large + WHO[head.bound_type]
    lede = say(
        LEDE,
        who=say("{drawn}, {who}", drawn=drawn, who=who) if drawn else capital(who),
        target=_target(result, head),
        much=MUCH[head.bound_type],
        right=shown(head).value,
        scope=_scope(result, head),
        baseline=baseline(result.prior_accuracy, "always that it is not" if result.prior < 0.5 else ""),
    )
    return joined(
        [
            lede,
            *(_peer(result, finding) for finding in result.peers if place(finding)),
            _empty(result, head),
            _caveat(head),
        ]
    )


def _drawn(result: BoundResult, head: Finding) -> Markup:
    """Say which records are in, where the game draws them: the number is about no other game."""
    data = result.about.data
    if head.game is None or head.game.id not in DRAWN or data is None:
        return Markup("")
    gaps = {"n": count(data.records), "unit": result.unit, "units": result.units}
    values = head.game.values
    if head.game.id == "fixed_number":
        gaps["k"] = count(int(values["k"]))
    if head.game.id == "each_by_a_coin":
        gaps["prior"] = f"{values['prior']:g}"
    return say(DRAWN[head.game.id], **gaps)


def _target(result: BoundResult, head: Finding) -> str:
    """Whose membership is guessed."""
    unit = result.unit
    if _on_average(head):
        return f"a randomly chosen {unit}"
    if _of_everybody(head):
        return f"a given {unit}"
    if head.scope.kind == "every":
        return f"a {unit}"
    name = _named(result, head)
    return f"a {unit} of {name}" if of_cells(result.about) else name


def _named(result: BoundResult, finding: Finding) -> str:
    """Whom a number is about, without the index of a record: the most exposed record, a random record."""
    name = title(finding.release, finding.scope.unnamed, row_word(result.about))
    if finding.scope.kind == "every":
        return name
    return f"{'a' if _on_average(finding) else 'the'} {name}"


def _scope(result: BoundResult, head: Finding) -> str:
    """For whom an upper bound holds, and with which probability it does not."""
    every = EVERY.format(unit=result.unit) if _of_everybody(head) and not _on_average(head) else ""
    sampled = head.confidence is not None and head.confidence < 1 and head.status == "certified"
    return every + (EXCEPT.format(alpha=percent(1 - head.confidence)) if sampled and head.confidence else "")


def _of_everybody(head: Finding) -> bool:
    """Tell whether a number holds for all: what holds for the most exposed record does."""
    return head.bound_type == "upper" and head.scope.kind in ("every", "worst")


def _on_average(head: Finding) -> bool:
    return head.scope.kind == "average"


def _peer(result: BoundResult, finding: Finding) -> Markup:
    """Write the same number for another record."""
    words = "For {name} it is {much}{right}."
    return say(words, name=_named(result, finding), much=MUCH[finding.bound_type], right=shown(finding).value)


def _empty(result: BoundResult, head: Finding) -> Markup:
    """Say that a bound excludes nothing, or leaves nothing."""
    value = head.value or 0.0
    if _on_average(head):
        return say("This says nothing about a particular {unit}.", unit=result.unit)
    if head.bound_type == "upper" and value >= 1 and Term("exact") in head.method:
        words = "This is exact: of at least one {unit} everybody can tell for certain whether it is in."
        return say(words, unit=result.unit)
    if head.bound_type == "upper" and value >= 1:
        return say("A bound this high excludes nothing.")
    if head.bound_type == "lower" and value <= result.prior_accuracy:
        return say("A bound this low shows nothing.")
    if head.bound_type != "lower" and value <= result.prior_accuracy:
        return say("Nobody does better than guessing.")
    if head.bound_type != "lower" and value < result.prior_accuracy + NO_DIFFERENCE:
        return say("Nobody does better than guessing by more than one case in a million.")
    return Markup("")


def _caveat(head: Finding) -> Markup:
    return say(CAVEATS[head.status]) if head.status in CAVEATS else Markup("")


def _plainly(result: BoundResult, finding: Finding) -> Markup:
    """Write a number that is no accuracy."""
    part = Part(finding.release, (finding,), result.about, finding.scope)
    of = Markup("") if part.of_all else say(" ({whom})", whom=title(part.release, part.scope, row_word(result.about)))
    value = rows.row(part, finding).value
    return say(
        "{name}{of}: <b>{much}{value}</b>.",
        name=rows.quantity(part, finding),
        of=of,
        much=MUCH[finding.bound_type],
        value=value,
    )


def big(result: BoundResult) -> tuple[str, str]:
    """Return the large number and its unit."""
    head = result.headline
    if head is None:
        return "—", ""
    part = Part(head.release, (head,), result.about, head.scope)
    accuracy = head.quantity == "accuracy"
    unit = f"{'of 100 ' if accuracy else ''}{MUCH[head.bound_type]}".strip()
    large = ", for large n" if head.status == "asymptotic" else ""
    return (shown(head).value if accuracy else rows.row(part, head).value), f"{unit}{large}".removeprefix(", ")


def theorem(result: BoundResult) -> Markup:
    """Say what is used, and where it is proved."""
    used = result.about.theorem
    source = say("({source})", source=cited(used.source)) if used.source else Markup("")
    title = "" if used.title == result.about.bound else capital(used.title)  # a short name says nothing
    summary = used.summary
    if used.title == result.about.bound and used.title in WHAT:
        summary = WHAT[result.about.bound].format(unit=result.unit, units=result.units)
    summary = capital(summary.removesuffix("."))
    first, second = (title, summary) if title else (summary, "")
    named = joined([say("{first}", first=first), source])
    return joined([named + "." if named else named, say("{second}.", second=second) if second else Markup("")])


def rates(result: BoundResult) -> list[Markup]:
    """State the members found at the false positive rates, for the scope and the kind of the headline."""
    head = result.headline
    if head is None:
        return []
    by_fpr: dict[float, Finding] = {}
    for finding in result.findings:
        alike = (
            finding.bound_type == head.bound_type and finding.status == head.status and place(finding) == place(head)
        )
        if alike and finding.quantity == "tpr" and finding.value is not None and not finding.attack:
            by_fpr.setdefault(finding.operating_point.get("fpr", 0.0), finding)
    sentences = []
    for fpr, finding in by_fpr.items():
        members = FOUND[finding.bound_type].format(fraction=f"{shown(finding).value}{THIN}%")
        sentences.append(say("At {fpr} false alarms {found}.", fpr=percent(fpr), found=members))
    return sentences


def data(result: BoundResult) -> str:
    """Name, size and digest of the data."""
    used = result.about.data
    if used is None:
        return ""
    parts = [used.name, several(used.records, result.unit), f"digest {used.digest}" if used.digest else ""]
    return sentence(", ".join(part for part in parts if part))


def summary_note(result: BoundResult) -> Markup:
    """Explain the unit of the numbers, and what the bound types mean."""
    if not result.successes:
        return Markup("")
    fraction = "half" if result.prior == 0.5 else percent(result.prior)
    words = (
        "Numbers are cases of 100 in which the attacker is right, when {fraction} of the {units} are members. {sides}"
    )
    meanings = dict.fromkeys(MEANING.get((finding.bound_type, finding.status), "") for finding in result.successes)
    return say(words, fraction=fraction, units=result.units, sides=" ".join(part for part in meanings if part))


def curves_heading(result: BoundResult) -> str:
    """Head the chart with what it shows."""
    certain = any(curve.role != "asymptotic" for curve in result.ceilings)
    ceiling = "ceiling" if certain or not result.ceilings else "ceiling for large n"
    return f"The attack and its {ceiling}" if result.measured else f"The {ceiling}"


def curves_intro(result: BoundResult) -> Markup:
    """How to read the lines of the chart."""
    roles = {curve.role for curve in result.ceilings}
    return joined(
        [
            say(REGIONS["certified"]) if roles & {"certified", "claimed"} else Markup(""),
            say(REGIONS["asymptotic"], units=result.units) if "asymptotic" in roles else Markup(""),
            say("Solid: attacks that were run.") if result.measured else Markup(""),
        ]
    )


def curves_note(result: BoundResult) -> Markup:
    """Write the formula of each ceiling."""
    formulas = [(curve_name(curve, row_word(result.about)), formula(curve.tradeoff)) for curve in result.ceilings]
    several_curves = len(formulas) > 1
    return joined(
        say("{name}: {formula}.", name=capital(name), formula=text)
        if several_curves
        else say("The ceiling is {formula}.", formula=text)
        for name, text in formulas
        if text
    )


def records_heading(result: BoundResult) -> str:
    """Record by record, or cell by cell."""
    word = result.ranking.row_word if result.ranking else result.unit
    return f"{capital(word)} by {word}"


def internal(result: BoundResult) -> Markup:
    """Say what may not be shown to people who may not see the data."""
    if all(finding.per_record for finding in result.findings):
        return say(INTERNAL_PAGE)
    return say(INTERNAL, rows="" if result.ranking is None else result.ranking.rows_word)


def records_intro(result: BoundResult) -> Markup:
    """How much the records differ."""
    ranking = result.ranking
    if ranking is None:
        return Markup("")
    if ranking.n_rows == 1:
        return say("There is one {row}.", row=ranking.row_word)
    n_rows = several(ranking.n_rows, ranking.row_word)
    if not ranking.of_cells:
        return say("{n}, from the most to the least exposed: an average hides people.", n=n_rows)
    return say(
        "{n} with {records}, from the most to the least exposed.",
        n=n_rows,
        records=several(ranking.n_records, result.unit),
    )


def spread_note(result: BoundResult) -> Markup:
    """Explain the bars, and state the median."""
    ranking = result.ranking
    if ranking is None or ranking.median is None:
        return Markup("")
    median = digits(ranking.median, scale=2, most=1, bound_type=ranking.bound_type).value
    scale = ", on a logarithmic scale" if ranking.logarithmic else ""
    much = MUCH[ranking.bound_type]
    return say(SPREAD, rows=ranking.rows_word, n=count(ranking.n_rows), scale=scale, much=much, median=median)


def ties(result: BoundResult) -> str:
    """How many rows share the first place."""
    ranking = result.ranking
    if ranking is None or ranking.n_first < 2:
        return ""
    word = ranking.row_word
    n_shown = min(ranking.n_rows, MOST)
    if ranking.n_first > n_shown:
        return f"{several(ranking.n_first, word)} tie; {n_shown} of them are shown"
    return f"{several(ranking.n_first, word)} tie"
