"""The code that a class or a function depends on: every user module that it reaches, as it is in this process.

A stored row may be used again only if the code that computed it is the same. Installed packages are identified by their
version. Everything else that a class reaches, its own module, those of its bases and all that they import, is
identified by the SHA-256 of its source and of its live values: functions, classes, and whatever else its functions
name. Imports do not show code that is chosen at run time; if a user module does that, there is no description, and
nothing is stored. What a function reads while it runs is not here, but in `leakbound.runtime.inputs`.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import json
import os
import platform
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.machinery import BYTECODE_SUFFIXES, EXTENSION_SUFFIXES, ModuleSpec
from importlib.metadata import packages_distributions, version
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Literal

from leakbound.files.temporary import process_name
from leakbound.releases.live_values import digest_of_definition, digest_of_value, n_cached
from leakbound.releases.user_modules import spec_in_folder

OWN = "leakbound"  # its version is a part of every key
# Modules that choose the code to run at run time, and names of builtins that do so.
LOADERS = {
    "builtins", "imp", "importlib", "importlib.abc", "importlib.machinery", "importlib.util", "pkgutil", "runpy",
    "zipimport",
}  # fmt: skip
HARMLESS = {"importlib.metadata", "importlib.resources"}
CHOOSING = {"__import__", "exec", "eval", "__loader__"}
CHOOSING_METHODS = {"__import__", "import_module", "exec_module"}
OF_SYS = {"modules", "meta_path", "path_hooks"}
# Names by which functions reach a value whose name is computed.
BY_NAME = {"getattr", "globals", "vars", "__dict__", "attrgetter"}
# Functions that open files without Python's knowledge.
READ_UNSEEN = {
    "read_parquet", "read_feather", "read_orc", "read_hdf", "ParquetFile", "ParquetDataset", "HDFStore", "safe_open",
    "load_file", "scan_parquet", "scan_csv", "memory_map", "netCDF4", "h5py", "pyarrow", "safetensors", "polars",
    "duckdb",
}  # fmt: skip
# of the standard library: Python looks for it on every path, and most installations have none
_ARCHIVE = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
_STANDARD = tuple({os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib")})
_SITES = tuple(
    {
        os.path.realpath(path) + os.sep
        for path in (
            *(sysconfig.get_path(name) for name in ("purelib", "platlib")),
            *site.getsitepackages(),
            site.getusersitepackages(),
        )
    }
)
_OF_PACKAGES = {"site-packages", "dist-packages"}


class NoCanonicalForm(Exception):
    """Something without a form that two runs could compare; the message is the reason that the report prints."""


@dataclass(frozen=True)
class State:
    """A module as it was when something was described that reaches it."""

    module: str
    source: str
    live: str


@dataclass(frozen=True)
class UserCode:
    """The user's modules behind what was described."""

    states: dict[str, State] = field(default_factory=dict)
    process: str = field(default_factory=process_name)  # where they are so
    unseen: set[str] = field(default_factory=set)  # functions that read files in a way that cannot be seen

    @property
    def modules(self) -> list[str]:
        """Their names."""
        return sorted({state.module for state in self.states.values()})

    @property
    def digest(self) -> str:
        """SHA-256 of their states."""
        return _digest({name: [state.source, state.live] for name, state in self.states.items()})


_COLLECTED: ContextVar[UserCode | None] = ContextVar("user code", default=None)


@contextmanager
def user_code() -> Iterator[UserCode]:
    """Collect the user's modules behind all that is described in this context."""
    collected = UserCode()
    token = _COLLECTED.set(collected)
    try:
        yield collected
    finally:
        _COLLECTED.reset(token)
        around = _COLLECTED.get()
        if around is not None:
            around.states.update(collected.states)
            around.unseen.update(collected.unseen)


def other_module(here: UserCode, there: UserCode) -> str:
    """Name a module that is not the same in two processes; empty if all are. One that is not imported may become so."""
    for name, state in there.states.items():
        same = here.states.get(name)
        if same is None or same.source != state.source or (state.live != NOT_IMPORTED and same.live != state.live):
            return state.module
    return ""


@dataclass(frozen=True)
class _Source:
    """What is read in the source of a module."""

    needed: Sequence[str]  # modules that are imported, with full names
    possible: Sequence[str]  # full names of modules, or of something inside of one
    names: frozenset[str]  # that its functions use
    dynamic: str  # what in it chooses code at run time; empty if nothing does


@dataclass
class _Reached:
    """The modules that have been reached."""

    modules: dict[str, str] = field(default_factory=dict)  # SHA-256 of each user module
    libraries: dict[str, str] = field(default_factory=dict)  # version of each distribution
    missing: set[str] = field(default_factory=set)  # imports that find nothing: installing one changes the code
    files: set[str] = field(default_factory=set)  # of the modules
    roots: list[str] = field(default_factory=list)  # digests of what was asked about
    names: set[str] = field(default_factory=set)  # that functions of these modules use
    live: dict[str, dict[str, str]] = field(default_factory=dict)  # of each module: digest of each value that they name
    cached: dict[str, str] = field(default_factory=dict)  # of a module: a function whose cache holds values

    def visit(self, name: str, optional: bool = False) -> None:
        """Follow an import: the packages around the module, then the module."""
        parts = name.split(".")
        if parts[0] == OWN:
            return
        for n_parts in range(1, len(parts) + 1):
            module = ".".join(parts[:n_parts])
            if module in self.modules:
                continue
            if module == "__main__":
                raise NoCanonicalForm("it needs __main__, whose code is not in a module")
            spec = _spec(module)
            if spec is None:
                if not optional:
                    self.missing.add(module)
                return
            kind = _kind(spec)
            if kind == "standard":
                return
            if kind == "installed":  # the version of a library identifies its code
                self.libraries |= _versions(parts[0])
                return
            if kind == "user":
                self.add(module, spec)

    def add(self, name: str, spec: ModuleSpec) -> None:
        """Read a user module and follow its imports."""
        file = str(spec.origin)
        content = _source(name, file)
        self.files.add(os.path.realpath(file))
        self.modules[name] = hashlib.sha256(content).hexdigest()
        package = name if spec.submodule_search_locations is not None else name.rpartition(".")[0]
        try:
            source = _read(content, package)
        except (SyntaxError, ValueError, RecursionError):
            raise NoCanonicalForm(f"{os.path.basename(file)} cannot be read as Python") from None
        if source.dynamic:
            raise NoCanonicalForm(f"{name} uses {source.dynamic}, and which code that runs cannot be read off")
        self.names |= source.names
        for needed in source.needed:
            self.visit(needed)
        for possible in source.possible:
            package, _, last = possible.rpartition(".")
            names = [last] if last != "*" else getattr(sys.modules.get(package), "__all__", ())
            for part in names:
                self.visit(f"{package}.{part}", optional=True)

    def start(self, value: Any) -> None:
        """Follow a function or a class, by name or, where no name leads to it, by content."""
        self.roots.append(digest_of_value(value, self.leads))

    def leads(self, named: Any) -> bool:
        """Follow a function, a class or a module in a value; False if it counts by content.

        That is so for what no name leads to, and for what is part of a class of the user.
        """
        module = named.__name__ if isinstance(named, ModuleType) else named.__module__
        if module not in self.modules:
            if module is not None and module.startswith("namedtuple_"):  # made by Python for a tuple with names
                return False
            if not module or module == "__main__" or _spec(module) is None:
                raise LookupError(module)
            self.visit(module)
            if module not in self.modules:  # not the user's
                return True
        if isinstance(named, ModuleType):
            return True
        if _found(module, named.__qualname__) is not named or "." in named.__qualname__:
            return False
        self.names.add(named.__qualname__)
        return True

    def compare_values(self) -> None:
        """Digest the live values of the modules that functions name, and of the modules to which these lead."""
        n_before = -1
        while n_before != len(self.modules) + len(self.names):
            n_before = len(self.modules) + len(self.names)
            for name in sorted(self.modules):
                module = sys.modules.get(name)
                if module is not None:
                    self._add_values(name, dict(vars(module)))

    def _add_values(self, name: str, values: Mapping[str, Any]) -> None:
        digests = self.live.setdefault(name, {})
        everything = bool(self.names & BY_NAME)
        for variable, value in sorted(values.items()):
            is_named = variable in self.names
            if variable in digests or variable.startswith("__"):
                continue
            if not is_named and (not everything or isinstance(value, ModuleType)):
                continue  # a package has the modules as attributes that anybody has imported
            if n_cached(value) and getattr(value, "__module__", "") == name:
                self.cached[name] = variable
            is_definition = isinstance(value, (type, FunctionType)) and value.__module__ == name
            is_definition = is_definition and value.__qualname__ == variable
            try:
                digests[variable] = (digest_of_definition if is_definition else digest_of_value)(value, self.leads)
            except NoCanonicalForm:
                raise
            except Exception:  # pickling runs code of whatever the value is
                digests[variable] = ""
                if is_named:
                    kind = type(value).__name__
                    raise NoCanonicalForm(f"{name}.{variable} is a {kind}, which two runs cannot compare") from None

    def states(self) -> list[State]:
        """Return the source and the live values of each module."""
        return [State(name, source, _digest(self.live.get(name, {}))) for name, source in self.modules.items()]

    def digest(self) -> str | None:
        """Return the digest of all that was reached; None if no user module was."""
        if not self.modules:
            return None
        self.compare_values()
        states = self.states()
        collected = _COLLECTED.get()
        if collected is not None:
            root = _digest(sorted(self.roots))
            collected.states.update({f"{root} {state.module}": state for state in states})
            collected.unseen.update(self.names & READ_UNSEEN)
        self._refuse_cached_values()
        if "argv" in self.names:
            self.roots.append(_digest(sys.argv))
        facts = {
            "modules": {state.module: [state.source, state.live] for state in states},
            "roots": sorted(self.roots),
            "libraries": self.libraries | {"python": platform.python_version()},
            "missing": sorted(self.missing),
        }
        return _digest(facts)

    def _refuse_cached_values(self) -> None:
        """Refuse values that were cached before what is read was watched."""
        for name, function in self.cached.items():
            raise NoCanonicalForm(
                f"{name}.{function} keeps values (functools.cache), and what they were computed from is not known"
            )


def digest_of(value: Any, main: bool = False) -> str | None:
    """Compute the SHA-256 of all user code that a class or function reaches.

    >>> from json import dumps
    >>> print(digest_of(dumps))
    None
    """
    _refuse_unreachable(value, main)
    reached = _Reached()
    if value.__module__ == "__main__":
        reached.add("__main__", _script())
    reached.start(value)
    if reached.modules and inspect.isfunction(value):
        _refuse_elsewhere(value, reached.files)
    return reached.digest()


def digest_of_classes(kinds: Iterable[type]) -> str | None:
    """Compute the SHA-256 of all user code behind some classes, wherever in their modules they are defined."""
    reached = _Reached()
    for kind in kinds:
        try:
            reached.start(kind)
        except LookupError:
            raise NoCanonicalForm(f"{kind.__qualname__} is defined in {kind.__module__}; move it to a module") from None
    return reached.digest()


def digest_of_modules(names: Iterable[str]) -> str | None:
    """Compute the SHA-256 of all user code that some modules reach, including their own."""
    reached = _Reached()
    for name in sorted(names):
        reached.visit(name)
    return reached.digest()


def _refuse_unreachable(value: Any, main: bool) -> None:
    """Refuse a value that its import path does not lead to: two of them would look the same."""
    name = value.__qualname__
    if "<lambda>" in name:
        raise NoCanonicalForm("a lambda has no name to find it by")
    if "<" in name:
        raise NoCanonicalForm(f"{value.__name__} is defined inside of a function")
    if value.__module__ == "__main__" and not main:
        raise NoCanonicalForm(f"{name} is defined in __main__; move it to a module")
    if _found(value.__module__, name) is not value:
        raise NoCanonicalForm(f"{value.__module__}:{name} leads to something else than the {name} that is used")


def _refuse_elsewhere(function: FunctionType, files: set[str]) -> None:
    """Refuse a function whose code is not in the modules that were read, as one that was assigned later."""
    file = os.path.realpath(function.__code__.co_filename)
    if file not in files and not is_installed(file):
        raise NoCanonicalForm(f"{function.__qualname__} is made by code that its imports do not lead to")


def is_installed(file: str) -> bool:
    """Tell whether a file, with all links followed, belongs to Python or to an installed package."""
    return file.startswith(_STANDARD) or os.path.basename(file) == _ARCHIVE or _of_a_package(file)


def _of_a_package(file: str) -> bool:
    """Tell whether a file is where packages are installed."""
    return file.startswith(_SITES) or bool(_OF_PACKAGES & set(Path(file).parts))


def _script() -> ModuleSpec:
    """Return the file that is run, as a module."""
    file = getattr(sys.modules["__main__"], "__file__", None)
    if file is None or sys.flags.interactive or getattr(sys, "ps1", None) is not None or not os.path.isfile(file):
        raise NoCanonicalForm("it is defined in an interactive session")
    return ModuleSpec("__main__", None, origin=file)


def _spec(name: str) -> ModuleSpec | None:
    """Find a module without importing it; None if there is none."""
    if name in sys.modules:
        module = sys.modules[name]
        if module is None:
            return None
        spec = getattr(module, "__spec__", None)
        return ModuleSpec(name, None, origin=getattr(module, "__file__", "") or "") if spec is None else spec
    # `importlib.util.find_spec` would import the packages around the module, and so run the user's code.
    package = name.rpartition(".")[0]
    path = None
    if package:
        around = _spec(package)
        if around is None or around.submodule_search_locations is None:
            return None
        path = list(around.submodule_search_locations)
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        try:
            spec = None if find is None else find(name, path, None)
        except (ImportError, ValueError, AttributeError):
            continue
        if spec is not None:
            return spec
    return None if package else spec_in_folder(name)  # what a user's module imports later, beside it


def _kind(spec: ModuleSpec) -> Literal["standard", "installed", "namespace", "user"]:
    """Classify a module by where its code comes from."""
    if spec.origin in {"built-in", "frozen"}:
        return "standard"
    if spec.origin is None and spec.submodule_search_locations is not None:
        return "namespace"
    file = os.path.realpath(spec.origin or "")
    if _of_a_package(file):
        return "installed" if _versions(spec.name.partition(".")[0]) else "user"
    return "standard" if file.startswith(_STANDARD) else "user"


def _versions(top: str) -> dict[str, str]:
    """Return the distributions that install a package, with their versions; empty if it was copied there."""
    return {name: version(name) for name in _distributions().get(top, ())}


@lru_cache(maxsize=1)
def _distributions() -> dict[str, list[str]]:
    """Return the distributions that install each package."""
    return {top: sorted(set(names)) for top, names in packages_distributions().items()}


def _source(name: str, file: str) -> bytes:
    """Read the source of a user module."""
    if file.endswith(tuple(EXTENSION_SUFFIXES)):
        raise NoCanonicalForm(f"{name} is compiled ({os.path.basename(file)})")
    if file.endswith(tuple(BYTECODE_SUFFIXES)) or not os.path.isfile(file):
        raise NoCanonicalForm(f"{name} has no source file")
    return Path(file).read_bytes()


@lru_cache(maxsize=1024)
def _read(content: bytes, package: str) -> _Source:
    """Read what a source file imports, wherever in the file, what its functions name, and what in it chooses code."""
    tree = ast.parse(content)
    needed: dict[str, None] = {}
    possible: dict[str, None] = {}
    dynamic: list[str] = []
    names_of_sys = {"sys"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                needed[alias.name] = None
                dynamic += [alias.name] if alias.name in LOADERS else []
                names_of_sys |= {alias.asname or "sys"} if alias.name == "sys" else set()
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(node.module or "", node.level, package)
            full_names = [f"{module}.{alias.name}" for alias in node.names]
            needed[module] = None
            possible.update(dict.fromkeys(full_names))
            dynamic += [name for name in full_names if _is_loader(module, name)]
        elif isinstance(node, ast.Name) and node.id in CHOOSING:
            dynamic.append(node.id)
        elif isinstance(node, ast.Attribute) and node.attr in CHOOSING_METHODS:
            dynamic.append(node.attr)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in OF_SYS and isinstance(node.value, ast.Name):
            dynamic += [f"sys.{node.attr}"] if node.value.id in names_of_sys else []
    # the code of the module itself runs once, when it is imported, and names nothing that a fit reads
    inner = list(_code_objects(compile(tree, "<source>", "exec", dont_inherit=True)))[1:]
    texts = {constant for code in inner for constant in code.co_consts if isinstance(constant, str)}
    names = texts.union(*(code.co_names for code in inner))
    return _Source(tuple(needed), tuple(possible), frozenset(names), dynamic[0] if dynamic else "")


def _code_objects(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and all code objects inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_objects(constant)


def _absolute(module: str, level: int, package: str) -> str:
    """Return the full name of the module of ``from module import name``."""
    try:
        return importlib.util.resolve_name("." * level + module, package) if level else module
    except ImportError:
        raise ValueError("a relative import beyond the top-level package") from None


def _is_loader(module: str, full_name: str) -> bool:
    """Tell whether something that is imported from a module chooses code at run time."""
    name = full_name.rpartition(".")[2]
    return name in CHOOSING or (module == "sys" and name in OF_SYS) or (module in LOADERS and full_name not in HARMLESS)


def _found(module: str, name: str) -> Any:
    """Return what a name leads to; None if to nothing."""
    target: Any = sys.modules.get(module)
    for part in name.split("."):
        target = getattr(target, part, None)
    return target


def _digest(facts: Any) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


NOT_IMPORTED = _digest({})  # live values of a module that functions would import
