"""Any estimator with the scikit-learn interface, and one trained model, as releases."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound.core.types import Points, Release
from leakbound.data import from_arrays
from leakbound.releases.estimator import Estimator, from_spec, imported
from leakbound.releases.factory import trained_release
from leakbound.releases.preparation import Preparation, preparation_for
from leakbound.releases.pretrained_model import PretrainedModel
from leakbound.releases.specs import OR_SCORE

EVERY = ("loss", "log_odds", "correct", "log_prob")  # of the signals that there are, those of a model
SEEDS = np.array([11, 12, 13])


def points_of(n_classes: int, n: int = 60, text: bool = False) -> Points:
    rng = np.random.default_rng(n_classes)
    y = np.arange(n) % n_classes
    x = rng.normal(size=(n, 4)) + y[:, None]
    return from_arrays(x, np.array(["ann", "bob", "cem"])[y] if text else y)


def rows_of(n_points: int, n_models: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((n_models, n_points)) < 0.5


def labels(points: Points) -> np.ndarray:
    assert points.y is not None
    return points.y


def fitted(estimator, points: Points, inside: np.ndarray, seed: int | None = None):
    """The model of a row, fitted by hand."""
    if seed is not None:
        estimator = estimator.set_params(random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(points.x[inside], labels(points)[inside])


class TestClassifiers:
    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize("text", [False, True])
    def test_probabilities_are_those_of_a_model_fitted_by_hand(self, n_classes, text):
        points = points_of(n_classes, text=text)
        member = rows_of(60)
        found = Estimator(LogisticRegression()).observe(points, member, SEEDS, EVERY)
        assert found.keys() == set(EVERY)
        for m in range(3):
            model = fitted(LogisticRegression(), points, member[m])
            p = model.predict_proba(points.x)
            column = np.searchsorted(model.classes_, labels(points))
            np.testing.assert_allclose(found["loss"][m], -np.log(p[np.arange(60), column]), atol=1e-9)
            np.testing.assert_array_equal(found["correct"][m], model.predict(points.x) == points.y)
        assert found["log_prob"].shape == (3, 60, n_classes)

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_margins_where_there_are_no_probabilities(self, n_classes):
        points = points_of(n_classes, text=True)
        member = rows_of(60)
        found = Estimator(LinearSVC()).observe(points, member, SEEDS, EVERY)
        assert found.keys() == {"log_odds", "correct"}
        for m in range(3):
            model = fitted(LinearSVC(), points, member[m], int(SEEDS[m]))
            np.testing.assert_array_equal(found["correct"][m], model.predict(points.x) == points.y)
            d = model.decision_function(points.x)
            if n_classes == 2:
                expected = np.where(points.y == model.classes_[1], d, -d)
            else:
                own = labels(points)[:, None] == model.classes_
                expected = d[own] - np.where(own, -np.inf, d).max(axis=1)
            np.testing.assert_allclose(found["log_odds"][m], expected, atol=1e-12)

    def test_one_value_for_each_pair_of_classes_is_refused(self):
        points = from_arrays(np.random.default_rng(0).normal(size=(80, 3)), np.arange(80) % 4)
        release = Estimator(SVC(decision_function_shape="ovo"))
        with pytest.raises(ValueError) as caught:
            release.observe(points, rows_of(80), SEEDS, EVERY)
        assert str(caught.value) == "the model gives 6 values a point, but has 4 classes"

    @pytest.mark.parametrize(
        "estimator",
        [
            make_pipeline(StandardScaler(), LogisticRegression()),
            RandomForestClassifier(5),
            KNeighborsClassifier(3),
            GaussianNB(),
            SVC(),
            SGDClassifier(max_iter=5),
        ],
        ids=lambda estimator: type(estimator).__name__,
    )
    def test_every_kind_gives_finite_signals(self, estimator):
        found = Estimator(estimator).observe(points_of(3), rows_of(60), SEEDS, EVERY)
        assert "log_odds" in found
        for array in found.values():
            assert array.shape[:2] == (3, 60)
            assert np.isfinite(array).all()

    def test_missing_values_are_left_to_the_estimator(self):
        points = points_of(2)
        points.x[::7, 0] = np.nan
        found = Estimator(HistGradientBoostingClassifier(max_iter=5)).observe(points, rows_of(60), SEEDS, ("loss",))
        assert np.isfinite(found["loss"]).all()
        with pytest.raises(
            RuntimeError, match=r"^LogisticRegression cannot be fitted on .* points: Input X contains NaN"
        ):
            Estimator(LogisticRegression()).observe(points, rows_of(60), SEEDS, ("loss",))

    @pytest.mark.parametrize("estimator", [RandomForestClassifier(5), SGDClassifier(max_iter=50), LinearSVC()])
    def test_a_class_that_a_half_has_not_seen(self, estimator):
        """The points of that class get the worst answer of the model, not another class's column."""
        points = points_of(3)
        member = rows_of(60)
        member[0] &= points.y != 1
        found = Estimator(estimator).observe(points, member, SEEDS, ("log_odds", "correct"))
        unseen = points.y == 1
        assert not found["correct"][0][unseen].any()
        assert (found["log_odds"][0][unseen] <= 0).all()
        seen = fitted(estimator, points, member[0], int(SEEDS[0])).predict(points.x)
        np.testing.assert_array_equal(found["correct"][0][~unseen], (seen == points.y)[~unseen])

    def test_a_half_of_one_class_is_said(self):
        points, member = points_of(2), rows_of(60)
        member[1] &= points.y == 0
        with pytest.raises(RuntimeError, match=r"^LogisticRegression cannot be fitted on .* points: ") as caught:
            Estimator(LogisticRegression()).observe(points, member, SEEDS, EVERY)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            (None, f"GaussianNB needs labels, and there are none: give y, {OR_SCORE}"),
            ([1] * 60, "GaussianNB needs at least 2 classes, got only 1"),
            (["a"] * 60, "GaussianNB needs at least 2 classes, got only a"),
            (
                np.linspace(0, 1, 60),
                "GaussianNB is a classifier, but the label has 60 different numbers",
            ),
        ],
    )
    def test_the_line_that_a_bad_label_gets(self, y, message):
        with pytest.raises(ValueError) as caught:
            Estimator(GaussianNB()).observe(from_arrays(points_of(2).x, y), rows_of(60), SEEDS, EVERY)
        assert str(caught.value) == message


class TestSeeds:
    def test_the_same_seeds_give_the_same_bytes(self):
        points, member = points_of(3), rows_of(60)
        release = Estimator(RandomForestClassifier(10))
        first, second = (release.observe(points, member, SEEDS, ("loss",))["loss"] for _ in range(2))
        assert first.tobytes() == second.tobytes()

    def test_a_row_does_not_depend_on_its_chunk(self):
        points, member = points_of(3), rows_of(60)
        release = Estimator(RandomForestClassifier(10))
        together = release.observe(points, member, SEEDS, ("loss",))["loss"]
        alone = release.observe(points, member[2:], SEEDS[2:], ("loss",))["loss"]
        np.testing.assert_array_equal(alone, together[2:])

    def test_another_seed_gives_another_model(self):
        points, member = points_of(3), np.repeat(rows_of(60, 1), 2, axis=0)
        found = Estimator(RandomForestClassifier(10)).observe(points, member, np.array([1, 2]), ("loss",))["loss"]
        assert (found[0] != found[1]).any()

    def test_every_random_state_in_a_pipeline_is_set(self):
        points, member = points_of(3), np.repeat(rows_of(60, 1), 2, axis=0)
        pipeline = make_pipeline(StandardScaler(), RandomForestClassifier(10, random_state=0))
        found = Estimator(pipeline).observe(points, member, np.array([1, 1]), ("loss",))["loss"]
        np.testing.assert_array_equal(found[0], found[1])
        other = Estimator(pipeline).observe(points, member, np.array([2, 2]), ("loss",))["loss"]
        assert (found != other).any()

    def test_the_estimator_that_was_given_is_not_touched(self):
        forest = RandomForestClassifier(5)
        Estimator(forest).observe(points_of(2), rows_of(60), SEEDS, ("loss",))
        assert forest.random_state is None
        assert "estimators_" not in vars(forest)


class TestRegressors:
    def test_squared_loss_of_a_model_fitted_by_hand(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(60, 3))
        y = x.sum(axis=1) + rng.normal(size=60)
        points = from_arrays(x, y)
        member = rows_of(60)
        for estimator in (LinearRegression(), make_pipeline(StandardScaler(), Ridge(1e-12))):
            found = Estimator(estimator).observe(points, member, SEEDS, EVERY)
            assert found.keys() == {"loss"}
            for m in range(3):
                design = np.column_stack([x, np.ones(60)])
                beta = np.linalg.lstsq(design[member[m]], y[member[m]], rcond=None)[0]
                expected = (y - design @ beta) ** 2 / (2 * y.var())
                np.testing.assert_allclose(found["loss"][m], expected, atol=1e-9)

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            (["a", "b", "c"] * 20, "LinearRegression is a regressor and needs numbers as labels, got text"),
            ([2.5] * 60, "LinearRegression: the response is the same at all 60 points"),
        ],
    )
    def test_the_line_that_a_bad_response_gets(self, y, message):
        with pytest.raises(ValueError) as caught:
            Estimator(LinearRegression()).observe(from_arrays(points_of(2).x, y), rows_of(60), SEEDS, EVERY)
        assert str(caught.value) == message


class TestFrames:
    frame = pd.DataFrame(
        {
            "age": np.random.default_rng(0).normal(40, 10, 60),
            "work": ["desk", "field", None] * 20,
            "flag": [True, False] * 30,
            "grade": pd.Categorical(["low", "high", "mid"] * 20),
        }
    )

    def prepared(self, estimator):
        return preparation_for(estimator, from_arrays(self.frame, [0, 1] * 30)).pipeline(estimator, self.frame)

    def test_the_default_preparation(self):
        """Numbers are standardised, other columns one-hot encoded, a missing value is a value of its own."""
        made = self.prepared(LogisticRegression())[:-1].fit_transform(self.frame)
        assert made.shape == (60, 2 + 3 + 3)
        np.testing.assert_allclose(made[:, :2].mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(made[:, :2].std(axis=0), 1)
        np.testing.assert_array_equal(made[:, 2:5].sum(axis=1), 1)
        np.testing.assert_array_equal(made[:, 2:5].argmax(axis=1), np.arange(60) % 3)

    def test_a_value_that_a_half_has_not_seen_is_all_zeros(self):
        preparation = self.prepared(LogisticRegression())[:-1].fit(self.frame[self.frame["work"] == "desk"])
        assert (preparation.transform(self.frame)[1::3, 2:].sum(axis=1) == 0).all()

    @pytest.mark.parametrize("estimator", [LogisticRegression(), DecisionTreeClassifier(), LinearSVC()])
    def test_mixed_columns(self, estimator):
        points = from_arrays(self.frame, ["no", "yes"] * 30)
        found = Estimator(estimator).observe(points, rows_of(60), SEEDS, ("log_odds", "correct"))
        assert found["correct"].mean() > 0.9  # the flag is the label

    def test_frames_of_numbers_and_pipelines_are_left_alone(self):
        y = [0, 1] * 30
        encoder = OneHotEncoder(handle_unknown="ignore")
        assert preparation_for(GaussianNB(), from_arrays(self.frame[["age", "flag"]], y)) == Preparation()
        assert preparation_for(GaussianNB(), from_arrays(np.zeros((60, 2)), y)) == Preparation()
        whole = make_pipeline(encoder, LogisticRegression())
        assert preparation_for(whole, from_arrays(self.frame, y)) == Preparation()


class Odd(ClassifierMixin, BaseEstimator):
    """A classifier whose parameter may be anything."""

    def __init__(self, anything=None):
        self.anything = anything

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


class TestDescription:
    def test_equal_for_equal_estimators(self):
        pairs = [
            (LogisticRegression(C=2.0), LogisticRegression(C=2.0)),
            (make_pipeline(StandardScaler(), SVC()), make_pipeline(StandardScaler(), SVC())),
            (Odd(np.arange(3)), Odd(np.arange(3))),
            (Odd({"a": (1, None)}), Odd({"a": (1, None)})),
            (Odd(np.float64(0.5)), Odd(0.5)),
            (Odd(json.dumps), Odd(json.dumps)),
        ]
        for first, second in pairs:
            assert Estimator(first).describe() is not None
            assert json.dumps(Estimator(first).describe()) == json.dumps(Estimator(second).describe())

    @pytest.mark.slow
    def test_different_for_different_estimators(self):
        estimators = [
            LogisticRegression(),
            LogisticRegression(C=2.0),
            LogisticRegression(C=2),
            SVC(),
            make_pipeline(StandardScaler(), SVC()),
            make_pipeline(StandardScaler(with_mean=False), SVC()),
            make_pipeline(StandardScaler(), SVC(C=2.0)),
            *(
                Odd(value)
                for value in (None, True, 1, "1", [1], np.array([1]), np.array([1.0]), np.array([[1]]), {"a": 1}, Odd())
            ),
            Odd(json.dumps),
            Odd(json.loads),
            Odd(GaussianNB),
        ]
        texts = [json.dumps(Estimator(estimator).describe(), sort_keys=True) for estimator in estimators]
        assert "null" not in texts
        assert len(set(texts)) == len(texts)

    def test_names_the_versions_of_what_it_calls(self):
        description = Estimator(GaussianNB()).describe()
        assert description is not None
        assert {"numpy", "scikit-learn", "scipy"} <= description["versions"].keys()
        assert "unknown" not in description["versions"].values()

    @pytest.mark.parametrize("value", [lambda x: x, object(), np.random.RandomState(0), np.array([{}], dtype=object)])
    def test_none_where_two_runs_could_not_agree(self, value):
        assert Estimator(Odd(value)).describe() is None
        assert Estimator(Odd([value])).describe() is None

    def test_none_for_a_lambda_in_a_pipeline(self):
        assert Estimator(make_pipeline(FunctionTransformer(lambda x: x), GaussianNB())).describe() is None


class TestEstimator:
    def test_is_a_release(self):
        release: Release = Estimator(GaussianNB())
        assert (release.name, release.chunk) == ("GaussianNB", 4)
        assert Estimator(make_pipeline(StandardScaler(), SVC())).name == "SVC"
        assert Estimator(GaussianNB(), name="ours").name == "ours"

    @pytest.mark.parametrize(
        ("made", "message"),
        [
            (GaussianNB, "give an estimator, not the class GaussianNB: GaussianNB()"),
            (
                len,
                "expected an estimator with fit and get_params, got an object of type builtin_function_or_method; "
                "a trained model with its data is audited by audit_model; train anything else in a function "
                f"train(X, y, seed), {OR_SCORE}",
            ),
            (
                StandardScaler(),
                "StandardScaler has neither predict_proba, decision_function nor predict: give one that has, "
                f"{OR_SCORE}",
            ),
        ],
    )
    def test_the_line_that_something_else_gets(self, made, message):
        with pytest.raises(ValueError) as caught:
            Estimator(made)
        assert str(caught.value) == message


class TestSpec:
    def test_a_class_a_factory_and_an_object(self):
        forest = from_spec("sklearn.ensemble:RandomForestClassifier", {"n_estimators": 7})
        assert (type(forest), forest.n_estimators) == (RandomForestClassifier, 7)
        assert imported("math:pi") == math.pi

    @pytest.mark.parametrize(
        ("spec", "settings", "message"),
        [
            (
                "RandomForestClassifier",
                {},
                "'RandomForestClassifier' is no import path; write module:name, as "
                "sklearn.ensemble:RandomForestClassifier",
            ),
            ("sklearn.nothing:A", {}, "sklearn.nothing:A: cannot be imported: No module named 'sklearn.nothing'"),
            ("math:pie", {}, "math:pie: cannot be imported: module 'math' has no attribute 'pie'"),
            (
                "sklearn.naive_bayes:GaussianNB",
                {"prior": 1},
                "sklearn.naive_bayes:GaussianNB: unknown parameter 'prior' (did you mean 'priors'?); known: priors, "
                "var_smoothing",
            ),
        ],
    )
    def test_the_line_that_a_bad_spec_gets(self, spec, settings, message):
        with pytest.raises(ValueError) as caught:
            from_spec(spec, settings)
        assert str(caught.value) == message


def table(p: np.ndarray):
    """A model that looks its answer up: the feature of a point is its row."""
    return lambda x: p[np.asarray(x)[:, 0].astype(int)]


class TestFixed:
    p = np.random.default_rng(0).dirichlet(np.ones(3), size=9)
    x = np.arange(9.0)[:, None]
    inside = np.ones((1, 9), dtype=bool)

    def loss(self, model: PretrainedModel, y: object, n: int = 9) -> np.ndarray:
        points = from_arrays(self.x[:n], y)
        found = model.observe(points, self.inside[:, :n], np.array([0]), ("loss",))["loss"]
        assert found.shape == (1, n)
        return found[0]

    @pytest.mark.parametrize(
        ("y", "classes"),
        [
            ([0, 1, 2] * 3, None),
            ([5, 7, 9] * 3, None),
            ([-1, 0, 1] * 3, None),
            (["a", "b", "c"] * 3, None),
            ([0.5, 1.5, 2.5] * 3, None),
            (["dog", "cat", "emu"] * 3, np.array(["dog", "cat", "emu"])),
            ([2, 0, 1] * 3, np.array([2, 0, 1])),
        ],
    )
    def test_labels_are_matched_with_columns(self, y, classes):
        expected = -np.log(self.p[np.arange(9), np.arange(9) % 3])
        np.testing.assert_allclose(self.loss(PretrainedModel(table(self.p), classes), y), expected, atol=1e-12)

    def test_numbers_from_0_are_columns_even_if_some_are_missing(self):
        np.testing.assert_allclose(
            self.loss(PretrainedModel(table(self.p)), [1, 2, 1] * 3), -np.log(self.p[np.arange(9), [1, 2, 1] * 3])
        )

    @pytest.mark.parametrize("shape", [(9,), (9, 1)])
    def test_one_answer_a_point_is_the_probability_of_the_second_class(self, shape):
        p, y = np.linspace(0.1, 0.9, 9), np.array(list("nyn" * 3))
        expected = -np.log(np.where(y == "y", p, 1 - p))
        np.testing.assert_allclose(self.loss(PretrainedModel(table(p.reshape(shape))), y), expected, atol=1e-12)

    def test_batches_do_not_change_anything(self):
        sizes = []

        def model(x):
            sizes.append(len(x))
            return table(self.p)(x)

        np.testing.assert_array_equal(
            self.loss(PretrainedModel(model, batch=4), [0, 1, 2] * 3),
            self.loss(PretrainedModel(table(self.p)), [0, 1, 2] * 3),
        )
        assert sizes == [4, 4, 1]

    def test_is_not_stored(self):
        release: Release = PretrainedModel(table(self.p))
        assert release.describe() is None

    @pytest.mark.parametrize(
        ("model", "y", "message"),
        [
            (PretrainedModel(table(p)), None, f"model needs labels, and there are none: give y, {OR_SCORE}"),
            (PretrainedModel(lambda x: np.ones((2, 3)) / 3), [0, 1, 2] * 3, "model gave 2 answers for 9 points"),
            (
                PretrainedModel(table(p)),
                ["a", "b", "a"] * 3,
                "model gives 3 probabilities a point, and the labels cannot be matched with them (2 different ones, "
                "2 classes); give the label of each column as classes=",
            ),
            (
                PretrainedModel(table(p), np.array(["a", "b", "c"])),
                ["a", "b", "z"] * 3,
                "model gives 3 probabilities a point, and the labels cannot be matched with them (3 different ones, "
                "3 classes); give the label of each column as classes=",
            ),
            (
                PretrainedModel(table(p)),
                [1, 2, 3, 4, 5, 1, 2, 3, 4],
                "model gives 3 probabilities a point, and the labels cannot be matched with them (5 different ones, "
                "5 classes); give the label of each column as classes=",
            ),
        ],
    )
    def test_the_line_that_a_misfit_gets(self, model, y, message):
        with pytest.raises(ValueError) as caught:
            self.loss(model, y)
        assert str(caught.value) == message

    def test_logits_are_refused(self):
        with pytest.raises(
            ValueError,
            match=r"^rows must be probabilities: .*; apply softmax to logits, and divide rounded ones by the sum of "
            r"their row$",
        ):
            self.loss(PretrainedModel(table(np.log(self.p))), [0, 1, 2] * 3)


RAGGED = [[1.0] * (1 + row % 3) for row in range(60)]
BY_NAME = {"a": np.arange(120.0).reshape(60, 2), "b": np.arange(60.0)}


@pytest.mark.parametrize(
    ("x", "form"), [(RAGGED, "has rows of different lengths"), (BY_NAME, "is a dictionary of arrays")]
)
def test_records_that_no_estimator_of_scikit_learn_takes_get_one_line(x, form):
    y = np.arange(60) % 2
    line = rf"x {form}; allowed: an array of numbers, or a frame with a column for each feature$"
    with pytest.raises(RuntimeError, match=rf"^LogisticRegression cannot be fitted on 30 points: {line}"):
        ls.audit(LogisticRegression(), x, y, n_models=4, attacks=["loss"], n_jobs=1)
    fitted = LogisticRegression().fit(np.arange(60.0)[:, None], y)
    with pytest.raises(RuntimeError, match=rf"^model gives no numbers for \d+ points: {line}"):
        ls.audit_model(fitted, (x, y), (x, y))


def test_an_estimator_of_the_user_has_its_own_error():
    class Counts(DecisionTreeClassifier):
        def fit(self, x, y):
            raise ValueError("a list of counts")

    with pytest.raises(RuntimeError, match=r"cannot be fitted on 30 points: a list of counts$"):
        ls.audit(Counts(), RAGGED, np.arange(60) % 2, n_models=4, attacks=["loss"], n_jobs=1)


def test_a_search_whose_fits_all_fail_says_why():
    """Its first line is "All the 6 fits failed."; the cause is behind two tracebacks."""
    search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [-1, -2]}, cv=3)
    line = r"All the 6 fits failed: InvalidParameterError: The 'max_depth' parameter of DecisionTreeClassifier must be"
    with pytest.raises(RuntimeError, match=rf"^GridSearchCV cannot be fitted on .* points: {line}") as caught:
        ls.audit(search, np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2, n_models=4, n_jobs=1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("wrapped", [lambda model: model, lambda model: make_pipeline(StandardScaler(), model)])
def test_of_hard_votes_the_labels_are_seen_and_of_soft_ones_the_probabilities(wrapped):
    trees = [("a", DecisionTreeClassifier()), ("b", LogisticRegression())]
    x, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    points, member = Points(x, y), np.arange(40)[None] < 20
    for voting, signals in (("hard", {"correct"}), ("soft", {"correct", "loss"})):
        vote = wrapped(VotingClassifier(trees, voting=voting))
        assert Estimator(vote).observe(points, member, np.array([0]), ["correct", "loss"]).keys() == signals
        trained = trained_release(vote.fit(x[:20], y[:20]))
        assert trained.observe(points, member, np.array([0]), ["correct", "loss"]).keys() == signals


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        MultinomialNB(),
        RandomForestClassifier(3),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
)
def test_texts_need_a_vectoriser(estimator):
    name = type(estimator[-1] if hasattr(estimator, "steps") else estimator).__name__
    advice = rf"x holds texts, which it does not read; give make_pipeline\(TfidfVectorizer\(\), {name}\(...\)\)$"
    with pytest.raises(RuntimeError, match=advice):
        ls.audit(estimator, ["hello world"] * 20 + ["bye"] * 20, np.arange(40) % 2, n_models=4, n_jobs=1)


def test_a_fitted_estimator_that_is_fitted_anew_is_not_told_of_its_old_columns():
    frame = pd.DataFrame({"age": [np.inf] * 40, "hours": range(40)})
    fitted = LogisticRegression().fit(frame[["hours"]], np.arange(40) % 2)
    with pytest.raises(RuntimeError, match="contains infinity"):
        ls.audit(fitted, frame, np.arange(40) % 2, n_models=4, n_jobs=1)


@pytest.mark.parametrize(
    ("estimator", "family"),
    [
        (RandomForestClassifier(), "trees"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "regularised"),
        (GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 3]}), "neighbours"),
        (MLPClassifier(), "network"),
        (GaussianNB(), ""),
    ],
)
def test_the_family_of_an_estimator(estimator, family):
    assert Estimator(estimator).family == family
