"""The code that a class or a function depends on: every user module that its source files import.

A stored row may be used again only if the code that computed it is the same. Installed packages are identified by their
version. Everything else that a class reaches, its own module, those of its bases and all that they import, is
identified by the SHA-256 of its source. Imports do not show code that is chosen at run time; if a user module does
that, there is no description, and nothing is stored.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import json
import os
import pkgutil
import platform
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.machinery import BYTECODE_SUFFIXES, EXTENSION_SUFFIXES, ModuleSpec, SourceFileLoader
from importlib.metadata import packages_distributions, version
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Literal

from leakscope.releases.user_modules import spec_in_folder

OWN = "leakscope"  # its version is a part of every key
# Modules that choose the code to run at run time, and names of builtins that do so.
LOADERS = {
    "builtins", "imp", "importlib", "importlib.abc", "importlib.machinery", "importlib.util", "pkgutil", "runpy",
    "zipimport",
}  # fmt: skip
HARMLESS = {"importlib.metadata", "importlib.resources"}
CHOOSING = {"__import__", "exec", "eval", "__loader__"}
OF_SYS = {"modules", "meta_path", "path_hooks"}
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
class _Imports:
    """The imports of a source file.

    Parameters
    ----------
    needed : sequence of str
        Modules that are imported, with full names.
    possible : sequence of str
        Names that are modules or something inside of one.
    starred : sequence of str
        Modules of which all names are imported.
    dynamic : str
        What in it chooses code at run time; empty if nothing does.
    """

    needed: Sequence[str]
    possible: Sequence[str]
    starred: Sequence[str]
    dynamic: str


@dataclass
class _Reached:
    """The modules that have been reached."""

    modules: dict[str, str] = field(default_factory=dict)  # SHA-256 of each user module
    libraries: dict[str, str] = field(default_factory=dict)  # version of each distribution
    missing: set[str] = field(default_factory=set)  # imports that find nothing: installing one changes the code
    files: set[str] = field(default_factory=set)  # of the modules

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
            imports = _imports(content, package)
        except (SyntaxError, ValueError, RecursionError):
            raise NoCanonicalForm(f"{os.path.basename(file)} cannot be read as Python") from None
        if imports.dynamic:
            raise NoCanonicalForm(f"{name} uses {imports.dynamic}, and which code that runs cannot be read off")
        _refuse_changed(name, spec, content)
        for needed in imports.needed:
            self.visit(needed)
        for possible in imports.possible:
            self.visit(possible, optional=True)
        for starred in imports.starred:
            self.visit_all(starred)

    def digest(self) -> str | None:
        """Return the digest of all that was reached; None if no user module was."""
        if not self.modules:
            return None
        facts = {
            "modules": self.modules,
            "libraries": self.libraries | {"python": platform.python_version()},
            "missing": sorted(self.missing),
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def visit_all(self, package: str) -> None:
        """Follow ``from package import *``, which may import each of its modules."""
        spec = _spec(package)
        if spec is not None and _kind(spec) in {"user", "namespace"} and spec.submodule_search_locations is not None:
            for submodule in pkgutil.iter_modules(list(spec.submodule_search_locations)):
                self.visit(f"{package}.{submodule.name}", optional=True)


def digest_of(value: Any, main: bool = False) -> str | None:
    """Compute the SHA-256 of all user code that a class or function reaches.

    Parameters
    ----------
    value : class or function
    main : bool
        Whether the script that is run, ``__main__``, may be the module of the value.

    Returns
    -------
    str or None
        Of the sources of all user modules that are reached, the versions of the installed packages that they import,
        and the version of Python; None if the value and its bases are all installed.

    Raises
    ------
    NoCanonicalForm
        With the reason, if the value is not what its import path leads to, or its code cannot be followed: it is
        interactive, compiled, without source, changed since it was imported, or chooses code at run time.

    Examples
    --------
    >>> from json import dumps
    >>> from leakscope.releases.source_code import digest_of
    >>> print(digest_of(dumps))
    None
    """
    _refuse_unreachable(value, main)
    reached = _Reached()
    for module in _modules_of(value):
        if module == "__main__":
            reached.add(module, _script())
        else:
            reached.visit(module)
    if reached.modules and inspect.isfunction(value):
        _refuse_elsewhere(value, reached.files)
    return reached.digest()


def digest_of_classes(kinds: Iterable[type]) -> str | None:
    """Compute the SHA-256 of all user code behind some classes, wherever in their modules they are defined.

    Parameters
    ----------
    kinds : iterable of type

    Returns
    -------
    str or None
        As of `digest_of`.

    Raises
    ------
    NoCanonicalForm
        As `digest_of`, except that a class may be defined inside of a function.
    """
    return digest_of_modules({module for kind in kinds for module in _modules_of(kind)})


def digest_of_modules(names: Iterable[str]) -> str | None:
    """Compute the SHA-256 of all user code that some modules reach, including their own.

    Parameters
    ----------
    names : iterable of str
        Full names.

    Returns
    -------
    str or None
        As of `digest_of`.

    Raises
    ------
    NoCanonicalForm
        If the code cannot be followed.
    """
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
    target: Any = sys.modules.get(value.__module__)
    for part in name.split("."):
        target = getattr(target, part, None)
    if target is not value:
        raise NoCanonicalForm(f"{value.__module__}:{name} leads to something else than the {name} that is used")


def _refuse_elsewhere(function: FunctionType, files: set[str]) -> None:
    """Refuse a function whose code is not in the modules that were read, as one that was assigned later."""
    file = os.path.realpath(function.__code__.co_filename)
    if file not in files and not _of_a_package(file) and not file.startswith(_STANDARD):
        raise NoCanonicalForm(f"{function.__qualname__} is made by code that its imports do not lead to")


def _of_a_package(file: str) -> bool:
    """Tell whether a file is where packages are installed."""
    return file.startswith(_SITES) or bool(_OF_PACKAGES & set(Path(file).parts))


def _modules_of(value: Any) -> list[str]:
    """List the modules that define a function, or a class with its bases and metaclass."""
    if not inspect.isclass(value):
        return [value.__module__]
    kinds = [*value.__mro__, *type(value).__mro__]
    return list(dict.fromkeys(kind.__module__ for kind in kinds))


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
def _imports(content: bytes, package: str) -> _Imports:
    """Read what a source file imports, wherever in the file."""
    tree, reader = ast.parse(content), _ImportReader(package)
    reader.visit(tree)
    for chain in _chains(tree):
        reader.follow(chain)
    needed, possible = dict.fromkeys(reader.needed), dict.fromkeys(reader.possible)
    return _Imports(tuple(needed), tuple(possible), tuple(reader.starred), reader.dynamic)


class _ImportReader(ast.NodeVisitor):
    """Collects the imports of a tree.

    Parameters
    ----------
    package : str
        Of the file, for relative imports.
    """

    def __init__(self, package: str) -> None:
        self.package = package
        self.needed: list[str] = []
        self.possible: list[str] = []
        self.starred: list[str] = []
        self.bound: dict[str, str] = {}  # local names of modules, or of what may be one
        self.dynamic = ""  # the first thing that reading cannot follow

    def visit_Import(self, node: ast.Import) -> None:
        """Read ``import a.b as c``."""
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self.needed.append(alias.name)
            self.bound[alias.asname or top] = alias.name if alias.asname else top
            self._refuse(alias.name, alias.name in LOADERS)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Read ``from a import b as c``; the name may be a module or something in one."""
        module = _absolute(node, self.package)
        self.needed.append(module)
        for alias in node.names:
            full = f"{module}.{alias.name}"
            if alias.name == "*":
                self.starred.append(module)
                continue
            self.possible.append(full)
            self.bound[alias.asname or alias.name] = full
            loader = module in LOADERS and full not in HARMLESS
            of_sys = module == "sys" and alias.name in OF_SYS
            self._refuse(full, loader or of_sys or alias.name in CHOOSING)

    def visit_Name(self, node: ast.Name) -> None:
        """Look for functions that import or run what their argument names."""
        self._refuse(node.id, node.id in CHOOSING)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Look for the same as attributes of modules."""
        self._refuse(node.attr, node.attr in {"__import__", "import_module", "exec_module"})
        self.generic_visit(node)

    def follow(self, chain: Sequence[str]) -> None:
        """Read a chain of attributes, as ``a.b.c``, whose first name is that of a module."""
        start = self.bound.get(chain[0])
        if start is None:
            return
        self._refuse(f"sys.{chain[1]}", start == "sys" and chain[1] in OF_SYS)
        self.possible.extend(".".join([start, *chain[1:end]]) for end in range(2, len(chain) + 1))

    def _refuse(self, name: str, is_dynamic: bool) -> None:
        if is_dynamic and not self.dynamic:
            self.dynamic = name


def _absolute(node: ast.ImportFrom, package: str) -> str:
    """Return the full name of the module of ``from module import name``."""
    if not node.level:
        return str(node.module)
    try:
        return importlib.util.resolve_name("." * node.level + (node.module or ""), package)
    except ImportError:
        raise ValueError("a relative import beyond the top-level package") from None


def _chains(tree: ast.AST) -> Iterator[tuple[str, ...]]:
    """Yield names with dots, as ``package.module.function``: each may be the only trace of a module that is used."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        parts: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            yield (inner.id, *reversed(parts))


def _refuse_changed(name: str, spec: ModuleSpec, content: bytes) -> None:
    """Refuse a module whose file has changed since it was imported: the key would be that of other code.

    Functions are compared with those that the file compiles to, constants with their values in the file.
    """
    module = sys.modules.get(name)
    if module is None or type(spec.loader) is not SourceFileLoader:
        return
    known = set(_code_objects(compile(content, str(spec.origin), "exec", dont_inherit=True)))
    functions = [function for function in _functions(module) if function.__code__.co_filename == spec.origin]
    if any(function.__code__ not in known for function in functions):
        raise NoCanonicalForm(f"{name} was changed after it was imported; restart Python")
    for constant, value in _constants(ast.parse(content)):
        live = vars(module).get(constant, value)
        if type(live) is not type(value) or (live != value and value == value):
            raise NoCanonicalForm(f"{name}.{constant} is not what the file says; restart Python")


def _code_objects(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and all code objects inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_objects(constant)


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """Yield the functions of a module and of its classes that are defined there."""
    holders: list[ModuleType | type] = [module]
    for holder in holders:  # the list grows as classes are found
        for value in list(vars(holder).values()):
            inner: Any = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
            inner = inner.fget if isinstance(inner, property) else inner
            if isinstance(inner, FunctionType) and inner.__module__ == module.__name__:
                yield inner
            elif isinstance(inner, type) and inner.__module__ == module.__name__ and inner not in holders:
                holders.append(inner)


def _constants(tree: ast.Module) -> Iterable[tuple[str, Any]]:
    """Yield the names that a module binds once, to a number, a string, a bool or None."""
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(node.value, ast.Constant):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if isinstance(target, ast.Name) and names.count(target.id) == 1:
                yield target.id, node.value.value
