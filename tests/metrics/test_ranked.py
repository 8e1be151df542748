import gc
import itertools
import weakref

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from leakbound import metrics
from leakbound.core.on_disk import empty_on_disk, is_on_disk
from leakbound.core.types import Scores
from leakbound.metrics.ranked import RankedScores
from leakbound.metrics.rows import rows


def drawn(n_models=5, n_records=23, decimals=9, dtype=float, seed=0):
    rng = np.random.default_rng(seed)
    member = rng.random((n_models, n_records)) < 0.4
    value = rng.normal(size=member.shape) + rng.normal(size=(n_models, 1)) + member
    return value.round(decimals).astype(dtype), member


CASES = list(itertools.product((0, 1, 9), (np.float32, np.float64), (4, 17, 1 << 20)))


@pytest.mark.parametrize(("decimals", "dtype", "piece"), CASES)
def test_thresholds_call_what_a_comparison_calls(decimals, dtype, piece):
    value, member = drawn(decimals=decimals, dtype=dtype)
    ranked = RankedScores(value, member, piece)
    for threshold in [*np.unique(value).tolist(), np.inf]:
        called = value >= threshold
        assert ranked.members.at_least(threshold) == (called & member).sum()
        assert ranked.others.at_least(threshold) == (called & ~member).sum()
        assert ranked.members.above(threshold) == ((value > threshold) & member).sum()
        expected = np.stack([(called & ~member).sum(axis=1), (called & member).sum(axis=1)], axis=1)
        assert ranked.called_at(np.full(len(value), threshold)).tolist() == expected.tolist()
    descending = np.sort(value[member])[::-1]
    assert [ranked.members.highest(k + 1) for k in range(len(descending))] == descending.tolist()
    assert ranked.distinct(1000).tolist() == np.unique(value).tolist()
    assert ranked.distinct(len(np.unique(value)) - 1) is None


@pytest.mark.parametrize(("decimals", "dtype", "piece"), CASES)
def test_the_best_threshold_gains_most(decimals, dtype, piece):
    value, member = drawn(decimals=decimals, dtype=dtype)
    weight = np.random.default_rng(1).normal(size=(len(value), 2))
    of_each = np.where(member, weight[:, 1:], weight[:, :1])
    gained = {cut: of_each[value >= cut].sum() for cut in [*np.unique(value).tolist(), np.inf]}
    found = RankedScores(value, member, piece).best_threshold(weight)
    assert gained[found] == pytest.approx(max(gained.values()))


@pytest.mark.parametrize(("decimals", "dtype", "piece"), CASES)
def test_a_shift_of_nothing_gains_what_the_best_threshold_gains(decimals, dtype, piece):
    value, member = drawn(decimals=decimals, dtype=dtype)
    weight = np.random.default_rng(1).normal(size=(len(value), 2))
    of_each = np.where(member, weight[:, 1:], weight[:, :1])
    expected = max(of_each[value >= cut].sum() for cut in [*np.unique(value).tolist(), np.inf])
    found = RankedScores(value, member, piece).largest_gain_if_shifted(np.zeros(len(value)), weight)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("decimals", [0, 9])
def test_areas_are_those_of_scikit_learn(decimals):
    value, member = drawn(decimals=decimals)
    areas = RankedScores(value, member).areas
    for model in range(len(value)):
        score, truth = value[model], member[model]
        assert areas.auc[model] == pytest.approx(roc_auc_score(truth, score))
        assert areas.precision[1, model] == pytest.approx(average_precision_score(truth, score))
        assert areas.precision[0, model] == pytest.approx(average_precision_score(~truth, -score))


def test_what_is_sorted_lies_where_the_scores_lie():
    value, member = drawn(dtype=np.float32)
    stored = empty_on_disk(value.shape, np.float32)
    stored[:] = value
    in_memory, on_disk = RankedScores(value, member), RankedScores(stored, member)
    assert is_on_disk(on_disk.ascending)
    assert is_on_disk(on_disk.members.rank)
    assert not is_on_disk(in_memory.ascending)
    assert on_disk.held_out_thresholds().tolist() == in_memory.held_out_thresholds().tolist()


def test_what_is_sorted_is_gone_with_the_scores():
    """Without a reference to itself, for nobody waits for the garbage collector with arrays as large as the scores."""
    scores = Scores("any", *drawn())
    metrics.tpr_at_fpr(scores, 0.1)
    metrics.tpr_at_fpr(scores, 0.1, target="these_models")
    metrics.accuracy(scores)
    gone = weakref.ref(rows(scores).ranked)
    gc.disable()
    try:
        del scores
        assert gone() is None
    finally:
        gc.enable()
