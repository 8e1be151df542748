"""What guesses of a sensitive attribute are worth: how often they are right, and how much more often than without.

Axes: T attacked models, J attacked records, V values.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import stdtrit

from leakbound.core.checks import probability
from leakbound.core.findings import Term
from leakbound.core.intervals import Interval, clopper_pearson, clopper_pearson_lower, clopper_pearson_upper, cluster_t
from leakbound.core.types import NotApplicable

Array = np.ndarray
ENOUGH_MODELS = 8  # for an interval over models
FEWEST_DISCORDANT = 6  # records; a sign test of fewer never shows a gain at 97.5 %


def right(score: Float[Array, "T J V"], truth: Int[Array, " J"]) -> Float[Array, "T J"]:
    """Chance that the best candidate is the true one, where a tie is broken by an even draw.

    Source: delgrosso2021, theorems 1 and 5.

    >>> right(np.array([[[3.0, 1.0], [2.0, 2.0]]]), np.array([0, 1])).tolist()
    [[1.0, 0.5]]
    """
    best = score == score.max(axis=2, keepdims=True)
    true_is_best = np.take_along_axis(best, truth[None, :, None], axis=2)[..., 0]
    return true_is_best / best.sum(axis=2)


def attribute_accuracy(guessed: Float[Array, "T J"], chosen: Bool[Array, "T J"], confidence: float = 0.95) -> Interval:
    """Fraction of correct guesses about the chosen records, a mean over the models of a mean over their records.

    With at least 8 models the interval is over models (cluster t). With fewer, or where all models are equal, it is
    Clopper-Pearson over the records, each with its mean over the models: it speaks of other records, not of other
    models.

    >>> found = attribute_accuracy(np.array([[1.0, 0.0, 1.0, 1.0]]), np.ones((1, 4), dtype=bool))
    >>> found.value, round(found.low, 4), found.interval_over
    (0.75, 0.1941, 'points')
    """
    guessed, chosen = _models_with_chosen(guessed, chosen)
    model_accuracy = np.where(chosen, guessed, 0).sum(axis=1) / chosen.sum(axis=1)
    if len(model_accuracy) >= ENOUGH_MODELS and np.ptp(model_accuracy) > 1e-12:
        return cluster_t(model_accuracy, confidence)
    # Too few models for an interval over them (or no difference between them): one mean a record, and as many
    # binomial trials as records that were chosen at all.
    n_chosen = chosen.sum(axis=0)
    fraction = np.where(chosen, guessed, 0).sum(axis=0)[n_chosen > 0] / n_chosen[n_chosen > 0]
    exact = clopper_pearson(float(fraction.sum()), len(fraction), confidence)
    value = float(np.clip(model_accuracy.mean(), 0, 1))
    return Interval(
        value, min(exact.low, value), max(exact.high, value), confidence, "points", (Term("clopper_pearson_points"),)
    )


def attribute_gain(
    guessed: Float[Array, "T J"],
    baseline: Float[Array, "T J"],
    member: Bool[Array, "T J"],
    confidence: float = 0.95,
) -> Interval:
    """Compute what the release adds: correct guesses with it minus correct guesses without it, about the same members.

    The differences are paired, and averaged as in `attribute_accuracy`. Guesses about one record go together in all
    models (a guess may be right by luck wherever the record is a member), guesses about the records of one model too;
    so the variance is that of both clusterings at once: the sum of squares between models plus that between records
    minus that of single cells (Cameron, Gelbach & Miller 2011, eq. 2.5), never less than either, with
    ``min(T, J) - 1`` degrees of freedom. An interval over models alone takes luck about fixed records for a leak.
    With fewer than 8 models it is over records alone. Where guesses with and without the release differ for fewer than
    6 records in all, the interval is that of Clopper and Pearson for the records won and lost.

    >>> rng = np.random.default_rng(0)
    >>> member = rng.random((16, 300)) < 0.5
    >>> found = attribute_gain(1.0 * (rng.random(member.shape) < 0.5), np.full(member.shape, 0.25), member)
    >>> found.low > 0.2 and found.high < 0.3
    True
    """
    tail = (1 - probability("confidence", confidence, open_ends=True)) / 2
    difference, member = _models_with_chosen(np.asarray(guessed, dtype=float) - baseline, member)
    # The value is a mean over models of means over their members: a cell weighs 1/(T n_t).
    weight = member / (member.sum(axis=1, keepdims=True) * len(member))
    value = float(np.sum(weight * difference))
    n_member = member.sum(axis=0)
    record_gain = np.where(member, difference, 0).sum(axis=0)[n_member > 0] / n_member[n_member > 0]
    spread = weight * (difference - value)
    over_models = len(spread) >= ENOUGH_MODELS
    between_models = _between(spread.sum(axis=1)) if over_models else 0.0
    between_records = _between(spread.sum(axis=0)[n_member > 0])
    variance = max(between_models, between_records)
    if over_models:
        # Two-way clustering (Cameron, Gelbach & Miller 2011, eq. 2.5): both sums contain the variance of single cells.
        variance = max(variance, between_models + between_records - float(np.sum(spread**2)))
    if variance <= 1e-24 or np.abs(record_gain).sum() < FEWEST_DISCORDANT:
        return _won_and_lost(value, record_gain, confidence)
    freedom = (min(len(spread), len(record_gain)) if over_models else len(record_gain)) - 1
    half = float(stdtrit(freedom, 1 - tail)) * math.sqrt(variance)
    method = (Term("paired_t_models_points" if over_models else "paired_t_points"),)
    low, high = max(value - half, -1.0), min(value + half, 1.0)
    return Interval(value, low, high, confidence, "models" if over_models else "points", method)


def _models_with_chosen(values: Float[Array, "T J"], chosen: Bool[Array, "T J"]) -> tuple[Array, Array]:
    """Select the models with at least one chosen record."""
    rows = chosen.any(axis=1)
    if not rows.any():
        raise NotApplicable("no_attacked_record")
    return values[rows], chosen[rows]


def _between(sums: Float[Array, " n"]) -> float:
    """Variance of a total of clusters, from their sums, which add up to 0."""
    n = len(sums)
    return float(np.sum(sums**2)) * n / (n - 1) if n > 1 else 0.0


def _won_and_lost(value: float, record: Float[Array, " J"], confidence: float) -> Interval:
    """Compute limits of the fractions of records won and lost, each at half of the tail."""
    n, tail = len(record), (1 - confidence) / 4
    won, lost = np.maximum(record, 0).sum(), np.maximum(-record, 0).sum()
    low = float(clopper_pearson_lower(won, n, tail) - clopper_pearson_upper(lost, n, tail))
    high = float(clopper_pearson_upper(won, n, tail) - clopper_pearson_lower(lost, n, tail))
    method = (Term("clopper_pearson_won_lost"),)
    return Interval(value, min(low, value), max(high, value), confidence, "points", method)
