"""Fixtures of the tests of commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leakscope.reports import Report


@pytest.fixture
def without_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures of a page take longer than a small audit: a line stands for it where no test reads it."""

    def to_html(report: Report, path: str | Path | None = None, **words: Any) -> str:
        if path is not None:
            Path(path).write_text("a page", encoding="utf-8")
        return "a page"

    monkeypatch.setattr(Report, "to_html", to_html)
