"""A limit in words: ``tpr@0.01=0.05``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import model_validator

from leakbound.core.checks import nearest, probability, real
from leakbound.plans.plan import Plan, a_fraction, read

OF_GROUPS = ("worst_group_accuracy", "exposed")  # of groups of records, and of single ones
# of the strongest attack: an audit gives both ends of their intervals
MEASURED = ("accuracy", "advantage", "auc", "tpr", "tpr_these_models", *OF_GROUPS)
PROVED = ("accuracy", "eta", "advantage", "tpr")  # of any attacker
AT_A_RATE = ("tpr", "tpr_these_models")
NARROWED = ("auc", "advantage", "accuracy", "tpr", "ppv")  # with intervals that more models make narrower
FRACTIONS = {*MEASURED, *PROVED, *NARROWED} - {"exposed"}


class Limit(Plan):
    """A limit on what an attacker reaches; one that nothing can exceed is refused.

    Parameters
    ----------
    quantity : str
        What is limited: a name of ``MEASURED`` in an audit, of ``PROVED`` in a bound.
    fpr : float, optional
        False positive rate of a quantity that is taken at one, in (0, 1).
    limit : float
        The largest value that is allowed.

    Examples
    --------
    >>> Limit.parse("tpr@0.01=0.05")
    Limit(quantity='tpr', fpr=0.01, limit=0.05)
    """

    quantity: str
    fpr: Annotated[float | None, a_fraction(above=True, below=True)] = None
    limit: float

    @model_validator(mode="after")
    def _fractions(self) -> Limit:
        if self.quantity in FRACTIONS:
            probability(self.quantity, self.limit)
            largest = 0.5 if self.quantity == "eta" else 1.0
            if self.limit >= largest:
                raise ValueError(
                    f"a limit of {self.limit:g} can never be exceeded, for {self.quantity} is at most {largest:g}; "
                    "give a smaller one"
                )
        if self.quantity == "exposed" and (self.limit < 0 or self.limit != int(self.limit)):
            raise ValueError(f"a limit on exposed is a number of records, as exposed=0; got {self.limit:g}")
        return self

    @classmethod
    def parse(cls, text: str, flag: str = "limits", known: Sequence[str] = MEASURED) -> Limit:
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
            rate = real("the rate", at) if at else None
            limit = real("the limit", right)
        except ValueError as error:
            raise ValueError(f"{flag} takes numbers, as tpr@0.01=0.05, got {text!r}: {error}") from None
        return read(cls, {"quantity": quantity, "fpr": rate, "limit": limit}, f"{flag} {text}")
