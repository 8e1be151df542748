"""Signals that come model by model and are read point by point."""

import stat

import numpy as np
import pytest

from leakbound.core import block_signals, signals_by_model
from leakbound.core.block_signals import BlockSignals
from leakbound.core.signals_by_model import ModelWriter

N, M, K = 230, 11, 3


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(block_signals, "BLOCK", 300)
    monkeypatch.setattr(signals_by_model, "BLOCK", 300)


def made(order=range(M)):
    rng = np.random.default_rng(0)
    member = rng.random((M, N)) < 0.5
    is_target = rng.random(N) < 0.8
    member &= is_target
    log_prob = rng.normal(size=(M, N, K)).astype(np.float32)
    log_prob -= np.log(np.exp(log_prob).sum(axis=2, keepdims=True))
    arrays = {"dot": rng.random((M, N)).astype(np.float32), "log_prob": log_prob}
    return member, is_target, arrays


@pytest.mark.parametrize("memory", [1, 3 * 4 * N * (K + 1), 1 << 28])
def test_what_is_read_is_what_was_written(tmp_path, memory):
    """Three models at a time, in any order; written at once, after every third one, or at the end."""
    member, is_target, arrays = made()
    with ModelWriter(tmp_path / "new", member, is_target, n_targets=5, memory=memory) as writer:
        for start in (6, 0, 9, 3):
            rows = slice(start, min(start + 3, M))
            writer.add(rows, {name: array[rows] for name, array in arrays.items()})
    signals = BlockSignals(tmp_path / "new")
    blocks = list(signals.target_blocks(["dot", "log_prob"]))
    assert len(blocks) > 5
    for name, array in arrays.items():
        read = np.concatenate([block.array(name) for block in blocks], axis=1)
        np.testing.assert_array_equal(read, array[:, is_target])
    np.testing.assert_array_equal(np.concatenate(list(signals.target_members(of_all=True))).T, member[:, is_target])
    assert (signals.n_targets, signals.game.n_target_points) == (5, is_target.sum())
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
