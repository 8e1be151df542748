"""Tables from other tools and languages: attack scores, or a model's probabilities, a row for each record."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int, Shaped

from leakbound.data.csv_rows import CsvForm
from leakbound.data.files import has_column, read_table
from leakbound.data.points import some
from leakbound.files.untrusted import in_one_line

Array = np.ndarray
TABLES = (".csv", ".parquet")
FEWEST_DIGITS = 2  # of rounded probabilities: with fewer, zeros and ties say too little
EXACT = 1e-7  # float32 holds a probability that closely


@in_one_line
def read_scores(
    path: str | os.PathLike[str], **form: Unpack[CsvForm]
) -> tuple[Float[Array, "T J"], Bool[Array, "T J"], Shaped[Array, " J"] | None]:
    """Read attack scores from a table."""
    path = Path(path)
    frame = _table(path, ("member", "score"), form)
    member, value = _truths(path, pd.Series(frame["member"])), _numbers(path, frame, ["score"])[:, 0]
    names = frame["id"].to_numpy() if "id" in frame.columns else None
    # the rows of each model are in the same order of records
    if "model" not in frame.columns:
        return value[None], member[None], names
    code, models = pd.factorize(frame["model"])
    sizes = np.bincount(code, minlength=len(models))
    if (code < 0).any() or len(set(sizes)) > 1:
        raise ValueError(
            f"{path}: each model needs a row for each record, in one order; rows of a model: {sizes.min():,} to "
            f"{sizes.max():,}"
        )
    order = np.argsort(code, kind="stable").reshape(len(models), -1)
    if names is not None and (names[order] != names[order[0]]).any():
        raise ValueError(f"{path}: each model needs its rows in the same order of records, and their ids differ")
    return value[order], member[order], None if names is None else names[order[0]]


class Answers(NamedTuple):
    """The probabilities of one trained model, a row for each record."""

    member: Bool[Array, " n"]
    label: Int[Array, " n"]
    p: Float[Array, "n K"]
    names: Shaped[Array, " n"] | None
    note: str


@in_one_line
def read_answers(path: str | os.PathLike[str], **form: Unpack[CsvForm]) -> Answers:
    """Read the probabilities of one trained model from a table."""
    path = Path(path)
    frame = _table(path, ("member", "label"), form)
    columns = [name for name in map(str, frame.columns) if name.startswith("p_")]
    if len(columns) < 2:
        raise ValueError(
            f"{path}: needs a column p_LABEL for each label, with its probability; columns: {some(frame.columns)}"
        )
    label = _columns_of(path, pd.Series(frame["label"]), columns)
    member = _truths(path, pd.Series(frame["member"]))
    names = frame["id"].to_numpy() if "id" in frame.columns else None
    p, note = _with_sum_one(path, _numbers(path, frame, columns))
    return Answers(member, label, p, names, note)


def _table(path: Path, needed: tuple[str, ...], form: CsvForm) -> pd.DataFrame:
    if path.suffix not in TABLES:
        raise ValueError(f"{path}: a table is a file of {' or '.join(TABLES)}")
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    frame, _ = read_table(path, **form)
    for name in needed:
        has_column(frame, name, path)
    return frame


def _truths(path: Path, column: pd.Series) -> Bool[Array, " n"]:
    """Read true and false as R, Julia and Python write them."""
    words = {"true": True, "t": True, "1": True, "1.0": True, "false": False, "f": False, "0": False, "0.0": False}
    truths = column.astype(str).str.lower().map(words)
    if truths.isna().any():
        odd = column.to_numpy()[truths.isna().to_numpy()][0]
        raise ValueError(f"{path}: member must be true or false, or 1 or 0; got {odd!r}")
    member = truths.to_numpy(dtype=bool)
    if member.all() or not member.any():
        count = "all" if member.all() else "none"
        raise ValueError(f"{path}: needs members and others; {count} of the rows are members")
    return member


def _numbers(path: Path, frame: pd.DataFrame, names: list[str]) -> Float[Array, "n c"]:
    columns = []
    for name in names:
        column = pd.Series(frame[name])
        values = np.asarray(pd.to_numeric(column, errors="coerce"), dtype=float)
        if not np.isfinite(values).all():
            row = int(np.argmax(~np.isfinite(values)))
            raise ValueError(f"{path}: {name} must hold finite numbers; row {row + 1} has {column.iloc[row]!r}")
        columns.append(values)
    return np.column_stack(columns)


def _with_sum_one(path: Path, p: Float[Array, "n K"]) -> tuple[Float[Array, "n K"], str]:
    """Divide rows by their sum where rounding explains that it is not 1; the second value says so."""
    row_sums = p.sum(axis=1)
    apart = float(np.abs(row_sums - 1).max())
    digits = _digits(p)
    if apart <= EXACT or digits is None or p.min() < 0 or p.max() > 1:
        return p, ""  # what is no probability is refused where it is read
    largest_rounding = p.shape[1] * 0.5 * 10.0**-digits
    smallest, largest = f"{row_sums.min():.4g}", f"{row_sums.max():.4g}"
    if digits < FEWEST_DIGITS:
        raise ValueError(
            f"{path}: the probabilities have 1 digit, and rows sum to {smallest} to {largest}; give {FEWEST_DIGITS} "
            "digits or more"
        )
    if apart > largest_rounding + EXACT or row_sums.min() <= 0:
        return p, ""
    return p / row_sums[:, None], (
        f"The probabilities are rounded to {digits} digits, and their rows sum to {smallest} to {largest}: each row "
        "was divided by its sum"
    )


def _digits(p: Float[Array, "n K"]) -> int | None:
    """Count the digits after the point to which all numbers are rounded; None if there are more than 6."""
    for digits in range(1, 7):
        if np.abs(p - np.round(p, digits)).max() <= EXACT:
            return digits
    return None


def _columns_of(path: Path, label: pd.Series, columns: list[str]) -> Int[Array, " n"]:
    """Find the column of each row's label."""
    place: dict[Any, int] = {name.removeprefix("p_"): idx for idx, name in enumerate(columns)}
    found = label.astype(str).map(place)
    if found.isna().any():
        missing = str(label.to_numpy()[found.isna().to_numpy()][0])
        raise ValueError(f"{path}: no column p_{missing} for the label {missing!r}; columns: {some(columns)}")
    return found.to_numpy(dtype=int)
