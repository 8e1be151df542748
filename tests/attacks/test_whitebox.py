"""Attacks that look inside: against their definitions, and the law of the scores of non-members."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from leakbound.attacks import ATTACKS
from leakbound.core.types import Game, NotApplicable, Signals


def signals_of(member: np.ndarray, **arrays: np.ndarray) -> Signals:
    return Signals(Game("half_split", member, np.ones(member.shape[1], dtype=bool), len(member)), None, arrays)


def test_members_have_small_gradients():
    member = np.array([[True, False, True]])
    norm = np.array([[0.5, 3.0, 0.0]])
    np.testing.assert_array_equal(ATTACKS["gradient_norm"](signals_of(member, gradient_norm=norm)).value, -norm)


def test_matt_separates_members_from_others_half_way():
    """A member moves the parameters by -H^-1 g, another point does not: the scores lie on both sides of 0."""
    rng = np.random.default_rng(0)
    member = rng.random((2, 40)) < 0.5
    curvature = rng.gamma(1, size=(1, 40)).repeat(2, axis=0)
    taylor = np.stack([-curvature * member, curvature], axis=-1)
    score = ATTACKS["matt"](signals_of(member, taylor=taylor)).value
    np.testing.assert_allclose(score, np.where(member, 1, -1) * curvature / 2)


def test_glir_is_the_product_of_the_p_values():
    rng = np.random.default_rng(0)
    member = rng.random((3, 20)) < 0.5
    dot, norm = rng.normal(size=(3, 20, 5)), rng.gamma(2, size=(3, 20, 5))
    p = stats.norm.sf(dot / np.sqrt(norm))
    expected = -np.log(p).sum(axis=2)
    np.testing.assert_allclose(ATTACKS["glir"](signals_of(member, step_dot=dot, step_norm=norm)).value, expected)


def test_steps_that_a_point_cannot_move_say_nothing():
    member = np.array([[True, False]])
    dot, norm = np.array([[[0.0, 1.0], [0.0, -1.0]]]), np.array([[[0.0, 1.0], [0.0, 1.0]]])
    expected = [[-stats.norm.logsf(1.0), -stats.norm.logsf(-1.0)]]
    np.testing.assert_allclose(ATTACKS["glir"](signals_of(member, step_dot=dot, step_norm=norm)).value, expected)


@pytest.mark.statistics
def test_glir_of_others_has_one_law_whatever_their_gradients():
    """Gamma(S, 1): the Kolmogorov distance of 20,000 scores is above .0138 with probability 1e-3."""
    rng = np.random.default_rng(0)
    norm = rng.gamma(0.3, 20.0, size=(1, 20_000, 6))
    dot = np.sqrt(norm) * rng.normal(size=norm.shape)
    score = ATTACKS["glir"](signals_of(np.zeros((1, 20_000), dtype=bool), step_dot=dot, step_norm=norm)).value[0]
    assert stats.kstest(score, stats.gamma(6).cdf).statistic < 0.0138


def test_far_tails_stay_finite():
    member = np.array([[True, False]])
    dot, norm = np.full((1, 2, 3), [[[300.0] * 3, [-300.0] * 3]]), np.ones((1, 2, 3))
    score = ATTACKS["glir"](signals_of(member, step_dot=dot, step_norm=norm)).value
    assert np.isfinite(score).all()
    assert score[0, 0] > 1e5 > score[0, 1] >= 0


@pytest.mark.parametrize(
    ("name", "missing"), [("matt", "taylor"), ("gradient_norm", "gradient_norm"), ("glir", "step_dot")]
)
def test_a_missing_signal_is_a_reason(name, missing):
    with pytest.raises(NotApplicable, match=f"needs the signal {missing}"):
        ATTACKS[name](signals_of(np.array([[True, False]]), loss=np.ones((1, 2))))
