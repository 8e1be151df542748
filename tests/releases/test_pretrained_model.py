"""One fitted estimator, asked by the method that it has."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound.data import from_arrays
from leakbound.releases.factory import trained_release
from leakbound.releases.pretrained_model import FittedEstimator, PretrainedModel

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
Y = RNG.integers(0, 3, N)
ROW = np.ones((1, N), dtype=bool)
SEED = np.zeros(1, dtype=int)
EVERY = ("loss", "log_odds", "correct", "log_prob")


def signals(model, y):
    return {
        name: array[0] for name, array in FittedEstimator(model).observe(from_arrays(X, y), ROW, SEED, EVERY).items()
    }


def test_a_classifier_gives_what_its_method_gives():
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    found = signals(model, Y)
    known = PretrainedModel(model.predict_proba, model.classes_).observe(from_arrays(X, Y), ROW, SEED, EVERY)
    for name in EVERY:
        np.testing.assert_allclose(found[name], known[name][0])


def test_classes_that_no_point_has_are_known_to_the_model():
    model = LogisticRegression().fit(X, Y)
    some = Y > 0
    points = from_arrays(X[some], Y[some])
    found = FittedEstimator(model).observe(points, ROW[:, some], SEED, ("loss",))["loss"][0]
    p = model.predict_proba(X[some])
    np.testing.assert_allclose(found, -np.log(p[np.arange(some.sum()), Y[some]]))


def test_margins():
    model = LinearSVC().fit(X, Y > 0)
    found = signals(model, Y > 0)
    np.testing.assert_allclose(found["log_odds"], np.where(Y > 0, 1, -1) * model.decision_function(X))
    assert found.keys() == {"log_odds", "correct"}


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_regressors(n_outputs):
    y = RNG.normal(size=(N, n_outputs))
    model = LinearRegression().fit(X, y)
    expected = ((y - model.predict(X)) ** 2 / (2 * y.var(axis=0))).sum(axis=1)
    np.testing.assert_allclose(signals(model, y)["loss"], expected)


class TestSeveralLabels:
    y = np.column_stack([Y == 1, RNG.integers(0, 2, N)]).astype(int)

    @pytest.mark.parametrize(
        "model",
        [
            RandomForestClassifier(20, random_state=0),
            MultiOutputClassifier(LogisticRegression()),
            MLPClassifier(max_iter=5, random_state=0),
        ],
        ids=lambda model: type(model).__name__,
    )
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_losses_of_all_labels_are_added(self, model):
        model.fit(X, self.y)
        answer = model.predict_proba(X)
        second = np.column_stack([p[:, 1] for p in answer]) if isinstance(answer, list) else answer
        floor = min(second[second > 0].min(), (1 - second)[second < 1].min()) / 2
        p_true = np.where(self.y == 1, second, 1 - second)
        expected = -np.log(np.clip(p_true, floor, 1)).sum(axis=1)
        found = signals(model, self.y)
        np.testing.assert_allclose(found["loss"], expected, atol=1e-9)
        # a tie is not right: as likely as the other value is no prediction of this one
        np.testing.assert_array_equal(found["correct"], (p_true > 0.5).all(axis=1))
        p = np.exp(-expected)
        inner = (p > 0.01) & (p < 0.99)
        np.testing.assert_allclose(found["log_odds"][inner], np.log(p[inner] / (1 - p[inner])), atol=1e-9)

    @pytest.mark.slow
    def test_text_labels_of_a_frame(self):
        y = pd.DataFrame({"a": np.where(Y > 0, "yes", "no"), "b": np.array(["x", "y", "z"])[Y]})
        model = RandomForestClassifier(10, random_state=0).fit(X[::2], y.iloc[::2])
        report = ls.audit_model(model, (X[::2], y.iloc[::2]), (X[1::2], y.iloc[1::2]), attacks="loss")
        assert next(f for f in report.findings if f.quantity == "auc").low > 0.6


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RandomForestClassifier, "give the fitted model, not the class RandomForestClassifier"),
        (3, "expected a fitted model or a function from features to probabilities, got a int"),
        (
            StandardScaler(),
            "expected a fitted model or a function from features to probabilities, got a StandardScaler",
        ),
    ],
)
def test_what_is_no_model(model, message):
    with pytest.raises(ValueError, match=message):
        trained_release(model)


def test_a_label_that_the_model_does_not_know():
    model = LogisticRegression().fit(X, Y)
    with pytest.raises(ValueError, match="model: the label '7' is none of the model's classes"):
        signals(model, np.where(Y == 1, 7, Y))


def test_an_audit_of_a_fitted_regressor_finds_what_it_memorises():
    y = RNG.normal(size=N)
    model = RandomForestRegressor(20, random_state=0).fit(X[::2], y[::2])
    report = ls.audit_model(model, (X[::2], y[::2]), (X[1::2], y[1::2]), attacks="loss")
    assert next(f for f in report.findings if f.quantity == "auc").low > 0.6
    assert report.about.releases[0].description.startswith("RandomForestRegressor(")


AGE_HOURS = pd.DataFrame({"age": [30.0, 40.0, 50.0, 60.0] * 5, "hours": [10.0, 20.0, 30.0, 40.0] * 5})
FITTED = DecisionTreeClassifier().fit(AGE_HOURS, [0, 1] * 10)


@pytest.mark.parametrize("answering", [FITTED, FITTED.predict_proba, make_pipeline(FITTED)])
@pytest.mark.parametrize(
    ("frame", "told"),
    [
        (
            AGE_HOURS.assign(town="Bern"),
            "it was not fitted on town; leave out what is no feature: --drop town; in Python .drop(columns=['town'])",
        ),
        (
            AGE_HOURS.assign(town="Bern", **{"net pay": 3}),
            "it was not fitted on town, net pay; leave out what is no feature: --drop town --drop 'net pay'; "
            "in Python .drop(columns=['town', 'net pay'])",
        ),
        (AGE_HOURS[["hours"]], "it was fitted on age, which the data lack"),
        (
            AGE_HOURS[["hours"]].assign(pid=range(20)),
            "it was fitted on age, which the data lack, and it was not fitted on pid; leave out what is no feature: "
            "--drop pid; in Python .drop(columns=['pid'])",
        ),
        (
            AGE_HOURS[["hours", "age"]],
            "its columns are in another order; give them as it was fitted: age, hours",
        ),
    ],
)
def test_a_model_that_was_fitted_on_other_columns_names_them(answering, frame, told):
    labels = np.array([0, 1] * 5)
    with pytest.raises(RuntimeError, match=rf"^model gives no numbers for \d+ points: {re.escape(told)}$"):
        ls.audit_model(answering, (frame[:10], labels), (frame[10:], labels), attacks=["loss"])
