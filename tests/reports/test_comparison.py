import itertools
import os
import re
from dataclasses import replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import leakbound as ls
from leakbound.core.findings import Finding, Term
from leakbound.reports import Report
from leakbound.reports.comparison import Comparison, apart, compare
from leakbound.reports.results.comparison import comparison_page
from tests.levels import allowed, sizes
from tests.reports import made_bounds, made_guesses, made_protected, samples
from tests.reports.abouts import about
from tests.reports.page_reading import Page


def auc(value: float | None, low: float | None = None, high: float | None = None, **words: Any) -> Finding:
    named: dict[str, Any] = {"attack": "lira", "release": "forest"} | words
    return Finding("auc", value, low, high, **named)


def one(*findings: Finding) -> Report:
    return Report(about(kind="bound"), findings)


def rows_of(first: Report, second: Report) -> list[dict[str, Any]]:
    return Comparison(first, second).rows


def shown(first: Report, second: Report) -> list[tuple[str, ...]]:
    """The rows of the page, those whose intervals are apart first, as plain text."""
    page = comparison_page(Comparison(first, second))
    rows = [*page.apart, *page.others]
    return [tuple(map(str, (row.quantity, row.first, row.second, row.difference))) for row in rows]


@pytest.mark.parametrize(
    ("first", "second", "difference", "is_apart"),
    [
        ((0.6, 0.59, 0.61), (0.7, 0.69, 0.71), 0.1, True),
        ((0.7, 0.69, 0.71), (0.6, 0.59, 0.61), -0.1, True),
        ((0.6, 0.55, 0.65), (0.66, 0.64, 0.68), 0.06, False),
        ((0.6, 0.55, 0.65), (0.6, 0.55, 0.65), 0.0, False),
        ((0.6, 0.5, 0.65), (0.7, 0.65, 0.75), 0.1, False),  # intervals that touch are not apart
        ((0.6, None, None), (0.7, 0.69, 0.71), 0.1, False),
    ],
)
def test_intervals_are_apart_or_not(first, second, difference, is_apart):
    (row,) = rows_of(one(auc(*first)), one(auc(*second)))
    assert (row["difference"], row["apart"]) == (pytest.approx(difference), is_apart)


def test_numbers_are_shown_with_their_intervals():
    first, second = one(auc(0.61234, 0.6, 0.62)), one(auc(0.7))
    (row,) = rows_of(first, second)
    assert [row[name] for name in ("first", "first_low", "first_high", "second", "second_low")] == [
        0.61234, 0.6, 0.62, 0.7, None,
    ]  # fmt: skip
    assert shown(first, second) == [
        ("Area under the curve, lira", "0.61 (0.60 to 0.62)", "0.7000", "+0.0877"),
    ]


def test_what_one_report_lacks_is_a_dash():
    gap, lira = auc(0.55, attack="gap"), auc(0.7)
    first, second = one(gap), one(lira, auc(None, attack="gap", reason=Term("no")))
    rows = rows_of(first, second)
    assert [(row["attack"], row["first"], row["second"], row["difference"]) for row in rows] == [
        ("gap", 0.55, None, None),
        ("lira", None, 0.7, None),
    ]
    assert [numbers for _, *numbers in shown(first, second)] == [["0.5500", "—", "—"], ["—", "0.7000", "—"]]


def test_rates_are_matched_by_where_they_were_taken():
    rates = [Finding("tpr", 0.1 * n, operating_point={"fpr": 10.0**-n, "prior": 0.5}, attack="lira") for n in (1, 2)]
    rows = rows_of(one(*rates), one(*rates[::-1]))
    assert [(row["operating_point"]["fpr"], row["difference"]) for row in rows] == [(0.1, 0.0), (0.01, 0.0)]


def test_releases_are_matched_by_name_unless_a_report_has_one_only():
    forest, tree = auc(0.6), auc(0.7, release="tree")
    rows = rows_of(one(forest, tree), one(tree, forest))
    assert [(row["release"], row["difference"]) for row in rows] == [("forest", 0.0), ("tree", 0.0)]
    (row,) = rows_of(one(forest), one(tree))
    assert row["difference"] == pytest.approx(0.1)
    assert not comparison_page(Comparison(one(forest), one(tree))).with_release
    assert comparison_page(Comparison(one(forest, tree), one(tree, forest))).with_release


def test_one_release_against_several_is_compared_with_each():
    rows = rows_of(one(auc(0.6)), one(auc(0.7, release="tree"), auc(0.8, release="net")))
    assert [row["difference"] for row in rows] == pytest.approx([0.1, 0.2])


@pytest.mark.parametrize("quantity", ["epsilon", "most_exposed"])
def test_the_best_of_all_attacks_is_matched_whichever_it_was(quantity):
    first, second = (Finding(quantity, value, attack=attack) for value, attack in ((0.5, "gap"), (0.75, "lira")))
    (row,) = rows_of(one(first), one(second))
    assert (row["attack"], row["difference"]) == ("", 0.25)


@pytest.mark.parametrize("quantity", ["accuracy", "ppv"])
def test_numbers_at_different_priors_are_not_compared(quantity):
    def at(prior, value):
        point = {"prior": prior}
        return Finding(quantity, value, value - 0.01, value + 0.01, attack="lira", operating_point=point)

    rows = rows_of(one(at(0.5, 0.6)), one(at(0.1, 0.9)))
    assert [(row["operating_point"]["prior"], row["first"], row["second"]) for row in rows] == [
        (0.5, 0.6, None), (0.1, None, 0.9),
    ]  # fmt: skip
    assert [name.partition(", prior ")[2] for name, *_ in shown(one(at(0.5, 0.6)), one(at(0.1, 0.9)))] == [
        "½", "10\u202f%",
    ]  # fmt: skip


def test_bounds_are_matched_by_side_and_prior():
    def bound(value, bound_type="upper", prior=0.5, **words):
        return Finding(
            "accuracy", value, operating_point={"prior": prior}, bound_type=bound_type, status="certified", **words
        )

    first = one(bound(0.85, source="kl"), bound(0.51, "lower"), bound(0.9, prior=0.1), bound(0.8, source="other"))
    second = one(bound(0.51, "lower"), bound(0.8, source="kl"), bound(0.8, "point"), bound(0.7, source="other"))
    rows = rows_of(first, second)
    assert [(row["operating_point"]["prior"], row["bound_type"], row["first"], row["second"]) for row in rows] == [
        (0.5, "upper", 0.85, 0.8),
        (0.5, "lower", 0.51, 0.51),
        (0.1, "upper", 0.9, None),
        (0.5, "upper", 0.8, 0.7),
        (0.5, "point", None, 0.8),
    ]
    assert [name for name, *_ in shown(first, second)] == [
        "Accuracy of any attacker, prior ½",
        "Accuracy of any attacker, prior ½, other",
        "Accuracy of some attacker, prior ½",
        "Accuracy of any attacker, prior 10\u202f%",
        "Accuracy of the best attacker, prior ½",
    ]


def test_reports_of_bounds_are_compared():
    rows = rows_of(made_bounds.dp(1.0), made_bounds.dp(2.0))
    (accuracy,) = [row for row in rows if row["quantity"] == "accuracy"]
    first, second = ((np.exp(epsilon) + 1e-5) / (1 + np.exp(epsilon)) for epsilon in (1.0, 2.0))  # delta = 1e-5
    assert (accuracy["first"], accuracy["second"]) == pytest.approx((first, second))
    assert accuracy["difference"] == pytest.approx(second - first)
    assert accuracy["apart"]
    assert all(row["first"] is not None and row["second"] is not None for row in rows)


def test_two_orders_of_the_same_findings_are_the_same():
    found = [auc(0.5 + n / 10, attack=name) for n, name in enumerate(("gap", "loss", "lira"))]
    tables = [rows_of(one(*found), one(*order)) for order in itertools.permutations(found)]
    assert all(table == tables[0] for table in tables)
    assert rows_of(one(), one()) == []


def audited(seed: int, leak: float, n_models: int = 16, n_points: int = 150, **words: Any) -> Report:
    game = ls.games.half_split(n_points, n_models, seed=seed)
    loss = np.random.default_rng(seed).exponential(np.where(game.member, 1 - leak, 1.0))
    return ls.audit_signals(ls.Signals(game, None, {"loss": loss}), **words)


@cache
def leaks() -> Report:
    return audited(0, 0.7, name="forest")


@cache
def tight() -> Report:
    return audited(1, 0.1, name="tree")


class TestHeadline:
    def test_a_difference_is_stated_where_the_intervals_are_apart(self):
        for first, second in ((leaks(), tight()), (tight(), leaks())):
            said = compare(first, second).headline
            pattern = (
                r"forest reveals more than tree: an attacker is right in ([\d.]+) of 100 cases "
                r"\(([\d.]+) to ([\d.]+)\) against ([\d.]+) \(([\d.]+) to ([\d.]+)\); the intervals do not overlap\."
            )
            numbers = [float(number) for number in re.fullmatch(pattern, said).groups()]
            assert numbers[1] > numbers[5]

    @pytest.mark.slow
    def test_intervals_that_overlap_show_no_difference(self):
        said = compare(audited(0, 0.3, name="forest"), audited(1, 0.3, name="tree")).headline
        assert said.startswith("No difference between forest and tree is shown: an attacker is right in ")
        assert said.endswith("; the intervals overlap.")

    @pytest.mark.slow
    def test_releases_of_the_same_name_get_those_of_the_reports(self, tmp_path):
        reports = [replace(report, observations={}) for report in (audited(0, 0.7), audited(1, 0.1))]
        assert compare(*reports).headline.startswith(
            "signals (the first report) reveals more than signals (the second report): "
        )
        paths = [tmp_path / "before.json", tmp_path / "after.json"]
        for report, path in zip(reports, paths, strict=True):
            report.to_json(path)
        assert compare(*paths).headline.startswith("signals (before) reveals more than signals (after): ")
        folders = [tmp_path / name / "report.json" for name in ("v1", "v2")]
        for report, path in zip(reports, folders, strict=True):
            report.to_json(path)
        assert compare(*map(str, folders)).headline.startswith("signals (v1) reveals more than signals (v2): ")
        assert compare(paths[0], paths[0]).names == ("the first report", "the second report")

    @pytest.mark.parametrize(
        ("first", "second", "said"),
        [
            (
                lambda: made_bounds.dp(1.0),
                lambda: made_bounds.dp(2.0),
                "The second report allows more than the first report: at most 88.1 of 100 cases against at most 73.2.",
            ),
            (
                lambda: made_bounds.dp(1.0),
                made_protected.means,
                "The first report allows more than the second report: at most 73.2 of 100 cases against at most 55.0.",
            ),
            (
                leaks,
                lambda: made_bounds.dp(1.0),
                "forest was measured: an attacker is right in . of 100 cases (.). The second report is a ceiling: at "
                "most 73.2 of 100. Whether a ceiling holds for a model is tested by an audit with that claim.",
            ),
            (leaks, samples.tiny, ". cannot be compared in one number: . has 6 guesses, too few for a percentage."),
            (
                leaks,
                lambda: audited(1, 0.1, name="tree", prior=0.25),
                "forest and tree cannot be compared in one number: their accuracies are at different priors, 0.5 and "
                "0.25.",
            ),
            (leaks, one, "forest and . cannot be compared in one number: the second report has none."),
            (
                made_guesses.two,
                made_guesses.two,
                "No difference between . is shown: they add . of 100 correct guesses (.) and . (.); the intervals "
                "overlap.",
            ),
            (made_guesses.two, leaks, ". cannot be compared in one number: one is about an attribute, the other "
            "about membership."),
        ],
    )  # fmt: skip
    def test_what_is_said_of_each_kind(self, first, second, said):
        pattern = ".+".join(re.escape(part) for part in re.split(r"(?<!\w)\.(?=[\s)])", said))
        assert re.fullmatch(pattern, compare(first(), second()).headline)

    def test_members_of_another_source_are_no_leak_to_compare(self):
        shifted = Finding("membership_without_model", 0.8, 0.7, 0.9, release="forest")
        report = replace(leaks(), findings=(*leaks().findings, shifted))
        said = compare(report, tight()).headline
        assert said.startswith("forest and tree cannot be compared in one number: members and others of forest do not ")

    def test_notes_say_how_it_was_judged_and_what_else_differs(self):
        scores = ls.audit_scores(np.random.default_rng(0).normal(np.arange(400) < 200), np.arange(400) < 200)
        text = " ".join(repr(compare(leaks(), scores)).split())
        assert "only where two intervals (95 %) do not overlap" in text
        assert "different games (signals, scores)" in text.replace("half split", "signals")
        assert "The interval of scores is over the records of its models" in text

    @pytest.mark.slow
    @pytest.mark.statistics
    @pytest.mark.parametrize("n_pairs", sizes(20, full=200))
    def test_two_audits_of_the_same_leak_seldom_differ(self, n_pairs):
        """At most 5 %: more than 5 of 20 pairs, or 20 of 200, have a probability of at most .22 %, a false alarm.

        42 % and 13.3 % are found in 9 of 10.
        """
        attacks = ["loss", "mast", "lira", "rmia"]
        differences = 0
        for pair in range(n_pairs):
            first, second = (audited(2 * pair + which, 0.2, 12, 60, attacks=attacks) for which in (0, 1))
            differences += "reveals more" in compare(first, second).headline
        assert differences <= allowed(n_pairs)


class TestComparison:
    @cached_property
    def comparison(self) -> Comparison:
        return compare(leaks(), tight())

    def test_a_terminal_has_the_sentence_and_the_strongest_numbers_in_25_lines(self):
        for shown in (self.comparison, compare(made_bounds.dp(1.0), made_bounds.dp(2.0))):
            lines = shown.table(80).splitlines()
            assert len(lines) <= 25
            assert max(map(len, lines)) <= 80
            assert " ".join(lines).count(shown.headline) == 1
        assert f"{self.comparison!r}\n" == self.comparison.table(100)
        whole = " ".join(self.comparison.table(200).split())
        assert "Records exposed beyond chance" in whole
        assert "Numbers that differ" not in whole

    def test_the_full_text_has_every_number(self):
        lines = self.comparison.table(200, full=True).splitlines()
        said = "\n".join(lines)
        page = comparison_page(self.comparison)
        assert max(map(len, lines)) <= 200
        for row in (*page.strongest, *page.apart, *page.others):
            assert str(row.quantity).replace("\u202f", " ") in said
        assert said.count("Second minus first") == 3

    def test_the_frame_holds_the_numbers(self):
        frame = self.comparison.to_frame()
        (auc,) = frame[(frame["attack"] == "lira") & (frame["quantity"] == "auc")].to_dict("records")
        first, second = (
            next(row for row in report.findings if row.attack == "lira" and row.quantity == "auc")
            for report in (leaks(), tight())
        )
        assert (auc["first"], auc["second_high"]) == (first.value, second.high)
        assert auc["difference"] == second.value - first.value
        assert auc["apart"] == (first.low > second.high)
        assert len(frame) == len(self.comparison.rows)

    def test_both_curves_are_on_the_plot(self):
        axes = self.comparison.plot(Figure().subplots())
        names = [text.get_text() for text in axes.get_legend().get_texts()]
        assert any("forest, Loss (MALT)" in name for name in names)
        assert any("tree, Loss (MALT)" in name for name in names)
        with pytest.raises(ValueError, match=r"^neither report has a curve to draw"):
            compare(one(auc(0.5)), one(auc(0.6))).plot(Figure().subplots())

    def test_the_page_has_sentence_plot_and_table(self, tmp_path):
        text = self.comparison.to_html(tmp_path / "page.html")
        assert (tmp_path / "page.html").read_text(encoding="utf-8") == text == self.comparison.to_html()
        page = Page(text)
        assert self.comparison.headline in page.whole
        assert (len(page.all("svg")), len(page.all("script"))) == (2, 1)  # accuracies from 50 to 100, and the curves
        assert page.text("h2") == ["The strongest attack on each", "At each rate of false alarms"]
        folds = [text for text in page.text("strong") if text.startswith("Numbers ")]
        assert folds == ["Numbers that differ", "Numbers without a shown difference"]
        assert len(page.all("details")) == 2
        assert leaks().digest() in page.whole
        assert "leakbound compare" in page.whole

    def test_reports_without_curves_have_a_page_too(self):
        page = Page(compare(one(auc(0.6)), one(auc(0.7))).to_html())
        assert page.all("svg") == []
        assert "No number of one report is shown to differ" in page.whole

    def test_the_notebook_has_the_same(self):
        html = self.comparison._repr_html_()
        page = Page(html)
        assert page.elements[0] == ("div", {"class": "leakbound"})
        assert self.comparison.headline in page.whole
        assert (len(page.all("svg")), page.all("script")) == (1, [])

    @pytest.mark.slow
    def test_names_are_escaped(self):
        report = audited(0, 0.7, name="<script>alert(1)</script>")
        for html in (compare(report, tight()).to_html(), compare(report, tight())._repr_html_()):
            assert "<script>alert" not in html

    @pytest.mark.slow
    @pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
    def test_the_page_is_for_the_owner_unless_it_is_published(self, tmp_path):
        self.comparison.to_html(tmp_path / "owner.html")
        published = self.comparison.to_html(tmp_path / "public.html", publish=True)
        modes = [(tmp_path / name).stat().st_mode & 0o077 for name in ("owner.html", "public.html")]
        assert modes[0] == 0
        assert modes[1] & 0o044
        (worst,) = [finding for finding in leaks().findings if finding.quantity == "most_exposed"]
        won = f"{worst.detail['won']:.0f} of {worst.detail['games']:.0f} games"
        assert won in Page(self.comparison.to_html()).whole
        assert " games" not in Page(published).whole
        bare = compare(leaks().without_records(), tight().without_records())
        (hidden,) = [row for row in bare.rows if row["quantity"] == "most_exposed"]
        assert hidden["first"] is hidden["second"] is None
        assert published == bare.to_html()

    @pytest.mark.usefixtures("as_users_run_it")
    def test_what_is_no_report_gets_one_line(self):
        with pytest.raises(ValueError, match=r"^expected a report or the path of one, got a int$"):
            compare(leaks(), 3)


@pytest.mark.parametrize(
    ("one_number", "other", "is_apart"),
    [
        (Finding("auc", 0.6, 0.5, 0.7), Finding("auc", 0.8, 0.7, 0.9), False),  # they touch
        (Finding("auc", 0.6, 0.5, 0.7), Finding("auc", 0.8, 0.71, 0.9), True),
        (Finding("auc", 0.6, 0.5, 0.7), Finding("auc", 0.8, 0.71, 0.9, refused="too_few_models"), False),
        (Finding("auc", 0.6), Finding("auc", 0.8), False),
        (Finding("eta", 0.6, status="certified"), Finding("eta", 0.8, status="certified"), True),
        (Finding("eta", 0.6, status="certified"), Finding("eta", 0.6, status="certified"), False),
        (Finding("epsilon", 1.0, 1.0, float("inf")), Finding("epsilon", 2.0, 2.0, float("inf")), False),
    ],
)
def test_numbers_are_apart_if_their_intervals_do_not_overlap(one_number, other, is_apart):
    assert apart(one_number, other) == apart(other, one_number) == is_apart


def test_a_title_of_ones_own_is_the_heading_of_the_page():
    comparison = ls.compare(ls.bound("dp", epsilon=1.0), ls.bound("dp", epsilon=2.0), title="Before <and> after")
    assert "<h1>Before &lt;and&gt; after</h1>" in comparison.to_html()
