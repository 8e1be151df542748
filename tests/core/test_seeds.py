"""Streams by name: the same in any order and in any process, different for different paths."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from leakbound.core.seeds import entropy, integer, stream, subsets

PATHS = [(), ("game",), ("game", 0), ("game", 1), ("game", "0"), ("game", 10), ("train", 0), ("gam", "e0"), (0, "game")]


def test_the_same_path_gives_the_same_numbers_in_any_order():
    forward = [stream(7, *path).random(5).tolist() for path in PATHS]
    backward = [stream(7, *path).random(5).tolist() for path in reversed(PATHS)]
    assert forward == backward[::-1]


def test_different_seeds_and_paths_give_different_streams():
    drawn = {(seed, path): integer(seed, *path) for seed in (0, 1, 10) for path in PATHS}
    assert len(set(drawn.values())) == len(drawn)


def test_a_number_is_the_same_step_whoever_counted_it():
    assert integer(0, "game", np.int64(3)) == integer(0, "game", 3)


@pytest.mark.slow
def test_the_same_numbers_in_another_process_whatever_its_hash_seed():
    code = "from leakbound.core.seeds import integer; print(integer(5, 'train', 3))"
    printed = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert printed == [f"{integer(5, 'train', 3)}\n"] * 2


def test_integers_fit_what_scikit_learn_takes():
    values = [integer(0, "train", row) for row in range(200)]
    assert all(0 <= value < 2**32 for value in values)
    assert max(values) > 2**31  # the upper half is used too


@pytest.mark.statistics
def test_streams_of_neighbouring_rows_are_independent_and_uniform():
    """First numbers of 4,000 rows: Kolmogorov-Smirnov and lag-1 correlation, 1e-6 false alarms each."""
    first = np.array([stream(0, "game", row).random() for row in range(4000)])
    assert stats.kstest(first, "uniform").pvalue > 1e-6
    z = np.corrcoef(first[:-1], first[1:])[0, 1] * np.sqrt(len(first) - 1)
    assert abs(z) < stats.norm.isf(0.5e-6)


def test_no_two_short_paths_collide():
    paths = [path for n in (1, 2, 3) for path in itertools.product(("a", "b", 1, 2, "1"), repeat=n)]
    assert len({integer(0, *path) for path in paths}) == len(paths)


def test_entropy_is_new_every_time_and_keyed_by_the_system(monkeypatch):
    """State of 128 + 256 bits, taken from secrets alone."""
    states = [entropy().bit_generator.state["state"] for _ in range(50)]
    keys = {tuple(state["key"].tolist()) for state in states}
    counters = {tuple(state["counter"].tolist()) for state in states}
    assert len(keys) == len(counters) == 50
    asked = []
    monkeypatch.setattr("secrets.randbits", lambda n: asked.append(n) or 7)
    assert (entropy().random(5) == entropy().random(5)).all()
    assert sorted(asked[:2]) == [128, 256]


@pytest.mark.statistics
def test_noise_from_entropy_is_normal():
    """20,000 normals by Kolmogorov-Smirnov, from fresh entropy: 1e-9 false alarms."""
    assert stats.kstest(entropy().standard_normal(20_000), "norm").pvalue > 1e-9


@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 1), (3, 2), (9, 4), (9, 5), (64, 32), (1001, 500), (50, 3), (50, 49)])
def test_subsets_have_their_size_and_follow_the_generator(n, k):
    member = subsets(n, k, 20, stream(1, "calibrate"))
    assert member.shape == (20, n)
    assert member.dtype == bool
    assert (member.sum(axis=1) == k).all()
    assert set(np.unique(member.view(np.uint8)).tolist()) == {0, 1}
    assert (member == subsets(n, k, 20, stream(1, "calibrate"))).all()


@pytest.mark.by_day("4-2")
@pytest.mark.statistics
@pytest.mark.parametrize(("n", "k"), [(4, 2), (5, 2), (5, 3), (6, 2)])
def test_all_subsets_are_equally_likely(n, k):
    """Chi-square over all subsets, 20,000 draws: 1e-6 false alarms each."""
    words = subsets(n, k, 20_000, stream(0, "subsets")) @ (1 << np.arange(n))
    _, counts = np.unique(words, return_counts=True)
    assert len(counts) == len(list(itertools.combinations(range(n), k)))
    assert stats.chisquare(counts).pvalue > 1e-6


@pytest.mark.parametrize(
    ("n", "k", "line"),
    [
        (4, 0, "k must be >= 1, got 0"),
        (4, 4, "k must be from 1 to n - 1 = 3, got 4"),
        (1, 1, "n must be >= 2, got 1"),
    ],
)
def test_subsets_refuse_what_is_none(n, k, line):
    with pytest.raises(ValueError) as error:
        subsets(n, k, 1, stream(0, "calibrate"))
    assert str(error.value) == line
