"""The true positive rate at an estimated threshold, where scores come in clusters: models, or records.

Two numbers are uncertain: the threshold at which the false positive rate is what was asked for, and the true positive
rate at a given threshold. Both get the limits of Korn and Graubard (1998), an exact binomial interval at the number of
trials that the variance between clusters leaves, and are joined by square and add (Newcombe 1998, method 10). Square
and add takes the two errors for independent. Where whole models shift their scores both rates rise together, and the
errors cancel in part; so the interval is wider than it must be, which is what makes it cover where a few models with
large shifts make most false positives. An interval that linearises the rate and takes the cancelling for known covers
in .52 to .87 of audits there (docs/coverage.md).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.core.intervals import korn_graubard_limits
from leakbound.core.on_disk import blocks_of
from leakbound.metrics.ranked import Ranked, RankedScores

Array = np.ndarray
TRIED = 800  # thresholds, at even steps of the logarithm of the rank


@dataclass(frozen=True, eq=False)
class ClusteredClass(ABC):
    """The scores of members, or of non-members, in clusters."""

    ranked: RankedScores
    side: int  # 1: members

    @property
    def scores(self) -> Ranked:
        """The scores by their ranks from the highest one down."""
        return self.ranked.members if self.side else self.ranked.others

    @property
    @abstractmethod
    def sizes(self) -> Int[Array, " c"]:
        """Scores of each cluster, n_c."""

    @abstractmethod
    def cluster_sums(self, k: Int[Array, " r"]) -> tuple[Float[Array, " r"], Float[Array, " r"]]:
        """Sum over the clusters a_c^2, and a_c n_c, where a_c of a cluster's scores are among the k highest."""

    @cached_property
    def ranks(self) -> Int[Array, " r"]:
        """How many of the highest scores each threshold takes that is tried: 0, 1, ... n, and never part of a tie.

        They are at even steps of the logarithm from both ends.
        """
        n = self.scores.n
        steps = np.geomspace(1, n, TRIED).round().astype(np.int64)
        k = np.unique(np.concatenate([steps, n - steps, [n]]))
        return np.concatenate([[0], np.unique(self.scores.whole_ties(k[k > 0]))])

    def limits(self, k: Int[Array, " r"], inflation: float, confidence: float) -> tuple[Array, Array]:
        """Korn and Graubard's limits of the rate of the k highest scores.

        The rate is a ratio of totals, ``p = sum a_c / sum n_c``, with the variance
        ``C/(C - 1) sum (a_c - p n_c)^2 / n^2`` between clusters, where n_c may differ (Cochran 1977, section 6.3).
        """
        return self._limits(k, self.cluster_sums(k), inflation, confidence)

    def tried_limits(self, inflation: float, confidence: float) -> tuple[Array, Array]:
        """Limits of the rate at each threshold that is tried."""
        return self._limits(self.ranks, self._tried_sums, inflation, confidence)

    @cached_property
    def _tried_sums(self) -> tuple[Array, Array]:
        return self.cluster_sums(self.ranks)

    def _limits(
        self, k: Int[Array, " r"], sums: tuple[Array, Array], inflation: float, confidence: float
    ) -> tuple[Array, Array]:
        n, sizes = self.scores.n, self.sizes
        p = k / n
        squares, products = sums
        residual = squares - 2 * p * products + p**2 * float(sizes @ sizes)
        variance = np.maximum(residual, 0.0) * len(sizes) / ((len(sizes) - 1) * n**2)
        return korn_graubard_limits(p, inflation * variance, n, len(sizes), confidence)


class ModelClusters(ClusteredClass):
    """Models as clusters."""

    @property
    def sizes(self) -> Int[Array, " R"]:
        """Scores of each model."""
        return self.ranked.n_of_class[:, self.side]

    def cluster_sums(self, k: Int[Array, " r"]) -> tuple[Float[Array, " r"], Float[Array, " r"]]:
        """Sum over the models a_c^2, and a_c n_c."""
        scores = self.scores
        rank = np.where(k > 0, scores.rank[scores.n - np.maximum(k, 1)], self.ranked.n)
        called = self.ranked.called(rank)[:, :, self.side].astype(np.float64)
        return np.square(called).sum(axis=1), called @ self.sizes


@dataclass(frozen=True, eq=False)
class RecordClusters(ClusteredClass):
    """Records as clusters, whose scores are read block by block."""

    value: Float[Array, "R J"]
    member: Bool[Array, "R J"]

    @cached_property
    def sizes(self) -> Int[Array, " J"]:  # pyright: ignore[reportIncompatibleMethodOverride] -- a property that is computed once
        """Scores of each record."""
        n_members = np.count_nonzero(self.member, axis=0)
        return n_members if self.side else len(self.member) - n_members

    def cluster_sums(self, k: Int[Array, " r"]) -> tuple[Float[Array, " r"], Float[Array, " r"]]:
        """Sum over the records a_c^2, and a_c n_c.

        The i-th highest score of a record adds ``i^2 - (i - 1)^2 = 2 i - 1`` to a_c^2 at all thresholds that call it.
        """
        scores = self.scores
        if len(k) == 1:
            return self._sums_of_one(scores.highest(int(k[0])) if k[0] else np.inf)
        distinct, which = np.unique(k, return_inverse=True)
        thresholds = [scores.highest(n_called) if n_called else np.inf for n_called in distinct[::-1].tolist()]
        ascending = np.array(thresholds, dtype=self.ranked.ascending.dtype)
        squares, products = np.zeros((2, len(ascending) + 1))
        n_models, n_records = self.value.shape
        place = n_models - np.arange(n_models)  # of ascending numbers, from the highest down
        for block in blocks_of(n_records, n_models):
            # how many of the thresholds call a score; none that of the other class
            n_calling = np.searchsorted(ascending, self.value[:, block].T, "right")
            n_calling = n_calling.astype(np.int16) * (bool(self.side) == self.member[:, block].T)
            n_calling.sort(axis=1)
            weights = np.broadcast_to(2.0 * place - 1, n_calling.shape)
            squares += np.bincount(n_calling.ravel(), weights.ravel(), len(squares))
            sizes = np.broadcast_to(self.sizes[block, None], n_calling.shape)
            products += np.bincount(n_calling.ravel(), sizes.ravel(), len(products))
        # a score that the j lowest thresholds call is called by the first of them, and so on
        squares, products = (np.cumsum(sums[:0:-1]) for sums in (squares, products))
        return squares[which], products[which]

    def _sums_of_one(self, threshold: float) -> tuple[Float[Array, " 1"], Float[Array, " 1"]]:
        """Sum over the records a_c^2, and a_c n_c, at a single threshold: a_c itself is counted."""
        squares = products = 0.0
        for block in blocks_of(self.value.shape[1], len(self.value)):
            of_class = self.member[:, block] if self.side else ~self.member[:, block]
            called = np.count_nonzero((self.value[:, block] >= threshold) & of_class, axis=0)
            squares += float(called @ called)
            products += float(called @ self.sizes[block])
        return np.array([squares]), np.array([products])


@dataclass(frozen=True, eq=False)
class Clustered:
    """The true positive rate at a false positive rate, with limits that know of clusters."""

    others: ClusteredClass
    members: ClusteredClass
    inflation: float
    confidence: float

    @cached_property
    def _fpr_limits(self) -> tuple[Array, Array]:
        """Limits of the false positive rate at each threshold that is tried."""
        return self.others.tried_limits(self.inflation, self.confidence)

    def limits_of_rates(self, n_called: int, n_false_positives: int) -> tuple[float, float, float, float]:
        """Limits of the true positive rate, and of the false positive rate, at a threshold that is not estimated."""
        called = self.members.limits(np.array([n_called]), self.inflation, self.confidence)
        false_positives = self.others.limits(np.array([n_false_positives]), self.inflation, self.confidence)
        low, high, least, most = (float(limit[0]) for limit in (*called, *false_positives))
        return low, high, least, most

    def limits(self, fpr: float, n_called: int) -> tuple[float, float]:
        """Limits of the true positive rate, of which ``found`` members were counted at the estimated threshold."""
        n = self.members.scores.n
        rate = n_called / n
        below, above = self._errors_of_rate(n_called)
        ranks, (low_fpr, high_fpr) = self.others.ranks, self._fpr_limits

        def tried(place: int) -> float:
            """Return the lowest score among the ``place`` highest ones."""
            return self.others.scores.highest(int(ranks[place]))

        # The threshold asked for is the smallest score whose false positive rate is at most fpr. It lies above every
        # score at which the rate is surely larger ...
        last = int(np.flatnonzero(low_fpr <= fpr)[-1])  # the lower limit of no false positive is 0
        most = self.members.scores.above(tried(last + 1)) if last + 1 < len(ranks) else n
        tie = self.members.scores.tied(tried(last)) if last else 0
        if tie > 1:  # the threshold may jump over many members at once, where the rate is uncertain by itself
            above = max(above, self._errors_of_rate(most)[1])
        high = rate + joined(max(most / n - rate, 0.0), above, tie / n)

        # ... and not above the first score, from the top, at which it may be larger.
        first = int(np.argmax(high_fpr >= fpr))  # the rate of the whole sample is 1, and so is its upper limit
        if first == 0:  # even a threshold above all scores may have too many false positives
            return 0.0, min(high, 1.0)
        least = self.members.scores.above(tried(1)) if first == 1 else self.members.scores.at_least(tried(first - 1))
        tie = self.members.scores.tied(tried(first))
        if tie > 1:
            below = max(below, self._errors_of_rate(least)[0])
        low = rate - joined(max(rate - least / n, 0.0), below, tie / n)
        return max(low, 0.0), min(high, 1.0)

    def _errors_of_rate(self, n_called: int) -> tuple[float, float]:
        """Distances from a rate of members to its limits."""
        rate = n_called / self.members.scores.n
        low, high = self.members.limits(np.array([n_called]), self.inflation, self.confidence)
        return rate - float(low[0]), float(high[0]) - rate


def joined(of_threshold: float, of_rate: float, tie: float) -> float:
    """Join the errors of a threshold and of the rate at it, by square and add.

    Where scores have ties the threshold jumps from one score to the next, and so does the rate; a jump is no normal
    error, and the error of the rate comes on top of it.

    >>> joined(0.3, 0.4, 0.0), joined(0.3, 0.4, 0.5)
    (0.5, 0.7)
    """
    # tie: the members that share the score at the limit of the threshold, as a fraction
    jump = min(tie, of_threshold)
    return jump + math.hypot(of_threshold - jump, of_rate)
