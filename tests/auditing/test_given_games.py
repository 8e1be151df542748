"""Games that the user describes, in Python and in a file: sets of one size or coins, and which axis is which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakbound as ls
from leakbound.auditing.setup import notes_of_game, refuse_no_coins
from leakbound.runtime.observe import read_signals
from tests.cli.calling import caller, draw_no_pages

RNG = np.random.default_rng(0)
COINS = RNG.random((8, 300)) < 0.5
HALVES = ls.games.half_split(300, 8).member
LOSS = RNG.exponential(np.where(COINS, 0.3, 1.0))
EVERY = np.ones(300, dtype=bool)


class TestFile:
    def read(self, folder: Path, sampling: Any = None, **arrays: Any) -> ls.Game:
        np.savez(folder / "signals.npz", member=COINS, loss=LOSS, **arrays)
        return read_signals(folder / "signals.npz", sampling).game

    def test_sampling_is_said_in_the_file_or_by_the_reader(self, tmp_path: Path) -> None:
        assert self.read(tmp_path).sampling == "fixed"
        assert self.read(tmp_path, sampling="poisson").sampling == "poisson"
        np.savez(tmp_path / "coins.npz", member=COINS, loss=LOSS, sampling="poisson")
        assert read_signals(tmp_path / "coins.npz").game.sampling == "poisson"
        assert read_signals(tmp_path / "coins.npz", "poisson").game.sampling == "poisson"
        with pytest.raises(ValueError, match=r"says sampling=poisson, and fixed was asked for"):
            read_signals(tmp_path / "coins.npz", "fixed")

    @pytest.mark.parametrize("value", ["coins", np.array(["poisson"]), 1])
    def test_another_word_is_refused(self, tmp_path: Path, value: Any) -> None:
        np.savez(tmp_path / "other.npz", member=COINS, loss=LOSS, sampling=value)
        with pytest.raises(ValueError, match="sampling must be the word fixed or poisson"):
            read_signals(tmp_path / "other.npz")

    def test_an_unknown_array_gets_all_known_ones(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)  # a line has at most 300 characters, with the path
        with pytest.raises(ValueError, match=r"unknown array 'n_target' \(did you mean 'n_targets'\?\)") as refusal:
            self.read(Path(), n_target=4)
        for name in ("member", "is_target_point", "n_targets", "sampling", "labels", "loss", "query_loss", "taylor"):
            assert f" {name}" in str(refusal.value)

    def test_labels_of_models_tell_that_the_axes_are_swapped(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "t.npz", member=COINS.T, loss=LOSS.T, labels=np.zeros(300, dtype=int))
        with pytest.raises(ValueError, match=r"300 models \(its first axis\) and 8 records .* 300 labels.*: transpose"):
            read_signals(tmp_path / "t.npz")

    def test_a_transposed_signal_is_told_so(self) -> None:
        game = ls.Game("signals", COINS, EVERY, 8)
        for name in ("loss", "of_my_own"):
            with pytest.raises(ValueError, match="8 models and 300 points: transpose the signal, or member"):
                ls.Signals(game, None, {name: LOSS.T})


class TestRemarks:
    def test_coins_that_are_said_to_be_sets_of_one_size(self) -> None:
        (note,) = notes_of_game(ls.Game("signals", COINS, EVERY, 8))
        assert note.startswith(f"The models have {COINS.sum(axis=1).min()} to {COINS.sum(axis=1).max()} members")
        assert "say sampling='poisson'" in note
        assert notes_of_game(ls.Game("signals", COINS, EVERY, 8, sampling="poisson")) == []
        assert notes_of_game(ls.Game("signals", HALVES, EVERY, 8)) == []

    def test_no_coins_are_advised_where_they_would_not_be_fair(self) -> None:
        rare = np.random.default_rng(1).random((8, 300)) < 0.2
        assert notes_of_game(ls.Game("signals", rare, EVERY, 8)) == []
        with pytest.raises(ValueError, match=r"by a fair coin, and \d+(\.\d)? % of the target points are members"):
            refuse_no_coins(ls.Game("signals", rare, EVERY, 8, sampling="poisson"))

    def test_halves_that_are_said_to_be_coins_are_refused(self) -> None:
        with pytest.raises(ValueError, match=r"all 8 models have exactly 150 members, as coins hardly ever give"):
            refuse_no_coins(ls.Game("signals", HALVES, EVERY, 8, sampling="poisson"))

    def test_coins_are_refused_with_a_probability_of_a_billionth(self) -> None:
        for seed in range(200):
            refuse_no_coins(ls.games.half_split(2 + seed % 5, 2 + seed % 7, seed=seed, sampling="poisson"))

    def test_more_models_than_records(self) -> None:
        notes = notes_of_game(ls.Game("signals", COINS.T, np.ones(8, dtype=bool), 300, sampling="poisson"))
        assert notes[0].startswith("There are more models (300, the first axis of member) than records (8, the second)")


def test_sampling_says_whose_epsilon_is_tested() -> None:
    said, unit = {}, {}
    for sampling in ("fixed", "poisson"):
        game = ls.Game("signals", COINS[:4], EVERY, 4, sampling=sampling)
        report = ls.audit_signals(ls.Signals(game, None, {"loss": LOSS[:4]}), attacks=["loss"])
        said[sampling] = "say sampling='poisson'" in " ".join(report.about.notes)
        unit[sampling] = next(each.detail["unit"] for each in report.findings if each.quantity == "epsilon")
    assert said == {"fixed": True, "poisson": False}
    assert unit == {"fixed": "pairs of records", "poisson": "coins_of_records"}


def test_sets_of_their_own_sizes_are_a_valid_test_of_coins() -> None:
    """Without a leak the bound is above 0 with a probability of 5 %: more than 7 of 60 times with one of .01."""
    n_above = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        member = rng.random((1, 200)) < 0.5
        n_above += (
            ls.metrics.epsilon_lower(ls.Scores("noise", rng.normal(size=(1, 200)), member), method="pairs").value > 0
        )
    assert n_above <= 7


def test_the_flag_and_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    draw_no_pages(monkeypatch)
    run = caller(monkeypatch, capfd)
    np.savez("signals.npz", member=COINS, loss=LOSS)
    assert run("audit signals signals.npz --sampling poisson --attack loss --n-jobs 1 --out out").code == 0
    about = ls.Report.from_json("out/report.json").about.model_dump()
    assert about["releases"][0]["sampling"] == "poisson"
    with ls.write_blocks("folder", n_models=len(COINS)) as write:
        write(COINS.T, {"loss": LOSS.T})
    assert run("audit signals folder --sampling poisson --attack loss --n-jobs 1 --out there").code == 0
    assert ls.Report.from_json("there/report.json").about.model_dump()["releases"][0]["sampling"] == "poisson"


def test_coins_of_many_models_are_not_called_one_run() -> None:
    member = np.random.default_rng(0).random((200, 1)) < 0.5
    scores = ls.Scores("mine", np.random.default_rng(1).normal(2.0 * member), member)
    bound = ls.metrics.epsilon_lower(scores, method="coins", independent=True)
    assert (bound.method[0].id, bound.method[0].values["runs"]) == ("several_runs", 200)
    one = ls.metrics.epsilon_lower(ls.Scores("mine", scores.value.T, member.T), method="coins")
    assert (one.method[0].id, one.value) == ("one_run", bound.value)
