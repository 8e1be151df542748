"""A limit in words: ``tpr@0.01=0.05``."""

from __future__ import annotations

from collections.abc import Sequence

from leakscope.checks import nearest, probability, real
from leakscope.plans.plan import Plan

MEASURED = ("auc", "advantage", "success", "tpr", "ppv", "epsilon", "most_exposed", "attribute_gain")  # of the best
PROVED = ("success", "eta", "advantage", "tpr")  # of any attacker
AT_A_RATE = ("tpr", "ppv")


class Limit(Plan):
    """A limit on what an attacker reaches."""

    quantity: str
    at: float | None = None
    limit: float

    @classmethod
    def parse(cls, text: str, flag: str = "--fail-above", known: Sequence[str] = MEASURED) -> Limit:
        """``tpr@0.01=0.05``: the TPR at FPR 0.01 is at most 0.05."""
        left, equals, right = text.partition("=")
        quantity, _, at = left.partition("@")
        if not equals or quantity not in known:
            raise ValueError(
                f"{flag} takes QUANTITY[@AT]=VALUE, as tpr@0.01=0.05, got {text!r}"
                f"{nearest(quantity, known)}; quantities: {', '.join(known)}"
            )
        if quantity in AT_A_RATE and not at:
            raise ValueError(f"{quantity} needs a false-alarm rate, as {quantity}@0.01=0.05; got {text!r}")
        if quantity not in AT_A_RATE and at:
            raise ValueError(f"{quantity} is not taken at a rate; write {quantity}=VALUE, got {text!r}")
        try:
            rate = probability("the rate", at, open_ends=True) if at else None
            return cls(quantity=quantity, at=rate, limit=real("the limit", right))
        except ValueError as error:
            raise ValueError(f"{flag} takes numbers, as tpr@0.01=0.05, got {text!r}: {error}") from None
