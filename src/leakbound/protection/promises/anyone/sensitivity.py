"""How far replacing one record can move a statistic, whatever the data: what differential privacy needs.

It follows from the least and the largest value of each column, which must be declared: a range that was read off the
data promises nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from leakbound.core.checks import one_of
from leakbound.core.findings import Status, Term
from leakbound.core.types import NotApplicable
from leakbound.plans.statistics import REGRESSIONS
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.counts_and_sums import ColumnCountsAndSums, CountAndProducts, middle_and_half
from leakbound.releases.statistics.features import Cells, Columns, Histogram, SecondMoments, columns_of, numbers
from leakbound.releases.statistics.group_means import GroupCountsAndSums
from leakbound.releases.statistics.statistic import Covariance, Linear

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Ranges:
    """The smallest and the largest value of each column, for differential privacy."""

    low: Float[Array, " p"]
    high: Float[Array, " p"]
    # a range that nobody declared is that of these records: it promises nothing, and favours differential privacy
    from_data: Bool[Array, " p"]

    @classmethod
    def of(cls, mechanism: Mechanism, declared: Mapping[str, tuple[float, float]] | None = None) -> Ranges:
        """Take the declared range of each column, else the range of the data."""
        names = columns_of(mechanism.points.x)
        declared = dict(declared or {})
        for name in declared:
            one_of("column of ranges", name, names)
        try:
            values = numbers(mechanism.points.x)
        except ValueError as reason:
            raise NotApplicable(str(reason)) from None
        low, high = values.min(axis=0), values.max(axis=0)
        for column, name in enumerate(names):
            if name in declared:
                low[column], high[column] = declared[name]
        from_data = np.array([name not in declared for name in names])
        return cls(low, high, from_data)

    @property
    def width(self) -> Float[Array, " p"]:
        """High minus low."""
        return self.high - self.low

    @property
    def status(self) -> Status:
        """Nothing is certified by a range that was read off the data."""
        return "estimated" if self.from_data.any() else "certified"

    def assumptions(self, mechanism: Mechanism) -> Sequence[Term]:
        """Say what the ranges assume, and how many values of these data they would change."""
        names = np.array(columns_of(mechanism.points.x))
        values = numbers(mechanism.points.x)
        assumed = []
        declared = ~self.from_data
        if declared.any():
            listed = [
                f"{name} from {low:g} to {high:g}"
                for name, low, high in zip(names[declared], self.low[declared], self.high[declared], strict=True)
            ]
            beyond = int(((values < self.low) | (values > self.high)).sum())
            ranges = ", ".join(listed)
            if beyond:
                assumed.append(Term("declared_ranges_clip", ranges=ranges, beyond=beyond))
            else:
                assumed.append(Term("declared_ranges", ranges=ranges))
        if self.from_data.any():
            assumed.append(Term("ranges_of_these_data", columns=", ".join(names[self.from_data])))
        return tuple(assumed)


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """How far replacing one record can move a statistic, whatever the data."""

    unit: Float[Array, " d"]  # noise is proportional to it, so that columns in other units get noise of their own
    l1: float
    l2: float


def sensitivity(mechanism: Mechanism, ranges: Ranges | None = None, *, n_records: int | None = None) -> Sensitivity:
    """Bound how far replacing one record can move a statistic, whatever the data.

    Counts: the record leaves one bin of each column and enters another, so a column moves by 2 in l1. Noisy counts with
    noisy sums, where a record may have no value: see `_of_answers`, `_of_groups` and `_of_products`. Means and sums of
    records that all have a value: each coordinate by at most the width of its range, over the number of records for a
    mean.
    Products of columns around a public centre m, each column in units of ``C_i = max |x_i - m_i|``: ``uu^T - vv^T =
    (st^T + ts^T)/2``, s = u + v and t = u - v, where ``|s_i| + |t_i| <= 2``, so the p^2 entries of the whole matrix sum
    to at most p^2, those of the triangle to (p^2 + p)/2, and the triangle has at most p in l2; where no column changes
    its sign around the centre, each entry moves by at most 1. Covariance with divisor k: the other k - 1 records have
    a mean r, and the covariance moves by ``(k - 1)/k^2`` times ``(u-r)(u-r)^T - (v-r)(v-r)^T``, each entry of which is
    at most the product of the two widths, since ``u_i - r_i`` and ``v_i - r_i`` lie in an interval of that length
    around 0; reached by records in opposite corners.

    >>> from leakbound.releases.statistics.statistic import named
    >>> from leakbound.core.types import Points
    >>> mean = Mechanism.of(named("mean"), Points(np.zeros((10, 4))))
    >>> bound = sensitivity(mean, Ranges.of(mean, dict.fromkeys(("x0", "x1", "x2", "x3"), (-1, 1))))
    >>> bound.unit.tolist(), bound.l1, bound.l2
    ([0.4, 0.4, 0.4, 0.4], 4.0, 2.0)
    """
    statistic, d = mechanism.statistic, mechanism.d
    k = mechanism.k if n_records is None else n_records
    if isinstance(statistic, Linear):
        of_sum = _of_features(statistic, d, ranges)
        divisor = k if statistic.statistic == "mean" else 1
        return Sensitivity(of_sum.unit / divisor, of_sum.l1, of_sum.l2)
    if isinstance(statistic, Covariance):
        if k == 1:
            raise NotApplicable("covariance_of_one")
        width = _known(ranges).width
        first, second = np.triu_indices(len(width))
        return Sensitivity(width[first] * width[second] * (k - 1) / k**2, float(d), math.sqrt(d))
    what = f"{statistic.name} coefficients" if statistic.name in REGRESSIONS else statistic.name
    raise NotApplicable("no_sensitivity_by_clipping", statistic=what)


def _of_features(statistic: Linear, d: int, ranges: Ranges | None) -> Sensitivity:
    """Bound the sensitivity of a sum of features."""
    features = statistic.features
    if isinstance(features, Histogram | Cells):
        sizes = [len(edges) - 1 for edges in features.edges] if isinstance(features, Histogram) else [d]
        moved = sum(min(size, 2) for size in sizes)  # a single bin is entered or left
        return Sensitivity(np.ones(d), float(moved), math.sqrt(moved))
    match features:
        case ColumnCountsAndSums():
            return _of_answers(features)
        case GroupCountsAndSums():
            return _of_groups(features)
        case CountAndProducts():
            return _of_products(features)
    if isinstance(features, Columns):
        return Sensitivity(_known(ranges).width, float(d), math.sqrt(d))
    if isinstance(features, SecondMoments):
        known = _known(ranges)
        centre = np.asarray(features.centre) if features.centre is not None else np.zeros(len(known.low))
        below, above = known.low - centre, known.high - centre
        largest = np.maximum(np.abs(below), np.abs(above))
        first, second = np.triu_indices(len(largest))
        one_sign = bool(((below >= 0) | (above <= 0)).all())
        two = min(math.sqrt(d), float(len(largest))) if one_sign else float(len(largest))
        return Sensitivity(largest[first] * largest[second], float(d), two)
    raise NotApplicable("no_sensitivity", statistic=statistic.name)


def _of_answers(answers: ColumnCountsAndSums) -> Sensitivity:
    """Bound the sensitivity of the count and the sum of each column, a sum in units of half of its range.

    A record that has a value before and after moves a sum by at most 2, one that gets or loses it a sum and a count by
    at most 1 each. With counts in units of ``1/sqrt(3)`` both are 2 in l2: the sum has the noise of a mean of records
    that all have a value, and the count costs nothing.
    """
    c = len(answers.columns)
    _, half = middle_and_half(answers.ranges)
    unit = np.concatenate([np.full(c, 1 / math.sqrt(3)), half])
    return Sensitivity(unit, c * (math.sqrt(3) + 1), 2 * math.sqrt(c))


def _of_groups(groups: GroupCountsAndSums) -> Sensitivity:
    """Bound the sensitivity of counts and sums of groups, a sum in units of half of its range.

    A record that stays in its group moves the sums of the c columns by at most 2 each: ``4 c`` in squares. One that
    leaves it for another one moves two counts by 1 and two sums of each column by at most 1, so that with counts in
    units of ``1/sqrt(c)`` it is ``4 c``, too; a single group it can only leave, and there the unit is ``1/sqrt(3 c)``.
    """
    c, n_groups = len(groups.columns), groups.means.cells.n_cells
    _, half = middle_and_half(groups.ranges)
    n_changed = min(n_groups, 2)
    of_count = 1 / math.sqrt(c if n_groups > 1 else 3 * c)
    unit = np.concatenate([np.full(n_groups, of_count), np.repeat(half, n_groups)])
    return Sensitivity(unit, max(n_changed * (1 / of_count + c), 2.0 * c), 2 * math.sqrt(c))


def _of_products(moments: CountAndProducts) -> Sensitivity:
    """Bound the sensitivity of the count of complete records and of the sums of their products.

    Products move as in `sensitivity`; here they are less their middle, so that a record that becomes incomplete takes
    away at most half of their width. What is left of the square of the bound is for the count. Of a covariance the sums
    of the columns, which move by twice half of their range, and the products have one half of the square each.
    """
    low, high = moments.ends
    least, largest = moments.product_ends
    c, p = len(low), len(least)
    size = np.maximum(np.abs(low), np.abs(high))
    first, second = np.triu_indices(c)
    if ((low >= 0) | (high <= 0)).all():  # no column changes its sign
        of_product, squared = largest - least, float(p)
    else:
        of_product, squared = size[first] * size[second], float(c * c)
    half = (largest - least) / 2 / of_product
    fraction = 0.5 if moments.is_covariance else 1.0  # of the square of the bound, for the products
    # in units of the bound: what an incomplete record takes away of the columns and of the products
    taken = (1 - fraction) / 4 + fraction * float(half @ half) / squared
    units = [np.array([1 / math.sqrt(squared * (1 - taken))])]
    if moments.is_covariance:
        _, half_width = middle_and_half(moments.ranges)
        units.append(half_width * math.sqrt(4 * c / squared / (1 - fraction)))
    units.append(of_product / math.sqrt(fraction))
    unit = np.concatenate(units)
    return Sensitivity(unit, math.sqrt(squared * len(unit)), math.sqrt(squared))


def _known(ranges: Ranges | None) -> Ranges:
    if ranges is None:
        raise NotApplicable("needs_ranges")
    return ranges
