"""Networks on the graphics cards of a machine, which are faked: no test has ever run on a card."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from leakscope.core.workers import worker_number
from leakscope.runtime import pool
from leakscope.runtime.cluster import connected
from tests.networks.cards import card

CALLS = [(number, (2, "auto" if number % 2 else "cuda")) for number in range(8)]


def test_outside_of_workers_cuda_chooses():
    assert worker_number() is None
    assert card(2, "auto") == (os.getpid(), "cuda")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["joblib", "processes", "dask"])
def test_workers_take_the_cards_in_turn(kind):
    """Two workers and two cards: each worker keeps one of its own."""
    with workers_of(kind) as done:
        of_process = dict(done)
        assert len(of_process) == 2
        assert sorted(of_process.values()) == ["cuda:0", "cuda:1"]
        assert set(done) == set(of_process.items())  # a process never changes its card


@contextmanager
def workers_of(kind: str) -> Iterator[list[Any]]:
    if kind == "joblib":
        yield [result for _, result in pool.run(card, [arguments for _, arguments in CALLS], 2)]
        return
    if kind == "dask":
        with connected("local:2") as engine:
            yield [result for _, result in engine.run(card, CALLS)]
        return
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as processes, connected(processes) as engine:
        yield [result for _, result in engine.run(card, CALLS)]


@pytest.mark.slow
def test_one_card_that_a_worker_sees_is_its_own():
    """CUDA_VISIBLE_DEVICES leaves a worker one card, whichever it is: its number does not matter then."""
    calls = [(number, (1, "auto")) for number in range(4)]
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as processes, connected(processes) as engine:
        assert {device for _, (_, device) in engine.run(card, calls)} == {"cuda"}
