import json
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.tradeoff import EpsilonDelta, Gaussian, Piecewise
from leakbound.reports import Curve, Report
from leakbound.reports.render.html import notebook, page
from tests.reports import made_bounds
from tests.reports.abouts import changed
from tests.reports.made_bounds import ODD_CELLS, bound, numbers
from tests.reports.page_reading import Page

SAMPLES = ("dp", "leakage", "odd_cells", "many_cells", "one_record", "gap", "regression", "subsampled", "empty")
EVIL = '"><script>alert(1)</script></style></title><img src=x onerror=alert(2)>'


@pytest.fixture(scope="module")
def pages():
    return {name: page(getattr(made_bounds, name)()) for name in SAMPLES}


@pytest.mark.by_day("empty")
@pytest.mark.parametrize("name", SAMPLES)
def test_page_is_whole_and_needs_nothing_from_outside(pages, name):
    text, read = pages[name], Page(pages[name])
    assert len(text.encode()) < 500_000
    assert len(read.all("script")) == 1
    assert read.all("link") == read.all("img") == []
    assert not re.search(r"https?://(?!www\.w3\.org/)", text)
    ids = [attrs["id"] for _, attrs in read.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    named = [attrs["aria-labelledby"] or "" for _, attrs in read.elements if "aria-labelledby" in attrs]
    assert {part for labels in named for part in labels.split()} <= set(ids)
    levels = [int(tag[1]) for tag, _ in read.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert len(read.all("main")) == 1
    assert all("scope" in attrs for attrs in read.all("th"))
    policy = next(attrs["content"] for attrs in read.all("meta") if "http-equiv" in attrs)
    assert "default-src 'none'" in (policy or "")


def sections(text):
    return re.findall(r"<h2[^>]*>(.*?)</h2>", text)


HOW = "How to read this, and how it was made"


def test_sections_stand_where_there_is_something_to_show(pages):
    assert sections(pages["leakage"]) == ["The ceiling for large n", "Record by record", HOW]
    assert sections(pages["dp"]) == ["The ceiling", HOW]
    assert sections(pages["odd_cells"]) == ["Cell by cell", HOW]
    assert sections(pages["empty"]) == [HOW]


def test_the_numbers_of_a_certified_bound_are_rounded_up(pages):
    text = Page(pages["dp"]).whole
    # (e + 1e-5)/(e + 1) = .731064...; 1e-5 + .01 e = .02719, 1e-5 + .001 e = .002728
    assert "right in at most 73.2 of 100 cases . That holds whoever the record is and whatever the attacker" in text
    assert "At 1 % false alarms no attacker finds more than 2.8 % of the members." in text
    assert "At 0.1 % false alarms no attacker finds more than 0.28 % of the members." in text
    assert "73.1" not in text.replace("0.731", "")
    assert "2.7 %" not in text
    assert "Kairouz 2015, Theorem 2.1" in text
    assert "What does (epsilon, delta)-DP allow any attacker?" in text
    assert "Bound · epsilon = 1, delta = 1e-05, replace one · leakbound 0.1.0" in text


def test_a_title_stands_in_place_of_the_question():
    report = made_bounds.dp()
    assert "<h1>Ours</h1>" in page(replace(report, about=changed(report.about, title="Ours")))


def test_the_ceiling_is_hatched_dashed_and_carries_its_values(pages):
    chart = pages["dp"][pages["dp"].index("Members found (TPR) against") :]
    assert ">2.8\u202f%, 0.28\u202f%: ε = 1</text>" in chart
    assert "<pattern" in chart
    assert "stroke-dasharray" in chart
    asymptotic = pages["leakage"][pages["leakage"].index("Members found (TPR) against") :]
    assert "<pattern" not in asymptotic  # nothing is forbidden
    assert "median record (asymptotic)</text>" in asymptotic


def test_asymptotic_is_said_wherever_the_number_is(pages):
    text = Page(pages["leakage"]).whole
    assert "For large n, the best attacker who guesses whether the most exposed record is in the data" in text
    assert "This is asymptotic: an approximation for large n" in text
    assert "of 100, for large n" in text
    assert "The ceiling for large n" in text


def test_a_small_gain_has_a_panel_of_its_own(pages):
    assert "Gain over guessing (TPR" in pages["subsampled"]
    assert "Gain over guessing (TPR" not in pages["dp"]


def test_ten_most_exposed_and_the_histogram(pages):
    report = made_bounds.leakage()
    read = Page(pages["leakage"])
    rows = [data for tag, data in read.texts if tag == "th" and data.isdigit()]
    assert rows == [str(each) for each in report.record_table["record"][:10]]
    accuracy = np.asarray(report.record_table["accuracy"])
    assert f"most exposed {100 * accuracy[0]:.1f}" in read.whole
    assert f"median {100 * np.median(accuracy):.1f}" in read.whole
    assert "Height: number of records (5,000 in all, on a logarithmic scale)" in read.whole
    assert "Internal." in read.whole


def test_the_median_of_the_histogram_is_that_of_the_lede(pages):
    """Both are about the median cell: a median over the records in the cells would be another number."""
    text = Page(pages["many_cells"]).whole
    each = np.asarray(made_bounds.many_cells().record_table["accuracy"])
    median = f"{np.ceil(1000 * np.sort(each)[(len(each) - 1) // 2]) / 10:.1f}"
    assert f"number of cells ({len(each):,} in all)" in text
    assert f"median {median}" in text
    assert f"Against half of the cells it is at most {median} of 100." in text


def test_a_page_without_records_shows_none():
    report = made_bounds.leakage()
    shown, hidden = page(report), page(report.without_records())
    assert "most exposed record (17)" in shown
    assert "(17)" not in hidden
    assert "Internal." not in hidden
    assert "The most exposed" not in hidden
    few = made_bounds.table([f"c{n}" for n in range(30)], [2] * 30, [0.25] * 30)
    assert "cases of 100 in which the attacker is right</text>" in page(few)
    assert "cases of 100 in which the attacker is right</text>" not in page(few.without_records())
    assert "c1" not in Page(page(few.without_records())).whole


@pytest.mark.slow
def test_numbers_of_records_leave_the_names_of_findings_and_curves():
    cell = Scope("worst", name="Sales (US): F")
    curve = Curve("worst", "", "certified", Gaussian(1.0), scope=cell)
    report = bound([Finding("eta", 0.2, bound_type="upper", scope=cell)], [curve], bound="table")
    assert "Most exposed cell: Sales (US): F" in Page(page(report)).whole
    free = report.without_records()
    assert "Sales" not in page(free)
    assert "Sales" not in free.to_json()
    assert free.findings[0].scope == free.curves[0].scope == Scope("worst")


def test_odd_names_of_cells_are_text(pages):
    read = Page(pages["odd_cells"])
    rows = [data for tag, data in read.texts if tag == "th"]
    assert ODD_CELLS[0] in rows
    assert "(empty)" in rows
    assert "a / b & c" in rows
    assert max(map(len, rows)) <= 160
    assert "2 cells tie" in read.whole


def test_text_of_the_user_is_text():
    found = Finding(
        "accuracy",
        0.7,
        bound_type="upper",
        release=EVIL,
        source=EVIL,
        method=(Term(EVIL),),
        assumptions=(Term(EVIL),),
        status="certified",
    )
    refused = Finding("eta", None, reason=Term(EVIL), release=EVIL)
    report = bound(
        [found, refused],
        [Curve(EVIL, EVIL, "certified", Gaussian(1.0)), Curve(EVIL, EVIL, "measured", Gaussian(0.5), n_nonmember=900)],
        {"cell": [EVIL], "accuracy": [0.7], EVIL: [EVIL]},
        **dict.fromkeys(("title", "unit", "date", "command", "subject", "question", "leakbound"), EVIL),
        notes=[EVIL],
        versions={EVIL: EVIL},
        plan={EVIL: EVIL},
        theorem={"title": EVIL, "source": EVIL, "summary": EVIL},
        data={"name": EVIL, "digest": EVIL, "records": 7},
    )
    whole = page(report)
    for text, scripts in [(whole, 1), (notebook(report), 0)]:
        read = Page(text)
        assert len(read.all("script")) == scripts
        assert not any("onerror" in attrs for _, attrs in read.elements)
        assert read.all("img") == []
    assert Page(whole).text("title")[0] == EVIL


@pytest.mark.slow
def test_the_same_json_gives_the_same_bytes(tmp_path):
    report = made_bounds.leakage()
    report.to_json(tmp_path / "report.json")
    again = Report.from_json(tmp_path / "report.json")
    assert again.to_html() == report.to_html() == page(report)
    assert again._repr_html_() == notebook(report)
    assert again.table() == report.table()
    assert report.digest() in page(report)


@pytest.mark.slow
def test_a_million_records_are_a_small_page():
    """The JSON holds all of them, the page ten and a histogram of fifty bars."""
    n = 1_000_000
    accuracy = np.linspace(1.0, 0.5, n)
    table = {"record": np.arange(n), "accuracy": accuracy}
    report = replace(made_bounds.leakage(), record_table=table)
    text = page(report)
    assert len(text.encode()) < 100_000
    assert "1,000,000 in all" in text
    assert "median 75.0" in text


def test_attacks_that_were_run_stand_beside_the_ceiling():
    measured = Curve("likelihood ratio", "", "measured", Piecewise([0.01, 0.2], [0.98, 0.6]), n_nonmember=5000)
    certified = Curve("epsilon = 1", "", "certified", EpsilonDelta(1.0))
    own = Finding(
        "accuracy", 0.612, 0.60, 0.62, operating_point={"prior": 0.5}, attack="likelihood ratio", bound_type="lower"
    )
    proved = numbers(EpsilonDelta(1.0), bound_type="upper", status="certified")
    text = Page(page(bound([*proved, own], [measured, certified]))).whole
    assert "The attack and its ceiling" in text
    assert "likelihood ratio" in text
    assert "Accuracy of likelihood ratio, prior" in text
    assert "No attack was run" not in text


def test_method_names_theorem_data_and_assumptions(pages):
    text = Page(pages["leakage"]).whole
    assert "Data. adult.parquet, 5,000 records, digest 0123456789abcdef." in text
    assert "Noted. Two columns are constant and were left out." in text
    assert "leakbound bound leakage --data adult.parquet" in text
    assert 'covariance = "diagonal"' in text
    assert "Assumed. Neighbouring data sets differ by the replacement of one record." in Page(pages["dp"]).whole


def test_nothing_to_say(pages):
    assert "This theorem gives no number here: the covariance has rank 2 of 3." in Page(pages["empty"]).whole
    assert "there is no finding." in Page(page(bound([]))).whole


def test_notebook_is_a_fragment_with_the_ceiling():
    read = Page(notebook(made_bounds.dp()))
    assert read.elements[0] == ("div", {"class": "leakbound"})
    assert len(read.all("svg")) == 1
    assert Page(notebook(made_bounds.gap())).all("svg") == []


def test_the_json_is_not_needed_to_be_of_lists():
    lists = made_bounds.leakage()
    arrays = replace(lists, record_table={name: np.asarray(values) for name, values in lists.record_table.items()})
    assert json.loads(arrays.to_json()) == json.loads(lists.to_json())
    assert page(arrays) == page(lists)
