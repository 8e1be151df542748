"""An audit of signals in files: memmaps in place of arrays in memory."""

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

import leakbound as ls
from leakbound.core import on_disk
from leakbound.files.signal_files import write_blocks
from leakbound.metrics.ranked import RankedScores
from leakbound.reports.report import MOST_RECORDS
from tests.marks import nightly


@pytest.fixture
def small_pieces(monkeypatch):
    """Work goes through the files in many pieces."""
    from leakbound.attacks import blocks

    monkeypatch.setattr(blocks, "_ENTRIES", 1 << 12)
    monkeypatch.setattr(on_disk, "BLOCK", 1 << 10)
    monkeypatch.setattr(RankedScores.__init__, "__defaults__", (300,))


def written(signals, folder, size=83):
    """Write signals in memory to a folder."""
    game = signals.game
    with write_blocks(folder, n_models=game.n_models, n_targets=game.n_targets) as write:
        for start in range(0, game.member.shape[1], size):
            points = slice(start, start + size)
            arrays = {name: array[:, points].swapaxes(0, 1) for name, array in signals.arrays.items()}
            labels = None if signals.labels is None else signals.labels[points]
            write(game.member[:, points].T, arrays, labels, game.is_target_point[points])


def signals_of(seed, n_models, n_points, n_targets, n_population=0):
    rng = np.random.default_rng(seed)
    member = rng.random((n_models, n_points)) < 0.5
    is_target = np.arange(n_points) >= n_population
    member[:, ~is_target] = False
    labels = rng.integers(3, size=n_points)
    logits = rng.normal(size=(n_models, n_points, 3)).astype(np.float32)
    logits[:, np.arange(n_points), labels] += 1 + member
    log_prob = (logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))).astype(np.float32)
    game = ls.Game("signals", member, is_target, n_targets)
    prior = float(game.target_member.mean())
    game = ls.Game("signals", member, is_target, n_targets, prior)
    return ls.Signals(game, None, {"log_prob": log_prob}, labels)


@pytest.mark.parametrize(
    ("n_models", "n_points", "n_targets", "n_population"),
    [
        (6, 300, 2, 50),
        *(pytest.param(*sizes, marks=pytest.mark.slow) for sizes in ((1, 400, 1, 0), (2, 400, 2, 0))),
        nightly(8, 1500, 8, 200),
        nightly(16, 500, 16, 0),
    ],
)
def test_a_report_is_that_of_the_same_signals_in_memory(tmp_path, request, n_models, n_points, n_targets, n_population):
    signals = signals_of(n_models, n_models, n_points, n_targets, n_population)
    written(signals, tmp_path / "signals")
    words = {"fpr": (0.1, 0.01), "prior": 0.3, "claims": "epsilon=1,adjacency=replace_one"}
    expected = ls.audit_signals(signals, **words)
    request.getfixturevalue("small_pieces")
    found = ls.audit_signals(tmp_path / "signals", **words)
    for finding, reference in zip(found.findings, expected.findings, strict=True):
        one, other = ({**each, **each.pop("detail")} for each in map(asdict, (finding, reference)))
        assert one.keys() == other.keys()
        for name, value in other.items():
            assert one[name] == (pytest.approx(value, rel=1e-9, abs=1e-12) if isinstance(value, float) else value), name
    assert found.about.releases == expected.about.releases
    assert [curve.verdict for curve in found.curves] == [curve.verdict for curve in expected.curves]
    pd.testing.assert_frame_equal(found.records(details=True), expected.records(details=True))
    assert [path.name for path in tmp_path.iterdir()] == ["signals"]


def outcome(attack, signals):
    """Scores of an attack, or the reason why there are none."""
    try:
        return attack(signals).value
    except ls.NotApplicable as reason:
        return reason.reason


def test_every_attack_plays_on_memmaps(tmp_path, small_pieces):
    signals = signals_of(0, 6, 500, 6, 120)
    written(signals, tmp_path / "signals")
    files = ls.open_signals(tmp_path / "signals")
    outcomes = {
        attack.name: (outcome(attack, signals), outcome(attack, files)) for attack in ls.attacks.ATTACKS.values()
    }
    for name, (expected, found) in outcomes.items():
        if isinstance(expected, np.ndarray):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, err_msg=name)
        else:
            assert found == expected, name
    assert sum(isinstance(expected, np.ndarray) for expected, _ in outcomes.values()) >= 12


def test_scores_lie_where_the_signals_lie(tmp_path):
    """What is as large as the signals is not in memory."""
    signals = signals_of(0, 4, 200, 4, 30)
    written(signals, tmp_path / "signals")
    files = ls.open_signals(tmp_path / "signals")
    for name in ("gap", "confidence", "loss", "entropy", "mast", "mast_threshold", "lira", "lira_offline", "rmia"):
        assert on_disk.is_on_disk(ls.attacks.ATTACKS[name](files).value), name


@pytest.mark.slow
def test_a_report_in_memory_keeps_the_most_exposed_records(tmp_path):
    signals = signals_of(1, 6, 2500, 6)
    report = ls.audit_signals(signals, attacks=["loss"])
    frame, kept = report.records(), report.record_table
    assert len(frame) == 2500
    assert len(kept["record"]) == MOST_RECORDS
    worst = frame.sort_values(["won", "margin"], ascending=False, kind="stable").head(MOST_RECORDS)
    assert kept["record"] == sorted(worst["record"])
    assert sum(report.about.releases[0].games.won) == 2500
    report.to_json(tmp_path / "report.json")
    again = ls.Report.from_json(tmp_path / "report.json")
    assert again.records()["record"].tolist() == kept["record"]
    assert again.to_html() == report.to_html()


@pytest.mark.slow
def test_ties_on_the_page_are_those_of_all_records():
    rng = np.random.default_rng(0)
    member = rng.random((24, 1700)) < 0.5
    game = ls.Game("signals", member, np.ones(1700, dtype=bool), 24, 0.5)
    report = ls.audit_signals(
        ls.Signals(game, None, {"loss": rng.random(member.shape) + 2 * ~member}), attacks=["loss"]
    )
    n_tied = report.about.releases[0].games.won[24]
    assert n_tied > MOST_RECORDS
    assert f"At 24 of 24 correct guesses: {n_tied:,} records" in report.to_html()


def test_wrong_values_leave_nothing_behind(tmp_path):
    member = np.random.default_rng(0).random((300, 4)) < 0.5
    with ls.write_blocks(tmp_path / "signals", n_models=4) as write:
        write(member, {"loss": np.where(member, -1.0, 1.0)})
    with pytest.raises(ValueError, match="signal 'loss' is -log p") as refused:
        ls.audit_signals(tmp_path / "signals")
    assert "\n" not in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["signals"]


@nightly
def test_a_million_points_take_little_memory_and_small_files(tmp_path):
    """1,000,000 points of 16 models; the slopes up to 30,000,000 are printed by benchmarks.large_signals."""
    from benchmarks.large_signals import in_own_process

    row = in_own_process(tmp_path, 1_000_000, 16)
    assert row["peak_bytes"] < 0.6e9
    assert max(row["json_bytes"], row["page_bytes"]) < 5e6


@pytest.mark.slow
def test_small_audits_are_measured_by_the_benchmark(tmp_path):
    from benchmarks.large_signals import measured

    for in_memory in (False, True):
        row = measured(tmp_path, 3000, 16, in_memory=in_memory)
        assert row["points"] == 3000
        assert 0 < row["peak_bytes"] < 2e9
        assert json.loads(json.dumps(row)) == row
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", [3, 30])
def test_what_cannot_be_is_refused_wherever_it_stands(tmp_path, small_pieces, place):
    """Of the population (the first 10 points), too, which the attack by the loss does not read."""
    signals = signals_of(1, 4, 60, 4, n_population=10)
    loss = np.array(signals.array("loss"))
    loss[2, place] = np.nan
    member, is_target = signals.game.member, signals.game.is_target_point
    with ls.write_blocks(tmp_path / "signals", n_models=4) as write:
        write(member.T, {"loss": loss.T}, is_target_point=is_target)
    with pytest.raises(ValueError, match=r"signals, points 0 to 59: "):
        ls.audit_signals(tmp_path / "signals", attacks=["loss"])
