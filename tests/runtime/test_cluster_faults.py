"""Schedulers, workers and drivers that are killed: the audit ends with the same bytes, and little is made twice."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import pytest

from leakbound.runtime import execution as execution_module
from leakbound.runtime.execution import Execution
from leakbound.runtime.store import Store
from tests.runtime.logged import Logged
from tests.runtime.test_cluster import EXPECTED, N_CHUNKS, observed

REPOSITORY = Path(__file__).parents[2]


class Cluster:
    """A scheduler and two workers, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> str:
        self.number += 1
        file = self.folder / f"scheduler {self.number}.json"
        self._run("scheduler", "--port", "0", "--no-dashboard", "--host", "127.0.0.1", "--scheduler-file", str(file))
        until(file.exists)
        for _ in range(2):
            self._run("worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-dashboard")
        with distributed.Client(scheduler_file=str(file), set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
            return str(client.scheduler.address)

    def _run(self, *words: str) -> None:
        command = [sys.executable, "-m", "dask", *words, "--local-directory", str(self.folder)]
        if words[0] == "scheduler":
            command = command[:-2]
        with (self.folder / f"log {len(self.processes)}").open("wb") as log:
            self.processes.append(
                subprocess.Popen(command, stdout=log, stderr=log, cwd=REPOSITORY, start_new_session=True)
            )

    def kill_scheduler(self) -> None:
        self.processes[-3].send_signal(signal.SIGKILL)

    def stop(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def until(happens: Callable[[], Any], seconds: float = 90.0) -> None:
    """Wait until something happens; it is an error if it does not."""
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.05)


@pytest.fixture
def cluster(tmp_path) -> Iterator[Cluster]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    made = Cluster(folder)
    yield made
    execution_module.close_clusters()
    made.stop()


@pytest.mark.nightly
def test_a_scheduler_that_dies_loses_nothing_that_was_finished(cluster, tmp_path) -> None:
    """It is killed when the first chunk is stored; a new one goes on."""
    address, store = cluster.start(), Store(tmp_path / "store")
    driver = started(tmp_path, tmp_path / "store", address, 1.0)
    until(lambda: store.size()[0] >= 1)
    cluster.kill_scheduler()
    _, line = driver.communicate(timeout=120)
    assert driver.returncode == 1
    assert f"OSError: the cluster {address} is gone: what was finished is kept; start it again and repeat" in line
    n_finished = store.size()[0]
    assert 1 <= n_finished <= N_CHUNKS
    release, n_made = Logged(str(tmp_path)), len(Logged(str(tmp_path)).fits_made())
    again = Execution(tmp_path / "store", cluster=cluster.start())
    np.testing.assert_array_equal(observed(release, again), EXPECTED)
    assert len(release.fits_made()) - n_made <= N_CHUNKS - n_finished


def started(folder: Path, store: Path, cluster: str, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.runtime.driver", str(folder), str(store), cluster, str(seconds)]
    return subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.nightly
@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_any_number_of_workers_stores_the_bytes_of_one_process(n_workers, tmp_path) -> None:
    for store, words in {"alone": {"n_jobs": 1}, "dask": {"cluster": f"local:{n_workers}"}}.items():
        observed(Logged(str(tmp_path)), Execution(tmp_path / store, **words))
    execution_module.close_clusters()
    alone, dask = ({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("alone", "dask"))
    assert len(alone) == N_CHUNKS
    assert dask == alone


@pytest.mark.nightly
@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("workers", ["2", "local:2"])
def test_a_driver_that_dies_is_followed_by_another(workers, moves, tmp_path) -> None:
    """The second one goes on, on the same store or on a copy at another path."""
    store, release = Store(tmp_path / "store"), Logged(str(tmp_path))
    first = started(tmp_path, tmp_path / "store", workers, 1.0)
    until(lambda: store.size()[0] >= 1)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    n_finished, n_made = store.size()[0], len(release.fits_made())
    place = tmp_path / "store"
    if moves:
        place = tmp_path / "moved"
        shutil.copytree(tmp_path / "store", place)
    second = Execution(place, n_jobs=2)
    np.testing.assert_array_equal(observed(release, second), EXPECTED)
    assert len(release.fits_made()) - n_made == N_CHUNKS - n_finished


@pytest.mark.nightly
def test_two_drivers_in_two_processes_end_with_one_result(tmp_path) -> None:
    release = Logged(str(tmp_path))
    drivers = [started(tmp_path, tmp_path / "store", workers, 0.3) for workers in ("2", "1")]
    for driver in drivers:
        _, said = driver.communicate(timeout=120)
        assert driver.returncode == 0, said
    assert N_CHUNKS <= len(release.fits_made()) <= 2 * N_CHUNKS
    np.testing.assert_array_equal(np.load(tmp_path / "values.npy"), EXPECTED)


@pytest.mark.nightly
def test_workers_that_are_killed_at_any_moment_change_no_byte(tmp_path) -> None:
    """At most what was under way is made again."""
    n_moments = 20
    alone = Execution(tmp_path / "alone", n_jobs=1)
    observed(Logged(str(tmp_path)), alone)
    expected = {path.name: path.read_bytes() for path in (tmp_path / "alone").iterdir()}
    for number in range(n_moments):
        folder = tmp_path / str(number)
        folder.mkdir()
        release = Logged(str(folder), seconds=0.2)
        driver = started(folder, folder / "store", "local:2", 0.2)
        until(lambda release=release: release.fits_made())
        time.sleep(number / n_moments * 0.6)
        victim = release.fits_made()[-1][0]
        os.kill(victim, signal.SIGKILL)
        _, said = driver.communicate(timeout=120)
        assert driver.returncode == 0, said
        np.testing.assert_array_equal(np.load(folder / "values.npy"), EXPECTED)
        # what a worker was writing when it was killed is removed by the next run
        there = [path for path in (folder / "store").iterdir() if not path.name.endswith(".part")]
        assert {path.name: path.read_bytes() for path in there} == expected
        # two tasks are sent to each worker, of which the dead one had begun one
        assert len(release.fits_made()) <= N_CHUNKS + 2
