"""Figure 1: one threshold for all records (MALT), or one for each (MAST).

Each of n = 100 standard normal records of d = 2000 coordinates is a member with probability 1/2. The model is the mean
of the n' members, and the loss of a record half of its squared distance from it. A record is called a member where its
loss is below a threshold: eq. 35, or eq. 34, which asks how far the record lies from the middle of the population. As
printed both lack (d/2) ln(1 + 1/n'), about 20 of a loss of 1000 (erratum 19): then nearly everybody is called out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import leakbound as ls
from leakbound.papers import figures
from leakbound.papers.lab import Lab, Outcome, Parameter, mean_of, trials_of

N = Parameter("n", 100, "number of records, each a member with probability 1/2", least=20, most=10_000)
D = Parameter("d", 2000, "number of coordinates", least=1, most=100_000)
PARAMETERS = (N, D)
BLOCK = 50  # games that are played and stored together
CELLS = 48


def measure(lab: Lab) -> Outcome:
    """Games with new records each, one model a game."""
    n_games = lab.size(full=2000, quick=200)
    n, d = N.of(lab), D.of(lab)
    blocks = [(lab.seed, first, n, d) for first in range(0, n_games, BLOCK)]
    block_results = lab.repeat(play, blocks, "games with a mean")
    member, malt, mast, constant = (
        np.concatenate([block[name] for block in block_results]) for name in ("member", "malt", "mast", "constant")
    )
    # the printed threshold lacks (d/2) ln(1 + 1/n') (erratum 19); both are drawn
    panels = {
        ("MALT", "as printed"): malt - constant[:, None],
        ("MAST", "as printed"): mast - constant[:, None],
        ("MALT", "with the constant"): malt,
        ("MAST", "with the constant"): mast,
    }
    best = {name: right(score, member, threshold(score, member)) for name, score in panels.items()}
    zero = {name: right(score, member, 0.0) for name, score in panels.items()}
    rows = [
        {"attack": name[0], "tau": name[1], "at_zero": zero[name].mean(), "best": best[name].mean()} | cell
        for name, score in panels.items()
        for cell in histogram(score, member)
    ]
    printed, ours = ("MAST", "as printed"), ("MAST", "with the constant")
    # each pair of thresholds is compared game by game, so that the error is that of the difference
    corrected = mean_of(zero[ours] - best[ours])
    detail = f"accuracy {zero[printed].mean():.3f} at score 0; with the constant {zero[ours].mean():.4f}, "
    detail += f"{corrected.value:+.4f} from the best threshold"
    claims = {
        "mast_beats_malt": mean_of(best[ours] - best["MALT", "with the constant"]),
        "threshold_zero": mean_of(zero[printed] - best[printed], detail=detail),
    }
    run = f"{n_games:,} games with {n:,} records of {d:,} coordinates."
    each = [
        row
        for at, accuracies in (("zero", zero), ("best", best))
        for (attack, tau), values in accuracies.items()
        for row in trials_of(values, attack=attack, tau=tau, threshold=at)
    ]
    return Outcome(pd.DataFrame(rows), claims, run, trials=pd.DataFrame(each))


def play(seed: int, first: int, n: int, d: int) -> dict[str, np.ndarray]:
    """Scores tau - loss of the n records of `BLOCK` games, tau with its constant; memberships; the constants.

    The loss is that of sablayrolles2019, equation 33.
    """
    columns: dict[str, list[Any]] = {"member": [], "malt": [], "mast": [], "constant": []}
    for game in range(first, first + BLOCK):
        rng = ls.seeds.stream(seed, "sablayrolles2019", "figure1", game)
        z, member = rng.normal(size=(n, d)), rng.random(n) < 0.5
        n_members = int(member.sum())
        loss = ((z - z[member].mean(axis=0)) ** 2).sum(axis=1) / 2
        tau = ls.bounds.gaussian_mean_tau(z, np.zeros(d), 1.0, n_members)
        constant = d * np.log1p(1 / n_members) / 2
        typical = n_members * d / (2 * (n_members + 1)) + constant
        columns["member"].append(member)
        columns["malt"].append(typical - loss)
        columns["mast"].append(tau - loss)
        columns["constant"].append(constant)
    return {name: np.array(values) for name, values in columns.items()}


def threshold(score: np.ndarray, member: np.ndarray) -> float:
    """Find the best threshold for all games together."""
    return float(ls.metrics.accuracy(ls.Scores("score", score, member)).detail["threshold"])


def right(score: np.ndarray, member: np.ndarray, at: float) -> np.ndarray:
    """Fraction of correct guesses in each game, "member" where the score is at least the threshold."""
    return ((score >= at) == member).mean(axis=1)


def histogram(score: np.ndarray, member: np.ndarray) -> list[dict[str, Any]]:
    """Fractions of members and of others in cells of equal width."""
    edges = np.linspace(score.min(), score.max(), CELLS + 1)
    cells = []
    for inside in (True, False):
        share = np.histogram(score[member == inside], edges)[0] / np.count_nonzero(member == inside)
        cells += [
            {"member": inside, "low": low, "high": high, "share": value}
            for low, high, value in zip(edges[:-1], edges[1:], share, strict=True)
        ]
    return cells


def draw(numbers: pd.DataFrame) -> Figure:
    """Scores of members and of others, as printed above, corrected below."""
    figure, axes = figures.panels(2, 2, width=3.6, height=2.7)
    panels = numbers[["tau", "attack"]].drop_duplicates().itertuples(index=False, name=None)
    for ax, (tau, attack) in zip(axes, panels, strict=True):
        part = numbers[(numbers["tau"] == tau) & (numbers["attack"] == attack)]
        for inside, shade, hatch in ((True, figures.OURS, ""), (False, figures.THEIRS, "////")):
            cells = part[part["member"] == inside]
            edges = np.append(cells["low"], cells["high"].max())
            look = {"facecolor": shade, "edgecolor": "white", "linewidth": 0, "alpha": 0.65, "hatch": hatch}
            ax.stairs(cells["share"] * 100, edges, fill=True, label="members" if inside else "others", **look)
        ax.axvline(0, color=figures.INK, linewidth=1, label="from here on called members")
        zero, best = 100 * part["at_zero"].mean(), 100 * part["best"].mean()
        ax.set(title=f"{attack}, τ {tau}:\n{zero:.2f} % right; at the best threshold {best:.2f} %")
        ax.set(xlabel="score τ - loss, nats", ylabel="records, %")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
