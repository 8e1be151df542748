import numpy as np
import pytest

from leakbound.core.intervals import korn_graubard
from leakbound.metrics.clustered import Clustered
from leakbound.metrics.rows import Rows


def clustered_by(rows, axis, confidence):
    if axis == "models":
        return Clustered(*rows.by_model, rows.variance_inflation, confidence)
    return Clustered(*rows.by_record, 1.0, confidence)


def drawn(n_models, n_records, decimals=9, seed=0):
    """Rows with unequal numbers of members."""
    rng = np.random.default_rng(seed)
    member = rng.random((n_models, n_records)) < 0.3
    value = rng.normal(size=member.shape) + rng.normal(size=(n_models, 1)) + rng.normal(size=n_records) + member
    return Rows(value.round(decimals), member, "models", 2.0)


def naive_limits(rows, axis, threshold, chosen, inflation):
    """Korn and Graubard's limits of the rate of the chosen scores, with the variance of a ratio of totals."""
    if axis == "records":
        value, chosen = rows.value.T, chosen.T
    else:
        value = rows.value
    called, size = ((value >= threshold) & chosen).sum(axis=1), chosen.sum(axis=1)
    rate = called.sum() / size.sum()
    n_clusters = len(value)
    variance = n_clusters / (n_clusters - 1) * np.sum((called - rate * size) ** 2) / size.sum() ** 2
    interval = korn_graubard(rate, inflation * variance, int(size.sum()), n_clusters)
    return interval.low, interval.high


@pytest.mark.parametrize(("axis", "inflation"), [("models", 2.0), ("records", 1.0)])
@pytest.mark.parametrize("decimals", [0, 9])
def test_limits_at_each_threshold_are_their_naive_twin(axis, inflation, decimals):
    rows = drawn(6, 25, decimals)
    clustered = clustered_by(rows, axis, 0.95)
    for scores, chosen in ((clustered.members, rows.member), (clustered.others, ~rows.member)):
        low, high = scores.limits(scores.ranks, clustered.inflation, 0.95)
        for place in range(1, len(scores.ranks)):
            threshold = scores.scores.highest(int(scores.ranks[place]))
            expected = naive_limits(rows, axis, threshold, chosen, inflation)
            assert (low[place], high[place]) == pytest.approx(expected)


@pytest.mark.parametrize("decimals", [0, 9])
def test_every_distinct_score_is_tried_and_no_part_of_a_tie(decimals):
    rows = drawn(4, 30, decimals)
    others = clustered_by(rows, "models", 0.95).others
    distinct = np.unique(rows.value[~rows.member])
    expected = [np.count_nonzero(rows.value[~rows.member] >= score) for score in distinct[::-1]]
    assert others.ranks.tolist() == [0, *expected]


@pytest.mark.parametrize("axis", ["models", "records"])
@pytest.mark.parametrize("fpr", [0.02, 0.1, 0.5, 0.95])
def test_the_interval_holds_all_that_a_plausible_threshold_gives(axis, fpr):
    """Square and add of the two errors, with thresholds found one by one whose limits hold the rate asked for."""
    rows = drawn(6, 25)
    clustered = clustered_by(rows, axis, 0.9)
    found = 20
    rate = found / rows.n_members
    low_rate, high_rate = (end[0] for end in clustered.members.limits(np.array([found]), clustered.inflation, 0.9))
    low, high = clustered.others.limits(np.arange(1, rows.n_others + 1), clustered.inflation, 0.9)
    others = np.sort(rows.value[~rows.member])[::-1]
    plausible = [score for k, score in enumerate(others) if low[k] <= fpr <= high[k]]
    held = np.array([np.mean(rows.value[rows.member] >= threshold) for threshold in plausible])
    assert len(held) > 1
    ends = clustered.limits(fpr, found)
    assert ends[0] <= rate - np.hypot(max(rate - held.min(), 0), rate - low_rate) + 1e-12 or ends[0] == 0
    assert ends[1] >= rate + np.hypot(max(held.max() - rate, 0), high_rate - rate) - 1e-12 or ends[1] == 1
