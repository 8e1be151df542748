"""The dot plot of the summary."""

from typing import Any

import pytest
from matplotlib.colors import to_hex

from leakbound.reports.charts.canvas import ATTACK, MUTE
from leakbound.reports.charts.dots import dots, dots_size
from leakbound.reports.results.dots import Dot

ROWS = (
    Dot("gap", 51.6, "51.6"),
    Dot("LiRA", 57.9, "57.9", "best"),
    Dot("shadow", None, "—"),
)
EXPOSED = Dot("most exposed record", 100.0, "≥ 85", "exposed", low=85.2)


def texts(axes: Any) -> dict[str, Any]:
    return {text.get_text(): text for text in axes.texts}


def lines(axes: Any) -> list[Any]:
    return list(axes.lines)


def patches(axes: Any) -> list[Any]:
    return list(axes.patches)


def markers(axes: Any) -> list[tuple[float, float]]:
    return [
        (float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in lines(axes) if line.get_marker() == "o"
    ]


@pytest.mark.parametrize(
    ("rows", "claim", "baseline"),
    [(ROWS, None, 50.0), ((*ROWS, EXPOSED), None, 50.0), (ROWS, 70.0, 50.0), (ROWS, 95.0, 80.0)],
)
def test_the_axis_goes_from_the_baseline_to_100_whatever_is_drawn(rows, claim, baseline):
    axes = dots(rows, claim, ax=dots_size(len(rows)).axes(), baseline=baseline)
    assert axes.get_xlim() == (baseline, 100)
    assert {f"{baseline:g}", "100", "baseline accuracy", "always right"} <= set(texts(axes))


def test_names_and_values_do_not_touch():
    """In DejaVu Sans, which is wider than the fonts of the page."""
    axes = dots((Dot("most exposed person", 61.4, "≤ 61.4", "bound"),), ax=dots_size(1).axes())
    axes.get_figure(root=True).draw_without_rendering()
    name, value = (texts(axes)[text].get_window_extent() for text in ("most exposed person", "≤ 61.4"))
    assert name.x1 + 3 <= value.x0


def test_a_dot_a_row_with_name_and_value_and_none_without_a_value():
    axes = dots((*ROWS, EXPOSED), ax=dots_size(4).axes())
    assert markers(axes) == [(51.6, 0), (57.9, -1), (100, -3)]
    written = texts(axes)
    assert {"gap", "LiRA", "shadow", "—", "51.6", "≥ 85", "most exposed record"} <= set(written)
    assert to_hex(written["LiRA"].get_color()) == ATTACK
    assert to_hex(written["shadow"].get_color()) == MUTE


def test_most_exposed_record_has_a_wide_bar_from_its_lower_limit():
    axes = dots((EXPOSED,), ax=dots_size(1).axes())
    wide = [line for line in lines(axes) if line.get_linewidth() == 6]
    assert [tuple(line.get_xdata()) for line in wide] == [(85.2, 100.0)]


def test_claim_is_a_vertical_with_its_forbidden_side_tinted():
    axes = dots(ROWS, 55.0, ax=dots_size(3).axes())
    assert any(tuple(line.get_xdata()) == (55.0, 55.0) for line in lines(axes))
    (tint,) = patches(axes)
    assert (tint.get_x(), tint.get_x() + tint.get_width()) == (55.0, 100.0)


def test_a_value_below_guessing_stays_on_the_axis():
    assert markers(dots((Dot("gap", 48.9, "48.9"),), ax=dots_size(1).axes())) == [(50.0, 0.0)]


def test_long_names_are_cut():
    axes = dots((Dot("n" * 60, 55.0, "55.0"),), ax=dots_size(1).axes())
    assert "n" * 21 + "…" in texts(axes)
