"""The page of libraries from the kept results: ``python -m tests.libraries.table`` writes docs/libraries.md."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).parent
LAST = HERE / "results.csv"
PAGE = HERE.parents[1] / "docs" / "libraries.md"
WORDS = {"refused": "refused", "wrong": "wrong result", "not run": "not run"}


def rows_of(file: Path) -> list[dict[str, str]]:
    """The rows of a file of results."""
    with file.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def page() -> str:
    """The libraries with their versions, and each call that does not run with the reason."""
    rows = rows_of(LAST)
    dates = sorted({row["date"] for row in rows})
    n_run = sum(row["result"] == "runs" for row in rows)
    calls_of: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        for library in filter(None, row["libraries"].split("; ")):
            calls_of[library].append(row["result"])
    libraries = [
        f"{library} ({results.count('runs')} of {len(results)})"
        for library, results in sorted(calls_of.items(), key=lambda item: item[0].lower())
    ]
    when = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    lines = [f"{n_run} of {len(rows)} calls run ({when}), with scikit-learn and:", f"{', '.join(libraries)}."]
    lines += [f"\nNot among them: {_call(row)}." for row in rows if row["result"] != "runs"]
    return "\n".join(lines) + "\n"


def _call(row: dict[str, str]) -> str:
    return f"{row['about'].rstrip('.')} ({WORDS[row['result']]}: {row['reason']})"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
