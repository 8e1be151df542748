"""Blocks of points: attacks with references work on a few points at a time, which stay in the cache.

The references of a target are all rows but the targets (fixed references), or all other rows (leave one out). In both
cases a reduction over the references is computed once for each point, over one array of R rows; with leave one out each
target's own row is then taken out of it again.

Axes: B points of a block, M models, T targets, R references, J target points, U points that are target points of some
target, Z population.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from numpy.typing import DTypeLike

from leakbound.core.on_disk import empty_beside
from leakbound.core.types import Game, NotApplicable, Signals

Array = np.ndarray
_ENTRIES = 1 << 17  # models x points of a block: a few arrays of that size stay in the cache
_VANISHING = 1e-280  # sums below have lost digits, or soon would


@dataclass(frozen=True, eq=False)
class Block:
    """Some points of a game; arrays are returned point-major: the models of a point are neighbours in memory."""

    game: Game
    columns: slice | Int[Array, " B"]
    place: slice  # among all points that are iterated over

    def targets(self, array: Shaped[Array, "M N ..."]) -> Shaped[Array, "B T ..."]:
        """Take from an array of all models and points the rows of the targets at these points."""
        return self._take(array[: self.game.n_targets])

    def references(self, array: Shaped[Array, "M N ..."]) -> Shaped[Array, "B R ..."]:
        """Take from an array of all models and points the rows of the references; with leave one out, of all."""
        first = 0 if self.game.leave_one_out else self.game.n_targets
        return self._take(array[first:])

    def left_out(self, inside: bool) -> Bool[Array, "B T"]:
        """Tell where a target's own row is one of the references with (without) the point and must be taken out."""
        member = self.targets(self.game.member)
        if not self.game.leave_one_out:
            return np.zeros_like(member)
        return member if inside else ~member

    @property
    def is_target(self) -> Bool[Array, "B t"]:
        """Whether a point is a target point of each target; t = 1 where that is the same for all of them."""
        return np.atleast_2d(self.game.is_target_point)[:, self.columns].T

    def _take(self, array: Shaped[Array, "m N ..."]) -> Shaped[Array, "B m ..."]:
        columns = array.swapaxes(0, 1)[self.columns]
        return columns if columns.strides[1] <= columns.strides[0] else np.ascontiguousarray(columns)


def all_target_points(game: Game) -> Int[Array, " U"]:
    """Return the indices of the points that are target points of some target."""
    return np.flatnonzero(np.atleast_2d(game.is_target_point).any(axis=0))


def blocks(game: Game, points: Int[Array, " U"], n_rows: int) -> Iterator[Block]:
    """Split the points into blocks, small enough that work on ``n_rows`` models at them stays in the cache."""
    size = max(1, _ENTRIES // n_rows)
    for start in range(0, len(points), size):
        part = points[start : start + size]
        is_range = part[-1] - part[0] + 1 == len(part)  # a slice makes no copy
        columns = slice(int(part[0]), int(part[-1]) + 1) if is_range else part
        yield Block(game, columns, slice(start, start + len(part)))


def empty_scores(game: Game, signal: Array, dtype: DTypeLike) -> Float[Array, "T J"]:
    """Make an array for the scores of the target points, on disk where the signal is."""
    return empty_beside(signal, (game.n_targets, game.n_target_points), dtype)


def score_points(
    game: Game,
    signal: Array,
    score: Callable[[Block], Float[Array, "B T"]],
    n_rows: int,
    dtype: DTypeLike | None = None,
) -> Float[Array, "T J"]:
    """Score the target points block by block; in the dtype of the signal unless given."""
    scores = empty_scores(game, signal, signal.dtype if dtype is None else dtype)
    n_filled = np.zeros(game.n_targets, dtype=np.intp)
    for block in blocks(game, all_target_points(game), n_rows):
        value = score(block)
        if game.is_target_point.ndim == 1:
            scores[:, block.place] = value.T
            continue
        # Every target has target points of its own: count where among them each point of the block comes.
        rank = n_filled + np.cumsum(block.is_target, axis=0) - 1
        point, target = np.nonzero(block.is_target)
        scores[target, rank[point, target]] = value[point, target]
        n_filled = rank[-1] + 1
    return scores


def require_references(
    signals: Signals, *, without: bool = False, including: bool = False, both: bool = False, least: int = 2
) -> None:
    """Refuse games with too few references, or whose references never lack (have, differ in) a target point."""
    game = signals.game
    if game.n_references < least:
        if least == 1:
            raise NotApplicable("no_reference", n=game.n_references)
        raise NotApplicable("few_references", fewest=least, n=game.n_references)

    def members() -> Iterator[Bool[Array, "B R"]]:
        return (block.references(game.member) for block in blocks(game, all_target_points(game), game.n_models))

    if without and all(member.all() for member in members()):
        raise NotApplicable("no_reference_without")
    if including and not any(member.any() for member in members()):
        raise NotApplicable("no_reference_with")
    if both and not any((member.any(axis=1) & ~member.all(axis=1)).any() for member in members()):
        raise NotApplicable("no_reference_of_both")


def log_mean_exp(values: Float[Array, "B R"], chosen: Bool[Array, "B R"], leave_one_out: bool) -> Float[Array, "B t"]:
    """Compute the logarithm of the mean of exp(value) over the chosen references of each target, in float64."""
    log_p = np.array(values, dtype=np.float64)
    n = np.count_nonzero(chosen, axis=1, keepdims=True)
    terms, shift = _scaled_terms(log_p, chosen)
    total = terms.sum(axis=1, keepdims=True)
    if not leave_one_out:
        return _rounded_log_mean(total, n, shift)

    # A row with more than half of the sum (at most one for each point) is left out before the summation: the
    # difference of two nearly equal numbers would have no digits.
    point = np.flatnonzero(terms.max(axis=1, keepdims=True) > total / 2)
    row = terms[point].argmax(axis=1)
    rest = chosen[point]
    rest[np.arange(len(row)), row] = False
    rest_terms, rest_shift = _scaled_terms(log_p[point], rest)
    n_rest = np.count_nonzero(rest, axis=1, keepdims=True)
    log_mean_of_rest = _rounded_log_mean(rest_terms.sum(axis=1, keepdims=True), n_rest, rest_shift)

    others = np.subtract(total, terms, out=terms)
    log_mean = _rounded_log_mean(others, np.subtract(n, chosen, dtype=np.float64), shift)
    log_mean[point, row] = log_mean_of_rest[:, 0]
    return log_mean


def _rounded_log_mean(
    total: Float[Array, "b r"], n: Int[Array, "b r"] | Float[Array, "b r"], shift: Float[Array, "b 1"]
) -> Float[Array, "b r"]:
    """Compute ``log(total / n) + shift`` in place, rounded; -inf where n is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0, and what is replaced later
        total /= n
        np.log(total, out=total)
    total += shift
    np.round(total, 10, out=total)
    total[n == 0] = -np.inf
    return total


def _scaled_terms(
    log_p: Float[Array, "B R"], chosen: Bool[Array, "B R"]
) -> tuple[Float[Array, "B R"], Float[Array, "B 1"]]:
    """Compute ``exp(log_p - shift)`` of the chosen references, 0 of the others, and the shift.

    A product with the mask takes a tenth of the time of a copy by the mask or of the exponentials of -inf. The shift is
    the largest value of all references; where the chosen ones vanish compared with it, their own largest value.
    """
    shift = log_p.max(axis=1, keepdims=True)
    terms = np.subtract(log_p, shift)
    np.exp(terms, out=terms)
    terms *= chosen
    vanish = np.flatnonzero((terms.max(axis=1) < _VANISHING) & chosen.any(axis=1))
    kept = np.where(chosen[vanish], log_p[vanish], -np.inf)
    shift[vanish] = kept.max(axis=1, keepdims=True)
    terms[vanish] = np.exp(kept - shift[vanish])
    return terms, shift
