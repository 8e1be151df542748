"""Where the draw alone keeps the promise: sums and means of values that enough records share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from leakbound.bounds.tables import exact_eta_table
from leakbound.bounds.totals import exact_eta_total

Array = np.ndarray
_MOST_SUMS = 1_000_000  # values times records of a total whose distribution is worked out


@dataclass(frozen=True)
class Unneeded:
    """A proof that no noise is needed."""

    coupling: Literal["table", "total"]
    eta: float


def unneeded(
    features: Float[Array, "n d"], k: int, eta: float, promise: Literal["every", "average"] = "every"
) -> Unneeded | None:
    """Check whether the sum of features over k records, drawn from all n, keeps a promise without noise.

    The sum is a function of the counts of records with equal features, so that the exact eta of this table bounds
    it. Totals of a column of whole numbers have a distribution of their own, which says more.

    >>> proof = unneeded(np.repeat(np.eye(2), [400, 600], axis=0), k=500, eta=0.05)
    >>> proof.coupling, round(proof.eta, 4)
    ('table', 0.0154)
    >>> unneeded(np.repeat(np.eye(2), [20, 980], axis=0), k=500, eta=0.05) is None
    True
    """
    proofs: tuple[tuple[Literal["table", "total"], Callable[..., Float[Array, " n"] | None]], ...]
    proofs = (("table", _of_table), ("total", _of_total))
    for name, exact_eta in proofs:
        eta_of_records = exact_eta(features, k)
        if eta_of_records is None:
            continue
        proved = float(eta_of_records.max() if promise == "every" else eta_of_records.mean())
        if proved <= eta:
            return Unneeded(name, proved)
    return None


def _of_table(features: Float[Array, "n d"], k: int) -> Float[Array, " n"]:
    """Compute the exact eta of each record from the counts of records with equal features."""
    _, cell, sizes = np.unique(features, axis=0, return_inverse=True, return_counts=True)
    return exact_eta_table(sizes, len(features), k=k)[cell.ravel()]


def _of_total(features: Float[Array, "n d"], k: int) -> Float[Array, " n"] | None:
    """Compute the exact eta of each record from the distribution of the total; None if not integer, or too long."""
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
