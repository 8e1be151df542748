"""Texts and sparse rows as records."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import leakbound as ls
from leakbound.data import Data, from_arrays, join, preview, repeated, shared
from leakbound.data.features import features
from leakbound.data.records import Fields, Sequences, Texts, as_given, fields, sequences, sparse_rows, texts
from leakbound.releases.estimator import Estimator

WORDS = ["a fine day", "rain again", "a fine day", "snow", "wind and rain", "fog"]
MATRIX = np.array([[0, 1.5, 0], [2, 0, 0], [0, 1.5, 0], [0, 0, 0], [1, 2, 3], [0, 0, -1.0]])
GIVEN = {
    "list": WORDS,
    "series": pd.Series(WORDS, index=range(10, 16)),
    "array": np.array(WORDS),
    "csr": sparse.csr_matrix(MATRIX),
    "coo": sparse.coo_array(MATRIX),
}


@pytest.mark.parametrize("x", GIVEN.values(), ids=GIVEN)
class TestBothKinds:
    def test_records(self, x):
        points = from_arrays(x, [0, 1] * 3)
        assert len(points) == 6
        assert len(points.take(np.array([4, 1])).x) == 2

    def test_repeated_rows_are_found(self, x):
        assert repeated(from_arrays(x)).tolist() == [False, False, True, False, False, False]
        assert not repeated(from_arrays(x, [0, 0, 1, 0, 0, 0])).any()

    def test_joined_and_shared(self, x):
        points = from_arrays(x)
        first, second = (from_arrays(as_given(points.take(np.array(rows)).x)) for rows in ([0, 1, 3], [2, 4]))
        assert shared(first, second) == 1
        joined = join(first, second)
        whole = points.take(np.array([0, 1, 3, 2, 4]))
        np.testing.assert_array_equal(joined.x.content, whole.x.content)

    def test_the_digest_is_that_of_the_content(self, x):
        other = (
            [*WORDS[:5], "hail"] if isinstance(from_arrays(x).x, Texts) else sparse.csr_matrix(MATRIX + np.eye(6, 3))
        )
        assert from_arrays(x).digest == from_arrays(x).digest != from_arrays(other).digest

    def test_a_preview(self, x):
        fields = preview(Data(from_arrays(x), "x"), 4)["fields"]
        assert fields in ({"text": "wind and rain"}, {"x0": "1", "x1": "2", "x2": "3"})

    def test_they_are_numbers_for_the_test_of_one_source(self, x):
        found = features(from_arrays(x, [0, 1] * 3), np.arange(6))
        assert len(found.values) == 6
        assert not np.array_equal(found.values[0], found.values[1], equal_nan=True)
        np.testing.assert_array_equal(found.values[0, :-1], found.values[2, :-1])


def test_what_an_estimator_gets_is_what_the_user_gave():
    assert as_given(from_arrays(WORDS).x) == WORDS
    assert isinstance(as_given(from_arrays(GIVEN["series"]).x), pd.Series)
    assert isinstance(as_given(from_arrays(GIVEN["array"]).x), np.ndarray)
    assert type(as_given(from_arrays(GIVEN["csr"]).x)) is sparse.csr_matrix
    assert type(as_given(from_arrays(GIVEN["coo"]).x)) is sparse.csr_array
    np.testing.assert_array_equal(as_given(from_arrays(GIVEN["coo"]).x).toarray(), MATRIX)


def test_stored_zeros_and_the_order_of_entries_do_not_matter():
    messy = sparse.csr_matrix((np.array([3.0, 1.0, 0.0]), np.array([2, 0, 1]), np.array([0, 3])), shape=(1, 3))
    plain = sparse.csr_matrix(np.array([[1.0, 0.0, 3.0]]))
    np.testing.assert_array_equal(sparse_rows(messy).content, sparse_rows(plain).content)
    assert messy.nnz == 3  # what the user gave is not changed


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (pd.Series([1.0, 2.0]), "x is one column of float64; give a frame with it: X.to_frame()"),
        ([1, [2, 3]], "the rows of x have different lengths; give an array of numbers, or a frame"),
        ({"ids": [[1], [2]], "mask": [[1]]}, "the arrays of x must have equal lengths, got {'ids': 2, 'mask': 1}"),
        ({"ids": [[1], [2, 3]]}, "the rows of x['ids'] have different lengths; pad them"),
        (
            {"age": [1, 2], "town": ["a", "b"]},
            "x['town'] holds <U1, not numbers; columns of several types are a pandas DataFrame",
        ),
        ({}, "x is a dictionary without arrays"),
        (["a", None], "x is an array of objects; give numbers, or a pandas DataFrame for columns of several types"),
        (sparse.csr_matrix(MATRIX.astype(complex)), "a sparse matrix must hold numbers, got complex128"),
        (["one text"], "a game needs at least 2 points, got 1"),
    ],
)
def test_the_line_that_other_records_get(x, message):
    with pytest.raises(ValueError) as caught:
        from_arrays(x)
    assert str(caught.value) == message


def test_texts_are_only_texts():
    assert texts(["a", 1]) is None
    assert texts(np.array(["a", "b"])).kind == "array"
    assert texts(pd.DataFrame({"a": ["b"]})) is None


def reviews(n: int) -> tuple[list[str], list[str]]:
    rng = np.random.default_rng(0)
    vocabulary = [f"word{number}" for number in range(200)]
    return [" ".join(rng.choice(vocabulary, 8)) for _ in range(n)], rng.choice(["good", "bad"], n).tolist()


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(TfidfVectorizer(), LogisticRegression(C=100)),
        make_pipeline(HashingVectorizer(n_features=512), LinearSVC(C=10)),
    ],
    ids=["probabilities", "margins"],
)
def test_an_audit_of_texts_finds_what_a_model_memorises(estimator):
    x, y = reviews(80)
    report = ls.audit(estimator, x, y, n_models=12, attacks=["lira", "gap"], n_jobs=1)
    assert max(f.low or 0 for f in report.findings if f.quantity == "accuracy") > 0.6


def test_an_audit_of_sparse_rows_equals_that_of_dense_ones():
    rng = np.random.default_rng(0)
    dense = rng.poisson(0.2, size=(60, 90)).astype(float)
    y = rng.integers(0, 2, 60)
    member = rng.random((4, 60)) < 0.5
    seeds = np.arange(4)
    model = Estimator(RidgeClassifier(alpha=1.0, solver="lsqr"))
    expected = model.observe(from_arrays(dense, y), member, seeds, ("log_odds",))["log_odds"]
    found = model.observe(from_arrays(sparse.csr_matrix(dense), y), member, seeds, ("log_odds",))["log_odds"]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)  # lsqr stops at 1e-4


def test_a_wide_sparse_matrix_becomes_a_narrow_one_for_the_test_of_one_source():
    wide = sparse.random(50, 20_000, density=0.01, random_state=0, format="csr")
    found = features(from_arrays(wide), np.arange(50))
    assert found.values.shape[1] <= 1100


TOKENS = {
    "input_ids": np.array([[5, 2, 0], [7, 1, 4], [5, 2, 0], [5, 2, 1]]),
    "attention_mask": np.array([[1, 1, 0], [1, 1, 1], [1, 1, 0], [1, 1, 1]]),
}
RAGGED = [[5, 2], [7, 1, 4], np.array([5, 2]), [5, 3]]


@pytest.mark.parametrize(("x", "kind"), [(TOKENS, Fields), (RAGGED, Sequences)])
class TestRecordsOfNetworks:
    def test_records(self, x, kind):
        points = from_arrays(x, [0, 1, 0, 1])
        assert isinstance(points.x, kind)
        assert (len(points), len(points.take(np.array([3, 1])).x)) == (4, 2)

    def test_repeated_rows_are_found(self, x, kind):
        assert repeated(from_arrays(x)).tolist() == [False, False, True, False]

    def test_joined_and_shared(self, x, kind):
        points = from_arrays(x)
        first, second = (points.take(np.array(rows)) for rows in ([0, 1], [2, 1]))
        assert shared(first, second) == 2
        expected = points.take(np.array([0, 1, 2, 1])).x.content
        np.testing.assert_array_equal(join(first, second).x.content, expected)

    def test_the_digest_is_that_of_the_content(self, x, kind):
        other = {**TOKENS, "attention_mask": 1 - TOKENS["attention_mask"]} if kind is Fields else [*RAGGED[:3], [5, 4]]
        assert from_arrays(x).digest == from_arrays(x).digest != from_arrays(other).digest

    def test_a_preview(self, x, kind):
        expected = {"input_ids": "7 1 4", "attention_mask": "1 1 1"} if kind is Fields else {"sequence": "7 1 4"}
        assert preview(Data(from_arrays(x), "x"), 1) == {"fields": expected}


def test_what_a_loop_gets_is_what_the_user_gave():
    ragged, given = from_arrays(RAGGED).x, as_given(from_arrays(TOKENS).x)
    assert all(row is own for row, own in zip(as_given(ragged), RAGGED, strict=True))
    assert list(given) == list(TOKENS)
    np.testing.assert_array_equal(given["input_ids"], TOKENS["input_ids"])


def test_fields_of_other_names_are_not_joined():
    with pytest.raises(ValueError, match=r"members have the fields \{'a': \(\)\}, others \{'b': \(\)\}"):
        join(from_arrays({"a": [1, 2]}), from_arrays({"b": [1, 2]}))
    assert len(fields({"a": [1.0, 2.0]})) == 2


def test_rows_of_equal_length_are_an_array():
    assert sequences([[1, 2], [3, 4]]) is None
    assert sequences([1, [2]]) is None
    assert sequences(["a", "bc"]) is None
    assert isinstance(from_arrays([[1, 2], [3, 4]]).x, np.ndarray)
    assert isinstance(from_arrays(np.array([[1], [2, 3]], dtype=object)).x, Sequences)
    assert isinstance(from_arrays([np.zeros((2, 3)), np.zeros((4, 3))]).x, Sequences)
