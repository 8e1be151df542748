"""Reference models that are fitted for the audit of a trained model."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from leakbound.plans.choices import choice

# As many as make averages precise; the trained model is the only one that is attacked.
REFERENCES = 16


@choice
class Fitted:
    """Reference models that are fitted.

    Parameters
    ----------
    recipe : estimator, class or function that makes a network, or function that trains
        As the first argument of ``audit``.
    n : int
        How many.

    Examples
    --------
    >>> import leakbound as ls
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> ls.Fitted(DecisionTreeClassifier(), n=4).n
    4
    """

    recipe: Any
    n: Annotated[int, Field(ge=1)] = REFERENCES
