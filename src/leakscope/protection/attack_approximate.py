"""The attacker who takes the statistic for Gaussian: the likelihood ratio of each record, on simulated releases.

By the law of total covariance the statistic has, given whether x is in D, the covariance ``T - p (1 - p) D D^T``
(the mean over the two cases): T is its covariance over the draw of D, D what x moves its mean by, p the share of the
draws that hold x. So one matrix serves all records (Sherman & Morrison).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from leakscope.attacks import ATTACKS
from leakscope.core.findings import Term
from leakscope.core.seeds import stream
from leakscope.core.types import Game, Noise, Signals
from leakscope.metrics.thresholds import best_threshold
from leakscope.noise import Lp, Mahalanobis
from leakscope.protection.attack_simulated import AttackConfig, Drawn, Played
from leakscope.protection.mechanism import Mechanism

Array = np.ndarray
_RIDGE = 1e-9  # of the variance of each coordinate: a direction that only x moves separates, and does not divide by 0


@dataclass(frozen=True, eq=False)
class Ratio:
    """The likelihood ratio of every record, for one noise.

    Parameters
    ----------
    mean : array of shape (d,)
        Of the release over the draw of D.
    weights : array of shape (n, d)
        ``C^-1 D``: C the covariance of the release given membership, D what the record moves its mean by.
    norm : array of shape (n,)
        ``D^T C^-1 D``.
    share : array of shape (n,)
        Of the data sets that hold the record.
    """

    mean: Float[Array, " d"]
    weights: Float[Array, "n d"]
    norm: Float[Array, " n"]
    share: Float[Array, " n"]

    def signals(self, seen: Float[Array, "m d"], member: Bool[Array, "m J"], targets: Int[Array, "m J"]) -> Signals:
        """What the attack reads: 0, which says nothing, where the statistic failed.

        Without x the mean of the release is ``mean - share D``, and ``D^T C^-1 (share D) = share norm``.
        """
        shown = np.isfinite(seen).all(axis=1, keepdims=True)
        moved = np.where(shown, seen - self.mean, 0.0)
        dot = np.einsum("md,mjd->mj", moved, self.weights[targets]) + (self.share * self.norm)[targets]
        steps = {"step_dot": dot, "step_norm": self.norm[targets]}
        kind = "per_datum" if targets.shape[1] == 1 else "canaries"
        game = Game(kind, member, np.ones(targets.shape[1], dtype=bool), len(seen), float(self.share.mean()))
        return Signals(game, None, {name: np.where(shown, x, 0.0)[..., None] for name, x in steps.items()})


@dataclass(frozen=True, eq=False)
class Law:
    """Mean and covariance of the statistic over the draw of D, and what each record moves it by.

    Parameters
    ----------
    mean : array of shape (d,)
    covariance : array of shape (d, d)
    delta : array of shape (n, d)
        Mean with the record less mean without it.
    share : array of shape (n,)
        Of the data sets that hold the record.
    error : array of shape (n,)
        Covariance of the estimated delta, as a multiple of that of the statistic; 0 where delta is known.
    ridge : float
        Variance added to each coordinate, as a multiple of its own.
    """

    mean: Float[Array, " d"]
    covariance: Float[Array, "d d"]
    delta: Float[Array, "n d"]
    share: Float[Array, " n"]
    error: Float[Array, " n"]
    ridge: float = _RIDGE

    @classmethod
    def known(cls, features: Float[Array, "n d"], k: int, divisor: int) -> Law:
        """Of a sum of the features of k of n records, drawn without replacement.

        With x it is f(x) and k - 1 of the others, without it k of the others, so that its mean moves by ``f(x)``
        less the mean of the others, ``(f(x) - mean) n/(n - 1)``; its covariance is ``k (n - k)/(n - 1)`` that of
        the features (divisor n).
        """
        n = len(features)
        mean = features.mean(axis=0)
        centred = features - mean
        covariance = centred.T @ centred * (k * (n - k) / (n * (n - 1) * divisor**2))
        delta = centred * (n / ((n - 1) * divisor))
        return cls(k * mean / divisor, covariance, delta, np.full(n, k / n), np.zeros(n))

    @classmethod
    def learned(cls, drawn: Drawn, prior: float) -> Law:
        """From simulated data sets; a record that is in all of them or in none moves nothing."""
        drawn = drawn.take(~drawn.failed)
        n_sets, d = drawn.outputs.shape
        if n_sets < 2:
            still = np.zeros(d), np.zeros((d, d)), np.zeros((drawn.n, d))
            return cls(*still, np.full(drawn.n, prior), np.zeros(drawn.n))
        mean = drawn.outputs.mean(axis=0)
        centred = drawn.outputs - mean
        found = drawn.sums(np.column_stack([centred, np.ones(n_sets)]))
        inside = found[:, -1]
        both = (inside > 0) & (inside < n_sets)
        error = np.where(both, n_sets / np.where(both, inside * (n_sets - inside), 1), 0.0)  # 1/in + 1/out
        # sums are around the mean of all: what the sets without x sum to is minus that of the sets with it
        delta = found[:, :-1] * error[:, None]
        ridge = _RIDGE if n_sets >= 4 * d else d / (d + n_sets)
        share = np.where(both, inside / n_sets, prior)
        return cls(mean, centred.T @ centred / n_sets, delta, share, error, ridge)

    def ratio(self, noise: Noise | None) -> Ratio:
        """The likelihood ratio of every record if this noise is added.

        An estimated delta is too long by its error, on average; it is shrunk by that share.
        """
        total = self.covariance + _covariance(noise, len(self.mean))
        scale = np.sqrt(np.diagonal(total))
        scale = np.where(scale > 0, scale, 1.0)
        ridged = total / np.outer(scale, scale) + self.ridge * np.eye(len(scale))
        delta = self.delta / scale
        pulled = np.linalg.solve(ridged, delta.T).T
        square = np.einsum("nd,nd->n", delta, pulled)
        excess = self.error * np.trace(np.linalg.solve(ridged, self.covariance / np.outer(scale, scale)))
        kept = np.where(square > excess, 1 - excess / np.where(square > 0, square, 1), 0.0)
        square = square * kept**2
        given = np.maximum(1 - self.share * (1 - self.share) * square, _RIDGE)  # Sherman & Morrison
        return Ratio(self.mean, pulled * (kept / given)[:, None] / scale, square / given, self.share)


@dataclass(frozen=True, eq=False)
class Simulation:
    """Simulated games, and the distribution that the attacker knows or has learned from the first of them.

    Parameters
    ----------
    mechanism : Mechanism
    ask : AttackConfig
    drawn : Drawn
    distribution : Law
    known : bool
        Whether the distribution needed no learning.
    n_learned, n_set_aside : int
        Games from which the distribution was learned, and those further ones on which the threshold is set.
    """

    mechanism: Mechanism
    ask: AttackConfig
    drawn: Drawn
    distribution: Law
    known: bool
    n_learned: int = 0
    n_set_aside: int = 0

    @classmethod
    def of(cls, mechanism: Mechanism, ask: AttackConfig) -> Simulation:
        """The distribution of sums and means is known; of other statistics half of the games teach it."""
        drawn, features = Drawn.of(mechanism, ask), ask.features(mechanism)
        if features is not None:
            return cls(mechanism, ask, drawn, Law.known(features, mechanism.k, mechanism.divisor), True)
        n_learned = ask.n_games // 3
        distribution = Law.learned(drawn.take(slice(n_learned)), mechanism.prior)
        return cls(mechanism, ask, drawn, distribution, False, n_learned, ask.n_games // 2 - n_learned)

    @property
    def tested(self) -> slice:
        """The games that count."""
        return slice(self.n_learned + self.n_set_aside, None)

    def played(self, noise: Noise | None) -> Played:
        """The games of the likelihood ratio against the target."""
        attack, ratio, rows = ATTACKS["likelihood_ratio"], self.distribution.ratio(noise), self.tested
        record = self.ask.target(ratio.norm)
        targets = self.ask.targets(record, self.drawn.n, len(self.drawn.outputs))[:, None]
        member = self.drawn.member(targets)
        score = attack(ratio.signals(self._seen(noise), member, targets)).value[:, 0]
        failed = self.drawn.failed
        guess = np.where(failed, self.mechanism.prior > 0.5, self._called(score, member[:, 0], failed))
        method = Term("gaussian_known")
        if not self.known:
            method = Term("gaussian_learned", learned=self.n_learned, aside=self.n_set_aside)
        played = score[rows], member[rows, 0], guess[rows]
        return Played(record, *played, attack.name, attack.source, (method,), int(failed[rows].sum()))

    def signals(self, noise: Noise | None, n_others: int) -> Signals:
        """The games that count, at the most exposed record and at others drawn at random."""
        ratio = self.distribution.ratio(noise)
        first = int(ratio.norm.argmax()) if self.ask.record is None else self.ask.record
        rest = np.delete(np.arange(self.drawn.n), first)
        others = stream(self.ask.seed, "calibrate", "contest", "others").permutation(rest)[:n_others]
        drawn = self.drawn.take(self.tested)
        targets = np.tile(np.r_[first, others], (len(drawn.outputs), 1))
        return ratio.signals(self._seen(noise)[self.tested], drawn.member(targets), targets)

    def _seen(self, noise: Noise | None) -> Float[Array, "m d"]:
        """What was released in each game."""
        return self.drawn.outputs + self.ask.noise(noise, *self.drawn.outputs.shape)

    def _called(
        self, score: Float[Array, " m"], member: Bool[Array, " m"], failed: Bool[Array, " m"]
    ) -> Bool[Array, " m"]:
        """Whom the attacker calls members: by the posterior, or by the threshold that was best on games set aside."""
        prior = self.mechanism.prior
        if self.known:
            return score > math.log((1 - prior) / prior)
        aside = np.zeros(len(score), dtype=bool)
        aside[self.n_learned : self.n_learned + self.n_set_aside] = True
        aside &= ~failed
        if not aside.any():
            return np.full(len(score), prior > 0.5)
        threshold = best_threshold(score[aside], np.where(member[aside], 1.0, -1.0))
        return (score >= threshold) | (score[aside] >= threshold).all()


def _covariance(noise: Noise | None, d: int) -> Float[Array, "d d"]:
    """Of the noise: in the standard coordinates of its norm the coordinates are exchangeable and uncorrelated."""
    if noise is None:
        return np.zeros((d, d))
    root = noise.norm.restore(np.eye(d)) if isinstance(noise.norm, Lp | Mahalanobis) else np.eye(d)
    spread = root.T @ root
    return noise.rms(d) ** 2 * d / np.trace(spread) * spread
