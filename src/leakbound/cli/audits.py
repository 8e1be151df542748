"""``leakbound audit`` and the commands that go with it: init, attacks, compare."""

from __future__ import annotations

import json
import re
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leakbound.cli.options import (
    ALLOW,
    CONTEXT,
    ORDER,
    PUBLISH,
    RECORDS,
    Spelling,
    argument,
    command,
    grouped,
    leave_of,
    option,
    options_of,
)
from leakbound.cli.output import (
    OUT,
    command_line,
    emit,
    folder_of_report,
    refuse_file,
    say,
    width,
    write,
)
from leakbound.core.checks import one_line, printable
from leakbound.plans.audits import AuditPlan, ClaimPlan, ModelPlan, from_toml
from leakbound.plans.plan import read, settings
from leakbound.plans.policies import ready_text
from leakbound.plans.variants import parsed

if TYPE_CHECKING:
    from leakbound.attacks import Attack
    from leakbound.data import Data
    from leakbound.reports import Report
    from leakbound.runtime.execution import Tally

DEFAULT_MODEL = "sklearn.ensemble:RandomForestClassifier"
FLAGS_OF_FITS = {
    "dataset", "data", "group", "attribute", "bins", "dry_run", "dpsgd", "game", "canaries", "n_canaries", "knowledge",
    "sampling", "sample", "target", "references", "vary", "until", "cluster", "from_store", "partial",
}  # fmt: skip
OF_FILES = {"unpickle_trusted", "trust"}
NO_MODEL = {
    "model", "layers", "n_models", "n_queries", "versions", "seed", "predict", "weights", "classes", "members",
    "others", "depends_on", *OF_FILES,
}  # fmt: skip
FLAGS_WITHOUT_EFFECT = {  # flags that an audit would not look at are refused, not ignored
    "an audit with --signals": (FLAGS_OF_FITS - {"data", "sampling"}) | NO_MODEL | {"scores", "probabilities"},
    "an audit with --scores": (FLAGS_OF_FITS - {"data"}) | NO_MODEL | {"attacks", "probabilities"},
    "an audit with --probabilities": (FLAGS_OF_FITS - {"data"}) | NO_MODEL,
    "an audit with --predict": FLAGS_OF_FITS | {"weights", "layers"} | OF_FILES,
    "an audit with --weights": FLAGS_OF_FITS | OF_FILES,
    "an audit of a model file": FLAGS_OF_FITS | {"layers"},
    "an audit without a trained model": {"classes", "members", "others", "accept_shift"} | OF_FILES,
}
INSTEAD = {  # of what is given for a trained model
    "data": ": give its training data by --members, and other data by --others",
    "dataset": ": give its training data by --members, and other data by --others",
}
FLAGS_OF_RECORDS = {  # of the file that --data names, where no model is fitted on it
    "an audit with --signals": {"label", "drop", "separator", "decimal", "encoding"},
    "an audit with --scores": {"label", "drop"},
    "an audit with --probabilities": {"label", "drop"},
}
AS_FLAGS = {  # above all, a field that holds several values is a flag for one of them
    "dataset": Spelling(help="digits, breast_cancer or wine."),
    "group": Spelling(help="The column that names the unit of privacy."),
    "drop": Spelling(help="A column that is no feature; repeatable."),
    "id": Spelling(help="The column that names the records, for you; no feature."),
    "slice": Spelling(help="Compare the groups that a column makes: label, group or its name; repeatable."),
    "model": Spelling(help="Import path of an estimator or of what makes a network; repeatable."),
    "attacks": Spelling("--attack", "A name of leakbound attacks, or all; repeatable."),
    "n_queries": Spelling(help="Ask each model about so many versions of each record, itself among them. [1]"),
    "versions": Spelling(help="shifts, noise, growing_noise or module:function. [shifts of images, noise]"),
    "attribute": Spelling(help="Guess this column of the members, instead of who is in."),
    "bins": Spelling(help="Of the attribute's numbers: how many bins; repeated, the edges."),
    "game": Spelling(help="half_split, or canaries: planted ones, in by a coin each, where one model is enough."),
    "canaries": Spelling(help="dirac (of DP-SGD, by itself), mahalanobis, mislabelled or random."),
    "knowledge": Spelling(help="distribution or others: what who sees the steps knows of the other records."),
    "claim": Spelling(help="A promise to test, as eta=0.05, or mu=1,adjacency=replace_one; repeatable."),
    "fpr": Spelling(help="A false positive rate, as a fraction; repeatable. [0.01, 0.001]"),
    "target": Spelling(help="Index of an attacked record: one for per_datum, or the canaries; repeatable."),
    "prior": Spelling(help="Fraction of members at which accuracy is reported, with its baseline. [0.5]"),
    "fail_above": Spelling(help="tpr@0.01=0.05: exit code 3 above; repeatable."),
    "policy": Spelling(help="A policy in TOML, or research: a verdict on each model; exit code 3 unless all: release."),
    "until": Spelling(
        help="width:tpr@0.01=0.005: fit 8, 16, 32, ... models until the interval is so narrow. "
        "refuted: until every claim is."
    ),
    "depends_on": Spelling(help="A file that the training reads unseen, as by a program that it starts; repeatable."),
    "vary": Spelling(help="NAME=a,b,c: the --model with each of these values; repeatable."),
}
OF_THE_RUN = (
    argument("plan", Path, "A plan in TOML (see leakbound init), or ONE trained model: .skops, .onnx, .joblib."),
    option("layers", list[str] | None, "Of the --model before it: whose gradients are seen; repeatable. [all]"),
    option("set_", list[str] | None, "NAME=VALUE, a parameter of the --model before it.", flag="--set"),
    option("train", list[str] | None, "NAME=VALUE, how the --model before it, a network, is trained."),
    option("dpsgd", list[str] | None, "NAME=VALUE, how the --model before it, a network, is trained by DP-SGD."),
    option("predict", str | None, "module:function, ONE trained model's probabilities."),
    option("weights", str | None, "State dict of the --model, ONE trained network; with --n-models N of its recipe."),
    option("unpickle_trusted", bool, "Read a model file that is a pickle, which runs the code in it.", False),
    option("trust", list[str] | None, "A type in a file of skops that you trust; repeatable."),
    option("classes", list[str] | None, "Of a trained model: the label of each column, in order; repeatable."),
    option("members", str | None, "Of a trained model: the file of its training data."),
    option("others", str | None, "Of a trained model: a file of other data."),
    option("scores", str | None, "A table of attack scores: member, score[, model][, id]; --data has its records."),
    option(
        "references_are",
        str | None,
        "Of --scores of several models, what each was compared with: targets (the other attacked models), separate "
        "models, or none. [targets]",
    ),
    option(
        "probabilities",
        str | None,
        "A table of a trained model's answers: member, label, p_LABEL for each label[, id]; --data has its records.",
    ),
    option(
        "signals",
        str | None,
        "An .npz file with member (M, N) and signals (M, N), M models of N records; --sampling poisson if members were "
        "drawn by coins; --data may name the records. All arrays: docs/your-models.md, The .npz file. Or a folder of "
        "leakbound.write_blocks, of any size.",
    ),
    option("store", str | None, "Folder or URL (s3://BUCKET/FOLDER) of finished models' signals. [OUT/store]"),
    option("out", Path, "Folder of report.json, report.html and run.json, for you alone to read.", Path(OUT)),
    option("n_jobs", int | None, "Worker processes. [all cores]"),
    option("tmp", str | None, "Where the workers' temporary files lie. [the store, if it is a folder]"),
    option("cluster", str | None, "Workers of Dask: tcp://HOST:PORT of its scheduler, or local:N processes here."),
    option("from_store", bool, "Fit nothing: refuse unless all models are in the store.", False),
    option("partial", bool, "Fit nothing: audit the models that are in the store, and say so.", False),
    RECORDS,
    PUBLISH,
    option("pdf", bool, "Also write OUT/report.pdf: by Chromium, else by WeasyPrint.", False, "--pdf"),
    ALLOW,
    option("dry_run", bool, "Say what would be done, imported and spent, and stop.", False, "--dry-run"),
    option("as_json", bool, "Print the report's JSON and nothing else.", False, "--json"),
)
ALL_SIGNALS = {"likelihood_ratio", "glir"}  # attacks that need all of their signals, where others need one of them
FLAGS_OF_A_MODEL = {"set_": "--set", "train": "--train", "dpsgd": "--dpsgd", "layers": "--layers"}
GROUPS = {  # panels of the help, in its order
    "Data": (
        "dataset", "data", "label", "group", "drop", "id", "slice", "attribute", "bins", "members", "others", "signals",
        "scores", "references_are", "probabilities", "separator", "decimal",
        "encoding",
    ),
    "Model": (
        "model", "set_", "train", "layers", "dpsgd", "n_models", "predict", "weights", "unpickle_trusted", "trust",
        "classes", "vary",
    ),
    "Game": ("game", "sampling", "sample", "target", "references", "canaries", "n_canaries", "knowledge", "seed"),
    "Attack": ("attacks", "n_queries", "versions", "fpr", "confidence", "prior", "until"),
    "Claim": ("claim", "fail_above", "policy", "accept_shift"),
    "Output": ("title", "unit", "date", "author", "out", "show_records", "publish", "pdf", "as_json"),
    "Execution": (
        "store", "depends_on", "n_jobs", "cluster", "tmp", "from_store", "partial", "allow_modules", "dry_run",
    ),
}  # fmt: skip


def _audit(
    context: typer.Context,
    plan: Path | None,
    out: Path,
    show_records: bool,
    publish: bool,
    pdf: bool,
    allow_modules: str | None,
    dry_run: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Audit a plan, one trained model, or signals from elsewhere."""
    flags["order"] = context.meta[ORDER]
    with leave_of(allow_modules, flags):
        _audited(plan, out, show_records, publish, pdf, dry_run, as_json, flags)


def _audited(
    plan: Path | None,
    out: Path,
    show_records: bool,
    publish: bool,
    pdf: bool,
    dry_run: bool,
    as_json: bool,
    flags: Mapping[str, Any],
) -> None:
    options = {name: value for name, value in flags.items() if value is not None and value != [] and value is not False}
    plan, options["model_file"] = _plan_or_model(plan)
    options = {name: value for name, value in options.items() if value is not None}
    if dry_run and {"weights", "predict", "model_file"} & options.keys():
        raise ValueError(
            "an audit of a trained model takes no --dry-run: without references it trains nothing, and takes seconds. "
            "What references cost is measured without the trained model: --model, --train and --n-models as there, "
            "--data members.npz and --dry-run"
        )
    _refuse_idle({*options, *(["dry_run"] if dry_run else [])})
    audit_plan, n_jobs = _plan(plan, options), options.get("n_jobs")
    if dry_run:
        _emit_dry_run(audit_plan, n_jobs, as_json)
        return
    started = time.time()
    refuse_file(out)
    # a store elsewhere leaves nothing to be made before the report
    early = nullcontext() if options.get("store") else folder_of_report(out, private=not publish)
    with early:
        tally = import_module("leakbound.runtime.execution").Tally()
        report = _report(audit_plan, options, out, tally)
    write(report, out, show_records, started, publish)
    emit(report if show_records and not publish else report.without_records(), out, as_json)
    if pdf:
        report.to_pdf(out / "report.pdf", show_records, publish=publish)
        say(f"wrote {out / 'report.pdf'}")
    _say_what_is_set_aside(report)
    for line in import_module("leakbound.auditing.gates").times(report, tally.seconds_a_model):
        say(line)
    _leave(report, audit_plan.fail_above)


def _say_what_is_set_aside(report: Report) -> None:
    """Say why fewer records are attacked than were given."""
    for release in getattr(report.about, "releases", ()):
        n_aside = getattr(release, "population", 0)
        if n_aside:
            units = import_module("leakbound.reports.phrases").plural(report.about.unit)
            n_all = n_aside + release.target_points
            say(f"{n_aside:,} of {n_all:,} {units} were set aside as a population, for RMIA, and are not attacked")
            return


def _report(audit_plan: AuditPlan, options: Mapping[str, Any], out: Path, tally: Tally) -> Report:
    """Make the report."""
    n_jobs = options.get("n_jobs")
    store = options.get("store") or str(out / "store")
    if {"predict", "weights", "model_file"} & options.keys():
        report = _audit_trained(audit_plan, options, store)
    elif {"scores", "probabilities"} & options.keys():
        report = _audit_table(audit_plan, options)
    elif "signals" in options:
        report = _audit_signals(audit_plan, options)
    else:
        report = import_module("leakbound.auditing.api").run(
            audit_plan,
            store=store,
            n_jobs=n_jobs,
            tmp=options.get("tmp"),
            cluster=options.get("cluster"),
            from_store=_from_store(options),
            command=command_line(),
            tally=tally,
        )
    if not report.about.command:
        report = replace(report, about=report.about.model_copy(update={"command": command_line()}))
    return report


def init(
    plan: Annotated[Path, typer.Argument(help="The file to write.")] = Path("plan.toml"),
    policy: Annotated[
        str | None, typer.Option("--policy", help="Write this policy instead of a plan: research.")
    ] = None,
) -> None:
    """Write a commented plan, or a policy, to start from."""
    if plan.exists():
        raise ValueError(f"{plan} exists already; choose another name")
    if policy is None:
        text = resources.files("leakbound").joinpath("plan.toml").read_text(encoding="utf-8")
        use = f"run it with: leakbound audit {plan}"
    else:
        text = ready_text(policy)
        use = f"use it with: leakbound audit MODEL --members FILE --others FILE --policy {plan}"
    import_module("leakbound.reports").write(plan, text)
    say(f"wrote {plan}; {use}")


def attacks(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List the attacks, what they need and where they come from."""
    room = import_module("leakbound.attacks")
    rows = [
        {
            "attack": attack.name + (" *" if attack.name in room.DEFAULT and not as_json else ""),
            "needs": _needs(attack),
            "signals": (" and " if attack.name in ALL_SIGNALS else " or ").join(attack.signals),
            "source": attack.source,
        }
        for attack in room.ATTACKS.values()
    ]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    print(import_module("leakbound.reports.render.text").columns(rows, width()))
    print("* by default; all is every one of them")
    notes = (
        "of signals that are joined by 'or' one is enough; loss, log_odds and correct are computed from log_prob and "
        "labels, where these are given",
        "population: points that are in no model; where there are none, the target points stand in",
    )
    for note in notes:
        print(textwrap.fill(note, width()))


def _needs(attack: Attack) -> str:
    """Say what an attack compares the target with."""
    needed = [("references", attack.needs_references), ("population", attack.needs_population)]
    return ", ".join(name for name, is_needed in needed if is_needed) or "nothing"


def compare(
    first: Annotated[Path, typer.Argument(help="A report.json.")],
    second: Annotated[Path, typer.Argument(help="Another one.")],
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Read reports that were changed since they were written.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="A page (.html) with the plot and the table.")] = None,
    title: Annotated[str, typer.Option("--title", help="Of the page.")] = "",
) -> None:
    """Put the findings of two reports side by side, and say whether one reveals more."""
    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--out {out}: give the file of a page, as comparison.html")
    comparison = import_module("leakbound.reports.comparison").compare(
        first, second, unverified=unverified, title=title
    )
    if out is not None:
        comparison.to_html(out)
    print(json.dumps(comparison.rows, indent=1) if as_json else comparison.table(width()))
    if out is not None:
        say(f"wrote {out}")


def _plan_or_model(file: Path | None) -> tuple[Path | None, Path | None]:
    """Tell a plan from a file with a trained model by its ending."""
    if file is None or file.suffix == ".toml":
        return file, None
    model_endings = import_module("leakbound.releases.model_files").SUFFIXES
    if file.suffix in model_endings:
        return None, file
    raise ValueError(
        f"{file} is neither a plan (.toml) nor a trained model ({', '.join(model_endings)}): other files have a flag, "
        "--data, --scores, --probabilities, --signals or --weights"
    )


def _audit_table(plan: AuditPlan, options: Mapping[str, Any]) -> Report:
    """Audit a table of scores or of a model's answers."""
    auditing = import_module("leakbound.auditing.api")
    words = _fields_without_training(plan)
    if "probabilities" in options:
        return _audit_probabilities(plan, options, words)
    del words["attacks"]
    value, member, names = import_module("leakbound.data.score_tables").read_scores(options["scores"], **plan.csv)
    behind = _records(plan, options, "the scores", member.shape[1])
    if behind is not None:
        points = behind.points
        words["points"] = points.x if points.y is None else (points.x, points.y)
        words["slice"] = behind.slices
        names = points.names if names is None else names
    name, n_jobs = Path(options["scores"]).stem, options.get("n_jobs")
    words["references_are"] = options.get("references_are", "targets")
    return auditing.audit_scores(value, member, id=names, name=name, n_jobs=n_jobs, **words)


def _audit_signals(plan: AuditPlan, options: Mapping[str, Any]) -> Report:
    """Audit a file of signals in memory, or a folder of signals as memmaps."""
    auditing, observing = import_module("leakbound.auditing.api"), import_module("leakbound.runtime.observe")
    words, n_jobs = _fields_without_training(plan), options.get("n_jobs")
    # only what was asked for: the file may say it too
    sampling = plan.sampling if "sampling" in plan.model_fields_set else None
    signals = observing.read_signals(options["signals"], sampling)
    behind = _records(plan, options, "the signals", signals.game.member.shape[1])
    if behind is not None:
        signals = replace(signals, points=behind.points)
        words["slice"] = behind.slices
    return auditing.audit_signals(signals, n_jobs=n_jobs, **words)


def _audit_probabilities(plan: AuditPlan, options: Mapping[str, Any], words: dict[str, Any]) -> Report:
    """Audit a table of a model's probabilities, with the records that they are of where --data names them."""
    table = import_module("leakbound.auditing.score_files").read_probabilities(options["probabilities"], **plan.csv)
    signals, names = table.signals, table.names
    behind = _records(plan, options, "the probabilities", signals.game.member.shape[1])
    if behind is not None:
        signals = replace(signals, points=behind.points)
        words["slice"] = behind.slices
        names = behind.points.names if names is None else names
    name = Path(options["probabilities"]).name
    audit_signals = import_module("leakbound.auditing.api").audit_signals
    report = audit_signals(signals, name=name, id=names, n_jobs=options.get("n_jobs"), **words)
    notes = (*table.notes, *report.about.notes)
    return replace(report, about=report.about.model_copy(update={"notes": notes}))


def _refuse_idle(names: set[str]) -> None:
    """Refuse flags that would have no effect."""
    *kinds, of_fits = FLAGS_WITHOUT_EFFECT
    # in the order of the table; without any of them models are fitted
    flags = ("signals", "scores", "probabilities", "predict", "weights", "model_file")
    kind = next((kind for kind, flag in zip(kinds, flags, strict=True) if flag in names), of_fits)
    if "references_are" in names and "scores" not in names:
        raise ValueError("--references-are is of the scores of another program; give --scores FILE too")
    for name in sorted(names & FLAGS_WITHOUT_EFFECT[kind]):
        instead = INSTEAD.get(name, "") if {"members", "others"} - FLAGS_WITHOUT_EFFECT[kind] else ""
        raise ValueError(f"{kind} takes no --{name.replace('_', '-')}{instead}")
    if "data" not in names:
        for name in sorted(names & FLAGS_OF_RECORDS.get(kind, set())):
            raise ValueError(f"{kind} takes no --{name} without --data FILE, the records that they are of")


def _plan(file: Path | None, options: Mapping[str, Any]) -> AuditPlan:
    """Make the plan from a file, from flags, or from a file whose fields flags replace."""
    base = from_toml(file) if file is not None else None
    words = _words(options)
    for name, flag in FLAGS_OF_A_MODEL.items():
        if name in options and "model" not in options:
            raise ValueError(f"{flag} needs a --model")
    if "model" in options:
        words["model"] = _model_tables(options)
    # other data replace those of the file with all that describes their columns
    if {"data", "dataset"} & words.keys() and base is not None:
        of_the_file = dict.fromkeys(("data", "dataset", "label", "group", "id", "separator", "decimal", "encoding"))
        base = base.model_copy(update=of_the_file | {"drop": (), "slice": ()})
    content = {} if base is None else base.model_dump(exclude_unset=True)
    if base is None and "data" not in words:
        words.setdefault("dataset", "digits")
    merged = read(AuditPlan, {**content, **words}, str(file or "audit"))
    if merged.model:
        return merged
    return merged.model_copy(update={"model": (ModelPlan(spec=DEFAULT_MODEL),)})


def _words(options: Mapping[str, Any]) -> dict[str, Any]:
    """Select the fields of the plan, and read those that are written in a short form."""
    words = {name: value for name, value in options.items() if name in AuditPlan.model_fields}
    if "vary" in words:
        words["vary"] = parsed(words["vary"])
    if "claim" in words:
        words["claim"] = tuple(ClaimPlan.parse(text) for text in words["claim"])
    return words


def _model_tables(options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give each --set, --train, --dpsgd and --layers to the --model before it, as a table of the plan."""
    tables: list[dict[str, Any]] = [{"spec": spec} for spec in options["model"]]
    texts = {name: iter(options.get(name, ())) for name in FLAGS_OF_A_MODEL}
    n_models = 0
    for name in options["order"]:
        if name == "model":
            n_models += 1
        if name not in FLAGS_OF_A_MODEL:
            continue
        flag, text = FLAGS_OF_A_MODEL[name], next(texts[name])
        if n_models == 0 and len(tables) > 1:
            raise ValueError(
                f"{flag} {text} comes before {len(tables)} --model; write it behind the one that it belongs to"
            )
        table = tables[max(n_models - 1, 0)]
        if name == "layers":
            table["layers"] = (*table.get("layers", ()), text)
        else:
            field = name.rstrip("_")
            table[field] = table.get(field, {}) | settings(text, flag)
    return tables


def _records(plan: AuditPlan, options: Mapping[str, Any], of_what: str, n_points: int) -> Data | None:
    """Read the records of signals or scores, where --data names them: for the test for one source, names and slices."""
    if "data" not in options:
        for flag in ("id", "slice"):
            if getattr(plan, flag):
                raise ValueError(f"--{flag} is a column of the records behind {of_what}; name their file by --data")
        return None
    room = import_module("leakbound.data")
    if plan.label is None:
        loaded = room.read(plan.data, plan.drop, plan.id, plan.slice, **plan.csv)
    else:
        loaded = room.load(plan.data, plan.label, None, plan.drop, plan.id, plan.slice, **plan.csv)
    n_records = len(loaded.points)
    if n_records != n_points:
        raise ValueError(f"--data has {n_records:,} records, {of_what} have {n_points:,} points; they must agree")
    return loaded


def _fields_without_training(plan: AuditPlan) -> dict[str, Any]:
    """Select the fields of a plan that apply to signals from elsewhere."""
    names = (
        "attacks", "fpr", "confidence", "prior", "accept_shift", "claim", "policy", "title", "unit", "date", "author",
    )  # fmt: skip
    return {name: getattr(plan, name) for name in names}


def _audit_trained(plan: AuditPlan, options: Mapping[str, Any], store: str) -> Report:
    """Audit one trained model by its members and others, with reference models of its recipe if asked for."""
    flag = next(flag for flag in ("predict", "weights", "model_file") if flag in options)
    if not {"members", "others"} <= options.keys():
        what = options["model_file"] if flag == "model_file" else f"--{flag}"
        raise ValueError(f"{what} needs --members FILE and --others FILE")
    auditing, room = import_module("leakbound.auditing.api"), import_module("leakbound.data")
    factory, recipe = import_module("leakbound.releases.factory"), plan.model[0]
    if flag == "model_file":
        trusted = bool(options.get("unpickle_trusted"))
        if trusted:
            say(f"{options['model_file']} is unpickled: it may run any code")
        model = import_module("leakbound.releases.model_files").read_model(
            options["model_file"], unpickle_trusted=trusted, trusted_types=options.get("trust", ())
        )
    elif flag == "predict":
        model = import_module("leakbound.releases.specs").imported(options["predict"])
    elif "model" in options:
        model = factory.trained_from(recipe.spec, recipe.set, options["weights"])
    else:
        raise ValueError("--weights needs the --model that they are of, as --model my_package:make_net")
    sides = [
        room.load(options[file], plan.label, None, plan.drop, plan.id, plan.slice, **plan.csv)
        for file in ("members", "others")
    ]
    pairs = [(side.points.x, side.points.y) for side in sides]
    # with --weights the --model is the network of the weights; elsewhere it can only be the recipe
    recipe_flags = {"n_models", "train"} if flag == "weights" else {"model"}
    has_references = bool(recipe_flags & options.keys())
    references = factory.release_from(recipe.spec, recipe.set, train=recipe.train) if has_references else None
    words = _fields_without_training(plan) | {"seed": plan.seed, "n_models": plan.n_models if has_references else 2}
    words |= {"n_queries": plan.n_queries, "versions": plan.versions}
    if recipe.layers:
        words["layers"] = recipe.layers
    if "classes" in options:
        words["classes"] = _classes(options["classes"], sides[0].points.y)
    members, others = sides
    if members.points.names is not None and others.points.names is not None:
        words["id"] = [*members.points.names, *others.points.names]
    words["slice"] = {name: [*members.slices[name], *others.slices[name]] for name in plan.slice}
    places = {name: options.get(name) for name in ("n_jobs", "tmp")} | {"store": store}
    places["depends_on"] = plan.depends_on
    places["weights"] = options.get(flag) if flag != "predict" else None
    places["sources"] = f"{Path(options['members']).name} and {Path(options['others']).name}"
    # the report holds no path of this machine; --predict is an import path
    name = options["predict"] if flag == "predict" else Path(options[flag]).name
    report = auditing.audit_model(model, *pairs, references=references, name=name, **places, **words)
    notes = (*_trusted(options), *report.about.notes)
    return replace(report, about=report.about.model_copy(update={"notes": notes}))


def _trusted(options: Mapping[str, Any]) -> Iterator[str]:
    """Say what was done on the user's word alone, for those who read the report later."""
    file = options.get("model_file")
    if file is None:
        return
    name = printable(Path(file).name)
    if options.get("unpickle_trusted") and Path(file).suffix in import_module("leakbound.releases.model_files").PICKLES:
        yield (f"{name} was read as a pickle, which runs the code in it, on the statement that its author is trusted")
    if options.get("trust"):
        types = ", ".join(one_line(kind, 100) for kind in options["trust"])
        yield f"{name} was read on the statement that these types are trusted: {types}"


def _classes(labels: Sequence[str], y: Any) -> list[Any]:
    """Return the labels of the columns, as numbers where the data's are numbers."""
    if y.dtype.kind not in "iuf":
        return list(labels)
    try:
        return [y.dtype.type(label) for label in labels]
    except ValueError:
        raise ValueError(f"--classes are numbers where the labels are, got {', '.join(labels)}") from None


def _emit_dry_run(plan: AuditPlan, n_jobs: int | None, as_json: bool) -> None:
    """Print what would be imported, then what would be done; a line at a time, since a fit may take long."""
    lines = _dry_run(plan, n_jobs)
    if as_json:
        print(json.dumps(list(lines), indent=1))
        return
    for line in lines:
        # in a file or a pipe a line stays whole, for programs to read
        parts = textwrap.wrap(printable(line), width(), subsequent_indent="  ") if sys.stdout.isatty() else [line]
        for part in parts:
            print(printable(part), flush=True)


def _dry_run(plan: AuditPlan, n_jobs: int | None) -> Iterator[str]:
    """Yield the lines of a dry run; of a plan that names modules without leave, only which these are."""
    specs = import_module("leakbound.releases.specs")
    import_module("leakbound.runtime.pool").workers(n_jobs)
    imports = f"imports {', '.join(plan.import_paths)}"
    refused = sorted({specs.refused_module(path) for path in plan.import_paths} - {""})
    if refused:
        yield imports
        yield (
            "a plan runs no code but scikit-learn's models, so what these cost is not known; with --allow-modules "
            f"{','.join(refused)} one of each is fitted"
        )
        return
    lines = import_module("leakbound.auditing.dry_run").dry_run(plan)
    first = next(lines)  # an error in the plan is raised here, before anything is printed
    yield imports
    yield first
    yield from lines


def _leave(report: Report, limits: Sequence[str]) -> None:
    """Say what is refuted and which limits are exceeded, and leave with the exit code of that."""
    gates = import_module("leakbound.auditing.gates")
    for name, error in gates.failed_of(report.about).items():
        say(f"{name} could not be audited: {error}")
    for text in gates.refuted(report):
        say(f"refuted: {text}")
    for text in gates.failures(report, limits):
        say(f"limit: {text}")
    for text in gates.remarks(report, limits):
        say(f"limits: {text}")
    if code := gates.exit_code(report, limits):
        raise typer.Exit(code)


def _fit(
    plan: Path | None,
    store: str | None,
    chunks: str | None,
    signals: Path | None,
    n_jobs: int | None,
    cluster: str | None,
    tmp: str | None,
    allow_modules: str | None,
) -> None:
    """Make models of a plan, and say how many chunks the store has."""
    if plan is None:
        raise ValueError("leakbound fit needs a plan in TOML (see leakbound init)")
    if store is None:
        raise ValueError("leakbound fit needs a --store, a folder or URL that the audit will read")
    with leave_of(allow_modules, {}):
        filled = import_module("leakbound.auditing.api").fill_store(
            from_toml(plan),
            store=store,
            chunks=None if chunks is None else _range_of(chunks),
            signals=signals,
            n_jobs=n_jobs,
            cluster=cluster,
            tmp=tmp,
        )
    print(f"{filled.n_made:,} of {filled.n_asked:,} chunks made, the others were there")
    print(f"{filled.n_chunks - filled.n_missing:,} of all {filled.n_chunks:,} chunks of the plan are in the store")
    if signals is not None:
        print(f"the signals of all models are in {signals}")


def _from_store(options: Mapping[str, Any]) -> str:
    """Say which models must be in the store already: all, those that are finished, or none."""
    if "partial" in options:
        return "finished"
    return "all" if "from_store" in options else ""


def _range_of(chunks: str) -> range:
    """Read ``0..99``, or a single number."""
    numbers = re.fullmatch(r"(?P<first>\d{1,9})(\.\.(?P<last>\d{1,9}))?", chunks, re.ASCII)
    if numbers is None:
        raise ValueError(f"--chunks are FIRST..LAST, as 0..99, or one number, as 7; got {chunks!r}")
    return range(int(numbers["first"]), int(numbers["last"] or numbers["first"]) + 1)


fit = command(
    "Fit models of a plan and leave their signals in a store, for leakbound audit --from-store.\n\n"
    "The chunks of a plan are numbered, so that the tasks of an array job can share them.",
    _fit,
    [
        argument("plan", Path, "A plan in TOML, see leakbound init."),
        option("store", str | None, "Folder or URL (s3://BUCKET/FOLDER) of finished models' signals."),
        option("chunks", str | None, "FIRST..LAST, the numbers of the chunks, from 0. [all]"),
        option("signals", Path | None, "New folder for the signals of all models, for leakbound audit --signals."),
        option("n_jobs", int | None, "Worker processes. [all cores]"),
        option("cluster", str | None, "Workers of Dask: tcp://HOST:PORT of its scheduler, or local:N processes here."),
        option("tmp", str | None, "Where the workers' temporary files lie. [the store, if it is a folder]"),
        ALLOW,
    ],
    name="fit",
)
audit = command(
    "Measure what models reveal about who is in their training data.\n\n"
    "With no argument: a random forest on scikit-learn's digits.\n\n"
    "A plan runs no code but scikit-learn's models, unless --allow-modules names the modules that it may import.",
    _audit,
    [CONTEXT, *grouped([*OF_THE_RUN, *options_of(AuditPlan, spelt=AS_FLAGS)], GROUPS, "Plan")],
    name="audit",
)
