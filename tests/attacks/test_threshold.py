import numpy as np
import pytest

from leakbound.attacks.threshold import confidence, gap, loss, modified_entropy
from leakbound.core.types import Game, Signals


def one_prediction(log_p, dtype=np.float64):
    game = Game("one_model", np.array([[True]]), np.array([True]), 1)
    return Signals(game, None, {"log_prob": np.asarray(log_p, dtype=dtype)[None, None, :]}, np.array([0]))


def test_naive_twins(signals, loop):
    arrays = signals.arrays
    p = np.exp(arrays["log_prob"])

    def entropy(t, i, _):
        true = int(signals.labels[i])
        others = [x for label, x in enumerate(p[t, i]) if label != true]
        return (1 - p[t, i, true]) * np.log(p[t, i, true]) + sum(x * np.log(1 - x) for x in others)

    for attack, score in (
        (gap, lambda t, i, _: arrays["correct"][t, i]),
        (loss, lambda t, i, _: -arrays["loss"][t, i]),
        (confidence, lambda t, i, _: np.log(p[t, i].max())),
        (modified_entropy, entropy),
    ):
        np.testing.assert_allclose(attack(signals), loop(signals, score), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "log_p",
    [[0.0, -800.0, -800.0], [-800.0, 0.0, -800.0], [-1e30, -1e30, 0.0], [-1e-20, -46.0, -47.0]],
    ids=["sure and right", "sure and wrong", "no digits", "near one"],
)
def test_entropy_is_finite_at_the_ends(log_p, dtype):
    assert np.isfinite(modified_entropy(one_prediction(log_p, dtype))).all()


def test_entropy_keeps_its_digits_near_one():
    right = modified_entropy(one_prediction([np.log1p(-1e-20), np.log(1e-20)]))[0, 0]
    wrong = modified_entropy(one_prediction([np.log(1e-20), np.log1p(-1e-20)]))[0, 0]
    assert right == pytest.approx(-2e-40, rel=1e-3, abs=0)  # (1 - p) log p - (1 - p)^2 to first order
    assert wrong == pytest.approx(2 * np.log(1e-20), rel=1e-12)


def test_confidence_tells_apart_what_a_probability_would_round_to_one():
    sure, surer = (confidence(one_prediction([-x, np.log(x)]))[0, 0] for x in (1e-18, 1e-19))
    assert surer > sure


def test_accuracy_of_gap_by_those_of_the_model():
    """Of 60 members 54 are right, of 140 others 91: sablayrolles2019, eq. 41."""
    member = np.arange(200) < 60
    correct = np.concatenate([np.arange(60) < 54, np.arange(140) < 91])
    game = Game("one_model", member[None], np.ones(200, dtype=bool), 1)
    called = gap(Signals(game, None, {"correct": 1.0 * correct[None]}))[0] > 0.5
    assert np.mean(called == member) == pytest.approx(60 / 200 * 54 / 60 + 140 / 200 * (1 - 91 / 140))
