"""A gap between the losses of members and of other points is leakage: lower bounds on the best attacker.

The game (delgrosso2021, definition 4): with probability ``prior`` the attacker gets a random member of the
training set, else a fresh point; it sees the release and says which. The bounds look at the release through
the loss at the point alone, so they hold for every attacker who sees at least that. A small gap says
nothing: a model can generalise perfectly and mark each member (delgrosso2021, section 3.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Num
from scipy.special import ndtr

from leakbound.core.checks import count, one_of, positive, probability, real
from leakbound.core.findings import IntervalOver, Term
from leakbound.core.intervals import Interval, chernoff_kl_upper, cluster_t
from leakbound.core.numerics import bisect

Array = np.ndarray


def generalisation_bound(gap: float, low: float, high: float, prior: float = 0.5) -> float:
    """Accuracy that the best attacker reaches at least, from the gap of a bounded loss.

    ``max(P, 1 - P (1 - t))`` with ``t = |gap|/(high - low)`` and P the larger of ``prior`` and 1 - ``prior``.

    Proof: say "member" with probability (high - loss)/(high - low), or the other way round where the gap is
    negative. Then TPR - FPR = t, and the error is prior FNR + (1 - prior) FPR <= P (FNR + FPR) = P (1 - t).
    Saying always the likelier class errs with 1 - P. No larger number follows from the gap alone: where the
    less likely class always has a loss at one end of the range, and the likelier one has the other end with
    probability t, the best attacker does no better.

    Parameters
    ----------
    gap : float
        Expected loss at fresh points minus that at members, over training sets: the true one. Of an
        estimate take a lower limit first (`gap_lower`, `gap_bound`).
    low, high : float
        Range of the loss; 0 and 1 for the 0-1 loss. Any loss may be clipped to a range first.
    prior : float
        Probability of a member, in (0, 1).

    Returns
    -------
    float
        At least max(prior, 1 - prior).

    Raises
    ------
    ValueError
        If the range is empty, or narrower than the gap.

    References
    ----------
    delgrosso2021, theorem 2; the printed range |loss| <= l_max is here [-l_max, l_max].

    Examples
    --------
    >>> from leakbound.bounds.generalisation import generalisation_bound
    >>> round(generalisation_bound(0.3, 0, 1), 6), round(generalisation_bound(0.3, 0, 1, prior=0.9), 6)
    (0.65, 0.9)
    """
    low, high = _range(low, high)
    tv = abs(real("gap", gap)) / (high - low)
    if tv > 1 + 1e-9:  # the gap of rounded losses may pass the range by a rounding error
        raise ValueError(f"gap must be from {low - high:g} to {high - low:g} for losses in the range, got {gap:g}")
    return _accuracy(min(tv, 1.0), prior)


@dataclass(frozen=True)
class SubGaussian:
    """A loss R whose tail is at most Gaussian: ``P(|R| >= r) <= 2 exp(-r^2/(2 proxy))`` for all r >= 0.

    Source: delgrosso2021, theorem 3.

    Parameters
    ----------
    proxy : float
        Variance proxy > 0 of R about zero (not about its mean), R drawn as in the game: a member's loss with
        probability ``prior``, else that of a fresh point.
    non_negative : bool
        The loss is known to be at least 0, which sharpens the bound.

    Examples
    --------
    >>> from leakbound.bounds import SubGaussian
    >>> round(SubGaussian(1.0).probability(3.0), 4)
    0.0222
    """

    proxy: float
    non_negative: bool = False

    def __post_init__(self) -> None:
        positive("proxy", self.proxy)

    @property
    def unit(self) -> float:
        """The length on which the tail falls, in the unit of the loss."""
        return math.sqrt(self.proxy)

    def probability(self, r: float) -> float:
        """Compute the bound on ``P(|R| >= r)``; above 1 near 0."""
        return 2 * math.exp(-((r / self.unit) ** 2) / 2)

    def quantile(self, p: float) -> float:
        """Compute the r at which that bound is p."""
        return self.unit * math.sqrt(2 * math.log(2 / p))

    def excess(self, r: float) -> float:
        """Compute the bound on ``E max(|R| - r, 0)``: the tail integrated from r."""
        return 2 * self.unit * math.sqrt(2 * math.pi) * float(ndtr(-r / self.unit))

    def published(self, r: Float[Array, " r"]) -> Float[Array, " r"]:
        """C of theorem 3."""
        return np.exp(-((r / self.unit) ** 2) / 2) * (1 + (self.unit / r) ** 2)


@dataclass(frozen=True)
class Exponential:
    """A loss R with an exponential tail: ``P(|R| >= r) <= 2 exp(-r/(2 proxy))`` for all r >= 0.

    The square of a Gaussian residual of variance v has it with proxy v.
    Source: delgrosso2021, theorem 4.

    Parameters
    ----------
    proxy : float
        > 0, in the unit of the loss; of R about zero, R drawn as in the game (`SubGaussian`).
    non_negative : bool
        The loss is known to be at least 0, which sharpens the bound.

    Examples
    --------
    >>> from leakbound.bounds import Exponential
    >>> round(Exponential(1.0).probability(9.0), 4)
    0.0222
    """

    proxy: float
    non_negative: bool = False

    def __post_init__(self) -> None:
        positive("proxy", self.proxy)

    @property
    def unit(self) -> float:
        """The length on which the tail falls, in the unit of the loss."""
        return 2 * self.proxy

    def probability(self, r: float) -> float:
        """Compute the bound on ``P(|R| >= r)``; above 1 near 0."""
        return 2 * math.exp(-r / self.unit)

    def quantile(self, p: float) -> float:
        """Compute the r at which that bound is p."""
        return self.unit * math.log(2 / p)

    def excess(self, r: float) -> float:
        """Compute the bound on ``E max(|R| - r, 0)``: the tail integrated from r."""
        return 2 * self.unit * math.exp(-r / self.unit)

    def published(self, r: Float[Array, " r"]) -> Float[Array, " r"]:
        """C of theorem 4."""
        return np.exp(-r / self.unit) * (1 + self.unit / r)


def generalisation_bound_tails(
    gap: float,
    tail: SubGaussian | Exponential,
    prior: float = 0.5,
    method: Literal["clipped", "published"] = "clipped",
) -> float:
    """Accuracy that the best attacker reaches at least, from the gap of a loss with a known tail.

    Clipped to [-r, r] the loss is bounded, and its gap smaller by at most the sum of ``E max(|R| - r, 0)``
    over the two classes, which is at most e(r)/m: e is the integral of the tail bound p from r, m the smaller
    of ``prior`` and 1 - ``prior``. So `generalisation_bound` holds with ``t = (|gap| - e(r)/m)/(2 r)``. A
    loss >= 0 is clipped to [0, r], and only the class with the larger mean can bring the gap down: r replaces
    2 r, and the probability of that class replaces m. The best r solves ``r p(r) + e(r) = m |gap|``; there
    t is p(r)/(2 m), or p(r)/m. At even odds, and for a loss >= 0, some loss with this tail attains t.

    Parameters
    ----------
    gap : float
        Expected loss at fresh points minus that at members: the true one.
    tail : SubGaussian or Exponential
    prior : float
        Probability of a member, in (0, 1).
    method : {"clipped", "published"}
        "published" is the theorem as printed, never larger: t = |gap|/(2 r) - C(r)/m with r >= r0, the r at
        which the tail bound is 1, maximised over r.

    Returns
    -------
    float
        At least max(prior, 1 - prior).

    Raises
    ------
    ValueError
        If no loss with this tail has such a gap.

    References
    ----------
    delgrosso2021, theorems 3 and 4.

    Examples
    --------
    >>> from leakbound.bounds.generalisation import Exponential, generalisation_bound_tails
    >>> tail = Exponential(1.2, non_negative=True)
    >>> [round(generalisation_bound_tails(0.4, tail, method=name), 4) for name in ("clipped", "published")]
    [0.514, 0.5049]
    """
    gap = real("gap", gap)
    prior = probability("prior", prior, open_ends=True)
    one_of("method", method, ("clipped", "published"))
    upper_class = 1 - prior if gap > 0 else prior
    width, least = (1, upper_class) if tail.non_negative else (2, min(prior, 1 - prior))
    shortest = tail.quantile(width * least)  # here t = 1: no larger gap is possible
    limit = width * shortest + tail.excess(shortest) / least
    if abs(gap) > limit * (1 + 1e-9):
        raise ValueError(f"gap must be from {-limit:g} to {limit:g} for this tail, got {gap:g}")
    if method == "published":
        return _accuracy(_published(abs(gap), tail, min(prior, 1 - prior)), prior)
    cut = _decreasing_root(lambda r: r * tail.probability(r) + tail.excess(r), least * abs(gap), shortest)
    return _accuracy(tail.probability(cut) / (width * least), prior)


def gap_lower(
    members: Num[Array, " n"], others: Num[Array, " m"], low: float, high: float, confidence: float = 0.95
) -> float:
    """Lower confidence limit of the absolute gap of ONE trained model.

    Each mean loss has a two-sided Chernoff interval at half the error; the limit is the distance of the two
    intervals, 0 if they meet. It is rigorous for any distribution of the losses in the range, if given the model the
    others are independent draws from the population, and the members all of the training set, or a random
    part of it (then the limit is about all members; Hoeffding 1963, theorem 4). It says that the attacker
    of `generalisation_bound` succeeds against this model, with these members; nothing about the average over
    training sets: for that give `gap_bound` several models.
    Source: delgrosso2021, definition 1.

    Parameters
    ----------
    members, others : arrays of shape (n,) and (m,)
        Losses in [low, high].
    low, high, confidence : float

    Returns
    -------
    float
        In [0, high - low].

    Raises
    ------
    ValueError
        If a sample is empty, or a loss lies outside the range.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.bounds.generalisation import gap_lower
    >>> round(gap_lower(np.zeros(500), np.repeat([0, 1], [350, 150]), 0, 1), 4)
    0.2332
    """
    low, high = _range(low, high)
    alpha = (1 - probability("confidence", confidence, open_ends=True)) / 4  # two means, two ends
    sizes = np.array([count("members", len(members)), count("others", len(others))])
    named = (("members", members), ("others", others))
    scaled = [(_within(name, values, low, high).mean() - low) / (high - low) for name, values in named]
    means = np.clip(scaled, 0, 1)
    highest, lowest = chernoff_kl_upper(means, sizes, alpha), 1 - chernoff_kl_upper(1 - means, sizes, alpha)
    return (high - low) * float(max(lowest[1] - highest[0], lowest[0] - highest[1], 0.0))


def gap_bound(
    values: Num[Array, "M N"],
    member: Bool[Array, "M N"],
    low: float,
    high: float,
    prior: float = 0.5,
    confidence: float = 0.95,
) -> Interval:
    """Accuracy that the best attacker reaches at least, from the losses of trained models.

    With one model: `gap_lower`, over points, rigorous. With several: Student's t over models. Each model's
    gap is that between its own points out and in, so models need not agree on a level, and points that
    depend on each other do no harm; what is covered is the average over models of the game on these N
    points. The limit is approximate, because the gaps of a few models are taken as normal: with the handful
    of models that one trains, no limit that holds for every distribution of the gaps would be informative.
    Source: delgrosso2021, definition 1 and theorem 2.

    Parameters
    ----------
    values : array of shape (M, N)
        A loss in [low, high] of each model at each point: 1 - correct (0-1 loss, low = 0, high = 1), or any
        loss clipped to a range that was chosen without these values.
    member : bool array of shape (M, N)
        Who is in the data of each model; the rows are independent, and each has members and others.
    low, high : float
        Range of the loss.
    prior : float
        Probability of a member, in (0, 1).
    confidence : float
        Of the lower limit; the coverage is two-sided for the gap, whose sign is not known.

    Returns
    -------
    Interval
        ``low`` is `generalisation_bound` at the lower limit of the absolute gap, ``value`` that at the gap
        itself, ``high`` is 1; ``detail`` has the ``gap`` (others minus members) and ``gap_low``.

    Raises
    ------
    ValueError
        If the shapes differ, a model has no members or no others, or a loss lies outside the range.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.bounds.generalisation import gap_bound
    >>> member = np.tile([True, False], (8, 100))
    >>> wrong = ~member & (np.random.default_rng(0).random(member.shape) < 0.3)
    >>> found = gap_bound(wrong.astype(float), member, 0, 1)
    >>> round(found.value, 4), round(found.low, 4), found.interval_over
    (0.6487, 0.6366, 'models')
    """
    low, high = _range(low, high)
    if values.shape != member.shape or values.ndim != 2 or len(values) == 0:
        raise ValueError(f"values have shape {values.shape}, member has {member.shape}; both must be (M, N)")
    losses = _within("values", values, low, high)
    n_in = member.sum(axis=1)
    one_sided = np.flatnonzero((n_in == 0) | (n_in == member.shape[1]))
    if len(one_sided):
        m = one_sided[0]
        raise ValueError(f"each model needs members and others; model {m} has {n_in[m]} of {member.shape[1]} points in")
    # the gap of each model; with one model alone the interval is over its points
    mean_in, mean_out = (losses.mean(axis=1, where=where) for where in (member, ~member))
    if len(values) > 1:
        return gap_of_models(mean_in, mean_out, low, high, prior, confidence)
    gap = float((mean_out - mean_in).mean())
    nearest = gap_lower(losses[member], losses[~member], low, high, confidence)
    return _from_gap(gap, nearest, low, high, prior, confidence, "points", (Term("chernoff_kl_means"),))


def gap_of_models(
    mean_in: Float[Array, " M"],
    mean_out: Float[Array, " M"],
    low: float,
    high: float,
    prior: float = 0.5,
    confidence: float = 0.95,
) -> Interval:
    """Compute `gap_bound` of several models from their mean losses.

    >>> found = gap_of_models(np.zeros(4), np.array([0.3, 0.32, 0.28, 0.3]), 0, 1)
    >>> round(found.value, 4), round(found.low, 4)
    (0.65, 0.637)
    """
    # (1 + gap/(high - low))/2 is the accuracy of the attacker of `generalisation_bound`, a fraction
    accuracy = cluster_t(np.clip((1 + (mean_out - mean_in) / (high - low)) / 2, 0, 1), confidence)
    nearest = (high - low) * max(2 * accuracy.low - 1, 1 - 2 * accuracy.high, 0.0)
    gap = float((mean_out - mean_in).mean())
    method = (Term("gap_of_models"), *accuracy.method)
    return _from_gap(gap, nearest, low, high, prior, confidence, "models", method)


def _from_gap(
    gap: float,
    nearest: float,
    low: float,
    high: float,
    prior: float,
    confidence: float,
    over: IntervalOver,
    method: tuple[Term, ...],
) -> Interval:
    """Bound the accuracy by a gap and by its limit that is nearest to 0."""
    bounds = [generalisation_bound(mean_gap, low, high, prior) for mean_gap in (gap, min(nearest, abs(gap)))]
    detail = {"gap": gap, "gap_low": nearest}
    return Interval(bounds[0], bounds[1], 1.0, confidence, over, method, detail)


def _accuracy(tv: float, prior: float) -> float:
    """Compute the accuracy that a total variation gives at a prior."""
    prior = probability("prior", prior, open_ends=True)
    likelier = max(prior, 1 - prior)
    return max(likelier, 1 - likelier * (1 - min(tv, 1.0)))


def _published(gap: float, tail: SubGaussian | Exponential, least: float) -> float:
    """Maximise ``gap/(2 r) - C(r)/least`` over r >= r0, on ever finer grids."""
    grid = np.geomspace(tail.quantile(1.0), 1e3 * tail.unit, 2001)
    best = 0.0
    for _ in range(3):
        values = gap / (2 * grid) - tail.published(grid) / least
        i = int(np.argmax(values))
        best = max(best, float(values[i]))
        grid = np.linspace(grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)], 2001)
    return best


def _decreasing_root(function: Callable[[float], float], target: float, low: float) -> float:
    """Find where a decreasing function falls to a target: at or above the root, and at least ``low``."""
    high = 2 * low
    while function(high) > target:
        low, high = high, 2 * high
    return bisect(lambda x: function(x) <= target, inside=high, outside=low)


def _range(low: float, high: float) -> tuple[float, float]:
    low, high = real("low", low), real("high", high)
    if low >= high:
        raise ValueError(f"low must be below high, got {low:g} and {high:g}")
    real("high - low", high - low)
    return low, high


def _within(name: str, values: Array, low: float, high: float) -> Float[Array, "*shape"]:
    """Convert values to double precision, and check that they are in the range."""
    losses = np.asarray(values, dtype=float)
    if not ((losses >= low) & (losses <= high)).all():
        raise ValueError(f"{name} must be >= {low:g} and <= {high:g}, got {losses.min():g} to {losses.max():g}")
    return losses
