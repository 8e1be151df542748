"""A statistic without each unit: the sets, the formulas, and the fits where there are none."""

from __future__ import annotations

import numpy as np
import pytest

from leakbound.core.types import Points
from leakbound.releases.statistics.algorithms import Function
from leakbound.releases.statistics.statistic import Fit, named
from leakbound.runtime.all_but_one import AllButOne, values_of


def test_one_record_is_refused() -> None:
    with pytest.raises(ValueError, match="leaving one out needs at least 2 of them, got 1"):
        values_of(named("mean"), Points(np.ones((1, 2))))


def test_a_statistic_that_fails_on_all_records_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be computed on"):
        values_of(Fit("fails", Function(lambda x: 1 / 0)), Points(np.ones((4, 2))))


def test_sets_of_all_but_one() -> None:
    sets = AllButOne(np.arange(4))
    assert sets.rows(slice(1, 3)).tolist() == [[True, False, True, True], [True, True, False, True]]
    assert len(set(sets.fit_seeds.tolist())) == 1
    assert sets.n_fits == 4
    people = AllButOne(np.array([1, 0, 1]))
    assert people.rows(slice(0, 2)).tolist() == [[True, False, True], [False, True, False]]
    assert people.n_fits == 2


@pytest.mark.parametrize(
    "name",
    ["sum", "mean", "second_moment", "covariance", "correlation", "quantiles", "ols", "standard_errors", "ridge"],
)
def test_people_by_formula_and_by_fits(name) -> None:
    """The same as a plain function of the rows that are left, which takes a fit for each person."""
    rng = np.random.default_rng(1)
    points, person = (
        Points(rng.normal(size=(40, 3))),
        rng.permutation(np.repeat(np.arange(9), [1, 2, 3, 4, 5, 6, 7, 8, 4])),
    )
    statistic = named(name)

    def of_rows(x):
        everybody = np.ones((1, len(x)), dtype=bool)
        return statistic.observe(Points(x), everybody, np.zeros(1, dtype=int))["output"][0]

    of_all, without = values_of(statistic, points, person)
    by_fits = values_of(Fit("plain", Function(of_rows)), points, person)
    np.testing.assert_allclose(of_all, by_fits[0], rtol=1e-9)
    np.testing.assert_allclose(without, by_fits[1], rtol=1e-9)
