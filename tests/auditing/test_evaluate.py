"""Attacks, metrics and claims where they meet."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from leakbound.attacks import find
from leakbound.auditing.evaluate import judge, strongest
from leakbound.auditing.observed import ObservedRelease
from leakbound.core import games
from leakbound.core.findings import Finding, Term
from leakbound.core.tradeoff.claims import Claim
from leakbound.core.types import Signals
from leakbound.data import from_arrays
from tests.levels import allowed, sizes


def _signals(n_points: int = 200, n_models: int = 16, leak: float = 1.0, seed: int = 0, group=None) -> Signals:
    game = games.half_split(n_points, n_models, seed=seed, group=group)
    rng = np.random.default_rng(seed)
    log_odds = rng.normal(2 + leak * game.member)
    loss = np.logaddexp(0, -log_odds)
    points = from_arrays(rng.normal(size=(n_points, 3)), np.arange(n_points) % 2, group)
    return Signals(game, points, {"log_odds": log_odds, "loss": loss, "correct": (log_odds > 0) * 1.0})


def test_every_attack_is_in_the_findings_once_for_each_quantity() -> None:
    attacks = find(["gap", "confidence", "loss", "lira"])
    made = judge(ObservedRelease("model", _signals()), attacks, (0.01,), 0.95)
    of_all = [each for each in made.findings if not each.scope.is_part]
    keys = [(each.attack, each.quantity, *each.operating_point.items()) for each in of_all]
    assert len(set(keys)) == len(keys)
    accuracy = {each.attack for each in made.findings if each.quantity == "accuracy"}
    assert accuracy == {"", *(each.name for each in attacks)}  # the gap is no attack
    reasons = [each.reason for each in made.findings if each.attack == "confidence"]
    assert reasons == [Term("missing_signal", names="log_prob")]
    assert {curve.name for curve in made.curves} == {"gap", "loss", "lira"}


def test_sides_and_intervals_are_in_order() -> None:
    made = judge(ObservedRelease("model", _signals()), find("default"), (0.1, 0.01), 0.9)
    for each in made.findings:
        if each.value is not None and each.low is not None and each.high is not None:
            assert each.low <= each.value <= each.high
            assert each.confidence == 0.9
            assert each.method
            assert each.source
    sides = {each.quantity: each.bound_type for each in made.findings}
    assert sides["accuracy"] == sides["tpr"] == sides["epsilon"] == sides["most_exposed"] == "lower"
    assert sides["auc"] == "point"


def test_rates_have_two_targets() -> None:
    made = judge(ObservedRelease("model", _signals(n_models=16)), find(["loss"]), (0.1,), 0.95)
    found = {each.quantity: each for each in made.findings if "fpr" in each.operating_point}
    assert found["tpr"].interval_over == "models"
    assert found["tpr_these_models"].interval_over == "points"
    assert found["tpr"].value == found["tpr_these_models"].value


def test_a_rate_over_too_few_models_stands_without_an_interval() -> None:
    """Models whose scores lie wholly apart: one threshold says nothing of models that were not trained."""
    signals = _signals(n_models=16)
    shift = 10.0 * np.arange(16)[:, None]
    arrays = {name: array + shift for name, array in signals.arrays.items() if name == "loss"}
    made = judge(ObservedRelease("model", replace(signals, arrays=arrays)), find(["loss"]), (0.01,), 0.95)
    found = {each.quantity: each for each in made.findings if "fpr" in each.operating_point}
    for quantity in ("tpr", "ppv"):
        assert (found[quantity].low, found[quantity].high, found[quantity].confidence) == (None, None, None)
        assert (found[quantity].bound_type, found[quantity].refused) == ("point", "too_few_models")
        assert found[quantity].value is not None
        assert found[quantity].detail["between_model_spread"] > 1
    assert found["tpr_these_models"].low is not None
    (curve,) = (each for each in made.curves if each.role == "measured")
    assert not np.any(np.array(curve.band_fpr) < 0.25)  # 4 models for each 1/fpr: no band below


def test_strongest_is_the_largest_lower_end() -> None:
    found = [
        Finding("accuracy", 0.9, 0.5, 0.99, attack="wide"),
        Finding("accuracy", 0.8, 0.7, 0.85, attack="sharp"),
        Finding("accuracy", None, attack="none", reason=Term("why")),
        Finding("auc", 0.99, 0.98, 1.0, attack="other"),
    ]
    assert strongest(found) == "sharp"
    assert strongest(found[2:]) == ""


def test_the_gap_proves_what_the_gap_attack_does() -> None:
    """For the 0-1 loss the theorem's attacker is the gap attack; the gap says so without attacking."""
    signals = _signals(leak=2.0)
    made = judge(ObservedRelease("model", signals), find(["gap"]), (0.1,), 0.95)
    gap, attack = (
        next(each for each in made.findings if each.quantity == "accuracy" and each.attack == name)
        for name in ("", "gap")
    )
    member, wrong = signals.game.member, 1 - signals.arrays["correct"]
    rates = np.array([[row[~inside].mean(), row[inside].mean()] for row, inside in zip(wrong, member, strict=True)])
    assert gap.value == pytest.approx(0.5 + (rates[:, 0] - rates[:, 1]).mean() / 2)
    assert gap.value == pytest.approx(attack.value)
    assert gap.low is not None
    assert 0.5 < gap.low < gap.value
    assert (gap.bound_type, gap.status, gap.attack) == ("lower", "measured", "")
    assert made.facts.best == "gap"


def test_no_gap_without_members_and_others_or_without_predictions() -> None:
    game = games.per_datum(50, 3, 16, references=8)
    correct = np.ones(game.member.shape)
    made = judge(ObservedRelease("model", Signals(game, None, {"correct": correct})), find(["gap"]), (0.1,), 0.95)
    reasons = [each.reason for each in made.findings if each.quantity == "accuracy" and not each.attack]
    assert reasons == [Term("no_members_and_others")]
    loss = Signals(games.half_split(40, 8), None, {"loss": np.ones((8, 40))})
    made = judge(ObservedRelease("model", loss), find(["loss"]), (0.1,), 0.95)
    reasons = [each.reason for each in made.findings if each.quantity == "accuracy" and not each.attack]
    assert reasons == [Term("missing_signal", names="correct")]


def test_claim_about_another_adjacency_excludes_nothing() -> None:
    game = games.half_split(100, 16, sampling="poisson")
    loss = np.random.default_rng(0).exponential(np.where(game.member, 0.2, 1.0))
    claim = Claim("epsilon", 1.0, 0.0, "replace_one")
    made = judge(
        ObservedRelease("model", Signals(game, None, {"loss": loss}), None, [claim]), find(["loss"]), (0.1,), 0.95
    )
    drawn = next(curve for curve in made.curves if curve.verdict)
    assert drawn.verdict.word == "cannot_be_tested"
    assert float(drawn.tradeoff.fnr(0.0)) == 0.0  # an infinite epsilon allows everything
    assert float(drawn.tradeoff.fnr(1e-9)) == 0.0


@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.parametrize("n_audits", sizes(75, full=400))
def test_random_labels_expose_nobody_and_show_no_epsilon(n_audits) -> None:
    """Audits of noise, LiRA with leave one out: few may name a record or show an epsilon above 0.

    95 % are promised for each; 33 or more of 400 at a rate of 5 % happen with probability .4 %, 11 or more of 75 with
    .1 %. A rate of 10 % or 20 % is found in 9 of 10 cases.
    """
    named = shown = 0
    for run in range(n_audits):
        made = judge(
            ObservedRelease("noise", _signals(60, 16, leak=0.0, seed=run)), find(["loss", "lira"]), (0.1,), 0.95
        )
        named += made.facts.games.exposed > 0
        shown += next(each.value for each in made.findings if each.quantity == "epsilon") > 0
    most = min(allowed(n_audits), 32)
    assert named <= most
    assert shown <= most
