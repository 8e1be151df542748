"""What DP-SGD promises in the game that is played, and an attribute guessed from networks that it has trained."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from torch import nn

import leakbound as ls
from leakbound.attacks import find
from leakbound.auditing.canaries import attacks_on, private_network
from leakbound.auditing.private_training import promise
from leakbound.auditing.run import play, setting
from leakbound.core.findings import Term
from leakbound.core.tradeoff.claims import Claim
from leakbound.data import Data, from_arrays
from leakbound.dpsgd.accountant import dpsgd
from leakbound.dpsgd.clipping import noisy_sum
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.promise import AccountantClaim
from leakbound.plans import AuditPlan, ClaimPlan
from leakbound.plans.games import HalfSplit
from leakbound.runtime.observe import Execution
from tests.networks.training_privately import Training

SHORT = DpSgd(noise_multiplier=2.0, sample_rate=0.1, steps=4)
FIXED = DpSgd(noise_multiplier=2.0, sample_rate=0.12, steps=4, batches="fixed")


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 3))


def wider() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 3))


@pytest.fixture(scope="module")
def noise() -> Data:
    rng = np.random.default_rng(0)
    return Data(from_arrays(rng.normal(size=(41, 6)).astype(np.float32), rng.integers(3, size=41)), "noise")


@pytest.fixture
def no_search(monkeypatch) -> None:
    """Without the search for the noise that is ruled out, which takes a dozen curves."""
    monkeypatch.setattr(AccountantClaim, "ruled_out", lambda *_: 0.0)


def promised(told: DpSgd, data: Data, **words):
    plan = AuditPlan(**words)
    made = promise(setting(plan.game, plan.models, find("loss"), private_network(network, told), data))
    assert made is not None
    return made


class TestPromise:
    @pytest.mark.parametrize(
        ("words", "adjacency"),
        [
            ({"n_models": 4}, "replace_one"),
            ({"n_models": 4, "game": ls.HalfSplit(sampling="poisson")}, "add_remove"),
            ({"game": ls.Canaries("random", n=5)}, "add_remove"),
            ({"game": ls.PerDatum(3), "n_models": 4}, "replace_one"),
        ],
    )
    def test_neighbours_are_those_of_the_game(self, noise, words, adjacency):
        made = promised(SHORT, noise, **words)
        assert (made.dpsgd, made.adjacency, made.delta) == (SHORT, adjacency, 1e-5)
        assert made.ceiling.epsilon(1e-5) == dpsgd(2.0, 0.1, 4, adjacency).epsilon(1e-5)

    def test_epsilon_is_told_at_the_largest_delta_of_the_claims(self, noise):
        where = setting(HalfSplit(), 4, find("loss"), private_network(network, SHORT), noise)
        claims = [Claim("epsilon", 1.0, delta, "add_remove") for delta in (1e-3, 1e-2, 0.0)]
        made = promise(where, claims)
        assert made is not None
        assert made.delta == 1e-2

    def test_without_noise_there_is_none(self, noise):
        with pytest.raises(ValueError, match="network: noise_multiplier must be > 0; without noise DP-SGD promises"):
            promised(DpSgd(noise_multiplier=0.0), noise, n_models=4)

    def test_fixed_batches_are_their_share_of_the_half_that_is_in(self, noise):
        """41 records: 20 are in, and 2 of them (.12 of 20.5) in a batch."""
        made = promised(FIXED, noise, n_models=4)
        assert (made.adjacency, made.dpsgd.sample_rate) == ("replace_one", 2 / 20)

    def test_with_canaries_the_fewest_records_that_there_may_be_count(self, noise):
        """By every outcome of 5 coins: a batch of 5 (.12 of 38.5) is the largest share where one canary alone is in."""
        made = promised(FIXED, noise, game=ls.Canaries("random", n=5))
        shares = [5 / (36 + sum(coins)) for coins in product([0, 1], repeat=5) if sum(coins)]
        assert (made.adjacency, made.dpsgd.sample_rate) == ("add_remove", max(shares))

    def test_where_nobody_is_surely_in_a_batch_may_be_everybody(self, noise):
        assert promised(FIXED, noise, n_models=4, game=ls.HalfSplit(sampling="poisson")).dpsgd.sample_rate == 1.0


def test_the_claims_of_a_plan_stand_beside_the_accountant(noise, no_search):
    claim = ClaimPlan(epsilon=9.0, delta=1e-3, adjacency="add_remove")
    plan = AuditPlan(game=ls.Canaries("random", n=20), claim=(claim,))
    report = play(plan, find(["loss"]), [private_network(network, SHORT)], noise, Execution(n_jobs=1))
    assert [(curve.role, curve.verdict.word) for curve in report.curves if curve.verdict is not None] == [
        ("claimed", "not_refuted"),
        ("certified", "not_refuted"),
    ]
    (certified,) = [each for each in report.findings if each.status == "certified" and each.quantity == "epsilon"]
    assert (certified.operating_point, certified.value) == (
        {"delta": 1e-3},
        dpsgd(2.0, 0.1, 4, "add_remove").epsilon(1e-3),
    )


@pytest.mark.parametrize(
    ("canaries", "own", "limited"),
    [("dirac", True, True), ("mislabelled", True, False), ("dirac", False, False)],
)
def test_only_dirac_canaries_of_a_user_supplied_training_are_blind_to_its_layers(
    noise, no_search, canaries, own, limited
):
    words = {**SHORT.describe(), **({"train": Training(SHORT, 41)} if own else {})}
    plan = AuditPlan(game=ls.Canaries(canaries, n=10))
    attacks = attacks_on([private_network(network, SHORT)], ["likelihood_ratio"])
    report = play(plan, attacks, [private_network(network, words)], noise, Execution(n_jobs=1))
    said = "not whether those of the network's own layers are"
    assert any(said in note for note in report.about.notes) == limited
    assert any(Term("own_layers_unseen") in finding.assumptions for finding in report.findings) == limited


def certified(report: ls.Report) -> tuple:
    """The accountant's curve and its epsilon, or the reason why there is none."""
    (finding,) = [each for each in report.findings if each.quantity == "epsilon" and each.bound_type == "upper"]
    return [curve for curve in report.curves if curve.role == "certified"], finding


def test_batches_of_fixed_size_are_compared_with_their_own_curve(noise, no_search):
    """4 of the 36 records that are expected; were all canaries out but one, of 32."""
    told = DpSgd(noise_multiplier=2.0, sample_rate=0.1, steps=4, batches="fixed")
    plan = AuditPlan(game=ls.Canaries("mislabelled", n=10))
    report = play(plan, find(["loss"]), [private_network(network, told)], noise, Execution(n_jobs=1))
    (curve,), epsilon = certified(report)
    assert curve.verdict is not None
    assert curve.verdict.word == "not_refuted"
    expected = dpsgd(2.0, 4 / 32, 4, "add_remove", batches="fixed").epsilon(1e-5)
    assert epsilon.value == curve.tradeoff.epsilon(1e-5) == expected > told.ceiling().epsilon(1e-5)
    assert Term("fixed_batches") in epsilon.assumptions


@pytest.mark.parametrize(("rows", "n_curves"), [(1, 1), (2, 0)])
def test_units_of_several_records_are_promised_nothing(noise, rows, n_curves, no_search):
    report = ls.audit(
        network,
        noise.points.x,
        noise.points.y,
        n_models=4,
        train={"dpsgd": SHORT},
        attacks=["loss"],
        groups=np.arange(41) // rows,
        n_jobs=1,
    )
    curves, epsilon = certified(report)
    assert len(curves) == n_curves
    assert epsilon.reason == (None if n_curves else Term("units_of_several_records"))


def test_an_attribute_is_guessed_from_dp_sgd_as_it_trains_on_the_records_alone(noise):
    """Two one-hot columns make three rows of each record, of which one is ever in: B is q n of the records."""
    divided: set[float] = set()

    def noted(parts, told, drawn, normaliser):
        divided.add(normaliser)
        return noisy_sum(parts, told, drawn, normaliser)

    secret = np.random.default_rng(1).integers(2, size=41)
    words = {**SHORT.describe(), "aggregate": noted}
    report = ls.audit(
        wider,
        noise.points.x,
        noise.points.y,
        train={"dpsgd": words},
        game=ls.Attribute(secret),
        attacks=["loss"],
        n_models=2,
        n_jobs=1,
    )
    assert divided == {0.1 * 20.5}
    assert any(each.quantity == "attribute_gain" and each.value is not None for each in report.findings)
