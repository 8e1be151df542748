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
from typing import Any

import jaxtyping
import numpy as np
import pytest

from leakbound.cli.main import main
from leakbound.files import temporary
from tests.results import of_the_result

pytestmark = [pytest.mark.kills, pytest.mark.slow]
HERE = Path(__file__).parent / "kills"
AUDIT = shlex.split("audit --dataset wine --model slow:SlowTree --n-models 24 --attack loss --attack lira_offline")
CALIBRATE = shlex.split("calibrate --data wine --statistic slow:middle --promise drawn,fits=160,games=0 --eta 0.3")
N_CHUNKS = 6  # 24 models, 4 in a chunk
OF_THE_RUN = np.linspace(0.06, 0.97, 8)  # moments, as shares of the time of an undisturbed run
OF_THE_FITS = np.linspace(0.0, 1.1, 7)  # further ones, in seconds from the first chunk
BY_DAY = (0.1, 0.6)  # with one worker, as shares of the time of an undisturbed run
WRITES = (3,)  # of the chunks
LINE = "leakbound: interrupted; finished models are in the store, the same command goes on from there\n"


@dataclass(frozen=True)
class Undisturbed:
    """What a run to its end left."""

    report: bytes
    page: bytes
    names: list[str]
    chunks: dict[str, bytes]

    @classmethod
    def of(cls, folder: Path) -> Undisturbed:
        report, page = ((folder / "out" / name).read_bytes() for name in ("report.json", "report.html"))
        return cls(report, page, names_in(folder / "out"), chunks(folder / "store"))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def started(
    folder: Path,
    n_jobs: int,
    pause: float,
    script: Sequence[str] = ("-m", "leakbound"),
    store: Path | None = None,
    command: Sequence[str] = AUDIT,
) -> subprocess.Popen[str]:
    """A command, an audit unless told, in a session of its own, with its store and report in a folder."""
    words = [*command, "--n-jobs", str(n_jobs), "--store", str(store or folder / "store")]
    words += [] if "--out" in command else ["--out", str(folder / "out")]
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    quick = {"PYTHONPATH": path, "JOBLIB_SLOW_TREE_SECONDS": str(pause), "OMP_NUM_THREADS": "1"}
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


def here(
    folder: Path, store: Path | None = None, out: Path | None = None, seed: int = 0, command: Sequence[str] = AUDIT
) -> int:
    """A command in this process with one worker, as users run it: its exit code."""
    words = [*command, "--n-jobs", "1", "--store", str(store or folder / "store"), "--out", str(out or folder / "out")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(HERE), *sys.path])
        patch.setattr(sys, "argv", ["leakbound", *words, *(["--seed", str(seed)] if seed else [])])
        jaxtyping.config.update("jaxtyping_disable", True)
        try:
            with pytest.raises(SystemExit) as left:
                main()
        finally:
            jaxtyping.config.update("jaxtyping_disable", False)
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert here(folder) == 0
    return Undisturbed.of(folder)


def with_two_workers(folder: Path, pause: float, command: Sequence[str]) -> Undisturbed:
    """A command in a process of its own, to its end."""
    run = started(folder, n_jobs=2, pause=pause, command=command)
    _, said = run.communicate(timeout=240)
    assert run.returncode == 0, said
    return Undisturbed.of(folder)


def ended_often(place: Path, command: Sequence[str], pause: float, ends: Sequence[dict[str, Any]]) -> list[Path]:
    """Runs of a command with one worker, each ended by a signal (see ``kills/killed_often.py``): their folders.

    What a run said lies in ``said``, its exit code in ``code``, both beside the folder. The first folder is that of a
    run to its end.
    """
    runs = [{"words": [*command, "--out", "out"], "pause": pause, **end} for end in [{}, *ends]]
    for number, run in enumerate(runs):
        run["folder"] = str(place / str(number) / "run")
        Path(run["folder"]).mkdir(parents=True)
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(HERE / "killed_often.py"), *AUDIT, "--n-jobs", "1"],
        cwd=place,
        env=os.environ | {"PYTHONPATH": path, "JOBLIB_SLOW_TREE_SECONDS": "0"},
        input=json.dumps(runs),
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    for run, (code, said) in zip(runs, json.loads(done.stdout.splitlines()[-1]), strict=True):
        (Path(run["folder"]).parent / "code").write_text(str(code))
        (Path(run["folder"]).parent / "said").write_text(said)
    return [Path(run["folder"]) for run in runs]


def code_of(folder: Path) -> int:
    return int((folder.parent / "code").read_text())


def check_rerun(folder: Path, code: int, undisturbed: Undisturbed) -> None:
    """The same bytes as the undisturbed run, and nothing beside them."""
    assert code == 0
    assert of_the_result((folder / "out" / "report.json").read_bytes()) == of_the_result(undisturbed.report)
    assert of_the_result((folder / "out" / "report.html").read_bytes()) == of_the_result(undisturbed.page)
    assert names_in(folder / "out") == undisturbed.names
    assert [name for name in undisturbed.names if name != "noise.csv"] == ["report.html", "report.json", "run.json"]
    assert chunks(folder / "store") == undisturbed.chunks
    assert list((folder / "store").glob(".*")) == []


@pytest.mark.nightly
def test_one_worker_and_two_give_the_same_bytes(undisturbed, tmp_path):
    assert len(undisturbed.chunks) == N_CHUNKS
    with_two_workers(tmp_path, 0.0, AUDIT)
    check_rerun(tmp_path, 0, undisturbed)


def test_a_kill_at_any_moment_of_one_worker_and_within_a_write(undisturbed, tmp_path):
    """At shares of the time of the first run; and in a write of a chunk, between write and link."""
    moments: list[dict[str, Any]] = [{"share": share, "signal": signal.SIGKILL} for share in BY_DAY]
    moments += [{"chunks": n, "seconds": 0.04, "signal": signal.SIGKILL} for n in (1, 3)]
    writes = [{"write": number, "signal": signal.SIGKILL} for number in WRITES]
    whole, *folders = ended_often(tmp_path, AUDIT, 0.03, [*moments, *writes])
    assert code_of(whole) == 0
    assert chunks(whole / "store") == undisturbed.chunks
    assert sum(code_of(folder) == -signal.SIGKILL for folder in folders[: len(moments)]) >= 2
    left = []
    for folder in folders[: len(moments)]:
        assert code_of(folder) in (0, -signal.SIGKILL), folder
        there = chunks(folder / "store")
        assert there.items() <= undisturbed.chunks.items(), folder  # whole, or not there
        left.append(len(there))
        check_rerun(folder, here(folder), undisturbed)
    assert sum(0 < n < N_CHUNKS for n in left) >= 2, left  # in the midst of the fits
    check_kills_within(WRITES, folders[len(moments) :], undisturbed)


@pytest.mark.nightly
def test_a_kill_within_the_other_writes(undisturbed, tmp_path):
    writes = [number for number in range(1, N_CHUNKS) if number not in WRITES]
    _, *folders = ended_often(tmp_path, AUDIT, 0.03, [{"write": n, "signal": signal.SIGKILL} for n in writes])
    check_kills_within(writes, folders, undisturbed)


def check_kills_within(writes: Sequence[int], folders: Sequence[Path], undisturbed: Undisturbed) -> None:
    """Between write and link of a chunk: those before it are whole, one part is left, and a new run ends as ever."""
    for write, folder in zip(writes, folders, strict=True):
        assert code_of(folder) == -signal.SIGKILL, write
        there = chunks(folder / "store")
        assert len(there) == write - 1
        assert there.items() <= undisturbed.chunks.items(), write
        assert len(list((folder / "store").glob(".*.part"))) == 1, write
        assert not (folder / "out").exists(), write
        check_rerun(folder, here(folder), undisturbed)


@pytest.mark.nightly
def test_a_kill_in_the_midst_of_the_fits(undisturbed, tmp_path):
    """Of two workers and who gives them work, at once."""
    run = started(tmp_path, n_jobs=2, pause=0.3)
    until(lambda: chunks(tmp_path / "store"))
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate()
    assert run.returncode == -signal.SIGKILL
    there = chunks(tmp_path / "store")
    assert there.items() <= undisturbed.chunks.items()
    assert 0 < len(there) < N_CHUNKS
    assert not (tmp_path / "out").exists()
    check_rerun(tmp_path, here(tmp_path), undisturbed)


@pytest.mark.nightly
def test_a_kill_of_two_workers_at_any_moment(undisturbed, tmp_path):
    start = time.monotonic()
    whole = tmp_path / "whole"
    whole.mkdir()
    with_two_workers(whole, 0.15, AUDIT)
    seconds, killed, left = time.monotonic() - start, 0, []
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
        check_rerun(folder, here(folder), undisturbed)
    assert killed >= 10
    assert sum(0 < n < N_CHUNKS for n in left) >= 5  # in the midst of the fits


@pytest.mark.nightly
@pytest.mark.parametrize("when", ["the workers start", "the workers fit"])
def test_ctrl_c_while(when, undisturbed, tmp_path):
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
    check_rerun(tmp_path, here(tmp_path), undisturbed)


def test_a_store_on_a_full_disk(disk, undisturbed, tmp_path, capfd):
    size = sum(map(len, undisturbed.chunks.values())) // 1024
    disk.mount(f"size={size // 2}k")
    store = disk.folder / "store"
    assert here(tmp_path, store=store) == 1
    assert capfd.readouterr().err == f"leakbound: error: the store {store} cannot be written: No space left on device\n"
    assert chunks(store).items() <= undisturbed.chunks.items()
    assert 0 < len(chunks(store)) < N_CHUNKS
    assert list(store.glob(".*")) == []
    assert not (tmp_path / "out").exists()
    disk.mount(f"remount,size={size * 3}k")
    assert here(tmp_path, store=store) == 0
    assert chunks(store) == undisturbed.chunks
    assert of_the_result((tmp_path / "out" / "report.json").read_bytes()) == of_the_result(undisturbed.report)


def test_a_read_only_store(disk, undisturbed, tmp_path, capfd):
    disk.mount("size=1m")
    disk.mount("remount,ro")
    store = disk.folder / "store"
    assert here(tmp_path, store=store) == 1
    assert capfd.readouterr().err == f"leakbound: error: the store {store} cannot be written: Read-only file system\n"
    assert not (tmp_path / "out").exists()
    run = started(tmp_path, n_jobs=2, pause=0.3, store=store)
    said = run.communicate(timeout=60)
    assert said == ("", f"leakbound: error: the store {store} cannot be written: Read-only file system\n")
    until(lambda: not alive(run.pid), seconds=5)
    disk.mount("remount,rw")
    assert here(tmp_path, store=store) == 0
    assert chunks(store) == undisturbed.chunks
    disk.mount("remount,ro")
    assert here(tmp_path, store=store) == 0  # a whole store need not be written
    assert of_the_result((tmp_path / "out" / "report.json").read_bytes()) == of_the_result(undisturbed.report)


def test_a_report_on_a_full_disk_leaves_the_old_one_whole(disk, undisturbed, tmp_path, capfd):
    disk.mount("size=8m")
    out = disk.folder / "out"
    assert here(tmp_path, out=out) == 0
    old = {path.name: path.read_bytes() for path in out.iterdir()}
    disk.mount(f"remount,size={disk.used() + len(old['report.json']) // 1024 + 16}k")  # the page does not fit
    capfd.readouterr()
    assert here(tmp_path, out=out, seed=1) == 1
    assert capfd.readouterr().err == f"leakbound: error: the folder {out} cannot be written: No space left on device\n"
    assert {path.name: path.read_bytes() for path in out.iterdir()} == old
    disk.mount("remount,size=8m")
    assert here(tmp_path, out=out, seed=1) == 0
    assert (out / "report.json").read_bytes() != old["report.json"]


ROW = np.full(19, 12345.678).tobytes()  # of the data of kills/shared_rows.py


class TestSharedRows:
    """The training data that several workers read from one file."""

    @pytest.fixture(scope="class")
    @classmethod
    def left(cls, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, list[Path]]]:
        """The folder of each run, and the files with rows in it when the whole run is killed.

        None of them may be in shared memory.
        """
        before = set(Path("/dev/shm").glob("*"))
        folders = {name: tmp_path_factory.mktemp(name) for name in ("store", "system")}
        store, system = str(folders["store"] / "store"), str(folders["system"])
        places = [
            {"store": store},
            {"TMPDIR": system},
        ]
        run = subprocess.Popen(
            [sys.executable, str(HERE / "shared_rows.py"), json.dumps(places)],
            cwd=folders["store"],
            env=os.environ
            | {"PYTHONPATH": f"{HERE}:{os.environ.get('PYTHONPATH', '')}", "JOBLIB_SLOW_TREE_SECONDS": "5"},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert run.stdout is not None
        begun = json.loads(run.stdout.readline())
        until(lambda: all(map(cls.with_rows, folders.values())), seconds=60)
        assert not [path for path in set(Path("/dev/shm").glob("*")) - before if cls.with_rows(path)]
        for child in begun:
            os.killpg(child, signal.SIGKILL)
        run.communicate()
        assert not any(map(alive, begun))
        return {name: (folder, cls.with_rows(folder)) for name, folder in folders.items()}

    @staticmethod
    def with_rows(place: Path) -> list[Path]:
        files = [path for path in place.rglob("*") if path.is_file()] if place.is_dir() else [place]
        found = []
        for path in files:
            with suppress(OSError):
                found += [path] if ROW in path.read_bytes() else []
        return found

    def test_lie_in_the_store_for_their_owner_alone_and_go_with_the_next_run(self, left):
        folder, files = left["store"]
        place = folder / "store"
        assert files
        for path in files:
            own = place / path.relative_to(place).parts[0]
            assert own.stat().st_mode & 0o777 == 0o700
            assert re.fullmatch(r"\.leakbound\.[\w-]+\.\d+\.[0-9a-f]{16}\.tmp", own.name)
        with temporary.folder(place):  # the next run begins
            assert self.with_rows(folder) == []

    def test_without_a_store_lie_in_the_systems_folder(self, left):
        folder, files = left["system"]
        assert len(files) >= 1
        with temporary.folder(folder):
            assert self.with_rows(folder) == []


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("calibration")
    assert here(folder, command=CALIBRATE) == 0
    return Undisturbed.of(folder)


class TestCalibration:
    """The sampled fits of a calibration: as those of an audit."""

    PROTECT = ("protect", *CALIBRATE[1:])

    def check_goes_on(self, folder: Path, calibration: Undisturbed) -> int:
        """What a killed calibration left is whole, and not made again; returns the number of its chunks."""
        there = chunks(folder / "store")
        assert there.items() <= calibration.chunks.items()
        assert not (folder / "out").exists()
        written = {name: (folder / "store" / name).stat().st_mtime_ns for name in there}
        check_rerun(folder, here(folder, command=CALIBRATE), calibration)
        assert {name: (folder / "store" / name).stat().st_mtime_ns for name in there} == written  # not made again
        return len(there)

    @pytest.mark.nightly
    def test_signals_to_one_worker(self, calibration, tmp_path) -> None:
        """Killed in the midst of the fits it goes on; after Ctrl-C there is no file of a release: nothing is drawn."""
        kill, interrupt = {"seconds": 0, "signal": signal.SIGKILL}, {"seconds": 0, "signal": signal.SIGINT}
        protecting = {"words": [*self.PROTECT, "--out", "r"], "chunks": 1}
        ends = [{"chunks": 6, **kill}, {**interrupt, **protecting}]
        whole, *killed, interrupted = ended_often(tmp_path, CALIBRATE, 0.01, ends)
        assert chunks(whole / "store") == calibration.chunks
        for folder in killed:
            assert code_of(folder) == -signal.SIGKILL
            assert 0 < self.check_goes_on(folder, calibration) < len(calibration.chunks)
        assert (code_of(interrupted), (interrupted.parent / "said").read_text()) == (130, LINE)
        assert [path.name for path in interrupted.iterdir()] == ["store"]
        self.check_goes_on(interrupted, calibration)

    @pytest.mark.nightly
    def test_one_worker_and_two_give_the_same_bytes(self, calibration, tmp_path) -> None:
        with_two_workers(tmp_path, 0.02, CALIBRATE)
        check_rerun(tmp_path, 0, calibration)

    @pytest.mark.nightly
    def test_a_kill_of_two_workers(self, calibration, tmp_path) -> None:
        left = []
        for chunks_first in (1, 6, 12):
            folder = tmp_path / str(chunks_first)
            folder.mkdir()
            run = started(folder, n_jobs=2, pause=0.05, command=CALIBRATE)
            until(lambda store=folder / "store", least=chunks_first: len(chunks(store)) >= least)
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
            left.append(self.check_goes_on(folder, calibration))
        assert sum(n < len(calibration.chunks) for n in left) >= 2, left  # in the midst of the fits

    @pytest.mark.nightly
    def test_ctrl_c_of_two_workers_before_a_release(self, calibration, tmp_path) -> None:
        run = started(tmp_path, n_jobs=2, pause=0.1, command=[*self.PROTECT, "--out", "r"])
        until(lambda: chunks(tmp_path / "store"))
        os.killpg(run.pid, signal.SIGINT)
        assert (run.communicate(timeout=30), run.returncode) == (("", LINE), 130)
        until(lambda: not alive(run.pid), seconds=5)
        assert [path.name for path in tmp_path.iterdir()] == ["store"]
        self.check_goes_on(tmp_path, calibration)

    def test_a_store_on_a_full_disk(self, calibration, disk, tmp_path, capfd) -> None:
        size = sum(map(len, calibration.chunks.values())) // 1024
        disk.mount(f"size={max(8, size // 2)}k")
        store, release = disk.folder / "store", tmp_path / "r"
        assert here(tmp_path, store=store, out=release, command=self.PROTECT) == 1
        line = f"leakbound: error: the store {store} cannot be written: No space left on device\n"
        assert capfd.readouterr().err == line
        assert 0 < len(chunks(store)) < len(calibration.chunks)
        assert chunks(store).items() <= calibration.chunks.items()
        assert list(store.glob(".*")) == []
        assert [path.name for path in tmp_path.iterdir()] == ["disk"]
        disk.mount("remount,size=4m")
        assert here(tmp_path, store=store, out=release, command=self.PROTECT) == 0
        assert chunks(store) == calibration.chunks
        assert (release / "release.json").exists()

    def test_a_read_only_store(self, calibration, disk, tmp_path, capfd) -> None:
        disk.mount("size=4m")
        disk.mount("remount,ro")
        store, release = disk.folder / "store", tmp_path / "r"
        assert here(tmp_path, store=store, out=release, command=self.PROTECT) == 1
        line = f"leakbound: error: the store {store} cannot be written: Read-only file system\n"
        assert capfd.readouterr().err == line
        assert [path.name for path in tmp_path.iterdir()] == ["disk"]


REPRODUCTION = ("reproduce", "lowy2024/figure3", "--quick")


def but_for_the_clock(folder: Path) -> dict[str, bytes]:
    """What a reproduction wrote."""
    files = (path for path in (folder / "out").rglob("*") if path.is_file() and path.name != "run.json")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def check_goes_on(killed: Path, whole: Path) -> None:
    """What a killed reproduction left is whole, is not made again, and the files of the experiment are the same."""
    there, made = chunks(killed / "store"), chunks(whole / "store")
    assert there.items() <= made.items()
    assert 10 <= len(there) < len(made)
    assert not (killed / "out").exists()
    written = {name: (killed / "store" / name).stat().st_mtime_ns for name in there}
    assert here(killed, command=REPRODUCTION) == 0
    assert chunks(killed / "store") == made
    assert {name: (killed / "store" / name).stat().st_mtime_ns for name in there} == written  # not made again
    assert but_for_the_clock(killed) == but_for_the_clock(whole)
    assert len(but_for_the_clock(whole)) == 6


@pytest.mark.nightly
def test_an_experiment_of_a_paper_goes_on(tmp_path) -> None:
    whole, killed = ended_often(tmp_path, REPRODUCTION, 0.0, [{"chunks": 10, "seconds": 0, "signal": signal.SIGKILL}])
    assert (code_of(whole), code_of(killed)) == (0, -signal.SIGKILL)
    check_goes_on(killed, whole)


@pytest.mark.nightly
def test_an_experiment_of_a_paper_by_two_workers_goes_on(tmp_path) -> None:
    whole, by_one = tmp_path / "whole", tmp_path / "by one"
    whole.mkdir()
    _, said = (run := started(whole, n_jobs=2, pause=0.0, command=REPRODUCTION)).communicate(timeout=240)
    assert run.returncode == 0, said
    assert here(by_one, command=REPRODUCTION) == 0
    assert chunks(by_one / "store") == chunks(whole / "store")
    assert but_for_the_clock(by_one) == but_for_the_clock(whole)
    for end in (signal.SIGKILL, signal.SIGINT):
        folder = tmp_path / end.name
        folder.mkdir()
        run = started(folder, n_jobs=2, pause=0.0, command=REPRODUCTION)
        until(lambda store=folder / "store": len(chunks(store)) >= 10, seconds=120)
        os.killpg(run.pid, end)
        run.communicate(timeout=30)
        until(lambda of=run.pid: not alive(of), seconds=5)
        check_goes_on(folder, whole)
