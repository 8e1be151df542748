"""Figure 4: the Gaussian mechanism on data far from the worst case, with more and more noise taken away.

The data have norms of about 4.5 where the clip allows 50, so that epsilon is tens of times epsilon(X). At an exact
epsilon(X) of 10 a practical attacker keeps 7 of it, not the printed .9, and the ratio to epsilon falls; by the nominal
reading it is 2. Where epsilon is kept instead, it is .3 at 10, and the ratio to epsilon rises, but not to the end.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from leakscope.papers.lab import Lab, Outcome, mean_of
from leakscope.papers.lowy2024 import clipped_mean, ratios
from leakscope.papers.lowy2024.clipped_mean import Setting
from leakscope.papers.lowy2024.ratios import EXACT, NOMINAL, PROMISE
from leakscope.papers.printed import Ours

SUBSETS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)  # epsilon(X)


def measure(lab: Lab) -> Outcome:
    """Both ratios against epsilon(X), by both of its readings, and against epsilon."""
    n_trials = lab.size(full=20, quick=3)
    lines = {
        line: clipped_mean.sweep(lab, [Setting(value, line, d=20) for value in SUBSETS], n_trials)
        for line in (EXACT, NOMINAL, PROMISE)
    }
    (exact, average), nominal, promise = lines[EXACT], lines[NOMINAL][0], lines[PROMISE][0]
    last = exact.at(-1)
    detail = f"{average[-1].mean():.2f} on average over x; {nominal.pmp[-1].mean():.2f} by the nominal reading"
    rise = [ratios.answer(ratios.rises(values)) for values in (exact.to_epsilon, exact.to_subset)]
    grows = f"to epsilon: {rise[0]}; to epsilon(X): {rise[1]}; where epsilon is fixed the ratio to it rises to "
    grows += f"an epsilon of {SUBSETS[promise.to_epsilon.mean(axis=1).argmax()]:g}"
    ours = {
        "pmp": mean_of(last.pmp, detail=f"{detail}; {promise.pmp[-1].mean():.2f} where epsilon is 10"),
        "grows": Ours.stated(exact.both_rise, detail=grows),
        "gap": mean_of(last.epsilon / last.subset),
    }
    sizes = f"{n_trials} data sets for each of {len(SUBSETS)} values of epsilon(X) or epsilon."
    return Outcome(clipped_mean.table(lines, SUBSETS), ours, sizes)


def draw(numbers: pd.DataFrame) -> Figure:
    """Ratios and epsilons against epsilon(X)."""
    return clipped_mean.draw(numbers, f"{ratios.SUBSET}, or {ratios.EPSILON} where it is fixed", (10.0, 0.9), log=False)
