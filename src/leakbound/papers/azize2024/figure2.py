"""Figure 2 (Section 5, Appendix E): how much the mean of n = 1,000 records of d = 5,000 bits tells of one target.

As written, a = .25 and the medium target is drawn from the distribution of the data; the printed leakage scores belong
to a = .30 and a medium target of fair coins (erratum 11), and these are played here, with a draw of p whose easy target
has the printed score. After sub-sampling the target is in all columns of the mean or in none: the right curve is a
mixture, not that of N(-rho m/2, rho m) and N(rho m/2, rho m) (erratum 9).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import leakbound as ls
from leakbound.papers import figures
from leakbound.papers.azize2024.mean_game import (
    BAND,
    TARGETS,
    Games,
    Sizes,
    World,
    advantage,
    band_widths,
    distance,
    first_rounds,
    moments,
    operating_points,
    over_draws,
    ratio,
    scores_of,
)
from leakbound.papers.lab import Lab, Outcome, Parameter, trials_of
from leakbound.papers.printed import Ours

Array = np.ndarray
NOISES, SHARES = (0.1, 0.5, 1.0), (0.1, 0.5, 1.0)
EASY = 7.75  # the printed score of the easy target
OF_PANEL_A = 0.10  # the a whose easy target fits the axes of the printed panel (a), from -20 to 20 and up to .12
SHOWN = 2000  # rounds in (c), as in the paper
LOG_RATES, RATES = np.geomspace(1e-3, 1, 61), np.linspace(0, 1, 101)


N = Parameter("n", 1000, "number of records in the mean", least=10, most=100_000)
D = Parameter("d", 5000, "number of columns", least=10, most=100_000)
PARAMETERS = (N, D)


def measure(lab: Lab) -> Outcome:
    """Run at the paper's sizes; in full with ten times its rounds."""
    return measured(lab, Sizes(n=N.of(lab), d=D.of(lab), rounds=lab.size(full=20_000, quick=2000)))


def measured(lab: Lab, sizes: Sizes) -> Outcome:
    """Compute the scores of all targets, and play with the draw of p whose easy target has the printed score."""
    # the text draws p in one way, and the printed scores are those of another: both are drawn
    written = [
        World.drawn(0.25, "distribution", sizes, lab.stream("as written", number)) for number in range(sizes.draws)
    ]
    worlds = [World.drawn(0.30, "coins", sizes, lab.stream("worlds", number)) for number in range(sizes.draws)]
    chosen = min(worlds, key=lambda world: abs(world.score("easy") - EASY))
    # one game for each target, each noise and each fraction
    games = Games(lab, chosen, sizes.rounds)
    signals_of = {target: games.play(target) for target in TARGETS}
    plain = {target: ratio(signals) for target, signals in signals_of.items()}
    noisy = {gamma: ratio(games.play("easy", gamma=gamma)) for gamma in NOISES}
    by_fraction = {rho: plain["easy"] if rho == 1 else ratio(games.play("easy", rho=rho), rho) for rho in SHARES}

    # panel (c) has as many rounds as in the paper
    of_panel_a = World.drawn(OF_PANEL_A, "coins", sizes, lab.stream("panel a"))
    hard, curve = first_rounds(plain["hard"], SHOWN), ls.bounds.leakage_tradeoff(chosen.score("hard"))
    product = first_rounds(ls.attacks.ATTACKS["scalar_product"](signals_of["hard"]), SHOWN)
    # what is compared with the paper: scores over the draws, moments and advantages of the games
    ours = {f"m_{target}_as_written": over_draws(written, target) for target in TARGETS}
    ours |= {f"m_{target}": over_draws(worlds, target) for target in TARGETS}
    ours |= {f"m_noisy_{gamma}": over_draws(worlds, "easy", gamma) for gamma in NOISES}
    for target in ("easy", "hard"):
        moments_of_target = moments(plain[target], chosen.score(target))
        ours |= {f"{target}_{name}": estimate for name, estimate in moments_of_target.items()}
    ours["roc"] = Ours(distance(*operating_points(hard), curve, band_widths(hard)))
    ours |= {f"subsampled_{rho}": advantage(scores) for rho, scores in by_fraction.items()}
    rows = [
        *histograms(plain, chosen),
        *printed_densities(of_panel_a.score("easy")),
        *empirical_against_theory(hard, product, curve),
        *by_target(plain, chosen, written),
        *by_noise(noisy, chosen),
        *rows_by_fraction(by_fraction, chosen.score("easy")),
    ]
    run = (
        f"{sizes.draws} draws of p for the scores; {sizes.rounds:,} rounds of each game, {len(hard.value):,} in (c); "
        f"n = {sizes.n:,}, d = {sizes.d:,}."
    )
    # every trial is kept, so that the claims can be judged again
    cases = [
        (p, drawn, target, 0.0) for p, drawn in (("as written", written), ("a = .30", worlds)) for target in TARGETS
    ]
    cases += [("a = .30", worlds, "easy", gamma) for gamma in NOISES]
    each = [
        row
        for p, drawn, target, gamma in cases
        for row in trials_of(scores_of(drawn, target, gamma), p=p, target=target, gamma=gamma)
    ]
    return Outcome(pd.DataFrame(rows), ours, run, trials=pd.DataFrame(each))


def line(panel: str, name: str, kind: str, x: Array, y: Any, **more: Array) -> Iterator[dict[str, Any]]:
    """Rows of a line; kind is ``simulated``, ``theory``, ``printed`` or ``ours``."""
    columns = {"x": x, "y": y, **more}
    for row in zip(*columns.values(), strict=True):
        yield {"panel": panel, "line": name, "kind": kind, **dict(zip(columns, map(float, row), strict=True))}


def histograms(plain: Mapping[str, ls.Scores], world: World) -> Iterator[dict[str, Any]]:
    """Draw (a) and (b): densities of the scores of the easy and of the hard target, against N(-+m/2, m)."""
    for panel, target in (("a", "easy"), ("b", "hard")):
        m, scores = world.score(target), plain[target]
        reach = m / 2 + 3.5 * np.sqrt(m)
        cells = np.linspace(-reach, reach, 41)
        middle = (cells[1:] + cells[:-1]) / 2
        for name, side, mean in (("out", ~scores.member, -m / 2), ("in", scores.member, m / 2)):
            yield from line(panel, name, "simulated", middle, np.histogram(scores.value[side], cells, density=True)[0])
            normal = np.exp(-((middle - mean) ** 2) / (2 * m)) / np.sqrt(2 * np.pi * m)
            yield from line(panel, name, "theory", middle, normal)


def printed_densities(m: float) -> Iterator[dict[str, Any]]:
    """Draw (a) as its printed axes have it: N(-+m/2, m) of a larger score than that of (d) (erratum 24)."""
    x = np.linspace(-20, 20, 161)
    for mean in (-m / 2, m / 2):
        name = f"m = {m:.1f}, a = {OF_PANEL_A:g}"
        normal = np.exp(-((x - mean) ** 2) / (2 * m)) / np.sqrt(2 * np.pi * m)
        yield from line("a", f"{name}, {'out' if mean < 0 else 'in'}", "printed", x, normal)


def empirical_against_theory(
    ratio: ls.Scores, product: ls.Scores, curve: ls.tradeoff.TradeOff
) -> Iterator[dict[str, Any]]:
    """(c): the ROC of the hard target in its Kolmogorov band, and that of the scalar product."""
    across, up = band_widths(ratio)
    low = np.maximum(curve.tpr_at(np.maximum(RATES - across, 0)) - up, 0)
    high = np.minimum(curve.tpr_at(np.minimum(RATES + across, 1)) + up, 1)
    yield from line("c", "theory", "theory", RATES, curve.tpr_at(RATES), low=low, high=high)
    for name, scores in (("likelihood ratio", ratio), ("scalar product", product)):
        yield from line("c", name, "simulated", RATES, ls.metrics.roc(scores).tpr_at(RATES))


def by_target(plain: Mapping[str, ls.Scores], world: World, written: Sequence[World]) -> Iterator[dict[str, Any]]:
    """(d): the power against each target, and the curves of the scores that Appendix E leads to."""
    for target in TARGETS:
        name = f"{target}, m = {world.score(target):.2f}"
        yield from against(name, "d", plain[target], world.score(target))
        curve = ls.bounds.leakage_tradeoff(over_draws(written, target).value)
        yield from line("d", name, "printed", LOG_RATES, curve.tpr_at(LOG_RATES))


def by_noise(noisy: Mapping[float, ls.Scores], world: World) -> Iterator[dict[str, Any]]:
    """(e): the power against the easy target, with noise."""
    for gamma, scores in noisy.items():
        m = world.score("easy", gamma)
        yield from against(rf"$\gamma$ = {gamma:g}, m = {m:.2f}", "e", scores, m)


def rows_by_fraction(by_fraction: Mapping[float, ls.Scores], m: float) -> Iterator[dict[str, Any]]:
    """(f): the power after sub-sampling, the mixture, and the printed curve."""
    for rho, scores in by_fraction.items():
        name = rf"$\rho$ = {rho:g}"
        yield from line("f", name, "simulated", LOG_RATES, ls.metrics.roc(scores).tpr_at(LOG_RATES))
        yield from line("f", name, "ours", LOG_RATES, ls.bounds.leakage_tradeoff(m, rho).tpr_at(LOG_RATES))
        yield from line("f", name, "printed", LOG_RATES, ls.tradeoff.Gaussian(np.sqrt(rho * m)).tpr_at(LOG_RATES))


def against(name: str, panel: str, scores: ls.Scores, m: float) -> Iterator[dict[str, Any]]:
    """Compare the measured power with that of a leakage score."""
    yield from line(panel, name, "simulated", LOG_RATES, ls.metrics.roc(scores).tpr_at(LOG_RATES))
    yield from line(panel, name, "theory", LOG_RATES, ls.bounds.leakage_tradeoff(m).tpr_at(LOG_RATES))


def draw(numbers: pd.DataFrame) -> Figure:
    """Six panels, as printed."""
    figure, axes = figures.panels(3, 2, width=3.6, height=3.1)
    titles = {
        "a": "(a) easy target",
        "b": "(b) hard target",
        "c": "(c) ROC, hard target",
        "d": "(d) effect of the target",
        "e": "(e) effect of the noise, easy target",
        "f": "(f) effect of sub-sampling, easy target",
    }
    for ax, (panel, part) in zip(axes, numbers.groupby("panel", sort=True), strict=True):
        ax.set_title(titles[str(panel)])
        if panel in ("a", "b"):
            _densities(ax, part)
        elif panel == "c":
            _roc(ax, part)
        elif panel == "f":
            _shares(ax, part)
        else:
            _powers(ax, part)
    return figure


def lines(part: pd.DataFrame, *kinds: str) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Name, kind and points of each line of these kinds."""
    for name, kind in dict.fromkeys(zip(part["line"], part["kind"], strict=True)):
        if kind in kinds:
            yield name, kind, part.query("line == @name and kind == @kind")


def _densities(ax: Axes, part: pd.DataFrame) -> None:
    shades = {"out": (figures.THEIRS, "--", "///", "-"), "in": (figures.OURS, "-", "", "+")}
    for name, _, one in lines(part, "simulated"):
        color, _, hatch, _ = shades[name]
        ax.bar(one["x"], one["y"], one["x"].diff().median(), color=color, alpha=0.35, hatch=hatch, label=name)
    for name, _, one in lines(part, "theory"):
        color, dash, _, sign = shades[name]
        ax.plot(one["x"], one["y"], color=color, linestyle=dash, label=f"N({sign}m/2, m)")
    for name, _, one in lines(part, "printed"):
        label = f"as the printed axes: {name.rsplit(',', 1)[0]}" if name.endswith("out") else None
        ax.plot(one["x"], one["y"], color=figures.INK, linestyle=":", linewidth=1, label=label)
    ax.set(xlabel="log-likelihood ratio (nats)", ylabel="density (per nat)")
    ax.margins(y=0.3)
    ax.legend(loc="upper left", ncols=2, columnspacing=0.8, handlelength=1.5)


def _roc(ax: Axes, part: pd.DataFrame) -> None:
    for _, _, one in lines(part, "theory"):
        figures.line(ax, one, "x", "y", f"theory, {100 * BAND:g} % band", color=figures.INK, linestyle=":")
    dashes = (figures.THEIRS, "-"), (figures.OURS, "-.")
    for (name, _, one), (color, dash) in zip(lines(part, "simulated"), dashes, strict=True):
        ax.plot(one["x"], one["y"], color=color, linestyle=dash, label=name)
    ax.set(xlabel="false-positive rate", ylabel="true-positive rate")
    ax.legend(loc="lower right")


def _powers(ax: Axes, part: pd.DataFrame) -> None:
    """(d), (e): markers are simulated, full lines theory, dashed ones what the paper's words lead to."""
    for style, (name, _, one) in zip(figures.STYLES, lines(part, "simulated"), strict=False):
        ax.plot(one["x"], one["y"], style["marker"], color=style["color"], label=name, markevery=2)
        for _, kind, curve in lines(part.query("line == @name"), "theory", "printed"):
            dash, width = ("-", 1.6) if kind == "theory" else ("--", 1.0)
            ax.plot(curve["x"], curve["y"], dash, color=style["color"], linewidth=width)
    ax.plot([], [], "-", color=figures.INK, label="theory")
    if "printed" in set(part["kind"]):
        ax.plot([], [], "--", color=figures.INK, linewidth=1, label="theory as written, a = 0.25")
    _rates(ax)


def _shares(ax: Axes, part: pd.DataFrame) -> None:
    """(f): black markers are simulated; the mixture and the printed curve, with the same markers, hollow."""
    for style, (name, _, one) in zip(figures.STYLES, lines(part, "simulated"), strict=False):
        ax.plot(one["x"], one["y"], style["marker"], color=figures.INK, label=name, markevery=2)
        for _, kind, curve in lines(part.query("line == @name"), "ours", "printed"):
            color, dash = (figures.OURS, "-") if kind == "ours" else (figures.THEIRS, "--")
            hollow = {"marker": style["marker"], "markerfacecolor": "none", "markevery": (5, 10)}
            ax.plot(curve["x"], curve["y"], dash, color=color, **(hollow if kind == "printed" else {}))
    ax.plot([], [], "-", color=figures.OURS, label="mixture (ours)")
    ax.plot([], [], "--", color=figures.THEIRS, label=r"as printed, $\rho m$")
    _rates(ax, columns=2, top=1.5)


def _rates(ax: Axes, columns: int = 1, top: float = 1.02) -> None:
    ax.set(xlabel="false-positive rate", ylabel="true-positive rate", xscale="log", ylim=(0, top))
    ax.set_yticks(np.linspace(0, 1, 6))
    ax.legend(loc="upper left" if columns > 1 else "lower right", ncols=columns, handlelength=1.6)
