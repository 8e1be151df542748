"""What it is worth to an attacker to know the pool of an audit: ``python -m benchmarks.known_pool``.

The data are texts of 200 pairs of letters, drawn independently from one distribution over the 26 x 26 pairs; a model is
the table of the pairs in 200 texts, counted and smoothed. Three attackers guess which texts are in:

* LiRA in an audit: 400 texts, each model counts a random half of them, and is compared with the others;
* LiRA of an attacker who draws other texts: each model of the target text, with it or without, counts texts of its own;
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

LENGTH = 200  # pairs in a text
SMOOTHED = 0.5  # added to each count


@dataclass(frozen=True)
class Measured:
    """The area under the curve of each attacker, mean over the models, with a 95 % interval."""

    in_the_pool: Finding
    fresh_others: Finding
    distribution_alone: Finding


def measure(n_texts: int = 400, n_letters: int = 26, n_models: int = 64, seed: int = 0) -> Measured:
    """Play the game in the pool and with fresh texts."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(n_letters**2, 2.0))
    texts = rng.multinomial(LENGTH, theta, size=n_texts)
    game = ls.games.half_split(n_texts, n_models, seed=seed)
    in_half = game.member.astype(int)
    n_others = n_texts // 2 - in_half  # the model has half of the texts, with the target text or without

    loss_in_the_pool = _loss(texts, (in_half @ texts)[:, None, :])
    loss_of_fresh = np.empty(in_half.shape)
    ratio = np.empty(in_half.shape)
    for model in range(n_models):
        counts = rng.multinomial(n_others[model] * LENGTH, theta) + in_half[model][:, None] * texts
        loss_of_fresh[model] = _loss(texts, counts[None])[0]
        ratio[model] = _log_ratio(texts, counts, theta)
    return Measured(
        _auc(game, {"log_odds": _log_odds(loss_in_the_pool)}, "lira"),
        _auc(game, {"log_odds": _log_odds(loss_of_fresh)}, "lira"),
        _auc(game, {"loss": ratio.max() - ratio}, "loss"),  # a loss is not negative, and low for members
    )


def _loss(texts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Compute the mean loss of each text under the smoothed counts, shape (models, texts)."""
    smoothed = counts + SMOOTHED
    log_p = np.log(smoothed / smoothed.sum(axis=-1, keepdims=True))
    return -(texts * log_p).sum(axis=-1) / LENGTH


def _log_odds(loss: np.ndarray) -> np.ndarray:
    return -loss - np.log(-np.expm1(-loss))


def _log_ratio(texts: np.ndarray, counts: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Log likelihood ratio of each text; -inf where a pair was counted less often than the text has it."""
    total = counts.sum(axis=-1)
    possible = (counts >= texts).all(axis=-1)
    falling = gammaln(counts + 1) - gammaln(np.maximum(counts - texts, 0) + 1)
    log_ratio = falling.sum(axis=-1) - gammaln(total + 1) + gammaln(total - LENGTH + 1) - texts @ np.log(theta)
    return np.where(possible, log_ratio, -1e6)


def _auc(game: ls.Game, signals: dict[str, np.ndarray], attack: str) -> Finding:
    report = ls.audit_signals(ls.Signals(game, None, signals), attacks=[attack])
    return next(finding for finding in report.findings if (finding.quantity, finding.attack) == ("auc", attack))


def main() -> None:
    """Print the three areas."""
    measured = measure()
    for title, finding in (
        ("LiRA, references from the pool", measured.in_the_pool),
        ("LiRA, references from other texts", measured.fresh_others),
        ("best attacker who knows the distribution alone", measured.distribution_alone),
    ):
        print(f"{title:<48}{finding.value:.3f} ({finding.low:.3f} to {finding.high:.3f})")


if __name__ == "__main__":
    main()
