"""The Gaussian mechanism on a clipped mean: the setting of Figures 4 to 6.

X is 2n draws from N(0, sigma^2) clipped to the norm C, and the mean of D, a random half of X, gets Gaussian noise. The
epsilon of practical membership privacy is that of Proposition 12: the noise is large enough for every record x, each
averaged over the record that it is swapped with. An average over x, too, is smaller and promises nothing to anybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import leakbound as ls
from leakbound.papers import figures
from leakbound.papers.lab import Lab, Parameter, trials_of
from leakbound.papers.lowy2024 import ratios
from leakbound.papers.lowy2024.ratios import EXACT, HALVED, NOMINAL, Runs

Array = np.ndarray
DELTA = 1e-2
OUTLIER = 10.0  # what an outlier is multiplied by


class Setting(NamedTuple):
    """What a figure keeps and what it varies."""

    value: float  # of epsilon where the promise is fixed, else of epsilon(X)
    fixed: str  # EXACT, NOMINAL, PROMISE or HALVED
    d: int
    n: int = 100
    clip: float = 50.0
    sigma: float = 1.0
    n_outliers: int = 0


def parameters(n: int, d: int, clip: float, sigma: float, *names: str) -> tuple[Parameter, ...]:
    """Make parameters of the values of a figure, but for the one on its axis."""
    known = (
        Parameter("n", n, "number of records in D, half of those of X", least=2, most=1000),
        Parameter("d", d, "dimension", least=1, most=1000),
        Parameter("C", clip, "norm that records are clipped to", least=0.1, most=1e6),
        Parameter("sigma", sigma, "spread of the records", least=1e-3, most=1e3),
    )
    return tuple(parameter for parameter in known if parameter.name in names)


def of(lab: Lab, setting: Setting, known: Sequence[Parameter]) -> Setting:
    """Replace the fields of a setting that were set."""
    return setting._replace(**{parameter.name.replace("C", "clip"): parameter.of(lab) for parameter in known})


def data(seed: int, setting: Setting, number: int) -> Array:
    """2n clipped records; the same random numbers for each C and epsilon (lowy2024, Section 4)."""
    rng = ls.seeds.stream(seed, "clipped mean", setting.d, setting.n, number)
    records = setting.sigma * rng.normal(size=(2 * setting.n, setting.d))
    records[: setting.n_outliers] *= OUTLIER
    return records * np.minimum(1, setting.clip / np.linalg.norm(records, axis=1, keepdims=True))


def trial(seed: int, setting: Setting, number: int) -> dict[str, float]:
    """Compute epsilon, epsilon(X) and that of practical membership privacy, for every record and on average.

    With half of the sensitivity, epsilon is what is claimed; the mechanism is not so private.
    """
    records, sensitivity = data(seed, setting, number), ls.bounds.clipped_mean_sensitivity(setting.clip, setting.n)
    own = float(ls.noise.swap_linear(records, setting.n).values.max())  # the sensitivity of X
    if setting.fixed == EXACT:
        scale = ls.bounds.analytic_gaussian_scale(setting.value, DELTA, own)
    elif setting.fixed == HALVED:
        scale = ls.bounds.analytic_gaussian_scale(setting.value, DELTA, sensitivity / 2)
    else:
        promise = setting.value * (sensitivity / own if setting.fixed == NOMINAL else 1.0)
        scale = ls.bounds.analytic_gaussian_scale(promise, DELTA, sensitivity)
    epsilons = ls.bounds.epsilons_gaussian(records, scale, DELTA, sensitivity)
    return {
        "epsilon": setting.value if setting.fixed == HALVED else epsilons.eps_global,
        "subset": epsilons.eps_subset_nominal if setting.fixed == NOMINAL else epsilons.eps_subset_exact,
        "pmp": epsilons.eps_pmp,
        "average": ls.bounds.pmp_gaussian(records, scale, DELTA, promise="average"),
    }


def sweep(lab: Lab, settings: Sequence[Setting], n_trials: int) -> tuple[Runs, Array]:
    """Compute the epsilons at each setting, on ``n_trials`` data sets; and that of the average record."""
    arguments = [(lab.seed, setting, number) for setting in settings for number in range(n_trials)]
    done = lab.repeat(trial, arguments, "data sets")
    names = ("epsilon", "subset", "pmp", "average")
    *epsilons, average = (np.reshape([one[name] for one in done], (len(settings), n_trials)) for name in names)
    return Runs(*epsilons), average


def table(lines: dict[str, tuple[Runs, Array]], axis: Sequence[float]) -> pd.DataFrame:
    """Mean and standard error of each quantity, and of the average record's epsilon."""
    parts = [ratios.table({line: runs for line, (runs, _) in lines.items()}, axis)]
    for line, (_, average) in lines.items():
        error = average.std(axis=1, ddof=1) / np.sqrt(average.shape[1])
        known = {"line": line, "x": axis, "quantity": "average", "mean": average.mean(axis=1), "error": error}
        parts.append(pd.DataFrame(known))
    return pd.concat(parts, ignore_index=True)


def trials(lines: dict[str, tuple[Runs, Array]], axis: Sequence[float]) -> pd.DataFrame:
    """Return the three epsilons of each data set, and the average record's."""
    parts = [ratios.trials({line: runs for line, (runs, _) in lines.items()}, axis)]
    for line, (_, average) in lines.items():
        for x, values in zip(axis, average, strict=True):
            parts.append(pd.DataFrame(trials_of(values, line=line, x=x, quantity="average")))
    return pd.concat(parts, ignore_index=True)


def draw(numbers: pd.DataFrame, label: str, printed: tuple[float, float] | None = None, *, log: bool = True) -> Figure:
    """Both ratios, and beyond the paper the epsilon of every record with that of the average one."""
    lines = list(numbers["line"].unique())
    n_panels = len(lines) + 1
    n_columns = 2 if n_panels == 4 else 3
    figure, axes = figures.panels(n_columns, -(-n_panels // n_columns), width=10.2 / n_columns)
    ratios.draw(axes[: len(lines)], numbers, label, log=log)
    for unused in axes[n_panels:]:
        unused.set_axis_off()
    ax: Axes = axes[len(lines)]
    line = str(lines[0])
    for quantity, name, style in (("pmp", "every record", "-"), ("average", "the average record (ours)", "--")):
        part = numbers.query(f"line == '{line}' and quantity == '{quantity}'")
        figures.line(ax, part, "x", "mean", name, error="error", color=figures.OURS, linestyle=style)
    if printed is not None:
        ax.plot(*printed, "s", color=figures.THEIRS, label="printed", fillstyle="none", markersize=9)
    ax.set(xlabel=label, ylabel=f"practical {ratios.PMP}", xscale="log" if log else "linear")
    ax.set(title=f"{ratios.PMP} with {ratios.NAMES[line]}")
    ratios.from_zero_or_log(ax)
    ax.legend()
    return figure
