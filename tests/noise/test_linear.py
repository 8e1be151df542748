"""Swap of sums and means: all pairs of few records, bounds of many."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakbound.core.seeds import stream
from leakbound.noise import (
    GaussianNoise,
    Lp,
    Mahalanobis,
    NormNoise,
    Shifts,
    average_linear,
    calibrate,
    eta_bound,
    linear,
    pmp_delta,
    swap,
    swap_linear,
)
from leakbound.noise.linear import average_row, swap_rows
from tests.marks import nightly
from tests.noise.games import all_subsets


@pytest.mark.parametrize("statistic", ["mean", "sum"])
@pytest.mark.parametrize(("n", "k"), [(4, 2), (5, 1), (5, 4), (6, 3)])
@pytest.mark.parametrize("norm", [Lp(2), Lp(3, [1.0, 2.0, 0.3]), Mahalanobis(np.array([4.0, 1.0, 0.2]))], ids=str)
def test_linear_swap_is_the_swap_of_all_subsets(statistic, n, k, norm):
    features = stream(0, "features").normal(size=(n, 3))
    member = all_subsets(n, k)
    outputs = np.array([getattr(features[row], statistic)(axis=0) for row in member])
    linear, listed = swap_linear(features, k, statistic, norm), swap(outputs, member, norm)
    for u in (0.3, 1.0, 2.0):  # the same law, with other multiplicities
        np.testing.assert_allclose((linear.values <= u).mean(axis=1), (listed.values <= u).mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(linear.values.max(axis=1), listed.values.max(axis=1))
    assert (linear.coupling, linear.d, linear.norm, linear.prior) == ("swap", 3, norm, k / n)


def test_blocks_and_groups_keep_the_bound():
    """Groups of neighbours are raised to their longest; a group of one is exact."""
    features = stream(0, "many").normal(size=(203, 2))
    whole, grouped = swap_linear(features, 100), swap_linear(features, 100, n_values=10)
    assert whole.values.shape == (203, 202)
    assert grouped.values.shape == (203, 10)
    assert grouped.weights.sum() == pytest.approx(1)
    sizes = (grouped.weights * 202).round().astype(int)
    ordered = np.sort(whole.values, axis=1)
    raised = np.repeat(grouped.values, sizes, axis=1)
    assert (raised >= ordered).all()
    ends = np.cumsum(sizes) - 1
    np.testing.assert_array_equal(grouped.values, ordered[:, ends])
    finer = swap_linear(features, 100, n_values=101)
    assert (finer.values @ finer.weights <= grouped.values @ grouped.weights).all()
    assert (finer.values @ finer.weights >= whole.values.mean(axis=1)).all()


def test_many_records_are_done_in_blocks():
    features = stream(0, "blocks").normal(size=(2500, 1))
    shifts = swap_linear(features, 1250, n_values=50)
    one = np.sort(np.abs(np.delete(features, 1777) - features[1777])) / 1250
    sizes = (shifts.weights * 2499).round().astype(int)
    np.testing.assert_allclose(shifts.values[1777], one[np.cumsum(sizes) - 1])


def test_overflowing_differences_are_infinite_shifts():
    assert swap_linear(np.array([[1.5e308], [-1.5e308], [0.0]]), 1).values.tolist()[0] == [math.inf, 1.5e308]


@pytest.mark.parametrize("features", [np.zeros((5, 2)), np.ones((2, 1)), np.array([[1], [1], [4]])])
def test_constant_columns_duplicates_and_two_records(features):
    values = swap_linear(features, 1).values
    expected = [[abs(float(a[0] - b[0])) for j, b in enumerate(features) if j != i] for i, a in enumerate(features)]
    np.testing.assert_array_equal(values, expected)


def naive(features, k, norm):
    """Sorted lengths of every record to the others, one after the other."""
    moved = features / k
    return np.array([np.sort(norm(np.delete(moved, x, axis=0) - moved[x])) for x in range(len(moved))])


def at_ranks(shifts, n):
    """Rows of groups as rows of n - 1 lengths."""
    sizes = (shifts.weights * (n - 1)).round().astype(int)
    assert sizes.sum() == n - 1
    return np.repeat(shifts.values, sizes, axis=1)


def drawn(law, n, d, seed):
    rng = stream(seed, "features", law, n, d)
    features = {
        "normal": lambda: rng.normal(size=(n, d)),
        "cauchy": lambda: rng.standard_cauchy((n, d)),
        "lognormal": lambda: rng.lognormal(sigma=2, size=(n, d)),
        "whole numbers": lambda: rng.poisson(1.0, size=(n, d)).astype(float),
        "duplicated": lambda: rng.normal(size=(max(2, n // 8), d))[rng.integers(max(2, n // 8), size=n)],
        "far away": lambda: 1e8 + rng.normal(size=(n, d)),
        "a sphere": lambda: (lambda z: z / np.linalg.norm(z, axis=1, keepdims=True))(rng.normal(size=(n, d))),
        "two clusters": lambda: rng.normal(size=(n, d)) + 50 * (rng.random((n, 1)) < 0.1),
        "mostly constant": lambda: np.where(rng.random((n, d)) < 0.9, 3.0, rng.normal(size=(n, d))),
        "constant": lambda: np.full((n, d), 2.5),
    }
    return features[law]()


LAWS = [
    "normal", "cauchy", "lognormal", "whole numbers", "duplicated", "far away", "a sphere", "two clusters",
    "mostly constant", "constant",
]  # fmt: skip


@given(
    law=st.sampled_from(LAWS),
    n=st.integers(3, 90),
    d=st.sampled_from([1, 2, 9]),
    n_exact=st.integers(1, 20),
    n_values=st.sampled_from([1, 4, 13, 4096]),
    norm=st.sampled_from([Lp(2), Lp(1), Lp(3), Lp(math.inf), "full"]),
    seed=st.integers(0, 5),
)
def test_the_rows_of_many_records_bound_each_record_rank_by_rank(law, n, d, n_exact, n_values, norm, seed):
    """The r-th length of a record is at most that of its row: more than that every divergence is bounded."""
    if norm == "full":
        norm = Mahalanobis(np.eye(d) + 0.3)
    features, k = drawn(law, n, d, seed), n // 2
    shifts, row_of = swap_rows(features, k, "mean", norm, n_values, min(n_exact, n - 1))
    assert (shifts.weights >= 0).all()
    assert shifts.weights.sum() == pytest.approx(1, abs=1e-12)
    assert shifts.values.shape[1] <= n_values
    true = naive(features, k, norm)
    assert (at_ranks(shifts, n)[row_of] >= true * (1 - 1e-12)).all()
    for noise in (0.1 * true.max() + 1e-9, true.max() + 1e-9):
        family = GaussianNoise(noise, norm.shape) if isinstance(norm, Mahalanobis) else NormNoise(noise, norm)
        for epsilon in (0.0, 1.0):
            alone = [family.shift_hockey(row, math.exp(epsilon)).mean() for row in true]
            assert (pmp_delta(shifts, family, epsilon)[row_of] >= np.array(alone) - 1e-12).all()


@given(
    law=st.sampled_from(LAWS),
    n=st.integers(3, 60),
    d=st.sampled_from([1, 3]),
    n_exact=st.integers(1, 20),
    k=st.sampled_from([1, 2]),
)
def test_eta_of_every_record_is_below_that_of_its_row(law, n, d, n_exact, k):
    """For priors far from one half too, where the divergence is not concave in the length."""
    features = drawn(law, n, d, 0)
    shifts, row_of = swap_rows(features, k, "sum", Lp(2), 4096, min(n_exact, n - 1))
    for scale in np.geomspace(0.01, 10, 4) * (np.ptp(features) + 1e-9):
        true = eta_bound(swap_linear(features, k, "sum"), GaussianNoise(scale))
        assert (eta_bound(shifts, GaussianNoise(scale))[row_of] >= true - 1e-12).all()


@pytest.mark.parametrize("d", [2, 9])
@pytest.mark.parametrize("norm", [Lp(2), Lp(1), Mahalanobis(np.array([2.0, 1.0]))], ids=str)
def test_rows_of_records_are_their_own_lengths(norm, d):
    """The farthest from the median, each exact; the first of equal ones names the row."""
    norm = Mahalanobis(np.linspace(1, 2, d)) if isinstance(norm, Mahalanobis) else norm
    features = drawn("normal", 200, d, 1)
    features[150] = features[3] = features[np.argmax(norm(features - np.median(features, axis=0)))]
    shifts, row_of = swap_rows(features, 100, "mean", norm, 4096, 7)
    assert shifts.values.shape == (8, 199)
    assert shifts.records[-1] == -1
    np.testing.assert_allclose(shifts.values[:-1], naive(features, 100, norm)[shifts.records[:-1]], rtol=1e-12)
    assert row_of[3] == row_of[150]
    assert shifts.records[row_of[150]] <= 3
    assert (row_of == 7).sum() == 200 - len({*shifts.records[:-1], 3, 150, *np.flatnonzero(row_of == row_of[3])})
    away = norm(features - np.median(features, axis=0))
    assert away[row_of < 7].min() >= away[row_of == 7].max()
    kept = shifts.rows(np.arange(8) % 2 == 1)
    assert kept.records.tolist() == shifts.records[1::2].tolist()


@pytest.mark.slow
def test_few_different_records_have_exact_rows_whatever_their_number():
    """A histogram with 10 cells and many records: the lengths of a row change at one rank."""
    cell = np.repeat(np.arange(10), np.arange(1, 11) * 1000)
    shifts, row_of = swap_rows(np.eye(10)[cell], 100, "sum", Lp(2), 4096)
    n = len(cell)
    assert shifts.records.tolist() == [int(np.argmax(cell == cell[each])) for each in shifts.records]
    assert shifts.values.shape[0] == 10
    for row, record in enumerate(shifts.records):
        same = shifts.weights[shifts.values[row] == 0].sum()
        assert same == pytest.approx(((cell == cell[record]).sum() - 1) / (n - 1))
        np.testing.assert_allclose(shifts.values[row][shifts.values[row] > 0], math.sqrt(2))
    assert (cell[shifts.records][row_of] == cell).all()
    assert np.prod(swap_linear(np.tile(np.eye(10), (20_000, 1)), 100_000).values.shape) <= 200


def test_repeated_records_count_as_often_as_they_are_there():
    features = drawn("normal", 90, 2, 3)[stream(0, "repeated").integers(90, size=6000)]
    shifts = swap_linear(features, 3000)
    assert len(shifts.values) == len(shifts.records) == 90
    sizes = (shifts.weights * 5999).round().astype(int)
    true = np.sort(Lp(2)(np.delete(features, shifts.records[40], axis=0) - features[shifts.records[40]])) / 3000
    np.testing.assert_allclose(shifts.values[40], true[np.cumsum(sizes) - 1], rtol=1e-12)


@pytest.mark.by_day("1-lognormal")
@pytest.mark.parametrize("law", ["normal", "cauchy", "lognormal"])
@pytest.mark.parametrize("d", [1, nightly(3), nightly(6)])
def test_many_records_cost_few_lengths(monkeypatch, law, d):
    """Of 100,000 records at most a 100th of all lengths are evaluated, and the worst row is that of a record."""
    n, evaluated = 100_000, []
    distances = linear._distances
    monkeypatch.setattr(
        linear, "_distances", lambda own, z, order: evaluated.append(len(own) * len(z)) or distances(own, z, order)
    )
    shifts = swap_linear(drawn(law, n, d, 0), n // 2)
    assert sum(evaluated) <= n**2 / 100
    assert shifts.values.size <= 4_100_000
    scale = calibrate(shifts, 0.05).scale
    worst = shifts.records[np.argmax(eta_bound(shifts, GaussianNoise(scale)))]
    assert worst >= 0
    assert scale == pytest.approx(calibrate(shifts.rows(shifts.records >= 0), 0.05).scale, rel=1e-6)


@pytest.mark.parametrize("law", ["cauchy", "normal"])
@pytest.mark.parametrize("d", [1, nightly(2), nightly(5)])
def test_the_noise_for_many_records_is_that_of_the_worst_one(law, d):
    """50,000 records against the rows of the 20 farthest and 20 random ones, by definition."""
    n = 50_000
    features = drawn(law, n, d, 2)
    found = calibrate(swap_linear(features, n // 2), 0.05).scale
    away = np.linalg.norm(features - np.median(features, axis=0), axis=1)
    tried = np.r_[np.argsort(-away)[:20], stream(0, "tried").integers(n, size=20)]
    true = [np.linalg.norm(np.delete(features, x, axis=0) - features[x], axis=1) * 2 / n for x in tried]
    needed = calibrate(Shifts(np.array(true), "swap", d), 0.05).scale
    assert needed <= found * (1 + 1e-8)
    assert found <= 1.01 * needed


@pytest.mark.parametrize(
    ("law", "d", "most"), [nightly("a sphere", 3, 1.36), nightly("a sphere", 9, 1.22), ("uniform", 1, 1.01)]
)
def test_without_a_worst_record_the_noise_is_little_more(law, d, most):
    """All are equally far from the centre: no row for the others is as low as theirs."""
    n = 2000
    features = drawn(law, n, d, 0) if d > 1 else stream(0, "uniform").random((n, 1))
    some = swap_linear(features, n // 2, n_exact=100, n_values=500)
    every = calibrate(swap_linear(features, n // 2, n_values=500), 0.05).scale
    assert every * 0.999 <= calibrate(some, 0.05).scale <= most * every


def test_the_moments_of_the_squared_lengths():
    features = drawn("lognormal", 50, 4, 0)[stream(1, "again").integers(50, size=120)]
    distinct = linear._Distinct(features, 2.0)
    mean, variance, unit = distinct.squared
    true = np.array([np.square(np.delete(features, x, axis=0) - features[x]).sum(axis=1) for x in distinct.first])
    np.testing.assert_allclose(mean * unit**2, true.mean(axis=1), rtol=1e-10)
    np.testing.assert_allclose(variance * unit**4, true.var(axis=1), rtol=1e-6)


def test_a_number_with_many_records_is_not_raised():
    """Half of 40,000 numbers are 0: half of the lengths of such a record are 0, in whatever bin its neighbours are."""
    features = stream(0, "atom").normal(size=40_000)
    features[::2] = 0
    shifts, row_of = swap_rows(features[:, None], 20_000, "mean", Lp(2), 4096)
    row = row_of[0]
    assert (row_of == row).sum() == 20_000
    assert shifts.weights[shifts.values[row] == 0].sum() == pytest.approx(0.5, abs=1e-3)
    assert shifts.records[row] == 0


def test_the_outermost_numbers_have_their_rows():
    features = stream(0, "numbers").standard_cauchy((20_000, 1))
    shifts, row_of = swap_rows(features, 10_000, "mean", Lp(2), 4096)
    outermost = np.argsort(features[:, 0])[np.r_[:32, -32:0]]
    assert set(outermost) <= set(shifts.records)
    for record in outermost[[0, 31, 32, 63]]:
        assert shifts.records[row_of[record]] == record
        sizes = np.cumsum((shifts.weights * 19_999).round().astype(int)) - 1
        true = np.sort(np.abs(np.delete(features[:, 0], record) - features[record, 0]))[sizes] / 10_000
        assert np.median(shifts.values[row_of[record]] / true) < 1.001


def test_huge_and_tiny_differences():
    """Squares that overflow or vanish: as the norm says."""
    features = np.array([[1e200, 0.0], [0.0, 0.0], [3e-200, 4e-200], [-1.5e308, 1.0], [1.5e308, 1.0]])
    values = swap_linear(features, 1).values
    assert values[1].tolist() == pytest.approx([1e200, 5e-200, 1.5e308, 1.5e308])
    assert math.isinf(values[3][3])
    many = swap_linear(np.tile(features, (3, 1)) + np.arange(15)[:, None], 1, n_exact=3)
    assert np.isinf(many.values).any(axis=1).all()


def test_the_average_of_many_is_sampled():
    n = 60_000
    features = drawn("normal", n, 3, 0)
    shifts = average_linear(features, n // 4, n_pairs=40_000)
    assert (shifts.promise, shifts.exact, shifts.coupling, shifts.prior) == ("average", False, "average_swap", 0.25)
    assert shifts.values.shape == (1, 40_000)
    assert (shifts.values == average_linear(features, n // 4, n_pairs=40_000).values).all()
    assert (shifts.values != average_linear(features, n // 4, n_pairs=40_000, seed=1).values).any()
    total = average_linear(features, n // 4, "sum", n_pairs=40_000).values
    np.testing.assert_allclose(total, shifts.values * (n // 4))
    line = r"the .* rows of 'swap' are for different numbers of records and have no average row: sample with average_"
    with pytest.raises(ValueError, match=f"^{line}linear$"):
        swap_linear(features, n // 4).average()


@pytest.mark.statistics
def test_sampled_pairs_have_the_law_of_all_pairs():
    """Dvoretzky-Kiefer-Wolfowitz: further than this from the law of all pairs with probability below 1e-6."""
    features = drawn("whole numbers", 12, 2, 0)
    true = np.sort(naive(features, 6, Lp(1)).ravel())
    found = np.sort(average_linear(features, 6, norm=Lp(1), n_pairs=50_000).values[0])
    at = np.unique(true)
    distance = np.abs(np.searchsorted(true, at, "right") / true.size - np.searchsorted(found, at, "right") / 50_000)
    assert distance.max() <= math.sqrt(math.log(2e6) / 100_000)


@pytest.mark.parametrize("n_exact", [5, 60])
@pytest.mark.parametrize("d", [1, 3])
def test_the_average_row_bounds_the_mean_of_the_records(d, n_exact):
    features = drawn("lognormal", 60, d, 0)
    row = average_row(*swap_rows(features, 20, "mean", Lp(2), 4096, n_exact), n_values=400)
    assert row.promise == "average"
    assert row.values.shape[1] <= 400
    for scale in (0.05, 0.5):
        true = eta_bound(swap_linear(features, 20), GaussianNoise(scale)).mean()
        bound = eta_bound(row, GaussianNoise(scale))[0]
        assert true <= bound + 1e-12
        assert n_exact == 5 or bound <= true * 1.02


@pytest.mark.by_day("30-whole numbers")
@pytest.mark.parametrize("law", ["normal", "cauchy", "whole numbers"])
@pytest.mark.parametrize("n_exact", [nightly(None), 30])
def test_the_band_is_that_of_the_highest_row_at_each_epsilon(law, n_exact):
    """Whichever rows were left out on the way."""
    shifts = swap_linear(drawn(law, 80, 2, 0), 40, n_exact=n_exact)
    noise = GaussianNoise(0.5 * float(shifts.values.mean()))
    band = shifts.tradeoff(noise)
    highest = [pmp_delta(shifts, noise, epsilon).max() for epsilon in band.at]
    np.testing.assert_allclose(band.value, highest, atol=1e-14)
    if law == "normal":  # not the same row everywhere
        assert len({int(np.argmax(pmp_delta(shifts, noise, epsilon))) for epsilon in band.at}) > 1


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: swap_linear(np.zeros(4), 2), r"features must have shape \(n, d\) with n >= 2 and d >= 1, got \(4,\)"),
        (lambda: swap_linear(np.zeros((1, 2)), 1), r"features must have shape \(n, d\) with .*, got \(1, 2\)"),
        (lambda: swap_linear(np.zeros((4, 0)), 1), r"features must have shape \(n, d\) with .*, got \(4, 0\)"),
        (lambda: swap_linear(np.array([[1.0], [math.nan]]), 1), "features must be finite, those of record 1 are not"),
        (lambda: swap_linear(np.zeros((4, 1)), 4), "k must be from 1 to n - 1 = 3, got 4"),
        (lambda: swap_linear(np.zeros((4, 1)), 0), "k must be >= 1, got 0"),
        (lambda: swap_linear(np.zeros((4, 1)), 2, "median"), "unknown statistic 'median'.*; known: mean, sum"),
        (lambda: swap_linear(np.zeros((4, 1)), 2, n_values=0), "n_values must be >= 1, got 0"),
        (lambda: swap_linear(np.zeros((4, 3)), 2, norm=Lp(1, [1.0])), r"vectors must have shape \(..., 1\), got .*"),
        (lambda: swap_linear(np.zeros((4, 1)), 2, n_exact=0), "n_exact must be >= 1, got 0"),
        (lambda: average_linear(np.zeros(4), 2), r"features must have shape \(n, d\) with n >= 2 and .*, got \(4,\)"),
        (lambda: average_linear(np.zeros((4, 1)), 2, n_pairs=0), "n_pairs must be >= 1, got 0"),
        (
            lambda: Shifts(np.ones((2, 1)), "any", 1, records=np.arange(3)),
            r"records must have shape \(2,\), got \(3,\)",
        ),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_features(make, line):
    with pytest.raises(ValueError, match=f"^{line}$"):
        make()
