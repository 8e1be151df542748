"""What a statistic prints during a release, by whatever way, is seen by nobody; afterwards all is as it was."""

import ctypes
import logging
import os
import subprocess
import sys

import numpy as np
import pytest

from leakbound.core.grid import Grid
from leakbound.data import from_arrays
from leakbound.protection.setting.capture import silenced
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.algorithms import Function
from leakbound.releases.statistics.statistic import Fit
from leakbound.runtime.observe import Execution

SECRET = "these are in: 1 3 5"
WAYS = {
    "print": lambda: print(SECRET),
    "print to standard error": lambda: print(SECRET, file=sys.stderr),
    "the first standard output": lambda: sys.__stdout__.write(SECRET),
    "a file descriptor": lambda: os.write(1, SECRET.encode()),
    "a file descriptor of errors": lambda: os.write(2, SECRET.encode()),
    "a child process": lambda: subprocess.run([sys.executable, "-c", f"print({SECRET!r})"], check=True),
    "the buffer of C": lambda: ctypes.CDLL(None).printf(SECRET.encode()),
    "a log record": lambda: logging.getLogger("of the user").critical(SECRET),
    "an error": lambda: (_ for _ in ()).throw(ValueError(SECRET)),
}


@pytest.mark.parametrize("way", list(WAYS))
def test_a_release_prints_nothing(way, capfd, caplog):
    def says(rows):
        if way == "an error" and len(rows) == 3:
            WAYS[way]()
        if way != "an error":
            WAYS[way]()
        return rows.mean(axis=0)

    made = Mechanism(
        Fit("says", Function(says), shape=(1,)), from_arrays(np.arange(6.0)[:, None]), 3, Execution(n_jobs=1)
    )
    member = np.arange(6) % 2 == 1
    value = made.release(member, np.zeros(1), Grid(2.0**-10), np.random.default_rng(0))
    assert np.isnan(value[0]) if way == "an error" else value[0] == 3.0
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []
    for stream, text in ((1, b"out"), (2, b"err")):
        os.write(stream, text)
    print("print")
    logging.getLogger("of the user").critical("logged")
    said = capfd.readouterr()
    assert said.out in ("outprint\n", "print\nout")
    assert "err" in said.err
    assert [record.getMessage() for record in caplog.records] == ["logged"]


def test_what_was_printed_before_is_not_lost(capfd):
    sys.stdout.write("before ")
    with silenced():
        print("within")
    print("after")
    assert capfd.readouterr().out == "before after\n"


def test_no_descriptor_is_left_open():
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(50):
        with silenced():
            pass
    with pytest.raises(KeyboardInterrupt), silenced():
        raise KeyboardInterrupt
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert after == before
