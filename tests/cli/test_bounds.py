"""``leakbound bound``: a command for each bound, what it prints, what it writes, what it refuses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leakbound.bounds import BOUNDS
from leakbound.plans import BOUND_PLANS
from tests.cli.calling import Left, caller


@pytest.fixture
def leakbound(tmp_path, monkeypatch, capfd, as_users_run_it) -> Callable[[str], Left]:
    """A command in an empty folder with one table."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"pay": rng.normal(20, 5, 30).round(1), "hours": rng.integers(1, 60, 30), "<b>": ["x", "y"] * 15}
    )
    frame.to_csv(tmp_path / "people.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return caller(monkeypatch, capfd)


@pytest.mark.parametrize("name", list(BOUNDS))
def test_options_are_the_fields_of_the_plan(leakbound, name: str, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    left = leakbound(f"bound {name} --help")
    assert left.code == 0
    options = set(re.findall(r"^│ (--[a-z-]+)", left.out, re.MULTILINE))
    fields = {f"--{field.replace('_', '-')}" for field in BOUND_PLANS[name].model_fields}
    assert fields <= options
    assert options - fields <= {"--out", "--records", "--publish", "--full", "--json", "--help"}


def test_numbers_are_printed_and_nothing_is_written(leakbound) -> None:
    left = leakbound("bound dp --epsilon 1 --delta 1e-5")
    assert left.code == 0
    assert "73.2" in left.out
    assert left.err == ""
    assert max(map(len, left.out.splitlines())) <= 100
    assert [path.name for path in Path().iterdir()] == ["people.csv"]


@pytest.mark.by_day("--records 6000")
@pytest.mark.parametrize("typed", ["--records 6000", "--records=6000"])
def test_epochs_of_dpsgd_with_the_number_of_records(leakbound, typed: str) -> None:
    """``--records`` is here how many there are; elsewhere it shows single ones."""
    left = leakbound(f"bound dpsgd --noise-multiplier 1 --epochs 3 --batch-size 60 {typed} --json")
    assert (left.code, left.err) == (0, "")
    found = json.loads(left.out)
    assert found["about"]["plan"]["records"] == 6000
    assert found["about"]["command"] == f"leakbound bound dpsgd --noise-multiplier 1 --epochs 3 --batch-size 60 {typed}"
    by_steps = json.loads(leakbound("bound dpsgd --noise-multiplier 1 --sample-rate .01 --steps 300 --json").out)
    assert found["findings"] == by_steps["findings"]


def test_the_number_of_records_is_in_the_panel_of_the_theorem(leakbound, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    theorem, _ = leakbound("bound dpsgd --help").out.split("─ Output ")
    assert "--records " in theorem


def test_json_and_nothing_else(leakbound) -> None:
    left = leakbound("bound gaussian --mu 1 --fpr 0.1 --fpr 0.2 --json")
    content = json.loads(left.out)
    assert content["schema"] == 1
    assert [each["operating_point"]["fpr"] for each in content["findings"] if each["quantity"] == "tpr"] == [0.2, 0.1]


def test_bounds_on_data_write_their_records_and_a_page(leakbound) -> None:
    left = leakbound("bound leakage --data people.csv --drop '<b>' --unit person")
    assert left.code == 0
    assert "leakbound: wrote leakbound-report/report.json" in left.err
    content = json.loads(Path("leakbound-report/report.json").read_text(encoding="utf-8"))
    assert len(content["records"]["score"]) == 30
    assert content["about"]["command"] == "leakbound bound leakage --data people.csv --drop '<b>' --unit person"
    page = Path("leakbound-report/report.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "<b>," not in page
    assert sorted(path.name for path in Path("leakbound-report").iterdir()) == [
        "report.html",
        "report.json",
        "run.json",
    ]


def test_another_folder_and_no_records(leakbound) -> None:
    assert leakbound("bound total --data people.csv --column hours --out there --no-records").code == 0
    assert Path("there/report.json").exists()
    assert not Path("leakbound-report").exists()
    assert leakbound("bound dp --epsilon 2 --out numbers").code == 0
    assert Path("numbers/report.html").exists()


def test_a_column_with_a_name_of_html(leakbound) -> None:
    left = leakbound("bound table --data people.csv --by '<b>'")
    assert left.code == 0
    assert "by <b>" not in Path("leakbound-report/report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("bound dp", "bound dp: give epsilon, or at_most to find it; got neither"),
        ("bound dp --epsilon -1", "bound dp: epsilon: Input should be greater than or equal to 0, got -1.0"),
        ("bound dp --epsilon 1 --delta 1", "bound dp: delta must be >= 0 and < 1, got 1"),
        ("bound dp --epsilon 1 --prior 0", "bound dp: prior must be > 0 and < 1, got 0"),
        ("bound dp --at-most accuracy=0.4", "at_most accuracy=0.4 is below the baseline accuracy, 0.5"),
        ("bound dp --epsilon nan", "bound dp: epsilon: Input should be greater than or equal to 0, got nan"),
        ("bound dp --epsilon much", "Invalid value for '--epsilon': "),
        ("bound dp --epsilon 1 --sigma 3", "No such option: --sigma"),
        (
            "bound dpsgd --noise-multiplier 1 --sample-rate 0.1",
            "bound dpsgd: give sample_rate and steps, or epochs, batch_size and records; got",
        ),
        ("bound total --column hours", "bound total: the key 'data' is missing"),
        ("bound total --data people.csv --column pya", "people.csv: no column 'pya' (did you mean 'pay'?); columns: "),
        ("bound total --data people.csv --column '<b>'", "not only numbers in <b>, as 'x' in record 0 of <b>, "),
        ("bound table --data nobody.csv --by a", "nobody.csv: no such file"),
        ("bound table --data people.csv --by hours --k 30", "k must be < the 30 records, got 30"),
        ("bound leakage --data people.csv --drop pay,hour", "people.csv: no column 'hour' (did you mean 'hours'?)"),
        ("bound leakage --data people.csv --out people.csv", "--out people.csv: people.csv is a file; give a folder"),
        ("bound pmp --data people.csv --clip 0 --scale 1", "bound pmp: clip: Input should be greater than 0, got 0.0"),
        ("bound gap --gap 2", ""),
        ("bound information --information -1", "bound information: information: Input should be greater than or"),
    ],
)
def test_one_line_for_what_cannot_be(leakbound, command: str, line: str) -> None:
    left = leakbound(command)
    assert left.code == 1
    assert left.out == ""
    assert left.err.startswith(f"leakbound: error: {line}")
    assert left.err.count("\n") == 1
    assert not Path("leakbound-report").exists()


def test_bare() -> None:
    done = subprocess.run([sys.executable, "-m", "leakbound", "bound", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    for name in BOUNDS:
        assert name in done.stdout
