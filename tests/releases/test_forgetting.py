"""What a removal is handed, what is seen of its result, and how it is known again."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from leakbound.core.games import forgotten
from leakbound.core.seeds import integer
from leakbound.core.types import Points
from leakbound.releases.estimator import Estimator
from leakbound.releases.forgetting import Forgetting, rounded
from leakbound.releases.statistics import means
from leakbound.releases.training_function import TrainingFunction

RNG = np.random.default_rng(0)
POINTS = Points(RNG.normal(size=(40, 3)), np.arange(40) % 2)
GAME = forgotten(40, 6, targets=10)
SEEDS = np.arange(6)


def again(model, X_removed, y_removed, X_kept, y_kept, seed):
    return GaussianNB().fit(X_kept, y_kept)


def not_at_all(model, X_removed, y_removed, X_kept, y_kept, seed):
    return model


def observed(release, unlearn, want=("loss",), kept="half"):
    return Forgetting(release, unlearn, GAME.is_target_point, kept).observe(POINTS, GAME.member, SEEDS, list(want))


def test_a_removal_is_handed_the_model_and_the_records_of_its_row() -> None:
    calls = []

    def noted(*given):
        calls.append(given)
        return given[0]

    observed(Estimator(GaussianNB()), noted)
    assert len(calls) == 6
    for row, (model, x_removed, y_removed, x_kept, y_kept, seed) in enumerate(calls):
        inside = GAME.member[row]
        removed, kept = inside & GAME.is_target_point, inside & ~GAME.is_target_point
        np.testing.assert_array_equal(x_removed, POINTS.x[removed])
        np.testing.assert_array_equal(y_removed, POINTS.y[removed])
        np.testing.assert_array_equal(x_kept, POINTS.x[kept])
        np.testing.assert_array_equal(y_kept, POINTS.y[kept])
        assert seed == integer(row, "unlearn")
        np.testing.assert_allclose(model.theta_[0], POINTS.x[inside & (POINTS.y == 0)].mean(axis=0))


@pytest.mark.parametrize(
    "release", [Estimator(GaussianNB()), TrainingFunction(lambda X, y: GaussianNB().fit(X, y))], ids=["class", "own"]
)
def test_what_is_seen_is_the_result(release) -> None:
    """That of a training on the kept records, which is another one than that of the training before the removal."""
    loss = observed(release, again)["loss"]
    kept = Estimator(GaussianNB()).observe(POINTS, GAME.member & ~GAME.is_target_point, SEEDS, ["loss"])["loss"]
    np.testing.assert_array_equal(loss, kept)
    before = Estimator(GaussianNB()).observe(POINTS, GAME.member, SEEDS, ["loss"])["loss"]
    np.testing.assert_array_equal(observed(release, not_at_all)["loss"], before)
    assert (before != kept).all()


def test_labels_alone_can_be_seen() -> None:
    """A model of one neighbour that forgets nothing is right about its own records."""
    release = Estimator(KNeighborsClassifier(1), labels_only=True)
    seen = observed(release, not_at_all, ["correct"])["correct"]
    assert seen[GAME.member].all()


def test_with_all_kept_models_of_an_exact_removal_are_the_same() -> None:
    """The sums of the normal equations are added in another order, and differ in their last digits."""
    game = forgotten(40, 6, targets=10, kept="all")
    points = Points(POINTS.x, RNG.normal(size=40))

    def downdate(model, X_removed, y_removed, X_kept, y_kept, seed):
        return LinearRegression().fit(X_kept[::-1], y_kept[::-1]) if len(X_removed) % 2 else again_(X_kept, y_kept)

    def again_(X, y):
        return LinearRegression().fit(X, y)

    exact, as_they_are = (
        Forgetting(Estimator(LinearRegression()), downdate, game.is_target_point, kept).observe(
            points, game.member, SEEDS, ["loss"]
        )["loss"]
        for kept in ("all", "half")
    )
    assert len({len(row) for row in game.member}) == 1
    assert {int(row[game.is_target_point].sum()) % 2 for row in game.member} == {0, 1}
    assert (as_they_are != as_they_are[0]).any()
    np.testing.assert_array_equal(exact, np.broadcast_to(exact[0], exact.shape))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3.00000000049, 0.12345678949], [3.0, 0.123456789]),
        ([0.0, 0.0], [0.0, 0.0]),
        ([5e-20, 1.23456789949e-20], [5e-20, 1.2345678990e-20]),
    ],
)
def test_rounded_to_nine_digits_of_the_largest(values, expected) -> None:
    np.testing.assert_allclose(rounded(np.array(values)), expected, rtol=1e-9, atol=1e-32)
    labels = np.array([True, False])
    assert rounded(labels) is labels


def test_another_removal_is_another_key() -> None:
    release = Estimator(GaussianNB())
    target = GAME.is_target_point
    keys = [
        Forgetting(release, again, target).describe(),
        Forgetting(release, not_at_all, target).describe(),
        Forgetting(release, again, ~target).describe(),
        Forgetting(release, again, target, "all").describe(),
        Forgetting(Estimator(GaussianNB(var_smoothing=0.1)), again, target).describe(),
    ]
    assert None not in keys
    assert all(keys[0] != other for other in keys[1:])
    assert keys[0] == Forgetting(release, again, target.copy()).describe()
    unknown = Forgetting(release, lambda a, b, c, d, e, f: a, target)
    assert unknown.describe() is None
    assert "lambda" in unknown.not_stored


@pytest.mark.parametrize(
    ("unlearn", "line"),
    [
        (
            lambda model, X: model,
            "unlearn must take (model, X_removed, y_removed, X_kept, y_kept, seed), got (model, X)",
        ),
        (lambda a, b, c, d, e, f: None, "<lambda> returns nothing; return the model after the removal"),
        (lambda a, b, c, d, e, f: 1 / 0, "<lambda> fails to remove "),
    ],
)
def test_what_is_wrong_with_a_removal_is_one_line(unlearn, line) -> None:
    with pytest.raises((ValueError, RuntimeError), match=re.escape(line)):
        observed(Estimator(GaussianNB()), unlearn)


def test_what_cannot_be_played() -> None:
    with pytest.raises(ValueError, match="is played with estimators and functions that train"):
        Forgetting(means.Mean(means.Knowledge(np.zeros(3), np.ones(3))), again, GAME.is_target_point)
    texts = Points(POINTS.x, np.where(POINTS.y, "yes", "no"))

    class Numbers(GaussianNB):
        def fit(self, X, y):
            return super().fit(X, np.asarray(y, dtype=float).astype(int))

    with pytest.raises(ValueError, match="refuses these labels, and they would be numbers for it"):
        Forgetting(Estimator(Numbers()), again, GAME.is_target_point).for_points(texts)
