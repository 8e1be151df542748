"""The Bayes attacker of small data, where every data set can be tried: exact, or on simulated releases.

The posterior odds of a record after a release y are ``sum g(y - A(D)) over D with it`` to the same sum over D without
it, g the density of the noise: all k-subsets D are equally likely. Nobody guesses better than by the larger one
(Neyman & Pearson 1933). In one or two dimensions the accuracy is an integral; without noise it is a sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from leakbound.bounds.exact import exact_eta, exact_tradeoff, subsets
from leakbound.core.findings import Term
from leakbound.core.seeds import stream
from leakbound.core.tradeoff import Piecewise
from leakbound.core.types import Noise, Scores
from leakbound.noise import BallNoise
from leakbound.protection.attack.games import AttackConfig, AttackResult
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.statistic import Fit
from leakbound.runtime.observe import DataSets

Array = np.ndarray
MOST_SUBSETS = 20_000
_MOST_FITS = 4_000  # or as many as there are games
_MOST_MEMBERS = 1 << 22  # memberships in memory, as doubles
_MOST_EXACT = {1: 4_000, 2: 100}  # subsets, by coordinates of the output: seconds of integration
_ERRORS = {1: 1e-12, 2: 1e-6}  # of the integral
_TRIED_AGAIN = 32  # data sets on which a fit with another seed must give the same
_TIED = 1e-9  # of the largest output of a coordinate: smaller differences are those of the order of summation
_BLOCK = 1 << 22  # densities in memory at once
_CERTAIN = 1e3  # log-odds in place of infinite ones
_BAYES, _SOURCE = "bayes", "neyman1933"
_GUESSING = Piecewise([0.0], [1.0])


@dataclass(frozen=True, eq=False)
class BayesAttacker:
    """Who knows all data sets that the release may have been made from, and the statistic on each."""

    mechanism: Mechanism
    config: AttackConfig
    member: Bool[Array, "s n"]
    outputs: Float[Array, "s d"]
    failed: Bool[Array, "t n"]

    @classmethod
    def of(cls, mechanism: Mechanism, config: AttackConfig) -> BayesAttacker | None:
        """Try every data set; None where there are too many, or where a random fit has an unknown output."""
        n, k = mechanism.n, mechanism.k
        n_subsets = math.comb(n, k)
        most = MOST_SUBSETS if mechanism.features is not None else min(MOST_SUBSETS, max(config.n_games, _MOST_FITS))
        if n_subsets > most or n_subsets * n > _MOST_MEMBERS:
            return None
        member = subsets(n, k)
        outputs = config.outputs(mechanism, DataSets(member, np.zeros(n_subsets, dtype=np.int64)))
        if isinstance(mechanism.statistic, Fit):
            # Some data sets are fitted with another seed; if an output changes, one fit does not tell P(output | D).
            repeated = np.unique(np.linspace(0, n_subsets - 1, _TRIED_AGAIN).astype(int))
            again = config.outputs(mechanism, DataSets(member[repeated], np.ones(len(repeated), dtype=np.int64)))
            if not np.array_equal(outputs[repeated], again, equal_nan=True):
                return None
        computed = np.isfinite(outputs).all(axis=1)
        return cls(mechanism, config, member[computed], outputs[computed], member[~computed])

    def attack(self, noise: Noise | None) -> AttackResult:
        """Play the games of the best attacker; those without noise are all data sets, each once."""
        return self._without_noise() if noise is None else self._with_noise(noise)

    def accuracy(self, noise: Noise | None) -> Float[Array, " n"] | None:
        """Compute the accuracy of the best attacker against each record; None where it is not integrated.

        Rounded down by the error of the integral.
        """
        n_sets, d = self.outputs.shape
        error = 0.0
        if noise is not None:
            if isinstance(noise, BallNoise) or n_sets > _MOST_EXACT.get(d, 0):
                return None
            error = _ERRORS[d]
        # of a failed data set the better prior guess is right where the record is in, or where it is out
        correct_if_failed = self.failed if self.mechanism.prior > 0.5 else ~self.failed
        n_correct = correct_if_failed.sum(axis=0, dtype=float)
        if n_sets:
            try:
                eta = exact_eta(self.outputs, self.member, noise)
            except ValueError:  # its density is too rough for the integral, or falls too slowly
                return None
            prior = self.member.mean(axis=0)
            prior_accuracy = np.maximum(prior, 1 - prior)
            n_correct += n_sets * np.maximum(eta + prior_accuracy - error, prior_accuracy)
        return n_correct / (n_sets + len(self.failed))

    def _with_noise(self, noise: Noise) -> AttackResult:
        """Guess by the posterior in simulated games; where the accuracy is not integrated, they measure it."""
        config, accuracy = self.config, self.accuracy(noise)
        member, inside, outside = self._simulated(noise)
        total = inside + outside
        # the most exposed record is learned from half of the games, which then do not count
        n_learned = 0
        if accuracy is None and config.record is None and config.promise == "every":
            n_learned = config.n_games // 2
        exposure = accuracy
        if exposure is None:
            larger = np.divide(np.maximum(inside, outside), total, out=np.zeros_like(total), where=total > 0)
            exposure = larger[:n_learned].mean(axis=0) if n_learned else np.zeros(self.mechanism.n)
        record = config.target(exposure)
        targets = config.targets(record, self.mechanism.n, config.n_games)
        truth, one, other = (np.take_along_axis(x, targets, axis=1)[n_learned:] for x in (member, inside, outside))
        guess = (one > other) | ((one == other) & (self.mechanism.prior > 0.5))
        n_failed = int((total[n_learned:].max(axis=1) == 0).sum())
        scores = Scores(_BAYES, _log_odds(one, other), truth, _SOURCE)
        method = (Term("posterior"), *self._tried())
        return AttackResult(record, scores, guess[:, 0], method, n_failed, _against(accuracy, record))

    def _without_noise(self) -> AttackResult:
        """Sum over all data sets: nothing is simulated."""
        attacker = self
        if self.config.grid is None:  # outputs that differ by rounding alone are the same to an attacker
            attacker = replace(self, outputs=_tied(self.outputs))
        accuracy = attacker.accuracy(None)
        assert accuracy is not None  # it is summed, not integrated
        record = self.config.target(accuracy)
        no_games = Scores(_BAYES, np.zeros((0, 1)), np.zeros((0, 1), dtype=bool), _SOURCE)
        tradeoff = attacker._tradeoff(record)
        guess = np.zeros(0, dtype=bool)
        return AttackResult(record, no_games, guess, self._tried(), 0, _against(accuracy, record), tradeoff)

    def _tried(self) -> tuple[Term, ...]:
        """Return how many data sets were tried, and on how many the statistic failed."""
        n_failed = len(self.failed)
        every = Term("all_data_sets", sets=len(self.member) + n_failed)
        return (every, Term("failed_data_sets", failed=n_failed)) if n_failed else (every,)

    def _simulated(self, noise: Noise) -> tuple[Bool[Array, "m n"], Float[Array, "m n"], Float[Array, "m n"]]:
        """Simulate memberships, and how likely each release is with and without each record; 0 where it failed."""
        config, n_sets = self.config, len(self.member)
        rng = stream(config.seed, "calibrate", "contest", "subsets")
        drawn = rng.integers(n_sets + len(self.failed), size=config.n_games)
        inside, outside = np.zeros((2, config.n_games, self.mechanism.n))
        z = config.noise(noise, config.n_games, self.outputs.shape[1])
        with_record, without_record = self.member.astype(float), (~self.member).astype(float)
        size = max(1, _BLOCK // max(1, self.outputs.size))
        released = np.flatnonzero(drawn < n_sets)
        for start in range(0, len(released), size):
            rows = released[start : start + size]
            # A(D) - A(D') + z, so that no digit of the noise is lost next to a large statistic
            difference = (self.outputs[drawn[rows], None] - self.outputs) + z[rows, None]
            log_density = noise.log_density(difference)
            # Only the ratio of inside and outside counts, so the largest density of a release may be scaled to 1.
            highest = log_density.max(axis=1, keepdims=True)
            density = np.exp(log_density - np.where(np.isfinite(highest), highest, 0.0))
            inside[rows], outside[rows] = density @ with_record, density @ without_record
        return np.concatenate([self.member, self.failed])[drawn], inside, outside

    def _tradeoff(self, record: int | None) -> Piecewise:
        """Compute the curve of Neyman and Pearson's tests; outputs with one posterior are one corner."""
        if not len(self.member):
            return _GUESSING
        _, output = np.unique(self.outputs, axis=0, return_inverse=True)
        columns = self.member if record is None else self.member[:, [record]]
        inside, outside = np.zeros((2, output.max() + 1, columns.shape[1]))
        np.add.at(inside, output.ravel(), columns)
        np.add.at(outside, output.ravel(), ~columns)
        if min(inside.sum(), outside.sum()) == 0:  # it fails wherever the record is in, or wherever it is out
            return _GUESSING
        # Neyman and Pearson's test is a threshold on the likelihood ratio, and so on the posterior; rounding joins
        # posteriors that differ by arithmetic alone.
        posterior = (inside / (inside + outside)).ravel()
        _, corner = np.unique(posterior.round(12), return_inverse=True)
        counts = np.stack([np.bincount(corner.ravel(), x.ravel()) for x in (inside, outside)])
        return exact_tradeoff(counts / counts.sum(axis=1, keepdims=True), [[True], [False]], 0)


def _against(accuracy: Float[Array, " n"] | None, record: int | None) -> float | None:
    """Return the accuracy against the target, or the mean over all records where each game has another one."""
    if accuracy is None:
        return None
    return float(accuracy.mean() if record is None else accuracy[record])


def _log_odds(inside: Float[Array, "m 1"], outside: Float[Array, "m 1"]) -> Float[Array, "m 1"]:
    """Compute the log-odds of membership; 0 where nothing was released."""
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.log(inside) - np.log(outside)
    return np.clip(np.nan_to_num(odds, nan=0.0, posinf=_CERTAIN, neginf=-_CERTAIN), -_CERTAIN, _CERTAIN)


def _tied(outputs: Float[Array, "s d"]) -> Float[Array, "s d"]:
    """Replace numbers of a coordinate that follow each other at less than the tolerance by the first of them."""
    if not len(outputs):
        return outputs
    order = np.argsort(outputs, axis=0)
    ordered = np.take_along_axis(outputs, order, axis=0)
    tolerance = _TIED * np.abs(outputs).max(axis=0)
    new = np.diff(ordered, axis=0, prepend=-np.inf) > tolerance
    first = np.maximum.accumulate(np.where(new, np.arange(len(ordered))[:, None], 0), axis=0)
    tied = np.empty_like(outputs)
    np.put_along_axis(tied, order, np.take_along_axis(ordered, first, axis=0), axis=0)
    return tied
