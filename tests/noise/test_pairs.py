import math
from itertools import combinations

import numpy as np
import pytest

from leakbound.core.seeds import stream
from leakbound.noise import (
    AverageSwap,
    GaussianNoise,
    Lp,
    Mahalanobis,
    SampledDisjoint,
    SampledSwap,
    best_covariance,
    calibrate,
    complement,
    disjoint,
    swap,
)
from tests.marks import nightly
from tests.noise.games import all_subsets

COUPLINGS = [SampledSwap, AverageSwap, SampledDisjoint]
SIZES = [(n, k) for n in (2, 3, 4, 5, 7) for k in range(1, n)]


def game(n, k, d=2):
    """An arbitrary algorithm: an output for each subset, found by its records."""
    member = all_subsets(n, k)
    outputs = stream(n, "outputs", k).normal(size=(len(member), d))
    table = {row.tobytes(): output for row, output in zip(member, outputs, strict=True)}
    return member, outputs, lambda rows: np.array([table[row.tobytes()] for row in rows])


@pytest.mark.parametrize(("n", "k"), SIZES)
@pytest.mark.parametrize("coupling", COUPLINGS)
def test_data_sets_have_size_k_and_pairs_are_those_of_the_coupling(coupling, n, k):
    pairs = coupling(n, k, n_pairs=6)
    member = pairs.member
    assert member.shape == (pairs.n_fits, n)
    assert (member.sum(axis=1) == k).all()
    for draw in member.reshape(6, -1, n):
        first, others = draw[0], draw[1:]
        if coupling is SampledDisjoint:
            assert (first & others[0]).sum() == max(0, 2 * k - n)
        else:
            assert ((first != others).sum(axis=1) == 2).all()  # one out, one in
            assert len(others) == (max(k, n - k) if coupling is SampledSwap else 1)


@pytest.mark.by_day(
    "Lp(p=1, weights=None)-2-1",
    "Lp(p=1, weights=None)-5-3",
    "Mahalanobis(shape of 2 x 2)-2-1",
    "Mahalanobis(shape of 2 x 2)-7-4",
)
@pytest.mark.parametrize(("n", "k"), SIZES)
@pytest.mark.parametrize("norm", [Lp(1), Mahalanobis(np.array([[2.0, 0.5], [0.5, 1.0]]))], ids=str)
def test_a_round_gives_every_record_one_pair_that_swaps_it(n, k, norm):
    """Each number of a row is the length of a pair of that round of which one set holds the record."""
    _, _, algorithm = game(n, k)
    pairs = SampledSwap(n, k, n_pairs=5, seed=2)
    outputs = algorithm(pairs.member)
    values = pairs.shifts(outputs, norm).values
    assert values.shape == (n, 5)
    for draw, rows in enumerate(np.arange(pairs.n_fits).reshape(5, -1)):
        for x in range(n):
            swaps = [row for row in rows[1:] if pairs.member[row, x] != pairs.member[rows[0], x]]
            lengths = [float(norm(outputs[row] - outputs[rows[0]])) for row in swaps]
            assert min(abs(values[x, draw] - length) for length in lengths) < 1e-12
            if 2 * k == n:
                assert len(swaps) == 1


@pytest.mark.parametrize("coupling", [AverageSwap, SampledDisjoint])
def test_other_couplings_have_one_row(coupling):
    _, _, algorithm = game(5, 2)
    pairs = coupling(5, 2, n_pairs=30)
    outputs = algorithm(pairs.member)
    shifts = pairs.shifts(outputs)
    np.testing.assert_allclose(shifts.values, [np.linalg.norm(outputs[::2] - outputs[1::2], axis=1)])
    assert (shifts.d, shifts.prior, shifts.exact) == (2, 0.4, False)


def test_what_they_promise():
    words = {
        SampledSwap(6, 3, 1): ("swap", "every", 1.0),
        AverageSwap(6, 3, 1): ("average_swap", "average", 1.0),
        SampledDisjoint(6, 3, 1): ("complement", "every", 1.0),
        SampledDisjoint(6, 2, 1): ("disjoint", "every", 2 / 3),
        SampledDisjoint(7, 5, 1): ("disjoint", "every", 4 / 7),
    }
    for pairs, (name, promise, share) in words.items():
        shifts = pairs.shifts(np.zeros((pairs.n_fits, 1)))
        assert (shifts.coupling, shifts.promise, shifts.separating_fraction) == (name, promise, pytest.approx(share))


@pytest.mark.by_day("4-2")
@pytest.mark.statistics
@pytest.mark.parametrize(("n", "k"), [(4, 2), nightly(5, 2), (5, 3), nightly(6, 1), nightly(6, 5)])
def test_pairs_have_the_law_of_the_coupling(n, k):
    """Share of each possible length in 4,000 draws, against all pairs: within 5 standard errors everywhere.

    At most 100 shares in each of some 10 rows: false alarm below 1e-3.
    """
    member, outputs, algorithm = game(n, k)
    exact = {
        SampledSwap: swap(outputs, member).values,
        AverageSwap: swap(outputs, member).values.reshape(1, -1),
        SampledDisjoint: (complement if 2 * k == n else disjoint)(outputs, member).values.reshape(1, -1),
    }
    for coupling, law in exact.items():
        pairs = coupling(n, k, n_pairs=4000, seed=5)
        found = pairs.shifts(algorithm(pairs.member)).values
        assert len(found) == len(law)
        for row, wanted in zip(found, law, strict=True):
            lengths, times = np.unique(wanted.round(9), return_counts=True)
            share = times / times.sum()
            seen = (row.round(9)[:, None] == lengths).mean(axis=0)
            assert seen.sum() == pytest.approx(1)
            assert (np.abs(seen - share) <= 5 * np.sqrt(share * (1 - share) / 4000)).all()


@pytest.mark.slow
@pytest.mark.statistics
def test_the_pairs_of_a_record_are_independent():
    """Correlation of neighbours in each row of 4,000 pairs: below 5/sqrt(4000); false alarm below 1e-5."""
    _, _, algorithm = game(5, 2)
    pairs = SampledSwap(5, 2, n_pairs=4000, seed=1)
    for row in pairs.shifts(algorithm(pairs.member)).values:
        assert abs(np.corrcoef(row[1:], row[:-1])[0, 1]) < 5 / math.sqrt(4000)


@pytest.mark.parametrize(("n", "k"), [(5, 1), (5, 2), (6, 3), (5, 4), (6, 4)])
def test_the_mean_over_the_share_bounds_every_record(n, k):
    """Over all ordered pairs of sets that share as little as possible."""
    member, outputs, _ = game(n, k)
    least = [
        (i, j) for i, j in combinations(range(len(member)), 2) if (member[i] & member[j]).sum() == max(0, 2 * k - n)
    ]
    noise = GaussianNoise(1.0)
    mean = np.mean([noise.shift_tv(np.linalg.norm(outputs[i] - outputs[j])) for i, j in least])
    each = noise.shift_tv(disjoint(outputs, member).values).mean(axis=1)
    assert (each <= mean / SampledDisjoint(n, k, 1).separating_fraction + 1e-12).all()


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_more_pairs_begin_with_the_same(coupling):
    few, many = coupling(7, 3, 4, seed=1), coupling(7, 3, 9, seed=1)
    np.testing.assert_array_equal(many.member[: few.n_fits], few.member)
    np.testing.assert_array_equal(many.fit_seeds[: few.n_fits], few.fit_seeds)
    assert (coupling(7, 3, 4, seed=2).member != few.member).any()


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_one_seed_a_draw(coupling):
    seeds = coupling(6, 3, 5).fit_seeds.reshape(5, -1)
    assert (seeds == seeds[:, :1]).all()
    assert len(np.unique(seeds)) == 5


def test_failed_fits_and_overflow_are_infinite_shifts():
    pairs = SampledSwap(4, 2, n_pairs=3)
    outputs = np.zeros((pairs.n_fits, 2))
    outputs[1, 0] = math.nan  # a swap: the two records of it
    outputs[3] = math.inf  # the first set of the second round: all of it
    outputs[6:8, 0] = -1.7e308, 1.7e308  # a difference that overflows
    failed = np.isinf(pairs.shifts(outputs).values)
    assert failed.sum(axis=0).tolist() == [2, 4, 2]


def test_no_fit_at_all_can_be_certified():
    pairs = SampledDisjoint(4, 2, n_pairs=50)
    shifts = pairs.shifts(np.full((pairs.n_fits, 1), math.nan))
    with pytest.raises(ValueError, match=r"^100.0% of the pairs failed: eta must be > 0.5, got 0.1$"):
        calibrate(shifts, 0.1, confidence=0.95)


def test_a_shape_from_separate_pairs_needs_less_noise():
    """Coordinates with very different units: the shape is what makes one scale do."""
    records = stream(3, "records").normal(size=(40, 2)) * [1.0, 100.0]

    def shifts(seed, norm=None):
        pairs = SampledSwap(40, 20, 60, seed)
        outputs = pairs.member @ records / 20
        return pairs.differences(outputs) if norm is None else pairs.shifts(outputs, norm)

    v = shifts(1).reshape(-1, 2)
    S = best_covariance(v.T @ v / len(v), 1.0)
    shaped = calibrate(shifts(2, Mahalanobis(S)), 0.1, lambda scale: GaussianNoise(scale, S), confidence=0.95)
    plain = calibrate(shifts(2, Lp(2.0)), 0.1, confidence=0.95)
    assert shaped.rms(2) < 0.85 * plain.rms(2)


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: SampledSwap(1, 1, 5), "n must be >= 2, got 1"),
        (lambda: SampledSwap(4, 4, 5), "k must be from 1 to n - 1 = 3, got 4"),
        (lambda: SampledDisjoint(4, 0, 5), "k must be >= 1, got 0"),
        (lambda: AverageSwap(4, 2, 0), "n_pairs must be >= 1, got 0"),
        (lambda: SampledSwap(4, 2, 5).shifts(np.zeros((14, 1))), r"outputs must have shape \(15, d\), got \(14, 1\)"),
        (lambda: SampledSwap(4, 2, 5).shifts(np.zeros(15)), r"outputs must have shape \(15, d\), got \(15,\)"),
        (lambda: AverageSwap(4, 2, 5).shifts(np.zeros((10, 0))), r"outputs must have shape \(10, d\), got \(10, 0\)"),
        (
            lambda: AverageSwap(4, 2, 5).shifts(np.zeros((10, 2)), Mahalanobis(np.eye(3))),
            r"vectors must have shape \(..., 3\), got \(5, 1, 2\)",
        ),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_pairs(make, line):
    with pytest.raises(ValueError, match=f"^{line}$"):
        make()
