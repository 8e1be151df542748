"""``leakscope`` that kills its own process group in the n-th write of a chunk, between write and rename."""

from __future__ import annotations

import os
import signal
import sys
from itertools import count

from leakscope.cli import main as cli

AT = int(sys.argv.pop(1))
calls, rename = count(1), os.replace


def replace(source: str, target: str) -> None:
    """The n-th call never comes back."""
    if next(calls) == AT:
        os.killpg(0, signal.SIGKILL)
    rename(source, target)


if __name__ == "__main__":
    os.replace = replace
    cli.main()
