"""``leakscope audit`` and what stands around it: init, attacks, compare."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leakscope.cli.writing import OUT, command_line, emit, refuse_file, say, write

if TYPE_CHECKING:
    from leakscope.plans.audits import AuditPlan
    from leakscope.report import Report

DEFAULT_MODEL = "sklearn.ensemble:RandomForestClassifier"
OF_FITS = {"dataset", "data", "group", "dry_run"}
IDLE = {  # flags that an audit would not look at are refused, not ignored
    "an audit with --signals": OF_FITS | {"label", "drop", "model", "models", "seed", "predict", "members", "others"},
    "an audit with --predict": OF_FITS,
    "an audit without --predict": {"members", "others"},
}


def audit(
    plan: Annotated[Path | None, typer.Argument(help="A plan in TOML; see leakscope init.")] = None,
    dataset: Annotated[str | None, typer.Option(help="digits, breast_cancer or wine.")] = None,
    data: Annotated[str | None, typer.Option(help="A .csv, .parquet or .npz file.")] = None,
    label: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    group: Annotated[str | None, typer.Option(help="The column that names the unit of privacy.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="A column that is no feature; repeatable.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Import path of an estimator; repeatable.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE, a parameter of the last --model.")
    ] = None,
    models: Annotated[int | None, typer.Option(help="Models to fit for each release. [64]")] = None,
    attack: Annotated[list[str] | None, typer.Option(help="A name of leakscope attacks, or all; repeatable.")] = None,
    claim: Annotated[list[str] | None, typer.Option(help="epsilon=3,delta=1e-5,adjacency=replace_one")] = None,
    predict: Annotated[str | None, typer.Option(help="module:function, ONE trained model's probabilities.")] = None,
    members: Annotated[str | None, typer.Option(help="With --predict: the file of its training data.")] = None,
    others: Annotated[str | None, typer.Option(help="With --predict: a file of other data.")] = None,
    signals: Annotated[str | None, typer.Option(help="An .npz file with member (M, N) and signals (M, N).")] = None,
    store: Annotated[str | None, typer.Option(help="Folder of finished models' signals. [OUT/store]")] = None,
    out: Annotated[Path, typer.Option(help="Folder of report.json, report.html and run.json.")] = Path(OUT),
    jobs: Annotated[int | None, typer.Option(help="Worker processes. [all cores]")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the game and of the fits. [0]")] = None,
    fpr: Annotated[list[float] | None, typer.Option(help="A false-alarm rate, as a share; repeatable.")] = None,
    confidence: Annotated[float | None, typer.Option(help="Of the intervals. [0.95]")] = None,
    fail_above: Annotated[list[str] | None, typer.Option(help="tpr@0.01=0.05: exit code 3 above; repeatable.")] = None,
    records: Annotated[bool, typer.Option(help="Show single records on the page.")] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would cost, and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report's JSON and nothing else.")] = False,
) -> None:
    """Measure what models reveal about who is in their training data.

    With no argument: a random forest on scikit-learn's digits.
    """
    words = {
        "dataset": dataset, "data": data, "label": label, "group": group, "drop": drop, "models": models,
        "attacks": attack, "claim": claim, "seed": seed, "fpr": fpr, "confidence": confidence, "fail_above": fail_above,
    }  # fmt: skip
    said = {name: value for name, value in words.items() if value is not None}
    sources = {
        "model": model, "predict": predict, "members": members, "others": others, "signals": signals,
        "dry_run": dry_run or None,
    }  # fmt: skip
    _refuse_idle({*said, *(name for name, value in sources.items() if value is not None)})
    sys.path.append(os.getcwd())  # the user's own modules stand where the command is called
    chosen = _plan(plan, said, model, set_)
    if dry_run:
        _emit_dry_run(chosen, jobs, as_json)
        return
    started = time.time()
    refuse_file(out)
    shelf = store or str(out / "store")
    if predict is not None:
        report = _audit_predict(chosen, predict, (members, others), bool(model), shelf, jobs)
    elif signals is not None:
        auditing, observing = import_module("leakscope.auditing"), import_module("leakscope.observing")
        report = auditing.audit_signals(observing.read_signals(signals), **_judged_by(chosen))
    else:
        report = import_module("leakscope.auditing").run(chosen, store=shelf, jobs=jobs, command=command_line())
    write(report, out, records, started)
    emit(report, out, as_json)
    _leave(report, chosen.fail_above)


def init(
    plan: Annotated[Path, typer.Argument(help="The file to write.")] = Path("plan.toml"),
) -> None:
    """Write a commented plan to start from."""
    if plan.exists():
        raise ValueError(f"{plan} exists already; choose another name")
    text = resources.files("leakscope").joinpath("plan.toml").read_text(encoding="utf-8")
    import_module("leakscope.report").write(plan, text)
    say(f"wrote {plan}; run it with: leakscope audit {plan}")


def attacks(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List the attacks, what they need and where they come from."""
    room = import_module("leakscope.attacks")
    rows = [
        {
            "attack": attack.name + (" *" if attack.name in room.DEFAULT and not as_json else ""),
            "needs": "references" if attack.needs_references else "nothing",
            "signals": ", ".join(attack.signals),
            "source": attack.source,
        }
        for attack in room.ATTACKS.values()
    ]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    print(import_module("leakscope.report.columns").columns(rows))
    print("* by default; all is every one of them")


def compare(
    first: Annotated[Path, typer.Argument(help="A report.json.")],
    second: Annotated[Path, typer.Argument(help="Another one.")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Put the findings of two reports side by side."""
    kind = import_module("leakscope.report").Report
    rows = import_module("leakscope.report.comparison").compare(kind.from_json(first), kind.from_json(second))
    if as_json:
        print(json.dumps(rows, indent=1))
    else:
        print(import_module("leakscope.report.columns").columns(rows))


def _refuse_idle(given: set[str]) -> None:
    """Flags that nothing would look at."""
    kinds = list(IDLE)
    kind = kinds[0] if "signals" in given else kinds[1] if "predict" in given else kinds[2]
    for name in sorted(given & IDLE[kind]):
        raise ValueError(f"{kind} takes no --{name.replace('_', '-')}")


def _plan(file: Path | None, words: dict[str, Any], specs: list[str] | None, sets: list[str] | None) -> AuditPlan:
    """The plan of a file, of flags, or of a file with flags on top."""
    plans, reading = import_module("leakscope.plans.audits"), import_module("leakscope.plans.plan")
    base = plans.from_toml(file) if file is not None else None
    if "claim" in words:
        words["claim"] = tuple(plans.ClaimPlan.parse(text) for text in words["claim"])
    if sets and not specs:
        raise ValueError("--set needs a --model")
    if specs:
        models: list[dict[str, Any]] = [{"spec": spec} for spec in specs]
        parameters = {name: value for text in sets or [] for name, value in reading.settings(text, "--set").items()}
        models[-1]["set"] = parameters
        words["model"] = models
    if {"data", "dataset"} & words.keys() and base is not None:
        base = base.model_copy(update=dict.fromkeys(("data", "dataset", "label", "group")) | {"drop": ()})
    content = {} if base is None else base.model_dump(exclude_unset=False)
    if base is None and "data" not in words:
        words.setdefault("dataset", "digits")
    merged = reading.read(plans.AuditPlan, {**content, **words}, str(file or "audit"))
    if merged.model:
        return merged
    return merged.model_copy(update={"model": (plans.ModelPlan(spec=DEFAULT_MODEL),)})


def _judged_by(plan: AuditPlan) -> dict[str, Any]:
    """The words of a plan that signals from elsewhere are judged by."""
    names = ("attacks", "fpr", "confidence", "claim", "title", "unit", "date")
    return {name: getattr(plan, name) for name in names}


def _audit_predict(
    plan: AuditPlan,
    predict: str,
    files: Sequence[str | None],
    fit: bool,
    shelf: str,
    jobs: int | None,
) -> Report:
    """One trained model with its members and others; with --model also the recipe of the reference models."""
    if None in files:
        raise ValueError("--predict needs --members FILE and --others FILE")
    auditing, room = import_module("leakscope.auditing"), import_module("leakscope.data")
    estimator = import_module("leakscope.releases.estimator")
    function = estimator.imported(predict)
    sides = [room.load(file, plan.label, None, plan.drop).points for file in files]
    recipe = estimator.from_spec(plan.model[0].spec, plan.model[0].set) if fit else None
    words = _judged_by(plan) | {"seed": plan.seed, "models": plan.models if fit else 2}
    pairs = [(points.x, points.y) for points in sides]
    return auditing.audit_model(function, *pairs, references=recipe, store=shelf, jobs=jobs, name=predict, **words)


def _emit_dry_run(plan: AuditPlan, jobs: int | None, as_json: bool) -> None:
    lines = import_module("leakscope.costs").cost(plan, jobs)
    if as_json:
        print(json.dumps(list(lines), indent=1))
        return
    for line in lines:
        print(line, flush=True)


def _leave(report: Report, limits: Sequence[str]) -> None:
    """Say what is refuted and which limits are exceeded, and leave with the exit code of that."""
    gates = import_module("leakscope.gates")
    for text in gates.refuted(report):
        say(f"refuted: {text}")
    for text in gates.failures(report, limits):
        say(f"limit: {text}")
    if code := gates.exit_code(report, limits):
        raise typer.Exit(code)
