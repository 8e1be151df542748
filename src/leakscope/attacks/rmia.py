"""RMIA: how many points of the population does a record beat, each against its usual probability?

Axes: B points of a block, M models, R references, T targets, J judged points, Z population.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from leakscope.attacks.blocks import Block, blocks, judge, log_mean_exp, require_references
from leakscope.core.checks import positive, probability
from leakscope.core.types import Signals

Array = np.ndarray


def rmia(signals: Signals, *, gamma: float = 1.0) -> Float[Array, "T J"]:
    """Pairwise likelihood-ratio test against the population, with references that may contain the record.

    The ratio of a point is ``p(x) / mean over the references of p_r(x)``, p = exp(-loss); the score is the
    share of population points z with ``ratio(x) / ratio(z) >= gamma``, minus 1, as ``rank_share`` has it.
    The population are the points that are in no model and not judged; without any, the points that the
    target judges.

    Parameters
    ----------
    signals : Signals
        With ``loss``.
    gamma : float
        How much larger than that of a population point the ratio must be, > 0. With 1 the scores of
        non-members are uniform for every model, so that one threshold fits them all.

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
    game, loss = signals.game, signals.array("loss")
    require_references(signals, least=1)

    def log_ratio(block: Block) -> Float[Array, "B T"]:
        log_p = -block.references(loss)
        everyone = np.ones(log_p.shape, dtype=bool)
        return -block.targets(loss) - log_mean_exp(log_p, everyone, game.leave_one_out)

    return _against_population(signals, log_ratio, gamma)


def rmia_offline(signals: Signals, *, gamma: float = 1.0, a: float = 0.3) -> Float[Array, "T J"]:
    """RMIA with references that never contain the record.

    The mean over all references is replaced by ``((1 + a) p_out + 1 - a) / 2``, p_out the mean over the
    references without the record; where there are none the target's own p stands for it.

    Parameters
    ----------
    signals : Signals
        With ``loss``.
    gamma : float
        As in ``rmia``.
    a : float
        In [0, 1]: how near the probability with the record is to that without it (1: the same).

    Returns
    -------
    array of shape (T, J)
        In (-1, 0).

    Raises
    ------
    NotApplicable
        If the loss is missing, or references without the judged points.

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
    game, loss = signals.game, signals.array("loss")
    require_references(signals, without=True, least=1)
    a = probability("a", a)

    def log_ratio(block: Block) -> Float[Array, "B T"]:
        own = -block.targets(loss)
        outside = ~block.references(game.member)
        log_out = log_mean_exp(-block.references(loss), outside, game.leave_one_out)
        log_out = np.where(np.isfinite(log_out), log_out, own)
        with np.errstate(divide="ignore"):  # a = 1: log 0
            return own - np.logaddexp(np.log((1 + a) / 2) + log_out, np.log((1 - a) / 2))

    return _against_population(signals, log_ratio, gamma)


def rank_share(log_ratio: Float[Array, " J"], population: Float[Array, " Z"], gamma: float = 1.0) -> Float[Array, " J"]:
    """Share of the population that a ratio exceeds ``gamma`` times, minus 1; ties keep the order of the ratios.

    ``(count + h) / (Z + 1) - 1`` with h in (0, 1) increasing with the ratio: h = (1 + L / (1 + abs(L))) / 2,
    L = log ratio. Written as minus what is missing from 1, so that the records that exceed nearly all keep
    their digits in float32.

    Parameters
    ----------
    log_ratio : array of shape (J,)
        Logarithms of the ratios that are judged.
    population : array of shape (Z,)
        Logarithms of the ratios of the population.
    gamma : float
        > 0.

    Returns
    -------
    array of shape (J,)
        In (-1, 0), float64. Time (J + Z) log Z, memory J + Z.

    References
    ----------
    Zarifzadeh, Liu & Shokri (2024), the RMIA score.

    Examples
    --------
    >>> import numpy as np
    >>> (1 + rank_share(np.log([8.0, 1.0]), np.log([1.0, 2.0, 5.0]))).round(3).tolist()  # 3 of 3, 1 of 3
    [0.959, 0.375]
    """
    log_ratio = log_ratio.astype(np.float64)
    bars = np.sort(population) + np.log(positive("gamma", gamma))
    order = _nearly_sorted(log_ratio)  # neighbouring questions find their answers in the cache
    beaten = np.empty(len(log_ratio))
    beaten[order] = np.searchsorted(bars, log_ratio[order], side="right")
    beaten += 0.5 + 0.5 * log_ratio / (1 + np.abs(log_ratio))
    beaten -= len(bars) + 1
    beaten /= len(bars) + 1
    return beaten


def _nearly_sorted(values: Float[Array, " J"]) -> Int[Array, " J"]:
    """An ascending order up to 1/65,535 of the range: a radix sort, at a fraction of the time of a full one."""
    low, high = values.min(), values.max()
    steps = (values - low) * (65_535 / max(high - low, 1e-200))
    return np.argsort(steps.astype(np.uint16), kind="stable")


def _against_population(
    signals: Signals, log_ratio: Callable[[Block], Float[Array, "B T"]], gamma: float
) -> Float[Array, "T J"]:
    """Ratios of all judged points, then the rank of each among those of the population of its target."""
    game, dtype = signals.game, signals.array("loss").dtype
    out = judge(game, dtype, log_ratio, game.n_models)
    population = np.empty((len(game.population), game.n_targets), dtype=dtype)
    for block in blocks(game, game.population, game.n_models):
        population[block.place] = log_ratio(block)
    for target in range(game.n_targets):
        judged = np.ascontiguousarray(out[target])
        out[target] = rank_share(judged, population[:, target] if len(population) else judged, gamma)
    return out
