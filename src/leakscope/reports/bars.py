"""The histogram of games won against each record."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from scipy.special import gammaln, xlog1py, xlogy

from leakscope.reports.bins import NAME, SMALL, Above, bars
from leakscope.reports.canvas import ATTACK, DOTTED, INK, MUTE, Size, clear, panel_size, write
from leakscope.reports.numbers import count
from leakscope.reports.words import article, several

Array = np.ndarray
HISTOGRAM = Size(440, 210, 14, 14, 46, 14)


def histogram(
    won: Int[Array, " games"] | Sequence[int],
    first_exposed: int | None,
    ax: Axes | None = None,
    unit: str = "record",
    baseline: float = 0.5,
) -> Axes:
    """Games won against each record, compared with what a guess that looks at nothing would win.

    Parameters
    ----------
    won : array of shape (M + 1,)
        Number of records against which 0, 1, ..., M games were won.
    first_exposed : int or None
        Fewest wins that show a record as exposed beyond chance; None if no number does.
    ax : Axes, optional
        Without it a new figure of pyplot.
    unit : str
        What a record is called.
    baseline : float
        Chance to win a game without looking: the larger of the fractions of members and of others.

    Returns
    -------
    Axes
        Dotted: binomial(M, baseline) times the number of records.

    Examples
    --------
    >>> axes = histogram([0] * 8 + [50, 40, 30, 20, 10, 5, 4, 3, 2], 15, ax=HISTOGRAM.axes())
    >>> [text.get_text() for text in axes.texts][-2:]
    ['exposed beyond chance', '5 of 164 records:']
    """
    won = np.asarray(won)
    n_games, n_records = len(won) - 1, int(won.sum())
    ax = HISTOGRAM.shown() if ax is None else ax
    games = np.arange(n_games + 1)
    chance = n_records * _binomial(n_games, baseline)
    head = 1.12 if n_games >= 48 else 1.5  # few games make wide bars, and texts stand above them
    ax.set(xlim=(-1, n_games + 1), ylim=(0, head * max(won.max(), chance.max(), 1)))
    clear(ax, sides=("bottom",))
    exposed = games >= (n_games + 1 if first_exposed is None else first_exposed)
    bars(ax, games[~exposed] - 0.39, games[~exposed] + 0.39, won[~exposed], facecolor=MUTE, alpha=0.5)
    bars(ax, games[exposed] - 0.39, games[exposed] + 0.39, won[exposed], facecolor=ATTACK)
    ax.plot(games, chance, color=INK, linewidth=1.1, linestyle=DOTTED)
    _games_axis(ax, n_games, unit)
    texts = Above(ax, _profile(ax, np.maximum(won, chance)))
    if won[-1] and won[-1] == won.max():
        texts.write([several(int(won[-1]), unit), f"lost all {n_games}"], [("right", n_games - 1.0)], size=SMALL)
    texts.write(["if nothing", "leaked"], _beside_chance(chance), size=SMALL)
    if first_exposed is not None:
        number = count(int(won[exposed].sum())) if won[exposed].any() else "none"
        _threshold(ax, texts, first_exposed, f"{number} of {several(n_records, unit)}:")
    return ax


def _binomial(n: int, p: float) -> Float[Array, " k"]:
    """Probabilities of 0 to n successes in n trials; by logarithms, for the binomial coefficients have many digits."""
    k = np.arange(n + 1)
    log_ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.exp(log_ways + xlogy(k, p) + xlog1py(n - k, -p))


def _profile(ax: Axes, heights: Array) -> Array:
    """Height of the bars in pixels, for every pixel across the panel."""
    width, height = panel_size(ax)
    games = ax.get_xlim()[0] + np.arange(round(width) + 1) * np.ptp(ax.get_xlim()) / width
    near = np.clip(np.rint(games), 0, len(heights) - 1).astype(int)
    return heights[near] / ax.get_ylim()[1] * height


def _threshold(ax: Axes, texts: Above, first: int, text: str) -> None:
    """A line at the fewest wins that count, and beside its upper end how many records have them."""
    edge = first - 0.5
    end = ax.get_xlim()[1]
    places = [("right", edge - 0.6), ("left", edge + 0.6), ("right", end)]
    base = texts.write([text, "exposed beyond chance"], places, size=NAME, weight=700, color=ATTACK)
    if base is not None:
        ax.plot([edge, edge], [0, (base - 4) / texts.height * ax.get_ylim()[1]], color=INK, linewidth=0.7)


def _beside_chance(chance: Array) -> list[tuple[str, float]]:
    """Left and right of the hill, at half its height."""
    high = np.flatnonzero(chance >= 0.55 * chance.max())
    return [("right", float(high[0]) - 1.0), ("left", float(high[-1]) + 1.0)]


def _games_axis(ax: Axes, n_games: int, unit: str) -> None:
    """Quarters of the games, and what the axis counts."""
    ticks = sorted({round(n_games * share) for share in ((0.25, 0.5, 0.75, 1.0) if n_games >= 16 else (0, 0.5, 1))})
    width, _ = panel_size(ax)
    left, right = ax.get_xlim()
    ax.set_xticks(ticks, [""] * len(ticks))
    ax.tick_params(axis="x", length=4, width=0.8, color=INK)
    for tick in ticks:
        write(ax, ((tick - left) / (right - left) * width, -17.4), str(tick), size=13, align="center")
    text = f"games of {n_games} that the attacker won against {article(unit)} {unit}"
    write(ax, (width / 2, -33.3), text, size=NAME, align="center")
