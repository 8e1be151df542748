"""A proved curve as findings, and the parameter that keeps every attacker below a limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leakbound.core.findings import Finding
from leakbound.core.numerics import largest_where
from leakbound.core.tradeoff import TradeOff
from leakbound.data import Data
from leakbound.plans.limits import PROVED, Limit
from leakbound.reports import Curve

LARGEST = 1e4  # of a parameter that is searched; beyond it nothing is kept secret


@dataclass(frozen=True)
class Stated:
    """What a report says of a bound."""

    subject: str
    findings: Sequence[Finding]
    curves: Sequence[Curve] = ()
    records: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    data: Data | None = None
    notes: Sequence[str] = ()


def allowed(curve: TradeOff, prior: float, fpr: Sequence[float], **common: Any) -> list[Finding]:
    """List what a ceiling allows any attacker: accuracy, eta and advantage, and the TPR at each FPR."""
    at = {"prior": prior}
    return [
        Finding("accuracy", curve.accuracy(prior), operating_point=at, bound_type="upper", **common),
        Finding("eta", curve.eta(prior), operating_point=at, bound_type="upper", **common),
        Finding("advantage", curve.advantage(), bound_type="upper", **common),
        *(
            Finding("tpr", float(curve.tpr_at(rate)), operating_point={"fpr": rate}, bound_type="upper", **common)
            for rate in fpr
        ),
    ]


def epsilon_at(curve: TradeOff, delta: float, **common: Any) -> Finding:
    """Say what a ceiling is as (epsilon, delta)-DP, at one delta."""
    return Finding("epsilon", curve.epsilon(delta), operating_point={"delta": delta}, bound_type="upper", **common)


def reach(curve: TradeOff, limit: Limit, prior: float) -> float:
    """How far a ceiling lets an attacker go in the quantity of a limit."""
    match limit.quantity:
        case "advantage":
            return curve.advantage()
        case "tpr":
            return float(curve.tpr_at(limit.fpr or 0.0))
        case "eta":
            return curve.eta(prior)
        case _:
            return curve.accuracy(prior)


def largest(ceiling: Callable[[float], TradeOff], text: str, prior: float) -> float:
    """Find the largest parameter whose ceiling keeps a limit, rounded down to six digits."""
    limit = Limit.parse(text, "at_most", PROVED)

    def keeps_limit(parameter: float) -> bool:
        return reach(ceiling(parameter), limit, prior) <= limit.limit

    baseline = reach(ceiling(0.0), limit, prior)
    if baseline > limit.limit:
        raise ValueError(f"at_most {text} is below the baseline accuracy, {baseline:g}")
    if keeps_limit(LARGEST):
        raise ValueError(f"at_most {text} allows everything; nothing has to be kept small for it")
    parameter = largest_where(keeps_limit, rtol=1e-9)
    digits = 5 - math.floor(math.log10(parameter)) if parameter > 0 else 0
    return math.floor(parameter * 10**digits) / 10**digits
