"""How many models are fitted: a number, or as many as it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Annotated, Any

from pydantic import Field, PlainSerializer, PlainValidator, model_validator

from leakbound.core.checks import count
from leakbound.plans.choices import choice, choose, table_of
from leakbound.plans.limits import NARROWED, Limit
from leakbound.plans.plan import a_fraction, settings

REFUTED = "refuted"  # models are added until each claim is
MOST_MODELS = 64  # unless the call says how many: 8, 16, 32 and 64 are four looks, which share the level


@choice
class Until:
    """Look at 8, 16, 32, ... models, and stop when an interval is narrow or every claim is refuted.

    The level is divided over all looks, so that the intervals hold, and that a true claim is not refuted more often.
    Needs a store.

    Parameters
    ----------
    quantity : str
        ``"refuted"``, or what is to be known well of the strongest attack: ``"auc"``, ``"tpr@0.01"``.
    width : float, optional
        How narrow the interval of the quantity is to be.
    at_most : int
        The largest number of models.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Until("tpr@0.01", width=0.005).name, ls.Until("refuted").at_most
    ('tpr', 64)
    """

    quantity: str
    _: KW_ONLY
    width: Annotated[float | None, a_fraction(above=True, below=True)] = None
    at_most: Annotated[int, Field(ge=2)] = MOST_MODELS

    @model_validator(mode="after")
    def _has_a_width(self) -> Until:
        if self.is_refuted:
            if self.width is not None:
                raise ValueError(f"width is of the interval of a quantity; until {REFUTED} takes none")
            return self
        if self.width is None:
            raise ValueError(f"until takes {REFUTED}, or a quantity and its width, as tpr@0.01,width=0.005")
        Limit.parse(f"{self.quantity}={self.width}", "until", NARROWED)
        return self

    @property
    def is_refuted(self) -> bool:
        """Whether models are added until each claim is refuted."""
        return self.quantity == REFUTED

    @property
    def name(self) -> str:
        """The quantity without its rate."""
        return self.quantity.partition("@")[0]

    @property
    def fpr(self) -> float | None:
        """The false positive rate at which the quantity is taken, if it is."""
        rate = self.quantity.partition("@")[2]
        return float(rate) if rate else None

    @property
    def words(self) -> str:
        """What one waits for, in words."""
        return (
            "every claim is refuted"
            if self.is_refuted
            else f"the interval of {self.quantity} is at most {self.width:g} wide"
        )

    @classmethod
    def parse(cls, text: str) -> Until:
        """``tpr@0.01,width=0.005`` as an object."""
        quantity, _, rest = text.partition(",")
        return choose([cls], {"until": {"quantity": quantity, **(settings(rest, "until") if rest else {})}}, "until")


def _models(given: Any) -> Any:
    """Read a number of models, or until when they are added."""
    if given is None or isinstance(given, Until):
        return given
    if isinstance(given, Mapping):
        return choose([Until], given, "n_models")
    return count("n_models", given)


def _in_words(models: Any) -> Any:
    return table_of(models) if isinstance(models, Until) else models


Models = Annotated[int | Until | None, PlainValidator(_models), PlainSerializer(_in_words)]
