"""Figure 3: the exponential mechanism in more and more dimensions.

With epsilon(X) = 2 both ratios become smaller. The caption gives no C; it is 10 here, as in Figure 1, and clips next
to nothing. The text does not give the dimensions either.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from leakbound.papers.lab import Lab, Outcome
from leakbound.papers.lowy2024 import geometric_median, ratios
from leakbound.papers.lowy2024.geometric_median import READINGS, Setting
from leakbound.papers.lowy2024.ratios import Runs
from leakbound.papers.printed import Ours

DIMENSIONS = (1, 2, 5, 10, 20, 50)
SETTING = Setting(subset=2.0, d=10)
PARAMETERS = geometric_median.parameters(SETTING, "epsilon", "n", "m", "C", "sigma")


def measure(lab: Lab) -> Outcome:
    """Both ratios against d."""
    n_trials = lab.size(full=50, quick=8)
    setting = geometric_median.of(lab, SETTING, PARAMETERS)
    runs = geometric_median.sweep(lab, [setting._replace(d=d) for d in DIMENSIONS], n_trials)
    first, *others = lab.settings("nominal")
    tried = {name: claims(runs[READINGS[name]]) for name in others}
    numbers = pd.concat([ratios.table(runs, DIMENSIONS), geometric_median.beyond(lab, setting)])
    sizes = f"{n_trials} data sets in each of {len(DIMENSIONS)} dimensions."
    return Outcome(numbers, claims(runs[READINGS[first]]), sizes, tried, ratios.trials(runs, DIMENSIONS))


def claims(runs: Runs) -> dict[str, Ours]:
    """Compute what the section says, by one reading of epsilon(X)."""
    ends = [
        f"{name} from {values.mean(axis=1)[0]:.3f} to {values.mean(axis=1)[-1]:.3f}"
        for name, values in (("to epsilon", runs.to_epsilon), ("to epsilon(X)", runs.to_subset))
    ]
    return {"shrinks": Ours.stated(runs.both_fall, detail=", ".join(ends))}


def draw(numbers: pd.DataFrame) -> Figure:
    """Ratios against d; and beyond the paper against n in ten dimensions."""
    return geometric_median.draw(numbers, "dimension d of the data")
