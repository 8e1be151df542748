"""From answers to signals: each value as its definition says, one point at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from leakbound.core.signals import SIGNALS
from leakbound.releases import readout

EVERY = tuple(SIGNALS)


def random_probabilities(n: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.5), size=n).clip(1e-4)
    return p / p.sum(axis=1, keepdims=True), rng.integers(0, k, n)


class TestProbabilities:
    @pytest.mark.parametrize("k", [2, 3, 10])
    def test_equal_the_naive_twin(self, k):
        p, label = random_probabilities(200, k)
        found = readout.probabilities(p, label, EVERY)
        for i in range(200):
            y = label[i]
            others = [p[i, c] for c in range(k) if c != y]
            assert found["loss"][i] == pytest.approx(-math.log(p[i, y]), abs=1e-12)
            assert found["log_odds"][i] == pytest.approx(math.log(p[i, y] / sum(others)), abs=1e-12)
            assert found["correct"][i] == (p[i, y] > max(others))
            np.testing.assert_allclose(found["log_prob"][i], np.log([p[i, y], *others]), atol=1e-12)

    def test_zero_is_half_of_the_smallest_positive_answer(self):
        p = np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 0.9]])
        found = readout.probabilities(p, np.array([0, 0, 0]), EVERY)
        np.testing.assert_allclose(found["loss"], [0, math.log(20), math.log(10)])
        np.testing.assert_allclose(found["log_odds"], [math.log(20), -math.log(20), -math.log(9)])
        np.testing.assert_allclose(found["log_prob"][1], [-math.log(21), math.log(20 / 21)])
        np.testing.assert_allclose(found["log_prob"][2], np.log([0.1, 0.9]))

    @pytest.mark.parametrize("k", [2, 3, 100])
    @pytest.mark.parametrize("n_trees", [1, 2, 10])
    def test_log_probabilities_with_zeros_sum_to_one_and_keep_their_order(self, k, n_trees):
        """Answers of forests, trees and nearest neighbours: multiples of 1/n, most of them 0."""
        rng = np.random.default_rng(k + n_trees)
        p = rng.multinomial(n_trees, rng.dirichlet(np.full(k, 0.3)), 300) / n_trees
        found = readout.probabilities(p, np.zeros(300, dtype=int), ("log_prob",))["log_prob"]
        np.testing.assert_allclose(np.exp(found).sum(axis=1), 1)
        top, found_top = p.max(axis=1), found.max(axis=1)
        for row in range(300):
            assert (found_top[top < top[row]] < found_top[row]).all()
            assert (np.diff(found[row][np.argsort(p[row])]) > -1e-12).all()

    def test_tiny_answers_stay_finite(self):
        p = np.array([[1.0, 1e-300], [5e-324, 1.0]])
        found = readout.probabilities(p, np.array([1, 0]), EVERY)
        np.testing.assert_allclose(found["loss"], -math.log(1e-12))
        np.testing.assert_allclose(found["log_odds"], math.log(1e-12))

    def test_log_odds_keep_their_digits_near_certainty(self):
        """1 - p would lose all of them in float32 below 6e-8; the sum of the others does not."""
        small = 3e-5
        p = np.array([[1 - small, small / 2, small / 2]], dtype=np.float32)
        found = readout.probabilities(p, np.array([0]), ("log_odds",))
        assert found["log_odds"][0] == pytest.approx(math.log((1 - small) / small), rel=1e-6)

    def test_a_tie_is_not_correct(self):
        found = readout.probabilities(np.array([[0.5, 0.5]]), np.array([0]), ("correct",))
        assert found["correct"].tolist() == [0.0]

    def test_only_what_is_wanted_and_known(self):
        p, label = random_probabilities(5, 3)
        assert readout.probabilities(p, label, ("loss", "weather")).keys() == {"loss"}

    def test_the_answers_are_not_changed(self):
        p, label = random_probabilities(5, 3)
        before = p.copy()
        readout.probabilities(p, label, EVERY)
        np.testing.assert_array_equal(p, before)

    @pytest.mark.usefixtures("as_users_run_it")
    @pytest.mark.parametrize(
        ("p", "message"),
        [
            (np.ones(3), "probabilities must have shape (points, classes >= 2), got (3,)"),
            (np.ones((3, 1)), "probabilities must have shape (points, classes >= 2), got (3, 1)"),
            (np.array([[np.nan, 1.0]]), "probabilities have NaN or infinite values"),
            (
                np.array([[2.0, -1.0], [0.5, 0.5]]),
                "rows must be probabilities: smallest entry -1, row sums 1 to 1; apply softmax to logits, and "
                "divide rounded ones by the sum of their row",
            ),
            (
                np.array([[3.0, 4.0], [0.5, 0.5]]),
                "rows must be probabilities: smallest entry 0.5, row sums 1 to 7; apply softmax to logits, and "
                "divide rounded ones by the sum of their row",
            ),
        ],
    )
    def test_rows_that_are_no_probabilities(self, p, message):
        with pytest.raises(ValueError) as caught:
            readout.probabilities(p, np.zeros(len(p), dtype=int), EVERY)
        assert str(caught.value) == message


class TestMargins:
    def test_two_classes(self):
        found = readout.margins(np.array([1.5, 1.5, -0.5, -0.5]), np.array([1, 0, 1, 0]), EVERY)
        assert found["log_odds"].tolist() == [1.5, -1.5, -0.5, 0.5]
        assert found["correct"].tolist() == [1, 0, 0, 1]

    def test_several_classes_equal_the_naive_twin(self):
        rng = np.random.default_rng(0)
        decision, label = rng.normal(size=(100, 4)), rng.integers(0, 4, 100)
        found = readout.margins(decision, label, EVERY)
        for i in range(100):
            margin = decision[i, label[i]] - max(decision[i, c] for c in range(4) if c != label[i])
            assert found["log_odds"][i] == pytest.approx(margin, abs=1e-15)
            assert found["correct"][i] == (np.argmax(decision[i]) == label[i])

    def test_nothing_that_needs_probabilities(self):
        assert readout.margins(np.array([1.0]), np.array([1]), EVERY).keys() == {"log_odds", "correct"}


class TestPredictions:
    def test_squared_loss_in_units_of_the_response(self):
        found = readout.predictions(np.array([[1.0], [2.0]]), np.array([[4.0], [2.0]]), np.array([3.0]), EVERY)
        assert found.keys() == {"loss"}
        np.testing.assert_allclose(found["loss"], [0.5, 0.0])

    def test_nothing_if_the_loss_is_not_wanted(self):
        assert readout.predictions(np.zeros((2, 1)), np.zeros((2, 1)), np.ones(1), ("log_odds",)) == {}
