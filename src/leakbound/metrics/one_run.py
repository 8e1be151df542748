"""Correct guesses of many coins in one run: how many a promise allows, be it (epsilon, delta) or a whole curve.

The game: m records, each with a secret uniform on k values (in or out: k = 2), all in one release. The attacker
guesses r of the secrets and W guesses are right. The release treats every record by itself as the curve f allows.
With ``f*(x) = 1 - f(x)``, the largest tpr at the fpr x, and any function 0 <= g <= 1:

    E[W g(W)]/m <= f*(E[(r - W) g(W + 1)] / ((k - 1) m)).                                                     (1)

For given other secrets and a value b let S be the randomised event "b is guessed of record i, and g of 1 + the
correct guesses among the others". The promise for record i says P(S | secret b) <= f*(P(S | secret b')). Average over
b, b' != b, the other secrets and i: f* is concave, and a correct guess stays inside by Jensen's inequality. On the
left S is a correct guess out of W; on the right it is a wrong one, and W + 1 would be correct if it were not.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy.special import betainc, betaln, log_expit

from leakbound.core.checks import count
from leakbound.core.numerics import bisect
from leakbound.core.tradeoff import EpsilonDelta, Profile, TradeOff

Array = np.ndarray
_ORDERS = np.concatenate([[0.0], np.geomspace(1e-3, 20.0, 300)])  # epsilons: beyond, 10^8 guesses tell nothing
_LEAST_LOG = -30.0  # of a p-value that is searched: 1e-13


@dataclass(frozen=True, eq=False)
class Tangents:
    """A trade-off curve, or one below it, by its tangents: (epsilon, delta) promises that all hold.

    >>> from leakbound.core.tradeoff import Gaussian
    >>> Tangents.of(EpsilonDelta(1.0, 0.01)).delta.tolist()
    [0.01]
    >>> round(Tangents.of(Gaussian(1.0)).wrong(0.5), 3)  # Phi(Phi^-1(1/2) - 1)
    0.159
    """

    epsilon: Float[Array, " G"]
    delta: Float[Array, " G"]

    @classmethod
    def of(cls, curve: TradeOff) -> Tangents:
        """Tangents of a ceiling; of a curve that is not symmetric, those of the worse of its two directions."""
        if isinstance(curve, EpsilonDelta):
            return cls(*(np.array([value]) for value in curve.promised))
        if isinstance(curve, Profile):
            order = np.argsort(curve.at)
            worse = curve.value if curve.reverse is None else np.maximum(curve.value, curve.reverse)
            return cls(curve.at[order], worse[order])
        return cls(_ORDERS, np.array([curve.delta(value) for value in _ORDERS.tolist()]))

    @cached_property
    def _lines(self) -> tuple[list[float], list[float], list[float]]:
        """Where each line of ``wrong`` begins, its slope and its value at 0, from the flattest to the steepest."""
        ratio = np.exp(-self.epsilon)
        slope = np.concatenate([ratio[::-1], 1 / ratio])
        start = np.concatenate([-(ratio * self.delta)[::-1], 1 - self.delta - 1 / ratio])
        with np.errstate(divide="ignore", invalid="ignore"):  # equal slopes never cross; any order of them will do
            meet = np.nan_to_num(-np.diff(start) / np.diff(slope), nan=0.0, posinf=1.0, neginf=0.0)
        return np.maximum.accumulate(meet).tolist(), slope.tolist(), start.tolist()

    def wrong(self, right: float) -> float:
        """Least probability of an event under the other secret, if it has this one under its own: f*^-1.

        ``max over (epsilon, delta) of e^-epsilon (right - delta) and 1 - delta - e^epsilon (1 - right)``; any of the
        lines is a lower bound.
        """
        begins, slope, start = self._lines
        line = bisect_right(begins, right)
        return max(0.0, start[line] + slope[line] * right)


def one_run_p_value(n_correct: int, n_guesses: int, n_secrets: int, promise: Tangents, *, choices: int = 2) -> float:
    """P-value of a promise from correct guesses of secrets in one run.

    The least of two bounds on P(W >= v): one for each tangent, and one for all of them together.

    **One tangent.** ``P + (1 - P) min(1, m delta P/(v b))`` with P = P[B >= v], b = P[B = v], B ~ Binomial(r, p)
    and ``p = e^epsilon/(e^epsilon + k - 1)``. Steinke, Nasr & Jagielski 2023, theorem 5.2, has the same P and
    ``2 max over i of P[v - i <= B < v]/i`` in place of ``(1 - P) P/(v b)``: more than twice as much wherever the
    p-value is below 1/5. Derivation: let c = e^epsilon/(k - 1) and psi >= 0 solve Stein's equation
    ``w psi(w) - c (r - w) psi(w + 1) = [w >= v] - P``. It is largest at v, ``psi(v) = P (1 - P)/(v b)``, so that
    (1) with f*(x) = e^epsilon x + delta and g = psi/psi(v) bounds the mean of the left side by m delta psi(v). No
    smaller bound follows: the distribution proportional to that of B on each side of v, with
    ``v P(W = v) - c (r - v + 1) P(W = v - 1) = m delta``, attains it, and where there is none the bound is 1.
    Mechanisms that tell u random secrets with probability m delta/u, and else answer at random, come near.

    **All tangents** (the recursion of Mahloujifar, Melis & Chaudhuri 2024). With g = [w >= j] in (1) let
    ``R_j = E[W; W >= j]``, ``H_j = E[r - W; W >= j]`` and ``F(y) = (k - 1) m f*^-1(y/m)``. Then
    H_(j-1) >= F(R_j), and R_0 + H_0 = r. Let P(W >= v) = t, a_j = j/(r - j) and U_(j+1) = R_(j+1) - a_j H_(j+1), so
    that R_j = U_(j+1) + a_j H_j and U_j = U_(j+1) + (a_j - a_(j-1)) H_j. Neither falls if H_j >= F(R_(j+1)) is
    replaced by the least F(R_(j+1)) that is known, from R_v >= v t and U_v >= r t/(r - v + 1) on. So R_j + F(R_j) > r
    at any j says that t is too large.

    >>> from leakbound.core.tradeoff import Gaussian
    >>> round(one_run_p_value(10, 10, 10, Tangents.of(EpsilonDelta(0.0))), 6)
    0.000977
    >>> round(one_run_p_value(10, 10, 10, Tangents.of(EpsilonDelta(0.0, 1e-3))), 6)  # or all are told, once in 1,000
    0.001976
    >>> promise = Tangents.of(Gaussian(0.5))
    >>> [round(one_run_p_value(n_correct, 100, 1000, promise), 3) for n_correct in (85, 90, 95)]
    [0.075, 0.01, 0.001]
    """
    n_correct, n_guesses = count("n_correct", n_correct, least=0), count("n_guesses", n_guesses)
    n_secrets = count("n_secrets", n_secrets)
    if not n_correct <= n_guesses <= n_secrets:
        raise ValueError(
            f"correct guesses, guesses and secrets must not decrease, got {n_correct}, {n_guesses} and {n_secrets}"
        )
    others = count("choices", choices, least=2) - 1
    if n_correct == 0:
        return 1.0
    least = float(
        _tangent_bounds(n_correct, n_guesses, n_secrets * promise.delta, promise.epsilon - math.log(others)).min()
    )

    # All tangents together: the recursion refuses every tail above some t, and that t is the bound on P(W >= v). With
    # one tangent it cannot be less than the bound above, which is sharp.
    low, high = _LEAST_LOG, math.log(least)
    game = _Game(n_correct, n_guesses, n_secrets, others)
    if len(promise.delta) == 1 or low >= high or not game.refuses(least, promise):
        return least
    log_tail = bisect(lambda x: game.refuses(math.exp(x), promise), inside=high, outside=low, max_steps=30)
    return math.exp(log_tail)


@dataclass(frozen=True)
class _Game:
    """v correct guesses of r about m secrets, each with some other values."""

    n_correct: int
    n_guesses: int
    coins: int
    others: int

    def refuses(self, tail: float, promise: Tangents) -> bool:
        """Whether no distribution with P(W >= v) = tail obeys (1), as far as the recursion tells."""
        # From j = v down: `mean` is the least R_(j+1), `slack` the least U_(j+1) of the notes of `one_run_p_value`.
        mean, slack = self.n_correct * tail, self.n_guesses * tail / (self.n_guesses - self.n_correct + 1)
        for j in range(self.n_correct - 1, 0, -1):
            missed = self.wrong(mean, promise)  # H_j >= F(R_(j+1))
            if mean + missed > self.n_guesses:
                return True
            ahead = j / (self.n_guesses - j)
            next_mean = ahead * missed + slack  # R_j = U_(j+1) + a_j H_j
            if next_mean <= mean * (1 + 1e-9):  # below the bulk of W nothing more is added
                return False
            slack += (ahead - (j - 1) / (self.n_guesses - j + 1)) * missed  # U_j = U_(j+1) + (a_j - a_(j-1)) H_j
            mean = next_mean
        return mean + self.wrong(mean, promise) > self.n_guesses

    def wrong(self, mean: float, promise: Tangents) -> float:
        """F: least mean of the wrong guesses that a mean of correct ones comes with."""
        return self.others * self.coins * promise.wrong(min(1.0, mean / self.coins))


def _tangent_bounds(n_correct: int, n_guesses: int, lost: Array, log_odds: Array) -> Array:
    """Compute the bound of each tangent, shape (G,); ``lost`` is m delta."""
    tail = np.maximum(betainc(n_correct, n_guesses - n_correct + 1, np.exp(log_expit(log_odds))), 1e-300)
    if not lost.any():  # delta = 0: no more than the binomial tail
        return tail
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_mass = n_correct * log_expit(log_odds) - betaln(n_correct, n_guesses - n_correct + 1)  # of v b
        log_mass += np.where(n_guesses > n_correct, (n_guesses - n_correct) * log_expit(-log_odds), 0.0)
        # P/b is a sum of falling terms, at most their geometric series where P itself is too small for a number
        series = -np.log1p(-np.minimum(np.exp(log_odds) * (n_guesses - n_correct) / (n_correct + 1), 1)) - math.log(
            n_correct
        )
        fraction = np.exp(np.where(tail > 1e-300, np.log(tail) - log_mass, series))
        lost_part = np.where(lost > 0, np.minimum(lost * fraction, 1.0), 0.0)
    return np.minimum(tail + (1 - tail) * lost_part, 1.0)
