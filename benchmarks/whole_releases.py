"""Whole releases by the command line: CPU seconds and the most memory, each in a process of its own.

Run as ``OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.whole_releases``, or as the last part of ``python
-m benchmarks.left_out --costs``. From a file to pages and ledger: reading, values, noise, hashes of the records.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.peak import peak_bytes
from leakbound.cli.main import main as leakbound

N_LEVELS = 20
LEVELS = [f"k{number}" for number in range(N_LEVELS)]
TABLE = (
    "--statistic",
    "table",
    "--by",
    "a,b",
    "--levels",
    f"a={','.join(LEVELS)}",
    "--levels",
    f"b={','.join(LEVELS)}",
)
LEFT_OUT = ("--promise", "file,games=0")
WHOLE = {  # kind of file, records, columns, what is asked for
    "means, leave-one-out": ("parquet", 1_000_000, 10, ("--statistic", "mean", *LEFT_OUT)),
    "means of many columns, leave-one-out": ("parquet", 20_000, 300, ("--statistic", "mean", *LEFT_OUT)),
    "table of 400 cells, leave-one-out": ("parquet", 10_000_000, 4, (*TABLE, *LEFT_OUT)),
    "table of 400 cells, dp": ("parquet", 10_000_000, 4, (*TABLE, "--promise", "anyone")),
    "table of 400 cells, leave-one-out, CSV": ("csv", 10_000_000, 4, (*TABLE, *LEFT_OUT)),
    "table of 400 cells, dp, CSV": ("csv", 10_000_000, 4, (*TABLE, "--promise", "anyone")),
}


def write_file(path: Path, n: int, n_columns: int) -> None:
    """Write a table: two columns of levels and two of numbers, or numbers alone."""
    rng = np.random.default_rng(0)
    if n_columns == 4:
        levels = np.array(LEVELS, dtype=object)
        frame = pd.DataFrame(
            {
                "a": levels[rng.integers(N_LEVELS, size=n)],
                "b": levels[rng.integers(N_LEVELS, size=n)],
                "wage": rng.lognormal(size=n),
                "age": rng.integers(100, size=n, dtype=np.int32),
            }
        )
    else:
        frame = pd.DataFrame(rng.normal(size=(n, n_columns)), columns=[f"x{column}" for column in range(n_columns)])
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)


def release(name: str, path: Path) -> str:
    """Seconds of a whole release by the command line, with all imports, and the peak of this process."""
    kind, n, n_columns, words = WHOLE[name]
    arguments = ["protect", "--data", str(path), "--eta", "0.05", "--out", str(path.parent / "release"), *words]
    sys.argv = ["leakbound", *arguments]
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said), suppress(SystemExit):
        leakbound()
    if not (path.parent / "release" / "release.json").exists():
        raise RuntimeError(f"{name}: {said.getvalue().strip()}")
    work = f"{name}, n={n:,}, {n_columns} columns, {kind}"
    return f"{work:78} {time.process_time():5.1f} s, {peak_bytes() / 1e9:.2f} GB"


def whole_release(name: str) -> None:
    """Write the file of a release in one process, and release it in another."""
    kind, n, n_columns, _ = WHOLE[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"data.{kind}"
        command = [sys.executable, "-m", "benchmarks.whole_releases"]
        subprocess.run([*command, "--write", str(path), str(n), str(n_columns)], check=True)
        subprocess.run([*command, "--release", name, str(path)], check=True)


def main() -> None:
    """Print the costs of all releases; or do one part of that in this process."""
    if "--write" in sys.argv:
        write_file(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    elif "--release" in sys.argv:
        print(release(sys.argv[2], Path(sys.argv[3])))
    else:
        for name in WHOLE:
            whole_release(name)


if __name__ == "__main__":
    main()
