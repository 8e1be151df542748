"""Figure 4: three attacks on networks for images, and what Theorem 2 makes of their generalisation gap.

A member and a test image are equally likely. The likelihood attack calls a member who has a probability above .8; the
thresholds of loss and modified entropy, which the paper does not print, are learned from other networks. The rates of
each network are those over all its images, where the paper plays 10,000 games at random. Theorem 2 bounds the best
attacker from below, not these: that one of them falls below it somewhere is no contradiction, as the paper says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure

import leakscope as ls
from leakscope.papers import figures
from leakscope.papers.delgrosso2021 import gap, images
from leakscope.papers.lab import Lab, Outcome, mean_of
from leakscope.papers.printed import Ours, all_above

# Networks by n: 100 each in print.
FULL = {10: 20, 20: 20, 50: 20, 100: 20, 200: 20, 500: 10, 1000: 10, 2000: 5, 5000: 3, 10_000: 3}
QUICK = {"mnist": {10: 4, 500: 3}, "fashion": {100: 3}, "cifar10": {100: 3}}
LINES = {
    "likelihood": "likelihood attack, threshold .8",
    "loss": "loss attack",
    "modified_entropy": "modified entropy attack",
    **gap.TITLES,
}
LOOKS = dict(zip(LINES, figures.STYLES[1:], strict=True))
LOOKS["loss"] = {**LOOKS["loss"], "markersize": 9, "markerfacecolor": "none"}  # seen around modified entropy's
LOOKS["sharper"] = {**LOOKS["sharper"], "color": figures.OURS}


def measure(lab: Lab) -> Outcome:
    """Run the three sets of images, each with its numbers of training images."""
    plan = {name: lab.size(full=FULL, quick=QUICK[name]) for name in images.SHAPES}
    return study(lab, plan, lab.size(full=10_000, quick=1000))


def study(lab: Lab, plan: Mapping[str, Mapping[int, int]], n_others: int) -> Outcome:
    """Networks for some sets of images.

    Parameters
    ----------
    lab : Lab
    plan : mapping of str to mapping of int to int
        For each set, by n, how many networks: two or more.
    n_others : int
        Test images for each network.

    Returns
    -------
    Outcome
    """
    from leakscope.papers.delgrosso2021 import networks

    rows: list[dict[str, Any]] = []
    ours: dict[str, Ours] = {}
    for name, sizes in plan.items():
        networks_of: dict[int, gap.Networks] = {}
        for n, models in sizes.items():
            arguments = [(name, n, n_others, number, lab.seed) for number in range(models)]
            runs = lab.repeat(images.attacked, arguments, f"{images.TITLES[name]}, n = {n}", name)
            networks_of[n] = gap.Networks.of(runs)
            ends = zip(LINES, lines(runs, n).values(), strict=True)
            facts = {"data": name, "n": n, "models": models}
            rows += [facts | {"line": line, "value": v, "low": low, "high": high} for line, (v, low, high) in ends]
        ours[f"bound_holds_{name}"] = gap.bound_holds(networks_of, FULL)
        if len(sizes) > 1:
            ours[f"approaches_half_{name}"] = approaches_half(networks_of)
        if name == "mnist":
            ours["below_half_mnist"] = smallest(networks_of)
    for name in plan.keys() & {"mnist", "cifar10"}:
        ours[f"parameters_{name}"] = Ours(networks.n_parameters(networks.deep_cnn(**images.SHAPES[name])))
    networks_text = "; ".join(f"{images.TITLES[name]}: n = {_listed(sizes)}" for name, sizes in plan.items())
    return Outcome(pd.DataFrame(rows), ours, f"{n_others:,} test images for each network. {networks_text}.")


def lines(runs: Sequence[Mapping[str, Any]], n: int) -> dict[str, tuple[float, float, float]]:
    """Each line of the figure at one n: a number and the ends of its 95 % interval over networks.

    Parameters
    ----------
    runs : sequence of mapping
        Of `images.attacked`, two or more.
    n : int
        The first so many images are members.

    Returns
    -------
    dict of str to (value, low, high)
        In the order of `LINES`.
    """
    networks = gap.Networks.of(runs)
    member = np.tile(np.arange(len(runs[0]["loss"])) < n, (len(runs), 1))
    intervals = {"likelihood": ls.intervals.cluster_t(networks.success)}
    for attack in ("loss", "modified_entropy"):
        score = np.stack([run[attack] for run in runs]).astype(float)
        intervals[attack] = ls.metrics.accuracy(ls.Scores(attack, score, member))
    values = {name: (interval.value, interval.low, interval.high) for name, interval in intervals.items()}
    values |= networks.lines()
    return {name: values[name] for name in LINES}


def approaches_half(networks_of: Mapping[int, gap.Networks]) -> Ours:
    """Tell whether success and gap are smaller at the largest n than where they are largest.

    Parameters
    ----------
    networks_of : mapping of int to Networks
        By n, two or more. The bound is linear in the gap.
    """
    last, falls, details = max(networks_of), [], []
    for name in ("success", "gap"):
        means = {n: mean_of(getattr(trained, name)) for n, trained in networks_of.items()}
        top = max(means, key=lambda n, means=means: means[n].value)
        error = float(np.hypot(means[top].error, means[last].error))
        falls.append(Ours(means[top].value - means[last].value, error))
        details.append(f"{name} {means[top].value:.3f} at n = {top:,}, {means[last].value:.3f} at n = {last:,}")
    shorter = "" if last >= max(FULL) else f"n up to {last:,} of {max(FULL):,}"
    return Ours.stated(all_above(falls), smaller=shorter, detail="; ".join(details))


def smallest(networks_of: Mapping[int, gap.Networks]) -> Ours:
    """Find the smallest mean success of the likelihood attack over n.

    Parameters
    ----------
    networks_of : mapping of int to Networks
        By n.
    """
    means = {n: mean_of(trained.success) for n, trained in networks_of.items()}
    n = min(means, key=lambda n: means[n].value)
    last = max(networks_of)
    shorter = "" if last >= max(FULL) else f"n up to {last:,} of {max(FULL):,}"
    return Ours(means[n].value, means[n].error, smaller=shorter, detail=f"at n = {n:,}")


def draw(numbers: pd.DataFrame) -> Figure:
    """Success and bounds against n, the accuracy on the right."""
    figure, axes = figures.panels(len(numbers["data"].unique()), width=3.6, height=3.4)
    handles: list[Artist] = []
    for ax, (name, part) in zip(axes, numbers.groupby("data", sort=False), strict=True):
        handles = gap.draw(ax, part, {line: (words, LOOKS[line]) for line, words in LINES.items()})
        ax.set(title=images.TITLES[str(name)], xlabel="training images n")
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def _listed(sizes: Mapping[int, int]) -> str:
    return ", ".join(f"{n:,} ({models} networks)" for n, models in sizes.items())
