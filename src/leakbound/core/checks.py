"""One line for every bad value: what was given, what is allowed.

Each function returns the value it was given, so that the check can be written where the value is used.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sized
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike

P = ParamSpec("P")
R = TypeVar("R")
# control characters, marks of direction, line separators, lone surrogates
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]")
_LONGEST_VALUE = 80  # characters of a value in an error


def brief(value: Any) -> str:
    """Show a value in an error: its repr in one line of at most 80 characters, for that of a report is a table.

    >>> brief("lira"), len(brief("lira" * 100))
    ("'lira'", 80)
    """
    text = repr(value)
    if "\n" in text:
        text = " ".join(text.split())
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."


def real(name: str, value: Any) -> float:
    """Check that a value is a finite number, and return it as a float."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, got {brief(value)}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number}")
    return number


def numbers(name: str, values: ArrayLike) -> np.ndarray:
    """Check that values are an array of numbers, and return it as float64; NaN and infinity are allowed."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers, got {reprlib.repr(values)}") from None


def probability(name: str, value: Any, *, open_ends: bool = False) -> float:
    """Check that a value is in [0, 1], or strictly between 0 and 1; see `fraction`.

    >>> probability("prior", 0.5)
    0.5
    """
    return fraction(name, value, above=open_ends, below=open_ends)


def fraction(
    name: str,
    value: Any,
    *,
    least: float = 0.0,
    most: float = 1.0,
    above: bool = False,
    below: bool = False,
) -> float:
    """Check that a value is in [0, 1], or in a part of it.

    A percentage in its place (60 for 0.6) is the commonest mistake, and where 60 was accepted as a limit nothing
    would ever exceed it. The error therefore names the fraction that was meant.

    >>> fraction("accuracy", 0.6)
    0.6
    >>> fraction("accuracy", 60)
    Traceback (most recent call last):
    ValueError: accuracy is a fraction: 60 is out of range; did you mean 0.6? It must be >= 0 and <= 1
    """
    number = real(name, value)
    too_small = number < least or (above and number == least)
    too_large = number > most or (below and number == most)
    if not (too_small or too_large):
        return number
    allowed = f"{'>' if above else '>='} {least:g} and {'<' if below else '<='} {most:g}"
    if meant := of_percentage(number):
        raise ValueError(
            f"{name} is a fraction: {number:g} is out of range; did you mean {meant}? It must be {allowed}"
        )
    raise ValueError(f"{name} must be {allowed}, got {number:g}")


def gain_over_prior(eta: Any, smaller_prior: float) -> float:
    """Check that an eta can be promised: above 0, and below the smaller prior, the largest possible gain."""
    number = real("eta", eta)
    if of_percentage(number):
        fraction("eta", number)
    if not 0 < number < smaller_prior:
        raise ValueError(f"eta must be > 0 and < {smaller_prior:g}, the smaller prior; got {number:g}")
    return number


def of_percentage(number: float) -> str:
    """Return the fraction that a percentage means, ``"0.6"`` for 60; an empty text for other numbers."""
    return f"{number / 100:g}" if 1 < number <= 100 else ""


def positive(name: str, value: Any) -> float:
    """Check that a value is a finite number > 0.

    >>> positive("scale", 2)
    2.0
    """
    number = real(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be > 0, got {number:g}")
    return number


def non_negative(name: str, value: Any, *, infinite: bool = False) -> float:
    """Check that a value is a number >= 0.

    >>> non_negative("epsilon", 0)
    0.0
    """
    if infinite and value == math.inf:
        return math.inf
    number = real(name, value)
    if number < 0:
        raise ValueError(f"{name} must be >= 0, got {number:g}")
    return number


def count(name: str, value: Any, *, least: int = 1) -> int:
    """Check that a value is a whole number, at least ``least``.

    >>> count("n_models", 64.0)
    64
    """
    if isinstance(value, bool) or (not isinstance(value, int) and int(real(name, value)) != value):
        raise ValueError(f"{name} must be a whole number, got {brief(value)}")
    if value < least:
        raise ValueError(f"{name} must be >= {least}, got {value}")
    return int(value)


def same_length(**named: Sized) -> int:
    """Check that the named sequences have the same length, and return it."""
    lengths = {name: len(value) for name, value in named.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError("lengths differ: " + ", ".join(f"{name} has {n:,}" for name, n in lengths.items()))
    return next(iter(lengths.values()))


def one_of(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Check that a value is one of several words.

    >>> one_of("statistic", "mean", ("mean", "sum"))
    'mean'
    """
    words = list(allowed)
    if value in words:
        return str(value)
    raise ValueError(f"unknown {name} {brief(value)}{nearest(str(value), words)}; known: {', '.join(words)}")


OTHER_NAMES = {  # what is called differently elsewhere, or was called so before
    "models": "n_models",
    "jobs": "n_jobs",
    "accuracy": "accuracy",
    "attribute_accuracy": "attribute_accuracy",
}


def nearest(word: str, words: Iterable[str]) -> str:
    """Suggest the nearest word, as `` (did you mean 'lira'?)``.

    >>> nearest("lyra", ["lira", "rmia"])
    " (did you mean 'lira'?)"
    """
    known = list(words)
    others = [other for other, name in OTHER_NAMES.items() if name in known]
    close = difflib.get_close_matches(word, [*known, *others], n=1)
    return f" (did you mean {OTHER_NAMES.get(close[0], close[0])!r}?)" if close else ""


def known_keywords(
    use: Mapping[str, str] = MappingProxyType({}),
    first: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function name the nearest keyword when it is called with one that it does not have.

    >>> @known_keywords()
    ... def bake(flour, *, minutes=30):
    ...     return minutes
    >>> bake("rye", minute=40)
    Traceback (most recent call last):
    TypeError: bake: unknown keyword 'minute' (did you mean 'minutes'?); known: flour, minutes
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        name = getattr(function, "__name__", "the function")
        known = list(inspect.signature(function).parameters)

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            # a first argument that has a function of its own
            if args and isinstance(args[0], str) and args[0] in first:
                raise TypeError(f"{name} takes no {args[0]!r}; use {first[args[0]]}")
            for word in kwargs:
                if word in use and word not in known:
                    raise TypeError(f"{name} takes no {word}; use {use[word]}")
                if word not in known:
                    meant = nearest(word, known)
                    raise TypeError(f"{name}: unknown keyword {word!r}{meant}; known: {', '.join(known)}")
            return function(*args, **kwargs)

        return checked

    return decorated


LONGEST = 300  # characters of an error line


def printable(text: str) -> str:
    r"""Text that a terminal shows and does not obey: escapes, controls and marks of direction as ``\x1b``.

    >>> print(printable("age\x1b[2J \u202egnp.exe"))
    age\x1b[2J \u202egnp.exe
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def visible(text: str) -> str:
    r"""Text of several lines in which controls, marks of direction and lone surrogates are shown by their number.

    >>> print(visible("age\x1b[2J\n\u202egnp.exe"))
    age\x1b[2J
    \u202egnp.exe
    """
    return UNSEEN.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def one_line(text: str, longest: int = LONGEST) -> str:
    """Convert a message to one line that a terminal shows as it is; a long one to its beginning and end.

    >>> one_line("no column 'a'; columns: " + "b, " * 100, longest=40)
    "no column 'a'; columns ... , b, b, b, b,"
    """
    line = printable(" ".join(text.split()))
    if len(line) <= longest:
        return line
    end = longest // 3
    return f"{line[: longest - end - 5]} ... {line[-end:]}"
