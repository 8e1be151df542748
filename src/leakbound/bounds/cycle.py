"""The distribution of (size of D, total of D) by its characteristic function, on a cycle of whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Complex, Float, Int

Array = np.ndarray

MOST_FREQUENCIES = 2**25  # of (size, total)
MOST_NUMBERS = 2**28  # of totals, for all distinct values
_TAIL = 42.0  # masses below e^-42 are folded
_DROPPED = -80.0  # characteristic functions below e^-80 are 0
_BLOCK = 1 << 21


@dataclass(frozen=True, eq=False)
class Cycle:
    """The characteristic function of the total of D, given its size, where it is not negligible.

    Each record is in D with probability q = ``prior``; with theta = 2 pi (j L/M + l v)/L its factor is
    ``1 - q + q e^{i theta}``, l the frequency of the total on a cycle of L numbers and j that of the size on a cycle
    of M (1 if the size is random). L is odd: then theta is never pi, and no factor is 0.
    """

    length: int
    row: Int[Array, " S"]
    column: Int[Array, " S"]
    # the product of all factors, over the probability of the size, but for a shift of the total
    value: Complex[Array, " S"]
    prior: float

    @classmethod
    def of(cls, distinct: Int[Array, " v"], counts: Int[Array, " v"], prior: float, k: int, spread: int) -> Cycle:
        """From distinct values and how many records have each; room for noise up to ``spread``.

        A fixed size k is a random size (its prior is k/n) on which the distribution is conditioned; 0 if the size is
        random.
        """
        length, n_sizes = lengths(distinct, counts, prior, k, spread)
        _affordable(length, n_sizes, len(distinct))
        level, phase = _factor(length, prior)
        order = np.argsort(-counts, kind="stable")
        row, column, size = _relevant_frequencies(distinct[order] % length, counts[order], level, n_sizes)
        turns, angle = np.zeros(len(row), dtype=np.int64), np.zeros(len(row))
        for value, count in zip(distinct.tolist(), counts.tolist(), strict=True):
            at, wraps = _position(row, column, value, length)
            turns += count * wraps
            angle += count * phase[at]
        # The characteristic function of the total about its mean: phases are reduced in whole turns, exactly, before
        # they become floating-point numbers.
        mean = Fraction(prior) * int(counts @ distinct)
        part = float(mean - mean.numerator // mean.denominator)  # the rest is a whole shift: nothing on a cycle
        angle += 2 * np.pi * (part * (column / length) - _fraction(prior, turns))
        product = np.exp(size + 1j * angle)
        chance = np.real(product[column == 0]).sum()
        return cls(length, row, column, product / chance, prior)

    def difference(self, value: int) -> Complex[Array, " F"]:
        """Characteristic function of ``pi P_in - (1 - pi) P_out`` for a record of this value.

        Its factor ``1 - q + q e^{i theta}`` is replaced by ``q e^{i theta} - (1 - q)``.
        """
        half = np.pi * _centred((self.row + self.column * (value % self.length)) % self.length, self.length)
        half /= self.length
        tilt = 2 * self.prior - 1
        replaced = self.value * (tilt + 1j * np.tan(half)) / (1 + 1j * tilt * np.tan(half))
        real, imag = (np.bincount(self.column, part, self.length // 2 + 1) for part in (replaced.real, replaced.imag))
        return real + 1j * imag

    def numbers(self, spectrum: Complex[Array, " F"]) -> Float[Array, " L"]:
        """Compute the function on the cycle with this characteristic function, in backward order."""
        return np.fft.irfft(spectrum, self.length)

    def transform(self, weights: Float[Array, " width"]) -> Complex[Array, " F"]:
        """Characteristic function of weights on -r ... r."""
        at = (np.arange(len(weights)) - len(weights) // 2) % self.length
        return np.conj(np.fft.rfft(np.bincount(at, weights, self.length)))


def lengths(distinct: Int[Array, " v"], counts: Int[Array, " v"], prior: float, k: int, spread: int) -> tuple[int, int]:
    """Count the totals and the sizes on the cycle of `Cycle.of`, before any other work is done."""
    n = int(counts.sum())
    n_sizes = _odd_length(min(n + 1, 2 + _bernstein(n * prior * (1 - prior), 1.0, _TAIL + np.log(n)))) if k else 1
    window = _window(distinct, counts, prior, k) + 2 * spread
    return n_sizes * _odd_length(-(-window // n_sizes)), n_sizes


def _affordable(length: int, n_sizes: int, n_distinct: int) -> None:
    """Refuses what would take more than about a gigabyte, or minutes."""
    coarser = "round the values to a coarser grid"
    if (n_numbers := n_sizes * (length // 2 + 1)) > MOST_FREQUENCIES:
        raise ValueError(
            f"a cycle of {length:,} totals has {n_numbers:,} frequencies; the limit is {MOST_FREQUENCIES:,}: {coarser}"
        )
    if (n_numbers := n_distinct * length) > MOST_NUMBERS:
        raise ValueError(
            f"{n_distinct:,} distinct values on a cycle of {length:,} totals are {n_numbers:,} numbers; the limit is "
            f"{MOST_NUMBERS:,}: {coarser}"
        )


def _window(distinct: Array, counts: Array, prior: float, k: int) -> int:
    """How many neighbouring totals hold all but e^-42 of the mass."""
    n = int(counts.sum())
    if not k:
        squares = float(counts @ distinct.astype(float) ** 2)
        largest = float(np.abs(distinct).max()) * max(prior, 1 - prior)
        bernstein = _bernstein(prior * (1 - prior) * squares, largest, _TAIL)
        hoeffding = int(np.sqrt((_TAIL + np.log(2)) * squares / 2)) + 1
        return int(min(1 + float(counts @ np.abs(distinct).astype(float)), 1 + 2 * min(bernstein, hoeffding)))
    ordered = np.repeat(distinct.astype(float), counts)  # ascending
    all_of_them = 1 + int(ordered[n - k :].sum() - ordered[:k].sum())
    drawn = min(k, n - k)  # the total of those out moves against that of those in
    deviation = ordered - ordered.mean()
    return min(all_of_them, 1 + 2 * _bernstein(drawn * float(deviation.var()), float(np.abs(deviation).max()), _TAIL))


def _bernstein(variance: float, largest: float, tail: float) -> int:
    """Distance from the mean that a sum passes with probability e^-tail at most, on either side.

    It holds for independent terms, and (Hoeffding 1963, theorem 4) for draws without replacement.
    """
    tail += float(np.log(2))
    slope = largest * tail / 3
    return int(slope + np.sqrt(slope**2 + 2 * variance * tail)) + 1


def _odd_length(least: int) -> int:
    """Find the smallest 3^a 5^b 7^c that is not below: odd, and fast for the transform."""
    best = 1
    while best < least:
        best *= 3
    powers_of_7 = (7**c for c in range(24))
    for start in (five * seven for seven in powers_of_7 for five in (5**b for b in range(28))):
        number = start
        while number < least:
            number *= 3
        best = min(best, number)
    return best


def _factor(length: int, prior: float) -> tuple[Float[Array, " L"], Float[Array, " L"]]:
    """Logarithm of ``|1 - q + q e^{i theta}|``, and its angle without q theta, at theta = 2 pi p/L for all p."""
    half = np.pi * _centred(np.arange(length), length) / length
    sine, cosine = np.sin(half), np.sin(np.pi / 2 - np.abs(half))
    tilt = 2 * prior - 1
    near_0 = np.log1p(-4 * prior * (1 - prior) * np.minimum(sine**2, 0.5))
    level = np.where(np.abs(half) <= np.pi / 4, near_0, np.log(cosine**2 + (tilt * sine) ** 2)) / 2
    return level, np.arctan2(tilt * sine, cosine) - tilt * half


def _relevant_frequencies(values: Array, counts: Array, level: Array, n_sizes: int) -> tuple[Array, Array, Array]:
    """Find the frequencies whose product is above e^-80, with its logarithm; the commonest values exclude most."""
    length = len(level)
    n_columns, step = length // 2 + 1, length // n_sizes
    blocks = []
    # Block by block: all frequencies at once may not fit into memory, and few of a block survive the first values.
    for start in range(0, n_sizes * n_columns, _BLOCK):
        flat = np.arange(start, min(start + _BLOCK, n_sizes * n_columns))
        row, column = flat // n_columns * step, flat % n_columns
        size = np.zeros(len(flat))
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            size += count * level[(row + column * value) % length]
            keep = size >= _DROPPED
            if not keep.all():
                row, column, size = row[keep], column[keep], size[keep]
        blocks.append((row, column, size))
    row, column, size = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return row, column, size


def _position(row: Array, column: Array, value: int, length: int) -> tuple[Array, Array]:
    """Compute theta L/(2 pi) on the cycle, and the number of whole turns."""
    at = (row + column * (value % length)) % length
    exact = row + column * value
    return at, (exact - _centred(at, length)) // length


def _centred(position: Array, length: int) -> Array:
    """From 0 ... L - 1 to -(L - 1)/2 ... (L - 1)/2."""
    return np.where(position > length // 2, position - length, position)


def _fraction(prior: float, turns: Int[Array, " S"]) -> Float[Array, " S"]:
    """``prior * turns`` modulo 1: the product with the leading 24 bits is exact up to 2^29 turns."""
    leading = float(np.float32(prior))
    return np.remainder(leading * turns, 1.0) + np.remainder((prior - leading) * turns, 1.0)
