"""The commands, and the way in: an error is one line, and every way out has its exit code."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from leakbound.cli import audits, bounds, given, ledgers, papers, protects, stores
from leakbound.cli.options import HELP, BriefCommand, OrderedCommand
from leakbound.cli.output import say, to_nowhere
from leakbound.core.checks import one_line
from leakbound.plans.moved import OF_AUDITS, OF_PROTECTIONS
from leakbound.version import __version__

INTERRUPTED = 130
MOVED = {  # by the first word of a command
    "audit": OF_AUDITS,
    "fit": OF_AUDITS,
    "calibrate": OF_PROTECTIONS,
    "protect": OF_PROTECTIONS,
}


class Commands(TyperGroup):
    """Commands of one or two words: ``audit``, and ``audit model``."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Take the first two words for the command where there is one of that name."""
        two = " ".join(args[:2])
        if len(args) > 1 and two in self.commands:
            return two, self.commands[two], args[2:]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=Commands,
    name="leakbound",
    help="How much does what you release reveal about who is in your data?",
    epilog="Example: leakbound audit, then open leakbound-report/report.html",
    context_settings=HELP,
    rich_markup_mode="rich",
)


def _add(
    command: Callable[..., Any],
    panel: str,
    example: str,
    kind: type[TyperCommand] | None = None,
    name: str | None = None,
) -> None:
    """Add a command to a panel of the help, with an example below its own help."""
    app.command(name, cls=kind, epilog=f"Example: {example}", rich_help_panel=panel)(command)


MEASURE, LIMIT, BOUND, OTHER = "Measure", "Limit", "Bound", "Reports, papers and the store"
_add(
    audits.audit,
    MEASURE,
    "leakbound audit --data people.csv --label income --model sklearn.tree:DecisionTreeClassifier",
    OrderedCommand,
)
_add(
    given.model,
    MEASURE,
    "leakbound audit model forest.skops --members in.csv --others out.csv --label income",
    OrderedCommand,
    "audit model",
)
_add(given.scores, MEASURE, "leakbound audit scores scores.csv", OrderedCommand, "audit scores")
_add(given.signals, MEASURE, "leakbound audit signals signals.npz --attack lira", OrderedCommand, "audit signals")
_add(
    given.synthetic,
    MEASURE,
    "leakbound audit synthetic s.csv --members train.csv --others holdout.csv",
    OrderedCommand,
    "audit synthetic",
)
_add(audits.init, MEASURE, "leakbound init plan.toml")
_add(audits.attacks, MEASURE, "leakbound attacks --json")
_add(
    protects.protect,
    LIMIT,
    "leakbound protect --data people.csv --statistic mean --promise file --eta 0.05",
    BriefCommand,
)
app.add_typer(protects.app, name="calibrate", rich_help_panel=LIMIT)
app.add_typer(bounds.app, name="bound", rich_help_panel=BOUND)
_add(audits.fit, MEASURE, "leakbound fit audit.toml --store s3://bucket/audit --chunks 0..99")
_add(audits.compare, OTHER, "leakbound compare before/report.json after/report.json")
_add(papers.reproduce, OTHER, "leakbound reproduce izzo2022/figure1 --quick")
app.add_typer(stores.app, name="store", rich_help_panel=OTHER)
app.add_typer(ledgers.app, name="ledgers", rich_help_panel=LIMIT)


@app.callback(invoke_without_command=True)
def _bare(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(f"leakbound {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    """Run a command and leave with its exit code: 0, 1 any error, 2 refuted, 3 a limit exceeded, 130 Ctrl-C."""
    _open_closed_streams()
    warnings.filterwarnings("ignore", message=".* have been cancelled", category=UserWarning)  # joblib's, of Ctrl-C
    with _quiet_after_ctrl_c():
        code = _guarded(lambda: app(standalone_mode=False))
    sys.exit(code or _flushed())


def _open_closed_streams() -> None:
    """Open closed standard streams (``>&-``) to nowhere, so that no file that is opened later gets their number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if number == 0 else "w", encoding="utf-8"))  # noqa: SIM115


def _flushed() -> int:
    """Print what is still buffered; return 1 if that fails, and 0 if the reader has gone."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        to_nowhere(sys.stdout)
    except OSError as error:
        to_nowhere(sys.stdout)
        return _error(f"standard output cannot be written: {error.strerror or error}")
    return 0


@contextmanager
def _quiet_after_ctrl_c() -> Iterator[None]:
    """After Ctrl-C the thread that feeds the workers may find its queue emptied; its traceback helps nobody."""
    interrupted = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        interrupted.set()
        signal.default_int_handler(number, frame)

    def report(failed: threading.ExceptHookArgs) -> None:
        if not interrupted.is_set():
            earlier_hook(failed)

    earlier_hook, earlier_handler = threading.excepthook, signal.signal(signal.SIGINT, note)
    threading.excepthook = report
    try:
        yield
    finally:
        threading.excepthook = earlier_hook
        signal.signal(signal.SIGINT, earlier_handler)


def _guarded(command: Callable[[], Any]) -> int:
    """Run a command and return its exit code; an error is one line on standard error."""
    try:
        code = command() or 0  # typer returns the code of an exit, and 130 for Ctrl-C
        if code == INTERRUPTED:
            say("interrupted; finished models are in the store, the same command goes on from there")
        return code
    except TyperException as error:
        return _error(_moved_flag(error) or _with_flag_of_file(error.format_message()))
    except BrokenPipeError:  # who reads standard output has read enough
        to_nowhere(sys.stdout)
        return 0
    except OSError as error:
        return _error(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (ValueError, RuntimeError, ImportError) as error:
        return _error(_with_notes(error))
    except Exception as error:
        if os.environ.get("LEAKBOUND_TRACEBACK"):
            raise
        unexpected = f"unexpected {type(error).__name__}: {_with_notes(error)}"
        return _error(f"{unexpected}; set LEAKBOUND_TRACEBACK=1 for where, and report it")


def _moved_flag(error: TyperException) -> str:
    """Say where a flag is now that a command had once; nothing of other errors."""
    found = re.match(r"No such option: --([a-z-]+)", error.format_message())
    context = getattr(error, "ctx", None)
    if found is None or context is None:
        return ""
    moved = MOVED.get(context.info_name.split()[0], {}).get(found[1].replace("-", "_"))
    return f"{context.info_name} has no --{found[1]}; use {moved.flag}" if moved and moved.flag else ""


def _with_flag_of_file(message: str) -> str:
    """Add which flag takes a file, where one was written without its flag."""
    found = re.search(r"unexpected extra argument\(s\) \(([^ )]+)|No such command '([^']+)'", message)
    name = "" if found is None else found[1] or found[2]
    if not Path(name).suffix:
        return message
    flag, what = ("--plan", "a plan is") if name.endswith(".toml") else ("--data", "data are")
    return f"{message.rstrip('.')}; {what} given by {flag} {name}"


def _with_notes(error: Exception) -> str:
    """Return the message of an error with its notes, as in which model it was raised."""
    return ", ".join([str(error), *getattr(error, "__notes__", ())])


def _error(text: str) -> int:
    say("error: " + one_line(text))
    return 1


if __name__ == "__main__":
    main()
