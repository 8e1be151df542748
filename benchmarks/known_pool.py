"""What it is worth to an attacker to know the pool of an audit: ``python -m benchmarks.known_pool``.

A text has 30 pairs of a context (20, uniform) and a token (40, with a distribution for each context that is drawn from
Dirichlet(.3)). A model counts the pairs of 200 texts; its probability of a token is (count + .1)/(count of the context
+ 4). Attackers guess which texts are in, by the mean log-probability of their tokens:

* LiRA in a half-split: 400 texts, each model counts a random half of them, and is compared with the others;
* LiRA in the game ``fresh``: 20 targets, and the rest of each 200 is drawn from 4,000 other texts;
* LiRA of an attacker who draws other texts: each model of a text, with it or without, counts texts of its own;
* the likelihood ratio of an attacker who knows the distribution alone. The counts of n texts are multinomial, so that

      P(counts | text is in) / P(counts | text is out)
          = prod_b C_b (C_b - 1) ... (C_b - c_b + 1) / [(nL) (nL - 1) ... (nL - L + 1) prod_b theta_b^(c_b)],

  with C_b how often pair b was counted, c_b how often the text has it, theta its distribution and L pairs in a text.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

import leakbound as ls
from leakbound.core.findings import Finding

LENGTH = 30  # pairs in a text
N_CONTEXTS, N_TOKENS = 20, 40
SMOOTHED = 0.1  # added to each count
N_COUNTED = 200  # texts in the data of a model
N_TARGETS, N_OTHERS = 20, 4000  # in the game fresh


@dataclass(frozen=True)
class Measured:
    """The area under the curve of each attacker, mean over the models, with a 95 % interval."""

    in_the_pool: Finding
    fresh_targets: Finding
    fresh_others: Finding
    distribution_alone: Finding
    distribution_alone_of_targets: Finding


def measure(n_models: int = 64, n_models_of_fresh: int = 256, seed: int = 0) -> Measured:
    """Play the game in the pool, with few targets, and with texts of its own for each guess."""
    rng = np.random.default_rng(seed)
    theta = (rng.dirichlet(np.full(N_TOKENS, 0.3), size=N_CONTEXTS) / N_CONTEXTS).ravel()
    texts = rng.multinomial(LENGTH, theta, size=2 * N_COUNTED)

    game = ls.games.half_split(len(texts), n_models, seed=seed)
    in_half = game.member.astype(int)
    loss_in_the_pool = _loss(texts, (in_half @ texts)[:, None, :])

    file = rng.multinomial(LENGTH, theta, size=N_TARGETS + N_OTHERS)
    with_targets = ls.games.fresh(len(file), n_models_of_fresh, targets=N_TARGETS, size=N_COUNTED, seed=seed)
    targets = file[with_targets.target_points]
    # the attacks read no other column, and the game of the targets alone is much smaller
    of_targets = ls.Game("fresh", with_targets.target_member, np.ones(N_TARGETS, dtype=bool), n_models_of_fresh)
    counts_with_targets = with_targets.member.astype(np.float64) @ file
    loss_at_targets = _loss(targets, counts_with_targets[:, None, :])
    ratio_at_targets = np.stack([_log_ratio(targets, counts[None], theta) for counts in counts_with_targets])

    # for each guess texts of its own: the target text, or one more other
    loss_of_fresh, ratio = np.empty(in_half.shape), np.empty(in_half.shape)
    for model in range(n_models):
        n_others = N_COUNTED - in_half[model]
        counts = rng.multinomial(n_others * LENGTH, theta) + in_half[model][:, None] * texts
        loss_of_fresh[model] = _loss(texts, counts)
        ratio[model] = _log_ratio(texts, counts, theta)
    return Measured(
        _auc(game, loss_in_the_pool, "lira"),
        _auc(of_targets, loss_at_targets, "lira"),
        _auc(game, loss_of_fresh, "lira"),
        _auc(game, ratio.max() - ratio, "loss"),  # a loss is not negative, and low for members
        _auc(of_targets, ratio_at_targets.max() - ratio_at_targets, "loss"),
    )


def _loss(texts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Compute minus the mean log-probability of the tokens of each text, shape (..., texts)."""
    by_context = counts.reshape(*counts.shape[:-1], N_CONTEXTS, N_TOKENS) + SMOOTHED
    log_p = np.log(by_context / by_context.sum(axis=-1, keepdims=True)).reshape(counts.shape)
    return -(texts * log_p).sum(axis=-1) / LENGTH


def _log_ratio(texts: np.ndarray, counts: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Log likelihood ratio of each text; far below all others where a pair was counted less often than in the text."""
    total = counts.sum(axis=-1)
    possible = (counts >= texts).all(axis=-1)
    falling = gammaln(counts + 1) - gammaln(np.maximum(counts - texts, 0) + 1)
    log_ratio = falling.sum(axis=-1) - gammaln(total + 1) + gammaln(total - LENGTH + 1) - texts @ np.log(theta)
    return np.where(possible, log_ratio, -1e6)


def _auc(game: ls.Game, loss: np.ndarray, attack: str) -> Finding:
    report = ls.audit_signals(ls.Signals(game, None, {"loss": loss}), attacks=[attack])
    return next(finding for finding in report.findings if (finding.quantity, finding.attack) == ("auc", attack))


def main() -> None:
    """Print the areas."""
    measured = measure()
    for title, finding in (
        ("LiRA, references from the pool", measured.in_the_pool),
        (f"LiRA, {N_TARGETS} targets, the rest drawn anew", measured.fresh_targets),
        ("LiRA, references from other texts", measured.fresh_others),
        ("best attacker who knows the distribution alone", measured.distribution_alone),
        (f"the same, {N_TARGETS} targets, the rest drawn anew", measured.distribution_alone_of_targets),
    ):
        print(f"{title:<48}{finding.value:.3f} ({finding.low:.3f} to {finding.high:.3f})")


if __name__ == "__main__":
    main()
