"""The text, the page and the chart of an audit of an attribute."""

import json
from importlib import resources

import pytest
from jsonschema import Draft202012Validator

from leakbound.core.findings import Finding
from leakbound.reports import Report
from leakbound.reports.charts.guesses import guesses, guesses_size
from leakbound.reports.results.attribute import attribute_results
from leakbound.reports.results.attribute_page import attribute_page
from tests.reports import made_guesses
from tests.reports.page_reading import Page

ALL = ("leak", "no_leak", "two", "nothing")
VALID = Draft202012Validator(
    json.loads(resources.files("leakbound.reports").joinpath("schema.json").read_text(encoding="utf-8"))
)


def report(name: str) -> Report:
    return getattr(made_guesses, name)()


@pytest.mark.parametrize("name", ALL)
def test_reports_follow_the_schema_and_come_back(name, tmp_path) -> None:
    made = report(name)
    text = made.to_json(tmp_path / "report.json")
    VALID.validate(json.loads(text))
    assert Report.from_json(tmp_path / "report.json").to_json() == text


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content["about"].update(kind="audit"),
        lambda content: content["about"]["releases"][0].pop("chance"),
        lambda content: content["about"]["releases"][0].update(values=1),
        lambda content: content["about"]["releases"][0].update(baseline="luck"),
        lambda content: content["records"].update(record=[1]),
    ],
)
def test_the_schema_refuses(spoil) -> None:
    content = json.loads(report("leak").to_json())
    spoil(content)
    assert not VALID.is_valid(content)


@pytest.mark.parametrize("name", ALL)
def test_the_text_fits_a_terminal(name) -> None:
    lines = report(name).table(80).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= (40 if name == "two" else 25)


def test_the_text_says_what_the_release_adds() -> None:
    lines = report("leak").table().splitlines()
    assert lines[0] == "How well does net reveal writer of the records in the data?"
    assert "net reveals writer: 30 of 100 members more are guessed right with it than without." in lines
    rows = {line.strip().split("  ")[0]: line for line in lines}
    assert [each.strip() for each in rows["Loss (MALT)"].split("  ") if each][1:] == [
        "42 (40 to 44)",
        "6 (4 to 8)",
        "30 (26 to 34)",
    ]
    assert rows["Gradient norm"].split() == ["Gradient", "norm", "—", "—", "—"]
    assert rows["Imputation"].split()[1:] == ["12", "(10", "to", "14)", "—", "—"]
    assert rows["Chance"].split()[1:] == ["2.3", "2.3", "—"]
    assert "Not run: Gradient norm: needs the signal gradient norm." in lines


def test_the_page_says_what_the_release_adds() -> None:
    (release,) = attribute_page(report("leak")).releases
    assert [str(sentence) for sentence in release.summary] == [
        "The attack Loss (MALT) guesses writer of 42 of 100 members right (95\u202f%: 40 to 44).",
        "Without the release imputation gets 12.0; a guess among 44 values gets 2.3.",
        "Only the difference, 30 of 100 (95\u202f%: 26 to 34), is what the release adds.",
        "Of records that were not in, the same attack gets 6.",
    ]


def test_no_gain_is_said_to_be_none() -> None:
    text = report("no_leak").table()
    assert "These attacks found nothing that net adds to what can be guessed of writer without it." in text
    assert "None of the attacks could be played against net." in report("nothing").table()


@pytest.mark.by_day("nothing")
@pytest.mark.parametrize("name", ALL)
def test_pages_are_whole_and_say_what_counts(name) -> None:
    page = Page(report(name).to_html())
    assert "only what is guessed right beyond that is what the release adds" in page.whole
    assert len(page.all("svg")) == len(report(name).about.releases)
    assert "<second>" not in report(name).to_html()
    assert report(name).to_html(records=False) == report(name).without_records().to_html()
    assert "abababababababab" not in report(name).to_html(records=False)  # the digest of the data
    assert 'class="leakbound"' in report(name)._repr_html_()


def test_the_findings_stand_with_what_needs_no_release_first() -> None:
    (table,) = attribute_page(report("leak")).tables
    assert [str(row.quantity) for row in table.rows] == [
        "Correct guesses of Prior guess, members",
        "Correct guesses of Imputation, members",
        "Gain of Loss (MALT)",
        "Correct guesses of Loss (MALT), members",
        "Correct guesses of Loss (MALT), non-members",
        "Gain of Likelihood",
        "Correct guesses of Likelihood, members",
        "Correct guesses of Likelihood, non-members",
        "Gain of Gradient norm",
    ]
    assert (str(table.rows[3].value), table.rows[3].source) == ("42 of 100", "Delgrosso 2021")
    assert str(table.rows[-1].status) == "needs the signal gradient norm"


def test_models_that_came_from_the_store_are_counted() -> None:
    facts = {"reused": 12, "made": 4, "other_machine": 0, "differing": 0}
    facts |= {"first_written": "2026-01-01", "last_written": "2026-01-02"}
    page = attribute_page(made_guesses.made(made_guesses.of("net", 0.42, (0.3, 0.26, 0.34)), execution=facts))
    assert [str(sentence) for sentence in page.stored] == [
        "Models: 12 came from the store (written 2026-01-01 to 2026-01-02), 4 were made in this run.",
    ]


def test_the_chart_has_a_dot_for_members_and_one_for_others() -> None:
    axes = guesses(report("leak"), ax=guesses_size(3).axes())
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    places = sorted((round(float(line.get_xdata()[0]), 6), int(line.get_ydata()[0])) for line in dots)
    assert places == [(5, 0), (6, -1), (11, 0), (42, -1)]  # what did not run has no row
    assert tuple(axes.get_xlim()) == (0, 100)
    verticals = [float(line.get_xdata()[0]) for line in axes.lines if line.get_linestyle() == "--"]
    assert verticals == pytest.approx([100 / 44, 12])
    assert "without the release: imputation" in [text.get_text() for text in axes.texts]


def test_the_chart_of_a_release_by_name() -> None:
    assert report("leak").plot(ax=guesses_size(3).axes()).get_xlim() == (0, 100)
    assert report("two").plot(ax=guesses_size(3).axes(), release="<second>").get_xlim() == (0, 100)
    with pytest.raises(KeyError, match="no release 'third'; this report has: first, <second>"):
        report("two").plot(ax=guesses_size(3).axes(), release="third")


def test_strategies_are_ordered_by_what_they_prove() -> None:
    (result,) = attribute_results(report("leak"))
    assert result.strategies == ("loss", "likelihood", "gradient_norm")
    assert result.baseline_accuracy == 0.12
    (result,) = attribute_results(report("nothing"))
    assert (result.baseline_accuracy, result.baseline_title, result.gain) == (1 / 44, "Chance", None)


def test_the_unit_and_the_title_are_the_plans() -> None:
    people = made_guesses.made(made_guesses.of("net", 0.42, (0.3, 0.26, 0.34)), unit="person", title="Who wrote this?")
    text = people.table()
    assert text.startswith("Who wrote this?\nAttribute audit · 500 people")
    assert "Of people that were not in" in Page(people.to_html()).whole


def test_an_exact_share_has_no_interval() -> None:
    exact = Finding("attribute_accuracy", 0.25, operating_point={"inside": 1.0}, attack="loss", release="net")
    findings = [made_guesses.gain("loss", 0.2, 0.1, 0.3, release="net"), exact]
    (release,) = attribute_page(made_guesses.made(findings, made_guesses.facts("net", baseline=""))).releases
    assert [str(sentence) for sentence in release.summary[:2]] == [
        "The attack Loss (MALT) guesses writer of 25.0 of 100 members right.",
        "Without the release chance gets 2.3; a guess among 44 values gets 2.3.",
    ]
