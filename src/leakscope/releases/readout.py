"""Signals from the outputs of a model: probabilities, margins or predictions at points with known labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int

Array = np.ndarray
TINIEST = 1e-12  # a loss is at most 27.6 nats


def probabilities(
    p: Float[Array, "N K"], label: Int[Array, " N"], want: Sequence[str]
) -> Mapping[str, Float[Array, "N ..."]]:
    """Compute loss, log-odds, correctness and log-probabilities of a classifier.

    Parameters
    ----------
    p : array of shape (N, K)
        Probabilities of the classes; rows sum to 1.
    label : int array of shape (N,)
        The column of the true class.
    want : sequence of str
        Names of signals.

    Returns
    -------
    mapping
        ``log_odds`` is log p_y - log sum of the others (Carlini et al. 2022, section V.C), which is exact where p_y is
        near 1; ``log_prob`` has the true label's class first. A probability of 0 is replaced by half of the smallest
        positive one: of a forest of 100 trees, 0 means "fewer than 1".

    Raises
    ------
    ValueError
        If the rows are not probabilities.
    """
    _check(p)
    floor = max(float(p[p > 0].min()) / 2, TINIEST)
    rows = np.arange(len(p))
    p_true = p[rows, label]
    others = p.copy()
    others[rows, label] = 0
    p_others = others.sum(axis=1)
    signals = {
        "loss": lambda: -np.log(np.clip(p_true, floor, 1)),
        "log_odds": lambda: np.log(np.maximum(p_true, floor)) - np.log(np.maximum(p_others, floor)),
        "correct": lambda: (p_true > others.max(axis=1)).astype(p.dtype),
        "log_prob": lambda: np.log(np.clip(np.column_stack([p_true, _without(p, label)]), floor, 1)),
    }
    return {name: signals[name]() for name in want if name in signals}


def margins(
    decision: Float[Array, "N ..."], label: Int[Array, " N"], want: Sequence[str]
) -> Mapping[str, Float[Array, " N"]]:
    """Compute the margin of the true class of a classifier without probabilities, in units of its decision function.

    Parameters
    ----------
    decision : array of shape (N,) or (N, K)
        Signed distance to the second class, or one value for each class.
    label : int array of shape (N,)
    want : sequence of str

    Returns
    -------
    mapping
        ``log_odds``: the true class's value minus the largest other one; ``correct``: whether it is positive.
    """
    if decision.ndim == 1:
        margin = np.where(label == 1, decision, -decision)
    else:
        rows = np.arange(len(decision))
        margin = decision[rows, label] - _without(decision, label).max(axis=1)
    signals = {"log_odds": margin, "correct": (margin > 0).astype(margin.dtype)}
    return {name: signals[name] for name in want if name in signals}


def predictions(
    f: Float[Array, " N"], y: Float[Array, " N"], scale: float, want: Sequence[str]
) -> Mapping[str, Float[Array, " N"]]:
    """Compute the squared loss of a regressor, (y - f)^2 / (2 scale^2): a Gaussian likelihood up to a constant.

    Parameters
    ----------
    f : array of shape (N,)
        Predictions.
    y : array of shape (N,)
        Responses.
    scale : float
        Standard deviation of y.
    want : sequence of str

    Returns
    -------
    mapping
        ``loss`` in nats.
    """
    return {"loss": (y - f) ** 2 / (2 * scale**2)} if "loss" in want else {}


def _without(values: Float[Array, "N K"], label: Int[Array, " N"]) -> Float[Array, "N K-1"]:
    """Return the columns of the other classes, in order."""
    keep = np.arange(values.shape[1])[None, :] != label[:, None]
    return values[keep].reshape(len(values), -1)


def _check(p: Float[Array, "N K"]) -> None:
    if p.ndim != 2 or p.shape[1] < 2:
        raise ValueError(f"probabilities must have shape (points, classes >= 2), got {p.shape}")
    if not np.isfinite(p).all():
        raise ValueError("probabilities have NaN or infinite values")
    if p.min() < -1e-6 or np.abs(p.sum(axis=1) - 1).max() > 1e-3:
        raise ValueError(
            f"rows must be probabilities: smallest entry {p.min():.3g}, row sums {p.sum(axis=1).min():.4g} to "
            f"{p.sum(axis=1).max():.4g}; apply softmax to logits first"
        )
