"""Section 3.3: a model that generalises as well as you like, and tells everybody who was in.

X is normal and Y = X + U with U uniform on [-w/2, w/2]. The learned function answers y at a record (x, y) of its
training set, and x + D + U' everywhere else. With the loss |y - y'| the gap between unseen and seen records is D;
the loss is 0 at members alone.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from leakbound.papers import figures
from leakbound.papers.lab import Lab, Outcome
from leakbound.papers.printed import Ours

GAPS = (1.0, 0.1, 0.01)
WIDTH = 0.5  # of U, as a fraction of D


def measure(lab: Lab) -> Outcome:
    """Losses of members and of others, and what the attacker makes of them."""
    n = lab.size(full=100_000, quick=10_000)
    rows, successes = [], []
    for gap in GAPS:
        loss = losses(gap, n, lab.stream("losses", str(gap)))
        rows += [{"gap": gap, "member": member, "loss": value} for member, one in loss.items() for value in one[:2000]]
        successes.append(((loss[True] == 0).mean() + (loss[False] != 0).mean()) / 2)
    right = {"success": Ours(float(np.mean(successes)))}
    gaps = {f"gap_{gap}": Ours(expected_gap(gap)) for gap in GAPS}
    return Outcome(pd.DataFrame(rows), right | gaps, f"{n:,} members and {n:,} others for each of {len(GAPS)} gaps.")


def expected_gap(gap: float, n_cells: int = 100) -> float:
    """Compute the mean of |D + U' - U|, the loss of an unseen record, less the loss 0 of a seen one.

    The integral over both uniform numbers, by the midpoint rule: exact, since the integrand is linear in each of them
    (the width of U is below D).
    """
    middle = WIDTH * gap * ((np.arange(n_cells) + 0.5) / n_cells - 0.5)
    return float(np.abs(gap + middle[:, None] - middle).mean())


def losses(gap: float, n: int, rng: np.random.Generator) -> dict[bool, np.ndarray]:
    """|f(x) - y| at n members (True) and n others (False), as the section defines f (delgrosso2021, equation 23)."""
    width = WIDTH * gap
    x, label = rng.normal(size=2 * n), rng.uniform(-width / 2, width / 2, 2 * n)
    answer = x + gap + rng.uniform(-width / 2, width / 2, 2 * n)
    answer[:n] = (x + label)[:n]
    loss = np.abs(answer - (x + label))
    return {True: loss[:n], False: loss[n:]}


def draw(numbers: pd.DataFrame) -> Figure:
    """Draw the losses: a spike at 0, and a triangle around D."""
    figure, axes = figures.panels(len(GAPS), width=2.9, height=2.5)
    for ax, (gap, part) in zip(axes, numbers.groupby("gap", sort=False), strict=True):
        cells = np.linspace(-0.1, 1.7, 37) * float(str(gap))
        for member, shade, hatch in ((True, figures.OURS, ""), (False, figures.THEIRS, "///")):
            loss = part.loc[part["member"] == member, "loss"]
            label = "members" if member else "others"
            ax.hist(loss, cells, color=shade, alpha=0.6, hatch=hatch, label=label)
        ax.set(title=f"gap D = {gap:g}", xlabel="loss |f(x) - y|", ylabel="records of 2,000")
    axes[0].legend()
    return figure
