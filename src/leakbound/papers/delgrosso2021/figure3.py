"""Section 4.1, Figure 3: the Bayes attacker of a linear regression between his bounds.

The rows x_1, ..., x_n of the design are fixed and known, drawn once from N(0, I) in d = 20 dimensions; the responses
have Gaussian noise, and least squares is released. The attacker gets a response at a random row, and says whether it is
the one that was used. His success is that of 10,000 games of Algorithm 1; ours is exact, by one integral for each row.

Below it is Theorem 4, with the tail that the squared residual has (erratum 15), and a larger bound from the same gap
and tail. Above it is Theorem 5, once with the information in nats, and once as eq. 67 and 80 are printed, bits with
nats (erratum 14). That one is not proved, and too small for other algorithms; this attacker happens to stay below it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import leakbound as ls
from leakbound.papers import figures
from leakbound.papers.lab import Lab, Outcome, Parameter
from leakbound.papers.printed import Ours

D = Parameter("d", 20, "number of columns of the design", least=1, most=400)
PARAMETERS = (D,)
N_GAMES = 10_000
FEW = (21, 22, 23, 24, 26, 28, 30, 35, 40, 50, 65, 80, 100, 140, 200, 280, 400, 500)


def measure(lab: Lab) -> Outcome:
    """Games and exact values at each n."""
    d = D.of(lab)
    sizes = [n for n in lab.size(full=tuple(range(d + 1, 501)), quick=FEW) if n > d]
    results = lab.repeat(regression, [(n, d, N_GAMES, lab.seed) for n in sizes], "sizes")
    frame = pd.DataFrame([{name: value.item() for name, value in one.items()} for one in results])
    ours = {
        "above_lower": Ours(bool((frame[["success", "high"]].min(axis=1) > frame["lower"]).all())),
        "below_upper": Ours(bool((frame[["success", "low"]].max(axis=1) <= frame["upper"]).all())),
        "below_upper_in_bits": Ours(float((frame["success"] <= frame["upper_in_bits"]).to_numpy().mean())),
        "falls": Ours(falls(frame), detail="means of ten groups of neighbouring n, each lower than the one before"),
        "approaches_half": Ours(float(frame["success"].to_numpy()[-1])),
    }
    return Outcome(frame, ours, f"d = {d}, {len(sizes)} sizes from n = {sizes[0]} to 500, {N_GAMES:,} games each.")


def regression(n: int, d: int, n_games: int, seed: int) -> dict[str, float]:
    """Measure, compute and bound the attacker against least squares on n rows of d columns."""
    X = ls.seeds.stream(seed, "design", n).normal(size=(n, d))
    exact = ls.bounds.linear_regression_bayes(X)
    accuracy = ls.bounds.simulate_regression_game(X, n_games=n_games, seed=ls.seeds.integer(seed, "games", n))
    return {
        "n": n,
        "played": accuracy.value,
        "low": accuracy.low,
        "high": accuracy.high,
        "success": exact.accuracy,
        "lower": ls.bounds.generalisation_bound_tails(exact.gap, exact.tail, method="published"),
        "lower_ours": exact.lower,
        "upper": exact.upper,
        "upper_in_bits": ls.bounds.kl_upper(exact.information * np.log(2)),
        "gap": exact.gap,
        "information": exact.information,
    }


def falls(frame: pd.DataFrame) -> bool:
    """Whether all four fall with n; the rows of a design are drawn anew for each n, so that neighbours may differ."""
    groups = np.array_split(frame[["success", "lower", "gap", "information"]].to_numpy(), 10)
    return bool((np.diff([group.mean(axis=0) for group in groups], axis=0) <= 0).all())


def draw(numbers: pd.DataFrame) -> Figure:
    """Success between its bounds; the gap and the information that these rest on."""
    figure, axes = figures.panels(3, width=4.0, height=3.8)
    n = numbers["n"]
    axes[0].fill_between(n, numbers["low"], numbers["high"], color=figures.MUTE, alpha=0.25, linewidth=0)
    axes[0].plot(n, numbers["played"], ".", color=figures.MUTE, label="SR of the Bayes attacker, games (95 %)")
    theirs = {"color": figures.THEIRS}
    for name, label, style in (
        ("upper", "UB, Theorem 5", theirs | {"linestyle": "--"}),
        ("upper_in_bits", "UB with bits, as printed", theirs | {"linestyle": ":"}),
        ("success", "SR, exact (ours)", {"color": figures.OURS, "linewidth": 2.2}),
        ("lower_ours", "LB from gap and tail (ours)", {"color": figures.OURS, "linestyle": "-."}),
        ("lower", "LB, Theorem 4, right tail", theirs),
    ):
        axes[0].plot(n, numbers[name], label=label, **style)
    axes[0].set(title="success rate (SR) and bounds", ylabel="fraction of games won", ylim=(0.48, 1.02))
    axes[0].legend()
    axes[1].plot(n, numbers["gap"], color=figures.INK)
    axes[1].set(title="generalisation gap", ylabel="squared error, in variances of the noise", yscale="log")
    axes[2].plot(n, numbers["information"], color=figures.INK)
    axes[2].set(title="mutual information (MI)", ylabel="of a response and the estimate, in nats", yscale="log")
    for ax in axes:
        ax.set(xscale="log", xlabel="n: training records")
        ax.set_xticks([21, 50, 100, 200, 500], ["21", "50", "100", "200", "500"], minor=False)
        ax.set_xticks([], minor=True)
    return figure
