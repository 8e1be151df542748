"""The chart of an audit of an attribute: correct guesses of each strategy, about members and about others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

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
    panel_size,
    shorten,
    write,
)
from leakbound.reports.sections.attribute.result import AttributeResult, attribute_results
from leakbound.reports.sections.quantities import shown

_ROW = 24.0


@dataclass(frozen=True)
class Guess:
    """A line of the chart; fractions are in cases of 100, and None draws no dot."""

    name: str
    inside: float | None
    outside: float | None
    ends: tuple[float, float] | None
    text: str
    best: bool = False


def guesses_size(n_rows: int) -> Size:
    """Return the size of a chart of so many rows."""
    return Size(440, _ROW * n_rows + 76, 186, 20, 64, 4)


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


def guesses_of(result: AttributeResult) -> Sequence[Guess]:
    """List the strategies of a release that ran, the weakest first; all of them if none did."""
    rows = []
    for name in reversed(result.strategies):
        inside, outside = (result.find("attribute_accuracy", name, side) for side in (True, False))
        if inside is None or inside.value is None:
            rows.append(Guess(result.attack_title(name), None, None, None, "—"))
            continue
        ends = None if inside.low is None or inside.high is None else (100 * inside.low, 100 * inside.high)
        other = None if outside is None or outside.value is None else 100 * outside.value
        right = 100 * inside.value
        rows.append(Guess(result.attack_title(name), right, other, ends, shown(inside).value, name == result.best))
    played = [row for row in rows if row.inside is not None]
    return played or rows  # the table of all findings says why the others did not run


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
    write(ax, (-186, base), shorten(row.name), size=13, color=ink, weight=weight)
    write(ax, (-12, base), row.text, size=13, color=ink, weight=weight, align="right")
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
