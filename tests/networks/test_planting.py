"""Canaries of DP-SGD: whose steps are watched, what is known of the others, and the words that make a network."""

from __future__ import annotations

import math

import numpy as np
import pytest
from torch import nn

import leakbound as ls
from leakbound.attacks import ATTACKS
from leakbound.auditing.canaries import attacks_on, is_private, planned, plant, private_network
from leakbound.data import Data, from_arrays
from leakbound.dpsgd.canaries import mahalanobis
from leakbound.dpsgd.config import DpSgd
from leakbound.plans import AuditPlan, ModelPlan
from leakbound.releases.networks.network import Network

HERE = __name__
SHORT = DpSgd(noise_multiplier=2.0, sample_rate=0.1, steps=4)


def network(width: int = 8) -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, 3))


def own(module, x, y, follow, seed) -> None:
    """A training that does nothing."""


@pytest.fixture(scope="module")
def noise() -> Data:
    rng = np.random.default_rng(0)
    return Data(from_arrays(rng.normal(size=(120, 6)).astype(np.float32), rng.integers(3, size=120)), "noise")


def planted_by(plan: AuditPlan, release, loaded):
    return plant(plan.game, plan.models, release, loaded, plan.seed)


def planting(kind="dirac", seed=0, **words) -> AuditPlan:
    return AuditPlan(game=ls.Canaries(kind, n=12, **words), seed=seed)


def seen(setting) -> dict[str, np.ndarray]:
    """The steps of all models of a game, at every point."""
    shape = (*setting.game.member.shape, SHORT.steps)
    return {"step_dot": np.zeros(shape, dtype=np.float32)}


class TestPlant:
    def test_dirac_canaries_stand_behind_the_records(self, noise):
        made = planted_by(planting(seed=5), private_network(network, SHORT), noise)
        assert made.release.watched == tuple(made.game.target_points.tolist()) == tuple(range(120, 132))
        assert len(set(made.release.coordinates)) == 12
        assert max(made.release.coordinates) < made.release.n_parameters() == 7 * 8 + 9 * 3
        assert made.release.knowledge == "others"
        assert made.game.member[:, :120].all()

    @pytest.mark.parametrize("kind", ["mislabelled", "random"])
    def test_records_are_watched_among_others_whose_law_is_known(self, noise, kind):
        made = planted_by(planting(kind), private_network(network, SHORT), noise)
        assert made.release.watched == tuple(made.game.target_points.tolist())
        assert (made.release.coordinates, made.release.knowledge) == ((), "distribution")

    def test_mahalanobis_canaries_are_those_of_the_training(self, noise):
        release = private_network(network, SHORT)
        made = planted_by(planting("mahalanobis", seed=2), release, noise)
        expected = mahalanobis(noise.points, 12, 2, release=release).numbers
        assert made.release.watched == tuple(expected.tolist())
        assert made.planted == "mahalanobis"

    @pytest.mark.parametrize(("kind", "knowledge"), [("dirac", "distribution"), ("random", "others")])
    def test_what_is_known_may_be_asked_for(self, noise, kind, knowledge):
        made = planted_by(planting(kind, knowledge=knowledge), private_network(network, SHORT), noise)
        assert made.release.knowledge == knowledge
        assert made.observed(seen(made), []).facts["knowledge"] == knowledge

    def test_nothing_is_said_to_be_known_where_no_step_is_seen(self, noise):
        made = planted_by(planting("random"), private_network(network, SHORT), noise)
        assert "knowledge" not in made.observed({"loss": np.zeros(made.game.member.shape, dtype=np.float32)}, []).facts

    def test_a_training_of_ones_own_has_unknown_batches(self, noise):
        release = private_network(network, {**SHORT.describe(), "train": own})
        assert planted_by(planting(), release, noise).release.knowledge == "distribution"
        assert planted_by(planting("random"), release, noise).release.train is own
        with pytest.raises(ValueError, match=r"nobody knows the batches of a user-supplied training loop"):
            planted_by(planting("random", knowledge="others"), release, noise)

    def test_a_network_without_dpsgd_shows_no_steps(self, noise):
        release = planned(ModelPlan(spec=f"{HERE}:network"))
        assert isinstance(release, Network)
        assert not is_private(release)
        with pytest.raises(ValueError, match="dirac canaries need the steps of DP-SGD, and network shows none"):
            planted_by(planting(), release, noise)


class TestWords:
    def test_a_table_of_a_plan(self):
        words = {**SHORT.describe(), "references": 9, "train": f"{HERE}:own"}
        made = planned(ModelPlan(spec=f"{HERE}:network", set={"width": 4}, dpsgd=words, name="mine"))
        assert is_private(made)
        assert (made.name, made.dpsgd, made.references, made.train) == ("mine", SHORT, 9, own)
        assert made.n_parameters() == 7 * 4 + 5 * 3

    def test_a_frozen_value_is_as_good_as_its_words(self):
        one, other = private_network(network, SHORT), private_network(f"{HERE}:network", SHORT.describe())
        assert one.describe() == other.describe()

    @pytest.mark.parametrize(
        ("words", "line"),
        [
            ({"aggregate": 3}, "aggregate must be a function or the import path of one, got a int"),
            ({"train": f"{HERE}:SHORT"}, "train must be a function or the import path of one, got a DpSgd"),
            ({"epochs": 3}, "unknown word of DP-SGD 'epochs'"),
            (
                {"sample_rate": 2},
                r"sample_rate is a fraction: 2 is out of range; did you mean 0\.02\? It must be >= 0 and <= 1",
            ),
            ({"noise_multiplier": math.nan}, "noise_multiplier must be finite, got nan"),
        ],
    )
    def test_bad_words_are_refused_in_one_line(self, words, line):
        with pytest.raises(ValueError, match=line) as caught:
            private_network(network, words)
        assert "\n" not in str(caught.value)


class TestAttacks:
    def test_the_ratio_comes_first_and_once_a_rate(self):
        releases = [private_network(network, DpSgd(sample_rate=rate), str(rate)) for rate in (0.2, 0.1, 0.2)]
        found = [each.name for each in attacks_on(releases, "default", one_run=True)]
        assert found[:2] == ["likelihood_ratio(rate=0.1)", "likelihood_ratio(rate=0.2)"]
        assert not any(ATTACKS[name].needs_references for name in found[2:])

    def test_a_rate_that_is_told_stays(self):
        told = ATTACKS["likelihood_ratio"].with_parameters(rate=0.5)
        found = attacks_on([private_network(network, SHORT)], [told, "loss"])
        assert [each.name for each in found] == ["likelihood_ratio(rate=0.5)", "loss"]
