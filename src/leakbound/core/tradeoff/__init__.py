"""Trade-off curves: the false-negative rate that any attacker must pay for a false-positive rate.

A measured ROC and a proved ceiling are the same type. The one abstract method is ``fnr``; everything
else is written once, in terms of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from leakbound.core.checks import non_negative
from leakbound.core.tradeoff.curve import Roc, TradeOff
from leakbound.core.tradeoff.families import EpsilonDelta, Gaussian
from leakbound.core.tradeoff.mixture import Mixture
from leakbound.core.tradeoff.piecewise import Piecewise
from leakbound.core.tradeoff.profile import Profile

__all__ = ["EpsilonDelta", "Gaussian", "Mixture", "Piecewise", "Profile", "Roc", "TradeOff", "from_dict"]

_KINDS = "gaussian, epsilon_delta, piecewise, mixture, profile"


def from_dict(content: Mapping[str, Any]) -> TradeOff:
    """Read a curve that ``to_dict`` wrote.

    Parameters
    ----------
    content : mapping
        With the kind of the curve and its parameters.

    Returns
    -------
    TradeOff
        The curve.

    Raises
    ------
    ValueError
        For an unknown kind.

    Examples
    --------
    >>> from leakbound.core.tradeoff import Gaussian, from_dict
    >>> from_dict(Gaussian(1.0).to_dict())
    Gaussian(mu=1.0)
    """
    match content.get("kind"):
        case "gaussian":
            return Gaussian(_maybe_infinite("mu", content["mu"]))
        case "epsilon_delta":
            return EpsilonDelta(_maybe_infinite("epsilon", content["epsilon"]), content["delta"])
        case "piecewise":
            return Piecewise(content["fpr"], content["fnr"])
        case "mixture":
            return Mixture(tuple(content["weights"]), tuple(from_dict(part) for part in content["curves"]))
        case "profile":
            epsilon = [_maybe_infinite("epsilon", value) for value in content["epsilon"]]
            return Profile(epsilon, content["delta"], content.get("reverse"))
        case kind:
            raise ValueError(f"unknown curve kind {kind!r}; known: {_KINDS}")


def _maybe_infinite(name: str, value: Any) -> float:
    """Convert to a number >= 0; infinity may be the text "inf", as JSON has it."""
    return non_negative(name, math.inf if value == "inf" else value, infinite=True)
