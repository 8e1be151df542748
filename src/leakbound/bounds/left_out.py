"""Exactly how well it is told which record was left out, by integration: for releases of one or two numbers."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int, Num

from leakbound.bounds.quadrature import Density, absolute_integral

Array = np.ndarray


def exact_left_out(
    values: Num[Array, "n d"], noise: Density | None = None, records: Int[Array, " r"] | None = None
) -> Float[Array, " r"]:
    """Compute the total variation between "x was left out" and "one of the others was", of the best attacker on x.

    One of n records is left out at random and in secret, and the statistic of the others is released with noise. The
    attacker knows all records and the noise; his accuracy at even odds is ``1/2 + TV/2``. The bounds of
    ``leakbound.noise.LeftOut`` are never below this.

    Parameters
    ----------
    values : array of shape (n, d)
        Row i is the statistic of all records but i, finite; d is 1 or 2 with noise.
    noise : object with ``log_density`` and ``rms``, or None
        Added to the statistic; None where the statistic itself is released.
    records : int array of shape (r,), optional
        The records x; all of them unless given.

    Returns
    -------
    array of shape (r,)
        In [0, 1]. Errors: rounding without noise, below 1e-12 with noise for d = 1, about 1e-6 for d = 2.

    Raises
    ------
    ValueError
        For values that are not finite, fewer than two records, d > 2 with noise, or a noise that cannot be integrated;
        see `leakbound.bounds.quadrature`.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.bounds import exact_left_out
    >>> from leakbound.noise import GaussianNoise
    >>> values = np.array([[0.0], [1.0], [3.0]])
    >>> exact_left_out(values, GaussianNoise(2.0)).round(4).tolist()
    [0.3638, 0.142, 0.4618]
    """
    values = np.asarray(values, dtype=float)
    if values.ndim != 2 or len(values) < 2 or not np.isfinite(values).all():
        raise ValueError(f"values must be finite and of shape (n, d) with n >= 2, got {values.shape}")
    chosen = np.arange(len(values)) if records is None else np.asarray(records)
    distinct, which, count = np.unique(values, axis=0, return_inverse=True, return_counts=True)
    which = which.reshape(-1)
    others = np.repeat(count[:, None].astype(float), len(chosen), axis=1)
    others[which[chosen], np.arange(len(chosen))] -= 1
    difference = -others / (len(values) - 1)
    difference[which[chosen], np.arange(len(chosen))] += 1
    total = np.abs(difference).sum(axis=0) if noise is None else absolute_integral(distinct, difference, noise)
    return np.clip(total / 2, 0, 1)
