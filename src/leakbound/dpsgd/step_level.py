"""DP-SGD audited step by step, where it is known which canaries are in the batch of each step.

A step adds N(0, sigma^2 c^2 I) to the sum of the clipped gradients of a batch. A Dirac canary has a gradient of length
c at a coordinate of its own. So each pair of a canary and a step is an observation of one Gaussian mechanism: with the
terms of `leakbound.dpsgd.observer`,

    v = D^T C0^-1 (w - mu0) / sqrt(D^T C0^-1 D),

which is N(0, 1) if the canary is not in the batch, and N(1/sigma, 1) if it is (Nasr et al. 2023).

1. *The size of a step.* Any test of a Gaussian mechanism of size mu has ``TPR <= Phi(mu + Phi^-1(FPR))``. At a
   threshold that is fixed before the training, let TPR be the fraction of pairs in a batch with v above it, and FPR
   that of the pairs not in a batch. With exact limits of both rates, ``mu >= Phi^-1(TPR_low) - Phi^-1(FPR_high)``; the
   level is divided by the number of thresholds. To call the pairs below a threshold gives the same number, for
   ``-Phi^-1(1 - p) = Phi^-1(p)``, so that one test serves both directions.
2. *Pairs that are not alike.* The region ``TPR <= Phi(mu + Phi^-1(FPR))`` is convex, so the average of points of
   Gaussian mechanisms of sizes of at most mu lies in it: shorter gradients, and parameters that are rounded, can only
   make the result smaller. Both averages must be over the same pairs. So both are over the members: whether one of
   them is in a batch is a coin that depends on nothing else. At a sampling rate of 1 no member is ever outside, and the
   canaries that are no members take that place.
3. *The rate of the batches* is counted too: of all pairs of a member and a step, those in which it is in the batch.
4. *Epsilon* is that of the accountant, for the smallest size and the smallest rate at the level together.

Axes: T models, J canaries, S steps, K thresholds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtri

from leakbound.core.checks import probability
from leakbound.core.intervals import clopper_pearson_lower, clopper_pearson_upper
from leakbound.core.numerics import bisect
from leakbound.core.types import Signals
from leakbound.dpsgd.accountant import dpsgd as accountant
from leakbound.dpsgd.config import DpSgd

Array = np.ndarray
SIGNALS = ("step_dot", "step_norm", "step_in")
THRESHOLDS = (0.5, 1.0, 2.0)  # in units of 1/sigma, the claimed mean of v in a batch
OF_RATE = 0.2  # the fraction of the level that the rate of the batches takes


@dataclass(frozen=True)
class StepLevel:
    """How often canaries are seen in the batches that they are in, and in those that they are not in.

    The limits hold if the noise is independent over steps and over the coordinates of the canaries, if a record moves
    each step of the mechanism in the same way (a Gaussian mechanism of one size), and if each member is in each batch
    by a coin of its own. Nothing is said of other mechanisms: this is no lower bound of epsilon without assumptions.

    >>> claimed = DpSgd(noise_multiplier=1.0, sample_rate=0.05, steps=200)
    >>> seen = StepLevel(claimed, 5_000, 95_000, 100_000, (3_460, 2_500, 790), (29_310, 15_070, 2_160))
    >>> round(seen.least_size(0.05), 2), round(seen.epsilon(1e-5, 0.95), 2), round(claimed.ceiling().epsilon(1e-5), 2)
    (0.94, 4.12, 4.77)
    """

    dpsgd: DpSgd
    n_in: int  # pairs of a canary and a step with the canary in the batch
    n_out: int
    n_pairs: int
    above_in: tuple[int, ...]
    above_out: tuple[int, ...]

    @classmethod
    def of(cls, signals: Signals, dpsgd: DpSgd) -> StepLevel | None:
        """Count the pairs of all attacked models."""
        # no batches were told, or they have a fixed size and are not drawn by coins
        if any(name not in signals.arrays for name in SIGNALS) or dpsgd.batches == "fixed":
            return None
        thresholds = np.array(THRESHOLDS) / dpsgd.noise_multiplier
        n_in = n_out = n_pairs = 0
        above_in, above_out = np.zeros(len(thresholds), dtype=int), np.zeros(len(thresholds), dtype=int)
        for block in signals.blocks():
            dot, norm, in_batch = (signals.targets(name, block).astype(float) for name in SIGNALS)
            # a score for each pair of record and step, by whether the record was in the batch
            score = dot / np.sqrt(np.maximum(norm, np.finfo(float).tiny))
            member = signals.game.at_targets(signals.game.member, block)[..., None]
            inside = member & (in_batch > 0)
            outside = (~member if dpsgd.sample_rate == 1 else member) & (in_batch == 0)
            n_in += int(inside.sum())
            n_out += int(outside.sum())
            n_pairs += int(member.sum()) * score.shape[2]
            above_in += _above(score[inside], thresholds)
            above_out += _above(score[outside], thresholds)
        return cls(dpsgd, n_in, n_out, n_pairs, tuple(above_in.tolist()), tuple(above_out.tolist()))

    def least_size(self, level: float) -> float:
        """Compute the smallest mu that is not rejected; with `least_rate` both hold but with probability ``level``."""
        if not self.n_in or not self.n_out:
            return 0.0
        tail = level * (1 - OF_RATE) / (2 * len(self.above_in))
        tpr = clopper_pearson_lower(np.array(self.above_in), self.n_in, tail)
        fpr = clopper_pearson_upper(np.array(self.above_out), self.n_out, tail)
        return max(0.0, float((ndtri(tpr) - ndtri(fpr)).max()))

    def most_noise(self, level: float) -> float:
        """Compute the largest noise multiplier that is not rejected: of sizes of at most 1/sigma; may be infinite."""
        size = self.least_size(level)
        return 1 / size if size > 0 else math.inf

    def least_rate(self, level: float) -> float:
        """Compute the smallest sampling rate that is not rejected; see `least_size`."""
        if not self.n_pairs:
            return 0.0
        return float(clopper_pearson_lower(self.n_in, self.n_pairs, level * OF_RATE))

    def epsilon(
        self, delta: float, confidence: float, adjacency: Literal["add_remove", "replace_one"] = "add_remove"
    ) -> float:
        """Compute the accountant's epsilon for the smallest size and the smallest rate that are not rejected."""
        level = 1 - probability("confidence", confidence, open_ends=True)
        size, rate = self.least_size(level), self.least_rate(level)
        if size < 1e-6 or rate == 0:
            return 0.0
        epsilon = accountant(1 / size, rate, self.dpsgd.steps, adjacency).epsilon(delta)
        # where the noise is far too small the accountant gives up; a smaller size is still true
        while not math.isfinite(epsilon):
            size *= 0.8
            epsilon = accountant(1 / size, rate, self.dpsgd.steps, adjacency).epsilon(delta)
        return epsilon

    def p_value(self) -> float:
        """Of the claimed noise and rate: that no step is of more than 1/sigma, and no rate above the claimed one."""
        if not self._rejects(1.0):
            return 1.0
        # both limits rise with the level; below e^-100 no p-value is told from another

        def rejects(log_level: float) -> bool:
            return self._rejects(math.exp(log_level))

        return math.exp(bisect(rejects, inside=0.0, outside=-100.0, max_steps=24))

    def _rejects(self, level: float) -> bool:
        return self.most_noise(level) < self.dpsgd.noise_multiplier or self.least_rate(level) > self.dpsgd.sample_rate


def _above(score: Float[Array, " n"], thresholds: Float[Array, " K"]) -> Int[Array, " K"]:
    """Count the scores above each threshold."""
    ordered = np.sort(score)
    return len(ordered) - np.searchsorted(ordered, thresholds, side="right")
