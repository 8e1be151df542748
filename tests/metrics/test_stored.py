"""Scores in files against the same scores in memory: every number of an audit."""

import numpy as np
import pytest

from leakbound import metrics
from leakbound.core.types import NotApplicable, Scores
from leakbound.metrics import stored
from leakbound.metrics.records import games_won
from leakbound.metrics.stored import StoredScores
from tests.marks import nightly

FPR = (0.5, 0.1, 0.01, 0.001)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Files of many runs and pieces, with few scores; ties then go across pieces."""
    monkeypatch.setattr(stored, "RUN", 2048)
    monkeypatch.setattr(stored, "PIECE", 300)
    monkeypatch.setattr(stored, "STREAM", 700)


def in_files(value, member, folder, inflation=1.0, size=97):
    """Store scores of shape (T, J)."""
    value, member = np.ascontiguousarray(value.T), np.ascontiguousarray(member.T)

    def blocks():
        for start in range(0, len(value), size):
            yield value[start : start + size], member[start : start + size]

    return StoredScores("any", blocks, value.shape[1], len(value), folder, variance_inflation=inflation)


def outcome(metric, *arguments):
    try:
        return metric(*arguments)
    except NotApplicable as reason:
        return reason.reason


def assert_same(found, expected):
    """Same words and counts, and floats to the last digits of sums in another order."""
    if not hasattr(expected, "value"):
        assert found == expected
        return
    numbers = [(found.value, expected.value), (found.low, expected.low), (found.high, expected.high)]
    assert found.detail.keys() == expected.detail.keys()
    numbers += [(found.detail[name], expected.detail[name]) for name in expected.detail]
    for number, reference in numbers:
        assert number == pytest.approx(reference, rel=1e-9, abs=1e-12)
    for name in ("fpr", "threshold", "false_alarms", "games", "models"):
        assert found.detail.get(name) == expected.detail.get(name)
    words = ("confidence", "interval_over", "method", "refused")
    assert [getattr(found, name) for name in words] == [getattr(expected, name) for name in words]


def assert_all_the_same(value, member, folder, inflation=1.0):
    scores = Scores("any", value, member, variance_inflation=inflation)
    with in_files(value, member, folder, inflation) as files:
        calls = [(name, (prior, 0.95)) for name in ("accuracy",) for prior in (0.5, 0.2)]
        calls += [("auc", (0.95,)), ("average_precision", (0.95, True))]
        calls += [("average_precision", (0.95, False))]
        calls += [("tpr_at_fpr", (rate, 0.95, target)) for rate in FPR for target in ("population", "these_models")]
        calls += [("ppv", (0.1, 0.3, 0.95))]
        for name, arguments in calls:
            expected = outcome(getattr(metrics, name), scores, *arguments)
            assert_same(outcome(getattr(stored, name), files, *arguments), expected)
        expected = outcome(metrics.roc, scores)
        found = outcome(stored.roc, files)
        if hasattr(expected, "knots"):
            assert np.array_equal(found.at, expected.at)
            assert np.array_equal(found.value, expected.value)
        else:
            assert found == expected
        band = outcome(metrics.roc_band, scores, [0.2, 0.4])
        if isinstance(band, tuple):
            assert np.allclose(stored.roc_band(files, [0.2, 0.4]), band, rtol=1e-9, atol=1e-12, equal_nan=True)
        expected = outcome(games_won, scores, 0.95)
        found = outcome(stored.games_won, files, 0.95)
        if not hasattr(expected, "won"):
            assert found == expected
            return
        won, margin = (np.concatenate(parts) for parts in zip(*found.blocks(), strict=True))
        assert np.array_equal(won, expected.won)
        assert np.allclose(margin, expected.margin, rtol=1e-6, atol=1e-6)
        assert np.array_equal(found.limits[won], expected.low)
        assert (found.games, found.smallest_detectable) == (expected.games, expected.smallest_detectable)
    assert not list(folder.iterdir())


def drawn(rng, n_models, n_records, spread=0.3, fraction=0.5):
    member = rng.random((n_models, n_records)) < fraction
    value = rng.normal(size=member.shape) + spread * rng.normal(size=(n_models, 1)) + member
    return value.astype(np.float32), member


@pytest.mark.parametrize("n_models", [1, 2, 3, 8, 16, nightly(64)])
def test_of_one_to_many_models(tmp_path, n_models):
    value, member = drawn(np.random.default_rng(n_models), n_models, 700)
    assert_all_the_same(value, member, tmp_path, inflation=1.0 if n_models == 3 else 3.0)


@pytest.mark.parametrize("spread", [0.0, 2.0])
@pytest.mark.parametrize("fraction", [0.02, 0.9])
def test_with_unequal_classes_and_shifts(tmp_path, spread, fraction):
    value, member = drawn(np.random.default_rng(3), 9, 500, spread, fraction)
    assert_all_the_same(value, member, tmp_path)


@pytest.mark.parametrize("decimals", [0, 1, 2])
@pytest.mark.parametrize("n_models", [2, 8])
def test_with_ties_within_and_across_pieces(tmp_path, decimals, n_models):
    value, member = drawn(np.random.default_rng(decimals), n_models, 900)
    assert_all_the_same(value.round(decimals), member, tmp_path)


def test_of_two_values_and_of_one(tmp_path):
    value, member = drawn(np.random.default_rng(0), 5, 600)
    assert_all_the_same((value > 0.5).astype(np.float32), member, tmp_path)
    assert_all_the_same(np.full_like(value, 3.0), member, tmp_path)


def test_of_signed_zeros_and_the_largest_floats(tmp_path):
    value, member = drawn(np.random.default_rng(0), 4, 400)
    value[:, ::3] = 0.0
    value[:, 1::6] = -0.0
    value[:, 2::9] = np.finfo(np.float32).max
    value[:, 5::9] = np.finfo(np.float32).min
    value[:, 8::9] = np.float32(1e-45)  # a subnormal number
    value[:, 4::9] *= np.float32(1e-7)
    assert_all_the_same(value, member, tmp_path)


def test_without_information(tmp_path):
    rng = np.random.default_rng(5)
    for _ in range(2):
        member = rng.random((6, 500)) < 0.5
        assert_all_the_same(rng.normal(size=member.shape).astype(np.float32), member, tmp_path)


@pytest.mark.parametrize("n_mixed", [0, 1, 2, 5])
def test_of_models_some_of_which_have_one_class(tmp_path, n_mixed):
    value, member = drawn(np.random.default_rng(2), 6, 400)
    member[n_mixed:] = np.arange(6 - n_mixed)[:, None] % 2 == 0
    assert_all_the_same(value, member, tmp_path)


def test_of_one_record(tmp_path):
    value, member = drawn(np.random.default_rng(2), 300, 1)
    assert_all_the_same(value, member, tmp_path)
    assert_all_the_same(value, member, tmp_path, inflation=3.0)


def test_more_models_than_fit_into_a_word_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"at most 1,024 models, got 1,025"):
        in_files(np.zeros((1025, 3), dtype=np.float32), np.zeros((1025, 3), dtype=bool), tmp_path)


@pytest.mark.slow
def test_of_as_many_models_as_fit_into_a_word(tmp_path):
    value, member = drawn(np.random.default_rng(2), 1024, 40)
    scores = Scores("any", value, member)
    with in_files(value, member, tmp_path) as files:
        assert_same(stored.auc(files), metrics.auc(scores))
        for target in ("population", "these_models"):
            assert_same(stored.tpr_at_fpr(files, 0.1, 0.95, target), metrics.tpr_at_fpr(scores, 0.1, 0.95, target))


def test_scores_of_another_kind_are_refused(tmp_path):
    value, member = drawn(np.random.default_rng(2), 3, 40)
    with (
        in_files(value.astype(np.float64), member, tmp_path) as files,
        pytest.raises(ValueError, match="must be float32, got float64"),
    ):
        stored.auc(files)
    value[1, 7] = np.inf
    with in_files(value, member, tmp_path) as files, pytest.raises(ValueError, match="NaN or infinite"):
        stored.auc(files)
