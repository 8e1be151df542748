"""The chart of an audit of an attribute: correct guesses of each strategy, about members and about others."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leakbound.reports import Report
from leakbound.reports.charts.canvas import (
    ATTACK,
    CLAIM,
    DASHED,
    DOTTED,
    INK,
    MUTE,
    PAPER,
    RULE,
    Size,
    clear,
    figures,
    panel_size,
    shorten,
    write,
)
from leakbound.reports.results.attribute import attribute_results
from leakbound.reports.results.attribute_page import Guess, guesses_of

_ROW, _NAMES = 24.0, 228.0


def guesses_size(n_rows: int) -> Size:
    """Return the size of a chart of so many rows."""
    return Size(440, _ROW * n_rows + 76, _NAMES, 20, 64, 4)


def guesses(report: Report, ax: Axes | None = None, release: str | None = None) -> Axes:
    """Draw the cases of 100 in which each strategy is right, compared with what needs no release."""
    by_name = {result.facts.name: result for result in attribute_results(report)}
    name = next(iter(by_name)) if release is None else release
    if name not in by_name:
        raise KeyError(f"no release {name!r}; this report has: {', '.join(by_name)}")
    result = by_name[name]
    rows = guesses_of(result)
    ax = guesses_size(len(rows)).shown() if ax is None else ax
    marks = (100 * result.baseline_accuracy, 100 * result.facts.chance)
    ax.set(xlim=(0, 100), ylim=(-len(rows) + 0.5, 0.5))
    clear(ax, sides=())
    _cases(ax)
    ax.axvline(marks[1], color=INK, linewidth=1, linestyle=DOTTED)
    ax.axvline(marks[0], color=CLAIM, linewidth=1.7, linestyle=DASHED)
    width, _ = panel_size(ax)
    write(ax, (width, -53), f"without the release: {result.baseline_title.lower()}", color=CLAIM, align="right")
    for place, row in enumerate(rows):
        _row(ax, row, place, len(rows))
    return ax


def guesses_charts(report: Report) -> Mapping[str, Figure]:
    """Draw the charts that ``attribute.md.jinja`` names, one a release."""
    charts: dict[str, Axes] = {}
    for place, result in enumerate(attribute_results(report)):
        ax = guesses_size(len(guesses_of(result))).axes()
        charts[f"guesses{place}"] = guesses(report, ax, result.facts.name)
    return figures(charts)


def _row(ax: Axes, row: Guess, place: int, n_rows: int) -> None:
    """Name and value left of the axis, then a hollow and a filled dot."""
    color = ATTACK if row.best else MUTE
    ink, weight = INK, 400
    if row.best:
        ink, weight = ATTACK, 700
    elif row.inside is None:
        ink = MUTE
    _, height = panel_size(ax)
    base = height * (1 - (place + 0.5) / n_rows) - 4.5
    write(ax, (-_NAMES, base), shorten(row.name), size=12, color=ink, weight=weight)
    write(ax, (-12, base), row.text, size=12, color=ink, weight=weight, align="right")
    if row.ends is not None:
        ax.plot(row.ends, [-place, -place], color=color, linewidth=6, alpha=0.3, solid_capstyle="butt")
    dot = {"marker": "o", "linestyle": "none", "color": color, "clip_on": False}
    if row.outside is not None:
        ax.plot([row.outside], [-place], markersize=7, markerfacecolor=PAPER, **dot)
    if row.inside is not None:
        ax.plot([row.inside], [-place], markersize=10 if row.best else 8, **dot)


def _cases(ax: Axes) -> None:
    """Draw the scale, with a hairline at every label."""
    width, _ = panel_size(ax)
    for tick in range(0, 101, 20):
        ax.axvline(tick, color=RULE, linewidth=1)
        write(ax, (tick / 100 * width, -16), str(tick), color=MUTE, align="center")
    write(ax, (width / 2, -33), "right of 100", color=MUTE, align="center")
