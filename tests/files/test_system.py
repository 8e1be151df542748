"""What differs between operating systems: the answers here, and all main jobs where a system lacks what Linux has."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from leakbound.files import system

ROOT = Path(__file__).parents[2]

# A stand-in for another system: what POSIX has alone is taken away before leakbound is imported. The libraries keep
# what they have imported; on another system they come with code of their own for it.
WITHOUT_POSIX = """
import os, signal, sys
from pathlib import Path
import filelock, joblib, psutil, multiprocessing.resource_tracker, subprocess, sklearn.tree, pandas

for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None  # importing it raises ImportError
for name in ("pthread_sigmask", "SIGKILL", "SIGHUP", "SIGALRM", "alarm"):
    delattr(signal, name)
for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOFOLLOW", "O_DIRECTORY", "fork", "getuid", "geteuid", "killpg"):
    delattr(os, name)

filelock.FileLock = filelock.SoftFileLock  # the one that needs nothing of the system

def kill(process, number):
    raise AssertionError("os.kill(process, 0) ends the process on Windows")

os.kill = kill
os.chmod = lambda path, mode, **_: None
unmasked, made, opened = os.umask(0), os.mkdir, os.open
os.mkdir = lambda path, mode=0o777, **words: made(path, 0o777, **words)  # modes are not kept

def open_but_no_folder(path, flags, mode=0o777, **words):
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", path)
    return opened(path, flags, 0o666, **words)

os.open = open_but_no_folder

from leakbound.files import system
system.HAS_MODES = False

import numpy as np
import leakbound as ls
from sklearn.datasets import load_wine
from sklearn.tree import DecisionTreeClassifier

folder = Path(sys.argv[1])
x, y = load_wine(return_X_y=True)
report = ls.audit(DecisionTreeClassifier(), x, y, n_models=8, n_jobs=1, attacks=["loss"], store=folder / "store")
report.to_json(folder / "report.json")
report.to_html(folder / "report.html")
assert ls.Report.from_json(folder / "report.json").digest() == report.digest()
again = ls.audit(DecisionTreeClassifier(), x, y, n_models=8, n_jobs=1, attacks=["loss"], store=folder / "store")
assert [finding.value for finding in again.findings] == [finding.value for finding in report.findings]

rows = np.random.default_rng(0).normal(size=(200, 2))
plain = ls.protect("mean", rows, eta=0.2, promise="drawn")
first = ls.protect("mean", rows, eta=0.2, promise="drawn", ledger=str(folder / "ledger.json"))
second = ls.protect("mean", rows, eta=0.2, promise="drawn", ledger=str(folder / "ledger.json"))
assert np.isfinite([plain.value, first.value, second.value]).all()
print("done")
"""


@pytest.mark.slow
def test_the_main_jobs_run_without_what_only_posix_has(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip().endswith("done")
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_a_process_is_alive_until_it_ends():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert system.is_alive(process.pid)
    process.communicate(b"\n")
    assert not system.is_alive(process.pid)
    assert not system.is_alive(2**70)


def test_a_file_that_is_there_is_not_opened_anew(tmp_path):
    os.close(system.open_new(tmp_path / "a"))
    assert system.open_to_others((tmp_path / "a").stat()) == ""
    with pytest.raises(FileExistsError):
        system.open_new(tmp_path / "a")
    (tmp_path / "a").chmod(0o644)
    assert system.open_to_others((tmp_path / "a").stat()) == "644"


def test_modes_are_not_asked_for_where_there_are_none(tmp_path, monkeypatch):
    monkeypatch.setattr(system, "HAS_MODES", False)
    (tmp_path / "a").touch(0o666)
    assert system.open_to_others((tmp_path / "a").stat()) == ""


def test_processes_are_started_where_signals_cannot_be_blocked(monkeypatch):
    monkeypatch.delattr("signal.pthread_sigmask")
    with system.without_ctrl_c():
        done = subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, check=True)
    assert done.stdout.strip() == b"1"


@pytest.mark.parametrize("can_block", [True, False])
def test_ctrl_c_waits_until_the_processes_are_started(can_block, monkeypatch):
    """Also if a thread hears it that began before: an interrupted start leaves workers without their task."""
    # a process that a shell has started in the background ignores Ctrl-C
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    if not can_block:
        monkeypatch.delattr("signal.pthread_sigmask")
    done, began = threading.Event(), []

    def start_a_worker():
        with system.without_ctrl_c():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
            began.append("a worker")

    listener = threading.Thread(target=done.wait)
    listener.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            start_a_worker()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
        done.set()
        listener.join()
    assert began == ["a worker"]


def test_who_ignores_ctrl_c_goes_on_ignoring_it():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with system.without_ctrl_c():
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
