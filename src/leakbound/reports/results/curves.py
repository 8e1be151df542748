"""What is written under curves: the largest number of a single one, and ceilings as formulas."""

from __future__ import annotations

import math

from leakbound.core.tradeoff import EpsilonDelta, Gaussian, TradeOff
from leakbound.reports import Curve
from leakbound.reports.numbers import parameter, percent, percent_at_most
from leakbound.reports.results.words import listed
from leakbound.reports.sentences import Sentence, Texts

LEAST_ALARMS = 10  # fewer false alarms support no rate
SMALL_ADVANTAGE = 0.15  # below it the gain over guessing shows what a ROC hides
RATES = (0.01, 0.1, 0.001)  # false positive rates of which a single curve speaks, the first of them first


def one_curve(curve: Curve) -> Texts:
    """Write a single curve down, at the rates that rest on enough false alarms."""
    name = f"{curve.name} ({curve.release})" if curve.release else curve.name
    games = curve.n_nonmember
    rates = [rate for rate in RATES if not games or rate * games >= LEAST_ALARMS]
    if not rates:
        return Texts(name=name, found="—", sentence=Sentence("one_curve.few", {"name": name}))
    is_measured = curve.role == "measured"
    written = percent if is_measured else percent_at_most
    found = [written(float(curve.tradeoff.tpr_at(rate))) for rate in rates]
    gaps: dict[str, str | Sentence] = {"name": name, "found": found[0], "fpr": percent(rates[0]), "others": ""}
    if others := [
        str(Sentence("one_curve.at", {"found": members, "fpr": percent(rate)}))
        for rate, members in zip(rates[1:], found[1:], strict=True)
    ]:
        gaps["others"] = Sentence("one_curve.others", {"others": listed(others)})
    return Texts(
        name=name, found=found[0], sentence=Sentence(f"one_curve.{'measured' if is_measured else 'ceiling'}", gaps)
    )


def formula_of(ceiling: TradeOff) -> Sentence | None:
    """Write a ceiling as an inequality, where there is one that is short."""
    if isinstance(ceiling, Gaussian):
        return Sentence("formula.gaussian", {"mu": parameter(float(f"{ceiling.mu:.5g}"))})
    if not isinstance(ceiling, EpsilonDelta) or ceiling.promised[0] == math.inf:
        return None
    epsilon, delta = (parameter(value) for value in ceiling.promised)
    if ceiling.promised[0] == 0:
        return Sentence("formula.delta", {"delta": delta})
    return Sentence("formula.epsilon_delta", {"epsilon": epsilon, "delta": delta})
