"""``leakbound protect`` that is killed before the n-th time that it flushes a file or renames one.

Takes a list in JSON of cases: the number n, the folder in which the command runs, and its words. The command runs once
before that, so that everything is imported when processes are forked. Each case is a process of its own, whose
standard output goes to the file ``said`` in the folder. Prints the exit codes as JSON, minus the signal that killed.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.reports.made_protected import means, published

from leakbound.cli import main as cli
from leakbound.reports import Report

FLUSH, RENAME = os.fsync, os.replace


def patched(at: int) -> None:
    """From now on the n-th call of either never comes back."""
    calls = count(1)

    def dies() -> None:
        if next(calls) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def fsync(file: int) -> None:
        dies()
        FLUSH(file)

    def replace(source: Any, target: Any) -> None:
        dies()
        RENAME(source, target)

    os.fsync, os.replace = fsync, replace


def protect_file(plan: Any, before: Any, publish: Any, **words: Any) -> SimpleNamespace:
    """A release whose bytes are known."""
    before()
    publish(published(), means())
    return SimpleNamespace(certificate=published(), owner=means())


def run(at: int, folder: Path, words: list[str]) -> int:
    """The command in a process of its own: its exit code, minus the signal that killed it."""
    folder.mkdir()
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        os.dup2(os.open("said", os.O_WRONLY | os.O_CREAT), 1)
        patched(at)
        sys.argv = ["leakbound", *words]
        with suppress(SystemExit):
            cli.main()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    Report.to_html = lambda self: "a page"  # its figures would take most of the time
    sys.modules["leakbound.protection"] = SimpleNamespace(protect_file=protect_file)  # pyright: ignore[reportArgumentType]
    cases = json.loads(sys.argv[1])
    before, sys.argv = os.getcwd(), ["leakbound", *cases[0][2]]
    Path("warm").mkdir()
    os.chdir("warm")
    silent, out = os.open(os.devnull, os.O_WRONLY), os.dup(1)
    os.dup2(silent, 1)
    with suppress(SystemExit):
        cli.main()
    sys.stdout.flush()
    os.dup2(out, 1)
    os.chdir(before)
    gc.freeze()  # or the collections of a forked process copy the memory that it shares
    print(json.dumps([run(at, Path(folder), words) for at, folder, words in cases]))
