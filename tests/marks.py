"""Marks of single cases of parametrised tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def slow(*case: Any, id: str | None = None) -> Any:
    """A case that takes more than a second or so."""
    return pytest.param(*case, marks=pytest.mark.slow, id=id)


def slow_but(cases: Iterable[Any], *fast: Any) -> list[Any]:
    """Cases of one value each, slow but for the fast ones."""
    return [case if case in fast else slow(case) for case in cases]
