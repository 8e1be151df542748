"""What is written under curves: the forbidden region, and ceilings as formulas."""

from __future__ import annotations

import math

from markupsafe import Markup

from leakscope.core.tradeoff import EpsilonDelta, Gaussian, TradeOff
from leakscope.reports.numbers import MINUS, parameter
from leakscope.reports.sections.words import say

SMALL_ADVANTAGE = 0.15  # below it the gain over guessing shows what a ROC hides
REGIONS = {
    "claimed": "If the claim held, no curve could enter the hatched region, whatever the attacker does.",
    "certified": "No curve can enter the hatched region, whatever the attacker does.",
    "asymptotic": "Dotted: what the best attacker reaches as the number of {units} grows; it forbids nothing.",
}


def formula(ceiling: TradeOff) -> Markup:
    """Write a ceiling as an inequality; empty where there is none that is short."""
    if isinstance(ceiling, Gaussian):
        words = "TPR ≤ Φ(Φ<sup>{minus}1</sup>(FPR) + μ), with μ = {mu}"
        return say(words, minus=MINUS, mu=parameter(float(f"{ceiling.mu:.5g}")))
    if not isinstance(ceiling, EpsilonDelta) or ceiling.promised[0] == math.inf:
        return Markup("")
    epsilon, delta = ceiling.promised
    if epsilon == 0:
        return say("TPR ≤ FPR + {delta}", delta=parameter(delta))
    words = "TPR ≤ e<sup>ε</sup> FPR + δ and its mirror image, with ε = {epsilon} and δ = {delta}"
    return say(words, epsilon=parameter(epsilon), delta=parameter(delta))
