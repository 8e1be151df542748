"""Statistics that are given from Python: what counts as declared, and what the certificate says of the others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakbound.plans.promises import Drawn, File
from leakbound.releases.statistics.features import Cells, Columns, Histogram
from leakbound.releases.statistics.statistic import Linear, Statistic
from leakbound.reports.sentences import sentences
from tests.promising import calibrate, protect

FRAME = pd.DataFrame({"town": list("aabbbcccc") * 3, "age": np.arange(27.0)})
LABELS = np.arange(27) % 2
DESIGNS: Mapping[str, dict[str, Any]] = {
    "leave-one-out": {"promise": File(games=0)},
    "dp": {"promise": "anyone"},
    "half": {"promise": Drawn(games=0, fits=200)},
}
READ: Mapping[str, tuple[Statistic, str]] = {
    "levels": (
        Linear("count", Cells.of(FRAME, ["town"]), "sum"),
        "the levels of this table were read from the data: declare them without looking at it, as Cells(columns, "
        "levels)",
    ),
    "some levels": (
        Linear("count", Cells.declared(FRAME, ["town", "age"], {"town": ["a", "b", "c"]}), "sum"),
        "the levels of this table were read from the data: declare them without looking at it, as Cells(columns, "
        "levels)",
    ),
    "edges": (
        Linear("count", Histogram.spanning(FRAME[["age"]], ["age"], 3), "sum"),
        "the edges of this histogram were read from the data: declare them without looking at it, as "
        "Histogram(columns, edges)",
    ),
}


def asked(design: str, ledger: Path) -> dict[str, Any]:
    return {"eta": 0.1, "ledger": ledger, "n_jobs": 1, **DESIGNS[design]}


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", READ)
def test_what_was_read_from_the_data_is_not_declared(tmp_path: Path, design: str, name: str) -> None:
    statistic, line = READ[name]
    x = FRAME[["age"]] if name == "edges" else FRAME
    with pytest.raises(ValueError, match=f"^{re.escape(line)}$"):
        protect(statistic, x, **asked(design, tmp_path / "ledger"))
    assert not (tmp_path / "ledger").exists()
    if design == "dp":
        with pytest.raises(ValueError, match=f"^{re.escape(line)}$"):
            calibrate(statistic, x, eta=0.1, **DESIGNS[design])


@pytest.mark.parametrize("design", DESIGNS)
def test_the_same_that_is_declared_is_an_assumption_of_the_certificate(tmp_path: Path, design: str) -> None:
    """It is the same statistic, with the same noise; nothing tells that it was chosen without the data."""
    declared = Linear("count", Cells(("town",), (("a", "b", "c"),)), "sum")
    assert declared == READ["levels"][0]
    made = protect(declared, FRAME, **asked(design, tmp_path / "ledger"))
    for report in (made.certificate, made.owner):
        terms = [term.id for term in report.about.certificate.assumptions]
        assert terms.count("statistic_fixed_beforehand") == 1
        assert "chosen without looking at the data" in " ".join(report.table(full=True).split())
    assert "chosen without looking at the data" in sentences()["assumption.statistic_fixed_beforehand"]


@pytest.mark.slow
@pytest.mark.parametrize("design", ["leave-one-out", "half"])
@pytest.mark.parametrize("statistic", [np.ptp, "numpy:ptp", Linear("mean", Columns())])
def test_so_is_a_function(tmp_path: Path, design: str, statistic: Any) -> None:
    made = protect(statistic, FRAME[["age"]], **asked(design, tmp_path / "ledger"))
    assert "statistic_fixed_beforehand" in [term.id for term in made.certificate.about.certificate.assumptions]


def test_a_statistic_by_name_needs_no_such_assumption(tmp_path: Path) -> None:
    made = protect("mean", FRAME[["age"]], **asked("leave-one-out", tmp_path / "ledger"))
    assert "statistic_fixed_beforehand" not in [term.id for term in made.certificate.about.certificate.assumptions]
