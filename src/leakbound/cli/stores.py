"""``leakbound store``: finished models' signals, in a folder or at a URL."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import import_module
from typing import Annotated, Any

import typer

from leakbound.cli.options import HELP
from leakbound.core.checks import printable

EXAMPLE = "Example: leakbound store size leakbound-report/store"
app = typer.Typer(
    help="Finished models' signals, in a folder or at a URL.",
    epilog=EXAMPLE,
    context_settings=HELP,
    rich_markup_mode="rich",
)
Url = Annotated[str, typer.Argument(metavar="STORE", help="A folder, or a URL as s3://BUCKET/FOLDER.")]


@app.command("size", epilog=EXAMPLE)
def store_size(store: Url) -> None:
    """Print the number of chunks and their size, and what runs that are under way keep beside them."""
    opened = _store(store)
    n_chunks, n_bytes = opened.size()
    print(f"{n_chunks:,} chunks, {n_bytes / 1e6:,.1f} MB")
    if beside := opened.bytes_beside():
        print(f"checkpoints: {beside / 1e6:,.1f} MB")


@app.command("ls", epilog="Example: leakbound store ls s3://bucket/audits")
def store_ls(store: Url) -> None:
    """Print key, bytes and time of each chunk."""
    for entry in _store(store).ls():
        print(f"{entry.name}  {entry.n_bytes:>13,}  {_time(entry.changed)}")


@app.command("verify", epilog="Example: leakbound store verify leakbound-report/store")
def store_verify(store: Url) -> None:
    """Read all chunks, compare their digests, and print the kinds of machines that computed them.

    Damaged chunks are listed, and the exit code is 1; the next run that needs one of them replaces it.
    """
    found = _store(store).verify()
    for machine, n_chunks in sorted(found.machines.items()):
        print(f"{n_chunks:,} of {printable(machine)}")
    for key, reason in found.damaged.items():
        print(f"{key}  damaged: {reason}")
    if found.damaged:
        raise ValueError(
            f"{len(found.damaged):,} of {found.n_chunks:,} chunks are damaged; the next run that needs one replaces it"
        )
    print(f"{found.n_chunks:,} chunks, all as they were written")


@app.command("gc", epilog="Example: leakbound store gc s3://bucket/audits --older-than 90")
def store_gc(
    store: Url,
    older_than: Annotated[
        float | None, typer.Option(help="Also remove chunks that were written more than so many days ago.", min=0)
    ] = None,
) -> None:
    """Remove checkpoints of finished models and what dead writers left; chunks only if asked."""
    removed = _store(store).gc(older_than)
    print(f"removed {removed.checkpoints:,} checkpoints, {removed.parts:,} leftovers, {removed.chunks:,} chunks")


@app.command("clear", epilog="Example: leakbound store clear leakbound-report/store")
def store_clear(store: Url) -> None:
    """Remove all chunks and checkpoints."""
    print(f"removed {_store(store).clear():,} files")


def _store(store: str) -> Any:
    """Open a store that is there; none is made here."""
    folder = import_module("leakbound.runtime.places").local_folder(store)
    if folder is not None and not folder.is_dir():
        raise ValueError(f"{store}: no such store")
    return import_module("leakbound.runtime.store").Store(store)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
