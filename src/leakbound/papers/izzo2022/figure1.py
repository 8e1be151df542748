"""Section 5.1, Figure 1: the noise for membership privacy and for differential privacy, where one set is an outlier.

Proposition 9 releases one over the sum of half of the records 1, 2, 4, ..., 2^(n-2) and A. A is chosen so that one of
the C(n, n/2) sums is as small as sqrt(p), p = 1/C(n, n/2), and all others are 1 at least. That half is drawn with
probability p: it hardly counts for the variance of the release, and it is all that counts for its sensitivity.

The figure has two ways to a promise eta: Laplace noise for differential privacy with the epsilon of Theorem 4, and for
membership privacy by Theorem 7 with M = 2. Ours are two more, with the same noise. The first knows no more than
Theorem 7 does, the standard deviation (erratum 3). The second pairs each half of the records with the other one, which
covers every record at once, since a record is in one of the two: what counts is the distribution of the difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, sqrt

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import leakbound as ls
from leakbound.papers import figures
from leakbound.papers.lab import Lab, Outcome, Parameter
from leakbound.papers.printed import Ours

SIZES = (36, 40, 44, 48)
N = Parameter("n", 36, "number of records, the smallest of four", least=6, most=48, even=True)
PARAMETERS = (N,)
ETAS = np.round(np.r_[np.geomspace(0.001, 0.1, 17), np.linspace(0.125, 0.475, 15), 0.49, 0.499], 6)  # .01 and .1 too
DP, MIP = "differential privacy", "membership privacy, Theorem 7 (M = 2)"
MOMENT, COMPLEMENT = "ours, from the standard deviation", "ours, from the two halves"


def measure(lab: Lab) -> Outcome:
    """Scales of Laplace noise; all of it is computed, nothing drawn, and the quick run is the full one."""
    sizes = [n - SIZES[0] + N.of(lab) for n in SIZES]
    frame = pd.concat([scales(n) for n in sizes], ignore_index=True)
    run = f"n = {', '.join(map(str, sizes))}, all halves of the records, {len(ETAS)} values of eta."
    if lab.set:
        return Outcome(frame, {}, run)
    deviation = [Pairs.of(n).standard_deviation for n in sizes]
    spread = max(deviation) / min(deviation) - 1
    ours = {
        "needs_less_36": Ours(needs_less(frame, (36,))),
        "needs_less_later": Ours(needs_less(frame, SIZES[1:])),
        "constant": Ours(spread < 1e-6, detail=f"sigma is 1 for all n, to a share of {spread:.0e}"),
        "exponential": Ours(sensitivity(48) / sensitivity(36)),
    }
    return Outcome(frame, ours, run)


def needs_less(frame: pd.DataFrame, sizes: tuple[int, ...]) -> bool:
    """Whether membership privacy needs less noise at every eta from .01 on."""
    scale = frame[frame["n"].isin(sizes) & (frame["eta"] >= 0.01)].pivot(index=["n", "eta"], columns="promise")["scale"]
    return bool((scale[MIP] < scale[DP]).all())


def scales(n: int) -> pd.DataFrame:
    """Scale of the Laplace noise for each promise and eta (izzo2022, Section 5.1)."""
    pairs, delta = Pairs.of(n), sensitivity(n)
    moment = ls.noise.moment(pairs.standard_deviation, d=1)
    rows = []
    for eta in ETAS.tolist():
        scale_of = {
            DP: delta / ls.bounds.dp_from_mip(eta),
            MIP: pairs.standard_deviation * ls.noise.izzo(1.0, eta, moment=2).scale,
            MOMENT: least(moment, eta),
            COMPLEMENT: least(pairs.shifts, eta),
        }
        rows += [{"promise": promise, "n": n, "eta": eta, "scale": scale} for promise, scale in scale_of.items()]
    return pd.DataFrame(rows)


def least(shifts: ls.noise.Shifts, eta: float) -> float:
    """Scale of the least Laplace noise that keeps eta."""
    noise = ls.noise.calibrate(shifts, eta, ls.noise.LaplaceNoise)
    assert isinstance(noise, ls.noise.LaplaceNoise)
    return noise.scale


def sensitivity(n: int) -> float:
    """Delta, from the outlying half to that with the record 2^(n-2) in the place of A (izzo2022, Proposition 9)."""
    return sqrt(comb(n, n // 2)) - 1 / (2 ** (n - 2) + 2 ** (n // 2 - 1) - 1)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The halves of the records with A, each with the other half, in groups of nearly equal sums.

    The sum of a half with A is t + sqrt(p), with a whole number t: A takes sqrt(p) less than the other records of the
    outlying half. The sum of its other half is ``total - t``, whole as well.
    """

    n: int
    n_halves: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, n: int, width: float = 2.0**-8) -> Pairs:
        """From the largest record down, the halves with it part from those without it.

        A group is done when its sums, and those of the other halves, differ by a fraction of ``width`` at most.
        """
        n_missing = n // 2 - 1  # records in addition to A
        ways = np.array([[comb(a, b) for b in range(n_missing + 1)] for a in range(n)])
        start, n_missing, done = np.array([1 - 2**n_missing]), np.array([n_missing]), []
        for left in range(n - 1, -1, -1):
            low, high = start + 2**n_missing - 1, start + (2**n_missing - 1) * 2 ** (left - n_missing)
            near = high - low <= width * np.minimum(low, cls._total(n) - high)
            done.append((ways[left, n_missing[near]], low[near], high[near]))
            start, n_missing = start[~near], n_missing[~near]
            start, n_missing = np.r_[start, start + 2 ** max(left - 1, 0)], np.r_[n_missing, n_missing - 1]
            possible = (n_missing >= 0) & (n_missing < left)
            start, n_missing = start[possible], n_missing[possible]
        return cls(n, *(np.concatenate(part) for part in zip(*done, strict=True)))

    @staticmethod
    def _total(n: int) -> int:
        """Return the sum of all records, less sqrt(p)."""
        return 2 ** (n - 1) - 2 ** (n // 2 - 1)

    @property
    def chance(self) -> np.ndarray:
        """Of each group, among the halves with A."""
        return self.n_halves / comb(self.n - 1, self.n // 2 - 1)

    def outputs(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what is released from a half with A, and from the other half."""
        return 1 / (t + comb(self.n, self.n // 2) ** -0.5), 1 / (self._total(self.n) - t)

    @property
    def standard_deviation(self) -> float:
        """Of the release, over all halves of the records; not below it, and above by less than the width."""
        (most, other_least), (least, other_most) = self.outputs(self.low), self.outputs(self.high)
        square = self.chance @ (most**2 + other_most**2) / 2
        return sqrt(square - (self.chance @ (least + other_least) / 2) ** 2)

    @property
    def shifts(self) -> ls.noise.Shifts:
        """Lengths of the difference, each the longest of its group: one output falls with t and the other rises."""
        ends = [np.abs(np.subtract(*self.outputs(t))) for t in (self.low, self.high)]
        return ls.noise.Shifts(np.maximum(*ends)[None], "complement", d=1, weights=self.chance)


def draw(numbers: pd.DataFrame) -> Figure:
    """Draw a line for each size where the noise depends on it."""
    figure, (ax,) = figures.panels(1, width=8.0, height=4.0)
    look = iter(figures.STYLES[1:])  # the first one has the colour of ours
    for n, part in numbers[numbers["promise"] == DP].groupby("n"):
        ax.plot(part["eta"], part["scale"], markevery=4, label=f"{DP}, n = {n}", **next(look))
    first, last = numbers["n"].min(), numbers["n"].max()
    for promise, n, style in (
        (MIP, first, {"color": figures.INK, "linewidth": 2.2}),
        (MOMENT, first, {"color": figures.OURS, "linewidth": 2.2}),
        (COMPLEMENT, first, {"color": figures.OURS, "linestyle": "--"}),
        (COMPLEMENT, last, {"color": figures.OURS, "linestyle": ":"}),
    ):
        part = numbers[(numbers["promise"] == promise) & (numbers["n"] == n)]
        size = f", n = {n}" if promise == COMPLEMENT else ", any n"
        ax.plot(part["eta"], part["scale"], label=promise + size, **style)
    ax.set(xscale="log", yscale="log", xlabel="eta: accuracy of any attacker above one half")
    ax.set(ylabel="scale of the Laplace noise\n(in standard deviations of the release)")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
