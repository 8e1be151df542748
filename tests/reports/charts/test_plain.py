"""Charts on axes of the caller: labelled lines that can be told apart without colours, and nothing outside."""

from __future__ import annotations

import numpy as np
import pytest
from cycler import cycler
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.reports import samples


def column() -> Axes:
    """Axes of the width of a column of a paper."""
    return Figure(figsize=(3.4, 2.6), layout="constrained").subplots()


def figure_of(ax: Axes) -> Figure:
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def test_every_line_has_a_name_and_dashes_of_its_own() -> None:
    ax = samples.two_models().plot(column())
    labels = [str(line.get_label()) for line in ax.lines]
    assert not any(label.startswith("_") for label in labels)
    assert len(set(labels)) == len(labels)
    assert {"LiRA", "guessing"} <= set(labels)
    attacks = [line for line in ax.lines if line.get_linewidth() > 1 and line.get_marker() == "None"]
    dashes = [str(line._dash_pattern) for line in attacks]  # type: ignore[attr-defined]
    assert len(set(dashes)) == len(dashes) > 1
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == labels


def test_nothing_is_written_outside_of_the_axes_but_ticks_and_their_names() -> None:
    ax = samples.two_models().plot(column())
    assert list(ax.texts) == []
    assert ax.child_axes == []
    assert ax.get_title() == ""
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("false positive rate", "true positive rate")
    figure = figure_of(ax)
    figure.draw_without_rendering()
    outer = ax.get_tightbbox()
    assert outer is not None
    assert outer.x0 >= 0
    assert outer.y0 >= 0
    assert outer.x1 <= figure.bbox.x1 + 1
    assert outer.y1 <= figure.bbox.y1 + 1


def test_the_legend_lies_below_all_curves() -> None:
    ax = samples.two_models().plot(column())
    figure_of(ax).draw_without_rendering()
    legend = ax.get_legend()
    assert legend is not None
    box = legend.get_window_extent()
    for line in ax.lines:
        if line.get_label() == "guessing":
            continue
        pixels = ax.transData.transform(np.column_stack([line.get_xdata(), line.get_ydata()]))
        assert not box.count_contains(pixels)


def test_attacks_are_chosen_by_name_and_the_legend_can_be_left_out() -> None:
    report = samples.two_models()
    names = [curve.name for curve in report.curves if curve.role == "measured" and curve.release == "forest"]
    for chosen in (names[:1], names[0]):
        ax = report.plot(column(), attacks=chosen, legend=False)
        assert ax.get_legend() is None
        assert sum(line.get_linewidth() > 1 for line in ax.lines) == 1
    with pytest.raises(KeyError, match=r"no curve of the attack 'nobody'; this chart has: "):
        report.plot(column(), attacks=["nobody"])
    with pytest.raises(KeyError, match="no release 'x'"):
        report.plot(column(), release="x")


def test_curves_are_those_of_the_report_from_ten_false_alarms_on() -> None:
    report = samples.two_models()
    curve = next(each for each in report.curves if (each.name, each.release) == ("lira", "forest"))
    line = next(line for line in report.plot(column()).lines if line.get_label() == "LiRA")
    fpr, tpr = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    assert fpr[0] >= 10 / curve.n_nonmember
    np.testing.assert_allclose(tpr, curve.tradeoff.tpr_at(fpr))


@pytest.mark.parametrize("colors", [["0.0", "0.4"], ["red", "blue"]])
def test_the_style_in_force_is_used(colors: list[str]) -> None:
    with rc_context({"axes.prop_cycle": cycler(color=colors)}):
        ax = samples.two_models().plot(column())
    assert ax.lines[0].get_color() == colors[0]
