"""``leakscope calibrate`` and ``leakscope protect``: the least noise for a promise, and a release that keeps it."""

from __future__ import annotations

import inspect
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import typer

from leakscope.checks import count
from leakscope.cli.options import command, option, options_of, words_of
from leakscope.cli.writing import OUT, command_line, emit, refuse_file, say, write
from leakscope.plans.plan import PagePlan, Plan, read
from leakscope.plans.protects import CalibrationPlan, MultiplierPlan, ProtectionPlan
from leakscope.types import Signals

if TYPE_CHECKING:
    from leakscope.report import Report

STORE = f"{OUT}/store"  # of both commands: what was fitted to calibrate is there to protect
RELEASE = "leakscope-release.json"
AS_JSON = option("as_json", bool, "Print the report's JSON and nothing else.", False, "--json")
OF_THE_FITS = (
    option("signals", Path | None, "File (.npz) of simulated releases, for leakscope audit --signals. [none]"),
    option("store", str | None, f"Folder of finished fits. [{STORE}]"),
    option("jobs", int | None, "Worker processes. [all cores]"),
)

app = typer.Typer(rich_markup_mode=None)


@dataclass(frozen=True)
class Files:
    """The two files of a release, which is never written over: its value cannot be made again.

    Parameters
    ----------
    release : Path
        Value and certificate, as JSON.
    page : Path
        Drawn from it.
    """

    release: Path
    page: Path

    @classmethod
    def of(cls, out: Path, ledger: str | None = None) -> Self:
        """A page beside the JSON."""
        if out.suffix != ".json":
            raise ValueError(f"--out {out}: a release is a file whose name ends in .json")
        made = cls(out, out.with_suffix(".html"))
        if ledger is not None and Path(ledger).resolve() in {file.resolve() for file in made.both}:
            raise ValueError(f"--out {out}: the ledger would stand there; a release is public, its ledger is not")
        return made

    @property
    def both(self) -> tuple[Path, Path]:
        """The release comes first: a page without it would be no release."""
        return self.release, self.page

    def check(self) -> None:
        """Nothing is there, and both can be written where they shall stand, or where their folder shall be made."""
        for file in self.both:
            if os.path.lexists(file):
                raise ValueError(f"{file} exists already, and a release is never written over; choose another --out")
        folder = self.release.parent
        there = next(path for path in (folder, *folder.parents) if path.exists())
        if not there.is_dir():
            raise ValueError(f"--out {self.release}: {there} is a file; give a folder")
        for file in self.both:
            part = there / _beside(file).name
            try:
                part.touch()
                part.unlink()
            except OSError as error:
                raise OSError(f"{file} cannot be written: {error.strerror or error}") from error

    def ready(self) -> None:
        """The last thing before a release is drawn."""
        try:
            self.release.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(f"{self.release} cannot be written: {error.strerror or error}") from error
        self.check()

    def write(self, report: Report) -> None:
        """Both beside their places, then renamed; what cannot be written stands on standard output."""
        text = report.to_json()
        try:
            _put(_beside(self.release), text)
            _put(_beside(self.page), report.to_html())
            for file in self.both:
                if os.path.lexists(file):
                    raise OSError(f"{file} exists by now")
                _beside(file).replace(file)
            _flush(self.release.parent)
        except BaseException as error:
            sys.stdout.write(text)
            say("the release stands on standard output: keep it, for it cannot be made again")
            if isinstance(error, OSError):
                raise OSError(f"{self.release} cannot be written: {error.strerror or error}") from error
            raise
        finally:
            for file in self.both:
                with suppress(OSError):
                    _beside(file).unlink()


@contextmanager
def _simulated(file: Path | None, ledger: str | None = None) -> Iterator[dict[str, Any]]:
    """Where simulated releases go: beside their place before anything is drawn, renamed when all is well."""
    if file is None:
        yield {}
        return
    if file.suffix != ".npz":
        raise ValueError(f"--signals {file}: signals are a file whose name ends in .npz")
    if ledger is not None and Path(ledger).resolve() == file.resolve():
        raise ValueError(f"--signals {file}: the ledger would stand there")
    _refuse_there(file)
    try:
        yield {"simulated": lambda signals: _put_signals(file, signals)}
        _refuse_there(file)
        _beside(file).replace(file)
    finally:
        with suppress(OSError):
            _beside(file).unlink()


def _refuse_there(file: Path) -> None:
    if os.path.lexists(file):
        raise ValueError(f"--signals {file} exists already; choose another name")
    if not file.parent.is_dir():
        raise ValueError(f"--signals {file}: no such folder {file.parent}")


def _put_signals(file: Path, signals: Signals) -> None:
    """For its owner alone, as a store: signals of single records are in it."""
    game = signals.game
    arrays = {"member": game.member, "judged": game.judged, "n_targets": game.n_targets, **signals.arrays}
    try:
        with open(os.open(_beside(file), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as made:
            np.savez(made, allow_pickle=False, **arrays)
            made.flush()
            os.fsync(made.fileno())
    except OSError as error:
        raise OSError(f"{file} cannot be written: {error.strerror or error}") from error


def _beside(file: Path) -> Path:
    return file.with_name(f".{file.name}.{os.getpid()}.part")


def _put(file: Path, text: str) -> None:
    """Whole, on the disk, and for everybody to read."""
    with file.open("w", encoding="utf-8") as made:
        os.fchmod(made.fileno(), 0o644)
        made.write(text)
        made.flush()
        os.fsync(made.fileno())


def _flush(folder: Path) -> None:
    """New names reach the disk."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _calibrate(
    context: typer.Context, out: Path | None, signals: Path | None, store: str | None, as_json: bool, **given: Any
) -> None:
    """The least noise for a statistic of a file; DP-SGD has a command of its own below this one."""
    if context.invoked_subcommand is not None:
        _refuse_before(context)
        return
    jobs = given.pop("jobs")
    started, words = time.time(), _words(CalibrationPlan, given, "calibrate", jobs)
    if out is not None:
        refuse_file(out)
    with _simulated(signals) as simulated:
        protecting = import_module("leakscope.protecting")
        places = {"store": store or STORE, "jobs": jobs, **simulated}
        report = protecting.calibrate_file(command=command_line(), **places, **words).certificate
        if out is not None:
            write(report, out, True, started)
    emit(report, out, as_json)
    _say_signals(signals, words["eta"])


def _protect(
    out: Path | None, signals: Path | None, store: str | None, jobs: int | None, as_json: bool, **given: Any
) -> None:
    """A release with its certificate, or the announcement of one in the ledger."""
    words = _words(ProtectionPlan, given, "protect", jobs)
    if words.get("declare"):
        for flag, file in (("out", out), ("signals", signals)):
            if file is not None:
                raise ValueError(f"protect --declare releases nothing; it takes no --{flag}")
        line = import_module("leakscope.protecting").declare_file(**words)
        print(json.dumps(line) if as_json else line)
        return
    files = Files.of(Path(RELEASE) if out is None else out, words.get("ledger"))
    files.check()
    with _simulated(signals, words.get("ledger")) as simulated:
        protecting = import_module("leakscope.protecting")
        places = {"store": store or STORE, "jobs": jobs, **simulated}
        report = protecting.protect_file(command=command_line(), before=files.ready, **places, **words).certificate
        files.write(report)
    emit(report, None, as_json)
    say(f"wrote {files.release} and {files.page}")
    _say_signals(signals, words["eta"])


def _say_signals(file: Path | None, eta: float) -> None:
    if file is not None:
        audit = f"leakscope audit --signals {file} --attack likelihood_ratio --claim eta={eta:g}"
        say(f"wrote {file}; audit it with: {audit}")


def _multiplier(as_json: bool, **given: Any) -> None:
    """The least noise for DP-SGD, and what the accountant says that it keeps."""
    plan = read(MultiplierPlan, words_of(MultiplierPlan, given), "calibrate dpsgd")
    emit(import_module("leakscope.protecting").multiplier_report(plan, command_line()), None, as_json)


def _words(kind: type[Plan], given: Mapping[str, Any], name: str, jobs: int | None) -> dict[str, Any]:
    """What was typed, if it makes a plan; the user's own modules stand where the command is called."""
    words = words_of(kind, given)
    if "data" not in words:
        other = "; of DP-SGD: leakscope calibrate dpsgd" if name == "calibrate" else ""
        raise ValueError(f"{name} needs --data FILE and --eta, as --data people.csv --eta 0.05{other}")
    if jobs is not None:
        count("jobs", jobs)
    read(kind, words, name)
    sys.path.append(os.getcwd())
    return words


def _refuse_before(context: typer.Context) -> None:
    """Flags between ``calibrate`` and the command below it would do nothing."""
    for name, value in context.params.items():
        if value not in ((), []) and value is not None and value is not False:
            flag = "json" if name == "as_json" else name.replace("_", "-")
            raise ValueError(f"calibrate {context.invoked_subcommand} takes no --{flag} before it")


def _ordered(plan: type[PagePlan]) -> list[inspect.Parameter]:
    """The options of a plan; what is told to every page comes last."""
    return sorted(options_of(plan), key=lambda each: each.name in PagePlan.model_fields)


_CONTEXT = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
app.callback(invoke_without_command=True)(
    command(
        "The least noise with which a statistic keeps a promise; nothing is released.",
        _calibrate,
        [
            _CONTEXT,
            *_ordered(CalibrationPlan),
            option("out", Path | None, "Folder of report.json and report.html. [none]"),
            *OF_THE_FITS,
            AS_JSON,
        ],
        name="calibrate",
    )
)
app.command("dpsgd")(
    command(
        "The least noise multiplier of DP-SGD for an advantage, for (fpr, fnr), or for (epsilon, delta).",
        _multiplier,
        [*options_of(MultiplierPlan), AS_JSON],
        name="dpsgd",
    )
)
protect: Callable[..., None] = command(
    "Release a statistic with the least noise that keeps a promise, and its certificate.",
    _protect,
    [
        *_ordered(ProtectionPlan),
        option("out", Path | None, f"File of the release; its page stands beside it. [{RELEASE}]"),
        *OF_THE_FITS,
        AS_JSON,
    ],
    name="protect",
)
