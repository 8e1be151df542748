"""Marks of single cases of parametrised tests: the cases that take long are run at night, and the others by day."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def nightly(*case: Any, id: str | None = None) -> Any:
    """A case that takes more than a second or so; another case of the same test is run by day."""
    return pytest.param(*case, marks=pytest.mark.nightly, id=id)


def nightly_but(cases: Iterable[Any], *by_day: Any) -> list[Any]:
    """Cases of one value each, nightly but for those by day."""
    return [case if case in by_day else nightly(case) for case in cases]


def slow_but(cases: Iterable[Any], *fast: Any) -> list[Any]:
    """Cases of one value each, slow but for the fast ones, which are run on every change."""
    return [case if case in fast else pytest.param(case, marks=pytest.mark.slow) for case in cases]
