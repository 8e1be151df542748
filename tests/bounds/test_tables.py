import math
from fractions import Fraction

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakbound.bounds.exact import exact_eta, subsets
from leakbound.bounds.tables import (
    cells_to_merge,
    exact_eta_table,
    related_cells_to_merge,
    smallest_cell,
)
from leakbound.core.seeds import stream
from tests.marks import nightly, nightly_but


def exact_fraction(m, n, k):
    """The sum over N by whole numbers alone."""
    ways = {j: math.comb(m, j) * math.comb(n - m, k - j) for j in range(m + 1) if 0 <= k - j <= n - m}
    accuracy = sum(Fraction(max(j, m - j), m) * w for j, w in ways.items()) / math.comb(n, k)
    return accuracy - max(Fraction(k, n), 1 - Fraction(k, n))


def by_mpmath(m, n, k, prior):
    """The same sum to 40 digits, within 12 standard deviations."""
    with mpmath.workdps(40):
        q = mpmath.mpf(k) / n if k else mpmath.mpf(prior)
        centre, far = int(m * q), int(12 * math.sqrt(m * float(q) * (1 - float(q)))) + 2
        total = mpmath.mpf(0)
        for j in range(max(0, centre - far), min(m, centre + far) + 1):
            if k and not 0 <= k - j <= n - m:
                continue
            if k:
                chance = mpmath.binomial(m, j) * mpmath.binomial(n - m, k - j) / mpmath.binomial(n, k)
            else:
                chance = mpmath.binomial(m, j) * q**j * (1 - q) ** (m - j)
            total += chance * mpmath.mpf(max(j, m - j)) / m
        return float(total - max(q, 1 - q))


def test_values_of_ten_thousand_records():
    found = exact_eta_table([1, 2, 5, 10, 20, 100, 1000], n=10_000, k=5_000)
    expected = [0.5, 0.24997, 0.18746, 0.12299, 0.08801, 0.0396, 0.01197]
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-6)


@pytest.mark.parametrize("case", nightly_but(range(500), *range(100)))
def test_tables_agree_with_enumeration(case):
    rng = stream(0, "tables", case)
    n = int(rng.integers(2, 10))
    k, prior = int(rng.integers(1, n)), float(rng.choice([0.5, 0.3, rng.random()]))
    cell = rng.integers(0, 3, size=n)
    sizes, counted = np.bincount(cell, minlength=4), np.eye(4)[cell]
    drawn = subsets(n, k)
    fixed = exact_eta_table(sizes, n, k)
    np.testing.assert_allclose(fixed[cell], exact_eta(drawn @ counted, drawn), rtol=0, atol=1e-12)
    coins = subsets(n)
    weights = prior ** coins.sum(axis=1) * (1 - prior) ** (n - coins.sum(axis=1))
    poisson = exact_eta_table(sizes, n, sampling="poisson", prior=prior)
    np.testing.assert_allclose(poisson[cell], exact_eta(coins @ counted, coins, weights=weights), rtol=0, atol=1e-12)
    assert fixed[3] == poisson[3] == 0  # an empty cell


@pytest.mark.parametrize(("n", "k"), [(40, 20), (41, 20), (60, 7), (60, 53), (300, 1), (300, 150)])
def test_every_size_is_the_sum_of_fractions(n, k):
    sizes = np.arange(1, n + 1)
    expected = [float(exact_fraction(int(m), n, k)) for m in sizes]
    np.testing.assert_allclose(exact_eta_table(sizes, n, k), expected, rtol=0, atol=1e-14)


@pytest.mark.by_day("49999-50000-25000-None")
@pytest.mark.parametrize(
    ("m", "n", "k", "prior"),
    [
        (777, 50_000, 25_000, None),
        nightly(30_000, 50_000, 25_000, None),
        (49_999, 50_000, 25_000, None),
        (20_000, 50_000, 12_345, None),
        (40, 50_000, 12_345, None),
        (50_000, 50_000, 0, 0.5),
        (50_000, 50_000, 0, 0.4999),
        (333, 50_000, 0, 0.93),
    ],
)
def test_large_tables_are_right_to_twelve_digits(m, n, k, prior):
    found = exact_eta_table([m], n, k) if k else exact_eta_table([m], n, sampling="poisson", prior=prior)
    assert found[0] == pytest.approx(by_mpmath(m, n, k, prior), abs=1e-12)


def test_half_by_coins_is_a_central_binomial_coefficient():
    # E|2 N - m|/(2 m) = C(2 j, j)/2^(2 j + 1) for m = 2 j and m = 2 j + 1
    j = np.arange(1, 40)
    expected = [math.comb(2 * i, i) / 2 ** (2 * i + 1) for i in j.tolist()]
    for m in (2 * j, 2 * j + 1):
        np.testing.assert_allclose(exact_eta_table(m, 1000, sampling="poisson"), expected, rtol=1e-13)


def test_a_cell_of_all_records_says_nothing_of_a_fixed_size():
    assert exact_eta_table([50_000], 50_000, 20_000)[0] == 0


@given(st.integers(2, 200), st.data())
def test_eta_never_rises_with_the_size(n, data):
    sizes = np.arange(1, n + 1)
    k = data.draw(st.integers(1, n - 1))
    prior = data.draw(st.floats(0.01, 0.99))
    assert (np.diff(exact_eta_table(sizes, n, k)) <= 1e-14).all()
    assert (np.diff(exact_eta_table(sizes, n, sampling="poisson", prior=prior)) <= 1e-14).all()


def test_cells_of_64_keep_every_attacker_below_55_percent():
    # for k = n/2 and any n: the binomial is the limit, and the largest (Hoeffding 1963, theorem 4)
    assert smallest_cell(0.05, n=10**6, sampling="poisson") == 64
    assert smallest_cell(0.05, n=10**6) == 64
    for n in range(64, 2000, 2):
        assert exact_eta_table([64], n)[0] < 0.05


@given(st.integers(2, 300), st.floats(0.001, 0.4), st.data())
def test_the_smallest_cell_is_the_smallest(n, eta, data):
    k = data.draw(st.integers(1, n - 1))
    keeps = exact_eta_table(np.arange(1, n + 1), n, k) <= eta
    m = smallest_cell(eta, n, k)
    assert keeps[m - 1 :].all()
    assert not keeps[: m - 1].any()


@given(st.lists(st.integers(0, 90), min_size=1, max_size=30), st.sampled_from([0.05, 0.1, 0.2]))
def test_merged_cells_keep_eta(sizes, eta):
    n = max(2, sum(sizes)) + 100
    least = smallest_cell(eta, n)
    cells = np.array(sizes)
    exposed = np.flatnonzero((cells > 0) & (cells < least))
    if 0 < cells.sum() < least:
        with pytest.raises(ValueError, match=rf"^all cells together have {cells.sum()} records; eta = {eta} needs"):
            cells_to_merge(sizes, eta, n)
        return
    groups = cells_to_merge(sizes, eta, n)
    merged = [part for group in groups for part in group.parts]
    assert len(set(merged)) == len(merged)
    assert set(exposed) <= set(merged)
    # as few as possible: the exposed ones, and one more only if they do not suffice
    alone = cells[exposed].sum() >= least
    assert len(merged) == len(exposed) + (len(exposed) > 0 and not alone)
    for group in groups:
        assert group.size == cells[list(group.parts)].sum() >= least
        assert group.eta == exact_eta_table([group.size], n)[0] <= eta
    if alone:  # at least half of what is possible
        assert 2 * len(groups) >= cells[exposed].sum() // least


def test_the_smallest_safe_cell_helps_out():
    groups = cells_to_merge([900, 3, 100, 5], 0.05, n=1008)
    assert [(group.parts, group.size) for group in groups] == [((1, 2, 3), 108)]
    assert cells_to_merge([900, 0, 100], 0.05, n=1000) == []


@pytest.mark.by_day("7", "12", "16", "30", "37")
@pytest.mark.parametrize("case", range(40))
def test_related_cells_are_blocks_of_the_table(case):
    """All that has some levels in each column, consecutive ones where the column has an order."""
    rng = stream(0, "related", case)
    counts = rng.negative_binomial(1, 0.01, size=(5, 3, 4)) * (rng.random((5, 3, 4)) < 0.8)
    ordered = [bool(flag) for flag in rng.random(3) < 0.5]
    levels = np.argwhere(counts > 0)
    sizes = counts[counts > 0]
    n = int(sizes.sum())
    least = smallest_cell(0.05, n)
    groups = related_cells_to_merge(levels, ordered, sizes, 0.05, n)
    merged = [part for group in groups for part in group.parts]
    assert len(set(merged)) == len(merged)
    assert set(np.flatnonzero(sizes < least)) <= set(merged)
    for group in groups:
        parts = list(group.parts)
        assert len(parts) > 1
        assert group.size == sizes[parts].sum() >= least
        assert group.eta == exact_eta_table([group.size], n)[0] <= 0.05
        own = [set(levels[parts, column]) for column in range(3)]
        for column in range(3):
            if ordered[column]:
                own[column] = set(range(min(own[column]), max(own[column]) + 1))
        inside = [cell for cell, row in enumerate(levels) if all(row[column] in own[column] for column in range(3))]
        assert inside == parts


def test_related_cells_differ_in_one_column_where_that_is_enough():
    """Davos / yes and Bern / no share nothing; the two counts of Bern do, and so do the two of "yes"."""
    names = [(town, answer) for town in range(3) for answer in range(2)]
    groups = related_cells_to_merge(np.array(names), [False, False], [500, 20, 900, 60, 30, 700], 0.05, n=2210)
    for group in groups:
        cells = [names[part] for part in group.parts]
        assert 1 in (len({town for town, _ in cells}), len({answer for _, answer in cells}))


def test_of_an_ordered_column_neighbours_are_joined():
    """Ages 30, 40, 50, 60: 10 people of 30 and 10 of 60 are no neighbours; both go to the age beside them."""
    levels = np.arange(4)[:, None]
    sizes = [10, 500, 600, 10]
    apart = related_cells_to_merge(levels, [True], sizes, 0.05, n=1120)
    assert [group.parts for group in apart] == [(0, 1), (2, 3)]
    text = related_cells_to_merge(levels, [False], [40, 500, 600, 40], 0.05, n=1180)
    assert [group.parts for group in text] == [(0, 3)]


def test_a_missing_value_is_beside_every_level():
    levels = np.array([[0], [1], [2], [-1]])
    groups = related_cells_to_merge(levels, [True], [500, 600, 700, 5], 0.05, n=1805)
    assert [group.parts for group in groups] == [(0, 3)]


def test_related_cells_that_are_too_few_together_are_refused():
    with pytest.raises(ValueError, match=r"^all cells together have 12 records; eta = 0\.05 needs 6"):
        related_cells_to_merge(np.array([[0], [1]]), [False], [5, 7], 0.05, n=1000)
    with pytest.raises(ValueError, match=r"levels have shape \(2, 1\); 2 cells of 2 columns are given"):
        related_cells_to_merge(np.array([[0], [1]]), [False, True], [500, 700], 0.05, n=1200)


def safe(counts, eta, k=None):
    cells = counts[counts > 0]
    return (exact_eta_table(cells, int(counts.sum()), k) <= eta).all()


def test_the_exposed_cells_of_adult(real_data):
    adult = pd.read_parquet(real_data / "adult.parquet")
    sizes = adult.groupby(["occupation", "sex", "income"]).size()
    eta = exact_eta_table(sizes.to_numpy(), len(adult))
    assert set(sizes.index[eta > 0.05]) == {
        ("Farming-fishing", "Female", ">50K"),
        ("Priv-house-serv", "Female", ">50K"),
        ("Armed-Forces", "Male", ">50K"),
        ("Handlers-cleaners", "Female", ">50K"),
        ("Armed-Forces", "Male", "<=50K"),
        ("Transport-moving", "Female", ">50K"),
        ("Priv-house-serv", "Male", "<=50K"),
        ("Protective-serv", "Female", ">50K"),
        ("Machine-op-inspct", "Female", ">50K"),
        ("Craft-repair", "Female", ">50K"),
    }
    assert (sizes[eta > 0.05] < 64).all()
    assert eta.max() == pytest.approx(float(exact_fraction(3, 48_842, 24_421)), abs=1e-12)
    groups = cells_to_merge(sizes.to_numpy(), 0.05, len(adult))
    assert len(groups) == 2  # 132 records, 64 in a group
    assert sum(group.size for group in groups) == sizes[eta > 0.05].sum() == 132


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: exact_eta_table([], 10), "cell sizes must have shape (n_cells,), at least one; got (0,)"),
        (lambda: exact_eta_table([[1, 2]], 10), "cell sizes must have shape (n_cells,), at least one; got (1, 2)"),
        (lambda: exact_eta_table([1.5], 10), "cell sizes must be whole numbers >= 0, got 1.5"),
        (lambda: exact_eta_table([3, -1], 10), "cell sizes must be whole numbers >= 0, got -1"),
        (lambda: exact_eta_table([math.nan], 10), "cell sizes must be whole numbers >= 0, got nan"),
        (lambda: exact_eta_table([math.inf], 10), "cell sizes must be whole numbers >= 0, got inf"),
        (lambda: exact_eta_table([11], 10), "a cell has 11 records; there are n = 10"),
        (lambda: exact_eta_table([1], 1), "number of records must be >= 2, got 1"),
        (lambda: exact_eta_table([1], 0, sampling="poisson"), "n must be >= 1, got 0"),
        (lambda: exact_eta_table([1], 10, 10), "k must be < the 10 records, got 10"),
        (lambda: exact_eta_table([1], 10, 0), "k must be >= 1, got 0"),
        (
            lambda: exact_eta_table([1], 10, 5, "poisson"),
            "k = 5 belongs to sampling='fixed'; sampling='poisson' takes a prior",
        ),
        (
            lambda: exact_eta_table([1], 10, prior=0.5),
            "prior = 0.5 belongs to sampling='poisson'; sampling='fixed' takes k",
        ),
        (lambda: exact_eta_table([1], 10, sampling="poisson", prior=1.0), "prior must be > 0 and < 1, got 1"),
        (lambda: smallest_cell(-0.1, 10), "eta must be >= 0, got -0.1"),
        (lambda: smallest_cell(math.nan, 10), "eta must be finite, got nan"),
        (
            lambda: smallest_cell(0.05, 20, sampling="poisson"),
            "a cell of all 20 records has eta = 0.0881; wanted 0.05",
        ),
    ],
)
def test_bad_input_is_one_line(call, line):
    with pytest.raises(ValueError) as refused:
        call()
    assert str(refused.value) == line


def test_unknown_sampling_is_refused_with_the_nearest_one(as_users_run_it):
    with pytest.raises(ValueError, match=r"^unknown sampling 'poison' \(did you mean 'poisson'\?\); known: fixed, poi"):
        exact_eta_table([1], 10, sampling="poison")
