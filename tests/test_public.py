"""The public face: names, words and docstrings."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from importlib import resources
from pathlib import Path

import pytest
import typer

import leakbound as ls
from leakbound.cli import main as cli
from leakbound.plans import AuditPlan, ClaimPlan, ModelPlan
from leakbound.plans.games import GAMES

OF_TORCH = {"Network", "PrivateNetwork"}  # importing their module imports PyTorch
FURTHER = {  # which users call by their module: they may have sections, too
    "leakbound.auditing.api.run",
    "leakbound.protection.api.calibrate_file",
    "leakbound.protection.api.declare",
    "leakbound.protection.api.declare_file",
    "leakbound.protection.api.design_table",
    "leakbound.protection.api.design_table_of_file",
    "leakbound.protection.api.protect_file",
    "leakbound.releases.model_files.read_model",
}
SECTION = re.compile(r"^[A-Z][A-Za-z ]+\n-{3,}$", re.MULTILINE)  # of numpydoc


def test_commented_plan_names_every_word_and_no_other() -> None:
    text = resources.files("leakbound").joinpath("plan.toml").read_text(encoding="utf-8")
    uncommented = "\n".join(
        line[2:]
        if line.startswith("# ") and ("=" in line or "[[" in line) and not line.startswith("# A plan")
        else line
        for line in text.splitlines()
    )
    of_games = {field.name for game in GAMES for field in fields(game)}
    known = {*AuditPlan.model_fields, *ModelPlan.model_fields, *ClaimPlan.model_fields, *of_games}
    keys = {line.split("=")[0].strip() for line in uncommented.splitlines() if "=" in line and not line.startswith("#")}
    assert keys <= known
    assert set(tomllib.loads(text)) == {"dataset", "model"}


def test_public_names_resolve() -> None:
    for name in ls.__all__:
        assert getattr(ls, name) is not None
    assert set(dir(ls)) == set(ls.__all__)
    with pytest.raises(AttributeError, match="no attribute 'adit'"):
        _ = ls.adit


def test_package_docstring_has_the_vocabulary() -> None:
    for word in ("release", "game", "targets", "references", "signal", "attack", "scores", "trade-off", "ceiling",
                 "finding", "report", "plan", "store", "pool"):  # fmt: skip
        assert word in (ls.__doc__ or "")


def public_things() -> list[tuple[str, object]]:
    """List every function and class that ``leakbound.NAME`` or ``leakbound.MODULE.NAME`` reaches, without PyTorch."""
    found: dict[str, object] = {}
    for name in ls.__all__:
        thing = getattr(ls, name)
        values = {name: thing}
        if inspect.ismodule(thing):
            names = getattr(thing, "__all__", None) or [each for each in vars(thing) if not each.startswith("_")]
            values = {each: getattr(thing, each) for each in names if each not in OF_TORCH}
        for each, value in values.items():
            home = getattr(value, "__module__", "")
            own = home.startswith("leakbound") and home not in ("leakbound.core.checks", "leakbound.core.lengths")
            if own and (inspect.isfunction(value) or inspect.isclass(value)):
                found[f"{value.__module__}.{each}"] = value
    return sorted(found.items())


@pytest.mark.parametrize(("name", "value"), public_things(), ids=[name for name, _ in public_things()])
def test_public_things_have_docstrings(name: str, value: object) -> None:
    text = inspect.getdoc(value) or ""
    assert text, name
    if inspect.isfunction(value):
        parameters = [each for each in inspect.signature(value).parameters if each not in ("words", "self")]
        assert not parameters or "Parameters" in text or len(parameters) <= 2, name


def with_sections(node: ast.AST, path: str, public: set[str]) -> Iterator[str]:
    """Yield the names below a node that are not public, and whose docstrings have sections of numpydoc."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from with_sections(child, path, public)
            continue
        name = f"{path}.{child.name}"
        is_method = path in public and not re.match(r"_[^_]", child.name)
        if is_method or name in public or child.name in OF_TORCH:
            public = public | {name}
        elif SECTION.search(ast.get_docstring(child) or ""):
            yield name
        yield from with_sections(child, name, public)


def test_names_that_are_not_public_have_no_sections() -> None:
    """One sentence and the formula: what else a reader needs is a comment at the line that it explains."""
    public = {name for name, _ in public_things()} | FURTHER
    root = Path(ls.__file__).parent
    found: list[str] = []
    for file in sorted(root.rglob("*.py")):
        module = ".".join(("leakbound", *file.relative_to(root).with_suffix("").parts)).removesuffix(".__init__")
        source = file.read_text(encoding="utf-8")
        if "\n    ---" in source:
            found += with_sections(ast.parse(source), module, public)
    assert found == []


def test_sections_of_names_that_are_not_public_are_found() -> None:
    docstring = '"""Say it.\n\n    Returns\n    -------\n    int\n    """'
    source = f"""
class Public:
    def method(self):
        {docstring}
    def _own(self):
        {docstring}
def other():
    {docstring}
def short():
    '''Say it: ``a - b``.'''
"""
    assert list(with_sections(ast.parse(source), "m", {"m.Public"})) == ["m.Public._own", "m.other"]


def test_import_is_light() -> None:
    code = (
        "import sys, leakbound; heavy = {'pandas', 'sklearn', 'matplotlib', 'scipy', 'pydantic', 'typer', 'rich', "
        "'joblib', 'jinja2'} & set(sys.modules); sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_commands() -> None:
    names = {command.callback.__name__ for command in cli.app.registered_commands if command.callback}
    assert {"audit", "init", "attacks", "compare"} <= names
    assert isinstance(cli.app, typer.Typer)
