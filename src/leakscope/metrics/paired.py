"""Two attacks on the same models and records: the difference of what they reach, with an interval in pairs."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float
from scipy import stats

from leakscope.core.checks import fraction, one_of
from leakscope.core.findings import Term
from leakscope.core.intervals import Interval
from leakscope.core.types import Scores
from leakscope.metrics.rows import rows

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
    (1988) for two correlated areas.

    Parameters
    ----------
    first, second : Scores
        Of the same game, as `leakscope.Report.scores` returns them.
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
    >>> import leakscope as ls
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
    if of == "auc" and one.single:
        return _delong(one.value[0], two.value[0], one.member[0], confidence)
    if one.single:
        raise ValueError("the difference of true positive rates needs at least 2 attacked models, got 1; take the auc")
    if of == "auc":
        values = [_area(a, m) - _area(b, m) for a, b, m in zip(one.value, two.value, one.member, strict=True)]
    else:
        fraction("fpr", fpr)
        values = [_rate(a, m, fpr) - _rate(b, m, fpr) for a, b, m in zip(one.value, two.value, one.member, strict=True)]
    inflation = max(one.variance_inflation, two.variance_inflation)
    mean, n = float(np.mean(values)), len(values)
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * math.sqrt(inflation * float(np.var(values, ddof=1)) / n)
    return Interval(mean, mean - half, mean + half, confidence, "models", (Term("cluster_t"),))


def _placements(value: Float[Array, " n"], member: Bool[Array, " n"]) -> tuple[Array, Array]:
    """Return how many non-members each member beats, and how many members beat each non-member, as fractions."""
    inside, outside = np.sort(value[member]), np.sort(value[~member])
    own, other = value[member], value[~member]
    beaten = np.searchsorted(outside, own, "left") + np.searchsorted(outside, own, "right")
    above = 2 * len(inside) - np.searchsorted(inside, other, "left") - np.searchsorted(inside, other, "right")
    return beaten / (2 * len(outside)), above / (2 * len(inside))


def _area(value: Float[Array, " n"], member: Bool[Array, " n"]) -> float:
    return float(_placements(value, member)[0].mean())


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
    """Compute the interval of the difference of two correlated areas."""
    (in_one, out_one), (in_two, out_two) = _placements(first, member), _placements(second, member)
    inside, outside = in_one - in_two, out_one - out_two
    mean = float(inside.mean())
    variance = sum(float(part.var(ddof=1)) / len(part) for part in (inside, outside) if len(part) > 1)
    half = float(stats.norm.ppf((1 + confidence) / 2)) * math.sqrt(variance)
    return Interval(mean, mean - half, mean + half, confidence, "points", (Term("delong"),))
