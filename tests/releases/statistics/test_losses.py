"""Losses of regressions: derivatives against differences, the constants of self-concordance, parabolas above them."""

from __future__ import annotations

import numpy as np
import pytest

from leakbound.releases.statistics.losses import LogisticLoss, Loss, PoissonLoss, PseudoHuberLoss, SquaredLoss

LOSSES = [SquaredLoss(), LogisticLoss(), PoissonLoss(), PseudoHuberLoss(0.3), PseudoHuberLoss(5.0)]
ETA = np.linspace(-6, 6, 2401)

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def response(loss: Loss) -> np.ndarray:
    """One of the values that the loss is for, for each predictor."""
    return np.resize([0.0, 1.0], len(ETA)) if isinstance(loss, LogisticLoss) else np.resize([0.0, 1.0, 4.0], len(ETA))


@each_loss
def test_derivatives(loss: Loss) -> None:
    y, step = response(loss), 1e-5
    assert isinstance(loss, Loss)
    slope = (loss.value(ETA + step, y) - loss.value(ETA - step, y)) / (2 * step)
    np.testing.assert_allclose(loss.slope(ETA, y), slope, rtol=1e-6, atol=1e-8)
    curvature = (loss.slope(ETA + step, y) - loss.slope(ETA - step, y)) / (2 * step)
    np.testing.assert_allclose(loss.curvature(ETA, y), curvature, rtol=1e-6, atol=1e-8)


@each_loss
def test_the_constant_of_self_concordance_is_the_least(loss: Loss) -> None:
    y, step = response(loss), 1e-5
    third = (loss.curvature(ETA + step, y) - loss.curvature(ETA - step, y)) / (2 * step)
    largest = np.abs(third / loss.curvature(ETA, y)).max()
    assert largest <= loss.concordance * (1 + 1e-6)
    assert largest >= loss.concordance * 0.99


@each_loss
def test_parabolas_are_above_the_loss(loss: Loss) -> None:
    y = response(loss)
    width = loss.parabola(ETA, y)
    if width is None:
        return
    for shift in (-5.0, -0.1, 0.2, 3.0):
        above = loss.value(ETA, y) + shift * loss.slope(ETA, y) + shift**2 / 2 * width
        assert (loss.value(ETA + shift, y) <= above * (1 + 1e-12)).all()


def test_a_loss_of_residuals_moves_with_the_response() -> None:
    for loss in LOSSES:
        y = response(loss)
        same = np.allclose(loss.value(ETA + 2, y + 2), loss.value(ETA, y))
        assert same == loss.of_residuals


def test_far_away_nothing_overflows() -> None:
    far = np.array([-1e200, 1e200])
    loss = PseudoHuberLoss(1.0)
    np.testing.assert_allclose(loss.value(far, np.zeros(2)), 1e200)
    assert loss.slope(far, np.zeros(2)).tolist() == [-1.0, 1.0]
    assert LogisticLoss().value(np.array([-1e6, 1e6]), np.array([1.0, 1.0])).tolist() == [1e6, 0.0]


def test_what_has_no_minimum_is_refused() -> None:
    with pytest.raises(ValueError, match="must be >= 0, got -1"):
        PoissonLoss().start(np.array([2.0, -1.0]))
    with pytest.raises(ValueError, match="is 0 in all records"):
        PoissonLoss().start(np.zeros(3))
    with pytest.raises(ValueError, match="threshold"):
        PseudoHuberLoss(0.0)
