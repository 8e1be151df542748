"""Figure 2: the exponential mechanism, two outliers, and the norm C that they are clipped to.

The text says that outliers make epsilon(X) nearly epsilon, and that a promise of 10 leaves less than .123 to a
practical attacker. That is so by the nominal reading of epsilon(X). By the exact one, which the text defines, the data
are far from the worst case, and a practical attacker keeps half of epsilon(X) at every C (erratum 8).
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from leakbound.papers.lab import Lab, Outcome, mean_of
from leakbound.papers.lowy2024 import geometric_median, ratios
from leakbound.papers.lowy2024.geometric_median import READINGS, Setting
from leakbound.papers.lowy2024.ratios import Runs
from leakbound.papers.printed import Ours

SETTING = Setting(subset=10.0, d=5, n_outputs=32, clip=50.0, n_outliers=2)
PARAMETERS = geometric_median.parameters(SETTING, "epsilon", "n", "m", "d", "sigma")
CLIPS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
FIFTY = CLIPS.index(50.0)


def measure(lab: Lab) -> Outcome:
    """Both ratios against C."""
    n_trials = lab.size(full=50, quick=8)
    setting = geometric_median.of(lab, SETTING, PARAMETERS)
    runs = geometric_median.sweep(lab, [setting._replace(clip=clip) for clip in CLIPS], n_trials)
    numbers = pd.concat([ratios.table(runs, CLIPS), geometric_median.beyond(lab, setting)])
    first, *others = lab.settings("nominal")
    tried = {name: claims(runs[READINGS[name]]) for name in others}
    sizes = f"{n_trials} data sets for each of {len(CLIPS)} values of C."
    return Outcome(numbers, claims(runs[READINGS[first]]), sizes, tried, ratios.trials(runs, CLIPS))


def claims(runs: Runs) -> dict[str, Ours]:
    """Compute what the section says, by one reading of epsilon(X)."""
    fifty, steady = runs.at(FIFTY), runs.to_subset.mean(axis=1)
    shrinks = f"to epsilon: {ratios.answer(ratios.rises(-runs.to_epsilon))}; to epsilon(X) it is "
    shrinks += f"{steady.min():.2f} to {steady.max():.2f}"
    return {
        "ratio_epsilon": mean_of(fifty.to_epsilon),
        "ratio_subset": mean_of(fifty.to_subset, detail=f"practical epsilon {fifty.pmp.mean():.3g}"),
        "nearly_worst": mean_of(fifty.subset / fifty.epsilon),
        "shrinks": Ours.stated(runs.both_fall, detail=shrinks),
    }


def draw(numbers: pd.DataFrame) -> Figure:
    """Ratios against C; and beyond the paper against n at C = 50, where the text expects them to shrink."""
    return geometric_median.draw(numbers, "clip C (norm of a record)", (50.0, 0.0123, 0.0123))
