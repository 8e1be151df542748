"""Measure the layout and the style of the source: ``python -m benchmarks.code_map [ROOT] [--json]``.

The files under ``ROOT/src/leakbound`` are parsed and never imported, so that any version can be measured, also one
whose dependencies are not installed.

A **room** is a folder that holds Python files, or a single file on the top level of the package. An **arrow** leads
from a room to another room that it imports. A **cycle** is a set of rooms that can all reach each other by arrows.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import statistics
import sys
import textwrap
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "leakbound"
PLAN = "AuditPlan"

# An import path that is written as text, such as "leakbound.attacks.lira:lira".
PATH_IN_TEXT = re.compile(rf"({PACKAGE}(?:\.\w+)*):[\w.]+")

NOQA = re.compile(r"#\s*noqa\b", re.IGNORECASE)
PYRIGHT_IGNORE = re.compile(r"#\s*pyright:\s*ignore\b")

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """A source file.

    Parameters
    ----------
    name : str
        As it is imported: ``"leakbound.attacks.lira"``.
    file : str
        Below the folder of the package: ``"attacks/lira.py"``.
    source : str
        The text.
    tree : ast.Module
        The syntax tree of the text.
    """

    name: str
    file: str
    source: str
    tree: ast.Module

    @property
    def is_folder(self) -> bool:
        """True for an ``__init__.py``, whose name is the name of its folder."""
        return PurePosixPath(self.file).name == "__init__.py"

    @property
    def is_loose(self) -> bool:
        """True for a file on the top level of the package."""
        return "/" not in self.file

    @property
    def room(self) -> str:
        """The folder of the file, or the file itself on the top level."""
        path = PurePosixPath(self.file)
        if self.is_loose:
            return path.stem
        return ".".join(path.parent.parts)


@dataclass(frozen=True)
class Function:
    """A function or method, also one inside another function.

    Parameters
    ----------
    module : str
        Name of the module that defines it.
    name : str
        With the classes and functions around it: ``"Report.write"``.
    node : ast.FunctionDef or ast.AsyncFunctionDef
        Its syntax tree.
    n_code_lines : int
        Lines of code from ``def`` to the end, without decorators, docstrings, comments and blank lines.
    """

    module: str
    name: str
    node: FunctionNode
    n_code_lines: int


@dataclass(frozen=True)
class Class:
    """A class and the module that defines it."""

    module: Module
    node: ast.ClassDef


@dataclass(frozen=True)
class Lines:
    """Line numbers of a file, from 1, by what the lines hold.

    A line of code may end in a comment; it is then in both ``code`` and ``with_comment``.
    """

    code: frozenset[int]
    with_comment: frozenset[int]
    comments: tuple[str, ...]


@dataclass(frozen=True)
class Layout:
    """How the files are divided, and which division imports which.

    Parameters
    ----------
    n_files : int
        Python files, ``__init__.py`` included.
    n_folders, n_loose_modules : int
        Their sum is the number of rooms. The package's own ``__init__.py`` is a loose module.
    n_arrows : int
        Ordered pairs of distinct rooms of which the first imports the second: anywhere in a file, by
        ``import_module`` with a text, and under ``if TYPE_CHECKING`` too.
    n_arrows_without_type_checking : int
        The same, without the imports under ``if TYPE_CHECKING``.
    n_paths_in_text : int
        Import paths that are written as text, such as ``"leakbound.attacks.lira:lira"``.
    n_arrows_of_text_alone : int
        Ordered pairs of rooms that such texts connect and no import does. They are not in ``n_arrows``.
    cycles_of_whole_folders : list of list of str
        The same without TYPE_CHECKING imports, where a folder is one room with all of its subfolders.
    cycles, cycles_without_type_checking : list of list of str
        Strongly connected components of more than one room, each in alphabetical order.
    """

    n_files: int
    n_folders: int
    n_loose_modules: int
    n_arrows: int
    n_arrows_without_type_checking: int
    n_paths_in_text: int
    n_arrows_of_text_alone: int
    cycles: list[list[str]]
    cycles_without_type_checking: list[list[str]]
    cycles_of_whole_folders: list[list[str]]


@dataclass(frozen=True)
class Style:
    """What makes the code dense or plain.

    Parameters
    ----------
    n_lines : int
        All lines of all files.
    n_code_lines : int
        Without docstrings, comments and blank lines.
    code_lines_of : dict of str to int
        The same in each folder of the package, with its subfolders; the largest first.
    n_functions : int
        Functions and methods, also those inside functions. Lambdas are not counted.
    mean_function_length, median_function_length : float
        In lines of code; a function inside another counts for both.
    one_line_function_fraction : float
        Fraction of the functions whose body, without the docstring, is one statement on one line.
    n_comment_lines : int
        Lines that hold a comment and nothing else.
    comment_line_fraction : float
        Of all lines.
    n_trailing_comments : int
        Lines of code that end in a comment.
    comment_to_code_ratio : float
        Lines with a comment of either kind, over lines of code.
    n_comprehensions : int
        Of lists, sets and dictionaries, and generator expressions.
    n_conditionals : int
        Conditional expressions, ``a if b else c``.
    n_nested_conditionals : int
        Conditional expressions that stand within another one, also within a call in it.
    n_any : int
        Uses of the name ``Any``, imports not counted.
    n_open_functions : int
        Functions that take any keyword, by ``**name: Any``.
    public_open_functions : list of str
        Those of them that users call by a public name, as ``module:name``.
    n_noqa, n_pyright_ignore : int
        Comments that silence ruff and pyright.
    """

    n_lines: int
    n_code_lines: int
    code_lines_of: dict[str, int]
    n_functions: int
    mean_function_length: float
    median_function_length: float
    one_line_function_fraction: float
    n_comment_lines: int
    comment_line_fraction: float
    n_trailing_comments: int
    comment_to_code_ratio: float
    n_comprehensions: int
    n_conditionals: int
    n_nested_conditionals: int
    n_any: int
    n_open_functions: int
    public_open_functions: list[str]
    n_noqa: int
    n_pyright_ignore: int


@dataclass(frozen=True)
class CodeMap:
    """All that is measured. ``plan_files`` are the files that handle the plan of an audit."""

    layout: Layout
    plan_files: list[str]
    style: Style


def code_map(root: Path) -> CodeMap:
    """Measure the source under ``root/src/leakbound``."""
    modules = read_modules(root / "src" / PACKAGE)
    return CodeMap(layout_of(modules), plan_files_of(modules), style_of(modules))


def read_modules(package: Path) -> dict[str, Module]:
    """Parse every Python file of the package, by the name under which it is imported."""
    modules = {}
    for path in sorted(package.rglob("*.py")):
        file = path.relative_to(package)
        parts = [PACKAGE, *file.with_suffix("").parts]
        if parts[-1] == "__init__":
            parts.pop()
        name = ".".join(parts)
        source = path.read_text(encoding="utf-8")
        modules[name] = Module(name, file.as_posix(), source, ast.parse(source, str(path)))
    return modules


# ---------------------------------------------------------------------------------------------------------------------
# Rooms and arrows


def layout_of(modules: Mapping[str, Module]) -> Layout:
    """Count rooms and arrows, and find the cycles."""
    arrows = set()
    arrows_without_type_checking = set()
    arrows_of_text = set()
    n_paths_in_text = 0
    for module in modules.values():
        for imported, type_checking in imports_of(module, modules):
            arrow = (module.room, imported.room)
            arrows.add(arrow)
            if not type_checking:
                arrows_without_type_checking.add(arrow)
        for path in paths_in_text(module):
            n_paths_in_text += 1
            named = nearest_module(path, modules)
            if named is not None:
                arrows_of_text.add((module.room, named.room))

    arrows = between_rooms(arrows)
    arrows_without_type_checking = between_rooms(arrows_without_type_checking)
    arrows_of_text = between_rooms(arrows_of_text)
    return Layout(
        n_files=len(modules),
        n_folders=len({module.room for module in modules.values() if not module.is_loose}),
        n_loose_modules=len([module for module in modules.values() if module.is_loose]),
        n_arrows=len(arrows),
        n_arrows_without_type_checking=len(arrows_without_type_checking),
        n_paths_in_text=n_paths_in_text,
        n_arrows_of_text_alone=len(arrows_of_text - arrows),
        cycles=cycles_of(arrows),
        cycles_without_type_checking=cycles_of(arrows_without_type_checking),
        cycles_of_whole_folders=cycles_of(between_whole_folders(arrows_without_type_checking)),
    )


def between_rooms(arrows: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Leave out what a room imports from itself."""
    return {(importer, imported) for importer, imported in arrows if importer != imported}


def imports_of(module: Module, modules: Mapping[str, Module]) -> Iterator[tuple[Module, bool]]:
    """Yield each imported module of the package, and whether the import is under ``if TYPE_CHECKING``."""
    constants = text_constants(module)
    for node, type_checking in walk_with_type_checking(module.tree):
        for name in imported_names(node, module, constants):
            imported = nearest_module(name, modules)
            if imported is not None:
                yield imported, type_checking


def walk_with_type_checking(node: ast.AST, type_checking: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Yield every node, and whether it is under ``if TYPE_CHECKING``; its ``else`` runs and is not."""
    yield node, type_checking
    guarded: Sequence[ast.AST] = ()
    if isinstance(node, ast.If) and is_named(node.test, "TYPE_CHECKING"):
        guarded = node.body
    for child in ast.iter_child_nodes(node):
        yield from walk_with_type_checking(child, type_checking or child in guarded)


def is_named(node: ast.AST | None, name: str) -> bool:
    """True for ``name`` and for ``module.name``."""
    if isinstance(node, ast.Name):
        return node.id == name
    return isinstance(node, ast.Attribute) and node.attr == name


def imported_names(node: ast.AST, module: Module, constants: Mapping[str, str]) -> list[str]:
    """List the full names that a node imports; the last part may be a name inside a module."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        origin = origin_of(node, module)
        return [f"{origin}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and is_named(node.func, "import_module") and node.args:
        return [text_of(node.args[0], constants)]
    return []


def origin_of(node: ast.ImportFrom, module: Module) -> str:
    """Find the full name behind ``from``; leading dots count folders upwards from the folder of the file."""
    if node.level == 0:
        return node.module or ""
    folder = module.name.split(".")
    if not module.is_folder:
        folder.pop()
    # One dot is the folder of the file itself, two dots the folder above it.
    n_parts = len(folder) - (node.level - 1)
    parts = folder[:n_parts]
    if node.module:
        parts.append(node.module)
    return ".".join(parts)


def nearest_module(name: str, modules: Mapping[str, Module]) -> Module | None:
    """Find the module of a full name: itself, or the one that a name such as ``leakbound.attacks.ATTACKS`` is in."""
    while name:
        if name in modules:
            return modules[name]
        name = name.rpartition(".")[0]
    return None


def text_constants(module: Module) -> dict[str, str]:
    """Collect the texts that have a name on the top level of a file, to fill them into f-strings."""
    constants = {"__name__": module.name}
    for statement in module.tree.body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Constant):
            continue
        for target in statement.targets:
            if isinstance(target, ast.Name) and isinstance(statement.value.value, str):
                constants[target.id] = statement.value.value
    return constants


def text_of(node: ast.AST, constants: Mapping[str, str]) -> str:
    """Write out a text or an f-string; a part that is only known in a run becomes an underscore."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part, constants) for part in node.values)
    if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name):
        return constants.get(node.value.id, "_")
    return "_"


def paths_in_text(module: Module) -> Iterator[str]:
    """Yield the module part of each import path that is written as text, wherever it is in the file."""
    constants = text_constants(module)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant | ast.JoinedStr):
            match = PATH_IN_TEXT.fullmatch(text_of(node, constants))
            if match:
                yield match[1]


def between_whole_folders(arrows: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Count each subfolder as a part of the folder on the top level that it lies in."""
    whole = {(importer.split(".")[0], imported.split(".")[0]) for importer, imported in arrows}
    return {(importer, imported) for importer, imported in whole if importer != imported}


def cycles_of(arrows: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Find the strongly connected components of more than one room."""
    targets: dict[str, set[str]] = {}
    for importer, imported in arrows:
        targets.setdefault(importer, set()).add(imported)
        targets.setdefault(imported, set())
    reachable = {room: rooms_from(room, targets) for room in targets}

    cycles = []
    placed: set[str] = set()
    for room in sorted(targets):
        # A room is on a cycle exactly if its arrows lead back to it.
        if room in placed or room not in reachable[room]:
            continue
        cycle = {other for other in reachable[room] if room in reachable[other]}
        placed |= cycle
        cycles.append(sorted(cycle))
    return cycles


def rooms_from(start: str, targets: Mapping[str, set[str]]) -> set[str]:
    """Collect the rooms that one or more arrows lead to."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        for target in targets[waiting.pop()]:
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    return reached


# ---------------------------------------------------------------------------------------------------------------------
# The files of a plan


def plan_files_of(modules: Mapping[str, Module]) -> list[str]:
    """List the files where ``AuditPlan`` occurs, or an attribute that some class annotates with it.

    Attributes are compared by name only, since the types of objects are not known here.
    """
    plan_attributes: set[str] = set()
    for module in modules.values():
        plan_attributes |= attributes_of_plan_type(module.tree)
    return sorted(module.file for module in modules.values() if handles_plan(module.tree, plan_attributes))


def attributes_of_plan_type(tree: ast.Module) -> set[str]:
    """Collect the attributes annotated with the plan, as ``name: AuditPlan`` in a class or ``self.name: AuditPlan``."""
    annotated = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            annotated += [field for field in node.body if isinstance(field, ast.AnnAssign)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
            annotated.append(node)

    names = set()
    for field in annotated:
        if not names_plan(field.annotation):
            continue
        if isinstance(field.target, ast.Name):
            names.add(field.target.id)
        elif isinstance(field.target, ast.Attribute):
            names.add(field.target.attr)
    return names


def names_plan(annotation: ast.AST) -> bool:
    """True if ``AuditPlan`` is a part of an annotation, quoted or not: ``AuditPlan | None``, ``"list[AuditPlan]"``."""
    for node in ast.walk(annotation):
        if is_named(node, PLAN):
            return True
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and PLAN in re.findall(r"\w+", node.value):
            return True
    return False


def handles_plan(tree: ast.Module, plan_attributes: set[str]) -> bool:
    """True if the plan occurs in a file; texts and docstrings do not count, quoted annotations of parameters do."""
    for node in ast.walk(tree):
        if is_named(node, PLAN):
            return True
        if isinstance(node, ast.ClassDef | ast.alias) and node.name == PLAN:
            return True
        if isinstance(node, ast.arg) and node.annotation is not None and names_plan(node.annotation):
            return True
        if isinstance(node, ast.Attribute) and node.attr in plan_attributes:
            return True
    return False


# ---------------------------------------------------------------------------------------------------------------------
# Style


def style_of(modules: Mapping[str, Module]) -> Style:
    """Count lines, functions and the expressions that make a line dense."""
    lines = {name: lines_of(module) for name, module in modules.items()}
    n_lines = sum(len(module.source.splitlines()) for module in modules.values())
    n_code_lines = sum(len(file_lines.code) for file_lines in lines.values())
    code_lines_of: Counter[str] = Counter()
    for name, file_lines in lines.items():
        code_lines_of[name.split(".")[1] if "." in name else name] += len(file_lines.code)
    n_with_comment = sum(len(file_lines.with_comment) for file_lines in lines.values())
    n_comment_lines = sum(len(file_lines.with_comment - file_lines.code) for file_lines in lines.values())
    comments = [comment for file_lines in lines.values() for comment in file_lines.comments]

    functions: list[Function] = []
    for name, module in modules.items():
        functions += functions_of(module, lines[name].code)
    lengths = [function.n_code_lines for function in functions]
    n_one_line = len([function for function in functions if is_one_line(function.node)])
    open_functions = [function for function in functions if takes_any_keyword(function.node)]
    public = public_functions(modules)

    nodes = [node for module in modules.values() for node in ast.walk(module.tree)]
    conditionals = [node for node in nodes if isinstance(node, ast.IfExp)]
    return Style(
        n_lines=n_lines,
        n_code_lines=n_code_lines,
        code_lines_of=dict(code_lines_of.most_common()),
        n_functions=len(functions),
        mean_function_length=statistics.mean(lengths or [0]),
        median_function_length=statistics.median(lengths or [0]),
        one_line_function_fraction=n_one_line / max(len(functions), 1),
        n_comment_lines=n_comment_lines,
        comment_line_fraction=n_comment_lines / max(n_lines, 1),
        n_trailing_comments=n_with_comment - n_comment_lines,
        comment_to_code_ratio=n_with_comment / max(n_code_lines, 1),
        n_comprehensions=len([node for node in nodes if isinstance(node, COMPREHENSIONS)]),
        n_conditionals=len(conditionals),
        n_nested_conditionals=n_inner_conditionals(conditionals),
        n_any=len([node for node in nodes if is_any(node)]),
        n_open_functions=len(open_functions),
        public_open_functions=sorted(
            f"{function.module}:{function.name}"
            for function in open_functions
            if (function.module, function.name) in public
        ),
        n_noqa=len([comment for comment in comments if NOQA.search(comment)]),
        n_pyright_ignore=len([comment for comment in comments if PYRIGHT_IGNORE.search(comment)]),
    )


def lines_of(module: Module) -> Lines:
    """Find the lines that hold code and those that hold a comment."""
    docstring_lines = lines_of_docstrings(module.tree)
    written = module.source.splitlines()
    code: set[int] = set()
    with_comment: set[int] = set()
    comments = []
    for token in tokenize.generate_tokens(io.StringIO(module.source).readline):
        first, last = token.start[0], token.end[0]
        if token.type == tokenize.COMMENT:
            with_comment.add(first)
            comments.append(token.string)
            continue
        is_docstring = token.type == tokenize.STRING and first in docstring_lines
        if token.type in NOT_CODE or is_docstring:
            continue
        # A text of several lines is one token; its blank lines are no code.
        code.update(line for line in range(first, last + 1) if written[line - 1].strip())
    return Lines(frozenset(code), frozenset(with_comment), tuple(comments))


def lines_of_docstrings(tree: ast.Module) -> set[int]:
    """Collect the lines of all docstrings: of the module, its classes and its functions."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | FunctionNode):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            lines.update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return lines


def functions_of(module: Module, code_lines: frozenset[int]) -> list[Function]:
    """List the functions of a file, also methods and functions inside functions."""
    functions = []
    for name, node in definitions_of(module.tree):
        if isinstance(node, FunctionNode):
            # `lineno` is the line of `def`: the decorators stand above it.
            own_lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            functions.append(Function(module.name, name, node, len(code_lines.intersection(own_lines))))
    return functions


def definitions_of(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, FunctionNode | ast.ClassDef]]:
    """Yield functions and classes, with their names as in ``Class.method``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FunctionNode | ast.ClassDef):
            name = f"{prefix}{child.name}"
            yield name, child
            yield from definitions_of(child, f"{name}.")
        else:
            yield from definitions_of(child, prefix)


def is_one_line(function: FunctionNode) -> bool:
    """True if the body, without the docstring, is one statement on one line."""
    body = function.body
    if ast.get_docstring(function, clean=False) is not None:
        body = body[1:]
    return len(body) == 1 and body[0].lineno == body[0].end_lineno


def n_inner_conditionals(conditionals: Sequence[ast.IfExp]) -> int:
    """Count the conditional expressions that stand anywhere within another one, each once."""
    inner: set[ast.AST] = set()
    for outer in conditionals:
        inner |= {node for node in ast.walk(outer) if isinstance(node, ast.IfExp) and node is not outer}
    return len(inner)


def is_any(node: ast.AST | None) -> bool:
    """True for ``Any`` and ``typing.Any``."""
    if isinstance(node, ast.Attribute):
        return node.attr == "Any" and is_named(node.value, "typing")
    return is_named(node, "Any")


def takes_any_keyword(function: FunctionNode) -> bool:
    """True for a function with ``**name: Any``."""
    keywords = function.args.kwarg
    return keywords is not None and is_any(keywords.annotation)


# ---------------------------------------------------------------------------------------------------------------------
# Public names


def public_functions(modules: Mapping[str, Module]) -> set[tuple[str, str]]:
    """Collect the functions and methods that users reach through ``leakbound.NAME``, as (module, name).

    Where ``leakbound.NAME`` is a module, its public names are public too. Methods are public with their class, also
    those of its base classes, unless their name starts with one underscore.
    """
    public: set[tuple[str, str]] = set()
    waiting = [f"{PACKAGE}.{name}" for name in exported_names(modules[PACKAGE])]
    visited: set[str] = set()
    while waiting:
        path = waiting.pop()
        if path in visited:
            continue
        visited.add(path)
        definition = definition_of(path, modules)
        if isinstance(definition, Module):
            waiting += [f"{definition.name}.{name}" for name in exported_names(definition)]
        elif isinstance(definition, Class):
            public |= public_methods(definition)
            bases = [base.id for base in definition.node.bases if isinstance(base, ast.Name)]
            waiting += [f"{definition.module.name}.{base}" for base in bases]
        elif definition is not None:
            public.add(definition)
    return public


def exported_names(module: Module) -> list[str]:
    """List the public names of a module: its ``__all__``, or what it defines without a leading underscore."""
    for statement in module.tree.body:
        if isinstance(statement, ast.Assign) and any(is_named(target, "__all__") for target in statement.targets):
            texts = [node.value for node in ast.walk(statement.value) if isinstance(node, ast.Constant)]
            return [text for text in texts if isinstance(text, str)]
    return [
        name for name, value in bindings_of(module).items() if not name.startswith("_") and not isinstance(value, str)
    ]


def bindings_of(module: Module) -> dict[str, FunctionNode | ast.ClassDef | str]:
    """Map the top-level names of a file to their definition, or to the full name that is imported under them.

    Names under ``if TYPE_CHECKING`` are included: they say where a name comes from that is imported on its first use.
    """
    bindings: dict[str, FunctionNode | ast.ClassDef | str] = {}
    waiting: list[ast.AST] = list(module.tree.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, FunctionNode | ast.ClassDef):
            bindings[node.name] = node
        elif isinstance(node, ast.ImportFrom):
            origin = origin_of(node, module)
            bindings |= {alias.asname or alias.name: f"{origin}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.If | ast.Try):
            waiting += ast.iter_child_nodes(node)
    return bindings


def definition_of(path: str, modules: Mapping[str, Module]) -> Module | Class | tuple[str, str] | None:
    """Follow the imports from a full name to what it names: a module, a class, a function or nothing of these."""
    home, _, name = path.rpartition(".")
    if home in modules:
        bound = bindings_of(modules[home]).get(name)
        if isinstance(bound, ast.ClassDef):
            return Class(modules[home], bound)
        if isinstance(bound, FunctionNode):
            return home, name
        # `from leakbound import attacks` in leakbound itself binds a module to its own full name.
        if isinstance(bound, str) and bound != path:
            return definition_of(bound, modules)
    return modules.get(path)


def public_methods(definition: Class) -> set[tuple[str, str]]:
    """Collect the methods of a class that users may call; ``__init__`` and its like are among them."""
    methods = set()
    for node in definition.node.body:
        if not isinstance(node, FunctionNode):
            continue
        is_special = node.name.startswith("__") and node.name.endswith("__")
        if is_special or not node.name.startswith("_"):
            methods.add((definition.module.name, f"{definition.node.name}.{node.name}"))
    return methods


# ---------------------------------------------------------------------------------------------------------------------
# The table


def table(measured: CodeMap) -> str:
    """Write the measurements as a table, with lists below the rows that they belong to."""
    layout = measured.layout
    style = measured.style
    rows = [
        row("Python files", layout.n_files),
        row("rooms", layout.n_folders + layout.n_loose_modules),
        row("  folders", layout.n_folders),
        row("  loose modules on the top level", layout.n_loose_modules),
        row("arrows between rooms", layout.n_arrows),
        row("  without TYPE_CHECKING imports", layout.n_arrows_without_type_checking),
        row("import paths written as text", layout.n_paths_in_text),
        row("  arrows that these alone draw", layout.n_arrows_of_text_alone),
        row("cycles between rooms", len(layout.cycles)),
        *cycle_rows(layout.cycles),
        row("  without TYPE_CHECKING imports", len(layout.cycles_without_type_checking)),
        *cycle_rows(layout.cycles_without_type_checking),
        row("  of folders with all their subfolders", len(layout.cycles_of_whole_folders)),
        *cycle_rows(layout.cycles_of_whole_folders),
        row(f"files that handle an {PLAN}", len(measured.plan_files)),
        *list_rows(measured.plan_files),
        row("lines", style.n_lines),
        row("  of code: no docstring, comment, blank line", style.n_code_lines),
        *(row(f"    {folder}", n_lines) for folder, n_lines in style.code_lines_of.items()),
        row("  of comment alone", style.n_comment_lines),
        row("  of comment alone, of all lines", f"{style.comment_line_fraction:.1%}"),
        row("  of code that end in a comment", style.n_trailing_comments),
        row("  with a comment, over lines of code", f"{style.comment_to_code_ratio:.1%}"),
        row("functions", style.n_functions),
        row("  lines of code, mean", f"{style.mean_function_length:.1f}"),
        row("  lines of code, median", f"{style.median_function_length:g}"),
        row("  with a body of one line", f"{style.one_line_function_fraction:.1%}"),
        row("comprehensions", style.n_comprehensions),
        row("conditional expressions", style.n_conditionals),
        row("  inside another", style.n_nested_conditionals),
        row("uses of Any", style.n_any),
        row("functions with **name: Any", style.n_open_functions),
        row("  public", len(style.public_open_functions)),
        *list_rows(style.public_open_functions),
        row("noqa comments", style.n_noqa),
        row("pyright: ignore comments", style.n_pyright_ignore),
    ]
    return "\n".join(rows)


def row(label: str, value: int | str) -> str:
    """Write a label and its number."""
    if isinstance(value, int):
        value = f"{value:,}"
    return f"{label:<48}{value:>10}"


def list_rows(entries: Iterable[str]) -> list[str]:
    """Write one entry a line, below the row that counts them."""
    return [f"      {entry}" for entry in entries]


def cycle_rows(cycles: Iterable[Sequence[str]]) -> list[str]:
    """Write the rooms of each cycle, with their number in front."""
    rows = []
    for cycle in cycles:
        text = f"{len(cycle)} rooms: {', '.join(cycle)}"
        rows += textwrap.wrap(text, width=100, initial_indent=" " * 6, subsequent_indent=" " * 8)
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, or the same as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.code_map", description="Measure layout and style.")
    parser.add_argument("root", nargs="?", type=Path, default=ROOT, metavar="ROOT", help="a clone; default: this one")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    package = options.root / "src" / PACKAGE
    if not (package / "__init__.py").is_file():
        parser.error(f"{package} is no package")

    measured = code_map(options.root)
    if options.json:
        print(json.dumps(asdict(measured), indent=2))
    else:
        print(table(measured))
    return 0


if __name__ == "__main__":
    sys.exit(main())
