"""A plan as TOML, as it can be run again."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml(plan: Mapping[str, Any]) -> str:
    """Nested plain values as TOML 1.0; keys without a value are left out.

    >>> print(toml({"seed": 0, "model": [{"spec": "sklearn.svm:SVC"}]}))
    seed = 0
    <BLANKLINE>
    [[model]]
    spec = "sklearn.svm:SVC"
    """
    return "\n".join(_table(plan, ())).strip("\n")


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    """Values first, then the tables below."""
    present = {key: value for key, value in table.items() if value is not None}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in present.items() if not _is_table(value)]
    for key, value in present.items():
        if not _is_table(value):
            continue
        inner = (*path, key)
        name = ".".join(_key(part) for part in inner)
        for item in [value] if isinstance(value, Mapping) else value:
            lines += ["", f"[{name}]" if isinstance(value, Mapping) else f"[[{name}]]", *_table(item, inner)]
    return lines


def _is_table(value: Any) -> bool:
    if isinstance(value, Mapping):
        return True
    return _is_list(value) and len(value) > 0 and all(isinstance(item, Mapping) for item in value)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items() if item is not None)
        return f"{{ {inside} }}" if inside else "{}"
    if _is_list(value):
        return f"[{', '.join(_value(item) for item in value if item is not None)}]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)
