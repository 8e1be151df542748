"""Numbers whose squares overflow: one line that names the column, and no warning of numpy."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakbound.bounding.api import bound
from leakbound.plans.promises import Anyone, Drawn, File
from tests.cli.calling import caller, refused
from tests.promising import calibrate_file, design_table, protect

DESIGNS: Mapping[str, dict[str, Any]] = {
    "leave-one-out": {"promise": File(games=20)},
    "half": {"promise": Drawn(games=20, fits=200)},
}
STATISTICS: Mapping[str, dict[str, Any]] = {
    **{name: {} for name in ("mean", "sum", "second_moment", "covariance", "correlation", "quantiles", "ols", "ridge")},
    "huber": {"set": {"threshold": 1.0}},
    "poisson": {},
    "logistic": {"set": {"centre": [0, 0], "spread": [1, 1]}},
}
LINE = (
    "column x1 holds numbers up to 1e+200, whose squares overflow: divide it by a public number, so that all are below "
    "1e+150"
)


@pytest.fixture(autouse=True)
def no_warning() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def rows() -> np.ndarray:
    table = np.random.default_rng(0).normal(size=(30, 2))
    table[3, 1] = -1e200
    return table


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_column_is_named(tmp_path: Path, design: str, statistic: str) -> None:
    y = {"logistic": np.arange(30) % 2, "poisson": np.arange(30) % 4}.get(statistic)
    words = {**DESIGNS[design], **STATISTICS[statistic]}
    with pytest.raises(ValueError, match=f"^{re.escape(LINE)}$"):
        protect(statistic, rows(), y, eta=0.05, ledger=tmp_path / "ledger", n_jobs=1, **words)
    assert not (tmp_path / "ledger").exists()


@pytest.mark.parametrize("statistic", ["second_moment", "mean", "sum", "covariance"])
def test_declared_ranges_alone_decide_under_differential_privacy(tmp_path: Path, statistic: str) -> None:
    line = re.escape("x1 may be as large as 1e+201 within its declared range, and squares above ")
    words: dict[str, Any] = {"eta": 0.05, "n_jobs": 1}
    wide = {"x0": (-9, 9), "x1": (-1e201, 1e201)}
    for table in (rows(), np.ones((30, 2))):
        with pytest.raises(ValueError, match=f"^{line}.* overflow here: declare the column in larger units$"):
            protect(statistic, table, promise=Anyone(wide), ledger=tmp_path / "a", **words)
    made = protect(statistic, rows(), promise=Anyone({"x0": (-9, 9), "x1": (-9, 9)}), ledger=tmp_path / "b", **words)
    assert np.isfinite(made.value).all() or statistic == "covariance"  # 30 records are too few for one


@pytest.mark.parametrize("design", DESIGNS)
def test_a_function_of_large_values(tmp_path: Path, design: str) -> None:
    """Its columns are not looked at, since it may take no squares of them; what it returns is."""
    words: dict[str, Any] = {"eta": 0.05, "ledger": tmp_path / "ledger", "n_jobs": 1, **DESIGNS[design]}
    line = r"ptp is up to 1e\+200, and has no square: divide what it is of by a public number, so that it is below 1e\+"
    with pytest.raises(ValueError, match=f"^{line}150$"):
        protect("numpy:ptp", rows(), **words)


def test_a_product_that_overflows_is_named_by_the_owner_s_calls(tmp_path: Path, monkeypatch: Any) -> None:
    """1e140 has a square, which has none itself."""
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"pay": [1.0, 2.0, 1e140], "age": [1.0, 2.0, 4.0]}).to_csv("people.csv", index=False)
    with pytest.raises(ValueError, match=r"^second_moment of pay pay is up to [\d.]+e\+279, and has no square"):
        calibrate_file(data="people.csv", statistic="second_moment", eta=0.05, promise="file")
    report = bound("leave-one-out", data="people.csv", statistic="second_moment", noise_scale=1.0)
    assert report.findings[0].value == 1.0
    pd.DataFrame({"pay": [1.0, 2.0, 1e200], "age": [1.0, 2.0, 4.0]}).to_csv("people.csv", index=False)
    with pytest.raises(ValueError, match=r"^column pay holds numbers up to "):
        bound("leave-one-out", data="people.csv", statistic="mean", noise_scale=1.0)
    table = design_table(
        "mean", rows() / 1e60, eta=0.05, compare=[Anyone({"x0": (-9, 9), "x1": (-9, 9)}), Drawn(fits=100)]
    )
    assert table.facts.designs[0].errors is not None


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(rows(), columns=["x0", "x1"]).to_csv("people.csv", index=False)
    refused(
        caller(monkeypatch, capfd)("protect --data people.csv --statistic mean --promise file --eta 0.05 --out made"),
        LINE,
    )
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]
