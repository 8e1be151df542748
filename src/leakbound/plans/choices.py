"""Objects for what excludes one another: games, promises, statistics, trainings.

A choice is a frozen dataclass. In Python it is an object, in TOML a table or a name, on the command line its name with
its fields after commas; one class checks all three. Its name is that of its class in snake case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from functools import wraps
from typing import Any, TypeVar, dataclass_transform

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass, is_pydantic_dataclass

from leakbound.core.checks import nearest
from leakbound.plans.plan import first_complaint, settings

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(Field,))
def choice(cls: type[T]) -> type[T]:
    """Make a class a choice: a frozen dataclass of pydantic whose errors are one line.

    Fields after ``_: KW_ONLY`` are given by name alone.

    >>> @choice
    ... class Canaries:
    ...     kind: str = "dirac"
    ...     n: int = 1000
    >>> Canaries("random", n="many")
    Traceback (most recent call last):
        ...
    ValueError: canaries: n: Input should be a valid integer, unable to parse string as an integer, got 'many'
    >>> choose([Canaries], "canaries,n=500", "game") == choose([Canaries], {"canaries": {"n": 500}}, "game")
    True
    >>> flag_of(Canaries(n=500)), table_of(Canaries(n=500))
    ('canaries,n=500', {'canaries': {'n': 500}})
    """
    made = dataclass(frozen=True, config=ConfigDict(extra="forbid"))(cls)
    checked = made.__init__

    @wraps(checked)
    def in_one_line(self: Any, *args: Any, **words: Any) -> None:
        names = [field.name for field in fields(made)]  # pyright: ignore[reportArgumentType] -- it is a dataclass
        for word in words:
            if word not in names:
                raise TypeError(f"{name_of(made)} has no {word}{nearest(word, names)}; it has: {', '.join(names)}")
        by_position = [field.name for field in fields(made) if not field.kw_only]  # pyright: ignore[reportArgumentType]
        if len(args) <= len(by_position) and not words.keys() & {*by_position[: len(args)]}:
            words |= dict(zip(by_position, args, strict=False))  # an error names the field, not its place
            args = ()
        try:
            checked(self, *args, **words)
        except ValidationError as error:
            raise ValueError(f"{name_of(made)}: {first_complaint(error, lambda _: names)}") from None

    made.__init__ = in_one_line
    return made  # pyright: ignore[reportReturnType] -- the class that was given, checked


def name_of(kind: type) -> str:
    """Return the name of a choice: that of its class in snake case, as half_split."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


def choose(kinds: Sequence[type[T]], value: object, what: str) -> T:
    """Read a choice: an object as it is, a text ``name,field=value``, or a table with one key, its name."""
    if isinstance(value, tuple(kinds)):
        return value
    by_name = {name_of(kind): kind for kind in kinds}
    if isinstance(value, str):
        name, _, rest = value.partition(",")
        words = settings(rest, what) if rest else {}
    elif isinstance(value, Mapping) and len(value) == 1:
        ((name, words),) = value.items()
    else:
        raise ValueError(f"{what} must be one of {', '.join(by_name)}, or a table of one of them; got {value!r}")
    if name not in by_name:
        raise ValueError(f"{what} must be one of {', '.join(by_name)}{nearest(name, list(by_name))}; got {name!r}")
    try:
        return by_name[name](**words)
    except TypeError as error:
        raise ValueError(f"{what}: {error}") from None


def fields_of(chosen: Any) -> list[str]:
    """List the names of the fields of a choice."""
    return [field.name for field in fields(chosen)]


def set_fields(chosen: Any) -> dict[str, Any]:
    """Return the fields of a choice that are not at their defaults; a choice in a field by its own fields."""
    changed = {}
    for field in fields(chosen):
        value = getattr(chosen, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if value != default:
            changed[field.name] = set_fields(value) if is_pydantic_dataclass(type(value)) else value
    return changed


def table_of(chosen: Any) -> dict[str, Any]:
    """Write a choice as a table of TOML: its name, and below it the fields that are not at their defaults."""
    return {name_of(type(chosen)): set_fields(chosen)}


def flag_of(chosen: Any) -> str:
    """Write a choice as on the command line: ``canaries,n=500``."""
    parts = [name_of(type(chosen))]
    for name, value in set_fields(chosen).items():
        parts.append(f"{name}={_typed(value)}")
    return ",".join(parts)


def _typed(value: Any) -> str:
    """Write the value of a field as it is typed: several in brackets."""
    if isinstance(value, Mapping):
        value = [f"{name}={inner}" for name, inner in value.items()]
    return f"[{','.join(map(str, value))}]" if isinstance(value, tuple | list) else str(value)
