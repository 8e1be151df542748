"""The scores of an attack in ascending order: they are sorted once, and every metric reads this.

The rank of a score is the number of scores below it, so that tied scores have one rank. Of each model the ranks of its
non-members are kept, and those of its members, each in ascending order. A threshold is a rank, and how many scores of a
model it calls members is found by a search. Work on all scores goes through the ranks piece by piece; where the scores
are a memmap, what is kept here is one, too.

Axes: R models, J records, n = R J scores, C = 2 R columns (the non-members and the members of each model), K ranks, b
ranks of a piece.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Integer, UInt
from scipy.special import ndtri

from leakbound.core.on_disk import empty_beside

Array = np.ndarray
PIECE = 1 << 16  # ranks that are looked at at once, which stay in the cache,
PIECE_OF_MODEL = 1 << 11  # and so many for each model at least
PIECES_AT_ONCE = 16  # whose scores are shifted and sorted together; more are taken range by range
ROUNDING = 1e-12  # of a sum of weights, relative to that of their absolute values
FEW_TIED = 8  # scores that are equal by chance: the end of their tie is near
_NO_SCORE = np.iinfo(np.int64).min // 2


class _Areas(NamedTuple):
    """What the scores of each model say by themselves."""

    auc: Float[Array, " R"]
    precision: Float[Array, "2 R"]  # of non-members, with the lowest scores first, and of members


class RankedScores:
    """The scores of some models, sorted.

    >>> scores = RankedScores(np.array([[0.5, 0.1, 0.5]]), np.array([[True, False, False]]))
    >>> [column.tolist() for column in scores.columns]
    [[0, 1], [1]]
    >>> scores.members.at_least(0.5), scores.others.above(0.5)
    (1, 0)
    """

    def __init__(self, value: Float[Array, "R J"], member: Bool[Array, "R J"], piece: int = 0) -> None:
        self.n_models, self.n_records = value.shape
        self.n = value.size
        n_members = np.count_nonzero(member, axis=1)
        self.n_of_class: Int[Array, "R 2"] = np.stack([self.n_records - n_members, n_members], axis=1)
        dtype = value.dtype if value.dtype.kind == "f" else np.dtype(np.float64)
        self.ascending: Float[Array, " n"] = empty_beside(value, (self.n,), dtype)
        self.ascending.reshape(value.shape)[:] = value
        self.ascending.sort()
        # whether a score differs from the one before it: only then a score has this rank
        self._is_first: Bool[Array, " m"] = empty_beside(value, (self.n + 1,), bool)
        self._is_first[[0, -1]] = True
        np.not_equal(self.ascending[1:], self.ascending[:-1], out=self._is_first[1:-1])
        piece = piece or max(PIECE, PIECE_OF_MODEL * self.n_models)
        self.edges = [*range(0, self.n, piece), self.n]
        self.columns = self._ranks(value, member)

    def _ranks(self, value: Float[Array, "R J"], member: Bool[Array, "R J"]) -> list[UInt[Array, " k"]]:
        """Rank the scores of each model and class, which are searched piece by piece."""
        rank = empty_beside(value, value.shape, np.uint32 if self.n < 2**32 else np.uint64)
        columns: list[UInt[Array, " k"]] = []
        pieces = [self.ascending[first:last] for first, last in pairwise(self.edges)]
        bounds = np.array([piece[0] for piece in pieces[1:]], dtype=self.ascending.dtype)
        for model in range(self.n_models):
            score, is_member = np.asarray(value[model]), np.asarray(member[model])
            places = np.split(rank[model], [np.count_nonzero(~is_member)])
            for place, chosen in zip(places, (~is_member, is_member), strict=True):
                ascending = np.sort(score[chosen])
                # what is tied with the first score of a piece is searched in the piece before, where the tie may begin
                splits = [0, *np.searchsorted(ascending, bounds, "right").tolist(), len(ascending)]
                for first, piece, (start, stop) in zip(self.edges, pieces, pairwise(splits), strict=False):
                    place[start:stop] = np.searchsorted(piece, ascending[start:stop]) + first
                columns.append(place)
        return columns

    @cached_property
    def others(self) -> Ranked:
        """The scores of non-members."""
        return Ranked(self.ascending, self._sorted_class(0))

    @cached_property
    def members(self) -> Ranked:
        """The scores of members."""
        return Ranked(self.ascending, self._sorted_class(1))

    def _sorted_class(self, side: int) -> UInt[Array, " k"]:
        rank = empty_beside(self.ascending, (int(self.n_of_class[:, side].sum()),), self.columns[0].dtype)
        np.concatenate(self.columns[side::2], out=rank)
        rank.sort()
        return rank

    def called(self, rank: Integer[Array, " K"]) -> Int[Array, "K R 2"]:
        """Count the scores of each model and class from a rank on."""
        sought = rank.astype(self.columns[0].dtype)  # of one type, so that no column is copied
        called = [len(column) - np.searchsorted(column, sought) for column in self.columns]
        return np.stack(called, axis=1).reshape(len(rank), self.n_models, 2)

    def called_at(self, thresholds: Float[Array, " R"]) -> Int[Array, "R 2"]:
        """Count the scores of each model and class that are at least the threshold of the model."""
        distinct, which = np.unique(thresholds, return_inverse=True)
        rank = np.array([rank_of(self.ascending, threshold) for threshold in distinct.tolist()])
        return self.called(rank)[which.ravel(), np.arange(self.n_models)]

    def distinct(self, most: int) -> Float[Array, " s"] | None:
        """Return the different scores; None if they are more than ``most``."""
        found, n_found = [], 0
        for piece in range(len(self.edges) - 1):
            is_first = self._is_first[self.edges[piece] : self.edges[piece + 1]]
            n_found += int(np.count_nonzero(is_first))
            if n_found > most:
                return None
            found.append(self.ascending[self.edges[piece] : self.edges[piece + 1]][is_first])
        return np.concatenate(found)

    def best_threshold(self, weight: Float[Array, "R 2"]) -> float:
        """Find the threshold that calls scores with the largest sum of weights, by model and class.

        Sums of the same weights in another order are equal to rounding; of equal ones the largest threshold is taken,
        infinity (nobody is called) included.
        """
        rounding = ROUNDING * float(np.abs(weight * self.n_of_class).sum())
        largest = np.array([self._gain(weight, piece).max() for piece in range(len(self.edges) - 1)])
        least = max(float(largest.max()), 0.0) - rounding
        if least <= 0:
            return math.inf
        piece = int(np.flatnonzero(largest >= least)[-1])
        gain = self._gain(weight, piece)
        return float(self.ascending[self.edges[piece] + int(np.flatnonzero(gain >= least)[-1])])

    def held_out_thresholds(self) -> Float[Array, " R"]:
        """For each model the threshold with the most members less non-members of all other models.

        What the others gain is what all gain less what the model's own scores gain; the latter is constant between two
        of its own ranks, so that the best threshold of each such stretch is where all gain most. Time O(n R).
        """
        threshold, most = np.full(self.n_models, math.inf), np.zeros(self.n_models, dtype=np.int64)
        sign = np.tile([-1, 1], (self.n_models, 1))
        for piece in reversed(range(len(self.edges) - 1)):
            first, gain = self.edges[piece], self._whole_gain(sign, piece)
            for model in range(self.n_models):
                place, best = self._best_of_others(model, piece, gain)
                if best > most[model]:  # of equal gains the largest threshold
                    most[model], threshold[model] = best, self.ascending[first + place]
        return threshold

    def _best_of_others(self, model: int, piece: int, gain: Int[Array, " b"]) -> tuple[int, int]:
        """Return the rank in a piece with the largest gain of the other models, and that gain."""
        others, members = (self._slice(2 * model + side, piece) for side in (0, 1))
        # a stretch begins at the start of the piece, and after each of the model's own ranks
        own = np.sort(np.concatenate([others, members])).astype(np.int64)
        start = np.concatenate([[0], own[np.diff(own, append=len(gain)) > 0] + 1])  # the last one of each tie
        start = start[start < len(gain)]
        n_own = [len(side) - np.searchsorted(side, start.astype(side.dtype)) for side in (others, members)]
        own_above = self._gain_above(np.array([[-1, 1]]), piece, [2 * model, 2 * model + 1])
        own_gain = n_own[1] - n_own[0] + own_above
        largest = np.maximum.reduceat(gain, start)
        of_others = largest - own_gain
        best = of_others.max()
        place = int(np.flatnonzero(of_others == best)[-1])
        stop = int(start[place + 1]) if place + 1 < len(start) else len(gain)
        inner = gain[start[place] : stop]
        return int(start[place]) + int(np.flatnonzero(inner == largest[place])[-1]), int(best)

    def _whole_gain(self, sign: Int[Array, "R 2"], piece: int) -> Int[Array, " b"]:
        """Members less non-members from each rank of a piece on."""
        gain = self._gain(sign.astype(np.float64), piece)
        gain[gain == -math.inf] = _NO_SCORE
        return gain.astype(np.int64)  # sums of whole numbers are exact

    def _gain(self, weight: Float[Array, "R 2"], piece: int) -> Float[Array, " b"]:
        """Sum of the weights from each rank of a piece on; minus infinity at ranks that no score has."""
        gain = np.zeros(self.edges[piece + 1] - self.edges[piece])
        for column, of_each in enumerate(weight.ravel().tolist()):
            if of_each != 0:
                np.add.at(gain, self._slice(column, piece), of_each)
        gain = np.cumsum(gain[::-1])[::-1] + self._gain_above(weight, piece, range(len(self.columns)))
        gain[~self._is_first[self.edges[piece] : self.edges[piece + 1]]] = -math.inf
        return gain

    def _gain_above(self, weight: Array, piece: int, columns: list[int] | range) -> float:
        """Sum of the weights above a piece."""
        n_above = [len(self.columns[column]) - self._splits[column, piece + 1] for column in columns]
        return np.dot(weight.ravel(), n_above)

    def _slice(self, column: int, piece: int) -> UInt[Array, " k"]:
        """Ranks of a column in a piece, from its first one on."""
        start, stop = self._splits[column, piece : piece + 2]
        part = self.columns[column][start:stop]
        return part - part.dtype.type(self.edges[piece])

    @cached_property
    def _splits(self) -> Int[Array, "C P"]:
        """Where each piece begins in each column."""
        edges = np.array(self.edges).astype(self.columns[0].dtype)
        return np.stack([np.searchsorted(column, edges) for column in self.columns])

    def normal_scores(self, rank: UInt[Array, " k"]) -> Float[Array, " k"]:
        """Return the normal quantiles of the mid-ranks of all scores together."""
        first = rank.astype(np.int64)
        end = first + 1
        tied = np.flatnonzero(~self._is_first[end])
        for _ in range(FEW_TIED):
            end[tied] += 1
            tied = tied[~self._is_first[end[tied]]]
        end[tied] = np.searchsorted(self.ascending, self.ascending[first[tied]], "right")
        return ndtri((first + end) / (2 * self.n))

    @cached_property
    def _normal_scores(self) -> Float[Array, " n"]:
        """The normal scores of all columns, one column after the other."""
        return self.normal_scores(np.concatenate(self.columns))

    def largest_gain_if_shifted(self, offset: Float[Array, " R"], weight: Float[Array, "R 2"]) -> float:
        """Return the largest sum of weights that a threshold calls if the normal scores of each model were shifted."""
        most = above = 0.0
        for parts in self._shifted_pieces(np.repeat(offset, 2)):
            score = np.concatenate(parts)
            weights = np.repeat(weight.ravel(), [len(part) for part in parts])
            place = np.searchsorted(np.sort(score), score)
            gain = np.cumsum(np.bincount(place, weights, len(score))[::-1])
            # at a place that no score has, the sum is that of the next score above
            most = max(most, above + float(gain.max()))
            above += float(gain[-1])
        return most

    def _shifted_pieces(self, offset: Float[Array, " C"]) -> Iterator[list[Float[Array, " k"]]]:
        """Yield the shifted normal scores of all columns, range by range from the highest down."""

        def shifted(column: int, part: slice | Int[Array, " k"]) -> Float[Array, " k"]:
            return self.normal_scores(self.columns[column][part]) + offset[column]

        columns = range(len(self.columns))
        if len(self.edges) <= PIECES_AT_ONCE:
            lengths = [len(column) for column in self.columns]
            yield np.split(self._normal_scores + np.repeat(offset, lengths), np.cumsum(lengths)[:-1])
            return
        piece = self.edges[1]
        # a piece of the sampled scores stands for about as many scores as a piece of ranks has
        step = max(1, piece // (4 * len(columns)))
        sample = np.sort(np.concatenate([shifted(column, slice(None, None, step)) for column in columns]))
        edges = np.unique(sample[:: max(1, piece // step)])[1:]
        splits = []
        for column in columns:
            n = len(self.columns[column])
            inner = _first_at_least(edges, n, lambda place, column=column: shifted(column, place))
            splits.append([0, *inner.tolist(), n])
        for place in reversed(range(len(edges) + 1)):
            parts = [shifted(column, slice(*splits[column][place : place + 2])) for column in columns]
            if any(map(len, parts)):
                yield parts

    @cached_property
    def areas(self) -> _Areas:
        """Area under the ROC of each model, ties one half, and the average precision of either class."""
        auc, precision = np.empty(self.n_models), np.empty((2, self.n_models))
        for model in range(self.n_models):
            others, members = self.columns[2 * model : 2 * model + 2]
            # the members and the others at or above each member, and at or below each other
            below = np.searchsorted(others, members)
            members_upto = np.cumsum(np.bincount(below, minlength=len(others) + 1))[:-1]
            precision[1, model] = _average_precision(_at_least(members), len(others) - below)
            precision[0, model] = _average_precision(_at_least(others[::-1])[::-1], members_upto)
            n_tied = np.searchsorted(others, members, "right") - below
            auc[model] = (2 * below.sum() + n_tied.sum()) / (2 * len(members) * len(others))
        return _Areas(auc, precision)


def rank_of(ascending: Float[Array, " n"], score: float, side: Literal["left", "right"] = "left") -> int:
    """Count the scores below a score; with "right", those that do not exceed it."""
    return int(np.searchsorted(ascending, ascending.dtype.type(score), side))


def _first_at_least(
    edges: Float[Array, " K"], n: int, value_at: Callable[[Int[Array, " K"]], Float[Array, " K"]]
) -> Int[Array, " K"]:
    """Find the first of n ascending values that is at least each edge, by bisection."""
    low, high = np.zeros(len(edges), dtype=np.int64), np.full(len(edges), n)
    while (low < high).any():
        middle = (low + high) // 2
        is_below = value_at(np.minimum(middle, n - 1)) < edges
        is_open = low < high
        low = np.where(is_open & is_below, middle + 1, low)
        high = np.where(is_open & ~is_below, middle, high)
    return low


def _at_least(ascending: UInt[Array, " k"]) -> Int[Array, " k"]:
    """Count the numbers at or above each of them, which are ascending; or at or below, if they are descending."""
    place = np.arange(len(ascending))
    is_first = np.concatenate([[True], ascending[1:] != ascending[:-1]])
    return len(ascending) - np.maximum.accumulate(np.where(is_first, place, 0))


def _average_precision(n_true: Int[Array, " p"], n_false: Int[Array, " p"]) -> float:
    """Mean precision over the positives, each at the threshold at which it is called."""
    return float(np.sum(n_true / (n_true + n_false)) / len(n_true))


@dataclass(frozen=True, eq=False)
class Ranked:
    """The scores of members, or of non-members, of all models together."""

    ascending: Float[Array, " n"]  # the scores of both classes
    rank: UInt[Array, " k"]  # ascending

    @property
    def n(self) -> int:
        """Scores."""
        return len(self.rank)

    def highest(self, k: int) -> float:
        """Return the k-th highest score, k from 1 to n."""
        return float(self.ascending[self.rank[-k]])

    def at_least(self, threshold: float) -> int:
        """Scores at or above a score."""
        return self._from(rank_of(self.ascending, threshold))

    def above(self, threshold: float) -> int:
        """Scores above a score."""
        return self._from(rank_of(self.ascending, threshold, "right"))

    def tied(self, score: float) -> int:
        """Scores that are equal to this one."""
        return self.at_least(score) - self.above(score)

    def whole_ties(self, k: Int[Array, " K"]) -> Int[Array, " K"]:
        """Scores at or above the k-th highest one."""
        return self.n - np.searchsorted(self.rank, self.rank[self.n - k], "left")

    def _from(self, rank: int) -> int:
        if rank >= len(self.ascending):
            return 0
        return self.n - int(np.searchsorted(self.rank, self.rank.dtype.type(rank)))
