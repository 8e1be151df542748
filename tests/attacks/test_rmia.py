import tracemalloc
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakbound.attacks import rmia as module
from leakbound.attacks.blocks import blocks
from leakbound.attacks.rmia import log_ratio, offline_slopes, rank_fraction, rmia, rmia_offline
from leakbound.core.types import Game, NotApplicable, Signals


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


@pytest.mark.parametrize("attack", [rmia, partial(rmia_offline, a=0.3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities_that_underflow_give_finite_scores(attack, dtype):
    rng = np.random.default_rng(0)
    member = rng.random((6, 50)) < 0.5
    loss = (rng.random((6, 50)) * 5000).astype(dtype)
    for n_targets in (1, 6):
        signals = Signals(Game("half_split", member, np.ones(50, dtype=bool), n_targets), None, {"loss": loss})
        scores = attack(signals)
        assert np.isfinite(scores).all()
        assert scores.dtype == np.float64
        assert len(np.unique(scores[0])) == 50


@pytest.mark.parametrize("attack", [rmia, partial(rmia_offline, a=0.3)])
def test_records_of_one_count_keep_their_order_where_float32_has_too_few_digits(attack):
    """In the middle of 20,000 ranks, 24 bits tell h apart by 1e-3 only: losses that differ by less would tie."""
    rng, n_population = np.random.default_rng(0), 20_000
    member = np.zeros((3, n_population + 2), dtype=bool)
    member[1, -2:] = True
    loss = np.full(member.shape, 1.0, dtype=np.float32)
    loss[0, :n_population] += np.where(rng.random(n_population) < 0.5, 0.5, -0.5)  # on both sides of the two records
    loss[0, -2:] += np.array([0, 1e-4], dtype=np.float32)
    is_target = np.arange(n_population + 2) >= n_population
    scores = attack(Signals(Game("half_split", member, is_target, 1), None, {"loss": loss}))[0]
    assert scores[0] > scores[1]
    assert np.float32(scores[0]) == np.float32(scores[1])
    assert np.floor((1 + scores) * (n_population + 1)).tolist() == [(loss[0, :n_population] > 1.2).sum()] * 2


def test_ratios_that_float32_cannot_tell_apart_have_an_order():
    """Losses near 0 have more digits than their difference from those of the references."""
    member = np.array([[True, True], [False, False]])
    loss = np.array([[1e-9, 2e-9], [0.5, 0.5]], dtype=np.float32)
    signals = Signals(Game("half_split", member, np.array([True, True]), 1), None, {"loss": loss})
    ratios = log_ratio(signals)(next(blocks(signals.game, np.arange(2), 2)))[:, 0]
    assert ratios[0] > ratios[1]
    assert np.float32(ratios[0]) == np.float32(ratios[1])
    for attack in (rmia, rmia_offline):
        scores = attack(signals)[0]
        assert scores[0] > scores[1]


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


def linear_leak(slope, n_models=6, n_targets=6, n_points=1500, seed=0):
    """Models of which p with the record is slope * p without + 1 - slope, with a little noise."""
    rng = np.random.default_rng(seed)
    member = rng.random((n_models, n_points)) < 0.5
    p_out = rng.uniform(0.05, 0.95, size=n_points)
    p = np.where(member, slope * p_out + 1 - slope, p_out) * rng.uniform(0.9, 1, size=member.shape)
    return Signals(Game("half_split", member, np.ones(n_points, dtype=bool), n_targets), None, {"loss": -np.log(p)})


def naive_slope(p, member):
    """The loops over players, slopes and pairs of points."""
    n_models, grid = len(p), [k / 10 for k in range(11)]
    areas = {a: [] for a in grid}
    for player in range(n_models):
        references = [m for m in range(n_models) if m != player]
        points = [i for i in range(p.shape[1]) if not member[references, i].all()]
        out = np.array([np.mean([p[m, i] for m in references if not member[m, i]]) for i in points])
        inside = member[player, points]
        for a in grid:
            ratio = p[player, points] / (((1 + a) * out + 1 - a) / 2)
            areas[a].append(np.mean([x > z for x in ratio[inside] for z in ratio[~inside]]))
    return max(grid, key=lambda a: np.mean(areas[a]))


@pytest.mark.parametrize("slope", [0.2, 0.9])
def test_chosen_slopes_equal_a_plain_loop(slope):
    loo = linear_leak(slope, n_models=5, n_targets=5, n_points=80)
    p, member = np.exp(-loo.arrays["loss"]), loo.game.member
    choosing = [[1, 2, 3], [0, 2, 3, 4], [0, 1, 3, 4], [0, 1, 2, 4]]  # for models 0 and 4, 1, 2, 3
    by_group = [naive_slope(p[rows], member[rows]) for rows in choosing]
    assert offline_slopes(loo).tolist() == [*by_group, by_group[0]]
    fixed = replace(loo, game=replace(loo.game, n_targets=2))
    assert offline_slopes(fixed).tolist() == [naive_slope(p[2:], member[2:])] * 2


@pytest.mark.by_day("3")
@pytest.mark.parametrize("n_targets", [9, 3])
def test_no_target_has_a_part_in_its_own_slope(n_targets):
    """Whatever a target was trained on and returns: its slope is the same."""
    signals, rng = linear_leak(0.6, n_models=9, n_targets=n_targets, n_points=60), np.random.default_rng(1)
    slopes = offline_slopes(signals)
    changed = False
    for target in range(n_targets):
        for other_slope in (0.0, 0.5, 1.0):
            member, loss = signals.game.member.copy(), signals.arrays["loss"].copy()
            member[target] = rng.random(60) < 0.5
            p_out = rng.random(60)
            loss[target] = -np.log(np.where(member[target], other_slope * p_out + 1 - other_slope, p_out))
            game = replace(signals.game, member=member)
            other = offline_slopes(Signals(game, None, {"loss": loss}))
            assert other[target] == slopes[target]
            changed |= bool((other != slopes).any())
    assert changed == (n_targets == 9)  # others may choose anew; fixed references are no targets


@pytest.mark.parametrize("n_models", [4, 6, 20])
@pytest.mark.parametrize(("slope", "low", "high"), [(0.2, 0.0, 0.4), (0.9, 0.8, 1.0)])
def test_a_planted_slope_is_found(n_models, slope, low, high):
    slopes = offline_slopes(linear_leak(slope, n_models=n_models, n_targets=n_models))
    assert ((slopes >= low) & (slopes <= high)).all()


def test_chosen_slopes_are_used_and_a_number_is_taken_as_it_is():
    signals = linear_leak(0.5, n_points=40)
    slopes = offline_slopes(signals)
    assert len(set(slopes)) > 1
    chosen = rmia_offline(signals)
    for target, slope in enumerate(slopes):
        assert np.array_equal(chosen[target], rmia_offline(signals, a=float(slope))[target])
    assert not np.array_equal(chosen, rmia_offline(signals, a=0.3))


def area(signals, scores):
    """The mean area under the curves of the targets, by all pairs."""
    member = signals.game.target_member
    return np.mean(
        [
            (own[inside][:, None] > own[~inside]).mean() + (own[inside][:, None] == own[~inside]).mean() / 2
            for own, inside in zip(scores, member, strict=True)
        ]
    )


def test_the_choice_finds_more_where_the_usual_slope_is_wrong():
    signals = linear_leak(0.95, n_models=8, n_targets=8)
    assert area(signals, rmia_offline(signals)) > area(signals, rmia_offline(signals, a=0.3)) + 0.05


@pytest.mark.parametrize(
    ("member", "n_targets"),
    [
        ([[1, 0, 1, 0], [0, 1, 0, 1]], 2),  # leave one out with two models: one is left
        ([[1, 0, 1, 0], [0, 1, 0, 1]], 1),  # one reference
        ([[1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]], 1),  # references without all of the points
        ([[1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1]], 1),  # complements: a point that is known is in
    ],
)
def test_where_the_references_cannot_choose_the_slope_is_that_of_the_paper(member, n_targets):
    member = np.array(member, dtype=bool)
    loss = np.random.default_rng(0).random(member.shape)
    signals = Signals(Game("half_split", member, np.ones(4, dtype=bool), n_targets), None, {"loss": loss})
    assert (offline_slopes(signals) == 0.3).all()
    assert np.array_equal(rmia_offline(signals), rmia_offline(signals, a=0.3))


def test_the_choice_is_made_on_a_sample(monkeypatch):
    """At few points and with few players where there are many, at even steps."""
    signals = linear_leak(0.7, n_models=30, n_targets=1, n_points=900)
    monkeypatch.setattr(module, "_POINTS", 60)
    points = np.linspace(0, 899, 60).astype(int)
    loss, member = signals.arrays["loss"][1:, points], signals.game.member[1:, points]
    played = []
    monkeypatch.setattr(module, "_area", lambda members, others: played.append(len(members) + len(others)) or 0.5)
    assert offline_slopes(signals).tolist() == [0.0]  # all equal: the first
    known = [(~np.delete(member, player, axis=0)).any(axis=0).sum() for player in range(0, 29, 4)]
    assert played == [n for n in known for _ in range(11)]
    monkeypatch.undo()
    part = Game("half_split", np.vstack([member[:1], member]), np.ones(60, dtype=bool), 1)
    same = Signals(part, None, {"loss": np.vstack([loss[:1], loss])})
    monkeypatch.setattr(module, "_POINTS", 60)
    assert np.array_equal(offline_slopes(signals), offline_slopes(same))
