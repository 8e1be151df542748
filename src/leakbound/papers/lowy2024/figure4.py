"""Figure 4: the Gaussian mechanism on data far from the worst case, with more and more noise taken away.

The data have norms of about 4.5 where the clip allows 50, so that epsilon is tens of times epsilon(X). At an exact
epsilon(X) of 10 a practical attacker keeps 7 of it, not the printed .9, and the ratio to epsilon falls; by the nominal
reading it is 2. Where epsilon is kept instead, it is .3 at 10, and the ratio to epsilon rises, but not to the end. The
setting nearest to Figures 4 and 5 together is ``halved``: epsilon is kept, its noise is that of a sensitivity of C/n
instead of 2C/n, and the average record's epsilon is taken. It promises nothing.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from leakbound.papers.lab import Lab, Outcome, mean_of
from leakbound.papers.lowy2024 import clipped_mean, ratios
from leakbound.papers.lowy2024.clipped_mean import Setting
from leakbound.papers.lowy2024.ratios import EXACT, HALVED, NOMINAL, PROMISE, Runs
from leakbound.papers.printed import Ours

SUBSETS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)  # epsilon(X)

PARAMETERS = clipped_mean.parameters(100, 20, 50.0, 1.0, "n", "d", "C", "sigma")


def measure(lab: Lab) -> Outcome:
    """Both ratios against epsilon(X), by both of its readings, and against epsilon."""
    n_trials = lab.size(full=20, quick=3)
    axis = lab.size(full=SUBSETS, quick=(*SUBSETS[:-1:3], SUBSETS[-1]))
    setting = clipped_mean.of(lab, Setting(0.0, EXACT, d=20), PARAMETERS)
    lines = {
        line: clipped_mean.sweep(lab, [setting._replace(value=value, fixed=line) for value in axis], n_trials)
        for line in (EXACT, NOMINAL, PROMISE, HALVED)
    }
    (exact, average), (halved, average_halved) = lines[EXACT], lines[HALVED]
    by_setting = {
        "text": exact,
        "nominal": lines[NOMINAL][0],
        "promise": lines[PROMISE][0],
        "average": Runs(exact.epsilon, exact.subset, average),
        "halved": Runs(halved.epsilon, halved.subset, average_halved),
    }
    first, *others = lab.settings("nominal", "promise", "average", "halved")
    tried = {name: claims(by_setting[name], axis) for name in others}
    sizes = f"{n_trials} data sets for each of {len(axis)} values of epsilon(X) or epsilon."
    ours, each = claims(by_setting[first], axis), clipped_mean.trials(lines, axis)
    return Outcome(clipped_mean.table(lines, axis), ours, sizes, tried, each)


def claims(runs: Runs, axis: tuple[float, ...] = SUBSETS) -> dict[str, Ours]:
    """Compute what the section says; the last place of the axis is 10."""
    last = runs.at(-1)
    to_epsilon, to_subset = (ratios.answer(ratios.rises(values)) for values in (runs.to_epsilon, runs.to_subset))
    grows = f"to epsilon: {to_epsilon}, largest at {axis[runs.to_epsilon.mean(axis=1).argmax()]:g}"
    return {
        "pmp": mean_of(last.pmp),
        "grows": Ours.stated(runs.both_rise, detail=f"{grows}; to epsilon(X): {to_subset}"),
        "gap": mean_of(last.epsilon / last.subset),
    }


def draw(numbers: pd.DataFrame) -> Figure:
    """Ratios and epsilons against epsilon(X)."""
    return clipped_mean.draw(numbers, f"{ratios.SUBSET}, or {ratios.EPSILON} where it is fixed", (10.0, 0.9), log=False)
