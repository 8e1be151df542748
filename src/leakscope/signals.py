"""What one can see of a release at a point.

Letters of the axes: M models, N points, K classes, S steps, P parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class SignalKind:
    """What a signal means: its axes, its unit, and a sentence."""

    axes: tuple[str, ...]
    unit: str
    meaning: str


SIGNALS: Mapping[str, SignalKind] = MappingProxyType(
    {
        "loss": SignalKind(
            ("M", "N"),
            "nats",
            "-log p(true label); for a regressor (y - f)^2 / (2 s^2), s the standard deviation of y",
        ),
        "log_odds": SignalKind(
            ("M", "N"),
            "nats",
            "log p(true label) - log(1 - p(true label)); the margin of the true label where a model has no "
            "probabilities",
        ),
        "correct": SignalKind(("M", "N"), "0 or 1", "the predicted label is the true one"),
        "logits": SignalKind(("M", "N", "K"), "nats", "log-probability of each class, the true label's first"),
        "dot": SignalKind(
            ("M", "N"),
            "squared units of the data",
            "(z - mu).(output - mu), the point and a released vector around the mean of the law",
        ),
        "step_dot": SignalKind(
            ("M", "N", "S"),
            "nats",
            "D^T C^-1 (u - mu) at each step: u is what was released, N(mu, C) without the point, moved by D with it",
        ),
        "step_norm": SignalKind(("M", "N", "S"), "nats", "D^T C^-1 D at each step, the square of the moved distance"),
        "step_noise": SignalKind(
            ("M", "N", "P"),
            "1",
            "sum over the steps of |w|^2/(sigma c)^2, w the released sum of a batch less what is known of it, and how "
            "many numbers these w are: its mean if they were the claimed noise alone; the same at every watched point",
        ),
        "gradient_norm": SignalKind(
            ("M", "N"), "nats a unit of the parameters", "Euclidean norm of the gradient of the loss at the point"
        ),
        "taylor": SignalKind(
            ("M", "N", "P"),
            "nats",
            "(theta - theta0).g and g^T H^-1 g: parameters around those of models that know nothing of the game, "
            "g the gradient of the point's loss there, H the Hessian of the training loss",
        ),
    }
)
