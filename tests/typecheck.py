"""The shapes and types of annotations, executed: an int may stand for a float, as everywhere in Python.

To make the checks of a function takes milliseconds. They are made when it is first called, and not at all for a
function within a function, which is made anew by every call of the outer one.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

from beartype import BeartypeConf, beartype
from jaxtyping import _import_hook, config, jaxtyped

Function = Callable[..., Any]
executed = beartype(conf=BeartypeConf(is_pep484_tower=True))


def from_the_first_call(function: Function) -> Function:
    """The function with checks, which are made at its first call."""
    made: list[Function] = []

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if config.jaxtyping_disable:
            return function(*args, **kwargs)
        if not made:
            made.append(jaxtyped(function, typechecker=executed))
        return made[0](*args, **kwargs)

    return called


class OuterFunctions(_import_hook.JaxtypingTransformer):
    """What jaxtyping's import hook does, but late, and not for functions within functions."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:  # noqa: N802
        if any(isinstance(parent, ast.FunctionDef) for parent in self._parents):
            return node
        before = len(node.decorator_list)
        node = super().visit_FunctionDef(node)
        for place in range(before, len(node.decorator_list)):
            late = ast.parse(
                f"__import__('{__name__}', fromlist=['']).{from_the_first_call.__name__}", mode="eval"
            ).body
            node.decorator_list[place] = ast.copy_location(late, node)
        return node


_import_hook.JaxtypingTransformer = OuterFunctions
