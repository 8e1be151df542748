"""The dot plot of the summary and the histogram of games won."""

from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from scipy.stats import binom

from leakscope.report.bars import HISTOGRAM, Row, dots, dots_size, histogram
from leakscope.report.canvas import ATTACK, MUTE
from leakscope.report.labels import Box, text_width

ROWS = (
    Row("gap", 51.6, "51.6"),
    Row("LiRA", 57.9, "57.9", "best"),
    Row("shadow", None, "—"),
)
EXPOSED = Row("most exposed record", 100.0, "≥ 85", "exposed", low=85.2)


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
    ("rows", "claim", "end"),
    [
        (ROWS, None, 60),
        ((*ROWS, Row("RMIA", 61.0, "61.0")), None, 75),
        ((*ROWS, EXPOSED), None, 100),
        (ROWS, 70.0, 75),
        (ROWS, 95.0, 100),
        ((Row("loss", 52.0, "52.0", low=49.0, high=60.5),), None, 75),
    ],
)
def test_axis_is_the_narrowest_that_holds_every_row_and_the_claim(rows, claim, end):
    axes = dots(rows, claim, ax=dots_size(len(rows)).axes())
    assert axes.get_xlim() == (50, end)
    assert str(end) in texts(axes)


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
    assert (tint.get_x(), tint.get_x() + tint.get_width()) == (55.0, 60.0)


def test_a_value_below_guessing_stays_on_the_axis():
    assert markers(dots((Row("gap", 48.9, "48.9"),), ax=dots_size(1).axes())) == [(50.0, 0.0)]


def test_long_names_are_cut():
    axes = dots((Row("n" * 60, 55.0, "55.0"),), ax=dots_size(1).axes())
    assert "n" * 21 + "…" in texts(axes)


def test_bars_are_two_paths_with_the_counts_as_heights():
    won = np.array([0, 0, 3, 7, 4, 0, 2, 1, 5])
    grey, blue = patches(histogram(won, 7, ax=HISTOGRAM.axes()))
    assert (to_hex(grey.get_facecolor()), to_hex(blue.get_facecolor())) == (MUTE, ATTACK)
    heights = [path.get_path().vertices.reshape(-1, 5, 2)[:, 1, 1].tolist() for path in (grey, blue)]
    assert heights == [[3, 7, 4, 2], [1, 5]]


def test_dotted_line_is_what_blind_guessing_would_win():
    won = np.bincount([30, 31, 32, 40], minlength=65)
    axes = histogram(won, None, ax=HISTOGRAM.axes())
    (line,) = (line for line in lines(axes) if len(line.get_xdata()) == 65)
    np.testing.assert_allclose(line.get_ydata(), 4 * binom.pmf(np.arange(65), 64, 0.5), rtol=1e-12)


def test_says_how_many_are_exposed_and_how_many_lost_every_game():
    won = np.zeros(65, dtype=int)
    won[[30, 32, 50, 64]] = 400, 500, 20, 580
    written = set(texts(histogram(won, 49, ax=HISTOGRAM.axes(), unit="person")))
    assert {"600 of 1,500 people:", "exposed beyond chance", "580 people", "lost all 64"} <= written
    assert {"if nothing", "leaked", "16", "32", "48", "64"} <= written
    assert "games of 64 that the attacker won against a person" in written


def test_says_that_none_is_exposed():
    won = np.bincount([30, 31, 32, 33], minlength=65)
    assert "none of 4 records:" in texts(histogram(won, 48, ax=HISTOGRAM.axes()))


@pytest.mark.parametrize("games", [15, 20, 64, 256])
@pytest.mark.parametrize("share", [0.5, 0.6, 0.8, 0.97])
def test_labels_are_all_there_and_do_not_cover_one_another(games, share):
    rng = np.random.default_rng(games)
    won = np.bincount(rng.binomial(games, share, 1000), minlength=games + 1)
    axes = histogram(won, round(0.78 * games), ax=HISTOGRAM.axes())
    assert {"exposed beyond chance", "if nothing"} <= set(texts(axes))
    boxes = []
    for text in texts(axes).values():
        x, y = text.get_position()
        width = text_width(text.get_text(), text.get_fontsize(), text.get_weight() == 700)
        left = x - {"left": 0, "center": width / 2, "right": width}[text.get_horizontalalignment()]
        boxes.append(Box(left + width / 2, y + 4, width, 8))
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            apart_x = abs(one.x - other.x) - (one.width + other.width) / 2
            apart_y = abs(one.y - other.y) - (one.height + other.height) / 2
            assert max(apart_x, apart_y) >= 0
