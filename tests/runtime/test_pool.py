"""Workers: the same results whatever their number, one BLAS thread each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config

from leakbound.runtime import pool
from leakbound.runtime.cluster import WorkerKilled
from tests.marks import slow_but

# tasks are defined inside the tests: they travel to the workers by value, as the test modules cannot be imported


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_argument_gets_its_result(n_jobs):
    found = dict(pool.run(lambda a, b: a * b, [(n, n + 1) for n in range(7)], n_jobs))
    assert found == {n: n * (n + 1) for n in range(7)}


def test_the_same_bytes_with_one_worker_and_with_two():
    def product(seed: int) -> np.ndarray:
        a = np.random.default_rng(seed).normal(size=(60, 60))
        return np.linalg.solve(a @ a.T + np.eye(60), a)

    alone, together = (dict(pool.run(product, [(seed,) for seed in range(5)], n_jobs)) for n_jobs in (1, 2))
    assert {n: array.tobytes() for n, array in alone.items()} == {n: array.tobytes() for n, array in together.items()}


@pytest.mark.slow
def test_a_slow_task_does_not_hold_back_the_others():
    """Results come in order of completion, each with its own number."""

    def wait(seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    found = list(pool.run(wait, [(1.0,), (0.0,), (0.1,)], 2))
    assert dict(found) == {0: 1.0, 1: 0.0, 2: 0.1}
    assert found[-1][0] == 0


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_exception_comes_through(n_jobs):
    def fail(number: int) -> int:
        if number == 1:
            raise ArithmeticError("the second task")
        return number

    with pytest.raises(ArithmeticError, match="the second task"):
        list(pool.run(fail, [(0,), (1,), (2,)], n_jobs))


def test_nothing_to_do():
    assert list(pool.run(lambda: 1, [], 2)) == []


def test_one_task_is_done_in_this_process():
    seen = []
    assert list(pool.run(lambda: seen.append(1), [()], 2)) == [(0, None)]
    assert seen == [1]


def test_no_workers():
    with pytest.raises(ValueError) as caught:
        list(pool.run(abs, [(1,)], 0))
    assert str(caught.value) == "n_jobs must be >= 1, got 0"


def test_one_worker_for_each_core_that_may_be_used_unless_said(monkeypatch):
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT")
    assert 1 <= pool.workers() <= len(os.sched_getaffinity(0))
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert pool.workers() == 1
    assert pool.workers(3) == 3


@pytest.mark.parametrize("n_jobs", slow_but([1, 2], 1))
def test_one_blas_thread_inside(n_jobs):
    """In a process of its own, where BLAS would otherwise use two threads."""
    code = f"""
import numpy as np
from threadpoolctl import threadpool_info
from leakbound.runtime import pool
from leakbound.runtime.cluster import WorkerKilled

def threads(size):
    np.ones((size, size)) @ np.ones((size, size))
    return max(library["num_threads"] for library in threadpool_info())

print(threads(2), sorted({{found for _, found in pool.run(threads, [(2,), (3,), (4,)], {n_jobs})}}))
"""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    printed = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert printed.stdout == "2 [1]\n"


@pytest.mark.nightly
def test_a_worker_that_is_replaced_because_it_has_grown_raises_no_warning():
    def grown(number):
        """Keep another 200 MB in this worker, and stay longer than the time between two looks at its memory."""
        np.held = [*getattr(np, "held", []), np.ones(25_000_000)]
        time.sleep(1.1)
        return number

    numbers = [(number,) for number in range(10)]
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        assert sorted(result for _, result in pool.run(grown, numbers, n_jobs=2)) == [*range(10)]
    assert [str(each.message) for each in raised] == []


def test_what_joblib_says_of_a_replaced_worker_is_not_shown():
    """As it says it; that it says it so is tested at night, with a worker that has grown."""
    said = (
        "A worker stopped while some jobs were given to the executor. This can be caused by a too short worker timeout"
    )
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        for _ in pool.run(abs, [(1,), (2,)], n_jobs=2):
            warnings.warn(said, UserWarning, stacklevel=1)
    assert [str(each.message) for each in raised] == []


@pytest.mark.slow
def test_workers_belong_to_the_place_of_their_files(tmp_path):
    """Also where other workers were there before, of the user's own or of another place."""

    def named(rows: np.ndarray) -> str:
        return str(getattr(rows, "filename", ""))

    rows = np.zeros((1000, 200))
    list(Parallel(n_jobs=2)(delayed(abs)(n) for n in range(2)))
    for place in (tmp_path / "a", tmp_path / "b", tmp_path / "a"):
        found = dict(pool.run(named, [(rows,), (rows,)], 2, place))
        assert all(Path(name).is_relative_to(place) for name in found.values())


def test_threads_of_the_users_choice_do(tmp_path):
    with parallel_config(backend="threading"):
        assert dict(pool.run(abs, [(-1,), (2,)], 2, tmp_path)) == {0: 1, 1: 2}


@pytest.mark.kills
def test_a_full_disk_of_shared_arrays_is_one_line(disk):
    disk.mount("size=2m")
    values = np.random.default_rng(0).normal(size=1_000_000)
    line = r"the arrays that the workers share do not fit into .*: No space left on device; name another folder"
    with pytest.raises(OSError, match=line):
        list(pool.run(lambda shared, n: float(shared[n]), [(values, n) for n in range(4)], 2, disk.folder))


def test_an_error_of_the_arguments_ends_the_run():
    """It is raised in a thread of joblib, when the first tasks are done."""

    def calls():
        for number in range(20):
            if number == 9:
                raise OSError("the store does not answer")
            yield number, (number,)

    done = []

    def run():
        done.extend(pool.run_numbered(abs, calls(), 20, 2))

    with pytest.raises(OSError, match=r"^the store does not answer$"):
        run()
    assert sorted(done) == [(number, number) for number in range(9)]


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced_and_named(tmp_path):
    def killed_once(number, folder):
        marker = Path(folder, "killed")
        if number == 3 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    def killed_always(number):
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    found = dict(pool.run_numbered(killed_once, ((n, (n, str(tmp_path))) for n in range(6)), 6, 2))
    assert found == {n: n for n in range(6)}
    with pytest.raises(WorkerKilled) as killed:
        list(pool.run_numbered(killed_always, ((n, (n,)) for n in range(6)), 6, 2))
    assert killed.value.args == (3,)
