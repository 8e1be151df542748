"""Signals that come model by model and are read point by point."""

import stat

import numpy as np
import pytest

from leakbound.files.signal_files import ModelWriter, open_signals

N, M, K = 230, 11, 3


def made(order=range(M)):
    rng = np.random.default_rng(0)
    member = rng.random((M, N)) < 0.5
    is_target = rng.random(N) < 0.8
    member &= is_target
    log_prob = rng.normal(size=(M, N, K)).astype(np.float32)
    log_prob -= np.log(np.exp(log_prob).sum(axis=2, keepdims=True))
    arrays = {"dot": rng.random((M, N)).astype(np.float32), "log_prob": log_prob}
    return member, is_target, arrays


def test_what_is_read_is_what_was_written(tmp_path):
    """Three models at a time, in any order."""
    member, is_target, arrays = made()
    with ModelWriter(tmp_path / "new", member, is_target, n_targets=5) as writer:
        for start in (6, 0, 9, 3):
            rows = slice(start, min(start + 3, M))
            writer.add(rows, {name: array[rows] for name, array in arrays.items()})
    signals = open_signals(tmp_path / "new")
    for name, array in arrays.items():
        np.testing.assert_array_equal(signals.array(name), array)
    np.testing.assert_array_equal(signals.game.member, member)
    assert (signals.game.n_targets, signals.game.n_target_points) == (5, is_target.sum())
    assert np.load(tmp_path / "new" / "labels.npy").tolist() == [0] * N
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").iterdir()} == {0o600}


def test_a_model_that_is_missing_leaves_nothing(tmp_path):
    member, is_target, arrays = made()
    with (
        pytest.raises(ValueError, match=r"^2 of 11 models are missing in "),
        ModelWriter(tmp_path / "new", member, is_target, n_targets=M) as writer,
    ):
        writer.add(slice(0, 9), {name: array[:9] for name, array in arrays.items()})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda arrays: {"dot": arrays["dot"]}, r"models 0 to 3 have the signals .*, model 4 "),
        (
            lambda arrays: {**arrays, "dot": arrays["dot"][:, :-1]},
            r"dot has shape \(2, 229\); expected 2 x 230",
        ),
    ],
)
def test_other_signals_are_refused_and_nothing_is_left(tmp_path, change, line):
    member, is_target, arrays = made()

    def write() -> None:
        with ModelWriter(tmp_path / "new", member, is_target, n_targets=M) as writer:
            writer.add(slice(0, 4), {name: array[:4] for name, array in arrays.items()})
            writer.add(slice(4, 6), change({name: array[4:6] for name, array in arrays.items()}))

    with pytest.raises(ValueError, match=line):
        write()
    assert list(tmp_path.iterdir()) == []
