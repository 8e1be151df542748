"""Files, frames, arrays and named data sets, as points with a digest.

The names of this package are imported when they are first used: ``import leakbound`` does not load pandas.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leakbound.data.columns import cells, column, levels, numbers, words
    from leakbound.data.files import NAMED, READERS, arrays_of, load, read
    from leakbound.data.points import Data, from_arrays, join, preview, repeated, rows, shared

_FROM = {
    "columns": ("cells", "column", "levels", "numbers", "words"),
    "files": ("NAMED", "READERS", "arrays_of", "load", "read"),
    "points": ("Data", "from_arrays", "join", "preview", "repeated", "rows", "shared"),
}
_HOME = {name: file for file, names in _FROM.items() for name in names}

__all__ = [
    "NAMED",
    "READERS",
    "Data",
    "arrays_of",
    "cells",
    "column",
    "from_arrays",
    "join",
    "levels",
    "load",
    "numbers",
    "preview",
    "read",
    "repeated",
    "rows",
    "shared",
    "words",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used (PEP 562)."""
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
