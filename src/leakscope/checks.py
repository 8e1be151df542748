"""One line for every bad value: what was given, what is allowed.

Each function returns the value it was given, so that a check can stand where the value is used.
"""

from __future__ import annotations

import difflib
import math
import reprlib
from collections.abc import Iterable, Sized
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def real(name: str, value: Any) -> float:
    """A finite number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, got {value!r}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number}")
    return number


def numbers(name: str, values: ArrayLike) -> np.ndarray:
    """An array of numbers, as float64; finite or not."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers, got {reprlib.repr(values)}") from None


def probability(name: str, value: Any, *, open_ends: bool = False) -> float:
    """A number in [0, 1], or strictly between 0 and 1."""
    number = real(name, value)
    if open_ends and not 0 < number < 1:
        raise ValueError(f"{name} must be > 0 and < 1, got {number:g}")
    if not 0 <= number <= 1:
        raise ValueError(f"{name} must be >= 0 and <= 1, got {number:g}")
    return number


def positive(name: str, value: Any) -> float:
    """A finite number > 0."""
    number = real(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be > 0, got {number:g}")
    return number


def non_negative(name: str, value: Any, *, infinite: bool = False) -> float:
    """A number >= 0; infinity is allowed on request."""
    if infinite and value == math.inf:
        return math.inf
    number = real(name, value)
    if number < 0:
        raise ValueError(f"{name} must be >= 0, got {number:g}")
    return number


def count(name: str, value: Any, *, least: int = 1) -> int:
    """A whole number, at least ``least``."""
    if isinstance(value, bool) or (not isinstance(value, int) and int(real(name, value)) != value):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be >= {least}, got {value}")
    return int(value)


def same_length(**named: Sized) -> int:
    """The common length of the named sequences."""
    lengths = {name: len(value) for name, value in named.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError("lengths differ: " + ", ".join(f"{name} has {n:,}" for name, n in lengths.items()))
    return next(iter(lengths.values()))


def one_of(name: str, value: Any, allowed: Iterable[str]) -> str:
    """A word of a list; else an error that names the nearest one."""
    words = list(allowed)
    if value in words:
        return str(value)
    raise ValueError(f"unknown {name} {value!r}{nearest(str(value), words)}; known: {', '.join(words)}")


def nearest(word: str, words: Iterable[str]) -> str:
    """`` (did you mean 'lira'?)``, or nothing where no word is near."""
    close = difflib.get_close_matches(word, list(words), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
