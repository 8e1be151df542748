"""ROC and gain: what is drawn, where it begins, and what is written beside it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

from leakbound.core.tradeoff import EpsilonDelta, Gaussian, Piecewise, TradeOff
from leakbound.core.tradeoff.claims import Claim
from leakbound.reports import Curve, Report, Verdict
from leakbound.reports.charts import roc as plots
from leakbound.reports.charts.canvas import ATTACK, CLAIM, MUTE, shorten
from leakbound.reports.charts.lines import floor_of, lines_of
from leakbound.reports.numbers import percent
from leakbound.reports.results.audit.result import results
from tests.reports import samples
from tests.reports.charts.reading import texts

ALL = (
    samples.two_models,
    samples.one_model_no_claim,
    samples.no_leak,
    samples.few_models,
    samples.tiny,
)
BOTH = pytest.mark.parametrize("chart", [plots.roc, plots.gain])


def curves(axes: Any, color: str) -> list[Any]:
    return [line for line in axes.lines if to_hex(line.get_color()) == color and len(line.get_xdata()) > 2]


def circles(axes: Any) -> list[list[float]]:
    return [line.get_xydata()[0].tolist() for line in axes.lines if to_hex(line.get_markerfacecolor()) == "#ffffff"]


def with_curves(report: Report, *added: Curve, drop: str = "") -> Report:
    kept = [curve for curve in report.curves if curve.role == "measured" and curve.name != drop]
    return replace(report, curves=(*kept, *added))


def claim(tradeoff: TradeOff, claimed: Claim, release: str = "forest") -> Curve:
    return Curve(claimed.text, release, "claimed", tradeoff, verdict=Verdict(claimed, "not_refuted"))


@BOTH
@pytest.mark.parametrize("sample", ALL)
def test_every_release_of_every_sample_has_a_chart_with_words(chart, sample):
    report = sample()
    for release in report.about.releases:
        axes = chart(report, ax=plots.ROC.axes(), release=release.name)
        assert axes.lines
        assert "false alarms: non-members called members (FPR)" in texts(axes)


def test_axes_begin_a_decade_below_ten_false_alarms_and_are_the_same_for_all_releases():
    report = samples.two_models()  # 48,000 non-member games: ten of them are 0.021 %
    assert floor_of(report) == pytest.approx(1e-4)
    for name in ("forest", "regression"):
        axes = plots.roc(report, ax=plots.ROC.axes(), release=name)
        assert axes.get_xlim() == pytest.approx((1e-4, 1))
        assert axes.get_ylim() == pytest.approx((1e-4, 1))
        assert texts(axes)[:2] == ["0.01\u202f%"] * 2


@pytest.mark.parametrize(("games", "floor"), [(0, 1e-2), (3, 1e-2), (500, 1e-2), (2000, 1e-3), (10**9, 1e-5)])
def test_axes_show_two_decades_at_least_and_nothing_below_a_thousandth_of_a_percent(games, floor):
    curve = Curve("loss", "r", "measured", Piecewise([0.5], [0.4]), n_nonmember=games)
    assert floor_of(Report({}, curves=(curve,))) == pytest.approx(floor)


def test_curves_begin_at_ten_false_alarms_or_at_the_strictest_threshold():
    axes = plots.roc(samples.two_models(), ax=plots.ROC.axes())
    (best,) = curves(axes, ATTACK)
    assert best.get_xdata()[0] == pytest.approx(10 / 48000, rel=0.02)
    assert "left of it, under 10 false alarms" in texts(axes)
    loss = next(line for line in curves(axes, MUTE) if line.get_linestyle() not in ("-", ":"))
    strictest = float(np.asarray(samples.two_models().curve("loss").knots)[1])
    assert strictest == pytest.approx(0.01, rel=0.02)
    assert loss.get_xdata()[0] == pytest.approx(strictest, rel=0.02)


def test_best_attack_is_the_one_with_the_largest_lower_end_and_is_drawn_last():
    report = samples.two_models()
    lows = {f.attack: f.low for f in report.findings if f.quantity == "accuracy" and f.release == "forest"}
    lines = lines_of(results(report)[0], 1e-4)
    assert lines[-1].role == "best"
    assert lines[-1].label == samples.TITLES[max(lows, key=lambda name: lows[name] or 0.0)][0]
    assert [line.role for line in lines].count("best") == 1


def test_curve_is_the_true_positive_rate_and_the_gain_is_its_distance_from_guessing():
    report = samples.two_models()
    measured = report.curve("lira")
    (line,) = curves(plots.roc(report, ax=plots.ROC.axes()), ATTACK)
    np.testing.assert_allclose(line.get_ydata(), 1 - measured.fnr(line.get_xdata()))
    (line,) = curves(plots.gain(report, ax=plots.GAIN.axes()), ATTACK)
    np.testing.assert_allclose(line.get_ydata(), 100 * (1 - measured.fnr(line.get_xdata()) - line.get_xdata()))


def test_values_are_written_at_the_rates_asked_for_on_best_attack_and_ceiling():
    report = samples.two_models()
    written = texts(plots.roc(report, ax=plots.ROC.axes()))
    for curve in (report.curve("lira"), EpsilonDelta(4.0, 1e-5)):
        for fpr in samples.FPR:
            assert percent(1 - float(curve.fnr(fpr))) in written


@pytest.mark.slow
def test_an_attack_with_one_threshold_is_an_open_circle_with_its_name():
    axes = plots.roc(samples.two_models(), ax=plots.ROC.axes())
    ((fpr, tpr),) = circles(axes)
    knots = np.asarray(samples.two_models().curve("gap").knots)
    assert fpr == knots[1]
    assert tpr == 1 - float(samples.two_models().curve("gap").fnr(fpr))
    assert "gap" in texts(axes)


def test_region_above_the_lowest_ceiling_is_hatched_and_only_with_a_claim():
    report = with_curves(
        samples.two_models(),
        claim(EpsilonDelta(4.0), Claim("epsilon", 4.0, adjacency="replace_one")),
        claim(Gaussian(0.5), Claim("mu", 0.5, adjacency="replace_one")),
    )
    axes = plots.roc(report, ax=plots.ROC.axes())
    (region,) = [band for band in axes.collections if band.get_hatch()]
    low = min(1 - float(EpsilonDelta(4.0).fnr(1e-4)), 1 - float(Gaussian(0.5).fnr(1e-4)))
    assert np.asarray(region.get_paths()[0].vertices)[:, 1].min() == pytest.approx(low)
    assert not [b for b in plots.roc(samples.no_leak(), ax=plots.ROC.axes()).collections if b.get_hatch()]


@pytest.mark.parametrize(
    ("claimed", "label"),
    [
        (Claim("epsilon", 4.0, 1e-5, "replace_one"), "ceiling if ε = 4"),
        (Claim("mu", 1.0, adjacency="add_remove"), "ceiling if μ = 1"),
        (Claim("eta", 0.05), "ceiling if η = 0.05"),
    ],
)
def test_a_ceiling_is_named_by_its_claim(claimed, label):
    report = with_curves(samples.two_models(), claim(EpsilonDelta(1.0), claimed))
    assert label in [line.label for line in lines_of(results(report)[0], 1e-4)]


@BOTH
def test_says_that_no_claim_was_made(chart):
    assert "no claim was made" in texts(chart(samples.no_leak(), ax=plots.ROC.axes()))
    assert "no claim was made" not in texts(chart(samples.two_models(), ax=plots.ROC.axes()))


def test_says_that_a_ceiling_excludes_nothing():
    report = with_curves(
        samples.two_models(), claim(EpsilonDelta(14.0), Claim("epsilon", 14.0, adjacency="replace_one"))
    )
    axes = plots.roc(report, ax=plots.ROC.axes())
    assert "ceiling if ε = 14: a ceiling this high excludes nothing" in texts(axes)


@BOTH
def test_says_that_there_are_too_few_games(chart):
    assert any("too few games for a curve" in text for text in texts(chart(samples.tiny(), ax=plots.ROC.axes())))


def crowded(n_attacks: int) -> Report:
    added = [
        Curve(
            f"attack number {k} of them",
            "forest",
            "measured",
            Piecewise(*gaussian(0.9 + k / 12)),
            n_nonmember=48000,
        )
        for k in range(n_attacks)
    ]
    return with_curves(samples.two_models(), *added)


def gaussian(mu: float) -> tuple[np.ndarray, np.ndarray]:
    fpr = np.geomspace(1e-4, 0.999, 200)
    return fpr, np.asarray(Gaussian(mu).fnr(fpr))


@pytest.mark.parametrize("n_attacks", [6, 14])
def test_the_legend_has_a_row_for_each_line_the_best_first_and_the_figure_grows_by_it(n_attacks):
    axes = plots.roc(crowded(n_attacks), ax=plots.ROC.axes())
    rows = [text.get_text() for text in axes.get_legend().get_texts()]
    assert len(rows) == n_attacks + 6  # four attacks, guessing, and the limit
    assert rows[0].endswith(": LiRA")
    assert axes.get_legend().get_title().get_text() == "members found at 1\u202f% and 0.1\u202f% false alarms"
    figure = axes.get_figure(root=True)
    figure.draw_without_rendering()
    assert axes.get_window_extent().height == pytest.approx(plots.ROC.panel[1])
    box = axes.get_legend().get_window_extent()
    assert (box.x0, box.y0) >= (0, 0)
    assert box.x1 <= plots.ROC.width
    assert box.y1 < axes.get_window_extent().y0 - 36  # below the name of the axis


def test_attacks_are_told_apart_by_their_dashes():
    axes = plots.roc(crowded(4), ax=plots.ROC.axes())
    assert len({str(line._dash_pattern) for line in curves(axes, MUTE) if len(line.get_xdata()) > 100}) == 6


def test_two_ceilings_are_told_apart_by_their_dashes():
    claims = [Curve(f"mu {mu}", "forest", "claimed", Gaussian(mu)) for mu in (1.0, 2.0)]
    axes = plots.roc(with_curves(samples.two_models(), *claims), ax=plots.ROC.axes())
    dashes = {str(line._dash_pattern) for line in curves(axes, CLAIM) if len(line.get_xdata()) > 100}
    assert len(dashes) == 2


def test_where_no_curve_is_low_there_is_an_inset():
    (inset,) = plots.roc(samples.two_models(), ax=plots.ROC.axes()).child_axes
    assert inset.get_xscale() == "linear"
    assert "linear axes" in texts(inset)
    worse = Curve("worse", "forest", "measured", Piecewise([0.0, 0.9], [1.0, 0.99]), n_nonmember=48000)
    assert not plots.roc(with_curves(samples.two_models(), worse), ax=plots.ROC.axes()).child_axes


def test_gain_fills_the_panel_and_a_far_ceiling_leaves_it():
    report = samples.two_models()
    low, top = plots.gain(report, ax=plots.GAIN.axes(), release="regression").get_ylim()
    highest = 100 * report.curve("lira", "regression").advantage()
    assert highest < top < 2 * highest
    assert low < 0
    near = with_curves(report, claim(EpsilonDelta(0.0, 0.25), Claim("eta", 0.125), "regression"))
    assert plots.gain(near, ax=plots.GAIN.axes(), release="regression").get_ylim()[1] > 25


@BOTH
def test_unknown_release_is_named_in_the_error(chart):
    with pytest.raises(KeyError, match="no release 'x'; this report has: forest, regression"):
        chart(samples.two_models(), ax=plots.ROC.axes(), release="x")


def test_without_axes_a_figure_of_pyplot_shows_it():
    before = set(plt.get_fignums())
    figure = samples.no_leak().plot().get_figure(root=True)
    assert figure is not None
    assert {plt.figure(number) for number in set(plt.get_fignums()) - before} == {figure}
    plt.close(figure)


def test_given_axes_are_drawn_on_and_no_figure_is_opened():
    before = plt.get_fignums()
    axes = plots.ROC.axes()
    assert samples.no_leak().plot(ax=axes) is axes
    assert plt.get_fignums() == before


def test_long_names_are_cut_at_22_characters():
    assert shorten("x" * 60) == "x" * 21 + "…"
    assert shorten("x" * 22) == "x" * 22


def test_perfect_attack_with_one_threshold_stands_on_the_axis():
    perfect = Curve("oracle", "forest", "measured", Piecewise([0.0], [0.0]), n_nonmember=48000)
    axes = plots.roc(with_curves(samples.two_models(), perfect), ax=plots.ROC.axes())
    assert [pytest.approx(1e-4), 1.0] in circles(axes)


def test_claims_are_dashed_in_their_own_colour():
    (line,) = curves(plots.roc(samples.two_models(), ax=plots.ROC.axes()), CLAIM)
    assert line.get_linestyle() == "--"
