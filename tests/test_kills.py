"""Kills, full disks, read-only folders and Ctrl-C: nothing half-written, and the same command goes on from there."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from leakscope.cli.main import main
from leakscope.core import temporary
from tests.results import of_the_result

pytestmark = pytest.mark.kills
HERE = Path(__file__).parent / "kills"
AUDIT = shlex.split("audit --dataset wine --model slow:SlowTree --n-models 24 --attack loss --attack lira_offline")
CALIBRATE = shlex.split("calibrate --data wine --statistic slow:middle --eta 0.3 --fits 160 --games 0")
N_CHUNKS = 6  # 24 models, 4 in a chunk
OF_THE_RUN = np.linspace(0.06, 0.97, 8)  # moments, as shares of the time of an undisturbed run
OF_THE_FITS = np.linspace(0.0, 1.1, 7)  # further ones, in seconds from the first chunk
LINE = "leakscope: interrupted; finished models are in the store, the same command goes on from there\n"


@dataclass(frozen=True)
class Undisturbed:
    """A run to its end: how long it took and what it left."""

    seconds: float
    report: bytes
    page: bytes
    chunks: dict[str, bytes]


def started(
    folder: Path,
    n_jobs: int,
    pause: float,
    script: Sequence[str] = ("-m", "leakscope.cli"),
    store: Path | None = None,
    command: Sequence[str] = AUDIT,
) -> subprocess.Popen[str]:
    """A command, an audit unless told, in a session of its own, with its store and report in a folder."""
    words = [*command, "--n-jobs", str(n_jobs), "--store", str(store or folder / "store")]
    words += [] if "--out" in command else ["--out", str(folder / "out")]
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    quick = {"PYTHONPATH": path, "SLOW_TREE_SECONDS": str(pause), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, *script, *words],
        cwd=folder,
        env=os.environ | quick,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def chunks(store: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in store.glob("*.npz")}


def alive(session: int) -> list[int]:
    """The processes of a session that are neither gone nor waiting to be buried."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, of_session = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it went while we looked
            continue
        if int(of_session) == session and state != "Z":
            found.append(int(stat.parent.name))
    return found


def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """With two workers, as users run it."""
    return to_its_end(tmp_path_factory.mktemp("undisturbed"), 0.15, AUDIT)


def to_its_end(folder: Path, pause: float, command: Sequence[str]) -> Undisturbed:
    start = time.monotonic()
    run = started(folder, n_jobs=2, pause=pause, command=command)
    _, said = run.communicate(timeout=120)
    assert run.returncode == 0, said
    report, page = ((folder / "out" / name).read_bytes() for name in ("report.json", "report.html"))
    return Undisturbed(time.monotonic() - start, report, page, chunks(folder / "store"))


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch, as_users_run_it: None) -> Callable[..., int]:
    """The same command in this process with one worker: its exit code."""

    def run(
        folder: Path,
        store: Path | None = None,
        out: Path | None = None,
        seed: int = 0,
        command: Sequence[str] = AUDIT,
    ) -> int:
        places = ["--n-jobs", "1", "--store", str(store or folder / "store"), "--out", str(out or folder / "out")]
        words = [*command, *places]
        monkeypatch.setattr(sys, "argv", ["leakscope", *words, *(["--seed", str(seed)] if seed else [])])
        with pytest.raises(SystemExit) as left:
            main()
        assert isinstance(left.value.code, int)
        return left.value.code

    monkeypatch.setattr(sys, "path", [str(HERE), *sys.path])
    return run


def check_rerun(folder: Path, code: int, undisturbed: Undisturbed) -> None:
    """The same bytes as the undisturbed run, and nothing beside them."""
    assert code == 0
    assert of_the_result((folder / "out" / "report.json").read_bytes()) == of_the_result(undisturbed.report)
    assert of_the_result((folder / "out" / "report.html").read_bytes()) == of_the_result(undisturbed.page)
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["report.html", "report.json", "run.json"]
    assert chunks(folder / "store") == undisturbed.chunks
    assert list((folder / "store").glob(".*")) == []


def test_one_worker_and_two_give_the_same_bytes(undisturbed, again, tmp_path):
    assert len(undisturbed.chunks) == N_CHUNKS
    check_rerun(tmp_path, again(tmp_path), undisturbed)


def test_a_kill_at_any_moment(undisturbed, again, tmp_path):
    seconds, killed, left = undisturbed.seconds, 0, []
    for number, moment in enumerate([*OF_THE_RUN, *OF_THE_FITS]):
        folder = tmp_path / str(number)
        folder.mkdir()
        run, start = started(folder, n_jobs=2, pause=0.15), time.monotonic()
        if number >= len(OF_THE_RUN):
            until(lambda store=folder / "store": chunks(store))
        try:
            run.wait(moment if number >= len(OF_THE_RUN) else moment * seconds)
            seconds = time.monotonic() - start  # the machine has become faster
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            killed += 1
        run.communicate()
        there = chunks(folder / "store")
        assert there.items() <= undisturbed.chunks.items()  # whole, or not there
        left.append(len(there))
        check_rerun(folder, again(folder), undisturbed)
    assert killed >= 10
    assert sum(0 < n < N_CHUNKS for n in left) >= 5  # in the midst of the fits


@pytest.mark.parametrize("write", range(1, N_CHUNKS))
def test_a_kill_between_write_and_rename(write, undisturbed, again, tmp_path):
    run = started(tmp_path, n_jobs=1, pause=0.0, script=(str(HERE / "killed_while_writing.py"), str(write)))
    run.communicate(timeout=60)
    assert run.returncode == -signal.SIGKILL
    there = chunks(tmp_path / "store")
    assert len(there) == write - 1
    assert there.items() <= undisturbed.chunks.items()
    assert len(list((tmp_path / "store").glob(".*.part"))) == 1
    assert not (tmp_path / "out").exists()
    check_rerun(tmp_path, again(tmp_path), undisturbed)


@pytest.mark.parametrize("when", ["the workers start", "the workers fit"])
def test_ctrl_c_while(when, undisturbed, again, tmp_path):
    run = started(tmp_path, n_jobs=2, pause=0.3)
    if when == "the workers start":
        until(lambda: len(alive(run.pid)) >= 4)  # the command, two workers, and who cleans up after them
    else:
        until(lambda: chunks(tmp_path / "store"))
    os.killpg(run.pid, signal.SIGINT)
    out, said = run.communicate(timeout=30)
    assert (run.returncode, out, said) == (130, "", LINE)
    until(lambda: not alive(run.pid), seconds=5)
    assert chunks(tmp_path / "store").items() <= undisturbed.chunks.items()
    check_rerun(tmp_path, again(tmp_path), undisturbed)


def test_a_store_on_a_full_disk(disk, undisturbed, again, tmp_path, capfd):
    size = sum(map(len, undisturbed.chunks.values())) // 1024
    disk.mount(f"size={size // 2}k")
    store = disk.folder / "store"
    assert again(tmp_path, store=store) == 1
    assert capfd.readouterr().err == f"leakscope: error: the store {store} cannot be written: No space left on device\n"
    assert chunks(store).items() <= undisturbed.chunks.items()
    assert 0 < len(chunks(store)) < N_CHUNKS
    assert list(store.glob(".*")) == []
    assert not (tmp_path / "out").exists()
    disk.mount(f"remount,size={size * 3}k")
    assert again(tmp_path, store=store) == 0
    assert chunks(store) == undisturbed.chunks
    assert of_the_result((tmp_path / "out" / "report.json").read_bytes()) == of_the_result(undisturbed.report)


def test_a_read_only_store(disk, undisturbed, again, tmp_path, capfd):
    disk.mount("size=1m")
    disk.mount("remount,ro")
    store = disk.folder / "store"
    assert again(tmp_path, store=store) == 1
    assert capfd.readouterr().err == f"leakscope: error: the store {store} cannot be written: Read-only file system\n"
    assert not (tmp_path / "out").exists()
    run = started(tmp_path, n_jobs=2, pause=0.3, store=store)
    said = run.communicate(timeout=60)
    assert said == ("", f"leakscope: error: the store {store} cannot be written: Read-only file system\n")
    until(lambda: not alive(run.pid), seconds=5)
    disk.mount("remount,rw")
    assert again(tmp_path, store=store) == 0
    assert chunks(store) == undisturbed.chunks
    disk.mount("remount,ro")
    assert again(tmp_path, store=store) == 0  # a whole store need not be written
    assert of_the_result((tmp_path / "out" / "report.json").read_bytes()) == of_the_result(undisturbed.report)


def test_a_report_on_a_full_disk_leaves_the_old_one_whole(disk, undisturbed, again, tmp_path, capfd):
    disk.mount("size=8m")
    out = disk.folder / "out"
    assert again(tmp_path, out=out) == 0
    old = {path.name: path.read_bytes() for path in out.iterdir()}
    disk.mount(f"remount,size={disk.used() + len(old['report.json']) // 1024 + 16}k")  # the page does not fit
    capfd.readouterr()
    assert again(tmp_path, out=out, seed=1) == 1
    assert capfd.readouterr().err == f"leakscope: error: the folder {out} cannot be written: No space left on device\n"
    assert {path.name: path.read_bytes() for path in out.iterdir()} == old
    disk.mount("remount,size=8m")
    assert again(tmp_path, out=out, seed=1) == 0
    assert (out / "report.json").read_bytes() != old["report.json"]


ROW = np.full(19, 12345.678).tobytes()  # of the data of kills/shared_rows.py


class TestSharedRows:
    """The training data that several workers read from one file."""

    def killed(self, folder: Path, places: dict[str, str], within: Path) -> list[Path]:
        """The files with rows in a place when the whole run is killed; none of them may be in shared memory."""
        before = set(Path("/dev/shm").glob("*"))
        run = subprocess.Popen(
            [sys.executable, str(HERE / "shared_rows.py"), json.dumps(places)],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": f"{HERE}:{os.environ.get('PYTHONPATH', '')}", "SLOW_TREE_SECONDS": "5"},
            start_new_session=True,
        )
        until(lambda: self.with_rows(within), seconds=60)
        assert not [path for path in set(Path("/dev/shm").glob("*")) - before if self.with_rows(path)]
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        return self.with_rows(within)

    def with_rows(self, place: Path) -> list[Path]:
        files = [path for path in place.rglob("*") if path.is_file()] if place.is_dir() else [place]
        found = []
        for path in files:
            with suppress(OSError):
                found += [path] if ROW in path.read_bytes() else []
        return found

    @pytest.mark.parametrize("name", ["store", "tmp"])
    def test_lie_where_it_was_said_for_their_owner_alone_and_go_with_the_next_run(self, name, tmp_path):
        place = tmp_path / name
        left = self.killed(tmp_path, {"store": str(tmp_path / "store"), name: str(place)}, place)
        assert left
        for path in left:
            own = place / path.relative_to(place).parts[0]
            assert own.stat().st_mode & 0o777 == 0o700
            assert re.fullmatch(r"\.leakscope\.[\w-]+\.\d+\.[0-9a-f]{16}\.tmp", own.name)
        assert self.with_rows(tmp_path) == left  # and nowhere else
        with temporary.folder(place):  # the next run begins
            assert self.with_rows(tmp_path) == []

    def test_without_a_store_lie_in_the_systems_folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        assert len(self.killed(tmp_path, {}, tmp_path)) >= 1
        with temporary.folder(tmp_path):
            assert self.with_rows(tmp_path) == []


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return to_its_end(tmp_path_factory.mktemp("calibration"), 0.02, CALIBRATE)


class TestCalibration:
    """The sampled fits of a calibration: as those of an audit."""

    PROTECT = ("protect", *CALIBRATE[1:])

    def test_a_kill_in_the_midst_of_the_fits(self, calibration, again, tmp_path) -> None:
        left = []
        for chunks_first in (1, 6, 12):
            folder = tmp_path / str(chunks_first)
            folder.mkdir()
            run = started(folder, n_jobs=2, pause=0.05, command=CALIBRATE)
            until(lambda store=folder / "store", least=chunks_first: len(chunks(store)) >= least)
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
            there = chunks(folder / "store")
            assert there.items() <= calibration.chunks.items()
            assert not (folder / "out").exists()
            left.append(len(there))
            written = {name: (folder / "store" / name).stat().st_mtime_ns for name in there}
            check_rerun(folder, again(folder, command=CALIBRATE), calibration)
            assert {name: (folder / "store" / name).stat().st_mtime_ns for name in there} == written  # not made again
        assert sum(n < len(calibration.chunks) for n in left) >= 2, left  # in the midst of the fits

    def test_ctrl_c_before_a_release(self, calibration, again, tmp_path) -> None:
        """Nothing is drawn yet: no file of a release; the calibration goes on from there."""
        run = started(tmp_path, n_jobs=2, pause=0.1, command=[*self.PROTECT, "--out", "r"])
        until(lambda: chunks(tmp_path / "store"))
        os.killpg(run.pid, signal.SIGINT)
        assert (run.communicate(timeout=30), run.returncode) == (("", LINE), 130)
        until(lambda: not alive(run.pid), seconds=5)
        assert [path.name for path in tmp_path.iterdir()] == ["store"]
        assert chunks(tmp_path / "store").items() <= calibration.chunks.items()
        check_rerun(tmp_path, again(tmp_path, command=CALIBRATE), calibration)

    def test_a_store_on_a_full_disk(self, calibration, again, disk, tmp_path, capfd) -> None:
        size = sum(map(len, calibration.chunks.values())) // 1024
        disk.mount(f"size={max(8, size // 2)}k")
        store, release = disk.folder / "store", tmp_path / "r"
        assert again(tmp_path, store=store, out=release, command=self.PROTECT) == 1
        line = f"leakscope: error: the store {store} cannot be written: No space left on device\n"
        assert capfd.readouterr().err == line
        assert 0 < len(chunks(store)) < len(calibration.chunks)
        assert chunks(store).items() <= calibration.chunks.items()
        assert list(store.glob(".*")) == []
        assert [path.name for path in tmp_path.iterdir()] == ["disk"]
        disk.mount("remount,size=4m")
        assert again(tmp_path, store=store, out=release, command=self.PROTECT) == 0
        assert chunks(store) == calibration.chunks
        assert (release / "release.json").exists()

    def test_a_read_only_store(self, calibration, again, disk, tmp_path, capfd) -> None:
        disk.mount("size=4m")
        disk.mount("remount,ro")
        store, release = disk.folder / "store", tmp_path / "r"
        assert again(tmp_path, store=store, out=release, command=self.PROTECT) == 1
        line = f"leakscope: error: the store {store} cannot be written: Read-only file system\n"
        assert capfd.readouterr().err == line
        assert [path.name for path in tmp_path.iterdir()] == ["disk"]


REPRODUCTION = ("reproduce", "lowy2024/figure1", "--quick")


def but_for_the_clock(folder: Path) -> dict[str, bytes]:
    """What a reproduction wrote."""
    files = (path for path in (folder / "out").rglob("*") if path.is_file() and path.name != "run.json")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def reproduction(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reproduction")
    _, said = (run := started(folder, n_jobs=2, pause=0.0, command=REPRODUCTION)).communicate(timeout=240)
    assert run.returncode == 0, said
    return folder


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_an_experiment_of_a_paper_goes_on(reproduction, again, tmp_path, end) -> None:
    made = chunks(reproduction / "store")
    run = started(tmp_path, n_jobs=2, pause=0.0, command=REPRODUCTION)
    until(lambda: len(chunks(tmp_path / "store")) >= 10, seconds=120)
    os.killpg(run.pid, end)
    run.communicate(timeout=30)
    until(lambda: not alive(run.pid), seconds=5)
    there = chunks(tmp_path / "store")
    assert there.items() <= made.items()
    assert 10 <= len(there) < len(made)
    assert not (tmp_path / "out").exists()
    written = {name: (tmp_path / "store" / name).stat().st_mtime_ns for name in there}
    assert again(tmp_path, command=REPRODUCTION) == 0
    assert chunks(tmp_path / "store") == made
    assert {name: (tmp_path / "store" / name).stat().st_mtime_ns for name in there} == written  # not made again
    assert but_for_the_clock(tmp_path) == but_for_the_clock(reproduction)
    assert len(but_for_the_clock(reproduction)) == 6
