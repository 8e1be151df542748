"""The code that a class reaches: every module of the user in it changes the digest, and nothing else does."""

from __future__ import annotations

import json
import os
import py_compile
import shlex
import subprocess
import sys
import sysconfig
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakbound as ls
from leakbound.releases import source_code
from leakbound.releases.estimator import Estimator
from leakbound.releases.source_code import NoCanonicalForm, digest_of, digest_of_classes
from leakbound.releases.specs import imported
from tests.cli.calling import caller
from tests.marks import slow_but

Project = Callable[[Mapping[str, str]], None]
MODEL = "class Model:\n    pass\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Writes modules of a user and forgets those that were imported before."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in ("mine", "helper"):  # of another test
        monkeypatch.delitem(sys.modules, name, raising=False)
    before = set(sys.modules)

    def write(files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        forget()

    def forget() -> None:
        for name in set(sys.modules) - before:
            if getattr(sys.modules[name], "__file__", None) is None or str(tmp_path) in str(sys.modules[name].__file__):
                del sys.modules[name]
        for finder in sys.meta_path:
            if callable(clear := getattr(finder, "invalidate_caches", None)):
                clear()
        sys.path_importer_cache.clear()

    yield write
    forget()


REACHES = {
    "its own module": ({"mine.py": MODEL + "SCALE = 1\n"}, "mine.py"),
    "an import": ({"mine.py": "import helper\n" + MODEL, "helper.py": "A = 1\n"}, "helper.py"),
    "an import of an import": (
        {"mine.py": "import helper\n" + MODEL, "helper.py": "from third import A\n", "third.py": "A = 1\n"},
        "third.py",
    ),
    "an import inside of a function": (
        {"mine.py": MODEL + "def f():\n    import helper\n", "helper.py": "A = 1\n"},
        "helper.py",
    ),
    "a base class": (
        {"mine.py": "from base import Base\n\nclass Model(Base):\n    pass\n", "base.py": "class Base:\n    A = 1\n"},
        "base.py",
    ),
    "a base class that reading does not find": (
        {
            "mine.py": "from way import BASES\n\nclass Model(BASES[0]):\n    pass\n",
            "way.py": "import base as b\nBASES = [b.Base]\n",
            "base.py": "class Base:\n    A = 1\n",
        },
        "base.py",
    ),
    "a relative import": (
        {"pkg/__init__.py": "", "pkg/helper.py": "A = 1\n", "pkg/mine.py": "from .helper import A\n" + MODEL},
        "pkg/helper.py",
    ),
    "a relative import of a module": (
        {
            "pkg/__init__.py": "",
            "pkg/sub/__init__.py": "",
            "pkg/helper.py": "A = 1\n",
            "pkg/sub/mine.py": "from .. import helper\n" + MODEL,
        },
        "pkg/helper.py",
    ),
    "the package around it": ({"pkg/__init__.py": "A = 1\n", "pkg/mine.py": MODEL}, "pkg/__init__.py"),
    "a module of a package": (
        {"pkg/__init__.py": "", "pkg/helper.py": "A = 1\n", "mine.py": "from pkg import helper\n" + MODEL},
        "pkg/helper.py",
    ),
    "all names of a package": (
        {
            "pkg/__init__.py": "__all__ = ['helper']\n",
            "pkg/helper.py": "A = 1\n",
            "mine.py": "from pkg import *\n" + MODEL,
        },
        "pkg/helper.py",
    ),
    "a module of a namespace package": (
        {"space/helper.py": "A = 1\n", "mine.py": "from space.helper import A\n" + MODEL},
        "space/helper.py",
    ),
    "a metaclass": (
        {
            "mine.py": "from meta import Meta\n\nclass Model(metaclass=Meta):\n    pass\n",
            "meta.py": "class Meta(type):\n    A = 1\n",
        },
        "meta.py",
    ),
}


def model(files: Mapping[str, str]) -> Any:
    path = next(name for name in files if name.endswith("mine.py"))
    return imported(f"{path.removesuffix('.py').replace('/', '.')}:Model")


@pytest.mark.parametrize(("files", "changed"), REACHES.values(), ids=REACHES)
def test_a_change_changes_the_digest_in(files, changed, project):
    project(files)
    first = digest_of(model(files))
    assert first is not None
    assert digest_of(model(files)) == first
    project({changed: files[changed] + "B = 2\n"})
    assert digest_of(model(files)) != first
    project({changed: files[changed]})
    assert digest_of(model(files)) == first


def test_a_change_elsewhere_changes_nothing(project):
    files = {"mine.py": "import helper\n" + MODEL, "helper.py": "A = 1\n", "other.py": "A = 1\n"}
    project(files)
    first = digest_of(model(files))
    project({"other.py": "A = 2\n"})
    assert digest_of(model(files)) == first


def test_cycles_end(project):
    files = {"mine.py": "import helper\n" + MODEL, "helper.py": "import mine\n"}
    project(files)
    assert digest_of(model(files)) is not None


def test_a_module_that_is_missing_and_then_there_changes_the_digest(project):
    files = {"mine.py": "try:\n    import fast\nexcept ImportError:\n    fast = None\n" + MODEL}
    project(files)
    first = digest_of(model(files))
    project({"fast.py": "A = 1\n"})
    assert digest_of(model(files)) != first


def test_the_version_of_an_imported_package_changes_the_digest(project, monkeypatch):
    files = {"mine.py": "import numpy\n" + MODEL}
    project(files)
    first = digest_of(model(files))
    monkeypatch.setattr(source_code, "version", lambda name: "0.0")
    assert digest_of(model(files)) != first


def test_what_is_installed_has_no_digest():
    from sklearn.tree import DecisionTreeClassifier

    assert digest_of(DecisionTreeClassifier) is None
    assert digest_of(np.median) is None
    assert digest_of(json.dumps) is None


def test_a_file_among_the_packages_without_a_version_counts_as_the_users(tmp_path, project):
    """Somebody copied it there."""
    folder = tmp_path / "site-packages"
    files = {"mine.py": "import copied\n" + MODEL, "site-packages/copied.py": "A = 1\n"}
    project(files)
    sys.path.insert(0, str(folder))
    try:
        first = digest_of(model(files))
        project({"site-packages/copied.py": "A = 2\n"})
        assert digest_of(model(files)) != first
    finally:
        sys.path.remove(str(folder))


DYNAMIC = {
    "importlib.import_module": (
        "import importlib\nhelper = importlib.import_module('helper')\n",
        "mine uses importlib",
    ),
    "import_module": ("from importlib import import_module as get\n", "mine uses importlib.import_module"),
    "util": ("import importlib.util\n", "mine uses importlib.util"),
    "__import__": ("helper = __import__('helper')\n", "mine uses __import__"),
    "exec": ("exec('A = 1')\n", "mine uses exec"),
    "runpy": ("def f():\n    import runpy\n", "mine uses runpy"),
    "sys.modules": ("import sys as s\nf = lambda: s.modules['helper'].A\n", "mine uses sys.modules"),
}


@pytest.mark.parametrize(("text", "reason"), DYNAMIC.values(), ids=DYNAMIC)
def test_code_that_chooses_code_is_refused(text, reason, project):
    files = {"mine.py": text + MODEL, "helper.py": "A = 1\n"}
    project(files)
    with pytest.raises(NoCanonicalForm) as caught:
        digest_of(model(files))
    assert str(caught.value) == f"{reason}, and which code that runs cannot be read off"


def test_metadata_and_resources_choose_no_code(project):
    files = {"mine.py": "from importlib import metadata, resources\nimport importlib.metadata as m\n" + MODEL}
    project(files)
    assert digest_of(model(files)) is not None


def test_a_module_without_source_is_refused(project, tmp_path):
    files = {"mine.py": "import helper\n" + MODEL, "helper.py": "A = 1\n"}
    project(files)
    py_compile.compile(str(tmp_path / "helper.py"), str(tmp_path / "helper.pyc"))
    (tmp_path / "helper.py").unlink()
    with pytest.raises(NoCanonicalForm, match=r"^helper has no source file$"):
        digest_of(model(files))


def test_a_compiled_module_is_refused(project, tmp_path):
    files = {"mine.py": MODEL + "def f():\n    import fast\n"}
    project(files)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    (tmp_path / f"fast{suffix}").touch()
    with pytest.raises(NoCanonicalForm) as caught:
        digest_of(model(files))
    assert str(caught.value) == f"fast is compiled (fast{suffix})"


def test_a_module_that_was_made_in_memory_is_refused(project, monkeypatch):
    files = {"mine.py": "import helper\n" + MODEL}
    project({**files, "helper.py": ""})
    monkeypatch.setitem(sys.modules, "helper", types.ModuleType("helper"))
    with pytest.raises(NoCanonicalForm, match=r"^helper has no source file$"):
        digest_of(model(files))


class TestUnreachable:
    def test_a_lambda(self):
        with pytest.raises(NoCanonicalForm, match="a lambda has no name"):
            digest_of(lambda x: x)

    def test_a_function_inside_of_another(self):
        def inner() -> None: ...

        with pytest.raises(NoCanonicalForm, match="inner is defined inside of a function"):
            digest_of(inner)

    def test_a_class_inside_of_a_function_is_known_by_its_module(self, project):
        """As the layers of a network that a function makes."""
        project({"mine.py": "def made():\n    class Inner: ...\n    return Inner\n"})
        first = digest_of_classes([imported("mine:made")()])
        project({"mine.py": "def made():\n    class Inner:\n        A = 1\n    return Inner\n"})
        assert digest_of_classes([imported("mine:made")()]) not in {None, first}

    def test_two_functions_of_one_name(self, project):
        """A decorator that keeps the name: each of them has its own number."""
        text = (
            "from functools import wraps\n"
            "def base(x):\n    return x\n"
            "def times(k):\n    @wraps(base)\n    def f(x):\n        return k * x\n    return f\n"
        )
        project({"mine.py": text})
        times = imported("mine:times")
        with pytest.raises(NoCanonicalForm, match="mine:base leads to something else than the base that is used"):
            digest_of(times(2))

    def test_main(self):
        class Model: ...

        Model.__module__, Model.__qualname__ = "__main__", "Model"
        with pytest.raises(NoCanonicalForm, match="Model is defined in __main__; move it to a module"):
            digest_of(Model)


# A module `helper`, whose A a method of the model names, and what is done to it.
LIVE = {
    "a number": ("A = 1\n", "helper.A = 2"),
    "its type": ("A = 1\n", "helper.A = 1.0"),
    "a dict": ("A = {'depth': 1}\n", "helper.A['depth'] = 2"),
    "a dict in a list": ("A = [{'depth': 1}]\n", "helper.A[0]['depth'] = 2"),
    "a set": ("A = {'a', 'b'}\n", "helper.A.add('c')"),
    "an array": ("import numpy as np\nA = np.zeros(3)\n", "helper.A[1] = 1"),
    "a data frame": ("import pandas as pd\nA = pd.DataFrame({'a': [1, 2]})\n", "helper.A.loc[0, 'a'] = 5"),
    "a class attribute": ("class A:\n    depth = 1\n", "helper.A.depth = 2"),
    "an attribute of a base": ("class B:\n    depth = 1\nclass A(B):\n    pass\n", "helper.B.depth = 2"),
    "an attribute of an inner class": ("class A:\n    class In:\n        d = 1\n", "helper.A.In.d = 2"),
    "an object": ("class B:\n    pass\nA = B()\nA.depth = 1\n", "helper.A.depth = 2"),
    "a tuple with names": (
        "from typing import NamedTuple\nclass B(NamedTuple):\n    depth: list\nA = B([1])\n",
        "helper.A.depth.append(2)",
    ),
    "a field": (
        "from dataclasses import dataclass\n@dataclass\nclass B:\n    depth: int = 1\nA = B()\n",
        "helper.A.depth = 2",
    ),
    "a default": ("def A(depth=1):\n    return depth\n", "helper.A.__defaults__ = (2,)"),
    "a default of a keyword": ("def A(*, depth=1):\n    return depth\n", "helper.A.__kwdefaults__['depth'] = 2"),
    "a closure": (
        "def made(depth):\n    def f():\n        return depth[0]\n    return f\nA = made([1])\n",
        "helper.A.__closure__[0].cell_contents[0] = 2",
    ),
    "a function": ("def A():\n    return 1\n", "helper.A.__code__ = (lambda: 2).__code__"),
    "a method": ("class A:\n    def f(self):\n        return 1\n", "helper.A.f = lambda self: 2"),
    "a function in a table": (
        "def f():\n    return 1\ndef g():\n    return 1\nA = {'way': f}\n",
        "helper.A['way'] = helper.g",
    ),
    "a partial function": ("from functools import partial\nA = partial(max, [1])\n", "helper.A.args[0].append(2)"),
    "a name that is computed": (
        "B = 1\ndef A():\n    return globals()['B' + '']\n",
        "helper.B = 2",
    ),
    "a function of another module that nothing imports": (
        "from registry import TABLE as A\n",
        "import plugin; plugin.DEPTH[0] = 2",
    ),
}
REGISTRY = {
    "registry.py": "TABLE = {}\n",
    "plugin.py": "import registry\nDEPTH = [1]\ndef f():\n    return DEPTH[0]\nregistry.TABLE['f'] = f\n",
}
USES = "import helper\n\n\nclass Model:\n    def fit(self):\n        return helper.A\n"


class TestLiveValues:
    """The code that runs is what is in memory, whatever the files say."""

    @pytest.mark.parametrize(("text", "change"), LIVE.values(), ids=LIVE)
    def test_a_change_changes_the_digest(self, text, change, project):
        project({"mine.py": USES, "helper.py": text, **REGISTRY})
        mine = imported("mine:Model")
        imported("plugin:f")
        first = digest_of(mine)
        assert digest_of(mine) == first
        exec(change, {"__name__": "helper", "helper": sys.modules["helper"]})
        assert digest_of(mine) not in {None, first}

    @pytest.mark.parametrize("live", slow_but(LIVE, *list(LIVE)[::8]))
    def test_the_digest_is_the_same_in_another_process(self, live, project, tmp_path):
        project({"mine.py": USES, "helper.py": LIVE[live][0], **REGISTRY})
        says = "import plugin, mine; from leakbound.releases.source_code import digest_of; print(digest_of(mine.Model))"
        run = subprocess.run([sys.executable, "-c", says], cwd=tmp_path, capture_output=True, text=True, check=True)
        imported("plugin:f")
        assert run.stdout.strip() == digest_of(imported("mine:Model"))

    def test_what_no_function_names_is_no_part_of_it(self, project):
        project({"mine.py": USES, "helper.py": "A = 1\nSTARTED = [0]\n"})
        mine = imported("mine:Model")
        first = digest_of(mine)
        sys.modules["helper"].STARTED.append(1)  # pyright: ignore[reportAttributeAccessIssue]
        assert digest_of(mine) == first

    @pytest.mark.parametrize(
        "text", ["import threading\nA = threading.Lock()\n", "import logging\nA = logging.getLogger('a')\n"]
    )
    def test_what_has_no_value_is_not_compared(self, text, project):
        project({"mine.py": USES, "helper.py": text})
        assert digest_of(imported("mine:Model")) is not None

    def test_what_cannot_be_compared_is_refused(self, project):
        project({"mine.py": USES, "helper.py": "A = open(__file__)\n"})
        with pytest.raises(NoCanonicalForm) as caught:
            digest_of(imported("mine:Model"))
        sys.modules["helper"].A.close()  # pyright: ignore[reportAttributeAccessIssue]
        assert str(caught.value) == "helper.A is a TextIOWrapper, which two runs cannot compare"


TREE = (
    "from sklearn.tree import DecisionTreeClassifier\nfrom depth import DEPTH\n\n"
    "class Tree(DecisionTreeClassifier):\n"
    "    def fit(self, X, y):\n"
    "        self.max_depth = DEPTH\n"
    "        return super().fit(X, y)\n"
)


def test_a_task_whose_helper_has_changed_is_done_again(project, tmp_path):
    found = []
    for value in (1, 2):
        task = "import helper\n\ndef task(seed):\n    return {'it': helper.IT}\n"
        project({"mine.py": task, "helper.py": f"IT = {value}\n"})
        found.append(ls.repeat(imported("mine:task"), [(0,)], store=tmp_path / "store", n_jobs=1)[0]["it"].item())
    assert found == [1, 2]
    assert len(list((tmp_path / "store").iterdir())) == 2


@pytest.mark.nightly
@pytest.mark.slow
def test_an_audit_does_not_use_the_models_of_code_that_was_changed(project, tmp_path, monkeypatch, capfd):
    """The same command, once with the store of the old code and once with an empty one: the same report.

    The second run is a process of its own.
    """
    reports = []
    monkeypatch.chdir(tmp_path)
    for number, (depth, store) in enumerate([(1, "store"), (9, "store"), (9, "empty")]):
        project({"trees.py": TREE, "depth.py": f"DEPTH = {depth}\n"})
        words = f"audit --dataset wine --model trees:Tree --n-models 8 --attack loss --n-jobs 1 --store {store} --json"
        if number == 1:
            run = subprocess.run(
                [sys.executable, "-m", "leakbound", *shlex.split(words)],
                env=os.environ, capture_output=True, text=True, check=True,
            )  # fmt: skip
            said = run.stdout
        else:
            left = caller(monkeypatch, capfd)(words)
            assert left.code == 0, left.err
            said = left.out
        reports.append(json.loads(said)["findings"])
    assert reports[1] == reports[2]
    assert reports[0] != reports[1]
    assert len(list((tmp_path / "store").glob("*.npz"))) == 4


def test_estimators_say_why_they_are_not_stored(project):
    files = {
        "mine.py": TREE.replace("from depth import DEPTH", "DEPTH = 1\nimport importlib").replace("Tree(", "Model(")
    }
    project(files)
    release = Estimator(model(files)())
    assert release.describe() is None
    assert release.not_stored == "mine uses importlib, and which code that runs cannot be read off"
