"""A score in an .npz file and in a folder of signals."""

import numpy as np
import pytest

import leakbound as ls
from leakbound.runtime.observe import read_signals

GAME = ls.games.half_split(60, 8, seed=1)
SCORE = np.random.default_rng(0).normal(size=(8, 60)) + 3 * GAME.member - 1e6


def attacks_of(report):
    return {finding.attack for finding in report.findings if finding.quantity == "auc"}


def test_an_npz_file(tmp_path):
    np.savez(tmp_path / "s.npz", member=GAME.member, score=SCORE)
    np.testing.assert_array_equal(read_signals(tmp_path / "s.npz").array("score"), SCORE)
    report = ls.audit_signals(tmp_path / "s.npz")
    assert attacks_of(report) == {"score", "mast", "lira", "rmia"}


def test_a_folder_of_signals(tmp_path):
    with ls.write_blocks(tmp_path / "folder", n_models=8) as write:
        for start in (0, 20, 40):
            write(GAME.member.T[start : start + 20], {"score": SCORE.T[start : start + 20]})
    of_folder = ls.audit_signals(tmp_path / "folder")
    in_memory = ls.audit_signals(ls.Signals(ls.open_signals(tmp_path / "folder").game, None, {"score": SCORE}))
    assert attacks_of(of_folder) == {"score", "mast", "lira", "rmia"}
    for found, expected in zip(of_folder.findings, in_memory.findings, strict=True):
        if found.quantity == "auc" and found.value is not None:
            assert found.value == pytest.approx(expected.value, abs=0.01)


def test_matches_that_are_no_matches(tmp_path):
    np.savez(tmp_path / "s.npz", member=GAME.member, matches=SCORE)
    with pytest.raises(ValueError, match="'matches' must hold 0 and 1"):
        read_signals(tmp_path / "s.npz")
