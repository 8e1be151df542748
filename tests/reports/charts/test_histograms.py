"""The histogram of games won."""

from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from scipy.stats import binom

from leakbound.reports.charts.canvas import ATTACK, MUTE
from leakbound.reports.charts.histograms import HISTOGRAM, histogram
from leakbound.reports.charts.labels import Box, text_width


def texts(axes: Any) -> dict[str, Any]:
    return {text.get_text(): text for text in axes.texts}


def lines(axes: Any) -> list[Any]:
    return list(axes.lines)


def patches(axes: Any) -> list[Any]:
    return list(axes.patches)


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


def test_says_how_many_are_exposed():
    won = np.zeros(65, dtype=int)
    won[[30, 32, 50, 64]] = 400, 500, 20, 580
    written = set(texts(histogram(won, 49, ax=HISTOGRAM.axes(), unit="person")))
    assert {"600 of 1,500 people:", "exposed beyond chance"} <= written
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
    (edge,) = (line for line in lines(axes) if len(line.get_xdata()) == 2)
    left, right = axes.get_xlim()
    at = (float(edge.get_xdata()[0]) - left) / (right - left) * HISTOGRAM.panel[0]
    top = float(edge.get_ydata()[1]) / axes.get_ylim()[1] * HISTOGRAM.panel[1]
    for box in boxes:  # no text is written over the line of the threshold
        assert box.y < 0 or abs(box.x - at) >= box.width / 2 or box.y - box.height / 2 >= top


def test_thousands_of_games_have_a_curve_of_chance():
    """The number of ways to win half of 2,000 games has 600 digits, which no float holds."""
    won = np.zeros(2001, dtype=int)
    won[1000] = 10
    axes = histogram(won, None, ax=HISTOGRAM.axes(), baseline=0.6)
    (chance,) = (line.get_ydata() for line in axes.lines if len(line.get_ydata()) == 2001)
    np.testing.assert_allclose(chance, 10 * binom.pmf(np.arange(2001), 2000, 0.6), rtol=1e-9, atol=1e-15)
