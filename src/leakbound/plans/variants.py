"""Variants of one model: a grid of its parameters, each point of which is a release of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from leakbound.core.checks import one_of
from leakbound.core.parameter_names import short_names
from leakbound.plans.plan import constant, named_lists

MOST = 32  # variants of an audit: each of them is fitted as often as there are models
PARTS = ("set", "train", "dpsgd")  # tables of a model, by which a name may begin: train.epochs


@dataclass(frozen=True)
class Variant:
    """One point of the grid."""

    name: str
    set: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    dpsgd: Mapping[str, Any] = field(default_factory=dict)


def parsed(texts: Sequence[str], flag: str = "--vary") -> dict[str, tuple[Any, ...]]:
    """Read ``max_depth=3,5,none`` as a name and its values.

    >>> parsed(["max_depth=3,5,none", "criterion=gini,entropy"])
    {'max_depth': (3, 5, None), 'criterion': ('gini', 'entropy')}
    """
    grid: dict[str, tuple[Any, ...]] = {}
    for text in texts:
        for name, values in named_lists(text, flag).items():
            if name in grid:
                raise ValueError(f"{flag} gives {name} twice; write all of its values at once: {name}=a,b,c")
            grid[name] = tuple(constant(value) for value in values)
    return grid


def variants(grid: Mapping[str, Sequence[Any]], *, private: bool = False) -> list[Variant]:
    """List the points of a grid: every combination of the values, the last parameter changing fastest.

    >>> [variant.name for variant in variants({"max_depth": [3, None]})]
    ['max_depth=3', 'max_depth=none']
    >>> variants({"noise_multiplier": [0.5, 1.0]}, private=True)[0].dpsgd
    {'noise_multiplier': 0.5}
    """
    for name, values in grid.items():
        check_values(name, values)
    combinations = list(product(*grid.values()))
    if len(combinations) > MOST:
        raise ValueError(
            f"vary has {len(combinations)} combinations, each with its own models; allowed: at most {MOST}"
        )
    # private: a name without a table is a parameter of DP-SGD, else of the model
    return [_variant(dict(zip(grid, values, strict=True)), private) for values in combinations]


def check_values(name: str, values: Any) -> None:
    """Check the values of one parameter.

    >>> check_values("max_depth", [3, None])
    """
    if isinstance(values, str | Mapping) or not isinstance(values, Sequence):
        raise ValueError(f"vary needs a list of values of {name}, got {values!r}")
    for value in values:
        if value is not None and not isinstance(value, bool | int | float | str):
            raise ValueError(
                f"vary takes numbers, truth values, texts and None, got a {type(value).__name__} of {name}"
            )
    if len({_written(value) for value in values}) < max(len(values), 2):
        raise ValueError(f"vary needs at least 2 different values of {name}, got {tuple(values)!r}")


def _variant(point: Mapping[str, Any], private: bool) -> Variant:
    tables: dict[str, dict[str, Any]] = {part: {} for part in PARTS}
    for name, value in point.items():
        table, dot, parameter = name.partition(".")
        if not dot:
            table, parameter = "dpsgd" if private else "set", name
        one_of("table of vary", table, PARTS)
        if table == "dpsgd" and not private:
            raise ValueError(f"vary changes {parameter} of DP-SGD, and the model is trained without it")
        if table == "train" and private:
            raise ValueError(f"vary changes {parameter} of train, and the model is trained by DP-SGD")
        tables[table][parameter] = value
    names = short_names(list(point))
    name = ", ".join(f"{names[name]}={_written(value)}" for name, value in point.items())
    return Variant(name, **tables)


def _written(value: Any) -> str:
    """Write a value as it would be typed."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return str(value)
