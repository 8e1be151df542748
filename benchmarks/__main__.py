"""The project's ratios and its memory, measured: ``OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks``."""

from __future__ import annotations

import subprocess
import sys

from benchmarks import dpsgd, half_splits, pmp, scoring, statistic
from benchmarks.memory import LIMIT, WORK


def peak_gigabytes() -> float:
    """Peak memory of the scoring, in a process that does nothing else."""
    command = [sys.executable, "-m", "benchmarks.memory"]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> int:
    """Print a row for each benchmark; 1 if a ratio is below half of the wanted one, or the memory above its limit."""
    line = "{:72} {:>10} {:>10}".format
    print(line("work, against", "measured", "wanted"))
    # before the ratios: the peak of a child is never below the size of its parent
    peak = peak_gigabytes()
    print(line(WORK, f"{peak:.2f} GB", f"< {LIMIT:g} GB"))
    kept = peak < LIMIT
    for row in [*scoring.rows(), *statistic.rows(), *pmp.rows(), *half_splits.rows(), *dpsgd.rows()]:
        print(line(row.name, f"{row.ratio:,.0f}x", f"{row.wanted:,.0f}x"))
        kept &= row.ratio >= row.wanted / 2
    for reason in dpsgd.left_out():
        print(reason)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
