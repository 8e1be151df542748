"""Figure 1: the exponential mechanism on numbers that spread more and more.

With epsilon(X) = 5 the ratio to epsilon grows with sigma, as alike records need no protection from one another, and
that to epsilon(X) does not depend on it. The text gives no range of sigma. It speaks of values up to 1, and so its
claims are compared there; beyond, the clip at C = 10 begins to bind. The printed values follow neither reading of
epsilon(X) (erratum 8). With the setting ``wide``, the sensitivity 2C/n in place of min(2C, C + 1)/n, epsilon is 1.8
times as large, and its ratio so much smaller; the printed ones lie between.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import leakbound as ls
from leakbound.papers.lab import Lab, Outcome, mean_of, trials_of
from leakbound.papers.lowy2024 import geometric_median, ratios
from leakbound.papers.lowy2024.geometric_median import Setting, practical
from leakbound.papers.lowy2024.ratios import EXACT, NOMINAL, Runs
from leakbound.papers.printed import Ours

SETTING = Setting(subset=5.0)
PARAMETERS = geometric_median.parameters(SETTING, "epsilon", "n", "m", "d", "C")
SIGMAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
ONE = SIGMAS.index(1.0)
FIXED = 28.5  # the epsilon that the text has at sigma = 1: "for fixed values of epsilon", sigma < .1 leaves nothing


def measure(lab: Lab) -> Outcome:
    """Both ratios against sigma, and what is left of a fixed epsilon where records are alike."""
    n_trials = lab.size(full=50, quick=8)
    setting = geometric_median.of(lab, SETTING, PARAMETERS)
    settings = [setting._replace(sigma=sigma) for sigma in SIGMAS]
    runs = geometric_median.sweep(lab, settings, n_trials)
    small = [setting for setting in settings if setting.sigma < 0.1]
    arguments = [(lab.seed, setting, number, FIXED) for setting in small for number in range(n_trials)]
    left = np.reshape([one["pmp"] for one in lab.repeat(practical, arguments, "alike records")], (len(small), n_trials))
    numbers = [ratios.table(runs, SIGMAS), geometric_median.beyond(lab, setting)]
    by_setting = {"text": runs[EXACT], "nominal": runs[NOMINAL], "wide": wide(runs[EXACT], setting)}
    first, *others = lab.settings("nominal", "wide")
    sizes = f"{n_trials} data sets for each of {len(SIGMAS)} sigmas."
    ours = claims(by_setting[first]) | {"zero": alike(runs, left)}
    tried = {name: claims(by_setting[name]) for name in others}
    of_fixed = [
        row
        for small_setting, values in zip(small, left, strict=True)
        for row in trials_of(values, line="epsilon fixed", x=small_setting.sigma, quantity="pmp")
    ]
    each = pd.concat([ratios.trials(runs, SIGMAS), pd.DataFrame(of_fixed)], ignore_index=True)
    return Outcome(pd.concat(numbers), ours, sizes, tried, each)


def wide(runs: Runs, setting: Setting) -> Runs:
    """Compute the promise of the same mechanisms with the sensitivity 2C/n: all epsilons grow by one factor."""
    ours = ls.bounds.geometric_median_sensitivity(setting.clip, setting.n)
    return Runs(runs.epsilon * (2 * setting.clip / setting.n) / ours, runs.subset, runs.pmp)


def claims(runs: Runs) -> dict[str, Ours]:
    """Compute what the section says of the ratios, all but what it says of alike records."""
    spread = flatness(runs.to_subset[: ONE + 1])
    grows = "sigma to 1" + ("" if ratios.rises(runs.to_epsilon) else "; not to 5, where the clip binds")
    return {
        "epsilon": mean_of(runs.epsilon[ONE]),
        "pmp": mean_of(runs.pmp[ONE]),
        "ratio": mean_of(runs.to_epsilon[ONE]),
        "grows_with_sigma": Ours.stated(ratios.rises(runs.to_epsilon[: ONE + 1]), detail=grows),
        "flat": Ours(spread.value, spread.error, detail=f"sigma to 1; to 5: {flatness(runs.to_subset).value:.2f}"),
    }


def alike(runs: dict[str, Runs], left: np.ndarray) -> Ours:
    """Of a fixed epsilon, the largest mean that is left below sigma = .1."""
    below_tenth = SIGMAS.index(0.1) - 1
    exact, nominal = runs[EXACT].pmp[below_tenth].mean(), runs[NOMINAL].pmp[below_tenth].mean()
    detail = f"at epsilon = {FIXED}; where epsilon(X) stays 5 it is {exact:.2f} (exact) or {nominal:.2f} (nominal)"
    return mean_of(max(left, key=np.mean), detail=detail)


def flatness(values: np.ndarray) -> Ours:
    """Largest less smallest mean, with the error of the difference of these two."""
    mean = values.mean(axis=1)
    return mean_of(values[mean.argmax()] - values[mean.argmin()])


def draw(numbers: pd.DataFrame) -> Figure:
    """Ratios against sigma; and beyond the paper against n at sigma = 1."""
    return geometric_median.draw(numbers, r"spread $\sigma$ of the data", (1.0, 0.075, 2.14 / 5))
