"""What is written under curves: the forbidden region, and ceilings as formulas."""

from __future__ import annotations

import math

from markupsafe import Markup

from leakbound.core.tradeoff import EpsilonDelta, Gaussian, TradeOff
from leakbound.reports import Curve
from leakbound.reports.numbers import parameter, percent, percent_at_most, signs
from leakbound.reports.results.words import lettered, listed, say
from leakbound.reports.sentences import Sentence

LEAST_ALARMS = 10  # fewer false alarms support no rate
SMALL_ADVANTAGE = 0.15  # below it the gain over guessing shows what a ROC hides
REGIONS = {
    "claimed": "If the claim held, no curve could enter the hatched region, whatever the attacker does.",
    "certified": "No curve can enter the hatched region, whatever the attacker does.",
    "asymptotic": "Dotted: what the best attacker reaches as the number of {units} grows; it forbids nothing.",
}

RATES = (0.01, 0.1, 0.001)  # false positive rates of which a single curve speaks, the first of them first
MEASURED = "{name} finds <b>{found} of the members at {fpr} false alarms</b>{others}."
CEILING = "{name}: no attacker finds more than <b>{found} of the members at {fpr} false alarms</b>{others}."
FEW = "{name} was measured on too few guesses for a rate."


def one_curve(curve: Curve) -> tuple[str, Markup]:
    """Write the largest number of a single curve, and the sentence that it is from."""
    name = f"{curve.name} ({curve.release})" if curve.release else curve.name
    games = curve.n_nonmember
    rates = [rate for rate in RATES if not games or rate * games >= LEAST_ALARMS]
    if not rates:
        return "—", say(FEW, name=lettered(name))
    written = percent if curve.role == "measured" else percent_at_most
    found = [written(float(curve.tradeoff.tpr_at(rate))) for rate in rates]
    others = [f"{members} at {percent(rate)}" for rate, members in zip(rates[1:], found[1:], strict=True)]
    pattern = MEASURED if curve.role == "measured" else CEILING
    listed_others = f", {listed(others)}" if others else ""
    return found[0], say(pattern, name=lettered(name), found=found[0], fpr=percent(rates[0]), others=listed_others)


def formula(ceiling: TradeOff) -> Markup:
    """Write a ceiling as an inequality; empty where there is none that is short."""
    return Markup.escape(str(formula_of(ceiling) or ""))


def formula_of(ceiling: TradeOff) -> Sentence | None:
    """Write a ceiling as an inequality, where there is one that is short."""
    if isinstance(ceiling, Gaussian):
        return Sentence("formula.gaussian", {"mu": signs(parameter(float(f"{ceiling.mu:.5g}")))})
    if not isinstance(ceiling, EpsilonDelta) or ceiling.promised[0] == math.inf:
        return None
    epsilon, delta = (signs(parameter(value)) for value in ceiling.promised)
    if ceiling.promised[0] == 0:
        return Sentence("formula.delta", {"delta": delta})
    return Sentence("formula.epsilon_delta", {"epsilon": epsilon, "delta": delta})
