"""The per-datum game on a mean of independent bits (Algorithm 2, Appendix E), and what its scores show.

The bits have probabilities p, uniform on [a, 1 - a]. In each round a fair coin decides whether the target takes the
place of one of n records; the mean of all, of all with noise N(0, gamma^2/n), or of a fraction rho of them is released,
and scored by its log-likelihood ratio. The easy target has in each column the rarer bit, the hard one the more likely
bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import ndtr

import leakbound as ls
from leakbound.papers.lab import Lab, mean_of
from leakbound.papers.printed import Ours

Array = np.ndarray
TARGETS = ("easy", "med", "hard")
BAND = 0.999


@dataclass(frozen=True)
class Sizes:
    """How large a game is; those of the paper unless given."""

    n: int = 1000
    d: int = 5000
    rounds: int = 2000
    draws: int = 200


@dataclass(frozen=True, eq=False)
class World:
    """The distribution of the data, and the three targets."""

    n: int
    p: Array
    targets: Mapping[str, Array]

    @classmethod
    def drawn(cls, a: float, medium: Literal["distribution", "coins"], sizes: Sizes, rng: np.random.Generator) -> World:
        """Draw p uniformly on [a, 1 - a], and a medium target from the distribution of the data or of fair coins."""
        p = rng.uniform(a, 1 - a, sizes.d)
        med = rng.random(sizes.d) < (p if medium == "distribution" else 0.5)
        return cls(sizes.n, p, {"easy": 1.0 * (p <= 0.5), "med": 1.0 * med, "hard": 1.0 * (p > 0.5)})

    def score(self, target: str, gamma: float = 0.0) -> float:
        """Leakage score m of a target, with noise N(0, gamma^2/n) on the mean (eq. 7 and 12)."""
        return float(ls.bounds.noisy_score(self.targets[target], self.p, self.variance, self.n, gamma=gamma))

    @property
    def variance(self) -> Array:
        """Variance of each column, (d,)."""
        return self.p * (1 - self.p)

    def product(self, one: Array, other: Array) -> float:
        """Product of two records less the mean, over n, in the geometry of the covariance (m_scal of Theorem 4.5)."""
        return float((one - self.p) @ ((other - self.p) / self.variance)) / self.n

    def angle(self, one: Array, other: Array) -> float:
        """Angle of two records seen from the mean, in degrees, in the geometry of the covariance (Figure 1)."""
        lengths = np.sqrt(self.product(one, one) * self.product(other, other))
        return float(np.degrees(np.arccos(np.clip(self.product(one, other) / lengths, -1, 1))))

    def record_at(self, degrees: float, target: str, rng: np.random.Generator) -> Array:
        """Draw a record of bits at an angle from a target.

        Some of its columns are those of the target, or beyond 90 degrees those of its opposite; all others are drawn
        from the distribution of the data. How many are kept is chosen so that the angle is nearest to the given one.
        """
        z = self.targets[target]
        kept = z if degrees <= 90 else 1 - z
        drawn = 1.0 * (rng.random(len(z)) < self.p)
        order = rng.permutation(len(z))
        # What each column adds to the product with the target and to the squared length when it is kept.
        to_product = ((kept - drawn) * (z - self.p) / self.variance)[order] / self.n
        to_square = (((kept - self.p) ** 2 - (drawn - self.p) ** 2) / self.variance)[order] / self.n
        products = self.product(drawn, z) + np.concatenate([[0.0], np.cumsum(to_product)])
        squares = self.product(drawn, drawn) + np.concatenate([[0.0], np.cumsum(to_square)])
        cosines = products / np.sqrt(squares * self.product(z, z))
        n_kept = int(np.argmin(abs(cosines - np.cos(np.radians(degrees)))))
        record = drawn.copy()
        record[order[:n_kept]] = kept[order[:n_kept]]
        return record


@dataclass(frozen=True)
class Games:
    """Where the game is played."""

    lab: Lab
    world: World
    rounds: int
    name: str = "games"

    def play(self, target: str, gamma: float = 0.0, rho: float = 1.0) -> ls.Signals:
        """Play all rounds for a target and return what the attacker sees (Algorithm 2)."""
        return self._signals(target, [self.world.targets[target]], gamma, rho)

    def play_tested(self, target: str, tested: Sequence[Array]) -> list[ls.Scores]:
        """Play all rounds for a target, and score each of them by the ratio for each of the tested records.

        The target alone is in or out: what is released does not depend on the record that an attacker tests for.
        """
        scores = ratio(self._signals(target, [self.world.targets[target], *tested], 0.0, 1.0))
        member = scores.member[:, [0]]
        return [ls.Scores(scores.attack, scores.value[:, [column]], member) for column in range(1, 1 + len(tested))]

    def _signals(self, target: str, records: Sequence[Array], gamma: float, rho: float) -> ls.Signals:
        """Signals of the records, the first of which is the target."""
        seed, n = ls.seeds.integer(self.lab.seed, self.name, target, str(gamma), str(rho)), self.world.n
        distribution, noise = ls.releases.Bernoulli(self.world.p), gamma / np.sqrt(n)
        release = ls.releases.FreshMean(distribution, n, noise=noise, rate=rho, name=f"the mean, {target} target")
        game = ls.games.per_datum(1, 0, self.rounds, seed=seed, others="fresh")
        if len(records) > 1:
            never = np.zeros((self.rounds, len(records) - 1), dtype=bool)
            game = replace(game, member=np.hstack([game.member, never]), is_target_point=np.ones(len(records), bool))
        x = np.array(records)
        points = ls.Points(x, digest=hashlib.sha256(x.tobytes()).hexdigest())
        want = ["step_dot", "step_norm", "dot"]
        return ls.signals_of(release, points, game, want, seed=seed, **self.lab.execution)


def ratio(signals: ls.Signals, rho: float = 1.0) -> ls.Scores:
    """Log-likelihood ratios (rounds, 1), by eq. 10 (with noise eq. 11); after sub-sampling those of the mixture."""
    return ls.attacks.ATTACKS["likelihood_ratio"].with_parameters(rate=rho)(signals)


def over_draws(worlds: Sequence[World], target: str, gamma: float = 0.0) -> Ours:
    """Mean of a leakage score over draws of p. The paper has one draw: the deviation is the printed number's error."""
    return mean_of(scores_of(worlds, target, gamma), detail=f"mean of {len(worlds)} draws of p")


def scores_of(worlds: Sequence[World], target: str, gamma: float = 0.0) -> list[float]:
    """Leakage score of a target in each draw of p."""
    return [world.score(target, gamma) for world in worlds]


def moments(scores: ls.Scores, m: float) -> dict[str, Ours]:
    """Means of the score in units of -m/2 (out) and m/2 (in), and its variance out in units of m (Theorem 3.1)."""
    inside, outside = scores.value[scores.member], scores.value[~scores.member]
    return {
        "out_mean": mean_of(outside / (-m / 2)),
        "in_mean": mean_of(inside / (m / 2)),
        "variance": relative_variance(outside, m),
    }


def relative_variance(values: Array, unit: float) -> Ours:
    """Variance of independent values, in a unit."""
    squares = (values - values.mean()) ** 2 * len(values) / (len(values) - 1)
    return mean_of(squares / unit)


def advantage(scores: ls.Scores) -> Ours:
    """TPR - FPR at the best threshold, which of a log-likelihood ratio is 0."""
    return separation(scores.value > 0, scores.member)


def separation(values: Array, member: Array) -> Ours:
    """Mean over the rounds with the target less the mean over the others: of calls, the advantage."""
    inside, outside = values[member], values[~member]
    error = np.hypot(*(side.std(ddof=1) / np.sqrt(len(side)) for side in (inside, outside)))
    return Ours(float(inside.mean() - outside.mean()), float(error), detail=f"{values.size:,} rounds")


def compared(ours: Ours, printed: float, unit: float = 1.0) -> Ours:
    """Ours less the value of a printed formula, in a unit."""
    return Ours((float(ours.value) - printed) / unit, ours.error / abs(unit), detail=ours.detail)


def first_rounds(scores: ls.Scores, n: int) -> ls.Scores:
    """Those of the first n rounds."""
    return ls.Scores(scores.attack, scores.value[:n], scores.member[:n])


def operating_points(scores: ls.Scores) -> tuple[Array, Array]:
    """FPR and TPR of every threshold, from the strictest one."""
    member = scores.member[np.argsort(-scores.value, axis=0, kind="stable")[:, 0], 0]
    called = np.array([np.cumsum(~member), np.cumsum(member)])
    fpr, tpr = np.column_stack([[0, 0], called]) / called[:, -1:]
    return fpr, tpr


def band_widths(scores: ls.Scores) -> tuple[float, float]:
    """Half-widths of the Kolmogorov bands of FPR and TPR, which hold at once with probability .999."""
    confidence = (1 + BAND) / 2
    n_members, n_others = int(scores.member.sum()), int((~scores.member).sum())
    return ls.intervals.dkw(n_others, confidence), ls.intervals.dkw(n_members, confidence)


def distance(fpr: Array, tpr: Array, curve: ls.tradeoff.TradeOff, widths: tuple[float, float]) -> float:
    """Find the least factor of a band around a curve that holds all operating points."""
    at = ndtr(np.linspace(-6, 6, 2001))
    apart = np.maximum(abs(fpr[:, None] - at) / widths[0], abs(tpr[:, None] - curve.tpr_at(at)) / widths[1])
    return float(apart.min(axis=1).max())
