"""Total errors of every design and method of a protected release, on real data: ``python -m benchmarks.designs``.

Each row is a statistic of a data set, each number the root mean square over its coordinates of the total error (against
the statistic of all records), in standard errors of that statistic, at eta = 0.05. Ranges are those of a codebook where
there is one; those of scikit-learn's tables are the ends of the columns, rounded outwards, which favours differential
privacy. ``LEAKBOUND_DATA`` names the folder with adult.parquet and pendigits.npz.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from leakbound.plans.promises import Drawn
from leakbound.protection import DesignTable, design_table

ETA = 0.05
COLUMNS = {  # design and method of each column
    "dp": ("dp", ""),
    "dp, discrete noise": ("dp", "discrete_gaussian"),
    "leave-one-out": ("leave-one-out", ""),
    "half": ("half", ""),
    "half, PAC privacy": ("half", "pac_least_noise"),
    "half, izzo2022": ("half", "izzo_gamma"),
}
CODEBOOK = {"age": (17, 90), "education-num": (1, 16), "capital-gain": (0, 99999), "hours-per-week": (1, 99)}
_FITS = 500  # of the half draw, for statistics without a formula


def main() -> None:
    """Print the table as Markdown, a row as soon as it is known."""
    print(f"| data | statistic | {' | '.join(COLUMNS)} | least |")
    print("|" + "---|" * (3 + len(COLUMNS)))
    for name, statistic, table in tables(Path(os.environ.get("LEAKBOUND_DATA", "../shared/data"))):
        errors = {column: _error(table, *place) for column, place in COLUMNS.items()}
        known = {column: error for column, error in errors.items() if error is not None}
        cells = ["-" if error is None else f"{error:.3g}" for error in errors.values()]
        print(f"| {name} | {statistic} | {' | '.join(cells)} | {min(known, key=lambda column: known[column])} |")
        sys.stdout.flush()


def tables(folder: Path) -> Iterator[tuple[str, str, DesignTable]]:
    """Compute the table of designs of each data set and statistic."""
    adult = pd.read_parquet(folder / "adult.parquet")
    numbers = adult[list(CODEBOOK)].astype(float)
    ranges = [f"{name}={low}:{high}" for name, (low, high) in CODEBOOK.items()]
    yield "adult", "means", _table("mean", numbers, ranges=ranges)
    for by in (["education"], ["workclass", "education"]):
        levels = {name: sorted(adult[name].unique()) for name in by}
        yield "adult", f"counts by {' x '.join(by)}", _table("table", adult[by], by=by, levels=levels)
    hours = numbers["hours-per-week"].to_numpy()
    yield "adult", "OLS of hours", _table("ols", numbers[["age", "education-num"]], hours)
    rich = (adult["income"] == adult["income"].max()).astype(int).to_numpy()
    yield "adult", "logistic of income", _table("logistic", numbers[["age", "education-num", "hours-per-week"]], rich)
    yield from _of_arrays("pendigits", np.load(folder / "pendigits.npz")["x"][:, ::8].astype(float), None)
    for name, load in (("diabetes", load_diabetes), ("wine", load_wine), ("breast_cancer", load_breast_cancer)):
        x, y = load(return_X_y=True)
        yield from _of_arrays(name, x[:, :4], y)


def _of_arrays(name: str, x: np.ndarray, y: np.ndarray | None) -> Iterator[tuple[str, str, DesignTable]]:
    """Compute means and quartiles of columns and, with a response, a regression."""
    frame = pd.DataFrame(x, columns=[f"x{column}" for column in range(x.shape[1])])
    ranges = [
        f"{column}={_outwards(values.min(), -1)}:{_outwards(values.max(), 1)}" for column, values in frame.items()
    ]
    yield name, "means", _table("mean", frame, ranges=ranges)
    yield name, "quartiles", _table("quantiles", frame, ranges=ranges)
    if y is None:
        return
    if len(np.unique(y)) == 2:
        yield name, "logistic", _table("logistic", frame, y)
    else:
        yield name, "OLS", _table("ols", frame, y.astype(float))


def _table(statistic: str, x: pd.DataFrame, y: Any = None, **options: Any) -> DesignTable:
    return design_table(statistic, x, y, eta=ETA, compare=Drawn(fits=_FITS), **options)


def _error(table: DesignTable, design: str, method: str) -> float | None:
    """Return the root mean square of the errors of a design, in standard errors; None where it has none."""
    row = next((row for row in table.facts.designs if (row.name, row.method) == (design, method)), None)
    if row is None or row.errors is None:
        return None
    pairs = zip(row.errors, table.facts.standard_errors, strict=True)
    ratios = [error / standard_error for error, standard_error in pairs if standard_error]
    return float(np.sqrt(np.square(ratios).mean()))


def _outwards(value: float, direction: int) -> float:
    """Round an end of a column to one digit, away from the others."""
    if value == 0:
        return 0.0
    size = 10.0 ** np.floor(np.log10(abs(value)))
    rounded = np.floor(value / size) if direction < 0 else np.ceil(value / size)
    return float(rounded * size)


if __name__ == "__main__":
    main()
