"""Record by record."""

from __future__ import annotations

import numpy as np

from leakbound.attacks import find
from leakbound.auditing.observed import ObservedRelease
from leakbound.auditing.records import SHOWN, record_risk
from leakbound.core import games
from leakbound.core.findings import Term
from leakbound.core.reasons import words
from leakbound.core.types import Signals
from leakbound.data import Data, from_arrays

LIRA = find(["lira"])[0]


def _subject(leak: float, n_models: int = 32, margins: bool = False) -> ObservedRelease:
    game = games.half_split(200, n_models)
    rng = np.random.default_rng(0)
    log_odds = rng.normal(2 + leak * game.member)
    points = from_arrays(rng.normal(size=(200, 3)), np.arange(200) % 2)
    arrays = {"log_odds": log_odds} if margins else {"log_odds": log_odds, "loss": np.logaddexp(0, -log_odds)}
    return ObservedRelease("model", Signals(game, points, arrays), Data(points, "made"))


def test_records_are_shown_from_the_most_exposed_on() -> None:
    exposure = record_risk(_subject(3.0), LIRA, 0.95)
    shown = [place for place, strip in enumerate(exposure.records(None)["log_odds"]) if strip is not None]
    won = np.asarray(exposure.records(None)["won"])
    assert len(shown) == SHOWN
    assert won[shown].min() >= np.delete(won, shown).max()
    assert len(exposure.records(None)["log_odds"][shown[0]]) == len(exposure.records(None)["member"][shown[0]]) == 32
    assert exposure.records(None)["preview"][shown[0]]["fields"].keys() == {"x0", "x1", "x2"}


def test_the_histogram_counts_every_record_and_marks_the_exposed_ones() -> None:
    exposure = record_risk(_subject(3.0), LIRA, 0.95)
    won, first = np.asarray(exposure.records(None)["won"]), exposure.games.first_exposed
    assert sum(exposure.games.won) == 200
    assert exposure.games.exposed == (won >= first).sum() == sum(exposure.records(None)["exposed"])
    assert exposure.finding.detail == {"won": won.max(), "games": 32}
    assert exposure.finding.low == max(exposure.records(None)["low"])  # the limit grows with the games won


def test_few_models_single_out_nobody() -> None:
    exposure = record_risk(_subject(9.0, n_models=8), LIRA, 0.95)
    assert exposure.games.first_exposed is None
    assert exposure.games.exposed == 0
    assert exposure.games.models_needed > 8


def test_margins_are_not_shown_as_probabilities() -> None:
    exposure = record_risk(_subject(3.0, margins=True), LIRA, 0.95)
    assert set(exposure.records(None)["log_odds"]) == {None}


def test_one_target_has_no_record_games() -> None:
    game = games.one_model(50, 50)
    loss = np.random.default_rng(0).exponential(np.where(game.member, 0.5, 1.0))
    exposure = record_risk(ObservedRelease("model", Signals(game, None, {"loss": loss})), find(["loss"])[0], 0.95)
    assert exposure.finding.value is None
    assert "at least 2 target models" in words(exposure.finding.reason)
    assert exposure.records(None) == {}


def test_no_attack_and_no_fixed_record() -> None:
    observed = _subject(1.0)
    assert record_risk(observed, None, 0.95).finding.reason == Term("no_attack")
    game = games.average_datum(20, 10)
    loss = np.random.default_rng(0).exponential(np.where(game.member, 0.5, 1.0))
    average = record_risk(ObservedRelease("model", Signals(game, None, {"loss": loss})), find(["loss"])[0], 0.95)
    assert "a target of its own" in words(average.finding.reason)
