"""Models of which the labels alone are seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_wine
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound.core.types import Points
from leakbound.data import from_arrays
from leakbound.releases.factory import release_from, release_of, trained_release

WANT = ["correct", "loss", "log_odds", "log_prob"]
SEEDS = np.array([3, 4])


def table(text: bool = False) -> Points:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    return from_arrays(rng.normal(size=(60, 4)) + y[:, None], np.array(["ann", "bob", "cem"])[y] if text else y)


class Nearest(ClassifierMixin, BaseEstimator):
    """A classifier with nothing but labels, which are numbers from 0 on: text is refused."""

    def fit(self, X, y):
        if np.asarray(y).dtype.kind not in "iu":
            raise ValueError("labels must be whole numbers")
        self.X_, self.y_ = np.asarray(X, dtype=float), np.asarray(y)
        return self

    def predict(self, X):
        apart = ((np.asarray(X, dtype=float)[:, None] - self.X_[None]) ** 2).sum(axis=2)
        return self.y_[apart.argmin(axis=1)]


NEAREST = ls.releases.LabelsOnly(Nearest())
member = np.random.default_rng(1).random((2, 60)) < 0.5


def expected(points: Points, inside: np.ndarray) -> np.ndarray:
    apart = ((points.x[:, None] - points.x[None, inside]) ** 2).sum(axis=2)
    return np.asarray(points.y)[inside][apart.argmin(axis=1)] == points.y


class TestFitted:
    @pytest.mark.parametrize("text", [False, True])
    def test_a_classifier_with_predict_alone(self, text):
        points = table(text)
        seen = release_of(NEAREST).observe(points, member, SEEDS, WANT)
        assert seen.keys() == {"correct"}
        for row, inside in enumerate(member):
            np.testing.assert_array_equal(seen["correct"][row], expected(points, inside))

    def test_an_estimator_with_predict_alone_is_known_by_its_labels(self):
        bare, said = release_of(Nearest()), release_of(ls.releases.LabelsOnly(Nearest()))
        seen = bare.observe(table(), member, SEEDS, WANT)
        np.testing.assert_array_equal(seen["correct"], said.observe(table(), member, SEEDS, WANT)["correct"])
        assert seen.keys() == {"correct"}

    def test_a_vote_of_labels(self):
        vote = VotingClassifier([("tree", DecisionTreeClassifier(max_depth=2)), ("line", LogisticRegression())])
        seen = release_of(ls.releases.LabelsOnly(vote)).observe(table(), member, SEEDS, WANT)
        assert 0.5 < seen["correct"].mean() < 1

    def test_a_frame_that_is_encoded(self):
        frame = pd.DataFrame({"town": ["Chur", "Bern", "Thun"] * 20, "age": np.arange(60) % 7})
        points = from_arrays(frame, np.tile(["ann", "bob", "cem"], 20))
        release = release_of(ls.releases.LabelsOnly(Nearest())).for_points(points)
        assert "one-hot encoded" in release.prepared(points)
        assert release.observe(points, member, SEEDS, WANT)["correct"].mean() > 0.9

    def test_several_labels_of_a_point_must_all_be_right(self):
        points = table()
        both = Points(points.x, np.column_stack([points.y, np.asarray(points.y) == 1]))
        tree = DecisionTreeClassifier(max_depth=2, random_state=0)
        seen = release_of(ls.releases.LabelsOnly(tree)).observe(both, member[:1], SEEDS[:1], WANT)
        model = DecisionTreeClassifier(max_depth=2, random_state=3).fit(both.x[member[0]], both.y[member[0]])
        np.testing.assert_array_equal(seen["correct"][0], (model.predict(both.x) == both.y).all(axis=1))

    def test_of_a_function_that_trains_probabilities_are_not_seen(self):
        def fit(X, y, seed):
            return LogisticRegression().fit(X, y)

        plain = release_of(fit).observe(table(), member, SEEDS, ["correct"])
        seen = release_of(ls.releases.LabelsOnly(fit)).observe(table(), member, SEEDS, WANT)
        assert seen.keys() == {"correct"}
        np.testing.assert_array_equal(seen["correct"], plain["correct"])

    def test_the_store_does_not_mix_them_up_with_models_of_which_more_is_seen(self, tmp_path):
        X, y = load_wine(return_X_y=True)
        for model in (DecisionTreeClassifier(), ls.releases.LabelsOnly(DecisionTreeClassifier())):
            report = ls.audit(model, X, y, n_models=4, attacks=["gap"], store=tmp_path, n_jobs=1)
            assert report.about.execution.reused == 0

    def test_by_an_import_path(self):
        release = release_from(f"{__name__}:NEAREST", {})
        assert release.observe(table(), member, SEEDS, WANT).keys() == {"correct"}

    def test_a_regressor_has_no_labels(self):
        with pytest.raises(ValueError, match=r"^LinearRegression predicts no labels, and LabelsOnly is of classifiers"):
            release_of(ls.releases.LabelsOnly(LinearRegression()))


class TestTrained:
    everyone = np.ones((1, 60), dtype=bool)

    def seen(self, model) -> np.ndarray:
        return trained_release(model).observe(table(), self.everyone, SEEDS[:1], WANT)["correct"][0]

    def test_a_function_a_classifier_and_its_method(self):
        points = table()
        model = DecisionTreeClassifier(max_depth=2).fit(points.x, points.y)
        right = model.predict(points.x) == points.y
        for given in (ls.releases.LabelsOnly(model), ls.releases.LabelsOnly(model.predict), model.predict):
            np.testing.assert_array_equal(self.seen(given), right)

    def test_labels_of_two_classes_are_no_probabilities(self):
        """Numbers 0 and 1 of ``predict`` were once read as the probability of the second class."""
        points = table()
        two = Points(points.x, np.asarray(points.y) > 0)
        model = DecisionTreeClassifier(max_depth=1).fit(two.x, two.y)
        seen = trained_release(model.predict).observe(two, self.everyone, SEEDS[:1], WANT)
        assert seen.keys() == {"correct"}

    @pytest.mark.parametrize(
        ("answers", "line"),
        [
            (lambda X: np.eye(3)[[0] * len(X)], "model gives an array of shape (60, 3) for labels of shape (60,); "
             "allowed: a label for each point"),
            (lambda X: ["ann"] * len(X), "model answers 'ann' where the labels are as '0'; it must answer with the "
             "labels of the data"),
            (lambda X: 1 / 0, "model gives no labels for 60 points: division by zero"),
        ],
    )  # fmt: skip
    def test_other_answers_are_refused_in_one_line(self, answers, line):
        with pytest.raises((ValueError, RuntimeError)) as caught:
            self.seen(ls.releases.LabelsOnly(answers))
        assert str(caught.value) == line

    @pytest.mark.slow
    def test_an_audit_of_labels_with_references(self):
        X, y = load_wine(return_X_y=True)
        rng = np.random.default_rng(0)
        y = rng.permutation(y)  # nothing but memory gets these right
        model = DecisionTreeClassifier(random_state=0).fit(X[::2], y[::2])
        report = ls.audit_model(
            ls.releases.LabelsOnly(model.predict),
            (X[::2], y[::2]),
            (X[1::2], y[1::2]),
            references=ls.Fitted(ls.releases.LabelsOnly(DecisionTreeClassifier()), n=8),
            queries=ls.Queries(16, versions="growing_noise"),
            attacks=["gap", "label_only", "label_only_lira"],
            n_jobs=1,
        )
        areas = {each.attack: each.value for each in report.findings if each.quantity == "auc"}
        assert areas.keys() == {"gap", "label_only", "label_only_lira"}
        assert areas["label_only"] > 0.7
        with pytest.raises(ValueError, match=r"^attack 'loss' cannot run: needs the signal loss, which"):
            ls.audit_model(ls.releases.LabelsOnly(model), (X[::2], y[::2]), (X[1::2], y[1::2]), attacks=["loss"])
