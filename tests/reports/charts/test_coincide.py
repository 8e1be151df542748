"""Which curves may be called equal: those that are the same over the whole range, drawn or not."""

from __future__ import annotations

import numpy as np
import pytest

from leakbound.core.tradeoff import EpsilonDelta, Gaussian, Piecewise
from leakbound.reports import Curve, Report
from leakbound.reports.charts import roc as plots
from leakbound.reports.charts.curves import coincide
from tests.reports.abouts import changed
from tests.reports.made import made

RATES = np.array([0.02, 0.1, 0.3, 0.6])
MISSED = np.array([0.7, 0.4, 0.2, 0.05])


def test_the_same_curve_by_other_corners():
    between = np.interp([0.05, 0.2], RATES, MISSED)
    more = Piecewise(np.sort(np.r_[RATES, 0.05, 0.2]), np.sort(np.r_[MISSED, between])[::-1])
    assert coincide(Piecewise(RATES, MISSED), more)
    assert coincide(Gaussian(1.5), Gaussian(1.5))
    assert coincide(EpsilonDelta(0.0), Piecewise([0.5], [0.5]))


@pytest.mark.parametrize("shift", [1e-12, -1e-12])
def test_rounding_is_no_difference_not_even_at_a_vertical_step(shift):
    steps = Piecewise([0.1, 0.1, 0.5, 0.5], [1.0, 0.6, 0.6, 0.2])
    moved = Piecewise(np.array([0.1, 0.1, 0.5, 0.5]) + shift, np.array([1.0, 0.6, 0.6, 0.2]))
    assert coincide(steps, moved)


@pytest.mark.parametrize("change", [1e-7, 1e-4, 0.01])
def test_tiny_differences_are_differences(change):
    assert not coincide(Piecewise(RATES, MISSED), Piecewise(RATES, MISSED - change * (RATES == 0.3)))
    assert not coincide(Gaussian(1.0), Gaussian(1.0 + 10 * change))


def test_equal_on_the_drawn_part_and_different_elsewhere():
    one = Piecewise(np.r_[0.0001, RATES], np.r_[0.99, MISSED])
    other = Piecewise(np.r_[0.0001, RATES], np.r_[0.75, MISSED])
    assert not coincide(one, other)
    assert not coincide(other, one)


def texts(first: Piecewise, second: Piecewise) -> list[str]:
    """What the chart of two attacks says, the inset left out; curves begin at ten false alarms of 1,000: at 1 %."""
    base = made()
    attacks = {name: {"title": name, "source": "", "summary": ""} for name in ("Alpha", "Beta")}
    about = changed(base.about, attacks=attacks, releases=[base.about.releases[0].model_dump() | {"best": "Alpha"}])
    drawn = (("Alpha", first), ("Beta", second))
    curves = [Curve(name, "forest", "measured", tradeoff, n_nonmember=1000) for name, tradeoff in drawn]
    ax = plots.roc(Report(about, [], curves, {}))
    return [text.get_text() for text in ax.texts]


def test_a_chart_calls_equal_only_what_is_equal_everywhere():
    low = np.r_[0.0001, 0.001, RATES], np.r_[0.99, 0.98, MISSED]
    same, other = Piecewise(*low), Piecewise(low[0], np.r_[0.8, 0.72, MISSED])
    drawn = np.linspace(0.02, 1, 50)
    np.testing.assert_allclose(same.tpr_at(drawn), other.tpr_at(drawn))
    assert any("Alpha = Beta" in text for text in texts(same, Piecewise(*low)))
    told = texts(same, other)
    assert not any("=" in text for text in told)
    assert any("Alpha" in text for text in told)
    assert any("Beta" in text for text in told)


def test_a_chart_does_not_call_a_tiny_difference_equal():
    one = Piecewise(RATES, MISSED)
    assert not any("=" in text for text in texts(one, Piecewise(RATES, MISSED + 1e-4)))
