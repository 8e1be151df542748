"""Algorithms 5 to 7 (Appendix D): DP-SGD is audited in one run.

Algorithm 5 plants canaries, each in the training data by a fair coin, and guesses the coins from all steps of one
training (Steinke, Nasr & Jagielski 2023). Algorithm 6 takes as canaries the records whose clipped gradients have the
largest Mahalanobis distance, by their ranks summed over the steps of a training without them. Algorithm 7 scores a
canary by the largest v_t of all steps.

The covariance of the gradients needs the noise of a step to have an inverse, and the likelihood ratio is the sum of
log(1 - q + q e^v_t) over the steps (erratum 12).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np

import leakbound as ls
from leakbound.papers import data

KINDS = ("dirac", "mahalanobis", "random")
DELTA, CONFIDENCE = 1e-5, 0.95
RATE = 0.05  # q
Kind = Literal["dirac", "mahalanobis", "random"]


def audited(
    kind: Kind, noise_multiplier: float, steps: int, n_images: int, n_canaries: int, seed: int
) -> dict[str, float]:
    """`one_run` on images of MNIST that the seed draws."""
    from leakbound.papers.azize2024.networks import shallow

    images = data.images("mnist")
    drawn = ls.seeds.stream(seed, "images").choice(images.n_train, n_images, replace=False)
    dpsgd = ls.dpsgd.DpSgd(noise_multiplier, sample_rate=RATE, steps=steps)
    points = ls.data.from_arrays(images.x[drawn], images.y[drawn])
    return one_run(points, ls.dpsgd.PrivateNetwork(shallow, dpsgd), kind, n_canaries, seed)


def one_run(
    points: ls.Points, release: ls.dpsgd.PrivateNetwork, kind: Kind, n_canaries: int, seed: int
) -> dict[str, float]:
    """AUC of each score, bounds of epsilon, and accuracy on records that are in anyhow (azize2024, Algorithm 5).

    Whoever audits their own training knows which other records are in a batch: so does the attacker here, for all
    canaries. Algorithm 7 has reference gradients alone; some hundred of them understate the covariance of many
    thousand records, and the sum is no likelihood ratio any more. It is `leakbound.audit` with ``game="canaries"`` and
    ``knowledge="others"``, and one score more.
    """
    steps = {} if kind == "random" else {"release": release}
    planted = getattr(ls.dpsgd.canaries, kind)(points, n_canaries, seed, **steps)
    game = ls.games.canaries(len(planted.points), planted.numbers, 1, seed=seed)
    want = ["step_dot", "step_norm", "loss", "correct"]
    seeds = np.array([ls.seeds.integer(seed, "train", 0)])
    watched = replace(planted.watched_by(release), knowledge="others")
    signals = watched.observe(planted.points, game.member, seeds, want)
    attack_scores = dict(scores(ls.Signals(game, None, signals), release.dpsgd.sample_rate, records=kind != "dirac"))
    auc = {f"auc_{name}": ls.metrics.auc(score).value for name, score in attack_scores.items()}
    lower = {f"lower_{name}": value for name, value in lower_bounds(attack_scores["ratio"], release.dpsgd).items()}
    return {**auc, **lower, "accuracy": float(signals["correct"][0, ~game.is_target_point].mean())}


def scores(signals: ls.Signals, rate: float, *, records: bool) -> Iterator[tuple[str, ls.Scores]]:
    """Yield the likelihood ratio of all steps, the largest step and, of canaries that are records, the loss."""
    member = signals.game.target_member
    yield "ratio", ls.attacks.ATTACKS["likelihood_ratio"].with_parameters(rate=rate)(signals)
    v = signals.targets("step_dot") - signals.targets("step_norm") / 2
    yield "largest", ls.Scores("largest step", v.max(axis=2), member, "azize2024, Algorithm 7")
    if records:
        yield "loss", ls.attacks.ATTACKS["loss"](signals)


def lower_bounds(scored: ls.Scores, dpsgd: ls.dpsgd.DpSgd) -> dict[str, float]:
    """Of epsilon at delta: of any guarantee, and of DP-SGD with this rate, these steps and some noise."""
    evidence = ls.metrics.evidence(scored, "coins")

    def family(inverse: float) -> ls.tradeoff.TradeOff:
        return ls.bounds.dpsgd_tradeoff(1 / inverse, dpsgd.sample_rate, dpsgd.steps, "add_remove")

    least = ls.metrics.family_lower(evidence, family, CONFIDENCE, tolerance=0.01).value
    return {
        "any": ls.metrics.epsilon_lower(scored, DELTA, CONFIDENCE, "coins").value,
        "noise": family(least).epsilon(DELTA) if least > 0 else 0.0,
    }
