"""Values without each record, and the noise that they need, against refitting each and all pairs of values.

Run as ``OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.left_out``: the ratios, CPU time of both sides in
one process. With ``--costs`` the seconds of large tables and of the least noise for them, then of whole releases by the
command line (file, noise, ledger, pages), and the most memory that each has held in a process of its own.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.peak import peak_bytes
from benchmarks.scoring import Row, cpu_seconds
from leakbound.core.types import Points
from leakbound.data.content import row_names
from leakbound.noise import GaussianNoise, LeftOut, calibrate_left_out, least_left_out_noise
from leakbound.protection.ledger.keyed import keyed_hashes
from leakbound.releases.statistics.features import Cells
from leakbound.releases.statistics.left_out import left_out_values
from leakbound.releases.statistics.statistic import Linear, named
from leakbound.runtime.all_but_one import values_of

Array = np.ndarray
ETA = 0.05
N_LINEAR, N_LOGISTIC, N_NOISE, N_COLUMNS = 20_000, 5_000, 20_000, 3
N_COUNTED, N_LEVELS, N_NAMED = 50_000, 20, 20_000
PART = 20  # records that the naive sides leave out
COSTS = {  # statistic, records, columns
    "means": ("mean", 1_000_000, 10),
    "quantiles": ("quantiles", 100_000, 2),
    "covariance": ("covariance", 500_000, 3),
    "least-squares": ("ols", 500_000, 4),
    "logistic": ("logistic", 100_000, 20),
}


def records(n: int, n_columns: int) -> Points:
    """Normal columns, and a class that depends on the first."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, n_columns))
    return Points(x, rng.random(n) < 1 / (1 + np.exp(-x[:, 0])))


def least_squares() -> Row:
    """Coefficients without each record."""
    x = records(N_LINEAR, N_COLUMNS + 1).x
    design = np.column_stack([np.ones(len(x)), x[:, :-1]])

    def refitted() -> Array:
        rows = (np.delete(np.arange(len(x)), record) for record in range(PART))
        return np.array([np.linalg.lstsq(design[row], x[row, -1], rcond=None)[0] for row in rows])

    return Row(
        f"least squares without each, n={N_LINEAR:,}, d={N_COLUMNS}, against refitting",
        cpu_seconds(lambda: left_out_values(named("ols"), Points(x))),
        cpu_seconds(refitted) * N_LINEAR / PART,
        500,
    )


def logistic() -> Row:
    """Coefficients of a logistic regression without each record."""
    points = records(N_LOGISTIC, N_COLUMNS)
    classes = np.asarray(points.y)

    def refitted() -> Array:
        rows = (np.delete(np.arange(N_LOGISTIC), record) for record in range(PART))
        models = (
            LogisticRegression(tol=1e-8, solver="newton-cholesky").fit(points.x[row], classes[row]) for row in rows
        )
        return np.array([np.r_[model.intercept_, model.coef_[0]] for model in models])

    return Row(
        f"logistic regression without each, n={N_LOGISTIC:,}, d={N_COLUMNS}, against refitting",
        cpu_seconds(lambda: left_out_values(named("logistic"), points)),
        cpu_seconds(refitted) * N_LOGISTIC / PART,
        100,
    )


def noise() -> Row:
    """The noise for all records, against the pairs of all of them under one noise."""
    values = records(N_NOISE, N_COLUMNS).x

    def all_pairs() -> float:
        told = [
            GaussianNoise(15.0).shift_tv(np.linalg.norm(values - values[record], axis=1)).sum()
            for record in range(PART)
        ]
        return max(told) / (N_NOISE - 1)

    return Row(
        f"noise of who is left out, n={N_NOISE:,}, d={N_COLUMNS}, against all n^2 pairs",
        cpu_seconds(lambda: calibrate_left_out(values, ETA)),
        cpu_seconds(all_pairs) * N_NOISE / PART,
        100,
    )


def counts() -> Row:
    """A table of counts and its noise, against a row of all cells for each record."""
    x = np.random.default_rng(0).integers(N_LEVELS, size=(N_COUNTED, 2))
    table = Linear("count", Cells.of(x, ["x0", "x1"]), "sum")

    def compact() -> None:
        values = left_out_values(table, Points(x))
        assert values is not None
        calibrate_left_out(values[1], ETA)

    def dense() -> None:
        cell = N_LEVELS * x[:, 0] + x[:, 1]
        indicators = (cell[:, None] == np.arange(N_LEVELS**2)).astype(float)
        calibrate_left_out(indicators.sum(axis=0) - indicators, ETA)

    return Row(
        f"counts without each, n={N_COUNTED:,}, {N_LEVELS**2} cells, and noise, against dense rows",
        cpu_seconds(compact),
        cpu_seconds(dense),
        5,
    )


def names() -> Row:
    """Keyed hashes of records by their content, against a loop over the records."""
    x = records(N_NAMED, N_COLUMNS).x
    key = bytes(32)

    def in_a_loop() -> list[bytes]:
        seen: dict[bytes, int] = {}
        hashes = []
        for row in x:
            content = hashlib.sha256(" ".join(f"{value:.6e}" for value in row.tolist()).encode()).digest()
            seen[content] = seen.get(content, -1) + 1
            hashes.append(hashlib.blake2b(content + str(seen[content]).encode(), key=key, digest_size=16).digest())
        return hashes

    return Row(
        f"keyed hashes of records by content, n={N_NAMED:,}, d={N_COLUMNS}, against a loop",
        cpu_seconds(lambda: keyed_hashes(key, "unit", row_names(Points(x)))),
        cpu_seconds(in_a_loop),
        4,
    )


def rows() -> list[Row]:
    """All of them."""
    return [least_squares(), logistic(), noise(), counts(), names()]


def cost(name: str) -> str:
    """Seconds of the values and of the noise of a large table, and the peak of this process."""
    statistic, n, n_columns = COSTS[name]
    points = records(n, n_columns)
    started = time.process_time()
    of_all, without = values_of(named(statistic), points if statistic == "logistic" else Points(points.x))
    values = time.process_time() - started
    left_out = LeftOut(without)
    noise = least_left_out_noise(left_out, ETA, left_out.jackknife_std**-2)
    total = time.process_time() - started
    work = f"{name}, n={n:,}, {n_columns} columns"
    least = noise.rms(len(of_all))
    return (
        f"{work:44} values {values:5.1f} s, with noise {total:5.1f} s, {peak_bytes() / 1e9:.2f} GB (noise {least:.3g})"
    )


def main() -> None:
    """Print the ratios, or the costs."""
    if "--cost" in sys.argv:
        print(cost(sys.argv[-1]))
    elif "--costs" in sys.argv:
        for name in COSTS:
            subprocess.run([sys.executable, "-m", "benchmarks.left_out", "--cost", name], check=True)
        subprocess.run([sys.executable, "-m", "benchmarks.whole_releases"], check=True)
    else:
        for row in rows():
            print(f"{row.name:80} {row.ours_seconds * 1e3:8.1f} ms {row.ratio:8,.0f}x (wanted {row.wanted:g}x)")


if __name__ == "__main__":
    main()
