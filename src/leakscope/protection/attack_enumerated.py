"""Small data, where every data set can be tried: the best attacker, exactly or on simulated releases."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from leakscope.bounds.exact import exact_eta, exact_tradeoff, subsets
from leakscope.core.findings import Term
from leakscope.core.seeds import stream
from leakscope.core.tradeoff import Piecewise
from leakscope.core.types import Noise
from leakscope.noise import BallNoise
from leakscope.protection.attack_simulated import AttackConfig, Played
from leakscope.protection.mechanism import Mechanism
from leakscope.releases.statistics.statistic import Fit
from leakscope.runtime.observe import DataSets

Array = np.ndarray
MOST_SUBSETS = 20_000
_MOST_FITS = 4_000  # or as many as there are games
_MOST_MEMBERS = 1 << 22  # memberships in memory, as doubles
_MOST_EXACT = {1: 4_000, 2: 100}  # subsets, by numbers of the output: seconds of integration
_ERRORS = {1: 1e-12, 2: 1e-6}  # of the integral
_TRIED_AGAIN = 32  # data sets on which a fit with another seed must give the same
_TIED = 1e-9  # of the largest output of a coordinate: smaller differences are those of the order of summation
_BLOCK = 1 << 22  # densities in memory at once
_CERTAIN = 1e3  # log-odds that stand for infinite ones
_BAYES = "bayes"
_GUESSING = Piecewise([0.0], [1.0])


@dataclass(frozen=True, eq=False)
class Enumeration:
    """All data sets that the release may have been made from.

    Parameters
    ----------
    mechanism : Mechanism
    ask : AttackConfig
    member : bool array of shape (s, n)
        Those on which the statistic can be computed.
    outputs : array of shape (s, d)
        The statistic on them.
    failed : bool array of shape (t, n)
        Those on which it cannot: there the attacker guesses by the prior.
    """

    mechanism: Mechanism
    ask: AttackConfig
    member: Bool[Array, "s n"]
    outputs: Float[Array, "s d"]
    failed: Bool[Array, "t n"]

    @classmethod
    def of(cls, mechanism: Mechanism, ask: AttackConfig) -> Enumeration | None:
        """None where there are too many data sets, or where a fit is random, so that its output is not known."""
        n, k = mechanism.n, mechanism.k
        n_subsets = math.comb(n, k)
        most = MOST_SUBSETS if mechanism.features is not None else min(MOST_SUBSETS, max(ask.n_games, _MOST_FITS))
        if n_subsets > most or n_subsets * n > _MOST_MEMBERS:
            return None
        member = subsets(n, k)
        outputs = ask.outputs(mechanism, DataSets(member, np.zeros(n_subsets, dtype=np.int64)))
        if isinstance(mechanism.statistic, Fit):
            tried = np.unique(np.linspace(0, n_subsets - 1, _TRIED_AGAIN).astype(int))
            again = ask.outputs(mechanism, DataSets(member[tried], np.ones(len(tried), dtype=np.int64)))
            if not np.array_equal(outputs[tried], again, equal_nan=True):
                return None
        computed = np.isfinite(outputs).all(axis=1)
        return cls(mechanism, ask, member[computed], outputs[computed], member[~computed])

    @property
    def certain(self) -> Enumeration:
        """With outputs that differ by rounding alone made equal: what a release without noise tells."""
        return self if self.ask.grid is not None else replace(self, outputs=_tied(self.outputs))

    def accuracy(self, noise: Noise | None) -> Float[Array, " n"] | None:
        """Share of right guesses of the best attacker against each record; None where it is not integrated.

        Rounded down by the error of the integral.
        """
        n_sets, d = self.outputs.shape
        error = 0.0
        if noise is not None:
            if isinstance(noise, BallNoise) or n_sets > _MOST_EXACT.get(d, 0):
                return None
            error = _ERRORS[d]
        prior = self.mechanism.prior
        blind = self.failed if prior > 0.5 else ~self.failed
        right = blind.sum(axis=0, dtype=float)
        if n_sets:
            try:
                eta = exact_eta(self.outputs, self.member, noise)
            except ValueError:  # its density is too rough for the integral, or falls too slowly
                return None
            share = self.member.mean(axis=0)
            right += n_sets * np.maximum(eta + np.maximum(share, 1 - share) - error, np.maximum(share, 1 - share))
        return right / (n_sets + len(self.failed))

    def played(self, noise: Noise | None) -> Played:
        """The games of the best attacker; those without noise are all data sets, each once."""
        if noise is None:
            return self.certain._all()
        accuracy, ask = self.accuracy(noise), self.ask
        member, inside, outside = self._simulated(noise)
        n_learned = (
            0 if accuracy is not None or ask.record is not None or ask.promise == "average" else ask.n_games // 2
        )
        total = inside + outside
        sure = np.divide(np.maximum(inside, outside), total, out=np.zeros_like(total), where=total > 0)
        learned = sure[:n_learned].mean(axis=0) if n_learned else np.zeros(self.mechanism.n)
        record = ask.target(learned if accuracy is None else accuracy)
        place = ask.targets(record, self.mechanism.n, ask.n_games)[:, None]
        truth, one, other = (np.take_along_axis(x, place, axis=1)[n_learned:, 0] for x in (member, inside, outside))
        guess = (one > other) | ((one == other) & (self.mechanism.prior > 0.5))
        n_failed = int((total[n_learned:].max(axis=1) == 0).sum())
        if accuracy is None:
            exact = None
        elif record is None:
            exact = float(accuracy.mean())
        else:
            exact = float(accuracy[record])
        method = (Term("posterior"), *self._sets())
        return Played(record, _log_odds(one, other), truth, guess, _BAYES, "neyman1933", method, n_failed, exact)

    def _all(self) -> Played:
        """The best attacker of the release without noise: nothing is simulated."""
        accuracy = self.accuracy(None)
        assert accuracy is not None  # it is summed, not integrated
        record = self.ask.target(accuracy)
        exact = float(accuracy.mean() if record is None else accuracy[record])
        method, none = self._sets(), np.zeros(0, dtype=bool)
        curve = self._tradeoff(record)
        return Played(record, np.zeros(0), none, none, _BAYES, "neyman1933", method, 0, exact, curve)

    def _sets(self) -> tuple[Term, ...]:
        """What was enumerated."""
        n_failed = len(self.failed)
        every = Term("all_data_sets", sets=len(self.member) + n_failed)
        return (every, Term("failed_data_sets", failed=n_failed)) if n_failed else (every,)

    def _simulated(self, noise: Noise) -> tuple[Bool[Array, "m n"], Float[Array, "m n"], Float[Array, "m n"]]:
        """Memberships, and how likely each release is with and without each record; 0 and 0 where nothing came out."""
        ask, n_sets = self.ask, len(self.member)
        rng = stream(ask.seed, "calibrate", "contest", "subsets")
        which = rng.integers(n_sets + len(self.failed), size=ask.n_games)
        inside, outside = np.zeros((2, ask.n_games, self.mechanism.n))
        z = ask.noise(noise, ask.n_games, self.outputs.shape[1])
        known, absent = self.member.astype(float), (~self.member).astype(float)
        size = max(1, _BLOCK // max(1, self.outputs.size))
        released = np.flatnonzero(which < n_sets)
        for start in range(0, len(released), size):
            rows = released[start : start + size]
            # A(D) - A(D') + z, so that no digit of the noise is lost beside a large statistic
            apart = (self.outputs[which[rows], None] - self.outputs) + z[rows, None]
            level = noise.log_density(apart)
            highest = level.max(axis=1, keepdims=True)
            density = np.exp(level - np.where(np.isfinite(highest), highest, 0.0))
            inside[rows], outside[rows] = density @ known, density @ absent
        return np.concatenate([self.member, self.failed])[which], inside, outside

    def _tradeoff(self, record: int | None) -> Piecewise:
        """Neyman and Pearson's tests on the statistic itself; outputs with one posterior are one corner."""
        if not len(self.member):
            return _GUESSING
        _, which = np.unique(self.outputs, axis=0, return_inverse=True)
        columns = self.member if record is None else self.member[:, [record]]
        inside, outside = np.zeros((2, which.max() + 1, columns.shape[1]))
        np.add.at(inside, which.ravel(), columns)
        np.add.at(outside, which.ravel(), ~columns)
        chance = (inside / (inside + outside)).ravel()
        _, corner = np.unique(chance.round(12), return_inverse=True)
        distributions = [np.bincount(corner.ravel(), each.ravel()) for each in (inside, outside)]
        if (
            min(distribution.sum() for distribution in distributions) == 0
        ):  # the statistic fails wherever the record is in, or wherever it is out
            return _GUESSING
        return exact_tradeoff(
            np.stack([distribution / distribution.sum() for distribution in distributions]), [[True], [False]], 0
        )


def _log_odds(inside: Float[Array, " m"], outside: Float[Array, " m"]) -> Float[Array, " m"]:
    """Of membership; 0 where nothing was seen."""
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.log(inside) - np.log(outside)
    return np.clip(np.nan_to_num(odds, nan=0.0, posinf=_CERTAIN, neginf=-_CERTAIN), -_CERTAIN, _CERTAIN)


def _tied(outputs: Float[Array, "s d"]) -> Float[Array, "s d"]:
    """Numbers of a coordinate that follow each other at less than the tolerance become the first of them."""
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
