"""The attacker who takes the statistic for Gaussian: the likelihood ratio of each record, on simulated releases.

By the law of total covariance the statistic has, given whether x is in D, the covariance ``T - p (1 - p) D D^T``
(the mean over the two cases): T is its covariance over the draw of D, D what x moves its mean by, p the fraction of
the draws that hold x. So one matrix serves all records (Sherman & Morrison).

Of sums and means this distribution is known. Of other statistics the attacker learns it from a third of the games and
sets the threshold on a sixth; the other half counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.attacks import ATTACKS
from leakbound.core.findings import Term
from leakbound.core.seeds import stream
from leakbound.core.types import Game, Noise, Scores, Signals
from leakbound.metrics.thresholds import best_threshold
from leakbound.noise import Lp, Mahalanobis
from leakbound.protection.attack.games import AttackConfig, AttackResult, SimulatedSets
from leakbound.protection.setting.mechanism import Mechanism

Array = np.ndarray
_RIDGE = 1e-9  # of the variance of each coordinate: a direction that only x moves separates, and does not divide by 0


@dataclass(frozen=True, eq=False)
class LikelihoodRatio:
    """The likelihood ratio of every record, for one noise."""

    mean: Float[Array, " d"]
    # C^-1 D: C the covariance of the release given membership, D what the record moves its mean by
    weights: Float[Array, "n d"]
    norm: Float[Array, " n"]
    fraction: Float[Array, " n"]

    def signals(self, releases: Float[Array, "m d"], member: Bool[Array, "m J"], targets: Int[Array, "m J"]) -> Signals:
        """Compute what the attack reads: 0, which says nothing, where the statistic failed.

        Without x the mean of the release is ``mean - p D``, and ``D^T C^-1 (p D) = p norm``.
        """
        computed = np.isfinite(releases).all(axis=1, keepdims=True)
        deviation = np.where(computed, releases - self.mean, 0.0)
        dot = np.einsum("md,mjd->mj", deviation, self.weights[targets]) + (self.fraction * self.norm)[targets]
        steps = {"step_dot": dot, "step_norm": self.norm[targets]}
        n_target_points = targets.shape[1]
        kind = "per_datum" if n_target_points == 1 else "canaries"
        game = Game(kind, member, np.ones(n_target_points, dtype=bool), len(releases), float(self.fraction.mean()))
        return Signals(game, None, {name: np.where(computed, x, 0.0)[..., None] for name, x in steps.items()})


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and covariance of the statistic over the draw of D, and what each record moves its mean by."""

    mean: Float[Array, " d"]
    covariance: Float[Array, "d d"]
    delta: Float[Array, "n d"]  # mean with the record minus mean without it
    fraction: Float[Array, " n"]  # of the data sets that hold the record
    # covariance of the estimated delta, as a multiple of that of the statistic; 0 where delta is known
    error: Float[Array, " n"]
    ridge: float = _RIDGE  # variance added to each coordinate, as a multiple of its own

    @classmethod
    def known(cls, features: Float[Array, "n d"], k: int, divisor: int) -> Moments:
        """Compute the moments of a sum of the features of k of n records, drawn without replacement.

        With x it is f(x) and k - 1 of the others, without it k of the others, so that its mean moves by ``f(x)``
        minus the mean of the others, ``(f(x) - mean) n/(n - 1)``; its covariance is ``k (n - k)/(n - 1)`` that of
        the features (divisor n).
        """
        n = len(features)
        mean = features.mean(axis=0)
        centred = features - mean
        covariance = centred.T @ centred * (k * (n - k) / (n * (n - 1) * divisor**2))
        delta = centred * (n / ((n - 1) * divisor))
        return cls(k * mean / divisor, covariance, delta, np.full(n, k / n), np.zeros(n))

    @classmethod
    def learned(cls, sets: SimulatedSets, prior: float) -> Moments:
        """Estimate the moments from simulated data sets; a record that is in all of them or in none moves nothing."""
        sets = sets.take(~sets.failed)
        n_sets, d = sets.outputs.shape
        if n_sets < 2:
            return cls(np.zeros(d), np.zeros((d, d)), np.zeros((sets.n, d)), np.full(sets.n, prior), np.zeros(sets.n))
        mean = sets.outputs.mean(axis=0)
        centred = sets.outputs - mean
        sums = sets.sums(np.column_stack([centred, np.ones(n_sets)]))
        n_inside = sums[:, -1]
        both = (n_inside > 0) & (n_inside < n_sets)
        # 1/inside + 1/outside
        error = np.where(both, n_sets / np.where(both, n_inside * (n_sets - n_inside), 1), 0.0)
        # sums are around the mean of all: what the sets without x sum to is minus that of the sets with it
        delta = sums[:, :-1] * error[:, None]
        # With few sets for the dimension the covariance is nearly singular: a ridge that shrinks as sets are added.
        ridge = _RIDGE if n_sets >= 4 * d else d / (d + n_sets)
        fraction = np.where(both, n_inside / n_sets, prior)
        return cls(mean, centred.T @ centred / n_sets, delta, fraction, error, ridge)

    def ratio(self, noise: Noise | None) -> LikelihoodRatio:
        """Compute the likelihood ratio of every record if this noise is added.

        The squared length of an estimated delta is too large by its error, on average; delta is shrunk accordingly.
        """
        total = self.covariance + noise_covariance(noise, len(self.mean))
        # in units of the deviation of each coordinate, so that the ridge suits all of them
        scale = np.sqrt(np.diagonal(total))
        scale = np.where(scale > 0, scale, 1.0)
        ridged = total / np.outer(scale, scale) + self.ridge * np.eye(len(scale))
        delta = self.delta / scale
        weights = np.linalg.solve(ridged, delta.T).T
        # delta^T T^-1 delta of each record, and what the error of an estimated delta adds to it on average.
        square = np.einsum("nd,nd->n", delta, weights)
        excess = self.error * np.trace(np.linalg.solve(ridged, self.covariance / np.outer(scale, scale)))
        shrinkage = np.where(square > excess, 1 - excess / np.where(square > 0, square, 1), 0.0)
        square = square * shrinkage**2
        # Sherman & Morrison: from T to the covariance given membership
        remaining = np.maximum(1 - self.fraction * (1 - self.fraction) * square, _RIDGE)
        return LikelihoodRatio(
            self.mean, weights * (shrinkage / remaining)[:, None] / scale, square / remaining, self.fraction
        )


@dataclass(frozen=True, eq=False)
class GaussianAttacker:
    """Who knows the moments of the statistic, or has learned them from the first of the simulated games."""

    mechanism: Mechanism
    config: AttackConfig
    sets: SimulatedSets
    moments: Moments
    known: bool
    n_learned: int = 0
    n_set_aside: int = 0

    @classmethod
    def of(cls, mechanism: Mechanism, config: AttackConfig) -> GaussianAttacker:
        """Simulate the games, and take the moments from the features or from a third of the games."""
        sets, features = SimulatedSets.of(mechanism, config), config.features(mechanism)
        if features is not None:
            return cls(mechanism, config, sets, Moments.known(features, mechanism.k, mechanism.divisor), True)
        n_learned = config.n_games // 3
        moments = Moments.learned(sets.take(slice(n_learned)), mechanism.prior)
        return cls(mechanism, config, sets, moments, False, n_learned, config.n_games // 2 - n_learned)

    @property
    def tested(self) -> slice:
        """The games that count."""
        return slice(self.n_learned + self.n_set_aside, None)

    def attack(self, noise: Noise | None) -> AttackResult:
        """Play the games of the likelihood ratio against the target."""
        likelihood_ratio, ratio = ATTACKS["likelihood_ratio"], self.moments.ratio(noise)
        record = self.config.target(ratio.norm)
        targets = self.config.targets(record, self.sets.n, len(self.sets.outputs))
        scores = likelihood_ratio(ratio.signals(self._releases(noise), self.sets.member(targets), targets))
        failed, tested = self.sets.failed, self.tested
        guess = np.where(failed, self.mechanism.prior > 0.5, self._guess(scores, failed))
        method = Term("gaussian_known")
        if not self.known:
            method = Term("gaussian_learned", learned=self.n_learned, aside=self.n_set_aside)
        counted = Scores(scores.attack, scores.value[tested], scores.member[tested], likelihood_ratio.source)
        return AttackResult(record, counted, guess[tested], (method,), int(failed[tested].sum()))

    def signals(self, noise: Noise | None, n_others: int) -> Signals:
        """Return the signals of the games that count: of the most exposed record, and of others drawn at random."""
        ratio = self.moments.ratio(noise)
        first = int(ratio.norm.argmax()) if self.config.record is None else self.config.record
        rest = np.delete(np.arange(self.sets.n), first)
        others = stream(self.config.seed, "calibrate", "contest", "others").permutation(rest)[:n_others]
        sets = self.sets.take(self.tested)
        targets = np.tile(np.r_[first, others], (len(sets.outputs), 1))
        return ratio.signals(self._releases(noise)[self.tested], sets.member(targets), targets)

    def _releases(self, noise: Noise | None) -> Float[Array, "m d"]:
        """Simulate what is released in each game."""
        return self.sets.outputs + self.config.noise(noise, *self.sets.outputs.shape)

    def _guess(self, scores: Scores, failed: Bool[Array, " m"]) -> Bool[Array, " m"]:
        """Call members by the posterior, or by the threshold that was best on the games set aside."""
        score, member, prior = scores.value[:, 0], scores.member[:, 0], self.mechanism.prior
        if self.known:
            return score > math.log((1 - prior) / prior)
        aside = np.zeros(len(score), dtype=bool)
        aside[self.n_learned : self.n_learned + self.n_set_aside] = True
        aside &= ~failed
        if not aside.any():
            return np.full(len(score), prior > 0.5)
        threshold = best_threshold(score[aside], np.where(member[aside], 1.0, -1.0))
        return (score >= threshold) | (score[aside] >= threshold).all()


def noise_covariance(noise: Noise | None, d: int) -> Float[Array, "d d"]:
    """Compute the covariance of a noise.

    In the standard coordinates of its norm the coordinates are exchangeable and uncorrelated.
    """
    if noise is None:
        return np.zeros((d, d))
    root = noise.norm.restore(np.eye(d)) if isinstance(noise.norm, Lp | Mahalanobis) else np.eye(d)
    spread = root.T @ root
    return noise.rms(d) ** 2 * d / np.trace(spread) * spread
