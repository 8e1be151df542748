"""``leakbound audit`` and the commands that go with it: init, attacks, fit, compare."""

from __future__ import annotations

import json
import re
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leakbound.cli.options import (
    ALLOW,
    AS_JSON,
    CONTEXT,
    FULL,
    ORDER,
    PUBLISH,
    RECORDS,
    Spelling,
    argument,
    brief,
    command,
    grouped,
    leave_of,
    option,
    options_of,
)
from leakbound.cli.output import OUT, command_line, emit, encodable, folder_of_report, refuse_file, say, width, write
from leakbound.core.checks import printable
from leakbound.plans.audits import AuditPlan, ClaimPlan, ModelPlan, from_toml
from leakbound.plans.choices import fields_of, name_of
from leakbound.plans.games import Fresh, HalfSplit, game_of
from leakbound.plans.plan import read, settings
from leakbound.plans.policies import ready_text
from leakbound.plans.until import Until
from leakbound.plans.variants import parsed

if TYPE_CHECKING:
    from leakbound.attacks import Attack
    from leakbound.reports import Report
    from leakbound.runtime.execution import Tally

DEFAULT_MODEL = "sklearn.ensemble:RandomForestClassifier"
OF_ALL = {"attacks": Spelling("--attack")}  # of all audits: a flag for one of several values
SLICE = "Compare the groups that a column makes: label, group or its name; repeatable."
SET = option("set_", list[str] | None, "NAME=VALUE, a parameter of the --model before it.", flag="--set")
TRAIN = option(
    "train", list[str] | None, "NAME=VALUE, how the --model before it, a network, is trained; layers: which are seen."
)
STORE = option("store", str | None, "Folder or URL (s3://BUCKET/FOLDER) of finished models' signals. [OUT/store]")
WORKERS = option(
    "n_jobs",
    str | None,
    "Processes, or workers of Dask: tcp://HOST:PORT, local:N. [all cores]",
)
OUTPUT = (
    option("out", Path, "Folder of the report, yours alone.", Path(OUT)),
    RECORDS,
    PUBLISH,
    option("pdf", bool, "Also write OUT/report.pdf: by Chromium, else by WeasyPrint.", False, "--pdf"),
    FULL,
    AS_JSON,
)
OF_THE_RUN = (
    argument("plan", Path, "A plan in TOML (see leakbound init)."),
    SET,
    TRAIN,
    option("dpsgd", list[str] | None, "NAME=VALUE, how the --model before it, a network, is trained by DP-SGD."),
    option("slices", list[str] | None, SLICE, flag="--slice"),
    option(
        "until",
        str | None,
        "tpr@0.01,width=0.005: fit 8, 16, 32, ... models until the interval is so narrow. refuted: until every claim "
        "is. at_most=64 unless given.",
    ),
    STORE,
    WORKERS,
    option("from_store", bool, "Fit nothing: refuse unless all models are in the store.", False),
    option("partial", bool, "Fit nothing: audit the models that are in the store, and say so.", False),
    ALLOW,
    option("dry_run", bool, "Say what would be done, and what it costs.", False, "--dry-run"),
    *OUTPUT,
)
BRIEF = (
    "plan", "data", "label", "model", "n_models", "game", "attacks", "claim", "policy", "out", "n_jobs", "dry_run",
    "as_json",
)  # fmt: skip
ALL_SIGNALS = {"likelihood_ratio", "glir"}  # attacks that need all of their signals, where others need one of them
FLAGS_OF_A_MODEL = {"set_": "--set", "train": "--train", "dpsgd": "--dpsgd"}


def given(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Select what was typed, and read the workers: a number of processes, or where others are."""
    typed = {name: value for name, value in flags.items() if value is not None and value != [] and value is not False}
    if re.fullmatch(r"-?\d+", str(typed.get("n_jobs", ""))):
        typed["n_jobs"] = int(typed["n_jobs"])
    return typed


@dataclass(frozen=True)
class Output:
    """Where the report of an audit goes, and what of it is shown: the flags of `OUTPUT`."""

    out: Path
    show_records: bool
    publish: bool
    pdf: bool
    full: bool
    as_json: bool

    @classmethod
    def taken_from(cls, flags: dict[str, Any]) -> Output:
        """Take the flags of the output out of those of a command."""
        return cls(**{field.name: flags.pop(field.name) for field in fields(cls)})


def reported(
    output: Output,
    make: Callable[[], Report],
    has_store: bool = True,
    tally: Tally | None = None,
) -> None:
    """Make a report, write and print it, and leave with the exit code of its verdicts."""
    out, publish = output.out, output.publish
    started = time.time()
    refuse_file(out)
    # a store elsewhere leaves nothing to be made before the report
    early = nullcontext() if has_store else folder_of_report(out, private=not publish)
    with early:
        report = make()
    if not report.about.command:
        report = replace(report, about=report.about.model_copy(update={"command": command_line()}))
    write(report, out, output.show_records, started, publish)
    shown = report if output.show_records and not publish else report.without_records()
    emit(shown, out, output.as_json, full=output.full)
    if output.pdf:
        report.to_pdf(out / "report.pdf", output.show_records, publish=publish)
        say(f"wrote {out / 'report.pdf'}")
    _say_what_is_set_aside(report)
    if tally is not None:
        from leakbound.cli.gates import times

        for line in times(report, tally.seconds_a_model):
            say(line)
    _leave(report)


def _audit(
    context: typer.Context,
    plan: Path | None,
    allow_modules: str | None,
    dry_run: bool,
    **flags: Any,
) -> None:
    """Audit a plan."""
    output = Output.taken_from(flags)
    flags["order"] = context.meta[ORDER]
    with leave_of(allow_modules, flags):
        options = given(flags)
        audit_plan, n_jobs = _plan(plan, options), options.get("n_jobs")
        if dry_run:
            _emit_dry_run(audit_plan, n_jobs, output.as_json)
            return

        from leakbound.runtime.execution import Tally

        tally = Tally()

        def make() -> Report:
            from leakbound.auditing.api import run

            store = options.get("store") or str(output.out / "store")
            from_store = "all" if "from_store" in options else ""  # which models must be in the store already
            if "partial" in options:
                from_store = "finished"
            where = {"store": store, "n_jobs": n_jobs, "from_store": from_store, "tally": tally}
            return run(audit_plan, **where, command=command_line())

        reported(output, make, "store" in options, tally)


def _say_what_is_set_aside(report: Report) -> None:
    """Say why fewer records are attacked than were given."""
    for release in getattr(report.about, "releases", ()):
        n_aside = getattr(release, "population", 0)
        if n_aside:
            from leakbound.reports.phrases import plural

            units = plural(report.about.unit)
            n_all = n_aside + release.target_points
            say(f"{n_aside:,} of {n_all:,} {units} were set aside as a population, for RMIA, and are not attacked")
            return


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
        use = f"use it with: leakbound audit model MODEL --members FILE --others FILE --policy {plan}"
    from leakbound.reports import write as write_text

    write_text(plan, text)
    say(f"wrote {plan}; {use}")


def attacks(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List the attacks, what they need and where they come from."""
    from leakbound.attacks import ATTACKS, DEFAULT
    from leakbound.reports.render.document import table_of

    rows = [
        {
            "attack": attack.name + (" *" if attack.name in DEFAULT and not as_json else ""),
            "needs": _needs(attack),
            "signals": (" and " if attack.name in ALL_SIGNALS else " or ").join(attack.signals),
            "source": attack.source,
        }
        for attack in ATTACKS.values()
    ]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    # what the table abbreviates is said below it
    print(table_of(rows, width()), end="")
    notes = (
        "* by default; all is every one that reads predictions, or of scores every one that reads them",
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
    full: Annotated[bool, typer.Option("--full", help="Print all numbers, not the strongest alone.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The numbers as JSON.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="A page (.html) with the plots and all numbers.")] = None,
    title: Annotated[str, typer.Option("--title", help="Of the page.")] = "",
) -> None:
    """Put the findings of two reports side by side, and say whether one reveals more."""
    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--out {out}: give the file of a page, as comparison.html")
    from leakbound.reports import comparison as room
    from leakbound.reports import plain

    comparison = room.compare(first, second, unverified=unverified, title=title)
    if out is not None:
        comparison.to_html(out)
    if as_json:
        print(json.dumps(plain(comparison.rows), indent=1))
    else:
        print(encodable(comparison.table(width(), full)), end="")
    if out is not None:
        say(f"wrote {out}")


def _plan(file: Path | None, options: Mapping[str, Any]) -> AuditPlan:
    """Make the plan from a file, from flags, or from a file whose fields flags replace."""
    if file is not None and file.suffix != ".toml":
        raise ValueError(
            f"{file} is no plan (.toml); data are given by --data, a trained model to leakbound audit model, scores "
            "and signals to leakbound audit scores and leakbound audit signals"
        )
    base = from_toml(file) if file is not None else None
    words = _words(options)
    refuse_without_model(options)
    if "model" in options:
        words["model"] = model_tables(options)
    # other data replace those of the file with all that describes their columns
    if {"data", "dataset"} & words.keys() and base is not None:
        of_the_file = dict.fromkeys(("data", "dataset", "label", "group", "id", "separator", "decimal", "encoding"))
        game = replace(base.game, slices=()) if isinstance(base.game, HalfSplit | Fresh) else base.game
        base = base.model_copy(update=of_the_file | {"drop": (), "game": game})
    content = {} if base is None else base.model_dump(exclude_unset=True)
    if "slices" in options:
        words["game"] = _with_slices(words.get("game", content.get("game", "half_split")), options["slices"])
    if base is None and "data" not in words:
        words.setdefault("dataset", "digits")
    merged = read(AuditPlan, {**content, **words}, str(file or "audit"))
    if merged.model:
        return merged
    return merged.model_copy(update={"model": (ModelPlan(spec=DEFAULT_MODEL),)})


def _with_slices(written: Any, names: Sequence[str]) -> HalfSplit | Fresh:
    """Give a game the columns by which its records are grouped."""
    game = game_of(written)
    if not isinstance(game, HalfSplit | Fresh):
        has = ", ".join(fields_of(game))
        raise ValueError(f"--slice is of the games half_split and fresh; {name_of(type(game))} has: {has}")
    return replace(game, slices=list(names))


def refuse_without_model(options: Mapping[str, Any]) -> None:
    """Refuse parameters of a model where none is named."""
    for name, flag in FLAGS_OF_A_MODEL.items():
        if name in options and "model" not in options:
            raise ValueError(f"{flag} needs a --model")


def _words(options: Mapping[str, Any]) -> dict[str, Any]:
    """Select the fields of the plan, and read those that are written in a short form."""
    words = {name: value for name, value in options.items() if name in AuditPlan.model_fields}
    if "vary" in words:
        words["vary"] = parsed(words["vary"])
    if "claim" in words:
        words["claim"] = tuple(ClaimPlan.parse(text) for text in words["claim"])
    if "until" in options:
        if "n_models" in words:
            raise ValueError(f"--until {options['until']} says at_most=N itself: leave --n-models out")
        words["n_models"] = Until.parse(options["until"])
    return words


def model_tables(options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give each --set, --train and --dpsgd to the --model before it, as a table of the plan."""
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
        field = name.rstrip("_")
        table[field] = table.get(field, {}) | settings(text, flag)
    return tables


def _emit_dry_run(plan: AuditPlan, n_jobs: Any, as_json: bool) -> None:
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


def _dry_run(plan: AuditPlan, n_jobs: Any) -> Iterator[str]:
    """Yield the lines of a dry run; of a plan that names modules without leave, only which these are."""
    from leakbound.auditing.dry_run import dry_run
    from leakbound.releases.specs import refused_module
    from leakbound.runtime.pool import workers

    workers(n_jobs)
    imports = f"imports {', '.join(plan.import_paths)}"
    refused = sorted({refused_module(path) for path in plan.import_paths} - {""})
    if refused:
        yield imports
        yield (
            "a plan runs no code but scikit-learn's models, so what these cost is not known; with --allow-modules "
            f"{','.join(refused)} one of each is fitted"
        )
        return
    lines = dry_run(plan)
    first = next(lines)  # an error in the plan is raised here, before anything is printed
    yield imports
    yield first
    yield from lines


def _leave(report: Report) -> None:
    """Say what is refuted and what a policy does not allow, and leave with the exit code of that."""
    from leakbound.cli import gates

    for name, error in gates.failed_of(report.about).items():
        say(f"{name} could not be audited: {error}")
    for text in gates.refuted(report):
        say(f"refuted: {text}")
    for text in gates.failures(report):
        say(f"limit: {text}")
    for text in gates.remarks(report):
        say(f"limits: {text}")
    if code := gates.exit_code(report):
        raise typer.Exit(code)


def _fit(
    plan: Path | None,
    store: str | None,
    chunks: str | None,
    signals: Path | None,
    n_jobs: str | None,
    allow_modules: str | None,
) -> None:
    """Make models of a plan, and say how many chunks the store has."""
    from leakbound.auditing.api import fill_store

    if plan is None:
        raise ValueError("leakbound fit needs a plan in TOML (see leakbound init)")
    if store is None:
        raise ValueError("leakbound fit needs a --store, a folder or URL that the audit will read")
    numbers = None if chunks is None else _range_of(chunks)
    with leave_of(allow_modules, {}):
        workers = given({"n_jobs": n_jobs}).get("n_jobs")
        filled = fill_store(from_toml(plan), store=store, chunks=numbers, signals=signals, n_jobs=workers)
    print(f"{filled.n_made:,} of {filled.n_asked:,} chunks made, the others were there")
    print(f"{filled.n_chunks - filled.n_missing:,} of all {filled.n_chunks:,} chunks of the plan are in the store")
    if signals is not None:
        print(f"the signals of all models are in {signals}")


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
        option("signals", Path | None, "New folder for the signals of all models, for leakbound audit signals."),
        WORKERS,
        ALLOW,
    ],
    name="fit",
)
audit = command(
    "Measure what models reveal about who is in their training data.\n\n"
    "With no argument: a random forest on scikit-learn's digits. See also audit model, audit scores, audit signals.\n\n"
    "A plan runs no code but scikit-learn's models, unless --allow-modules names the modules that it may import.",
    _audit,
    [
        CONTEXT,
        *brief(grouped([*OF_THE_RUN, *options_of(AuditPlan, spelt=OF_ALL)], "Plan"), BRIEF),
    ],
    name="audit",
)
