"""Notes on columns that are no features as they are: identifiers, and dates that are read as text."""

from __future__ import annotations

import numpy as np
import pandas as pd

from leakbound.data import from_arrays
from leakbound.data.columns import date_notes, identifier_notes


def customers(n: int) -> pd.DataFrame:
    return pd.DataFrame({"customer": [f"C-{number:04d}" for number in range(n)], "age": np.arange(n) % 7})


def test_a_few_repeated_rows_do_not_hide_an_identifier():
    frame = customers(200)
    repeated = pd.concat([frame, frame.head(5)], ignore_index=True)
    (note,) = identifier_notes(from_arrays(repeated))
    assert note.startswith("customer has another value in each record")
    # five customers with another row each, and rows that are not the same
    other = frame.head(5).assign(age=99)
    assert identifier_notes(from_arrays(pd.concat([frame, other], ignore_index=True))) == []


def test_many_repeats_are_no_sign_of_an_identifier():
    towns = pd.DataFrame({"town": [f"town {number}" for number in range(40)] * 5})
    assert identifier_notes(from_arrays(towns)) == []


def test_dates_in_text_are_named():
    frame = customers(3).assign(
        born=["1980-03-31", "1975-11-02", None], seen=["31.3.2024", "1.4.2024", "2.4.2024 10:30"]
    )
    born, seen = date_notes(from_arrays(frame))
    assert born.startswith("born looks like dates but is read as text, with 2 values;")
    assert seen.startswith("seen looks like dates but is read as text, with 3 values;")


def test_what_is_no_date_in_text_is_not_named():
    frame = customers(3).assign(
        version=["1.2.3", "1.2.4", "2.0.0"],
        phone=["044-123-4567", "044-123-4568", "044-123-4569"],
        some=["1980-03-31", "unknown", "1975-11-02"],
        time=pd.to_datetime(["1980-03-31", "1975-11-02", "1975-11-03"]),
        one=["1980-03-31"] * 3,
    )
    assert date_notes(from_arrays(frame)) == []
