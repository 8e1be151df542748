"""``leakbound ledgers``: the list of the ledgers that releases have begun."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from leakbound.cli.options import HELP
from leakbound.core.checks import printable

EXAMPLE = "Example: leakbound ledgers"
app = typer.Typer(context_settings=HELP, rich_markup_mode="rich")
File = Annotated[
    Path | None, typer.Option("--known-ledgers", help="The list. [$XDG_STATE_HOME/leakbound/ledgers]", metavar="FILE")
]


@app.callback(invoke_without_command=True, epilog=EXAMPLE)
def ledgers(context: typer.Context, known_ledgers: File = None) -> None:
    """Print the ledgers that releases have begun: date, promise and path, and which of them cannot be read.

    Each new release asks them whether they hold the people of its data.
    """
    context.obj = known_ledgers
    if context.invoked_subcommand is not None:
        return
    known, files = _modules()
    file = known.list_file(None if known_ledgers is None else str(known_ledgers))
    listed = known.listed_ledgers(file)
    for ledger in listed:
        try:
            state = files.opened(Path(ledger.path)).state
        except (OSError, ValueError) as reason:
            state = str(reason).replace(ledger.path, "which", 1)
        print(f"{printable(ledger.date)}  {printable(ledger.promise):6}  {printable(ledger.path)}, {printable(state)}")
    if not listed:
        print(f"no ledger is on the list {file}")


@app.command("forget", epilog="Example: leakbound ledgers forget people.csv.ledger")
def forget(
    context: typer.Context,
    ledger: Annotated[Path, typer.Argument(metavar="FILE", help="The ledger, as the list has it.")],
    known_ledgers: File = None,
) -> None:
    """Take a ledger from the list; its file stays as it is."""
    known, _ = _modules()
    chosen = known_ledgers or context.obj
    forgotten = known.forget_ledger(known.list_file(None if chosen is None else str(chosen)), ledger)
    print(
        f"{printable(forgotten.path)} is no longer asked, but by releases into its folder: a release of its people "
        "elsewhere begins a new budget without a word"
    )


def _modules() -> tuple[Any, Any]:
    """Import what reads the list, and what reads ledgers."""
    return import_module("leakbound.protection.ledger.listed"), import_module("leakbound.protection.ledger.files")
