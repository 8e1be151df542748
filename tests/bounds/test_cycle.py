"""Laws on a cycle, against the law of every subset put on the same cycle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakbound.bounds import cycle
from leakbound.bounds.cycle import Cycle, lengths
from leakbound.bounds.exact import subsets


def of(values, prior, k=0, spread=0) -> Cycle:
    distinct, counts = np.unique(values, return_counts=True)
    return Cycle.of(distinct, counts, k / len(values) if k else prior, k, spread)


def by_subsets(values, record, prior, k, length):
    """``pi P_in - (1 - pi) P_out`` on the cycle, total by total."""
    member = subsets(len(values), k) if k else subsets(len(values))
    size = member.sum(axis=1)
    weights = np.full(len(member), 1 / len(member)) if k else prior**size * (1 - prior) ** (len(values) - size)
    signed = weights * np.where(member[:, record], 1.0, -1.0)
    return np.bincount((member @ values) % length, signed, length)


@given(st.lists(st.integers(-20, 20), min_size=2, max_size=9), st.floats(0.05, 0.95), st.data())
def test_the_difference_of_the_laws_is_that_over_all_subsets(values, prior, data):
    """But for a shift of the total, which is the same for every record."""
    k = data.draw(st.integers(0, len(values) - 1))
    record = data.draw(st.integers(0, len(values) - 1))
    made = of(values, prior, k)
    found = made.numbers(made.difference(values[record]))
    expected = by_subsets(np.array(values), record, prior, k, made.length)
    apart = [np.abs(np.roll(side, shift) - expected).max() for side in (found, found[::-1])
             for shift in range(made.length)]  # fmt: skip
    assert min(apart) < 1e-13


@pytest.mark.parametrize(("n", "k"), [(300, 0), (300, 100), (7, 3)])
def test_the_cycle_is_odd_and_holds_the_totals(n, k):
    values = np.random.default_rng(0).integers(-9, 30, n)
    distinct, counts = np.unique(values, return_counts=True)
    length, n_sizes = lengths(distinct, counts, 0.5 if not k else k / n, k, 5)
    assert length % 2 == n_sizes % 2 == 1
    assert length % n_sizes == 0
    assert of(values, 0.5, k, 5).length == length
    ordered = np.sort(values)
    all_totals = 1 + (ordered[n - k :].sum() - ordered[:k].sum() if k else np.abs(values).sum())
    variance = k * (n - k) / (n - 1) * values.var() if k else (values**2).sum() / 4
    assert length >= min(all_totals, 8 * np.sqrt(variance)) + 2 * 5


def test_transform_is_the_sum_of_waves():
    made = of([1, 2, 4], 0.5, spread=2)
    weights = np.array([0.1, 0.2, 0.4, 0.25, 0.05])
    waves = np.exp(2j * np.pi * np.outer(np.arange(made.length // 2 + 1), np.arange(-2, 3)) / made.length)
    np.testing.assert_allclose(made.transform(weights), waves @ weights, rtol=0, atol=1e-15)


@given(st.integers(1, 10**7))
def test_lengths_are_quick_for_the_transform(least):
    found = cycle._odd_length(least)
    assert least <= found < max(1.5 * least, 2)
    for prime in (3, 5, 7):
        while found % prime == 0:
            found //= prime
    assert found == 1
