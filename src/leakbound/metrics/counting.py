"""Evidence about epsilon: correct guesses of coins in one run, or in several.

The evidence is small and gives a p-value for any claim of a trade-off curve, valid in finite samples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaincc

from leakbound.core.findings import Term
from leakbound.core.seeds import stream
from leakbound.core.tradeoff import EpsilonDelta, TradeOff
from leakbound.core.types import NotApplicable, Scores
from leakbound.metrics.one_run import Tangents, one_run_p_value

Array = np.ndarray
FRACTIONS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
FEWEST_GUESSES = 10


@runtime_checkable
class Evidence(Protocol):
    """What the scores say of every claim."""

    @property
    def method(self) -> tuple[Term, ...]:
        """How it counts."""
        ...

    def p_value(self, epsilon: float, delta: float) -> float:
        """P-value of (epsilon, delta)-DP; non-decreasing in both."""
        ...

    def curve_p_value(self, claim: TradeOff) -> float:
        """Probability, at most, of evidence as strong if no attacker's curve is below the claimed one."""
        ...

    def detail(self, claim: TradeOff) -> Mapping[str, Any]:
        """Return the numbers behind the p-value of a claim."""
        ...


@dataclass(frozen=True, eq=False)
class Guesses:
    """Correct guesses of fair coins in several models, for several numbers of guesses."""

    unit: str
    coins: int
    n_guesses: Int[Array, " K"]
    n_correct: Int[Array, "T K"]
    choices: int = 2
    runs: int | None = None

    @property
    def method(self) -> tuple[Term, ...]:
        """One run of many coins, or several."""
        n_runs = self.runs or len(self.n_correct)
        return (Term("one_run") if n_runs == 1 else Term("several_runs", runs=n_runs), Term(self.unit))

    def p_value(self, epsilon: float, delta: float) -> float:
        """Return the p-value of the claim as a curve."""
        return self.curve_p_value(EpsilonDelta(epsilon, delta))

    def curve_p_value(self, claim: TradeOff) -> float:
        """Bonferroni over the K rules."""
        return min(1.0, len(self.n_guesses) * float(self._rule_p_values(claim).min()))

    def detail(self, claim: TradeOff) -> Mapping[str, Any]:
        """Of the strongest rule."""
        best = int(np.argmin(self._rule_p_values(claim)))
        n_models, n_guesses = len(self.n_correct), int(self.n_guesses[best])
        return {
            "unit": self.unit,
            "units": n_models * self.coins,
            "guesses": n_models * n_guesses,
            "correct": int(self.n_correct[:, best].sum()),
            "fraction": n_guesses / self.coins,
        }

    def _rule_p_values(self, claim: TradeOff) -> Float[Array, " K"]:
        """P-value of each rule: all coins as one game, or each model by itself, whichever is smaller.

        As one game what may fail in every model adds up, although one lucky failure explains one model only;
        the models are independent, so their own p-values may be joined (Fisher 1932), for a factor of 2.
        """
        promise = Tangents.of(claim)
        # Models often have equal counts, and one p-value takes a search: it is computed once for each triple.
        rules = list(zip(self.n_guesses.tolist(), self.n_correct.T.tolist(), strict=True))
        n_models = len(self.n_correct)
        p_value = cache(partial(one_run_p_value, promise=promise, choices=self.choices))
        joint = [p_value(sum(n_correct), n_models * n_guesses, n_models * self.coins) for n_guesses, n_correct in rules]
        if n_models == 1 or promise.delta.max() == 0:
            return np.array(joint)
        # The smaller of two valid p-values, times 2 for the choice between them.
        alone = [_fisher([p_value(one, n_guesses, self.coins) for one in n_correct]) for n_guesses, n_correct in rules]
        return np.minimum(2 * np.minimum(joint, alone), 1.0)


def pairs(scores: Scores) -> Guesses:
    """Members matched at random with non-members of the same model; the higher score is guessed.

    Given the two records of a pair, which one is the member is a fair coin, and the other outcome replaces
    one record. Pairs with the largest differences are guessed; equal scores count as not right.
    """
    n_pairs = int(np.minimum(scores.member.sum(axis=1), (~scores.member).sum(axis=1)).min())
    n_guesses = _guess_counts(n_pairs, len(scores.value), "pairs of a member and a non-member")
    n_correct = []
    for row, (value, member) in enumerate(zip(scores.value, scores.member, strict=True)):
        # A pairing that does not depend on the scores: given the pair, which record is the member is a fair coin.
        rng = stream(0, "pairs", row)
        inside, outside = (rng.permutation(value[side])[:n_pairs].astype(float) for side in (member, ~member))
        difference = inside - outside
        order = np.argsort(-np.abs(difference), kind="stable")
        n_correct.append(np.cumsum(difference[order] > 0)[n_guesses - 1])
    return Guesses("pairs of records", n_pairs, n_guesses, np.array(n_correct))


def coins(scores: Scores) -> Guesses:
    """Guess the highest scores of each model to be members, and in half of the rules the lowest to be others."""
    together = scores.value.shape[1] < FEWEST_GUESSES
    values, members = (x.reshape(1, -1) if together else x for x in (scores.value, scores.member))
    n_models, n_points = values.shape
    n_guesses = _guess_counts(n_points, n_models, "coins")
    n_correct = np.zeros((n_models, 2, len(n_guesses)), dtype=int)
    for row, (value, member) in enumerate(zip(values, members, strict=True)):
        # ties must not follow the order of the points
        shuffled = stream(0, "coins", row).permutation(n_points)
        inside = member[shuffled[np.argsort(-value[shuffled], kind="stable")]]
        # Members among the k highest scores and others among the k lowest, for k = 0, 1, ...
        n_members_above = np.concatenate([[0], np.cumsum(inside)])
        n_others_below = np.concatenate([[0], np.cumsum(~inside[::-1])])
        n_low = n_guesses // 2
        n_correct[row] = n_members_above[n_guesses], n_members_above[n_guesses - n_low] + n_others_below[n_low]
    return Guesses(
        "coins_of_records",
        n_points,
        np.concatenate([n_guesses, n_guesses]),
        n_correct.reshape(n_models, -1),
        runs=len(scores.value),
    )


def _fisher(p_values: Sequence[float]) -> float:
    """P-value of independent p-values: -2 sum log p is at most chi-squared with 2 T degrees of freedom."""
    return float(gammaincc(len(p_values), -np.log(p_values).sum()))


def _guess_counts(n: int, n_models: int, unit: str) -> Int[Array, " K"]:
    """List fixed fractions of the units of each model; the choice among them is paid for by Bonferroni."""
    if n * n_models < FEWEST_GUESSES or n < 1:
        raise NotApplicable("few_guesses", fewest=FEWEST_GUESSES, unit=unit, n=n * n_models)
    n_guesses = np.array([math.floor(fraction * n) for fraction in FRACTIONS])
    return n_guesses[(n_guesses >= 1) & (n_guesses * n_models >= FEWEST_GUESSES)]
