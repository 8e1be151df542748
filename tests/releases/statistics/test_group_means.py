"""Means of groups: against pandas, and without each record against a fit for each."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import leakbound as ls
from leakbound.core.types import Points
from leakbound.releases.statistics.features import Cells
from leakbound.releases.statistics.group_means import GroupCountsAndSums, GroupMeans
from leakbound.releases.statistics.left_out import left_out_values
from leakbound.releases.statistics.statistic import Fit
from tests.promising import calibrate, protect, protect_file

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


def test_many_sets_of_records_at_once() -> None:
    """NaN where a group is empty; a record of no declared level is in no group."""
    table = frame()
    table.loc[7, "sector"] = "mining"
    cells = Cells(tuple(LEVELS), tuple(tuple(levels) for levels in LEVELS.values()))
    means = Fit("mean", GroupMeans.of(table, cells))
    member = np.random.default_rng(5).random((4, 60)) < 0.5
    member[3] &= ~((table.sector == "care") & (table.sex == "m")).to_numpy()
    found = means.observe(Points(table), member, np.zeros(4, dtype=int))["output"]
    for row in range(3):
        chosen = table[member[row] & (table.sector != "mining")]
        assert found[row] == pytest.approx(by_pandas(chosen), rel=1e-12)
    assert np.isnan(found[3]).all()


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
        protect(
            "mean",
            table,
            eta=0.1,
            promise=ls.File(games=0),
            by="sector",
            levels={"sector": levels},
            ledger=tmp_path / "l",
        )
    line = f"the group {name} has {words}, so that there is no mean without them; join its level with another one"
    assert line in str(caught.value)
    assert not (tmp_path / "l").exists()


def test_no_column_is_left() -> None:
    with pytest.raises(ValueError, match="a mean of groups needs a column beside sector"):
        calibrate(
            "mean", frame()[["sector"]], eta=0.1, promise="file", by="sector", levels={"sector": ["care", "trade"]}
        )


ANYONE = {"promise": "anyone", "by": "sector", "levels": {"sector": ["care", "trade"]}}


class TestDifferentialPrivacy:
    @pytest.mark.parametrize(
        ("words", "line"),
        [
            ({}, "differential privacy needs the range of each column that is used, .* as --range sex=0:100"),
            ({"ranges": "sector=0:1"}, "unknown column of ranges 'sector'"),
            ({"ranges": "wage=0:9", "levels": {}}, "counts declared levels: those of sector are missing"),
        ],
    )
    def test_what_must_be_declared(self, words, line: str) -> None:
        with pytest.raises(ValueError, match=line):
            calibrate("mean", frame(), eta=0.1, **ANYONE | words)

    def test_values_and_errors_of_the_means(self) -> None:
        """20,000 releases: the errors are first-order ones, right to 3 %, and the mean is not biased by more."""
        table = frame(400)
        sums = GroupCountsAndSums(("sector",), (("care", "trade"),), ("hours",), ((0.0, 60.0),))
        exact = sums(table).sum(axis=0)
        deviations = np.array([5.0, 5.0, 100.0, 100.0])
        rng = np.random.default_rng(5)
        made = sums.finished(exact + deviations * rng.standard_normal((20_000, 4)), deviations)
        assert made.labels == ["records in care", "records in trade", "mean of hours in care", "mean of hours in trade"]
        wanted = table.groupby("sector")["hours"].mean().to_numpy()
        assert made.value[:, 2:].mean(axis=0) == pytest.approx(wanted, abs=0.03)
        assert made.value[:, 2:].std(axis=0) == pytest.approx(made.noise_std[:, 2:].mean(axis=0), rel=0.03)

    def test_a_mean_of_too_few_is_not_published(self) -> None:
        """10 records are more than 1.96 * 5, and 9 are not."""
        sums = GroupCountsAndSums(("sector",), (("care", "trade"),), ("hours",), ((0.0, 60.0),))
        made = sums.finished(np.array([10.0, 9.0, 5.0, 10.0]), np.array([5.0, 5.0, 9.0, 9.0]))
        for numbers in (made.value, made.noise_std, made.low, made.high):
            assert np.isnan(numbers).tolist() == [False, False, False, True]
        assert made.value[2] == 30.5

    def test_a_record_without_a_value_is_in_no_group(self) -> None:
        table = pd.DataFrame({"g": ["a", "a", "b"], "one": [1.0, np.nan, 3.0], "two": [2.0, 5.0, np.nan]})
        sums = GroupCountsAndSums(("g",), (("a", "b"),), ("one", "two"), ((0.0, 4.0), (0.0, 4.0)))
        assert sums(table).tolist() == [[1, 0, -1, 0, 0, 0], [0.0] * 6, [0.0] * 6]

    def test_a_release(self, tmp_path) -> None:
        """Values outside of the range are moved, other levels counted nowhere, and a mean of too few is left open."""
        table = frame(2000)
        table.loc[0, ["hours", "sector"]] = [1e9, "mining"]
        table.loc[1, "hours"] = -1e9
        levels = {"sector": ["care", "trade", "nobody"]}
        release = protect(
            "mean",
            table[["sector", "hours"]],
            eta=0.1,
            promise=ls.Anyone(ranges={"hours": (0, 60)}),
            by="sector",
            levels=levels,
            ledger=tmp_path / "l",
            insecure_seed=0,
        )
        cells = {(cell.levels[0], cell.quantity): cell for cell in release.certificate.about.table.cells}
        clipped = table.assign(hours=table["hours"].clip(0, 60)).groupby("sector")["hours"].mean()
        mean = cells["care", "mean of hours"]
        assert mean.value == pytest.approx(clipped["care"], abs=6 * mean.noise_std)
        assert cells["nobody", "mean of hours"].value is None
        assert "nobody,mean of hours,,,,,\n" in release.to_csv()
        assert "A mean is left out where" in release.to_html()


def test_a_release_from_a_file(tmp_path) -> None:
    """Columns of texts that make no groups are left out, and said."""
    frame().assign(name=[f"p{i}" for i in range(60)]).to_csv(tmp_path / "people.csv", index=False)
    release = protect_file(
        data=tmp_path / "people.csv",
        statistic="mean",
        by=["sector"],
        levels={"sector": ["care", "trade"]},
        drop=["sex"],
        promise=ls.File(games=0),
        eta=0.2,
        id="name",
    )
    table = release.certificate.about.table
    assert [cell.quantity for cell in table.cells] == ["count"] * 2 + ["mean of wage"] * 2 + ["mean of hours"] * 2
    assert [cell.levels for cell in table.cells] == [("care",), ("trade",)] * 3
    assert table.cells[0].value == round(release.value[0])
    assert release.to_csv().splitlines()[0] == "sector,quantity,value,noise_std,low,high,simple_random_sampling_std"
