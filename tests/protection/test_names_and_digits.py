"""Released numbers have the digits that their noise leaves, and names are shown without what a terminal obeys."""

from __future__ import annotations

import csv
import html
import io
import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakbound.plans.promises import File
from tests.promising import protect, protect_file

pytestmark = pytest.mark.usefixtures("as_users_run_it")
FILE: dict[str, Any] = {"promise": File(games=0), "eta": 0.1, "insecure_seed": 1}


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.by_day("1.0")
@pytest.mark.parametrize("size", [1e-9, 1.0, 1e7, 1e20])
def test_values_have_a_hundredth_of_their_noise(size, tmp_path) -> None:
    """In JSON, CSV and Python alike; the ends of the interval have as many digits, and hold it."""
    x = size * np.random.default_rng(0).normal(1, 0.1, (100, 2))
    made = protect("mean", x, ledger=str(tmp_path / "ledger"), **FILE)
    values = json.loads(made.to_json())["about"]["values"]
    for value, row, own in zip(values, rows_of(made.to_csv()), made.value, strict=True):
        assert value["value"] == own == float(row["value"])
        unit = 10.0 ** math.floor(math.log10(value["noise_std"] / 100))
        for number in (row["value"], row["low"], row["high"]):
            steps = float(number) / unit
            assert abs(steps - round(steps)) < 1e-4 * max(1, abs(steps) * 1e-9)
        half = 1.959964 * value["noise_std"]
        assert float(row["low"]) <= own - half * (1 - 1e-9)
        assert float(row["high"]) >= own + half * (1 - 1e-9)
        assert float(row["high"]) - float(row["low"]) < 2 * half + 3 * unit


def test_a_large_number_keeps_its_digits(tmp_path) -> None:
    """10,000,004 had the interval 9.99996e+06 to 1.00001e+07."""
    x = np.random.default_rng(0).integers(0, 2, (1000, 1)) + 10_000_003.5
    made = protect("mean", x, scale=20.0, ledger=str(tmp_path / "ledger"), **FILE)
    (row,) = rows_of(made.to_csv())
    assert abs(float(row["low"]) + 39.2 - float(row["value"])) < 0.2
    assert abs(float(row["high"]) - 39.2 - float(row["value"])) < 0.2


ESCAPE, BACKWARDS = "\x1b[2Jage", "sex\u202egnp"


@pytest.mark.by_day("table")
@pytest.mark.parametrize("statistic", ["mean", "table", "means"])
def test_no_escape_and_no_mark_of_direction_is_printed(statistic, tmp_path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({ESCAPE: rng.normal(size=80), BACKWARDS: rng.choice(["a\x1b[1m", "b\u202e"], 80)})
    frame.to_csv(tmp_path / "people.csv", index=False)
    fields: dict[str, Any] = {"by": BACKWARDS, "levels": {BACKWARDS: ["a\x1b[1m", "b\u202e"]}}
    if statistic == "mean":
        fields = {"drop": [BACKWARDS]}
    of = "table" if statistic == "table" else "mean"
    made = protect_file(
        data=str(tmp_path / "people.csv"), statistic=of, title="a\u202eb", promise=File(games=0), eta=0.1, **fields
    )
    halves = [half for report in (made.certificate, made.owner) for half in (report.to_html(), report.table(full=True))]
    for text in (*halves, made.to_csv(), made.to_json(), made.certificate._repr_html_()):
        assert "\x1b" not in text
        assert "\u202e" not in text
    shown = "\\x1b[2Jage" if statistic == "mean" else "\\u202egnp" if statistic == "table" else "\\x1b[1m"
    assert shown in made.to_csv()
    on_page = {"mean": "⟨U+001B⟩[2Jage", "table": "⟨U+202E⟩gnp"}.get(statistic, "⟨U+001B⟩[1m")
    assert on_page in html.unescape(made.to_html())
