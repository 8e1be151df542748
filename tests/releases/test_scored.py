"""Anything that a training returns, seen by a score."""

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound.core.types import Points
from leakbound.releases.factory import release_from, release_of, trained_release
from leakbound.releases.labels import LabelsOnly
from leakbound.releases.scored import Score

X = np.random.default_rng(0).normal(size=(30, 4))
Y = np.arange(30) % 2
MEMBER = np.arange(30) < np.array([[10], [20]])
SEEDS = np.array([5, 6])


def keep(X, seed):
    return X, seed


def keep_labelled(X, y, seed=0):
    return X, y, seed


def nearest(kept, X):
    """Minus the distance to the nearest record that was kept."""
    return -np.abs(X[:, None] - kept[0]).sum(axis=2).min(axis=1)


def observed(train, score, points=None, **words):
    release = release_of(train, score=score, **words)
    points = Points(X) if points is None else points
    return release.for_points(points).observe(points, MEMBER, SEEDS, ["score"])


def test_any_object_is_scored_at_all_records():
    seen = observed(keep, nearest)
    assert list(seen) == ["score"]
    expected = np.array([[-np.abs(X[row] - X[:n]).sum(axis=1).min() for row in range(30)] for n in (10, 20)])
    np.testing.assert_allclose(seen["score"], expected)


def test_the_score_is_asked_once_a_model_about_all_records_in_their_order():
    asked = []

    def score(kept, given):
        asked.append(given.copy())
        return given[:, 0]

    observed(keep, score)
    assert len(asked) == 2
    assert all(np.array_equal(given, X) for given in asked)


def test_a_trained_object_is_asked_in_an_order_that_does_not_tell_the_members():
    asked = []

    def score(model, given):
        asked.append(given[:, 0].copy())
        return given[:, 0]

    release = trained_release(object(), score=score)
    seen = release.observe(Points(X), np.arange(30)[None] < 15, SEEDS[:1], ["score"])
    np.testing.assert_array_equal(seen["score"], X[None, :, 0])
    assert len(asked) == 1
    in_first_half = np.isin(asked[0][:15], X[:15, 0]).sum()
    assert 3 < in_first_half < 12


@pytest.mark.parametrize("has_labels", [False, True])
def test_training_gets_records_labels_and_its_own_seed(has_labels: bool):
    points = Points(X, Y) if has_labels else Points(X)
    seeds = []

    def score(kept, X):
        seeds.append(kept[-1])
        return X[:, 0]

    observed(keep_labelled if has_labels else keep, score, points)
    assert seeds == [5, 6]


def test_the_seed_may_be_left_out():
    assert observed(lambda X: (X,), nearest)["score"].shape == (2, 30)
    points = Points(X, Y)
    assert observed(lambda X, y: (X[y > 0],), nearest, points)["score"].shape == (2, 30)


def test_a_score_may_read_the_labels():
    def score(kept, X, y):
        return X[:, 0] * y

    seen = observed(keep_labelled, score, Points(X, Y))
    np.testing.assert_allclose(seen["score"], np.tile(X[:, 0] * Y, (2, 1)))
    with pytest.raises(ValueError, match="score takes labels, and there are none: give y"):
        observed(keep, score)


@pytest.mark.parametrize(
    ("train", "points", "message"),
    [
        (keep, Points(X, Y), r"keep takes no labels, and y is given: def keep\(X, y, seed\), or leave y out"),
        (lambda X: X, Points(X, Y), "takes no labels, and y is given"),
        (lambda X, y: X, Points(X), "takes labels, and there are none"),
        (lambda X, y, seed: X, Points(X), "takes labels, and there are none"),
    ],
)
def test_labels_that_nobody_takes_and_labels_that_are_missing_are_refused(train, points, message):
    with pytest.raises(ValueError, match=message):
        release_of(train, score=nearest).for_points(points)


def test_an_estimator_is_copied_and_its_seed_is_set():
    model, seen = KMeans(3, n_init=1), []

    def score(fitted, X):
        seen.append(fitted)
        return -fitted.transform(X).min(axis=1)

    observed(model, score)
    assert [fitted.random_state for fitted in seen] == [5, 6]
    assert model.random_state is None
    assert not hasattr(model, "labels_")


def test_columns_of_words_are_encoded_and_the_score_gets_the_table_as_it_is():
    frame = pd.DataFrame({"town": ["Chur", "Bern", "Thun"] * 10, "age": np.arange(30.0)})
    points = ls.data.from_arrays(frame)

    def score(fitted, given):
        assert list(given.columns) == ["town", "age"]
        return -fitted.transform(given).min(axis=1)

    release = release_of(KMeans(3, n_init=1), score=score).for_points(points)
    assert "column town is one-hot encoded" in release.prepared(points)
    assert release.observe(points, MEMBER, SEEDS, [])["score"].shape == (2, 30)


def test_labels_stay_as_they_are_for_the_score():
    points = ls.data.from_arrays(X, np.where(Y > 0, "yes", "no"))

    def score(tree, X, y):
        return (tree.predict(X) == y).astype(float)

    seen = observed(DecisionTreeClassifier(), score, points)
    assert (seen["score"][MEMBER] == 1).all()


def test_a_loss_becomes_the_signal_loss():
    release = release_of(keep, score=ls.Loss(lambda kept, X: -nearest(kept, X)))
    assert release.signals == ("loss",)
    assert list(release.observe(Points(X), MEMBER, SEEDS, [])) == ["loss"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.zeros(3), r"an array of shape \(3,\)"),
        (np.zeros((30, 2)), r"an array of shape \(30, 2\)"),
        (0.5, r"an array of shape \(\)"),
        (np.r_[np.nan, np.inf, np.zeros(28)], "NaN or infinite values for 2 records"),
        (["a"] * 30, "a list of <U1"),
        (None, "a NoneType"),
        ([[1], [1, 2]], "a list"),
        (np.zeros(30, dtype=complex), "a ndarray of complex128"),
    ],
)
def test_what_is_no_score_is_refused_in_one_line(values, said):
    with pytest.raises(ValueError, match=rf"keep: bad returned {said}; it must return 30 finite numbers"):
        Score(lambda kept, X: values, False, "bad").at((X,), Points(X), "keep")


def test_a_column_of_numbers_and_truth_values_are_scores():
    score = Score(lambda kept, X: X[:, :1], False, "column")
    np.testing.assert_array_equal(score.at((X,), Points(X), "keep"), X[:, 0])
    score = Score(lambda kept, X: X[:, 0] > 0, False, "truth")
    np.testing.assert_array_equal(score.at((X,), Points(X), "keep"), X[:, 0] > 0)


def test_a_negative_loss_is_refused():
    with pytest.raises(ValueError, match=r"returned -1; it must return 30 .* at least 0, in nats"):
        observed(keep, ls.Loss(lambda kept, X: np.full(len(X), -1.0)))


def test_an_error_of_the_score_is_named():
    with pytest.raises(RuntimeError, match="keep: score fails on 30 points: ZeroDivisionError"):
        observed(keep, lambda kept, X: 1 / 0)


@pytest.mark.parametrize(
    ("model", "score", "message"),
    [
        (PCA(2), 3, r"score must be a function fn\(object, X\) .* or Loss\(fn\); got a int"),
        (PCA(2), lambda model: 0, "score must take what was trained and the records"),
        (PCA, nearest, "give an object, not the class PCA"),
        (lambda: PCA(), nearest, "must take the records"),
        (LabelsOnly(PCA()), nearest, "leave score out"),
        (object(), nearest, "expected an estimator with fit and get_params"),
    ],
)
def test_what_cannot_be_scored_is_refused(model, score, message):
    with pytest.raises(ValueError, match=message):
        release_of(model, score=score)


def test_a_loss_is_of_a_function():
    with pytest.raises(ValueError, match="Loss is of a function"):
        ls.Loss(3)


def test_a_recipe_of_a_network_is_no_part_of_a_score():
    with pytest.raises(ValueError, match="train the network in one of your own"):
        release_of(keep, train={"epochs": 3}, score=nearest)


def test_the_store_knows_both_functions():
    first, second = (release_of(keep, score=score).describe() for score in (nearest, ls.Loss(nearest)))
    other = release_of(keep, score=elsewhere).describe()
    assert len({str(description) for description in (first, second, other)}) == 3
    assert str(release_of(keep_labelled, score=nearest).describe()) != str(first)


def elsewhere(kept, X):
    return X[:, 0]


def test_a_function_that_cannot_be_followed_is_not_stored_and_says_why():
    release = release_of(keep, score=lambda kept, X: X[:, 0])
    assert release.describe() is None
    assert "a lambda has no name" in release.not_stored
    assert release_of(PCA(2), score=nearest).not_stored == ""


def test_import_paths_of_a_plan():
    release = release_from(
        "sklearn.decomposition:PCA", {"n_components": 2}, score="tests.releases.test_scored:elsewhere"
    )
    assert (release.name, release.description) == ("PCA", "PCA(n_components=2), seen by elsewhere")
    release = release_from("tests.releases.test_scored:keep", {}, score="tests.releases.test_scored:LOSS")
    assert release.signals == ("loss",)


LOSS = ls.Loss(elsewhere)
