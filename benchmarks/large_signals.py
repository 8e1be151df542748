"""Loss, LiRA and RMIA with their intervals on signals that are never in memory: time and peak memory by size.

Run as ``OMP_NUM_THREADS=1 python -m benchmarks.large_signals``, with other numbers of points behind it if wanted, and
``--folder`` for the place of the files: about 45 bytes a point and model while it runs (22 GB at 30,000,000 points).
With ``--models 8 16 32 64`` each size is audited with these numbers of models, one after another.
Each size is made and audited in a process of its own. Time is that of the audit, without making the signals; memory is
the largest sum of the resident sizes of the process and of its children, looked up every 50 ms.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil

import leakbound as ls

SIZES = (100_000, 1_000_000, 10_000_000, 30_000_000)
N_MODELS = 16
POPULATION = 0.1  # of the points, as an audit sets aside
ATTACKS = ("loss", "lira", "rmia")
MOST_MEMORY = 2e9  # bytes, at any size
MOST_TIME = 1.2  # times linear, from LINEAR_FROM points on
LINEAR_FROM = 1_000_000
_BLOCK = 1 << 14


def make(folder: Path, n_points: int, n_models: int = N_MODELS, seed: int = 0) -> None:
    """Write losses: each point has a difficulty, which models see with noise, and less loss where it is a member."""
    rng = np.random.default_rng(seed)
    with ls.write_blocks(folder, n_models=n_models) as write:
        for start in range(0, n_points, _BLOCK):
            n = min(_BLOCK, n_points - start)
            is_target = rng.random(n) >= POPULATION
            member = (rng.random((n, n_models), dtype=np.float32) < 0.5) & is_target[:, None]
            log_odds = 2 * rng.standard_normal((n, 1), dtype=np.float32) + 1
            log_odds = log_odds + rng.standard_normal((n, n_models), dtype=np.float32) + 0.7 * member
            write(member, {"loss": np.logaddexp(0, -log_odds)}, is_target_point=is_target)


@contextmanager
def watched_memory() -> Iterator[list[int]]:
    """Look up the resident sizes of this process and of its children; the largest sum is the item of the list."""
    peak, stop, process = [0], threading.Event(), psutil.Process()

    def watch() -> None:
        while not stop.wait(0.05):
            sizes = []
            for one in [process, *process.children(recursive=True)]:
                try:
                    sizes.append(one.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue
            peak[0] = max(peak[0], sum(sizes))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        stop.set()
        thread.join()


def measured(place: Path, n_points: int, n_models: int) -> dict[str, float]:
    """Make signals, audit them, and return seconds, peak bytes and the sizes of what is written."""
    with tempfile.TemporaryDirectory(dir=place) as name:
        folder = Path(name)
        make(folder / "signals", n_points, n_models)
        with watched_memory() as peak:
            started, cpu = time.perf_counter(), time.process_time()
            report = ls.audit_signals(folder / "signals", attacks=ATTACKS, all_records=folder / "records.parquet")
            seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
            n_json, n_page = len(report.to_json().encode()), len(report.to_html().encode())
        n_table = (folder / "records.parquet").stat().st_size
    return {
        "points": n_points,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "peak_bytes": peak[0],
        "json_bytes": n_json,
        "page_bytes": n_page,
        "table_bytes": n_table,
    }


def in_own_process(place: Path, n_points: int, n_models: int) -> dict[str, float]:
    """Measure one size in a process that does nothing else."""
    sizes = ["--one", str(n_points), "--models", str(n_models), "--folder", str(place)]
    command = [sys.executable, "-m", "benchmarks.large_signals", *sizes]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> int:
    """Print a row for each size; 1 if a peak or a slope is above what is wanted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sizes", nargs="*", type=lambda text: int(float(text)), default=list(SIZES))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--models", nargs="+", type=int, default=[N_MODELS])
    parser.add_argument("--one", type=int)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(measured(options.folder, options.one, options.models[0])))
        return 0
    print(f"{time.strftime('%Y-%m-%d')}, {', '.join(ATTACKS)}, intervals over models, all records")
    line = "{:>12} {:>7} {:>9} {:>9} {:>13} {:>10} {:>8} {:>8} {:>9}".format
    print(line("points", "models", "seconds", "CPU s", "times linear", "peak", "JSON", "page", "table"))
    first, kept = None, True
    for n_points, n_models in itertools.product(options.sizes, options.models):
        row = in_own_process(options.folder, n_points, n_models)
        ratio = None
        if n_points >= LINEAR_FROM and len(options.models) == 1:
            first = first or row
            ratio = row["cpu_seconds"] / first["cpu_seconds"] / (n_points / first["points"])
        kept &= row["peak_bytes"] < MOST_MEMORY and (ratio is None or ratio < MOST_TIME)
        megabytes = [f"{row[name] / 1e6:,.1f} MB" for name in ("json_bytes", "page_bytes", "table_bytes")]
        print(
            line(
                f"{n_points:,}",
                f"{n_models}",
                f"{row['seconds']:,.0f}",
                f"{row['cpu_seconds']:,.0f}",
                "" if ratio is None else f"{ratio:.2f}",
                f"{row['peak_bytes'] / 1e9:.2f} GB",
                *megabytes,
            ),
            flush=True,
        )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
