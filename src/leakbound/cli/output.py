"""What commands print and write: results whole or not at all, prose on standard error."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING

from leakbound.core.checks import printable
from leakbound.files import private_file, temporary
from leakbound.files.system import OWNERS_FOLDER
from leakbound.version import __version__

if TYPE_CHECKING:
    from leakbound.reports import Report

OUT = "leakbound-report"
WIDTH = 100  # longest line that reads well, and that of files
NARROWEST = 60  # in narrower terminals lines wrap
TABLE_NAMES = ("report-records.parquet", "report-records.csv")  # of the games against all records, for the owner
_FILES = ("report.json", "report.html", "run.json")
TOGETHER = "leakbound"  # the folder in which the files of a report wait until all are whole
NO_TRACE = {  # flags that leave the report as it is, or that are nobody's business, with their number of values
    "--json": 0, "--full": 0, "--records": 0, "--no-records": 0, "--publish": 0, "--from-store": 0,
    "--allow-modules": 1, "--out": 1, "--store": 1, "--n-jobs": 1, "--ledger": 1,
    "--insecure-seed": 1, "--signals": 1, "--tmp": 1, "--cluster": 1,
}  # fmt: skip


def say(text: str) -> None:
    """Print a line on standard error, without control sequences."""
    with suppress(BrokenPipeError):
        print(f"leakbound: {printable(text)}", file=sys.stderr)


def width() -> int:
    """Return the longest line for standard output: what its terminal shows; 100 columns where it is no terminal."""
    if not sys.stdout.isatty():
        return WIDTH
    return min(max(shutil.get_terminal_size((WIDTH, 24)).columns, NARROWEST), WIDTH)


def refuse_file(out: Path) -> None:
    """Refuse a file where the folder of the report should be, and links to nothing in it, before hours are spent."""
    existing = next(path for path in (out, *out.parents) if path.exists())
    if not existing.is_dir():
        raise ValueError(f"--out {out}: {existing} is a file; give a folder")
    for name in _FILES:
        private_file.behind_link(out / name)


@contextmanager
def folder_of_report(out: Path, private: bool) -> Iterator[None]:
    """Make the folder of a report before the store in it, which would make it readable by everybody.

    A folder that was made here and is still empty when an error ends the audit is removed.
    """
    is_new = not out.exists()
    if is_new:
        try:
            import_module("leakbound.reports").make_folder(out, private)
        except OSError as error:
            raise OSError(f"the folder {out} cannot be written: {error.strerror or error}") from error
    try:
        yield
    except BaseException:
        if is_new:
            with suppress(OSError):  # there may be a store in it, for the next run
                out.rmdir()
        raise


def command_line() -> str:
    """Return what was typed, without folders and flags that differ between runs of the same audit."""
    typed = sys.argv[1:]
    words = iter(enumerate(typed, start=1))
    command = ["leakbound"]
    for next_idx, word in words:
        name, equals, value = word.partition("=")
        # --records shows single records, except where a number follows: the size of the training data of DP-SGD
        is_size = name == "--records" and (value or "".join(typed[next_idx : next_idx + 1])).isdigit()
        if name not in NO_TRACE or is_size:
            command.append(os.path.basename(name) + equals + os.path.basename(value))
        elif not equals:  # --flag VALUE, where the value is a word of its own
            for _ in range(NO_TRACE[name]):
                next(words, None)
    return shlex.join(command)


def write(
    report: Report,
    out: Path,
    records: bool,
    started: float,
    publish: bool = False,
    others: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write report, page and run in a temporary folder, then rename all three: a full disk leaves the old ones whole.

    Where a link is in the place of a file, the file behind it is written and the link stays; one to nothing is refused.
    The page is drawn from the JSON alone; clock and machine are in run.json, which is never for publication.
    """
    shown = report if records and not publish else report.without_records()
    private = report.on_data and not publish
    run = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "seconds": round(time.time() - started, 1),
        "command": sys.argv,
        "leakbound": __version__,
        "report": shown.digest(),
    }
    room = import_module("leakbound.reports")
    new = None
    try:
        for name in (*_FILES, *others):
            private_file.behind_link(out / name)  # refuses one to nothing
        room.make_folder(out, private)
        temporary.sweep(out, temporary.parts_of(out / TOGETHER))  # what a killed run has left
        new = temporary.part_of(out / TOGETHER)  # no name that anybody has chosen
        new.mkdir(mode=OWNERS_FOLDER)
        shown.to_json(new / "report.json", publish=publish)
        shown.to_html(new / "report.html", publish=publish)
        room.write(new / "run.json", json.dumps(run, indent=1) + "\n", private=True)
        for name, text in others.items():
            room.write(new / name, text, private=True)
        if records and not publish:
            _write_table(report, new / table_name())
        for name in TABLE_NAMES:
            (out / name).unlink(missing_ok=True)  # that of an earlier audit
        # a file behind a link may be on another disk: it is written first, since that can fail
        for file in sorted(new.iterdir(), key=lambda file: not (out / file.name).is_symlink()):
            if (out / file.name).is_symlink():
                is_private = file.stat().st_mode & 0o077 == 0
                room.write(out / file.name, file.read_bytes(), private=is_private)
            else:
                file.replace(out / file.name)
    except OSError as error:
        raise OSError(f"the folder {out} cannot be written: {error.strerror or error}") from error
    finally:
        if new is not None:
            shutil.rmtree(new, ignore_errors=True)


def table_name() -> str:
    """Name the file with the games against all records: Parquet where pyarrow is installed."""
    return TABLE_NAMES[0 if find_spec("pyarrow") is not None else 1]


def _write_table(report: Report, path: Path) -> None:
    """Write all records of an audit in memory, where the report has the most exposed ones alone."""
    n_shown = len(report.record_table.get("record", ()))
    frame = report.records()
    if len(frame) <= n_shown:
        return
    content = frame.to_csv(index=False).encode() if path.suffix == ".csv" else frame.to_parquet(None, index=False)
    import_module("leakbound.reports").write(path, content, private=True)


def emit(report: Report, out: Path | None, as_json: bool, others: Sequence[str] = (), full: bool = False) -> None:
    """Print the report on standard output, and where it was written; ``full`` is all that the page of a bound says.

    The reader of standard output may close it early (``| head -1``), and it may be full or closed: an error there is
    reported, and changes neither what was written nor the exit code, unless nothing else was to be written.
    """
    try:
        sys.stdout.write(report.to_json() if as_json else encodable(report.table(width(), full)) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        to_nowhere(sys.stdout)
    except OSError as error:
        to_nowhere(sys.stdout)
        if out is None:
            raise OSError(f"standard output cannot be written: {error.strerror or error}") from error
        say(f"standard output cannot be written: {error.strerror or error}")
    if out is not None:
        written = [str(out / name) for name in ("report.json", "report.html", *others)]
        say(f"wrote {', '.join(written[:-1])} and {written[-1]}")


def encodable(text: str) -> str:
    """Write signs that the encoding of standard output lacks in plain letters, or as question marks."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        letters = import_module("leakbound.reports.render.text").FALLBACK
        return text.translate(letters).encode(encoding, "replace").decode(encoding)
    return text


def to_nowhere(stream: IO[str]) -> None:
    """Whatever is still to be written to a stream is dropped, without an error when Python ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, stream.fileno())
    finally:
        os.close(nowhere)
