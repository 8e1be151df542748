"""Slices on the page, in the text and in what is published."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import leakbound as ls
from leakbound.core.findings import Finding, Term
from leakbound.reports import Report
from leakbound.reports.content import schema
from leakbound.reports.results.audit.groups import slice_columns
from leakbound.reports.results.audit.page import audit_page
from leakbound.reports.results.audit.result import results
from leakbound.reports.results.comparison import comparison_page
from tests.reports.page_reading import Page

TOWN = np.r_[np.repeat(["Bern", "Chur"], 120), ["Arosa"] * 4]
AGE = np.random.default_rng(5).permutation(np.linspace(18.125, 79.875, 244))


@pytest.fixture(scope="module")
def report() -> Report:
    """Scores of 16 models that tell members from others in Chur alone."""
    rng = np.random.default_rng(0)
    member = rng.random((16, 244)) < 0.5
    scores = rng.normal(3.0 * member * (TOWN == "Chur"))
    return ls.audit_scores(
        scores, member, name="forest", page=ls.Page(unit="person"), slices={"town": TOWN, "age": AGE}, n_jobs=1
    )


def of(report, name, quantity="accuracy"):
    return next(finding for finding in report.findings if finding.scope.name == name and finding.quantity == quantity)


def test_the_rows_of_a_column(report) -> None:
    town, age = slice_columns(results(report)[0])
    assert [(row.level, row.n_records) for row in town.parts] == [("Bern", 120), ("Chur", 120), ("Arosa", 4)]
    assert [(row.is_above, row.is_more, row.is_less) for row in town.parts] == [
        (False, False, True), (True, True, False), (False, False, False),
    ]  # fmt: skip
    assert age.parts[0].level == f"18.125 to {np.sort(AGE)[60]:.6g}"


def test_the_text(report) -> None:
    text = report.table(full=True)
    assert all(len(line) <= 100 for line in text.splitlines())
    words = " ".join(text.split())
    assert "town = Bern" not in report.table()  # which a person reads standing; Chur is the worst group
    rest = {name: 100 * of(report, f"town = {name}").detail["rest"] for name in ("Bern", "Chur")}
    accuracy = {name: 100 * of(report, f"town = {name}").value for name in ("Bern", "Chur")}
    assert (
        f"By town, more is revealed of Chur than of the other people ({accuracy['Chur']:.0f} of 100 against "
        f"{rest['Chur']:.0f}). By town, less is revealed of Bern than of the other people ({accuracy['Bern']:.0f} of "
        f"100 against {rest['Bern']:.0f})." in words
    )
    assert "No slice of age is shown to differ from the rest." in words
    # six slices, each with its rest and two rates
    assert "All 24 intervals hold at once at 95 %, 4 for each measured slice: of its accuracy, of the" in words
    assert "and of the TPR at FPR 1 % and 0.1 % where the slice resolves it." in words
    (part,) = audit_page(report).slices
    row = next(row for row in part.rows if row.title == "town = Chur")
    low, high = (100 * of(report, "town = Chur").detail[end] for end in ("rest_low", "rest_high"))
    assert str(row.cells[1]) == f"{rest['Chur']:.0f} ({math.floor(low)} to {math.ceil(high)})"
    assert "Not measured: town = Arosa: a model needs at least 10 members and 10 others among them." in words


@pytest.mark.slow
def test_the_page(report) -> None:
    page = Page(report.to_html()).whole + report.to_html()
    assert "Slice by slice" in page
    assert page.count("with intervals that hold for all slices at once") == 2
    assert "; Chur: " in page
    assert "forest, by slice" in page
    assert "town = Chur (120 people)" in page


def test_the_findings_are_a_group_of_their_own(report) -> None:
    own, of_slices, _ = audit_page(report).tables  # without labels the slices are what limits look at, too
    assert not any("town" in str(row.quantity) for row in own.rows)
    assert len(of_slices.rows) == 7 + 12
    measured = [row for row in of_slices.rows if str(row.value) != "—"]
    assert all("all slices at once" in str(row.status) for row in measured)


def test_sentences_about_all_records_do_not_look_at_slices(report) -> None:
    without = Report(report.about, [each for each in report.findings if each.scope.kind != "slice"], report.curves)
    assert audit_page(report).answer == audit_page(without).answer
    assert results(report)[0].accuracy == results(without)[0].accuracy


class TestPublished:
    @pytest.mark.slow
    def test_small_slices_and_values_are_left_out(self, report) -> None:
        free = report.without_records()
        names = {each.scope.name for each in free.findings if each.scope.kind == "slice"}
        assert names == {"town = Bern", "town = Chur", *(f"age = quarter {place} of 4" for place in (1, 2, 3, 4))}
        assert free.about.releases[0].slices.left_out == 1
        text = report.to_json(publish=True)
        assert "Arosa" not in text
        assert "Arosa" not in report.to_html(publish=True)
        values = {f"{value:.6g}" for value in AGE} | {str(value) for value in AGE.tolist()}
        written = [str(value) for value in _values(json.loads(text))]
        assert not values & set(written)
        assert "18.125" not in report.to_html(publish=True)
        assert Draft202012Validator(schema()).is_valid(json.loads(text))

    @pytest.mark.parametrize("n_models", [1, 16])
    def test_nobody_is_told_to_be_a_member(self, n_models) -> None:
        """Of twelve records in one town, all members: neither their number nor what the other towns leave of it."""
        rng = np.random.default_rng(7)
        town = np.repeat(["Bern", "Chur", "PLANTED"], [100, 100, 12])
        member = rng.random((n_models, 212)) < 0.5
        member[:, 200:] = True
        report = ls.audit_scores(rng.normal(2.0 * member), member, slices={"town": town}, n_jobs=1)
        free = report.without_records()
        slices = [finding for finding in free.findings if finding.scope.kind == "slice"]
        planted = of(free, "town = PLANTED")
        assert planted.reason == Term("few_of_each", fewest=10)
        assert dict(planted.detail) == {"column": 0, "records": 12}
        for finding in slices:
            assert not {"games", "false_alarms", "fpr", "threshold"} & set(finding.detail)
            assert finding.reason is None or not {"games", "members", "others"} & set(finding.reason.values)
        in_town = {name: np.count_nonzero(~member[:, town == name]) for name in ("Bern", "Chur")}
        numbers = [value for finding in slices for value in _values([dict(finding.detail), _terms(finding)])]
        assert not set(in_town.values()) & {value for value in numbers if isinstance(value, int | float)}
        assert "few_of_each" in report.without_records().to_json()
        assert "a model needs at least 10 members and 10 others among them" in " ".join(free.table(full=True).split())

    def test_counts_in_a_report_that_has_them_are_left_out(self, report) -> None:
        """A report of before: the reason counted members and others."""
        counted = Term("few_records", fewest=10, members=120, others=0)
        rate = Term("fpr_not_resolvable", games=51, reached=19.6)
        other = Term("few_guesses", fewest=2, unit="models", n=1)
        chur = of(report, "town = Chur")
        empty = {"value": None, "low": None, "high": None}
        findings = [replace(chur, **empty, reason=reason) for reason in (counted, rate, other, Term("no_attack"))]
        source = Finding("membership_without_model", None, reason=Term("few_records", fewest=10, members=40, others=2))
        free = replace(report, findings=[*findings, source]).without_records()
        assert [finding.reason for finding in free.findings] == [
            Term("few_of_each", fewest=10), Term("rate_not_reached_in_slice"), Term("without_counts"),
            Term("no_attack"), Term("few_of_each", fewest=10),
        ]  # fmt: skip

    def test_no_threshold_is_published(self, report) -> None:
        """It is the score of a record."""
        assert any("threshold" in finding.detail for finding in report.findings)
        assert not any("threshold" in finding.detail for finding in report.without_records().findings)

    def test_it_is_said(self, report) -> None:
        words = " ".join(report.without_records().table(full=True).split())
        assert "Slices of fewer than 10 people that are left out of this report: 1." in words
        assert "age = quarter 1 of 4" in words

    def test_twice_is_once(self, report) -> None:
        once = report.without_records()
        assert once.without_records().to_json() == once.to_json()


def test_a_report_is_read_as_it_was_written(report, tmp_path) -> None:
    report.to_json(tmp_path / "report.json")
    assert Report.from_json(tmp_path / "report.json").to_json() == report.to_json()


def test_a_report_of_before_there_were_slices_and_names_is_read(tmp_path) -> None:
    member = np.random.default_rng(0).random((12, 60)) < 0.5
    content = json.loads(ls.audit_scores(np.random.default_rng(1).normal(member), member, n_jobs=1).to_json())
    del content["about"]["releases"][0]["slices"]
    (tmp_path / "old.json").write_text(json.dumps(content), encoding="utf-8")
    old = Report.from_json(tmp_path / "old.json", unverified=True)
    assert old.about.releases[0].slices is None
    assert "name" not in old.record_table
    assert Draft202012Validator(schema()).is_valid(content)


def test_reports_are_compared_slice_by_slice(report) -> None:
    comparison = ls.compare(report, report)
    rows = [row for row in comparison.rows if row["slice"].startswith("town = ") and row["quantity"] == "accuracy"]
    assert [row["slice"] for row in rows] == ["town = Bern", "town = Chur", "town = Arosa"]
    names = [str(row.quantity) for row in comparison_page(comparison).others]
    assert "Accuracy of given scores, prior ½: town = Bern (120 people)" in names
    assert all(row["first"] == row["second"] for row in rows)


def _terms(finding):
    return [*finding.method, *([] if finding.reason is None else [dict(finding.reason.values)])]


def test_slices_are_compared_whichever_the_strongest_attack_was(report) -> None:
    later = replace(report, findings=[replace(finding, attack="lira") for finding in report.findings])
    pairs = [pair for pair in ls.compare(report, later).pairs if pair.key.slice_name == "town = Chur"]
    assert [pair.key.quantity for pair in pairs] == ["accuracy", "tpr", "tpr"]
    assert all(pair.before is not None and pair.after is not None for pair in pairs)
    assert {pair.attack for pair in pairs} == {"forest, lira"}
    frame = ls.compare(report, later).to_frame()
    own = frame[(frame["slice"] == "town = Chur") & (frame["quantity"] == "accuracy")]
    assert own[["attack", "difference"]].values.tolist() == [["forest, lira", 0.0]]


def test_columns_whose_names_begin_alike_stay_apart() -> None:
    """Levels are found by the index of their column, not by how its name begins."""
    rng = np.random.default_rng(3)
    member = rng.random((12, 80)) < 0.5
    first = np.repeat(["b = x", "y"], 40)
    second = np.repeat(["x", "z"], [30, 50])
    slices = {"a": first, "a = b": second}
    report = ls.audit_scores(rng.normal(member), member, slices=slices, n_jobs=1)
    columns = slice_columns(results(report)[0])
    assert [[(row.level, row.n_records) for row in column.parts] for column in columns] == [
        [("b = x", 40), ("y", 40)], [("z", 50), ("x", 30)],
    ]  # fmt: skip
    names = [finding.scope.name for column in columns for finding in (row.accuracy for row in column.parts)]
    assert len(set(names)) == 4


def _values(document):
    if isinstance(document, dict):
        for value in document.values():
            yield from _values(value)
    elif isinstance(document, list):
        for value in document:
            yield from _values(value)
    else:
        yield document


def test_a_row_of_all_findings_names_its_slice_once(report) -> None:
    rows = [str(row.quantity) for table in audit_page(report).tables for row in table.rows]
    named = [row for row in rows if "town = Chur" in row]
    assert named
    assert all(row.count("town = Chur") == 1 for row in named)
