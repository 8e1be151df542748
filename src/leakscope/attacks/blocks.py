"""Blocks of points: what an attack with references sees of a few points at a time.

Letters of the axes: B points of a block, M models, T targets, R references, J judged points, Z population.
The references of a target are all rows but the targets (fixed references) or all other rows (leave one
out). In both cases a reduction over the references is made once a point, over one array of R rows; with
leave one out each target's own row is then taken out of it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from leakscope.core.types import Game, NotApplicable, Signals

Array = np.ndarray
_ENTRIES = 1 << 18  # models x points of a block: a few arrays of that size stay in the cache


@dataclass(frozen=True, eq=False)
class Block:
    """Some points of a game; what it takes is point-major, a point's models are neighbours.

    Parameters
    ----------
    game : Game
    columns : slice or array
        Which points.
    place : slice
        Their place among all points that are looked at, for arrays of one number a point.
    """

    game: Game
    columns: slice | Int[Array, " B"]
    place: slice

    def targets(self, array: Shaped[Array, "M N ..."]) -> Shaped[Array, "B T ..."]:
        """An array of all models and points, of the targets at these points."""
        return self._take(array[: self.game.n_targets])

    def references(self, array: Shaped[Array, "M N ..."]) -> Shaped[Array, "B R ..."]:
        """The same of the references; with leave one out they are the targets."""
        return self._take(array[_first_reference(self.game) :])

    def left_out(self, inside: bool) -> Bool[Array, "B T"]:
        """Whether a target's own row is among the references with (without) a point and must be taken out."""
        member = self.targets(self.game.member)
        if not self.game.leave_one_out:
            return np.zeros_like(member)
        return member if inside else ~member

    @property
    def judged(self) -> Bool[Array, "B t"]:
        """Whether the guess of a target (of all targets, t = 1) counts."""
        return np.atleast_2d(self.game.judged)[:, self.columns].T

    def _take(self, array: Shaped[Array, "m N ..."]) -> Shaped[Array, "B m ..."]:
        taken = array.swapaxes(0, 1)[self.columns]
        return taken if taken.strides[1] <= taken.strides[0] else np.ascontiguousarray(taken)


def judged_points(game: Game) -> Int[Array, " U"]:
    """Numbers of the points that some target judges."""
    return np.flatnonzero(np.atleast_2d(game.judged).any(axis=0))


def blocks(game: Game, points: Int[Array, " U"], n_rows: int) -> Iterator[Block]:
    """The points a block at a time, small enough that work on ``n_rows`` models at them stays in the cache."""
    size = max(1, _ENTRIES // n_rows)
    for start in range(0, len(points), size):
        part = points[start : start + size]
        run = part[-1] - part[0] + 1 == len(part)  # a run of numbers, as a slice, makes no copy
        columns = slice(int(part[0]), int(part[-1]) + 1) if run else part
        yield Block(game, columns, slice(start, start + len(part)))


def judge(
    game: Game, dtype: np.dtype, score: Callable[[Block], Float[Array, "B T"]], n_rows: int
) -> Float[Array, "T J"]:
    """Score the judged points block by block into one point-major array.

    Parameters
    ----------
    game : Game
    dtype : dtype
        Of the result.
    score : callable
        Scores of all targets at the points of a block; those that a target does not judge are dropped.
    n_rows : int
        Models that the score looks at.
    """
    out = np.empty((game.n_judged, game.n_targets), dtype=dtype)
    filled = np.zeros(game.n_targets, dtype=np.intp)
    for block in blocks(game, judged_points(game), n_rows):
        value = score(block)
        if game.judged.ndim == 1:
            out[block.place] = value
            continue
        rank = filled + np.cumsum(block.judged, axis=0) - 1
        point, target = np.nonzero(block.judged)
        out[rank[point, target], target] = value[point, target]
        filled = rank[-1] + 1
    return out.T


def require_references(signals: Signals, *, without: bool = False, both: bool = False, least: int = 2) -> None:
    """Refuse games with too few references, or whose references never lack (never differ in) a judged point.

    Raises
    ------
    NotApplicable
        With the reason that the report prints.
    """
    game = signals.game
    if game.n_references < least:
        models = "reference model" if least == 1 else "reference models"
        raise NotApplicable(f"needs at least {least} {models}, and there are {game.n_references}")

    def members() -> Iterator[Bool[Array, "B R"]]:
        return (block.references(game.member) for block in blocks(game, judged_points(game), game.n_models))

    if without and all(member.all() for member in members()):
        raise NotApplicable("needs reference models without a judged point, and there are none")
    if both and not any((member.any(axis=1) & ~member.all(axis=1)).any() for member in members()):
        raise NotApplicable("needs reference models with and without the same judged point, and there are none")


def _first_reference(game: Game) -> int:
    return 0 if game.leave_one_out else game.n_targets


def log_mean_exp(values: Float[Array, "B R"], chosen: Bool[Array, "B R"], leave_one_out: bool) -> Float[Array, "B t"]:
    """Logarithm of the mean of exp(value) over the chosen references of each target, in float64.

    Parameters
    ----------
    values : array of shape (B, R)
    chosen : bool array of shape (B, R)
    leave_one_out : bool
        The columns are targets too, and each is taken out of its own mean.

    Returns
    -------
    array of shape (B, 1), or (B, R) with leave one out
        Rounded to 1e-10 nats, or the last digits would tell which sum was made and so who was in; -inf
        where no reference is left.
    """
    hidden = np.array(values, dtype=np.float64)
    hidden[~chosen] = -np.inf
    log_sum, share = _log_sum_exp(hidden)
    n = chosen.sum(axis=1, keepdims=True)
    if leave_one_out:
        rest = log_sum + np.log1p(-np.minimum(share, 0.5))
        # A row with more than half of the sum (at most one a point) is left out before the sum is made: the
        # difference of two near numbers would have no digits.
        point, row = np.nonzero(share > 0.5)
        others = hidden[point]
        others[np.arange(len(row)), row] = -np.inf
        rest[point, row] = _log_sum_exp(others)[0][:, 0]
        log_sum, n = rest, n - chosen
    return np.where(n > 0, np.round(log_sum - np.log(np.maximum(n, 1)), 10), -np.inf)


def _log_sum_exp(values: Float[Array, "b R"]) -> tuple[Float[Array, "b 1"], Float[Array, "b R"]]:
    """Log of the sum of exp along the rows, and the share of each term in its sum."""
    top = values.max(axis=1, keepdims=True)
    shift = np.where(np.isfinite(top), top, 0)
    terms = np.exp(values - shift)
    total = terms.sum(axis=1, keepdims=True)
    empty = total == 0
    log_sum = np.where(empty, -np.inf, shift + np.log(total + empty))
    return log_sum, terms / (total + empty)
