"""Evidence about epsilon from independent trials: hits above thresholds at fixed ranks of the other side.

The trials are the models of many runs, each with or without one point, or the canaries of one run if their scores are
independent. Given who is in, the scores of members are independent draws from one distribution, and so are those of
non-members.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import betainc, betainccinv

from leakbound.core.findings import Term
from leakbound.core.tradeoff import EpsilonDelta, TradeOff
from leakbound.core.types import NotApplicable, Scores
from leakbound.metrics.one_run import Tangents

Array = np.ndarray
FRACTIONS = np.geomspace(0.004, 0.6, 8)  # of the side that gives the thresholds; fixed before any score is seen
FEWEST_CANARIES = 2  # on each side
# The upper tails of the false positive rate between which its distribution is summed. Beyond the last one the TPR is
# taken to be 1, so that no p-value is below it.
_TAILS = np.append(np.geomspace(1.0, 1e-12, 321)[1:], 0.0)
_MASSES = -np.diff(_TAILS, prepend=1.0)


@dataclass(frozen=True)
class RankTest:
    """A threshold at one rank of one side, and how many of the other side are above it."""

    called: str  # who is above it if the test is right: "members", or "non-members", whose low scores count as high
    hits: int
    n_hits: int
    rank: int
    n_alarms: int
    alarms: int
    threshold: float

    @cached_property
    def fpr(self) -> Float[Array, " c"]:
        """Quantiles of the false positive rate, or of what it is below: of Beta(rank, n_alarms - rank + 1)."""
        return betainccinv(self.rank, self.n_alarms - self.rank + 1, _TAILS)

    def p_value(self, promise: Tangents) -> float:
        """Probability of so many hits, at most, if the promise holds: the mean over the false positive rate."""
        if self.hits == 0:
            return 1.0
        tail = betainc(self.hits, self.n_hits - self.hits + 1, _largest_tpr(promise, self.fpr))
        # The tail grows with the rate, and is taken at the upper end of each cell: the sum is above the mean.
        return min(1.0, float(_MASSES @ tail))


@dataclass(frozen=True, eq=False)
class Ranks:
    """True positives above thresholds at fixed ranks, in both directions.

    Let A be the side that gives the threshold t, its j-th highest score of n, and B the other one, which is called;
    ``S_A(y) = P(score of A > y)``, and S_B likewise. A promise with the largest TPR f*, which does not decrease, says
    ``S_B(y) <= f*(S_A(y))`` at any y.

    *The false positive rate.* ``S_A(t)`` is stochastically at most U ~ Beta(j, n - j + 1), and distributed as U if A
    has no ties. Draw the scores of A as ``Q(V_i)`` with independent V_i, uniform on (0, 1), and ``Q(v) = inf{y: S_A(y)
    <= v}``. As S_A is continuous from the right, ``S_A(Q(v)) <= v``. As Q does not increase, t is Q of the j-th
    smallest V, which is distributed as U. Ties do no harm because scores must be strictly above the threshold, on both
    sides. For scores at or above it the inequality is the other way round: ``P(score of A >= Q(v)) >= v``, because
    ``S_A(y) > v`` for all ``y < Q(v)``. With a constant score, this rate is 1 at any rank.

    *The hits.* Given t, the scores of B are independent of it, and each of them is above t with a probability of at
    most ``f*(S_A(t)) <= f*(U)``. So the number H of hits has

        P(H >= h) <= E[P(Binomial(n_B, f*(U)) >= h)],                                                              (1)

    and the right side, at the observed h, is a p-value: no limit of either rate is needed. It is never above that of
    two limits at level a/2, the quantile u of U and the limit of Clopper and Pearson: where the latter is above f*(u),
    (1) is at most ``P(U > u) + P(Binomial(n_B, f*(u)) >= h) <= a/2 + a/2``. The scores of B need not be alike.

    Ranks depend on n alone. The p-value is the least of all tests, times their number.

    >>> member = np.arange(200) < 100
    >>> gathered = by_ranks("many_runs", "target models", 3.0 * member + np.arange(200) % 100 / 50, member)
    >>> len(gathered.tests), gathered.detail(EpsilonDelta(1.0))["hits"]
    (14, 100)
    >>> gathered.p_value(3.0, 0.0) < 1e-3 < gathered.p_value(5.0, 0.0)
    True
    """

    id: str
    unit: str
    tests: tuple[RankTest, ...]

    @property
    def method(self) -> tuple[Term, ...]:
        """Rates over independent trials."""
        return (Term(self.id),)

    def p_value(self, epsilon: float, delta: float) -> float:
        """Return the p-value of the claim as a curve."""
        return self.curve_p_value(EpsilonDelta(epsilon, delta))

    def curve_p_value(self, claim: TradeOff) -> float:
        """Bonferroni over the ranks and directions."""
        return min(1.0, len(self.tests) * min(self._p_values(claim)))

    def detail(self, claim: TradeOff) -> Mapping[str, Any]:
        """Of the strongest test."""
        best = self.tests[int(np.argmin(self._p_values(claim)))]
        return {
            "unit": self.unit,
            "units": best.n_hits + best.n_alarms,
            "called": best.called,
            "hits": best.hits,
            "n_hits": best.n_hits,
            "false_alarms": best.alarms,
            "n_alarms": best.n_alarms,
            "rank": best.rank,
            "threshold": best.threshold,
        }

    def _p_values(self, claim: TradeOff) -> list[float]:
        promise = Tangents.of(claim)
        return [test.p_value(promise) for test in self.tests]


def many_runs(scores: Scores) -> Ranks:
    """Count over models with and without one point, which is in by a fair coin of each."""
    if scores.value.shape[1] > 1:
        raise NotApplicable("points_not_independent")
    value, member = scores.value[:, 0], scores.member[:, 0]
    if min(np.count_nonzero(member), np.count_nonzero(~member)) < 2:
        raise NotApplicable("few_models_with_point")
    return by_ranks("many_runs", "target models", value, member)


def independent_canaries(scores: Scores) -> Ranks:
    """Count over canaries whose scores are independent, given who is in: an assumption about the training.

    Dirac canaries have a coordinate each. In DP-SGD with Poisson batches, each has a batch coin and noise of its own
    in every step, and what is seen of one of them says nothing about another: all of them, in all models, are trials of
    one experiment, as models with and without one point are. A training in which that is not so may exceed the bound.
    """
    value, member = scores.value.ravel(), scores.member.ravel()
    fewest = int(min(np.count_nonzero(member), np.count_nonzero(~member)))
    if fewest < FEWEST_CANARIES:
        unit = "canaries that are in and as many that are out"
        raise NotApplicable("few_guesses", fewest=FEWEST_CANARIES, unit=unit, n=fewest)
    return by_ranks("independent_canaries", "canaries", value, member)


def by_ranks(id: str, unit: str, value: Float[Array, " n"], member: Bool[Array, " n"]) -> Ranks:
    """Count above the thresholds at all ranks, high scores called members and low ones called non-members."""
    tests: list[RankTest] = []
    for called, sign in (("members", 1), ("non-members", -1)):
        signed, is_called = sign * value.astype(float), member == (sign == 1)
        inside, others = signed[is_called], np.sort(signed[~is_called])[::-1]
        for rank in ranks(len(others)).tolist():
            threshold = float(others[rank - 1])
            hits, alarms = (int(np.count_nonzero(side > threshold)) for side in (inside, others))
            tests.append(RankTest(called, hits, len(inside), rank, len(others), alarms, sign * threshold))
    return Ranks(id, unit, tuple(tests))


def ranks(n: int) -> Int[Array, " r"]:
    """List the ranks of a side of n: 8 fixed fractions of it, those that coincide once.

    >>> ranks(500).tolist(), ranks(4).tolist()
    ([2, 4, 8, 17, 35, 72, 147, 300], [1, 2])
    """
    return np.unique(np.clip(np.round(FRACTIONS * n), 1, n).astype(int))


def _largest_tpr(promise: Tangents, fpr: Float[Array, " c"]) -> Float[Array, " c"]:
    """Evaluate f*, the largest TPR that a promise allows, at each rate by the line that is the lowest there.

    Each (epsilon, delta) is two lines, ``e^epsilon x + delta`` and ``1 - e^-epsilon (1 - delta - x)``. Each line is an
    upper bound everywhere, so that the wrong line where the lowest one is not found is a larger TPR: a safe one.
    """
    ratio = np.exp(np.minimum(promise.epsilon, 700.0))  # beyond, no rate above 1e-304 is told apart
    slope = np.concatenate([ratio[::-1], 1 / ratio])  # from the steepest line, which is the lowest near 0
    start = np.concatenate([promise.delta[::-1], 1 - (1 - promise.delta) / ratio])
    with np.errstate(divide="ignore", invalid="ignore"):  # lines of equal slope never meet; any order will do
        meet = np.nan_to_num(-np.diff(start) / np.diff(slope), nan=0.0, posinf=1.0, neginf=0.0)
    line = np.searchsorted(np.maximum.accumulate(meet), fpr)
    return np.clip(start[line] + slope[line] * fpr, 0.0, 1.0)
