import numpy as np
import pytest
from scipy.special import logsumexp

from leakbound.attacks.blocks import all_target_points, blocks, log_mean_exp, require_references, score_points
from leakbound.core.types import Game, NotApplicable, Signals


def test_values_of_target_points_land_where_the_game_looks_for_them(signals):
    array = signals.arrays["loss"]
    out = score_points(signals.game, array, lambda block: block.targets(array), n_rows=1 << 16)  # 2 points a block
    np.testing.assert_array_equal(out, signals.targets("loss"))
    assert out.flags.c_contiguous


def test_blocks_cover_the_points_once(signals):
    points = all_target_points(signals.game)
    seen = [np.arange(30)[block.columns] for block in blocks(signals.game, points, 1 << 15)]
    np.testing.assert_array_equal(np.concatenate(seen), points)
    assert max(map(len, seen)) == 4


@pytest.mark.parametrize("scale", [1, 100, 1e5])
def test_log_mean_exp_with_each_row_left_out(scale):
    rng = np.random.default_rng(0)
    values, chosen = scale * rng.normal(size=(50, 9)), rng.random((50, 9)) < 0.4
    ours = log_mean_exp(values, chosen, leave_one_out=True)
    for point, row in np.ndindex(values.shape):
        rest = [values[point, m] for m in range(9) if m != row and chosen[point, m]]
        expected = logsumexp(rest) - np.log(len(rest)) if rest else -np.inf
        assert ours[point, row] == pytest.approx(expected, rel=1e-13, abs=1e-10)  # it is rounded


def test_log_mean_exp_over_fixed_references():
    values = np.array([[-1000.0, -1001.0, 5.0], [1.0, 2.0, 3.0]])
    chosen = np.array([[True, True, False], [False, False, False]])
    ours = log_mean_exp(values, chosen, leave_one_out=False)
    assert ours[0, 0] == pytest.approx(-1000 + np.log((1 + np.exp(-1)) / 2), abs=1e-10)
    assert ours[1, 0] == -np.inf


@pytest.mark.parametrize(("n_models", "n_targets", "n_references"), [(1, 1, 0), (2, 2, 1), (2, 1, 1)])
def test_too_few_references(n_models, n_targets, n_references):
    game = Game("half_split", np.ones((n_models, 3), dtype=bool), np.ones(3, dtype=bool), n_targets)
    with pytest.raises(NotApplicable, match=f"at least 2 reference models, and there are {n_references}$"):
        require_references(Signals(game, None, {}))
