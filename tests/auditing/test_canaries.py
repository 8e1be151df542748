"""Canaries in models that show no steps; those of DP-SGD are in tests/networks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound import data
from leakbound.attacks import ATTACKS, DEFAULT
from leakbound.auditing.canaries import Setting, attacks_on, is_private, planned, plant, private_network
from leakbound.data import Data, from_arrays
from leakbound.plans import AuditPlan, ModelPlan
from leakbound.releases.estimator import Estimator, from_spec
from leakbound.releases.factory import release_of
from leakbound.reports.about import DataFacts

TREE = release_of(DecisionTreeClassifier(), "tree")


def planted_by(plan: AuditPlan, release, loaded):
    return plant(plan.game, plan.models, release, loaded, plan.seed)


def planting(kind="mislabelled", seed=0, n_models=None, n=40, **words) -> AuditPlan:
    return AuditPlan(game=ls.Canaries(kind, n=n, **words), seed=seed, n_models=n_models)


@pytest.fixture(scope="module")
def wine() -> Data:
    return data.load("wine")


class TestPlant:
    def test_mislabelled_canaries_have_another_label_and_all_else_is_as_it_was(self, wine):
        made = planted_by(planting(seed=3), TREE, wine)
        canary = made.game.target_points
        assert len(canary) == 40
        assert (made.data.points.y[canary] != wine.points.y[canary]).all()
        others = np.setdiff1d(np.arange(178), canary)
        np.testing.assert_array_equal(made.data.points.y[others], wine.points.y[others])
        np.testing.assert_array_equal(made.data.points.x, wine.points.x)
        assert made.data.points.digest != wine.points.digest
        assert (made.release, made.data.name, made.planted) == (TREE, "wine", "mislabelled")

    def test_random_canaries_are_records_as_they_are(self, wine):
        made = planted_by(planting("random"), TREE, wine)
        assert made.data.points.digest == wine.points.digest
        assert made.game.n_target_points == 40

    def test_the_others_are_in_every_model_and_the_canaries_by_coins_of_their_own(self, wine):
        """400 models: a share outside of .5 +- .11 is 4.4 standard deviations away, 5e-4 over 40 canaries."""
        game = planted_by(planting(n_models=300, references=100), TREE, wine).game
        canary = game.target_points
        assert game.member[:, ~game.is_target_point].all()
        assert (game.n_targets, game.n_models, game.sampling) == (300, 400, "poisson")
        shares = game.member[:, canary].mean(axis=0)
        assert (abs(shares - 0.5) < 0.11).all()
        assert len(np.unique(game.member, axis=0)) == 400

    def test_the_seed_chooses(self, wine):
        one, same, other = (planted_by(planting(seed=seed), TREE, wine) for seed in (1, 1, 2))
        np.testing.assert_array_equal(one.game.member, same.game.member)
        assert one.data.points.digest == same.data.points.digest
        assert set(one.game.target_points) != set(other.game.target_points)

    @pytest.mark.parametrize(
        ("words", "line"),
        [
            ({"kind": "dirac"}, "dirac canaries need the steps of DP-SGD, and tree shows none: give dpsgd, or"),
            ({"kind": "mahalanobis"}, "mahalanobis canaries need the steps of DP-SGD, and tree shows none"),
            ({"knowledge": "distribution"}, "knowledge is of the steps of DP-SGD, and tree shows none"),
            ({"n": 178}, "canaries must be fewer than the 178 points, got 178"),
        ],
    )
    def test_what_does_not_fit_is_refused_in_one_line(self, wine, words, line):
        with pytest.raises(ValueError, match=line) as caught:
            planted_by(planting(**words), TREE, wine)
        assert "\n" not in str(caught.value)

    def test_groups_are_refused(self):
        points = from_arrays(np.arange(8.0)[:, None], np.arange(8) % 2, np.arange(8) // 2)
        with pytest.raises(ValueError, match="canaries is played by single records; use half_split with a group"):
            planted_by(planting(n=2), TREE, Data(points, "pairs"))

    def test_one_class_has_no_other_label(self):
        points = from_arrays(np.arange(8.0)[:, None], np.zeros(8, dtype=int))
        with pytest.raises(ValueError, match="mislabelled canaries need at least 2 classes, got only 0"):
            planted_by(planting(n=2), TREE, Data(points, "one class"))


class TestSetting:
    def test_of_dirac_canaries_the_steps_alone_are_looked_at(self, wine):
        attacks = [ATTACKS["loss"], ATTACKS["likelihood_ratio"]]
        game = planted_by(planting(), TREE, wine).game
        assert Setting(TREE, wine, game, "dirac").wanted(attacks) == ["step_dot", "step_norm"]
        everything = Setting(TREE, wine, game, "random").wanted(attacks)
        assert everything == ["correct", "log_odds", "loss", "step_dot", "step_norm"]

    def test_the_page_counts_the_canaries(self, wine):
        made = planted_by(planting(), TREE, wine)
        observed = made.observed({"loss": np.zeros((1, 178), dtype=np.float32)}, [])
        assert observed.facts["description"] == f"{TREE.description}; 40 mislabelled canaries"
        assert (observed.name, observed.data) == ("tree", made.data)
        assert observed.signals.points is made.data.points

    def test_dirac_canaries_are_no_records(self, wine):
        """Three points that stand for canaries: the page must not count them, nor show them."""
        game = planted_by(planting(n=3), TREE, wine).game
        observed = Setting(TREE, wine, game, "dirac").observed(
            {"step_dot": np.zeros((1, 178, 2), dtype=np.float32)}, []
        )
        assert (observed.data, observed.signals.points) == (None, None)
        assert observed.facts["data"] == DataFacts(name="wine", digest=wine.points.digest[:16], records=175)

    def test_without_canaries_nothing_is_said_of_them(self, wine):
        game = planted_by(planting(), TREE, wine).game
        assert Setting(TREE, wine, game).observed({}, []).facts["description"] == TREE.description


class TestAttacks:
    def test_all_by_default_and_in_one_run_those_without_references(self):
        assert [each.name for each in attacks_on([TREE], "default")] == list(DEFAULT)
        alone = [each.name for each in attacks_on([TREE], ("default",), one_run=True)]
        assert alone == [name for name in DEFAULT if not ATTACKS[name].needs_references]

    def test_what_is_asked_for_is_taken_as_it_is(self):
        assert [each.name for each in attacks_on([TREE], ["lira"], one_run=True)] == ["lira"]
        with pytest.raises(ValueError, match="unknown attack 'liar'"):
            attacks_on([TREE], ["liar"])


class TestReleases:
    def test_a_table_of_a_plan_is_an_estimator_with_its_parameters(self):
        made = planned(ModelPlan(spec="sklearn.tree:DecisionTreeClassifier", name="stump", set={"max_depth": 1}))
        assert isinstance(made, Estimator)
        expected = Estimator(from_spec("sklearn.tree:DecisionTreeClassifier", {"max_depth": 1}), "stump")
        assert made.describe() == expected.describe()
        assert (made.name, is_private(made)) == ("stump", False)

    @pytest.mark.parametrize(
        ("make", "words", "line"),
        [
            (DecisionTreeClassifier, {}, "dpsgd trains networks; give a class of networks or a function that makes on"),
            (DecisionTreeClassifier(), {}, "dpsgd trains networks; .*, not DecisionTreeClassifier$"),
            ("sklearn.tree:DecisionTreeClassifier", {"clip": 1}, "dpsgd trains networks"),
            (DecisionTreeClassifier, {"clpi": 1}, r"unknown word of DP-SGD 'clpi' \(did you mean 'clip'\?\)"),
        ],
    )
    def test_what_makes_no_network_is_refused_without_pytorch(self, make, words, line, as_users_run_it):
        with pytest.raises(ValueError, match=line) as caught:
            private_network(make, words)
        assert "\n" not in str(caught.value)

    def test_a_table_with_dpsgd_is_read_as_one(self, as_users_run_it):
        with pytest.raises(ValueError, match="dpsgd trains networks"):
            planned(ModelPlan(spec="sklearn.tree:DecisionTreeClassifier", dpsgd={"clip": 1.0}))


def test_canaries_of_a_table_keep_its_columns():
    frame = pd.DataFrame({"age": np.arange(30), "sex": ["f", "m"] * 15})
    table = Data(from_arrays(frame, np.array(["low", "high", "high"] * 10)), "people")
    made = planted_by(planting(n=5), TREE, table).data.points
    assert made.x.equals(frame)
    assert set(made.y) == {"low", "high"}
