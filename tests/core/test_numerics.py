import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from leakbound.core.numerics import bisect, bisect_arrays, bisect_integers, largest_where, smallest_where

ends = st.floats(-1e6, 1e6)


@given(ends, ends, ends, st.sampled_from([0.0, 1e-12, 1e-3]), st.sampled_from([0.0, 1e-9, 1.0]))
def test_the_condition_holds_at_the_end_that_is_returned_and_fails_a_tolerance_further(a, b, edge, rtol, atol):
    inside, outside = min(a, edge), max(b, edge)
    if inside >= edge or outside <= edge:
        return
    for sign in (1, -1):  # the condition holds below the edge, then above it
        found = sign * bisect(lambda x, s=sign: s * x < edge, sign * inside, sign * outside, rtol=rtol, atol=atol)
        assert inside <= found < edge
        further = math.nextafter(found, math.inf) + max(atol, rtol * abs(edge) / (1 - rtol))
        assert further >= edge


@pytest.mark.parametrize("edge", [1.0, 1 / 3, 1e-300, 5e-324, 1e300])
def test_without_a_tolerance_the_next_number_fails(edge):
    below = bisect(lambda x: x < edge, inside=0.0, outside=1e301)
    assert below == math.nextafter(edge, 0)
    assert bisect(lambda x: x >= edge, inside=1e301, outside=0.0) == edge


def test_agrees_with_brentq():
    root = brentq(lambda x: math.cos(x) - x, 0, 1, xtol=1e-15, rtol=4 * np.finfo(float).eps)
    assert bisect(lambda x: math.cos(x) >= x, inside=0.0, outside=1.0) == pytest.approx(root, rel=1e-15)
    assert bisect(lambda x: math.cos(x) <= x, inside=1.0, outside=0.0) == pytest.approx(root, rel=1e-15)


@pytest.mark.parametrize("n_steps", [0, 1, 7])
def test_number_of_steps(n_steps):
    calls = []
    assert bisect(lambda x: bool(calls.append(x)), inside=0.0, outside=1.0, max_steps=n_steps) == 0.0
    assert calls == [0.5**k for k in range(1, n_steps + 1)]


def test_geometric_steps_reach_far_scales():
    calls = []

    def holds(x):
        calls.append(x)
        return x <= 1e-200

    found = bisect(holds, inside=1e-300, outside=1e300, rtol=1e-9, geometric=True)
    assert found <= 1e-200 < found * (1 + 1e-9)
    assert len(calls) < 60


@given(st.integers(-(10**6), 10**6), st.integers(0, 10**6), st.integers(1, 10**6))
def test_integers(edge, below, above):
    assert bisect_integers(lambda n: n <= edge, inside=edge - below, outside=edge + above) == edge
    assert bisect_integers(lambda n: n >= edge, inside=edge + below, outside=edge - above) == edge


@given(st.lists(st.floats(1e-6, 1 - 1e-6), min_size=1, max_size=20))
def test_arrays_against_a_closed_form_and_one_at_a_time(probability):
    wanted = np.array(probability)
    end = np.full(len(wanted), 10.0)
    found = bisect_arrays(lambda x: ndtr(x) >= wanted, inside=end, outside=-end, n_steps=40)
    assert (ndtr(found) >= wanted).all()
    assert found == pytest.approx(ndtri(wanted), abs=20 * 2.0**-40)
    one = [bisect(lambda x, p=p: ndtr(x) >= p, inside=10.0, outside=-10.0, max_steps=40) for p in probability]
    assert found.tolist() == one


@given(st.floats(1e-300, 1e300), st.floats(1e-9, 1e9), st.booleans())
def test_smallest_where(edge, start, geometric):
    found = smallest_where(lambda x: x >= edge, start, rtol=1e-12, geometric=geometric)
    assert edge <= found <= edge * (1 + 1.1e-12)


def test_smallest_where_at_the_ends_of_the_numbers():
    assert smallest_where(lambda x: x > 0, rtol=1e-12) == 5e-324
    assert smallest_where(lambda x: x >= 1e-310, rtol=1e-12) == pytest.approx(1e-310, rel=1e-12)
    assert smallest_where(lambda x: False, rtol=1e-12) == math.inf


@given(st.floats(0, 1e9), st.sampled_from([0.0, 1e-12, 1e-3]), st.sampled_from([0.0, 1e-4]))
def test_largest_where(edge, rtol, atol):
    found = largest_where(lambda x: x <= edge, rtol=rtol, atol=atol)
    assert found <= edge
    assert math.nextafter(found, math.inf) + max(atol, rtol * edge) > edge


def test_largest_where_the_condition_never_fails():
    assert largest_where(lambda x: True, 0.5, end=1000.0, rtol=1e-6) == pytest.approx(1024, rel=1e-6)
