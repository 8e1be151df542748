"""Figure 5: the Gaussian mechanism, two outliers, and the norm C that they are clipped to.

The text has epsilon = 5 at C = 100, and so epsilon is 5 at each C here; where an exact epsilon(X) is 5 instead is the
other line. The outliers keep 2 of it, an average record a third; the printed 1 lies between. How far apart the two
outliers are, and so epsilon(X), differs much from draw to draw: few data sets do not show that the ratio to it falls.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from leakbound.papers.lab import Lab, Outcome, Parameter, mean_of
from leakbound.papers.lowy2024 import clipped_mean, ratios
from leakbound.papers.lowy2024.clipped_mean import Setting
from leakbound.papers.lowy2024.ratios import EXACT, HALVED, PROMISE, Runs
from leakbound.papers.printed import Ours

CLIPS = (5.0, 10.0, 20.0, 30.0, 50.0, 75.0, 100.0)

EPSILON = Parameter("epsilon", 5.0, "epsilon, or epsilon(X) where it is kept", least=0.01, most=100.0)
PARAMETERS = (EPSILON, *clipped_mean.parameters(100, 10, 50.0, 5.0, "n", "d", "sigma"))


def measure(lab: Lab) -> Outcome:
    """Both ratios against C."""
    n_trials = lab.size(full=50, quick=3)
    lines = {}
    for line in (PROMISE, EXACT, HALVED):
        setting = Setting(EPSILON.of(lab), line, d=10, sigma=5.0, n_outliers=2)
        setting = clipped_mean.of(lab, setting, PARAMETERS[1:])
        lines[line] = clipped_mean.sweep(lab, [setting._replace(clip=clip) for clip in CLIPS], n_trials)
    (promise, average), (halved, average_halved) = lines[PROMISE], lines[HALVED]
    by_setting = {
        "text": promise,
        "subset": lines[EXACT][0],
        "average": Runs(promise.epsilon, promise.subset, average),
        "halved": Runs(halved.epsilon, halved.subset, average_halved),
    }
    smaller = lab.size(full="", quick=f"{n_trials} data sets of 50")
    first, *others = lab.settings("subset", "average", "halved")
    tried = {name: claims(by_setting[name], smaller) for name in others}
    sizes = f"{n_trials} data sets for each of {len(CLIPS)} values of C."
    ours, each = claims(by_setting[first], smaller), clipped_mean.trials(lines, CLIPS)
    return Outcome(clipped_mean.table(lines, CLIPS), ours, sizes, tried, each)


def claims(runs: Runs, smaller: str) -> dict[str, Ours]:
    """Compute what the section says; the last place of the axis is C = 100."""
    steady = runs.to_subset.mean(axis=1)
    shrinks = f"to epsilon: {ratios.answer(ratios.rises(-runs.to_epsilon))}; to epsilon(X) it is "
    shrinks += f"{steady.min():.2f} to {steady.max():.2f}"
    return {
        "pmp": mean_of(runs.pmp[-1]),
        "shrinks": Ours.stated(runs.both_fall, smaller=smaller, detail=shrinks),
    }


def draw(numbers: pd.DataFrame) -> Figure:
    """Ratios and epsilons against C."""
    return clipped_mean.draw(numbers, "clip C (norm of a record)", (100.0, 1.0))
