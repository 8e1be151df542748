import numpy as np
import pytest

from leakscope.metrics.thresholds import accuracy_weights, best_threshold, held_out_thresholds


def gain(value, weight, threshold):
    return weight[value >= threshold].sum()


def naive_best_gain(value, weight):
    return max(gain(value, weight, threshold) for threshold in [*value.ravel(), np.inf])


@pytest.mark.parametrize("decimals", [0, 1, 9])
def test_best_threshold_gains_most(decimals):
    rng = np.random.default_rng(0)
    for _ in range(50):
        value, weight = rng.normal(size=23).round(decimals), rng.normal(size=23)
        assert gain(value, weight, best_threshold(value, weight)) == pytest.approx(naive_best_gain(value, weight))


def test_nobody_is_called_where_every_call_loses():
    assert best_threshold(np.array([1.0, 2.0]), np.array([-1.0, -1.0])) == np.inf


@pytest.mark.parametrize("decimals", [0, 1, 9])
@pytest.mark.parametrize("shape", [(2, 1), (5, 7), (12, 1), (3, 40)])
def test_held_out_thresholds_gain_most_on_the_other_models(decimals, shape):
    rng = np.random.default_rng(1)
    for _ in range(10):
        value, weight = rng.normal(size=shape).round(decimals), rng.normal(size=shape)
        for row, threshold in enumerate(held_out_thresholds(value, weight)):
            others = np.arange(len(value)) != row
            expected = naive_best_gain(value[others], weight[others])
            assert gain(value[others], weight[others], threshold) == pytest.approx(expected)


def test_accuracy_weights_sum_to_the_accuracy_of_each_row():
    rng = np.random.default_rng(2)
    member, called = rng.random((4, 30)) < 0.4, rng.random((4, 30)) < 0.5
    gains = np.where(called, accuracy_weights(member, 0.3), 0).sum(axis=1)
    for row in range(4):
        tpr, fpr = called[row, member[row]].mean(), called[row, ~member[row]].mean()
        assert 0.7 + gains[row] == pytest.approx(0.3 * tpr + 0.7 * (1 - fpr))
