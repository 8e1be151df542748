from itertools import combinations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logsumexp

from leakbound.bounds import halves
from leakbound.bounds.halves import check_total, log_odds


def naive(exponent):
    """A loop over the halves, in logarithms."""
    n_records = len(exponent)
    inside, outside = np.full((2, *exponent.shape), -np.inf)
    for half in combinations(range(n_records), n_records // 2):
        held = np.isin(np.arange(n_records), half)
        log = -exponent[held].sum(axis=0)
        log -= logsumexp(log)
        inside[held] = np.logaddexp(inside[held], log)
        outside[~held] = np.logaddexp(outside[~held], log)
    return inside - outside


@pytest.mark.by_day("0.0-1-2", "1.0-1-2", "300.0-1-2", "10000.0-1-2")
@pytest.mark.parametrize(("n", "n_outputs"), [(1, 2), (1, 5), (2, 3), (3, 1), (4, 5), (6, 2)])
@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 30.0, 300.0, 1e4])
def test_as_the_loop_over_halves(n, n_outputs, scale):
    rng = np.random.default_rng(n)
    exponent = rng.normal(size=(2 * n, n_outputs)) * scale
    assert log_odds(exponent) == pytest.approx(naive(exponent), rel=1e-12, abs=1e-13 * max(1, 100 * scale))


def test_outputs_that_are_never_seen():
    """Offsets of outputs and records, 1e5 nats apart, neither underflow nor touch the odds of the others."""
    rng = np.random.default_rng(0)
    exponent = rng.normal(size=(8, 4)) + np.array([0.0, 10.0, 1e3, 1e5]) + rng.normal(size=(8, 1)) * 1e4
    found = log_odds(exponent)
    assert found == pytest.approx(naive(exponent), abs=1e-8)
    assert np.isfinite(found).all()
    assert found[:, 3] != pytest.approx(0, abs=0.1)


def test_to_the_digits_of_a_higher_precision():
    exponent = np.array([[0.0, 700.0, 3.0], [900.0, 0.0, 5.0], [2.0, 1.0, 400.0], [0.5, 0.25, 0.0]])
    with mpmath.workdps(600):
        sums = {True: mpmath.mpf(0), False: mpmath.mpf(0)}
        for half in combinations(range(4), 2):
            weight = [mpmath.exp(-sum(mpmath.mpf(float(exponent[i, w])) for i in half)) for w in range(3)]
            sums[0 in half] += weight[1] / sum(weight)
        expected = float(mpmath.log(sums[True] / sums[False]))
    assert log_odds(exponent)[0, 1] == pytest.approx(expected, rel=1e-14)


def test_one_record_of_two_is_a_likelihood_ratio():
    exponent = np.array([[0.3, 1.0], [2.0, 0.1]])
    log = -exponent - logsumexp(-exponent, axis=1, keepdims=True)
    assert log_odds(exponent) == pytest.approx(np.stack([log[0] - log[1], log[1] - log[0]]), abs=1e-15)


def test_single_precision_is_within_its_bound(monkeypatch):
    exponent = np.random.default_rng(3).normal(size=(20, 32))
    double = log_odds(exponent)
    monkeypatch.setattr(halves, "_MOST_IN_DOUBLE", 0)
    error = np.abs(log_odds(exponent) - double).max()
    assert 0 < error < 2 * (512 + 32 + 8) * 2**-24
    assert error < 1e-6


def test_single_precision_is_not_used_where_it_would_underflow(monkeypatch):
    monkeypatch.setattr(halves, "_MOST_IN_DOUBLE", 0)
    exponent = np.random.default_rng(3).normal(size=(8, 3)) * 30
    assert log_odds(exponent) == pytest.approx(naive(exponent), rel=1e-12)


def test_tiles_cover_every_pair_of_parts(monkeypatch):
    exponent = np.random.default_rng(4).normal(size=(12, 3))
    whole = log_odds(exponent)
    monkeypatch.setattr(halves, "_TILE", 7)
    assert log_odds(exponent) == pytest.approx(whole, abs=1e-13)


games = arrays(float, st.tuples(st.sampled_from([2, 4, 6]), st.integers(1, 4)), elements=st.floats(-50, 50))


@given(games, st.randoms(use_true_random=False))
def test_records_and_outputs_have_no_order(exponent, random):
    records, outputs = list(range(len(exponent))), list(range(exponent.shape[1]))
    random.shuffle(records)
    random.shuffle(outputs)
    shuffled = log_odds(exponent[np.ix_(records, outputs)])
    assert shuffled == pytest.approx(log_odds(exponent)[np.ix_(records, outputs)], abs=1e-10)


@given(games)
def test_what_all_outputs_of_a_record_share_cancels(exponent):
    shift = np.linspace(-20, 20, len(exponent))[:, None]
    assert log_odds(exponent + shift) == pytest.approx(log_odds(exponent), abs=1e-10)


def test_equal_records_are_equally_exposed():
    exponent = np.random.default_rng(1).normal(size=(6, 4))
    exponent[3] = exponent[0]
    found = log_odds(exponent)
    assert found[3] == pytest.approx(found[0], abs=1e-14)
    assert log_odds(np.ones((6, 4))) == pytest.approx(np.zeros((6, 4)), abs=1e-15)


@pytest.mark.parametrize(
    ("n", "n_outputs", "line"),
    [
        (19, 2, "35,345,263,800 halves are too many for method='exact' with 2 outputs: at most 9,075,135,300; "),
        (18, 64, "9,075,135,300 halves are too many for method='exact' with 64 outputs: at most 4,537,567,650; "),
    ],
)
def test_too_many_halves_are_refused_with_the_number(n, n_outputs, line):
    with pytest.raises(ValueError) as refused:
        log_odds(np.zeros((2 * n, n_outputs)))
    assert str(refused.value) == line + "use method='sampled'"


def test_exponents_beyond_floating_point_have_a_lower_limit():
    """Seven of the lowest and seven of the highest of 28 differences from -500 to 500: 2 x 2,722."""
    exponent = np.zeros((28, 2))
    exponent[:, 0] = np.linspace(0, 1000, 28)
    with pytest.raises(ValueError) as refused:
        log_odds(exponent)
    assert str(refused.value) == (
        "40,116,600 halves are too many for method='exact' with 2 outputs and exponents that spread by 5,444: "
        "at most 10,400,600; use method='sampled'"
    )


def test_sums_that_do_not_add_up_are_not_returned(monkeypatch):
    inside, outside = np.log([[0.2, 0.8], [0.6, 0.4]]), np.log([[0.6, 0.4], [0.2, 0.8]])
    check_total(inside, outside, 1e-15)
    with pytest.raises(
        ArithmeticError, match=r"^the probabilities of the outputs sum to 1 within 1\.0e-03 only; at most"
    ):
        check_total(inside + np.log(1.001), outside, 1e-9)
    with pytest.raises(ArithmeticError):
        check_total(inside, np.full((2, 2), np.nan), 1e-9)
    complete = halves._products
    monkeypatch.setattr(halves, "_products", lambda *parts: tuple(each * 1.001 for each in complete(*parts)))
    with pytest.raises(ArithmeticError):
        log_odds(np.random.default_rng(0).normal(size=(6, 3)))
