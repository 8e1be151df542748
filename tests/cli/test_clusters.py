"""``leakbound fit``, ``audit --from-store``, ``--partial``, ``--cluster``: models made elsewhere are audited here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import leakbound as ls
from leakbound.auditing.api import fill_store
from leakbound.core.findings import Finding
from leakbound.files.signal_files import open_signals
from leakbound.plans import AuditPlan
from leakbound.reports.content import read
from leakbound.runtime import execution
from leakbound.runtime.store import Store
from tests.cli.calling import caller
from tests.results import of_the_result

PLAN = """
dataset = "wine"
n_models = 16
attacks = ["loss", "lira"]
[[model]]
spec = "sklearn.tree:DecisionTreeClassifier"
[[model]]
spec = "sklearn.naive_bayes:GaussianNB"
"""


@pytest.fixture
def leakbound(monkeypatch, capfd, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(PLAN)
    return caller(monkeypatch, capfd)


def result(folder: str) -> str:
    return of_the_result(Path(folder, "report.json").read_text())


@pytest.mark.slow
@pytest.mark.usefixtures("without_pages")
def test_tasks_of_an_array_fill_the_store_that_the_audit_reads(leakbound) -> None:
    fit = "fit plan.toml --store made --n-jobs 1 --chunks"
    for chunks, there in (("0..2", 3), ("5", 4), ("3..7", 8)):
        called = leakbound(f"{fit} {chunks}")
        assert (called.code, called.err) == (0, "")
        assert called.out.splitlines()[1] == f"{there} of all 8 chunks of the plan are in the store"
        refused = leakbound("audit plan.toml --store made --from-store --out out")
        assert (refused.code == 0) == (there == 8)
        if there < 8:
            assert refused.out == ""
            assert (
                "make them (leakbound fit), or take those that are finished (--partial; in Python from_store="
                in refused.err
            )
    assert leakbound(f"{fit} 0..7").out.startswith("0 of 8 chunks made, the others were there\n")
    assert leakbound("audit plan.toml --n-jobs 1 --out alone").code == 0
    assert result("out") == result("alone")
    facts = read("out/report.json").about.execution
    assert (facts.reused, facts.made) == (32, 0)


@pytest.mark.usefixtures("without_charts")
def test_finished_models_alone_are_audited_and_the_page_says_so(leakbound) -> None:
    leakbound("fit plan.toml --store made --n-jobs 1 --chunks 1..3")
    none = leakbound("audit plan.toml --store made --partial --out out")
    assert (none.code, none.out) == (1, "")
    assert "16 of 16 models of GaussianNB are not in the store" in none.err
    leakbound("fit plan.toml --store made --n-jobs 1 --chunks 4..7")
    assert leakbound("audit plan.toml --store made --partial --out out").code == 0
    sentence = (
        "DecisionTreeClassifier: 12 of 16 models were finished when this audit was made, and it is of these alone"
    )
    report = read("out/report.json")
    assert report.about.notes[0] == sentence
    assert sentence in Path("out/report.html").read_text()
    tree, bayes = report.about.releases
    assert (tree.models, bayes.models) == (12, 16)


@pytest.mark.parametrize("chunks", ["a", "1..", "..3", "3-4", "-1", "0..9999999999", ""])
def test_chunks_are_numbers(leakbound, chunks) -> None:
    called = leakbound(f"fit plan.toml --store made '--chunks={chunks}'")
    assert called.code == 1
    assert called.err == (
        f"leakbound: error: --chunks are FIRST..LAST, as 0..99, or one number, as 7; got {chunks!r}\n"
    )
    assert not Path("made").exists()


@pytest.mark.parametrize("chunks", ["8", "0..8", "5..3"])
def test_there_are_no_other_chunks(leakbound, chunks) -> None:
    called = leakbound(f"fit plan.toml --store made --chunks {chunks}")
    assert (called.code, called.out) == (1, "")
    assert called.err.startswith("leakbound: error: chunks must be from 0 to 7, got ")
    assert not Path("made").exists()


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ("fit --store made", "leakbound fit needs a plan in TOML (see leakbound init)"),
        ("fit plan.toml", "leakbound fit needs a --store, a folder or URL that the audit will read"),
        ("audit plan.toml --n-jobs here", "cluster must be tcp://HOST:PORT of a Dask scheduler, local:N for N "
         "processes of this machine; got 'here'"),
        ("audit plan.toml --cluster local:2", "audit has no --cluster; use --n-jobs"),
        ("fit plan.toml --tmp .", "fit has no --tmp; use the environment variable TMPDIR"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_one_line(leakbound, flags, line) -> None:
    called = leakbound(flags)
    assert (called.code, called.out, called.err) == (1, "", f"leakbound: error: {line}\n")


SIGNALS = (
    PLAN.replace('"lira"', '"lira", "rmia"').partition("[[model]]")[0]
    + """
[[model]]
spec = "sklearn.tree:DecisionTreeClassifier"
"""
)


@pytest.mark.slow
def test_signals_of_all_models_are_audited_from_a_folder_as_in_memory(leakbound) -> None:
    """Written four models at a time."""
    Path("plan.toml").write_text(SIGNALS)
    called = leakbound("fit plan.toml --store made --n-jobs 1 --signals signals")
    assert (called.code, called.err) == (0, "")
    assert called.out.splitlines()[2] == "the signals of all models are in signals"
    attacks = "--attack loss --attack lira --attack rmia"
    assert leakbound(f"audit signals signals {attacks} --out files").code == 0
    assert leakbound("audit plan.toml --store made --from-store --out memory").code == 0
    files, memory = (read(f"{folder}/report.json").findings for folder in ("files", "memory"))
    expected = {number(finding) for finding in memory if is_compared(finding)}
    assert len(expected) > 12
    assert expected == {number(finding) for finding in files if is_compared(finding)}
    again = leakbound("fit plan.toml --store made --n-jobs 1 --signals signals")
    assert (again.code, again.out) == (1, "")
    assert again.err == "leakbound: error: signals is not empty; name a new folder for the signals\n"


def is_compared(finding: Finding) -> bool:
    """Whether a number is of all records: files of signals do not say that they are of a classifier."""
    return finding.quantity in ("auc", "accuracy", "tpr") and finding.scope.kind != "group"


def number(finding: Finding) -> tuple[Any, ...]:
    ends = (None if end is None else round(end, 9) for end in (finding.value, finding.low, finding.high))
    return finding.attack, finding.quantity, tuple(finding.operating_point.items()), *ends


def test_each_model_of_a_plan_has_a_folder_of_signals(leakbound) -> None:
    missing = leakbound("fit plan.toml --store made --n-jobs 1 --chunks 0..6 --signals signals")
    assert missing.err == (
        "leakbound: error: the signals of all models are written, and 1 chunks are missing: make them first\n"
    )
    assert not Path("signals").exists()
    leakbound("fit plan.toml --store made --n-jobs 1 --signals signals")
    assert sorted(path.name for path in Path("signals").iterdir()) == ["DecisionTreeClassifier", "GaussianNB"]
    for name in ("DecisionTreeClassifier", "GaussianNB"):
        assert open_signals(f"signals/{name}").game.n_models == 16


TREE, BAYES = {"spec": "sklearn.tree:DecisionTreeClassifier"}, {"spec": "sklearn.naive_bayes:GaussianNB"}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ({"game": "average_datum"}, "a folder of signals has the same target points for all models"),
        ({"model": [{**TREE, "name": "a/b"}, BAYES]}, "the model 'a/b' gets a folder of its name: give it one without"),
    ],
)
def test_what_a_folder_cannot_hold_is_refused_before_the_first_fit(tmp_path, words, line) -> None:
    plan = AuditPlan(**{"dataset": "wine", "attacks": ("loss",), "n_models": 4, "model": [TREE], **words})
    with pytest.raises(ValueError, match=line):
        fill_store(plan, store=tmp_path / "store", signals=tmp_path / "signals", n_jobs=1)
    assert list(tmp_path.iterdir()) == []


def test_one_target_is_as_good_as_all(tmp_path) -> None:
    plan = AuditPlan(dataset="wine", game=ls.PerDatum(1), attacks=("loss",), n_models=4, model=[BAYES])
    fill_store(plan, store=tmp_path / "store", signals=tmp_path / "signals", n_jobs=1)
    assert open_signals(tmp_path / "signals").game.n_target_points == 1


def test_groups_do_not_go_into_a_folder(tmp_path) -> None:
    (tmp_path / "rows.csv").write_text("person,x,label\n" + "".join(f"{n // 2},{n},{n % 2}\n" for n in range(40)))
    plan = AuditPlan(data=tmp_path / "rows.csv", label="label", group="person", n_models=4, model=[BAYES])
    with pytest.raises(ValueError, match="a folder of signals has no groups"):
        fill_store(plan, store=tmp_path / "store", signals=tmp_path / "signals", n_jobs=1)


def test_an_attribute_has_no_chunks(tmp_path) -> None:
    plan = AuditPlan(dataset="wine", game=ls.Attribute("alcohol"), model=[{"spec": "sklearn.naive_bayes:GaussianNB"}])
    with pytest.raises(ValueError, match="filled for audits of membership"):
        fill_store(plan, store=tmp_path)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.usefixtures("without_charts")
def test_a_cluster_has_the_same_bytes(leakbound) -> None:
    try:
        assert leakbound("audit plan.toml --n-jobs local:2 --out cluster").code == 0
        assert leakbound("audit plan.toml --n-jobs 1 --out alone").code == 0
        for name in ("report.json", "report.html"):
            assert Path("cluster", name).read_text() == Path("alone", name).read_text()
        assert Store("cluster/store").size() == Store("alone/store").size()
        made = {path.name: path.read_bytes() for path in Path("cluster/store").iterdir()}
        assert made == {path.name: path.read_bytes() for path in Path("alone/store").iterdir()}
    finally:
        execution.close_clusters()
