"""The public face of what needs PyTorch: the same checks as elsewhere."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module

import pytest

from tests.test_public import OF_TORCH
from tests.test_public import test_public_things_have_docstrings as check

PACKAGES = ("leakbound.releases.networks", "leakbound.dpsgd")


def _public() -> Iterator[tuple[str, object]]:
    for package in PACKAGES:
        for information in pkgutil.iter_modules(import_module(package).__path__, f"{package}."):
            module = import_module(information.name)
            for name, value in vars(module).items():
                own = getattr(value, "__module__", "") == module.__name__
                if own and not name.startswith("_") and (inspect.isfunction(value) or inspect.isclass(value)):
                    yield f"{module.__name__}.{name}", value


PUBLIC = dict(_public())


def test_all_of_them_are_looked_at():
    modules = {name.rpartition(".")[0].removeprefix("leakbound.") for name in PUBLIC}
    assert {"releases.networks.network", "releases.networks.ensemble", "dpsgd.network", "dpsgd.observer"} <= modules


@pytest.mark.parametrize("name", PUBLIC)
def test_things_of_networks_have_docstrings(name):
    assert inspect.getdoc(PUBLIC[name])
    if name.rpartition(".")[2] in OF_TORCH:
        check(name, PUBLIC[name])
