"""``leakscope protect`` that is killed before the n-th time that it flushes a file or renames one."""

from __future__ import annotations

import os
import signal
import sys
from itertools import count
from types import SimpleNamespace
from typing import Any

from tests.reports.made_protected import means, published

from leakscope.cli import main as cli

AT = int(sys.argv.pop(1))
calls, flush, rename = count(1), os.fsync, os.replace


def dies() -> None:
    """The n-th call never comes back."""
    if next(calls) == AT:
        os.kill(os.getpid(), signal.SIGKILL)


def fsync(file: int) -> None:
    """Or dies."""
    dies()
    flush(file)


def replace(source: Any, target: Any) -> None:
    """Or dies."""
    dies()
    rename(source, target)


def protect_file(before: Any, publish: Any, **words: Any) -> SimpleNamespace:
    """A release whose bytes are known."""
    before()
    publish(published(), means())
    return SimpleNamespace(certificate=published(), owner=means())


if __name__ == "__main__":
    sys.modules["leakscope.protection"] = SimpleNamespace(protect_file=protect_file)  # pyright: ignore[reportArgumentType]
    os.fsync, os.replace = fsync, replace
    cli.main()
