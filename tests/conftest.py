"""Fixtures and settings of all rooms."""

from __future__ import annotations

import gc
import importlib.metadata
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
import typer.main
from hypothesis import settings

import tests.typecheck
from tests.disks import Disk

# Whose annotations are executed. The command line and the plans are checked by typer and pydantic; `core.checks` and
# the readers of `core` are there for values of any type.
FOLDERS = (
    "attacks", "auditing", "bounding", "bounds", "data", "dpsgd", "metrics", "noise", "protection", "releases",
    "reports", "runtime",
)  # fmt: skip
OF_CORE = (
    "covariance", "divergences", "games", "grid", "intervals", "numerics", "seeds", "tradeoff",
    "types",
)  # fmt: skip
CHECKED = [*FOLDERS, *(f"core.{module}" for module in OF_CORE)]
if tests.typecheck.WHICH != "none":
    jaxtyping.install_import_hook(
        [f"leakbound.{room}" for room in CHECKED], f"tests.typecheck.{tests.typecheck.WHICH}_executed"
    )

# What is drawn on a terminal depends on these: the same wherever the tests run; a test that needs one sets it.
for name in ("CI", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "TERM", "COLUMNS", "LINES"):
    os.environ.pop(name, None)
os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")  # the cores are taken: no workers unless a test asks for them

# A shell has Ctrl-C ignored by what it starts in the background, and so would every process that a test interrupts.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Typer makes all commands and flags anew for each call, which takes longer than many commands: a process of a user has
# one call, and the tests have hundreds.
typer.main.get_command = cache(typer.main.get_command)
# Each report says which libraries it was made with, and to read that from the disk takes longer than many reports.
importlib.metadata.version = cache(importlib.metadata.version)

TORCH = find_spec("torch") is not None
collect_ignore = [] if TORCH else ["networks"]

N_EXAMPLES = int(os.environ.get("LEAKBOUND_EXAMPLES", "30"))  # of hypothesis; .ci/nightly takes more
settings.register_profile("same every time", derandomize=True, deadline=None, database=None, max_examples=N_EXAMPLES)
settings.load_profile("same every time")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Modules and items live as long as the tests: they are never searched for garbage."""
    gc.disable()
    result = yield
    gc.freeze()
    gc.set_threshold(10_000)  # a test makes thousands of objects, and few are left
    gc.enable()
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Make the cases slow that ``by_day`` does not name, and long tests the first: no worker ends alone with one.

    Long tests are those with a mark, and those of no folder: of the documentation, the packaging and all sources.
    """
    has_case: dict[str, bool] = {}
    for item in items:
        if mark := item.get_closest_marker("by_day"):
            test, _, case = item.nodeid.removesuffix("]").partition("[")
            has_case[test] = has_case.get(test, False) or case in mark.args
            if case not in mark.args:
                item.add_marker("slow")
    if not all(has_case.values()) and not any("[" in each for each in config.args):
        none = [test for test, has in has_case.items() if not has]
        raise pytest.UsageError(f"the mark by_day names no case of these tests: {', '.join(none)}")
    long = ("benchmarks", "statistics", "kills")
    items.sort(
        key=lambda item: (item.path.parent.name != "tests", not any(item.get_closest_marker(name) for name in long))
    )


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Nothing is left out in silence."""
    if not TORCH:
        terminalreporter.write_line("tests/networks is left out: it needs pip install '.[torch,dpsgd,images]'")


@pytest.fixture
def as_users_run_it() -> Iterator[None]:
    """Without the execution of shape annotations: what a bad shape gets from the code itself."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def without_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages and fragments with an empty element for each chart: for tests of words, as charts take most of the time."""
    from leakbound.reports.render import document, html

    class Charts(dict[str, object]):
        """A picture or an empty chart of any name."""

        def __missing__(self, name: str) -> object:
            return "data:," if name.startswith(("picture", "strip", "scale")) else object()

    monkeypatch.setattr(html, "CHARTS", dict.fromkeys(html.CHARTS, lambda report: Charts()))
    monkeypatch.setattr(document.svg, "labelled", lambda figure, prefix, label: "<svg></svg>")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A small file system, to be mounted; it is gone after the test."""
    made = Disk(tmp_path / "disk")
    made.folder.mkdir()
    yield made
    subprocess.run(["umount", str(made.folder)], check=False, capture_output=True)


@pytest.fixture(autouse=True)
def fast_statistics(request: pytest.FixtureRequest) -> None:
    """Thousands of runs go two to three times faster; the shapes of their functions are checked by other tests."""
    if request.node.get_closest_marker("statistics"):
        request.getfixturevalue("as_users_run_it")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets: LEAKBOUND_DATA, or ``shared/data`` beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("LEAKBOUND_DATA", beside))
    if not (folder / "adult.parquet").is_file():
        pytest.skip("real data: LEAKBOUND_DATA is not set to the folder that holds adult.parquet")
    return folder
