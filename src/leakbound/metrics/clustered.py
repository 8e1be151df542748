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
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from leakbound.core.intervals import korn_graubard_limits
from leakbound.metrics.rows import Rows

Array = np.ndarray
TRIED = 800  # thresholds, at even steps of the logarithm of the rank


class Ranked(ABC):
    """The scores of members, or of non-members, by their ranks from the highest one down."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Scores."""

    @abstractmethod
    def highest(self, k: int) -> float:
        """Return the k-th highest score, k from 1 to n."""

    @abstractmethod
    def at_least(self, threshold: float) -> int:
        """Scores at or above a threshold."""

    @abstractmethod
    def above(self, threshold: float) -> int:
        """Scores above a threshold."""


class RankedClass(Ranked):
    """The scores of members, or of non-members, in clusters, by their ranks from the highest one down.

    Where the scores lie is up to the subclass: in memory (`ClassScores`), or in files (`leakbound.metrics.stored`).
    """

    @property
    @abstractmethod
    def n_clusters(self) -> int:
        """Models, or records."""

    @property
    @abstractmethod
    def size_squares(self) -> float:
        """Sum over the clusters of n_c^2, where n_c is the number of scores of a cluster."""

    @abstractmethod
    def cluster_sums(self, k: Int[Array, " r"]) -> tuple[Float[Array, " r"], Float[Array, " r"]]:
        """Sum over the clusters a_c^2, and a_c n_c, where a_c of a cluster's scores are among the k highest."""

    @property
    @abstractmethod
    def ranks(self) -> Int[Array, " r"]:
        """How many of the highest scores each threshold takes that is tried: 0, 1, ... n, and never part of a tie."""

    def tied(self, score: float) -> int:
        """Scores that are equal to this one."""
        return self.at_least(score) - self.above(score)

    def limits(self, k: Int[Array, " r"], inflation: float, confidence: float) -> tuple[Array, Array]:
        """Korn and Graubard's limits of the rate of the k highest scores.

        The rate is a ratio of totals, ``p = sum a_c / sum n_c``, with the variance
        ``C/(C - 1) sum (a_c - p n_c)^2 / n^2`` between clusters, where n_c may differ (Cochran 1977, section 6.3).
        """
        p = k / self.n
        squares, products = self.cluster_sums(k)
        residual = squares - 2 * p * products + p**2 * self.size_squares
        variance = np.maximum(residual, 0.0) * self.n_clusters / ((self.n_clusters - 1) * self.n**2)
        return korn_graubard_limits(p, inflation * variance, self.n, self.n_clusters, confidence)


def tried_ranks(n: int) -> Int[Array, " r"]:
    """Ranks at even steps of the logarithm from both ends: those of the thresholds that are tried, ties aside."""
    steps = np.geomspace(1, n, TRIED).round().astype(np.int64)
    k = np.unique(np.concatenate([steps, n - steps, [n]]))
    return k[k > 0]


@dataclass(frozen=True, eq=False)
class ClassScores(RankedClass):
    """The scores of members, or of non-members, in descending order, each with its cluster."""

    descending: Float[Array, " n"]
    cluster: Int[Array, " n"]
    n_of_clusters: int

    @property
    def n(self) -> int:
        """Scores."""
        return len(self.descending)

    @property
    def n_clusters(self) -> int:
        """Models, or records."""
        return self.n_of_clusters

    @cached_property
    def ascending(self) -> Float[Array, " n"]:
        """The same scores in the order of searches."""
        return self.descending[::-1]

    @cached_property
    def sizes(self) -> Float[Array, " C"]:
        """Scores in each cluster, n_c."""
        return np.bincount(self.cluster, minlength=self.n_clusters).astype(np.float64)

    @cached_property
    def squares(self) -> Float[Array, " n1"]:
        """Sum over the clusters of a_c^2, where a_c of a cluster's scores are among the k highest, for k = 0 to n.

        The next score adds ``(a + 1)^2 - a^2 = 2 a + 1``, with a the scores of its cluster before it.
        """
        by_cluster = np.argsort(self.cluster, kind="stable")
        starts = np.cumsum(self.sizes) - self.sizes
        before = np.empty(self.n)
        before[by_cluster] = np.arange(self.n) - np.repeat(starts, self.sizes.astype(np.int64))
        return np.concatenate([[0.0], np.cumsum(2 * before + 1)])

    @cached_property
    def products(self) -> Float[Array, " n1"]:
        """Sum over the clusters of a_c n_c, for k = 0 to n."""
        return np.concatenate([[0.0], np.cumsum(self.sizes[self.cluster])])

    @property
    def size_squares(self) -> float:
        """Sum over the clusters of n_c^2."""
        return float(self.sizes @ self.sizes)

    def cluster_sums(self, k: Int[Array, " r"]) -> tuple[Float[Array, " r"], Float[Array, " r"]]:
        """Sum over the clusters a_c^2, and a_c n_c."""
        return self.squares[k], self.products[k]

    def highest(self, k: int) -> float:
        """Return the k-th highest score."""
        return float(self.descending[k - 1])

    def at_least(self, threshold: float) -> int:
        """Scores at or above a threshold."""
        return self.n - int(np.searchsorted(self.ascending, threshold, "left"))

    def above(self, threshold: float) -> int:
        """Scores above a threshold."""
        return self.n - int(np.searchsorted(self.ascending, threshold, "right"))

    @cached_property
    def ranks(self) -> Int[Array, " r"]:  # pyright: ignore[reportIncompatibleMethodOverride] -- a property that is computed once
        """How many of the highest scores each threshold takes that is tried: 0, 1, ... n, and never part of a tie."""
        k = tried_ranks(self.n)
        whole_ties = self.n - np.searchsorted(self.ascending, self.descending[k - 1], "left")
        return np.concatenate([[0], np.unique(whole_ties)])


@dataclass(frozen=True, eq=False)
class Clustered:
    """The true positive rate at a false positive rate, with limits that know of clusters."""

    members: RankedClass
    others: RankedClass
    inflation: float
    confidence: float

    @classmethod
    def by(cls, rows: Rows, axis: Literal["models", "records"], confidence: float) -> Clustered:
        """Take rows (models) or columns (records) of the scores as clusters.

        The variance inflation of attacks that leave one model out belongs to models: what a model's references have
        seen of a record is all in that record's own column.
        """
        n_models, n_records = rows.value.shape
        if axis == "models":
            n_clusters, inflation, number = n_models, rows.variance_inflation, np.arange(n_models)[:, None]
        else:
            n_clusters, inflation, number = n_records, 1.0, np.arange(n_records)[None, :]
        cluster = np.broadcast_to(number, rows.value.shape)

        def sorted_class(chosen: Array) -> ClassScores:
            score = rows.value[chosen].astype(np.float64)
            order = np.argsort(-score, kind="stable")
            return ClassScores(score[order], cluster[chosen][order], n_clusters)

        return cls(sorted_class(rows.member), sorted_class(~rows.member), inflation, confidence)

    @cached_property
    def _fpr_limits(self) -> tuple[Array, Array]:
        """Limits of the false positive rate at each threshold that is tried."""
        return self.others.limits(self.others.ranks, self.inflation, self.confidence)

    def limits_of_rates(self, n_called: int, n_false_positives: int) -> tuple[float, float, float, float]:
        """Limits of the true positive rate, and of the false positive rate, at a threshold that is not estimated."""
        called = self.members.limits(np.array([n_called]), self.inflation, self.confidence)
        false_positives = self.others.limits(np.array([n_false_positives]), self.inflation, self.confidence)
        low, high, least, most = (float(limit[0]) for limit in (*called, *false_positives))
        return low, high, least, most

    def limits(self, fpr: float, n_called: int) -> tuple[float, float]:
        """Limits of the true positive rate, of which ``found`` members were counted at the estimated threshold."""
        n = self.members.n
        rate = n_called / n
        below, above = self._errors_of_rate(n_called)
        ranks, (low_fpr, high_fpr) = self.others.ranks, self._fpr_limits

        def tried(place: int) -> float:
            """Return the lowest score among the ``place`` highest ones."""
            return self.others.highest(int(ranks[place]))

        # The threshold asked for is the smallest score whose false positive rate is at most fpr. It lies above every
        # score at which the rate is surely larger ...
        last = int(np.flatnonzero(low_fpr <= fpr)[-1])  # the lower limit of no false positive is 0
        most = self.members.above(tried(last + 1)) if last + 1 < len(ranks) else n
        tie = self.members.tied(tried(last)) if last else 0
        if tie > 1:  # the threshold may jump over many members at once, where the rate is uncertain by itself
            above = max(above, self._errors_of_rate(most)[1])
        high = rate + joined(max(most / n - rate, 0.0), above, tie / n)

        # ... and not above the first score, from the top, at which it may be larger.
        first = int(np.argmax(high_fpr >= fpr))  # the rate of the whole sample is 1, and so is its upper limit
        if first == 0:  # even a threshold above all scores may have too many false positives
            return 0.0, min(high, 1.0)
        least = self.members.above(tried(1)) if first == 1 else self.members.at_least(tried(first - 1))
        tie = self.members.tied(tried(first))
        if tie > 1:
            below = max(below, self._errors_of_rate(least)[0])
        low = rate - joined(max(rate - least / n, 0.0), below, tie / n)
        return max(low, 0.0), min(high, 1.0)

    def _errors_of_rate(self, n_called: int) -> tuple[float, float]:
        """Distances from a rate of members to its limits."""
        rate = n_called / self.members.n
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
