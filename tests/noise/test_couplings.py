import math
from itertools import combinations

import numpy as np
import pytest

from leakbound.core.seeds import stream
from leakbound.noise import (
    Lp,
    Mahalanobis,
    Shifts,
    central_moment,
    complement,
    disjoint,
    independent,
    moment,
    swap,
    swap_linear,
)
from tests.noise.games import all_subsets, outputs_of

FOUR = np.array([0.0, 1.0, 3.0, 7.0])


def pairs(n, k):
    """Every (D, D') of each coupling for each record, as sets, by their definitions."""
    records = set(range(n))
    subsets = [frozenset(each) for each in combinations(range(n), k)]
    for x in range(n):
        inside = [D for D in subsets if x in D]
        outside = [D for D in subsets if x not in D]
        yield {
            "swap": [(D, D - {x} | {other}) for D in inside for other in records - D],
            "independent": [(D, other) for D in inside for other in outside],
            "disjoint": [
                (D, other) for D in inside for other in outside if len(D & other) == max(0, 2 * k - n)
            ],
            "complement": [(D, frozenset(records - D)) for D in inside],
        }  # fmt: skip


def game(n, k, d=2):
    member = all_subsets(n, k)
    rng = stream(n, "outputs", k)
    order = rng.permutation(len(member))
    return rng.normal(size=(len(member), d)), member[order]


@pytest.mark.parametrize(("n", "k"), [(n, k) for n in (2, 3, 4, 5, 6) for k in range(1, n)])
@pytest.mark.parametrize("coupling", [swap, independent, disjoint, complement])
@pytest.mark.parametrize("norm", [Lp(2), Lp(1), Mahalanobis(np.array([[2.0, 0.5], [0.5, 1.0]]))], ids=str)
def test_couplings_are_their_definitions(n, k, coupling, norm):
    outputs, member = game(n, k)
    if coupling is complement and 2 * k != n:
        with pytest.raises(ValueError, match=f"^complement needs k = n/2, got k = {k} of n = {n}; disjoint takes any"):
            coupling(outputs, member)
        return
    row_of = {frozenset(np.flatnonzero(row)): i for i, row in enumerate(member)}
    shifts = coupling(outputs, member, norm)
    for x, wanted in enumerate(pairs(n, k)):
        lengths = [norm(outputs[row_of[D]] - outputs[row_of[other]]) for D, other in wanted[coupling.__name__]]
        found = shifts.values[0 if coupling is complement else x]
        np.testing.assert_allclose(np.sort(found), np.sort(lengths), rtol=1e-12)
    assert (shifts.coupling, shifts.d, shifts.norm, shifts.prior) == (coupling.__name__, 2, norm, k / n)
    assert shifts.exact
    assert shifts.promise == "every"


@pytest.mark.parametrize(("n", "k"), [(n, k) for n in (3, 4, 5, 6) for k in range(1, n)])
def test_couplings_have_the_two_laws_as_their_margins(n, k):
    """D is uniform on the sets with x, D' on those without: each appears equally often."""
    for x, wanted in enumerate(pairs(n, k)):
        for name, some in wanted.items():
            if name == "complement" and 2 * k != n:
                continue
            inside, outside = zip(*some, strict=True)
            for sets, count in ((inside, math.comb(n - 1, k - 1)), (outside, math.comb(n - 1, k))):
                times = [sets.count(each) for each in set(sets)]
                assert len(times) == count, (name, x)
                assert len(set(times)) == 1, (name, x)


def test_mean_lengths_printed():
    member = all_subsets(4, 2)
    listed = swap(outputs_of(np.mean, FOUR, member)[:, None], member)
    for shifts in (listed, swap_linear(FOUR[:, None], 2)):
        assert shifts.values.mean(axis=1) == pytest.approx([11 / 6, 3 / 2, 3 / 2, 17 / 6])


def test_failed_fits_are_infinite_shifts():
    member = all_subsets(4, 2)
    outputs = outputs_of(np.mean, FOUR, member)[:, None]
    outputs[0] = np.nan  # the set of records 0 and 1
    values = swap(outputs, member).values
    assert np.isinf(values).sum(axis=1).tolist() == [2, 2, 2, 2]
    outputs[0], outputs[5] = math.inf, math.inf  # two sets that both failed hide nothing either
    assert np.isinf(complement(outputs, member).values).sum() == 1


def test_moments_printed():
    outputs = outputs_of(np.mean, FOUR, all_subsets(4, 2))[:, None]
    assert central_moment(outputs, 1) == pytest.approx(1.416666667, abs=1e-9)
    assert central_moment(outputs, 2) == pytest.approx(1.547847968, abs=1e-9)


@pytest.mark.parametrize("order", [1, 1.5, 3, 20])
@pytest.mark.parametrize("norm", [Lp(2), Lp(1)], ids=str)
def test_moment_is_its_definition(order, norm):
    outputs = stream(0, "moment").normal(size=(30, 2))
    expected = np.mean([norm(each - outputs.mean(axis=0)) ** order for each in outputs]) ** (1 / order)
    assert central_moment(outputs, order, norm) == pytest.approx(expected)


def test_moments_of_equal_and_huge_outputs():
    assert central_moment(np.ones((4, 2)), 2) == 0
    assert central_moment(np.array([[1e200], [-1e200]]), 6) == pytest.approx(1e200)


@pytest.mark.parametrize("prior", [0.5, 0.2, 0.8])
@pytest.mark.parametrize("n", [4, 5])
def test_a_moment_bounds_the_mean_length_of_the_independent_coupling(prior, n):
    """``E||v|| <= sigma/min(pi, 1-pi)`` in random games."""
    k = max(1, round(prior * n))
    for seed in range(20):
        member = all_subsets(n, k)
        outputs = stream(seed, "moments").standard_cauchy((len(member), 2))
        shifts = moment(central_moment(outputs), 2, k / n)
        assert (independent(outputs, member).values.mean(axis=1) <= shifts.values[0, 0] * (1 + 1e-12)).all()
    assert shifts.mean_only


def test_an_estimated_moment_is_not_exact():
    assert moment(1.0, 3).exact
    assert not moment(1.0, 3, exact=False).exact


GOOD = np.zeros((6, 1)), all_subsets(4, 2)


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: swap(np.zeros((5, 1)), GOOD[1]), "lengths differ: outputs has 5, member has 6"),
        (lambda: swap(np.zeros(6), GOOD[1]), r"outputs must have shape \(subsets, d\), got \(6,\)"),
        (lambda: swap(GOOD[0][:5], GOOD[1][:5]), "member must list each of the 6 2-subsets of 4 records once"),
        (
            lambda: swap(GOOD[0], GOOD[1][[0, 0, 2, 3, 4, 5]]),
            "member must list each of the 6 2-subsets of 4 records o.*",
        ),
        (lambda: swap(GOOD[0], GOOD[1].astype(int)), r"member must be a bool array \(subsets, n\), got int64 \(6, 4\)"),
        (lambda: swap(np.zeros((1, 1)), np.ones((1, 3), bool)), "k must be from 1 to n - 1 = 2, got 3"),
        (lambda: swap(np.zeros((63, 1)), np.eye(63, dtype=bool)), "n must be from 2 to 62 to list all subsets, got 63"),
        (lambda: swap(np.zeros((1, 1)), np.ones((1, 1), bool)), "n must be from 2 to 62 to list all subsets, got 1"),
        (lambda: central_moment(np.zeros((3, 1)), 0.5), "order must be >= 1, got 0.5"),
        (lambda: central_moment(np.array([[math.nan]])), "outputs must be finite for a moment"),
        (lambda: moment(-1.0, 2), "sigma must be >= 0, got -1"),
        (lambda: moment(1.0, 0), "d must be >= 1, got 0"),
        (lambda: moment(1.0, 1, prior=1.0), "prior must be > 0 and < 1, got 1"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_games(make, line):
    with pytest.raises(ValueError, match=f"^{line}$"):
        make()


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"values": np.zeros((0, 3))}, r"shifts must have shape \(records, pairs\), at least \(1, 1\); got \(0, 3\)"),
        ({"values": np.zeros(3)}, r"shifts must have shape \(records, pairs\), at least \(1, 1\); got \(3,\)"),
        ({"values": np.array([[-1.0]])}, "the length of a shift must be >= 0, got -1"),
        ({"values": np.ones((1, 2)), "mean_only": True}, "a mean length is one number a row, got 2"),
        ({"values": np.ones((2, 2)), "promise": "average"}, "an average promise has one row of pairs, got 2"),
        ({"values": np.ones((1, 2)), "prior": 0.0}, "prior must be > 0 and < 1, got 0"),
        ({"values": np.ones((1, 2)), "weights": np.ones(2)}, "weights must be >= 0 with sum 1, got sum 2"),
        ({"values": np.ones((1, 2)), "weights": np.ones(1)}, r"weights must have shape \(2,\), got \(1,\)"),
        (
            {"values": np.ones((1, 2)), "weights": np.full(2, 0.5), "exact": False},
            "sampled pairs have equal weights, got weights",
        ),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_shifts(fields, line):
    with pytest.raises(ValueError, match=f"^{line}$"):
        Shifts(**{"coupling": "any", "d": 1, **fields})
