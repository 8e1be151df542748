"""What Figures 4 and 5 share: the loss, the likelihood attack, and the lower bound of Theorem 2 with it.

Theorem 2 takes a loss of at most 2 to be between -2 and 2. The loss here is never negative; between 0 and 2 the same
bound is twice as far above one half, and is drawn with the printed one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes

import leakbound as ls
from leakbound.papers import figures
from leakbound.papers.lab import mean_of, trials_of
from leakbound.papers.printed import Ours, all_above

THRESHOLD = 0.8  # of the likelihood attack
MOST = 2.0  # the loss
RANGES = {"bound": -MOST, "sharper": 0.0}  # and the least that the loss is said to be
TITLES = {
    "bound": "LB: lower bound, Theorem 2",
    "sharper": "LB with the loss in [0, 2] (ours)",
    "test_accuracy": "Acc: accuracy (right axis)",
}

LOOKS: dict[str, dict[str, Any]] = {  # the same in both figures
    "success": figures.STYLES[1],
    "bound": figures.STYLES[4],
    "sharper": {**figures.STYLES[5], "color": figures.OURS},
    "test_accuracy": figures.STYLES[6],
}


def squared_loss(log_p: np.ndarray) -> np.ndarray:
    """Squared distance of the probabilities from the one-hot label, in [0, 2] (delgrosso2021, Section 4.2).

    >>> squared_loss(np.log([[0.5, 0.25, 0.25]])).tolist()
    [0.375]
    """
    log_p = np.asarray(log_p, dtype=float)
    return np.expm1(log_p[..., 0]) ** 2 + np.exp(2 * log_p[..., 1:]).sum(axis=-1)


@dataclass(frozen=True, eq=False)
class Networks:
    """A number for each of M networks of one n."""

    success: np.ndarray
    gap: np.ndarray
    test_accuracy: np.ndarray

    @classmethod
    def of(cls, runs: Sequence[Mapping[str, Any]]) -> Networks:
        """Of runs that hold such numbers by name, as `membership_results` gives them."""
        success, gap, accuracy = (
            np.array([run[name] for run in runs], dtype=float) for name in ("success", "gap", "test_accuracy")
        )
        return cls(success, gap, accuracy)

    def trials(self, **of: Any) -> list[dict[str, Any]]:
        """Make a row of each number of each network; ``of`` as of `trials_of`."""
        return [row for name, values in vars(self).items() for row in trials_of(values, **of, line=name)]

    @property
    def above(self) -> Ours:
        """Success less the bound as printed, which is linear in the gap: paired, network by network."""
        return mean_of(self.success - (1 + self.gap / (2 * MOST)) / 2)

    def lines(self) -> dict[str, tuple[float, float, float]]:
        """Both bounds and the accuracy: mean over the networks, and the ends of its 95 % interval."""
        accuracy = ls.intervals.cluster_t(self.test_accuracy)
        lines = {"test_accuracy": (accuracy.value, accuracy.low, accuracy.high)}
        mean, low, high = _mean_gap(self.gap)
        for name, least in RANGES.items():
            ends = [ls.bounds.generalisation_bound(max(gap, 0.0), least, MOST) for gap in (mean, low, high)]
            lines[name] = (ends[0], ends[1], ends[2])
        return lines


def membership_results(log_p: np.ndarray, correct: np.ndarray, n: int) -> dict[str, float]:
    """Compute what `Networks` holds of one network (delgrosso2021, Algorithm 2)."""
    called, loss = log_p.max(axis=1) > np.log(THRESHOLD), squared_loss(log_p)
    return {
        "success": float(called[:n].mean() + 1 - called[n:].mean()) / 2,
        "gap": float(loss[n:].mean() - loss[:n].mean()),
        "test_accuracy": float(correct[n:].mean()),
    }


def bound_holds(networks_of: Mapping[int, Networks], sizes: Collection[int]) -> Ours:
    """Tell whether the likelihood attack is nowhere below Theorem 2, as far as three standard errors can tell."""
    above = {n: trained.above for n, trained in networks_of.items()}
    margins = ", ".join(f"{margin.value:+.3f} +- {margin.error:.3f} at n = {n:,}" for n, margin in above.items())
    absent = set(sizes) - networks_of.keys()
    fewer = f"{len(sizes) - len(absent)} of {len(sizes)} sizes; success less bound: {margins}" if absent else ""
    return Ours.stated(all_above(above.values()), smaller=fewer, detail=f"success less bound: {margins}")


def draw(ax: Axes, numbers: pd.DataFrame, lines: Mapping[str, tuple[str, Mapping[str, Any]]]) -> list[Artist]:
    """Success and bounds against n on the left axis, the accuracy on the right."""
    right = ax.twinx()
    right.grid(visible=False)
    right.spines["right"].set_visible(True)
    shown: list[Artist] = []
    for line, (words, look) in lines.items():
        part, on = numbers[numbers["line"] == line], right if line.endswith("test_accuracy") else ax
        figures.line(on, part, "n", "value", words, **look)
        shown.append(on.get_lines()[-1])
    ax.axhline(0.5, color=figures.MUTE, linewidth=0.8)
    ax.set(xscale="log", ylabel="success of the attacker (fraction of games)", ylim=(0.45, 0.95))
    right.set(ylabel="accuracy on records not in training", ylim=(0, 1.02))
    return shown


def _mean_gap(gap: np.ndarray) -> tuple[float, float, float]:
    """With its interval over networks."""
    accuracy = ls.intervals.cluster_t((1 + gap / MOST) / 2)  # the gap of a loss in [0, 2] is in [-2, 2]
    return MOST * (2 * accuracy.value - 1), MOST * (2 * accuracy.low - 1), MOST * (2 * accuracy.high - 1)
