"""Promise ``anyone``: what is released of a file moves by no more than the record that changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakbound.core.findings import Term
from leakbound.plans.plan import read
from leakbound.plans.promises import Anyone
from leakbound.plans.protects import ProtectionPlan
from leakbound.protection.promises.anyone import prepare as differential_privacy
from leakbound.protection.setting.request import arrays_request, file_request, request_of_file
from leakbound.protection.setting.units import Units
from leakbound.runtime.observe import Execution
from tests.promising import promising, protect_file

pytestmark = pytest.mark.usefixtures("as_users_run_it")
HERE = Execution(n_jobs=1)
N = 500
RNG = np.random.default_rng(0)
WAGES = RNG.normal(43, 10, N).round(2)
TRUTHS = RNG.random(N) < 0.6
TOWNS = ["Zürich" if chance < 0.45 else "Bern" for chance in RNG.random(N)]

WITH_COMMAS = {"separator": ";", "decimal": ","}
SUM = {"statistic": "sum", "ranges": "wage=0:100"}
COUNTS = {"statistic": "table", "by": "town", "levels": {"town": ["Zürich", "Bern"]}}


def exact(path: Path, **words: Any) -> np.ndarray:
    """The statistic before its noise."""
    plan = {"data": path, "promise": "anyone", "eta": 0.05, "id": "id", **words}
    plan = promising(plan)
    prepared = differential_privacy.prepare(file_request(read(ProtectionPlan, plan, "protect"), HERE))
    return prepared.value_of(0) / prepared.divisor


def lines(path: Path, header: str, rows: list[str], encoding: str = "utf-8") -> Path:
    path.write_bytes("\n".join([header, *rows, ""]).encode(encoding))
    return path


class TestDecimalCommas:
    ROWS = tuple(f"{record};{str(wage).replace('.', ',')}" for record, wage in enumerate(WAGES))
    WITH_A_POINT = ("0;51.32", *ROWS[1:])

    def test_one_decimal_point_is_the_missing_value_of_its_own_record(self, tmp_path) -> None:
        before = exact(lines(tmp_path / "a.csv", "id;wage", [*self.ROWS]), **SUM, **WITH_COMMAS)
        after = exact(lines(tmp_path / "b.csv", "id;wage", [*self.WITH_A_POINT]), **SUM, **WITH_COMMAS)
        assert before == pytest.approx([WAGES.sum()], abs=1e-3)
        assert abs(after - before) <= 100

    @pytest.mark.parametrize("rows", [ROWS, WITH_A_POINT])
    def test_nothing_is_found_out_from_the_records(self, tmp_path, rows) -> None:
        path = lines(tmp_path / "a.csv", "id;wage", [*rows])
        with pytest.raises(ValueError, match=r"name the sign between the columns as separator \(--separator\)"):
            exact(path, **SUM)
        # the separator alone: no field is a number but the one with a point
        declared = exact(path, **SUM, separator=";")
        assert 0 <= declared <= 100


class TestTruths:
    @pytest.mark.parametrize("levels", [["True", "False"], [True, False], ["true", "false"]])
    @pytest.mark.parametrize("name", ["b.csv", "b.parquet", "missing.parquet"])
    def test_levels_match_them(self, tmp_path, name, levels) -> None:
        frame = pd.DataFrame({"id": np.arange(N), "b": TRUTHS})
        if name == "missing.parquet":  # a column of objects for pandas
            frame["b"] = frame["b"].astype(object).where(frame["id"] > 0, None)
        frame.to_csv(tmp_path / name, index=False) if name == "b.csv" else frame.to_parquet(tmp_path / name)
        counts = exact(tmp_path / name, statistic="table", by="b", levels={"b": levels})
        known = TRUTHS[1:] if name == "missing.parquet" else TRUTHS
        assert counts.tolist() == [known.sum(), (~known).sum()]

    @pytest.mark.parametrize(
        "words",
        [
            {"statistic": "table", "by": "b", "levels": {"b": ["True", "False"]}},
            {"statistic": "sum", "ranges": "b=0:1"},
        ],
    )
    def test_one_x_among_them(self, tmp_path, words) -> None:
        rows = [f"{record},{truth}" for record, truth in enumerate(TRUTHS)]
        before = exact(lines(tmp_path / "a.csv", "id,b", rows), **words)
        after = exact(lines(tmp_path / "b.csv", "id,b", ["0,x", *rows[1:]]), **words)
        assert np.abs(after - before).sum() <= 1


class TestOneByte:
    ROWS = tuple(f"{record},{town}" for record, town in enumerate(TOWNS))

    def test_of_another_encoding_is_refused_with_its_row(self, tmp_path) -> None:
        path = lines(tmp_path / "a.csv", "id,town", [*self.ROWS])
        assert exact(path, **COUNTS).tolist() == [TOWNS.count("Zürich"), TOWNS.count("Bern")]
        octets = path.read_bytes().split(b"\n")
        octets[10] = "9,Genève".encode("cp1252")
        path.write_bytes(b"\n".join(octets))
        with pytest.raises(
            ValueError, match=r"row 11 is not written in utf-8: declare it as encoding \(--encoding cp1252\)"
        ):
            exact(path, **COUNTS)

    def test_is_a_letter_where_the_encoding_is_declared(self, tmp_path) -> None:
        path = lines(tmp_path / "a.csv", "id,town", [*self.ROWS], "cp1252")
        counts = exact(path, **COUNTS, encoding="cp1252")
        assert counts.tolist() == [TOWNS.count("Zürich"), TOWNS.count("Bern")]


class TestEveryFormat:
    FRAME = pd.DataFrame(
        {
            "id": np.arange(N),
            "wage": np.where(RNG.random(N) < 0.1, np.nan, WAGES),
            "age": RNG.integers(18, 30, N),
            "ok": TRUTHS,
            "town": TOWNS,
        }
    )

    @pytest.mark.parametrize(
        "words",
        [
            {"statistic": "sum", "ranges": "wage=0:100"},
            {"statistic": "table", "by": "town,ok", "levels": {"town": ["Zürich", "Bern"], "ok": ["True", "False"]}},
            {"statistic": "table", "by": "age", "levels": {"age": [*range(18, 30)]}},
            {"statistic": "histogram", "by": "wage", "set": {"edges": [0, 40, 50, 100]}},
            {"statistic": "mean", "by": "town", "levels": {"town": ["Zürich", "Bern"]}, "ranges": "age=18:30"},
        ],
        ids=lambda words: f"{words['statistic']} {words.get('by', '')}",
    )
    def test_has_the_same_statistic(self, tmp_path, words) -> None:
        self.FRAME.to_csv(tmp_path / "a.csv", index=False)
        self.FRAME.to_csv(tmp_path / "b.csv", index=False, sep=";", decimal=",", encoding="cp1252")
        self.FRAME.to_parquet(tmp_path / "a.parquet")
        declared = {"separator": ";", "decimal": ",", "encoding": "cp1252"}
        first = exact(tmp_path / "a.csv", **words)
        assert exact(tmp_path / "b.csv", **words, **declared).tolist() == first.tolist()
        assert exact(tmp_path / "a.parquet", **words).tolist() == first.tolist()
        content = {"data": "array", "promise": "anyone", "eta": 0.05, "id": "id", **words}
        del content["data"], content["statistic"]
        request = arrays_request(ProtectionPlan, words["statistic"], self.FRAME, None, promising(content), HERE)
        prepared = differential_privacy.prepare(request)
        assert (prepared.value_of(0) / prepared.divisor).tolist() == first.tolist()

    def test_has_records_of_the_same_names(self, tmp_path) -> None:
        """So that the noise of the same release is the same."""
        self.FRAME.to_csv(tmp_path / "a.csv", index=False)
        self.FRAME.to_csv(tmp_path / "b.csv", index=False, sep=";", decimal=",")
        self.FRAME.to_parquet(tmp_path / "a.parquet")
        names = []
        for file, how in (("a.csv", {}), ("b.csv", {"separator": ";", "decimal": ","}), ("a.parquet", {})):
            words = {
                "data": tmp_path / file,
                "promise": Anyone(ranges={"age": (0, 99)}),
                "eta": 0.05,
                "statistic": "sum",
            }
            request = file_request(read(ProtectionPlan, words | how, "protect"), HERE)
            names.append(Units.of(request).names.tolist())
        assert names[0] == names[1] == names[2]


def test_several_statistics_are_read_by_the_same_rule(tmp_path) -> None:
    rows = [f"{record},{truth},{wage}" for record, (truth, wage) in enumerate(zip(TRUTHS, WAGES, strict=True))]
    rows[0] = "0,x,n/a"
    content = {
        "data": lines(tmp_path / "a.csv", "id,b,wage", rows),
        "promise": "anyone",
        "eta": 0.05,
        "id": "id",
        "statistic": [
            {"statistic": "table", "by": "b", "levels": {"b": [True, False]}},
            {"statistic": "sum", "ranges": "wage=0:100"},
        ],
    }
    prepared = differential_privacy.prepare(request_of_file(ProtectionPlan, promising(content), "protect", HERE))
    counts, total = prepared.value_of(0)[:2], prepared.value_of(0)[2]
    assert counts.tolist() == [TRUTHS[1:].sum(), (~TRUTHS[1:]).sum()]
    assert total == pytest.approx(WAGES[1:].sum(), abs=1e-3)


def test_a_level_is_declared_once(tmp_path) -> None:
    path = lines(tmp_path / "a.csv", "id,b", ["0,a", "1,b"])
    with pytest.raises(ValueError, match="the level 'True' of column b is declared twice"):
        exact(path, statistic="table", by="b", levels={"b": ["true", "x", " True"]})


def test_the_first_assumption_is_the_form_of_the_file(tmp_path) -> None:
    path = lines(tmp_path / "a.csv", "id,wage", ["0,1", "1,2"])
    plan = {"data": path, "promise": Anyone(ranges={"wage": (0, 9)}), "eta": 0.05, "id": "id", "statistic": "sum"}
    prepared = differential_privacy.prepare(file_request(read(ProtectionPlan, plan, "protect"), HERE))
    assert prepared.assumptions[0] == Term("declared_form")


def test_a_value_that_other_designs_refuse_ends_no_release(tmp_path) -> None:
    """The comparison is for the owner, and comes when the release is in its ledger."""
    path = lines(tmp_path / "a.csv", "id,town", ["0,a", "1,b", "2,", "3,a"])
    words = {"statistic": "table", "by": "town", "levels": {"town": ["a", "b"]}, "id": "id", "compare": True}
    made = protect_file(data=path, promise="anyone", eta=0.05, **words)
    assert made.owner.about.designs is None
    assert any(
        note.startswith("what other promises would cost cannot be computed: 1 record has no town")
        for note in made.owner.about.notes
    )
    assert "what other promises" not in made.certificate.to_json()


@pytest.mark.usefixtures("ledgers_apart")
def test_other_designs_are_compared_on_fields_that_are_texts(tmp_path) -> None:
    rows = [f"{record},{town}" for record, town in enumerate(TOWNS)]
    words = {"id": "id", "compare": True, "promise": "anyone", "eta": 0.05}
    counted = protect_file(data=lines(tmp_path / "a.csv", "id,town", rows), **COUNTS, **words)
    assert counted.owner.about.designs is not None
    rows = [f"{record},{wage}" for record, wage in enumerate(WAGES)]
    added = protect_file(data=lines(tmp_path / "b.csv", "id,wage", rows), **SUM, **words)
    assert added.owner.about.designs is not None
