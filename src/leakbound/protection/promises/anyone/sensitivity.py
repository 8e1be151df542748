"""How far replacing one record can move a statistic, whatever the data: what differential privacy needs.

It follows from the least and the largest value of each column, which must be declared: a range that was read off the
data promises nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from leakbound.core.types import NotApplicable
from leakbound.plans.statistics import REGRESSIONS
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.counts_and_sums import ColumnCountsAndSums, CountAndProducts, middle_and_half
from leakbound.releases.statistics.features import Cells, Columns, Histogram
from leakbound.releases.statistics.group_means import GroupCountsAndSums
from leakbound.releases.statistics.statistic import Linear

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """How far replacing one record can move a statistic, whatever the data."""

    unit: Float[Array, " d"]  # noise is proportional to it, so that columns in other units get noise of their own
    l1: float
    l2: float


def sensitivity(
    mechanism: Mechanism, width: Float[Array, " d"] | None = None, *, n_records: int | None = None
) -> Sensitivity:
    """Bound how far replacing one record can move a statistic, whatever the data.

    Counts: the record leaves one bin of each column and enters another, so a column moves by 2 in l1. Noisy counts with
    noisy sums, where a record may have no value: see `_of_answers`, `_of_groups` and `_of_products`. Sums of columns:
    each by at most the width of its range.

    >>> from leakbound.releases.statistics.statistic import named
    >>> from leakbound.core.types import Points
    >>> total = Mechanism.of(named("sum"), Points(np.zeros((10, 4))))
    >>> bound = sensitivity(total, np.full(4, 2.0))
    >>> bound.unit.tolist(), bound.l1, bound.l2
    ([2.0, 2.0, 2.0, 2.0], 4.0, 2.0)
    """
    statistic = mechanism.statistic
    if not isinstance(statistic, Linear):
        what = f"{statistic.name} coefficients" if statistic.name in REGRESSIONS else statistic.name
        raise NotApplicable("no_sensitivity_by_clipping", statistic=what)
    of_sum = _of_features(statistic, mechanism.d, width)
    k = mechanism.k if n_records is None else n_records
    divisor = k if statistic.statistic == "mean" else 1
    return Sensitivity(of_sum.unit / divisor, of_sum.l1, of_sum.l2)


def _of_features(statistic: Linear, d: int, width: Float[Array, " d"] | None) -> Sensitivity:
    """Bound the sensitivity of a sum of features."""
    match statistic.features:
        case Histogram() | Cells() as counted:
            sizes = [len(edges) - 1 for edges in counted.edges] if isinstance(counted, Histogram) else [d]
            moved = sum(min(size, 2) for size in sizes)  # a single bin is entered or left
            return Sensitivity(np.ones(d), float(moved), math.sqrt(moved))
        case ColumnCountsAndSums() as answers:
            return _of_answers(answers)
        case GroupCountsAndSums() as groups:
            return _of_groups(groups)
        case CountAndProducts() as moments:
            return _of_products(moments)
        case Columns() if width is not None:
            return Sensitivity(width, float(d), math.sqrt(d))
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

    In units of ``C_i = max |x_i - m_i|`` of each column, m its centre, ``uu^T - vv^T = (st^T + ts^T)/2``, s = u + v and
    t = u - v, where ``|s_i| + |t_i| <= 2``: the triangle of products has at most c in l2, and where no column changes
    its sign each entry moves by at most 1. They are less their middle, so that a record that becomes incomplete takes
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
