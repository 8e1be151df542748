import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakscope.attacks.rmia import rank_fraction, rmia, rmia_offline
from leakscope.core.types import Game, NotApplicable, Signals


def naive_rank(signals, log_ratio, gamma, references, targets_of):
    """The double loop over target and population points, target by target."""
    game, rows = signals.game, []
    unused = ~game.member.any(axis=0) & ~np.atleast_2d(game.is_target_point).any(axis=0)
    for t in range(game.n_targets):
        refs = references(game, t)
        targets = [log_ratio(t, i, refs) for i in targets_of(game, t)]
        population = [log_ratio(t, i, refs) for i in np.flatnonzero(unused)] or targets
        counts = [sum(x - z >= np.log(gamma) for z in population) for x in targets]
        ties = [(1 + x / (1 + abs(x))) / 2 for x in targets]
        rows.append([(n + h) / (len(population) + 1) - 1 for n, h in zip(counts, ties, strict=True)])
    return np.array(rows)


# not 1 exactly: whether ratios that are equal but for rounding count is left to the rounding
@pytest.mark.parametrize("gamma", [1 + 1e-9, 2.0, 1.3])
def test_rmia_equals_its_naive_twin(signals, references, targets_of, gamma):
    p = np.exp(-signals.arrays["loss"])

    def log_ratio(t, i, rows):
        return np.log(p[t, i] / p[rows, i].mean())

    expected = naive_rank(signals, log_ratio, gamma, references, targets_of)
    np.testing.assert_allclose(rmia(signals, gamma=gamma), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("a", [0.3, 0.0, 1.0])
def test_offline_rmia_equals_its_naive_twin(signals, references, targets_of, a):
    p, member = np.exp(-signals.arrays["loss"]), signals.game.member

    def log_ratio(t, i, rows):
        out = [p[m, i] for m in rows if not member[m, i]] or [p[t, i]]
        return np.log(p[t, i] / (((1 + a) * np.mean(out) + 1 - a) / 2))

    expected = naive_rank(signals, log_ratio, 2.0, references, targets_of)
    np.testing.assert_allclose(rmia_offline(signals, gamma=2.0, a=a), expected, rtol=1e-9, atol=1e-12)


def test_one_reference_is_enough():
    """The ratio to that one model; offline the target's own probability stands in where the reference is a member."""
    member = np.array([[True, True, False, False, False], [True, False, True, False, False]])
    game = Game("half_split", member, np.array([True, True, True, True, False]), 1)
    p = np.array([[0.9, 0.8, 0.4, 0.3, 0.4], [0.9, 0.2, 0.6, 0.3, 0.5]])
    signals = Signals(game, None, {"loss": -np.log(p)})
    ratio = p[0, :4] / p[1, :4]  # 1, 4, 2/3, 1 against .8 of the population
    assert (rmia(signals)[0] > -0.5).tolist() == (ratio >= 0.8).tolist()
    out = np.array([0.9, 0.2, 0.4, 0.3])
    offline = p[0, :4] / (0.65 * out + 0.35)  # .961, 1.667, .656, .550 against .593
    assert (
        (rmia_offline(signals)[0] > -0.5).tolist()
        == (offline >= 0.4 / (0.65 * 0.5 + 0.35)).tolist()
        == [True, True, True, False]
    )


def test_no_reference_is_refused():
    game = Game("one_model", np.array([[True, False]]), np.array([True, True]), 1)
    with pytest.raises(NotApplicable, match="needs at least 1 reference model, and there are 0"):
        rmia(Signals(game, None, {"loss": np.ones((1, 2))}))


def test_rank_share_by_hand():
    # 8/1 and 8/2 are at least 2, 8/5 is not; of the tie-breaks, log 8 = 2.079 gives .8376 and log 1 gives 1/2
    shares = 1 + rank_fraction(np.log([8.0, 1.0]), np.log([1.0, 2.0, 5.0]), gamma=2.0)
    np.testing.assert_allclose(shares, [(2 + 0.5 * (1 + np.log(8) / (1 + np.log(8)))) / 4, 0.5 / 4], rtol=1e-12)


def test_a_ratio_of_exactly_gamma_counts():
    counts = np.floor(4 * (1 + rank_fraction(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]), gamma=1.0)))
    np.testing.assert_array_equal(counts, [1, 2, 3])


@settings(deadline=None, derandomize=True)
@given(
    st.lists(st.floats(-700, 700), min_size=1, max_size=30),
    st.lists(st.floats(-700, 700), min_size=1, max_size=7),
)
def test_rank_share_keeps_the_order_of_the_ratios(ratios, population):
    share = rank_fraction(np.array(ratios), np.array(population))
    assert ((share > -1) & (share < 0)).all()
    order = np.argsort(ratios)
    assert (np.diff(share[order]) >= 0).all()
    apart = np.diff(np.array(ratios)[order]) > 1e-6
    assert (np.diff(share[order])[apart] > 0).all()


@pytest.mark.parametrize("outlier", [0.0, 1e6, -1e30])
def test_counts_are_exact_whatever_the_range(outlier):
    rng = np.random.default_rng(0)
    targets, population = np.append(rng.normal(size=500), outlier), rng.normal(size=77)
    counts = (targets[:, None] - population >= np.log(2)).sum(axis=1)
    np.testing.assert_array_equal(np.floor((1 + rank_fraction(targets, population, gamma=2.0)) * 78 + 1e-12), counts)


@pytest.mark.parametrize("n_aside", [1, 2, 3, 7])
def test_populations_of_any_size(n_aside):
    rng = np.random.default_rng(n_aside)
    n = 10 + n_aside
    member = np.zeros((5, n), dtype=bool)
    member[:, :10] = rng.random((5, 10)) < 0.5
    loss = rng.gamma(1, size=(5, n))
    signals = Signals(Game("half_split", member, np.arange(n) < 10, 1), None, {"loss": loss})
    ratio = np.exp(-loss[0]) / np.exp(-loss[1:]).mean(axis=0)
    counts = (ratio[:10, None] / ratio[None, 10:] >= 2).sum(axis=1)
    assert (np.floor((1 + rmia(signals, gamma=2.0)[0]) * (n_aside + 1)) == counts).all()


@pytest.mark.parametrize("attack", [rmia, rmia_offline])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities_that_underflow_give_finite_scores(attack, dtype):
    rng = np.random.default_rng(0)
    member = rng.random((6, 50)) < 0.5
    loss = (rng.random((6, 50)) * 5000).astype(dtype)
    for n_targets in (1, 6):
        signals = Signals(Game("half_split", member, np.ones(50, dtype=bool), n_targets), None, {"loss": loss})
        scores = attack(signals)
        assert np.isfinite(scores).all()
        assert scores.dtype == dtype
        assert len(np.unique(scores[0])) == 50


def test_bad_parameters():
    member = np.array([[True], [True], [False]])
    signals = Signals(Game("half_split", member, np.array([True]), 1), None, {"loss": np.ones((3, 1))})
    with pytest.raises(ValueError, match="gamma must be > 0, got 0"):
        rmia(signals, gamma=0.0)
    with pytest.raises(ValueError, match=r"a is a fraction: 2 is out of range; did you mean 0\.02\?"):
        rmia_offline(signals, a=2.0)


def test_memory_grows_with_points_plus_population():
    rng = np.random.default_rng(0)
    targets, population = rng.normal(size=50_000), rng.normal(size=10_000)
    tracemalloc.start()
    rank_fraction(targets, population)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 8 * 60_000  # the matrix of pairs would take 500 MB as booleans
