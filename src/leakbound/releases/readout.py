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
    """Compute loss, log-odds, correctness and log-probabilities of a classifier."""
    _check(p)
    # half of the smallest positive one stands for a probability of 0: of a forest of 100 trees that is "fewer than 1"
    floor = max(float(p[p > 0].min()) / 2, TINIEST)
    rows = np.arange(len(p))
    p_true = p[rows, label]
    others = p.copy()
    others[rows, label] = 0
    p_others = others.sum(axis=1)
    signals = {
        "loss": lambda: -np.log(np.clip(p_true, floor, 1)),
        # Carlini et al. 2022, section V.C; exact where p_y is near 1
        "log_odds": lambda: np.log(np.maximum(p_true, floor)) - np.log(np.maximum(p_others, floor)),
        "correct": lambda: (p_true > others.max(axis=1)).astype(p.dtype),
        "log_prob": lambda: _log_normalised(np.column_stack([p_true, _without(p, label)]), floor),
    }
    return {name: signals[name]() for name in want if name in signals}


def margins(
    decision: Float[Array, "N ..."], label: Int[Array, " N"], want: Sequence[str]
) -> Mapping[str, Float[Array, " N"]]:
    """Compute the margin of the true class of a classifier without probabilities, in units of its decision function."""
    if decision.ndim == 1:
        margin = np.where(label == 1, decision, -decision)
    else:
        rows = np.arange(len(decision))
        margin = decision[rows, label] - _without(decision, label).max(axis=1)
    signals = {"log_odds": margin, "correct": (margin > 0).astype(margin.dtype)}
    return {name: signals[name] for name in want if name in signals}


def several_probabilities(
    p: Sequence[Float[Array, "N _"]], label: Int[Array, "N L"], want: Sequence[str]
) -> Mapping[str, Float[Array, " N"]]:
    """Compute loss, log-odds and correctness of a classifier with several labels for each point."""
    for each in p:
        _check(each)
    # all labels of a point together, as if the model took them to be independent
    floor = max(min(float(each[each > 0].min()) for each in p) / 2, TINIEST)
    rows = np.arange(len(label))
    p_true = np.column_stack([each[rows, column] for each, column in zip(p, label.T, strict=True)])
    loss = -np.log(np.clip(p_true, floor, 1)).sum(axis=1)
    p_others = np.column_stack([_without(each, column).max(axis=1) for each, column in zip(p, label.T, strict=True)])
    signals = {
        "loss": lambda: loss,
        "log_odds": lambda: -loss - np.log(np.maximum(-np.expm1(-loss), floor)),
        "correct": lambda: (p_true > p_others).all(axis=1).astype(float),
    }
    return {name: signals[name]() for name in want if name in signals}


def several_margins(
    decision: Float[Array, "N L"], label: Int[Array, "N L"], want: Sequence[str]
) -> Mapping[str, Float[Array, " N"]]:
    """Compute the margin of a classifier with several labels of two values, without probabilities."""
    if decision.shape != label.shape or label.max() > 1:
        raise ValueError(f"margins of shape {decision.shape} do not fit {label.shape[1]} labels of two values")
    smallest = np.where(label == 1, decision, -decision).min(axis=1)
    signals = {"log_odds": smallest, "correct": (smallest > 0).astype(float)}
    return {name: signals[name] for name in want if name in signals}


def predictions(
    f: Float[Array, "N L"], y: Float[Array, "N L"], scale: Float[Array, " L"], want: Sequence[str]
) -> Mapping[str, Float[Array, " N"]]:
    """Compute the squared loss of a regressor, (y - f)^2 / (2 scale^2): a Gaussian likelihood up to a constant."""
    return {"loss": ((y - f) ** 2 / (2 * scale**2)).sum(axis=1)} if "loss" in want else {}


def _log_normalised(p: Float[Array, "N K"], floor: float) -> Float[Array, "N K"]:
    """Raise the zeros of each row, together by `floor`, and divide the row by its sum.

    They share it: with many classes, a floor for each would make a certain answer less probable than an unsure one.
    """
    is_low = p < floor
    n_low = is_low.sum(axis=1, keepdims=True)
    raised = np.where(is_low, floor / np.maximum(n_low, 1), p)
    return np.log(raised / raised.sum(axis=1, keepdims=True))


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
            f"{p.sum(axis=1).max():.4g}; apply softmax to logits, and divide rounded ones by the sum of their row"
        )
