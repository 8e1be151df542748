"""Audits that ask each model about several versions of each record, by Python and by the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound.auditing.api import fill_store, run
from leakbound.auditing.dry_run import dry_run
from leakbound.plans import AuditPlan
from tests.cli.calling import caller, draw_no_pages, refused

ATTACKS = ["loss", "lira", "rmia"]
TREE = "sklearn.tree:DecisionTreeClassifier"


def blurred(x, number):
    """Versions of the user's own."""
    return x + 0.01 * number


def areas(report: ls.Report) -> dict[str, float]:
    return {each.attack: each.value for each in report.findings if each.quantity == "auc" and each.value is not None}


def audited(n=1, versions=None, **keywords) -> ls.Report:
    return ls.audit(
        DecisionTreeClassifier(),
        *load_wine(return_X_y=True),
        game=ls.HalfSplit(queries=ls.Queries(n, versions=versions)),
        n_models=8,
        attacks=ATTACKS,
        **keywords,
    )


def test_one_query_is_what_it_was_before(tmp_path):
    report, same = audited(store=tmp_path, n_jobs=1), audited(1, store=tmp_path, n_jobs=1)
    assert same.about.execution.reused == 8  # the store knows the models
    assert areas(report) == areas(same)
    assert not [note for note in report.about.notes if "versions" in note]


def test_attacks_with_signals_of_queries_use_them_and_others_do_not():
    one, several = audited(n_jobs=1), audited(n=4, n_jobs=1)
    assert areas(one)["loss"] == areas(several)["loss"]
    assert areas(one)["lira"] != areas(several)["lira"]
    assert areas(one)["rmia"] != areas(several)["rmia"]
    assert (
        "Each model was asked about 4 versions of each record: itself, and others with noise of 0.1 standard "
        "deviations of each column. Attacks with signals of several queries use all of them, the other attacks the "
        "record alone"
    ) in several.about.notes


@pytest.mark.slow
def test_the_store_keeps_the_answers_to_all_queries(tmp_path):
    first = audited(n=4, seed=1, store=tmp_path, n_jobs=1)
    again = audited(n=4, seed=1, store=tmp_path, n_jobs=1)
    assert (first.about.execution.reused, again.about.execution.reused) == (0, 8)
    assert areas(first) == areas(again)
    assert audited(n=5, seed=1, store=tmp_path, n_jobs=1).about.execution.reused == 0


def test_a_function_of_the_users_own(tmp_path):
    report = audited(n=3, versions=blurred, store=tmp_path, n_jobs=1)
    assert any("itself, and others made by blurred" in note for note in report.about.notes)
    assert report.about.plan["game"]["half_split"]["queries"]["versions"] == f"{__name__}:blurred"
    by_path = audited(n=3, versions=f"{__name__}:blurred", store=tmp_path, n_jobs=1)
    assert by_path.about.execution.reused == 8
    assert areas(by_path) == areas(report)


def test_a_trained_model_and_its_references():
    X, y = load_wine(return_X_y=True)
    model = DecisionTreeClassifier(random_state=0).fit(X[::2], y[::2])
    report = ls.audit_model(
        model,
        (X[::2], y[::2]),
        (X[1::2], y[1::2]),
        references=ls.Fitted(DecisionTreeClassifier(), n=4),
        queries=3,
        attacks=["lira"],
        n_jobs=1,
    )
    assert any("asked about 3 versions" in note for note in report.about.notes)
    signals = report.signals("model")
    assert signals.arrays["query_loss"].shape == (5, 178, 3)
    np.testing.assert_array_equal(signals.arrays["query_loss"][:, :, 0], signals.arrays["loss"])


@pytest.mark.parametrize(
    ("keywords", "line"),
    [
        (
            {"versions": "noise"},
            "queries: versions says how versions of the records are made; give their number too, as 18",
        ),
        ({"n": 0}, "queries: n: Input should be greater than or equal to 1, got 0"),
        ({"n": 3, "versions": 7}, "queries: versions must be a name or a function, got a int"),
        (
            {"n": 3, "versions": "shifts"},
            "versions='shifts' moves images, arrays of shape (N, H, W), (N, H, W, 3) or (N, 3, H, W), and these "
            "records are none; give versions='noise' or a function",
        ),
        (
            {"n": 3, "versions": "no_such_module:f"},
            "no_such_module:f: cannot be imported: No module named 'no_such_module'",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_one_line(keywords, line):
    with pytest.raises(ValueError) as caught:
        audited(n_jobs=1, **keywords)
    assert str(caught.value) == line


def test_a_folder_of_signals_takes_no_queries(tmp_path):
    plan = AuditPlan(
        dataset="wine", n_models=4, game=ls.HalfSplit(queries=2), attacks=("lira",), model=({"spec": TREE},)
    )
    with pytest.raises(
        ValueError, match=r"^a folder of signals has no axis of queries: leave queries out, or audit in"
    ):
        fill_store(plan, store=tmp_path / "store", signals=tmp_path / "signals", n_jobs=1)


def test_a_store_is_filled_with_queries(tmp_path):
    plan = AuditPlan(
        dataset="wine", n_models=4, game=ls.HalfSplit(queries=2), attacks=("lira",), model=({"spec": TREE},)
    )
    fill_store(plan, store=tmp_path, n_jobs=1)
    report = run(plan, store=tmp_path, n_jobs=1, from_store="all")
    assert report.about.execution.reused == 4


def test_a_dry_run_counts_the_answers_to_all_queries():
    def bytes_in_store(n_queries: int) -> float:
        plan = AuditPlan(
            dataset="wine",
            n_models=4000,
            game=ls.HalfSplit(queries=n_queries),
            attacks=("lira",),
            model=({"spec": TREE},),
        )
        line = next(line for line in dry_run(plan) if "MB in the store" in line)
        return float(line.split(" MB in the store")[0].split()[-1].replace(",", ""))

    # loss, log-odds and correctness: three numbers, and three for each of 10 queries
    assert bytes_in_store(10) == pytest.approx(11 * bytes_in_store(1), rel=0.1)


def test_the_command_line(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    draw_no_pages(monkeypatch)
    call = caller(monkeypatch, capfd)
    left = call(
        f"audit --dataset wine --model {TREE} --n-models 8 --attack lira --n-jobs 1 "
        "--game half_split,queries=[3,versions=growing_noise] --out out"
    )
    assert left.code == 0
    about = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))["about"]
    assert about["plan"]["game"] == {"half_split": {"queries": {"n": 3, "versions": "growing_noise"}}}
    refused(call("audit signals x.npz --n-queries 3"), "audit signals has no --n-queries; use --game half_split")
