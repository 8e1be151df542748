"""RMIA: the fraction of the population whose likelihood ratio is smaller than that of the record.

Axes: B points of a block, M models, R references, T targets, J target points, Z population.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from leakscope.attacks.blocks import Block, blocks, log_mean_exp, require_references, score_points
from leakscope.core.checks import positive, probability
from leakscope.core.types import Signals

Array = np.ndarray


def rmia(signals: Signals, *, gamma: float = 1.0) -> Float[Array, "T J"]:
    """Test the likelihood ratio of the record against that of each point of the population.

    The ratio of a point is ``p(x) / mean over the references of p_r(x)``, p = exp(-loss); the score is the
    fraction of population points z with ``ratio(x) / ratio(z) >= gamma``, minus 1, computed by `rank_fraction`.
    The population are the points that are in no model and are no target points; without any, the target points of the
    target. The references may contain the record.

    Parameters
    ----------
    signals : Signals
        With ``loss``.
    gamma : float
        The least quotient of the ratio and that of a population point, > 0. With 1 the scores of non-members are
        uniform for every model, so that one threshold fits all of them.

    Returns
    -------
    array of shape (T, J)
        In (-1, 0).

    Raises
    ------
    NotApplicable
        If the loss or reference models are missing.

    References
    ----------
    Zarifzadeh, Liu & Shokri (2024), the RMIA score; they use gamma = 2.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.core.types import Game, Signals
    >>> member = np.array([[True, False], [True, False], [False, True]])
    >>> game = Game("half_split", member, np.array([True, True]), 1)
    >>> loss = -np.log([[0.9, 0.1], [0.3, 0.5], [0.3, 0.5]])
    >>> rmia(Signals(game, None, {"loss": loss}))[0].round(3).tolist()  # ratios 3 and 0.2
    [-0.079, -0.603]
    """
    return _rank_in_population(signals, log_ratio(signals), gamma)


def rmia_offline(signals: Signals, *, gamma: float = 1.0, a: float = 0.3) -> Float[Array, "T J"]:
    """Compute the RMIA score from references without the record alone.

    The mean over all references is replaced by ``((1 + a) p_out + 1 - a) / 2``, p_out the mean over the references
    without the record, or the target's own p where there are none.

    Parameters
    ----------
    signals : Signals
        With ``loss``.
    gamma : float
        As in ``rmia``.
    a : float
        In [0, 1]: the slope of the probability with the record as a function of that without it (1: equal).

    Returns
    -------
    array of shape (T, J)
        In (-1, 0).

    Raises
    ------
    NotApplicable
        If the loss is missing, or references without the target points.

    References
    ----------
    Zarifzadeh, Liu & Shokri (2024), offline RMIA (p_in = a p_out + 1 - a, a = 0.3).

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.core.types import Game, Signals
    >>> member = np.array([[True, False], [False, False], [False, False]])
    >>> game = Game("half_split", member, np.array([True, True]), 1)
    >>> loss = -np.log([[0.9, 0.1], [0.3, 0.5], [0.3, 0.5]])
    >>> rmia_offline(Signals(game, None, {"loss": loss}))[0].round(3).tolist()
    [-0.111, -0.609]
    """
    return _rank_in_population(signals, log_ratio_offline(signals, a=a), gamma)


def log_ratio(signals: Signals) -> Callable[[Block], Float[Array, "B T"]]:
    """Return the function that computes the logarithms of the ratios of `rmia` at the points of a block."""
    game, loss = signals.game, signals.array("loss")
    require_references(signals, least=1)

    def at(block: Block) -> Float[Array, "B T"]:
        log_p = -block.references(loss)
        all_references = np.ones(log_p.shape, dtype=bool)
        return -block.targets(loss) - log_mean_exp(log_p, all_references, game.leave_one_out)

    return at


def log_ratio_offline(signals: Signals, *, a: float = 0.3) -> Callable[[Block], Float[Array, "B T"]]:
    """Return the function that computes the logarithms of the ratios of `rmia_offline` at the points of a block."""
    game, loss = signals.game, signals.array("loss")
    require_references(signals, without=True, least=1)
    a = probability("a", a)

    def at(block: Block) -> Float[Array, "B T"]:
        own = -block.targets(loss)
        outside = ~block.references(game.member)
        log_out = log_mean_exp(-block.references(loss), outside, game.leave_one_out)
        log_out = np.where(np.isfinite(log_out), log_out, own)
        with np.errstate(divide="ignore"):  # a = 1: log 0
            return own - np.logaddexp(np.log((1 + a) / 2) + log_out, np.log((1 - a) / 2))

    return at


def rank_fraction(
    log_ratio: Float[Array, " J"], population: Float[Array, " Z"], gamma: float = 1.0
) -> Float[Array, " J"]:
    """Compute the fraction of the population that a ratio exceeds ``gamma`` times, minus 1.

    ``(count + h) / (Z + 1) - 1`` with h in (0, 1) increasing with the ratio, so that ties keep the order of the ratios:
    h = (1 + L / (1 + abs(L))) / 2, L = log ratio. With the 1 subtracted, ratios that exceed nearly all of the
    population keep their digits in float32.

    Parameters
    ----------
    log_ratio : array of shape (J,)
        Logarithms of the ratios of the target points.
    population : array of shape (Z,)
        Logarithms of the ratios of the population.
    gamma : float
        > 0.

    Returns
    -------
    array of shape (J,)
        In (-1, 0), float64. Time is of order (J + Z) log(J + Z), memory of order J + Z.

    Raises
    ------
    ValueError
        If gamma is not positive.

    References
    ----------
    Zarifzadeh, Liu & Shokri (2024), the RMIA score.

    Examples
    --------
    >>> import numpy as np
    >>> (1 + rank_fraction(np.log([8.0, 1.0]), np.log([1.0, 2.0, 5.0]))).round(3).tolist()  # 3 of 3, 1 of 3
    [0.959, 0.375]
    """
    return fraction_below(log_ratio, np.sort(population) + np.log(positive("gamma", gamma)))


def fraction_below(log_ratio: Float[Array, " J"], thresholds: Float[Array, " Z"]) -> Float[Array, " J"]:
    """Compute `rank_fraction` from the ascending logarithms of gamma times the ratios of the population."""
    sought = log_ratio.astype(np.result_type(log_ratio, thresholds))  # of one type, so that no copy is made
    log_ratio = log_ratio.astype(np.float64)
    order = np.argsort(log_ratio)  # sorted queries are found three times as fast: neighbours share the cache
    n_exceeded = np.empty(len(log_ratio))
    n_exceeded[order] = np.searchsorted(thresholds, sought[order], side="right")
    tie_breaker = 0.5 + 0.5 * log_ratio / (1 + np.abs(log_ratio))
    n_plus_one = len(thresholds) + 1
    return (n_exceeded + tie_breaker - n_plus_one) / n_plus_one


def _rank_in_population(
    signals: Signals, ratio_at: Callable[[Block], Float[Array, "B T"]], gamma: float
) -> Float[Array, "T J"]:
    """Compute the ratios at all target points, and rank each among those of the population of its target."""
    game, dtype = signals.game, signals.array("loss").dtype
    scores = score_points(game, dtype, ratio_at, game.n_models)
    population = np.empty((len(game.population), game.n_targets), dtype=dtype)
    for block in blocks(game, game.population, game.n_models):
        population[block.place] = ratio_at(block)
    for target in range(game.n_targets):
        ratios = np.ascontiguousarray(scores[target])
        scores[target] = rank_fraction(ratios, population[:, target] if len(population) else ratios, gamma)
    return scores
