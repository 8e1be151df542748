"""How objects show themselves at the prompt and in a notebook: the number first, and nothing that is for others."""

import pickle
import re
from html import unescape
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

import leakbound as ls
from leakbound.core.tradeoff import EpsilonDelta, Gaussian, Mixture, Piecewise, Profile
from leakbound.plans.audits import AuditPlan
from leakbound.protection import CalibratedNoise, Protected
from leakbound.reports import Curve
from tests.reports import made_bounds, made_guesses, made_protected, samples
from tests.reports.page_reading import Page

KINDS = {
    "audit": samples.two_models,
    "few games": samples.tiny,
    "attribute": made_guesses.two,
    "bound": made_bounds.leakage,
    "protected": made_protected.means,
}


def paragraphs(html: str, name: str) -> list[str]:
    """Texts of the paragraphs of a class."""
    found = re.findall(rf'<(?:p|div) class="{name}">(?:\n<p>)?(.*?)</p>', html, flags=re.DOTALL)
    return [unescape(re.sub(r"<[^>]*>", "", text)) for text in found]


every_kind = pytest.mark.parametrize("sample", KINDS.values(), ids=KINDS)


@every_kind
def test_a_report_shows_its_table(sample):
    report = sample()
    assert repr(report) == str(report) == report.table().rstrip("\n")


@pytest.mark.by_day("no_leak")
@pytest.mark.parametrize("sample", [made_bounds.leakage, made_protected.means, samples.no_leak])
def test_the_notebook_of_a_document_has_its_title_answer_number_chart_and_findings(sample):
    html = sample()._repr_html_()
    shown = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    marks = ('class="title"', 'class="facts', 'class="lede', 'class="big"', "<svg", "<summary><strong>All findings")
    order = [shown.index(mark) for mark in marks]
    assert order == sorted(order)
    assert "<script" not in html
    assert "--full" not in html


def test_a_notebook_of_several_models_begins_with_their_table():
    html = samples.judged()._repr_html_()
    shown = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    order = [shown.index(mark) for mark in ('class="lede', "<table", 'class="big"', "<svg", "All findings")]
    assert order == sorted(order)
    assert "Do not release" in shown
    assert "<script" not in html


@pytest.mark.slow
def test_the_number_is_that_of_the_page():
    report = samples.two_models()
    numbers = ["58.3 of 100", "88.0 of 100"]
    assert paragraphs(report._repr_html_(), "big") == paragraphs(report.to_html(), "big") == numbers


def test_the_colours_follow_the_theme_of_the_notebook():
    html = samples.no_leak()._repr_html_()
    assert '.leakbound:is([data-jp-theme-light="false"] *, .vscode-dark *' in html
    assert html.count("--paper: #14181c") == 2  # the system's dark theme, and the notebook's
    assert html.count("--paper: #ffffff") == 2


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (Piecewise([0.1], [0.4]), "Piecewise(3 points, advantage 0.5)"),
        (EpsilonDelta(1.0, 1e-5), "EpsilonDelta(epsilon=1.0, delta=1e-05)"),
        (Gaussian(1.0), "Gaussian(mu=1.0)"),
        (Mixture([0.5, 0.5], [Gaussian(0.0), Gaussian(1.0)]), "Mixture(2 curves, advantage 0.191)"),
        (Profile([0.0], [0.25]), "Profile(1 points, advantage 0.25)"),
        (
            Curve("lira", "forest", "measured", Piecewise([0.1], [0.4])),
            "Curve('lira' of 'forest', measured, Piecewise(3 points, advantage 0.5))",
        ),
        (Curve("mu = 1", "", "certified", Gaussian(1.0)), "Curve('mu = 1', certified, Gaussian(mu=1.0))"),
    ],
)
def test_a_curve_is_one_line(shown, text):
    assert repr(shown) == text


class TestCurve:
    def test_a_measured_curve_is_read_where_it_rests_on_ten_false_alarms(self):
        curve = Curve("lira", "forest", "measured", Piecewise([0.01, 0.1], [0.75, 0.5]), n_nonmember=200)
        (text,) = paragraphs(curve._repr_html_(), "said")
        assert text == "lira (forest) finds 50 % of the members at 10 % false alarms.".replace(" %", "\u202f%")

    def test_a_ceiling_says_what_nobody_exceeds(self):
        curve = Curve("epsilon = 1", "", "certified", EpsilonDelta(1.0))
        html = curve._repr_html_()
        assert paragraphs(html, "big") == ["2.8\u202f%"]  # e/100, rounded up
        assert "no attacker finds more than" in paragraphs(html, "said")[0]

    def test_too_few_guesses_give_no_rate(self):
        curve = Curve("lira", "", "measured", Piecewise([0.5], [0.25]), n_nonmember=20)
        html = curve._repr_html_()
        assert (paragraphs(html, "big"), len(Page(html).all("svg"))) == (["—"], 1)

    def test_names_are_escaped(self):
        curve = Curve("<b>x</b>", "<i>y</i>", "measured", Piecewise([0.1], [0.5]))
        assert "<i>" not in curve._repr_html_()


class TestNamedCurve:
    """What ``report.curve(name)`` returns: arrays, conversions, and a form for notebooks."""

    report = samples.two_models()

    def test_its_arrays_draw_it(self):
        curve, tradeoff = self.report.curve("lira"), self.report.curves[0].tradeoff
        assert isinstance(curve.tpr, np.ndarray)
        np.testing.assert_array_equal(curve.fpr, tradeoff.points().fpr)
        np.testing.assert_array_equal(curve.tpr, tradeoff.points().tpr)
        axes = Figure().subplots()
        (line,) = axes.plot(curve.fpr, curve.tpr)
        np.testing.assert_array_equal(line.get_ydata(), curve.tpr)
        assert (curve.tpr[1:] >= curve.fpr[:1]).shape == (len(curve.fpr) - 1,)

    def test_it_converts_as_the_trade_off_does(self):
        curve, tradeoff = self.report.curve("lira"), self.report.curves[0].tradeoff
        assert curve.tpr_at(0.01) == tradeoff.tpr_at(0.01)
        np.testing.assert_array_equal(curve.tpr_at([0.1, 0.5]), tradeoff.tpr_at([0.1, 0.5]))
        np.testing.assert_array_equal(curve.knots, tradeoff.knots)
        for name, words in (("advantage", ()), ("accuracy", (0.3,)), ("eta", ()), ("delta", (1.0,)), ("ppv", (0.1,))):
            assert getattr(curve, name)(*words) == getattr(tradeoff, name)(*words)
        assert curve.epsilon(0.1) == tradeoff.epsilon(0.1)
        assert curve.to_dict() == tradeoff.to_dict()

    def test_its_rates_are_a_plain_array_and_those_at_any_rate_have_a_name_of_their_own(self):
        """The array was callable, and kept its curve through arithmetic: (1 - tpr)(.01) was the rate itself."""
        bound = ls.bound("gaussian", mu=1.0)
        named = bound.curve("mu = 1, replace one"), self.report.curve("lira")
        for curve in (*named, *bound.curves, *self.report.curves):
            for rates in (curve.tpr, 1 - curve.tpr, curve.tpr * 2):
                assert type(rates) is np.ndarray
                assert not callable(rates)
            np.testing.assert_array_equal(curve.tpr_at(curve.fpr[1:]), curve.tpr[1:])

    def test_what_only_its_kind_has_is_there(self):
        curve = ls.bound("gaussian", mu=1.0).curve("mu = 1, replace one")
        assert curve.mu == 1.0
        with pytest.raises(AttributeError):
            _ = curve.nothing
        again = pickle.loads(pickle.dumps(curve))
        assert again.tpr_at(0.01) == curve.tpr_at(0.01)

    def test_it_is_shown_as_the_curve(self):
        curve = self.report.curve("lira", "regression")
        assert repr(curve).startswith("Curve('lira' of 'regression', measured, ")
        (of_the_report,) = [each for each in self.report.curves if (each.name, each.release) == ("lira", "regression")]
        assert curve._repr_html_() == of_the_report._repr_html_()

    def test_a_curve_of_the_report_has_its_rates_beside_the_band(self):
        with_band = [curve for curve in self.report.curves if len(curve.low)]
        assert with_band
        for curve in with_band:
            assert len(curve.tpr) == len(curve.fpr) == len(curve.low)
            np.testing.assert_array_equal(curve.tpr, [curve.tradeoff.tpr_at(rate) for rate in curve.fpr])
            np.testing.assert_array_equal(curve.points(), curve.tradeoff.points())

    def test_a_curve_without_a_band_has_the_points_that_draw_it(self):
        """They were empty, and a plot of them was."""
        curves = [curve for curve in self.report.curves if not len(curve.low)]
        scores, member = np.array([[0.1, 0.9, 0.4, 0.2]]), np.array([[False, True, True, False]])
        curves += ls.audit_scores(scores, member).curves
        assert {curve.role for curve in curves} >= {"claimed", "measured"}
        for curve in curves:
            assert len(curve.low) == 0
            np.testing.assert_array_equal(curve.fpr, curve.points().fpr)
            np.testing.assert_array_equal(curve.tpr, curve.points().tpr)
            assert len(curve.fpr) == len(curve.tpr) >= 2


@pytest.mark.slow
def test_the_notebook_of_a_calibration_is_that_of_its_report():
    report = made_protected.means()
    assert CalibratedNoise(None, report)._repr_html_() == report._repr_html_()


class TestProtected:
    owner, public = made_protected.means(), made_protected.published()

    def test_a_release_shows_the_public_half_alone(self):
        released = Protected(np.array([0.5]), None, self.public, self.owner)
        assert repr(released) == repr(self.public)
        assert released._repr_html_() == self.public._repr_html_()
        assert repr(released) != repr(self.owner)
        for text in (repr(released), released._repr_html_()):
            assert self.owner.digest()[:6] not in text

    def test_a_calibration_shows_its_certificate(self):
        calibrated = CalibratedNoise(None, self.owner)
        assert repr(calibrated) == repr(self.owner)
        assert calibrated._repr_html_() == self.owner._repr_html_()


@pytest.mark.usefixtures("as_users_run_it")
def test_no_table_gets_into_an_error():
    report = samples.two_models()
    for call in (
        lambda: ls.bound("dp", epsilon=report),
        lambda: ls.games.half_split(100, report),
        lambda: ls.attacks.ATTACKS["lira"].with_parameters(x=report),
        lambda: AuditPlan(n_models=report),
        lambda: ls.audit_signals(ls.Signals(ls.games.half_split(9, 4), None, {}), page=ls.Page(title=report)),
    ):
        with pytest.raises((ValueError, TypeError)) as caught:
            call()
        assert len(str(caught.value).splitlines()[0]) < 400
        assert "attack accuracy" not in str(caught.value)


def test_a_report_that_stands_in_another_object_is_shown_once():
    assert repr(SimpleNamespace(report=samples.tiny())).count("Membership audit") == 1


def test_a_notebook_gets_the_text_of_a_table_as_a_terminal_does(monkeypatch):
    text = samples.no_leak().table()
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert samples.no_leak().table() == text
