"""The command line: words become plans, results go to standard output, prose and progress to standard error."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.exceptions import TyperException

from leakscope.version import __version__

if TYPE_CHECKING:
    from leakscope.plans import AuditPlan
    from leakscope.report import Report

OUT = "leakscope-report"
DEFAULT_MODEL = "sklearn.ensemble:RandomForestClassifier"
INTERRUPTED = 130
OF_FITS = {"dataset", "data", "group", "dry_run"}
IDLE = {  # flags that an audit would not look at are refused, not ignored
    "an audit with --signals": OF_FITS | {"label", "drop", "model", "models", "seed", "predict", "members", "others"},
    "an audit with --predict": OF_FITS,
    "an audit without --predict": {"members", "others"},
}
NO_TRACE = {  # flags that leave the report as it is, with their number of values
    "--json": 0, "--records": 0, "--no-records": 0, "--out": 1, "--store": 1, "--jobs": 1,
}  # fmt: skip

app = typer.Typer(
    name="leakscope",
    help="How much does what you release reveal about who is in your data?",
    add_completion=False,
    rich_markup_mode=None,
)
stores = typer.Typer(help="The folder of finished models' signals.")
app.add_typer(stores, name="store")


@app.callback(invoke_without_command=True)
def _bare(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(f"leakscope {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
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
    _refuse_file(out)
    shelf = store or str(out / "store")
    if predict is not None:
        report = _audit_predict(chosen, predict, (members, others), bool(model), shelf, jobs)
    elif signals is not None:
        auditing, observing = import_module("leakscope.auditing"), import_module("leakscope.observing")
        report = auditing.audit_signals(observing.read_signals(signals), **_judged_by(chosen))
    else:
        report = import_module("leakscope.auditing").run(chosen, store=shelf, jobs=jobs, command=_command())
    _write(report, out, records, started)
    _show(report, out, as_json)
    _leave(report, chosen.fail_above)


@app.command()
def init(
    plan: Annotated[Path, typer.Argument(help="The file to write.")] = Path("plan.toml"),
) -> None:
    """Write a commented plan to start from."""
    if plan.exists():
        raise ValueError(f"{plan} exists already; choose another name")
    text = resources.files("leakscope").joinpath("plan.toml").read_text(encoding="utf-8")
    import_module("leakscope.report").write(plan, text)
    _say(f"wrote {plan}; run it with: leakscope audit {plan}")


@app.command()
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


@app.command()
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


@stores.command("size")
def store_size(folder: Annotated[Path, typer.Argument(help="The store.")]) -> None:
    """Number of chunks and their size."""
    n_chunks, n_bytes = _store(folder).size()
    print(f"{n_chunks:,} chunks, {n_bytes / 1e6:,.1f} MB")


@stores.command("clear")
def store_clear(folder: Annotated[Path, typer.Argument(help="The store.")]) -> None:
    """Remove all chunks."""
    print(f"removed {_store(folder).clear():,} files")


def main() -> None:
    """Run a command and leave with its exit code: 0, 1 any error, 2 refuted, 3 a limit exceeded, 130 Ctrl-C."""
    warnings.filterwarnings("ignore", message=".* have been cancelled", category=UserWarning)  # joblib's, of Ctrl-C
    sys.exit(_guarded(lambda: app(standalone_mode=False)))


def _guarded(command: Callable[[], Any]) -> int:
    """The exit code of a command; an error is one line on standard error."""
    try:
        code = command() or 0  # typer returns the code of an exit, and 130 for Ctrl-C
        if code == INTERRUPTED:
            _say("interrupted; finished models are in the store, the same command goes on from there")
        return code
    except TyperException as error:
        return _error(error.format_message())
    except OSError as error:
        return _error(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (ValueError, RuntimeError, ImportError) as error:
        return _error(str(error))
    except Exception as error:
        if os.environ.get("LEAKSCOPE_TRACEBACK"):
            raise
        return _error(f"unexpected {type(error).__name__}: {error}; set LEAKSCOPE_TRACEBACK=1 for where, and report it")


def _error(text: str) -> int:
    _say("error: " + " ".join(text.split()))
    return 1


def _say(text: str) -> None:
    print(f"leakscope: {text}", file=sys.stderr)


def _refuse_idle(given: set[str]) -> None:
    """Flags that nothing would look at."""
    kinds = list(IDLE)
    kind = kinds[0] if "signals" in given else kinds[1] if "predict" in given else kinds[2]
    for name in sorted(given & IDLE[kind]):
        raise ValueError(f"{kind} takes no --{name.replace('_', '-')}")


def _refuse_file(out: Path) -> None:
    """A file where the folder of the report should be: said before hours are spent."""
    there = next(path for path in (out, *out.parents) if path.exists())
    if not there.is_dir():
        raise ValueError(f"--out {out}: {there} is a file; give a folder")


def _plan(file: Path | None, words: dict[str, Any], specs: list[str] | None, sets: list[str] | None) -> AuditPlan:
    """The plan of a file, of flags, or of a file with flags on top."""
    plans = import_module("leakscope.plans")
    base = plans.from_toml(file) if file is not None else None
    if "claim" in words:
        words["claim"] = tuple(plans.ClaimPlan.parse(text) for text in words["claim"])
    if sets and not specs:
        raise ValueError("--set needs a --model")
    if specs:
        models: list[dict[str, Any]] = [{"spec": spec} for spec in specs]
        parameters = {name: value for text in sets or [] for name, value in plans.settings(text, "--set").items()}
        models[-1]["set"] = parameters
        words["model"] = models
    if {"data", "dataset"} & words.keys() and base is not None:
        base = base.model_copy(update=dict.fromkeys(("data", "dataset", "label", "group")) | {"drop": ()})
    content = {} if base is None else base.model_dump(exclude_unset=False)
    if base is None and "data" not in words:
        words.setdefault("dataset", "digits")
    merged = plans.read(plans.AuditPlan, {**content, **words}, str(file or "audit"))
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


def _command() -> str:
    """What was typed, without folders and flags that differ between runs of the same audit."""
    words, said = iter(sys.argv[1:]), ["leakscope"]
    for word in words:
        name, equals, value = word.partition("=")
        if name not in NO_TRACE:
            said.append(os.path.basename(name) + equals + os.path.basename(value))
        elif not equals:
            for _ in range(NO_TRACE[name]):
                next(words, None)
    return shlex.join(said)


def _emit_dry_run(plan: AuditPlan, jobs: int | None, as_json: bool) -> None:
    lines = import_module("leakscope.costs").cost(plan, jobs)
    if as_json:
        print(json.dumps(list(lines), indent=1))
        return
    for line in lines:
        print(line, flush=True)


def _write(report: Report, out: Path, records: bool, started: float) -> None:
    """Report, page and run beside their places, then renamed together: a full disk leaves the old ones whole.

    The page is drawn from the JSON alone; clock and machine stand in run.json.
    """
    new = out / ".new"
    run = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "seconds": round(time.time() - started, 1),
        "command": sys.argv,
        "leakscope": __version__,
        "report": report.digest(),
    }
    try:
        report.to_json(new / "report.json")
        report.to_html(new / "report.html", records=records)
        import_module("leakscope.report").write(new / "run.json", json.dumps(run, indent=1) + "\n")
        for file in sorted(new.glob("r*")):
            file.replace(out / file.name)
    except OSError as error:
        raise OSError(f"the folder {out} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _show(report: Report, out: Path, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(report.to_json())
    else:
        print(report.table())
    _say(f"wrote {out / 'report.json'} and {out / 'report.html'}")


def _leave(report: Report, limits: Sequence[str]) -> None:
    """Say what is refuted and which limits are exceeded, and leave with the exit code of that."""
    gates = import_module("leakscope.gates")
    for text in gates.refuted(report):
        _say(f"refuted: {text}")
    for text in gates.failures(report, limits):
        _say(f"limit: {text}")
    if code := gates.exit_code(report, limits):
        raise typer.Exit(code)


def _store(folder: Path) -> Any:
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such store")
    return import_module("leakscope.store").Store(folder)


if __name__ == "__main__":
    main()
