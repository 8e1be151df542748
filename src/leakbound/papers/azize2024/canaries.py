"""Section 4.4 and Appendix D: an audit of DP-SGD in one run, whose canaries are chosen by their distance.

The paper says how to choose canaries (Algorithm 6) and how to score them (Algorithm 7), and leaves the experiment to
others. Here it is, on MNIST: canaries of large Mahalanobis distance with Dirac canaries, whose success the distance
is to explain, and random records; the largest step, as printed, with the likelihood ratio of all steps (erratum 12)
and the loss; and what one training proves of epsilon.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import leakbound as ls
from leakbound.papers import figures
from leakbound.papers.azize2024.one_run import DELTA, KINDS, RATE, audited
from leakbound.papers.lab import Lab, Outcome, mean_of
from leakbound.papers.printed import Ours

EPSILONS = (1.0, 2.0, 4.0, 8.0)
SCORES = {"ratio": "all steps: likelihood ratio", "largest": "largest step (Algorithm 7)", "loss": "loss"}
BOUNDS = {"any": "any guarantee", "noise": "if the noise alone is in doubt"}


def measure(lab: Lab) -> Outcome:
    """Every kind of canaries at every epsilon, in several runs with images, coins and noise of their own."""
    epsilons, n_runs = lab.size(full=EPSILONS, quick=(1.0, 8.0)), lab.size(full=10, quick=2)
    n_images, n_canaries, steps = lab.size(full=(8000, 500, 200), quick=(1600, 100, 60))
    noises = {epsilon: multiplier(epsilon, steps) for epsilon in epsilons}
    # each run has images, coins and noise of its own, also at another epsilon
    cases = [(kind, epsilon, run) for run in range(n_runs) for epsilon in epsilons for kind in KINDS]
    seeds = [ls.seeds.integer(lab.seed, "canaries", str(epsilon), run) for _, epsilon, run in cases]
    arguments = [
        (kind, noises[epsilon], steps, n_images, n_canaries, seed)
        for (kind, epsilon, _), seed in zip(cases, seeds, strict=True)
    ]
    results = lab.repeat(audited, arguments, "audits of DP-SGD", "mnist")
    numbers = pd.DataFrame(
        {"canaries": kind, "epsilon": epsilon, "run": run, "quantity": name, "value": float(value)}
        for (kind, epsilon, run), result in zip(cases, results, strict=True)
        for name, value in result.items()
    )
    smaller = f"{steps} of 200 steps, {n_canaries} of 500 canaries" if lab.quick else ""
    run = (
        f"784-32-10 network on {n_images:,} images of MNIST, {steps} steps at rate {RATE:g}, delta = 1e-5; "
        f"{n_canaries} canaries (Mahalanobis: of {n_images // 2:,} candidates), {n_runs} runs at each of "
        f"{len(epsilons)} epsilons."
    )
    return Outcome(numbers, claims(numbers, smaller), run)


def multiplier(epsilon: float, steps: int) -> float:
    """Noise of DP-SGD for (epsilon, 1e-5) by the accountant, one record in or out."""
    return ls.dpsgd.dpsgd_multiplier(RATE, steps, adjacency="add_remove", epsilon=epsilon, delta=DELTA)


def claims(numbers: pd.DataFrame, smaller: str = "") -> dict[str, Ours]:
    """Differences of AUCs, averaged over the epsilons of a run; runs are independent."""

    def difference(one: tuple[str, str], other: tuple[str, str]) -> Ours:
        first, second = (by_run(numbers, *series).to_numpy().mean(axis=0) for series in (one, other))
        detail = f"{first.mean():.3f} and {second.mean():.3f}, mean over epsilon"
        return mean_of(first - second, smaller=smaller, detail=detail)

    random = ("random", "auc_ratio")
    return {
        "mahalanobis_beats_random": difference(("mahalanobis", "auc_ratio"), random),
        "dirac_beats_random": difference(("dirac", "auc_ratio"), random),
        "printed_score": difference(("dirac", "auc_ratio"), ("dirac", "auc_largest")),
    }


def by_run(numbers: pd.DataFrame, kind: str, name: str) -> pd.DataFrame:
    """Select a quantity of a kind of canaries: a row an epsilon, a column a run."""
    runs = numbers.query("canaries == @kind and quantity == @name")
    return runs.pivot(index="epsilon", columns="run", values="value")


def draw(numbers: pd.DataFrame) -> Figure:
    """Lower bounds of epsilon, with the accountant's; AUC by kind of canaries and by score."""
    figure, axes = figures.panels(3, 2, width=3.5, height=3.1)
    top = max(numbers["epsilon"])
    for ax, (name, title) in zip(axes[:2], BOUNDS.items(), strict=True):
        for kind, style in zip(KINDS, figures.STYLES, strict=False):
            _line(ax, by_run(numbers, kind, f"lower_{name}"), kind, style)
        ax.plot([0, top], [0, top], color=figures.MUTE, linestyle=":", linewidth=1, label="the accountant's")
        ax.set(title=title, ylabel=r"lower bound of $\varepsilon$, 95 %")
    for kind, style in zip(KINDS, figures.STYLES, strict=False):
        _line(axes[2], by_run(numbers, kind, "auc_ratio"), kind, style)
    axes[2].set_title("likelihood ratio, by canaries")
    for ax, kind in zip(axes[3:], KINDS, strict=True):
        for (name, label), style in zip(SCORES.items(), figures.STYLES, strict=False):
            _line(ax, by_run(numbers, kind, f"auc_{name}"), label, style)
        ax.set_title(f"{kind} canaries, by score")
    areas = numbers.query("quantity.str.startswith('auc')")["value"].tolist()
    for ax in axes[2:]:
        ax.axhline(0.5, color=figures.MUTE, linestyle=":", linewidth=1)
        ax.set(ylabel="AUC", ylim=(min(areas) - 0.02, max(areas) + 0.1))
    for ax in axes:
        ax.set_xlabel(r"$\varepsilon$ by the accountant ($\delta = 10^{-5}$)")
        ax.legend(loc="upper left")
    figure.suptitle(f"mean, least and most of {numbers['run'].nunique()} runs", fontsize=9)
    return figure


def _line(ax: Axes, runs: pd.DataFrame, label: str, style: Mapping[str, Any]) -> None:
    """Mean with the least and the most of all runs; nothing where a score does not apply."""
    if runs.empty:
        return
    x, values = runs.index.to_numpy(), runs.to_numpy()
    figures.band(ax, x, values.mean(axis=1), values.min(axis=1), values.max(axis=1), label, **style)
