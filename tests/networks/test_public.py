"""The public face of what needs PyTorch: the same checks as elsewhere."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module

import pytest

from tests.test_layers import PACKAGE, top_level_imports
from tests.test_public import test_public_things_have_docstrings as check

ROOM = "leakscope.releases"


def _modules() -> list[str]:
    """Files of the room that import PyTorch, or a file that does."""
    trees = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in (PACKAGE / "releases").glob("*.py")}
    imported = {name: set(top_level_imports(tree)) for name, tree in trees.items()}
    found = {name for name, names in imported.items() if any(each.split(".")[0] == "torch" for each in names)}
    while True:
        more = {
            name
            for name, names in imported.items()
            if name not in found and any(each.startswith(f"{ROOM}.{inner}.") for each in names for inner in found)
        }
        if not more:
            return sorted(found)
        found |= more


def _public() -> Iterator[tuple[str, object]]:
    for name in _modules():
        module = import_module(f"{ROOM}.{name}")
        for each, value in vars(module).items():
            own = getattr(value, "__module__", "") == module.__name__
            if own and not each.startswith("_") and (inspect.isfunction(value) or inspect.isclass(value)):
                yield f"{name}.{each}", value


def test_all_of_them_are_looked_at():
    assert {"network", "private", "ensemble", "gradients", "steps", "tensors", "clipping"} <= set(_modules())
    assert not {"recipe", "specs", "dpsgd", "estimator"} & set(_modules())


@pytest.mark.parametrize(("name", "value"), list(_public()), ids=[name for name, _ in _public()])
def test_public_things_of_networks_have_docstrings(name, value):
    check(name, value)
