"""``leakbound audit model``, ``scores`` and ``signals``: audits of what was made elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from leakbound.cli.audits import (
    OF_ALL,
    OUTPUT,
    SET,
    SLICE,
    STORE,
    TRAIN,
    Output,
    given,
    model_tables,
    refuse_without_model,
    reported,
)
from leakbound.cli.options import (
    ALLOW,
    CONTEXT,
    ORDER,
    Spelling,
    argument,
    brief,
    command,
    grouped,
    leave_of,
    option,
    options_of,
)
from leakbound.cli.output import say
from leakbound.core.checks import one_line, printable
from leakbound.plans.audits import ClaimPlan, GivenPlan, ModelPlan, SyntheticPlan, TrainedPlan
from leakbound.plans.fitted import Fitted
from leakbound.plans.page import Page, Store
from leakbound.plans.plan import P, read

if TYPE_CHECKING:
    from leakbound.core.types import Points
    from leakbound.data import Data
    from leakbound.reports import Report

OF_GIVEN = OF_ALL | {"slices": Spelling("--slice", SLICE)}
WORKERS = option("n_jobs", int | None, "Worker processes. [all cores]")
OF_COLUMNS = ("id", "slices", "label", "drop", "separator", "decimal", "encoding")  # flags about the file of --data


def _model(context: typer.Context, file: Path | None, allow_modules: str | None, **flags: Any) -> None:
    """Audit one trained model."""
    output = Output.taken_from(flags)
    flags |= {"order": context.meta[ORDER], "model_file": file}
    with leave_of(allow_modules, flags):
        options = given(flags)
        plan = _plan(TrainedPlan, options, "audit model")

        def make() -> Report:
            if "probabilities" in options:
                return _of_probabilities(plan, options)
            return _of_model(plan, options, options.get("store") or str(output.out / "store"))

        reported(output, make, "store" in options)


def _of_file(name: str, needs: str, audited: Callable[[GivenPlan, Mapping[str, Any], Path], Report]) -> Any:
    """Make a command that audits what another program has written to a file."""

    def run(context: typer.Context, file: Path | None, **flags: Any) -> None:
        output = Output.taken_from(flags)
        options = given(flags)
        if file is None:
            raise ValueError(f"leakbound {name} needs {needs}")
        plan = _plan(GivenPlan, options, name)
        reported(output, partial(audited, plan, options, file))

    return run


def _plan(kind: type[P], options: Mapping[str, Any], where: str) -> P:
    """Make the plan of an audit of what was made elsewhere."""
    words = {name: value for name, value in options.items() if name in kind.model_fields}
    if "claim" in words:
        words["claim"] = tuple(ClaimPlan.parse(text) for text in words["claim"])
    return read(kind, words, where)


def _words(plan: GivenPlan, n_jobs: int | None) -> dict[str, Any]:
    """Write what a plan says of all kinds as keywords of a call."""
    names = ("fpr", "confidence", "prior", "accept_shift", "policy")
    page = Page(**{name: getattr(plan, name) for name in ("title", "unit", "date", "author")})
    return {name: getattr(plan, name) for name in names} | {"claims": plan.claim, "page": page, "n_jobs": n_jobs}


def _records(
    plan: GivenPlan, options: Mapping[str, Any], of_what: str, n_points: int, unless: Sequence[str] = ()
) -> Data | None:
    """Read the records of signals or scores, where --data names them; some flags are also of the table itself."""
    if "data" not in options:
        for name in OF_COLUMNS:
            if name in options and name not in unless:
                flag = "slice" if name == "slices" else name
                raise ValueError(f"--{flag} is of the records behind {of_what}; name their file by --data")
        return None
    loaded = _loaded(plan, options["data"], plan.label is None)
    n_records = len(loaded.points)
    if n_records != n_points:
        raise ValueError(f"--data has {n_records:,} records, {of_what} have {n_points:,} points; they must agree")
    return loaded


def _loaded(plan: GivenPlan, path: str, without_label: bool) -> Data:
    """Read the records of a file."""
    from leakbound import data as room

    if without_label:
        return room.read(path, plan.drop, plan.id, plan.slices, **plan.csv)
    return room.load(path, plan.label, None, plan.drop, plan.id, plan.slices, **plan.csv)


def _as_given(points: Points) -> Any:
    """Return features and labels, or features alone where there are no labels."""
    return points.x if points.y is None else (points.x, points.y)


def _of_scores(plan: GivenPlan, options: Mapping[str, Any], file: Path) -> Report:
    from leakbound.auditing.api import audit_scores
    from leakbound.data.score_tables import read_scores

    words = _words(plan, options.get("n_jobs"))
    value, member, names = read_scores(str(file), **plan.csv)
    behind = _records(plan, options, "the scores", member.shape[1], tuple(plan.csv))
    if behind is not None:
        points = behind.points
        words["points"] = _as_given(points)
        words["slices"] = behind.slices
        names = points.names if names is None else names
    words["references_are"] = options.get("references_are", "targets")
    return audit_scores(value, member, ids=names, name=file.stem, **words)


def _of_signals(plan: GivenPlan, options: Mapping[str, Any], file: Path) -> Report:
    """Audit a file of signals in memory, or a folder of signals as memmaps."""
    from leakbound.auditing.api import audit_signals
    from leakbound.runtime.observe import read_signals

    words = _words(plan, options.get("n_jobs"))
    signals = read_signals(file, options.get("sampling"))
    behind = _records(plan, options, "the signals", signals.game.member.shape[1])
    if behind is not None:
        signals = replace(signals, points=behind.points)
        words["slices"] = behind.slices
    return audit_signals(signals, attacks=plan.attacks, **words)


def _synthetic(context: typer.Context, file: list[Path] | None, **flags: Any) -> None:
    """Audit synthetic data."""
    output = Output.taken_from(flags)
    options = given(flags)
    for role in ("members", "others"):
        if not file or role not in options:
            raise ValueError(
                "leakbound audit synthetic needs the synthetic files, --members FILE (what the generator was fitted "
                "on) and --others FILE (records of the same source that it was not)"
            )
    plan = _plan(SyntheticPlan, options, "audit synthetic")

    def make() -> Report:
        from leakbound.auditing.synthetic.run import attacks_on_synthetic, audit_tables
        from leakbound.auditing.synthetic.tables import read_tables

        reference = options.get("reference")
        tables = read_tables([*map(str, file or ())], options["members"], options["others"], reference, **plan.csv)
        attacks = attacks_on_synthetic(plan.attacks, reference is not None)
        return audit_tables(plan, attacks, tables, slices=plan.slices, n_jobs=options.get("n_jobs"))

    reported(output, make)


def _of_probabilities(plan: TrainedPlan, options: Mapping[str, Any]) -> Report:
    """Audit a table of a model's probabilities, with the records that they are of where --data names them."""
    from leakbound.auditing.api import audit_signals
    from leakbound.cli.score_files import read_probabilities

    for name in sorted(options.keys() & OF_MODELS):
        raise ValueError(f"--probabilities are a model's answers: they take no --{name.replace('_', '-')}")
    words = _words(plan, options.get("n_jobs"))
    table = read_probabilities(options["probabilities"], **plan.csv)
    signals, names = table.signals, table.names
    behind = _records(plan, options, "the probabilities", signals.game.member.shape[1], tuple(plan.csv))
    if behind is not None:
        signals = replace(signals, points=behind.points)
        words["slices"] = behind.slices
        names = behind.points.names if names is None else names
    name = Path(options["probabilities"]).name
    report = audit_signals(signals, name=name, ids=names, attacks=plan.attacks, **words)
    notes = (*table.notes, *report.about.notes)
    return replace(report, about=report.about.model_copy(update={"notes": notes}))


def _way_to(options: Mapping[str, Any]) -> str:
    """Say by which flag the trained model is given."""
    ways = [way for way in ("model_file", "predict", "weights") if way in options]
    if len(ways) != 1:
        raise ValueError(
            "give ONE trained model: a file (.skops, .onnx, .joblib), --predict module:function, --weights FILE with "
            "the --model that they are of, or --probabilities FILE"
        )
    (way,) = ways
    if "data" in options:
        raise ValueError(
            "--data has the records of --probabilities; a trained model takes its training data by --members, and "
            "other data by --others"
        )
    if not {"members", "others"} <= options.keys():
        what = options["model_file"] if way == "model_file" else f"--{way}"
        raise ValueError(f"{what} needs --members FILE and --others FILE")
    return way


def _trained(way: str, options: Mapping[str, Any], recipe: ModelPlan) -> Any:
    """Read the trained model."""
    if way == "predict":
        from leakbound.releases.specs import imported

        return imported(options["predict"])
    if way == "weights":
        from leakbound.releases.factory import trained_from

        if not recipe.spec:
            raise ValueError("--weights needs the --model that they are of, as --model my_package:make_net")
        return trained_from(recipe.spec, recipe.set, options["weights"])
    from leakbound.releases.model_files import SUFFIXES, read_model

    file, trusted = options["model_file"], bool(options.get("unpickle_trusted"))
    if file.suffix not in SUFFIXES:
        raise ValueError(f"{file} is no trained model ({', '.join(SUFFIXES)})")
    if trusted:
        say(f"{file} is unpickled: it may run any code")
    trusted_types, is_scored = options.get("trust", ()), "score" in options
    return read_model(file, unpickle_trusted=trusted, trusted_types=trusted_types, is_scored=is_scored)


def _of_model(plan: TrainedPlan, options: Mapping[str, Any], store: str) -> Report:
    """Audit one trained model by its members and others, with reference models of its recipe if asked for."""
    from leakbound.auditing.api import audit_model
    from leakbound.releases.factory import release_from
    from leakbound.releases.specs import imported

    way = _way_to(options)
    refuse_without_model(options)
    recipe = read(ModelPlan, model_tables(options)[0] if "model" in options else {"spec": ""}, "audit model")
    model = _trained(way, options, recipe)
    # without predictions a table needs no label
    needs_no_label = plan.score is not None and plan.label is None
    members, others = (_loaded(plan, options[file], needs_no_label) for file in ("members", "others"))
    pairs = [_as_given(side.points) for side in (members, others)]
    words = _words(plan, options.get("n_jobs")) | {"seed": plan.seed, "queries": plan.queries, "attacks": plan.attacks}
    # with --weights the --model is the network of the weights; elsewhere it can only be the recipe
    if ({"n_models", "train"} if way == "weights" else {"model"}) & options.keys():
        of_recipe = release_from(recipe.spec, recipe.set, train=recipe.recipe, score=plan.score)
        words["references"] = Fitted(of_recipe, plan.n_models)
    if recipe.layers:
        words["train"] = {"layers": recipe.layers}
    if "classes" in options:
        words["classes"] = _classes(options["classes"], members.points.y)
    if members.points.names is not None and others.points.names is not None:
        words["ids"] = [*members.points.names, *others.points.names]
    words["slices"] = {name: [*members.slices[name], *others.slices[name]] for name in plan.slices}
    words["store"] = Store(store, plan.depends_on)
    words["score"] = None if plan.score is None else imported(plan.score)
    words["weights"] = options.get(way) if way != "predict" else None
    # the report holds no path of this machine; --predict is an import path
    name = options["predict"] if way == "predict" else Path(options[way]).name
    report = audit_model(model, *pairs, name=name, **words)
    files = f"{Path(options['members']).name} and {Path(options['others']).name}"
    return replace(report, about=_with_names(report.about, files, tuple(_trusted(options))))


def _with_names(about: Any, files: str, trusted: Sequence[str]) -> Any:
    """Name the files of the data, and say what was done on the user's word alone."""
    (release,) = about.releases
    release = release.model_copy(update={"data": release.data.model_copy(update={"name": files})})
    return about.model_copy(update={"releases": (release,), "notes": (*trusted, *about.notes)})


def _trusted(options: Mapping[str, Any]) -> Iterator[str]:
    """Say what was done on the user's word alone, for those who read the report later."""
    file = options.get("model_file")
    if file is None:
        return
    from leakbound.releases.model_files import PICKLES

    name = printable(Path(file).name)
    if options.get("unpickle_trusted") and Path(file).suffix in PICKLES:
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


OF_MODELS = {
    "model", "set_", "train", "n_models", "predict", "weights", "unpickle_trusted", "trust", "classes", "members",
    "others", "queries", "seed", "depends_on", "model_file",
}  # fmt: skip
OF_A_TRAINED_MODEL = (
    argument("file", Path, "ONE trained model: .skops, .onnx, .joblib."),
    option("predict", str | None, "module:function, its probabilities."),
    option("weights", str | None, "State dict of the --model, a network."),
    option(
        "probabilities",
        str | None,
        "Its answers: member, label, p_LABEL for each label[, id]; --data has the records.",
    ),
    option("members", str | None, "The file of its training data."),
    option("others", str | None, "A file of other data."),
    option("unpickle_trusted", bool, "Read a model file that is a pickle, which runs the code in it.", False),
    option("trust", list[str] | None, "A type in a file of skops that you trust; repeatable."),
    option("classes", list[str] | None, "The label of each column of the answer, in order; repeatable."),
    option("model", list[str] | None, "module:name of its recipe, for references."),
    SET,
    TRAIN,
    STORE,
    WORKERS,
    ALLOW,
    *OUTPUT,
)
OF_SCORES = (
    argument("file", Path, "A table of attack scores: member, score[, model][, id]."),
    option(
        "references_are",
        str | None,
        "Of scores of several models, what each was compared with: targets (the other attacked models), separate "
        "models, or none. [targets]",
    ),
    WORKERS,
    *OUTPUT,
)
OF_SIGNALS = (
    argument(
        "file",
        Path,
        "An .npz file with member (M, N) and signals (M, N), M models of N records (docs/your-models.md, The .npz "
        "file); or a folder of leakbound.write_blocks, of any size.",
    ),
    option("sampling", str | None, "poisson if members were drawn by coins. [fixed, or what the file says]"),
    WORKERS,
    *OUTPUT,
)


OF_SYNTHETIC = (
    argument("file", list[Path], "Synthetic data, a .csv, .parquet or .npz; several files are published together."),
    option("members", str | None, "The file that the generator was fitted on."),
    option("others", str | None, "A file of records of the same source that it was not fitted on."),
    option("reference", str | None, "A file of further such records, for the density ratio and Gen-LRA."),
    WORKERS,
    *OUTPUT,
)


def _made(
    doc: str, run: Any, own: Sequence[Any], plan: type[GivenPlan], skip: Sequence[str], shown: Sequence[str], name: str
) -> Any:
    fields = options_of(plan, skip, {each: how for each, how in OF_GIVEN.items() if each not in skip})
    return command(doc, run, [CONTEXT, *brief(grouped([*own, *fields], "Plan"), shown)], name)


model = _made(
    "Measure what ONE trained model reveals about who is in its training data.\n\n"
    "With --model, references of its recipe are fitted, and LiRA, RMIA and MAST attack this model.",
    _model,
    OF_A_TRAINED_MODEL,
    TrainedPlan,
    (),
    (
        "file", "members", "others", "label", "predict", "weights", "probabilities", "model", "attacks", "claim",
        "policy", "out", "as_json",
    ),
    "audit_model",
)  # fmt: skip
scores = _made(
    "Audit the scores of an attack of your own; higher = member.",
    _of_file("audit scores", "a table: member, score[, model][, id]", _of_scores),
    OF_SCORES,
    GivenPlan,
    ("attacks", "seed"),
    ("file", "data", "label", "slices", "references_are", "claim", "policy", "prior", "out", "as_json"),
    "audit_scores",
)
signals = _made(
    "Audit signals of another program: a loss for each model and record, and who was in.",
    _of_file("audit signals", "an .npz file, or a folder of leakbound.write_blocks", _of_signals),
    OF_SIGNALS,
    GivenPlan,
    ("seed",),
    ("file", "data", "label", "slices", "sampling", "attacks", "claim", "policy", "prior", "out", "as_json"),
    "audit_signals",
)
synthetic = _made(
    "Measure what synthetic data reveal about who is in the data of their generator.\n\n"
    "What is found of members is compared with the same of others, whom the generator cannot have known.",
    _synthetic,
    OF_SYNTHETIC,
    SyntheticPlan,
    ("data", "label"),
    (
        "file", "members", "others", "reference", "infer", "group", "drop", "attacks", "claim", "policy", "out",
        "as_json",
    ),
    "audit_synthetic",
)  # fmt: skip
