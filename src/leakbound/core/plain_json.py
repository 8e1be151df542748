"""Values of a JSON file, each checked before it is used: one line names the first value that is wrong.

Each function takes what the error calls the value, and the value as ``json.loads`` returned it. Arrays are bytes in
base 64; their size is compared with the one that is expected before they are decoded, so that no file makes a reader
allocate more memory than the text that it already holds.
"""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any

import numpy as np
from jaxtyping import Num, UInt8

Array = np.ndarray
LONGEST_NAME = 100  # characters
_KINDS = {dict: "a mapping", list: "a list", str: "a text", bool: "a truth value", int: "a number", float: "a number"}


def kind(value: Any) -> str:
    """Name the kind of a JSON value.

    >>> kind({}), kind(True), kind(None)
    ('a mapping', 'a truth value', 'nothing')
    """
    return _KINDS.get(type(value), "nothing")


def mapping(name: str, value: Any, keys: str) -> dict[str, Any]:
    """Check that a value is a mapping with these keys and no others.

    >>> mapping("release", {"scale": 1.0}, "scale d")
    Traceback (most recent call last):
    ValueError: release has no d
    """
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be a mapping, got {kind(value)}")
    missing = [key for key in keys.split() if key not in value]
    if missing:
        raise ValueError(f"{name} has no {missing[0]}")
    if len(value) > len(keys.split()):
        raise ValueError(f"{name} has keys other than {', '.join(keys.split())}")
    return value


def sequence(name: str, value: Any) -> list[Any]:
    """Check that a value is a list."""
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list, got {kind(value)}")
    return value


def text(name: str, value: Any) -> str:
    """Check that a value is a text."""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text, got {kind(value)}")
    return value


def short_text(name: str, value: Any) -> str:
    """Check that a value is a text of 1 to 100 printable letters of ASCII."""
    letters = text(name, value)
    if not 0 < len(letters) <= LONGEST_NAME or not letters.isascii() or not letters.isprintable():
        raise ValueError(f"{name} must be a text of 1 to {LONGEST_NAME} printable letters")
    return letters


def hexadecimal(name: str, value: Any, n_bytes: int) -> str:
    """Check that a value is so many bytes, as lower-case hexadecimal digits.

    >>> hexadecimal("key", "00ff", 2)
    '00ff'
    """
    digits = text(name, value)
    if len(digits) != 2 * n_bytes or not set(digits) <= set("0123456789abcdef"):
        raise ValueError(f"{name} must be {n_bytes:,} bytes, as {2 * n_bytes:,} hexadecimal digits")
    return digits


def truth(name: str, value: Any) -> bool:
    """Check that a value is true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, got {kind(value)}")
    return value


def whole_number(name: str, value: Any, least: int) -> int:
    """Check that a value is a whole number from ``least`` to 2^63 - 1."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} must be a whole number, got {kind(value)}")
    if not least <= value < 2**63:
        raise ValueError(f"{name} must be from {least} to 2^63 - 1")
    return value


def non_negative(name: str, value: Any) -> float:
    """Check that a value is a finite number >= 0.

    >>> non_negative("reserve", -1)
    Traceback (most recent call last):
    ValueError: reserve must be >= 0 and finite
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a number, got {kind(value)}")
    if not 0 <= value <= 1e308:  # a whole number of 400 digits is no float
        raise ValueError(f"{name} must be >= 0 and finite")
    return float(value)


def positive(name: str, value: Any) -> float:
    """Check that a value is a finite number > 0."""
    if isinstance(value, int | float) and value <= 0 and not isinstance(value, bool):
        raise ValueError(f"{name} must be > 0 and finite")
    return non_negative(name, value)


def encoded(array: Num[Array, "*shape"], dtype: str) -> str:
    """Write an array as the base 64 of its bytes in C order.

    >>> written = encoded(np.array([[0.5, np.inf]]), "<f8")
    >>> decoded("mu", written, (1, 2), "<f8")
    array([[0.5, inf]])
    """
    return base64.b64encode(np.ascontiguousarray(array, dtype=dtype).tobytes()).decode()


def decoded(name: str, value: Any, shape: tuple[int, ...], dtype: str) -> Num[Array, "*shape"] | UInt8[Array, "*shape"]:
    """Read an array that `encoded` wrote."""
    packed = text(name, value)
    number = np.dtype(dtype)
    n_bytes = number.itemsize * math.prod(shape)
    if len(packed) != 4 * -(-n_bytes // 3):
        raise ValueError(f"{name} must be {' x '.join(f'{size:,}' for size in shape)} numbers in base 64")
    try:
        content = base64.b64decode(packed, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"{name} must be in base 64") from None
    if len(content) != n_bytes:
        raise ValueError(f"{name} must be {n_bytes:,} bytes in base 64")
    return np.frombuffer(content, number).astype(number.newbyteorder("=")).reshape(shape)
