"""What the page of each promise says: its game, what it promises and what it does not, and its ledger."""

from __future__ import annotations

import dataclasses
import json
import re
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from leakbound.core.findings import Finding, Scope, Term
from leakbound.reports import Report, phrases
from leakbound.reports.charts.roc import roc
from leakbound.reports.content import schema
from leakbound.reports.phrases import game, words
from leakbound.reports.render.html import notebook
from leakbound.reports.results.findings import quantity_of
from leakbound.reports.results.release.page import release_page
from leakbound.reports.results.release.result import question_of
from tests.reports import made_designs, made_protected
from tests.reports.abouts import changed
from tests.reports.made_designs import ALL, DESIGNS, DIGEST, ETA, N, design_report
from tests.reports.page_reading import Page
from tests.reports.said import flat, said, term, terms

every_report = pytest.mark.parametrize("name", ALL)
every_design = pytest.mark.parametrize("design", DESIGNS)


@cache
def report_of(name: str) -> Report:
    """One of all reports, made once for the tests that read it."""
    return ALL[name]()


@cache
def page_of(name: str) -> str:
    return report_of(name).to_html()


def public(design: str) -> str:
    """The name of the report of a design for publication."""
    return f"{design}, public"


def alone(report: Report) -> Report:
    """The same release, which takes the whole budget of its ledger."""
    entry = {**made_designs.ENTRY, "budget": ETA}
    facts = {**report.about.model_dump()["certificate"], "entry": entry}
    return dataclasses.replace(report, about=changed(report.about, certificate=facts))


# all reports


@pytest.mark.by_day("leave-one-out, several")
@every_report
def test_a_page_a_text_and_a_fragment_are_made(name):
    report, page = report_of(name), page_of(name)
    assert len(report.table(80).splitlines()) <= 25
    read = Page(page)
    assert len(page.encode()) < 500_000
    assert len(read.all("script")) == 1
    assert read.all("link") == read.all("img") == []
    ids = [attrs["id"] for _, attrs in read.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    levels = [int(tag[1]) for tag, _ in read.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all("scope" in attrs for attrs in read.all("th"))
    assert len([attrs for attrs in read.all("div") if "box" in (attrs.get("class") or "").split()]) == 1
    assert release_page(report).right in Page(notebook(report)).whole


@pytest.mark.by_day("leave-one-out, all exact")
@every_report
def test_reports_follow_the_schema_and_are_read_again_with_the_same_bytes(name, tmp_path):
    report = report_of(name)
    document = json.loads(report.to_json(tmp_path / "report.json"))
    assert Draft202012Validator(schema()).is_valid(document)
    again = Report.from_json(tmp_path / "report.json")
    assert again.to_html() == page_of(name)
    assert again.table() == report.table()


# The one sentence of a page that may speak of anonymity: it says that there is none.
NO_ANONYMISATION = (
    "the printed noise reveals the largest value of a mean to some ten per cent, and the release is no anonymisation "
    "in the sense of the law."
)


@pytest.mark.by_day("leave-one-out, all exact")
@every_report
def test_the_wrong_words_never_appear(name):
    is_file = "leave-one-out" in name
    for text in (flat(report_of(name).table()), said(report_of(name)), Page(page_of(name)).whole):
        sentence = NO_ANONYMISATION
        if "all exact" in name:  # there is no noise that could reveal anything
            sentence = "the release is no anonymisation in the sense of the law."
        assert (sentence in flat(text)) is is_file
        text = flat(text).replace(sentence, "")
        wrong = r"\bDP\b|jackknife|differential identifiability|anonym|\bof the draw\b|\bthe draw\b|candidates who"
        assert not re.search(wrong, text), re.search(wrong, text)
    half = ("are drawn uniformly", "drawn at random", "second release of the same", "Coupling", "of the members")
    assert not [text for text in half if text in said(report_of(name))]


@pytest.mark.by_day("leave-one-out, another design")
@every_report
def test_who_is_recognised_best_is_on_no_page(name):
    report = report_of(name)
    assert not any("617" in text for text in (report.table(full=True), page_of(name), notebook(report)))


@pytest.mark.by_day("dp-household")
@pytest.mark.parametrize("unit", ["record", "household", "image"])
@every_design
def test_units_have_their_words(design, unit):
    text = said(design_report(design, owner=True, unit=unit))
    assert not re.search(r"\bpe(rson|ople)\b", text)
    assert not re.search(r"\ba image\b|\ban (record|household)\b", text)
    assert f"1,000 {phrases.plural(unit)}" in text


# drawn

DRAWN = {
    "Game": (
        "500 of the 1,000 people are drawn uniformly at random and in secret. The attacker knows all 1,000 rows, the "
        "method and the distribution of the noise, but neither the draw nor the noise. Prior ½."
    ),
    "Does not promise": (
        "Differential privacy. Protection of what the people have in common. Anything about a second release of the "
        "same 500: with a ledger the joint bound is computed."
    ),
    "Reveals of the data": (
        "That there is a release reveals something: a promise is refused where the data do not allow it, and noise is "
        "left out where the draw alone keeps the promise. Scale and shape of the noise (deviations and correlations) "
        "were computed from all 1,000 people. The scale is rounded up to two significant digits, the shape to two "
        "digits of each deviation and two decimals of each correlation. They speak of the largest of the people: the "
        "size of one that is far from all others is revealed to some ten per cent."
    ),
    "Declared public": (
        "The numbers n and k, the names of the columns, and the plan. All else is computed from the released values "
        "and the printed noise."
    ),
}


def test_the_certificate_of_drawn():
    of_certificate = terms(made_protected.published())
    assert {head: of_certificate[head] for head in DRAWN} == DRAWN
    assert list(of_certificate)[:9] == [
        "Game", "Noise", "Confidence", "Does not promise", "Coupling", "Whole curve", "Assumes", "Reveals of the data",
        "Declared public",
    ]  # fmt: skip
    whole = said(made_protected.means())
    for sentence in (
        "In the game of this page 500 of the 1,000 people are in the data, and the attacker, who sees the release, "
        "guesses who. The certificate can be checked from the table of all people; the released values cannot be "
        "drawn again, by design.",
        "The data are 500 of the 1,000 people, drawn at random: the sampling error is about 1.4 times that of all.",
        "The sampling error is that of the 500 as a simple random sample of a large population.",
        "it holds exact functions of all 1,000 people, as what is proved beyond the promise, sampling errors, attacks "
        "and a digest.",
        "What they were without noise is written nowhere.",
    ):
        assert sentence in whole
    assert "members found (TPR)" in made_protected.means().to_html()


# file


@pytest.mark.parametrize("owner", [False, True])
def test_file_says_all_that_it_means_and_does_not(owner):
    """Every item of the list of A.11, for publication and for the owner."""
    report = report_of("leave-one-out, owner" if owner else public("leave-one-out"))
    whole = said(report)
    for sentence in (
        "One of the 1,000 people is drawn uniformly at random and in secret, and left out. The release is a "
        "function of the other 999 alone, plus noise; all else is public.",
        "guesses whether the person left out is a given one or a random other one: both are equally likely",
        "the promise is about one person among 1,000 people that the attacker knows",
        "The words “a function of the others alone, all else public”. Without them, publishing the statistic of "
        "all 1,000 people would keep the same promise about the person left out.",
        "Everything that depends on all 1,000 people is outside of the promise and reveals something of the file: the "
        "scale, the shape and the grid of the noise, refusals, standard errors.",
        "Each release reveals the size of one that is far from all others to some ten per cent, and several releases "
        "reveal it more closely.",
        "A fresh person left out for each release would protect nobody. So the ledger keeps the same person left "
        "out for the life of the data, and adds up what all its releases reveal.",
        "What several people change together is the sum of their shifts, and the noise need not hide that.",
        "Where the file itself is the secret, use differential privacy (promise anyone).",
        "## The leave-one-out membership certificate",
    ):
        assert sentence in whole
    assert "100 %. The bound is computed, not sampled" in term(report, "Confidence")
    others = ["Other promises"] if owner else []
    assert [head for head in terms(report) if ". " not in head][: 10 + len(others)] == [
        "Game", "Naming", "Does not promise", "Noise", "Confidence", "Part of the promise", "Other releases", "Groups",
        "If the file is secret", *others, "Reveals of the file",
    ]  # fmt: skip


def test_file_promises_and_names():
    """P(the record left out is named) <= 1/1000 + .999 * .1 = .1009."""
    whole = said(alone(design_report("leave-one-out")))
    assert (
        "An attacker who knows all 1,000 people and guesses whether a given person is the person left out is right in "
        "at most 55.0 of 100 cases if both answers are equally likely beforehand, whichever of the 1,000 people it is "
        "and whatever the attacker computes; guessing from the prior alone gives 50. Somebody who tries to name the "
        "person left out is right with probability at most 0.1009; without any release the probability is 0.0010."
    ) in whole
    assert (
        "If both answers are equally likely beforehand, nobody is right in more than 55.0 of 100 cases about whether a "
        "given person is the person left out. The promise is about that one person, and not about the file: "
        f"{NO_ANONYMISATION}"
    ) in whole
    assert "Protected release · 1,000 people, all but one of them in the data · promise η = 0.05 ·" in whole
    assert "Naming the record left out, any attacker 10.1 of 100" in whole
    assert "every attacker\u2019s guess “left out or not” at even odds on seeing this release" in whole
    assert "Its scale and shape were computed from all 1,000 people." in whole


@pytest.mark.parametrize(
    ("statistic", "revealed"),
    [
        ("mean", "the largest value of a mean to some ten per cent"),
        ("sum", "the largest value of a sum to some ten per cent"),
        ([{"statistic": "ols"}, {"statistic": "mean"}], "the largest value of a mean to some ten per cent"),
        ([{"statistic": "mean"}, {"statistic": "sum"}], "the largest value of a sum or a mean to some ten per cent"),
        ("quantiles", "how far the numbers move without the person that they depend on most, to some ten per cent"),
    ],
)
def test_what_the_printed_noise_reveals_is_said_of_the_statistic(statistic, revealed):
    text = flat(alone(design_report("leave-one-out", plan={"statistic": statistic})).table())
    assert f"the printed noise reveals {revealed}, and the release is no anonymisation" in text


def test_a_declared_scale_reveals_nothing_of_the_data():
    report = design_report("leave-one-out", noise={"declared": True})
    assert "the printed noise reveals" not in said(report)
    assert "and the release is no anonymisation" not in said(report)
    assert "the release is no anonymisation in the sense of the law." in flat(report.table())
    assert term(report, "Reveals of the file").startswith("The scale of the noise was declared beforehand")


def test_the_axes_of_file_are_of_who_is_left_out():
    report = report_of(public("leave-one-out"))
    texts = {text.get_text() for text in roc(report).texts}
    assert {"the record left out recognised (TPR)", "false alarms: another one called left out (FPR)"} <= texts
    curve = term(report, "Whole curve")
    assert "At 1 % false alarms no attacker recognises the person left out in more than 11 % of cases." in curve
    assert "the record left out recognised (TPR) against false alarms (FPR), logarithmic axes" in page_of(
        public("leave-one-out")
    )


# anyone


def test_differential_privacy_is_for_everybody():
    report = alone(design_report("dp", owner=True))
    whole = said(report)
    assert (
        "An attacker who knows all other people and guesses whether a given person is in the data or another one "
        "instead is right in at most 55.0 of 100 cases if both answers are equally likely beforehand, whoever the "
        "person is, in this file or any other, and whatever the attacker computes; guessing from the prior alone gives "
        "50."
    ) in whole
    assert "This holds for every person, in this file or any other." in whole
    assert "## The certificate of differential privacy For every person, in this file or any other, every" in whole
    # Gaussian differential privacy with mu = 2 Phi^-1(.55) = .25132, and half of it
    privacy = term(report, "ε and δ")
    assert "(ε, δ) = (0.94, 10⁻⁵) if one person is replaced by another." in privacy
    assert (
        "(ε, δ) = (0.44, 10⁻⁵) if one person is added or removed: of the noisy numbers alone, for the number of "
        "people, which is public, changes then."
    ) in privacy
    assert "ε at δ = 10⁻⁵, one person added or removed 0.44" in whole
    assert "Its size follows from η, n and what was declared of the columns alone." in term(report, "Noise")
    assert term(report, "Reveals of the data").startswith("Nothing beyond the promise")
    assert "age from 18 to 99" in term(report, "Assumes")
    assert "their ranges" in term(design_report("dp"), "Declared public")
    assert "Any data set" not in whole  # the promise of the release itself needs no heading
    assert whole.count("This release ") == 1


def test_an_epsilon_of_adding_or_removing_says_so():
    finding = Finding("epsilon", 0.44, bound_type="upper", method=(Term("add_or_remove"),), status="certified")
    assert str(quantity_of(finding, "person")) == "ε, one person added or removed"


# the ledger


@every_design
def test_the_headline_is_the_promise_of_all_releases_of_the_ledger(design):
    report, page = report_of(public(design)), page_of(public(design))
    whole = said(report)
    assert "on seeing all releases of this ledger, is right in at most 60.0 of 100 cases" in whole
    assert "On seeing this release alone it is at most 55.0 of 100." in whole
    assert release_page(report).right == "60.0"
    assert "on seeing all releases of this ledger is right with probability at most 0.6000, on seeing this" in whole
    assert "promise η = 0.1 for all releases of its ledger, η = 0.05 for this one" in whole
    assert term(report, "Ledger").startswith(
        f"Release number 2 of its ledger; entry {DIGEST[:12]}. All releases of this ledger together: accuracy at most "
        "0.6000, fixed before the first one; queries declared beforehand: 3."
    )
    assert DIGEST[:13] not in page
    assert "this release alone</text>" in page


@every_design
def test_what_is_spent_is_for_the_owner(design):
    released, owner = report_of(public(design)), report_of(f"{design}, owner")
    assert "Spent so far, for the owner alone: 0.0712 of the budget of 0.1." in term(owner, "Ledger")
    whole = said(owner)
    assert "All releases of this ledger together, fixed before the first one" in whole
    assert re.search("All releases of this ledger so far .* Gain over guessing of any attacker, prior ½ 0.0712", whole)
    assert "0.0712" not in said(released) + page_of(public(design))
    spent = design_report(design, findings=owner.findings)  # it stays off the certificate, even where it is given
    assert "0.0712" not in term(spent, "Ledger")


def test_the_whole_budget_of_a_ledger_is_one_number():
    report = alone(design_report("leave-one-out"))
    assert "on seeing all" not in said(report)
    assert "accuracy at most 0.5500, fixed before the first one" in term(report, "Ledger")
    assert "this release alone" not in report.to_html()


def test_versions_of_the_data_take_nothing_from_the_promise():
    changing = [{"id": "versions_differ", "values": {"difference": 0.002}}]
    report = design_report("leave-one-out", certificate={"assumptions": changing})
    first = "of those who are in the first version of these data"
    assert f"whichever {first} it is and whatever the attacker computes" in said(report)
    assert f"For every one {first}, every attacker" in said(report)
    assert term(report, "Assumes") == (
        "The data changed since an earlier release of this ledger: the promise is to those who are in its first "
        "version, whoever came or went later; with probability 0.002 not the same one is left out of all versions."
    )


def test_naming_is_of_all_releases_where_that_is_known():
    """1/1000 + .999 * .2 = .2008."""
    assert term(design_report("leave-one-out", owner=True), "Naming") == (
        "Somebody who tries to name the person left out, on seeing all releases of this ledger, is right with "
        "probability at most 0.2008, on seeing this release alone at most 0.1009; without any release the "
        "probability is 0.0010."
    )
    # the budget is fixed before the first output, so that it is the promise where nothing else was released, too
    first = [
        dataclasses.replace(finding, release="joint_of_one") for finding in made_designs.owners("leave-one-out")[:3]
    ]
    report = design_report("leave-one-out", owner=True, findings=[*made_designs.promised("leave-one-out"), *first])
    assert "at most 0.2008" in term(report, "Naming")
    assert "name the person left out, on seeing this release alone, is right with probability at most 0.1009; " in (
        term(design_report("leave-one-out"), "Naming")
    )
    assert "Naming" not in terms(design_report("dp"))


def test_without_a_ledger_the_terms_say_what_one_is_for():
    without = {"ledger": False, "entry": None}
    report = design_report("leave-one-out", certificate=without)
    assert term(report, "Other releases") == (
        "A fresh person left out for each release would protect nobody. So the same one has to be left out for the "
        "life of the data, in a ledger that adds up what all releases reveal."
    )
    assert "Ledger" not in terms(report)
    assert "55.0 of 100" in said(report)
    assert "A ledger keeps count" in term(design_report("dp", certificate=without), "Other releases")


def test_other_releases_of_the_same_data_are_named():
    same = {**made_designs.OTHER, "design": "leave-one-out", "date": ""}
    retired = {**made_designs.OTHER, "design": "per-instance"}
    report = design_report("leave-one-out", certificate={"others": [made_designs.OTHER, same, retired]})
    assert term(report, "Other promises").startswith(
        "The same data were released under another promise. Promise anyone, release 3 of 2027-01-04, entry "
        f"{'ab' * 6}. Promise per instance, release 3 of 2027-01-04, entry {'ab' * 6}. No joint number"
    )
    assert f"Promise file, release 3, entry {'ab' * 6}." in term(report, "Other ledgers")
    many = design_report("leave-one-out", certificate={"others": [made_designs.OTHER] * 8})
    assert "And 2 more, which the JSON names." in term(many, "Other promises")


# values and costs


def test_a_number_without_noise_is_exact_and_outside_of_the_promise():
    report = report_of("leave-one-out, exact")
    assert "number of sexes 2 none: exact" in said(report)
    assert "Numbers without noise are exact, and outside of the promise." in said(report)
    assert term(report, "Does not promise").endswith(
        "Anything about number of sexes: released exactly, outside of the promise."
    )
    noisy = said(report_of(public("leave-one-out")))
    assert "exact, and outside" not in noisy
    assert "released exactly" not in noisy


def test_names_of_columns_and_statistics_are_printed_as_they_are():
    """A column called wage was printed as Wage at the start of a line."""
    rows = [("wage", "", 41.0, 0.5, 0.7), ("iPhone users", "", 7.0, 0.5, 0.7)]
    text = said(design_report("leave-one-out", rows=rows, owner=True))
    for name in ("wage", "iPhone users"):
        assert text.count(f" {name} ") >= 2  # the released value, and what it costs
    assert "Wage" not in text
    assert "IPhone" not in text


def test_many_exact_numbers_are_counted():
    rows = [(f"cell {n}", "", 1.0, 0.0, None) for n in range(9)] + [("mean", "", 1.0, 0.5, None)]
    left_out = term(design_report("leave-one-out", rows=rows), "Does not promise")
    assert left_out.endswith("cell 4, cell 5 and 3 more: released exactly, outside of the promise.")


def test_where_all_is_exact_no_noise_keeps_a_promise():
    whole = said(report_of("leave-one-out, all exact"))
    exact = (
        "the numbers are the same for so many of those who may be left out that the promise is kept without any. They "
        "are exact, and what they reveal of the file is outside of the promise."
    )
    assert f"No noise was added: {exact}" in whole
    assert f"None: {exact}" in whole
    assert "the draw alone" not in whole
    assert "the printed noise reveals" not in whole
    assert "and not about the file: the release is no anonymisation in the sense of the law." in whole


@pytest.mark.parametrize(("design", "size"), [("leave-one-out", "999"), ("dp", "1,000")])
def test_the_noise_is_shown_with_the_sampling_error(design, size):
    whole = said(report_of(f"{design}, owner"))
    # hypot(.57, .23) = .61465; .61465/.57 = 1.0783; 1000 (.57/.61465)^2 = 860
    assert re.search(rf"years 0.57 0.23 0.61 \+7.8 % \d+ of {size}", whole)
    assert f"instead of {size}." in whole
    assert "The noise is what the privacy cost, the sampling error what the sampling cost." in whole
    assert "The sampling error is that of the 1,000 as a simple random sample of a large population." in whole
    assert "The price is noise of 0.38 to 0.41 times the sampling error." in whole
    used = {"leave-one-out": "All but one of the 1,000 people are used.", "dp": "All 1,000 people are used."}
    published = said(report_of(public(design)))
    for text in (whole, published):
        assert used[design] in text
    assert "Sampling error" not in published
    assert "what the privacy cost" not in published


def test_people_with_several_rows_are_counted_as_people():
    data = {"name": "visits.csv", "digest": "", "records": 2500}
    assert "visits.csv, 2,500 rows of 1,000 people." in said(design_report("leave-one-out", data=data))
    assert "survey.csv, 1,000 people." in said(report_of(public("leave-one-out")))


@every_design
def test_a_calibration_says_that_nothing_is_drawn(design):
    report = design_report(design, owner=True, rows=(), certificate={"ledger": False, "entry": None})
    whole = said(report)
    assert "Calibrated noise, for the owner of the data" in flat(report.table())
    assert "not drawn yet" in term(report, "Noise")
    assert "can be computed" not in whole
    assert "cannot be drawn again" not in whole


@every_design
def test_a_given_seed_is_not_for_publication(design):
    report = design_report(design, insecure_seed=True)
    for text in (flat(report.table()), said(report)):
        assert "noise came from a seed that was given, not from the operating system: whoever knows" in text
        assert ("Who is left out and the noise" in text) is (design == "leave-one-out")


@every_design
def test_what_a_ledger_knows_is_not_said_to_be_written_nowhere(design):
    """It holds the key of the noise and, of leave-one-out, the values without each record."""
    whole = said(report_of(public(design)))
    assert "What they were without noise is not published." in whole
    assert "without the key of the ledger the released values cannot be drawn again." in whole
    assert "written nowhere" not in whole


def test_titles_by_promise():
    assert question_of("file", "mean") == "Who is left out of the mean?"
    assert {question_of(promise, "mean") for promise in ("anyone", "drawn")} == {"Who is in the mean?"}


def test_an_attack_on_a_record_is_drawn_at_its_lower_end():
    report = report_of("leave-one-out, owner")
    dots = release_page(report).dots
    assert dots is not None
    assert [f"{row.name} {row.text}" for row in dots.rows] == [
        "the promise ≤ 60.0", "this release alone ≤ 55.0", "likelihood ratio ≥ 53.1",
    ]  # fmt: skip
    assert dots.is_at_lower_end
    assert dots.is_of_worst
    assert release_page(design_report("dp", findings=[Finding("accuracy", 0.6, scope=Scope())])).dots is not None


# words from data alone

NEW_TERMS = (
    Term("left_out_in_secret", n=N),
    Term("knows_all_but_left_out", n=N),
    Term("function_of_the_others"),
    Term("ledger_keeps_left_out"),
    Term("replace_one_any_data", n=N),
    Term("add_or_remove"),
    Term("n_is_public", n=N),
    Term("ranges_declared", ranges="age from 18 to 99"),
    Term("levels_declared"),
    Term("values_clamped"),
    Term("versions_differ", difference=0.002),
)


@pytest.mark.parametrize("new", NEW_TERMS, ids=lambda new: new.id)
def test_every_term_has_its_sentence(new):
    sentence = words(new)
    assert sentence != new.id.replace("_", " ")
    for value in new.values.values():
        assert (f"{value:,}" if isinstance(value, int) else str(value)) in sentence


def test_games_have_their_sentence():
    values: dict[str, Any] = {"n": N}
    assert game(Term("left_out", **values)).startswith("one of 1,000 records is left out")
    assert game(Term("any_data", **values)).startswith("all 1,000 records are used, whatever they are")
