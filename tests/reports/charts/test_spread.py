"""The histogram of a bound over the records."""

from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt

from leakbound.reports.charts.histograms import SPREAD, spread
from leakbound.reports.results.ranking import is_logarithmic
from tests.reports.charts.reading import texts


def drawn(accuracy: Any, median: float | None = None, **words: Any) -> Any:
    accuracy = np.asarray(accuracy, dtype=float)
    return spread(accuracy, float(np.median(accuracy)) if median is None else median, ax=SPREAD.axes(), **words)


def heights(axes: Any) -> np.ndarray:
    (bars,) = axes.patches
    return bars.get_path().vertices.reshape(-1, 5, 2)[:, 1, 1]


@pytest.mark.parametrize("accuracy", [[0.5, 0.509], [0.54], [0.5, 0.76], [0.93, 0.97], [1.0, 1.0]])
def test_the_axis_goes_from_50_to_100(accuracy):
    assert drawn(accuracy).get_xlim() == (50, 100)


def test_axis_begins_lower_for_a_bound_below_one_half():
    assert drawn([0.31, 0.4]).get_xlim() == (30, 100)


@pytest.mark.parametrize("n_records", [200, 1_000, 20_000, 3_000_000])
def test_labels_of_the_scale_do_not_cover_one_another(n_records):
    """The label of the topmost power of ten was printed over what the axis counts."""
    axes = drawn(np.r_[0.99, np.full(n_records, 0.51)])
    heights = sorted(
        text.get_position()[1]
        for text in axes.texts
        if text.get_horizontalalignment() == "right" and text.get_position()[0] < 0
    )
    assert min(np.diff(heights)) >= 12
    assert heights[-1] <= SPREAD.panel[1]


def test_every_record_is_in_a_bar():
    accuracy = np.linspace(0.5, 1.0, 400)
    assert heights(drawn(accuracy)).sum() == 400
    assert heights(drawn([1.0, 1.0])).tolist() == [2]


def test_a_bar_that_would_not_be_seen_makes_the_scale_logarithmic():
    assert not is_logarithmic(np.array([0.0, 100.0, 2.0]))
    assert is_logarithmic(np.array([0.0, 100.0, 1.0]))
    axes = drawn([0.99] + [0.51] * 20_000)
    assert axes.get_yscale() == "log"
    assert {"1", "100", "10,000", "records"} <= set(texts(axes)) or {"1", "10", "1,000", "10,000"} <= set(texts(axes))
    assert drawn([0.99, 0.51]).get_yscale() == "linear"


def test_median_and_most_exposed_are_marked_on_the_safe_side():
    axes = drawn([0.90001, 0.55001, 0.55001], bound_type="upper")
    assert {"most exposed 90.1", "median 55.1"} <= set(texts(axes))
    lines = sorted(float(line.get_xdata()[0]) for line in axes.lines)
    assert lines == pytest.approx([55.001, 90.001])
    assert "most exposed 90.0" in texts(drawn([0.90099, 0.6], bound_type="lower"))


def test_one_mark_where_all_are_equal():
    axes = drawn([0.7, 0.7])
    assert {text for text in texts(axes) if "0.0" in text} == {"most exposed 70.0"}


def test_without_axes_a_figure_of_pyplot_shows_it():
    axes = spread(np.array([0.6, 0.7]), 0.6)
    figure = axes.get_figure(root=True)
    assert figure is not None
    assert figure.number in plt.get_fignums()
    plt.close(figure)
