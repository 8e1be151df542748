"""Means of groups: against pandas, and without each record against a fit for each."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import leakscope as ls
from leakscope.core.types import Points
from leakscope.releases.statistics.features import Cells
from leakscope.releases.statistics.group_means import GroupMeans
from leakscope.releases.statistics.left_out import left_out_values
from leakscope.releases.statistics.statistic import Fit

LEVELS = {"sector": ["care", "trade"], "sex": ["f", "m"]}


def frame(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    words = {name: rng.choice(levels, n) for name, levels in LEVELS.items()}
    return pd.DataFrame(words | {"wage": rng.lognormal(10, 1, n), "hours": rng.integers(1, 60, n)})


def statistic(table: pd.DataFrame) -> Fit:
    cells = Cells.declared(table, tuple(LEVELS), LEVELS)
    return Fit("mean", GroupMeans.of(table, cells))


def by_pandas(table: pd.DataFrame) -> np.ndarray:
    groups = table.groupby(list(LEVELS))
    return np.concatenate([groups.size(), groups["wage"].mean(), groups["hours"].mean()]).astype(float)


def test_all_records() -> None:
    table = frame()
    points = Points(table)
    value = statistic(table).observe(points, np.ones((1, 60), dtype=bool), np.zeros(1, dtype=int))["output"][0]
    assert value == pytest.approx(by_pandas(table), rel=1e-12)
    assert statistic(table).labels(points)[:5] == [
        "records in care / f", "records in care / m", "records in trade / f", "records in trade / m",
        "mean of wage in care / f",
    ]  # fmt: skip


def test_without_each_record() -> None:
    table = frame()
    of_all, without = left_out_values(statistic(table), Points(table))
    assert of_all == pytest.approx(by_pandas(table), rel=1e-12)
    for i in range(60):
        assert without[i] == pytest.approx(by_pandas(table.drop(index=i)), rel=1e-11)


def test_without_each_person() -> None:
    """People with one to four records, in several groups."""
    table = frame()
    unit = np.random.default_rng(3).integers(0, 25, 60)
    unit = np.unique(unit, return_inverse=True)[1]
    _, without = left_out_values(statistic(table), Points(table), unit=unit)
    for person in range(unit.max() + 1):
        assert without[person] == pytest.approx(by_pandas(table[unit != person]), rel=1e-11)


def test_records_that_change_nothing_give_the_same_bits() -> None:
    """Without a record of another group the mean of a group is the same number, not one that is near it."""
    table = frame()
    of_all, without = left_out_values(statistic(table), Points(table))
    outside = (table["sector"] != "care") | (table["sex"] != "f")
    assert (without[outside.to_numpy()][:, [0, 4, 8]] == of_all[[0, 4, 8]]).all()


@pytest.mark.parametrize(
    ("levels", "words"), [(["care", "trade", "mining"], "no records"), (["care", "trade"], "the records of one alone")]
)
def test_a_group_without_a_mean_is_named(levels: list[str], words: str, tmp_path) -> None:
    table = pd.DataFrame({"sector": ["care"] * 9 + ["trade"], "wage": np.arange(10.0)})
    if len(levels) == 3:
        table.loc[5:, "sector"] = "trade"
    name = "mining" if len(levels) == 3 else "trade"
    with pytest.raises(ValueError) as caught:
        ls.protect(
            "mean",
            table,
            eta=0.1,
            promise="file",
            by="sector",
            levels={"sector": levels},
            games=0,
            ledger=tmp_path / "l",
        )
    line = f"the group {name} has {words}, so that there is no mean without them; join its level with another one"
    assert line in str(caught.value)
    assert not (tmp_path / "l").exists()


def test_no_column_is_left() -> None:
    with pytest.raises(ValueError, match="a mean of groups needs a column beside sector"):
        ls.calibrate(
            "mean", frame()[["sector"]], eta=0.1, promise="file", by="sector", levels={"sector": ["care", "trade"]}
        )


def test_differential_privacy_says_what_to_do() -> None:
    with pytest.raises(ValueError, match="no noise here for means of groups; release statistic = table"):
        ls.calibrate("mean", frame(), eta=0.1, promise="anyone", by="sector", levels={"sector": ["care", "trade"]})


def test_a_release_from_a_file(tmp_path) -> None:
    """Columns of texts that make no groups are left out, and said."""
    frame().assign(name=[f"p{i}" for i in range(60)]).to_csv(tmp_path / "people.csv", index=False)
    release = ls.protection.protect_file(
        data=tmp_path / "people.csv",
        statistic="mean",
        by=["sector"],
        levels={"sector": ["care", "trade"]},
        drop=["sex"],
        promise="file",
        eta=0.2,
        id="name",
        games=0,
    )
    table = release.certificate.about.table
    assert [cell.quantity for cell in table.cells] == ["count"] * 2 + ["mean of wage"] * 2 + ["mean of hours"] * 2
    assert [cell.levels for cell in table.cells] == [("care",), ("trade",)] * 3
    assert table.cells[0].value == round(release.value[0])
    assert release.to_csv().splitlines()[0] == "sector,quantity,value,noise_std,low,high,sampling_std"
