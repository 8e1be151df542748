"""Section 3.3: a model that generalises as well as you like, and tells everybody who was in.

X is normal and Y = X + U with U uniform on [-w/2, w/2]. The learned function answers y at a record (x, y) of its
training set, and x + D + U' everywhere else. With the loss |y - y'| the gap between unseen and seen records is D;
the loss is 0 at members alone.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from leakscope.papers import drawing
from leakscope.papers.lab import Lab, Outcome, mean_of
from leakscope.papers.printed import Ours

GAPS = (1.0, 0.1, 0.01)
WIDTH = 0.5  # of U, as a share of D


def measure(lab: Lab) -> Outcome:
    """Losses of members and of others, and what the attacker makes of them."""
    n = lab.size(full=100_000, quick=10_000)
    rows, gaps, successes = [], {}, []
    for gap in GAPS:
        loss = losses(gap, n, lab.stream("losses", str(gap)))
        rows += [{"gap": gap, "member": member, "loss": value} for member, one in loss.items() for value in one[:2000]]
        successes.append(((loss[True] == 0).mean() + (loss[False] != 0).mean()) / 2)
        gaps[f"gap_{gap}"] = mean_of(loss[False] - loss[True].mean())
    right = {"success": Ours(float(np.mean(successes)))}
    return Outcome(pd.DataFrame(rows), right | gaps, f"{n:,} members and {n:,} others for each of {len(GAPS)} gaps.")


def losses(gap: float, n: int, rng: np.random.Generator) -> dict[bool, np.ndarray]:
    """|f(x) - y| at n members (True) and n others (False), as the section defines f."""
    width = WIDTH * gap
    x, label = rng.normal(size=2 * n), rng.uniform(-width / 2, width / 2, 2 * n)
    answer = x + gap + rng.uniform(-width / 2, width / 2, 2 * n)
    answer[:n] = (x + label)[:n]
    loss = np.abs(answer - (x + label))
    return {True: loss[:n], False: loss[n:]}


def draw(numbers: pd.DataFrame) -> Figure:
    """The losses: a spike at 0, and a triangle around D."""
    figure, axes = drawing.panels(len(GAPS), width=2.9, height=2.5)
    for ax, (gap, part) in zip(axes, numbers.groupby("gap", sort=False), strict=True):
        cells = np.linspace(-0.1, 1.7, 37) * float(str(gap))
        for member, shade, hatch in ((True, drawing.OURS, ""), (False, drawing.THEIRS, "///")):
            loss = part.loc[part["member"] == member, "loss"]
            label = "members" if member else "others"
            ax.hist(loss, cells, color=shade, alpha=0.6, hatch=hatch, label=label)
        ax.set(title=f"gap D = {gap:g}", xlabel="loss |f(x) - y|", ylabel="records of 2,000")
    axes[0].legend()
    return figure
