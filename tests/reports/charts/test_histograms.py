"""The histogram of games won."""

from typing import Any

import numpy as np
from matplotlib.colors import to_hex
from scipy.stats import binom

from leakbound.reports.charts.canvas import ATTACK, MUTE
from leakbound.reports.charts.histograms import HISTOGRAM, histogram


def texts(axes: Any) -> dict[str, Any]:
    return {text.get_text(): text for text in [*axes.texts, *axes.get_legend().get_texts()]}


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
    assert {"exposed beyond chance: 600 of 1,500 people", "if nothing leaked"} <= written
    assert {"16", "32", "48", "64"} <= written
    assert "games of 64 that the attacker won against a person" in written


def test_says_that_none_is_exposed():
    won = np.bincount([30, 31, 32, 33], minlength=65)
    assert "exposed beyond chance: none of 4 records" in texts(histogram(won, 48, ax=HISTOGRAM.axes()))


def test_thousands_of_games_have_a_curve_of_chance():
    """The number of ways to win half of 2,000 games has 600 digits, which no float holds."""
    won = np.zeros(2001, dtype=int)
    won[1000] = 10
    axes = histogram(won, None, ax=HISTOGRAM.axes(), baseline=0.6)
    (chance,) = (line.get_ydata() for line in axes.lines if len(line.get_ydata()) == 2001)
    np.testing.assert_allclose(chance, 10 * binom.pmf(np.arange(2001), 2000, 0.6), rtol=1e-9, atol=1e-15)
