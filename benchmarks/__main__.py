"""The project's ratios and its memory, measured: ``OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks``."""

from __future__ import annotations

import subprocess
import sys

from benchmarks import dpsgd, half_splits, left_out, memory, pmp, protection, reading, scoring, statistic, whitebox


def peak_gigabytes(*module: str) -> float:
    """Peak memory of a piece of work, in a process that does nothing else."""
    command = [sys.executable, "-m", *module]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> int:
    """Print a row for each benchmark; 1 if a ratio is below half of the wanted one, or a memory above its limit."""
    line, kept = "{:72} {:>10} {:>10}".format, True
    print(line("work, against", "measured", "wanted"))
    # before the ratios: the peak of a child is never below the size of its parent
    for work, limit, *module in (
        (memory.WORK, memory.LIMIT, "benchmarks.memory"),
        (protection.WORK, protection.LIMIT, "benchmarks.protection", "--peak"),
    ):
        peak = peak_gigabytes(*module)
        print(line(work, f"{peak:.2f} GB", f"< {limit:g} GB"))
        kept &= peak < limit
    modules = (scoring, statistic, pmp, half_splits, protection, left_out, dpsgd, whitebox, reading)
    for row in [row for module in modules for row in module.rows()]:
        print(line(row.name, f"{row.ratio:,.0f}x", f"{row.wanted:,.0f}x"))
        kept &= row.ratio >= row.wanted / 2
    for reason in dpsgd.left_out():
        print(reason)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
