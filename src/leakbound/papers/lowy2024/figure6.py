"""Figure 6: the Gaussian mechanism in more and more dimensions.

The distances between records grow more alike, and so the worst swap is less worse than the others. The caption lacks
its epsilon; here either epsilon or an exact epsilon(X) is 5, and the claim must hold for both.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from leakbound.papers.lab import Lab, Outcome, Parameter
from leakbound.papers.lowy2024 import clipped_mean, ratios
from leakbound.papers.lowy2024.clipped_mean import Setting
from leakbound.papers.lowy2024.ratios import EXACT, PROMISE
from leakbound.papers.printed import Ours

DIMENSIONS = (1, 2, 5, 10, 20, 50, 100)

EPSILON = Parameter("epsilon", 5.0, "epsilon, or epsilon(X) where it is kept", least=0.01, most=100.0)
PARAMETERS = (EPSILON, *clipped_mean.parameters(100, 1, 50.0, 1.0, "n", "C", "sigma"))


def measure(lab: Lab) -> Outcome:
    """Both ratios against d."""
    n_trials = lab.size(full=20, quick=3)
    setting = clipped_mean.of(lab, Setting(EPSILON.of(lab), EXACT, d=1), PARAMETERS[1:])
    lines = {
        line: clipped_mean.sweep(lab, [setting._replace(fixed=line, d=d) for d in DIMENSIONS], n_trials)
        for line in (EXACT, PROMISE)
    }
    rise = {line: runs.both_rise for line, (runs, _) in lines.items()}
    detail = f"where epsilon(X) is 5: {ratios.answer(rise[EXACT])}; where epsilon is 5: {ratios.answer(rise[PROMISE])}"
    ours = {"grows": Ours.stated(ratios.both(rise[EXACT], rise[PROMISE]), detail=detail)}
    sizes = f"{n_trials} data sets in each of {len(DIMENSIONS)} dimensions."
    return Outcome(clipped_mean.table(lines, DIMENSIONS), ours, sizes, trials=clipped_mean.trials(lines, DIMENSIONS))


def draw(numbers: pd.DataFrame) -> Figure:
    """Ratios and epsilons against d."""
    return clipped_mean.draw(numbers, "dimension d of the data")
