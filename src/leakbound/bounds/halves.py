"""Every half of a set at once: sums over all C(2n, n) halves by meeting in the middle.

The probability of an output w is a product over the records, ``P_D(w) = exp(-sum_{i in D} c_iw)/Z_D``. Cut the 2n
records into two of n. A half D of all records is a part a of the one and a part b of the other, and with
``A_aw = exp(-sum_{i in a} c_iw)``, ``B_bw`` alike,

    1/Z_ab = 1/(A B^T)_ab      sum_b P_ab(w) = A_aw (Z^-1 B)_aw      sum_a P_ab(w) = B_bw (Z^-T A)_bw:

three matrix products and one division for each half, no exponential and no loop over halves. What is left
to do, the sum over the a that hold a record, is over 2^n rows only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

Array = np.ndarray

# Halves with up to 32 outputs: in all; where exponents leave the range of floating point, an exp for each; in double
# precision where single would do.
MOST, MOST_BY_LOGARITHMS, _MOST_IN_DOUBLE = math.comb(36, 18), math.comb(26, 13), math.comb(32, 16)
_TILE = 512  # parts a by parts b: the length of every sum that is made in single precision
# A term below the least float is lost; it is below e^-100 (double) or e^-27 (single) of its sum where the exponents
# of a part spread by no more than this.
_SPREAD = {np.float64: 600.0, np.float32: 60.0}


def log_odds(exponent: Float[Array, "N W"]) -> Float[Array, "N W"]:
    """Posterior log-odds of each record's membership, given each output of the exponential mechanism.

    ``ln (sum_{D with i} P_D(w) / sum_{D without i} P_D(w))`` over all halves D of the records, where ``P_D(w)``
    is proportional to ``exp(-sum_{i in D} exponent[i, w])``: the logarithm of Lowy et al. (2024), proposition
    9. Sums of positive terms, in double precision to 32 records; for 34 and 36 in single precision with
    double-precision totals, where a result is off by at most ``2 (_TILE + W + 8) 2^-24`` (7e-5 for 32 outputs)
    and in practice by 1e-7. Exponents that spread too far for floating point are summed as logarithms.

    >>> log_odds(np.array([[0.0, 1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])).round(4)[0].tolist()
    [0.3799, -0.6201]
    """
    n, n_outputs = len(exponent) // 2, exponent.shape[1]
    if not countable(n, n_outputs, MOST):
        raise ValueError(_too_many(n, n_outputs, MOST, ""))
    centred, log_weight = _centred(exponent)
    first, second = _parts(centred)
    spread = max(a.spread + b.spread for a, b in zip(first, second, strict=True))
    if spread > _SPREAD[np.float64] and not countable(n, n_outputs, MOST_BY_LOGARITHMS):
        reason = f" and exponents that spread by {spread:,.0f}"
        raise ValueError(_too_many(n, n_outputs, MOST_BY_LOGARITHMS, reason))
    if spread > _SPREAD[np.float64]:  # the weights of halves would overflow
        inside, outside = _log_totals(first, second, log_weight)
        rounding = 1e-14 * (spread + float(np.ptp(log_weight)))
    else:
        double = countable(n, n_outputs, _MOST_IN_DOUBLE) or spread > _SPREAD[np.float32]
        dtype = np.float64 if double else np.float32
        weight = np.exp(np.where(log_weight > -spread - 45, log_weight, -np.inf))  # less is below rounding in Z
        inside, outside = np.log(_totals(first, second, weight, dtype))
        rounding = (_TILE + n_outputs + 8) * float(np.finfo(dtype).eps) + 1e-14 * float(np.ptp(log_weight))
    check_total(inside + log_weight, outside + log_weight, rounding)
    return inside - outside


def countable(n: int, n_outputs: int, most: int) -> bool:
    """Whether C(2n, n) halves are at most so many with 32 outputs, in proportion fewer with more outputs.

    >>> countable(18, 32, MOST), countable(18, 33, MOST), countable(19, 2, MOST)
    (True, False, False)
    """
    return math.comb(2 * n, n) <= _most(n_outputs, most)


def check_total(inside: Float[Array, "N W"], outside: Float[Array, "N W"], tolerance: float) -> None:
    """Check the invariant of the sums: over all outputs, each record is in C(2n-1, n) halves and out of as many.

    >>> check_total(np.log([[0.2, 0.8], [0.6, 0.4]]), np.log([[0.6, 0.4], [0.2, 0.8]]), 1e-15)
    """
    n = len(inside) // 2
    expected = math.log(math.comb(2 * n - 1, n))
    error = float(np.abs(np.expm1(_log_sum(np.stack([inside, outside]), axis=2) - expected)).max())
    if not error <= tolerance:
        raise ArithmeticError(
            f"the probabilities of the outputs sum to 1 within {error:.1e} only; at most {tolerance:.1e} is allowed"
        )


@dataclass(frozen=True, eq=False)
class _Parts:
    """All subsets of one size of n records, and the sums of their exponents."""

    member: Bool[Array, "a n"]
    log: Float[Array, "a W"]  # -sum of exponents
    spread: float  # how far apart two outputs of a subset lie

    @property
    def scaled(self) -> Float[Array, "a W"]:
        """Compute exp of the sums, scaled to a largest entry of 1 in each row."""
        shifted = self.log - self.log.max(axis=1, keepdims=True)
        return np.exp(shifted, out=shifted)


def _parts(exponent: Float[Array, "N W"]) -> tuple[list[_Parts], list[_Parts]]:
    """Return the subsets of the first n records by size, and those of the others that complete them to n."""
    n = len(exponent) // 2
    member = (np.arange(2**n, dtype=np.uint32)[:, None] >> np.arange(n, dtype=np.uint32)) & 1 == 1
    size = member.sum(axis=1)
    member = member[np.argsort(size, kind="stable")]
    ends = np.cumsum(np.bincount(size)).tolist()
    pieces = [slice(end - math.comb(n, k), end) for k, end in enumerate(ends)]
    both = []
    for part in (exponent[:n], exponent[n:]):
        log = member @ -part
        spread = log.max(axis=1) - log.min(axis=1)
        both.append([_Parts(member[rows], log[rows], float(spread[rows].max())) for rows in pieces])
    return both[0], both[1][::-1]


def _totals(first: list[_Parts], second: list[_Parts], weight: Array, dtype: type) -> Float[Array, "2 N W"]:
    """Sum P_D(w) over the halves with and without each record, over the weight of w."""
    n = len(first) - 1
    totals = np.zeros((2, 2, n, len(weight)))
    tile = np.empty(_TILE**2, dtype)  # one for all: fresh pages would take as long as the products
    for pair in zip(first, second, strict=True):
        scaled = [parts.scaled for parts in pair]
        products = _products(scaled[0], scaled[1], weight, tile)
        for total, parts, scaled_part, sums in zip(totals, pair, scaled, products, strict=True):
            sides = np.stack([parts.member, ~parts.member]).transpose(0, 2, 1)
            total += sides.astype(float) @ (scaled_part * sums)
    return np.concatenate(totals, axis=1)  # of the first n records, and of the others


def _products(first: Array, second: Array, weight: Array, tile: Array) -> tuple[Array, Array]:
    """Compute the three products, tile by tile in its precision; totals in double precision."""
    by_first, by_second = np.zeros(first.shape), np.zeros(second.shape)
    first, second, weighted = (part.astype(tile.dtype, copy=False) for part in (first, second, first * weight))
    for rows in _tiles(len(first)):
        for columns in _tiles(len(second)):
            a, b = first[rows], second[columns]
            inverse = np.matmul(weighted[rows], b.T, out=tile[: len(a) * len(b)].reshape(len(a), len(b)))
            np.reciprocal(inverse, out=inverse)
            by_first[rows] += inverse @ b
            by_second[columns] += inverse.T @ a
    return by_first, by_second


def _log_totals(first: list[_Parts], second: list[_Parts], log_weight: Array) -> Float[Array, "2 N W"]:
    """Logarithms of the same sums, in logarithms throughout."""
    totals = [np.full((2, parts[0].member.shape[1], len(log_weight)), -np.inf) for parts in (first, second)]
    for pair in zip(first, second, strict=True):
        for total, parts, sums in zip(totals, pair, _log_products(pair[0].log, pair[1].log, log_weight), strict=True):
            for side, member in zip(total, (parts.member, ~parts.member), strict=True):
                for log, held in zip(side, member.T, strict=True):
                    np.logaddexp(log, np.logaddexp.reduce(sums[held], axis=0, initial=-np.inf), out=log)
    return np.concatenate(totals, axis=1)


def _log_products(first: Array, second: Array, log_weight: Array) -> tuple[Array, Array]:
    """Combine the three products and the parts to ln sum_b P_ab(w) and ln sum_a P_ab(w)."""
    by_first, by_second = np.full(first.shape, -np.inf), np.full(second.shape, -np.inf)
    step = max(1, 2**20 // second.size)
    for start in range(0, len(first), step):
        rows = slice(start, start + step)
        log = first[rows, None, :] + second[None, :, :]
        log -= _log_sum(log + log_weight, axis=2)[:, :, None]
        by_first[rows] = _log_sum(log, axis=1)
        by_second = np.logaddexp(by_second, _log_sum(log, axis=0))
    return by_first, by_second


def _log_sum(log: Array, axis: int) -> Array:
    """Compute ln of the sum of exponentials of finite numbers: twice as fast as scipy, which takes infinities too."""
    top = log.max(axis=axis, keepdims=True)
    return np.log(np.exp(log - top).sum(axis=axis)) + top.squeeze(axis)


def _centred(exponent: Float[Array, "N W"]) -> tuple[Float[Array, "N W"], Float[Array, " W"]]:
    """Exponents with the means of rows and columns taken out, and what the columns leave: ln of a weight of w.

    A constant of a record cancels in P_D(w). A constant of an output is the same for every half; it enters Z_D
    only, so that an output that is everywhere improbable does not stretch the range of the sums.
    """
    centred = exponent - exponent.mean(axis=1, keepdims=True)
    column = centred.mean(axis=0)
    log_weight = -len(exponent) / 2 * column
    return centred - column, log_weight - log_weight.max()


def _tiles(n: int) -> Iterator[slice]:
    return (slice(start, start + _TILE) for start in range(0, n, _TILE))


def _most(n_outputs: int, most: int) -> int:
    return most * 32 // max(32, n_outputs)


def _too_many(n: int, n_outputs: int, most: int, reason: str) -> str:
    return (
        f"{math.comb(2 * n, n):,} halves are too many for method='exact' with {n_outputs:,} outputs{reason}: at most "
        f"{_most(n_outputs, most):,}; use method='sampled'"
    )
