from fractions import Fraction

import numpy as np
import pytest

from leakbound.core.types import Scores
from leakbound.metrics.ranked import RankedScores
from leakbound.metrics.thresholds import (
    accuracy_at,
    accuracy_weights,
    best_threshold,
    hindsight_thresholds,
)


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


def first_of_the_best(value, member):
    """The largest threshold of those with the largest balanced accuracy, by fractions."""
    best = None
    for cut in [np.inf, *sorted(set(value.tolist()), reverse=True)]:
        called = value >= cut
        gained = Fraction(int((called & member).sum()), int(member.sum()))
        lost = Fraction(int((called & ~member).sum()), int((~member).sum()))
        if best is None or gained - lost > best[0]:
            best = gained - lost, cut
    assert best is not None
    return best[1]


def test_of_several_best_thresholds_the_largest():
    """Sums of the same thirds and sevenths in another order differ in their last digit."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        n = int(rng.integers(4, 12))
        value, member = rng.permutation(n).astype(float), rng.permutation(n) < rng.integers(1, n)
        hindsight = hindsight_thresholds(Scores("any", value[None], member[None]))
        assert hindsight.tolist() == [[first_of_the_best(value, member)]]
        ranked = RankedScores(value[None], member[None], piece=3)
        weight = np.array([[-1 / (~member).sum(), 1 / member.sum()]])
        assert ranked.best_threshold(weight) == first_of_the_best(value, member)


def test_nobody_is_called_where_every_call_loses():
    assert best_threshold(np.array([1.0, 2.0]), np.array([-1.0, -1.0])) == np.inf


@pytest.mark.parametrize("decimals", [0, 1, 9])
@pytest.mark.parametrize("shape", [(2, 1), (5, 7), (12, 1), (3, 40)])
def test_held_out_thresholds_gain_most_on_the_other_models(decimals, shape):
    rng = np.random.default_rng(1)
    for _ in range(10):
        value, member = rng.normal(size=shape).round(decimals), rng.random(shape) < 0.5
        sign = np.where(member, 1, -1)
        for piece in (7, 1 << 20):
            for row, threshold in enumerate(RankedScores(value, member, piece).held_out_thresholds()):
                others = np.arange(len(value)) != row
                expected = naive_best_gain(value[others], sign[others])
                assert gain(value[others], sign[others], threshold) == expected
                # of several best thresholds the largest
                better = value[others][value[others] > threshold]
                assert all(gain(value[others], sign[others], cut) < expected for cut in better)


def test_accuracy_weights_sum_to_the_accuracy_of_each_row():
    rng = np.random.default_rng(2)
    member, called = rng.random((4, 30)) < 0.4, rng.random((4, 30)) < 0.5
    gains = np.where(called, accuracy_weights(member, 0.3), 0).sum(axis=1)
    for row in range(4):
        tpr, fpr = called[row, member[row]].mean(), called[row, ~member[row]].mean()
        assert 0.7 + gains[row] == pytest.approx(0.3 * tpr + 0.7 * (1 - fpr))


def balanced(called, member, prior):
    return prior * called[member].mean() + (1 - prior) * (1 - called[~member].mean())


@pytest.mark.parametrize("prior", [0.2, 0.5])
@pytest.mark.parametrize("decimals", [0, 9])
def test_thresholds_in_hindsight_reach_the_largest_accuracy(decimals, prior):
    rng = np.random.default_rng(3)
    member = rng.random((6, 9)) < 0.5
    member[0], member[:, 0] = np.arange(9) % 2 == 0, np.arange(6) % 2 == 0
    scores = Scores("any", (rng.normal(size=(6, 9)) + member).round(decimals), member)
    cuts = [*np.unique(scores.value), np.inf]

    one = hindsight_thresholds(scores, prior=prior)
    assert one.shape == (1, 1)
    best = max(balanced(scores.value.ravel() >= cut, member.ravel(), prior) for cut in cuts)
    assert balanced((scores.value >= one).ravel(), member.ravel(), prior) == pytest.approx(best)

    of_models = hindsight_thresholds(scores, "model", prior)
    assert of_models.shape == (6, 1)
    best = [
        max(balanced(row >= cut, truth, prior) for cut in cuts) for row, truth in zip(scores.value, member, strict=True)
    ]
    assert accuracy_at(scores, of_models, prior) == pytest.approx(best)

    of_records = hindsight_thresholds(scores, "record", prior)
    assert of_records.shape == (1, 9)
    for column in range(9):
        best = max(balanced(scores.value[:, column] >= cut, member[:, column], prior) for cut in cuts)
        called = scores.value[:, column] >= of_records[0, column]
        assert balanced(called, member[:, column], prior) == pytest.approx(best)


def test_members_or_others_alone_are_all_called_or_none():
    scores = Scores("any", np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[False, True], [False, True]]))
    assert hindsight_thresholds(scores, "record").tolist() == [[np.inf, 2.0]]
    assert np.isnan(accuracy_at(Scores("any", scores.value.T, scores.member.T), 0.0)).all()


def test_bad_input_of_thresholds(as_users_run_it):
    scores = Scores("any", np.ones((1, 2)), np.array([[False, True]]))
    with pytest.raises(ValueError, match=r"^unknown of 'each'; known: all, model, record$"):
        hindsight_thresholds(scores, "each")
    with pytest.raises(ValueError, match="prior"):
        accuracy_at(scores, 0.0, prior=1.0)
