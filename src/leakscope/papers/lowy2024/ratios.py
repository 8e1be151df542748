"""Ratios of epsilons over random data sets: means with standard errors, whether they rise, and how they are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from leakscope.papers import figures
from leakscope.papers.lab import mean_of
from leakscope.papers.printed import all_above

Array = np.ndarray
QUANTITIES = ("epsilon", "subset", "pmp", "to_epsilon", "to_subset")
PMP, EPSILON, SUBSET = r"$\tilde{\varepsilon}(X)$", r"$\varepsilon$", r"$\varepsilon(X)$"
RATIOS = {"to_epsilon": EPSILON, "to_subset": SUBSET}  # and what each is a ratio to
# What is kept at its value: epsilon(X) by one of its readings, or epsilon.
EXACT, NOMINAL, PROMISE = "exact", "nominal", "promise"
HALVED = "halved"  # epsilon, with half of the sensitivity that it needs
NAMES = {EXACT: f"{SUBSET} fixed, exact", NOMINAL: f"{SUBSET} fixed, nominal", PROMISE: f"{EPSILON} fixed"}
NAMES[HALVED] = f"{EPSILON} fixed, sensitivity halved"
STYLE = {EXACT: figures.STYLES[5], NOMINAL: figures.STYLES[1], PROMISE: figures.STYLES[2]}
STYLE[HALVED] = figures.STYLES[4]


@dataclass(frozen=True, eq=False)
class Runs:
    """Epsilons at X places of an axis, on T random data sets at each.

    Parameters
    ----------
    epsilon : array of shape (X, T)
        Of differential privacy, over all data sets.
    subset : array of shape (X, T)
        epsilon(X), by one of its readings.
    pmp : array of shape (X, T)
        Of practical membership privacy.
    """

    epsilon: Array
    subset: Array
    pmp: Array

    @property
    def to_epsilon(self) -> Array:
        """What the attacker's uncertainty and the data bring together."""
        return self.pmp / self.epsilon

    @property
    def to_subset(self) -> Array:
        """What the attacker's uncertainty brings alone."""
        return self.pmp / self.subset

    @property
    def both_rise(self) -> bool | None:
        """Whether the two ratios rise along the axis; None if it cannot be told."""
        return both(rises(self.to_epsilon), rises(self.to_subset))

    @property
    def both_fall(self) -> bool | None:
        """Whether the two ratios fall along the axis; None if it cannot be told."""
        return both(rises(-self.to_epsilon), rises(-self.to_subset))

    def at(self, place: int) -> Runs:
        """One place of the axis."""
        return Runs(self.epsilon[place], self.subset[place], self.pmp[place])


def table(lines: Mapping[str, Runs], axis: Sequence[float]) -> pd.DataFrame:
    """Mean and standard error of each quantity: a row for each line, place and quantity."""
    rows = []
    for line, runs in lines.items():
        for quantity in QUANTITIES:
            values = getattr(runs, quantity)
            error = values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
            for x, mean, one in zip(axis, values.mean(axis=1), error, strict=True):
                rows.append({"line": line, "x": x, "quantity": quantity, "mean": mean, "error": one})
    return pd.DataFrame(rows)


def rises(values: Array) -> bool | None:
    """Tell whether a mean rises along the axis: as a whole, while no step falls, both by three standard errors.

    Parameters
    ----------
    values : array of shape (X, T)
        Column t has the same random numbers at each place, or all are independent; either way differences within a
        column are T independent ones.

    Returns
    -------
    bool or None
        False if a step, or the whole, falls by more than three standard errors; None if it does not, and the whole
        does not rise by as much either.
    """
    steps = [mean_of(step) for step in np.diff(values, axis=0)]
    if any(all_above([step]) is False for step in steps):
        return False
    total_change = mean_of(values[-1] - values[0])
    return False if total_change.value == total_change.error == 0 else all_above([total_change])


def both(first: bool | None, second: bool | None) -> bool | None:
    """Combine two statements: false if one is, true if both are, else not known."""
    if first is False or second is False:
        return False
    return True if first and second else None


def answer(holds: bool | None) -> str:
    """Say a truth value in a sentence."""
    if holds is None:
        return "cannot be told"
    return "so" if holds else "not so"


def draw(
    axes: Array,
    numbers: pd.DataFrame,
    label: str,
    printed: tuple[float, float, float] | None = None,
    *,
    log: bool = True,
) -> None:
    """Draw the two ratios on two axes, with bands of two standard errors; and what the text prints of them at an x."""
    for ax, (quantity, name) in zip(axes, RATIOS.items(), strict=True):
        for line, part in numbers.query(f"quantity == '{quantity}'").groupby("line", sort=False):
            x, mean, error = (part[column].to_numpy(dtype=float) for column in ("x", "mean", "error"))
            low, high = mean - 2 * error, mean + 2 * error
            figures.band(ax, x, mean, low, high, NAMES[str(line)], **STYLE[str(line)])
        ax.set(xlabel=label, ylabel=f"ratio of practical {PMP} to {name}", xscale="log" if log else "linear")
        ax.set(title=f"{PMP} / {name}")
        if printed is not None:
            ax.plot(printed[0], dict(zip(RATIOS, printed[1:], strict=True))[quantity], "*k", label="printed", zorder=4)
        from_zero_or_log(ax)
    axes[0].legend()


def from_zero_or_log(ax: Axes) -> None:
    """Choose a scale that shows all lines: from zero, or logarithmic where they span more than a factor of 30."""
    values = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in ax.get_lines()])
    ax.set(**({"yscale": "log"} if values.max() > 30 * values.min() > 0 else {"ylim": (0, None)}))
