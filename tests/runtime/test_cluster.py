"""Workers of clusters: the same bytes as in one process, whatever dies, and nothing is made twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from typing import Any

import distributed
import numpy as np
import pytest

from leakbound.core import seeds
from leakbound.runtime import cluster as cluster_module
from leakbound.runtime import execution as execution_module
from leakbound.runtime import fits
from leakbound.runtime.cluster import ALLOWED, Engine, WorkerKilled, check_address, connected
from leakbound.runtime.execution import Execution
from leakbound.runtime.observe import observe
from leakbound.runtime.store import Store
from tests.marks import nightly
from tests.runtime.logged import Logged, Silent
from tests.runtime.test_observe import MEMBER, POINTS

pytestmark = pytest.mark.slow
N_CHUNKS = 4  # of 10 models
SEEDS = [seeds.integer(0, "train", row) for row in range(len(MEMBER))]  # of a run with seed 0
EXPECTED = np.asarray(np.array(SEEDS)[:, None] + MEMBER / 2 + POINTS.x.sum(axis=1), dtype=np.float32)


@pytest.fixture(scope="module")
def dask() -> Iterator[str]:
    """One for all tests: workers take longer to start than what they do here."""
    yield "local:2"
    execution_module.close_clusters()


def observed(release: Logged, execution: Execution) -> np.ndarray:
    return observe(release, POINTS, MEMBER, ("loss",), execution=execution)["loss"]


# ---------------------------------------------------------------------------------------------------------------------
# What is made and stored


def test_the_bytes_are_those_of_one_process(dask, tmp_path) -> None:
    release, execution = Logged(str(tmp_path)), Execution(tmp_path / "store", cluster=dask)
    np.testing.assert_array_equal(observed(release, execution), EXPECTED)
    made = release.fits_made()
    assert sorted(first for _, first in made) == sorted(SEEDS[::3])
    assert (execution.tally.computed, execution.tally.reused) == (10, 0)
    assert Store(tmp_path / "store").size()[0] == N_CHUNKS
    assert list((tmp_path / "store").glob("*/*")) == []  # no data for workers
    again = Execution(tmp_path / "store", n_jobs=1)
    np.testing.assert_array_equal(observed(release, again), EXPECTED)
    assert (again.tally.computed, again.tally.reused) == (0, 10)


def test_a_damaged_chunk_is_made_again(dask, tmp_path) -> None:
    release = Logged(str(tmp_path))
    observed(release, Execution(tmp_path / "store", cluster=dask))
    chunk = sorted((tmp_path / "store").glob("*.npz"))[0]
    chunk.write_bytes(chunk.read_bytes()[:-10])
    execution = Execution(tmp_path / "store", cluster=dask)
    np.testing.assert_array_equal(observed(release, execution), EXPECTED)
    assert len(release.fits_made()) == N_CHUNKS + 1
    assert Store(tmp_path / "store").verify().damaged == {}


def test_an_error_of_a_fit_names_the_models_and_keeps_the_others(dask, tmp_path) -> None:
    release = Logged(str(tmp_path), fail=SEEDS[9])
    with pytest.raises(ValueError, match="the loss is not finite") as raised:
        observed(release, Execution(tmp_path / "store", cluster=dask))
    assert raised.value.__notes__ == [f"in model 9 (seed {SEEDS[9]})"]
    mended = Logged(str(tmp_path))
    np.testing.assert_array_equal(observed(mended, Execution(tmp_path / "store", n_jobs=1)), EXPECTED)


@pytest.mark.nightly
def test_two_runs_on_one_store_end_with_one_result(dask, tmp_path) -> None:
    release, found = Logged(str(tmp_path), seconds=0.1), []

    def run() -> None:
        found.append(observed(release, Execution(tmp_path / "store", cluster=dask)))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    for values in found:
        np.testing.assert_array_equal(values, EXPECTED)
    assert N_CHUNKS <= len(release.fits_made()) <= 2 * N_CHUNKS


# ---------------------------------------------------------------------------------------------------------------------
# Workers that are killed


@pytest.mark.parametrize("where", ["dask", nightly("here")])
def test_a_worker_that_is_killed_once_is_replaced(where, tmp_path, request) -> None:
    release = Logged(str(tmp_path), kill=SEEDS[3], n_kills=1)
    words: dict[str, Any] = {"n_jobs": 2} if where == "here" else {"cluster": request.getfixturevalue("dask")}
    np.testing.assert_array_equal(observed(release, Execution(tmp_path / "store", **words)), EXPECTED)
    made = [first for _, first in release.fits_made()]
    assert made.count(SEEDS[3]) == 2
    # what was under way beside it, at most
    assert len(made) <= N_CHUNKS + 4


@pytest.mark.parametrize("where", ["dask", nightly("here")])
def test_rows_that_kill_each_worker_are_named(where, tmp_path, request) -> None:
    release = Logged(str(tmp_path), kill=SEEDS[3], n_kills=9)
    words: dict[str, Any] = {"n_jobs": 2} if where == "here" else {"cluster": request.getfixturevalue("dask")}
    with pytest.raises(OSError, match="two processes or more were killed while they made models 3 to 5") as line:
        observed(release, Execution(tmp_path / "store", **words))
    assert str(line.value).endswith(f"what was finished is in {tmp_path / 'store'}")
    assert "\n" not in str(line.value)
    assert [first for _, first in release.fits_made()].count(SEEDS[3]) == 2
    mended = Logged(str(tmp_path))
    np.testing.assert_array_equal(observed(mended, Execution(tmp_path / "store", n_jobs=1)), EXPECTED)


def test_workers_that_do_not_end_in_time_are_no_error(monkeypatch) -> None:
    """Dask waits for a killed worker that it starts again, and gives up."""
    close = distributed.LocalCluster.close

    def too_late(cluster: Any, timeout: float | None = None) -> None:
        close(cluster, timeout)
        if cluster.status is distributed.Status.closed:
            raise TimeoutError("nanny")

    with connected("local:1") as engine:
        assert engine.executor.submit(pow, 2, 3).result() == 8
        monkeypatch.setattr(distributed.LocalCluster, "close", too_late)


class KilledWorker(Exception):
    """Stands for the error of Dask, which is known by its name."""


class BlamesAll(Executor):
    """One worker with a queue; when it is killed, all that was sent to it fails, as with Dask.

    Parameters
    ----------
    culprit : int
        The task that kills the worker.
    n_kills : int
        How often it does so.
    """

    def __init__(self, culprit: int, n_kills: int) -> None:
        self.culprit, self.n_kills = culprit, n_kills
        self.sent: list[int] = []
        self.queue: list[tuple[Future[int], int]] = []

    def submit(self, fn, /, *args, **kwargs):
        future: Future[int] = Future()
        _, number = args
        self.sent.append(number)
        self.queue.append((future, number))
        threading.Timer(0.05, self._work).start()
        return future

    def _work(self) -> None:
        queue, self.queue = self.queue, []
        is_killed = self.n_kills > 0 and self.culprit in [number for _, number in queue]
        self.n_kills -= is_killed
        for future, number in queue:
            if is_killed:
                future.set_exception(KilledWorker())
            else:
                future.set_result(number**2)


def engine_of(executor: Executor) -> tuple[Engine, list[str]]:
    """An engine, and what it gives to all workers."""
    sent: list[str] = []
    return Engine(executor, "fake", lambda: 1, lambda: True, lambda job: sent.append(job) or job), sent


def numbered_calls() -> list[tuple[int, tuple[int]]]:
    return [(number, (number,)) for number in range(6)]


@pytest.mark.parametrize("culprit", range(6))
def test_a_task_that_was_sent_beside_the_culprit_is_not_blamed(culprit) -> None:
    once = BlamesAll(culprit, n_kills=1)
    engine, sent = engine_of(once)
    assert sorted(engine.run(pow, "job", numbered_calls())) == [(number, number**2) for number in range(6)]
    assert once.sent.count(culprit) == 2
    assert sent == ["job", "job"]  # again after the worker was killed, since the job may have gone with it
    always = BlamesAll(culprit, n_kills=9)
    with pytest.raises(WorkerKilled) as killed:
        list(engine_of(always)[0].run(pow, "job", numbered_calls()))
    assert killed.value.args == (culprit,)
    assert always.sent.count(culprit) == 2


# ---------------------------------------------------------------------------------------------------------------------
# What is asked for


def test_without_a_store_dask_returns_the_arrays(dask, tmp_path) -> None:
    execution = Execution(cluster=dask)
    np.testing.assert_array_equal(observed(Logged(str(tmp_path)), execution), EXPECTED)
    assert execution.facts is None


def test_an_active_client_is_used(dask, tmp_path) -> None:
    release = Logged(str(tmp_path))
    with connected(dask) as engine, distributed.Client(engine.executor._client.cluster) as client:
        execution = Execution(tmp_path / "store")
        np.testing.assert_array_equal(observed(release, execution), EXPECTED)
        workers = {worker["pid"] for worker in client.run(process).values()}
        assert {pid for pid, _ in release.fits_made()} <= workers
        here = Execution(tmp_path / "other", n_jobs=1)  # processes were asked for: this machine
        observed(release, here)


def process() -> dict[str, int]:
    import os

    return {"pid": os.getpid()}


def test_a_release_without_the_signals_has_nothing_to_store(dask, tmp_path) -> None:
    execution = Execution(tmp_path / "store", cluster=dask)
    assert observe(Silent(str(tmp_path)), POINTS, MEMBER, ("loss",), execution=execution) == {}
    assert Store(tmp_path / "store").size() == (0, 0)


def test_workers_that_do_not_see_the_store_say_so(dask, monkeypatch) -> None:
    monkeypatch.setattr(fits, "_LATEST_APPEARANCE", 0.5)
    with pytest.raises(OSError, match="a worker has stored a chunk that is not in memory://of-one-process here"):
        observed(Logged("/nowhere"), Execution("memory://of-one-process", cluster=dask))


@pytest.mark.parametrize("address", ["here", "local:0", "tcp://", "local:4 ", "http://host:80", "", "local:99999"])
def test_other_addresses_are_refused(address) -> None:
    with pytest.raises(ValueError) as line:
        check_address(address)
    assert str(line.value) == f"cluster must be {ALLOWED}; got {address!r}"


def test_other_objects_are_refused(tmp_path, monkeypatch) -> None:
    with pytest.raises(ValueError, match=r"or a distributed.Client, got int$"):
        observed(Logged(str(tmp_path)), Execution(tmp_path / "store", cluster=4))
    with pytest.raises(ValueError, match=r"give one of them$"):
        Execution(tmp_path, n_jobs=2, cluster="local:2")
    monkeypatch.setattr(cluster_module, "_TIMEOUT", 0.5)
    with pytest.raises(OSError, match=r"^no scheduler of Dask answers at tcp://127.0.0.1:1: "):
        observed(Logged(str(tmp_path)), Execution(tmp_path / "store", cluster="tcp://127.0.0.1:1"))


def test_a_damaged_chunk_is_filled_again(tmp_path) -> None:
    from leakbound.runtime.observe import fill

    what = (Logged(str(tmp_path)), POINTS, MEMBER, ("loss",), 0, Execution(tmp_path / "store", n_jobs=1))
    assert fill(*what, range(N_CHUNKS)).n_made == N_CHUNKS
    chunk = sorted((tmp_path / "store").glob("*.npz"))[0]
    chunk.write_bytes(chunk.read_bytes()[:-1])
    assert fill(*what, range(N_CHUNKS)).n_made == 1
    assert Store(tmp_path / "store").verify().damaged == {}


@pytest.mark.parametrize("cluster", [[], {}, ["tcp://a:1"]])
def test_a_list_is_no_cluster(cluster, tmp_path) -> None:
    with pytest.raises(ValueError, match=r"or a distributed.Client, got "):
        observed(Logged(str(tmp_path)), Execution(tmp_path / "store", cluster=dask))
