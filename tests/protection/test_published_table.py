"""Tables for publication: margins, whole numbers, a public total, and the errors of the published numbers."""

from __future__ import annotations

import csv
import io
import json
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

import leakbound as ls
from leakbound.plans.plan import read
from leakbound.plans.protects import ProtectionPlan
from leakbound.protection.certificate.published_table import (
    Counts,
    _table_of_means,
    nearest_non_negative,
    published_table,
    rounded_to_total,
    table_for_publication,
)
from leakbound.releases.statistics.features import Cells
from leakbound.releases.statistics.group_means import GroupMeans
from leakbound.releases.statistics.statistic import Linear
from leakbound.reports.about import PublishedTable
from tests.marks import nightly
from tests.promising import protect

LEVELS = {"sector": ["care", "trade", "mining"], "sex": ["f", "m"]}


def people(n: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    sector = rng.choice(LEVELS["sector"], n, p=[0.5, 0.45, 0.05])
    return pd.DataFrame({"sector": sector, "sex": rng.choice(["f", "m"], n), "wage": rng.lognormal(3, 0.5, n)})


def by_levels(table: PublishedTable) -> dict[tuple[str | None, ...], float]:
    return {cell.levels: cell.value for cell in table.cells}


def released(tmp_path, **words) -> ls.Protected:
    frame = people()[["sector", "sex"]]
    options = {"eta": 0.1, "promise": "file", "by": ["sector", "sex"], "levels": LEVELS, "insecure_seed": 3}
    return protect("table", frame, **options | {"ledger": tmp_path / "l"} | words)


class TestRelease:
    def test_margins_are_sums_and_the_total_is_public(self, tmp_path) -> None:
        table = released(tmp_path).certificate.about.table
        value = by_levels(table)
        assert table.total == value[None, None] == 299
        assert len(value) == 4 * 3
        for sector in LEVELS["sector"]:
            assert value[sector, None] == value[sector, "f"] + value[sector, "m"]
        for sex in LEVELS["sex"]:
            assert value[None, sex] == sum(value[sector, sex] for sector in LEVELS["sector"])
        assert all(number == int(number) for number in value.values())

    def test_differential_privacy_knows_no_total(self, tmp_path) -> None:
        """A record with another level is in no cell, and how many these are is not published."""
        table = released(
            tmp_path, promise="anyone", levels=LEVELS | {"sector": ["care", "trade"]}
        ).certificate.about.table
        assert table.total is None
        value = by_levels(table)
        assert value[None, None] == sum(value[cell] for cell in product(["care", "trade"], ["f", "m"]))

    def test_people_with_several_records_have_no_public_number_of_records(self, tmp_path) -> None:
        frame = people()[["sector", "sex"]].assign(person=np.arange(300) // 3)
        release = protect(
            "table",
            frame,
            eta=0.2,
            promise=ls.File(games=0),
            by=["sector", "sex"],
            levels=LEVELS,
            group="person",
            ledger=tmp_path / "l",
        )
        table = release.certificate.about.table
        assert table.total is None
        assert all(cell.sampling_std is None for cell in table.cells)

    def test_it_is_a_function_of_what_is_published(self, tmp_path) -> None:
        """Made again from the public half alone: from its values, its noise and its plan."""
        about = released(tmp_path, merge={"sector": ["trade:mining"]}, non_negative=True).certificate.about
        plan = read(ProtectionPlan, dict(about.plan), "here")
        cells = Cells(("sector", "sex"), tuple(tuple(LEVELS[name]) for name in ("sector", "sex")))
        again = table_for_publication(
            plan,
            Linear("count", cells, "sum"),
            np.array([row.value for row in about.values]),
            np.array(about.certificate.noise.rms),
            n_in_use=about.certificate.k,
        )
        assert again == about.table

    def test_merged_levels_are_sums_of_what_was_released(self, tmp_path) -> None:
        """The release, and so its noise, is that of the declared levels."""
        words = {"ledger": tmp_path / "l"}
        whole = released(tmp_path, **words)
        merged = released(tmp_path, merge={"sector": ["trade:mining"]}, **words)
        assert merged.value.tolist() == whole.value.tolist()
        table = merged.certificate.about.table
        assert {cell.levels[0] for cell in table.cells} == {"care", "trade to mining", None}
        assert table.total == 299

    @pytest.mark.parametrize(
        ("promise", "has_intervals"),
        [
            ("drawn", True),
            pytest.param(ls.Drawn(noise="norm"), False, marks=pytest.mark.slow),
        ],
    )
    def test_promise_drawn(self, tmp_path, promise: Any, has_intervals: bool) -> None:
        release = released(tmp_path, promise=promise, ledger=None)
        table = release.certificate.about.table
        assert table.total == by_levels(table)[None, None] == 150
        assert all((cell.low is not None) == has_intervals for cell in table.cells)

    def test_csv(self, tmp_path) -> None:
        release = released(tmp_path)
        rows = list(csv.DictReader(io.StringIO(release.to_csv(tmp_path / "release.csv"))))
        assert (tmp_path / "release.csv").read_text(encoding="utf-8") == release.to_csv()
        numbers = ["value", "noise_std", "low", "high", "simple_random_sampling_std"]
        assert list(rows[0]) == ["sector", "sex", "quantity", *numbers]
        cells = release.certificate.about.table.cells
        assert [int(row["value"]) for row in rows] == [cell.value for cell in cells]
        assert rows[-1]["sector"] == rows[-1]["sex"] == "Total"
        assert float(rows[0]["noise_std"]) == pytest.approx(cells[0].noise_std, rel=1e-5)

    def test_csv_of_other_statistics(self, tmp_path) -> None:
        release = ls.protect("mean", people()[["wage"]], eta=0.1, promise=ls.File(games=0), ledger=tmp_path / "l")
        (row,) = csv.DictReader(io.StringIO(release.to_csv()))
        assert (row["name"], float(row["value"])) == ("mean of wage", release.value[0])
        std = float(row["noise_std"])
        assert float(row["high"]) - float(row["low"]) == pytest.approx(2 * 1.959964 * std, rel=1e-2)  # outward
        assert row["simple_random_sampling_std"] == ""  # it is a function of the file

    def test_a_level_called_total(self, tmp_path) -> None:
        frame = people()[["sex"]].replace("m", "Total")
        levels = {"sex": ["f", "Total"]}
        release = protect(
            "table", frame, eta=0.1, promise=ls.File(games=0), by="sex", levels=levels, ledger=tmp_path / "l"
        )
        assert [row["sex"] for row in csv.DictReader(io.StringIO(release.to_csv()))] == ["f", "Total", "All"]

    def test_the_page_shows_rows_and_columns(self, tmp_path) -> None:
        release = released(tmp_path)
        page = release.to_html()
        value = by_levels(release.certificate.about.table)
        assert f"{int(value['care', None])}" in page
        assert "sector / sex" in repr(release)
        text = " ".join(release.certificate.table(full=True).split())
        assert "which is public. Margins are sums of the cells" in text


class TestErrors:
    @pytest.mark.by_day("None-2000-0.925-0.085")
    @pytest.mark.parametrize(("n_releases", "least", "wrong_by"), [(2_000, 0.925, 0.085), nightly(20_000, 0.942, 0.03)])
    @pytest.mark.parametrize("total", [None, 1000])
    def test_deviation_and_interval_are_those_of_the_published_numbers(
        self, total: int | None, n_releases: int, least: float, wrong_by: float
    ) -> None:
        """Releases of the same counts: 95 % intervals, whole as the counts are, hold in at least 94.2 % of 20,000 or
        92.5 % of 2,000 (five standard errors), deviations to 3 % or 8.5 % (five standard errors and the rounding).

        A false alarm has probability 1e-5. In 9 of 10 cases 20,000 find a coverage of 94.0 %, 2,000 one of 91.7 %.
        """
        rng = np.random.default_rng(1)
        truth = np.array([[500, 300], [150, 50]])
        deviation = np.array([[4.0, 4.0], [8.0, 2.0]])
        levels = (("a", "b"), ("c", "d"))
        values = {}
        for _ in range(n_releases):
            noisy = truth + deviation * rng.standard_normal((2, 2))
            counts = Counts(("x", "y"), levels, noisy, 1.0, np.square(deviation))
            table = published_table(counts, total=total, n_records=None)
            for cell in table.cells:
                values.setdefault(cell.levels, []).append((cell.value, cell.low, cell.high, cell.noise_std))
        exact = {("a", "c"): 500, ("a", "d"): 300, ("b", "c"): 150, ("b", "d"): 50}
        exact |= {("a", None): 800, ("b", None): 200, (None, "c"): 650, (None, "d"): 350, (None, None): 1000}
        for cell, rows in values.items():
            value, low, high, stated = np.array(rows).T
            if total is not None and cell == (None, None):
                assert np.ptp(value) == 0
                assert stated[0] == 0
                continue
            assert value.mean() == pytest.approx(exact[cell], abs=5 * stated[0] / np.sqrt(n_releases))
            assert value.std() == pytest.approx(stated[0], rel=wrong_by)
            assert np.mean((low <= exact[cell]) & (exact[cell] <= high)) >= least
            assert np.all(low == np.floor(low)) & np.all(high == np.ceil(high))

    def test_the_total_is_taken_out_as_least_squares_do(self) -> None:
        """Minimised numerically: the nearest numbers with that sum, in units of their noise."""
        values, variance = np.array([10.3, 20.9, 30.2]), np.array([1.0, 4.0, 9.0])
        found = minimize(
            lambda u: np.sum((u - values) ** 2 / variance), values, constraints=LinearConstraint(np.ones(3), 55, 55)
        )
        table = published_table(Counts(("x",), (("a", "b", "c"),), values, 1.0, variance), total=55, n_records=None)
        assert [cell.value for cell in table.cells[:3]] == np.rint(found.x).tolist()
        noise = np.diag(variance) - np.outer(variance, variance) / variance.sum()
        stated = [cell.noise_std for cell in table.cells[:3]]
        assert stated == pytest.approx(np.sqrt(np.diag(noise) + 1 / 12), rel=1e-12)

    def test_sampling_error_of_a_count(self) -> None:
        counts = Counts(("x",), (("a", "b"),), np.array([25.0, 75.0]), 1.0, np.ones(2))
        cells = published_table(counts, total=100, n_records=100).cells
        assert [cell.sampling_std for cell in cells[:2]] == pytest.approx([np.sqrt(18.75), np.sqrt(18.75)])

    def test_counts_without_a_sampling_error_have_none(self) -> None:
        """A count that is not between 0 and n, and the total; a margin of one column is a count like any other."""
        values = np.array([[-3.0, 40.0], [0.0, 61.0]])
        counts = Counts(("x", "y"), (("a", "b"), ("c", "d")), values, 1.0, np.ones((2, 2)))
        cells = published_table(counts, total=None, n_records=100).cells
        errors = {cell.levels: cell.sampling_std for cell in cells}
        assert errors["a", "c"] is errors["b", "c"] is errors[None, "c"] is None
        assert errors[None, "d"] is errors[None, None] is None  # 101 of 100, and the total
        assert errors["a", "d"] == pytest.approx(np.sqrt(40 * 0.6))
        assert errors["b", None] == pytest.approx(np.sqrt(61 * 0.39))

    def test_exact_counts_stay(self) -> None:
        """Where no noise was needed nothing is moved."""
        counts = Counts(("x",), (("a", "b"),), np.array([3.0, 4.0]), 1.0, np.zeros(2))
        cells = published_table(counts, total=7, n_records=7, non_negative=True).cells
        assert [(cell.value, cell.noise_std) for cell in cells] == [
            (3.0, pytest.approx(np.sqrt(1 / 12))),
            (4.0, pytest.approx(np.sqrt(1 / 12))),
            (7.0, 0.0),
        ]


@given(
    st.lists(st.floats(-20, 20), min_size=2, max_size=6).filter(lambda values: sum(values) >= 1),
    st.lists(st.floats(0.1, 9), min_size=6, max_size=6),
)
def test_nearest_non_negative_numbers(values: list[float], variances: list[float]) -> None:
    """The conditions of Karush, Kuhn and Tucker, which are sufficient: the problem is convex."""
    v, variance = np.array(values), np.array(variances[: len(values)])
    total = round(v.sum())
    u = nearest_non_negative(v, variance, total)
    assert u.min() >= 0
    assert u.sum() == pytest.approx(total, abs=1e-6)
    multiplier = ((v - u) / variance)[u > 0]
    assert np.ptp(multiplier) < 1e-6
    assert ((v / variance)[u == 0] <= multiplier.max() + 1e-6).all()


def test_a_count_beside_a_mean_has_the_error_of_its_rounding() -> None:
    """A whole number: noise of deviation 2 and a rounding of variance 1/12."""
    groups = GroupMeans(("sex",), (("f", "m"),), ("wage",))
    table = _table_of_means(groups, np.array([5.0, 6.0, 1.0, 2.0]), np.full(4, 2.0), True, False)
    stated = [cell.noise_std for cell in table.cells if cell.quantity == "count"]
    assert stated == pytest.approx([np.sqrt(4 + 1 / 12)] * 2)


def test_non_negative_counts_without_a_total() -> None:
    assert nearest_non_negative(np.array([-3.0, 2.0]), np.ones(2), None).tolist() == [0.0, 2.0]


@given(st.lists(st.floats(0, 50), min_size=1, max_size=8), st.integers(-3, 3))
def test_rounding_keeps_the_total(values: list[float], more: int) -> None:
    total = round(sum(values)) + more
    whole = rounded_to_total(np.array(values), total)
    assert whole.sum() == total
    if more == 0:
        assert np.abs(whole - values).max() < 1 + 1e-9


def test_merged_levels() -> None:
    values = np.arange(8.0).reshape(4, 2)
    counts = Counts(("x", "y"), (("a", "b", "c", "d"), ("e", "f")), values, 1.0, np.ones((4, 2)))
    merged = counts.merged({"x": [(1, 2)], "y": [(0, 1)]})
    assert merged.levels == (("a", "b to c", "d"), ("e to f",))
    assert merged.values.tolist() == [[1.0], [2.0 + 3 + 4 + 5], [13.0]]
    assert merged.variance.tolist() == [[2.0], [4.0], [2.0]]


def test_the_owner_alone_sees_the_rules(tmp_path) -> None:
    release = released(tmp_path, rules={"minimum": 12})
    assert "rules" not in release.to_html() or "Rules of statistics offices" not in release.to_html()
    assert json.loads(release.to_json())["about"]["rules"] == []
    (rule,) = release.owner.about.rules
    counts = people()[["sector", "sex"]].value_counts()
    small = [f"{sector} / {sex}" for (sector, sex), n in counts.items() if n < 12]
    assert set(rule.failing) == set(small) != set()
    assert "Rules of statistics offices" in release.owner.to_html()
