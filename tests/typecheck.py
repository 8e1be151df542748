"""The shapes and types of annotations, executed: an int may stand for a float, as everywhere in Python.

To make the checks of a function takes milliseconds. They are made when it is first called, and not at all for a
function within a function, which is made anew by every call of the outer one. In each test the first calls of a
function are checked. With LEAKSCOPE_CHECK_EVERY_CALL=1 all of them are, as in the nightly tests.
"""

from __future__ import annotations

import ast
import functools
import math
import os
from collections.abc import Callable
from typing import Any

from beartype import BeartypeConf, beartype
from jaxtyping import _import_hook, config, jaxtyped

Function = Callable[..., Any]
executed = beartype(conf=BeartypeConf(is_pep484_tower=True))
CALLS_PER_TEST = math.inf if os.environ.get("LEAKSCOPE_CHECK_EVERY_CALL") == "1" else 2
n_tests_begun = 0  # counted by a fixture in conftest.py


def from_the_first_call(function: Function) -> Function:
    """The function with checks, which are made at its first call."""
    checked: Function | None = None
    test, n_calls = -1, 0

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        nonlocal checked, test, n_calls
        if test != n_tests_begun:
            test, n_calls = n_tests_begun, 0
        if config.jaxtyping_disable or n_calls >= CALLS_PER_TEST:
            return function(*args, **kwargs)
        n_calls += 1
        if checked is None:
            checked = jaxtyped(function, typechecker=executed)
        return checked(*args, **kwargs)

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
