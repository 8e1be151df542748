"""Import paths, and canonical descriptions of objects that are the same in every process."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

import numpy as np

from leakbound.core.checks import one_of
from leakbound.releases import user_modules
from leakbound.releases.source_code import NoCanonicalForm, digest_of, digest_of_classes

Array = np.ndarray
TORCH = "networks need PyTorch; install it with: pip install 'leakbound[torch]'"
# the way of all that neither predicts nor has a loss
OR_SCORE = "or say how it is read by score=fn (--score), a function fn(object, X) that gives each record a number"
# <function f at 0x7f...> and <my_package.Kernel object at 0x7f...>
_ADDRESSED = re.compile(r"<(?:function )?([\w.<>]+)(?: object)? at 0x[0-9a-f]+>")
_ADDRESS = re.compile(r" at 0x[0-9a-f]*")

T = TypeVar("T")


def from_words(kind: type[T], words: Mapping[str, Any], what: str) -> T:
    """Build a frozen value from a mapping of its fields, as in a table of a plan or from repeated flags.

    >>> from leakbound.releases.networks.recipe import Recipe
    >>> from_words(Recipe, {"epochs": 3}, "train").epochs
    3
    """
    for name in words:
        one_of(f"word of {what}", name, list(inspect.signature(kind).parameters))
    return kind(**words)


def keywords_of(function: Any) -> list[str] | None:
    """List the keywords that a function or class takes; None if it takes any, or does not say which."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of a function that is written in C
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_POSITIONAL]


TRUSTED = ("sklearn", "leakbound")  # whose classifiers and regressors a plan may name by itself
_IMPORT_PATH = re.compile(r"[\w.]+:[\w.]+")


@dataclass(frozen=True)
class _Leave:
    """What import paths may lead to."""

    modules: tuple[str, ...]
    typed: frozenset[str]


_LEAVE: ContextVar[_Leave | None] = ContextVar("what import paths may lead to", default=None)


@contextmanager
def only_from(modules: str | Iterable[str] | None = None, typed: Iterable[str] = ()) -> Iterator[None]:
    """Let import paths lead to classifiers and regressors of scikit-learn, and to what the user names.

    Everything else is refused before it is imported; so is an object that a named module only imports itself, as
    ``evil:import_module`` would be. What a named module does when it is imported or called is not checked: name only
    what you trust.

    >>> with only_from():
    ...     imported("os:getcwd")
    Traceback (most recent call last):
        ...
    ValueError: os:getcwd: a plan runs no code but ...; if you trust os: allow_modules (--allow-modules os)
    """
    if modules is None and not typed and _LEAVE.get() is not None:  # a caller of ours has said it
        yield
        return
    named = modules.split(",") if isinstance(modules, str) else list(modules or ())
    names = tuple(name.strip() for name in named if name.strip())
    is_module = [part.isidentifier() for name in names for part in name.split(".")]
    if (modules is not None and not names) or not all(is_module):
        raise ValueError(f"allow_modules names modules, as lightgbm,my_package.nets; got {modules!r}")
    # import paths in what the user typed, as the values of flags, are followed wherever they lead
    before = _LEAVE.set(_Leave(names, frozenset(_IMPORT_PATH.findall(" ".join(typed)))))
    try:
        yield
    finally:
        _LEAVE.reset(before)


def refused_module(path: str) -> str:
    """Name the module that an import path needs leave for, before anything is imported; empty if it needs none."""
    leave, module = _LEAVE.get(), path.partition(":")[0]
    if leave is None or path in leave.typed or is_within(module, (*leave.modules, *TRUSTED)):
        return ""
    return module


def is_within(module: str, names: Iterable[str]) -> bool:
    """Tell whether a module is one of these or below one of them; ``sklearn_extra`` is not below ``sklearn``.

    >>> is_within("sklearn.tree", ["sklearn"]), is_within("sklearn_extra", ["sklearn"])
    (True, False)
    """
    return any(module == name or module.startswith(f"{name}.") for name in names)


def imported(path: str) -> Any:
    """Import the object of a path ``module:name`` that a user gave.

    >>> imported("math:pi")
    3.141592653589793
    """
    module, _, attribute = path.partition(":")
    if not module or not attribute:
        raise ValueError(f"{path!r} is no import path; write module:name, as sklearn.ensemble:RandomForestClassifier")
    if refused := refused_module(path):
        raise ValueError(_needs_leave(path, refused))
    user_modules.may_be_found(module)
    target, leave = own(path), _LEAVE.get()
    home = _home(target, module)
    if leave is None or path in leave.typed or is_within(home, leave.modules) or _is_model(target, home):
        return target
    raise ValueError(_needs_leave(path, module if is_within(home, [module]) else home))


def own(path: str) -> Any:
    """Import the object of a path of leakbound's own, whatever a plan may name; the errors are those of `imported`."""
    module, _, attribute = path.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        why = TORCH if error.name == "torch" else f"cannot be imported: {first_line(error)}"
        raise ValueError(f"{path}: {why}") from None
    except Exception as error:  # the module is the user's: it may raise anything
        raise ValueError(f"{path}: cannot be imported: {first_line(error)}") from None


def canonical(value: Any) -> Any:
    """Convert a parameter to plain JSON that is the same in every process.

    Functions and classes that are not installed come with a digest of all user code that they reach: other code is
    another model. See `leakbound.releases.source_code.digest_of`.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            raise NoCanonicalForm("an array of Python objects has no content that two runs could compare")
        return {"array": value.tolist(), "dtype": value.dtype.str}
    if isinstance(value, (list, tuple)):
        return [canonical(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): canonical(item) for key, item in value.items()}
    # code is named by its module and by the digest of its source
    if inspect.isfunction(value) or inspect.isclass(value):
        return {"import": identity(value)} | _code(value)
    if callable(getattr(value, "get_params", None)):
        return {
            "class": identity(type(value)),
            **_code(type(value)),
            "parameters": {name: canonical(item) for name, item in value.get_params(deep=False).items()},
        }
    raise NoCanonicalForm(f"a parameter of type {type(value).__name__} has no parameters of its own to compare")


def identity(value: Any) -> str:
    """Name a function or class by its module and its own name; those of leakbound itself by their name alone.

    The noise of a ledger depends on it, so that it changes neither when a module of ours moves nor when we are renamed.

    >>> from leakbound.releases.statistics.features import Columns
    >>> identity(Columns)
    'leakscope:Columns'
    """
    is_ours = value.__module__.partition(".")[0] == "leakbound"
    package = "leakscope" if is_ours else value.__module__  # our former name: a part of keys of noise
    return f"{package}:{value.__qualname__}"


def printed(estimator: Any) -> str:
    """Print an estimator as it prints itself, but functions and objects by their names, not by their addresses.

    An address is another one in each process, and a report has the same bytes in all of them.

    >>> from sklearn.preprocessing import FunctionTransformer
    >>> printed(FunctionTransformer(first_line))
    'FunctionTransformer(func=leakbound.releases.specs.first_line)'
    """
    text = repr(estimator)
    if " at 0x" not in text:
        return text
    for function in _functions_in(estimator, set()):
        text = text.replace(repr(function), f"{function.__module__}.{function.__qualname__}")
    text = _ADDRESSED.sub(r"\1", text)
    return _ADDRESS.sub("", text)


def _functions_in(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield the functions among the parameters of an estimator, in lists, mappings and partial functions too."""
    if id(value) in seen:
        return
    seen.add(id(value))
    inner: Iterable[Any] = ()
    if inspect.isfunction(value):
        yield value
    elif inspect.ismethod(value):
        inner = [value.__func__, value.__self__]
    elif isinstance(value, partial):
        inner = [value.func, *value.args, *value.keywords.values()]
    elif isinstance(value, Mapping):
        inner = value.values()
    elif isinstance(value, (list, tuple, set, frozenset)):
        inner = value
    elif not inspect.isclass(value) and callable(getattr(value, "get_params", None)):
        inner = value.get_params(deep=False).values()
    for part in inner:
        yield from _functions_in(part, seen)


def described_inside(release: Any) -> Mapping[str, Any]:
    """Describe a release inside of another one, with the code of its class where that is the user's own."""
    description = release.describe()
    if description is None:
        raise NoCanonicalForm(getattr(release, "not_stored", "") or "it has no description")
    code = digest_of_classes([type(release)])
    return {"release": description, **({} if code is None else {"code": code})}


def versions(packages: set[str]) -> dict[str, str]:
    """Return the versions of distributions, sorted by name; unknown if one is not installed under its name."""
    return {name: _version(name) for name in sorted(packages)}


def is_network(value: Any) -> bool:
    """Tell whether an object, or an instance of a class, is a network of PyTorch, without importing PyTorch."""
    kind = value if inspect.isclass(value) else type(value)
    return any(base.__name__ == "Module" and base.__module__.startswith("torch.nn.") for base in kind.__mro__)


def is_dataset(value: Any) -> bool:
    """Tell whether an object is a data set or a DataLoader of PyTorch, without importing PyTorch."""
    return any(
        base.__name__ in ("Dataset", "DataLoader") and base.__module__.startswith("torch.utils.data.")
        for base in type(value).__mro__
    )


def first_line(error: BaseException) -> str:
    r"""Return the first line of an error's text, with the cause where the text quotes the traceback of another error.

    A search over parameters says first that all fits failed, and why only behind a traceback.

    >>> quoted = "Traceback (most recent call last):\n  File 'tree.py', line 3\ntree.Wrong: max_depth is -1"
    >>> first_line(ValueError(f"All the 6 fits failed.\n{quoted}"))
    'All the 6 fits failed: Wrong: max_depth is -1'
    """
    first, *others = str(error).strip().splitlines() or [type(error).__name__]
    is_traceback = False
    for line in others:
        if line.startswith("Traceback (most recent call last)"):
            is_traceback = True
        elif is_traceback and line and not line[0].isspace():
            name, colon, message = line.partition(": ")
            return f"{first.rstrip('.:')}: {name.rpartition('.')[2]}{colon}{message}"
    return first


def _code(value: Any) -> dict[str, str]:
    """Return the digest of the user code behind a function or class; installed code has a version instead."""
    digest = digest_of(value)
    return {} if digest is None else {"code": digest}


def _needs_leave(path: str, module: str) -> str:
    return (
        f"{path}: a plan runs no code but scikit-learn's models; if you trust {module}: allow_modules "
        f"(--allow-modules {module})"
    )


def _is_model(target: Any, home: str) -> bool:
    """Tell whether an object is a classifier or regressor of scikit-learn, or of ours.

    Their functions are others: some of them remove folders, load pickles or read from the network.
    """
    kind = target if inspect.isclass(target) else type(target)
    marks = {base.__name__ for base in kind.__mro__ if base.__module__ == "sklearn.base"}
    return is_within(home, TRUSTED) and not marks.isdisjoint({"ClassifierMixin", "RegressorMixin"})


def _home(target: Any, module: str) -> str:
    """Return the module that a function, a class, or the class of an object was defined in, if it says so."""
    if inspect.ismodule(target):
        return target.__name__
    if inspect.isclass(target) or inspect.isroutine(target):
        return str(getattr(target, "__module__", None) or module)
    home = type(target).__module__
    # a number or a string belongs to the module that names it, and so does an object of ours, as Loss(fn)
    return module if home == "builtins" or is_within(home, ["leakbound"]) else home


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
