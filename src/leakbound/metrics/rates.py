"""Rates at a fixed false-positive rate, with intervals that know the threshold was estimated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Float
from scipy.special import bdtrik

from leakbound.core.checks import probability
from leakbound.core.findings import Term
from leakbound.core.intervals import Interval, clopper_pearson
from leakbound.core.types import NotApplicable, Scores
from leakbound.metrics.clustered import Clustered, joined
from leakbound.metrics.ranked import Ranked
from leakbound.metrics.rows import Rows, rows

Array = np.ndarray


Target = Literal["population", "these_models"]
MOST_SPREAD = 0.35  # upper limit of the between-model spread up to which any number of models gives an interval
FEWEST_IN_TAIL = 4  # models times the rate: with so many, the interval covers at any spread


def tpr_at_fpr(scores: Scores, fpr: float, confidence: float = 0.95, target: Target = "population") -> Interval:
    """Estimate the true positive rate at a false positive rate, with one threshold for all models.

    The threshold is the smallest score whose false positive rate among all non-member scores is at most
    ``fpr``. The interval covers the rate at the true quantile, so it knows that the threshold was estimated.

    Over one model: order-statistic limits of the quantile and Clopper-Pearson limits of the rate, joined by square and
    add (the two samples are independent). Over several models: the same with the limits of Korn and Graubard, whose
    variance is that between models or that between records; see `leakbound.metrics.clustered`.
    Source: azize2024, eq. 3 and 17 to 21.

    Parameters
    ----------
    scores : Scores
    fpr : float
        In (0, 1).
    confidence : float
    target : {"population", "these_models"}
        What is estimated where there are several models.

        * population: one threshold for all models that the recipe makes, and the rates of all of them. Models are the
          sampling units. Where whole models may shift their scores by more than 0.35 of the noise of a record, and
          there are fewer than 4/fpr models, the models that make the false positives may not be among those seen, and
          no interval is given: ``refused`` is "too_few_models".
        * these_models: one threshold for the attacked models, and the rates of these alone. Records are the sampling
          units. Never refused.

    Returns
    -------
    Interval
        ``detail`` has the realised ``fpr``, the ``threshold``, the ``false_alarms`` and the ``games``, the
        number of non-member scores behind the threshold; of several models also how many there are and the
        ``between_model_spread``, the standard deviation of a model's shift over that of a record's noise. Where the
        interval is refused, ``models_needed`` would have one if the spread stays, and ``models_needed_at_any_spread``
        in any case.

    Raises
    ------
    NotApplicable
        If the scores cannot resolve this rate: fewer than 1/fpr non-member scores, or ties above it.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.types import Scores
    >>> member = np.arange(2000) % 2 == 0
    >>> value = np.random.default_rng(0).normal(size=2000) + 2 * member
    >>> found = tpr_at_fpr(Scores("example", value[None, :], member[None, :]), 0.05)
    >>> round(found.value, 3), found.detail["false_alarms"]
    (0.644, 50)
    """
    return Pooled(rows(scores), confidence, target).tpr(fpr)


def randomised_tpr(scores: Scores, fpr: float, confidence: float, target: Target) -> Interval:
    """Estimate the TPR of an attacker who uses the strictest threshold only now and then, to keep a rate below its own.

    He calls those with the highest score members with probability ``fpr / strictest``, and nobody else.
    """
    return Pooled(rows(scores), confidence, target).randomised(fpr)


def roc_band(
    scores: Scores, at: Sequence[float] | Float[Array, " A"], confidence: float = 0.95
) -> tuple[Float[Array, " A"], Float[Array, " A"], Float[Array, " A"]]:
    """Estimate the true positive rate at several false positive rates, with pointwise intervals.

    Parameters
    ----------
    scores : Scores
    at : array of shape (A,)
        False-positive rates in (0, 1).
    confidence : float
        Of each point by itself.

    Returns
    -------
    value, low, high : arrays of shape (A,)
        NaN for the ends of an interval that `tpr_at_fpr` refuses.

    Raises
    ------
    NotApplicable
        As `tpr_at_fpr`, for any of the rates.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.types import Scores
    >>> member = np.arange(2000) % 2 == 0
    >>> value = np.random.default_rng(0).normal(size=2000) + 2 * member
    >>> roc_band(Scores("example", value[None, :], member[None, :]), [0.05, 0.5])[0].round(3).tolist()
    [0.644, 0.976]
    """
    return Pooled(rows(scores), confidence, "population").band(at)


def ppv(scores: Scores, fpr: float, prior: float = 0.5, confidence: float = 0.95) -> Interval:
    """Fraction of members among the points called members, at a false-positive rate and a prior.

    ``prior tpr/(prior tpr + (1 - prior) fpr)``, which grows with the TPR: its interval is mapped, and refused where
    that of the TPR is. The target is that of `tpr_at_fpr` over the population of models.

    Parameters
    ----------
    scores : Scores
    fpr : float
        In (0, 1); the formula uses this requested rate, which is at least the realised one.
    prior : float
        In (0, 1).
    confidence : float

    Returns
    -------
    Interval
        Of the precision at this prior: the interval of the true positive rate, carried over.

    Raises
    ------
    NotApplicable
        As `tpr_at_fpr`.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.types import Scores
    >>> member = np.arange(2000) % 2 == 0
    >>> value = np.random.default_rng(0).normal(size=2000) + 2 * member
    >>> round(ppv(Scores("example", value[None, :], member[None, :]), 0.05, prior=0.1).value, 3)
    0.589
    """
    prior = probability("prior", prior, open_ends=True)
    return precision_of(tpr_at_fpr(scores, fpr, confidence), fpr, prior)


def precision_of(tpr: Interval, fpr: float, prior: float) -> Interval:
    """Map a true positive rate to the precision at this false positive rate and prior."""
    value, low, high = (prior * r / (prior * r + (1 - prior) * fpr) for r in (tpr.value, tpr.low, tpr.high))
    return replace(tpr, value=value, low=low, high=high)


def fpr_at_tpr(scores: Scores, tpr: float, confidence: float = 0.95, target: Target = "population") -> Interval:
    """Estimate the false positive rate where a fraction of the members is found, with one threshold for all models.

    A threshold as high as possible finds at least ``tpr`` of all member scores. This is
    `tpr_at_fpr` with members and others exchanged: with the scores negated, the members that are missed are the false
    positives, and the others that are not called members the true ones.

    Parameters
    ----------
    scores : Scores
    tpr : float
        In (0, 1).
    confidence : float
    target : {"population", "these_models"}
        As in `tpr_at_fpr`.

    Returns
    -------
    Interval
        ``detail`` has the realised ``tpr``, the ``threshold`` (the next number in float64 above the largest score that
        is not called), the members ``missed`` and the ``games``, the number of member scores. Where the lowest scores
        are tied, so that nobody but who calls everybody finds so many, the value is 1 with the limits 0 and 1.

    Raises
    ------
    NotApplicable
        If the scores cannot resolve this rate: fewer than ``1/(1 - tpr)`` member scores.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.types import Scores
    >>> member = np.arange(2000) % 2 == 0
    >>> value = np.random.default_rng(0).normal(size=2000) + 2 * member
    >>> found = fpr_at_tpr(Scores("example", value[None, :], member[None, :]), 0.95)
    >>> round(found.value, 3), found.detail["missed"]
    (0.362, 50)
    """
    tpr = probability("tpr", tpr, open_ends=True)
    n = int(np.count_nonzero(rows(scores).member))
    if (1 - tpr) * n < 1 - 1e-9:  # not one member may be missed, so the rate cannot be resolved
        raise NotApplicable("tpr_not_resolvable", games=n, reached=100 - 100 / n)
    exchanged = replace(scores, value=-scores.value.astype(np.float64), member=~scores.member)
    try:
        correct = tpr_at_fpr(exchanged, 1 - tpr, confidence, target)
    except NotApplicable:
        detail = {"tpr": 1.0, "threshold": -math.inf, "missed": 0, "games": n}
        return Interval(1.0, 0.0, 1.0, confidence, rows(scores).interval_over, detail=detail)
    detail = {
        "tpr": 1 - correct.detail["fpr"],
        "threshold": math.nextafter(-correct.detail["threshold"], math.inf),  # whose score equals it is not called
        "missed": correct.detail["false_alarms"],
        "games": n,
    }
    return replace(correct, value=1 - correct.value, low=1 - correct.high, high=1 - correct.low, detail=detail)


def precision_at_recall(scores: Scores, recall: float, prior: float = 0.5, confidence: float = 0.95) -> Interval:
    """Fraction of members among the points called members, where a fraction of the members is found.

    ``prior recall/(prior recall + (1 - prior) fpr)``, which falls with the false positive rate of `fpr_at_tpr`: its
    interval is mapped. Who calls everybody a member has the recall 1 and the prior as his precision.

    Parameters
    ----------
    scores : Scores
    recall : float
        In (0, 1): the true positive rate. The formula uses the realised rate, which is at least this one.
    prior : float
        In (0, 1).
    confidence : float

    Returns
    -------
    Interval
        Of the precision at this prior.

    Raises
    ------
    NotApplicable
        As `fpr_at_tpr`.

    References
    ----------
    delgrosso2021, Table 1.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.types import Scores
    >>> member = np.arange(2000) % 2 == 0
    >>> value = np.random.default_rng(0).normal(size=2000) + 2 * member
    >>> round(precision_at_recall(Scores("example", value[None, :], member[None, :]), 0.95, prior=0.1).value, 3)
    0.226
    """
    prior = probability("prior", prior, open_ends=True)
    fpr = fpr_at_tpr(scores, recall, confidence)
    found = prior * fpr.detail["tpr"]
    value, high, low = (found / (found + (1 - prior) * rate) for rate in (fpr.value, fpr.low, fpr.high))
    return replace(fpr, value=value, low=low, high=high)


@dataclass(frozen=True, eq=False)
class Pooled:
    """The rates of all rows at one threshold."""

    rows: Rows
    confidence: float
    target: Target

    @property
    def members(self) -> Ranked:
        """The scores of members."""
        return self.rows.ranked.members

    @property
    def others(self) -> Ranked:
        """The scores of non-members."""
        return self.rows.ranked.others

    @cached_property
    def clustered(self) -> Clustered:
        """The scores in their clusters: models, or the records of these models.

        The variance inflation of attacks that leave one model out belongs to models: what a model's references have
        seen of a record is all in that record's own column.
        """
        if self.target == "population":
            return Clustered(*self.rows.by_model, self.rows.variance_inflation, self.confidence)
        return Clustered(*self.rows.by_record, 1.0, self.confidence)

    def tpr(self, fpr: float) -> Interval:
        """Estimate the rate of members at or above the threshold, with its interval and the realised FPR."""
        fpr = probability("fpr", fpr, open_ends=True)
        members, others = self.members, self.others
        threshold = self._threshold(fpr)
        n_called, n_false_positives = members.at_least(threshold), others.at_least(threshold)
        detail: dict[str, float] = {
            "fpr": n_false_positives / others.n,
            "threshold": threshold,
            "false_alarms": n_false_positives,
            "games": others.n,
        }
        # of one model the interval is over points, of several over models, or over the records of these models
        if self.rows.single:
            interval = self._over_points(fpr, n_called)
            return replace(interval, interval_over=self.rows.interval_over, detail=detail)
        detail |= {"models": len(self.rows.value), "between_model_spread": self.rows.shifts.spread}
        if self.target == "these_models":
            return replace(self._over_records(fpr, n_called), detail=detail)
        interval = self._over_models(fpr, n_called)
        if interval.refused:
            detail |= self._models_needed(fpr)
        return replace(interval, detail=detail)

    def band(self, at: Sequence[float] | Float[Array, " A"]) -> tuple[Array, Array, Array]:
        """Estimate the rate at several false positive rates, with pointwise limits; NaN where they are refused."""
        intervals = [self.tpr(float(rate)) for rate in at]
        value = np.array([interval.value for interval in intervals])
        low = np.array([np.nan if interval.refused else interval.low for interval in intervals])
        high = np.array([np.nan if interval.refused else interval.high for interval in intervals])
        return value, low, high

    def randomised(self, fpr: float) -> Interval:
        """Estimate ``fpr t/f``, of the rates t and f of members and others with the highest score.

        The highest score is the same whatever the sample, so that t and f have the limits of a fraction; those of
        their ratio join the errors of the logarithms by square and add (Zou & Donner 2008).
        """
        members, others = self.members, self.others
        top = max(members.highest(1), others.highest(1))
        n_called, n_false_positives = members.at_least(top), others.at_least(top)
        tpr, strictest = n_called / members.n, n_false_positives / others.n
        # f, the rate of others with the highest score, is the smallest that a threshold has: limits of t and f first
        if self.rows.single:
            of_points = clopper_pearson(n_called, members.n, self.confidence)
            of_others = clopper_pearson(n_false_positives, others.n, self.confidence)
            (low, high), (least, most) = (of_points.low, of_points.high), (of_others.low, of_others.high)
        else:
            low, high, least, most = self.clustered.limits_of_rates(n_called, n_false_positives)
        # limits of fpr t/f
        value = fpr * tpr / strictest
        if tpr > 0:
            low = value / math.exp(math.hypot(math.log(tpr / low), math.log(most / strictest)))
            high = value * math.exp(math.hypot(math.log(high / tpr), math.log(strictest / least)))
        else:
            low, high = 0.0, fpr * high / least
        # at f the threshold may depend on a few models alone
        interval = Interval(value, low, min(high, 1.0), self.confidence, self.rows.interval_over)
        if self.target == "population" and not self.rows.single and self._is_refused(strictest):
            needed = self._models_needed(strictest)
            return replace(interval, low=0.0, high=1.0, refused="too_few_models", detail=needed)
        return interval

    def _is_refused(self, fpr: float) -> bool:
        """Return whether a few models cannot show the threshold of this rate for all models of the recipe.

        At a low rate most false positives come from the models with the largest shifts. With R models about R fpr
        of them decide the threshold. If that is less than a few and the shifts matter, the sample may hold none of
        them, whatever its own variance says: exponential shifts as large as the noise leave .72 of 95 % at R = 16 and
        fpr = .01 even with the wide limits of `Clustered`.
        """
        in_tail = len(self.rows.value) * min(fpr, 1 - fpr)
        return in_tail < FEWEST_IN_TAIL and self.rows.shifts.spread_upper(1 - self.confidence) > MOST_SPREAD

    def _models_needed(self, fpr: float) -> dict[str, float]:
        """How many models give an interval: at any spread, and if the measured one stays as it is."""
        at_any_spread = math.ceil(FEWEST_IN_TAIL / min(fpr, 1 - fpr) - 1e-9)
        at_this_spread = self.rows.shifts.models_until(1 - self.confidence, MOST_SPREAD)
        needed = at_any_spread if at_this_spread is None else min(at_this_spread, at_any_spread)
        return {"models_needed": needed, "models_needed_at_any_spread": at_any_spread}

    def _threshold(self, fpr: float) -> float:
        """Find the smallest score whose false positive rate is at most fpr."""
        members, others = self.members, self.others
        n = others.n
        if fpr * n < 1 - 1e-9:  # not one false positive is allowed, so the rate cannot be resolved
            raise NotApplicable("fpr_not_resolvable", games=n, reached=1000 / n)
        one_too_many = _highest(others, 1 + math.floor(fpr * n + 1e-9))
        # The next score above the first one with too many false positives, of members or of others, is the threshold.
        threshold = next_above([members, others], one_too_many)
        if threshold is None:
            raise self._too_coarse()
        return threshold

    def _too_coarse(self) -> NotApplicable:
        """Say why no threshold has few enough false positives."""
        members, others = self.members, self.others
        top = max(members.highest(1), others.highest(1))
        strictest = 100 * others.at_least(top) / others.n
        distinct = self.rows.ranked.distinct(2)
        one_point = distinct is not None and len(distinct) == 2
        return NotApplicable("one_threshold" if one_point else "strictest_threshold", strictest=strictest)

    def _over_models(self, fpr: float, n_called: int) -> Interval:
        """One threshold for all models of the recipe; refused where a few models cannot show its rate."""
        rate = n_called / self.members.n
        if self._is_refused(fpr):
            return Interval(rate, 0.0, 1.0, self.confidence, "models", refused="too_few_models")
        low, high = self.clustered.limits(fpr, n_called)
        method = (Term("korn_graubard_models"),)
        return Interval(rate, low, high, self.confidence, "models", method)

    def _over_records(self, fpr: float, n_called: int) -> Interval:
        """One threshold for these models: what is drawn at random are records."""
        low, high = self.clustered.limits(fpr, n_called)
        method = (Term("korn_graubard_records"),)
        return Interval(n_called / self.members.n, low, high, self.confidence, "points", method)

    def _over_points(self, fpr: float, n_called: int) -> Interval:
        """Limits of the quantile and of the rate at it, joined by square and add."""
        members, others = self.members, self.others
        n = members.n
        fewest, most = _binomial_limits(others.n, fpr, self.confidence)
        # The true threshold is the next score above the largest one whose false positive rate exceeds fpr. That one is
        # at least `too_low` and at most `too_high`, each with the confidence of one end.
        too_low, too_high = _highest(others, most + 1), _highest(others, fewest)
        least, largest = members.above(too_high), members.above(too_low)
        lowest = next_above([members, others], too_low)
        tied_at_least = members.tied(too_high)
        tied_at_largest = 0 if lowest is None else members.tied(lowest)
        below, above = self._errors_of_rate(n_called, n)
        # Where the threshold may jump over many members at once, the rate at its limit is uncertain by itself.
        if tied_at_least > 1:
            below = max(below, self._errors_of_rate(least, n)[0])
        if tied_at_largest > 1:
            above = max(above, self._errors_of_rate(largest, n)[1])
        rate = n_called / n
        low = rate - joined(max(rate - least / n, 0.0), below, tied_at_least / n)
        high = rate + joined(max(largest / n - rate, 0.0), above, tied_at_largest / n)
        method = (Term("order_statistics"),)
        return Interval(rate, max(low, 0.0), min(high, 1.0), self.confidence, "points", method)

    def _errors_of_rate(self, n_called: int, n: int) -> tuple[float, float]:
        """Distances from a rate to its exact limits."""
        exact = clopper_pearson(n_called, n, self.confidence)
        return exact.value - exact.low, exact.high - exact.value


def next_above(samples: Sequence[Ranked], score: float) -> float | None:
    """Return the next score above this one in any of the samples; None where it is the highest."""
    lowest = [sample.highest(n) for sample in samples if (n := sample.above(score))]
    return min(lowest, default=None)


def _highest(ranked: Ranked, k: int) -> float:
    """Return the k-th highest score; infinite beyond the ends."""
    if 1 <= k <= ranked.n:
        return ranked.highest(k)
    return math.inf if k < 1 else -math.inf


def _binomial_limits(n: int, p: float, confidence: float) -> tuple[int, int]:
    """Quantiles of Binomial(n, p) with at most (1 - confidence)/2 strictly beyond each."""
    tail = (1 - confidence) / 2
    low, high = (max(math.ceil(float(bdtrik(q, n, p)) - 1e-6), 0) for q in (tail, 1 - tail))
    return low, high
