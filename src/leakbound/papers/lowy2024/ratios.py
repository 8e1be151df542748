"""Ratios of epsilons over random data sets: means with standard errors, whether they rise, and how they are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from leakbound.papers import figures
from leakbound.papers.lab import mean_of, trials_of
from leakbound.papers.printed import all_above

Array = np.ndarray
TINIEST = 1e-12  # of an epsilon: where epsilon(X) is 0, so is that of practical membership privacy
QUANTITIES = ("epsilon", "subset", "pmp", "to_epsilon", "to_subset")
PMP, EPSILON, SUBSET = r"$\tilde{\varepsilon}(X)$", r"$\varepsilon$", r"$\varepsilon(X)$"
RATIOS = {"to_epsilon": EPSILON, "to_subset": SUBSET}  # and what each is a ratio to
# What is kept at its value: epsilon(X) by one of its readings, or epsilon.
EXACT, NOMINAL, PROMISE = "exact", "nominal", "promise"
HALVED = "halved"  # epsilon, with half of the sensitivity that it needs
NAMES = {EXACT: f"{SUBSET} fixed, exact", NOMINAL: f"{SUBSET} fixed, nominal", PROMISE: f"{EPSILON} fixed"}
NAMES[HALVED] = f"{EPSILON} fixed, sensitivity halved"


@dataclass(frozen=True, eq=False)
class Runs:
    """Epsilons at X places of an axis, on T random data sets at each."""

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
        return self.pmp / np.maximum(self.subset, TINIEST)

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


def trials(lines: Mapping[str, Runs], axis: Sequence[float]) -> pd.DataFrame:
    """Return the three epsilons of each data set; the ratios follow from them."""
    rows = []
    for line, runs in lines.items():
        for quantity in ("epsilon", "subset", "pmp"):
            for x, values in zip(axis, getattr(runs, quantity), strict=True):
                rows += trials_of(values, line=line, x=x, quantity=quantity)
    return pd.DataFrame(rows)


def rises(values: Array) -> bool | None:
    """Tell whether a mean rises along the axis: as a whole, while no step falls, both by three standard errors."""
    # with the same random numbers at each place, or none in common, the differences in a column are independent trials
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
    """Draw both ratios on one axis, as the paper does; one axis for each of what is kept at its value."""
    shown = numbers[numbers["quantity"].isin(list(RATIOS))]
    for ax, (line, part) in zip(axes, shown.groupby("line", sort=False), strict=False):
        for (quantity, name), style in zip(RATIOS.items(), figures.STYLES, strict=False):
            own = pd.DataFrame(part[part["quantity"] == quantity])
            figures.line(ax, own, "x", "mean", f"{PMP} / {name}", error="error", **style)
        if printed is not None:
            place, *values = printed
            for value, style in zip(values, figures.STYLES, strict=False):
                hollow = {"color": style["color"], "marker": style["marker"], "fillstyle": "none", "markersize": 9}
                ax.plot(place, value, linestyle="none", zorder=4, **hollow)
        ax.set(xlabel=label, ylabel=f"ratio of practical {PMP}", xscale="log" if log else "linear")
        ax.set(title=NAMES[str(line)])
    from_zero_or_log(*axes)
    if printed is not None:
        axes[0].plot([], [], "o", color=figures.MUTE, fillstyle="none", markersize=9, label="printed")
    axes[0].legend()


def from_zero_or_log(*axes: Axes) -> None:
    """Choose one scale that shows all lines: from zero, or logarithmic where they span more than a factor of 30."""
    drawn = [np.ravel(line.get_ydata()).astype(float) for ax in axes for line in ax.get_lines()]
    values = np.concatenate(drawn)
    values = values[np.isfinite(values)]
    for ax in axes:
        if np.inf > values.max() > 30 * values.min() > 0:
            ax.set(yscale="log", ylim=(values.min() / 1.5, values.max() * 1.5))
            ax.yaxis.set_major_formatter("{x:g}")
            ax.yaxis.set_minor_formatter(NullFormatter())
        else:
            ax.set(ylim=(0, 1.08 * max(values.max(), TINIEST)))
