"""Reading a CSV file of many columns, against as much time for each column as a file of few takes.

Run as ``OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.reading``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.scoring import Row, cpu_seconds
from leakbound.data.files import read_table

FEW, MANY = 2_000, 32_000
N_RECORDS = 3


def table_of(folder: Path, n_columns: int) -> Path:
    """Write a file of numbers with names of its columns."""
    header = ",".join(f"column {place}" for place in range(n_columns))
    records = [",".join(["1.5"] * n_columns)] * N_RECORDS
    path = folder / f"{n_columns}.csv"
    path.write_text("\n".join([header, *records, ""]), encoding="utf-8")
    return path


def columns() -> Row:
    """Names, types and values of all columns; 1 where the time grows as their number does."""
    with tempfile.TemporaryDirectory() as folder:
        few, many = table_of(Path(folder), FEW), table_of(Path(folder), MANY)
        of_few = cpu_seconds(lambda: read_table(few), repeats=3)
        of_many = cpu_seconds(lambda: read_table(many), repeats=3)
    return Row(
        f"reading {MANY:,} columns, against {MANY // FEW} times {FEW:,}",
        ours_seconds=of_many,
        naive_seconds=of_few * MANY / FEW,
        wanted=1.0,
    )


def rows() -> list[Row]:
    """Return all comparisons."""
    return [columns()]


if __name__ == "__main__":
    for row in rows():
        print(f"{row.name:72} {row.ratio:.2f}x, wanted {row.wanted:g}x")
