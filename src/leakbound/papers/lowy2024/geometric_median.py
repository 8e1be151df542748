"""The exponential mechanism on the geometric median: the setting of Figures 1 to 3.

W holds m random unit vectors, X is 2n draws from N(w_1, sigma^2) clipped to the norm C, and the loss of w is its mean
distance to D, a random half of X. The text defines epsilon(X) as the differential privacy among the halves of X, the
exact reading; those of Figure 2 follow the nominal one, epsilon Delta(X)/Delta (erratum 8). The sensitivity of the
loss is min(2C, C + 1)/n.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import leakbound as ls
from leakbound.papers import figures
from leakbound.papers.lab import Lab, Parameter
from leakbound.papers.lowy2024 import ratios
from leakbound.papers.lowy2024.ratios import EXACT, NOMINAL, PMP, SUBSET, Runs

Array = np.ndarray
OUTLIER = 100.0  # what an outlier is multiplied by
READINGS = {"text": EXACT, "nominal": NOMINAL}  # of epsilon(X), by setting


FIELDS = {"epsilon": "subset", "n": "n", "m": "n_outputs", "d": "d", "C": "clip", "sigma": "sigma"}  # of a parameter


class Setting(NamedTuple):
    """What a figure keeps and what it varies."""

    subset: float  # epsilon(X)
    d: int = 1
    n: int = 6
    n_outputs: int = 10
    clip: float = 10.0
    sigma: float = 1.0
    n_outliers: int = 0


def parameters(setting: Setting, *names: str) -> tuple[Parameter, ...]:
    """Make parameters of the fields of a setting, but for the one on the axis of the figure."""
    known = (
        Parameter("epsilon", setting.subset, "epsilon(X)", least=0.01, most=100.0),
        Parameter("n", setting.n, "number of records in D, half of those of X", least=2, most=8),
        Parameter("m", setting.n_outputs, "number of outputs", least=2, most=1000),
        Parameter("d", setting.d, "dimension", least=1, most=1000),
        Parameter("C", setting.clip, "norm that records are clipped to", least=1.0, most=1e6),
        Parameter("sigma", setting.sigma, "spread of the records", least=1e-3, most=1e3),
    )
    return tuple(parameter for parameter in known if parameter.name in names)


def of(lab: Lab, setting: Setting, known: Sequence[Parameter]) -> Setting:
    """Replace the fields of a setting that were set."""
    value = {FIELDS[parameter.name]: parameter.of(lab) for parameter in known}
    return setting._replace(**value)


def game(seed: int, setting: Setting, number: int) -> tuple[Array, float]:
    """Losses of the outputs on the records, and the sensitivity of their mean (lowy2024, Section 3).

    The same random numbers for each sigma and C. In one dimension all outputs may be the same one, which no attack
    learns from and no epsilon(X) belongs to: then they are drawn again.
    """
    rng = ls.seeds.stream(seed, "geometric median", setting.d, setting.n, setting.n_outputs, number)
    outputs = np.zeros((setting.n_outputs, setting.d))
    while not np.ptp(outputs, axis=0).any():
        outputs = rng.normal(size=outputs.shape)
        outputs /= np.linalg.norm(outputs, axis=1, keepdims=True)
    records = outputs[0] + setting.sigma * rng.normal(size=(2 * setting.n, setting.d))
    records[: setting.n_outliers] *= OUTLIER
    records *= np.minimum(1, setting.clip / np.linalg.norm(records, axis=1, keepdims=True))
    loss = ls.bounds.geometric_median_loss(outputs, records)
    return loss, ls.bounds.geometric_median_sensitivity(setting.clip, setting.n)


def nominal_epsilon(loss: Array, subset: float, sensitivity: float) -> float:
    """Find the epsilon with ``epsilon Delta(X)/Delta`` = epsilon(X)."""
    return subset * sensitivity / ls.bounds.subset_sensitivity(loss)


def trial(seed: int, setting: Setting, number: int) -> dict[str, Array]:
    """Compute epsilon and that of practical membership privacy, by both readings, on one data set."""
    loss, sensitivity = game(seed, setting, number)
    readings = (ls.bounds.epsilon_for_subset, nominal_epsilon)
    epsilon = np.array([find(loss, setting.subset, sensitivity) for find in readings])
    pmp = np.array([ls.bounds.pmp_exponential(loss, value, sensitivity) for value in epsilon])
    return {"epsilon": epsilon, "pmp": pmp}


def practical(seed: int, setting: Setting, number: int, epsilon: float) -> dict[str, float]:
    """Compute the epsilon of practical membership privacy for an epsilon of differential privacy."""
    loss, sensitivity = game(seed, setting, number)
    return {"pmp": ls.bounds.pmp_exponential(loss, epsilon, sensitivity)}


def larger(seed: int, setting: Setting, number: int, n_subsets: int | None, confidence: float) -> dict[str, Array]:
    """Practical membership privacy over the nominal epsilon(X): from all halves, or from some with an interval."""
    loss, sensitivity = game(seed, setting, number)
    epsilon = nominal_epsilon(loss, setting.subset, sensitivity)
    if n_subsets is None:
        epsilons = [ls.bounds.pmp_exponential(loss, epsilon, sensitivity)] * 3
    else:
        draws = ls.seeds.integer(seed, "subsets", setting.n, number)
        interval = ls.bounds.pmp_exponential(
            loss, epsilon, sensitivity, "sampled", n_subsets=n_subsets, confidence=confidence, seed=draws
        )
        epsilons = [interval.detail["estimate"], interval.low, interval.high]
    return {"to_subset": np.array(epsilons) / setting.subset}


def sweep(lab: Lab, settings: Sequence[Setting], n_trials: int) -> dict[str, Runs]:
    """Both readings at each setting, on so many data sets."""
    arguments = [(lab.seed, setting, number) for setting in settings for number in range(n_trials)]
    done = lab.repeat(trial, arguments, "data sets")
    shape = (len(settings), n_trials)
    runs = {}
    for place, line in enumerate((EXACT, NOMINAL)):
        epsilon, pmp = (np.reshape([one[name][place] for one in done], shape) for name in ("epsilon", "pmp"))
        runs[line] = Runs(epsilon, np.broadcast_to([[setting.subset] for setting in settings], shape), pmp)
    return runs


def beyond(lab: Lab, setting: Setting) -> pd.DataFrame:
    """More records than the paper's 12: all halves of 36, and samples for as many as 2,000; a row a data set."""
    n_sets = lab.size(full=8, quick=2)
    sizes, n_subsets = lab.size(full=(18, 100, 1000), quick=(100,)), lab.size(full=2**17, quick=2**16)
    cases: list[tuple[int, int, int | None]] = [(6, number, None) for number in range(n_sets)]
    cases += [(n, number, n_subsets) for n in sizes for number in range(n_sets)]
    cases += lab.size(full=[(18, 0, None)], quick=[])  # half a minute alone
    confidence = 1 - 0.05 / n_sets  # of each, so that those of one n hold together at 95 %
    arguments = [(lab.seed, setting._replace(n=n), number, subsets, confidence) for n, number, subsets in cases]
    rows = []
    for (n, number, subsets), one in zip(cases, lab.repeat(larger, arguments, "larger data sets"), strict=True):
        value, low, high = one["to_subset"].tolist()
        line = "all halves" if subsets is None else "random halves"
        rows.append(
            {"line": line, "x": n, "quantity": "larger", "set": number, "mean": value, "low": low, "high": high}
        )
    return pd.DataFrame(rows)


def draw(numbers: pd.DataFrame, label: str, printed: tuple[float, float, float] | None = None) -> Figure:
    """Both ratios by both readings, and beyond the paper the ratio on more records."""
    figure, axes = figures.panels(3)
    ratios.draw(axes[:2], numbers, label, printed)
    part, ax = numbers.query("quantity == 'larger'"), axes[2]
    cross = {"fmt": "x", "color": figures.INK, "markersize": 7, "markeredgewidth": 1.5, "zorder": 4}
    ring = {"fmt": "o", "color": figures.OURS, "markersize": 5, "markerfacecolor": "none", "zorder": 3}
    style = {"all halves": cross, "random halves": ring}
    for line, sets in part.groupby("line", sort=False):
        x, mean, low, high = (sets[name].to_numpy(dtype=float) for name in ("x", "mean", "low", "high"))
        spread_x = x * 1.06 ** sets["set"].to_numpy(dtype=float)
        ax.errorbar(spread_x, mean, (mean - low, high - mean), label=str(line), linewidth=1, **style[str(line)])
    mean = {n: sets["mean"].mean() for n, sets in part.drop_duplicates(subset=["x", "set"]).groupby("x")}
    ax.plot(list(mean), list(mean.values()), color=figures.OURS, linestyle="--", linewidth=1, label="mean of the sets")
    ax.set(xlabel="n, half of the records", ylabel=f"ratio of practical {PMP} to nominal {SUBSET}")
    ax.set(title="More records (ours)", xscale="log", ylim=(0, None))
    ax.legend()
    return figure
