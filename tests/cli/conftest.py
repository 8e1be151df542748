"""Fixtures of the tests of commands."""

from __future__ import annotations

import pytest

from tests.cli.calling import draw_no_pages


@pytest.fixture
def without_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that read no page."""
    draw_no_pages(monkeypatch)
