"""Signals in files: what is read is what was written, and what is wrong is said in one line."""

import json

import numpy as np
import pytest

from leakbound.core import on_disk
from leakbound.core.types import Signals
from leakbound.files import signal_files
from leakbound.files.signal_files import ABOUT, open_signals, write_blocks


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(on_disk, "BLOCK", 300)


def folder_of(path, n_points=250, n_models=3, **arrays):
    rng = np.random.default_rng(0)
    member = rng.random((n_points, n_models)) < 0.5
    loss = rng.exponential(size=member.shape).astype(np.float32)
    with write_blocks(path, n_models=n_models) as write:
        write(member, {"loss": loss, **arrays})
    return member, loss


def test_arrays_have_what_was_written_and_are_memmaps(tmp_path):
    member, loss = folder_of(tmp_path / "signals")
    signals = open_signals(tmp_path / "signals")
    is_target = (member != member[:, :1]).any(axis=1)
    game = signals.game
    assert np.array_equal(signals.array("loss"), loss.T)
    assert np.array_equal(game.member, member.T)
    assert on_disk.is_on_disk(signals.array("loss"))
    assert on_disk.is_on_disk(game.member)
    assert on_disk.is_on_disk(game.target_member)
    assert np.array_equal(game.target_member, member[is_target].T)
    assert np.array_equal(game.target_points, np.flatnonzero(is_target))
    assert len(game.population) == (~member.any(axis=1)).sum()
    assert game.prior == pytest.approx(member[is_target].mean())


def test_what_follows_from_log_prob_is_that_of_signals_in_memory(tmp_path):
    rng = np.random.default_rng(0)
    member = rng.random((250, 3)) < 0.5
    log_prob = rng.normal(size=(250, 3, 4)).astype(np.float32)
    log_prob -= np.log(np.exp(log_prob).sum(axis=2, keepdims=True))
    labels = rng.integers(4, size=250)
    with write_blocks(tmp_path / "signals", n_models=3, n_targets=2) as write:
        write(member, {"log_prob": log_prob}, labels)
    found = open_signals(tmp_path / "signals")
    expected = Signals(found.game, None, {"log_prob": log_prob.swapaxes(0, 1)}, labels)
    assert found.arrays.keys() == expected.arrays.keys()
    for name, array in expected.arrays.items():
        assert np.array_equal(found.array(name), array), name
        assert on_disk.is_on_disk(found.array(name))
    assert np.array_equal(found.true_class(), expected.true_class())


def test_losses_below_0_by_rounding_become_0(tmp_path):
    _, loss = folder_of(tmp_path / "signals")
    loss[200, 1] = -1e-7
    np.save(tmp_path / "signals" / "loss.npy", loss)
    assert np.array_equal(open_signals(tmp_path / "signals").array("loss").T, np.maximum(loss, 0))


def test_other_types_of_numbers_are_rounded_to_single_precision(tmp_path):
    _, loss = folder_of(tmp_path / "signals")
    np.save(tmp_path / "signals" / "loss.npy", np.asfortranarray(loss.astype(np.float64)))
    assert np.array_equal(open_signals(tmp_path / "signals").array("loss").T, loss)


def test_files_are_arrays_of_numpy(tmp_path):
    member, loss = folder_of(tmp_path / "signals")
    assert np.array_equal(np.load(tmp_path / "signals" / "loss.npy", allow_pickle=False), loss)
    assert np.array_equal(np.load(tmp_path / "signals" / "member.npy", mmap_mode="r"), member)
    np.save(tmp_path / "signals" / "member.npy", member.astype(np.int8))  # made by hand
    assert open_signals(tmp_path / "signals").game.n_target_points == (member != member[:, :1]).any(axis=1).sum()


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        ("loss", np.zeros((250, 2), dtype=np.float32), r"begin with \(250, 3\)"),
        ("loss", np.zeros((250, 3, 2), dtype=np.float32), "must have 2 axes"),
        ("loss", np.array(["a"] * 250), "must hold numbers"),
        ("member", np.zeros((250, 2), dtype=bool), r"begin with \(250, 3\)"),
        ("los", np.zeros((250, 3)), "unknown signal 'los'"),
        ("log_prob", np.zeros((250, 3, 2)), "needs labels"),
    ],
)
def test_wrong_files_are_refused_in_one_line(tmp_path, name, array, words):
    folder_of(tmp_path / "signals")
    np.save(tmp_path / "signals" / f"{name}.npy", array)
    with pytest.raises(ValueError, match=words) as refused:
        open_signals(tmp_path / "signals")
    assert "\n" not in str(refused.value)


def test_pickles_are_not_read(tmp_path):
    folder_of(tmp_path / "signals")
    np.save(tmp_path / "signals" / "loss.npy", np.array([{}] * 250), allow_pickle=True)
    with pytest.raises(ValueError, match=r"no array file of numpy: .*[Oo]bject"):
        open_signals(tmp_path / "signals")


@pytest.mark.parametrize("n_bytes", [0, 5, 100, 1000])
def test_files_that_were_cut_are_refused(tmp_path, n_bytes):
    folder_of(tmp_path / "signals")
    path = tmp_path / "signals" / "loss.npy"
    path.write_bytes(path.read_bytes()[:n_bytes])
    with pytest.raises(ValueError, match=r"loss\.npy: "):
        open_signals(tmp_path / "signals")


def test_a_header_that_promises_more_than_there_is_takes_no_memory(tmp_path):
    folder_of(tmp_path / "signals")
    path = tmp_path / "signals" / "loss.npy"
    path.write_bytes(path.read_bytes().replace(b"(250, 3)", b"(%d, 3)" % 10**17))
    with pytest.raises(ValueError, match=r"loss\.npy: "):
        open_signals(tmp_path / "signals")


def test_wrong_values_are_refused_with_their_points(tmp_path):
    folder_of(tmp_path / "signals")
    array = np.load(tmp_path / "signals" / "loss.npy")
    array[200, 1] = -1
    np.save(tmp_path / "signals" / "loss.npy", array)
    with pytest.raises(ValueError, match=r"points \d+ to \d+: signal 'loss' is -log p"):
        open_signals(tmp_path / "signals")
    member = np.load(tmp_path / "signals" / "member.npy").astype(np.uint8)
    member[200, 1] = 2
    np.save(tmp_path / "signals" / "member.npy", member)
    with pytest.raises(ValueError, match="truth values"):
        open_signals(tmp_path / "signals")


def test_folders_that_are_none_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no such folder"):
        open_signals(tmp_path / "nothing")
    with pytest.raises(ValueError, match=r"has no signals\.json"):
        open_signals(tmp_path)
    (tmp_path / ABOUT).write_text("{}")
    with pytest.raises(ValueError, match="expected the format"):
        open_signals(tmp_path)
    about = {"format": signal_files.FORMAT, "version": 1, "models": 2, "points": 5, "targets": 3}
    (tmp_path / ABOUT).write_text(json.dumps(about))
    with pytest.raises(ValueError, match="targets must be from 1 to the 2 models"):
        open_signals(tmp_path)
    with pytest.raises(ValueError, match="is not empty"):
        write_blocks(tmp_path, n_models=2)
    (tmp_path / "new").mkdir()
    with pytest.raises(ValueError, match="n_targets must be from 1"):
        write_blocks(tmp_path / "new", n_models=2, n_targets=3)


def test_an_unfinished_folder_is_refused(tmp_path):
    def interrupted():
        with write_blocks(tmp_path / "signals", n_models=2) as write:
            write(np.ones((4, 2), dtype=bool), {"loss": np.ones((4, 2))})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with pytest.raises(ValueError, match=r"has no signals\.json"):
        open_signals(tmp_path / "signals")


def test_calls_that_do_not_fit_together_are_refused(tmp_path):
    with write_blocks(tmp_path / "signals", n_models=2) as write:
        write(np.ones((4, 2), dtype=bool), {"loss": np.ones((4, 2))})
        with pytest.raises(ValueError, match="expected member, loss as at the first call"):
            write(np.ones((4, 2), dtype=bool), {"log_odds": np.ones((4, 2))})
        with pytest.raises(ValueError, match=r"loss has shape \(4, 3\); it must begin with \(4, 2\)"):
            write(np.ones((4, 2), dtype=bool), {"loss": np.ones((4, 3))})


def test_files_are_the_owners_alone_also_in_a_folder_that_is_there(tmp_path) -> None:
    folder = tmp_path / "signals"
    folder.mkdir(mode=0o755)
    with write_blocks(folder, n_models=2) as write:
        write(np.array([[True, False]]), {"loss": np.zeros((1, 2))})
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_a_call_that_is_refused_writes_nothing(tmp_path) -> None:
    with write_blocks(tmp_path / "signals", n_models=2) as write:
        with pytest.raises(ValueError, match="loss has shape"):
            write(np.array([[True, False]]), {"loss": np.zeros((1, 3))})
        write(np.array([[True, False]]), {"loss": np.zeros((1, 2))})
    assert np.load(tmp_path / "signals" / "member.npy").shape == (1, 2)
    assert open_signals(tmp_path / "signals").game.n_target_points == 1
