"""What the rooms pass to each other, checked once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from leakbound.attacks import ATTACKS
from leakbound.core import games
from leakbound.core.findings import Finding, Term
from leakbound.core.types import Game, NotApplicable, Points, Scores, Signals


def signals_of(game: Game, **arrays: np.ndarray) -> Signals:
    return Signals(game, None, arrays)


def random_game(n_models: int, n_targets: int, own_points: bool, seed: int = 0) -> Game:
    rng = np.random.default_rng(seed)
    member = rng.random((n_models, 23)) < 0.5
    is_target_point = np.zeros((n_targets, 23) if own_points else 23, dtype=bool)
    for row in np.atleast_2d(is_target_point):
        row[rng.permutation(23)[:9]] = True
    return Game("half_split", member, is_target_point, n_targets)


class TestGame:
    def test_targets_at_their_own_points(self):
        game = random_game(8, 8, own_points=True)
        values = np.arange(8 * 23 * 2).reshape(8, 23, 2)
        expected = [[values[t, point] for point in np.flatnonzero(game.is_target_point[t])] for t in range(8)]
        np.testing.assert_array_equal(game.at_targets(values), expected)
        np.testing.assert_array_equal(game.at_targets(values, slice(2, 5)), np.array(expected)[:, 2:5])
        np.testing.assert_array_equal(game.target_member, game.at_targets(game.member))

    @pytest.mark.parametrize("is_target_point", [[1, 1, 1, 1], [0, 1, 1, 0], [1, 0, 1, 1], [0, 0, 0, 1]])
    def test_targets_at_common_points(self, is_target_point):
        is_target_point = np.array(is_target_point, dtype=bool)
        game = Game("half_split", np.eye(3, 4, dtype=bool), is_target_point, 2)
        values = np.arange(12).reshape(3, 4)
        np.testing.assert_array_equal(game.at_targets(values), values[:2, is_target_point])
        np.testing.assert_array_equal(game.at_targets(values, slice(1, None)), values[:2, is_target_point][:, 1:])
        assert game.n_target_points == is_target_point.sum()

    def test_a_run_of_points_is_taken_without_a_copy(self):
        game = games.half_split(6, 4)
        values = np.zeros((4, 6))
        assert np.shares_memory(game.at_targets(values), values)

    @pytest.mark.parametrize("own_points", [False, True])
    def test_split_makes_the_second_half_references(self, own_points):
        game = random_game(9, 9, own_points)
        half = game.split()
        assert (half.n_targets, half.n_references) == (4, 5)
        np.testing.assert_array_equal(half.target_member, game.target_member[:4])
        assert (half.kind, half.prior, half.others, half.sampling) == (
            game.kind,
            game.prior,
            game.others,
            game.sampling,
        )

    def test_split_leaves_a_game_with_references_as_it_is(self):
        game = random_game(9, 3, own_points=False)
        assert game.split() is game
        single = random_game(1, 1, own_points=False)
        assert single.split() is single

    def test_the_population_is_in_no_model_and_no_target(self):
        member = np.array([[1, 0, 0, 0, 1], [0, 0, 1, 0, 1]], dtype=bool)
        game = Game("half_split", member, np.array([1, 1, 1, 0, 0], dtype=bool), 2)
        assert game.population.tolist() == [3]

    @pytest.mark.parametrize(
        ("is_target_point", "n_targets", "message"),
        [
            (np.ones(3, bool), 0, "n_targets must be from 1 to the 2 models, got 0"),
            (np.ones(3, bool), 3, "n_targets must be from 1 to the 2 models, got 3"),
            (np.ones(4, bool), 2, "is_target_point has shape (4,); allowed: (3,) or (2, 3)"),
            (np.zeros(3, bool), 2, "each target must have the same number of target points, at least 1; got [0]"),
            (
                np.array([[1, 1, 0], [1, 0, 0]], bool),
                2,
                "each target must have the same number of target points, at least 1; got [1, 2]",
            ),
        ],
    )
    @pytest.mark.usefixtures("as_users_run_it")
    def test_the_line_that_a_bad_game_gets(self, is_target_point, n_targets, message):
        with pytest.raises(ValueError) as caught:
            Game("half_split", np.zeros((2, 3), dtype=bool), is_target_point, n_targets)
        assert str(caught.value) == message


class TestSignals:
    game = games.half_split(6, 4)

    def test_blocks_cover_every_target_point_once(self):
        game = games.half_split(11, 2)
        blocks = list(signals_of(game).blocks(4))
        assert [point for block in blocks for point in range(block.start, block.stop)] == list(range(11))
        assert max(block.stop - block.start for block in blocks) == 4

    def test_point_major_memory_is_taken_as_it_is(self):
        loss = np.zeros((6, 4), dtype=np.float32).T
        signals = signals_of(self.game, loss=loss)
        assert signals.array("loss") is loss
        assert signals.array("loss").flags.f_contiguous
        assert np.shares_memory(signals.targets("loss"), loss)

    def test_the_first_signal_that_is_there(self):
        signals = signals_of(self.game, loss=np.ones((4, 6)))
        np.testing.assert_array_equal(signals.array("log_odds", "loss"), np.ones((4, 6)))
        np.testing.assert_array_equal(signals.targets("loss", slice(2, 4)), np.ones((4, 2)))

    def test_a_missing_signal_does_not_apply(self):
        with pytest.raises(NotApplicable) as caught:
            signals_of(self.game).array("log_odds", "loss")
        assert str(caught.value) == "needs the signal log_odds or loss, which this release does not give"

    @pytest.mark.parametrize(
        ("name", "array", "message"),
        [
            (
                "mine",
                np.zeros((6, 4)),
                "signal 'mine' has shape (6, 4); its first two axes must be (M, N) = (4, 6), 4 models and 6 points: "
                "transpose the signal, or member",
            ),
            ("mine", np.full((4, 6, 2), np.nan), "signal 'mine' has NaN or infinite values"),
            (
                "mine",
                np.full((4, 6), "high"),
                "signal 'mine' must be an array of numbers by model and point, got array of <U4",
            ),
            (
                "loss",
                np.zeros((6, 4)),
                "signal 'loss' has shape (6, 4); its axes are (M, N) with (M, N) = (4, 6), 4 models and 6 points: "
                "transpose the signal, or member",
            ),
            (
                "log_prob",
                np.zeros((4, 6)),
                "signal 'log_prob' has shape (4, 6); its axes are (M, N, K) with (M, N) = (4, 6)",
            ),
            (
                "step_dot",
                np.zeros((4, 6)),
                "signal 'step_dot' has shape (4, 6); its axes are (M, N, S) with (M, N) = (4, 6)",
            ),
            (
                "dot",
                np.zeros((4, 6, 1)),
                "signal 'dot' has shape (4, 6, 1); its axes are (M, N) with (M, N) = (4, 6)",
            ),
            ("loss", np.full((4, 6), np.nan), "signal 'loss' has NaN or infinite values"),
            ("loss", np.where(np.arange(6) == 5, np.inf, np.zeros((4, 6))), "signal 'loss' has NaN or infinite values"),
        ],
    )
    def test_the_line_that_bad_signals_get(self, name, array, message):
        with pytest.raises(ValueError) as caught:
            signals_of(self.game, **{name: array})
        assert str(caught.value) == message

    @pytest.mark.usefixtures("as_users_run_it")
    def test_a_signal_that_is_no_array_gets_one_line(self):
        with pytest.raises(ValueError, match=r"^signal 'loss' must be an array of numbers .*, got list$"):
            signals_of(self.game, loss=[[0.0] * 6] * 4)
        with pytest.raises(ValueError, match=r"^signal 'mine' has shape \(4,\); its first two axes must be \(M, N\)"):
            signals_of(self.game, mine=np.zeros(4))

    def test_an_axis_of_two_signals_has_one_length(self):
        steps = np.zeros((4, 6, 3))
        signals_of(self.game, step_dot=steps, step_norm=steps, dot=np.zeros((4, 6)))
        with pytest.raises(ValueError) as caught:
            signals_of(self.game, step_dot=steps, step_norm=np.zeros((4, 6, 2)))
        assert str(caught.value) == "signal 'step_norm' has S = 2, another signal has S = 3"

    def test_one_bad_value_is_seen_wherever_it_is(self):
        game = games.half_split(2000, 3)
        for place in ((0, 0), (1, 1234), (2, 1999)):
            loss = np.zeros((2000, 3), dtype=np.float32).T
            loss[place] = -np.inf
            with pytest.raises(ValueError, match="NaN or infinite"):
                signals_of(game, loss=loss)


class TestPoints:
    @pytest.mark.parametrize("frame", [False, True])
    def test_take(self, frame):
        x = np.arange(10.0).reshape(5, 2)
        y, group = np.array(list("abcde")), np.arange(5)
        points = Points(pd.DataFrame(x, index=list("vwxyz")) if frame else x, y, group, "digest")
        taken = points.take(np.array([3, 0]))
        np.testing.assert_array_equal(np.asarray(taken.x), x[[3, 0]])
        assert taken.y is not None
        assert taken.group is not None
        assert (taken.y.tolist(), taken.group.tolist(), len(taken)) == (["d", "a"], [3, 0], 2)

    def test_some_points_are_not_kept_under_the_digest_of_all(self):
        assert Points(np.zeros((5, 2)), digest="of five").take(np.array([1])).digest == ""

    def test_take_without_labels(self):
        taken = Points(np.zeros((5, 2))).take(np.array([1]))
        assert (taken.y, taken.group, len(taken)) == (None, None, 1)

    @pytest.mark.parametrize(("y", "group", "name"), [(np.zeros(4), None, "y"), (None, np.zeros(4), "group")])
    def test_lengths(self, y, group, name):
        with pytest.raises(ValueError) as caught:
            Points(np.zeros((1500, 2)), y, group)
        assert str(caught.value) == f"x has 1,500 points, {name} has 4"


class TestScores:
    @pytest.mark.usefixtures("as_users_run_it")
    def test_shapes(self):
        with pytest.raises(ValueError) as caught:
            Scores("lira", np.zeros((2, 3)), np.zeros((3, 2), dtype=bool))
        assert str(caught.value) == "scores have shape (2, 3), memberships (3, 2); both must be (T, J)"

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_finite(self, bad):
        with pytest.raises(ValueError) as caught:
            Scores("lira", np.array([[0.0, bad]]), np.zeros((1, 2), dtype=bool))
        assert str(caught.value) == "lira: scores have NaN or infinite values"


class TestFinding:
    def test_a_known_quantity(self):
        with pytest.raises(ValueError, match="unknown quantity 'acuracy'; known: auc, "):
            Finding("acuracy", 0.5)

    @pytest.mark.parametrize(("value", "reason"), [(None, None), (0.5, Term("no_attack"))])
    def test_a_value_or_a_reason(self, value, reason):
        with pytest.raises(ValueError) as caught:
            Finding("auc", value, reason=reason)
        assert str(caught.value) == "auc: a finding has a value or a reason, not both and not neither"

    def test_nothing_can_be_changed_afterwards(self):
        with pytest.raises(AttributeError):
            Finding("auc", 0.5).value = 0.6  # pyright: ignore[reportAttributeAccessIssue]


def of_classes(n_models=3, n_points=8, n_classes=3, seed=0):
    """A game, log-probabilities in class order, labels, and the signals that they mean, by a loop."""
    rng = np.random.default_rng(seed)
    raw = rng.normal(scale=2, size=(n_models, n_points, n_classes))
    log_prob = raw - np.log(np.exp(raw).sum(axis=2, keepdims=True))
    labels = rng.integers(n_classes, size=n_points)
    meant = {name: np.zeros((n_models, n_points)) for name in ("loss", "log_odds", "correct")}
    for m in range(n_models):
        for i in range(n_points):
            p = np.exp(log_prob[m, i, labels[i]])
            meant["loss"][m, i] = -np.log(p)
            meant["log_odds"][m, i] = np.log(p / (1 - p))
            meant["correct"][m, i] = log_prob[m, i].argmax() == labels[i]
    game = Game("signals", rng.random((n_models, n_points)) < 0.5, np.ones(n_points, dtype=bool), n_models)
    return game, log_prob, labels, meant


class TestLogProb:
    def test_the_other_signals_are_computed_from_it(self):
        game, log_prob, labels, meant = of_classes()
        signals = Signals(game, None, {"log_prob": log_prob}, labels)
        for name, expected in meant.items():
            np.testing.assert_allclose(signals.array(name), expected, rtol=1e-9)
        np.testing.assert_array_equal(signals.true_class(), np.tile(labels, (3, 1)))

    def test_the_order_of_the_classes_changes_no_attack(self):
        """With the true class not first, entropy and the shadow classifier once gave other scores."""
        game, log_prob, labels, _ = of_classes(n_models=12, n_points=60)
        first = np.empty_like(log_prob)
        for i, label in enumerate(labels):
            order = [label, *(k for k in range(3) if k != label)]
            first[:, i] = log_prob[:, i, order]
        for name in ("confidence", "entropy", "shadow", "loss", "lira", "gap"):
            one = ATTACKS[name](Signals(game, None, {"log_prob": log_prob}, labels)).value
            other = ATTACKS[name](Signals(game, None, {"log_prob": first}, np.zeros(60, dtype=int))).value
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)

    def test_what_is_given_beside_it_stays_as_it_is(self):
        game, log_prob, labels, meant = of_classes()
        rounded = {name: values.astype(np.float32) for name, values in meant.items()}
        signals = Signals(game, None, {"log_prob": log_prob, **rounded}, labels)
        for name, values in rounded.items():
            np.testing.assert_array_equal(signals.array(name), values)

    def test_a_loss_that_was_clipped_agrees(self):
        game, log_prob, labels, _ = of_classes()
        log_prob[0, 0] = -60.0
        log_prob[0, 0, labels[0] - 1] = 0.0
        _, meant_loss = log_prob, np.minimum(-log_prob[:, np.arange(8), labels], 27.6)
        signals = Signals(game, None, {"log_prob": log_prob, "loss": meant_loss}, labels)
        assert signals.array("loss")[0, 0] == 27.6
        assert signals.array("log_odds")[0, 0] == pytest.approx(-60)

    def test_a_game_is_replaced_without_another_look(self):
        game, log_prob, labels, _ = of_classes()
        signals = Signals(game, None, {"log_prob": log_prob}, labels)
        again = replace(signals, game=game.split())
        assert again.arrays is signals.arrays
        assert again.game.n_targets == 1

    @pytest.mark.parametrize(
        ("change", "line"),
        [
            ({"logits": True}, "signal 'logits' is not taken, .* give log_prob .* apply log_softmax to raw logits"),
            ({"raw": True}, "signal 'log_prob' is not normalised: .* apply log_softmax over the classes to raw logits"),
            ({"scaled": 1.0015}, "signal 'log_prob' is not normalised"),
            ({"zeros": True}, "signal 'log_prob' is not normalised"),
            ({"labels": None}, r"signal 'log_prob' needs labels \(N,\): the class index of each point"),
            ({"labels": np.full(8, 3)}, "labels must be class indices from 0 to 2, .* got 3 to 3"),
            ({"labels": np.full(8, -1)}, "labels must be class indices from 0 to 2, .* got -1 to -1"),
            ({"labels": np.full(8, 0.5)}, "labels must be class indices: whole numbers"),
            ({"labels": np.full(8, np.nan)}, "labels must be class indices: whole numbers"),
            ({"labels": np.array(list("abcabcab"))}, "labels must be class indices: whole numbers"),
            ({"labels": np.zeros(7, dtype=int)}, r"labels has shape \(7,\); allowed: \(8,\)"),
            ({"one class": True}, "signal 'log_prob' needs at least 2 classes, got 1"),
            ({"loss": "others"}, "signal 'loss' disagrees with log_prob and labels: model 0 at point "),
            ({"log_odds": "others"}, "signal 'log_odds' disagrees with log_prob and labels"),
            ({"correct": "others"}, "signal 'correct' disagrees with log_prob and labels"),
        ],
        ids=lambda value: "" if isinstance(value, str) else "-".join(value),
    )
    @pytest.mark.usefixtures("as_users_run_it")
    def test_what_is_refused(self, change, line):
        game, log_prob, labels, meant = of_classes()
        arrays = {"log_prob": log_prob}
        labels = change.get("labels", labels)
        if "logits" in change:
            arrays = {"logits": log_prob}
        if "raw" in change:
            arrays = {"log_prob": 3 * log_prob + 1}
        if "scaled" in change:
            arrays = {"log_prob": log_prob + np.log(change["scaled"])}
        if "zeros" in change:
            arrays = {"log_prob": np.zeros_like(log_prob)}
        if "one class" in change:
            arrays, labels = {"log_prob": np.zeros((3, 8, 1))}, np.zeros(8, dtype=int)
        for name in meant:
            if name in change:  # those of the next class
                arrays[name] = of_next_class(log_prob, labels)[name]
        with pytest.raises(ValueError, match=f"^{line}"):
            Signals(game, None, arrays, labels)

    def test_labels_without_it_are_refused(self):
        game, _, labels, meant = of_classes()
        with pytest.raises(
            ValueError, match=r"labels are the class indices of the signal 'log_prob', and there is none"
        ):
            Signals(game, None, {"loss": meant["loss"]}, labels)


def of_next_class(log_prob, labels):
    """Loss, log-odds and correctness of a wrong label."""
    wrong = (labels + 1) % log_prob.shape[2]
    log_p = log_prob[:, np.arange(len(labels)), wrong]
    return {
        "loss": -log_p,
        "log_odds": log_p - np.log1p(-np.exp(log_p)),
        "correct": (log_prob.argmax(axis=2) == wrong).astype(float),
    }


class TestSignalsAgree:
    """Signals that were computed elsewhere and cannot be of the same model."""

    def test_what_agrees_is_taken(self):
        game, _, _, meant = of_classes(n_classes=2)
        Signals(game, None, meant)
        Signals(game, None, {"loss": meant["loss"] - 1e-7 * (meant["loss"] < 0.1)})

    def test_a_loss_is_never_below_zero_afterwards(self):
        game, *_ = of_classes()
        loss = np.full((3, 8), -1e-7, dtype=np.float32)
        assert (Signals(game, None, {"loss": loss}).array("loss") == 0).all()

    @pytest.mark.parametrize(
        ("name", "change", "line"),
        [
            ("loss", lambda x: -x, "signal 'loss' is -log p.true label., which is at least 0; got -"),
            ("loss", lambda x: 2 * x, "signals 'loss' and 'log_odds' disagree: model 0, point "),
            ("log_odds", lambda x: -x, "signals 'loss' and 'log_odds' disagree: model 0, point "),
            ("correct", lambda x: 1 - x, "signals 'correct' and 'log_odds' disagree: model 0, point "),
            ("correct", lambda x: x / 2, "signal 'correct' must hold 0 and 1"),
        ],
    )
    def test_what_is_refused(self, name, change, line):
        game, _, _, meant = of_classes(n_classes=2)
        with pytest.raises(ValueError, match=f"^{line}"):
            Signals(game, None, {**meant, name: change(meant[name])})

    @pytest.mark.parametrize("floor", [1e-12, 0.005, 0.5])
    def test_probabilities_of_zero_and_one_that_were_clipped_agree(self, floor):
        """A tree gives 0 and 1: the loss clips p, the log-odds clip p and 1 - p."""
        game, *_ = of_classes()
        p = np.tile([0.0, 1.0, 1.0, 0.0], (3, 2))
        loss = -np.log(np.clip(p, floor, 1))
        log_odds = np.log(np.maximum(p, floor)) - np.log(np.maximum(1 - p, floor))
        Signals(game, None, {"loss": loss, "log_odds": log_odds, "correct": p})
