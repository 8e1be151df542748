"""``leakscope audit`` and what stands around it: init, attacks, compare."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leakscope.cli.options import Spelling, argument, command, option, options_of
from leakscope.cli.writing import OUT, command_line, emit, refuse_file, say, write
from leakscope.plans.audits import AuditPlan, ClaimPlan, ModelPlan, from_toml
from leakscope.plans.plan import read, settings

if TYPE_CHECKING:
    from leakscope.report import Report

DEFAULT_MODEL = "sklearn.ensemble:RandomForestClassifier"
OF_FITS = {
    "dataset", "data", "group", "attribute", "bins", "dry_run", "dpsgd", "game", "canaries", "n_canaries", "knowledge",
}  # fmt: skip
IDLE = {  # flags that an audit would not look at are refused, not ignored
    "an audit with --signals": OF_FITS
    | {"label", "drop", "model", "layers", "models", "seed", "predict", "weights", "classes", "members", "others"},
    "an audit with --predict": OF_FITS | {"weights", "layers"},
    "an audit with --weights": OF_FITS,
    "an audit without --predict or --weights": {"classes", "members", "others"},
}
IN_A_FILE = ("title", "unit", "date", "sampling", "target", "references")  # words that are no flags
AS_FLAGS = {  # above all, a field that holds several values is a flag for one of them
    "dataset": Spelling(help="digits, breast_cancer or wine."),
    "group": Spelling(help="The column that names the unit of privacy."),
    "drop": Spelling(help="A column that is no feature; repeatable."),
    "model": Spelling(help="Import path of an estimator or of what makes a network; repeatable."),
    "attacks": Spelling("--attack", "A name of leakscope attacks, or all; repeatable."),
    "attribute": Spelling(help="Guess this column of the members, instead of who is in."),
    "bins": Spelling(help="Of the attribute's numbers: how many bins; repeated, the edges."),
    "game": Spelling(help="half_split, or canaries: planted ones, in by a coin each, where one model is enough."),
    "canaries": Spelling(help="dirac (of DP-SGD, by itself), mahalanobis, mislabelled or random."),
    "knowledge": Spelling(help="law or others: what who sees the steps knows of the other records."),
    "claim": Spelling(help="epsilon=3,delta=1e-5,adjacency=replace_one"),
    "fpr": Spelling(help="A false-alarm rate, as a share; repeatable."),
    "fail_above": Spelling(help="tpr@0.01=0.05: exit code 3 above; repeatable."),
}
OF_THE_RUN = (
    argument("plan", Path, "A plan in TOML; see leakscope init."),
    option("layers", list[str] | None, "Of the last --model: whose gradients are seen; repeatable. [all]"),
    option("set_", list[str] | None, "NAME=VALUE, a parameter of the last --model.", flag="--set"),
    option("train", list[str] | None, "NAME=VALUE, how the last --model, a network, is trained."),
    option("dpsgd", list[str] | None, "NAME=VALUE, how the last --model, a network, is trained by DP-SGD."),
    option("predict", str | None, "module:function, ONE trained model's probabilities."),
    option("weights", str | None, "State dict of the --model, ONE trained network; with --models N of its recipe."),
    option("classes", list[str] | None, "With --predict or --weights: the label of each column, in order; repeatable."),
    option("members", str | None, "With --predict or --weights: the file of its training data."),
    option("others", str | None, "With --predict or --weights: a file of other data."),
    option("signals", str | None, "An .npz file with member (M, N) and signals (M, N)."),
    option("store", str | None, "Folder of finished models' signals. [OUT/store]"),
    option("out", Path, "Folder of report.json, report.html and run.json.", Path(OUT)),
    option("jobs", int | None, "Worker processes. [all cores]"),
    option("records", bool, "Show single records on the page.", True, "--records/--no-records"),
    option("dry_run", bool, "Say what would be done and what it would cost, and stop.", False, "--dry-run"),
    option("as_json", bool, "Print the report's JSON and nothing else.", False, "--json"),
)
IN_ORDER = (  # of the help: what is audited, how, where, what counts
    "plan", "dataset", "data", "label", "group", "drop", "model", "set_", "train", "layers", "dpsgd", "models", "game",
    "canaries", "n_canaries", "knowledge", "attacks", "claim", "attribute", "bins", "predict", "weights", "classes",
    "members", "others", "signals", "store", "out", "jobs", "seed", "fpr", "confidence", "fail_above", "records",
    "dry_run", "as_json",
)  # fmt: skip


def _audit(plan: Path | None, out: Path, records: bool, dry_run: bool, as_json: bool, **given: Any) -> None:
    """An audit of a plan, of one trained model, or of signals from elsewhere."""
    said = {name: value for name, value in given.items() if value is not None and value != []}
    _refuse_idle({*said, *(["dry_run"] if dry_run else [])})
    sys.path.append(os.getcwd())  # the user's own modules stand where the command is called
    chosen, jobs = _plan(plan, said), said.get("jobs")
    if dry_run:
        _emit_dry_run(chosen, jobs, as_json)
        return
    started = time.time()
    refuse_file(out)
    shelf = said.get("store") or str(out / "store")
    if {"predict", "weights"} & said.keys():
        report = _audit_trained(chosen, said, shelf)
    elif "signals" in said:
        auditing, observing = import_module("leakscope.auditing"), import_module("leakscope.observing")
        report = auditing.audit_signals(observing.read_signals(said["signals"]), **_judged_by(chosen))
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
    *kinds, of_fits = IDLE
    flags = ("signals", "predict", "weights")
    kind = next((kind for kind, flag in zip(kinds, flags, strict=True) if flag in given), of_fits)
    for name in sorted(given & IDLE[kind]):
        raise ValueError(f"{kind} takes no --{name.replace('_', '-')}")


def _plan(file: Path | None, said: Mapping[str, Any]) -> AuditPlan:
    """The plan of a file, of flags, or of a file with flags on top."""
    base = from_toml(file) if file is not None else None
    words = {name: value for name, value in said.items() if name in AuditPlan.model_fields}
    if "claim" in words:
        words["claim"] = tuple(ClaimPlan.parse(text) for text in words["claim"])
    for name, flag in (("set_", "--set"), ("train", "--train"), ("layers", "--layers"), ("dpsgd", "--dpsgd")):
        if name in said and "model" not in said:
            raise ValueError(f"{flag} needs a --model")
    if "model" in said:
        models: list[dict[str, Any]] = [{"spec": spec} for spec in said["model"]]
        models[-1] |= {"set": _pairs(said, "set_", "--set"), "train": _pairs(said, "train", "--train")}
        models[-1] |= {"dpsgd": _pairs(said, "dpsgd", "--dpsgd")} if "dpsgd" in said else {}
        models[-1] |= {"layers": tuple(said["layers"])} if "layers" in said else {}
        words["model"] = models
    if {"data", "dataset"} & words.keys() and base is not None:
        base = base.model_copy(update=dict.fromkeys(("data", "dataset", "label", "group")) | {"drop": ()})
    content = {} if base is None else base.model_dump(exclude_unset=True)
    if base is None and "data" not in words:
        words.setdefault("dataset", "digits")
    merged = read(AuditPlan, {**content, **words}, str(file or "audit"))
    if merged.model:
        return merged
    return merged.model_copy(update={"model": (ModelPlan(spec=DEFAULT_MODEL),)})


def _pairs(said: Mapping[str, Any], name: str, flag: str) -> dict[str, Any]:
    """What stands behind a flag that may be repeated, as a mapping."""
    return {key: value for text in said.get(name, ()) for key, value in settings(text, flag).items()}


def _judged_by(plan: AuditPlan) -> dict[str, Any]:
    """The words of a plan that signals from elsewhere are judged by."""
    names = ("attacks", "fpr", "confidence", "claim", "title", "unit", "date")
    return {name: getattr(plan, name) for name in names}


def _audit_trained(plan: AuditPlan, said: Mapping[str, Any], shelf: str) -> Report:
    """One trained model with its members and others; also models of its recipe to compare with, if asked for."""
    given = "predict" if "predict" in said else "weights"
    if not {"members", "others"} <= said.keys():
        raise ValueError(f"--{given} needs --members FILE and --others FILE")
    auditing, room = import_module("leakscope.auditing"), import_module("leakscope.data")
    made, recipe = import_module("leakscope.releases.making"), plan.model[0]
    if given == "predict":
        model = import_module("leakscope.releases.specs").imported(said["predict"])
    elif "model" in said:
        model = made.trained_from(recipe.spec, recipe.set, said["weights"])
    else:
        raise ValueError("--weights needs the --model that they are of, as --model my_package:make_net")
    sides = [room.load(said[file], plan.label, None, plan.drop).points for file in ("members", "others")]
    fit = bool(({"model"} if given == "predict" else {"models", "train"}) & said.keys())
    references = made.release_from(recipe.spec, recipe.set, train=recipe.train) if fit else None
    words = _judged_by(plan) | {"seed": plan.seed, "models": plan.models if fit else 2}
    pairs = [(points.x, points.y) for points in sides]
    words |= {"layers": recipe.layers} if recipe.layers else {}
    words |= {"classes": _classes(said["classes"], sides[0].y)} if "classes" in said else {}
    places = {"store": shelf, "jobs": said.get("jobs")}
    return auditing.audit_model(model, *pairs, references=references, name=said[given], **places, **words)


def _classes(labels: Sequence[str], y: Any) -> list[Any]:
    """The labels of the columns, as numbers where the data's are numbers."""
    if y.dtype.kind not in "iuf":
        return list(labels)
    try:
        return [y.dtype.type(label) for label in labels]
    except ValueError:
        raise ValueError(f"--classes are numbers where the labels are, got {', '.join(labels)}") from None


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


_OPTIONS = {each.name: each for each in (*OF_THE_RUN, *options_of(AuditPlan, IN_A_FILE, AS_FLAGS))}
audit = command(
    "Measure what models reveal about who is in their training data.\n\n"
    "With no argument: a random forest on scikit-learn's digits.",
    _audit,
    [_OPTIONS[name] for name in IN_ORDER],
    name="audit",
)
