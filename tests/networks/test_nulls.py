"""Audits of networks in which nobody is who the game says: nothing may be found, and is where the truth is told.

Networks are trained by one game and audited with another one that was drawn independently: every attack is at chance,
whatever the data, the network and the steps that were seen. At a level of 5 %, 33 or more findings in 400 audits have
probability 0.4 %.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import pytest
from sklearn.datasets import make_classification
from torch import nn

from leakbound.attacks import ATTACKS, find
from leakbound.auditing.evaluate import judge
from leakbound.auditing.observed import ObservedRelease
from leakbound.core import games
from leakbound.core.tradeoff import TradeOff
from leakbound.core.types import Points, Signals
from leakbound.data import from_arrays
from leakbound.dpsgd.accountant import dpsgd as accounted
from leakbound.dpsgd.canaries import dirac, mislabelled
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.network import PrivateNetwork
from leakbound.metrics import auc
from leakbound.metrics.epsilon import bound, evidence, family_lower
from leakbound.releases.networks.network import Network
from leakbound.releases.networks.recipe import Recipe
from leakbound.runtime.observe import Execution, observe

AUDITS, MOST = 400, 32
TRIED = ("loss", "gradient_norm", "mast", "lira", "rmia", "quantile")
HERE = Execution(n_jobs=1)
PRIVATE = DpSgd(noise_multiplier=0.8, sample_rate=0.2, steps=30)
RATIO = ATTACKS["likelihood_ratio"].with_parameters(rate=0.2)
TRIED_IN_ONE_RUN = {"ratio": RATIO, "glir": ATTACKS["glir"], "loss": ATTACKS["loss"]}


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))


def noisy(run: int, n: int = 60) -> Points:
    """Points of two classes, three labels of ten drawn anew."""
    return from_arrays(*make_classification(n, 5, flip_y=0.3, random_state=run))


def played(run: int, n_models: int, *want: str) -> tuple[Signals, Signals]:
    """Networks as they are told, and as they are."""
    points, release = noisy(run), Network(network, Recipe(epochs=20, batch=10, lr=0.02))
    told, true = (games.half_split(60, n_models, seed=2 * run + each) for each in (0, 1))
    arrays = observe(release, points, true.member, want, run, HERE)
    return Signals(told, points, arrays), Signals(true, points, arrays)


def misses(signals: Signals, attack: str) -> bool:
    found = auc(ATTACKS[attack](signals))
    return not found.low <= 0.5 <= found.high


@pytest.mark.nightly
@pytest.mark.statistics
@pytest.mark.parametrize("n_models", [8, 16])  # no record can be shown as exposed with fewer than 13
def test_nothing_is_found_in_networks_where_there_is_nothing(n_models) -> None:
    found, by_truth = Counter(), 0
    for run in range(AUDITS):
        told, true = played(run, n_models, "gradient_norm", "log_odds", "loss")
        made = judge(ObservedRelease("null", told), find(TRIED), (0.1,), 0.95)
        areas = [each for each in made.findings if each.quantity == "auc"]
        assert [each.attack for each in areas if each.value is not None] == list(TRIED)
        found.update(each.attack for each in areas if not each.low <= 0.5 <= each.high)
        found["epsilon"] += next(each.value for each in made.findings if each.quantity == "epsilon") > 0
        found["exposed"] += made.facts.games.exposed > 0
        by_truth += misses(true, "loss")
    assert max(found.values()) <= MOST, found
    assert by_truth > AUDITS / 2


@pytest.mark.nightly
@pytest.mark.statistics
def test_nothing_is_found_around_the_last_layer() -> None:
    """MATT, for which the layer is fitted again."""
    pairs = [played(run, 8, "taylor") for run in range(AUDITS)]
    found, by_truth = (sum(misses(each, "matt") for each in signals) for signals in zip(*pairs, strict=True))
    assert found <= MOST
    assert by_truth > 2 * MOST


@lru_cache(maxsize=100)
def accountant(precision: float) -> TradeOff:
    """Of the same training with a noise multiplier of 1/precision."""
    return accounted(1 / precision, PRIVATE.sample_rate, PRIVATE.steps, "add_remove")


def shown(signals: Signals, attack: str) -> tuple[bool, bool]:
    """Whether one run shows an epsilon > 0 at delta = 1e-5, and a precision > 0 by the whole curve."""
    gathered = evidence(TRIED_IN_ONE_RUN[attack](signals), "coins")
    return bound(gathered, 1e-5).value > 0, family_lower(gathered, accountant, tolerance=0.01).value > 0


@pytest.mark.nightly
@pytest.mark.statistics
@pytest.mark.parametrize(
    ("choose", "knowledge", "attacks"),
    [(dirac, "others", ["ratio", "glir"]), (mislabelled, "distribution", ["ratio", "glir", "loss"])],
)
def test_nothing_is_found_in_one_run_where_there_is_nothing(choose, knowledge, attacks) -> None:
    found, by_truth = Counter(), Counter()
    for run in range(AUDITS):
        release = PrivateNetwork(network, PRIVATE, knowledge=knowledge)
        chosen = choose(noisy(run, 100), 60, run, **({"release": release} if choose is dirac else {}))
        points = chosen.points
        told, true = (games.canaries(len(points), chosen.numbers, 1, seed=2 * run + each) for each in (0, 1))
        want = ["loss", "step_dot", "step_norm"]
        arrays = observe(chosen.watched_by(release), points, true.member, want, run, HERE)
        for counted, game in ((found, told), (by_truth, true)):
            for attack in attacks:
                epsilon, curve = shown(Signals(game, points, arrays), attack)
                counted.update({f"{attack}, epsilon": epsilon, f"{attack}, curve": curve})
    assert max(found.values()) <= MOST, found
    assert min(by_truth[f"ratio, {way}"] for way in ("epsilon", "curve")) > 2 * MOST, by_truth
