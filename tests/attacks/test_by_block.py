"""Attacks on signals in files against the same attacks in memory: the same scores, to the last bit."""

import numpy as np
import pytest

from leakbound.attacks import ATTACKS
from leakbound.attacks.balance import design as design_in_memory
from leakbound.attacks.by_block import POINT_BY_POINT, design, score
from leakbound.core import block_signals
from leakbound.core.block_signals import BlockSignals, write_blocks
from leakbound.core.types import Game, NotApplicable, Signals

PLAYED = (*POINT_BY_POINT, "lira", "lira_offline", "rmia", "rmia_offline")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Several blocks with few points, in files as in memory."""
    from leakbound.attacks import blocks

    monkeypatch.setattr(blocks, "_ENTRIES", 1 << 9)
    monkeypatch.setattr(block_signals, "BLOCK", 1 << 9)


def written(signals, folder, *, given_targets=False, size=83):
    """Write signals in memory to a folder."""
    game = signals.game
    with write_blocks(folder, n_models=game.n_models, n_targets=game.n_targets) as write:
        for start in range(0, game.member.shape[1], size):
            points = slice(start, start + size)
            arrays = {name: array[:, points].swapaxes(0, 1) for name, array in signals.arrays.items()}
            labels = None if signals.labels is None else signals.labels[points]
            is_target = game.is_target_point[points] if given_targets else None
            write(game.member[:, points].T, arrays, labels, is_target)
    return BlockSignals(folder)


def drawn(rng, n_models, n_points, n_targets, n_population=0, n_classes=3):
    member = rng.random((n_models, n_points)) < 0.5
    population = rng.permutation(n_points)[:n_population]
    member[:, population] = False
    is_target = ~np.isin(np.arange(n_points), population)
    labels = rng.integers(n_classes, size=n_points)
    logits = rng.normal(size=(n_models, n_points, n_classes)).astype(np.float32) * 2
    logits[:, np.arange(n_points), labels] += 1 + member
    log_prob = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
    game = Game("signals", member, is_target, n_targets)
    return Signals(game, None, {"log_prob": log_prob.astype(np.float32)}, labels)


def in_memory(attack, signals):
    """Scores of an attack, and its reason if there are none."""
    try:
        return attack(signals).value, None
    except NotApplicable as reason:
        return None, reason.reason


def assert_same_scores(attack, signals, files, folder, **options):
    expected, reason = in_memory(attack, signals)
    if reason is not None:
        with pytest.raises(NotApplicable) as refused:
            score(attack, files, folder, **options)
        assert refused.value.reason == reason
        return
    with score(attack, files, folder, **options) as scores:
        parts = [value.copy() for value in scores.values()]
        member = [truth for _, truth in scores.blocks()]
    assert np.array_equal(np.concatenate(parts).T, expected.astype(np.float32))
    assert np.array_equal(np.concatenate(member).T, signals.game.target_member)
    assert not list(folder.iterdir())


@pytest.mark.parametrize(("n_models", "n_targets"), [(1, 1), (2, 2), (3, 1), (8, 8), (16, 16), (40, 7)])
@pytest.mark.parametrize("n_population", [0, 60])
def test_scores_are_those_in_memory(tmp_path, n_models, n_targets, n_population):
    signals = drawn(np.random.default_rng(n_models), n_models, 517, n_targets, n_population)
    files = written(signals, tmp_path / "signals", given_targets=True)
    folder = tmp_path / "scores"
    folder.mkdir()
    for name in PLAYED:
        assert_same_scores(ATTACKS[name], signals, files, folder)


@pytest.mark.parametrize("n_population", [0, 60])
def test_with_parameters_and_little_memory(tmp_path, n_population):
    signals = drawn(np.random.default_rng(1), 8, 400, 8, n_population)
    files = written(signals, tmp_path / "signals", given_targets=True)
    folder = tmp_path / "scores"
    folder.mkdir()
    for attack in (
        ATTACKS["lira"].with_parameters(variance="point"),
        ATTACKS["lira"].with_parameters(variance="pooled"),
        ATTACKS["rmia"].with_parameters(gamma=2.0),
        ATTACKS["rmia_offline"].with_parameters(a=1.0),
        ATTACKS["mast"].with_parameters(temperature=0.5),
    ):
        assert_same_scores(attack, signals, files, folder, memory=3000)


@pytest.mark.parametrize("n_targets", [8, 2])
def test_offline_rmia_chooses_its_slopes_at_the_same_sample(tmp_path, monkeypatch, n_targets):
    from leakbound.attacks import rmia

    monkeypatch.setattr(rmia, "_POINTS", 50)
    rng = np.random.default_rng(3)
    member, is_target = rng.random((8, 700)) < 0.5, np.arange(700) >= 60
    member[:, ~is_target] = False
    loss = rng.exponential(size=member.shape).astype(np.float32)  # of noise: every sample chooses another slope
    signals = Signals(Game("signals", member, is_target, n_targets), None, {"loss": loss})
    slopes = rmia.offline_slopes(signals)
    monkeypatch.setattr(rmia, "_POINTS", 10_000)
    assert not np.array_equal(rmia.offline_slopes(signals), slopes)  # the sample matters
    monkeypatch.setattr(rmia, "_POINTS", 50)
    files = written(signals, tmp_path / "signals", given_targets=True)
    folder = tmp_path / "scores"
    folder.mkdir()
    assert_same_scores(ATTACKS["rmia_offline"], signals, files, folder)


def test_of_given_target_points_and_a_loss_alone(tmp_path):
    rng = np.random.default_rng(4)
    member = rng.random((5, 300)) < 0.5
    is_target = rng.random(300) < 0.6
    loss = rng.exponential(size=(5, 300)).astype(np.float32)
    signals = Signals(Game("signals", member, is_target, 5), None, {"loss": loss})
    files = written(signals, tmp_path / "signals", given_targets=True)
    folder = tmp_path / "scores"
    folder.mkdir()
    for name in PLAYED:
        assert_same_scores(ATTACKS[name], signals, files, folder)


def test_a_block_whose_references_all_have_a_point_is_scored(tmp_path):
    """The references of other points lack theirs: the attack applies, as in memory."""
    rng = np.random.default_rng(0)
    member = rng.random((4, 200)) < 0.5
    member[1:, 128:] = True  # a whole block of 128 points
    loss = rng.exponential(size=member.shape).astype(np.float32)
    signals = Signals(Game("signals", member, np.ones(200, dtype=bool), 1), None, {"loss": loss})
    files = written(signals, tmp_path / "signals", given_targets=True)
    folder = tmp_path / "scores"
    folder.mkdir()
    for name in ("mast", "lira", "lira_offline", "rmia_offline"):
        assert_same_scores(ATTACKS[name], signals, files, folder)


@pytest.mark.parametrize("name", sorted(set(ATTACKS) - set(PLAYED)))
def test_others_say_that_they_are_not_played(tmp_path, name):
    files = written(drawn(np.random.default_rng(0), 4, 100, 4), tmp_path / "signals")
    with pytest.raises(NotApplicable, match="learns from all points at once"):
        score(ATTACKS[name], files, tmp_path)


@pytest.mark.parametrize("kind", ["independent", "constant count", "opposite", "equal"])
def test_designs_are_those_in_memory(tmp_path, kind):
    rng = np.random.default_rng(0)
    member = rng.random((6, 500)) < 0.5
    if kind == "constant count":
        member = np.argsort(rng.random((6, 500)), axis=0) < 3
    if kind == "opposite":
        member[5] = ~member[2]
    if kind == "equal":
        member[5] = member[2]
    loss = rng.exponential(size=member.shape).astype(np.float32)
    signals = Signals(Game("signals", member, np.ones(500, dtype=bool), 6), None, {"loss": loss})
    files = written(signals, tmp_path / "signals", given_targets=True)
    expected, found = design_in_memory(signals.game), design(files)
    assert (found is None) == (expected is None) == (kind == "independent")
    if found is None or expected is None:
        return
    assert np.array_equal(found.same, expected.same)
    assert (found.n_in, found.reason) == (expected.n_in, expected.reason)
    with pytest.raises(NotApplicable) as refused:
        score(ATTACKS["lira"], files, tmp_path)
    assert expected.reason is None or refused.value.reason == expected.reason
    score(ATTACKS["loss"], files, tmp_path).close()
