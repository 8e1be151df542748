"""Import paths: from a text to what it names, and from an object to a text that every process reads alike."""

from __future__ import annotations

import hashlib
import inspect
import os
import sysconfig
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from leakscope.checks import one_of

Array = np.ndarray
TORCH = "networks need PyTorch; install it with: pip install 'leakscope[torch]'"


_INSTALLED = tuple({os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "purelib", "platlib")})


class NoCanonicalForm(Exception):
    """A parameter that two runs could not agree on."""


T = TypeVar("T")


def from_words(kind: type[T], words: Mapping[str, Any], what: str) -> T:
    """A frozen value from a mapping of its fields, as a table of a plan or repeated flags give them.

    Parameters
    ----------
    kind : type
        A dataclass.
    words : mapping
    what : str
        How an error calls it.

    Raises
    ------
    ValueError
        For an unknown name, with the nearest known one, and as the class itself.

    Examples
    --------
    >>> from leakscope.releases.recipe import Recipe
    >>> from leakscope.releases.specs import from_words
    >>> from_words(Recipe, {"epochs": 3}, "train").epochs
    3
    """
    for name in words:
        one_of(f"word of {what}", name, list(inspect.signature(kind).parameters))
    return kind(**words)


def imported(path: str) -> Any:
    """What an import path ``module:name`` leads to.

    Raises
    ------
    ValueError
        If it is no path, or cannot be imported; where PyTorch is missing, with the command that installs it.

    Examples
    --------
    >>> from leakscope.releases.specs import imported
    >>> imported("math:pi")
    3.141592653589793
    """
    module, _, attribute = path.partition(":")
    if not module or not attribute:
        raise ValueError(f"{path!r} is no import path; write module:name, as sklearn.ensemble:RandomForestClassifier")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise ValueError(f"{path}: {TORCH if error.name == 'torch' else _not_found(error)}") from None
    except Exception as error:  # the module is the user's: it may raise anything
        raise ValueError(f"{path}: cannot be imported: {first_line(error)}") from None


def canonical(value: Any) -> Any:
    """A parameter as plain JSON that is the same in every process.

    Functions and classes that are not installed come with a digest of their file: who changes it has another model.

    Raises
    ------
    NoCanonicalForm
        For a lambda, a class of ``__main__``, an object without parameters.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            raise NoCanonicalForm
        return {"array": value.tolist(), "dtype": value.dtype.str}
    if isinstance(value, (list, tuple)):
        return [canonical(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): canonical(item) for key, item in value.items()}
    if inspect.isfunction(value) or inspect.isclass(value):
        if value.__module__ == "__main__" or "<" in value.__qualname__:
            raise NoCanonicalForm
        return {"import": f"{value.__module__}:{value.__qualname__}"} | _code(value)
    if callable(getattr(value, "get_params", None)) and type(value).__module__ != "__main__":
        return {
            "class": f"{type(value).__module__}:{type(value).__qualname__}",
            **_code(type(value)),
            "parameters": {name: canonical(item) for name, item in value.get_params(deep=False).items()},
        }
    raise NoCanonicalForm


def versions(packages: set[str]) -> dict[str, str]:
    """Versions of distributions, sorted by name; unknown where one is not installed under its name."""
    return {name: _version(name) for name in sorted(packages)}


def is_network(value: Any) -> bool:
    """Whether an object, or what a class makes, is a network of PyTorch: told without PyTorch."""
    kind = value if inspect.isclass(value) else type(value)
    return any(each.__name__ == "Module" and each.__module__.startswith("torch.nn.") for each in kind.__mro__)


def first_line(error: BaseException) -> str:
    """The first line of an error's text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _code(value: Any) -> dict[str, str]:
    """SHA-256 of the file that defines a function or a class: what is installed has a version, other code has this."""
    try:
        file = inspect.getsourcefile(value)
    except TypeError:  # of Python itself, or compiled
        return {}
    if file is None or not os.path.isfile(file) or os.path.realpath(file).startswith(_INSTALLED):
        return {}
    return {"file": hashlib.sha256(Path(file).read_bytes()).hexdigest()}


def _not_found(error: ModuleNotFoundError) -> str:
    return f"cannot be imported: {first_line(error)}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
