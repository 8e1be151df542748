"""What the page of each design says: its game, its promise and its limits, from data alone."""

from __future__ import annotations

import dataclasses
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import leakbound.reports
from leakbound.core.findings import Finding, Scope, Term
from leakbound.plans.promises import NAME_OF
from leakbound.reports import Report, phrases
from leakbound.reports.charts.roc import roc
from leakbound.reports.content import schema
from leakbound.reports.phrases import game, words
from leakbound.reports.render.html import notebook
from leakbound.reports.sections.findings import quantity
from leakbound.reports.sections.parts import Part
from leakbound.reports.sections.protected import certificate, costs, designs
from leakbound.reports.sections.protected import words as protected_words
from leakbound.reports.sections.protected.designs import WORDS, DesignWords, Limit, question_of
from leakbound.reports.sections.protected.result import protected_result
from tests.reports import made_designs, made_protected
from tests.reports.abouts import changed
from tests.reports.made_designs import ALL, BUDGET, DESIGNS, DIGEST, ETA, N, certificate_of, design_report
from tests.reports.page_reading import Page

every_report = pytest.mark.parametrize("name", ALL)
every_design = pytest.mark.parametrize("design", DESIGNS)
words_alone = pytest.mark.usefixtures("without_charts")


@cache
def report_of(name: str) -> Report:
    """One of all reports, made once for the tests that read it."""
    return ALL[name]()


@cache
def page_of(name: str) -> str:
    return report_of(name).to_html()


@cache
def fragment_of(name: str) -> str:
    return notebook(report_of(name))


def public(design: str) -> str:
    """The name of the report of a design for publication."""
    return f"{design}, public"


def flat(text: str) -> str:
    """A text in one line, with plain spaces."""
    return " ".join(text.replace("\u202f", " ").replace("\u00a0", " ").split())


def row(report: Report, head: str) -> str:
    """A row of the certificate."""
    return flat(dict(certificate.rows(protected_result(report)))[head].striptags())


def heads(report: Report) -> list[str]:
    return [head for head, _ in certificate.rows(protected_result(report))]


def promise(report: Report) -> str:
    return flat(protected_words.promise(protected_result(report)).striptags())


def alone(report: Report) -> Report:
    """The same release, which takes the whole budget of its ledger."""
    entry = {**made_designs.ENTRY, "budget": ETA}
    facts = {**report.about.model_dump()["certificate"], "entry": entry}
    return dataclasses.replace(report, about=changed(report.about, certificate=facts))


# all reports


@every_report
def test_a_page_a_text_and_a_fragment_are_made(name):
    report = report_of(name)
    text, page = report.table(), page_of(name)
    assert max(map(len, text.splitlines())) <= 100
    assert text.isascii()
    assert len(Page(page).all("script")) == 1
    assert protected_words.right(protected_result(report)) in Page(fragment_of(name)).whole
    assert "{" not in text.split("\nquantity")[0]


@every_report
@words_alone
def test_reports_follow_the_schema_and_are_read_again(name, tmp_path):
    report = report_of(name)
    document = json.loads(report.to_json(tmp_path / "report.json"))
    assert Draft202012Validator(schema()).is_valid(document)
    assert Report.from_json(tmp_path / "report.json").to_html() == report.to_html()


# The one sentence of a page that may speak of anonymity: it says that there is none.
NO_ANONYMISATION = (
    "unless its scale was declared, the printed noise tells the largest value of a mean to some ten per cent, and the "
    "release is no anonymisation in the sense of the law."
)


@every_report
def test_the_wrong_words_never_appear(name):
    whole = Page(page_of(name)).whole
    tells = "leave-one-out" in name
    for text in (report_of(name).table(), whole, Page(fragment_of(name)).whole):
        text = flat(text)
        sentence = NO_ANONYMISATION
        if "all exact" in name:  # there is no noise that could tell anything
            sentence = "the release is no anonymisation in the sense of the law."
        assert (sentence in text) is tells
        text = text.replace(sentence, "")
        wrong = r"\bDP\b|jackknife|differential identifiability|anonym|\bof the draw\b|\bthe draw\b|candidates who"
        assert not re.search(wrong, text), re.search(wrong, text)
    half = ("are drawn uniformly", "drawn at random", "second release of the same", "Coupling", "of the members")
    assert not [text for text in half if text in whole]


@every_report
def test_who_is_told_best_is_on_no_page(name):
    assert not any("617" in text for text in (report_of(name).table(), page_of(name), fragment_of(name)))


@pytest.mark.parametrize("unit", ["record", "household", "image"])
@every_design
def test_units_have_their_words(design, unit):
    report = design_report(design, owner=True, unit=unit)
    text = flat(report.table())
    assert not re.search(r"\bpe(rson|ople)\b", text)
    assert not re.search(r"\ba image\b|\ban (record|household)\b", text)
    assert f"1,000 {phrases.plural(unit)}" in text


def test_no_other_module_asks_which_design_it_is():
    reports = Path(leakbound.reports.__file__).parent
    asking = [path.name for path in reports.rglob("*.py") if re.search(r"\.design\b", path.read_text(encoding="utf-8"))]
    assert asking == ["designs.py"]
    assert set(WORDS) == set(NAME_OF)


# the words of half, as they were before there were other designs

HALF_ROWS = {
    "Game": (
        "500 of the 1,000 people are drawn uniformly at random and in secret. The attacker knows all 1,000 rows, the "
        "method and the distribution of the noise, but neither the draw nor the noise. Prior ½."
    ),
    "Does not promise": (
        "Differential privacy. Protection of what the people have in common. Anything about a second release of the "
        "same 500: with a ledger the joint bound is computed."
    ),
    "Tells of the data": (
        "Scale and shape of the noise (deviations and correlations) were computed from all 1,000 people. The scale is "
        "rounded up to two significant digits, the shape to two digits of each deviation and two decimals of each "
        "correlation. They speak of the largest of the people: the size of one that is far from all others is told to "
        "some ten per cent. That there is a release tells something too: a promise is refused where the data do not "
        "allow it, and noise is left out where the draw alone keeps the promise."
    ),
    "Declared public": (
        "The numbers n and k, the names of the columns, and the plan. All else is computed from the released values "
        "and the printed noise."
    ),
}


@pytest.mark.parametrize("head", HALF_ROWS)
def test_the_words_of_half_have_not_changed(head):
    assert row(made_protected.published(), head) == HALF_ROWS[head]


def test_the_order_of_half_has_not_changed():
    assert heads(made_protected.published()) == [
        "Game",
        "Noise",
        "Coupling",
        "Confidence",
        "Whole curve",
        "Assumes",
        "Does not promise",
        "Tells of the data",
        "Declared public",
    ]
    page = made_protected.means().to_html()
    whole = flat(Page(page).whole)
    for said in (
        "Nobody is right in more than 55.0 of 100 cases about whether a given person is among the 500.",
        "In the game of this page 500 of the 1,000 people are in the data, and the attacker, who sees the release, "
        "guesses who. The certificate can be checked from the table of all people; the released values cannot be "
        "drawn again, by design.",
        "The data are 500 of the 1,000 people, drawn at random: the sampling error is about 1.4 times that of all.",
        "the sampling error is that of the 500 as a simple random sample of a large population.",
        "it holds exact functions of all 1,000 people, as what is proved beyond the promise, sampling errors, attacks "
        "and a digest.",
        "Coupling A way to pair data with the person and data without; it turns the noise into a promise.",
        "The certificate For every one of the 1,000 people, every attacker\u2019s guess “in or out” on seeing this "
        "release is right with probability at most 0.5500.",
    ):
        assert said in whole
    assert "members found (TPR)" in page


# what each design says


@pytest.mark.parametrize("owner", [False, True])
def test_leave_one_out_says_all_that_it_means_and_does_not(owner):
    """Every item of the list of A.11, for publication and for the owner."""
    name = "leave-one-out, owner" if owner else public("leave-one-out")
    report = report_of(name)
    for text in (flat(report.table()), flat(Page(page_of(name)).whole).replace("“", '"').replace("”", '"')):
        for said in (
            "One of the 1,000 people is drawn uniformly at random and in secret, and left out. The release is a "
            "function of the other 999 alone, plus noise; all else is public.",
            "guesses whether the person left out is a given one or a random other one: both are equally likely",
            "the promise is about one person among 1,000 people that the attacker knows",
            'The words "a function of the others alone, all else public". Without them, publishing the statistic of '
            "all 1,000 people would keep the same promise about the person left out.",
            "Everything that depends on all 1,000 people is outside of the promise and tells about the file: the "
            "scale, the shape and the grid of the noise, refusals, standard errors.",
            "Each release tells the size of one that is far from all others to some ten per cent, and several releases "
            "tell it more closely.",
            "A fresh left-out person for each release would protect nobody. So the ledger keeps the same person left "
            "out for the life of the data, and adds up what all its releases tell.",
            "What several people change together is the sum of their shifts, and the noise need not hide that.",
            "Where the file itself is the secret, use differential privacy (promise anyone).",
        ):
            assert said in text
        assert re.search("leave-one-out membership certificate", text, flags=re.IGNORECASE)
    assert "100 %. The bound is computed, not sampled" in row(report, "Confidence")
    others = ["Other designs"] if owner else []
    assert heads(report)[: 8 + len(others)] == [
        "Game",
        "Naming",
        "Does not promise",
        "Part of the promise",
        "Other releases",
        "Groups",
        "If the file is secret",
        *others,
        "Tells of the data",
    ]


@words_alone
def test_leave_one_out_promises_and_names():
    """P(the record left out is named) <= 1/1000 + .999 * .1 = .1009."""
    report = alone(design_report("leave-one-out"))
    assert promise(report) == (
        "An attacker who knows all 1,000 people and guesses whether a given person is the person left out is right in "
        "at most 55.0 of 100 cases if both answers are equally likely beforehand, whichever of the 1,000 people it is "
        "and whatever the attacker computes; guessing from the prior alone gives 50. Somebody who tries to name the "
        "person left out is right with probability at most 0.1009; without any release the probability is 0.0010."
    )
    lede = flat(protected_words.lede(protected_result(report)).striptags())
    assert lede == (
        "If both answers are equally likely beforehand, nobody is right in more than 55.0 of 100 cases about whether a "
        "given person is the person left out. The promise is about that one person, and not about the file: "
        f"{NO_ANONYMISATION}"
    )
    whole = flat(Page(report.to_html()).whole)
    assert "Protected release · 1,000 people, all but one of them in the data · promise η = 0.05 ·" in whole
    assert "Naming the record left out, any attacker 10.1 of 100" in whole
    assert "every attacker\u2019s guess “left out or not” at even odds on seeing this release" in whole
    assert "Its scale and shape were computed from all 1,000 people." in whole


@words_alone
@pytest.mark.parametrize(
    ("statistic", "told"),
    [
        ("mean", "the largest value of a mean to some ten per cent"),
        ("sum", "the largest value of a sum to some ten per cent"),
        ([{"statistic": "ols"}, {"statistic": "mean"}], "the largest value of a mean to some ten per cent"),
        ("quantiles", "how far the numbers move without the person that they depend on most, to some ten per cent"),
        ("ols", "how far the numbers move without the person that they depend on most, to some ten per cent"),
    ],
)
def test_what_the_printed_noise_tells_is_said_of_the_statistic(statistic, told):
    report = alone(design_report("leave-one-out", plan={"statistic": statistic}))
    lede = flat(protected_words.lede(protected_result(report)).striptags())
    assert f"the printed noise tells {told}, and the release is no anonymisation" in lede


def test_the_axes_of_leave_one_out_are_of_who_is_left_out():
    report = report_of(public("leave-one-out"))
    texts = {text.get_text() for text in roc(report).texts}
    assert {"the record left out recognised (TPR)", "false alarms: another one called left out (FPR)"} <= texts
    assert "the person left out in more than 11 % of cases at 1 % false alarms and 11 % at 0.1 %." in (
        row(report, "Whole curve")
    )
    page = page_of(public("leave-one-out"))
    assert "The record left out recognised (TPR) against false alarms (FPR), logarithmic axes" in page


def test_differential_privacy_is_for_everybody():
    report = alone(design_report("dp", owner=True))
    assert promise(report) == (
        "An attacker who knows all other people and guesses whether a given person is in the data or another one "
        "instead is right in at most 55.0 of 100 cases if both answers are equally likely beforehand, whoever the "
        "person is, in this file or any other, and whatever the attacker computes; guessing from the prior alone gives "
        "50."
    )
    whole = flat(Page(report.to_html()).whole)
    assert "This holds for every person, in this file or any other." in whole
    assert "The certificate of differential privacy For every person, in this file or any other, every" in whole
    # Gaussian differential privacy with mu = 2 Phi^-1(.55) = .25132, and half of it
    assert (
        "Differential privacy with (ε, δ) = (0.94, 10 \N{MINUS SIGN}5 ) if one person is replaced by another." in whole
    )
    assert (
        "Differential privacy with (ε, δ) = (0.44, 10 \N{MINUS SIGN}5 ) if one person is added or removed: of the "
        "noisy numbers alone, for the number of records, which is public, changes then."
    ) in whole
    assert "ε at δ = 10 \N{MINUS SIGN}5 , one person added or removed 0.44" in whole
    assert "Its size follows from η, n and what was declared of the columns alone." in row(report, "Noise")
    assert row(report, "Tells of the data").startswith("Nothing beyond the promise")
    assert "age from 18 to 99" in row(report, "Assumes")
    assert "their ranges" in row(design_report("dp"), "Declared public")
    assert "Any data set" not in whole  # the promise of the release itself needs no heading
    assert whole.count("This release") == 1


def test_an_epsilon_of_adding_or_removing_says_so():
    finding = Finding("epsilon", 0.44, bound_type="upper", method=(Term("add_or_remove"),), status="certified")
    part = Part("", [finding], design_report("dp").about, Scope("any_data"))
    assert quantity(part, finding).striptags() == "ε, one person added or removed"


# the ledger


@every_design
def test_the_headline_is_the_promise_of_all_releases_of_the_ledger(design):
    report, page = report_of(public(design)), page_of(public(design))
    said = promise(report)
    assert "on seeing all releases of this ledger, is right in at most 60.0 of 100 cases" in said
    assert "On seeing this release alone it is at most 55.0 of 100." in said
    assert protected_words.big(protected_result(report)) == ("60.0", "of 100 at most")
    promised = certificate.promised(protected_result(report)).striptags()
    assert (
        "on seeing all releases of this ledger is right with probability at most 0.6000, on seeing this release "
        in (promised)
    )
    assert "promise η = 0.1 for all releases of its ledger, η = 0.05 for this one" in flat(Page(page).whole)
    ledger = row(report, "Ledger")
    assert ledger.startswith(
        f"Release number 2 of its ledger; entry {DIGEST[:12]}. All releases of this ledger together: accuracy at most "
        "0.6000, fixed before the first one; queries declared beforehand: 3."
    )
    assert DIGEST[:13] not in page
    assert "this release alone</text>" in page


@every_design
def test_what_is_spent_is_for_the_owner(design):
    released, owner = report_of(public(design)), report_of(f"{design}, owner")
    assert "Spent so far, for the owner alone: 0.0712 of the budget of 0.1." in row(owner, "Ledger")
    text = flat(owner.table())
    assert "All releases of this ledger together, fixed before the first one:" in text
    assert "All releases of this ledger so far: Gain over guessing of any attacker, prior 1/2 0.0712" in text
    assert "0.0712" not in released.table() + page_of(public(design))
    spent = design_report(design, findings=owner.findings)  # it stays off the certificate, even where it is given
    assert "0.0712" not in row(spent, "Ledger")


def test_the_whole_budget_of_a_ledger_is_one_number():
    report = alone(design_report("leave-one-out"))
    assert "on seeing all" not in promise(report)
    assert "accuracy at most 0.5500, fixed before the first one" in row(report, "Ledger")
    assert "this release alone" not in report.to_html()


def test_versions_of_the_data_take_nothing_from_the_promise():
    terms = [{"id": "versions_differ", "values": {"difference": 0.002}}]
    report = design_report("leave-one-out", certificate={"assumptions": terms})
    assert protected_words.right(protected_result(report)) == "60.0"
    first = "of those who are in the first version of these data"
    assert f"whichever {first} it is and whatever the attacker computes" in promise(report)
    promised = certificate.promised(protected_result(report)).striptags()
    assert promised.startswith(f"For every one {first}, every attacker")
    assert row(report, "Assumes") == (
        "The data changed since an earlier release of this ledger: the promise is to those who are in its first "
        "version, whoever came or went later; with probability 0.002 not the same one is left out of all versions."
    )


def test_the_first_release_of_a_ledger_has_the_joint_promise():
    """The budget is fixed before the first output, so that it is the promise where nothing else was released, too."""
    first = [
        dataclasses.replace(finding, release="joint_of_one") for finding in made_designs.owners("leave-one-out")[:3]
    ]
    report = design_report("leave-one-out", owner=True, findings=[*made_designs.promised("leave-one-out"), *first])
    assert "All releases of this ledger together, fixed before the first one:" in flat(report.table())
    assert "at most 0.2008" in promise(report)


def test_naming_is_of_all_releases_where_that_is_known():
    """1/1000 + .999 * .2 = .2008."""
    said = promise(design_report("leave-one-out", owner=True))
    assert (
        "Somebody who tries to name the person left out, on seeing all releases of this ledger, is right with "
        "probability at most 0.2008, on seeing this release alone at most 0.1009; without any release the "
        "probability is 0.0010." in said
    )
    said = promise(design_report("leave-one-out"))
    assert "name the person left out, on seeing this release alone, is right with probability at most 0.1009; " in said
    assert "Naming" not in heads(design_report("dp"))


def test_without_a_ledger_the_rows_say_what_one_is_for():
    without = {"ledger": False, "entry": None}
    report = design_report("leave-one-out", certificate=without)
    assert row(report, "Other releases") == (
        "A fresh left-out person for each release would protect nobody. So the same one has to be left out for the "
        "life of the data, in a ledger that adds up what all releases tell."
    )
    assert "Ledger" not in heads(report)
    assert "55.0 of 100" in promise(report)
    assert "A ledger keeps count" in row(design_report("dp", certificate=without), "Other releases")


# values and costs


def test_a_number_without_noise_is_exact_and_outside_of_the_promise():
    report = report_of("leave-one-out, exact")
    whole = flat(Page(page_of("leave-one-out, exact")).whole)
    assert "number of sexes Released 2 Noise, 95 % none: exact" in whole
    assert "Numbers without noise are exact, and outside of the promise." in whole
    assert row(report, "Does not promise").endswith(
        "Anything about number of sexes: released exactly, outside of the promise."
    )
    noisy = Page(page_of(public("leave-one-out"))).whole
    assert "exact, and outside" not in noisy
    assert "released exactly" not in noisy


def test_names_of_columns_and_statistics_are_printed_as_they_are():
    """A column called wage was printed as Wage at the start of a line."""
    rows = [("wage", "", 41.0, 0.5, 0.7), ("iPhone users", "", 7.0, 0.5, 0.7)]
    report = design_report("leave-one-out", rows=rows, owner=True)
    page, text = flat(Page(report.to_html()).whole), report.table()
    for name in ("wage", "iPhone users"):
        assert page.count(f" {name} ") >= 2
        lines = [line for line in text.splitlines() if line.startswith(name)]
        assert len(lines) == 2  # the released value, and what it costs
    assert "Wage" not in page + text
    assert "IPhone" not in page + text


def test_many_exact_numbers_are_counted():
    rows = [(f"cell {n}", "", 1.0, 0.0, None) for n in range(9)] + [("mean", "", 1.0, 0.5, None)]
    said = row(design_report("leave-one-out", rows=rows), "Does not promise")
    assert said.endswith("cell 4, cell 5 and 3 more: released exactly, outside of the promise.")


def test_where_all_is_exact_no_noise_keeps_a_promise():
    whole = flat(Page(page_of("leave-one-out, all exact")).whole)
    exact = (
        "the numbers are the same for so many of those who may be left out that the promise is kept without any. They "
        "are exact, and what they tell of the file is outside of the promise."
    )
    assert f"No noise was added: {exact}" in whole
    assert f"None: {exact}" in whole
    assert "the draw alone" not in whole
    assert "the printed noise tells" not in whole
    assert "and not about the file: the release is no anonymisation in the sense of the law." in whole


@pytest.mark.parametrize(("design", "size"), [("leave-one-out", "999"), ("dp", "1,000")])
def test_the_noise_is_shown_beside_the_sampling_error(design, size):
    whole = flat(Page(page_of(f"{design}, owner")).whole)
    # hypot(.57, .23) = .61465; .61465/.57 = 1.0783; 1000 (.57/.61465)^2 = 860
    assert re.search(
        rf"Sampling error 0.57 Noise 0.23 Together 0.61 Increase \+7.8 % Worth a sample of \d+ of {size}", whole
    )
    assert f"instead of {size}." in whole
    assert "The noise is what the privacy cost, the sampling error what the sampling cost." in whole
    assert "the sampling error is that of the 1,000 as a simple random sample of a large population." in whole
    assert "The price is noise of 0.38 to 0.41 times the sampling error." in whole
    used = {"leave-one-out": "All but one of the 1,000 people are used.", "dp": "All 1,000 people are used."}
    assert used.get(design, "") in whole
    published = flat(Page(page_of(public(design))).whole)
    assert used.get(design, "") in published
    assert "Sampling error" not in published
    assert "what the privacy cost" not in published


@words_alone
def test_people_with_several_rows_are_counted_as_people():
    data = {"name": "visits.csv", "digest": "", "records": 2500}
    whole = Page(design_report("leave-one-out", data=data).to_html()).whole
    assert "visits.csv, 2,500 rows of 1,000 people." in whole
    assert "survey.csv, 1,000 people." in Page(page_of(public("leave-one-out"))).whole


@words_alone
@every_design
def test_a_calibration_says_that_nothing_is_drawn(design):
    report = design_report(design, owner=True, rows=(), certificate={"ledger": False, "entry": None})
    text = flat(report.table())
    assert "Calibrated noise, for the owner of the data" in text
    assert "not drawn yet" in row(report, "Noise")
    whole = Page(report.to_html()).whole
    assert "can be computed" not in whole
    assert "cannot be drawn again" not in whole


@words_alone
@every_design
def test_a_given_seed_is_not_for_publication(design):
    whole = Page(design_report(design, insecure_seed=True).to_html()).whole
    assert "noise came from a seed that was given, not from the operating system: whoever knows the seed takes" in whole
    assert ("Who is left out and the noise" in whole) is (design == "leave-one-out")


def test_total_errors_are_said_of_what_each_errs_by():
    totals = [
        Finding("total_error", 0.2, release=name, status="certified", detail={"mean": error})
        for name, error in (("this_calibration", 0.2), ("dp_gaussian_all_records", 0.3))
    ]
    said = costs.total(protected_result(design_report("leave-one-out", owner=True, findings=totals))).striptags()
    assert said.startswith("Against the statistic of all 1,000 people this release errs by the person left out and by ")
    assert costs.total(protected_result(design_report("dp", owner=True, findings=totals))) == ""


@every_design
def test_what_a_ledger_knows_is_not_said_to_be_written_nowhere(design):
    """It holds the key of the noise and, of leave-one-out, the values without each record."""
    whole = flat(Page(page_of(public(design))).whole)
    assert "What they were without noise is not published." in whole
    assert "without the key of the ledger the released values cannot be drawn again." in whole
    assert "written nowhere" not in whole


def test_titles_by_design():
    assert question_of("leave-one-out", "mean") == "Who is left out of the mean?"
    assert {question_of(design, "mean") for design in ("dp", "half")} == {"Who is in the mean?"}


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
    Term("values_clamped_owner", beyond=1234),
    Term("versions_differ", difference=0.002),
)


@pytest.mark.parametrize("term", NEW_TERMS, ids=lambda term: term.id)
def test_every_term_has_its_sentence(term):
    said = words(term)
    assert said != term.id.replace("_", " ")
    for value in term.values.values():
        assert (f"{value:,}" if isinstance(value, int) else str(value)) in said


def test_games_have_their_sentence():
    assert game(Term("left_out", n=N)).startswith("one of 1,000 records is left out")
    assert game(Term("any_data", n=N)).startswith("all 1,000 records are used, whatever they are")


def marked(design: DesignWords) -> DesignWords:
    """The same words, each between brackets."""

    def bracketed(value: Any) -> Any:
        if isinstance(value, str):
            return f"\u27e6{value}\u27e7" if value else value
        if isinstance(value, Limit):
            return Limit(*(bracketed(getattr(value, field.name)) for field in dataclasses.fields(Limit)))
        if isinstance(value, dict):
            return {key: bracketed(item) for key, item in value.items()}
        return tuple(bracketed(item) for item in value) if isinstance(value, tuple) else value

    content = {field.name: bracketed(getattr(design, field.name)) for field in dataclasses.fields(DesignWords)}
    return DesignWords(**content)


@words_alone
@every_report
def test_other_words_of_a_design_change_the_words_of_a_report_and_nothing_else(name, monkeypatch):
    report = ALL[name]()
    before, text, page = report.to_json(), report.table(4000), report.to_html()
    monkeypatch.setattr(designs, "WORDS", {design: marked(content) for design, content in WORDS.items()})
    assert report.to_json() == before
    charts = re.compile(r"<svg.*?</svg>", re.DOTALL)
    for other, same in ((report.table(4000), text), (report.to_html(), page)):
        other, same = charts.sub("", other), charts.sub("", same)
        assert other != same
        assert flat(re.sub("[\u27e6\u27e7]|\\\\u27e[67]", "", other)).lower() == flat(same).lower()


def test_a_design_has_no_words_that_fill_cannot_fill():
    """Every gap of every sentence is known."""
    known = {"n", "n_count", "k", "unit", "units", "whose", "prior", "statistic", "asked", "bound", "names", "rates"}
    known |= {"fraction", "fpr", "longer", "levels", "ranges", "entry", "classes", "them", "told"}
    gaps = set(re.findall(r"\{(\w+)\}", repr(WORDS)))
    assert gaps <= known
    assert certificate_of("dp")["entry"]["budget"] == BUDGET
