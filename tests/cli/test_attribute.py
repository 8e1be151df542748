"""``leakbound audit --attribute``."""

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


TREE = "--model sklearn.tree:DecisionTreeClassifier --n-models 4 --n-jobs 1 --attack loss"


@pytest.mark.slow
def test_an_attribute_is_guessed(table, monkeypatch, capfd) -> None:
    run = caller(monkeypatch, capfd)
    left = run(f"audit --data people.csv --label pay --drop holes --game attribute,column=sex {TREE} --out out")
    assert left.code == 0
    assert left.out.startswith("How well does DecisionTreeClassifier reveal sex of the records in the data?")
    report = json.loads((table / "out" / "report.json").read_text())
    assert (report["about"]["kind"], report["about"]["plan"]["game"]) == ("attribute", {"attribute": {"column": "sex"}})
    assert "reveal sex" in (table / "out" / "report.html").read_text()
    left = run(
        f"audit --data people.csv --label pay --drop holes --game attribute,column=age,bins=3 {TREE} --json --out out"
    )
    assert json.loads(left.out)["about"]["releases"][0]["values"] == 3
    left = run(f"audit --data pens.npz --label label --game attribute,column=writer {TREE} --json --out out")
    assert json.loads(left.out)["about"]["releases"][0]["values"] == 3


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--game attribute,column=sexx", "attribute: no column 'sexx' (did you mean 'sex'?)"),
        ("--game attribute,column=pay", "attribute 'pay' is the label itself"),
        ("--game attribute,column=holes", "attribute 'holes' is missing at "),
        ("--game attribute,column=sex,bins=2", "attribute 'sex' cannot be binned"),
        ("--bins 2", "audit has no --bins; use --game attribute,bins=..."),
        ("--game attribute,column=sex --claim eta=0.1", "a claim is about membership"),
        ("--game attribute,column=sexx --dry-run", "attribute: no column 'sexx' (did you mean 'sex'?)"),
        ("--game attribute,column=sex --claim eta=0.1 --dry-run", "a claim is about membership"),
    ],
)
def test_bad_attributes_are_refused_in_one_line(table, monkeypatch, capfd, words, line) -> None:
    refused(caller(monkeypatch, capfd)(f"audit --data people.csv --label pay {words} {TREE}"), line)


@pytest.mark.slow
@pytest.mark.usefixtures("without_pages")
def test_people_with_several_rows_count_once(table, monkeypatch, capfd) -> None:
    frame = pd.read_csv("people.csv").drop(columns="holes")
    frame.assign(person=np.arange(80) // 4).to_csv("visits.csv", index=False)
    words = "--data visits.csv --label pay --game attribute,column=sex --group person"
    left = caller(monkeypatch, capfd)(f"audit {words} {TREE} --out out")
    assert left.code == 0
    assert "The 80 attacked records are of 20 units, whose records are in or out together" in left.out
    assert json.loads((table / "out" / "report.json").read_text())["about"]["releases"][0]["attacked"] == 20


def test_a_dry_run_fits_one_model_and_one_forest(table, monkeypatch, capfd) -> None:
    left = caller(monkeypatch, capfd)(
        f"audit --data people.csv --label pay --drop holes --game attribute,column=sex --dry-run {TREE}"
    )
    assert left.code == 0
    _, first, _, imputed, release = left.out.splitlines()
    assert first == "people.csv: 80 points, 80 attacked, 0 set aside; sex has 2 values: 160 candidates"
    assert imputed.startswith("imputation, without any release: 4 models, ")
    assert release.startswith("DecisionTreeClassifier: 4 models, ")
    assert not (table / "leakbound-report").exists()


def test_signals_and_trained_models_take_no_attribute(table, monkeypatch, capfd) -> None:
    run = caller(monkeypatch, capfd)
    refused(run("audit signals s.npz --game attribute,column=sex"), "No such option: --game")
    refused(run("audit --attribute sex"), "audit has no --attribute; use --game attribute,column=...")
