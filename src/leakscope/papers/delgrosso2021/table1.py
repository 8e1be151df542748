"""Table 1: precision where nearly all members are found.

A network is trained on 8,000 images; the attacker calls members so many of these and of 10,000 test images that he
finds more than 99 % of the members. The threshold is the highest one that does, by the true answers: no attacker
with this score has a better one. Who calls everybody a member has the precision 8000/18000 = .444 at a recall of 1,
and a precision can only be read as its distance from that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from leakscope.papers import figures
from leakscope.papers.delgrosso2021 import images
from leakscope.papers.lab import Lab, Outcome, mean_of
from leakscope.papers.printed import Ours, printed

N = 8000  # images of each network
RECALL = 0.99
PRIOR = N / 18_000


def measure(lab: Lab) -> Outcome:
    """Three attacks on networks for three sets of images."""
    n, n_others, models = lab.size(full=(N, 10_000, 3), quick=(400, 500, 2))
    return study(lab, n, n_others, models)


def study(lab: Lab, n: int, n_others: int, models: int) -> Outcome:
    """Networks of n images for each set.

    Parameters
    ----------
    lab : Lab
    n, n_others : int
        Members and test images; as 8 to 10, the prior stays what it is.
    models : int
        Networks for each set, two or more.

    Returns
    -------
    Outcome
    """
    smaller = "" if n == N else f"n = {n:,} of {N:,} images"
    rows: list[dict[str, Any]] = []
    ours: dict[str, Ours] = {}
    for name in images.SHAPES:
        arguments = [(name, n, n_others, number, lab.seed) for number in range(models)]
        runs = lab.repeat(images.attacked, arguments, f"{images.TITLES[name]}, n = {n}", name)
        for attack in images.ATTACKS:
            precisions = [precision(run[attack], n) for run in runs]
            ours[f"{name}_{attack}"] = mean_of(precisions, smaller=smaller)
            rows += [
                {"data": name, "attack": attack, "network": number, "ppv": value, "printed": _printed(name, attack)}
                for number, value in enumerate(precisions)
            ]
    best = max(one.value for one in ours.values())
    run = f"{models} networks for each set of images, {n:,} members and {n_others:,} others; the largest precision is "
    run += f"{best - PRIOR:.3f} above 8/18, that of who calls everybody a member."
    return Outcome(pd.DataFrame(rows), ours, run)


def precision(score: np.ndarray, n: int) -> float:
    """Fraction of members among those with a score at or above the highest threshold that finds more than 99 % of them.

    Parameters
    ----------
    score : array of shape (N,)
        Higher = member.
    n : int
        The first so many are members.

    Returns
    -------
    float

    Examples
    --------
    >>> precision(np.array([3.0, 1.0, 2.0, 0.0]), 2)
    0.6666666666666666
    """
    enough = int(np.floor(RECALL * n)) + 1
    called = score >= np.sort(score[:n])[n - enough]
    return float(called[:n].sum() / called.sum())


def draw(numbers: pd.DataFrame) -> Figure:
    """Ours compared with what is printed, and the precision of who calls everybody a member."""
    figure, axes = figures.panels(3, width=3.0, height=3.0)
    low, high = numbers[["ppv", "printed"]].min().min(), numbers[["ppv", "printed"]].max().max()
    for ax, (name, part) in zip(axes, numbers.groupby("data", sort=False), strict=True):
        place = part["attack"].map(list(images.ATTACKS).index)
        ax.axhline(PRIOR, color=figures.OURS, linestyle="--", label="everybody is a member: 8/18")
        ax.plot(place - 0.1, part["ppv"], "o", color=figures.INK, label="ours, a network")
        attacks = part.drop_duplicates("attack")
        at = attacks["attack"].map(list(images.ATTACKS).index)
        ax.plot(at + 0.1, attacks["printed"], "s", color=figures.THEIRS, label="printed")
        words = [words.replace(" ", "\n") for words in images.ATTACKS.values()]
        ax.set(title=images.TITLES[str(name)], xticks=range(len(words)), xticklabels=words, xlabel="attack")
        ax.set(ylabel="precision (PPV) at recall > .99", ylim=(low - 0.01, high + 0.01), xlim=(-0.5, len(words) - 0.5))
    figure.legend(handles=axes[0].get_legend_handles_labels()[0], loc="outside lower center", ncols=3)
    return figure


def _printed(name: str, attack: str) -> float | None:
    return printed("delgrosso2021")["table1"][f"{name}_{attack}"].value
