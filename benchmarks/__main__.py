"""The project's ratios and its memory, measured: ``OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks``."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.memory import LIMIT, WORK
from benchmarks.scoring import rows


def peak_gigabytes() -> float:
    """Peak memory of the scoring, in a process that does nothing else."""
    done = subprocess.run([sys.executable, "-m", "benchmarks.memory"], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> int:
    """Print a row for each benchmark; 1 if a ratio is below half of the wanted one, or the memory above its limit."""
    line = "{:72} {:>10} {:>10}".format
    print(line("work, against", "measured", "wanted"))
    peak = peak_gigabytes()  # before the ratios: a child's peak is never below the size of its parent at the fork
    print(line(WORK, f"{peak:.2f} GB", f"< {LIMIT:g} GB"))
    kept = peak < LIMIT
    for row in rows():
        print(line(row.name, f"{row.ratio:,.0f}x", f"{row.wanted:,.0f}x"))
        kept &= row.ratio >= row.wanted / 2
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
