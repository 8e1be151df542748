"""``leakbound calibrate`` and ``leakbound protect``: the least noise for a promise, and a release that keeps it."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from leakbound.cli.options import (
    ALLOW,
    AS_JSON,
    CONTEXT,
    FULL,
    HELP,
    BriefGroup,
    Spelling,
    brief,
    command,
    grouped,
    leave_of,
    option,
    options_of,
    words_of,
)
from leakbound.cli.output import OUT, command_line, emit, encodable, refuse_file, say, width, write
from leakbound.cli.release_files import FOLDER, OWNER, PUBLISHED, ReleaseFiles
from leakbound.core.checks import count
from leakbound.core.types import Signals
from leakbound.files import temporary
from leakbound.files.system import open_new
from leakbound.plans.choices import fields_of, name_of
from leakbound.plans.plan import read
from leakbound.plans.promises import PROMISE_OF, PROMISES, Anyone, as_promise
from leakbound.plans.protects import NO_CHOICE, CalibrationPlan, MultiplierPlan, ProtectionPlan
from leakbound.plans.several import OF_A_STATISTIC, SeveralPlan, from_toml, is_several, read_plan
from leakbound.plans.statistics import STATISTICS

if TYPE_CHECKING:
    from leakbound.reports import Report

NOISE_CSV, DESIGNS_CSV = "noise.csv", "designs.csv"
STORE = f"{OUT}/store"  # of both commands: protect uses the fits that calibrate left
PLAN = option("plan", Path | None, "A plan in TOML: these flags as keys, a [[statistic]] table for each of several.")
OF_PROMISES = "; ".join(f"{name_of(kind)} has {', '.join(fields_of(kind))}" for kind in PROMISES) + "."
OF_ANYONE = (  # what names columns is a flag of its own
    option("range", list[str] | None, "What a column can hold, as wage=0:80: for promise anyone."),
    option(
        "others",
        list[str] | None,
        "Columns of --by, as sector,sex, with one more level under promise anyone, called others: it takes every value "
        "without a level of its own, and missing ones.",
    ),
    option(
        "compare",
        list[str] | None,
        "For the owner, what every promise would cost, and of promise drawn the noise that other methods need: all, or "
        f"a promise with its fields, as drawn,fits=500. {OF_PROMISES}",
    ),
)
OF_THE_FITS = (
    option("signals", Path | None, "File (.npz) of simulated releases, for leakbound audit signals. [none]"),
    option("store", str | None, f"Folder or URL (s3://BUCKET/FOLDER) of finished fits. [{STORE}]"),
    option("n_jobs", int | None, "Worker processes. [all cores]"),
    ALLOW,
)
SPELT = {  # shorter than in the plan, for those who read the short help
    "statistic": Spelling(help="mean, table, quantiles, ols, ...: see --help-all. [mean]"),
    "set": Spelling(
        help=f"Parameters of the statistic, as bins=10 or probabilities=[0.5]. Statistics: {', '.join(STATISTICS)}, or "
        "module:function."
    ),
    "levels": Spelling(help="Public levels of a column, as sector=care,trade."),
    "promise": Spelling(help="anyone, file or drawn; with fields: drawn,k=100."),
}
OF_A_RELEASE = SPELT | {"ledger": Spelling(help="Private memory of releases. [beside the data]")}
BRIEF = (
    "plan", "data", "drop", "label", "id", "statistic", "by", "levels", "eta", "promise", "range", "out", "as_json",
)  # fmt: skip
app = typer.Typer(cls=BriefGroup, context_settings=HELP, rich_markup_mode="rich")


@contextmanager
def _simulated(file: Path | None, ledger: str | None = None) -> Iterator[dict[str, Any]]:
    """Say where simulated releases go: to a temporary file, which is renamed when all is well."""
    if file is None:
        yield {}
        return
    if file.suffix != ".npz":
        raise ValueError(f"--signals {file}: signals are a file whose name ends in .npz")
    if ledger is not None and Path(ledger).resolve() == file.resolve():
        raise ValueError(f"--signals {file}: the ledger would be written there")
    _refuse_existing(file)
    part = temporary.part_of(file)
    try:
        yield {"simulated": lambda signals: _put_signals(file, part, signals)}
        _refuse_existing(file)  # it may have come meanwhile
        part.replace(file)
    finally:
        temporary.remove(part)


def _refuse_existing(file: Path) -> None:
    if os.path.lexists(file):
        raise ValueError(f"--signals {file} exists already; choose another name")
    if not file.parent.is_dir():
        raise ValueError(f"--signals {file}: no such folder {file.parent}")


def _put_signals(file: Path, part: Path, signals: Signals) -> None:
    """Write signals for their owner alone, as a store: they are of single records."""
    game = signals.game
    arrays = {
        "member": game.member,
        "is_target_point": game.is_target_point,
        "n_targets": game.n_targets,
        **signals.arrays,
    }
    try:
        with os.fdopen(open_new(part), "wb") as stream:
            np.savez(stream, allow_pickle=False, **arrays)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise OSError(f"{file} cannot be written: {error.strerror or error}") from error


def _calibrate(
    context: typer.Context,
    plan: Path | None,
    out: Path | None,
    signals: Path | None,
    store: str | None,
    full: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Find the least noise for a statistic of a file; DP-SGD has a subcommand of its own."""
    if context.invoked_subcommand is not None:
        _refuse_before(context)
        return
    started = time.time()
    n_jobs = flags.pop("n_jobs")
    kind = CalibrationPlan if plan is None else ProtectionPlan  # the plan in a file is that of a release
    words = _words(kind, flags, "calibrate", n_jobs, plan)
    words = {name: value for name, value in words.items() if name in CalibrationPlan.model_fields}
    if out is not None:
        refuse_file(out)
    protection = import_module("leakbound.protection")
    places = {"store": store or STORE, "n_jobs": n_jobs}
    if _is_open(words):
        if signals is not None or as_json or is_several(words):
            raise ValueError(NO_CHOICE)
        table = protection.design_table_of_file(words, tell_owner=_tell_owner, **places)
        print(encodable(table.table(width(), full)))
        if out is not None:
            # the page is of the recommended promise, with the comparison; the owner was told the lines above
            promise = read(CalibrationPlan, words, "calibrate").under(PROMISE_OF[table.facts.recommended])
            asked = {**words, "promise": promise, "compare": words.get("compare") or True}
            report = protection.calibrate_file(asked, command=command_line(), **places).certificate
            names = ("report.json", "report.html", *_write_calibration(report, out, started))
            say(f"wrote {out}: {', '.join(names)}; the comparison, and the noise of what is recommended")
        return
    with _simulated(signals) as simulated:
        places |= {"tell_owner": _tell_owner, **simulated}
        report = protection.calibrate_file(words, command=command_line(), **places).certificate
        others = () if out is None else _write_calibration(report, out, started)
    emit(report, out, as_json, others, full)
    _say_signals(signals, words["eta"])


def _write_calibration(report: Report, out: Path, started: float) -> Sequence[str]:
    """Write the report of a calibration, and its tables as CSV, whose names are returned."""
    tables = import_module("leakbound.reports.render.csv_table")
    others = {NOISE_CSV: tables.planned_csv(report)}
    if designs := tables.designs_csv(report):
        others[DESIGNS_CSV] = designs
    write(report, out, True, started, others=others)
    if DESIGNS_CSV not in others:
        (out / DESIGNS_CSV).unlink(missing_ok=True)  # of an earlier calibration
    return tuple(others)


def _protect(
    plan: Path | None,
    out: Path | None,
    signals: Path | None,
    store: str | None,
    n_jobs: int | None,
    full: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Make a release with its certificate, or declare one in the ledger."""
    words = _words(ProtectionPlan, flags, "protect", n_jobs, plan)
    if _is_open(words):
        _refuse_open(words, {"store": store or STORE, "n_jobs": n_jobs})
    of_all = _shared_plan(words)
    # A declaration writes into the ledger alone.
    if words.get("declare"):
        for flag, file in (("out", out), ("signals", signals)):
            if file is not None:
                raise ValueError(f"protect --declare releases nothing; it takes no --{flag}")
        line = import_module("leakbound.protection").declare_file(words)
        print(json.dumps(line) if as_json else line)
        return
    # The folder is checked before anything is drawn, and its files are written by the recipe of the release.
    ledger = of_all.ledger_file
    files = ReleaseFiles.of(Path(FOLDER) if out is None else out, ledger, signals)
    files.check()
    with _simulated(signals, ledger) as simulated:
        protection = import_module("leakbound.protection")
        places = {"store": store or STORE, "n_jobs": n_jobs, "tell_owner": _tell_owner, **simulated}
        ready = {"before": files.ready, "publish": files.write}
        try:
            protected = protection.protect_file(words, command=command_line(), **ready, **places)
        finally:
            files.remove_empty()
    emit(protected.certificate, None, as_json, full=full)
    say(f"wrote {files.folder}: {PUBLISHED} for publication, {OWNER}/ for you alone")
    _say_below_0(protected.certificate, has_ledger=ledger is not None)
    _say_signals(signals, words["eta"])


def _say_below_0(report: Report, *, has_ledger: bool) -> None:
    """Say how counts below 0 are avoided, where there are some."""
    about = import_module("leakbound.reports.about")
    own = about.about_as(about.ProtectedAbout, report.about)
    n_below_0 = import_module("leakbound.reports.results.release.table").n_below_0
    tables = [own.table, *(statistic.table for statistic in own.statistics)]
    n_below = sum(n_below_0(table) for table in tables if table is not None)
    if n_below:
        again = (
            "the same command with it and another --out makes this release again" if has_ledger else "choose it before"
        )
        say(
            f"{n_below:,} of the published counts {'is' if n_below == 1 else 'are'} below 0, from the noise: "
            f"--non-negative publishes the nearest counts >= 0, at no cost of the promise ({again})"
        )


def _shared_plan(words: Mapping[str, Any]) -> ProtectionPlan:
    """Return the plan of one statistic, or what several share."""
    plan = read_plan(ProtectionPlan, words, "protect")
    of_all = plan.shared if isinstance(plan, SeveralPlan) else plan
    if not isinstance(of_all, ProtectionPlan):
        raise TypeError(f"expected the plan of a release, got {type(of_all).__name__}")
    return of_all


def _is_open(words: Mapping[str, Any]) -> bool:
    """Tell whether no promise was chosen."""
    return words.get("promise") is None


def _refuse_open(words: Mapping[str, Any], places: Mapping[str, Any]) -> None:
    """Refuse a release without a choice; somebody at the terminal is shown what each design costs."""
    if sys.stdout.isatty() and not is_several(words):
        fields = CalibrationPlan.model_fields
        choices = {name: value for name, value in words.items() if name in fields}
        print(encodable(str(import_module("leakbound.protection").design_table_of_file(choices, **places))))
    raise ValueError(NO_CHOICE)


def _tell_owner(line: str) -> None:
    """Print what the owner should know before a release, on standard error."""
    say(f"for you alone: {line}")


def _say_signals(file: Path | None, eta: float) -> None:
    if file is not None:
        audit = f"leakbound audit signals {file} --attack likelihood_ratio --claim eta={eta:g}"
        say(f"wrote {file}; audit it with: {audit}")


def _within_modules(run: Callable[..., None]) -> Callable[..., None]:
    """Let the statistics of a plan be functions of the modules that ``--allow-modules`` names alone."""

    def within(allow_modules: str | None, **flags: Any) -> None:
        with leave_of(allow_modules, flags):
            run(**flags)

    return within


def _multiplier(full: bool, as_json: bool, **flags: Any) -> None:
    """Find the least noise for DP-SGD, and what it keeps by the accountant."""
    plan = read(MultiplierPlan, words_of(MultiplierPlan, flags), "calibrate dpsgd")
    emit(import_module("leakbound.protection").multiplier_report(plan, command_line()), None, as_json, full=full)


def _words(
    kind: type[CalibrationPlan], flags: Mapping[str, Any], name: str, n_jobs: int | None, file: Path | None
) -> dict[str, Any]:
    """Check that what was typed makes a plan."""
    of_columns = {name: flags[name] for name in ("range", "others")}
    typed = {flag: value for flag, value in flags.items() if flag not in of_columns}
    words = _of_plan_and_flags(file, words_of(kind, typed))
    if any(of_columns.values()):
        words |= _of_anyone(words, **of_columns)
    if "data" not in words:
        other = "; of DP-SGD: leakbound calibrate dpsgd" if name == "calibrate" else ""
        raise ValueError(
            f"{name} needs --data FILE, --promise and --eta, as --data people.csv --promise file --eta 0.05{other}"
        )
    if n_jobs is not None:
        count("n_jobs", n_jobs)
    read_plan(kind, words, name if file is None else str(file))
    return words


def _of_plan_and_flags(file: Path | None, typed: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of a plan in TOML with what was typed in their place."""
    if file is None:
        return typed
    content = from_toml(file)
    of_one = [name for name in OF_A_STATISTIC if name != "promise"]  # that of all is above the tables
    idle = [name for name in of_one if name in typed and is_several(content)]
    if idle:
        raise ValueError(
            f"{file} has several statistics: --{idle[0].replace('_', '-')} belongs to one of them, in its table"
        )
    return {**content, **typed}


def _of_anyone(words: Mapping[str, Any], range: Sequence[str] | None, others: Sequence[str] | None) -> dict[str, Any]:
    """Put the flags that name columns into promise anyone: the one that is made, or the one to compare with."""
    declared: dict[str, Any] = {}
    if range:
        declared["ranges"] = range
    if others:
        declared["others"] = others
    promise = None if words.get("promise") is None else as_promise(words["promise"])
    if isinstance(promise, Anyone):
        return {"promise": replace(promise, **declared)}
    if promise is None or (words.get("compare") and not others):
        earlier = words.get("compare")
        return {"compare": [*(earlier if isinstance(earlier, list) else ()), Anyone(**declared)]}
    flag, instead = ("range", ", or for --compare") if range else ("others", "")
    raise ValueError(f"--{flag} is for promise anyone{instead}; got promise {name_of(type(promise))}")


def _refuse_before(context: typer.Context) -> None:
    """Refuse flags between ``calibrate`` and its subcommand, which would do nothing."""
    for name, value in context.params.items():
        if value not in ((), []) and value is not None and value is not False:
            flag = "json" if name == "as_json" else name.replace("_", "-")
            raise ValueError(f"calibrate {context.invoked_subcommand} takes no --{flag} before it")


app.callback(
    invoke_without_command=True,
    epilog="Example: leakbound calibrate --data people.csv --statistic mean --promise file --eta 0.05",
)(
    command(
        "The least noise with which a statistic keeps a promise; nothing is released.",
        _within_modules(_calibrate),
        [
            CONTEXT,
            *brief(
                grouped(
                    [
                        PLAN,
                        *options_of(CalibrationPlan, skip=("compare",), spelt=SPELT),
                        *OF_ANYONE,
                        option("out", Path | None, f"Folder of report.json, report.html and {NOISE_CSV}. [none]"),
                        *OF_THE_FITS,
                        FULL,
                        AS_JSON,
                    ],
                    "Promise",
                ),
                BRIEF,
            ),
        ],
        name="calibrate",
    )
)
app.command("dpsgd", epilog="Example: leakbound calibrate dpsgd --sample-rate 0.01 --steps 1000 --advantage 0.1")(
    command(
        "The least noise multiplier of DP-SGD for an advantage, for (fpr, fnr), or for (epsilon, delta).",
        _multiplier,
        grouped([*options_of(MultiplierPlan), FULL, AS_JSON], "Target"),
        name="dpsgd",
    )
)
protect: Callable[..., None] = command(
    "Release a statistic with the least noise that keeps a promise, and its certificate.",
    _within_modules(_protect),
    brief(
        grouped(
            [
                PLAN,
                *options_of(ProtectionPlan, skip=("compare",), spelt=OF_A_RELEASE),
                *OF_ANYONE,
                option(
                    "out",
                    Path | None,
                    f"Folder of the release, and {OWNER}/ for you alone. [{FOLDER}]",
                ),
                *OF_THE_FITS,
                FULL,
                AS_JSON,
            ],
            "Promise",
        ),
        (*BRIEF, "ledger"),
    ),
    name="protect",
)
