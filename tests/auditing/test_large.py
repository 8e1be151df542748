"""An audit of signals in files against that of the same signals in memory: the same findings, curves and records."""

import json
import os
import stat
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

import leakbound as ls
from leakbound.core import block_signals
from leakbound.metrics import stored
from leakbound.reports.report import MOST_RECORDS
from tests.attacks.test_by_block import written
from tests.marks import nightly

ATTACKS = ("gap", "confidence", "loss", "entropy", "mast", "lira", "rmia")


@pytest.fixture
def small_pieces(monkeypatch):
    from leakbound.attacks import blocks

    monkeypatch.setattr(blocks, "_ENTRIES", 1 << 12)
    monkeypatch.setattr(block_signals, "BLOCK", 1 << 12)
    monkeypatch.setattr(stored, "RUN", 4096)
    monkeypatch.setattr(stored, "PIECE", 300)
    monkeypatch.setattr(stored, "STREAM", 700)


@pytest.fixture
def ranks_of_float32(monkeypatch):
    """Round the scores of RMIA in memory as files do: the rest of an audit is then the same."""
    from leakbound.attacks import rmia

    exact = rmia.rmia
    monkeypatch.setattr(rmia, "rmia", lambda signals: exact(signals).astype(np.float32))


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


def assert_same_reports(found, expected):
    def rows(report):
        of_all = [finding for finding in report.findings if finding.scope.kind != "group"]
        return [asdict(finding) for finding in of_all if finding.quantity != "epsilon"]

    for one, other in zip(rows(found), rows(expected), strict=True):
        assert one.keys() == other.keys()
        for name, value in other.items():
            if isinstance(value, float):
                assert one[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name
            elif name == "detail":
                assert one[name] == pytest.approx(value, rel=1e-9, abs=1e-12)
            else:
                assert one[name] == value, name
    for one, other in zip(found.curves, expected.curves, strict=True):
        assert (one.name, one.role, one.n_nonmember) == (other.name, other.role, other.n_nonmember)
        assert np.array_equal(one.tradeoff.at, other.tradeoff.at)
        assert np.array_equal(one.tradeoff.value, other.tradeoff.value)
        for name in ("band_fpr", "low", "high"):
            assert np.allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-12)
    facts, reference = found.about.releases[0].model_dump(), expected.about.releases[0].model_dump()
    in_files, in_memory = facts.pop("groups"), reference.pop("groups")
    assert facts == reference
    assert in_files["reason"]["id"] == "no_groups_of_files"  # their labels are known
    assert in_memory["groups"]


@pytest.mark.parametrize(
    ("n_models", "n_points", "n_targets", "n_population"),
    [
        (6, 300, 2, 50),
        *(pytest.param(*sizes, marks=pytest.mark.slow) for sizes in ((1, 400, 1, 0), (2, 400, 2, 0))),
        nightly(8, 1500, 8, 200),
        nightly(16, 500, 16, 0),
    ],
)
def test_findings_are_those_in_memory(
    tmp_path, small_pieces, ranks_of_float32, n_models, n_points, n_targets, n_population
):
    signals = signals_of(n_models, n_models, n_points, n_targets, n_population)
    folder = tmp_path / "signals"
    written(signals, folder, given_targets=True)
    expected = ls.audit_signals(signals, fpr=(0.1, 0.01), prior=0.3)
    found = ls.audit_signals(folder, fpr=(0.1, 0.01), prior=0.3)
    assert_same_reports(found, expected)
    assert not (tmp_path / "tmp").exists()
    if expected.record_table:
        shown, reference = pd.DataFrame(found.record_table), pd.DataFrame(expected.record_table)
        columns = ["record", "games", "won", "low", "exposed"]
        assert shown[columns].equals(reference[columns])
        assert np.allclose(shown["margin"], reference["margin"], rtol=1e-5, atol=1e-5)
    epsilon = next(finding for finding in found.findings if finding.quantity == "epsilon")
    assert epsilon.value is None
    assert epsilon.reason is not None
    assert epsilon.reason.id == "claims_in_files"


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_table_has_all_records(tmp_path, small_pieces, ending):
    signals = signals_of(1, 8, 1800, 8, 100)
    written(signals, tmp_path / "signals", given_targets=True)
    path = tmp_path / "out" / f"records.{ending}"
    report = ls.audit_signals(tmp_path / "signals", attacks=["loss", "lira"], all_records=path)
    table = pd.read_parquet(path) if ending == "parquet" else pd.read_csv(path)
    expected = ls.audit_signals(signals, attacks=["loss", "lira"]).records()
    assert len(table) == 1700 == len(expected)
    for column in ("release", "record", "games", "won", "exposed"):
        assert table[column].tolist() == expected[column].tolist(), column
    assert np.allclose(table["low"], expected["low"], rtol=1e-12)
    assert np.allclose(table["margin"], expected["margin"], rtol=1e-5, atol=1e-5)
    assert sorted(os.listdir(path.parent)) == [path.name]
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    worst = expected.sort_values(["won", "margin"], ascending=False, kind="stable").head(MOST_RECORDS)
    assert sorted(report.record_table["record"]) == sorted(worst["record"])


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
    assert f"{n_tied:,} records tie at 24 of 24" in report.to_html()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"claims": "eta=0.1"}, "claims is for signals in memory"),
        ({"policy": "research"}, "policy is for signals in memory"),
        ({"slices": {"a": np.zeros(300)}}, "slices is for signals in memory"),
        ({"ids": np.arange(300)}, "ids is for signals in memory"),
        ({"attacks": ["quantile"]}, "'quantile' cannot run: quantile learns from all points at once"),
        ({"attacks": ["gap"]}, "'gap' cannot run: needs the signal correct"),
        ({"attacks": [lambda signals: 0]}, "needs a name"),
        ({"all_records": "records.txt"}, r"must end in \.parquet or \.csv"),
    ],
)
def test_what_is_not_done_is_said_in_one_line(tmp_path, words, message):
    rng = np.random.default_rng(0)
    member = rng.random((300, 4)) < 0.5
    with ls.write_blocks(tmp_path / "signals", n_models=4) as write:
        write(member, {"loss": rng.exponential(size=member.shape)})
    with pytest.raises(ValueError, match=message) as refused:
        ls.audit_signals(tmp_path / "signals", **words)
    assert "\n" not in str(refused.value)


def test_keywords_of_folders_are_refused_for_signals_in_memory(tmp_path):
    with pytest.raises(ValueError, match="these are in memory"):
        ls.audit_signals(signals_of(0, 4, 100, 4), all_records=tmp_path / "records.csv")


def test_wrong_values_leave_nothing_behind(tmp_path):
    member = np.random.default_rng(0).random((300, 4)) < 0.5
    with ls.write_blocks(tmp_path / "signals", n_models=4) as write:
        write(member, {"loss": np.where(member, -1.0, 1.0)})
    with pytest.raises(ValueError, match="signal 'loss' is -log p"):
        ls.audit_signals(tmp_path / "signals", all_records=tmp_path / "out" / "records.csv")
    assert sorted(os.listdir(tmp_path)) == ["signals"]


@nightly
def test_a_million_points_take_little_memory_and_small_files(tmp_path):
    """1,000,000 points of 16 models; the slopes up to 30,000,000 are printed by benchmarks.large_signals."""
    from benchmarks.large_signals import in_own_process

    row = in_own_process(tmp_path, 1_000_000, 16)
    assert row["peak_bytes"] < 1e9
    assert max(row["json_bytes"], row["page_bytes"]) < 5e6
    assert row["table_bytes"] < 50e6


@pytest.mark.slow
def test_small_audits_are_measured_by_the_benchmark(tmp_path):
    from benchmarks.large_signals import measured

    row = measured(tmp_path, 3000, 16)
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
    with pytest.raises(ValueError, match=rf"signals, points {0 if place < 10 else 10} to {9 if place < 10 else 59}: "):
        ls.audit_signals(tmp_path / "signals", attacks=["loss"])
