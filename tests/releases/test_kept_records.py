"""Whether a fitted model holds records: what is hidden in it is found, and what only looks like records is not."""

from __future__ import annotations

import functools
import threading
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.decomposition import PCA, FactorAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Lars, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from leakbound.core.types import Points
from leakbound.data import from_arrays
from leakbound.releases.kept_records import search
from leakbound.releases.structure import structure_of

N = 120
RANDOM = np.random.default_rng(7)
NUMBERS = ["age", "days", "cost"]
PATIENTS = pd.DataFrame(
    {
        "age": RANDOM.integers(18, 96, N).astype(float),
        "days": RANDOM.integers(1, 30, N).astype(float),
        "cost": RANDOM.lognormal(8, 0.5, N).round(2),
        "ward": RANDOM.choice(["north", "south", "west"], N),
        "admitted": pd.to_datetime("2025-01-01") + pd.to_timedelta(RANDOM.integers(0, 365, N), "D"),
    }
)
PATIENTS["admitted"] = PATIENTS["admitted"].dt.strftime("%d.%m.%Y")
CASES = np.arange(700_001, 700_001 + 2 * N, 2)
ILL = (PATIENTS["age"] + RANDOM.normal(0, 20, N) > 55).to_numpy().astype(int)
MEMBERS = Points(PATIENTS, ILL, names=CASES.astype(str))
X = PATIENTS[NUMBERS].to_numpy()


def clean():
    """Return a fitted pipeline that holds no record."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = make_column_transformer((numbers, NUMBERS), (OneHotEncoder(), ["ward"]))
    return make_pipeline(columns, LogisticRegression()).fit(PATIENTS, ILL)


def held_by(content):
    """Hide something in a model, and return what is found in it."""
    model = clean()
    model[-1].notes_ = content
    return search(model, MEMBERS).held


def closure_over(rows):
    """Return a function that holds rows in its closure."""
    return lambda i: rows[i]


class Refusing:
    """An object that refuses to be pickled."""

    def __init__(self, rows):
        self.rows = rows

    def __reduce_ex__(self, protocol):
        raise TypeError("no")


class Slotted:
    """An object without a dictionary."""

    __slots__ = ("rows",)

    def __init__(self, rows):
        self.rows = rows


SHUFFLED = X[RANDOM.permutation(N)]
HIDDEN_ROWS = {
    "an array": X,
    "shuffled rows": SHUFFLED,
    "other order of columns": SHUFFLED[:, [2, 0, 1]],
    "some rows": SHUFFLED[:7],
    "a single row": X[3],
    "beside noise": np.vstack([RANDOM.normal(size=(40, 3)), SHUFFLED[:80]]),
    "32 bits": SHUFFLED.astype(np.float32),
    "transposed": SHUFFLED.T,
    "a frame": PATIENTS.sample(frac=1, random_state=0),
    "a sparse matrix": sparse.csr_array(SHUFFLED),
    "lists": SHUFFLED.tolist(),
    "dictionaries": PATIENTS.to_dict("records"),
    "in a dictionary": {"a": {"b": [SHUFFLED]}},
    "in an object": SimpleNamespace(inner=SimpleNamespace(rows=SHUFFLED)),
    "a partial function": functools.partial(print, SHUFFLED),
    "a closure": closure_over(SHUFFLED),
    "beside a lock": {"lock": threading.Lock(), "rows": SHUFFLED},
    "in what cannot be pickled": Refusing(SHUFFLED),
    "in slots": Slotted(SHUFFLED),
    "an array of objects": PATIENTS.to_numpy(dtype=object)[::-1],
    "an array with fields": PATIENTS[NUMBERS].to_records(index=False),
    "text": PATIENTS.to_csv(index=False),
}


@pytest.mark.by_day("other order of columns", "a sparse matrix", "a closure")
@pytest.mark.parametrize("name", HIDDEN_ROWS)
def test_rows_are_found_wherever_they_are(name):
    held = held_by(HIDDEN_ROWS[name])
    assert {found.kind for found in held} == {"rows"}
    n_rows = {"some rows": 7, "a single row": 1, "beside noise": 80}.get(name, N)
    assert max(found.n for found in held) == n_rows
    assert all(found.where.startswith("steps.notes_") for found in held)


@pytest.mark.by_day("content0-names-", "content8-values-cost")
@pytest.mark.parametrize(
    ("content", "kind", "column"),
    [
        (CASES, "names", ""),
        (CASES.astype(str).tolist(), "names", ""),
        (set(CASES.tolist()), "names", ""),
        (dict.fromkeys(CASES.tolist(), 0), "names", ""),
        (";".join(CASES.astype(str)), "names", ""),
        (CASES.astype("<i8").tobytes(), "names", ""),
        (RANDOM.permutation(X[:, 2]), "values", "cost"),
        (SHUFFLED[:, [2, 0]], "rows", ""),  # rows of some of the columns
        (np.column_stack([SHUFFLED, RANDOM.random(N)]), "rows", ""),  # rows beside another column
        (np.column_stack([SHUFFLED, RANDOM.random(N)])[1:], "values", "cost"),  # not of all members
        (X[:, 2].tobytes(), "column", "cost"),
        (X.ravel(), "values", "cost"),
        (PATIENTS["ward"].tolist(), "column", "ward"),
        (ILL, "column", "label"),
    ],
)
def test_names_values_and_columns_are_found(content, kind, column):
    (found,) = held_by(content)
    assert (found.kind, found.column) == (kind, column)
    assert found.n >= 0.9 * N  # some records share a value


def test_a_name_in_a_sentence_is_found():
    members = Points(X, ILL, names=np.array([f"patient-{i:03}" for i in range(N)]))
    model = LogisticRegression().fit(X, ILL)
    assert not search(model, members).held
    model.remark_ = "as for patient-017, see the file"
    assert [(found.kind, found.n) for found in search(model, members).held] == [("names", 1)]


@pytest.mark.parametrize(("column", "kind"), [("admitted", "values"), ("case", "names")])
def test_categories_that_single_out_records_are_found(column, kind):
    frame = PATIENTS.assign(case=CASES)
    columns = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(), [column]))
    model = make_pipeline(columns, LogisticRegression()).fit(frame, ILL)
    structure = structure_of(model, Points(frame, ILL, names=CASES.astype(str)))
    assert structure.stores_records is True
    assert [(found.kind, found.where) for found in structure.kept.held] == [(kind, "steps.transformers_.categories_")]


def test_rows_as_a_step_hands_them_on_are_found():
    model = clean()
    model[-1].copy_ = model[:-1].transform(PATIENTS)[:50]
    structure = structure_of(model, MEMBERS)
    assert [(found.kind, found.n) for found in structure.kept.held] == [("rows", 50)]
    assert structure.stores_records is True


@pytest.mark.by_day("load_diabetes")
@pytest.mark.parametrize("load", [load_breast_cancer, load_wine, load_diabetes, load_digits])
def test_nothing_is_found_in_models_that_hold_nothing(load):
    x, y = load(return_X_y=True)
    members = from_arrays(x, y, names=np.arange(len(x)))  # names that are also positions
    steps = [MinMaxScaler(), SimpleImputer(), PCA(2), FactorAnalysis(random_state=0), Lars(), Ridge()]
    for model in [*steps, RandomForestClassifier(5, max_depth=6, random_state=0)]:
        found = search(model.fit(x, y), members)
        assert (found.held, found.extra, found.complete) == ((), (), True), model


def test_a_cluster_of_one_record_is_that_record():
    centre = [500.0, 900.0, 1e6]
    x = np.vstack([X, centre])
    model = KMeans(2, n_init=1, random_state=0).fit(x)
    assert centre in model.cluster_centers_.tolist()
    (found,) = (held for held in search(model, Points(x)).held if held.where == "cluster_centers_")
    assert (found.kind, found.n) == ("rows", 1)


def test_a_model_that_is_too_deep_to_be_pickled_is_not_searched_completely():
    model = clean()
    chain = []
    for _ in range(100_000):
        chain = [chain]
    model[-1].chain_ = chain
    assert search(model, MEMBERS).complete is False
    assert structure_of(model, MEMBERS).stores_records is None


def test_images_and_texts():
    x, y = load_digits(return_X_y=True)
    model = LogisticRegression(max_iter=20, tol=1.0).fit(x, y)
    members = from_arrays(x.reshape(-1, 8, 8), y)
    assert not search(model, members).held
    model.examples_ = x[5:9]
    assert [(found.kind, found.n) for found in search(model, members).held] == [("rows", 4)]
    texts = [f"the patient of room {i} was well on the day {i * i}" for i in range(30)]
    members = from_arrays(texts, np.arange(30) % 2)
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, np.arange(30) % 2)
    assert not search(model, members).held
    model[0].cache_ = {"last": texts[4]}
    assert [(found.kind, found.n) for found in search(model, members).held] == [("rows", 1)]


def test_attributes_that_the_class_does_not_have():
    model = clean()
    model[-1].version_ = "3.1"
    found = structure_of(model, MEMBERS)
    assert (found.kept.extra, found.kept.unexplained) == (("steps.version_",), ())
    assert found.stores_records is False
    model[-1].table_ = RANDOM.normal(size=(11, 10))
    found = structure_of(model, MEMBERS)
    assert found.kept.unexplained == ("steps.table_",)
    assert found.stores_records is None
    model = clean()
    model[-1].weights_ = RANDOM.normal(size=N)  # perhaps a number that was computed for each member
    assert structure_of(model, MEMBERS).stores_records is None


def test_a_model_that_refers_to_itself_is_searched_once():
    model = clean()
    model[-1].whole_ = model
    model[-1].rows_ = SHUFFLED
    assert [found.where for found in search(model, MEMBERS).held] == ["steps.rows_"]
