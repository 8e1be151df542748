"""Attacks that see labels alone, against loops over versions and the exact distance to a plane."""

import numpy as np
import pytest
from scipy.stats import norm, spearmanr
from sklearn.linear_model import LogisticRegression

import leakbound as ls
from leakbound.attacks import ATTACKS
from leakbound.attacks.label_only import label_only, label_only_lira
from leakbound.core.types import NotApplicable, Signals
from leakbound.data import from_arrays
from leakbound.releases.estimator import Estimator
from leakbound.releases.queries import Queried, Versions

N_QUERIES = 6


@pytest.fixture
def labels(signals):
    """Right labels of some versions, more often where the model has the point."""
    rng = np.random.default_rng(4)
    is_right = rng.random((*signals.game.member.shape, N_QUERIES)) < 0.5 + 0.3 * signals.game.member[:, :, None]
    return Signals(signals.game, None, {"query_correct": is_right.astype(float)})


def test_the_fraction_of_right_labels(labels, loop):
    is_right = labels.arrays["query_correct"]

    def score(t, i, rows):
        return sum(is_right[t, i, q] == 1 for q in range(N_QUERIES)) / N_QUERIES

    np.testing.assert_allclose(label_only(labels), loop(labels, score), rtol=1e-6)


def test_counts_are_compared_with_those_of_models_with_and_without_the_record(labels, references, loop):
    is_right, game = labels.arrays["query_correct"], labels.game

    def phi(model, point):
        n_right = float(is_right[model, point].sum())
        return np.log((n_right + 0.5) / (N_QUERIES - n_right + 0.5))

    def sides(t, i):
        rows = references(game, t)
        return [np.array([phi(r, i) for r in rows if game.member[r, i] == side]) for side in (False, True)]

    def targets_of(t):
        return np.flatnonzero(game.is_target_point if game.is_target_point.ndim == 1 else game.is_target_point[t])

    pooled = {}
    for t in range(game.n_targets):
        for side in (0, 1):
            parts = [sides(t, i)[side] for i in targets_of(t)]
            squares = sum(len(part) * part.var() for part in parts if len(part))
            pooled[t, side] = squares / max(sum(map(len, parts)), 1)

    def score(t, i, rows):
        logs = []
        for side, values in enumerate(sides(t, i)):
            if not len(values):
                return 0.0
            spread = np.sqrt((len(values) * values.var() + 8 * pooled[t, side]) / (len(values) + 8))
            logs.append(norm.logpdf(phi(t, i), values.mean(), spread))
        return logs[1] - logs[0]

    np.testing.assert_allclose(label_only_lira(labels), loop(labels, score), rtol=1e-9, atol=1e-9)


def test_growing_noise_ranks_records_by_their_distance_to_the_boundary():
    """Of a plane the distance is known: |w x + b| / |w|, negative on the wrong side."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    y = (x[:, 0] + 0.3 * rng.normal(size=300) > 0).astype(int)
    points = from_arrays(x, y)
    everyone = np.ones((1, 300), dtype=bool)
    seen = Queried(Estimator(LogisticRegression()), Versions(256, "growing_noise")).observe(
        points, everyone, np.array([0]), ["correct"]
    )
    model = LogisticRegression().fit(x, y)
    distance = (2 * y - 1) * model.decision_function(x) / np.linalg.norm(model.coef_)
    score = label_only(Signals(game_of(300), None, dict(seen)))[0]
    right = distance > 0
    assert spearmanr(distance[right], score[right]).statistic > 0.9
    assert score[right].min() > score[~right].mean()


def game_of(n_points):
    return ls.Game("signals", np.ones((1, n_points), dtype=bool), np.ones(n_points, dtype=bool), 1)


def test_without_queries_there_is_nothing_to_count():
    signals = Signals(game_of(3), None, {"correct": np.ones((1, 3))})
    for name in ("label_only", "label_only_lira"):
        with pytest.raises(NotApplicable, match="needs the signal query_correct"):
            ATTACKS[name](signals)


def test_more_is_found_than_by_one_label():
    rng, game = np.random.default_rng(2), ls.games.half_split(500, 16)
    hard = rng.normal(size=(1, 500, 1))  # each record's own, which references know
    margin = hard + 0.7 * game.member[:, :, None] + rng.normal(size=(16, 500, 12))
    is_right = (margin > 0).astype(np.float32)
    signals = Signals(game, None, {"query_correct": is_right})
    areas = {name: ls.metrics.auc(ATTACKS[name](signals)).value for name in ("gap", "label_only", "label_only_lira")}
    assert areas["gap"] + 0.05 < areas["label_only"] < areas["label_only_lira"] - 0.02
