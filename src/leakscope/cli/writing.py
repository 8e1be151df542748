"""What commands print and write: results whole or not at all, prose on standard error."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from leakscope.version import __version__

if TYPE_CHECKING:
    from leakscope.report import Report

OUT = "leakscope-report"
NO_TRACE = {  # flags that leave the report as it is, or that are nobody's business, with their number of values
    "--json": 0, "--records": 0, "--no-records": 0, "--out": 1, "--store": 1, "--jobs": 1, "--ledger": 1,
    "--insecure-seed": 1, "--signals": 1,
}  # fmt: skip


def say(text: str) -> None:
    """A line of prose on standard error."""
    print(f"leakscope: {text}", file=sys.stderr)


def refuse_file(out: Path) -> None:
    """A file where the folder of the report should be: said before hours are spent."""
    there = next(path for path in (out, *out.parents) if path.exists())
    if not there.is_dir():
        raise ValueError(f"--out {out}: {there} is a file; give a folder")


def command_line() -> str:
    """What was typed, without folders and flags that differ between runs of the same audit."""
    words, said = iter(sys.argv[1:]), ["leakscope"]
    for word in words:
        name, equals, value = word.partition("=")
        if name not in NO_TRACE:
            said.append(os.path.basename(name) + equals + os.path.basename(value))
        elif not equals:
            for _ in range(NO_TRACE[name]):
                next(words, None)
    return shlex.join(said)


def write(report: Report, out: Path, records: bool, started: float) -> None:
    """Report, page and run beside their places, then renamed together: a full disk leaves the old ones whole.

    The page is drawn from the JSON alone; clock and machine stand in run.json.
    """
    new = out / ".new"
    run = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "seconds": round(time.time() - started, 1),
        "command": sys.argv,
        "leakscope": __version__,
        "report": report.digest(),
    }
    try:
        report.to_json(new / "report.json")
        report.to_html(new / "report.html", records=records)
        import_module("leakscope.report").write(new / "run.json", json.dumps(run, indent=1) + "\n")
        for file in sorted(new.glob("r*")):
            file.replace(out / file.name)
    except OSError as error:
        raise OSError(f"the folder {out} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)


def emit(report: Report, out: Path | None, as_json: bool) -> None:
    """The report on standard output, and where it was written."""
    if as_json:
        sys.stdout.write(report.to_json())
    else:
        print(report.table())
    if out is not None:
        say(f"wrote {out / 'report.json'} and {out / 'report.html'}")
