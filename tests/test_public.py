"""The public face: names, words and docstrings."""

from __future__ import annotations

import inspect
import subprocess
import sys
import tomllib
from importlib import import_module, resources

import pytest
import typer

import leakscope as ls
from leakscope import auditing
from leakscope.cli import audits
from leakscope.cli import main as cli
from leakscope.plans import AuditPlan, ClaimPlan, ModelPlan

# flags that say where to run and what to print, not what the audit is
OF_THE_RUN = {
    "plan", "predict", "weights", "classes", "members", "others", "signals", "store", "out", "jobs", "records",
    "dry_run", "as_json",
}  # fmt: skip
# repeatable flags are singular; --set, --train, --layers and --dpsgd belong to a [[model]]
SINGULAR = {"attack": "attacks", "set_": "model", "train": "model", "layers": "model", "dpsgd": "model"}


def _flags() -> set[str]:
    command = inspect.signature(audits.audit)
    return {SINGULAR.get(name, name) for name in command.parameters} - OF_THE_RUN


def test_flags_are_words_of_the_plan() -> None:
    assert _flags() <= set(AuditPlan.model_fields)


@pytest.mark.parametrize("function", [auditing.audit, auditing.audit_model, auditing.audit_signals])
def test_keywords_are_words_of_the_plan(function) -> None:
    of_the_call = {"estimator", "X", "y", "predict_proba", "members", "others", "signals", "name", "words"}
    keywords = set(inspect.signature(function).parameters) - of_the_call - {"store", "jobs"}
    assert keywords - {"references"} <= set(AuditPlan.model_fields)


def test_commented_plan_names_every_word_and_no_other() -> None:
    text = resources.files("leakscope").joinpath("plan.toml").read_text(encoding="utf-8")
    uncommented = "\n".join(
        line[2:]
        if line.startswith("# ") and ("=" in line or "[[" in line) and not line.startswith("# A plan")
        else line
        for line in text.splitlines()
    )
    known = {*AuditPlan.model_fields, *ModelPlan.model_fields, *ClaimPlan.model_fields}
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


def _public() -> list[tuple[str, object]]:
    names = [
        "attacks", "auditing", "claims", "data", "games", "gates", "intervals", "metrics", "observing", "pool",
        "refuting", "report", "reporting", "releases.estimator", "releases.readout", "seeds", "store", "subjects",
        "tradeoff", "types", "signals", "exposing", "guessing", "inferring", "planting", "playing", "data.candidates",
        "attacks.attribute", "metrics.attribute", "metrics.one_run", "releases.recipe", "releases.specs",
        "releases.making", "releases.dpsgd", "releases.canaries", "data.images", "findings", "drawing", "costs",
        "accounting", "covariance",
        "divergence", "grid", "information", "noise", "noise.ledger", "releases.statistics", "releases.features",
        "protecting.asking", "protecting.measuring",
        "protecting.releasing", "protecting.mechanisms", "protecting.calibrating", "protecting.piloting",
        "protecting.unneeded", "protecting.jobs", "protecting.certifying", "protecting.remembering",
        "protecting.comparing", "protecting.wrapping", "protecting.contesting", "protecting.enumerating",
        "protecting.approximating", "protecting.simulating", "protecting.swapping", "releases.updates",
        "noise.families", "noise.linear", "noise.minimax", "noise.ranks",
        "releases.algorithms",
        "releases.logistic",
        "bounds", "bounds.dp", "bounds.exact", "bounds.exponential", "bounds.gaussian", "bounds.generalisation",
        "bounds.information", "bounds.leakage", "bounds.membership", "bounds.posterior", "bounds.regression",
        "bounds.tables", "bounds.totals", "ceilings", "stating", "surveying", "bounding", "plans.audits",
        "plans.bounds", "plans.limits", "plans.plan", "data.columns", "data.files", "data.points", "releases.means",
    ]  # fmt: skip
    found = []
    for name in names:
        module = import_module(f"leakscope.{name}")
        for each, value in vars(module).items():
            home = getattr(value, "__module__", "")
            own = home.startswith("leakscope") and home != "leakscope.checks"
            if own and not each.startswith("_") and (inspect.isfunction(value) or inspect.isclass(value)):
                found.append((f"{value.__module__}.{each}", value))
    return sorted(dict(found).items())


@pytest.mark.parametrize(("name", "value"), _public(), ids=[name for name, _ in _public()])
def test_public_things_have_docstrings(name: str, value: object) -> None:
    text = inspect.getdoc(value) or ""
    assert text, name
    if inspect.isfunction(value):
        parameters = [each for each in inspect.signature(value).parameters if each not in ("words", "self")]
        assert not parameters or "Parameters" in text or len(parameters) <= 2, name


def test_import_is_light() -> None:
    code = (
        "import sys, leakscope; heavy = {'pandas', 'sklearn', 'matplotlib', 'scipy', 'pydantic', 'typer', 'rich', "
        "'joblib', 'jinja2'} & set(sys.modules); sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_commands() -> None:
    names = {command.callback.__name__ for command in cli.app.registered_commands if command.callback}
    assert {"audit", "init", "attacks", "compare"} <= names
    assert isinstance(cli.app, typer.Typer)
