"""Claims and what the audit says of them, in a few words: refuted, not refuted, cannot hold, proved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from leakbound.core import reasons
from leakbound.core.findings import Term
from leakbound.reports import Curve, Verdict, phrases
from leakbound.reports.numbers import THIN, digits, down, fractions, near, parameter, percent, percent_at_most, up
from leakbound.reports.phrases import plural
from leakbound.reports.sections.audit.result import Result
from leakbound.reports.sections.audit.words import level
from leakbound.reports.sections.words import GREEK, capital, joined, least_of_100, say, sentence

NAMES = {
    "refuted": "Refuted",
    "not_refuted": "Not refuted",
    "cannot_be_tested": "Cannot be tested",
    "cannot_hold": "Cannot hold",
    "not_supported": "Not supported",
    "proved": "Proved",
}
ADJACENCY = {"add_remove": " for adding or removing one {unit}", "replace_one": " for replacing one {unit}"}
CLAIMS = {
    "eta": "No {unit} of {title} is guessed in more than {right} of 100 cases (η\u00a0=\u00a0{eta}{above})",
    "epsilon": "{title} is differentially private with ε\u00a0=\u00a0{epsilon}{delta}{adjacency}",
    "mu": "{title} is Gaussian differentially private with μ\u00a0=\u00a0{mu}{adjacency}",
}
POINT = (
    "At {fpr} false alarms the claim allows any attacker {ceiling} of the members; "
    "{attack} finds {found} ({level}: {interval})."
)
LEADING = "Claimed{claimed}; {shown}; {verdict}."
SHOWN = "the strongest attack shows at least {least} ({level}{condition})"
SHOWS_NOTHING = "the attacks show no lower bound above 0"
CONDITIONS = {  # without which a lower bound does not hold
    "step_by_step": ", if each step is a Gaussian mechanism",
    "independent_canaries": ", if the canaries are independent of each other",
}
ALLOWED = "These attacks show that any true {letter} is at least {least}{level}, which {allowed} allows."
NEVER = "An audit can refute such a claim; it can never prove it."
RULED_OUT = "What was seen rules out every noise with an ε below {least}{level}; the accountant says {allowed}."
STEP_BY_STEP = "Step by step, if each step is a Gaussian mechanism, ε is at least {least} ({level})."
THIN_AIR = "The curve lies above the ceiling at {fpr}, but only {n} false alarms support that point."
EXPOSED = (
    "For the most exposed {unit} the attacker is right in at least {least} of 100 cases ({level}all {units} at once)."
)
ABOVE_AT_A_LOWER_LEVEL = (
    "At {level}, over all models, the most exposed {unit} is above the claim (at least {least} of 100); a claim is "
    "refuted only at {high_level}, and more models may decide it."
)
NOT_EXPOSED = (
    "Record by record, with half of the models as targets, the test does not show a {unit} that is guessed more often "
    "than the claim allows ({level}all {units} at once)."
)


@dataclass(frozen=True)
class Line:
    """A claim, the word on it and the reason."""

    word: str
    name: str
    claim: Markup
    reason: Markup
    text: Markup


def lines(results: Sequence[Result]) -> list[Line]:
    """Write a line for each claim that has a verdict, in the order of the releases."""
    return [_line(result, verdict) for result in results for verdict in result.verdicts]


def leading(results: Sequence[Result]) -> Markup:
    """Say what is claimed, the largest lower bound that was measured, and whether they agree; of one release.

    An audit has many lower bounds, of several attacks and at several levels. This is the one to read first.
    """
    verdicts = [verdict for result in results for verdict in result.verdicts if verdict.claim.adjacency is not None]
    tested = [verdict for verdict in verdicts if verdict.word in ("refuted", "not_refuted")]
    is_denied = any(verdict.word in ("cannot_hold", "not_supported") for verdict in verdicts)
    if len(results) != 1 or not tested or is_denied:
        return Markup("")
    verdict = next((verdict for verdict in tested if verdict.word == "refuted"), tested[0])
    claimed = verdict.claim
    least, level_, condition = _strongest(results[0], verdict)
    allowed = verdict.allowed if verdict.quantity == "curve" and verdict.allowed else claimed.value
    told = SHOWS_NOTHING
    if least > 0:
        told = SHOWN.format(least=down(least, 2), level=percent(level_), condition=condition)
    if verdict.word == "refuted":
        ending = say("<b>the claim is refuted</b>")
    elif any(each.word == "refuted" for each in results[0].verdicts):
        ending = say("<b>another claim is refuted</b>")
    elif least > allowed:
        ending = say(
            "that is more than claimed, but a claim is refuted only at {level}", level=percent(verdict.confidence or 0)
        )
    else:
        ending = say("nothing contradicts the claim")
    letter = GREEK[claimed.quantity]
    value = say(" {letter}\u00a0=\u00a0{value}", letter=letter, value=parameter(claimed.value))
    if claimed.delta:
        value += say(" at δ\u00a0=\u00a0{delta}", delta=parameter(claimed.delta))
    if verdict.quantity == "curve":
        value += say(" by the accountant")
    return say(LEADING, claimed=value, shown=told, verdict=ending)


def _strongest(result: Result, verdict: Verdict) -> tuple[float, float, str]:
    """Return the largest lower bound of the claimed quantity, its level, and what it rests on besides."""
    bounds = [(verdict.measured or 0.0, verdict.confidence or 0.0, "")]
    # elsewhere one record is replaced by another in the game, and one is added or removed in the claim
    comparable = verdict.claim.adjacency == "replace_one" or result.facts.game in ("canaries", "scores")
    for finding in result.findings:
        is_lower = finding.quantity == verdict.claim.quantity and finding.bound_type == "lower"
        same_delta = finding.operating_point.get("delta", 0.0) == verdict.claim.delta
        if comparable and is_lower and same_delta and finding.value is not None:
            ids = [term.id for term in finding.method]
            condition = "".join(text for id, text in CONDITIONS.items() if id in ids)
            bounds.append((finding.value, finding.confidence or 0.0, condition))
    if verdict.word == "refuted" and bounds[0][0] > 0:  # the bound that the test rests on
        return bounds[0]
    return max(bounds)


def counted(results: Sequence[Result]) -> Markup:
    """Say in a sentence how many claims are refuted; nothing without claims."""
    verdicts = [verdict.word for result in results for verdict in result.verdicts]
    n, n_refuted = len(verdicts), verdicts.count("refuted")
    n_tested = n_refuted + verdicts.count("not_refuted")
    n_false = verdicts.count("cannot_hold") + verdicts.count("not_supported")
    if n_false and not n_refuted:
        which = "The claim" if n == 1 or n_false == 1 else f"{n_false} of {n} claims"
        if "not_supported" in verdicts:
            return say("<b>{which} is not supported by what the training declares.</b>", which=which)
        return say("<b>{which} cannot hold: the training as declared gives more.</b>", which=which)
    if not n_tested or leading(results):
        return Markup("")
    if n == 1:
        return say("<b>The claim is refuted.</b>") if n_refuted else say("The claim is not refuted.")
    if not n_refuted:
        return say("None of the {n} claims is refuted.", n=n)
    are = "is" if n_refuted == 1 else "are"
    return say("<b>{refuted} of {n} claims {are} refuted.</b>", refuted=n_refuted, n=n, are=are)


def _line(result: Result, verdict: Verdict) -> Line:
    """Write a claim for a page, and in one paragraph for a text."""
    name, why = NAMES[verdict.word], reason(result, verdict)
    text = say("{name}: {title}, {claim}. {why}", name=name, title=result.title, claim=phrases.claim(verdict), why=why)
    return Line(verdict.word, name, claim(result, verdict), why, text)


def contradictions(results: Sequence[Result]) -> list[Curve]:
    """Proved ceilings that a measurement exceeds, so that one of the two is wrong.

    Where an accountant's curve is refuted it is the training that is wrong: a finding, and no contradiction.
    """
    curves = [curve for result in results for curve in result.curves if curve.role == "certified"]
    tested = [(curve, curve.verdict) for curve in curves if curve.verdict is not None]
    return [curve for curve, verdict in tested if verdict.word == "refuted" and verdict.quantity != "curve"]


def claim(result: Result, verdict: Verdict) -> Markup:
    """Write the claim as a sentence."""
    claimed, unit = verdict.claim, result.about.unit
    words = {"unit": unit, "title": result.title, claimed.quantity: parameter(claimed.value)}
    if claimed.adjacency is None:
        right = near(100 * (result.prior_accuracy_in_game + claimed.value), 1).removesuffix(".0")
        baseline = near(100 * result.prior_accuracy_in_game, 1).removesuffix(".0")
        above = "" if baseline == "50" else f" above the {baseline} of a guess"
        return say(CLAIMS[claimed.quantity], right=right, above=above, **words)
    delta = say(" (δ\u00a0=\u00a0{delta})", delta=parameter(claimed.delta)) if claimed.delta else Markup("")
    adjacency = ADJACENCY[claimed.adjacency].format(unit=unit)
    return say(CLAIMS[claimed.quantity], delta=delta, adjacency=adjacency, **words)


def reason(result: Result, verdict: Verdict) -> Markup:
    """Give the reason for the verdict."""
    if verdict.word in {"cannot_be_tested", "cannot_hold", "not_supported", "proved"}:
        why = _why(verdict.reason) if verdict.reason else "A theorem bounds every attacker."
        return say("{reason}", reason=why)
    bound = _accuracy(result, verdict) if verdict.quantity == "eta" else _bound(verdict)
    if verdict.quantity == "curve":
        bound = joined([bound, _step_by_step(result)])
    above = verdict.operating_point.get("low", 0.0) > verdict.operating_point.get("ceiling", 1.0)
    if verdict.word == "refuted":
        why = Markup("")
        if verdict.reason:
            why = say("{reason}", reason=_why(verdict.reason))
        return joined([_point(result, verdict) if above else Markup(""), bound, why])
    return joined([bound, say(NEVER), _unsupported(verdict) if above else _undecided(result, verdict)])


def _undecided(result: Result, verdict: Verdict) -> Markup:
    """Say why a claim about every record is not refuted although the summary names one that is above it."""
    worst = result.most_exposed
    if verdict.quantity != "eta" or worst is None or not verdict.confidence:
        return Markup("")
    if (worst.low or 0.0) <= result.prior_accuracy_in_game + verdict.claim.value:
        return Markup("")
    return say(
        ABOVE_AT_A_LOWER_LEVEL,
        level=level(result, worst),
        unit=result.about.unit,
        least=least_of_100(worst.low),
        high_level=percent(verdict.confidence),
    )


def _why(reason: Term) -> str:
    """Write a reason as a sentence; the user's own words stay as they are."""
    text = sentence(reasons.words(reason))
    return text if reason.id == "own_words" else capital(text)


def _point(result: Result, verdict: Verdict) -> Markup:
    """Where the attack is seen above the ceiling."""
    at = verdict.operating_point
    text = fractions(at["tpr"], at["low"], at["high"])
    return say(
        POINT,
        fpr=percent(at["fpr"]),
        ceiling=percent_at_most(at["ceiling"]),
        attack=result.attack_title(verdict.attack),
        found=f"{text.value}{THIN}%",
        level=level(result),
        interval=text.interval,
    )


def _bound(verdict: Verdict) -> Markup:
    """State the lower bound of the claimed quantity, and whether the claim allows it."""
    letter = GREEK["epsilon"] if verdict.quantity == "curve" else GREEK.get(verdict.quantity, verdict.quantity)
    measured = verdict.measured or 0.0
    if measured <= 0:
        at = f" at {percent(verdict.confidence)}" if verdict.confidence else ""
        return say("These attacks give no lower bound of {letter} above 0{level}.", letter=letter, level=at)
    at = f" ({percent(verdict.confidence)})" if verdict.confidence else ""
    if verdict.quantity == "curve":
        allowed = verdict.allowed or 0.0
        says = up(allowed, 3) if math.isfinite(allowed) else "infinity"
        return say(RULED_OUT, least=down(measured, 2), level=at, allowed=says)
    if verdict.word == "refuted":
        words = "Any true {letter} is at least {least}{level}."
        return say(words, letter=letter, least=down(measured, 2), level=at)
    return say(ALLOWED, letter=letter, least=down(measured, 2), level=at, allowed=parameter(verdict.allowed or 0.0))


def _step_by_step(result: Result) -> Markup:
    """State the epsilon of the steps, where they were seen one by one."""
    for finding in result.findings:
        if Term("step_by_step") in finding.method:
            return say(STEP_BY_STEP, least=down(finding.value or 0.0, 2), level=percent(finding.confidence or 0.0))
    return Markup("")


def _accuracy(result: Result, verdict: Verdict) -> Markup:
    """State the lower limit of the accuracy against the most exposed record, and whether the claim allows it."""
    unit, right = result.about.unit, result.prior_accuracy_in_game + (verdict.measured or 0.0)
    at = f"{percent(verdict.confidence)}, " if verdict.confidence else ""
    words = EXPOSED if verdict.word == "refuted" else NOT_EXPOSED
    least = digits(right, right, scale=2, most=1).value
    return say(words, unit=unit, units=plural(unit), least=least, level=at)


def _unsupported(verdict: Verdict) -> Markup:
    """Say that the band clears the ceiling but the test does not."""
    at = verdict.operating_point
    return say(THIN_AIR, fpr=percent(at["fpr"]), n=near(at.get("false_alarms", 0)))
