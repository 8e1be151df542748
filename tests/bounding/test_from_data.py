"""Bounds on data sets, against what the rooms below say and against small cases worked by hand."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from leakbound.bounding.api import bound
from leakbound.core.findings import Scope, Term
from leakbound.core.seeds import stream
from leakbound.reports import Report


@pytest.fixture
def write(tmp_path):
    """A table as a file."""

    def write(**columns) -> str:
        pd.DataFrame(columns).to_csv(tmp_path / "table.csv", index=False)
        return str(tmp_path / "table.csv")

    return write


def column(report: Report, name: str) -> list:
    return report.records()[name].tolist()


class TestTable:
    def test_cells_from_most_to_least_exposed(self, write) -> None:
        """Two cells of 1 and 3 of n = 4, k = 2: the single record is known, the others hang on it."""
        report = bound("table", data=write(city=["Rome", "Paris", "Paris", "Paris"]), by="city")
        assert column(report, "cell") == ["Rome", "Paris"]
        assert column(report, "records") == [1, 3]
        assert column(report, "eta") == pytest.approx([0.5, 1 / 6])
        assert column(report, "accuracy") == pytest.approx([1.0, 2 / 3])
        assert {each.scope for each in report.findings} == {Scope("worst", name="Rome"), Scope("median")}

    def test_what_to_merge(self, write) -> None:
        city = ["a"] * 500 + ["b"] * 400 + ["c"] * 40 + ["d"] * 30
        report = bound("table", data=write(city=city), by="city", eta=0.05, unit="person")
        smallest = next(each.value for each in report.findings if each.quantity == "smallest_cell")
        assert 56 <= smallest <= 64
        said = "for eta = 0.05 merge 2 cells into 1, as the column merge_group says: cells of one group are neighbours"
        assert any(note.startswith(said) for note in report.about.notes)
        groups = dict(zip(column(report, "cell"), column(report, "merge_group"), strict=True))
        assert groups["c"] == groups["d"] == 1
        assert pd.isna(groups["a"])
        kept = bound("table", data=write(city=["a"] * 500 + ["b"] * 400), by="city", eta=0.05)
        assert "every cell keeps eta = 0.05" in kept.about.notes

    def test_merged_cells_have_a_value_in_common(self, write) -> None:
        """By town and answer: nobody is told to put Davos / yes into one cell with Bern / no."""
        rng = np.random.default_rng(0)
        towns = rng.choice(["Bern", "Chur", "Davos"], size=900, p=[0.7, 0.27, 0.03])
        answers = np.where(rng.random(900) < 0.08, "yes", "no")
        report = bound("table", data=write(town=towns, answer=answers), by="town,answer", eta=0.05)
        groups: dict[int, list[list[str]]] = {}
        for cell, group in zip(column(report, "cell"), column(report, "merge_group"), strict=True):
            if not pd.isna(group):
                groups.setdefault(group, []).append(cell.split(" / "))
        assert groups
        for cells in groups.values():
            found = [set(values) for values in zip(*cells, strict=True)]
            n_expected = len(found[0]) * len(found[1])  # all cells of some towns and some answers
            assert len(cells) == n_expected

    def test_of_numbers_neighbouring_values_are_merged(self, write) -> None:
        rooms = [1] * 10 + [2] * 300 + [3] * 400 + [4] * 10
        report = bound("table", data=write(rooms=rooms), by="rooms", eta=0.05)
        groups = dict(zip(column(report, "cell"), column(report, "merge_group"), strict=True))
        assert groups["1"] == groups["2"] != groups["3"] == groups["4"]

    def test_a_table_of_single_records_is_to_be_coarsened_first(self, write) -> None:
        report = bound("table", data=write(number=list(range(300))), by="number", eta=0.05)
        said = "300 of 300 cells are too small for eta = 0.05: count by fewer columns, or by fewer levels"
        assert any(note.startswith(said) for note in report.about.notes)

    def test_an_exact_certainty_is_said_to_be_one(self, write) -> None:
        report = bound("table", data=write(city=["Rome", *["Paris"] * 99]), by="city")
        text = report.table().replace("\n", " ")
        assert "of at least one record everybody can tell for certain whether it is in" in text
        assert "excludes nothing" not in text

    def test_sizes_and_coins(self, write) -> None:
        data = write(city=["a"] * 6 + ["b"] * 4)
        by_size = bound("table", data=data, by="city", k=3)
        by_share = bound("table", data=data, by="city", prior=0.3)
        assert column(by_size, "eta") == column(by_share, "eta")
        coins = bound("table", data=data, by="city", sampling="poisson", prior=0.3)
        assert column(coins, "eta") != column(by_size, "eta")
        assert max(column(coins, "accuracy")) == pytest.approx(0.7 + max(column(coins, "eta")))

    def test_a_fraction_of_nobody(self, write) -> None:
        with pytest.raises(
            ValueError, match=r"a fraction 0\.001 of 4 records is 0; at least one must be in and one out"
        ):
            bound("table", data=write(city=["a", "a", "b", "b"]), by="city", prior=0.001)

    def test_missing_values_are_a_cell_and_a_missing_column_is_refused(self, write) -> None:
        data = write(city=["a", None, None, "a"])
        assert sorted(column(bound("table", data=data, by="city"), "cell")) == ["a", "missing"]
        without = bound("table", data=data, by="city", drop_missing=True)
        assert column(without, "cell") == ["a"]
        assert "2 of 4 rows have a missing value, and are left out" in without.about.notes
        with pytest.raises(ValueError, match="no column 'town'; columns: city"):
            bound("table", data=data, by="town")
        with pytest.raises(ValueError, match="digits has no columns by name"):
            bound("table", data="digits", by="x")


class TestTotal:
    def test_every_record(self, write) -> None:
        report = bound("total", data=write(hours=[0, 1, 3, 3, 7, 2, 9, 4]), column="hours")
        by_record = dict(zip(column(report, "record"), column(report, "eta"), strict=True))
        expected = [0.0, 0.15625, 0.09375, 0.09375, 0.21875, 0.1875, 0.3125, 0.15625]
        assert [by_record[number] for number in range(8)] == pytest.approx(expected, abs=1e-12)
        assert column(report, "value")[0] == 9

    def test_rounding(self, write) -> None:
        data = write(pay=[10.2, 19.9, 30.1, 40.0])
        coarse, fine = (bound("total", data=data, column="pay", round=each) for each in (10, 0.1))
        assert sorted(column(coarse, "value")) == [10, 20, 30, 40]
        assert max(column(coarse, "eta")) < max(column(fine, "eta"))

    def test_text_has_no_total(self, write) -> None:
        with pytest.raises(ValueError, match="not only numbers in name, as 'a' in record 0 of name"):
            bound("total", data=write(name=["a", "b"]), column="name")


class TestLeakage:
    def test_the_outlier_leads_and_text_is_refused(self, write) -> None:
        rng = np.random.default_rng(0)
        values = rng.normal(size=(50, 2))
        values[7] = 30
        data = write(a=values[:, 0], b=values[:, 1], name=["x"] * 50)
        with pytest.raises(ValueError, match=r"^not only numbers in name, as 'x' in record 0 of name"):
            bound("leakage", data=data)
        report = bound("leakage", data=data, drop="name")
        assert column(report, "record")[0] == 7
        assert column(report, "score") == sorted(column(report, "score"), reverse=True)
        assert report.about.notes == ()
        assert {curve.role for curve in report.curves} == {"asymptotic"}
        top = next(each for each in report.findings if each.quantity == "advantage")
        assert top.value == pytest.approx(2 * column(report, "accuracy")[0] - 1)

    def test_a_sample_hides_its_records(self, write) -> None:
        data = write(a=np.random.default_rng(0).normal(size=30))
        whole, sample = (bound("leakage", data=data, rate=rate) for rate in (1.0, 0.1))
        assert max(column(sample, "accuracy")) < max(column(whole, "accuracy"))
        assert max(column(sample, "accuracy")) <= 0.55

    def test_a_constant_column_is_named(self, write) -> None:
        with pytest.raises(ValueError, match="constant"):
            bound("leakage", data=write(a=[1.0] * 5, b=[1.0, 2.0, 3.0, 4.0, 9.0]))


class TestPracticalMembershipPrivacy:
    def test_noisy_mean(self, write) -> None:
        data = write(a=np.r_[np.linspace(-1, 1, 19), 50.0])
        report = bound("pmp", data=data, clip=2.0, scale=0.5, delta=1e-3)
        epsilon = {each.scope.kind: each.value for each in report.findings if each.quantity == "epsilon"}
        own = next(each.value for each in report.findings if each.quantity == "pmp_epsilon")
        assert 0 < own <= epsilon["halves"] <= epsilon["any_data"]
        assert "1 of the 20 records are longer than 2 and scaled down" in report.about.notes
        accuracy = next(each.value for each in report.findings if each.quantity == "accuracy")
        assert accuracy <= (math.exp(own) + 1e-3) / (1 + math.exp(own)) + 1e-9  # the curve is at least as tight

    def test_exponential_mechanism_exact_and_sampled(self, write) -> None:
        data = write(a=np.random.default_rng(1).normal(size=12), b=np.random.default_rng(2).normal(size=12))
        words = {"data": data, "clip": 3.0, "mechanism": "exponential", "epsilon": 5.0, "candidates": 8}
        exact, sampled = (
            next(each for each in bound("pmp", method=method, **words).findings if each.quantity == "pmp_epsilon")
            for method in ("exact", "sampled")
        )
        assert exact.method == (Term("exact"),)
        assert sampled.low <= exact.value <= sampled.high
        assert sampled.value == sampled.high  # an upper bound is its upper end
        assert sampled.confidence == 0.95

    @pytest.mark.parametrize("method", ["exact", "sampled"])
    def test_the_epsilon_of_halves_is_that_of_every_adjacent_pair(self, write, method) -> None:
        """Against the mechanism itself on each of the 20 halves of 6 records."""
        rows = np.random.default_rng(1).normal(size=(6, 2))
        words = {"clip": 1.0, "mechanism": "exponential", "epsilon": 5.0, "candidates": 4, "seed": 3, "method": method}
        report = bound("pmp", data=write(a=rows[:, 0], b=rows[:, 1]), **words)
        found = {each.scope.kind: each.value for each in report.findings if each.quantity == "epsilon"}
        rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
        outputs = stream(3, "candidates").normal(size=(4, 2))
        outputs /= np.linalg.norm(outputs, axis=1, keepdims=True)
        sensitivity = 2 / 3  # two distances to a unit vector differ by at most 2, in a mean of 3
        chances = {}
        for half in combinations(range(6), 3):
            mean = [np.mean([math.dist(output, rows[record]) for record in half]) for output in outputs]
            weight = np.exp(-5.0 * np.array(mean) / (2 * sensitivity))
            chances[frozenset(half)] = weight / weight.sum()
        pairs = [(one, other) for one in chances for other in chances if len(one & other) == 2]
        worst = max(np.log(chances[one] / chances[other]).max() for one, other in pairs)
        assert found["halves"] == pytest.approx(worst, rel=1e-12)
        own = next(each.low or each.value for each in report.findings if each.quantity == "pmp_epsilon")
        assert own <= worst <= found["nominal"] <= found["any_data"] == 5.0

    def test_too_many_halves_have_no_exact_epsilon(self, write) -> None:
        data = write(a=np.random.default_rng(1).normal(size=22))
        words = {"clip": 3.0, "mechanism": "exponential", "epsilon": 1.0, "candidates": 2}
        report = bound("pmp", data=data, **words)
        scopes = [each.scope.kind for each in report.findings if each.quantity == "epsilon"]
        assert scopes == ["any_data", "nominal"]

    def test_a_limit_that_was_sampled_is_certified_at_its_confidence(self, write) -> None:
        data = write(a=np.random.default_rng(1).normal(size=30))
        words = {"data": data, "clip": 3.0, "mechanism": "exponential", "candidates": 2, "n_subsets": 512}
        found = bound("pmp", at_most="accuracy=0.6", **words)
        kept = {each.quantity: each for each in found.findings if each.quantity in ("largest_epsilon", "pmp_epsilon")}
        assert {each.confidence for each in kept.values()} == {0.95}
        assert kept["pmp_epsilon"].value == pytest.approx(math.log(0.6 / 0.4))
        with pytest.raises(
            ValueError, match=r"eta=0\.6: a limit of 0\.6 can never be exceeded, for eta is at most 0\.5"
        ):
            bound("pmp", at_most="eta=0.6", **words)

    def test_auto_samples_what_cannot_be_counted(self, write) -> None:
        data = write(a=np.random.default_rng(1).normal(size=38))
        words = {"clip": 3.0, "mechanism": "exponential", "epsilon": 1.0, "candidates": 2, "n_subsets": 512}
        found = next(each for each in bound("pmp", data=data, **words).findings if each.quantity == "pmp_epsilon")
        assert found.confidence == 0.95

    def test_the_epsilon_that_keeps_a_success(self, write) -> None:
        data = write(a=np.random.default_rng(1).normal(size=12))
        words = {"data": data, "clip": 3.0, "mechanism": "exponential", "candidates": 4}
        found = bound("pmp", at_most="accuracy=0.55", **words)
        epsilon = next(each.value for each in found.findings if each.quantity == "largest_epsilon")
        accuracy = next(each.value for each in found.findings if each.quantity == "accuracy")
        assert accuracy <= 0.55 + 1e-12
        more = bound("pmp", epsilon=1.01 * epsilon, **words)
        assert next(each.value for each in more.findings if each.quantity == "accuracy") > 0.55
        same = bound("pmp", at_most="eta=0.05", **words)
        assert next(each.value for each in same.findings if each.quantity == "largest_epsilon") == epsilon

    def test_an_odd_number_of_records(self, write) -> None:
        with pytest.raises(ValueError, match="an even number 2n is needed"):
            bound("pmp", data=write(a=[1.0, 2.0, 3.0]), clip=1.0, scale=1.0)


class TestRegression:
    def test_leverage_is_what_exposes(self, write) -> None:
        x = np.r_[np.linspace(-1, 1, 19), 10.0]
        report = bound("regression", data=write(x=x, one=np.ones(20)))
        assert column(report, "record")[0] == 19
        assert sum(column(report, "leverage")) == pytest.approx(2)
        exact, upper, lower = (each.value for each in report.findings[:3])
        assert lower <= exact <= upper
        assert next(each for each in report.findings if each.quantity == "information").bound_type == "upper"

    def test_leverage_one(self, write) -> None:
        with pytest.raises(ValueError, match="each leverage must be below 1, got 1 at 1 records"):
            bound("regression", data=write(x=[0.0, 0.0, 0.0, 5.0], one=[1.0, 1.0, 1.0, 1.0]))
