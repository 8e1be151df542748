"""``leakbound protect --plan`` with several statistics, and a second design, as typed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.calling import Left, caller, refused

pytestmark = pytest.mark.usefixtures("as_users_run_it", "without_pages")
PLAN = """
data = "people.csv"
promise = "file,games=0"
eta = 0.05

[[statistic]]
statistic = "mean"
drop = ["town"]
weight = 2

[[statistic]]
statistic = "table"
by = ["town"]
levels = { town = ["Bonn", "Ulm"] }
"""


@pytest.fixture
def leakbound(tmp_path, monkeypatch, capfd) -> Callable[[str], Left]:
    """A command in a folder with a file of data and a plan."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"town": ["Bonn", "Ulm", "Ulm"] * 20, "wage": rng.uniform(5, 70, 60).round(2)})
    frame.to_csv("people.csv", index=False)
    Path("plan.toml").write_text(PLAN)
    return caller(monkeypatch, capfd)


def content(folder: str) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(Path(folder).rglob("*.json"))}


class TestPlan:
    def test_one_folder_with_one_certificate(self, leakbound) -> None:
        left = leakbound("protect --plan plan.toml --n-jobs 1 --full --out survey")
        assert left.code == 0
        assert sorted(content("survey")) == ["owner/private.json", "release.json"]
        about = json.loads(Path("survey/release.json").read_text())["about"]
        assert [each["name"] for each in about["statistics"]] == ["mean", "table by town"]
        assert [each["weight"] for each in about["statistics"]] == [2, 1]
        assert [row["statistic"] for row in about["values"]] == ["mean", "table by town", "table by town"]
        assert about["certificate"]["eta"] == about["certificate"]["entry"]["budget"] == 0.05
        headings = [line.strip() for line in left.out.splitlines()]
        assert {"Mean", "Table by town"} <= set(headings)
        owner = json.loads(Path("survey/owner/private.json").read_text())["about"]
        assert owner["command"] == "leakbound protect --plan plan.toml"

    def test_the_same_command_gives_the_same_bytes(self, leakbound) -> None:
        assert leakbound("protect --plan plan.toml --n-jobs 1 --out survey").code == 0
        first = content("survey")
        shutil.rmtree("survey")
        assert leakbound("protect --plan plan.toml --n-jobs 1 --out survey").code == 0
        assert content("survey") == first

    def test_flags_replace_what_all_statistics_share(self, leakbound) -> None:
        left = leakbound("protect --plan plan.toml --n-jobs 1 --eta 0.02 --budget 0.1 --out survey")
        assert left.code == 0
        certificate = json.loads(Path("survey/release.json").read_text())["about"]["certificate"]
        assert (certificate["eta"], certificate["entry"]["budget"]) == (0.02, 0.1)

    def test_a_plan_of_one_statistic(self, leakbound) -> None:
        Path("one.toml").write_text(PLAN.split("[[statistic]]")[0] + 'statistic = "mean"\ndrop = ["town"]\n')
        assert leakbound("calibrate --plan one.toml --n-jobs 1").code == 0
        assert leakbound("protect --plan one.toml --n-jobs 1 --out mean").code == 0
        flags = "--data people.csv --drop town --promise file,games=0 --eta 0.05"
        assert leakbound(f"protect {flags} --n-jobs 1 --out again").code == 0
        one, other = (json.loads(Path(folder, "release.json").read_text()) for folder in ("mean", "again"))
        assert one["about"]["values"] == other["about"]["values"]

    def test_calibrate(self, leakbound) -> None:
        left = leakbound("calibrate --plan plan.toml --n-jobs 1 --full")
        assert left.code == 0
        assert "on seeing all 2 statistics of this release" in " ".join(left.out.split())
        assert not Path("people.csv.ledger").exists()

    def test_declare(self, leakbound) -> None:
        left = leakbound("protect --plan plan.toml --declare")
        assert (left.code, left.out) == (0, "people.csv.ledger: 1 declared, 0 released\n")


LINES = {
    "--plan none.toml": "none.toml: no such plan file",
    "--plan plan.toml --statistic sum": "plan.toml has several statistics: --statistic belongs to one of them, in its "
    "table",
    "--plan plan.toml --by town": "plan.toml has several statistics: --by belongs to one of them, in its table",
    "--plan plan.toml --promise drawn": "plan.toml: statistic 1: promise drawn releases one statistic at a time; "
    "several take promise = anyone or file",
}


@pytest.mark.parametrize("words", LINES)
def test_what_is_wrong_is_one_line_and_nothing_is_written(leakbound, words) -> None:
    refused(leakbound(f"protect {words} --n-jobs 1"), LINES[words])
    assert sorted(path.name for path in Path().iterdir()) == ["people.csv", "plan.toml"]


def test_a_plan_without_a_promise(leakbound) -> None:
    Path("plan.toml").write_text(PLAN.replace('promise = "file,games=0"\n', ""))
    for verb in ("protect", "calibrate"):
        refused(leakbound(f"{verb} --plan plan.toml --n-jobs 1"), "choose what is promised: ")


def test_a_second_design(leakbound) -> None:
    counts = "--data people.csv --statistic table --by town --levels town=Bonn,Ulm --promise anyone --eta 0.05"
    assert leakbound(f"protect {counts} --n-jobs 1 --date 2027-01-04 --out counts").code == 0
    refused(
        leakbound("protect --plan plan.toml --n-jobs 1 --out survey"),
        "these data were released under promise anyone (release 1 of 2027-01-04 of people.csv.ledger), and no joint "
        "number is promised over two promises: choose promise anyone, or say another_promise "
        "(--another-promise) to release under promise file all the same, in a ledger of its own",
    )
    assert not Path("survey").exists()
    left = leakbound("protect --plan plan.toml --n-jobs 1 --another-promise --full --out survey")
    assert left.code == 0
    others = json.loads(Path("survey/release.json").read_text())["about"]["certificate"]["others"]
    entry = json.loads(Path("counts/release.json").read_text())["about"]["certificate"]["entry"]
    assert others == [{"design": "dp", "date": "2027-01-04", "number": 1, "digest": entry["digest"]}]
    assert "Promise anyone, release 1 of 2027-01-04" in " ".join(left.out.split())
    assert leakbound(f"protect {counts} --n-jobs 1 --date 2027-01-04 --out again").code == 0
    assert Path("again/release.csv").read_bytes() == Path("counts/release.csv").read_bytes()


def test_another_ledger_in_the_folder(leakbound) -> None:
    """Records are known by their values or by their identifiers; where they are not, a line names that ledger."""
    frame = pd.read_csv("people.csv")[["wage"]].assign(person=range(60))
    others = frame[20:].assign(wage=frame.wage + 0.001)
    for name, rows in (("first.csv", frame), ("second.csv", frame[20:]), ("others.csv", others)):
        rows.to_csv(name, index=False)
    promise = "--promise file,games=0 --eta 0.02 --budget 0.1 --n-jobs 1"
    left = leakbound(f"protect --data first.csv --id person {promise} --out first")
    assert (left.code, "the folder of the ledger has others" in left.err) == (0, False)
    ways = (
        " of its budget of 0.1 (promise file): join it by ledger (--ledger) first.csv.ledger; if these are "
        "other people or stay apart, say allow_known_people (--allow-known-people), which the certificate names\n"
    )
    for words, what in (
        ("second.csv --drop person", "records"),
        ("others.csv --id person", "identifiers"),
    ):
        left = leakbound(f"protect --data {words} {promise} --out again")
        refused(left, f"40 of the 40 {what} are in first.csv.ledger too, which has spent ")
        assert left.err.endswith(ways)
        assert not Path("again").exists()
        assert not list(Path().glob("[so]*.ledger"))
    left = leakbound(f"protect --data others.csv --drop person {promise} --out others")
    assert left.code == 0
    assert "the folder of the ledger has others, first.csv.ledger, without these records: if one of " in left.err


def test_tables_rules_and_csv_are_those_of_each_statistic(leakbound) -> None:
    text = PLAN.replace('by = ["town"]', 'by = ["town"]\nnon_negative = true\nrules = { minimum = 30 }')
    Path("plan.toml").write_text(text)
    left = leakbound("protect --plan plan.toml --n-jobs 1 --out survey")
    assert left.code == 0
    public, owner = (
        json.loads(Path("survey", name).read_text())["about"] for name in ("release.json", "owner/private.json")
    )
    mean, table = public["statistics"]
    assert (mean["table"], public["table"]) == (None, None)
    assert [cell["levels"] for cell in table["table"]["cells"]] == [["Bonn"], ["Ulm"], [None]]
    assert table["table"]["cells"][-1]["value"] == 59  # all but one
    assert [len(each["rules"]) for each in public["statistics"]] == [0, 0]
    (rule,) = owner["statistics"][1]["rules"]
    assert (rule["rule"], rule["failing"]) == ("minimum_frequency", ["Bonn"])
    rows = Path("survey/release.csv").read_text().splitlines()
    assert rows[0] == "statistic,name,value,noise_std,low,high,simple_random_sampling_std"
    names = [row.split(",")[:2] for row in rows[1:]]
    assert names == [["mean", "mean of wage"], *(["table by town", name] for name in ("Bonn", "Ulm", "Total"))]


def test_compare_is_for_one_statistic(leakbound) -> None:
    line = (
        "plan.toml: statistic 1: compare shows what each promise would cost for one statistic; leave it out for several"
    )
    refused(leakbound("protect --plan plan.toml --compare all --n-jobs 1"), line)
