"""A command as it is called, and what it leaves behind."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from leakscope.cli import main as cli


class Left(NamedTuple):
    """What a command left behind."""

    code: Any
    out: str
    err: str


def caller(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[[str], Left]:
    """From a command line to what it left."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def run(command: str) -> Left:
        monkeypatch.setattr(sys, "argv", ["leakscope", *shlex.split(command)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        return Left(left.value.code, *capfd.readouterr())

    return run


def refused(left: Left, line: str) -> None:
    """One line, exit code 1, nothing on standard output."""
    assert (left.code, left.out) == (1, "")
    assert left.err.startswith(f"leakscope: error: {line}")
    assert left.err.count("\n") == 1
