"""Missing values of every kind of column: one line that says so, whatever pandas calls a missing value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import leakbound as ls
from leakbound.releases.statistics.features import Cells, numbers
from tests.promising import calibrate

NUMBERS = np.random.default_rng(0).integers(0, 5, 40)


def frame(column: pd.Series) -> pd.DataFrame:
    return pd.DataFrame({"pay": np.arange(40.0), "b": column})


def first_missing(column: pd.Series, missing: object) -> pd.Series:
    column = column.copy()
    column.iloc[0] = missing
    return column


COLUMNS: dict[str, pd.Series] = {
    "float": pd.Series(NUMBERS, dtype=float),
    "Float64": pd.Series(NUMBERS, dtype="Float64"),
    "Int64": pd.Series(NUMBERS, dtype="Int64"),
    "boolean": pd.Series(NUMBERS > 2, dtype="boolean"),
    "category of numbers": pd.Series(NUMBERS).astype("category"),
    "object": pd.Series(NUMBERS).astype(object),
}
pytest.importorskip("pyarrow")
COLUMNS["pyarrow"] = pd.Series(NUMBERS).astype("int64[pyarrow]")
TEXTS: dict[str, pd.Series] = {
    "object": pd.Series(NUMBERS).map(str).astype(object),
    "string": pd.Series(NUMBERS).map(str).astype("string"),
    "category": pd.Series(NUMBERS).map(str).astype("category"),
    "pyarrow": pd.Series(NUMBERS).map(str).astype("string[pyarrow]"),
}
MEAN: dict[str, Callable[[pd.DataFrame], object]] = {
    promise: lambda x, promise=promise: calibrate("mean", x, eta=0.1, promise=promise, games=0)
    for promise in ("file", "drawn")
}


@pytest.mark.parametrize("missing", [None, pd.NA, np.nan], ids=str)
@pytest.mark.parametrize("kind", COLUMNS)
def test_a_number_that_is_missing(kind, missing) -> None:
    x = frame(first_missing(COLUMNS[kind], missing) if kind != "float" or missing is not pd.NA else COLUMNS[kind])
    if kind == "float" and missing is pd.NA:
        x["b"] = x["b"].astype(object)
        x.loc[0, "b"] = pd.NA
    with pytest.raises(ValueError, match=r"^column b has missing or infinite values; drop or fill them$"):
        numbers(x)


@pytest.mark.parametrize("promise", MEAN)
def test_the_line_is_that_of_a_calibration(promise) -> None:
    with pytest.raises(ValueError, match=r"^column b has missing or infinite values; drop or fill them$"):
        MEAN[promise](frame(first_missing(COLUMNS["Int64"], pd.NA)))


@pytest.mark.parametrize("missing", [None, pd.NA, np.nan], ids=str)
@pytest.mark.parametrize("kind", TEXTS)
def test_a_level_that_is_missing(kind, missing) -> None:
    """Whether the levels are declared or not; it is counted nowhere, and no level by itself."""
    x = frame(first_missing(TEXTS[kind], missing))
    said = r"^1 record has no b \(an empty cell\): fill it in the file, for example with 'unknown', and declare that"
    with pytest.raises(ValueError, match=said):
        calibrate("table", x, by="b", eta=0.1, promise=ls.File(games=0))
    with pytest.raises(ValueError, match=said):
        Cells.declared(x, ["b"], {"b": ["0", "1", "2", "3", "4"]})


@pytest.mark.parametrize("kind", COLUMNS)
def test_whole_columns_are_numbers_of_the_same_value(kind) -> None:
    expected = np.column_stack([np.arange(40.0), NUMBERS > 2 if kind == "boolean" else NUMBERS])
    assert numbers(frame(COLUMNS[kind])).tolist() == expected.tolist()


@pytest.mark.parametrize("missing", [False, True])
def test_dates_are_no_numbers(missing) -> None:
    dates = pd.Series(pd.date_range("2020-01-01", periods=40))
    x = frame(first_missing(dates, pd.NaT) if missing else dates)
    for columns in (x, x[["b"]]):
        with pytest.raises(ValueError, match=r"^column b holds no numbers; leave it out, or encode it$"):
            numbers(columns)
