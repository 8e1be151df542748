"""Quality of models on records that they were not trained on, against plain loops and scipy's intervals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.dummy import DummyClassifier

import leakbound as ls
from leakbound.metrics.quality import held_out_accuracy, held_out_r2, most_frequent, right_on_one_class, same_answer


def test_accuracy_of_several_models_is_a_mean_over_models():
    rng = np.random.default_rng(3)
    member = rng.random((9, 60)) < 0.5
    correct = (rng.random((9, 60)) < 0.7).astype(float)
    test = [np.mean([correct[m, i] for i in range(60) if not member[m, i]]) for m in range(9)]
    training = [np.mean([correct[m, i] for i in range(60) if member[m, i]]) for m in range(9)]
    found = held_out_accuracy(correct, member, 0.9)
    low, high = stats.t.interval(0.9, 8, np.mean(test), stats.sem(test))
    assert (found.value, found.low, found.high) == pytest.approx((np.mean(test), low, high))
    assert found.detail["training"] == pytest.approx(np.mean(training))
    assert found.detail["gap"] == pytest.approx(np.mean(training) - np.mean(test))
    assert found.interval_over == "models"


def test_accuracy_of_one_model_is_over_points():
    member = np.arange(50)[None] < 20
    correct = (np.arange(50)[None] % 3 > 0).astype(float)
    n_right = int(correct[~member].sum())
    found = held_out_accuracy(correct, member)
    exact = stats.binomtest(n_right, 30).proportion_ci(0.95, "exact")
    assert (found.value, found.low, found.high) == pytest.approx((n_right / 30, exact.low, exact.high))
    assert found.interval_over == "points"


def test_r2_is_that_of_the_squared_errors():
    rng = np.random.default_rng(5)
    y = rng.normal(size=200)
    prediction = y + rng.normal(size=(4, 200)) * 0.5
    member = rng.random((4, 200)) < 0.5
    loss = (y - prediction) ** 2 / (2 * y.var())
    by_hand = [1 - np.mean((y - prediction[m])[~member[m]] ** 2) / y.var() for m in range(4)]
    found = held_out_r2(loss, member)
    assert found.value == pytest.approx(np.mean(by_hand))
    low, high = stats.t.interval(0.95, 3, np.mean(by_hand), stats.sem(by_hand))
    assert (found.low, found.high) == pytest.approx((low, min(high, 1.0)))
    two = held_out_r2(2 * loss, member, n_responses=2)
    assert two.value == pytest.approx(found.value)


def test_r2_of_the_mean_is_zero_and_may_be_negative():
    y = np.array([-1.0, 1.0] * 20)
    member = np.tile([True, True, False, False], (1, 10))
    assert held_out_r2(((y - 0) ** 2 / 2)[None], member).value == 0
    assert held_out_r2(((y - 2) ** 2 / 2)[None], member).value == pytest.approx(-4)


def test_coverage_of_the_accuracy_of_models():
    """95 % intervals of 400 sets of 8 models: at least 365 cover; a false alarm has a probability below 1e-3."""
    rng = np.random.default_rng(11)
    member = np.tile([True, False], (8, 100))
    covered = 0
    for _ in range(400):
        rate = np.clip(rng.normal(0.8, 0.03, size=(8, 1)), 0, 1)
        found = held_out_accuracy((rng.random((8, 200)) < rate).astype(float), member)
        covered += found.low <= 0.8 <= found.high
    assert covered >= 365


@pytest.mark.parametrize(
    ("predicted", "expected"),
    [([0, 0, 0, 0], True), ([1, 1, 1, 1], True), ([0, 1, 0, 0], False), ([0, 1, 1, 1], False), ([1, 0, 0, 0], False)],
)
def test_a_model_that_always_predicts_one_class_is_found(predicted, expected):
    label = np.array([0, 1, 1, 0])
    correct = (np.array(predicted) == label).astype(float)[None]
    assert right_on_one_class(correct, label).tolist() == [expected]


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        (np.tile([0.5, 0.5], (6, 1)), True),  # a tie, which counts as wrong for every record
        (np.tile([0.4, 0.4, 0.2], (6, 1)), True),
        (np.tile([0.7, 0.3], (6, 1)), True),
        (np.array([[0.7, 0.3], [0.3, 0.7]] * 3), False),  # right and equally sure about all: not constant
        (np.array([[0.5, 0.5]] * 5 + [[0.4, 0.6]]), False),
    ],
)
def test_a_model_that_gives_the_same_answer_to_all_is_found(p, expected):
    label = np.arange(6) % p.shape[1]
    loss = -np.log(p[np.arange(6), label]).astype(np.float32)[None]
    assert same_answer(loss, label).tolist() == [expected]
    assert same_answer(loss[:, :1], label[:1] + 1).tolist() == [False]  # a class without a record


@pytest.mark.parametrize("strategy", ["prior", "most_frequent", "uniform"])
def test_a_dummy_classifier_is_called_that_in_every_model(strategy):
    """Halves of equally many records of both classes give ties: found in 15 of 16 models before."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    report = ls.audit(DummyClassifier(strategy=strategy), x, y, n_models=16, n_jobs=1, attacks=["loss", "gap"])
    (found,) = [each for each in report.findings if each.quantity == "test_accuracy"]
    assert found.detail["models_of_one_class"] == 16


def test_most_frequent_label():
    assert most_frequent(np.array([2, 0, 2, 2, 1])) == 0.6
