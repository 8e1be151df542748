"""The page of libraries from the kept results: ``python -m tests.libraries.table`` writes docs/libraries.md."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).parent
FIRST, LAST = HERE / "first_results.csv", HERE / "results.csv"
PAGE = HERE.parents[1] / "docs" / "libraries.md"
WORDS = {"runs": "runs", "refused": "refused", "wrong": "wrong result", "not run": "not run"}


def rows_of(file: Path) -> list[dict[str, str]]:
    """The rows of a file of results."""
    with file.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def page() -> str:
    """The libraries with their versions, then each call with its result now and before anything was mended."""
    rows, first = rows_of(LAST), {row["name"]: row for row in rows_of(FIRST)}
    dates = sorted({row["date"] for row in rows})
    n_run = sum(row["result"] == "runs" for row in rows)
    calls_of: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        for library in filter(None, row["libraries"].split("; ")):
            calls_of[library].append(row["result"])
    lines = [
        f"{n_run} of {len(rows)} calls run ({' to '.join(dict.fromkeys((dates[0], dates[-1])))}).",
        "",
        f"{len(first)} of them were written and run before leakbound took all that they give it, and have that first",
        'result in the column "before"; the others were added later.',
        "",
        "| library | calls that run |",
        "|---|---|",
        *(
            f"| {library} | {results.count('runs')} of {len(results)} |"
            for library, results in sorted(calls_of.items(), key=lambda item: item[0].lower())
        ),
        "",
        "| call | libraries | result | before |",
        "|---|---|---|---|",
        *(_line(row, first.get(row["name"])) for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _line(row: dict[str, str], before: dict[str, str] | None) -> str:
    result = WORDS[row["result"]]
    if row["result"] != "runs":
        result += f": {row['reason']}"
    cells = [
        row["about"].rstrip("."),
        row["libraries"],
        result,
        "added later" if before is None else WORDS[before["result"]],
    ]
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
