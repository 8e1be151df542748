"""Run natural calls, each in a process of its own, and print what became of them.

``python -m tests.libraries`` runs all, ``python -m tests.libraries NAME ...`` some; ``--keep FILE`` writes the results
as a CSV file with the versions and the date, in which earlier rows of calls that were not run stay. The exit code is 1
if a call gives a wrong result, or if fewer than nine tenths of them run.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import subprocess
import sys
import time
from importlib import import_module, metadata
from pathlib import Path
from shutil import which

from tests.libraries.natural import CALLS, WrongResult, in_new_folder

MODULES = tuple(path.stem for path in sorted(Path(__file__).parent.glob("calls_*.py")))
FRACTION = 0.9  # of the calls that must run
TIME_LIMIT = 600  # seconds of one call
FIELDS = ("name", "kind", "about", "libraries", "result", "reason", "seconds", "date")


def load_calls() -> None:
    """Import the modules of calls, which register themselves; a library is imported by its call alone."""
    for module in MODULES:
        import_module(f"tests.libraries.{module}")


def run_here(name: str) -> int:
    """Run one call in this process; print its error as one line."""
    try:
        in_new_folder(CALLS[name].function)
    except WrongResult as error:
        print(f"wrong\t{error}")
        return 4
    except BaseException as error:
        lines = str(error).strip().splitlines()
        print(f"refused\t{type(error).__name__}: {lines[0] if lines else ''}")
        return 5
    print("runs\t")
    return 0


def installed(library: str) -> str | None:
    """Version of a distribution, or of R; None if it is not there."""
    if library == "R":
        if not which("Rscript"):
            return None
        said = subprocess.run(["Rscript", "--version"], capture_output=True, text=True, check=False)
        return (said.stdout + said.stderr).split("version ")[-1].split()[0]
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def run_apart(name: str) -> dict[str, str]:
    """Run one call in a process of its own and return its row."""
    call = CALLS[name]
    versions = {library: installed(library) for library in call.libraries}
    row = {
        "name": name,
        "kind": call.kind,
        "about": call.about,
        "libraries": "; ".join(f"{library} {version}" for library, version in versions.items() if version),
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
    }
    missing = [library for library, version in versions.items() if version is None]
    if missing:
        return row | {"result": "not run", "reason": f"{', '.join(missing)} not installed", "seconds": ""}
    started = time.perf_counter()
    command = [sys.executable, "-m", "tests.libraries", "--here", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return row | {"result": "refused", "reason": f"not done after {TIME_LIMIT} s", "seconds": str(TIME_LIMIT)}
    lines = [line for line in done.stdout.splitlines() if line.partition("\t")[0] in ("runs", "wrong", "refused")]
    said = lines[-1] if lines else f"refused\tthe process ended with {done.returncode}"
    result, _, reason = said.partition("\t")
    return row | {"result": result, "reason": reason, "seconds": f"{time.perf_counter() - started:.0f}"}


def keep_rows(file: Path, rows: list[dict[str, str]]) -> None:
    """Write rows in the order of the calls, with the file's earlier rows of calls that were not run."""
    kept = {}
    if file.exists():
        with file.open(newline="", encoding="utf-8") as lines:
            kept = {row["name"]: row for row in csv.DictReader(lines)}
    kept |= {row["name"]: row for row in rows}
    with file.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.DictWriter(lines, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept[name] for name in CALLS if name in kept)


def main() -> int:
    """Run the calls that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.libraries")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--here", action="store_true", help="one call, in this process")
    parser.add_argument("--keep", type=Path, help="CSV file of the results")
    options = parser.parse_args()
    load_calls()
    unknown = [name for name in options.names if name not in CALLS]
    if unknown:
        parser.error(f"no call {', '.join(unknown)}; known: {', '.join(CALLS)}")
    if options.here:
        return run_here(options.names[0])
    rows = []
    for name in options.names or CALLS:
        row = run_apart(name)
        rows.append(row)
        print(f"{row['result']:8} {name:40} {row['seconds']:>4} s  {row['reason']}", flush=True)
    counts = {
        result: sum(row["result"] == result for row in rows) for result in ("runs", "refused", "wrong", "not run")
    }
    print(", ".join(f"{count} {result}" for result, count in counts.items()))
    if options.keep:
        keep_rows(options.keep, rows)
    return int(counts["wrong"] > 0 or counts["runs"] < FRACTION * len(rows))


if __name__ == "__main__":
    sys.exit(main())
