"""Model files on the command line: what was trusted is in the report, and what a file must not hold is refused."""

from __future__ import annotations

import json
import zipfile

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from tests.cli.calling import caller, draw_no_pages, refused

SIDES = "--members in.csv --others out.csv --label ill --id case --attack loss"


@pytest.fixture
def leakbound(tmp_path, monkeypatch, capfd):
    """A command beside a tree in a pickle, with its members and others."""
    monkeypatch.chdir(tmp_path)
    draw_no_pages(monkeypatch)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"case": np.arange(700_001, 700_081), "age": rng.normal(50, 9, 80), "days": rng.normal(size=80)}
    )
    table["ill"] = rng.integers(0, 2, 80)
    table[:40].to_csv("in.csv", index=False)
    table[40:].to_csv("out.csv", index=False)
    tree = DecisionTreeClassifier(random_state=0).fit(table[["age", "days"]][:40], table["ill"][:40])
    joblib.dump(tree, "tree.joblib")
    tree.cases_ = table["case"][:40].tolist()
    joblib.dump(tree, "spy.joblib")
    return caller(monkeypatch, capfd)


def test_that_a_pickle_was_trusted_is_in_the_report(leakbound, tmp_path):
    left = leakbound(f"audit model tree.joblib {SIDES} --unpickle-trusted")
    assert left.code == 0
    folder = tmp_path / "leakbound-report"
    about = json.loads((folder / "report.json").read_text())["about"]
    trusted = "tree.joblib was read as a pickle, which runs the code in it, on the statement that its author is trusted"
    assert trusted in about["notes"]
    assert about["command"].startswith("leakbound audit model tree.joblib --members in.csv")
    assert "--unpickle-trusted" in about["command"]
    assert trusted in " ".join(left.out.split())


def test_members_and_others_that_are_exchanged_end_with_exit_code_3(leakbound):
    sides = SIDES.replace("in.csv", "x").replace("out.csv", "in.csv").replace("x", "out.csv", 1)
    left = leakbound(f"audit model tree.joblib {sides} --unpickle-trusted --policy auc=0.6")
    assert left.code == 3
    assert "the policy says ask" in left.err
    assert "found no leak" not in left.out


@pytest.mark.slow
def test_case_numbers_in_a_model_are_found(leakbound, tmp_path):
    left = leakbound(f"audit model spy.joblib {SIDES} --unpickle-trusted --policy research --publish")
    assert left.code == 3
    assert "700001" not in left.out
    published = (tmp_path / "leakbound-report" / "report.json").read_text()
    assert "7000" not in published
    (decision,) = json.loads(published)["about"]["decisions"]
    (check,) = [check for check in decision["checks"] if check["check"] == "stores_records"]
    assert (check["outcome"], check["reason"]["id"]) == ("not_kept", "holds_records")


@pytest.mark.slow
def test_types_that_were_trusted_are_in_the_report(leakbound, tmp_path, tmp_path_factory, monkeypatch):
    with zipfile.ZipFile("tree.skops", "w") as archive:
        archive.writestr("schema.json", "{}")

    # what is called of skops, where the process of a model finds it
    installed = tmp_path_factory.mktemp("installed") / "skops"
    installed.mkdir()
    (installed / "__init__.py").write_text("")
    (installed / "io.py").write_text(
        "import importlib, joblib\n"
        "def get_untrusted_types(*, file): return ['mine.Tree']\n"
        "def load(path, trusted):\n"
        "    importlib.import_module('mine')\n"
        "    return joblib.load('tree.joblib')\n"
    )
    monkeypatch.syspath_prepend(installed.parent)
    (tmp_path / "mine.py").write_text("open('imported', 'w').close()")
    refused(
        leakbound(f"audit model tree.skops {SIDES}"),
        "tree.skops holds types that skops does not know; if you trust them",
    )
    assert not (tmp_path / "imported").exists()
    assert leakbound(f"audit model tree.skops {SIDES} --trust mine.Tree").code == 0
    assert (tmp_path / "imported").exists()  # from this folder, as its name was typed
    about = json.loads((tmp_path / "leakbound-report" / "report.json").read_text())["about"]
    assert "tree.skops was read on the statement that these types are trusted: mine.Tree" in about["notes"]


def test_data_beside_a_model_file_are_told_their_flags(leakbound):
    refused(
        leakbound("audit model tree.joblib --data in.csv --label ill --unpickle-trusted"),
        "--data has the records of --probabilities; a trained model takes its training data by --members, and other ",
    )
