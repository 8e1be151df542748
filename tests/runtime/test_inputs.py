"""A stored model is used again only while everything that its training has read is as it was."""

from __future__ import annotations

import importlib
import os
import random
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakbound as ls
from leakbound.releases.source_code import State, UserCode
from leakbound.runtime.inputs import watched
from tests.marks import slow_but
from tests.promising import calibrate

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = (X[:, 0] + RNG.normal(size=40) > 0).astype(int)

# Trains a tree of the depth that `depth()` returns. What is changed is a file of the folder, a variable of the
# environment, or a value of a module that was imported.
TRAINING = """
import json
import os
import pathlib
import subprocess
import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier
import settings
{before}

def depth():
    {body}

def fit(X, y, seed):
    return DecisionTreeClassifier(max_depth=int(depth()), random_state=0).fit(X, y)
"""
SETTINGS = """
DEPTH = 1
CONF = {"depth": 1, "deep": [{"depth": 1}]}
LEVELS = {"a"}
class Model:
    depth = 1
def default(depth=1):
    return depth
def made(depth):
    return lambda: depth[0]
closure = made([1])
"""


class Folder:
    """The folder of a user, with the modules `training` and `settings`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch

    def write(self, depth: int) -> None:
        (self.folder / "conf.json").write_text(f'{{"depth": {depth}}}')
        (self.folder / "depth.txt").write_text(str(depth))
        np.save(self.folder / "depth.npy", np.array([depth]))
        pd.DataFrame({"depth": [depth]}).to_csv(self.folder / "depth.csv")
        self.monkeypatch.setenv("DEPTH", str(depth))
        program = self.folder / "program"
        program.write_text(f"#!/bin/sh\necho {depth}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def begin(self, body: str, before: str = "") -> None:
        (self.folder / "training.py").write_text(TRAINING.format(body=body, before=before))
        (self.folder / "settings.py").write_text(SETTINGS)
        self.write(1)
        self.forget()

    def forget(self) -> None:
        for name in ("training", "settings"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()

    def value(self, path: str) -> Any:
        return eval(path, {"settings": sys.modules["settings"], "training": sys.modules["training"]})

    def audit(self, store: Path | ls.Store | None, n_jobs: int = 1, **given: Any) -> ls.Report:
        fit = importlib.import_module("training").fit
        return ls.audit(fit, X, Y, n_models=4, attacks=["loss"], n_jobs=n_jobs, store=store, **given)


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folder]:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    made = Folder(folder, monkeypatch)
    yield made
    made.forget()


def reused(report: ls.Report) -> tuple[int, int]:
    facts: Any = report.about.execution  # pyright: ignore[reportAttributeAccessIssue]
    return facts.reused, facts.made


def findings(report: ls.Report) -> list[str]:
    return [str(finding) for finding in report.findings]


def set_item(user: Folder) -> None:
    user.value("settings").CONF["depth"] = 5


def set_own_item(user: Folder) -> None:
    user.value("training").CONF["depth"] = 5


def set_attribute(user: Folder) -> None:
    user.value("settings").Model.depth = 5


def write(user: Folder) -> None:
    user.write(5)


def set_constant(user: Folder) -> None:
    user.value("settings").DEPTH = 5


# The six ways of the audit that found the gap.
WAYS: dict[str, tuple[str, str, Callable[[Folder], None]]] = {
    "a file that is read in fit": ("return json.load(open('conf.json'))['depth']", "", write),
    "an environment variable": ("return os.environ['DEPTH']", "", write),
    "a dict of its module": ("return CONF['depth']", "CONF = {'depth': 1}", set_own_item),
    "a dict of an imported module": ("return settings.CONF['depth']", "", set_item),
    "a class attribute": ("return settings.Model.depth", "", set_attribute),
    "a constant": ("return settings.DEPTH", "", set_constant),
}


@pytest.mark.by_day("a dict of its module")
@pytest.mark.parametrize(("body", "before", "change"), WAYS.values(), ids=WAYS)
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_a_training_that_was_changed_is_not_taken_from_the_store(body, before, change, user, tmp_path):
    user.begin(body, before)
    store = tmp_path / "store"
    first = user.audit(store)
    assert reused(first) == (0, 4)
    again = user.audit(store)
    assert reused(again) == (4, 0)
    assert findings(again) == findings(first)
    change(user)
    changed = user.audit(store)
    assert reused(changed) == (0, 4)
    assert findings(changed) == findings(user.audit(None))
    assert findings(changed) != findings(first)


def change_values(user: Folder, depth: int) -> None:
    user.write(depth)
    settings = user.value("settings")
    settings.DEPTH = settings.Model.depth = settings.CONF["depth"] = settings.CONF["deep"][0]["depth"] = depth
    settings.LEVELS.clear()
    settings.LEVELS.update("abcdefgh"[:depth])
    settings.default.__defaults__ = (depth,)
    settings.closure.__closure__[0].cell_contents[0] = depth


KINDS = {
    "open": "with open('depth.txt') as f: return f.read()",
    "os.open": "f = os.open('depth.txt', os.O_RDONLY); text = os.read(f, 9); os.close(f); return text",
    "pathlib": "return pathlib.Path('depth.txt').read_text()",
    "an absolute path": "return (pathlib.Path(__file__).parent / 'depth.txt').read_text()",
    "numpy": "return np.load('depth.npy')[0]",
    "numpy's text": "return np.loadtxt('depth.txt')",
    "numpy's map": "return np.load('depth.npy', mmap_mode='r')[0]",
    "pandas": "return pd.read_csv('depth.csv')['depth'][0]",
    "a thread": (
        "from concurrent.futures import ThreadPoolExecutor as Pool\n"
        "    with Pool(1) as pool: return pool.submit(pathlib.Path('depth.txt').read_text).result()"
    ),
    "a number": "return settings.DEPTH",
    "a dict": "return settings.CONF['depth']",
    "a nested dict": "return settings.CONF['deep'][0]['depth']",
    "a set": "return len(settings.LEVELS)",
    "a class attribute": "return settings.Model.depth",
    "a default": "return settings.default()",
    "a closure": "return settings.closure()",
    "the environment": "return os.getenv('DEPTH', '1')",
    "the environment in bytes": "return os.environb[b'DEPTH']",
    "a copy of the environment": "return dict(os.environ)['DEPTH']",
    "a program": "return subprocess.run(['./program'], capture_output=True, check=True).stdout",
}


@pytest.mark.by_day("a program")
@pytest.mark.parametrize("kind", slow_but(KINDS, "open", "numpy's map", "a dict", "the environment", "a program"))
def test_findings_with_a_store_are_those_without(kind, user, tmp_path):
    """One thing that a training depends on is changed at random, back and forth."""
    user.begin(KINDS[kind])
    numbers = random.Random(kind)
    without: dict[int, list[str]] = {}
    importlib.import_module("training")
    for depth in [1, *(numbers.choice([1, 2, 6]) for _ in range(3))]:
        change_values(user, depth)
        if depth not in without:
            without[depth] = findings(user.audit(None))
        report = user.audit(tmp_path / "store")
        assert findings(report) == without[depth]
        if kind in ("a copy of the environment", "a program"):
            assert reused(report) == (0, 4)
        else:
            assert reused(user.audit(tmp_path / "store")) == (4, 0)


def only_reason(report: ls.Report) -> str:
    (note,) = (note for note in report.about.notes if "is not stored" in note)  # pyright: ignore
    return note


def test_a_function_whose_cache_holds_values(user, tmp_path):
    """Nobody can see these values, nor what they were computed from."""
    user.begin(
        "return cached()",
        "import functools\n@functools.cache\ndef cached():\n    return pathlib.Path('depth.txt').read_text()\n",
    )
    store = tmp_path / "store"
    first = user.audit(store)
    reason = "training.cached keeps values (functools.cache), and what they were computed from is not known"
    assert reason in only_reason(first)
    user.forget()  # as if Python had been started again
    user.write(5)
    changed = user.audit(store)
    assert findings(changed) == findings(user.audit(None)) != findings(first)


def test_arguments_of_the_command_line(user, tmp_path, monkeypatch):
    user.begin("import sys; return sys.argv[1]")
    reports = {}
    for depth in ("1", "5", "1"):
        monkeypatch.setattr(sys, "argv", ["training.py", depth])
        report = user.audit(tmp_path / "store")
        assert findings(report) == findings(user.audit(None))
        assert reused(report) == ((4, 0) if depth in reports else (0, 4))
        reports[depth] = report


class TestNotStored:
    @pytest.mark.by_day("return dict(os.environ)['DEPTH']-reads the whole environment")
    @pytest.mark.parametrize(
        ("body", "reason"),
        {
            "a program": (
                KINDS["a program"],
                "starts program, and what that reads is not known: name it (depends_on, --depends-on FILE)",
            ),
            "a shell": ("return os.popen('cat depth.txt').read()", "starts sh, and what that reads is not known"),
            "the environment": (KINDS["a copy of the environment"], "reads the whole environment"),
            "a process": (
                "from multiprocessing import get_context\n"
                "    p = get_context('fork').Process(target=print); p.start(); p.join(); return 1",
                "starts processes of its own",
            ),
            "a connection": (
                "import socket\n"
                "    s = socket.socket(); s.settimeout(1); s.connect_ex(('127.0.0.1', 9)); s.close(); return 1",
                "connects to another machine",
            ),
            "ctypes": (
                "import ctypes; ctypes.CDLL(None); ctypes.CDLL('libc.so.6'); return 1",
                "loads a library with ctypes",
            ),
            "Parquet": (
                "return 1 if X is None else pd.read_parquet('depth.parquet')['depth'][0]",
                "files that are read with read_parquet cannot be seen",
            ),
        }.values(),
    )
    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_what_cannot_be_followed_is_not_stored_and_the_report_says_why(self, body, reason, user, tmp_path):
        user.begin(body, "X = None")
        report = user.audit(tmp_path / "store")
        assert reason in only_reason(report)
        assert not list((tmp_path / "store").glob("*.npz"))
        assert reused(user.audit(tmp_path / "store")) == (0, 4)

    @pytest.mark.slow
    def test_a_value_that_only_this_process_has(self, user, tmp_path):
        """Workers import the module as its file says."""
        user.begin("return settings.CONF['depth']")
        importlib.import_module("training")
        change_values(user, 5)
        report = user.audit(tmp_path / "store", n_jobs=2)
        assert "is made by workers in which settings is not what it is here; restart Python" in only_reason(report)


class TestWorkers:
    @pytest.mark.slow
    def test_workers_find_the_key_of_the_driver(self, user, tmp_path):
        user.begin(KINDS["open"])
        store = tmp_path / "store"
        assert reused(user.audit(store, n_jobs=2)) == (0, 4)
        assert reused(user.audit(store)) == (4, 0)
        user.write(5)
        changed = user.audit(store, n_jobs=2)
        assert reused(changed) == (0, 4)
        assert findings(changed) == findings(user.audit(None))


class TestByHand:
    def test_what_a_program_reads_is_named(self, user, tmp_path):
        user.begin(KINDS["a program"])
        store = tmp_path / "store"
        first = user.audit(ls.Store(store, depends_on=["program"]))
        assert reused(user.audit(ls.Store(store, depends_on=["program"]))) == (4, 0)
        user.write(5)
        changed = user.audit(ls.Store(store, depends_on=["program"]))
        assert reused(changed) == (0, 4)
        assert findings(changed) == findings(user.audit(None)) != findings(first)

    def test_a_file_that_is_not_there_is_refused(self, user, tmp_path):
        user.begin("return 1")
        with pytest.raises(ValueError, match=r"^depends_on names files that the models depend on, and no.txt is none$"):
            user.audit(ls.Store(tmp_path / "store", depends_on=["no.txt"]))

    @pytest.mark.slow
    def test_references_of_a_trained_model(self, user, tmp_path):
        user.begin(KINDS["a program"])
        fit = importlib.import_module("training").fit
        store = tmp_path / "store"

        def n_stored() -> int:
            model = fit(X[::2], Y[::2], 0)
            sides = [(X[start::2], Y[start::2]) for start in (0, 1)]
            ls.audit_model(
                model,
                *sides,
                references=ls.Fitted(fit, n=4),
                attacks=["rmia"],
                n_jobs=1,
                store=ls.Store(store, depends_on="program"),
            )
            return len(list(store.rglob("*.npz")))

        first = n_stored()
        assert n_stored() == first > 0
        user.write(5)
        assert n_stored() == 2 * first

    def test_without_references_nothing_is_stored(self, user):
        user.begin("return 1")
        model = importlib.import_module("training").fit(X, Y, 0)
        with pytest.raises(ValueError, match=r"^depends_on is of reference models that are stored, and there are none"):
            ls.audit_model(model, (X[::2], Y[::2]), (X[1::2], Y[1::2]), store=ls.Store(None, depends_on="conf.json"))

    @pytest.mark.by_day("file")
    @pytest.mark.parametrize("promise", ["drawn", "file"])
    def test_a_statistic_that_starts_a_program(self, user, tmp_path, promise):
        user.begin(KINDS["a program"], "def scaled_mean(x):\n    return int(depth()) * np.asarray(x).mean(axis=0)")
        store, rows = tmp_path / "store", X[:12]
        made_of = ls.Drawn(fits=40, games=0) if promise == "drawn" else ls.File(games=0)

        def noise(store: Path | None) -> tuple[list[float], int]:
            statistic = importlib.import_module("training").scaled_mean
            made = calibrate(statistic, rows, eta=0.2, promise=made_of, n_jobs=1, store=store, depends_on="program")
            stored = 0 if store is None else len(list(store.rglob("*.npz")))
            return list(made.certificate.about.certificate.noise.rms), stored

        first, n_stored = noise(store)
        assert noise(store) == (first, n_stored)
        assert n_stored > 0
        user.write(5)
        changed, n_then = noise(store)
        assert n_then == 2 * n_stored
        assert changed == noise(None)[0]
        assert changed[0] == pytest.approx(5 * first[0], rel=0.2)  # the shape is rounded


def code_of(*modules: str) -> UserCode:
    return UserCode({name: State(name, "", "") for name in modules})


CODE = code_of("ast")


class TestWatched:
    """What is no input: what belongs to the machine, what was written before, what other threads do."""

    def test_files_that_are_written_first(self, tmp_path):
        with watched(CODE, str) as watch:
            (tmp_path / "a").write_text("1")
            (tmp_path / "a").read_text()
            (tmp_path / "folder").mkdir()
            (tmp_path / "folder" / "b").write_text("1")
            list((tmp_path / "folder").iterdir())
        assert watch.inputs.as_json() == {"files": {}, "environment": {}}
        assert not watch.inputs.unseen

    def test_a_file_that_is_missing_may_not_appear(self, tmp_path):
        with watched(UserCode(), str) as watch, pytest.raises(FileNotFoundError):
            (tmp_path / "a").read_text()
        assert watch.inputs.still_hold()
        (tmp_path / "a").write_text("1")
        assert not watch.inputs.still_hold()

    def test_what_is_seen_where_no_types_are_checked(self, tmp_path):
        """The checks of types in tests put calls between the hook and the code of the user."""
        script = tmp_path / "script.py"
        script.write_text(
            "import ctypes, os\n"
            "from leakbound.releases.source_code import UserCode, State\n"
            "from leakbound.runtime.inputs import watched\n"
            "code = UserCode({'script': State('script', '', '')})\n"
            "with watched(code, str) as watch:\n"
            "    os.listdir('.')\n"
            "    open('script.py').close()\n"
            "    ctypes.CDLL(None)\n"
            "print(sorted(watch.inputs.files), watch.inputs.unseen)\n"
        )
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path, check=True)
        assert done.stdout == "['.', 'script.py'] loads a library with ctypes\n"

    def test_names_in_a_folder(self, tmp_path):
        with watched(UserCode(), str) as watch:
            assert os.listdir(tmp_path) == []
        (tmp_path / "a").touch()
        assert not watch.inputs.still_hold()

    def test_variables_that_are_set_first_or_belong_to_the_machine(self, monkeypatch):
        monkeypatch.setenv("LEAKBOUND_TEST", "0")
        with watched(CODE, str) as watch:
            os.environ["LEAKBOUND_TEST"] = "1"
            assert os.environ["LEAKBOUND_TEST"] == "1"
            assert os.environ.get("OMP_NUM_THREADS", "1")
        assert watch.inputs.as_json() == {"files": {}, "environment": {}}

    def test_nothing_is_changed_behind_it(self):
        with watched(UserCode(), str):
            assert type(os.environ) is not os._Environ
        assert type(os.environ) is os._Environ

    def test_what_code_has_read_before_stays_with_its_module(self, tmp_path):
        """It may have kept it."""
        (tmp_path / "a").write_text("1")
        with watched(code_of("ast"), str):
            (tmp_path / "a").read_text()
        with watched(code_of("ast", "csv"), str) as watch:
            pass
        assert list(watch.inputs.files) == [str(tmp_path / "a")]
        with watched(code_of("calendar"), str) as watch:
            pass
        assert not watch.inputs.files
