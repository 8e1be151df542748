"""Two attacks on the same models and records: the difference of what they reach, with an interval in pairs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import ndtri

from leakbound.core.checks import fraction, one_of
from leakbound.core.findings import Term
from leakbound.core.intervals import FEWEST_RARE, Interval, clopper_pearson, cluster_t, placements
from leakbound.core.types import Scores
from leakbound.metrics.rows import rows

Array = np.ndarray


def difference(
    first: Scores,
    second: Scores,
    of: Literal["auc", "tpr"] = "auc",
    fpr: float = 0.01,
    confidence: float = 0.95,
) -> Interval:
    """Compute how much more the first attack reaches than the second one, on the same models and records.

    Two attacks that see the same models err on the same records, so that the interval of their difference is narrower
    than their own intervals suggest. Several models: the difference in each model, averaged; a t interval over the
    models, widened like that of each attack where models are each other's references. One model: that of DeLong et al.
    (1988) for two correlated areas. Two attacks that rank all records alike differ by exactly
    0; otherwise an interval is never a point.

    Parameters
    ----------
    first, second : Scores
        Of the same game, as `leakbound.Report.scores` returns them.
    of : {"auc", "tpr"}
        Area under the ROC, or true positive rate at ``fpr``, here with a threshold of each model's own, which the
        largest fraction of its non-members not above ``fpr`` exceeds.
    fpr : float
        False positive rate.
    confidence : float

    Returns
    -------
    Interval
        The first less the second.

    Raises
    ------
    ValueError
        If the scores are not of the same models and records; for a true positive rate of one model, or of fewer than
        1/fpr non-members in a model.
    NotApplicable
        If no model has both members and non-members.

    Examples
    --------
    >>> import numpy as np
    >>> import leakbound as ls
    >>> game = ls.games.half_split(200, 8)
    >>> losses = np.random.default_rng(0).exponential(np.where(game.member, 0.5, 1.0))
    >>> report = ls.audit_signals(ls.Signals(game, None, {"loss": losses}), attacks=["loss", "mast"])
    >>> found = ls.metrics.difference(report.scores("mast"), report.scores("loss"))
    >>> bool(found.low < found.value < found.high)
    True
    """
    one_of("of", of, ("auc", "tpr"))
    if first.value.shape != second.value.shape or not np.array_equal(first.member, second.member):
        raise ValueError(
            f"the attacks must be of the same models and records; got scores of shapes {first.value.shape} and "
            f"{second.value.shape}{'' if first.value.shape != second.value.shape else ', with other members'}"
        )
    one, two = rows(first), rows(second)
    pairs = list(zip(one.value, two.value, one.member, strict=True))
    if of == "auc" and one.single:
        return _delong(*pairs[0], confidence)
    if one.single:
        raise ValueError("the difference of true positive rates needs at least 2 attacked models, got 1; take the auc")
    if all(_same_order(*pair) for pair in pairs):  # the same attack, whatever the models
        return Interval(0.0, 0.0, 0.0, confidence, "models", (Term("cluster_t"),))
    if of == "auc":
        values = [float((_placements(a, m)[0] - _placements(b, m)[0]).mean()) for a, b, m in pairs]
    else:
        fraction("fpr", fpr)
        values = [_rate(a, m, fpr) - _rate(b, m, fpr) for a, b, m in pairs]
    inflation = max(one.variance_inflation, two.variance_inflation)
    return _between_attacks(cluster_t((1 + np.array(values)) / 2, confidence, inflation))


def _between_attacks(interval: Interval) -> Interval:
    """Turn the interval of (1 + difference)/2, a fraction, into that of the difference."""
    value, low, high = (2 * end - 1 for end in (interval.value, interval.low, interval.high))
    return replace(interval, value=value, low=low, high=high)


def _same_order(first: Float[Array, " n"], second: Float[Array, " n"], member: Bool[Array, " n"]) -> bool:
    """Whether two attacks rank every member among the non-members alike."""
    return all(
        np.array_equal(*both) for both in zip(_placements(first, member), _placements(second, member), strict=True)
    )


def _placements(value: Float[Array, " n"], member: Bool[Array, " n"]) -> tuple[Array, Array]:
    """Return the placements of members and of non-members, in the order of the records."""
    inside, outside = value[member], value[~member]
    above, below = np.empty(len(inside)), np.empty(len(outside))
    above[np.argsort(inside)], below[np.argsort(outside)] = placements(inside, outside)
    return above, below


def _rate(value: Float[Array, " n"], member: Bool[Array, " n"], fpr: float) -> float:
    """Return the fraction of members above a threshold that at most a fraction fpr of the non-members exceeds."""
    outside = np.sort(value[~member])[::-1]
    n_allowed = math.floor(fpr * len(outside) + 1e-9)
    if n_allowed < 1:
        raise ValueError(f"fpr must be >= {1 / len(outside):.2g} for {len(outside):,} non-members a model, got {fpr:g}")
    if n_allowed >= len(outside):
        return 1.0
    return float(np.mean(value[member] > outside[n_allowed]))


def _delong(
    first: Float[Array, " n"], second: Float[Array, " n"], member: Bool[Array, " n"], confidence: float
) -> Interval:
    """Compute the interval of the difference of two correlated areas.

    Where fewer than five records are placed differently, their variance is too uncertain, and the interval is that of
    Clopper and Pearson on disjoint pairs, as for one area in `leakbound.core.intervals.delong`.
    """
    (in_one, out_one), (in_two, out_two) = _placements(first, member), _placements(second, member)
    parts = (in_one - in_two, out_one - out_two)
    mean = float(parts[0].mean())
    n_different = sum(int(np.count_nonzero(part)) for part in parts)
    if n_different == 0:
        return Interval(0.0, 0.0, 0.0, confidence, "points", (Term("delong"),))
    n_pairs = min(map(len, parts))
    if n_different < FEWEST_RARE or n_pairs < 2:
        exact = clopper_pearson((1 + mean) / 2 * n_pairs, n_pairs, confidence)
        return _between_attacks(replace(exact, interval_over="points", method=(Term("clopper_pearson_pairs"),)))
    variance = sum(float(part.var(ddof=1)) / len(part) for part in parts)
    half = float(ndtri((1 + confidence) / 2)) * math.sqrt(variance)
    return Interval(mean, max(mean - half, -1.0), min(mean + half, 1.0), confidence, "points", (Term("delong"),))
