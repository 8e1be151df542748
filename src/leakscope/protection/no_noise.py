"""Where the draw alone keeps the promise: sums and means of values that enough records share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from leakscope.bounds.tables import exact_eta_table
from leakscope.bounds.totals import exact_eta_total

Array = np.ndarray
_MOST_SUMS = 1_000_000  # values times records of a total whose distribution is worked out


@dataclass(frozen=True)
class Unneeded:
    """Why no noise is needed.

    Parameters
    ----------
    coupling : str
        What proves it: ``"table"``, ``"total"``, or a coupling whose pairs hardly differ.
    eta : float
        Proved accuracy above the better prior guess.
    reason : str
    """

    coupling: str
    eta: float
    reason: str


def unneeded(
    features: Float[Array, "n d"], k: int, eta: float, promise: Literal["every", "average"] = "every"
) -> Unneeded | None:
    """Whether the sum of features over k records, drawn from all n, keeps a promise without noise.

    The sum is a function of the counts of records with equal features, so that the exact eta of this table bounds
    it. Totals of a column of whole numbers have a distribution of their own, which says more.

    Parameters
    ----------
    features : array of shape (n, d)
    k : int
    eta : float
    promise : {"every", "average"}

    Returns
    -------
    Unneeded or None

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.protection.no_noise import unneeded
    >>> found = unneeded(np.repeat(np.eye(2), [400, 600], axis=0), k=500, eta=0.05)
    >>> found.coupling, round(found.eta, 4)
    ('table', 0.0154)
    >>> unneeded(np.repeat(np.eye(2), [20, 980], axis=0), k=500, eta=0.05) is None
    True
    """
    for name, each in (("table", _of_table), ("total", _of_total)):
        found = each(features, k)
        if found is None:
            continue
        proved = float(found.max() if promise == "every" else found.mean())
        if proved <= eta:
            return Unneeded(name, proved, _REASONS[name])
    return None


_REASONS = {
    "table": "enough records share their values: the draw alone keeps the promise",
    "total": "enough subsets have the same total: the draw alone keeps the promise",
}


def _of_table(features: Float[Array, "n d"], k: int) -> Float[Array, " n"]:
    """Exact eta of each record from the counts of records with equal features."""
    _, cell, sizes = np.unique(features, axis=0, return_inverse=True, return_counts=True)
    return exact_eta_table(sizes, len(features), k=k)[cell.ravel()]


def _of_total(features: Float[Array, "n d"], k: int) -> Float[Array, " n"] | None:
    """Exact eta of each record from the distribution of the total; None if it is no whole-number total, or too long."""
    n, d = features.shape
    if d > 1:
        return None
    values = features[:, 0]
    if not (values == np.rint(values)).all():
        return None
    span = float(values.max() - values.min())
    if span * n > _MOST_SUMS:
        return None
    return exact_eta_total((values - values.min()).astype(np.int64), sampling="fixed", k=k)
