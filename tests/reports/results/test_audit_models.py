"""Several models side by side, and the verdicts of a policy: what is said of them, in which order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from leakbound.core.findings import Finding
from leakbound.reports import Report
from leakbound.reports.charts.quality import quality_point, tradeoff
from leakbound.reports.render.html import page
from leakbound.reports.results.audit.models import models_table
from leakbound.reports.results.audit.page import audit_page
from leakbound.reports.results.audit.policy import policy_part
from leakbound.reports.results.audit.result import QUALITIES, ordered, results
from leakbound.reports.results.quantities import shown
from leakbound.reports.sentences import Texts
from tests.reports import samples
from tests.reports.abouts import changed
from tests.reports.made import made, spread
from tests.reports.page_reading import Page, said

KEPT = {"outcome": "kept"}
EVIL = "<script>alert(1)</script>"


def compared(report: Report) -> Texts:
    table = models_table(results(report))
    assert table is not None
    return table


def rows(report: Report) -> dict[str, Texts]:
    return {row.title: row for row in compared(report).rows}


def twice(report: Report) -> Report:
    """The same release again, under another name."""
    (facts,) = report.about.releases
    other = {**facts.model_dump(), "name": "again"}
    return replace(report, about=changed(report.about, releases=[facts.model_dump(), other]))


def with_quality(report: Report, quantity: str, **by_release: tuple[float, dict[str, float]]) -> Report:
    """The report with these numbers about quality instead of its own."""
    rest = [finding for finding in report.findings if finding.quantity not in QUALITIES]
    own = [
        Finding(quantity, value, value - 0.1, value + 0.1, confidence=0.95, release=name, detail=detail)
        for name, (value, detail) in by_release.items()
    ]
    return replace(report, findings=(*rest, *own))


def test_what_may_be_released_comes_first():
    table = rows(samples.judged())
    assert list(table) == [EVIL, "Logistic regression", "Random forest"]
    assert [str(row.verdict) for row in table.values()] == ["Release", "Ask", "Do not release"]


def test_one_order_in_all_sections():
    """That of the table: on the page and in the terminal."""
    names = (EVIL, "Logistic regression", "Random forest")
    written = audit_page(samples.judged())
    assert [row.title for row in compared(samples.judged()).rows] == list(names)
    assert written.policy is not None
    assert [decision.title for decision in written.policy.decisions] == list(names)
    assert [release.heading for release in written.releases] == list(names)
    assert written.curves is not None
    assert [panel.title for panel in written.curves.panels] == list(names)
    assert [str(table.title) for table in written.tables] == list(names)
    text = samples.judged().table(full=True)
    assert [text.find(f"## {name}") for name in names] == sorted(text.find(f"## {name}") for name in names)


def test_a_rate_without_an_interval_says_why():
    report = samples.judged()
    findings = [
        replace(finding, refused="too_few_models", low=None, high=None) if finding.quantity == "tpr" else finding
        for finding in report.findings
    ]
    row = rows(replace(report, findings=tuple(findings)))["Random forest"]
    assert said(row.tpr).endswith(" % (too few models for an interval)")


@pytest.mark.usefixtures("without_charts")
def test_without_a_policy_those_that_reveal_least_come_first():
    report = samples.judged()
    report = replace(report, about=changed(report.about, decisions=[], plan={}))
    table = rows(report)
    assert list(table) == [EVIL, "Logistic regression", "Random forest"]
    assert [str(row.verdict) for row in table.values()] == ["no leak found", "reveals little", "reveals much"]
    assert "The verdicts" not in page(report)


def test_words_of_the_verdicts_are_explained_where_they_are_used():
    report = samples.judged()
    alone = replace(report, about=changed(report.about, decisions=[], plan={}))
    says = "Reveals clearly, much or almost all: 60, 75 or 90 of 100 guesses are right, where 50 would be without"
    assert says in said(compared(alone).notes)
    assert "Reveals clearly" not in said(compared(report).notes)  # the verdicts are those of the policy


def test_a_dash_of_records_that_could_not_be_tested_is_explained():
    few = twice(made((0.56, 0.55, 0.57), won=spread(8, w8=100)))
    assert "A dash under Exposed: there are too few models to test single records" in said(compared(few).notes)
    many = twice(made((0.56, 0.55, 0.57), won=spread(64, w32=100)))
    assert "A dash" not in said(compared(many).notes)
    row, _ = compared(few).rows
    assert row.exposed == "—"
    row, _ = compared(many).rows
    assert row.exposed == "0"


def test_a_row_has_quality_and_leakage():
    row = rows(samples.judged())["Random forest"]
    assert str(compared(samples.judged()).test) == "Test accuracy"
    assert [said(cell) for cell in (row.test, row.baseline, row.gap)] == ["95.0 %", "60.0 %", "5.0 %"]
    (forest, *_) = results(samples.judged())
    assert forest.accuracy is not None
    assert forest.accuracy.value is not None
    assert str(row.accuracy).startswith(f"{100 * forest.accuracy.value:.1f} (")
    assert row.exposed == f"{forest.n_exposed:,}"


def test_a_model_that_always_predicts_the_same_class_is_called_that():
    assert f"They always predict the same class: {EVIL}." in said(compared(samples.judged()).notes)
    three = {"gap": 0.0, "baseline": 0.4, "models_of_one_class": 16, "classes": 3}
    some = {"gap": 0.0, "baseline": 0.6, "models_of_one_class": 3, "classes": 2}
    report = with_quality(samples.judged(), "test_accuracy", forest=(0.4, three), regression=(0.6, some))
    note = said(compared(report).notes)
    assert "They are right about one class at most, and about no record of another: Random forest." in note
    assert "Of the 16 models of Logistic regression, 3 always predict the same class." in note


def test_a_regression_has_an_r2():
    detail = {"gap": 0.2, "baseline": 0.0}
    report = with_quality(samples.judged(), "test_r2", forest=(0.75, detail), regression=(-0.25, detail))
    table = rows(report)
    assert str(compared(report).test) == "Test R²"
    assert [table[name].test for name in ("Random forest", "Logistic regression", EVIL)] == ["0.75", "\u22120.25", "—"]


def test_one_model_is_not_compared():
    assert models_table(results(samples.no_leak())) is None


def test_the_page_has_every_verdict_its_reasons_and_who_signs():
    text = page(samples.judged())
    assert "Two people decide." in text
    for words in (
        "Could not be decided: 1 of 2 limits.", "Not kept: 2 of 2 limits.", "All 2 limits of the policy are kept.",
        "the interval includes the limit", "Name and date",
    ):  # fmt: skip
        assert words in Page(text).whole
    assert EVIL not in text
    assert Page(text).all("script") != []


def test_the_text_has_them_too():
    assert [line.split()[-1] for line in samples.judged().table().splitlines() if "%" in line][:2] == ["Release", "Ask"]
    text = samples.judged().table(full=True)
    assert "Do not release." in text
    assert "kept: the model has no leaves" in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(
    ("check", "title", "limit", "measured"),
    [
        (
            {"check": "accuracy", "limit": 0.6, "value": 0.55, "low": 0.5, "high": 0.58},
            "Attack accuracy",
            "at most 60",
            "55",
        ),
        (
            {"check": "tpr", "fpr": 0.01, "limit": 0.05, "value": 0.02, "low": 0.01, "high": 0.03},
            "TPR at FPR 1\u202f%",
            "at most 5\u202f%",
            "2.0 % (1.0 to 3.0)",
        ),
        ({"check": "smallest_leaf", "limit": 10, "value": 3}, "Smallest leaf", "at least 10", "3"),
        (
            {"check": "degrees_of_freedom", "limit": 10, "value": -1200},
            "Degrees of freedom",
            "at least 10",
            "\u22121,200",
        ),
        ({"check": "one_label_groups", "limit": 0, "value": 4}, "Groups with a single label", "none", "4"),
        ({"check": "stores_records", "limit": 0, "value": 1}, "Training records in the model", "none", "held"),
        ({"check": "attack", "attack": "lira"}, "Attack lira", "must be run", "—"),
        ({"check": "claim"}, "Claims", "must hold", "—"),
    ],
)
def test_lines_of_a_decision(check, title, limit, measured):
    report = samples.judged()
    decision = {"release": "forest", "verdict": "ask", "checks": [{**check, "outcome": "not_kept"}]}
    about = changed(report.about, decisions=[decision])
    part = policy_part(results(replace(report, about=about)))
    assert part is not None
    (line,) = part.decisions[0].reasons
    assert (str(line.limited), str(line.limit)) == (title, limit)
    assert said(line.measured).startswith(measured)


def test_a_limit_with_two_lines_is_counted_once():
    report = samples.judged()
    auc = {"check": "auc", "limit": 0.6, "outcome": "open", "value": 0.58}
    unknown = {"attack": "loss", "reason": {"id": "too_few_models", "values": {}}}
    checks = [{**auc, "attack": "lira", "low": 0.5, "high": 0.7}, {**auc, **unknown}, {"check": "claim"} | KEPT]
    decision = {"release": "forest", "verdict": "ask", "checks": checks}
    about = changed(report.about, decisions=[decision])
    part = policy_part(results(replace(report, about=about)))
    assert part is not None
    (written,) = part.decisions
    assert len(written.reasons) == 2
    assert said(written.summary) == "Could not be decided: 1 of 2 limits. Two people decide."
    assert written.reasons[1].why == "too few models for an interval; train more"


def test_the_chart_starts_at_the_baseline_and_holds_every_model():
    points = [point for result in results(samples.judged()) if (point := quality_point(result)) is not None]
    axes = tradeoff(points, None)
    assert axes.get_ylim() == (50, 100)
    left, right = axes.get_xlim()
    assert left <= 0.59
    assert right == pytest.approx(1.0)
    written = [text.get_text() for text in [*axes.texts, *axes.get_legend().get_texts()]]
    assert "Random forest" in written
    assert "test accuracy, %" in written


def test_every_dot_has_its_name_however_crowded():
    (point, *_) = [quality_point(result) for result in results(samples.judged())]
    assert point is not None
    rng = np.random.default_rng(0)
    crowd = [
        replace(
            point,
            name=f"depth {place}, leaf {place}",
            quality=0.8 + 0.004 * rng.normal(),
            accuracy=60 + 0.6 * rng.normal(),
            quality_low=0.79,
            quality_high=0.81,
            accuracy_low=58.0,
            accuracy_high=62.0,
        )
        for place in range(16)
    ]
    axes = tradeoff(crowd, None)
    written = {text.get_text() for text in axes.get_legend().get_texts()}
    assert {point.name for point in crowd} <= written


def test_variants_are_labelled_by_their_values():
    report = samples.judged()
    renamed = {"forest": "max_depth=3, leaf=1", "regression": "max_depth=none, leaf=1"}
    facts = [{**given.model_dump(), "title": renamed.get(given.name, given.title)} for given in report.about.releases]
    plan = {**report.about.plan, "vary": {"max_depth": [3, None], "leaf": [1]}}
    report = replace(report, about=changed(report.about, releases=facts, plan=plan))
    labels = [point.name for result in results(report) if (point := quality_point(result)) is not None]
    assert labels[:2] == ["3, 1", "none, 1"]
    assert said(compared(report).names) == "Next to each dot: max_depth and leaf."


def test_the_page_of_several_models_begins_with_what_may_be_released():
    assert said(audit_page(samples.judged()).answer) == (
        "The policy lets 1 of 3 models be released. The policy leaves 1 of 3 models to a person. "
        "The policy forbids the release of 1 of 3 models. Random forest exposes the most records, 117."
    )
    plain = replace(samples.judged(), about=changed(samples.judged().about, decisions=[]))
    lede = said(compared(plain).lede)
    low, high = (shown(result.accuracy).value for result in ordered(results(plain))[:: len(results(plain)) - 1])
    assert lede.startswith(f"The strongest attack is right in {low} of 100 cases against ")
    assert f"in {high} of 100 against Random forest" in lede
