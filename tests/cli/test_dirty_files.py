"""The same defect of a file is refused with the same line by every command that computes with its numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakbound.plans.protects import CalibrationPlan
from leakbound.protection.setting.request import request_of_file
from leakbound.protection.setting.units import Units
from leakbound.runtime.observe import Execution
from tests.cli.calling import Left, caller, draw_no_pages, refused

NUMERIC = {
    "bound total": "bound total --data {file} --column wage --round 1",
    "bound leave-one-out": "bound leave-one-out --data {file} --noise-scale 1",
    "bound leakage": "bound leakage --data {file}",
    "bound pmp": "bound pmp --data {file} --clip 60 --scale 1",
    "bound regression": "bound regression --data {file}",
    "calibrate": "calibrate --data {file} --eta 0.1 --compare drawn,fits=40",
    "calibrate file": "calibrate --data {file} --promise file,games=0 --eta 0.1",
    "calibrate drawn": "calibrate --data {file} --promise drawn,games=0 --eta 0.1",
    "protect": "protect --data {file} --promise file,games=0 --eta 0.1",
}
OTHERS = {
    "audit": "audit --data {file} --label ill --model sklearn.tree:DecisionTreeClassifier --n-models 4",
    "bound table": "bound table --data {file} --by ill",
    "calibrate dp": "calibrate --data {file} --promise anyone --eta 0.1 --range wage=0:80",
}
every_numeric = pytest.mark.parametrize("command", NUMERIC.values(), ids=list(NUMERIC))
every_command = pytest.mark.parametrize("command", (NUMERIC | OTHERS).values(), ids=[*NUMERIC, *OTHERS])


@pytest.fixture
def leakbound(tmp_path, monkeypatch, capfd) -> Callable[[str], Left]:
    monkeypatch.chdir(tmp_path)
    draw_no_pages(monkeypatch)
    return caller(monkeypatch, capfd)


def lines() -> list[str]:
    """Write forty people as lines of CSV."""
    rng = np.random.default_rng(0)
    ages, wages = rng.integers(20, 60, 40), rng.normal(30, 5, 40).round(1)
    return [
        "age,wage,ill",
        *(f"{age},{wage},{place % 2}" for place, (age, wage) in enumerate(zip(ages, wages, strict=True))),
    ]


def write(content: list[str], ending: str = "\n", encoding: str = "utf-8") -> str:
    Path("people.csv").write_text("\n".join(content) + ending, encoding=encoding)
    return "people.csv"


def with_wage(wage: str, record: int = 3) -> list[str]:
    content = lines()
    age, _, ill = content[record + 1].split(",")
    content[record + 1] = f"{age},{wage},{ill}"
    return content


@every_numeric
def test_text_in_a_column_of_numbers(leakbound, command) -> None:
    left = leakbound(command.format(file=write(with_wage("many"))))
    refused(left, "not only numbers in wage, as 'many' in record 3 of wage, and no single record may decide which ")
    assert "--drop wage" in left.err


@every_numeric
@pytest.mark.parametrize(
    ("value", "line", "flag"),
    [
        ('"34,5"', "not only numbers in wage, as ", "--decimal ,"),
        ('"3,450"', "people.csv: column 'wage' has 3,450; say which is the decimal sign: ", "--decimal ."),
    ],
)
def test_a_comma_in_a_number(leakbound, command, value, line, flag) -> None:
    left = leakbound(command.format(file=write(with_wage(value))))
    refused(left, line)
    assert flag in left.err


@pytest.mark.parametrize("name", NUMERIC)
def test_a_missing_value(leakbound, name) -> None:
    left = leakbound(NUMERIC[name].format(file=write(with_wage(""))))
    refused(left, "1 of 40 values of wage is missing or infinite, the first in record 3: ")
    assert "--drop-missing" in left.err


@every_command
def test_columns_of_the_same_name(leakbound, command) -> None:
    content = lines()
    content[0] = "wage,wage,ill"
    refused(leakbound(command.format(file=write(content))), "people.csv: the columns 1 and 2 have the same name 'wage'")


@pytest.mark.parametrize("name", [name for name in (*NUMERIC, *OTHERS) if name != "calibrate dp"])
def test_a_row_without_any_value(leakbound, name) -> None:
    """Spreadsheets write such rows below a table; each would be a record."""
    left = leakbound((NUMERIC | OTHERS)[name].format(file=write([*lines(), ",,"])))
    refused(left, "people.csv: 1 of 41 rows has no value in any column, the first is record 40: remove it")


def test_a_row_without_any_value_is_a_record_under_anyone(leakbound) -> None:
    """A refusal would tell of one record: its values are missing, and the public number of records counts it."""
    left = leakbound(OTHERS["calibrate dp"].format(file=write([*lines(), ",,"])) + " --full")
    assert (left.code, "The number of records, 41, is public" in " ".join(left.out.split())) == (0, True)
    assert "for you alone: 1 of 41 values of wage are missing or no numbers" in left.err


@pytest.mark.by_day("bound regression")
@every_numeric
def test_an_empty_line_at_the_end_and_a_byte_order_mark_are_no_defect(leakbound, command) -> None:
    plain = leakbound(command.format(file=write(lines())) + " --out plain")
    other = leakbound(
        command.format(file=write(lines(), "\n\n\n", "utf-8-sig"))
        + " --ledger other --allow-known-people" * ("protect" in command)
    )
    assert (plain.code, other.code) == (0, 0)


@pytest.mark.parametrize("name", ["bound leave-one-out", "calibrate file", "protect"])
def test_a_column_that_names_the_records_is_said(leakbound, name) -> None:
    content = lines()
    content = [f"person,{content[0]}", *(f"{900 + place},{line}" for place, line in enumerate(content[1:]))]
    left = leakbound(NUMERIC[name].format(file=write(content)))
    said = " ".join((left.out if name.startswith("bound") else left.err).split())
    assert left.code == 0
    assert "erson has another value in each record; if it is an identifier, it is no feature" in said


@pytest.mark.by_day("bound regression")
@pytest.mark.parametrize("name", NUMERIC)
def test_rows_with_missing_values_are_left_out(leakbound, name) -> None:
    content = with_wage("")
    content[9] = "," + content[9].split(",", 1)[1]  # of the age of another person
    left = leakbound(f"{NUMERIC[name].format(file=write(content))} --drop-missing")
    assert left.code == 0
    n_left_out = 1 if name == "bound total" else 2  # the wages alone are added up
    said = left.out if name.startswith("bound") else left.err
    assert re.search(f"{n_left_out} of 40 rows (has|have) a missing value, and (is|are) left out", said)
    assert name == "calibrate" or re.search(f"{40 - n_left_out} (records|rows)", left.out)


def test_the_public_half_does_not_count_the_rows_that_were_left_out(leakbound) -> None:
    """It has the rule, which follows from the plan: the same words whether a value is missing or not."""
    for number, content in enumerate((lines(), with_wage(""))):
        file = write(content)
        command = f"protect --data {file} --promise file,games=0 --eta 0.1 --drop-missing --allow-known-people"
        assert leakbound(f"{command} --ledger {number} --out out{number}").code == 0
        public = json.loads(Path(f"out{number}/release.json").read_text())["about"]
        owner = json.loads(Path(f"out{number}/owner/private.json").read_text())["about"]
        rule = (
            "rows with a missing value in a column that is used are left out; whether one is depends on its own values "
            "alone"
        )
        assert public["notes"] == [rule]
        assert public["certificate"]["n"] == 40 - number
        assert owner["notes"] == [rule, *["1 of 40 rows has a missing value, and is left out"] * number]


def test_the_numbers_are_those_of_the_file_without_the_rows(leakbound) -> None:
    content = with_wage("")
    command = "calibrate --promise file,games=0 --eta 0.1"
    left_out = leakbound(f"{command} --data {write(content)} --drop-missing --json")
    without = leakbound(f"{command} --data {write(content[:4] + content[5:])} --json")
    first, second = (json.loads(left.out)["about"]["planned"] for left in (left_out, without))
    assert first == second


def test_a_table_asks_its_own_columns_alone(leakbound) -> None:
    table = "--statistic table --by ill --levels ill=0,1 --promise file,games=0 --eta 0.1"
    left = leakbound(f"calibrate --data {write(with_wage(''))} {table} --drop-missing")
    assert "40 records" in left.out
    frame = pd.read_csv("people.csv")
    frame["ill"] = frame.ill.map({0: "no", 1: "yes"}).where(frame.index != 7)
    frame.to_csv("people.csv", index=False)
    table = table.replace("ill=0,1", "ill=no,yes")
    assert "1 record has no ill" in leakbound(f"calibrate --data people.csv {table}").err
    assert "39 records" in leakbound(f"calibrate --data people.csv {table} --drop-missing").out


def test_several_statistics_are_of_the_rows_that_are_complete_for_all_of_them(leakbound) -> None:
    """One of the wages, one of the ages: a row without either is in neither."""
    content = with_wage("")
    content[9] = "," + content[9].split(",", 1)[1]  # of the age of another person
    content = [f"{content[0]},left", *(f"{line}," for line in content[1:-1]), f"{content[-1]},1"]  # nobody uses it
    plan = """
        data = "people.csv"
        eta = 0.1
        drop_missing = true

        [promise.file]
        games = 0

        [[statistic]]
        statistic = "mean"
        drop = ["age", "ill", "left"]

        [[statistic]]
        statistic = "histogram"
        by = ["age"]
        set = { edges = [0, 40, 100] }
    """
    Path("plan.toml").write_text(plan)
    write(content)
    assert leakbound("protect --plan plan.toml --out whole").code == 0
    public, owner = (
        json.loads(Path("whole", name).read_text())["about"] for name in ("release.json", "owner/private.json")
    )
    assert public["certificate"]["n"] == 38
    rule = "rows with a missing value in a column that is used are left out"
    assert [note.startswith(rule) for note in public["notes"]].count(True) == 1
    assert "2 of 40 rows have a missing value, and are left out" in owner["notes"]
    left_out = json.loads(leakbound("calibrate --plan plan.toml --json").out)["about"]["planned"]
    write([line for place, line in enumerate(content) if place not in (4, 9)])
    assert json.loads(leakbound("calibrate --plan plan.toml --json").out)["about"]["planned"] == left_out


def test_several_statistics_under_differential_privacy_refuse_to_leave_rows_out(leakbound) -> None:
    plan = 'data = "people.csv"\neta = 0.1\ndrop_missing = true\n'
    Path("plan.toml").write_text(plan + 'statistic = ["mean", "sum"]\n[promise.anyone]\nranges = { wage = [0, 80] }\n')
    write(with_wage(""))
    refused(
        leakbound("protect --plan plan.toml"), "plan.toml: statistic 1: under promise anyone drop_missing is refused"
    )


def test_differential_privacy_refuses_to_leave_rows_out(leakbound) -> None:
    """N is public there; of all designs side by side it has the reason in place of its errors."""
    file = write(with_wage(""))
    ranges = "--range age=18:99,wage=0:80,ill=0:1"
    refused(
        leakbound(f"protect --data {file} --promise anyone --eta 0.1 {ranges} --drop-missing"),
        "protect: under promise anyone drop_missing is refused: n is public",
    )
    left = leakbound(f"calibrate --data {file} --eta 0.1 {ranges} --compare drawn,fits=40 --drop-missing")
    said = " ".join(left.out.split())
    assert "anyone: under promise anyone drop_missing is refused" in said
    assert "Recommended: promise = file. Rows with missing values are left out" in said


def test_a_later_release_without_the_rows_knows_the_same_records_again(leakbound) -> None:
    """A record has the same name in the ledger with and without its neighbours, so that the same one is left out."""
    write(with_wage(""))
    command = "protect --data people.csv --promise file,games=0 --eta 0.1 --budget 0.4 --ledger l"
    assert leakbound(f"{command} --statistic mean --drop wage --out first").code == 0
    assert leakbound(f"{command} --statistic mean --drop-missing --out second").code == 0
    second = json.loads(Path("second/release.json").read_text())["about"]["certificate"]
    assert (second["entry"]["number"], second["n"]) == (2, 39)
    fields: dict[str, Any] = {"data": "people.csv", "promise": "file", "eta": 0.1}
    requests = [
        request_of_file(CalibrationPlan, fields | more, "", Execution())
        for more in ({"drop": "wage"}, {"drop_missing": True})
    ]
    every, complete = (Units.of(request).names for request in requests)
    assert (np.delete(every, 3, axis=0) == complete).all()
