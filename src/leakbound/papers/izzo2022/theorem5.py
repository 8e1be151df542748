"""Theorems 3 and 5: membership privacy without differential privacy, and what is computed from a release.

The algorithm of Theorem 5 publishes each record of its input with a small probability p. Who finds x among the
published records knows that x was in; nobody else knows more than before. Both are enumerated: all halves of n records,
and all sets of records that can be published. The proof of the paper bounds the accuracy by a count of the outputs,
which is of no use beyond tiny p; exactly eta is p/2, for every n.

Theorem 3 is tested by every yes-or-no question that can be put to the output of a small game, and by two releases that
are computed from the output with randomness of their own.
"""

from __future__ import annotations

from math import comb

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import leakbound as ls
from leakbound.papers import figures
from leakbound.papers.lab import Lab, Outcome
from leakbound.papers.printed import Ours

P = 0.02
CHANCES = (0.0005, 0.001, 0.002, 0.005, 0.01, P, 0.05, 0.1, 0.2, 0.5)
EXACT, PROOF = "published records, exact", "published records, as the proof bounds it"


def measure(lab: Lab) -> Outcome:
    """Exact numbers; the quick run is the full one."""
    n, n_asked = 8, 4
    rows = [row for p in CHANCES for row in etas(p, n)]
    distribution, member = published(P, n)
    gains = questions(P, n_asked)
    computed = [row["eta"] for row in etas(P, n) if row["release"] not in (EXACT, PROOF)]
    within_bound = max(gains.max(), *computed) <= P / 2 + 1e-12
    ours = {
        "eta": Ours(float(ls.bounds.exact_eta_discrete(distribution, member).max())),
        "no_dp": Ours(bool(np.isinf(epsilon(distribution, member)))),
        "post_processing": Ours(
            bool(within_bound), detail=f"{gains.size:,} questions, the best of them {gains.max():.6f}"
        ),
    }
    return Outcome(pd.DataFrame(rows), ours, f"All halves of n = {n} records; all questions for n = {n_asked}.")


def published(p: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Chance of each published set, for each half of the records, shape (halves, sets); and the halves, (halves, n)."""
    member = ls.bounds.subsets(n, n // 2)
    sets = outputs(n)
    size = sets.sum(axis=1)
    inside = (sets[None] <= member[:, None]).all(axis=2)
    return inside * p**size * (1 - p) ** (n // 2 - size), member


def outputs(n: int) -> np.ndarray:
    """All sets of at most half of the records, shape (sets, n)."""
    sets = ls.bounds.subsets(n)
    return sets[sets.sum(axis=1) <= n // 2]


def epsilon(distribution: np.ndarray, member: np.ndarray) -> float:
    """Of differential privacy: largest log-ratio over the halves that differ in one record."""
    first, second = np.nonzero((member[:, None] != member[None]).sum(axis=2) == 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nanmax(np.log(distribution[first]) - np.log(distribution[second])))


def etas(p: float, n: int) -> list[dict[str, object]]:
    """Of the published set, exact and by the proof, and of what can be computed from it (izzo2022, Theorem 5)."""
    distribution, member = published(p, n)
    sets = outputs(n)
    size = sets.sum(axis=1)
    kernels = {
        EXACT: np.eye(len(sets)),
        "one of them, drawn at random": np.c_[size == 0, sets / np.maximum(size, 1)[:, None]],
        "each of them if its coin says so": (sets[None] <= sets[:, None]).all(axis=2) * 0.5 ** size[:, None],
    }
    eta_of = {
        name: ls.bounds.exact_eta_discrete(distribution @ kernel, member).max() for name, kernel in kernels.items()
    }
    none, n_outputs = (1 - p) ** (n // 2), sum(comb(n, size_of_set) for size_of_set in range(1, n // 2 + 1))
    eta_of[PROOF] = min((none + n_outputs * (1 - none)) / 2, 1.0) - 0.5
    return [{"release": name, "p": p, "eta": float(eta)} for name, eta in eta_of.items()]


def questions(p: float, n: int) -> np.ndarray:
    """Eta of the answer to each yes-or-no question about the published set, for its most exposed record."""
    distribution, member = published(p, n)
    inside, outside = (which.T @ distribution / which.sum(axis=0)[:, None] for which in (member, ~member))
    n_outputs = distribution.shape[1]
    yes = np.arange(1 << n_outputs)[:, None] >> np.arange(n_outputs) & 1
    return np.abs(yes @ (inside - outside).T).max(axis=1) / 2


def draw(numbers: pd.DataFrame) -> Figure:
    """Eta against p."""
    figure, (ax,) = figures.panels(1, width=7.0, height=3.4)
    look = iter(figures.STYLES[1:])
    for release, part in numbers.groupby("release", sort=False):
        style = {"color": figures.OURS, "linewidth": 2.2, "marker": "o"} if release == EXACT else next(look)
        ax.plot(part["p"], part["eta"], label=release, **style)
    ax.axhline(0.5, color=figures.MUTE, linewidth=1, label="differential privacy: no epsilon, eta = 1/2")
    ax.set(xscale="log", yscale="log", xlabel="p: probability with which a record is published")
    ax.set(ylabel="eta: accuracy of the\nbest attacker above one half")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
