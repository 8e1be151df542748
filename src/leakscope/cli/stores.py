"""``leakscope store``: the folder of finished models' signals."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from leakscope.cli.options import HELP

EXAMPLE = "Example: leakscope store size leakscope-report/store"
app = typer.Typer(
    help="The folder of finished models' signals.", epilog=EXAMPLE, context_settings=HELP, rich_markup_mode="rich"
)


@app.command("size", epilog=EXAMPLE)
def store_size(folder: Annotated[Path, typer.Argument(help="The store.")]) -> None:
    """Print the number of chunks and their size."""
    n_chunks, n_bytes = _store(folder).size()
    print(f"{n_chunks:,} chunks, {n_bytes / 1e6:,.1f} MB")


@app.command("clear", epilog="Example: leakscope store clear leakscope-report/store")
def store_clear(folder: Annotated[Path, typer.Argument(help="The store.")]) -> None:
    """Remove all chunks."""
    print(f"removed {_store(folder).clear():,} files")


def _store(folder: Path) -> Any:
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such store")
    return import_module("leakscope.runtime.store").Store(folder)
