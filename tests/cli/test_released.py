"""``leakbound calibrate`` and ``leakbound protect`` from a table to a release: what is told, and what is not."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator

from leakbound.reports import Report
from tests.cli.calling import Left, caller, refused

SCHEMA = json.loads(resources.files("leakbound.reports").joinpath("schema.json").read_text(encoding="utf-8"))

OWN = "import numpy as np\n\n\ndef middle(x):\n    return np.median(np.asarray(x), axis=0)\n"


@pytest.fixture
def people(tmp_path, monkeypatch, capfd, as_users_run_it) -> Callable[[str], Left]:
    """The command with a table of people and a function of the user's."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"pay": rng.normal(20, 5, 60).round(1), "hours": rng.integers(1, 60, 60)})
    frame.to_csv("people.csv", index=False)
    frame.assign(region="north").to_csv("regions.csv", index=False)
    Path("own.py").write_text(OWN, encoding="utf-8")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "own", raising=False)
    return caller(monkeypatch, capfd)


def test_calibrate(people) -> None:
    left = people("calibrate --data people.csv --promise drawn,games=0 --eta 0.1 --json")
    assert (left.code, left.err) == (0, "")
    content = json.loads(left.out)
    Draft202012Validator(SCHEMA).validate(content)
    assert content["about"]["values"] == []
    assert content["about"]["command"] == "leakbound calibrate --data people.csv --promise drawn,games=0 --eta 0.1"
    assert not Path("leakbound-report").exists()


def test_a_release_is_its_files(people) -> None:
    left = people("protect --data people.csv --promise drawn,games=0 --eta 0.1 --out a")
    report, owner = Report.from_json("a/release.json"), Report.from_json("a/owner/private.json")
    wrote = "leakbound: wrote a: release.json, release.html and release.csv for publication, owner/ for you alone\n"
    assert left == (0, report.table() + "\n", wrote)
    assert Path("a/release.html").read_text(encoding="utf-8") == report.to_html()
    assert Path("a/owner/private.html").read_text(encoding="utf-8") == owner.to_html()
    assert (report.about.audience, owner.about.audience) == ("public", "owner")
    assert report.about.values[0].value == owner.about.values[0].value
    assert [row.name for row in report.about.values] == ["mean of pay", "mean of hours"]
    assert report.about.insecure_seed is False


@pytest.mark.slow
def test_each_release_has_a_draw_of_its_own_and_a_seed_is_told_nowhere(people) -> None:
    release = "protect --data people.csv --promise drawn,games=0 --eta 0.1"
    for name in ("a", "b"):
        assert people(f"{release} --out {name}").code == 0
    for name in ("c", "d"):
        assert people(f"{release} --out {name} --insecure-seed 8642013579").code == 0
    a, b, c, d = (Path(f"{name}/release.json").read_text(encoding="utf-8") for name in "abcd")
    assert json.loads(a)["about"]["values"] != json.loads(b)["about"]["values"]
    assert c == d
    assert json.loads(c)["about"]["insecure_seed"] is True
    assert "8642013579" not in "".join(path.read_text(encoding="utf-8") for path in Path("c").rglob("*.*"))


@pytest.mark.slow
def test_the_calibration_is_kept_and_the_draw_is_not(people) -> None:
    words = "--data people.csv --statistic own:middle --promise drawn,fits=200,games=0 --eta 0.2 --n-jobs 1"
    assert people(f"calibrate {words}").code == 0
    kept = sorted(Path("leakbound-report/store").iterdir())
    assert kept != []
    assert people(f"protect {words}").code == 0
    assert sorted(Path("leakbound-report/store").iterdir()) == kept


@pytest.mark.slow
def test_a_ledger_remembers_and_is_told_nowhere(people) -> None:
    words = "--data people.csv --promise drawn,games=0 --eta 0.1 --ledger my-secrets.json"
    for statistic in ("mean", "sum"):
        assert people(f"protect {words} --declare --statistic {statistic}").code == 0
    assert [path.name for path in Path().glob("leakbound*")] == []
    for statistic in ("mean", "sum"):
        assert people(f"protect {words} --statistic {statistic} --out {statistic}").code == 0
    assert Path("my-secrets.json").stat().st_mode & 0o777 == 0o600
    written = [path for name in ("mean", "sum") for path in Path(name).rglob("*.*")]
    assert len(written) == 10
    assert not any("my-secrets" in path.read_text(encoding="utf-8") for path in written)


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ("--data nobody.csv", "nobody.csv: no such file"),
        ("--data people.csv --drop pya", "people.csv: no column 'pya' (did you mean 'pay'?)"),
        ("--data people.csv --promise drawn,k=60", "k must be from 1 to n - 1 = 59, got 60"),
        (
            "--data people.csv --promise drawn,noise=laplace",
            "noise laplace is for one number, the statistic has 2; take gaussian",
        ),
        ("--data people.csv --statistic own:nothing", "own:nothing: cannot be imported: "),
        ("--data regions.csv --drop pay --drop hours", "not only numbers in region, as "),
        ("--data people.csv --statistic quantiles --set bins=2", "unknown parameter of quantiles 'bins'; known: "),
        ("--data people.csv --ledger people.csv", "people.csv is open to others"),
    ],
)
def test_one_line_for_what_cannot_be(people, flags: str, line: str) -> None:
    before = sorted(Path().iterdir())
    refused(people(f"protect --promise drawn,games=0 --eta 0.1 {flags}"), line)
    assert sorted(Path().iterdir()) == before
