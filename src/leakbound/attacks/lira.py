"""LiRA: the likelihood ratio of two Gaussians, one of models with the record and one of models without.

Of the references on one side of a point (those with it, or those without it) let n be the number, m the mean of phi and
S the sum of ``(phi - m)^2``. With leave one out a target is a reference on its own side, and is taken out of it again:
at the distance d = phi - m it leaves n - 1 references, and

    phi - mean without it = d n / (n - 1),        sum of squares without it = S - d^2 n / (n - 1).

So one pass over the references of a point serves all targets.

Models that were asked about several versions of each point give phi for each of these queries. Every query has
Gaussians of its own, and the score is the mean over the queries: up to the factor 1/Q the likelihood ratio of a
Gaussian of Q coordinates with a diagonal covariance, as in the code of Carlini et al.

Axes: B points of a block, R references, T targets, J target points, U points that are target points of some target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr

from leakbound.attacks.blocks import Block, all_target_points, blocks, require_references, score_points
from leakbound.attacks.queries import mean_score
from leakbound.attacks.scores import as_phi, score_of
from leakbound.core.checks import one_of
from leakbound.core.on_disk import empty_beside
from leakbound.core.types import Signals

Array = np.ndarray
# How many references the pooled variance counts as, when it is averaged with that of the point's own references.
# "point" and "pooled" are those of Carlini et al.; "shrunk" is ours: a variance of few references is mostly noise.
VARIANCES = {"shrunk": 8.0, "point": 0.0, "pooled": np.inf}
_FLOOR = 1e-3  # least variance of a point, as a fraction of the pooled one
_LEAST = 1e-12  # least variance of all, in squared units of the signal
_PHI_OF = ("log_odds", "loss")  # what phi is computed from, the first that is there


def lira(signals: Signals, *, variance: str = "shrunk", signal: str | None = None) -> Float[Array, "T J"]:
    """Compute the online LiRA score ``log N(phi; mean_in, var_in) - log N(phi; mean_out, var_out)``.

    phi is the log-odds of the true label, or -log(loss + 1e-12) if the release has none (regressors), or a score as it
    is: the one that ``signal`` names. The Gaussians are fitted to the references with and without the record. A record
    without references on both sides gets the score 0.

    Source: Carlini, Chien, Nasr, Song, Terzis & Tramer (2022), Algorithm 1; of several queries the mean, as in
    their code; pooled: their fixed variance, one for each side.

    >>> from leakbound.core.types import Game
    >>> member = np.array([[True], [True], [True], [False], [False]])
    >>> game = Game("half_split", member, np.array([True]), 1)
    >>> signals = Signals(game, None, {"log_odds": np.array([[3.0], [2.0], [4.0], [-1.0], [1.0]])})
    >>> float(lira(signals, variance="point")[0, 0])  # 3^2 / 2: as far from the mean 0 as 3 standard deviations
    4.5
    """
    name = score_of(signals, signal, _PHI_OF)
    signals = as_phi(signals, name) if name else signals
    return mean_score(signals, _PHI_OF, lambda query: _online(query, variance))


def _online(signals: Signals, variance: str) -> Float[Array, "T J"]:
    """Compute `lira` of one query."""
    require_references(signals, both=True)
    outside, inside = _references(signals, variance)

    def score(block: Block) -> Float[Array, "B T"]:
        phi = _phi(signals, block.targets)
        distance_out, variance_out = outside.without_own_row(block, phi)
        distance_in, variance_in = inside.without_own_row(block, phi)
        # log N(in) - log N(out) = (log(v_out / v_in) + d_out^2 / v_out - d_in^2 / v_in) / 2, in place
        log_ratio = np.log(variance_out / variance_in)
        log_ratio += np.divide(distance_out, variance_out, out=distance_out)
        log_ratio -= np.divide(distance_in, variance_in, out=distance_in)
        log_ratio /= 2
        log_ratio[np.abs(log_ratio) < 1e-12] = 0  # rounding of phi alone would tell which row was left out
        outside.set_where_missing(block, log_ratio)
        inside.set_where_missing(block, log_ratio)
        return log_ratio

    return score_points(signals.game, _array(signals), score, signals.game.n_targets)


def lira_offline(signals: Signals, *, variance: str = "shrunk", signal: str | None = None) -> Float[Array, "T J"]:
    """Compute the offline LiRA score, the log-probability that a model without the record has a smaller phi.

    ``log Phi((phi - mean_out) / sd_out)``, one-sided. A record that all references contain gets log(1/2).

    Source: Carlini, Chien, Nasr, Song, Terzis & Tramer (2022), eq. 4.

    >>> from leakbound.core.types import Game
    >>> game = Game("half_split", np.array([[True], [False], [False]]), np.array([True]), 1)
    >>> signals = Signals(game, None, {"log_odds": np.array([[2.0], [-1.0], [1.0]])})
    >>> round(float(np.exp(lira_offline(signals, variance="point")[0, 0])), 6)  # Phi(2)
    0.97725
    """
    name = score_of(signals, signal, _PHI_OF)
    signals = as_phi(signals, name) if name else signals
    return mean_score(signals, _PHI_OF, lambda query: _offline(query, variance))


def _offline(signals: Signals, variance: str) -> Float[Array, "T J"]:
    """Compute `lira_offline` of one query."""
    require_references(signals, without=True)
    outside, _ = _references(signals, variance)

    def score(block: Block) -> Float[Array, "B T"]:
        phi = _phi(signals, block.targets)
        distance, variance_out = outside.without_own_row(block, phi)
        z = np.copysign(np.sqrt(distance / variance_out), phi - outside.mean[block.place])
        z[np.abs(z) < 1e-7] = 0  # rounding of phi alone would tell which row was left out
        outside.set_where_missing(block, z)
        return log_ndtr(z)

    return score_points(signals.game, _array(signals), score, signals.game.n_targets)


@dataclass(frozen=True, eq=False)
class _References:
    """The references with (or without) each point, a target's own row among them, in the dtype of the signal."""

    with_point: bool
    n: Float[Array, "U 1"]
    mean: Float[Array, "U 1"]
    squares: Float[Array, "U 1"]  # sum of the squared distances to the mean
    pooled: Float[Array, "1 T"]  # variance over all target points of a target
    weight: float  # number of references that the pooled variance counts as

    def without_own_row(
        self, block: Block, phi: Float[Array, "B T"]
    ) -> tuple[Float[Array, "B T"], Float[Array, "B T"]]:
        """Compute the squared distance of phi to the mean, and the variance, for each target."""
        n, squares = self.n[block.place], self.squares[block.place]
        without_one = n / np.maximum(n - 1, 1)
        own = _own_rows(block, self.with_point, phi.dtype)  # 1 or 0: products with columns are faster than np.where
        distance = phi - self.mean[block.place]
        distance *= distance
        own_distance = own * distance
        if np.isinf(self.weight):
            variance = np.broadcast_to(self.pooled, phi.shape)
        else:
            # (squares - own_distance n / (n - 1) + weight pooled) / (n - own + weight), in place
            variance = squares + self.weight * self.pooled
            variance -= own_distance * without_one
            per_all, per_others = (1 / np.maximum(n - one + self.weight, 1) for one in (0, 1))
            own *= per_others - per_all
            own += per_all
            variance *= own
            np.maximum(variance, np.maximum(_FLOOR * self.pooled, _LEAST), out=variance)
        # d^2 (n/(n - 1))^2 for a row that is left out, d^2 for the others.
        own_distance *= without_one**2 - 1
        distance += own_distance
        return distance, variance

    def set_where_missing(self, block: Block, scores: Float[Array, "B T"]) -> None:
        """Set the scores of targets without a reference on this side to 0."""
        n = self.n[block.place]
        if n.min() <= 1:
            scores[n <= block.left_out(self.with_point)] = 0


def _references(signals: Signals, variance: str) -> tuple[_References, _References]:
    """Estimate the Gaussians of the references without and of those with each point."""
    weight = VARIANCES[one_of("variance", variance, VARIANCES)]
    game, phi_of = signals.game, _array(signals)
    points, dtype = all_target_points(game), phi_of.dtype
    moments = empty_beside(phi_of, (2, 3, len(points), 1), dtype)
    pooled_n, pooled_squares = np.zeros((2, 2, game.n_targets))  # without and with the point
    for block in blocks(game, points, game.n_models):
        moments[:, :, block.place, 0] = _moments(block, signals)
        phi, target = _phi(signals, block.targets), block.is_target.astype(dtype)
        for side in (0, 1):
            n, mean, squares = moments[side, :, block.place]
            own = _own_rows(block, bool(side), dtype) * target
            pooled_n[side] += n[:, 0] @ target - own.sum(axis=0)
            # Pooled over a target's points: each sum of squares without the target's own row, S - d^2 n/(n - 1).
            own_squares = np.square(phi - mean)
            own_squares *= own
            pooled_squares[side] += squares[:, 0] @ target - (n / np.maximum(n - 1, 1))[:, 0] @ own_squares
    pooled = np.maximum(pooled_squares / np.maximum(pooled_n, 1), _LEAST).astype(dtype)
    sides = []
    for side in (0, 1):
        n, mean, squares = moments[side]
        sides.append(_References(bool(side), n, mean, squares, pooled[side][None], weight))
    return sides[0], sides[1]


def _moments(block: Block, signals: Signals) -> Float[Array, "2 3 B"]:
    """Compute number, mean and sum of squares of all references without and of all with each point."""
    values = _phi(signals, block.references).astype(np.float64)
    inside = block.references(block.game.member).astype(np.float64)
    ones = np.ones(values.shape[1])  # a product with ones sums over references without temporary arrays
    centre = (values @ ones / len(ones))[:, None]
    values -= centre  # sums of squares keep their digits only around a centre
    n_in, sum_in = inside @ ones, np.vecdot(inside, values)
    square = np.vecdot(values, values)
    inside *= values  # from here on the values of the references with the point, and 0 for the others
    square_in = np.vecdot(inside, values)
    n = np.stack([values.shape[1] - n_in, n_in])
    mean = np.stack([-sum_in, sum_in]) / np.maximum(n, 1)  # the values of both sides sum to 0
    squares = np.stack([square - square_in, square_in]) - n * mean**2
    return np.stack([n, mean + centre[:, 0], np.maximum(squares, 0)], axis=1)


def _own_rows(block: Block, with_point: bool, dtype: np.dtype) -> Float[Array, "B T"]:
    """Return 1 where a target's own row is one of the references with (without) the point, else 0."""
    return block.left_out(with_point).astype(dtype)


def _array(signals: Signals) -> Float[Array, "M N"]:
    """Return the signal that phi is computed from."""
    return signals.array(*_PHI_OF)


def _phi(signals: Signals, take: Callable[[Array], Array]) -> Float[Array, "B m"]:
    """Take the log-odds as they are, and a loss as -log(loss + 1e-12): both are near to Gaussian over models."""
    values = take(_array(signals))
    return values if "log_odds" in signals.arrays else -np.log(values + 1e-12)
