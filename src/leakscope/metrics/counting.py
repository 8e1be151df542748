"""Evidence about epsilon: right guesses of coins in one run, and rates over many runs.

The evidence is small and gives a p-value for any claim of (epsilon, delta)-DP, valid in finite samples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import bdtr, betainc, expit

from leakscope.intervals import clopper_pearson_lower, clopper_pearson_upper
from leakscope.metrics.accuracy import halves
from leakscope.seeds import stream
from leakscope.types import NotApplicable, Scores

Array = np.ndarray
FRACTIONS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
FEWEST_GUESSES = 10


@runtime_checkable
class Evidence(Protocol):
    """What the scores say of every claim."""

    @property
    def method(self) -> str:
        """How the report calls it."""
        ...

    def p_value(self, epsilon: float, delta: float) -> float:
        """Probability of evidence at least as strong if the claim holds; non-decreasing in both."""
        ...

    def detail(self, epsilon: float, delta: float) -> Mapping[str, Any]:
        """The numbers behind the p-value at this claim."""
        ...


@dataclass(frozen=True, eq=False)
class Guesses:
    """Right guesses of fair coins, for several numbers of guesses.

    Parameters
    ----------
    unit : str
        What a coin decides.
    coins : int
        Coins that were tossed, m.
    made, right : int arrays of shape (K,)
        Guesses and right guesses of each of the K rules that are tried.
    """

    unit: str
    coins: int
    made: Int[Array, " K"]
    right: Int[Array, " K"]

    @property
    def method(self) -> str:
        """One run of many coins."""
        return f"one run, {self.unit}"

    def p_value(self, epsilon: float, delta: float) -> float:
        """Bonferroni over the K rules."""
        return min(1.0, len(self.made) * float(self._each(epsilon, delta).min()))

    def detail(self, epsilon: float, delta: float) -> Mapping[str, Any]:
        """Of the strongest rule."""
        best = int(np.argmin(self._each(epsilon, delta)))
        made, right = int(self.made[best]), int(self.right[best])
        return {
            "unit": self.unit,
            "units": self.coins,
            "guesses": made,
            "correct": right,
            "fraction": made / self.coins,
        }

    def _each(self, epsilon: float, delta: float) -> Array:
        rules = zip(self.made.tolist(), self.right.tolist(), strict=True)
        return np.array([one_run_p_value(right, made, self.coins, epsilon, delta) for made, right in rules])


@dataclass(frozen=True)
class Region:
    """Hits and false alarms of a test that was fixed beforehand.

    Parameters
    ----------
    direction : str
        Who is called: "members" or "non-members".
    hits, n_hits, alarms, n_alarms : int
        Called among those, and among the others.
    threshold : float
    """

    direction: str
    hits: int
    n_hits: int
    alarms: int
    n_alarms: int
    threshold: float

    @property
    def method(self) -> str:
        """Rates of a test over models."""
        return "many runs, Clopper-Pearson"

    def p_value(self, epsilon: float, delta: float) -> float:
        """Least alpha with ``lower(hits) > e^epsilon upper(alarms) + delta``, each limit at alpha/2."""
        low, high = -100.0, 0.0  # of log alpha
        if not self._violates(1.0, epsilon, delta):
            return 1.0
        for _ in range(24):
            middle = (low + high) / 2
            low, high = (low, middle) if self._violates(math.exp(middle), epsilon, delta) else (middle, high)
        return math.exp(high)

    def _violates(self, alpha: float, epsilon: float, delta: float) -> bool:
        hit = float(clopper_pearson_lower(self.hits, self.n_hits, alpha / 2))
        alarm = float(clopper_pearson_upper(self.alarms, self.n_alarms, alpha / 2))
        return hit > math.exp(epsilon) * alarm + delta

    def detail(self, epsilon: float, delta: float) -> Mapping[str, Any]:
        """The test; it does not depend on the claim."""
        return {
            "unit": "target models",
            "units": self.n_hits + self.n_alarms,
            "called": self.direction,
            "hits": self.hits,
            "n_hits": self.n_hits,
            "false_alarms": self.alarms,
            "n_alarms": self.n_alarms,
            "threshold": self.threshold,
        }


def one_run_p_value(right: int, made: int, coins: int, epsilon: float, delta: float = 0.0) -> float:
    """P-value of (epsilon, delta)-DP from right guesses of fair coins in one run.

    ``P[W >= v] + 2 m delta max over i = 1..v of P[v - i <= W < v]/i`` with W ~ Binomial(r, p) and
    ``p = 1/(1 + e^-epsilon)`` (Steinke, Nasr & Jagielski 2023, theorem 5.2).

    Parameters
    ----------
    right : int
        v, right guesses.
    made : int
        r, guesses; their number must not depend on the release where delta > 0.
    coins : int
        m, coins that were tossed, one a record.
    epsilon, delta : float

    Returns
    -------
    float
        In (0, 1].

    Examples
    --------
    >>> round(one_run_p_value(10, 10, 10, 0.0), 6)
    0.000977
    """
    p = float(expit(epsilon))
    tail = float(betainc(right, made - right + 1, p)) if right > 0 else 1.0
    if delta == 0 or right == 0:
        return min(tail, 1.0)
    # the ratio rises only while i crosses the bulk of W: beyond ten standard deviations nothing is left
    bulk, width = made * p, 10 * math.sqrt(made * p * (1 - p)) + 10
    first = max(1, math.floor(right - bulk - width))
    last = max(first, min(right, math.ceil(right - bulk + width)))
    i = np.arange(first, last + 1)
    below = bdtr(right - 1, made, p) - np.where(i < right, bdtr(np.maximum(right - i - 1, 0), made, p), 0.0)
    return min(tail + 2 * coins * delta * float((below / i).max()), 1.0)


def pairs(scores: Scores) -> Guesses:
    """Members matched at random with non-members of the same model; the higher score is guessed.

    Given the two records of a pair, which one is the member is a fair coin, and the other outcome replaces
    one record. Pairs with the largest differences are guessed; equal scores count as not right.

    Parameters
    ----------
    scores : Scores
        Of members that are a uniform subset.

    Returns
    -------
    Guesses

    Raises
    ------
    NotApplicable
        With fewer than 10 pairs.
    """
    differences = []
    for row, (value, member) in enumerate(zip(scores.value, scores.member, strict=True)):
        rng = stream(0, "pairs", row)
        inside, outside = rng.permutation(value[member]), rng.permutation(value[~member])
        n = min(len(inside), len(outside))
        differences.append(inside[:n].astype(float) - outside[:n].astype(float))
    difference = np.concatenate(differences)
    order = np.argsort(-np.abs(difference), kind="stable")
    right = np.cumsum(difference[order] > 0)
    made = _numbers_of_guesses(len(difference), "pairs of a member and a non-member")
    return Guesses("pairs of records", len(difference), made, right[made - 1])


def coins(scores: Scores) -> Guesses:
    """The highest scores of each model are guessed in; in half of the rules the lowest are guessed out.

    Parameters
    ----------
    scores : Scores
        Of points that are in by independent fair coins; models with few points are ranked together.

    Returns
    -------
    Guesses

    Raises
    ------
    NotApplicable
        With fewer than 10 coins.
    """
    together = scores.value.shape[1] < FEWEST_GUESSES
    values, members = (x.reshape(1, -1) if together else x for x in (scores.value, scores.member))
    n_models, n_points = values.shape
    made = _numbers_of_guesses(n_points, "coins")
    right = np.zeros((n_models, 2, len(made)), dtype=int)
    for row, (value, member) in enumerate(zip(values, members, strict=True)):
        # ties must not follow the order of the points
        shuffled = stream(0, "coins", row).permutation(n_points)
        inside = member[shuffled[np.argsort(-value[shuffled], kind="stable")]]
        ins = np.concatenate([[0], np.cumsum(inside)])
        outs = np.concatenate([[0], np.cumsum(~inside[::-1])])
        right[row] = ins[made], ins[made - made // 2] + outs[made // 2]
    total = n_models * np.concatenate([made, made])
    return Guesses("coins of records", n_models * n_points, total, right.sum(axis=0).ravel())


def many_runs(scores: Scores) -> Region:
    """The test that looks best on one half of the models, counted on the other half.

    Parameters
    ----------
    scores : Scores
        Of one point in each model.

    Returns
    -------
    Region

    Raises
    ------
    NotApplicable
        With several points a model, or fewer than 2 models with or without the point.
    """
    if scores.value.shape[1] > 1:
        raise NotApplicable("points of one model are not independent trials: needs one point a model")
    value, member = scores.value[:, 0].astype(float), scores.member[:, 0]
    if min(np.count_nonzero(member), np.count_nonzero(~member)) < 2:
        raise NotApplicable("needs at least 2 target models with the point and 2 without")
    half = halves(member)
    tests = [_best_test(value[half], member[half], sign) for sign in (1, -1)]
    sign, (_, threshold) = max(zip((1, -1), tests, strict=True), key=lambda pair: pair[1][0])
    called = sign * value[~half] >= threshold
    hit = member[~half] == (sign == 1)
    counts = (int(np.count_nonzero(x)) for x in (called & hit, hit, called & ~hit, ~hit))
    return Region("members" if sign == 1 else "non-members", *counts, threshold=sign * threshold)


def _best_test(value: Float[Array, " n"], member: Bool[Array, " n"], sign: int) -> tuple[float, float]:
    """Largest ratio of the Clopper-Pearson limits over the thresholds, and where."""
    order = np.argsort(-sign * value, kind="stable")
    descending, hit = sign * value[order], member[order] == (sign == 1)
    last = np.append(descending[1:] != descending[:-1], True)
    hits, called = np.cumsum(hit)[last], np.flatnonzero(last) + 1
    low = clopper_pearson_lower(hits, hit.sum(), 0.025)
    high = clopper_pearson_upper(called - hits, (~hit).sum(), 0.025)
    best = int(np.argmax(low / high))
    return float(low[best] / high[best]), float(descending[last][best])


def _numbers_of_guesses(n: int, unit: str) -> Int[Array, " K"]:
    """Fixed fractions of the units; which fraction serves best is paid for by Bonferroni."""
    if n < FEWEST_GUESSES:
        raise NotApplicable(f"needs at least {FEWEST_GUESSES} {unit}, got {n}")
    made = np.array([math.floor(fraction * n) for fraction in FRACTIONS])
    return made[made >= FEWEST_GUESSES]
