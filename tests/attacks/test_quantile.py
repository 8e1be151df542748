"""Quantile regression: against weighted least squares written out, and the law of unseen points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest, rankdata
from sklearn.metrics import roc_auc_score

from leakbound.attacks import ATTACKS
from leakbound.attacks.quantile import quantile
from leakbound.core.games import half_split
from leakbound.core.types import Game, NotApplicable, Signals


def made(game: Game, leak: float = 0.0, seed: int = 0) -> Signals:
    """Log-odds of points of different hardness; a target is surer, and less regular, where a point is easy."""
    rng = np.random.default_rng(seed)
    hardness = rng.normal(size=game.member.shape[1])
    spread = np.exp(hardness / 2)
    noise = rng.normal(size=game.member.shape)
    return Signals(game, None, {"log_odds": 1 + 2 * hardness + spread * (noise + leak * game.member)})


@pytest.mark.parametrize("references", [None, 1, 2, 4, 50])
def test_it_is_two_least_squares(references):
    signals = made(half_split(80, 6, population=0.25))
    game, phi = signals.game, signals.arrays["log_odds"]
    found = quantile(signals, references=references)
    for target in (0, 3):
        others = [m for m in range(6) if m != target][:references]
        m = phi[others].mean(axis=0)
        known = m[game.population]

        def columns(values, known=known):
            s = (np.clip(values, known.min(), known.max()) - known.mean()) / known.std()
            return np.stack([s**0, s, s**2], axis=1)

        x = np.vstack([columns(known), np.sqrt(1e-3 * len(known)) * np.eye(3)[1:]])  # the ridge as two more rows
        mean, *_ = np.linalg.lstsq(x, np.append(phi[target, game.population], [0, 0]), rcond=None)
        rest = phi[target, game.population] - columns(known) @ mean
        least = 1e-6 * np.mean(rest**2)
        log_variance, *_ = np.linalg.lstsq(x, np.append(np.log(rest**2 + least) + 1.27036, [0, 0]), rcond=None)
        at = columns(m[game.is_target_point])
        expected = (phi[target, game.is_target_point] - at @ mean) / np.exp(at @ log_variance / 2)
        np.testing.assert_allclose(found[target], expected, rtol=1e-4, atol=1e-4)


def test_others_are_standard_normal_at_every_hardness():
    """Where the reference tells the hardness; of 4,500 scores the distance exceeds .029 once in 1,000 times."""
    rng = np.random.default_rng(0)
    hardness = rng.normal(size=25_000)
    game = half_split(25_000, 2, population=0.2)
    target = 1 + 2 * hardness + np.exp(hardness / 2) * rng.normal(size=25_000)
    signals = Signals(
        Game(game.kind, game.member, game.is_target_point, 1), None, {"log_odds": np.stack([target, 2 * hardness])}
    )
    score, other, easy = (
        quantile(signals)[0],
        ~game.member[0, game.is_target_point],
        hardness[game.is_target_point] > 0.5,
    )
    for half in (easy, ~easy):
        assert kstest(score[other & half], "norm").statistic < 0.035


def test_it_knows_how_hard_a_point_is():
    """A leak of one standard deviation: the raw log-odds hide it behind the hardness."""
    signals = made(half_split(4000, 2, population=0.2), leak=1.0)
    member = signals.game.target_member

    def auc(score):
        ranks, n = rankdata(score, axis=1), member.sum(axis=1)
        return (((ranks * member).sum(axis=1) - n * (n + 1) / 2) / (n * (~member).sum(axis=1))).mean()

    assert auc(quantile(signals)) > auc(signals.targets("log_odds")) + 0.04


def test_a_loss_stands_in_for_log_odds():
    signals = made(half_split(200, 3, population=0.2))
    loss = np.exp(-signals.arrays["log_odds"])
    np.testing.assert_allclose(
        quantile(Signals(signals.game, None, {"loss": loss - 1e-12})), quantile(signals), rtol=1e-6, atol=1e-6
    )


def test_two_models_are_enough_and_one_is_not():
    assert quantile(made(half_split(200, 2, population=0.2))).shape == (2, 160)
    member = np.array([[True] * 10 + [False] * 10])
    alone = Signals(Game("one_model", member, np.ones(20, dtype=bool), 1), None, {"log_odds": np.zeros((1, 20))})
    with pytest.raises(NotApplicable, match="needs at least 1 reference model, and there are 0"):
        quantile(alone)


def test_answers_that_are_all_alike():
    signals = made(half_split(60, 3))
    flat = Signals(signals.game, None, {"log_odds": np.zeros((3, 60))})
    np.testing.assert_array_equal(quantile(flat), 0)


def test_too_few_points_and_bad_parameters():
    signals = made(half_split(5, 3))
    with pytest.raises(NotApplicable, match="needs at least 6 points to learn from, and there are 5"):
        quantile(signals)
    with pytest.raises(ValueError, match="references must be >= 1, got 0"):
        quantile(signals, references=0)
    assert ATTACKS["quantile"].with_parameters(references=4).name == "quantile(references=4)"


def mean_auc(signals: Signals, **words: int) -> float:
    value, member = quantile(signals, **words), signals.game.target_member
    return float(np.mean([roc_auc_score(inside, row) for inside, row in zip(member, value, strict=True)]))


def test_separate_references_are_all_used_and_more_of_them_find_more():
    game = half_split(200, 12, seed=3, population=0.2)
    signals = made(game, leak=1.0)
    separate = Signals(replace(game, n_targets=4), None, signals.arrays)
    first = Signals(
        replace(game, n_targets=4, member=game.member[:11]), None, {"log_odds": signals.arrays["log_odds"][:11]}
    )
    assert np.abs(quantile(separate) - quantile(first)).max() > 1e-3  # the last one counts
    np.testing.assert_allclose(quantile(separate, references=7), quantile(first), rtol=1e-9)
    assert mean_auc(signals) > mean_auc(signals, references=1) + 0.02


@pytest.mark.slow
def test_with_all_references_noise_is_worth_nothing_at_the_level_that_it_has():
    """The variance of the mean AUC over 16 targets is that of independent ones: their ratio is .99 in 300 games."""
    means, variances = [], []
    for seed in range(60):
        game = half_split(60, 8, seed=seed)
        noise = np.random.default_rng(9000 + seed).normal(size=game.member.shape)
        value = quantile(Signals(game, None, {"log_odds": noise}))
        areas = [roc_auc_score(member, row) for member, row in zip(game.member, value, strict=True)]
        means.append(np.mean(areas))
        variances.append(np.var(areas, ddof=1) / 8)
    assert abs(np.mean(means) - 0.5) < 0.012
    assert np.var(means, ddof=1) / np.mean(variances) < 1.6  # a ratio of 1 is above it with a probability of .005
