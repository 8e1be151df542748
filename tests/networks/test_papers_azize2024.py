"""Algorithms 5 to 7 of azize2024 on digits, against the public audit and by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_digits

import leakbound as ls
from leakbound.core.findings import Term
from leakbound.dpsgd.canaries import dirac, mahalanobis, random
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.network import PrivateNetwork
from leakbound.papers import data, figures
from leakbound.papers.azize2024 import canaries
from leakbound.papers.azize2024.networks import shallow
from leakbound.papers.azize2024.one_run import DELTA, KINDS, audited, lower_bounds, one_run, scores

DPSGD = DpSgd(noise_multiplier=0.8, sample_rate=0.2, steps=20)
CHOSEN = {
    "dirac": lambda points, release: dirac(points, 60, 3, release=release),
    "mahalanobis": lambda points, release: mahalanobis(points, 60, 3, release=release),
    "random": lambda points, _: random(points, 60, 3),
}


@pytest.fixture(scope="module")
def digits() -> ls.Points:
    X, y = load_digits(return_X_y=True)
    return ls.data.from_arrays(X[:400].astype(np.float32) / 16, y[:400])


@pytest.fixture(scope="module")
def release() -> PrivateNetwork:
    return PrivateNetwork(shallow, DPSGD, {"inputs": 64, "width": 8})


def signals(dot, norm, member) -> ls.Signals:
    """Of one model and several canaries: arrays of shape (canaries, steps)."""
    game = ls.Game("canaries", np.array([member]), np.ones(len(member), dtype=bool), 1)
    loss = np.arange(len(member), dtype=float)[None]
    return ls.Signals(game, None, {"step_dot": np.array([dot]), "step_norm": np.array([norm]), "loss": loss})


def test_the_network_has_25450_parameters():
    network = shallow()
    assert sum(each.numel() for each in network.parameters()) == 784 * 32 + 32 + 32 * 10 + 10
    assert network(torch.zeros(3, 28, 28)).shape == (3, 10)


def test_dirac_canaries_are_far_from_what_a_step_releases(digits, release):
    """Appendix D: in each step every one of them is farther than every record, and nearly as far as a gradient can be.

    No gradient within the clipping norm has a squared distance above 1/sigma^2, which the noise alone would give.
    """
    release, squares = replace(release, dpsgd=replace(DPSGD, steps=5)), {}
    for name in ("dirac", "random"):
        chosen = CHOSEN[name](digits, release)
        game = ls.games.canaries(len(chosen.points), chosen.numbers, 1, seed=0)
        seen = chosen.watched_by(release).observe(chosen.points, game.member, np.array([0]), ["step_norm"])
        squares[name] = seen["step_norm"][0, chosen.numbers]
        assert squares[name].shape == (60, 5)
    most = 1 / DPSGD.noise_multiplier**2
    assert (squares["random"].max(axis=0) < squares["dirac"].min(axis=0)).all()
    assert squares["dirac"].max() < most * (1 + 1e-5)
    assert np.median(squares["dirac"]) > 0.9 * most > 2 * 0.9 * np.median(squares["random"])


def test_scores_by_hand():
    dot, norm = [[1.0, 4.0], [2.0, 0.0]], [[2.0, 2.0], [2.0, 2.0]]
    made = dict(scores(signals(dot, norm, [True, False]), 0.25, records=True))
    assert made["largest"].value.tolist() == [[3.0, 1.0]]
    odds = [np.log(0.75 + 0.25 * np.exp(v)) for v in (0.0, 3.0, 1.0, -1.0)]
    assert made["ratio"].value[0] == pytest.approx([odds[0] + odds[1], odds[2] + odds[3]])
    assert made["loss"].value.tolist() == [[0.0, -1.0]]
    assert "loss" not in dict(scores(signals(dot, norm, [True, False]), 0.25, records=False))


def test_bounds_by_hand():
    """Of any guarantee: n right guesses of n coins have the probability (1 + e^-epsilon)^-n at delta = 0."""
    member = np.arange(200) % 2 == 0
    nothing = lower_bounds(ls.Scores("", np.zeros((1, 200)), member[None]), DPSGD)
    assert nothing == {"any": 0.0, "noise": 0.0}
    everything = lower_bounds(ls.Scores("", 1.0 * member[None], member[None]), DPSGD)
    most = -np.log(0.05 ** (-1 / 200) - 1)
    assert 0.7 * most < everything["any"] < most  # a few numbers of guesses are tried, and delta is not 0
    assert everything["noise"] > everything["any"]


def of_attack(report: ls.Report) -> dict[tuple[str, str, bool], float | None]:
    """Findings by quantity, side, and whether they are of the whole curve; without those step by step."""
    found = [each for each in report.findings if Term("step_by_step") not in each.method]
    return {(each.quantity, each.bound_type, Term("whole_curve") in each.method): each.value for each in found}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_one_run_step_by_step(digits, release, kind):
    found = one_run(digits, release, kind, 60, seed=3)
    planted = CHOSEN[kind](digits, release)
    game = ls.games.canaries(len(planted.points), planted.numbers, 1, seed=3)
    want = ["step_dot", "step_norm", "loss", "correct"]
    watched = replace(planted.watched_by(release), knowledge="others")
    seen = ls.signals_of(watched, planted.points, game, want, seed=3, n_jobs=1)
    known = of_attack(
        ls.audit_signals(seen, attacks=[ls.attacks.ATTACKS["likelihood_ratio"].with_parameters(rate=0.2)])
    )
    assert found["auc_ratio"] == pytest.approx(known["auc", "point", False], abs=1e-3)  # these signals are float32
    assert found["lower_any"] == pytest.approx(known["epsilon", "lower", False], abs=1e-3)
    assert ("auc_loss" in found) == (kind != "dirac")
    assert found["accuracy"] == pytest.approx(seen.arrays["correct"][0, ~game.is_target_point].mean())


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_one_run_is_the_audit(digits, release, kind):
    found = one_run(digits, release, kind, 60, seed=3)
    words = {"game": ls.Canaries(kind, n=60, knowledge="others"), "attacks": ["likelihood_ratio"]}
    known = of_attack(ls.audit(release, digits.x, digits.y, seed=3, n_jobs=1, **words))
    assert found["auc_ratio"] == pytest.approx(known["auc", "point", False], abs=1e-3)
    assert found["lower_any"] == pytest.approx(known["epsilon", "lower", False], abs=1e-3)
    assert found["lower_noise"] == pytest.approx(known["epsilon", "lower", True], abs=0.05)


def test_images_are_drawn_by_the_seed(monkeypatch):
    pixels = np.random.default_rng(0).integers(0, 256, (320, 28, 28), dtype=np.uint8)
    monkeypatch.setattr(data, "images", lambda name: data.Images(pixels, np.arange(320) % 10, 300))
    found = [audited("random", 1.0, 2, 100, 20, seed) for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]


def test_the_noise_keeps_epsilon():
    noise = canaries.multiplier(2.0, 50)
    assert 1.99 < ls.bounds.dpsgd_tradeoff(noise, 0.05, 50, "add_remove").epsilon(DELTA) <= 2.0


@pytest.fixture
def numbers() -> pd.DataFrame:
    """Two runs at two epsilons: AUC .6 of random canaries, .7 and .8 of others, less .1 for the largest step."""
    rows = []
    for shift, kind in zip((0.2, 0.1, 0.0), KINDS, strict=True):
        for epsilon in (1.0, 8.0):
            for run in (0, 1):
                auc = 0.6 + shift + 0.02 * run * (kind == "dirac") + 0.001 * epsilon
                made = {"auc_ratio": auc, "auc_largest": auc - 0.1, "lower_any": 0.1 * epsilon, "lower_noise": 0.2}
                made |= {} if kind == "dirac" else {"auc_loss": 0.55}
                rows += [
                    {"canaries": kind, "epsilon": epsilon, "run": run, "quantity": name, "value": value}
                    for name, value in made.items()
                ]
    return pd.DataFrame(rows)


def test_claims_by_hand(numbers):
    found = canaries.claims(numbers)
    assert (found["mahalanobis_beats_random"].value, found["mahalanobis_beats_random"].error) == pytest.approx((0.1, 0))
    assert (found["dirac_beats_random"].value, found["dirac_beats_random"].error) == pytest.approx((0.21, 0.01))
    assert found["printed_score"].value == pytest.approx(0.1)
    assert canaries.claims(numbers, "fewer")["printed_score"].smaller == "fewer"


def test_axes_have_labels_and_legends(numbers):
    with figures.looking():
        figure = canaries.draw(numbers)
    assert len(figure.axes) == 6
    assert all(ax.get_xlabel() and ax.get_ylabel() and ax.get_title("left") and ax.get_legend() for ax in figure.axes)
    by_score = [len(ax.get_legend().get_texts()) for ax in figure.axes[3:]]
    assert by_score == [2, 3, 3]
    assert len(figures.as_bytes(figure, "png")) > 10_000
