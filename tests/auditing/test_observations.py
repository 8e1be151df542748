"""What an audit saw: signals by reference and scores on demand, in memory alone."""

import copy
import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound.attacks import ATTACKS
from leakbound.reports import Report

GAME = ls.games.half_split(120, 16)
LOSS = np.random.default_rng(0).exponential(np.where(GAME.member, 0.5, 1.0))
NOT_THERE = (
    "this report has no signals in memory: only the one that an audit of membership returns has them, and no file; run "
    "the audit again (with a store no model is fitted again)"
)


@pytest.fixture(scope="module")
def signals():
    return ls.Signals(GAME, None, {"loss": LOSS})


@pytest.fixture(scope="module")
def report(signals):
    return ls.audit_signals(signals, attacks=["loss", "lira"])


def test_the_signals_are_those_of_the_audit_and_no_copy(report, signals):
    assert report.signals() is signals
    assert replace(report, findings=()).signals("signals") is signals


def test_scores_are_those_of_the_attack(report, signals):
    scores = report.scores("lira")
    np.testing.assert_array_equal(scores.value, ATTACKS["lira"](signals).value)
    np.testing.assert_array_equal(scores.member, GAME.member)
    np.testing.assert_array_equal(scores.points, np.arange(120))
    found = next(row for row in report.findings if row.quantity == "auc" and row.attack == "lira")
    assert ls.metrics.auc(scores).value == found.value


def test_each_release_has_its_own():
    X, y = load_wine(return_X_y=True)
    trees = {"deep": DecisionTreeClassifier(random_state=0), "flat": DecisionTreeClassifier(max_depth=1)}
    report = ls.audit(trees, X, y, n_models=8, n_jobs=1, attacks=["loss"])
    for release in trees:
        found = next(row for row in report.findings if row.quantity == "auc" and row.release == release)
        assert ls.metrics.auc(report.scores("loss", release)).value == found.value
    assert not np.array_equal(report.scores("loss", "deep").value, report.scores("loss", "flat").value)
    assert report.signals("flat").array("loss").shape == (8, 178)
    np.testing.assert_array_equal(report.scores("loss").value, report.scores("loss", "deep").value)
    with pytest.raises(ValueError, match=r"^unknown release 'flap' \(did you mean 'flat'\?\); known: deep, flat$"):
        report.signals("flap")


def test_given_scores_come_back():
    value = np.random.default_rng(0).normal(GAME.member[0] * 1.0)
    report = ls.audit_scores(value, GAME.member[0], name="mine")
    np.testing.assert_array_equal(report.scores("mine").value, value[None])


def test_with_one_trained_model_they_are_of_its_points():
    X, y = load_wine(return_X_y=True)
    model = DecisionTreeClassifier(random_state=0).fit(X[::2], y[::2])
    report = ls.audit_model(model, (X[::2], y[::2]), (X[1::2], y[1::2]), n_jobs=1)
    scores = report.scores("loss")
    assert scores.value.shape == scores.member.shape == (1, 178)
    assert scores.member.sum() == 89


def test_a_target_point_of_each_model_has_its_index():
    X, y = load_wine(return_X_y=True)
    report = ls.audit(
        DecisionTreeClassifier(), X, y, n_models=20, n_jobs=1, attacks=["loss"], game=ls.AverageDatum(references=0)
    )
    assert report.scores("loss").points.shape == (20, 1)


def test_an_attack_that_was_not_run_has_no_scores(report):
    with pytest.raises(ValueError, match=r"^unknown attack 'lyra' \(did you mean 'lira'\?\); known: loss, lira$"):
        report.scores("lyra")


def test_an_attack_that_does_not_apply_says_why(signals):
    report = ls.audit_signals(signals)
    with pytest.raises(ls.NotApplicable, match=r"^needs the signal correct"):
        report.scores("gap")


class TestInMemoryAlone:
    def test_a_file_has_none(self, report, tmp_path):
        report.to_json(tmp_path / "report.json")
        again = Report.from_json(tmp_path / "report.json")
        for call in (again.signals, lambda: again.scores("lira")):
            with pytest.raises(ValueError) as caught:
                call()
            assert str(caught.value) == NOT_THERE

    def test_the_json_and_the_digest_do_not_know_of_them(self, report):
        bare = replace(report, observations={})
        assert report.to_json() == bare.to_json()
        assert report.digest() == bare.digest()

    def test_a_published_report_has_none(self, report):
        assert report.without_records().observations == {}

    def test_a_copy_and_what_a_worker_sends_have_none(self, report):
        assert copy.copy(report).observations == {}
        assert report.__reduce_ex__(4)[2]["observations"] == {}
        assert report.observations != {}

    def test_reports_are_compared_without_them(self, report):
        bound = ls.bound("dp", epsilon=1.0)
        assert replace(bound, observations=report.observations) == bound

    def test_a_bound_has_none(self):
        with pytest.raises(ValueError, match=r"^this report has no signals in memory"):
            ls.bound("dp", epsilon=1.0).signals()

    def test_they_go_with_the_report(self):
        signals = ls.Signals(GAME, None, {"loss": LOSS.copy()})
        loss = weakref.ref(signals.array("loss"))
        report = ls.audit_signals(signals, attacks=["loss"])
        del signals, report
        gc.collect()
        assert loss() is None
