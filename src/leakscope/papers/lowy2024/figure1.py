"""Figure 1: the exponential mechanism on numbers that spread more and more.

With epsilon(X) = 5 the ratio to epsilon grows with sigma, as alike records need no protection from one another, and
that to epsilon(X) does not depend on it. The text gives no range of sigma. It speaks of values up to 1, and so its
claims are compared there; beyond, the clip at C = 10 begins to bind. The printed values follow neither reading of
epsilon(X) (erratum 8). With the sensitivity 2C/n in place of min(2C, C + 1)/n epsilon is 1.8 times as large, and its
ratio so much smaller; the printed ones lie between.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from leakscope.papers.lab import Lab, Outcome, mean_of
from leakscope.papers.lowy2024 import geometric_median, ratios
from leakscope.papers.lowy2024.geometric_median import Setting, practical
from leakscope.papers.lowy2024.ratios import EXACT, NOMINAL, Runs
from leakscope.papers.printed import Ours

SETTING = Setting(subset=5.0)
SIGMAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
ONE = SIGMAS.index(1.0)
FIXED = 28.5  # the epsilon that the text has at sigma = 1: "for fixed values of epsilon", sigma < .1 leaves nothing


def measure(lab: Lab) -> Outcome:
    """Both ratios against sigma, and what is left of a fixed epsilon where records are alike."""
    n_trials = lab.size(full=50, quick=8)
    settings = [SETTING._replace(sigma=sigma) for sigma in SIGMAS]
    runs = geometric_median.sweep(lab, settings, n_trials)
    small = [setting for setting in settings if setting.sigma < 0.1]
    arguments = [(lab.seed, setting, number, FIXED) for setting in small for number in range(n_trials)]
    left = np.reshape([one["pmp"] for one in lab.repeat(practical, arguments, "alike records")], (len(small), n_trials))
    numbers = [ratios.table(runs, SIGMAS), geometric_median.beyond(lab, SETTING)]
    return Outcome(pd.concat(numbers), claims(runs, left), f"{n_trials} data sets for each of {len(SIGMAS)} sigmas.")


def claims(runs: dict[str, Runs], left: np.ndarray) -> dict[str, Ours]:
    """By the exact reading, which the text defines; the nominal one is shown with it."""
    exact, nominal = runs[EXACT], runs[NOMINAL]

    def both(quantity: str) -> Ours:
        one = mean_of(getattr(nominal, quantity)[ONE])
        detail = f"{one.value:.3g} +- {one.error:.1g} by the nominal reading"
        return mean_of(getattr(exact, quantity)[ONE], detail=detail)

    spread, by_nominal = flatness(exact.to_subset[: ONE + 1]), flatness(nominal.to_subset[: ONE + 1])
    detail = f"sigma to 1; to 5: {flatness(exact.to_subset).value:.2f}; nominal reading: {by_nominal.value:.2f}"
    worst = max(left, key=np.mean)
    below_tenth = SIGMAS.index(0.1) - 1
    by_exact, by_nominal_reading = exact.pmp[below_tenth].mean(), nominal.pmp[below_tenth].mean()
    fixed = f"at epsilon = {FIXED}; where epsilon(X) stays 5 "
    fixed += f"it is {by_exact:.2f} (exact) or {by_nominal_reading:.2f} (nominal)"
    grows = "sigma to 1" + ("" if ratios.rises(exact.to_epsilon) else "; not to 5, where the clip binds")
    return {
        "epsilon": both("epsilon"),
        "pmp": both("pmp"),
        "ratio": both("to_epsilon"),
        "grows_with_sigma": Ours.stated(ratios.rises(exact.to_epsilon[: ONE + 1]), detail=grows),
        "zero": mean_of(worst, detail=fixed),
        "flat": Ours(spread.value, spread.error, detail=detail),
    }


def flatness(values: np.ndarray) -> Ours:
    """Largest less smallest mean, with the error of the difference of these two."""
    mean = values.mean(axis=1)
    return mean_of(values[mean.argmax()] - values[mean.argmin()])


def draw(numbers: pd.DataFrame) -> Figure:
    """Ratios against sigma; and beyond the paper against n at sigma = 1."""
    return geometric_median.draw(numbers, r"spread $\sigma$ of the data", (1.0, 0.075, 2.14 / 5))
