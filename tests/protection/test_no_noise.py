"""Where no noise is needed: exactly where the exact game says so."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakbound.bounds import exact_eta
from leakbound.protection.promises.drawn.no_noise import unneeded
from tests.noise.games import all_subsets


def test_sixty_four_records_in_each_cell_keep_every_attacker_below_55_of_100():
    for size, wanted in ((60, None), (64, "table")):  # .399/sqrt(m) of a small cell among many records
        cells = np.repeat(np.eye(2), [size, 20_000], axis=0)
        found = unneeded(cells, k=(size + 20_000) // 2, eta=0.05)
        assert (found.coupling if found else None) == wanted


@pytest.mark.slow
def test_a_total_says_more_than_its_table():
    values = np.arange(200.0)[:, None]  # all records differ: the table tells everything
    found = unneeded(values, k=100, eta=0.05)
    assert found is not None
    assert found.coupling == "total"
    assert found.eta < 0.05


def test_numbers_that_are_not_whole_have_no_law_of_their_total():
    assert unneeded(np.arange(200.0)[:, None] + 0.5 * (np.arange(200) == 3)[:, None], k=100, eta=0.05) is None


@given(st.lists(st.integers(0, 2), min_size=8, max_size=8), st.floats(0.01, 0.4), st.booleans())
def test_what_is_called_unneeded_is_within_the_exact_eta(values, eta, average):
    features = np.array(values, dtype=float)[:, None]
    member = all_subsets(8, 4)
    each = exact_eta(member @ features, member)
    found = unneeded(features, 4, eta, "average" if average else "every")
    exact = each.mean() if average else each.max()
    if found is not None:
        assert exact <= found.eta + 1e-9 <= eta + 2e-9
    else:
        assert exact > eta - 1e-9  # the law of a total of whole numbers is exact: nothing is missed


@pytest.mark.parametrize("k", [2, 5])
def test_two_columns_are_refined_together(k):
    rng = np.random.default_rng(0)
    features = rng.integers(0, 2, size=(10, 2)).astype(float)
    member = all_subsets(10, k)
    exact = exact_eta(member @ features, member).max()
    found = unneeded(features, k, 0.19)
    assert found is None or exact <= found.eta + 1e-12
    loose = unneeded(np.zeros((10, 2)), k, 1e-6)
    assert loose is not None
    assert loose.eta < 0.19
