"""Plans of several statistics: what they share, what belongs to one of them, and what is wrong in one line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from leakbound.files.untrusted import toml_table
from leakbound.plans.protects import ProtectionPlan
from leakbound.plans.several import OF_A_STATISTIC, SeveralPlan, from_toml, read_plan, read_several, several_content
from leakbound.reports.toml import toml

SHARED: dict[str, Any] = {"data": "people.csv", "promise": "file", "eta": 0.05}
TABLE: dict[str, Any] = {"statistic": "table", "by": ["town"], "levels": {"town": ["Bonn", "Ulm"]}}


def plan(*tables: Any, **more: Any) -> SeveralPlan:
    return read_several({**SHARED, **more, "statistic": list(tables)}, "plan.toml")


class TestReading:
    def test_what_all_share_and_what_is_of_one(self) -> None:
        both = plan({"statistic": "mean", "weight": 2, "drop": ["town"]}, TABLE, unit="person")
        mean, table = both.statistics
        assert (mean.statistic, mean.weight, mean.drop, mean.by) == ("mean", 2.0, ("town",), ())
        assert (table.statistic, table.weight, table.drop, table.by) == ("table", 1.0, (), ("town",))
        assert (mean.eta, table.eta, mean.unit, table.unit) == (0.05, 0.05, "person", "person")
        assert (both.shared.eta, both.shared.unit, both.shared.drop) == (0.05, "person", ())

    def test_a_key_above_the_tables_is_that_of_all_that_have_none(self) -> None:
        first, second = plan("mean", {"statistic": "sum", "drop": ["age"]}, drop=["town"]).statistics
        assert (first.drop, second.drop) == (("town",), ("age",))

    def test_names(self) -> None:
        ols = {"statistic": "ols", "label": "wage"}
        names = [each.name for each in plan("mean", TABLE, ols, ols, {**ols, "name": "wages"}).statistics]
        assert names == ["mean", "table by town", "ols of wage", "ols of wage (2)", "wages"]

    def test_a_single_one_is_a_plan_as_ever(self) -> None:
        found = read_plan(ProtectionPlan, {**SHARED, "statistic": "mean"}, "protect")
        assert isinstance(found, ProtectionPlan)
        assert isinstance(read_plan(ProtectionPlan, {**SHARED, "statistic": ["mean", "sum"]}, "protect"), SeveralPlan)

    def test_it_is_printed_as_it_can_be_read_again(self, tmp_path) -> None:
        both = plan({"statistic": "mean", "weight": 2.0, "drop": ["town"]}, TABLE)
        file = tmp_path / "plan.toml"
        file.write_text(toml({**SHARED, **several_content(both)}))
        assert read_several(toml_table(file), "plan.toml") == both

    def test_every_key_of_a_table_is_a_field(self) -> None:
        known = {*ProtectionPlan.model_fields, "name", "weight"}
        assert set(OF_A_STATISTIC) <= known


LINES = {
    "none": ([], {}, "several statistics are two or more, got 0"),
    "no table": (["mean", 3], {}, "a statistic of a list is a name or a table, got int"),
    "misspelt": (
        ["mean", {"statistic": "sum", "wieght": 2}],
        {},
        "statistic 2: unknown key 'wieght' (did you mean 'weight'?); known: " + ", ".join(OF_A_STATISTIC),
    ),
    "of all": (
        ["mean", {"statistic": "sum", "eta": 0.1}],
        {},
        "statistic 2: eta is the same for all statistics: give it above their tables",
    ),
    "of one": (
        ["mean", "sum"],
        {"weight": 2},
        "weight belongs to a single statistic: give it in its [[statistic]] table",
    ),
    "weight": (["mean", {"statistic": "sum", "weight": 0}], {}, "statistic 2: weight: Input should be greater than 0"),
    "name": (
        [{"statistic": "mean", "name": "a"}, {"statistic": "sum", "name": "a"}],
        {},
        "two statistics have the name 'a': each needs its own",
    ),
    "half": (
        ["mean", "sum"],
        {"promise": "drawn"},
        "statistic 1: promise drawn releases one statistic at a time; several take promise = anyone or file",
    ),
    "declared and weighted": (
        ["mean", {"statistic": "sum", "promise": "file,scale=3", "weight": 2}],
        {},
        "statistic 2: a scale is declared, and shares no eta: give no weight, got 2",
    ),
    "levels": (["mean", {"statistic": "table", "by": ["town"]}], {}, "statistic 2: a table is published with the "),
}


@pytest.mark.parametrize("name", LINES)
def test_what_is_wrong_is_one_line(name) -> None:
    tables, more, line = LINES[name]
    with pytest.raises(ValueError, match=f"^plan.toml: {re.escape(line)}"):
        plan(*tables, **more)


def test_a_key_that_is_unknown_above_the_tables() -> None:
    with pytest.raises(ValueError, match=r"^plan.toml: unknown key 'etta' \(did you mean 'eta'\?\); known: "):
        plan("mean", "sum", etta=1)


def test_files_that_are_no_plans(tmp_path) -> None:
    missing = tmp_path / "none.toml"
    with pytest.raises(ValueError, match=f"^{re.escape(str(missing))}: no such plan file$"):
        from_toml(missing)
    broken = Path(tmp_path / "broken.toml")
    broken.write_text("[[statistic]\n")
    with pytest.raises(ValueError, match=r"broken\.toml.*TOML") as caught:
        from_toml(broken)
    assert "\n" not in str(caught.value)


def test_a_list_of_one_is_a_plan_of_one(tmp_path) -> None:
    """As a [[statistic]] table alone: the same plan as its keys above."""
    file = tmp_path / "one.toml"
    above = 'data = "a.csv"\npromise = "file"\neta = 0.05\n'
    of_one = 'statistic = "mean"\ndrop = "town, age"\n'
    file.write_text(f'{above}[[statistic]]\n{of_one}name = "wage"\nweight = 2\n')
    plan = read_plan(ProtectionPlan, from_toml(file), "one.toml")
    file.write_text(f"{above}{of_one}")
    assert plan == read_plan(ProtectionPlan, from_toml(file), "one.toml")
    assert isinstance(plan, ProtectionPlan)
    assert plan.drop == ("town", "age")
