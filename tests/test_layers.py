"""The house rules that a machine can check: who may import whom, what is heavy, how long things may be."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "leakscope"
SOURCES = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in SOURCES.items()}

LAYERS = {
    0: ("signals", "findings", "checks", "version"),
    0.25: ("types",),
    0.5: ("divergence",),
    1: ("tradeoff", "seeds", "intervals", "covariance", "grid", "information"),
    1.5: ("accounting",),
    2: (
        "data",
        "games",
        "attacks",
        "metrics",
        "bounds",
        "noise",
        "releases",
        "store",
        "pool",
        "report",
        "plans",
        "claims",
    ),
    3: (
        "drawing",
        "observing",
        "repeating",
        "subjects",
        "exposing",
        "refuting",
        "judging",
        "reporting",
        "auditing",
        "guessing",
        "inferring",
        "planting",
        "playing",
        "costs",
        "gates",
        "ceilings",
        "stating",
        "surveying",
        "bounding",
        "protecting",
    ),
    4: ("papers",),
    5: ("cli",),
    6: ("__main__",),
}
LAYER = {room: layer for layer, rooms in LAYERS.items() for room in rooms}

# Each heavy library, and the files that need it.
HEAVY = {
    "sklearn": r"data/files\.py|releases/(estimator|logistic|taylor)\.py|attacks/shadow\.py|papers/.*\.py",
    "pandas": r"data/(points|files|columns|candidates)\.py|releases/(estimator|tensors)\.py|(report|papers)/.*\.py",
    "matplotlib": r"(report|papers)/(?!__init__).*\.py",
    "jinja2": r"report/html\.py",
    "rich": r"observing\.py",
    "dp_accounting": r"accounting\.py",
    "pydantic": r"plans/(plan|limits|audits|bounds|protects)\.py",
    "joblib": r"pool\.py",
    "threadpoolctl": r"pool\.py",
    "typer": r"cli/.*\.py",
    "torch": r"releases/(tensors|devices|optimising|augmenting|ensemble|training|gradients|architecture|reading|network"
    r"|private|clipping|marking|steps|canaries|dpsgd|grad_samples|rows|last_layer)\.py|papers/\w+/(networks|features|table2|table3)\.py",
    "opacus": r"releases/(private|grad_samples|steps)\.py",
    "PIL": r"data/images\.py|papers/data\.py",
}
MODULE_OF = {
    "scikit-learn": "sklearn",
    "dp-accounting": "dp_accounting",
    "pillow": "PIL",
}  # where a distribution and its module differ
COMES_WITH = {"click": "typer", "markupsafe": "jinja2"}  # two halves of one library: no choice of ours


def room(name: str) -> str:
    """The room of a source file: ``attacks/lira.py`` is in attacks."""
    return name.split("/")[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[str]:
    """Full names of all that a file imports when it runs, wherever in the file."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        yield from imports(node)


def top_level_imports(tree: ast.Module) -> Iterator[str]:
    """What importing the file imports: not what its functions do."""
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from imports(ast.Module([node], []))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function's body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def may_take_many(name: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """The public audits, protections and games, keyword-only beyond the third or fourth."""
    audit = name == "auditing.py" and function.name.startswith("audit")
    release = name == "protecting/releasing.py" and function.name in ("protect", "calibrate", "declare")
    seen = name == "observing.py" and function.name == "signals_of"
    return (audit or release or seen) and len(function.args.args) <= 3 + seen


every_file = pytest.mark.parametrize("name", SOURCES)


@every_file
def test_imports_go_down(name):
    """A room imports rooms of lower layers and itself; the rooms of layer 3 each other too."""
    if name == "__init__.py":
        return
    own = room(name)
    assert own in LAYER, f"the room {own} has no layer"
    for imported in imports(TREES[name]):
        if not imported.startswith("leakscope."):
            continue
        other = imported.split(".")[1]
        if other == own or other == "__version__":
            continue
        assert other in LAYER, f"{name} imports {imported}, which has no layer"
        allowed = LAYER[other] < LAYER[own] or (LAYER[own] == LAYER[other] == 3)
        assert allowed, f"{name} (layer {LAYER[own]}) imports {imported} (layer {LAYER[other]})"


@pytest.mark.parametrize("name", [name for name in SOURCES if room(name) == "papers"])
def test_papers_use_the_package_as_everybody_does(name):
    """Their own files and ``import leakscope`` alone: what they need is public."""
    ours = {imported for imported in imports(TREES[name]) if imported.partition(".")[0] == "leakscope"}
    assert not {imported for imported in ours - {"leakscope"} if not imported.startswith("leakscope.papers")}


def test_every_room_of_the_plan_is_there():
    """The table above names nothing that does not exist."""
    assert {room(name) for name in SOURCES} - {"__init__"} == set(LAYER)


@every_file
def test_heavy_libraries_stay_where_they_are_needed(name):
    for imported in imports(TREES[name]):
        library = imported.split(".")[0]
        if library in HEAVY:
            assert re.fullmatch(HEAVY[library], name), f"{name} imports {imported}"


def test_every_heavy_library_is_needed_somewhere():
    used = {imported.split(".")[0] for tree in TREES.values() for imported in imports(tree)}
    assert set(HEAVY) <= used


def is_heavy(imported: str, seen: frozenset[str] = frozenset()) -> bool:
    """Whether importing this name at the top of a file brings a heavy library, also by way of our own files."""
    parts = imported.split(".")
    if parts[0] in HEAVY:
        return True
    if parts[0] != "leakscope" or imported in seen:
        return False
    inner = "/".join(parts[1:])
    found = [name for name in (f"{inner}.py", f"{inner}/__init__.py", f"{'/'.join(parts[1:-1])}.py") if name in TREES]
    return any(is_heavy(each, seen | {imported}) for name in found for each in top_level_imports(TREES[name]))


@pytest.mark.parametrize("name", [name for name in SOURCES if name.endswith("__init__.py")])
def test_no_package_is_heavy_to_import(name):
    heavy = [imported for imported in top_level_imports(TREES[name]) if is_heavy(imported)]
    assert heavy == []


@every_file
def test_numbers_come_from_numpy_and_scipy_special_alone(name):
    """scipy.special everywhere, never scipy.stats; below layer 2 nothing else at all."""
    outside = {
        imported
        for imported in imports(TREES[name])
        if imported.split(".")[0] not in {*sys.stdlib_module_names, "leakscope"}
    }
    assert not [imported for imported in outside if imported.startswith("scipy") and "scipy.special" not in imported]
    if LAYER.get(room(name), 2) < 2:
        allowed = {"numpy", "scipy", "jaxtyping"} | ({"dp_accounting"} if room(name) == "accounting" else set())
        assert {imported.split(".")[0] for imported in outside} <= allowed


@every_file
def test_nothing_is_unpickled_evaluated_or_felt_for(name):
    words = {node.id for node in ast.walk(TREES[name]) if isinstance(node, ast.Name)}
    assert words & {"eval", "exec", "hasattr"} == set()
    modules = {imported.split(".")[0] for imported in imports(TREES[name])}
    assert modules & {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve"} == set()
    allowed = [
        keyword.value
        for node in ast.walk(TREES[name])
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "allow_pickle"
    ]
    assert all(isinstance(value, ast.Constant) and value.value is False for value in allowed)


@every_file
def test_a_file_is_one_idea(name):
    assert len(SOURCES[name].read_text(encoding="utf-8").splitlines()) <= 400


@every_file
def test_functions_are_short(name):
    long = {each.name: body_lines(each) for each in functions(TREES[name]) if body_lines(each) > 40}
    assert long == {}


@every_file
def test_functions_take_few_arguments(name):
    many = {each.name: arguments(each) for each in functions(TREES[name]) if not may_take_many(name, each)}
    assert {function: n for function, n in many.items() if n > 6} == {}


def test_every_library_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for name in ("torch", "dpsgd", "images") for line in project["optional-dependencies"][name]]
    declared = {re.split(r"[<>=!~\[ ]", line)[0].lower() for line in [*project["dependencies"], *extras]}
    used = {imported.split(".")[0] for tree in TREES.values() for imported in imports(tree)}
    outside = {COMES_WITH.get(name, name) for name in used - set(sys.stdlib_module_names) - {"leakscope"}}
    assert outside == {MODULE_OF.get(name, name) for name in declared}


def fresh(code: str) -> str:
    """What a new interpreter prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_the_package_imports_no_library():
    loaded = fresh("import leakscope, sys; print(*sorted({name.split('.')[0] for name in sys.modules}))").split()
    assert set(loaded) & {"numpy", "scipy", "jaxtyping", *HEAVY} == set()


def test_importing_the_package_is_quick():
    """Half a second of CPU time for a process that does nothing else, median of 5."""
    code = "import leakscope, time; print(time.process_time())"
    assert median(float(fresh(code)) for _ in range(5)) < 0.5


def test_every_public_name_is_there():
    code = "import leakscope as ls; print(*[name for name in ls.__all__ if getattr(ls, name) is None])"
    assert fresh(code) == "\n"
