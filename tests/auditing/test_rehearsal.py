"""What is found before the first real fit: models that cannot be fitted, and named attacks that cannot run."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_wine
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound.attacks import ATTACKS, find
from leakbound.attacks.attribute import strategies
from leakbound.auditing.rehearsal import few_points, rehearse
from leakbound.core.reasons import words
from tests.marks import nightly

X, Y = load_wine(return_X_y=True)
GAME = ls.games.half_split(len(X), 4)
POINTS = ls.data.from_arrays(X, Y)


class Counted(ClassifierMixin, BaseEstimator):
    """Notes on how many points it is fitted."""

    sizes: ClassVar[list[int]] = []

    def __init__(self, least: int = 0) -> None:
        self.least = least

    def fit(self, x, y):
        self.sizes.append(len(x))
        if len(x) < self.least:
            raise ValueError(f"needs {self.least} points")
        self.tree_ = DecisionTreeClassifier(random_state=0).fit(x, y)
        self.classes_ = self.tree_.classes_
        return self

    def predict_proba(self, x):
        return self.tree_.predict_proba(x)


@pytest.fixture(autouse=True)
def _no_fits():
    Counted.sizes.clear()


def test_models_that_cannot_be_fitted_are_found_before_the_first_fit():
    models = {"first": Counted(least=10_000), "second": LogisticRegression(C=-1)}
    with pytest.raises(RuntimeError, match=r"^second cannot be fitted on 8[0-9] points: The 'C' parameter"):
        ls.audit(models, X, Y, n_models=4, n_jobs=1)
    assert len(Counted.sizes) == 2  # a few points of every class, once, then half of all
    assert min(Counted.sizes) < 30


def test_a_model_that_needs_more_than_a_few_points_is_tried_on_a_real_data_set():
    report = ls.audit({"few": Counted(), "many": Counted(least=60)}, X, Y, n_models=4, n_jobs=1, attacks=["loss"])
    assert [each.name for each in report.about.releases] == ["few", "many"]
    assert sum(size < 30 for size in Counted.sizes) == 2


def test_one_model_and_unnamed_attacks_need_no_rehearsal():
    ls.audit(Counted(), X, Y, n_models=4, n_jobs=1)
    assert len(Counted.sizes) == 4


class TestFewPoints:
    def test_every_class_is_there(self):
        y = np.r_[np.zeros(500), np.ones(3), np.full(97, 2)].astype(int)
        rows = few_points(ls.data.from_arrays(np.zeros((600, 2)), y))
        assert np.bincount(y[rows]).tolist() == [8, 3, 8]

    def test_a_response_is_spread(self):
        y = np.random.default_rng(0).normal(size=300)
        rows = few_points(ls.data.from_arrays(np.zeros((300, 2)), y))
        assert len(rows) == 24
        assert {y.argmin(), y.argmax()} <= set(rows.tolist())


@pytest.mark.parametrize(
    ("estimator", "given"),
    [
        (DecisionTreeClassifier(), {"loss": (), "log_odds": (), "correct": (), "log_prob": (3,)}),
        (LinearSVC(), {"log_odds": (), "correct": ()}),
        (KNeighborsClassifier(60), {"loss": (), "log_odds": (), "correct": (), "log_prob": (3,)}),
        (LinearRegression(), {"loss": ()}),
    ],
    ids=["tree", "margins", "neighbours", "regressor"],
)
def test_the_signals_that_a_release_gives(estimator, given):
    want = ["loss", "log_odds", "correct", "log_prob"]
    assert rehearse(ls.releases.Estimator(estimator), POINTS, GAME, want).shapes == given


class TestNamedAttacks:
    def test_who_is_named(self):
        named = {each.name: each.by_name for each in find(["default", "lira", "matt"])}
        assert [name for name, by_name in named.items() if by_name] == ["lira", "matt"]
        assert not any(each.by_name for each in (*find("all"), *find("default"), *strategies("all")))
        assert all(
            each.by_name for each in (*find("lira"), *find(ATTACKS["gap"]), *strategies(["loss", ATTACKS["mast"]]))
        )
        assert find("lira")[0] == ATTACKS["lira"]

    @pytest.mark.parametrize(
        ("audit", "reason"),
        [
            (
                lambda: ls.audit(Counted(), X, Y, n_models=2, attacks="lira", n_jobs=1),
                "needs at least 2 reference models",
            ),
            (
                lambda: ls.audit(Counted(), X, Y, n_models=4, attacks=["loss", "matt"], n_jobs=1),
                "needs the signal taylor",
            ),
            (lambda: ls.audit(Counted(), X, Y, n_models=4, attacks="glir", n_jobs=1), "needs the signal step_dot"),
            (
                lambda: ls.audit(
                    Counted(), X, Y, n_models=1, attacks="mast", n_jobs=1, game=ls.Canaries("random", n=20)
                ),
                "needs at least 2 reference models, and there are 0",
            ),
            (
                lambda: ls.audit(Counted(), X, Y, n_models=4, game=ls.Attribute(0, bins=3), attacks="lira", n_jobs=1),
                "compares with models that were trained on the record",
            ),
            nightly(
                lambda: ls.audit(
                    Counted(), X, Y, n_models=4, game=ls.Attribute(0, bins=3), attacks="gradient_norm", n_jobs=1
                ),
                "needs the signal gradient_norm",
            ),
            (
                lambda: ls.audit_model(
                    Counted().fit(X[::2], Y[::2]).predict_proba, (X[::2], Y[::2]), (X[1::2], Y[1::2]), attacks="lira"
                ),
                "needs at least 2 reference models, and there are 0",
            ),
            (
                lambda: ls.audit_model(
                    Counted().fit(X[::2], Y[::2]).predict_proba,
                    (X[::2], Y[::2]),
                    (X[1::2], Y[1::2]),
                    references=LinearSVC(),
                    attacks="rmia",
                ),
                "needs the signal loss",
            ),
        ],
        ids=["models", "taylor", "steps", "one run", "attribute", "gradients", "one model", "references"],
    )
    def test_what_cannot_run_is_an_error_before_the_first_fit(self, audit, reason):
        with pytest.raises(ValueError, match=f"^attack '[a-z_]+' cannot run: {reason}"):
            audit()
        assert all(size < 30 or size == len(X[::2]) for size in Counted.sizes)
        assert len(Counted.sizes) <= 1

    def test_signals_that_lack_what_it_needs(self):
        game = ls.games.half_split(100, 8)
        loss = np.random.default_rng(0).exponential(size=game.member.shape)
        with pytest.raises(ValueError, match=r"^attack 'gap' cannot run: needs the signal correct"):
            ls.audit_signals(ls.Signals(game, None, {"loss": loss}), attacks=["loss", "gap"])

    def test_one_release_on_which_it_runs_is_enough(self):
        report = ls.audit(
            {"margins": LinearSVC(), "tree": DecisionTreeClassifier()}, X, Y, n_models=4, attacks="loss", n_jobs=1
        )
        values = {each.release: each.value for each in report.findings if each.attack and each.quantity == "auc"}
        assert set(values) == {"tree"}
        assert "Not run: Loss (MALT): needs the signal loss" in report.table(full=True)

    @pytest.mark.slow
    def test_of_the_usual_attacks_it_is_a_row_with_its_reason_everywhere(self):
        tree = DecisionTreeClassifier(random_state=0).fit(X[::2], Y[::2])
        report = ls.audit_model(tree.predict_proba, (X[::2], Y[::2]), (X[1::2], Y[1::2]))
        reason = "needs at least 2 reference models, and there are 0"
        assert f"Not run: MAST and LiRA: {reason}" in " ".join(report.table(full=True).split())
        assert "Not run, for reasons that the page gives: MAST, LiRA and RMIA" in " ".join(report.table().split())
        assert report.to_html().count(reason) >= 1
        assert {each.attack for each in report.findings if each.reason and words(each.reason) == reason} == {
            "mast",
            "lira",
        }
        attribute = ls.audit(DecisionTreeClassifier(), X, Y, n_models=4, game=ls.Attribute(0, bins=3), n_jobs=1)
        assert "Not run: Gradient norm: needs the signal gradient_norm" in " ".join(attribute.table().split())


@pytest.mark.slow
def test_the_trial_fit_leaves_nothing_behind():
    """Expansions are kept by the digest of the points: those of the few points of a trial fit are not those of all."""
    from sklearn.datasets import load_diabetes
    from sklearn.linear_model import LinearRegression, Ridge

    X, y = load_diabetes(return_X_y=True)
    X, y = X[:80], y[:80]
    both = {"ridge": Ridge(), "linear": LinearRegression()}
    together = ls.audit(both, X, y, n_models=4, attacks="matt", n_jobs=1)
    for name, model in both.items():
        alone = ls.audit({name: model}, X, y, n_models=4, attacks="matt", n_jobs=1)
        assert [each for each in together.findings if each.release == name] == list(alone.findings)
