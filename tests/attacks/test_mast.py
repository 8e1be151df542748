from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from leakbound.attacks.mast import mast, mast_threshold
from leakbound.core.types import Game, NotApplicable, Signals


@pytest.mark.parametrize("temperature", [1.0, 0.2])
def test_mast_equals_its_naive_twin(signals, loop, temperature):
    loss, member = signals.arrays["loss"], signals.game.member

    def score(t, i, rows):
        out = np.array([-loss[m, i] / temperature for m in rows if not member[m, i]])
        if len(out) == 0:
            return 0.0
        tau = -temperature * (logsumexp(out) - np.log(len(out)))
        return (tau - loss[t, i]) / temperature

    ours = mast(signals, temperature=temperature)
    np.testing.assert_allclose(ours, loop(signals, score), rtol=1e-9, atol=1e-9)


def test_mast_is_exact_where_the_targets_own_term_dominates_the_sum():
    """Without its own row, the mean of a target that holds all but 1e-40 of the sum."""
    losses = np.array([0.0, 92.0, 93.0, 95.0])[:, None]
    game = Game("half_split", np.zeros((4, 1), dtype=bool), np.array([True]), 4)
    expected = logsumexp([-92.0, -93.0, -95.0]) - np.log(3)
    assert mast(Signals(game, None, {"loss": losses}))[0, 0] == pytest.approx(-expected, rel=1e-14)


def naive_cut(losses, member):
    """Midpoint of the gap where most references are on their side; the lowest of equals."""
    values = np.unique(losses)
    best = (-np.inf, values[0])
    for low, high in pairwise(values):
        right = np.sum(member & (losses <= low)) + np.sum(~member & (losses >= high))
        if right > best[0]:
            best = (right, (low + high) / 2)
    return best[1]


@pytest.mark.parametrize("ties", [False, True])
def test_mast_threshold_equals_its_naive_twin(signals, loop, ties):
    loss, member = signals.arrays["loss"], signals.game.member
    loss = np.round(2 * loss) if ties else loss

    def score(t, i, rows):
        inside = member[rows, i]
        return naive_cut(loss[rows, i], inside) - loss[t, i] if 0 < inside.sum() < len(rows) else 0.0

    ours = mast_threshold(Signals(signals.game, None, {"loss": loss}))
    np.testing.assert_allclose(ours, loop(signals, score), rtol=1e-9, atol=1e-9)


@settings(deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=3, max_size=8).filter(
        lambda rows: 0 < sum(inside for _, inside in rows) < len(rows)
    )
)
def test_thresholds_with_many_ties(rows):
    loss = np.array([[float(value)] for value, _ in rows])
    member = np.array([[inside] for _, inside in rows])
    game = Game("half_split", member, np.array([True]), len(rows))
    ours = mast_threshold(Signals(game, None, {"loss": loss}))[:, 0]
    for t in range(len(rows)):
        others = np.arange(len(rows)) != t
        inside = member[others, 0]
        expected = naive_cut(loss[others, 0], inside) - loss[t, 0] if 0 < inside.sum() < others.sum() else 0
        assert ours[t] == pytest.approx(expected, abs=1e-12)


@settings(deadline=None, derandomize=True)
@given(shift=st.floats(0, 50), seed=st.integers(0, 1000))
def test_a_constant_added_to_a_record_in_all_models_changes_nothing(shift, seed):
    rng = np.random.default_rng(seed)
    member = rng.random((8, 5)) < 0.5
    member[-2:] = [[True], [False]]
    loss = rng.gamma(1, size=(8, 5))
    shifted = loss + shift * np.array([1, 0, 0, 1, 0])
    for n_targets in (2, 8):
        game = Game("half_split", member, np.ones(5, dtype=bool), n_targets)
        for attack in (mast, mast_threshold):
            before, after = (attack(Signals(game, None, {"loss": x})) for x in (loss, shifted))
            np.testing.assert_allclose(after, before, atol=1e-9)


def test_the_soft_minimum_lies_between_minimum_and_mean():
    loss = np.array([[0.0], [0.3], [2.0], [5.0]])
    game = Game("half_split", np.array([[True], [False], [False], [False]]), np.array([True]), 1)
    signals = Signals(game, None, {"loss": loss})
    cold, warm = (t * mast(signals, temperature=t)[0, 0] for t in (1e-3, 1e4))
    assert cold == pytest.approx(0.3 + 1e-3 * np.log(3), abs=1e-9)
    assert warm == pytest.approx(loss[1:].mean(), rel=1e-3)


def test_a_record_whose_references_all_contain_it_gets_no_evidence():
    member = np.array([[True, True], [True, False], [True, True]])  # the second differs
    signals = Signals(Game("half_split", member, np.array([True, True]), 1), None, {"loss": np.array([[1.0, 1.0]] * 3)})
    assert mast(signals)[0, 0] == 0
    assert mast_threshold(signals)[0, 0] == 0


def test_reasons_and_bad_parameters():
    member = np.array([[True], [True], [True]])
    signals = Signals(Game("half_split", member, np.array([True]), 1), None, {"loss": np.ones((3, 1))})
    with pytest.raises(NotApplicable, match="without a target point"):
        mast(signals)
    with pytest.raises(ValueError, match="temperature must be > 0, got 0"):
        mast(signals, temperature=0.0)
