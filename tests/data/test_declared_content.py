"""The rule by which a field is read: compared with a grammar that is written in another way."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from leakbound.core.types import Points
from leakbound.data.content import row_names
from leakbound.data.declared_content import columns_as_levels, columns_as_numbers, missing_in, number_of, text_of

DIGITS = "0123456789"


def digits(text: str, at: int) -> int:
    """The place behind the digits that begin at a place."""
    while at < len(text) and text[at] in DIGITS:
        at += 1
    return at


def by_hand(text: str, decimal: str | None) -> float:
    """Read a number sign by sign, and divide exact whole numbers; NaN for what is none."""
    text = text.strip()
    at = 1 if text[:1] in ("+", "-") else 0
    end = digits(text, at)
    whole = text[at:end]
    if decimal is not None and 1 <= len(whole) <= 3:  # groups of three digits behind the first one
        thousands = "," if decimal == "." else "."
        while text[end : end + 1] == thousands and digits(text, end + 1) == end + 4:
            whole += text[end + 1 : end + 4]
            end += 4
    fraction = ""
    if text[end : end + 1] == (decimal or "."):
        start, end = end + 1, digits(text, end + 1)
        fraction = text[start:end]
    exponent = 0
    if text[end : end + 1] in ("e", "E") and end < len(text):
        start = end + 2 if text[end + 1 : end + 2] in ("+", "-") else end + 1
        if digits(text, start) == start:
            return math.nan
        exponent, end = int(text[end + 1 : digits(text, start)]), digits(text, start)
    if end < len(text) or not whole + fraction:
        return math.nan
    if abs(exponent) > 400:  # beyond the largest and the smallest double for the few digits of this test
        return math.nan if exponent > 0 and int(whole + fraction) else 0.0
    exact = Fraction(int(whole + fraction)) * Fraction(10) ** (exponent - len(fraction))
    try:
        number = float(exact)
    except OverflowError:
        return math.nan
    return -number if text[0] == "-" else number


def random_text(rng: np.random.Generator) -> str:
    """Either nearly a number, or signs in any order."""
    if rng.random() < 0.3:
        return "".join(rng.choice([*"0123456789+-.,eE_ xnaif٣½"], rng.integers(1, 7)))
    parts = [
        rng.choice(["", "+", "-", " ", "--"], p=[0.6, 0.1, 0.2, 0.05, 0.05]),
        rng.choice(["0", "7", "12", "123", "1,234", "1.234", "12,34", "1,234,567", "1.234.567", "1234", ""]),
        rng.choice(["", ".5", ",5", ".", ",", ".123", ",1234"]),
        rng.choice(["", "e3", "E-2", "e+5", "e", "e400", "e-400"], p=[0.6, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05]),
        rng.choice(["", " ", "_0", "%"], p=[0.8, 0.1, 0.05, 0.05]),
    ]
    return "".join(parts)


@pytest.mark.by_day(".")
@pytest.mark.parametrize("decimal", [None, ".", ","])
def test_numbers_are_those_of_a_grammar_that_is_read_by_hand(decimal):
    rng = np.random.default_rng(1)
    n_numbers = 0
    for _ in range(3000):
        text = random_text(rng)
        expected = by_hand(text, decimal)
        assert number_of(text, decimal) == pytest.approx(expected, rel=0, abs=0, nan_ok=True), text
        n_numbers += math.isfinite(expected)
    assert 300 < n_numbers < 2700  # both kinds occur


@pytest.mark.parametrize(
    "text", ["inf", "-Infinity", "nan", "1_000", "0x10", "1e", ".", "", "1 2", "1.2.3", "٣", "1e999"]
)
def test_what_is_no_number(text):
    assert all(math.isnan(number_of(text, decimal)) for decimal in (None, ".", ","))


def test_thousands_are_read_where_the_decimal_sign_was_declared_alone():
    assert math.isnan(number_of("1,234.5"))
    assert (number_of("1,234.5", "."), number_of("1.234,5", ","), number_of("51.320", ",")) == (1234.5, 1234.5, 51320)
    assert math.isnan(number_of("51.32", ","))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (" a ", "a"),
        ("Zu\u0308rich", "Zürich"),
        (True, "True"),
        (np.True_, "True"),
        ("false", "False"),
        ("FALSE", "False"),
        ("fAlse", "fAlse"),
        (b"a", "a"),
        (date(2024, 5, 1), "2024-05-01"),
        (datetime(2024, 5, 1), "2024-05-01"),
    ],
)
def test_texts(value, text):
    assert text_of(value) == text


MATCHES = {  # a column, its declared levels, and the place of each value among them
    "texts": (["a", " a", "b ", "c", ""], ["a", "b"], [0, 0, 1, -1, -1]),
    "composed letters": (["Zürich", "Zu\u0308rich"], ["Zu\u0308rich"], [0, 0]),
    "numbers as texts": (["1", "1.0", "01", " 1"], ["1", "01"], [0, -1, 1, 0]),
    "whole numbers": ([1, 2, 3], ["1", "2.0"], [0, 1, -1]),
    "numbers": ([1.0, 2.5, np.nan, np.inf], ["1", "2.5", "nan", "inf"], [0, 1, -1, -1]),
    "truths": ([True, False], ["True", "False"], [0, 1]),
    "truths in lower case": ([True, False], ["true", "FALSE"], [0, 1]),
    "truths are no numbers": ([True, False], ["1", "0"], [-1, -1]),
    "truths as texts": (["True", "true", "TRUE", "x", "False"], [True, False], [0, 0, 0, -1, 1]),
    "objects": (pd.Series([1, 1.0, "1", "1.0", True, None, "None"], dtype=object), ["1"], [0, 0, 0, -1, -1, -1, -1]),
    "missing objects": (pd.Series([None, np.nan, pd.NA, pd.NaT]), ["None", "nan", "<NA>", "NaT"], [-1] * 4),
    "levels that are numbers": (["1", "1.0"], [1, 1.0], [0, 1]),
    "dates": (pd.to_datetime(["2024-05-01", None]), ["2024-05-01"], [0, -1]),
}


@pytest.mark.parametrize("case", MATCHES)
def test_a_level_matches_the_same_text_and_equal_numbers_of_a_column_of_numbers(case):
    values, levels, places = MATCHES[case]
    points = Points(pd.DataFrame({"b": values}))
    if levels == [1, 1.0]:  # the same for pandas, and other texts: a declared level is written as it is in the file
        levels = ["1", "1.0"]
    assert columns_as_levels(points, {"b": levels}).x["b"].cat.codes.tolist() == places


# Values of every type that a column of objects may hold.
VALUES = [
    None, np.nan, pd.NA, pd.NaT, "", "x", "1", "1.0", "1,5", "1e999", True, 0, 1, 2**60, 10**400, -0.5, math.inf, b"1",
    b"\xff", Decimal("2.5"), Decimal("sNaN"), 1 + 2j, date(2024, 5, 1), datetime(2024, 5, 1, 8), [1, 2], {"a": 1},
    np.float32(0.5), np.int8(3), np.datetime64("2024-05-01"), np.timedelta64(3, "D"), "\ud800", "Zürich",
]  # fmt: skip
BEFORE = {
    "whole numbers": [1, 2, 3, 4],
    "numbers": [1.5, 2.0, np.nan, 4.0],
    "truths": [True, False, True, True],
    "texts": ["1", "a", "", "True"],
    "large whole numbers": [2**60, 2**60 + 1, 3, 4],
}
LEVELS = ["1", "2", "4", "a", "True", "False", "1.5", str(2**60)]


@pytest.mark.by_day(
    "0-large whole numbers",
    "2-whole numbers",
    "3-numbers",
    "4-large whole numbers",
    "6-large whole numbers",
    "8-truths",
    "10-large whole numbers",
    "11-numbers",
    "12-large whole numbers",
    "14-truths",
    "16-whole numbers",
    "17-large whole numbers",
    "19-numbers",
    "21-whole numbers",
    "23-truths",
    "24-large whole numbers",
    "26-whole numbers",
    "27-numbers",
    "30-whole numbers",
    "31-large whole numbers",
)
@pytest.mark.parametrize("kind", BEFORE)
@pytest.mark.parametrize("place", range(len(VALUES)))
def test_no_value_of_a_frame_changes_how_another_one_is_read(kind, place):
    """The column becomes one of objects, and each other value is the number, the level and the name that it was."""
    before = pd.DataFrame({"v": BEFORE[kind]})
    after = pd.DataFrame({"v": pd.Series([VALUES[place], *before["v"].tolist()[1:]], dtype=object)})
    numbers, levels, names = [], [], []
    for frame in (before, after):
        points = Points(frame)
        numbers.append(columns_as_numbers(points, ["v"])[0].x["v"].to_numpy()[1:])
        levels.append(columns_as_levels(points, {"v": LEVELS}).x["v"].cat.codes.tolist()[1:])
        names.append(row_names(points)[1:, :8].tolist())
    np.testing.assert_array_equal(*numbers)
    assert levels[0] == levels[1]
    assert names[0] == names[1]


def test_numbers_and_what_is_none():
    frame = pd.DataFrame({"v": pd.Series([True, Decimal("2.5"), 10**400, "3", b"4", date(2024, 5, 1), 1j, None])})
    numbers, n_missing = columns_as_numbers(Points(frame), ["v"])
    assert numbers.x["v"].fillna(-1).tolist() == [1, 2.5, -1, 3, 4, -1, -1, -1]
    assert n_missing == 4
    dates = pd.DataFrame({"v": pd.date_range("2024-05-01", periods=3)})
    assert columns_as_numbers(Points(dates), ["v"])[1] == 3


def test_empty_texts_are_missing():
    assert missing_in(Points(pd.DataFrame({"b": ["a", " ", None]})), "b").tolist() == [False, True, True]


def test_records_have_the_same_name_as_texts_and_as_values():
    """As in CSV, all of whose fields are texts, and as in Parquet."""
    typed = pd.DataFrame(
        {"pay": [1.5, np.nan, 1000.25], "age": [30, 40, 50], "ok": [True, False, True], "town": ["a", None, "c"]}
    )
    texts = pd.DataFrame(
        {"pay": ["1,5", "", "1.000,25"], "age": ["30", "40", "50,0"], "ok": ["TRUE", "false", "True"],
         "town": ["a", "", "c"]}
    )  # fmt: skip
    assert (row_names(Points(typed)) == row_names(Points(texts), ",")).all()
