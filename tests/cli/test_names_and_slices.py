"""--id and --slice, on the command line and in a plan."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from leakbound.auditing import baseline
from leakbound.reports import Report
from tests.cli.calling import caller, refused

TREE = "--model sklearn.tree:DecisionTreeClassifier --n-models 12 --attack loss --n-jobs 1"


@pytest.fixture
def leakbound(tmp_path, monkeypatch, capfd, without_pages):
    """A command beside a table of people."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(baseline, "PLANTED", 0)  # the smallest shift takes two thirds of the time
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "customer_id": [f"P-{1000 + place}" for place in range(120)],
            "age": rng.integers(18, 80, 120),
            "town": rng.choice(["Bern", "Chur"], 120),
            "income": rng.choice(["high", "low"], 120),
        }
    )
    people.to_csv("people.csv", index=False)
    people[:60].to_csv("train.csv", index=False)
    people[60:].to_csv("test.csv", index=False)
    return caller(monkeypatch, capfd)


def names_of(report: Report) -> set[str]:
    return {each.scope.name for each in report.findings if each.scope.kind == "slice"}


def test_flags(leakbound):
    said = leakbound(
        f"audit --data people.csv --label income --drop town --id customer_id --slice town --slice label --full {TREE}"
    )
    assert said.code == 0
    report = Report.from_json("leakbound-report/report.json")
    assert report.record_table["name"][0] == f"P-{1000 + report.record_table['record'][0]}"
    assert names_of(report) == {"town = Bern", "town = Chur", "label = high", "label = low"}
    assert report.about.plan["id"] == "customer_id"
    assert report.about.plan["game"] == {"half_split": {"slices": ["town", "label"]}}
    assert "Slice by slice" in said.out
    for name in names_of(report):
        assert f"\n {name} " in said.out
    assert not [note for note in report.about.notes if "customer_id" in note]


def test_a_plan_without_records(leakbound, tmp_path):
    (tmp_path / "plan.toml").write_text(
        'data = "people.csv"\nlabel = "income"\nid = "customer_id"\nn_models = 12\nattacks = ["loss"]\n'
        '[game.half_split]\nslices = "age"\n'
        '[[model]]\nspec = "sklearn.tree:DecisionTreeClassifier"\n',
        encoding="utf-8",
    )
    for flag in ("--publish", "--no-records"):
        said = leakbound(f"audit plan.toml --n-jobs 1 {flag}")
        assert said.code == 0
        written = (tmp_path / "leakbound-report" / "report.json").read_text(encoding="utf-8")
        assert "P-1" not in written + said.out
        assert "age = quarter 4 of 4" in written


@pytest.mark.slow
def test_an_identifier_is_suggested_as_the_name(leakbound):
    said = leakbound(f"audit --data people.csv --label income {TREE}")
    assert said.code == 1
    assert "the values of customer_id occur once" in said.err
    assert said.err.endswith("names of the records are given as id (--id)\n")
    people = pd.read_csv("people.csv")
    people.assign(customer_id=people["customer_id"].str[2:]).to_csv("people.csv", index=False)
    assert leakbound(f"audit --data people.csv --label income {TREE}").code == 0
    notes = Report.from_json("leakbound-report/report.json").about.notes
    (said,) = [note for note in notes if note.startswith("customer_id")]
    assert said.endswith(
        "another value in each record; if it is an identifier, it is no feature: give it as id (--id customer_id), or "
        "leave it out (--drop customer_id; in Python .drop(columns=['customer_id']))"
    )


def test_a_trained_model(leakbound, tmp_path):
    (tmp_path / "trained_on_names.py").write_text(
        "import pandas as pd\nfrom sklearn.tree import DecisionTreeClassifier\n"
        "train = pd.read_csv('train.csv')\n"
        "model = DecisionTreeClassifier(random_state=0).fit(train[['age']], train['income'])\n"
        "def predict(x):\n    return model.predict_proba(x)\n",
        encoding="utf-8",
    )
    said = leakbound(
        "audit model --predict trained_on_names:predict --members train.csv --others test.csv --label income "
        "--drop town --id customer_id --slice town --attack loss --n-jobs 1"
    )
    assert said.code == 0, said.err
    report = Report.from_json("leakbound-report/report.json")
    assert names_of(report) == {"town = Bern", "town = Chur"}
    assert all(each.detail["records"] for each in report.findings if each.scope.kind == "slice")


def test_scores_with_their_ids(leakbound):
    rng = np.random.default_rng(1)
    member = rng.random(240) < 0.5
    frame = pd.DataFrame({"id": [f"P-{place}" for place in range(60)] * 4, "model": np.repeat(range(4), 60)})
    frame.assign(member=member, score=rng.normal(member)).to_csv("scores.csv", index=False)
    assert leakbound("audit scores scores.csv --n-jobs 1").code == 0
    assert Report.from_json("leakbound-report/report.json").record_table["name"][3] == "P-3"


@pytest.mark.slow
def test_probabilities_with_their_ids_and_records(leakbound):
    """A table of answers is read as one of scores is: its own ids, or the records behind it with their columns."""
    rng = np.random.default_rng(1)
    p_high = rng.integers(0, 11, 120) / 10
    answers = pd.DataFrame({"member": np.arange(120) % 2, "p_high": p_high, "p_low": 1 - p_high})
    answers["label"] = pd.read_csv("people.csv")["income"]
    answers.to_csv("answers.csv", index=False)
    answers.assign(id=[f"R-{row}" for row in range(120)]).to_csv("named.csv", index=False)
    left = leakbound("audit model --probabilities named.csv --n-jobs 1")
    assert left.code == 0, left.err
    command = "audit model --probabilities answers.csv --n-jobs 1 --id customer_id --slice town"
    left = leakbound(f"{command} --data people.csv --label income")
    assert left.code == 0, left.err
    report = Report.from_json("leakbound-report/report.json")
    assert names_of(report) == {"town = Bern", "town = Chur"}
    assert "not tested: the records were not given" not in left.out
    refused(leakbound(command), "--id is of the records behind the probabilities; name their file by --data")
    refused(leakbound(f"{command} --data train.csv"), "--data has 60 records, the probabilities have 120 points")


def test_rounded_probabilities_are_noted(leakbound):
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1, 1, 1], 120).round(2)
    frame = pd.DataFrame(p, columns=["p_a", "p_b", "p_c"]).assign(label=rng.choice(list("abc"), 120))
    frame.assign(member=np.arange(120) % 2).to_csv("answers.csv", index=False)
    left = leakbound("audit model --probabilities answers.csv --n-jobs 1")
    assert left.code == 0, left.err
    assert (
        "The probabilities are rounded to 2 digits" in Report.from_json("leakbound-report/report.json").about.notes[0]
    )


@pytest.mark.slow
def test_signals_with_their_records(leakbound):
    rng = np.random.default_rng(2)
    member = rng.random((12, 120)) < 0.5
    np.savez("signals.npz", member=member, loss=rng.exponential(2.0 - member))
    command = "audit signals signals.npz --attack loss --n-jobs 1 --id customer_id --slice town"
    assert leakbound(f"{command} --data people.csv --label income").code == 0
    report = Report.from_json("leakbound-report/report.json")
    assert report.record_table["name"][5] == "P-1005"
    assert names_of(report) == {"town = Bern", "town = Chur"}
    refused(leakbound(command), "--id is of the records behind the signals; name their file by --data")


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ("--id custommer_id", "people.csv: no column 'custommer_id' (did you mean 'customer_id'?)"),
        ("--slice customer_id", "slice 'customer_id' has another value in each record; name a column of numbers"),
        ("--slice twon", "slice: no column 'twon' (did you mean 'town'?)"),
        (
            "--slice town --game average_datum",
            "--slice is of the games half_split and fresh; average_datum has: references, prior",
        ),
        (
            "--slice town --game attribute,column=age,bins=2",
            "--slice is of the games half_split and fresh; attribute has: column",
        ),
    ],
)
def test_what_is_refused(leakbound, flags, line):
    refused(leakbound(f"audit --data people.csv --label income {TREE} {flags}"), line)


@pytest.mark.slow
def test_an_attribute_is_not_guessed_from_the_names(leakbound):
    said = leakbound(
        "audit --data people.csv --label income --id customer_id --game attribute,column=town --n-jobs 1 --n-models 4 "
        "--model sklearn.tree:DecisionTreeClassifier --attack loss"
    )
    assert said.code == 0, said.err
    assert "P-1" not in said.out


def test_bounds_name_the_most_exposed_record(leakbound, tmp_path):
    said = leakbound("bound total --data people.csv --column age --id customer_id")
    assert said.code == 0
    report = Report.from_json("leakbound-report/report.json")
    first = report.record_table["record"][0]
    assert list(report.record_table)[:2] == ["record", "name"]
    assert report.record_table["name"][0] == f"P-{1000 + first}"
    assert f"Most exposed record: P-{1000 + first}" in " ".join(said.out.split())
    assert leakbound("bound total --data people.csv --column age --id customer_id --publish").code == 0
    assert "P-1" not in (tmp_path / "leakbound-report" / "report.json").read_text(encoding="utf-8")
