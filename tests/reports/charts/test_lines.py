"""The chart of a bound: which lines it has and what is forbidden."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex

from leakbound.core.findings import Finding
from leakbound.core.tradeoff import EpsilonDelta, Gaussian, Piecewise
from leakbound.reports import Curve
from leakbound.reports.charts import roc as plots
from leakbound.reports.charts.canvas import ATTACK, CLAIM, MUTE
from leakbound.reports.charts.lines import chart
from leakbound.reports.numbers import percent_at_most
from tests.reports import made_bounds, made_protected, samples
from tests.reports.charts.reading import texts
from tests.reports.made_bounds import bound


def curves(axes: Any, color: str) -> list[Any]:
    return [line for line in axes.lines if to_hex(line.get_color()) == color and len(line.get_xdata()) > 2]


def of(*drawn: Curve, **about: Any) -> Any:
    return plots.roc(bound([], drawn, **about), ax=plots.ROC.axes())


def forbidden(axes: Any) -> np.ndarray:
    (region,) = [band for band in axes.collections if band.get_hatch()]
    return np.asarray(region.get_paths()[0].vertices)


def test_a_ceiling_is_drawn_in_its_colour_with_values_rounded_up():
    report = made_bounds.dp()
    axes = plots.roc(report, ax=plots.ROC.axes())
    (line,) = curves(axes, CLAIM)
    np.testing.assert_allclose(line.get_ydata(), 1 - EpsilonDelta(1.0, 1e-5).fnr(line.get_xdata()))
    assert line.get_linestyle() == "--"
    assert {percent_at_most(1 - float(EpsilonDelta(1.0, 1e-5).fnr(fpr))) for fpr in (0.01, 0.001)} <= set(texts(axes))
    assert {"2.8\u202f%", "0.28\u202f%", "ε = 1", "guessing"} <= set(texts(axes))
    assert not any("claim" in text for text in texts(axes))


@pytest.mark.parametrize(
    ("fpr", "floor"), [((0.01, 0.001), 1e-4), ((0.05,), 1e-3), ((0.5,), 1e-2), ((1e-5,), 1e-5), ((), 1e-3)]
)
def test_axes_begin_a_decade_below_the_smallest_rate(fpr, floor):
    axes = of(Curve("a", "", "certified", Gaussian(1.0)), fpr=list(fpr))
    assert axes.get_xlim() == pytest.approx((floor, 1))


def test_ceilings_of_one_release_hold_together_and_those_of_several_apart():
    low, high = Gaussian(0.5), Gaussian(2.0)

    def lowest(*releases: str) -> float:
        named = zip(releases, (low, high), strict=True)
        return float(
            forbidden(of(*(Curve(f"c{tradeoff}", name, "certified", tradeoff) for name, tradeoff in named)))[:, 1].min()
        )

    assert lowest("", "") == pytest.approx(1 - float(low.fnr(1e-4)))
    assert lowest("one", "other") == pytest.approx(1 - float(high.fnr(1e-4)))


def test_asymptotic_curves_are_thinner_dotted_and_forbid_nothing():
    axes = of(Curve("sure", "", "certified", Gaussian(2.0)), Curve("large n", "x", "asymptotic", Gaussian(1.0)))
    sure, large = sorted(curves(axes, CLAIM), key=lambda line: -line.get_linewidth())
    assert sure.get_linewidth() > large.get_linewidth()
    np.testing.assert_allclose(large.get_ydata(), 1 - Gaussian(1.0).fnr(large.get_xdata()))
    assert any("large n (asymptotic)" in text for text in texts(axes))
    assert forbidden(axes)[:, 1].min() == pytest.approx(1 - float(Gaussian(2.0).fnr(1e-4)))
    alone = of(Curve("large n", "x", "asymptotic", Gaussian(1.0)))
    assert not [band for band in alone.collections if band.get_hatch()]


def test_values_of_an_asymptotic_estimate_are_not_rounded_up():
    curve = Curve("large n", "x", "asymptotic", Gaussian(1.0))  # .0924 at .01
    report = bound([], [curve], fpr=[0.01])
    assert "9.2\u202f%" in texts(plots.roc(report, ax=plots.ROC.axes()))
    upper = Finding(
        "tpr", float(Gaussian(1.0).tpr_at(0.01)), operating_point={"fpr": 0.01}, bound_type="upper", release="x"
    )
    assert "9.3\u202f%" in texts(plots.roc(replace(report, findings=(upper,)), ax=plots.ROC.axes()))


def test_an_attack_that_was_run_is_drawn_beside_the_ceiling():
    measured = Curve("likelihood ratio", "", "measured", Piecewise([0.01, 0.2], [0.98, 0.6]), n_nonmember=5000)
    axes = of(measured, Curve("eps", "", "certified", EpsilonDelta(1.0)))
    assert len(curves(axes, ATTACK)) == 1
    assert any("likelihood ratio" in text for text in texts(axes))
    assert "left of it, under 10 false alarms" in texts(axes)
    assert axes.get_xlim()[0] == pytest.approx(1e-4)


def test_a_vacuous_ceiling_is_said_to_exclude_nothing():
    assert "no promise: a ceiling this high excludes nothing" in texts(
        of(Curve("no promise", "", "certified", EpsilonDelta(float("inf"))))
    )


def test_one_release_of_a_bound_alone():
    report = made_bounds.leakage()
    assert [line.label for line in chart(report, "median").lines] == ["guessing", "median record (asymptotic)"]
    assert len(chart(report).lines) == 3
    with pytest.raises(KeyError, match=r"no release 'x'; this report has: worst, median"):
        plots.roc(report, ax=plots.ROC.axes(), release="x")


def test_long_names_are_cut():
    curve = Curve("x" * 99, "", "certified", Gaussian(1.0))
    assert max(len(line.label) for line in chart(bound([], [curve])).lines) == 32


@pytest.mark.parametrize("name", ["dp", "leakage", "subsampled", "gap", "empty"])
def test_the_gain_is_filled_by_the_ceilings(name):
    report = getattr(made_bounds, name)()
    top = plots.gain(report, ax=plots.GAIN.axes()).get_ylim()[1]
    most = 100 * max((curve.tradeoff.advantage() for curve in report.curves), default=0.02)
    assert most <= top <= max(1.2 * most, 2.0)


def test_charts_of_audits_know_proved_and_asymptotic_curves():
    report = samples.no_leak()
    added = (Curve("dp", "mean", "certified", Gaussian(0.4)), Curve("leakage", "mean", "asymptotic", Gaussian(0.2)))
    drawn = chart(replace(report, curves=(*report.curves, *added)))
    assert [line.label for line in drawn.lines[:3]] == ["guessing", "certified ceiling", "leakage (asymptotic)"]
    assert [line.color for line in drawn.lines[1:3]] == [CLAIM, CLAIM]
    assert "no claim was made" not in drawn.remarks


def test_a_protected_release_shows_ceiling_attack_and_no_noise():
    report = made_protected.means()
    lines = {line.role: line for line in chart(report).lines}
    assert list(lines) == ["guessing", "ceiling", "unprotected", "best"]
    assert lines["unprotected"].label == "without noise (asymptotic)"
    assert lines["ceiling"].label == "certified ceiling"
    axes = plots.roc(report, ax=plots.ROC.axes())
    (certified,), (attack,), (unprotected,) = curves(axes, CLAIM), curves(axes, ATTACK), curves(axes, MUTE)[:1]
    x = certified.get_xdata()
    np.testing.assert_allclose(certified.get_ydata(), Gaussian(made_protected.mu_of(0.05)).tpr_at(x))
    np.testing.assert_allclose(unprotected.get_ydata(), Gaussian(0.37).tpr_at(unprotected.get_xdata()))
    assert attack.get_xdata()[0] >= 10 / 20_000
    assert forbidden(axes)[:, 1].min() == pytest.approx(float(Gaussian(made_protected.mu_of(0.05)).tpr_at(1e-4)))


def test_a_leak_without_noise_that_is_far_above_leaves_the_gain_panel():
    found, certified = made_protected.ceiling()
    far, near = made_protected.without(5.0)[1], made_protected.without()[1]

    def top(*drawn: Curve) -> float:
        return plots.gain(made_protected.protected(found, drawn), ax=plots.GAIN.axes()).get_ylim()[1]

    assert top(certified, far) == top(certified) < 15
    assert top(certified, near) > 14.5  # 2 Phi(.185) - 1 = .1467


def test_attacks_with_too_few_games_are_no_curve():
    few = Curve("few", "", "measured", Piecewise([0.5], [0.4]), n_nonmember=9)
    exact = Curve("bayes", "", "measured", Piecewise([0.5], [0.45]))
    drawn = chart(made_protected.protected([], [few, exact])).lines
    assert [line.label for line in drawn] == ["guessing", "exact Bayes"]


def test_ceilings_of_a_part_of_the_records_carry_its_name():
    curves = [Curve("c", "typical person", "certified", Gaussian(0.1)), made_protected.ceiling()[1]]
    labels = [line.label for line in chart(made_protected.protected([], curves)).lines]
    assert labels == ["guessing", "ceiling, typical person", "certified ceiling"]
    with pytest.raises(KeyError, match="no release 'x'; this report has: typical person"):
        chart(made_protected.protected([], curves[:1]), "x")
