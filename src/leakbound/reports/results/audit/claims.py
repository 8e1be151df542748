"""Claims and what an audit says of them: refuted, not refuted, cannot hold, not supported; and the reason."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from leakbound.core import reasons
from leakbound.core.findings import Finding, Term
from leakbound.reports import Verdict, phrases
from leakbound.reports.numbers import (
    THIN,
    count,
    digits,
    down,
    fractions,
    near,
    parameter,
    percent,
    percent_at_most,
    up,
)
from leakbound.reports.results.audit.answer import least_of_100
from leakbound.reports.results.audit.result import Result, level, written
from leakbound.reports.results.findings import Text
from leakbound.reports.results.words import GREEK
from leakbound.reports.sentences import Sentence, Texts

CONDITIONS = ("step_by_step", "independent_canaries")  # without which a lower bound does not hold
WITHOUT_A_TEST = ("cannot_be_tested", "cannot_hold", "not_supported")


def claims(results: Sequence[Result]) -> list[Texts]:
    """Write each claim that has a verdict, in the order of the releases."""
    is_alone = len(results) == 1
    return [_claimed(result, verdict, is_alone) for result in results for verdict in result.verdicts]


def _claimed(result: Result, verdict: Verdict, is_alone: bool) -> Texts:
    short: Text = phrases.claim(verdict)
    if not is_alone:
        short = Sentence("judged.of_model", {"title": result.title, "claim": short})
    word = Sentence(f"judged.{verdict.word}")
    return Texts(says=says(result, verdict), short=short, word=word, why=list(why(result, verdict)))


def contradictions(results: Sequence[Result]) -> list[str]:
    """Name proved ceilings that a measurement exceeds, so that one of the two is wrong.

    Where an accountant's curve is refuted it is the training that is wrong: a finding, and no contradiction.
    """
    names = []
    for result in results:
        for curve in result.curves:
            verdict = curve.verdict
            is_refuted = verdict is not None and verdict.word == "refuted" and verdict.quantity != "curve"
            if curve.role == "certified" and is_refuted:
                names.append(f"{curve.release}: {curve.name}")
    return names


def says(result: Result, verdict: Verdict) -> Sentence:
    """Write the claim as a sentence."""
    claim = verdict.claim
    gaps: dict[str, Text] = {"title": result.title, "value": parameter(claim.value)}
    name = claim.quantity
    if claim.adjacency is None:
        guess = near(100 * result.prior_accuracy_in_game, 1).removesuffix(".0")
        right = near(100 * (result.prior_accuracy_in_game + claim.value), 1).removesuffix(".0")
        name += "" if guess == "50" else "_above"
        return written(result, f"claimed.{name}", **gaps, right=right, baseline=guess)
    if claim.delta and claim.quantity == "epsilon":
        name += "_delta"
        gaps["delta"] = parameter(claim.delta)
    return written(result, f"claimed.{name}", **gaps, adjacency=written(result, f"claimed.{claim.adjacency}"))


def why(result: Result, verdict: Verdict) -> Iterator[Sentence]:
    """Give the reasons for the verdict."""
    if verdict.word in WITHOUT_A_TEST:
        yield _reason(verdict.reason) if verdict.reason else Sentence("claim.theorem")
        return
    at = verdict.operating_point
    is_above = at.get("low", 0.0) > at.get("ceiling", 1.0)
    if verdict.word == "refuted" and is_above:
        yield _point(result, verdict)
    yield _accuracy(result, verdict) if verdict.quantity == "eta" else _bound(verdict)
    if verdict.quantity == "curve":
        yield from _step_by_step(result)
    if verdict.word == "refuted":
        if verdict.reason:
            yield _reason(verdict.reason)
        return
    yield Sentence("claim.never")
    if is_above:  # the band clears the ceiling, but the test does not
        yield Sentence("claim.few_false_positives", {"fpr": percent(at["fpr"]), "n": near(at.get("false_alarms", 0))})
    else:
        yield from _undecided(result, verdict)


def _reason(reason: Term) -> Sentence:
    return Sentence("claim.why", {"reason": reasons.words(reason).removesuffix(".")})


def _undecided(result: Result, verdict: Verdict) -> Iterator[Sentence]:
    """Say why a claim about every record is not refuted although the summary names one that is above it."""
    worst = result.most_exposed
    if verdict.quantity != "eta" or worst is None or not verdict.confidence:
        return
    if (worst.low or 0.0) > result.prior_accuracy_in_game + verdict.claim.value:
        gaps = {"level": level(result, worst), "least": least_of_100(worst.low)}
        yield written(result, "claim.above_at_a_lower_level", **gaps, high_level=percent(verdict.confidence))


def _point(result: Result, verdict: Verdict) -> Sentence:
    """Say where the attack is seen above the ceiling."""
    at = verdict.operating_point
    text = fractions(at["tpr"], at["low"], at["high"])
    gaps = {
        "fpr": percent(at["fpr"]),
        "ceiling": percent_at_most(at["ceiling"]),
        "attack": result.attack_title(verdict.attack),
        "found": f"{text.value}{THIN}%",
        "interval": text.interval,
    }
    return written(result, "claim.point", **gaps, level=level(result))


def _at(verdict: Verdict) -> Text:
    """Write the level of a test in brackets."""
    return Sentence("claim.level", {"level": percent(verdict.confidence)}) if verdict.confidence else ""


def _bound(verdict: Verdict) -> Sentence:
    """State the lower bound of the claimed quantity, and whether the claim allows it."""
    letter = GREEK["epsilon"] if verdict.quantity == "curve" else GREEK.get(verdict.quantity, verdict.quantity)
    measured, allowed = verdict.measured or 0.0, verdict.allowed or 0.0
    gaps: dict[str, Text] = {"letter": letter, "least": down(measured, 2), "level": _at(verdict)}
    if measured <= 0:
        return Sentence("claim.no_bound", gaps)
    if verdict.quantity == "curve":
        most = up(allowed, 3) if math.isfinite(allowed) else Sentence("claim.infinity")
        return Sentence("claim.ruled_out", {**gaps, "allowed": most})
    if verdict.word == "refuted":
        return Sentence("claim.at_least", gaps)
    return Sentence("claim.allowed", {**gaps, "allowed": parameter(allowed)})


def _step_by_step(result: Result) -> Iterator[Sentence]:
    """State the epsilon of the steps, where they were seen one by one."""
    finding = next((finding for finding in result.findings if Term("step_by_step") in finding.method), None)
    if finding is not None:
        gaps = {"least": down(finding.value or 0.0, 2), "level": percent(finding.confidence or 0.0)}
        yield Sentence("claim.step_by_step", gaps)


def _accuracy(result: Result, verdict: Verdict) -> Sentence:
    """State the lower limit of the accuracy against the most exposed record, and whether the claim allows it."""
    right = result.prior_accuracy_in_game + (verdict.measured or 0.0)
    name = "exposed" if verdict.word == "refuted" else "not_exposed"
    return written(result, f"claim.{name}", least=digits(right, right, scale=2, most=1).value, level=_at(verdict))


def leading(results: Sequence[Result]) -> Sentence | None:
    """Say what is claimed, the largest lower bound that was measured, and whether they agree; of one release.

    An audit has many lower bounds, of several attacks and at several levels. This is the one to read first.
    """
    verdicts = [verdict for result in results for verdict in result.verdicts if verdict.claim.adjacency is not None]
    tested = [verdict for verdict in verdicts if verdict.word in ("refuted", "not_refuted")]
    is_denied = any(verdict.word in ("cannot_hold", "not_supported") for verdict in verdicts)
    if len(results) != 1 or not tested or is_denied:
        return None
    verdict = next((verdict for verdict in tested if verdict.word == "refuted"), tested[0])
    least, confidence, condition = _strongest(results[0], verdict)
    allowed = verdict.allowed if verdict.quantity == "curve" and verdict.allowed else verdict.claim.value
    measured = Sentence("leading.nothing_shown")
    if least > 0:
        gaps: dict[str, Text] = {"least": down(least, 2), "level": percent(confidence)}
        measured = Sentence("leading.shown", {**gaps, "condition": Sentence(f"leading.{condition}")})
    ending = "agrees"
    if verdict.word == "refuted":
        ending = "refuted"
    elif any(other.word == "refuted" for other in results[0].verdicts):
        ending = "another_refuted"
    elif least > allowed:
        ending = "more_than_claimed"
    texts: dict[str, Text] = {"claim": _value(verdict), "shown": measured, "level": percent(verdict.confidence or 0)}
    return Sentence(f"leading.{ending}", texts)


def _value(verdict: Verdict) -> Sentence:
    """Write what is claimed as an equation, and whose accountant makes the claim."""
    claim = verdict.claim
    gaps = {"letter": GREEK[claim.quantity], "value": parameter(claim.value)}
    text = Sentence("leading.value", gaps)
    if claim.delta:
        text = Sentence("leading.value_delta", {**gaps, "delta": parameter(claim.delta)})
    return Sentence("leading.by_accountant", {"value": text}) if verdict.quantity == "curve" else text


def _strongest(result: Result, verdict: Verdict) -> tuple[float, float, str]:
    """Return the largest lower bound of the claimed quantity, its level, and the condition on which it rests."""
    bounds = [(verdict.measured or 0.0, verdict.confidence or 0.0, "unconditional")]
    # elsewhere one record is replaced by another in the game, and one is added or removed in the claim
    is_comparable = verdict.claim.adjacency == "replace_one" or result.facts.game in ("canaries", "scores")
    for finding in result.findings:
        is_lower = finding.quantity == verdict.claim.quantity and finding.bound_type == "lower"
        is_at_delta = finding.operating_point.get("delta", 0.0) == verdict.claim.delta
        if is_comparable and is_lower and is_at_delta and finding.value is not None:
            bounds.append((finding.value, finding.confidence or 0.0, _condition(finding)))
    if verdict.word == "refuted" and bounds[0][0] > 0:  # the bound that the test rests on
        return bounds[0]
    return max(bounds)


def _condition(finding: Finding) -> str:
    """Name what a lower bound rests on besides the game."""
    ids = {term.id for term in finding.method}
    return next((f"if_{name}" for name in CONDITIONS if name in ids), "unconditional")


def counted(results: Sequence[Result]) -> Iterator[Sentence]:
    """Say how many claims are refuted, and how many cannot hold; nothing where the first sentence says it."""
    words = [verdict.word for result in results for verdict in result.verdicts]
    n_refuted, n_unsupported = words.count("refuted"), words.count("not_supported")
    n_false = words.count("cannot_hold") + n_unsupported
    if n_false:
        name = "counted.not_supported" if n_unsupported else "counted.cannot_hold"
        yield Sentence(name, {"n": count(n_false), "all": count(len(words))})
    is_tested = n_refuted > 0 or "not_refuted" in words
    if not is_tested or leading(results) is not None or (n_false and not n_refuted):
        return
    if len(words) == 1:
        yield Sentence("counted.one_refuted" if n_refuted else "counted.one_not_refuted")
    else:
        name = "counted.refuted" if n_refuted else "counted.none_refuted"
        yield Sentence(name, {"n": count(n_refuted), "all": count(len(words))})


def most_allowed(result: Result) -> float | None:
    """Return the largest accuracy that a claim allows, of 100."""
    allowed = [
        100 * curve.tradeoff.accuracy(result.prior)
        for curve in result.ceilings
        if curve.verdict is not None and curve.verdict.quantity == "eta"
    ]
    return min(allowed, default=None)
