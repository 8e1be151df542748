"""Which coupling: the one that needs the least noise, among those that keep the promise asked for.

Two ways to try several couplings without losing the certificate. Measure all of them in full and share the level
(`choose`): the noise is too small only if the limit of one of them fails. Or measure a few pairs of each, choose
(`most_promising`), throw those pairs away and measure the chosen one with another seed at the full level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np

from leakscope.core.checks import count, one_of, probability, same_length
from leakscope.core.types import Noise, NotApplicable
from leakscope.noise.calibration import calibrate
from leakscope.noise.gaussian import GaussianNoise
from leakscope.noise.shifts import Shifts

Promise = Literal["every", "average"]


@final
@dataclass(frozen=True, eq=False)
class Choice:
    """The coupling that was taken.

    Parameters
    ----------
    index : int
        Its number among the candidates.
    shifts : Shifts
        Its shifts; their average row where exact shifts of every record were asked for the average.
    noise : Noise
        The least that keeps the promise.
    confidence : float or None
        At which these shifts alone are read, so that all that were tried together hold at the confidence asked
        for; None where nothing is sampled.
    """

    index: int
    shifts: Shifts
    noise: Noise
    confidence: float | None


def choose(
    candidates: Sequence[Shifts],
    eta: float,
    family: Callable[[float], Noise] = GaussianNoise,
    promise: Promise = "every",
    confidence: float | None = None,
) -> Choice:
    """The candidate with the least noise; the sampled ones share the level among them.

    Parameters
    ----------
    candidates : sequence of Shifts
        Of one statistic and game, in one norm. Those that promise less are passed over, and exact ones of every
        record are averaged where the average is asked for.
    eta, family
        As in `calibrate`.
    promise : {"every", "average"}
    confidence : float, optional
        Needed if a candidate is sampled.

    Returns
    -------
    Choice

    Raises
    ------
    NotApplicable
        If one of them shows that no noise is needed.
    ValueError
        If none keeps the promise with any noise: the reason of each.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.noise import choose, moment, swap_linear
    >>> data = np.array([[0.0], [1.0], [3.0], [7.0]])
    >>> choice = choose([moment(1.416666667, d=1), swap_linear(data, k=2)], eta=0.1)
    >>> choice.shifts.coupling, round(choice.noise.scale, 4)
    ('swap', 5.5833)
    """
    usable = _usable(candidates, promise)
    n_sampled = sum(not shifts.exact for shifts in usable.values())
    shared = None
    if n_sampled:
        if confidence is None:
            raise ValueError("sampled pairs need a confidence, as confidence=0.95")
        shared = 1 - (1 - probability("confidence", confidence, open_ends=True)) / n_sampled
    found, reasons = [], []
    for index, shifts in usable.items():
        own = None if shifts.exact else shared
        try:
            found.append(Choice(index, shifts, calibrate(shifts, eta, family, confidence=own), own))
        except ValueError as reason:
            reasons.append(f"{shifts.coupling}: {reason}")
    if not found:
        raise ValueError("no coupling keeps the promise; " + "; ".join(reasons))
    return min(found, key=lambda choice: choice.noise.rms(choice.shifts.d))


def most_promising(
    pilots: Sequence[Shifts],
    n_pairs: Sequence[int],
    eta: float,
    family: Callable[[float], Noise] = GaussianNoise,
    promise: Promise = "every",
    confidence: float | None = None,
) -> int:
    """Number of the candidate that should need the least noise once it is measured in full.

    Each pilot is read as if its pairs came again and again until there were as many as planned. Nothing is
    certified by it: the pairs that certify need another seed. Few pairs of many rows overrate the worst row, so
    give swaps at least some ten rounds.

    Parameters
    ----------
    pilots : sequence of Shifts
        Sampled ones, with few pairs, and exact ones.
    n_pairs : sequence of int
        Pairs a row that each sampled candidate would have in full; of exact ones not looked at.
    eta, family, promise, confidence
        As in `choose`; the level is not shared, since one of them will be measured.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If none of them keeps the promise with any noise: the reason of each.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.noise import Shifts, most_promising
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


def _usable(candidates: Sequence[Shifts], promise: Promise) -> dict[int, Shifts]:
    """Candidates that keep the promise, by number; for the average, exact ones as their average row."""
    one_of("promise", promise, ("every", "average"))
    if not candidates:
        raise ValueError("candidates must not be empty")
    if len({(shifts.d, shifts.norm, shifts.prior) for shifts in candidates}) > 1:
        raise ValueError("candidates must be of one statistic and game: their d, norm or prior differ")
    usable = {
        index: shifts.average() if promise == "average" and shifts.exact and shifts.records is None else shifts
        for index, shifts in enumerate(candidates)
        if (promise == "average" or shifts.promise == "every") and (shifts.exact or not shifts.mean_only)
    }
    if not usable:
        names = ", ".join(f"{shifts.coupling} ({shifts.promise})" for shifts in candidates)
        raise ValueError(f"no candidate promises {promise!r} with a certificate; got {names}")
    return usable


def _continued(shifts: Shifts, n_pairs: int) -> Shifts:
    """The pairs again and again, up to a number."""
    columns = np.arange(count("n_pairs", n_pairs)) % shifts.values.shape[1]
    return replace(shifts, values=shifts.values[:, columns])
