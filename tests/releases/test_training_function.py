"""A function of the user's that trains, as a release."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound.core.types import Release
from leakbound.data import from_arrays
from leakbound.releases.estimator import Estimator
from leakbound.releases.factory import release_from, release_of
from leakbound.releases.training_function import TrainingFunction, trains
from tests.marks import slow_but
from tests.releases.user_functions import fit_tree, fit_tree_without_seed

N = 60
X = np.random.default_rng(0).normal(size=(N, 3))
Y = np.random.default_rng(1).integers(0, 2, N)
POINTS = from_arrays(X, Y)
MEMBER = np.random.default_rng(2).random((3, N)) < 0.5
SEEDS = np.array([5, 6, 7])
EVERY = ("loss", "log_odds", "correct", "log_prob")


def observed(function, points=POINTS, member=MEMBER):
    return TrainingFunction(function).observe(points, member, SEEDS, EVERY)


def forms_of_return():
    """Ways to return the same model."""

    def fit(X, y, seed):
        return DecisionTreeClassifier(max_depth=3, random_state=seed).fit(X, y)

    def both(X, y, seed):
        return fit(X, y, seed).predict_proba

    def second(X, y, seed):
        model = fit(X, y, seed)
        return lambda Z: model.predict_proba(Z)[:, 1]

    def column(X, y, seed):
        model = fit(X, y, seed)
        return lambda Z: model.predict_proba(Z)[:, 1:]

    class Own:
        def __init__(self, model):
            self.model = model

        def predict_proba(self, Z):
            return self.model.predict_proba(Z)

    return {
        "estimator": fit,
        "its method": both,
        "a function": second,
        "a column": column,
        "an object": lambda X, y, seed: Own(fit(X, y, seed)),
    }


@pytest.mark.parametrize("kind", forms_of_return())
def test_the_signals_are_those_of_the_estimator_that_it_fits(kind):
    expected = Estimator(DecisionTreeClassifier(max_depth=3)).observe(POINTS, MEMBER, SEEDS, EVERY)
    found = observed(forms_of_return()[kind])
    for name in EVERY:
        np.testing.assert_allclose(found[name], expected[name], atol=1e-12)


def test_it_gets_the_training_rows_as_the_user_gave_them():
    frame = pd.DataFrame({"age": np.arange(float(N)), "town": ["Bern", "Chur"] * (N // 2)})
    text = np.where(Y == 1, "yes", "no")
    calls = []

    def fit(X, y, seed):
        calls.append((X, y, seed))
        return lambda Z: np.full(len(Z), 0.5)

    observed(fit, from_arrays(frame, text))
    for (seen_x, seen_y, seed), inside, expected in zip(calls, MEMBER, SEEDS, strict=True):
        pd.testing.assert_frame_equal(seen_x, frame[inside])
        np.testing.assert_array_equal(seen_y, text[inside])
        assert seed == expected
        assert isinstance(seed, int)


def test_regressors_and_functions_that_predict_numbers():
    y = X @ [1.0, 2.0, 3.0] + 0.1
    points = from_arrays(X, y)
    expected = Estimator(LinearRegression()).observe(points, MEMBER, SEEDS, ("loss",))["loss"]
    for fit in (lambda X, y: LinearRegression().fit(X, y), lambda X, y: LinearRegression().fit(X, y).predict):
        np.testing.assert_allclose(observed(fit, points)["loss"], expected, atol=1e-12)

    def own_least_squares(X, y, seed):
        beta = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y, rcond=None)[0]
        return lambda Z: np.column_stack([Z, np.ones(len(Z))]) @ beta

    np.testing.assert_allclose(observed(own_least_squares, points)["loss"], expected, atol=1e-9)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X, y, seed: 1 / 0, r"^training function fails on \d+ points: division by zero$"),
        (
            lambda X, y, seed: None,
            "^training function returns nothing; return the fitted model, or a function that predicts$",
        ),
        (lambda X, y, seed: 3, "^training function returns a int; return an object with predict_proba or predict, or "),
        (lambda X, y, seed: lambda Z: np.zeros(3), "^training function gave 3 answers for 60 points$"),
        (lambda X, y, seed: lambda Z: np.full((len(Z), 2), 0.9), "rows must be probabilities"),
        (lambda X, y, seed: lambda Z: Z[0, 9], "^training function gives no numbers for 60 points: index 9 is out of"),
    ],
)
def test_what_goes_wrong_is_one_line(function, message):
    with pytest.raises((ValueError, RuntimeError), match=message) as caught:
        observed(function)
    assert "\n" not in str(caught.value)


def test_what_trains_and_what_makes_networks():
    assert trains(fit_tree)
    assert trains(fit_tree_without_seed)
    assert trains(functools.partial(lambda depth, X, y, seed: None, 3))
    assert trains(lambda X, y, depth=3: None)
    assert not trains(lambda: None)
    assert not trains(lambda width: None)
    assert not trains(DecisionTreeClassifier)
    assert isinstance(release_of(fit_tree), TrainingFunction)
    assert isinstance(release_of(fit_tree), Release)
    with pytest.raises(ValueError, match="must take features and labels: fit"):
        TrainingFunction(lambda: None)
    with pytest.raises(ValueError, match="train says how a network is trained"):
        release_of(fit_tree, train={"epochs": 3})


class TestStored:
    def test_a_function_of_a_module_is_known_by_its_code(self):
        release = release_of(fit_tree)
        assert release.not_stored == ""
        assert release.describe()["trained by"]["import"] == "tests.releases.user_functions:fit_tree"
        assert release.describe() != release_of(fit_tree_without_seed).describe()

    def test_what_has_no_code_to_be_known_by_is_not_stored_and_the_reason_is_told(self, tmp_path):
        depth = 3
        fit = lambda X, y, seed: DecisionTreeClassifier(max_depth=depth).fit(X, y)  # noqa: E731
        assert release_of(fit).describe() is None
        report = ls.audit(fit, X, Y, n_models=4, attacks="loss", n_jobs=1, store=tmp_path)
        assert "training function is not stored: " in " ".join(report.about.notes)

    def test_finished_models_are_found_again(self, tmp_path):
        reports = [ls.audit(fit_tree, X, Y, n_models=4, attacks="loss", n_jobs=1, store=tmp_path) for _ in range(2)]
        assert [report.about.execution.reused for report in reports] == [0, 4]
        assert reports[0].findings == reports[1].findings

    def test_by_its_import_path_with_keywords(self):
        release = release_from("tests.releases.user_functions:fit_tree", {"depth": 2})
        assert isinstance(release, TrainingFunction)
        assert release.describe()["parameters"] == {"depth": 2}
        shallow = release.observe(POINTS, MEMBER, SEEDS, ("loss",))["loss"]
        expected = Estimator(DecisionTreeClassifier(max_depth=2)).observe(POINTS, MEMBER, SEEDS, ("loss",))["loss"]
        np.testing.assert_allclose(shallow, expected)


class TestAudits:
    @pytest.mark.slow
    @pytest.mark.parametrize("n_jobs", slow_but([1, 2], 1))
    def test_a_closure_is_audited_in_worker_processes_too(self, n_jobs):
        n_trees = 30
        report = ls.audit(
            lambda X, y, seed: RandomForestClassifier(n_trees, random_state=seed).fit(X, y),
            X, Y, n_models=16, attacks=["loss", "lira"], n_jobs=n_jobs,
        )  # fmt: skip
        assert max(f.low or 0 for f in report.findings if f.quantity == "accuracy") > 0.6

    @pytest.mark.slow
    def test_references_of_a_trained_model(self):
        model = LogisticRegression(C=100.0).fit(X[:30], Y[:30])
        report = ls.audit_model(
            model.predict_proba,
            (X[:30], Y[:30]),
            (X[30:], Y[30:]),
            references=ls.Fitted(lambda X, y, seed: LogisticRegression(C=100.0).fit(X, y), n=8),
            n_jobs=1,
        )
        same = ls.audit_model(
            model, (X[:30], Y[:30]), (X[30:], Y[30:]), references=ls.Fitted(LogisticRegression(C=100.0), n=8), n_jobs=1
        )
        assert report.findings == same.findings
        assert any(finding.attack == "lira" and finding.value is not None for finding in report.findings)


class TestParametersOfFunctions:
    """What a function takes goes to the function, all else to the estimator that it returns."""

    HERE = "tests.releases.user_functions"

    def test_keywords_of_the_function_and_parameters_of_its_pipeline(self):
        release = release_from(
            f"{self.HERE}:pipeline", {"scale": False, "decisiontreeclassifier__max_depth": 2}, "tree"
        )
        steps = release.estimator.named_steps
        assert steps["standardscaler"].with_std is False
        assert steps["decisiontreeclassifier"].max_depth == 2

    def test_a_parameter_of_a_step_is_named_with_its_step(self):
        with pytest.raises(
            ValueError, match=r"unknown parameter 'max_depth' \(did you mean 'decisiontreeclassifier__max_depth'\?\)"
        ):
            release_from(f"{self.HERE}:pipeline", {"max_depth": 2})

    def test_what_a_training_function_does_not_take_is_refused_before_any_fit(self):
        assert release_from(f"{self.HERE}:fit_tree", {"depth": 2}).parameters == {"depth": 2}
        with pytest.raises(
            ValueError, match=r"^fit_tree has no keyword 'max_depth' \(did you mean 'depth'\?\), and the model that it"
        ):
            release_from(f"{self.HERE}:fit_tree", {"max_depth": 2})
