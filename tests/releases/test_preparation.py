"""What is done to columns and labels that an estimator does not take."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import leakbound as ls
from leakbound.data import from_arrays
from leakbound.data.columns import identifier_notes
from leakbound.releases.estimator import Estimator
from leakbound.releases.preparation import MOST_ROWS, Preparation, encoded, preparation_for, trial_rows

N = 60
ROWS = np.random.default_rng(1).random((3, N)) < 0.5
SEEDS = np.array([3, 4, 5])


def people(**more: object) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"age": rng.integers(18, 80, N), "town": rng.choice(["Bern", "Chur", "Zug"], N), **more})


LABELS = np.where(people()["age"] > 45, "high", "low")


class ByName(ClassifierMixin, BaseEstimator):
    """A classifier of the user's that reads columns by name and rows by position."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.limit_ = X["age"].iloc[: len(X) // 2].mean()
        self.dtypes_ = X.dtypes
        return self

    def predict_proba(self, X):
        second = 1 / (1 + np.exp(X.loc[:, "age"].to_numpy() - self.limit_))
        return np.column_stack([1 - second, second])


class WantsWholeLabels(DecisionTreeClassifier):
    """A classifier that takes 0 ... K-1 and nothing else, as XGBoost does."""

    def fit(self, X, y):
        if not np.array_equal(np.unique(y), np.arange(len(np.unique(y)))):
            raise ValueError(f"Expected: [0 1], got {np.unique(y)}")
        return super().fit(X, y)


def by_name(model):
    """A pipeline that encodes town by its name."""
    return make_pipeline(
        make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["town"]), remainder="passthrough"), model
    )


class TestFramesAsTheyAre:
    @pytest.mark.by_day("ByName")
    @pytest.mark.parametrize(
        "estimator",
        [
            ByName(),
            HistGradientBoostingClassifier(max_iter=3, categorical_features="from_dtype"),
            by_name(DecisionTreeClassifier()),
            GridSearchCV(by_name(DecisionTreeClassifier()), {"decisiontreeclassifier__max_depth": [1, 2]}, cv=2),
            CalibratedClassifierCV(by_name(DecisionTreeClassifier()), cv=2),
            StackingClassifier([("tree", by_name(DecisionTreeClassifier()))], cv=2),
        ],
        ids=lambda estimator: type(estimator).__name__,
    )
    def test_an_estimator_that_takes_the_frame_gets_it(self, estimator):
        frame = people()
        frame["town"] = frame["town"].astype("category")
        points = from_arrays(frame, LABELS)
        assert preparation_for(estimator, points) == Preparation()
        found = Estimator(estimator).observe(points, ROWS, SEEDS, ("loss",))
        assert np.isfinite(found["loss"]).all()

    def test_an_estimator_that_refuses_it_gets_encoded_columns_and_its_error_is_told(self):
        found = preparation_for(RandomForestClassifier(5), from_arrays(people(), LABELS))
        assert (found.words, found.labels, found.fill) == (("town",), False, False)
        assert "could not convert string to float" in found.refused
        note = found.note("forest")
        assert "column town is one-hot encoded" in note
        assert found.refused not in note  # it may quote a value of the data
        assert found.refused in found.owner_note("forest")

    def test_missing_numbers_are_filled_only_for_an_estimator_that_refuses_them(self):
        frame = people(hours=np.where(np.arange(N) % 7 == 0, np.nan, 40.0))
        assert not preparation_for(DecisionTreeClassifier(), from_arrays(frame, LABELS)).fill
        assert preparation_for(LogisticRegression(), from_arrays(frame, LABELS)).fill
        y = np.arange(N) + 0.5
        assert preparation_for(GradientBoostingRegressor(n_estimators=3), from_arrays(frame, y)).fill

    @pytest.mark.by_day("tree-boolean")
    @pytest.mark.parametrize(
        "column",
        [
            pd.Series(pd.date_range("2020-01-01", periods=N)),
            pd.Series(pd.date_range("2020-01-01", periods=N, tz="Europe/Zurich")),
            pd.Series(pd.to_timedelta(np.arange(N), unit="D")),
            pd.Series(pd.date_range("2020-01-01", periods=N)).where(np.arange(N) % 5 > 0),
            pd.Series(np.where(np.arange(N) % 2, "a", None), dtype="string"),
            pd.Series(np.where(np.arange(N) % 2, True, None), dtype="boolean"),
            pd.Series(np.where(np.arange(N) % 3, 7, None), dtype="Int64"),
        ],
        ids=["times", "times of a zone", "durations", "missing times", "string", "boolean", "Int64"],
    )
    @pytest.mark.parametrize(
        "estimator",
        [DecisionTreeClassifier(), pytest.param(LogisticRegression(), marks=pytest.mark.slow)],
        ids=["tree", "logistic"],
    )
    def test_columns_of_newer_types(self, column, estimator):
        points = from_arrays(people(more=column), LABELS)
        found = Estimator(estimator).observe(points, ROWS, SEEDS, ("loss",))
        assert np.isfinite(found["loss"]).all()

    def test_a_model_knows_no_category_that_none_of_its_rows_has(self):
        """The records' categories are found in the model by their names, in every array that it holds."""
        frame = people()
        frame.loc[17, "town"] = "Scuol"  # this category is in one record
        points = from_arrays(frame, LABELS)
        release = Estimator(DecisionTreeClassifier()).for_points(points)
        for inside in (np.arange(N) != 17, np.arange(N) >= 0):
            model = release.fitted(points, inside, 0)
            encoder = model[0].named_transformers_["pipeline-2"][-1]
            assert ("Scuol" in encoder.categories_[0]) == bool(inside[17])
            assert model[-1].n_features_in_ == 1 + len(set(frame["town"][inside]))
        # the record itself is answered as one of an unknown town
        without = release.observe(points, (np.arange(N) != 17)[None], SEEDS[:1], ("loss",))
        assert np.isfinite(without["loss"]).all()


class TestLabels:
    @pytest.mark.parametrize(
        "y", [LABELS, LABELS == "high", np.where(LABELS == "high", 7, 3)], ids=["text", "bool", "3 and 7"]
    )
    def test_labels_become_numbers_only_for_an_estimator_that_wants_them(self, y):
        points = from_arrays(people()[["age"]], y)
        assert not preparation_for(DecisionTreeClassifier(), points).labels
        found = preparation_for(WantsWholeLabels(), points)
        assert found.labels == (y.dtype.kind != "b")
        plain = Estimator(DecisionTreeClassifier(max_depth=2)).observe(points, ROWS, SEEDS, ("loss", "correct"))
        encoded_labels = Estimator(WantsWholeLabels(max_depth=2)).observe(points, ROWS, SEEDS, ("loss", "correct"))
        for name, expected in plain.items():
            np.testing.assert_array_equal(encoded_labels[name], expected)

    def test_a_class_that_a_half_lacks(self):
        """Labels are numbered within each half: without class b its members are 0 and 1."""
        y = np.array(["a", "b", "c"])[np.arange(N) % 3]
        points = from_arrays(people()[["age"]], y)
        member = ROWS & (y != "b")
        plain = Estimator(DecisionTreeClassifier(max_depth=2)).observe(points, member, SEEDS, ("loss", "correct"))
        found = Estimator(WantsWholeLabels(max_depth=2)).observe(points, member, SEEDS, ("loss", "correct"))
        for name, expected in plain.items():
            np.testing.assert_array_equal(found[name], expected)

    def test_encoded(self):
        codes, classes = encoded(np.array([["b", "x"], ["a", "x"], ["b", "y"]]))
        assert codes.tolist() == [[1, 0], [0, 0], [1, 1]]
        assert [values.tolist() for values in classes] == [["a", "b"], ["x", "y"]]


def test_the_trial_has_at_most_200_rows_and_every_class():
    y = np.zeros(5000, dtype=int)
    y[[17, 4000]] = 1, 2
    rows = trial_rows(from_arrays(np.arange(5000.0)[:, None], y))
    assert len(rows) == MOST_ROWS
    assert {17, 4000} <= set(rows.tolist())
    assert len(trial_rows(from_arrays(np.zeros((30, 1)), np.arange(30) % 2))) == 30


def test_if_nothing_helps_the_estimators_own_error_is_told():
    class Broken(DecisionTreeRegressor):
        def fit(self, X, y):
            raise ValueError("no licence found")

    points = from_arrays(people(), np.arange(N) + 0.5)
    with pytest.raises(RuntimeError, match=r"^Broken cannot be fitted on .* points: no licence found$"):
        Estimator(Broken()).observe(points, ROWS, SEEDS, ("loss",))


@pytest.mark.slow
def test_the_page_names_the_columns_the_error_and_an_identifier():
    frame = people(customer_id=range(1000, 1000 + N))
    report = ls.audit(DecisionTreeClassifier(), frame, LABELS, n_models=8, n_jobs=1)
    notes = " ".join(report.about.notes)
    done = "column town is one-hot encoded; numbers are standardised"
    assert done in report.about.releases[0].prepared
    assert report.table().index("numbers are") < report.table().index("Right of 100")
    for page in (report.to_html(), report.to_html(publish=True)):
        assert done in page
    assert "--drop customer_id" in notes
    (error,) = report.about.owner_notes
    assert "could not convert string to float" in error
    value = error.rpartition("'")[0].rpartition("'")[2]  # the first one that it could not convert
    assert value in {*frame["town"]}
    for text in (report.table(full=True), report.to_html(), report.to_json()):
        assert value in text
    for text in (report.to_html(publish=True), report.to_json(publish=True), report.without_records().table(full=True)):
        assert value not in text


def texts(n_once, n_twice):
    """Return texts of which some occur once and the others twice."""
    twice = [f"and that {number}" for number in range(n_twice)]
    return [f"this {number}" for number in range(n_once)] + twice + twice


@pytest.mark.parametrize(("n_once", "refused"), [(N // 2, False), (N // 2 + 2, True), (N, True)])
@pytest.mark.parametrize("model", [DecisionTreeClassifier(), ByName()])
def test_a_column_of_free_text_is_neither_encoded_nor_dropped(model, n_once, refused):
    """A quarter of N texts occur twice, beside N/2 that occur once: that is no more than half of the values."""
    frame = people(note=texts(n_once, (N - n_once) // 2))
    points = from_arrays(frame, LABELS)
    if not isinstance(model, DecisionTreeClassifier):
        assert preparation_for(model, points) == Preparation()  # it reads the column by itself
    elif refused:
        with pytest.raises(ValueError, match=r"values of note occur once: name a TfidfVectorizer in a pipeline .*drop"):
            preparation_for(model, points)
    else:
        assert "note" in preparation_for(model, points).words


@pytest.mark.parametrize(
    ("column", "named"),
    [
        (np.arange(N), True),
        ([f"C{number}" for number in range(N)], True),
        (np.arange(N) / 7, False),
        (np.arange(N) // 2, False),
        (pd.date_range("2020", periods=N), False),
        (pd.Series(range(N), dtype="Int64"), True),
    ],
    ids=["numbers", "text", "measurements", "pairs", "times", "nullable"],
)
def test_columns_that_name_records(column, named):
    notes = identifier_notes(from_arrays(people(code=column)))
    assert [note.split()[0] for note in notes] == (["code"] if named else [])
