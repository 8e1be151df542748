"""Networks on the GPUs of a machine, which are faked here: those of `on_a_gpu.py` need a real one."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from leakbound.core.workers import worker_number
from leakbound.releases.networks.devices import _repeatable
from leakbound.runtime import pool
from leakbound.runtime.cluster import connected
from leakbound.runtime.machine import _gpus
from tests.marks import nightly_but
from tests.networks.cards import card

CALLS = [(number, (2, "auto" if number % 2 else "cuda")) for number in range(8)]


def test_outside_of_workers_cuda_chooses():
    assert worker_number() is None
    assert card(2, "auto") == (os.getpid(), "cuda")


@pytest.mark.slow
@pytest.mark.parametrize("kind", nightly_but(["joblib", "processes", "dask"], "joblib"))
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


def test_the_kind_of_a_machine_counts_its_gpus_and_their_driver(tmp_path):
    """As the driver of NVIDIA writes them under /proc; four cards of one model are one kind."""
    for number in range(4):
        (tmp_path / f"gpus/0000:{number}").mkdir(parents=True)
        (tmp_path / f"gpus/0000:{number}/information").write_text("Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   17\n")
    (tmp_path / "version").write_text(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue\nGCC version: 12\n"
    )
    assert _gpus(tmp_path) == ["NVIDIA H100 80GB HBM3", "driver 580.159.04"]
    assert _gpus(tmp_path / "none") == []


def test_settings_of_cuda_are_those_of_the_user_afterwards():
    before = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.allow_tf32
    with _repeatable():
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.backends.cudnn.allow_tf32
    assert (torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.allow_tf32) == before
