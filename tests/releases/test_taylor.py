"""The expansion of linear and logistic losses: against derivatives by differences, and refits with the point."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax
from scipy.stats import rankdata
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from leakbound.attacks import ATTACKS
from leakbound.core import seeds
from leakbound.core.games import half_split
from leakbound.core.types import Points, Signals
from leakbound.data import from_arrays
from leakbound.releases.estimator import Estimator
from tests.marks import nightly

SEEDS = np.arange(3)


def points_of(n_classes: int, n: int = 40, d: int = 3, seed: int = 0) -> Points:
    """Classes (0: a response) that depend on the features; labels are text."""
    rng = np.random.default_rng([seed, n_classes])
    x = rng.normal(size=(n, d))
    if n_classes == 0:
        return from_arrays(x, x.sum(axis=1) + rng.normal(size=n))
    score = x @ rng.normal(size=(d, n_classes)) + rng.normal(size=(n, n_classes))
    return from_arrays(x, np.array(["ann", "bob", "cem", "dan"])[score.argmax(axis=1)])


def flat(model, n_classes: int) -> np.ndarray:
    return np.column_stack([np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)]).ravel()


def loss_at(theta: np.ndarray, x: np.ndarray, y, classes: np.ndarray, variance: float) -> float:
    """The loss of some points, their sum, written down from its definition."""
    f = np.column_stack([x, np.ones(len(x))]) @ theta.reshape(-1, x.shape[1] + 1).T
    if not len(classes):
        return float(((y - f[:, 0]) ** 2).sum() / (2 * variance))
    logits = np.column_stack([np.zeros(len(x)), f]) if len(classes) == 2 else f
    return -float(log_softmax(logits, axis=1)[np.arange(len(x)), np.searchsorted(classes, y)].sum())


def gradient(function, theta: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Central differences."""
    moves = step * np.eye(len(theta))
    return np.array([(function(theta + move) - function(theta - move)) / (2 * step) for move in moves])


def hessian(function, theta: np.ndarray) -> np.ndarray:
    return np.array([gradient(lambda at, j=j: gradient(function, at, 1e-4)[j], theta, 1e-4) for j in range(len(theta))])


RECIPES = [
    (LogisticRegression(C=0.5, tol=1e-10, max_iter=1000), 2, 2.0),
    nightly(LogisticRegression(C=2.0, tol=1e-10, max_iter=1000), 3, 0.5),
    (Ridge(3.0), 0, 3.0),
    (LinearRegression(), 0, 0.0),
]


@pytest.mark.parametrize(("estimator", "n_classes", "penalty"), RECIPES)
def test_the_terms_are_those_of_differences(estimator, n_classes, penalty):
    points = points_of(n_classes)
    assert points.y is not None
    member = np.random.default_rng(1).random((3, 40)) < 0.5
    found = Estimator(estimator).observe(points, member, SEEDS, ["taylor"])["taylor"]
    classes = np.unique(points.y) if n_classes else np.array([])
    variance = 1.0 if n_classes else float(np.var(points.y))
    drawn = seeds.subsets(40, 20, 9, seeds.stream(0, "taylor"))
    halves = np.concatenate([drawn[:8], ~drawn[:8]])
    fits = [flat(estimator.fit(points.x[half], points.y[half]), n_classes) for half in halves]
    fitted = [flat(estimator.fit(points.x[inside], points.y[inside]), n_classes) for inside in member]
    shrunk = np.tile(np.append(np.ones(3), 0.0), len(fits[0]) // 4) * penalty / variance

    def loss(of):
        return lambda theta: loss_at(theta, points.x[of], points.y[of], classes, variance)

    whole = np.diag(shrunk) + hessian(loss(drawn[8]), np.mean(fits, axis=0))
    for i in (0, 7, 23):
        centre = np.mean([fit for fit, half in zip(fits, halves, strict=True) if not half[i]], axis=0)
        g = gradient(loss([i]), centre)
        own = 0 if drawn[8][i] else hessian(loss([i]), centre)
        curved = g @ np.linalg.pinv(whole + own, rcond=1e-6, hermitian=True) @ g
        np.testing.assert_allclose(found[:, i, 0], [(theta - centre) @ g for theta in fitted], rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(found[:, i, 1], curved, rtol=1e-3)


def test_the_attack_beats_the_loss_on_an_overfitted_model():
    """100 points, 50 features: 16 models, where the mean AUC of noise would vary by .006."""
    points = points_of(2, 200, 50)
    game = half_split(200, 16)
    arrays = Estimator(LogisticRegression(max_iter=1000)).observe(
        points, game.member, np.arange(16), ["loss", "taylor"]
    )
    signals = Signals(game, points, arrays)

    def auc(name):
        ranks = rankdata(ATTACKS[name](signals).value, axis=1)
        return ((ranks * game.member).sum(axis=1) - 5050).mean() / 10_000

    assert auc("matt") > auc("loss") + 0.05
    assert auc("matt") > 0.68


@pytest.mark.parametrize(
    ("estimator", "n_classes"), [(LogisticRegression(), 2), (LogisticRegression(), 4), (Ridge(), 0)]
)
def test_what_is_seen_does_not_depend_on_the_other_rows(estimator, n_classes):
    points = points_of(n_classes, 60)
    member = np.random.default_rng(1).random((3, 60)) < 0.5
    release = Estimator(estimator)
    together = release.observe(points, member, SEEDS, ["taylor"])["taylor"]
    alone = release.observe(Points(points.x, points.y), member[1:2], SEEDS[1:2], ["taylor"])["taylor"]
    assert together[1:2].tobytes() == alone.tobytes()
    assert (together[..., 1] >= 0).all()
    np.testing.assert_array_equal(together[0, :, 1], together[2, :, 1])


def test_models_cost_their_number_of_fits_and_sixteen_more(monkeypatch):
    fits = []

    def fit(self, x, y):
        fits.append(len(x))
        return original(self, x, y)

    original = Ridge.fit
    monkeypatch.setattr(Ridge, "fit", fit)
    points = points_of(0, 50, seed=9)
    member = np.random.default_rng(1).random((3, 50)) < 0.5
    for _ in range(2):
        Estimator(Ridge()).observe(points, member, SEEDS, ["loss", "taylor"])
    assert len(fits) == 16 + 2 * 3
    Estimator(Ridge()).observe(points, member, SEEDS, ["loss"])
    assert len(fits) == 16 + 3 * 3


@pytest.mark.parametrize(
    ("estimator", "n_classes"),
    [
        (LogisticRegression(class_weight="balanced"), 2),
        (LogisticRegression(solver="liblinear"), 2),
        (LogisticRegression(solver="saga", l1_ratio=0.5), 2),
        (make_pipeline(StandardScaler(), LogisticRegression()), 2),
        (DecisionTreeClassifier(), 2),
        (Ridge(positive=True), 0),
        (Ridge(np.array([1.0])), 0),
        (Lasso(), 0),
    ],
)
def test_other_recipes_do_not_give_it(estimator, n_classes):
    member = np.random.default_rng(1).random((3, 40)) < 0.5
    found = Estimator(estimator).observe(points_of(n_classes), member, SEEDS, ["loss", "taylor"])
    assert found.keys() == {"loss"}


def test_a_frame_with_words_does_not_give_it():
    points = points_of(2)
    frame = pd.DataFrame(points.x, columns=["a", "b", "c"]).assign(town=np.array(["x", "y"])[np.arange(40) % 2])
    member = np.random.default_rng(1).random((3, 40)) < 0.5
    words = Estimator(LogisticRegression()).observe(from_arrays(frame, points.y), member, SEEDS, ["loss", "taylor"])
    assert words.keys() == {"loss"}
    numbers = from_arrays(frame.drop(columns="town"), points.y)
    assert "taylor" in Estimator(LogisticRegression()).observe(numbers, member, SEEDS, ["loss", "taylor"])


def test_a_class_that_a_model_has_not_seen_is_far_from_it():
    points = points_of(3, 60)
    member = np.random.default_rng(1).random((3, 60)) < 0.5
    assert points.y is not None
    member[0] &= points.y != "bob"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = Estimator(LogisticRegression()).observe(points, member, SEEDS, ["taylor"])["taylor"]
    assert np.isfinite(found).all()
    unseen = points.y == "bob"
    assert (found[0, unseen, 0] > found[1:, unseen, 0].max(axis=0)).all()


def test_no_intercept():
    points = points_of(2)
    member = np.random.default_rng(1).random((3, 40)) < 0.5
    found = Estimator(LogisticRegression(fit_intercept=False)).observe(points, member, SEEDS, ["taylor"])
    assert found["taylor"].shape == (3, 40, 2)
