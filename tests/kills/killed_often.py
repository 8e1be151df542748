"""Commands that are ended by a signal, one after another, each in a process that is forked from this one.

Standard input is a list of runs in JSON, each with the words of the command, its folder, the seconds that a fit rests,
a signal, and when to send it: ``write``, in the n-th write of a chunk, between write and link; or ``chunks`` and
``seconds``, so long after so many chunks are there; or ``share``, that part of the time that the first run took. The
first run has no signal. Everything is imported before, by a run of the command that the arguments of this script are.
Prints a list in JSON: for each run its exit code, minus the signal that killed it, and what it wrote to standard output
and error.
"""

from __future__ import annotations

import gc
import io
import json
import os
import sys
import time
from contextlib import redirect_stderr, suppress
from itertools import count
from pathlib import Path
from typing import Any

from leakbound.cli import main as cli

LINK = os.link


def killed_in_write(at: int, number: int) -> None:
    """From now on the n-th call never comes back."""
    calls = count(1)

    def link(source: Any, target: Any) -> None:
        is_chunk = Path(target).suffix == ".npz"  # and nothing beside it
        if is_chunk and next(calls) == at:
            os.kill(os.getpid(), number)
        LINK(source, target)

    os.link = link


def forked(run: dict[str, Any], said: Path) -> int:
    """The command in a process of its own; returns its number."""
    child = os.fork()
    if child:
        return child
    os.chdir(run["folder"])
    written = os.open(said, os.O_WRONLY | os.O_CREAT)
    os.dup2(written, 1)
    os.dup2(written, 2)
    os.environ["JOBLIB_SLOW_TREE_SECONDS"] = str(run["pause"])
    if "write" in run:
        killed_in_write(run["write"], run["signal"])
    sys.argv = ["leakbound", *run["words"], "--n-jobs", "1", "--store", "store"]
    code = 0
    try:
        cli.main()
    except SystemExit as left:
        code = int(left.code or 0)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def ended(run: dict[str, Any], said: Path, whole: float) -> list[Any]:
    """What became of a run."""
    start = time.monotonic()
    child = forked(run, said)
    if "share" in run:
        time.sleep(run["share"] * whole)
        os.kill(child, run["signal"])
    elif "chunks" in run:
        while len(list(Path(run["folder"], "store").glob("*.npz"))) < run["chunks"]:
            time.sleep(0.005)
            assert time.monotonic() < start + 60, "waited in vain"
        time.sleep(run["seconds"])
        os.kill(child, run["signal"])
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said.read_text()]


def warm_up() -> None:
    """Import what commands import."""
    with suppress(SystemExit), redirect_stderr(io.StringIO()):
        cli.main()


if __name__ == "__main__":
    runs = json.load(sys.stdin)
    warm_up()
    gc.freeze()  # or the collections of a forked process copy the memory that it shares
    results, seconds = [], 0.0
    for number, each in enumerate(runs):
        begun = time.monotonic()
        results.append(ended(each, Path(f"said{number}").resolve(), seconds))
        seconds = seconds or time.monotonic() - begun
    print(json.dumps(results))
