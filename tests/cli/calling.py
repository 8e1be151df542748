"""A command as it is called, and what it leaves behind."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from leakbound.cli import main as cli
from leakbound.reports import Report


class Left(NamedTuple):
    """What a command left behind."""

    code: Any
    out: str
    err: str


def caller(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[[str], Left]:
    """From a command line to what it left."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def run(command: str) -> Left:
        monkeypatch.setattr(sys, "argv", ["leakbound", *shlex.split(command)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        return Left(left.value.code, *capfd.readouterr())

    return run


def draw_no_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures of a page take longer than a small audit: a line stands for it where no test reads it."""

    def to_html(report: Report, path: str | Path | None = None, records: bool = True, *, publish: bool = False) -> str:
        if path is not None:
            Path(path).write_text("a page", encoding="utf-8")
        return "a page"

    monkeypatch.setattr(Report, "to_html", to_html)


def refused(left: Left, line: str) -> None:
    """One line, exit code 1, nothing on standard output."""
    assert (left.code, left.out) == (1, "")
    assert left.err.startswith(f"leakbound: error: {line}")
    assert left.err.count("\n") == 1
