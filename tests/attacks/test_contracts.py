"""What every row of ``ATTACKS`` must do."""

import numpy as np
import pytest
from scipy.stats import rankdata

from leakbound.attacks import ATTACKS, Attack
from leakbound.core.games import half_split, one_model
from leakbound.core.signals import SIGNALS
from leakbound.core.types import Game, NotApplicable, Signals
from tests.marks import nightly

ROWS = pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
WITH_REFERENCES = [name for name, row in ATTACKS.items() if row.needs_references]


def planted(game: Game, leak: float, seed: int = 1, dtype: type = np.float64) -> Signals:
    """A classifier of three classes whose log-odds are higher by ``leak`` at its members, and a release in three
    steps that a member moves by ``leak`` standard deviations in all; its parameters move along a member's gradient.
    """
    rng = np.random.default_rng(seed)
    hardness = rng.normal(size=game.member.shape[1])
    log_odds = leak * game.member + hardness + rng.normal(size=game.member.shape)
    log_right, log_wrong = -np.logaddexp(0, -log_odds), -np.logaddexp(0, log_odds)
    share = rng.uniform(0.1, 0.9, size=log_odds.shape)
    log_prob = np.stack([log_right, log_wrong + np.log(share), log_wrong + np.log(1 - share)], axis=-1)
    correct = log_prob.argmax(axis=-1) == 0
    labels = np.arange(len(hardness)) % 3  # the true class is the first one, the second or the third
    log_prob = np.take_along_axis(log_prob, (np.arange(3) - labels[:, None])[None] % 3, axis=2)
    norm = np.broadcast_to(max(leak, 1) ** 2 * rng.dirichlet(np.ones(3), size=len(hardness)), log_prob.shape)
    step_dot = norm * (game.member[..., None] & (leak > 0)) + np.sqrt(norm) * rng.normal(size=norm.shape)
    curved = np.broadcast_to(leak * rng.uniform(0.5, 1.5, size=len(hardness)), game.member.shape)
    curved = curved if leak > 0 else np.ones(game.member.shape)
    arrays = {
        "loss": -log_right,
        "log_odds": log_odds,
        "correct": correct.astype(float),
        "log_prob": log_prob,
        "dot": leak * game.member + rng.normal(size=game.member.shape),
        "step_dot": step_dot,
        "step_norm": norm,
        "gradient_norm": np.exp(-log_odds / 4),
        "taylor": np.stack([-(leak * game.member + rng.normal(size=game.member.shape)) * curved, curved**2], axis=-1),
    }
    # scores of a release that predicts nothing; their unit and origin are any
    score = leak * game.member + hardness + rng.normal(size=game.member.shape)
    arrays |= {"score": 30 * score - 7, "matches": (score > hardness + 1).astype(float), "gen_lra": score}
    arrays |= {"nearest": -np.exp(-score), "nearest5": -np.exp(-score / 2), "density_ratio": score}
    # labels of 8 versions of each record, the first of which is the record itself
    noise = rng.normal(size=(*log_odds.shape, 8))
    arrays["query_correct"] = np.where(np.arange(8) == 0, correct[:, :, None], log_odds[:, :, None] + noise > 0)
    return Signals(game, None, {name: array.astype(dtype) for name, array in arrays.items()}, labels)


def auc(scores: np.ndarray, member: np.ndarray) -> np.ndarray:
    """Area under the ROC of each row (Mann-Whitney)."""
    ranks = rankdata(scores, axis=1)
    n_in, n_out = member.sum(axis=1), (~member).sum(axis=1)
    return ((ranks * member).sum(axis=1) - n_in * (n_in + 1) / 2) / (n_in * n_out)


def fixed(game: Game) -> Game:
    return Game(game.kind, game.member, game.is_target_point, 3)


@pytest.mark.by_day(
    "fixed-float32-gap",
    "fixed-float32-lira_offline",
    "fixed-float32-gradient_norm",
    "fixed-float64-entropy",
    "fixed-float64-likelihood_ratio",
    "leave one out-float32-gap",
    "leave one out-float32-scalar_product",
    "leave one out-float64-gap",
    "leave one out-float64-rmia",
    "leave one out-float64-glir",
)
@ROWS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("references", ["fixed", "leave one out"])
def test_shape_dtype_and_finite_values(attack: Attack, dtype: type, references: str):
    game = half_split(101, 12, population=0.1)
    game = fixed(game) if references == "fixed" else game
    scores = attack(planted(game, 1, dtype=dtype))
    assert scores.value.shape == scores.member.shape == (game.n_targets, 91)
    in_ranks = attack.name.startswith("rmia")  # which need more digits than the losses: see test_rmia
    assert scores.value.dtype == (np.float64 if in_ranks else dtype)
    assert np.isfinite(scores.value).all()
    assert (scores.attack, scores.source) == (attack.name, attack.source)
    np.testing.assert_array_equal(scores.member, game.member[: game.n_targets, game.is_target_point])


@pytest.mark.by_day("loss", "likelihood_ratio", "gradient_norm")
@ROWS
def test_float32_differs_by_rounding_alone(attack: Attack):
    game = half_split(200, 40, population=0.1)
    single, double = (attack(planted(game, 1, dtype=dtype)).value for dtype in (np.float32, np.float64))
    np.testing.assert_allclose(single, double, rtol=2e-3, atol=2e-3)


@pytest.mark.by_day(
    "fixed-gap",
    "fixed-likelihood_ratio",
    "fixed-matt",
    "leave one out-mast",
    "leave one out-likelihood_ratio",
)
@ROWS
@pytest.mark.parametrize("references", ["fixed", "leave one out"])
def test_members_score_higher_where_a_leak_is_planted(attack: Attack, references: str):
    game = half_split(600, 16, population=0.1)
    scores = attack(planted(fixed(game) if references == "fixed" else game, 2))
    assert (auc(scores.value, scores.member) > 0.6).all()


@ROWS
@pytest.mark.parametrize("references", ["fixed", "leave one out"])
def test_a_permutation_of_the_points_permutes_the_scores(attack: Attack, references: str):
    game = half_split(60, 10)
    game = fixed(game) if references == "fixed" else game
    signals = planted(game, 1)
    order = np.random.default_rng(0).permutation(60)
    moved = Game(game.kind, game.member[:, order], game.is_target_point[order], game.n_targets)
    arrays = {name: array[:, order] for name, array in signals.arrays.items()}
    close = 1e-4 if attack.name == "shadow" else 1e-10  # the solver of the shadow classifier stops at 1e-4
    expected = attack(signals).value[:, order]
    np.testing.assert_allclose(
        attack(Signals(moved, None, arrays, signals.labels[order])).value, expected, rtol=close, atol=close
    )


@ROWS
def test_point_major_and_model_major_memory_give_the_same(attack: Attack):
    signals = planted(half_split(60, 10), 1)
    arrays = {name: np.ascontiguousarray(array.swapaxes(0, 1)).swapaxes(0, 1) for name, array in signals.arrays.items()}
    point_major = Signals(signals.game, None, arrays, signals.labels)
    np.testing.assert_allclose(attack(point_major).value, attack(signals).value, rtol=1e-9, atol=1e-9)


@ROWS
def test_the_same_input_gives_the_same_bytes(attack: Attack):
    signals = planted(half_split(80, 12, population=0.1), 1)
    assert attack(signals).value.tobytes() == attack(signals).value.tobytes()


@pytest.mark.by_day("8-gap", "8-likelihood_ratio", "8-scalar_product")
@ROWS
@pytest.mark.statistics
@pytest.mark.parametrize("n_models", [8, nightly(16), nightly(64)])
def test_random_labels_give_an_auc_of_one_half(attack: Attack, n_models: int):
    """Leave one out, rows drawn independently.

    The mean AUC over the targets varies at most as that of one target, whose standard deviation is
    sqrt((J + 1) / (12 (J / 2)^2)); beyond 4 of them with probability below 1e-4 a test, 5e-3 for all 51.
    """
    n_points = 5000 if n_models < 64 else 2000
    scores = attack(planted(half_split(n_points, n_models, seed=n_models), 0))
    spread = np.sqrt((n_points + 1) / (3 * n_points**2))
    assert abs(auc(scores.value, scores.member).mean() - 0.5) < 4 * spread


@ROWS
def test_a_missing_signal_is_a_reason(attack: Attack):
    game = half_split(20, 8)
    others = {name: np.zeros((8, 20, 2)[: len(SIGNALS[name].axes)]) for name in set(SIGNALS) - set(attack.signals)}
    with pytest.raises(NotApplicable, match=rf"needs the signal .*{attack.signals[0]}"):
        attack(Signals(game, None, others, checked=True))


@pytest.mark.parametrize("name", WITH_REFERENCES)
def test_missing_references_are_a_reason(name: str):
    with pytest.raises(NotApplicable, match=r"needs at least [12] reference models?, and there are 0"):
        ATTACKS[name](planted(one_model(10, 10), 1))


@pytest.mark.parametrize("name", sorted(set(ATTACKS) - set(WITH_REFERENCES)))
def test_one_model_is_enough_where_no_references_are_needed(name: str):
    scores = ATTACKS[name](planted(one_model(300, 301), 2))
    assert auc(scores.value, scores.member)[0] > 0.6


@pytest.mark.parametrize("name", [name for name in WITH_REFERENCES if name != "shadow"])
def test_the_targets_own_row_is_no_reference(name: str):
    """With leave one out a target scores as with the other rows as fixed references.

    Two attacks learn once for several targets, and not from any of these: see the folds of shadow, and the groups of
    targets for which offline RMIA chooses its slope.
    """
    attack = ATTACKS[name].with_parameters(a=0.3) if name == "rmia_offline" else ATTACKS[name]
    game = half_split(50, 12, seed=5)
    signals = planted(game, 1)
    for target in (0, 7):
        rows = np.r_[target, np.delete(np.arange(12), target)]
        alone = Signals(
            Game(game.kind, game.member[rows], game.is_target_point, 1),
            None,
            {key: array[rows] for key, array in signals.arrays.items()},
            signals.labels,
        )
        expected = attack(alone).value[0]
        np.testing.assert_allclose(attack(signals).value[target], expected, rtol=1e-9, atol=1e-9)
