"""The game about an attribute: who is in, who is attacked, and what is guessed without a release."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import leakbound as ls
from leakbound.attacks.attribute import strategies
from leakbound.auditing.attribute import game as attribute_game
from leakbound.auditing.attribute.game import (
    AttributeBaselines,
    best_baseline,
    column_of,
    imputation,
    lay_out,
    without_release,
)
from leakbound.auditing.run import attribute_game_of
from leakbound.data import Data, from_arrays
from leakbound.plans import AuditPlan
from leakbound.runtime.observe import Execution

HERE = Execution(n_jobs=1)


@pytest.fixture(autouse=True)
def _a_small_forest(monkeypatch) -> None:
    monkeypatch.setattr(attribute_game, "IMPUTER", ("sklearn.ensemble:RandomForestClassifier", {"n_estimators": 15}))


def independent(n: int = 160, n_values: int = 4, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Features, a sensitive column and labels that have nothing to do with each other."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"]).assign(secret=rng.integers(n_values, size=n))
    return frame, rng.integers(2, size=n)


def grouped(n_units: int, n_rows: int, seed: int = 0) -> Data:
    """Units of several records that differ in everything but their name."""
    frame, y = independent(n_units * n_rows, seed=seed)
    return Data(from_arrays(frame, y, np.repeat(np.arange(n_units), n_rows)), "d")


SECRET = ls.Attribute("secret")


def played_by(loaded: Data, n_models: int, game: ls.Attribute = SECRET) -> AttributeBaselines:
    """The game about the sensitive column, with what can be guessed without a release."""
    return without_release(lay_out(game, "secret", n_models, strategies("loss"), loaded), HERE)


def test_the_records_of_a_unit_are_in_or_out_together() -> None:
    attribute_game = lay_out(SECRET, "secret", 6, strategies("loss"), grouped(20, 4))
    inside = attribute_game.records.member.reshape(6, 20, 4)
    assert (inside == inside[:, :, :1]).all()
    assert (inside[:, :, 0].sum(axis=1) == 10).all()
    assert attribute_game.unit.tolist() == np.repeat(np.arange(20), 4).tolist()


def test_who_imputes_has_seen_nobody_of_the_unit() -> None:
    data = grouped(20, 4)
    attribute_game = lay_out(SECRET, "secret", 6, strategies("loss"), data)
    _, known, outside = imputation(attribute_game)
    assert "secret" not in known.x.columns
    for inside, learned in zip(attribute_game.records.member, outside, strict=True):
        assert not set(data.points.group[inside]) & set(data.points.group[learned])


@pytest.mark.slow
def test_a_unit_is_the_mean_of_its_records() -> None:
    """By a loop over the units, also where some of a unit's records alone are attacked."""
    data = grouped(30, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attribute_game, "MOST_ROWS", 200)
        played = played_by(data, 6)
    attacked = played.attribute_game.rows.record[90:].reshape(-1, 4)[:, 0]
    assert len(attacked) == 50
    values = np.random.default_rng(0).random(played.member.shape)
    units = sorted(set(data.points.group[attacked]))
    expected = [[row[data.points.group[attacked] == unit].mean() for unit in units] for row in values]
    np.testing.assert_allclose(played.by_unit(values), expected)
    first = [list(data.points.group[attacked]).index(unit) for unit in units]
    np.testing.assert_array_equal(played.unit_member, played.member[:, first])


def test_records_that_are_their_own_units_are_left_as_they_are() -> None:
    frame, y = independent(40)
    played = played_by(Data(from_arrays(frame, y), "d"), 6)
    values = np.random.default_rng(0).random(played.member.shape)
    np.testing.assert_array_equal(played.by_unit(values), values)
    np.testing.assert_array_equal(played.unit_member, played.member)


@pytest.mark.parametrize(
    ("prior_guess", "imputation", "best"), [(0.5, 0.4, "prior_guess"), (0.4, 0.5, "imputation"), (0.1, 0.2, "")]
)
def test_the_best_way_to_guess_is_never_worse_than_chance(prior_guess, imputation, best) -> None:
    """Chance is 1/4; outside, where the imputation is right by heart, nobody looks."""
    frame, y = independent(20)
    attribute_game = lay_out(SECRET, "secret", 4, [], Data(from_arrays(frame, y), "d"))
    member = attribute_game.records.member
    blind = {
        name: np.where(member, value, 1.0)
        for name, value in {"prior_guess": prior_guess, "imputation": imputation}.items()
    }
    prior = np.zeros((4, 20, 4))
    played = AttributeBaselines(attribute_game, attribute_game.attribute.value, member, prior, blind)
    assert played.chance == 0.25
    assert best_baseline(played) == best


def test_a_claim_is_refused() -> None:
    plan = AuditPlan(n_models=4, game=ls.Attribute("secret"), claim=({"eta": 0.1},))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="a claim is about membership; an audit of an attribute tests none"):
        attribute_game_of(plan, [], grouped(10, 2))


@pytest.mark.slow
def test_the_imputation_has_not_seen_whom_it_guesses() -> None:
    # records known by heart: a forest that had seen them would be right about all of them
    frame, y = independent(300)
    played = played_by(Data(from_arrays(frame, y), "d"), 8)
    inside, outside = (played.accuracy["imputation"][side].mean() for side in (played.member, ~played.member))
    assert abs(inside - 0.25) < 0.05
    assert outside > 0.9


@pytest.mark.slow
def test_the_prior_guess_is_the_most_frequent_value_of_those_who_are_not_in() -> None:
    frame, y = independent(20, 3)
    played = played_by(Data(from_arrays(frame, y), "d"), 8)
    secret = frame["secret"].to_numpy()
    for member, guess in zip(played.member, played.accuracy["prior_guess"], strict=True):
        counts = np.bincount(secret[~member], minlength=3)
        modes = np.flatnonzero(counts == counts.max())
        np.testing.assert_allclose(guess, np.isin(secret, modes) / len(modes))


@pytest.mark.slow
def test_no_model_is_trained_on_a_false_row() -> None:
    frame, y = independent(40)
    played = played_by(Data(from_arrays(frame, y), "d"), 8)
    x = played.attribute_game.rows.points.x
    for row in played.attribute_game.game.member:
        trained = np.flatnonzero(row)
        assert len(trained) == 20
        assert x.iloc[trained].equals(frame.iloc[played.attribute_game.rows.record[trained]].set_axis(trained))


@pytest.mark.slow
def test_numbers_are_binned_and_the_models_see_them_as_they_are() -> None:
    frame, y = independent(80)
    frame["secret"] = np.random.default_rng(1).permutation(80) * 10
    played = played_by(Data(from_arrays(frame, y), "d"), 8, ls.Attribute("secret", bins=4))
    x = played.attribute_game.rows.points.x
    assert x["secret"][:80].tolist() == frame["secret"].tolist()
    assert sorted(set(x["secret"][80:])) == [90, 290, 490, 690]


@pytest.mark.parametrize(
    ("plan", "line"),
    [
        ({"data": "a.csv", "label": "pay", "game": ls.Attribute("pay")}, "'pay' is the label itself"),
        ({"data": "a.npz", "game": ls.Attribute("y")}, "'y' is the label itself"),
        (
            {"data": "a.csv", "label": "pay", "game": ls.Attribute("sex"), "drop": ("sex",)},
            "is no feature: it is dropped",
        ),
    ],
)
def test_a_plan_names_a_feature(plan, line) -> None:
    with pytest.raises(ValueError, match=line):
        attribute_game_of(AuditPlan(**plan), [], grouped(10, 2))


def test_arrays_of_a_file_by_their_names(tmp_path) -> None:
    path = str(tmp_path / "pens.npz")
    np.savez(path, x=np.zeros((3, 2)), y=np.arange(3), writer=np.array([7, 8, 7]))
    assert column_of("writer", path).tolist() == [7, 8, 7]
    assert column_of("x1", path) == "x1"
    with pytest.raises(ValueError, match=r"no array 'wirter' \(did you mean 'writer'\?\); arrays: x, y, writer"):
        column_of("wirter", path)
