"""``leakscope audit --attribute``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.calling import caller, refused


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 90, size=80), "sex": rng.choice(["f", "m"], size=80)})
    frame.assign(pay=rng.choice(["low", "high"], size=80), holes=np.where(frame["age"] > 80, np.nan, 1.0)).to_csv(
        "people.csv", index=False
    )
    np.savez("pens.npz", x=rng.normal(size=(60, 4)), label=rng.integers(2, size=60), writer=rng.integers(3, size=60))
    return tmp_path


TREE = "--model sklearn.tree:DecisionTreeClassifier --models 4 --jobs 1 --attack loss"


def test_an_attribute_is_guessed(table, monkeypatch, capfd) -> None:
    run = caller(monkeypatch, capfd)
    left = run(f"audit --data people.csv --label pay --drop holes --attribute sex {TREE} --out out")
    assert left.code == 0
    assert left.out.startswith("How well does DecisionTreeClassifier give away sex of the records in the data?")
    report = json.loads((table / "out" / "report.json").read_text())
    assert (report["about"]["kind"], report["about"]["plan"]["attribute"]) == ("attribute", "sex")
    assert "give away sex" in (table / "out" / "report.html").read_text()
    left = run(f"audit --data people.csv --label pay --drop holes --attribute age --bins 3 {TREE} --json --out out")
    assert json.loads(left.out)["about"]["releases"][0]["values"] == 3
    left = run(f"audit --data pens.npz --label label --attribute writer {TREE} --json --out out")
    assert json.loads(left.out)["about"]["releases"][0]["values"] == 3


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--attribute sexx", "attribute: no column 'sexx' (did you mean 'sex'?)"),
        ("--attribute pay", "attribute 'pay' is the label itself"),
        ("--attribute holes", "attribute 'holes' is missing at "),
        ("--attribute sex --bins 2", "attribute 'sex' cannot be binned"),
        ("--bins 2", "audit: bins cut the numbers of an attribute"),
        ("--attribute sex --claim eta=0.1", "a claim is about membership"),
        ("--attribute sex --dry-run", "--dry-run tells the cost of an audit of membership"),
    ],
)
def test_bad_attributes_are_refused_in_one_line(table, monkeypatch, capfd, words, line) -> None:
    refused(caller(monkeypatch, capfd)(f"audit --data people.csv --label pay {words} {TREE}"), line)


def test_signals_and_trained_models_take_no_attribute(table, monkeypatch, capfd) -> None:
    run = caller(monkeypatch, capfd)
    refused(run("audit --signals s.npz --attribute sex"), "an audit with --signals takes no --attribute")
    refused(run("audit --predict a:b --attribute sex"), "an audit with --predict takes no --attribute")
