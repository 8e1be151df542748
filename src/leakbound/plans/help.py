"""What ``help()`` says of the keywords of a call that are the fields of a plan: their types, defaults and meanings.

The meaning of a field is written once, in its plan; the command line prints it, too.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from os import PathLike
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from leakbound.plans.plan import Plan

Function = TypeVar("Function", bound=Callable[..., Any])
_WIDTH = 100
_INDENT = "    "
_OPTIONS = "**options"


def listing_options(
    plan: type[Plan], options: type[Mapping[str, Any]], skip: Collection[str] = ()
) -> Callable[[Function], Function]:
    """Add each option of a function to the description of its ``**options``.

    >>> from leakbound.protection import declare
    >>> print(declare.__doc__.partition("``about`` : ")[2].partition("``k``")[0].splitlines()[0])
    {"every", "average"}, default "every"
    """
    entries = [
        line
        for name, kind in get_type_hints(options).items()
        if name not in skip
        for line in _entry(name, kind, plan.model_fields[name])
    ]

    def described(function: Function) -> Function:
        lines = (inspect.getdoc(function) or "").splitlines()
        places = [place for place, line in enumerate(lines) if line.endswith(_OPTIONS)]
        if places:  # there is no docstring under python -OO
            end = places[0] + 1
            while end < len(lines) and lines[end].startswith(_INDENT):
                end += 1
            function.__doc__ = "\n".join([*lines[:end], "", *entries, *lines[end:]])
        return function

    return described


def _entry(name: str, kind: Any, field: Any) -> list[str]:
    """Write an option as a heading and a sentence, which are indented below ``**options``."""
    heading = f"``{name}`` : {_kind(kind)}{_default(field)}"
    meaning = (field.description or "").strip()
    sentence = f"{meaning[:1].upper()}{meaning[1:]}."
    return [
        f"{_INDENT}{heading}",
        *textwrap.wrap(sentence, _WIDTH, initial_indent=_INDENT * 2, subsequent_indent=_INDENT * 2),
    ]


def _default(field: Any) -> str:
    if field.is_required():
        return ""
    if isinstance(field.default, str) and field.default:
        return f', default "{field.default}"'
    return f", default {field.default!r}" if field.default or field.default is False else ", optional"


def _kind(kind: Any) -> str:
    """Write a type as numpydoc does."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return "{" + ", ".join(f'"{choice}"' for choice in inner) + "}"
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_kind(each) for each in inner if each is not NoneType))
    if origin is Sequence:
        return f"sequence of {_kind(inner[0])}"
    if origin is Mapping:
        return "mapping"
    if origin is PathLike:
        return "path"
    return "any" if kind is Any else kind.__name__
