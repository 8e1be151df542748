"""The shapes and types of annotations, executed: an int may stand for a float, as everywhere in Python.

To make the checks of a function takes milliseconds. They are made when it is first called, and not at all for a
function within a function, which is made anew by every call of the outer one. In each process the first calls of a
public function, and the first objects of a dataclass, are checked. LEAKBOUND_CHECK_ANNOTATIONS=all checks every call of
every function, as .ci/nightly does in all tests, and =none checks nothing, as .ci/run does in the slow ones, which call
what the fast ones call.

beartype makes the checks. Sizes of one name must be the same within a call, which jaxtyping sees to; the functions
without shapes, three of four, are checked by beartype alone.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import math
import os
from collections.abc import Callable
from typing import Any, get_args, get_type_hints

from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray, TypeCheckError, _import_hook, config, jaxtyped

Function = Callable[..., Any]
executed_late = beartype(conf=BeartypeConf(is_pep484_tower=True, violation_type=TypeCheckError))
all_executed = first_executed = executed_late  # by these names jaxtyping tells apart what it has compiled
WHICH = os.environ.get("LEAKBOUND_CHECK_ANNOTATIONS", "first")  # or all, or none
CALLS = {"all": math.inf, "first": 10, "none": 0}[WHICH]


def has_shapes(hint: Any) -> bool:
    """Whether an annotation, or a part of it, is an array with a shape."""
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return True
    return any(has_shapes(part) for part in get_args(hint))


def with_checks(function: Function) -> Function:
    """The function, which raises an error where its arguments or its result are not what the annotations say."""
    slowly = functools.partial(jaxtyped, function, typechecker=executed_late)
    if inspect.isgeneratorfunction(function):  # what it yields belongs to no call
        return slowly()
    try:
        hints = get_type_hints(function).values()
    except Exception:  # a name of type checkers alone, say: jaxtyping leaves out what is no annotation
        return slowly()
    checked = executed_late(function)
    if not any(has_shapes(hint) for hint in hints):
        return checked

    def with_sizes(*args: Any, **kwargs: Any) -> Any:
        with jaxtyped("context"):  # the sizes of this call
            return checked(*args, **kwargs)

    return with_sizes


def from_the_first_call(function: Function) -> Function:
    """The function with checks, which are made at its first call."""
    checked: Function | None = None
    n_calls = 0

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        nonlocal checked, n_calls
        if n_calls >= CALLS or config.jaxtyping_disable:
            return function(*args, **kwargs)
        n_calls += 1
        if checked is None:
            checked = with_checks(function)
        return checked(*args, **kwargs)

    return called


def from_the_first_object(made: Any) -> Any:
    """A class, whose objects are checked when they are made if it is a dataclass."""
    init = vars(made).get("__init__")
    if dataclasses.is_dataclass(made) and init is not None and not hasattr(init, "__wrapped__"):
        made.__init__ = from_the_first_call(init)
    return made


class OuterFunctions(_import_hook.JaxtypingTransformer):
    """What jaxtyping's import hook does, but late, and not for functions within functions."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:  # noqa: N802
        is_inner = any(isinstance(parent, ast.FunctionDef) for parent in self._parents)
        if is_inner or (is_private(node.name) and WHICH != "all"):
            return node
        before = len(node.decorator_list)
        node = super().visit_FunctionDef(node)
        for place in range(before, len(node.decorator_list)):
            node.decorator_list[place] = late(from_the_first_call, node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:  # noqa: N802
        after = len(node.decorator_list)
        node = super().visit_ClassDef(node)
        for place in range(len(node.decorator_list) - after):
            node.decorator_list[place] = late(from_the_first_object, node)
        return node


def is_private(name: str) -> bool:
    """Whether a function is for its own module alone, and called by a public one that is checked."""
    return name.startswith("_") and not name.startswith("__")


def late(decorator: Function, node: ast.AST) -> ast.expr:
    """The decorator of this module, as an expression at a place of a source."""
    found = ast.parse(f"__import__('{__name__}', fromlist=['']).{decorator.__name__}", mode="eval").body
    return ast.copy_location(found, node)


_import_hook.JaxtypingTransformer = OuterFunctions
