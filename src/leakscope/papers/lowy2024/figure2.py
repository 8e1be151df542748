"""Figure 2: the exponential mechanism, two outliers, and the norm C that they are clipped to.

The text says that outliers make epsilon(X) nearly epsilon, and that a promise of 10 leaves less than .123 to a
practical attacker. That is so by the nominal reading of epsilon(X). By the exact one, which the text defines, the data
are far from the worst case, and a practical attacker keeps half of epsilon(X) at every C (erratum 8).
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from leakscope.papers.lab import Lab, Outcome, mean_of
from leakscope.papers.lowy2024 import geometric_median, ratios
from leakscope.papers.lowy2024.geometric_median import Setting
from leakscope.papers.lowy2024.ratios import EXACT, NOMINAL, Runs
from leakscope.papers.printed import Ours

SETTING = Setting(subset=10.0, d=5, n_outputs=32, clip=50.0, n_outliers=2)
CLIPS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
FIFTY = CLIPS.index(50.0)


def measure(lab: Lab) -> Outcome:
    """Both ratios against C."""
    n_trials = lab.size(full=50, quick=8)
    runs = geometric_median.sweep(lab, [SETTING._replace(clip=clip) for clip in CLIPS], n_trials)
    numbers = pd.concat([ratios.table(runs, CLIPS), geometric_median.beyond(lab, SETTING)])
    return Outcome(numbers, claims(runs), f"{n_trials} data sets for each of {len(CLIPS)} values of C.")


def claims(runs: dict[str, Runs]) -> dict[str, Ours]:
    """By the exact reading, which the text defines; the nominal one is shown with it."""
    exact, nominal = runs[EXACT].at(FIFTY), runs[NOMINAL].at(FIFTY)
    steady, by = runs[EXACT].to_subset.mean(axis=1), "by the nominal reading"
    detail = f"{nominal.to_subset.mean():.4f} {by}; "
    detail += f"practical epsilon {exact.pmp.mean():.2f}, or {nominal.pmp.mean():.3f}"
    shrinks = f"to epsilon: {ratios.answer(ratios.rises(-runs[EXACT].to_epsilon))}; to epsilon(X) it is "
    shrinks += f"{steady.min():.2f} to {steady.max():.2f}; both {by}: {ratios.answer(runs[NOMINAL].both_fall)}"
    worst = f"{(nominal.subset / nominal.epsilon).mean():.3f} {by}"
    return {
        "ratio_epsilon": mean_of(exact.to_epsilon, detail=f"{nominal.to_epsilon.mean():.4f} {by}"),
        "ratio_subset": mean_of(exact.to_subset, detail=detail),
        "nearly_worst": mean_of(exact.subset / exact.epsilon, detail=worst),
        "shrinks": Ours.stated(runs[EXACT].both_fall, detail=shrinks),
    }


def draw(numbers: pd.DataFrame) -> Figure:
    """Ratios against C; and beyond the paper against n at C = 50, where the text expects them to shrink."""
    return geometric_median.draw(numbers, "clip C (norm of a record)", (50.0, 0.0123, 0.0123))
