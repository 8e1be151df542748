"""Figure 1 and Theorem 4.5: what an attacker finds out about a target who tests for another record.

The attacker computes the likelihood ratio of a record z_targ, and another one, z*, is in the mean or not. With

    m* = |z* - mu|^2/n,  m_targ = |z_targ - mu|^2/n,  m_scal = (z_targ - mu)(z* - mu)/n

in the geometry of the covariance, the best threshold has the advantage of a target of leakage score m_scal^2/m_targ,
which is m* cos^2 of the angle that Figure 1 draws: the length of z_targ - mu does not matter. The appendix states the
theorem with m* in place of m_targ (erratum 10).

The paper shows a drawing and no experiment. Here are both of its extreme targets, and records of bits at twelve angles
from each, the target itself among them. Beyond 90 degrees members have the lower ratios, and the best threshold is
turned round. That threshold depends on z*; the attacker who takes z_targ for the target calls a record a member where
the ratio is above 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import ndtr

import leakbound as ls
from leakbound.papers import figures
from leakbound.papers.azize2024.mean_game import Games, Sizes, World, compared, relative_variance, separation
from leakbound.papers.lab import Lab, Outcome, mean_of
from leakbound.papers.printed import Ours, all_above

Array = np.ndarray
PLAYED: tuple[str, ...] = ("easy", "hard")
ANGLES = tuple(range(0, 180, 15))
CLAIMED = (0, 30, 60, 90, 120, 150)
LOW_RATE = 0.01  # the false-positive rate at which the power is drawn


@dataclass(frozen=True, eq=False)
class Attacker:
    """The rounds of a game as scored by the ratio for one record."""

    world: World
    target: str
    record: Array
    scores: ls.Scores

    @property
    def m_star(self) -> float:
        """Leakage score of the target."""
        return self.world.product(self.world.targets[self.target], self.world.targets[self.target])

    @property
    def m_targ(self) -> float:
        """Leakage score of the record that the attacker tests for."""
        return self.world.product(self.record, self.record)

    @property
    def m_scal(self) -> float:
        """Product of both."""
        return self.world.product(self.record, self.world.targets[self.target])

    @property
    def m_diff(self) -> float:
        """Squared distance of both, over n."""
        difference = self.record - self.world.targets[self.target]
        return float((difference**2 / self.world.variance).sum()) / self.world.n

    @property
    def angle(self) -> float:
        """Angle of both, in degrees."""
        return self.world.angle(self.record, self.world.targets[self.target])

    @property
    def best(self) -> Any:
        """Score, threshold and side of the theorem."""
        z = self.world.targets[self.target]
        return ls.bounds.wrong_target(self.record, z, self.world.p, self.world.variance, self.world.n)

    @property
    def called(self) -> Array:
        """Whether the best threshold calls the target a member, (rounds, 1)."""
        return self.best.sign * (self.scores.value - self.best.threshold) > 0

    @property
    def advantage(self) -> Ours:
        """TPR - FPR at the best threshold."""
        return separation(self.called, self.scores.member)

    @property
    def limit(self) -> float:
        """Advantage by the theorem."""
        return ls.bounds.leakage_tradeoff(self.best.score).advantage()

    @property
    def limit_of_appendix(self) -> float:
        """Advantage by the theorem as the appendix states it, with m* under the root."""
        return ls.bounds.leakage_tradeoff(self.m_scal**2 / self.m_star).advantage()

    def row(self) -> dict[str, Any]:
        """All that the figure shows of it."""
        best, advantage = self.best, self.advantage
        believed = separation(self.scores.value > 0, self.scores.member)
        deviation = np.sqrt(self.m_targ)
        turned = ls.Scores("ratio", best.sign * self.scores.value, self.scores.member)
        return {
            "target": self.target,
            "angle": self.angle,
            "m_star": self.m_star,
            "m_targ": self.m_targ,
            "m_scal": self.m_scal,
            "advantage": advantage.value,
            "advantage_error": advantage.error,
            "theorem": self.limit,
            "appendix": self.limit_of_appendix,
            "at_zero": believed.value,
            "at_zero_error": believed.error,
            "at_zero_limit": float(ndtr((self.m_scal - self.m_targ / 2) / deviation) - ndtr(-deviation / 2)),
            "power": float(ls.metrics.roc(turned).tpr_at(LOW_RATE)),
        }


def measure(lab: Lab) -> Outcome:
    """Run at the paper's n and d."""
    return measured(lab, Sizes(rounds=lab.size(full=400_000, quick=8000)))


def measured(lab: Lab, sizes: Sizes) -> Outcome:
    """Play for both targets; every round is scored by all attackers."""
    world = World.drawn(0.30, "coins", sizes, lab.stream("figure1", "world"))
    games = Games(lab, world, sizes.rounds, name="figure1")
    ours: dict[str, Ours] = {}
    attackers_of: dict[str, dict[int, Attacker]] = {}
    for target in PLAYED:
        records = [world.record_at(angle, target, lab.stream("figure1", target, angle)) for angle in ANGLES]
        scores = games.play_tested(target, records)
        attackers_of[target] = {
            angle: Attacker(world, target, record, ratios)
            for angle, record, ratios in zip(ANGLES, records, scores, strict=True)
        }
        ours |= {f"{target}_{name}": result for name, result in claims(attackers_of[target]).items()}
    ours["never_better"] = Ours.stated(all_above(losses(attackers_of)), detail=f"{len(ANGLES) - 1} records a target")
    rows = [attacker.row() for attackers in attackers_of.values() for attacker in attackers.values()]
    run = (
        f"{sizes.rounds:,} rounds for each of two targets, all scored for {len(ANGLES)} records; "
        f"n = {sizes.n:,}, d = {sizes.d:,}, a = .30."
    )
    return Outcome(pd.DataFrame(rows), ours, run)


def claims(attackers: Mapping[int, Attacker]) -> dict[str, Ours]:
    """All claims about one target."""
    ours = {str(angle): compared(attackers[angle].advantage, attackers[angle].limit) for angle in CLAIMED}
    near, far = attackers[60], attackers[120]
    lengths = f"m_targ = {near.m_targ:.2f} and {far.m_targ:.2f}"
    mirrored = separation(near.called * 1.0 - far.called, near.scores.member)
    ours["mirrored"] = Ours(mirrored.value, mirrored.error, detail=lengths)
    inside, outside = near.scores.value[near.scores.member], near.scores.value[~near.scores.member]
    deviation, mean_in = np.sqrt(near.m_targ), (near.m_star - near.m_diff) / 2
    ours["mean_out"] = mean_of((outside + near.m_targ / 2) / deviation)
    ours["mean_in"] = mean_of((inside - mean_in) / deviation)
    ours["variance_out"] = relative_variance(outside, near.m_targ)
    ours["variance_in"] = relative_variance(inside, near.m_targ)
    ours["variance_appendix"] = relative_variance(inside, near.m_star)
    ours["advantage_appendix"] = compared(near.advantage, near.limit_of_appendix)
    return ours


def losses(attackers_of: Mapping[str, Mapping[int, Attacker]]) -> list[Ours]:
    """Compute what each wrong record costs: the advantage of the right one less its own, in the same rounds."""
    lost = []
    for attackers in attackers_of.values():
        right = attackers[0]
        wrong = [attacker for angle, attacker in attackers.items() if angle > 0]
        lost += [separation(right.called * 1.0 - attacker.called, right.scores.member) for attacker in wrong]
    return lost


def draw(numbers: pd.DataFrame) -> Figure:
    """Figure 1 with the records of the game; advantage and power against the angle."""
    figure, axes = figures.panels(3, 1, width=3.6, height=3.4)
    styles: dict[str, Mapping[str, Any]] = dict(zip(PLAYED, figures.STYLES, strict=False))
    _geometry(axes[0], numbers, styles)
    _advantages(axes[1], numbers, styles)
    _powers(axes[2], numbers, styles)
    for ax in axes[1:]:
        ax.set(xlabel=r"angle $\theta$ of $z_\mathrm{targ}$ and $z^*$ (degrees)", xlim=(-5, 185))
        ax.set_xticks(range(0, 181, 30))
    return figure


def _geometry(ax: Axes, numbers: pd.DataFrame, styles: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw (a): the easy target with its records above the axis, the hard one below it."""
    for side, (target, part) in zip((1, -1), numbers.groupby("target", sort=True), strict=True):
        color, marker = (styles[str(target)][name] for name in ("color", "marker"))
        length, turn = np.sqrt(part["m_targ"].to_numpy()), np.radians(part["angle"].to_numpy())
        along, across = length * np.cos(turn), side * length * np.sin(turn)
        for x, y in zip(along[1:], across[1:], strict=True):
            ax.plot([0, x], [0, y], color=color, linewidth=0.8, alpha=0.6)
        lift = side * 0.06  # both targets lie on the axis
        ax.annotate("", (along[0], lift), (0, lift), arrowprops={"color": color, "arrowstyle": "-|>", "linewidth": 2})
        ax.plot([], [], color=color, linewidth=2, label=f"$z^*$: {target} target, $m^*$ = {part['m_star'].iloc[0]:.2f}")
        ax.plot(along[1:], across[1:], marker, color=color, label=r"$z_\mathrm{targ}$: tested for")
    ax.plot(0, 0, "o", color=figures.INK, label=r"$\mu$")
    ax.set(title="(a) records around the mean", xlabel=r"along $z^* - \mu$ ($\sqrt{m}$)", ylabel=r"across ($\sqrt{m}$)")
    ax.set(aspect="equal", xlim=(-3.4, 3.4), ylim=(-2.8, 5.4))
    ax.set_yticks(range(-2, 4))
    ax.legend(loc="upper left")


def _advantages(ax: Axes, numbers: pd.DataFrame, styles: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw (b): at the best threshold, and at the one that the attacker believes in."""
    turn = np.linspace(0, 180, 181)
    for target, part in numbers.groupby("target", sort=True):
        color, marker = (styles[str(target)][name] for name in ("color", "marker"))
        curves = [ls.bounds.leakage_tradeoff(m) for m in part["m_star"].iloc[0] * np.cos(np.radians(turn)) ** 2]
        ax.plot(turn, [curve.advantage() for curve in curves], color=color)
        ax.plot(part["angle"], part["appendix"], "--", color=color, linewidth=1)
        ax.plot(part["angle"], part["at_zero_limit"], ":", color=color, linewidth=1)
        _with_errors(ax, part, "at_zero", color, marker, markerfacecolor="none")
        _with_errors(ax, part, "advantage", color, marker, label=f"{target} target")
    keys = {"theorem": ("-", 1.6), "as in the appendix": ("--", 1.0), "hollow: threshold 0": (":", 1.0)}
    _key(ax, keys)
    ax.set(title="(b) advantage", ylabel="TPR - FPR", ylim=(-0.2, 1.35))
    ax.set_yticks(np.linspace(-0.2, 1, 7))
    ax.legend(loc="upper center", ncols=2)


def _powers(ax: Axes, numbers: pd.DataFrame, styles: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw (c): the true-positive rate at a low false-positive rate."""
    turn = np.linspace(0, 180, 181)
    for target, part in numbers.groupby("target", sort=True):
        color, marker = (styles[str(target)][name] for name in ("color", "marker"))
        curves = [ls.bounds.leakage_tradeoff(m) for m in part["m_star"].iloc[0] * np.cos(np.radians(turn)) ** 2]
        ax.plot(turn, [float(curve.tpr_at(LOW_RATE)) for curve in curves], color=color)
        ax.plot(part["angle"], part["power"], marker, color=color, label=f"{target} target")
    _key(ax, {"theorem": ("-", 1.6)})
    ax.axhline(LOW_RATE, color=figures.MUTE, linestyle=":", linewidth=1)
    ax.set(title="(c) power", ylabel=f"TPR at a FPR of {LOW_RATE:g}", ylim=(0, 0.95))
    ax.legend(loc="upper center", ncols=2)


def _with_errors(ax: Axes, part: pd.DataFrame, name: str, color: str, marker: str, **style: Any) -> None:
    """Markers with three standard errors on each side."""
    errors = 3 * part[f"{name}_error"]
    ax.errorbar(part["angle"], part[name], errors, fmt=marker, color=color, elinewidth=1, **style)


def _key(ax: Axes, lines: Mapping[str, tuple[str, float]]) -> None:
    """Explain the dashes in the legend."""
    for label, (dash, width) in lines.items():
        ax.plot([], [], dash, color=figures.INK, linewidth=width, label=label)
