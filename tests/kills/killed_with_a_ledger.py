"""``leakbound protect`` with a ledger, killed before the n-th time that it flushes a file or renames one, for some n.

The command runs once before that, without a ledger, so that everything is imported when processes are forked. Each n
has a copy of the folder that is named, called by its number, and a list of ledgers of its own. There the command runs
twice: killed, with ``--out first``, and to its end, with ``--out again``. Copy 0 is killed nowhere. Prints the exit
codes of both, as JSON, for each of the numbers, a list in JSON, up to the first that is never reached.
"""

from __future__ import annotations

import gc
import io
import json
import os
import shutil
import signal
import sys
from contextlib import redirect_stdout, suppress
from itertools import count
from pathlib import Path
from typing import Any

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


def warm_up(folder: Path, words: list[str]) -> None:
    """Import what the command imports."""
    os.chdir(folder)
    place = words.index("--ledger")
    sys.argv = ["leakbound", *words[:place], *words[place + 2 :], "--out", "warm"]
    with suppress(SystemExit), redirect_stdout(io.StringIO()):
        cli.main()
    shutil.rmtree(folder / "warm")


def run(folder: Path, words: list[str], at: int) -> int:
    """The command in a process of its own: its exit code, minus the signal that killed it."""
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")  # or the copies, of the same people, know one another
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        patched(at)
        sys.argv = ["leakbound", *words]
        cli.main()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    Report.to_html = lambda self: "a page"  # its figures would take most of the time
    template, numbers, words = Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:]
    warm_up(template, words)
    gc.freeze()  # or the collections of a forked process copy the memory that it shares
    ended = []
    for at in numbers:
        folder = template.parent / str(at)
        shutil.copytree(template, folder)
        killed = run(folder, [*words, "--out", "first"], at)
        ended.append([killed, run(folder, [*words, "--out", "again"], 0)])
        if at and killed == 0:
            break
    print(json.dumps(ended))
