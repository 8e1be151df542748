"""``leakscope audit FILE``: what is no plan and no model is told the flag that it belongs to."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.cli.calling import caller, refused

ENDINGS = ".skops, .onnx, .joblib, .pkl, .pickle"
PRINTED = (".txt", ".xlsx", ".html", ".tex", ".docx", ".pdf", ".sav", ".dta", ".rds", ".DOCX", ".out", ".log")


@pytest.fixture
def leakscope(tmp_path, monkeypatch, capfd):
    """A command beside files of every kind."""
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"member": [1, 0], "score": [0.5, 0.1]}).to_csv("scores.csv", index=False)
    pd.DataFrame({"member": [1, 0], "score": [0.5, 0.1]}).to_csv("german.csv", index=False, sep=";", decimal=",")
    answers = pd.DataFrame({"member": [1, 0], "label": ["a", "b"], "p_a": [0.9, 0.5], "p_b": [0.1, 0.5]})
    answers.to_csv("answers.csv", index=False)
    answers.to_parquet("answers.parquet")
    pd.DataFrame({"age": [30, 40], "member": ["x", "y"]}).to_csv("people.csv", index=False)
    np.savez("signals.npz", member=np.ones((2, 3), dtype=bool), loss=np.ones((2, 3)))
    np.savez("people.npz", x=np.ones((2, 3)), y=np.ones(2))
    for name in ("model.bin", "weights.pt", "empty.csv", "broken.npz"):
        (tmp_path / name).write_bytes(b"")
    counts = pd.crosstab(pd.Series(["a", "a", "b"], name="ward"), pd.Series(["x", "y", "x"], name="illness"))
    counts.to_csv("counts.csv")
    pd.DataFrame({"ward": ["a", "b"], "mean": [1.5, 2.25], "max": [3, 9]}).to_csv("means.csv", index=False)
    for ending in PRINTED:
        (tmp_path / f"result{ending}").write_text("        OLS Regression Results\nx 0.5 0.1\n", encoding="utf-8")
    (tmp_path / "images").mkdir()
    return caller(monkeypatch, capfd)


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("scores.csv", "scores.csv holds scores of an attack: write --scores scores.csv"),
        ("german.csv", "german.csv holds scores of an attack: write --scores german.csv"),
        ("answers.csv", "answers.csv holds the probabilities of a trained model: write --probabilities answers.csv"),
        ("answers.parquet", "answers.parquet holds the probabilities of a trained model: write --probabilities"),
        ("signals.npz", "signals.npz holds signals: write --signals signals.npz"),
        ("people.npz", "people.npz holds data: write --data people.npz --label COLUMN"),
        ("people.csv", "people.csv holds data: write --data people.csv --label COLUMN"),
        ("empty.csv", "empty.csv holds data: write --data empty.csv"),
        ("broken.npz", "broken.npz holds data: write --data broken.npz"),
        ("gone.csv", "gone.csv: no such file"),
        ("images", "images is a folder: write --data images"),
        ("weights.pt", "weights.pt has the weights of a network: write --model module:function --weights weights.pt"),
        (
            "model.bin --members people.csv --others people.csv --label age",
            f"model.bin: a trained model ends in {ENDINGS}; rename the file by what wrote it",
        ),
        (
            "nomodel --members people.csv --others people.csv --label age",
            f"nomodel: no such file; a plan ends in .toml, a trained model in {ENDINGS}, and an estimator",
        ),
        ("RandomForestClassifier", "RandomForestClassifier: no such file; a plan ends in .toml"),
        (
            "sklearn.tree:DecisionTreeClassifier",
            "sklearn.tree:DecisionTreeClassifier is an import path: write --model sklearn.tree:DecisionTreeClassifier",
        ),
        ("gone.toml", "gone.toml: no such plan file"),
        ("counts.csv", "counts.csv is neither a plan nor a model. If it is a result, such as a table of counts"),
        ("means.csv", "means.csv is neither a plan nor a model. If it is a result, such as a table of counts"),
        *((f"result{ending}", f"result{ending} is neither a plan nor a model, and leakscope") for ending in PRINTED),
    ],
)
def test_what_was_meant(leakscope, typed, line):
    refused(leakscope(f"audit {typed}"), line)


def test_a_plan_of_any_name_is_read(leakscope, tmp_path):
    (tmp_path / "plan.txt").write_text('dataset = "wine"\nn_models = 1\nn_modls = 3\n', encoding="utf-8")
    refused(leakscope("audit plan.txt"), "plan.txt: unknown key 'n_modls'")
