"""LiRA: the likelihood ratio of two Gaussians, one of models with the record and one of models without.

Axes: B points of a block, M models, R references, T targets, J judged points, U points that some target
judges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr

from leakscope.attacks.blocks import Block, blocks, judge, judged_points, require_references
from leakscope.core.checks import one_of
from leakscope.core.types import Game, Signals

Array = np.ndarray
# references that the pooled variance counts as, beside the references of the point itself
VARIANCES = {"shrunk": 8.0, "point": 0.0, "pooled": np.inf}
_FLOOR = 1e-3  # least variance of a point, as a share of the pooled one
_LEAST = 1e-12  # least variance of all, in squared units of the signal


def lira(signals: Signals, *, variance: str = "shrunk") -> Float[Array, "T J"]:
    """Online LiRA: ``log N(phi; mean_in, var_in) - log N(phi; mean_out, var_out)``.

    phi is the log-odds of the true label, or -log(loss + 1e-12) where a release has none (regressors). The
    Gaussians are those of the references with and without the record. A record that has references on one
    side only gets the score 0: nothing speaks for either side.

    Parameters
    ----------
    signals : Signals
        With ``log_odds`` or ``loss``.
    variance : {"shrunk", "point", "pooled"}
        Point: of the references of each point. Pooled: one for all judged points with the record and one for
        all without it, never one in place of the other. Shrunk: the mean of the two, weighted with the number
        of references of the point and with 8. Each is divided by n and at least 1e-3 of the pooled one.

    Returns
    -------
    array of shape (T, J)
        In nats.

    Raises
    ------
    NotApplicable
        If the signal is missing, or references with and without the same judged point.

    References
    ----------
    Carlini, Chien, Nasr, Song, Terzis & Tramer (2022), Algorithm 1; pooled: their fixed variance, a side each.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.core.types import Game, Signals
    >>> member = np.array([[True], [True], [True], [False], [False]])
    >>> game = Game("half_split", member, np.array([True]), 1)
    >>> signals = Signals(game, None, {"log_odds": np.array([[3.0], [2.0], [4.0], [-1.0], [1.0]])})
    >>> float(lira(signals, variance="point")[0, 0])  # 3^2 / 2: as far from the mean 0 as 3 standard deviations
    4.5
    """
    require_references(signals, both=True)
    game, phi = signals.game, _Phi.of(signals)
    outside, inside = _sides(signals, variance)

    def score(block: Block) -> Float[Array, "B T"]:
        own = phi.targets(block)
        left = _left_out(block, own)
        square_out, variance_out = outside.distance(block, own, 1 - left if game.leave_one_out else left)
        square_in, variance_in = inside.distance(block, own, left)
        square_out /= variance_out
        square_in /= variance_in
        square_out -= square_in
        value = np.log(variance_out / variance_in) + square_out
        value /= 2
        value[np.abs(value) < 1e-12] = 0  # what rounding of phi alone may give: it would tell which row was left out
        return _neutral_where_missing(value, 0.0, block, (outside, inside))

    return judge(game, phi.array.dtype, score, game.n_targets)


def lira_offline(signals: Signals, *, variance: str = "shrunk") -> Float[Array, "T J"]:
    """Offline LiRA, one-sided: the log of the probability that a model without the record shows a smaller phi.

    ``log Phi((phi - mean_out) / sd_out)``. A record without references without it gets log(1/2).

    Parameters
    ----------
    signals : Signals
        With ``log_odds`` or ``loss``; phi as in ``lira``.
    variance : {"shrunk", "point", "pooled"}
        As in ``lira``, for the side without the record.

    Returns
    -------
    array of shape (T, J)
        In nats, at most 0.

    Raises
    ------
    NotApplicable
        If the signal is missing, or references without the judged points.

    References
    ----------
    Carlini, Chien, Nasr, Song, Terzis & Tramer (2022), eq. 4.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.core.types import Game, Signals
    >>> game = Game("half_split", np.array([[True], [False], [False]]), np.array([True]), 1)
    >>> signals = Signals(game, None, {"log_odds": np.array([[2.0], [-1.0], [1.0]])})
    >>> round(float(np.exp(lira_offline(signals, variance="point")[0, 0])), 6)  # Phi(2)
    0.97725
    """
    require_references(signals, without=True)
    game, phi = signals.game, _Phi.of(signals)
    outside, _ = _sides(signals, variance)

    def score(block: Block) -> Float[Array, "B T"]:
        own = phi.targets(block)
        left = _left_out(block, own)
        square, spread = outside.distance(block, own, 1 - left if game.leave_one_out else left)
        z = np.copysign(np.sqrt(square / spread), own - outside.mean[block.place])
        z[np.abs(z) < 1e-7] = 0  # what rounding of phi alone may give: it would tell which row was left out
        return _neutral_where_missing(log_ndtr(z), np.log(0.5), block, (outside,))

    return judge(game, phi.array.dtype, score, game.n_targets)


@dataclass(frozen=True, eq=False)
class _Phi:
    """What LiRA reads: near to Gaussian over models."""

    array: Float[Array, "M N"]
    is_loss: bool

    @classmethod
    def of(cls, signals: Signals) -> _Phi:
        return cls(signals.array("log_odds", "loss"), "log_odds" not in signals.arrays)

    def targets(self, block: Block) -> Float[Array, "B T"]:
        return self._read(block.targets(self.array))

    def references(self, block: Block) -> Float[Array, "B R"]:
        return self._read(block.references(self.array))

    def _read(self, values: Float[Array, "B m"]) -> Float[Array, "B m"]:
        return -np.log(values + self.array.dtype.type(1e-12)) if self.is_loss else values


@dataclass(frozen=True, eq=False)
class _Side:
    """Gaussians of phi over the references with each point, or over those without it.

    The numbers of a point are of all its references, a target's own row included; ``distance`` takes it out.
    The columns have the dtype of the signal, so that work on a block is on arrays of its own size only.
    """

    inside: bool
    n: Float[Array, " U"]
    mean: Float[Array, "U 1"]
    squares: Float[Array, "U 1"]  # n times the variance
    grown: Float[Array, "U 1"]  # n / (n - 1)
    excess: Float[Array, "U 1"]  # grown - 1 / grown
    whole: Float[Array, "U 1"]  # 1 / (n + weight)
    less: Float[Array, "U 1"]  # 1 / (n - 1 + weight) - whole
    pooled: Float[Array, "1 T"]  # over all points that the target judges, its own row taken out
    weight: float  # references that the pooled variance counts as

    @classmethod
    def of(
        cls, inside: bool, moments: Float[Array, "3 U"], pooled: Float[Array, " T"], weight: float, like: np.dtype
    ) -> _Side:
        n, mean, variance = moments
        grown = np.where(n > 1, n / np.maximum(n - 1, 1), 0)  # a side without references is set aside later
        whole = 1 / np.maximum(n + weight, 1)

        def column(values: Float[Array, " U"]) -> Float[Array, "U 1"]:
            return values[:, None].astype(like)

        return cls(
            inside,
            n,
            mean=column(mean),
            squares=column(n * variance),
            grown=column(grown),
            excess=column(grown - 1 / np.where(n > 1, grown, 1)),
            whole=column(whole),
            less=column(1 / np.maximum(n - 1 + weight, 1) - whole),
            pooled=pooled[None, :].astype(like),
            weight=weight,
        )

    def distance(
        self, block: Block, own: Float[Array, "B T"], left: Float[Array, "_ _"]
    ) -> tuple[Float[Array, "B T"], Float[Array, "_ T"]]:
        """Squared distance of the target to the mean, and the variance; ``left`` is 1 where it is left out.

        Without one of n values at distance d from their mean, the distance is d n / (n - 1) and the sum of
        squares smaller by d^2 n / (n - 1).
        """
        place = block.place
        square = own - self.mean[place]
        square *= square
        removed = left * self.grown[place] * square
        variance = self.pooled
        if np.isfinite(self.weight):
            variance = self.weight * self.pooled + self.squares[place]
            variance -= removed
            share = left * self.less[place]
            share += self.whole[place]
            variance *= share
            np.maximum(variance, np.maximum(_FLOOR * self.pooled, _LEAST), out=variance)
        removed *= self.excess[place]
        square += removed  # d^2 where nothing is left out, else d^2 grown^2
        return square, variance


def _left_out(block: Block, own: Float[Array, "B T"]) -> Float[Array, "b t"]:
    """1 where a target's own row is among the references with the point; 0 for fixed references."""
    if not block.game.leave_one_out:
        return np.zeros((1, 1), dtype=own.dtype)
    return block.left_out(True).astype(own.dtype)


def _column(values: Float[Array, " B"], like: Float[Array, "B T"]) -> Float[Array, "B 1"]:
    return values[:, None].astype(like.dtype)


def _sides(signals: Signals, variance: str) -> tuple[_Side, _Side]:
    """The Gaussians without and with each point."""
    weight = VARIANCES[one_of("variance", variance, VARIANCES)]
    game, phi = signals.game, _Phi.of(signals)
    n, mean, var = _moments(game, phi)
    pooled = _pooled(game, phi, n, mean, var)
    moments = np.stack([n, mean, var], axis=1)
    outside, inside = (_Side.of(bool(k), moments[k], pooled[k], weight, phi.array.dtype) for k in (0, 1))
    return outside, inside


def _moments(game: Game, phi: _Phi) -> Float[Array, "3 2 U"]:
    """Number, mean and variance of the references without and with each judged point."""
    points = judged_points(game)
    result = np.empty((3, 2, len(points)))
    for block in blocks(game, points, game.n_models):
        values = phi.references(block).astype(np.float64, order="C")
        inside = block.references(game.member).astype(np.float64, order="C")
        ones = np.ones(values.shape[1])
        centre = values @ ones / len(ones)  # sums of squares keep their digits only around a centre
        values -= centre[:, None]
        n_in, sum_in = inside @ ones, np.vecdot(inside, values)
        inside *= values
        square_in = np.vecdot(inside, values)
        n = np.stack([len(ones) - n_in, n_in])
        mean = np.stack([-sum_in, sum_in]) / np.maximum(n, 1)  # around the centre all of them sum to 0
        square = np.stack([np.vecdot(values, values) - square_in, square_in])
        variance = np.maximum(square / np.maximum(n, 1) - mean * mean, 0)
        result[:, :, block.place] = n, mean + centre, variance
    return result


def _pooled(
    game: Game,
    phi: _Phi,
    n: Float[Array, "2 U"],
    mean: Float[Array, "2 U"],
    variance: Float[Array, "2 U"],
) -> Float[Array, "2 T"]:
    """Variance of each side over all points that a target judges, the target's own row taken out."""
    total, square = np.zeros((2, 2, game.n_targets))
    for block in blocks(game, judged_points(game), game.n_targets):
        place, judged = block.place, block.judged.astype(np.float64)
        total += n[:, place] @ judged
        square += (n[:, place] * variance[:, place]) @ judged
        if not game.leave_one_out:
            continue
        own = phi.targets(block)
        inside = block.left_out(True).astype(own.dtype)
        distance = inside * _column(mean[1, place] - mean[0, place], own)
        distance += _column(mean[0, place], own)  # now the mean of the side that the target is on
        np.subtract(own, distance, out=distance)
        distance *= distance
        if game.judged.ndim == 2:
            distance *= block.judged
            inside *= block.judged
        total -= [judged.sum(axis=0) - inside.sum(axis=0), inside.sum(axis=0)]
        grown = (n[:, place] / np.maximum(n[:, place] - 1, 1)).astype(own.dtype)
        square[0] -= grown[0] @ distance
        distance *= inside
        square += [[1], [-1]] * (grown @ distance)
    return np.maximum(square / np.maximum(total, 1), _LEAST)


def _neutral_where_missing(
    value: Float[Array, "B T"], neutral: float, block: Block, sides: tuple[_Side, ...]
) -> Float[Array, "B T"]:
    """The value that says nothing, where a side has no reference but the target's own row."""
    for side in sides:
        rows = np.flatnonzero(side.n[block.place] <= 1)
        others = side.n[block.place][rows, None] - block.left_out(side.inside)[rows]
        value[rows] = np.where(others > 0, value[rows], neutral)
    return value
