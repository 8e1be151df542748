"""Which coupling needs the least noise, estimated from a few pairs of each.

The pairs of such a pilot only choose. They are discarded, and the coupling that is chosen is measured with another
seed at the full confidence, so that the choice costs none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from leakbound.core.checks import count, one_of, same_length
from leakbound.core.types import Noise, NotApplicable
from leakbound.noise.calibration import calibrate
from leakbound.noise.gaussian import GaussianNoise
from leakbound.noise.shifts import Shifts

Promise = Literal["every", "average"]


def most_promising(
    pilots: Sequence[Shifts],
    n_pairs: Sequence[int],
    eta: float,
    family: Callable[[float], Noise] = GaussianNoise,
    promise: Promise = "every",
    confidence: float | None = None,
) -> int:
    """Return the index of the coupling that should need the least noise once it is measured in full.

    Each pilot is read as if its pairs were repeated until there were as many as planned. Nothing is certified by it:
    the pairs that certify need another seed. With few pairs of many rows the worst row is overestimated, so give
    swaps at least some ten rounds.

    Parameters
    ----------
    pilots : sequence of Shifts
        Sampled ones, with few pairs, and exact ones; of one statistic and game, in one norm.
    n_pairs : sequence of int
        Pairs in each row that each sampled coupling would have in full; ignored for exact ones.
    eta : float
        As in `leakbound.noise.calibrate`.
    family : callable
        As in `leakbound.noise.calibrate`.
    promise : {"every", "average"}
        Whether eta is kept for every record, or on average over the records. Pilots that promise less are passed
        over, and exact shifts of every record are averaged where the average is asked for.
    confidence : float, optional
        Needed if a pilot is sampled.

    Returns
    -------
    int
        Index into ``pilots``; the first of equal ones. A pilot that needs no noise comes before all others.

    Raises
    ------
    ValueError
        If none of them keeps the promise with any noise (with the reason of each), or for pilots of different games.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import Shifts, most_promising
    >>> swap = Shifts(np.full((6, 10), 1.0), "swap", d=1, exact=False)
    >>> complement = Shifts(np.full((1, 50), 3.0), "complement", d=1, exact=False)
    >>> most_promising([swap, complement], n_pairs=[500, 2000], eta=0.05, confidence=0.95)
    0
    """
    same_length(pilots=pilots, n_pairs=n_pairs)
    expected, reasons = {}, []
    for index, shifts in _usable(pilots, promise).items():
        full = shifts if shifts.exact else _continued(shifts, n_pairs[index])
        try:
            noise = calibrate(full, eta, family, confidence=None if shifts.exact else confidence)
            expected[index] = noise.rms(shifts.d)
        except NotApplicable:
            expected[index] = 0.0
        except ValueError as reason:
            reasons.append(f"{shifts.coupling}: {reason}")
    if not expected:
        raise ValueError("no coupling keeps the promise; " + "; ".join(reasons))
    return min(expected, key=expected.__getitem__)


def _usable(pilots: Sequence[Shifts], promise: Promise) -> dict[int, Shifts]:
    """Return the pilots that keep the promise, by index; for the average, exact ones as their average row."""
    one_of("promise", promise, ("every", "average"))
    if not pilots:
        raise ValueError("pilots must not be empty")
    if len({(shifts.d, shifts.norm, shifts.prior) for shifts in pilots}) > 1:
        raise ValueError("pilots must be of one statistic and game: their d, norm or prior differ")
    usable = {}
    for index, shifts in enumerate(pilots):
        if promise == "every" and shifts.promise != "every":
            continue
        if shifts.mean_only and not shifts.exact:  # no certificate
            continue
        if promise == "average" and shifts.exact and shifts.records is None:
            usable[index] = shifts.average()
        else:
            usable[index] = shifts
    if not usable:
        names = ", ".join(f"{shifts.coupling} ({shifts.promise})" for shifts in pilots)
        raise ValueError(f"no pilot promises {promise!r} with a certificate; got {names}")
    return usable


def _continued(shifts: Shifts, n_pairs: int) -> Shifts:
    """Repeat the pairs up to a number of them."""
    columns = np.arange(count("n_pairs", n_pairs)) % shifts.values.shape[1]
    return replace(shifts, values=shifts.values[:, columns])
