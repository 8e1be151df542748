"""RMIA: the fraction of the population whose likelihood ratio is smaller than that of the record.

Models that were asked about several versions of each point give a ratio of each query. In the code of Zarifzadeh et al.
a record exceeds a population point if it does so in more than half of the queries, each version of the record against
the same version of the point; the other vote takes the mean of the log-ratios over the queries instead, which needs one
sort where the majority needs all pairs.

Axes: A slopes of the grid, B points of a block, M models, P sampled points, Q queries, R references, T targets, J
target points, Z population.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.attacks.blocks import (
    Block,
    all_target_points,
    blocks,
    log_mean_exp,
    require_references,
    score_points,
)
from leakbound.attacks.queries import one_by_one
from leakbound.attacks.scores import one_target_at_a_time, score_of
from leakbound.core.checks import one_of, positive, probability
from leakbound.core.on_disk import blocks_of, empty_beside
from leakbound.core.types import Signals

Array = np.ndarray
_USUAL_SLOPE = 0.3  # of the paper, where the references cannot tell
_SLOPES = np.arange(11) / 10  # among which the references choose
_POINTS = 2048  # at which they choose, at most
_PLAYERS = 8  # references that play the target, at most
_GROUPS = 4  # of targets with a slope of their own, with leave one out
VOTES = ("mean", "majority")  # of several queries
_PAIRS = 1 << 22  # of records and population points that vote at once
RatioAt = Callable[[Block], Float[Array, "B T"]]


def rmia(signals: Signals, *, gamma: float = 1.0, vote: str = "mean", signal: str | None = None) -> Float[Array, "T J"]:
    """Test the likelihood ratio of the record against that of each point of the population.

    The ratio of a point is ``p(x) / mean over the references of p_r(x)``, p = exp(-loss); the score is the
    fraction of population points z with ``ratio(x) / ratio(z) >= gamma``, minus 1, computed by `rank_fraction`.
    The population are the points that are in no model and are no target points; without any, the target points of the
    target. The references may contain the record. Of a score, the one that ``signal`` names, the loss is minus the
    score over its pooled standard deviation in the references without the record.

    Source: Zarifzadeh, Liu & Shokri (2024), the RMIA score; they use gamma = 2.

    >>> from leakbound.core.types import Game
    >>> member = np.array([[True, False], [True, False], [False, True]])
    >>> game = Game("half_split", member, np.array([True, True]), 1)
    >>> loss = -np.log([[0.9, 0.1], [0.3, 0.5], [0.3, 0.5]])
    >>> rmia(Signals(game, None, {"loss": loss}))[0].round(3).tolist()  # ratios 3 and 0.2
    [-0.079, -0.603]
    """
    # With gamma = 1 the scores of non-members are uniform for every model, so that one threshold fits all of them.
    # With several queries the geometric mean of the quotients must reach gamma, or (vote "majority") most of them.
    return _ranked(signals, log_ratio, gamma, vote, signal)


def rmia_offline(
    signals: Signals,
    *,
    gamma: float = 1.0,
    a: float | None = None,
    vote: str = "mean",
    signal: str | None = None,
) -> Float[Array, "T J"]:
    """Compute the RMIA score from references without the record alone.

    The mean over all references is replaced by ``((1 + a) p_out + 1 - a) / 2``, p_out the mean over the references
    without the record, or the target's own p where there are none.

    Source: Zarifzadeh, Liu & Shokri (2024), offline RMIA (p_in = a p_out + 1 - a, a = 0.3).

    >>> from leakbound.core.types import Game
    >>> member = np.array([[True, False], [False, False], [False, False]])
    >>> game = Game("half_split", member, np.array([True, True]), 1)
    >>> loss = -np.log([[0.9, 0.1], [0.3, 0.5], [0.3, 0.5]])
    >>> rmia_offline(Signals(game, None, {"loss": loss}), a=0.3)[0].round(3).tolist()
    [-0.111, -0.609]
    """
    # without a slope a, the references choose it for each query, without the target itself: see offline_slopes
    return _ranked(signals, lambda query: log_ratio_offline(query, a=a), gamma, vote, signal, without=True)


def log_ratio(signals: Signals) -> RatioAt:
    """Return the function that computes the logarithms of the ratios of `rmia` at the points of a block."""
    game, loss = signals.game, signals.array("loss")

    def at(block: Block) -> Float[Array, "B T"]:
        log_p = -block.references(loss)
        all_references = np.ones(log_p.shape, dtype=bool)
        return -block.targets(loss) - log_mean_exp(log_p, all_references, game.leave_one_out)

    return at


def log_ratio_offline(signals: Signals, *, a: float | None = None) -> RatioAt:
    """Return the function that computes the logarithms of the ratios of `rmia_offline` at the points of a block.

    ``a`` is that of `offline_slopes` unless given.
    """
    game, loss = signals.game, signals.array("loss")
    slope = offline_slopes(signals) if a is None else probability("a", a)

    def at(block: Block) -> Float[Array, "B T"]:
        own = -block.targets(loss)
        outside = ~block.references(game.member)
        log_out = log_mean_exp(-block.references(loss), outside, game.leave_one_out)
        log_out = np.where(np.isfinite(log_out), log_out, own)
        return _offline_ratio(own, log_out, slope)

    return at


def _offline_ratio(
    own: Float[Array, "..."], log_out: Float[Array, "..."], a: float | Float[Array, "..."]
) -> Float[Array, "..."]:
    """Compute the logarithm of ``p / (((1 + a) p_out + 1 - a) / 2)`` from those of p and p_out."""
    with np.errstate(divide="ignore"):  # a = 1: log 0
        with_p_out, without = np.log((1 + a) / 2) + log_out, np.log((1 - a) / 2)
    # as np.logaddexp, which takes four times as long
    return own - (np.maximum(with_p_out, without) + np.log(1 + np.exp(-np.abs(with_p_out - without))))


def offline_slopes(signals: Signals) -> Float[Array, " T"]:
    """Choose the slope ``a`` of `rmia_offline` for each target, on the other models alone.

    Each of these models in turn plays the target, with the others as its references. Whom it was trained on is known,
    so the area under the ROC of each a = 0, .1, ..., 1 is known too; the one with the largest mean area is taken.

    The area, and not the rate at a low false positive rate, because it varies less with the sample: at most 2,048
    target points at even steps, and at most 8 models that play the target, are used.

    >>> import leakbound as ls
    >>> rng, game = np.random.default_rng(0), ls.games.half_split(2000, 8)
    >>> hard = rng.exponential(size=2000)  # each record's loss without it; half of it with it
    >>> loss = hard * np.where(game.member, 0.5, 1.0) * rng.uniform(0.8, 1.2, game.member.shape)
    >>> offline_slopes(ls.Signals(game, None, {"loss": loss})).tolist()
    [0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8]
    """
    game = signals.game
    columns = all_target_points(game)
    columns = columns[np.linspace(0, len(columns) - 1, min(len(columns), _POINTS)).astype(int)]
    loss, member = signals.array("loss")[:, columns].T, game.member[:, columns].T
    slopes = np.full(game.n_targets, _USUAL_SLOPE)
    for group in _slope_groups(game.n_models, game.n_targets):
        slopes[group.targets] = _best_slope(loss[:, group.models], member[:, group.models])
    return slopes


class _SlopeGroup(NamedTuple):
    """Targets that share a slope, and the models that choose it."""

    targets: Int[Array, " t"]
    models: Int[Array, " R"]


def _slope_groups(n_models: int, n_targets: int) -> list[_SlopeGroup]:
    """Group the targets so that no target chooses for its own group."""
    if n_targets < n_models:
        return [_SlopeGroup(np.arange(n_targets), np.arange(n_targets, n_models))]
    # the targets t, t + 4, t + 8, ... share a slope, which the models outside of this group choose
    n_groups = min(_GROUPS, n_models)
    group_of = np.arange(n_models) % n_groups
    return [_SlopeGroup(np.flatnonzero(group_of == k), np.flatnonzero(group_of != k)) for k in range(n_groups)]


def _best_slope(loss: Float[Array, "P R"], member: Bool[Array, "P R"]) -> float:
    """Return the slope with the largest mean area, of the references as targets of each other."""
    n_references = loss.shape[1]
    if n_references < 2:
        return _USUAL_SLOPE
    log_p = -loss.astype(np.float64)
    log_out = log_mean_exp(log_p, ~member, leave_one_out=True)
    areas = []
    for player in np.linspace(0, n_references - 1, min(n_references, _PLAYERS)).astype(int):
        known = np.isfinite(log_out[:, player])  # points that another reference lacks
        inside = member[known, player]
        if inside.any() and not inside.all():
            ratio = _offline_ratio(log_p[known, player], log_out[known, player], _SLOPES[:, None])
            areas.append([_area(row[inside], row[~inside]) for row in ratio])
    if not areas:
        return _USUAL_SLOPE
    return float(_SLOPES[np.mean(areas, axis=0).argmax()])


def _area(members: Float[Array, " m"], others: Float[Array, " n"]) -> float:
    """Compute the area under the ROC: the fraction of pairs in which the member has more; a tie counts half."""
    ascending = np.sort(others)
    n_below = np.searchsorted(ascending, members, side="left").mean()
    n_not_above = np.searchsorted(ascending, members, side="right").mean()
    return float(n_below + n_not_above) / (2 * len(others))


def rank_fraction(
    log_ratio: Float[Array, " J"], population: Float[Array, " Z"], gamma: float = 1.0
) -> Float[Array, " J"]:
    """Compute the fraction of the population that a ratio exceeds ``gamma`` times, minus 1.

    ``(count + h) / (Z + 1) - 1`` with h in (0, 1) increasing with the ratio, so that ties keep the order of the ratios:
    h = (1 + L / (1 + abs(L))) / 2, L = log ratio. With the 1 subtracted, ratios that exceed nearly all of the
    population keep their digits in float32.

    Source: Zarifzadeh, Liu & Shokri (2024), the RMIA score.

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


def _ranked(
    signals: Signals,
    ratio_of: Callable[[Signals], RatioAt],
    gamma: float,
    vote: str,
    signal: str | None,
    without: bool = False,
) -> Float[Array, "T J"]:
    """Rank the ratios at the target points among those of the population; of a score, for one target at a time."""
    one_of("vote", vote, VOTES)
    gamma = positive("gamma", gamma)
    name = score_of(signals, signal, ("loss",))
    signals.array(name or "loss")
    require_references(signals, without=without, least=1)
    if name:
        return one_target_at_a_time(signals, name, lambda alone: _of_queries(alone, ratio_of, gamma, vote))
    return _of_queries(signals, ratio_of, gamma, vote)


def _of_queries(
    signals: Signals, ratio_of: Callable[[Signals], RatioAt], gamma: float, vote: str
) -> Float[Array, "T J"]:
    """Rank the ratios of one query, or of several together."""
    ratios = [ratio_of(query) for query in one_by_one(signals, "loss")]
    if len(ratios) == 1:
        return _rank_in_population(signals, ratios[0], gamma)

    def mean_ratio(block: Block) -> Float[Array, "B T"]:
        total = ratios[0](block).astype(np.float64)
        for ratio in ratios[1:]:
            total += ratio(block)
        return total / len(ratios)

    if vote == "mean":
        return _rank_in_population(signals, mean_ratio, gamma)
    return _rank_by_majority(signals, ratios, gamma)


def _rank_in_population(signals: Signals, ratio_at: RatioAt, gamma: float) -> Float[Array, "T J"]:
    """Compute the ratios at all target points, and rank each among those of the population of its target.

    In float64 whatever the losses are: of 24 bits the count takes as many as the population has, and in the middle of
    the ranks the others are too few to tell ratios of the same count apart.
    """
    scores, population = _of_points(signals, ratio_at)
    for target in range(signals.game.n_targets):
        thresholds = np.sort(population[target] if population.size else scores[target]) + np.log(gamma)
        for block in blocks_of(scores.shape[1], 1):
            scores[target, block] = fraction_below(scores[target, block], thresholds)
    return scores


def _of_points(signals: Signals, ratio_at: RatioAt) -> tuple[Float[Array, "T J"], Float[Array, "T Z"]]:
    """Compute the ratios at the target points, and at the population."""
    game, loss = signals.game, signals.array("loss", "query_loss")
    ratios = score_points(game, loss, ratio_at, game.n_models, np.float64)
    population = empty_beside(loss, (game.n_targets, len(game.population)), np.float64)
    for block in blocks(game, game.population, game.n_models):
        population[:, block.place] = ratio_at(block).T
    return ratios, population


def _rank_by_majority(signals: Signals, ratios: list[RatioAt], gamma: float) -> Float[Array, "T J"]:
    """Rank each record by the fraction of the population that it exceeds in more than half of the queries."""
    parts = [_of_points(signals, ratio_at) for ratio_at in ratios]
    scores = np.empty_like(parts[0][0])
    for target in range(signals.game.n_targets):
        own = np.stack([of_targets[target] for of_targets, _ in parts])  # (Q, J)
        population = np.stack([of_population[target] for _, of_population in parts])  # (Q, Z)
        scores[target] = majority_fraction(own, population if population.shape[1] else own, gamma)
    return scores


def majority_fraction(
    log_ratio: Float[Array, "Q J"], population: Float[Array, "Q Z"], gamma: float = 1.0
) -> Float[Array, " J"]:
    """Compute the fraction of the population that a record exceeds ``gamma`` times in most queries, minus 1.

    Ties are broken as in `rank_fraction`, by the mean of the log-ratios over the queries.

    Source: Zarifzadeh, Liu & Shokri (2024), in their code; there a tie of the votes counts as no.

    >>> ratios = np.log([[3.0], [3.0], [0.1]])  # above 2 in two of three queries, above 4 in none
    >>> (1 + majority_fraction(ratios, np.log([[2.0, 4.0]] * 3))).round(3).tolist()
    [0.494]
    """
    thresholds = population + np.log(positive("gamma", gamma))
    n_queries, n_points = log_ratio.shape
    n_exceeded = np.empty(n_points)
    size = max(1, _PAIRS // population.shape[1])
    for start in range(0, n_points, size):
        block = slice(start, start + size)
        votes = np.zeros((min(size, n_points - start), population.shape[1]), dtype=np.int16)
        for query in range(n_queries):
            votes += log_ratio[query, block, None] >= thresholds[query]
        n_exceeded[block] = np.count_nonzero(2 * votes > n_queries, axis=1)
    mean = log_ratio.mean(axis=0)
    tie_breaker = 0.5 + 0.5 * mean / (1 + np.abs(mean))
    n_plus_one = population.shape[1] + 1
    return (n_exceeded + tie_breaker - n_plus_one) / n_plus_one
