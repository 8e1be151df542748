"""What the documents of a release are handed, and what they say: answer, promise, noise, cost, certificate."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from leakbound.core.findings import Finding, Scope
from leakbound.core.tradeoff import Gaussian
from leakbound.core.tradeoff.claims import Claim
from leakbound.reports import Curve, Report, Verdict
from leakbound.reports.numbers import HALF_OF_95_PERCENT
from leakbound.reports.results.release.page import release_page
from leakbound.reports.results.release.result import release_result
from leakbound.reports.results.release.table import Table, cost_rows, sample_worth, value_rows
from leakbound.reports.sentences import Texts
from tests.reports import made_protected
from tests.reports.made_protected import attack, ceiling, protected, values, without
from tests.reports.said import flat, said, term

SAMPLES = ("means", "published", "calibrated", "average", "insecure", "no_noise", "uneven", "nothing")
AT_ONE_HALF: dict[str, Any] = {"operating_point": {"prior": 0.5}}


def of(*findings, certificate=None, noise=None, curves=(), **about) -> Report:
    return protected(findings, curves, certificate, noise, **about)


def page_of(*findings, **words) -> Texts:
    return release_page(of(*findings, **words))


def cells(table: Table) -> list[list[str]]:
    """The head and the rows of a table as texts."""
    return [[str(head.name) for head in table.heads], *([str(cell) for cell in row.cells] for row in table.rows)]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_terminal_shows_the_answer_and_one_table_in_25_lines(name):
    text = getattr(made_protected, name)().table(80)
    lines = text.splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 80
    assert sum("──" in line for line in lines) <= 1  # below the head of a table


def test_the_answer_of_a_terminal_begins_with_title_facts_and_lede():
    lines = made_protected.means().table(80).splitlines()
    assert lines[0] == "Three means of a survey"
    assert lines[1].startswith("Protected release, for the owner of the data · 1,000 people, 500 of them in the")
    assert lines[4].startswith("Nobody is right in more than 55.0 of 100 cases")
    assert [" ".join(line.split()) for line in lines if "mean of age" in line] == ["mean of age 43.2 ± 1.1 years"]
    assert "Not for publication" in lines[-2]


@pytest.mark.parametrize(
    ("eta", "sentence"),
    [
        (0.025, "Nobody can tell with any confidence whether a given person is among the 500: a guess is right in at "
         "most 52.5 of 100 cases."),
        (0.026, "Nobody is right in more than 52.6 of 100 cases about whether a given person is among the 500."),
        (0.1, "Nobody is right in more than 60.0 of 100 cases about whether a given person is among the 500."),
        (0.11, "Nobody can be sure whether a given person is among the 500, but a guess may be a good deal better than "
         "one from the prior alone: right in up to 61.0 of 100 cases."),
        (0.3, "This promise is weak: whether a given person is among the 500 may be guessed in 80.0 of 100 cases."),
    ],
)  # fmt: skip
def test_the_lede_follows_the_promise(eta, sentence):
    assert sentence in said(of(certificate={"eta": eta}, audience="public", values=[]))


@pytest.mark.parametrize(
    ("rows", "price"),
    [
        ([("a", "", 1.0, 0.5, 0.5)], "1.0"),
        ([("a", "", 1.0, 0.5, 0.5), ("b", "", 1.0, 3.0, 0.5), ("c", "", 1.0, 3.0, None)], "1.0 to 6.0"),
        ([("a", "", 1.0, 0.5, None)], ""),
        ([("a", "", 1.0, 0.5, 0.0)], ""),
    ],
)
def test_the_price_is_the_noise_in_units_of_the_sampling_error(rows, price):
    assert str(page_of(values=values(rows)).price) == price


def test_the_promise_is_rounded_up():
    assert page_of(certificate={"eta": 0.05001}).right == "55.1"
    assert page_of(certificate={"eta": 0.05}).right == "55.0"
    assert page_of(certificate={"eta": 0.05, "prior": 0.3, "k": 300}).right == "75.0"
    assert page_of(certificate={"eta": 0.050001}).probability == "0.5501"


def test_a_sampled_certificate_says_where_it_fails():
    report = of(certificate={"confidence": 0.99, "exact": False, "pairs": 500, "fits": 1000, "failures": 1})
    whole = said(report)
    assert whole.count("except with probability 1 % over the calibration") == 2  # the promise, and the certificate
    assert term(report, "Confidence") == (
        "Level 99 %. The pairs of the calibration are a sample; with probability 1 % it misleads."
    )
    assert term(report, "Coupling").endswith(
        "Sampled: 500 pairs from 1,000 fits. Of these pairs 1 failed, which counts against the certificate."
    )
    assert "Proved at 99 %" in whole


def test_without_an_attack_or_noise_the_sentences_say_so():
    whole = said(of(*without()[0]))
    assert "No attack was run against it. Without noise the best attacker would be right in about 57.3." in whole
    exact = Finding("accuracy", 0.6, **AT_ONE_HALF, release="without_noise", status="certified")
    assert str(page_of(exact).without_noise) == "60.0"
    assert page_of(exact, certificate={"no_noise": True}).without_noise == ""


def test_attacks_on_a_random_record_are_said_to_be():
    for scope, about, who in [
        (Scope(), "every", "the most exposed person"),
        (Scope("worst"), "average", "the most exposed person"),
        (Scope("average"), "every", "a randomly chosen person"),
        (Scope(), "average", "a randomly chosen person"),
    ]:
        tried = Finding("accuracy", 0.54, scope=scope, attack="bayes", bound_type="lower", **AT_ONE_HALF)
        sentence = f"The best attack that we know is right in 54.0 of 100 for {who}."
        assert sentence in said(of(tried, certificate={"about": about}))


def test_the_best_attack_is_the_one_with_the_largest_lower_end():
    tried: dict[str, Any] = {"bound_type": "lower", **AT_ONE_HALF}
    wide = Finding("accuracy", 0.56, 0.50, 0.62, attack="wide", **tried)
    sharp = Finding("accuracy", 0.55, 0.54, 0.56, attack="sharp", **tried)
    other = Finding("accuracy", 0.9, operating_point={"prior": 0.9}, attack="other prior", bound_type="lower")
    result = release_result(protected([wide, sharp, other]))
    assert [each.attack for each in result.attacks] == ["sharp", "wide"]


@pytest.mark.parametrize(
    ("rms", "rows", "sizes"),
    [
        ([0.5], [("a", "EUR", 1, 1, 1)], "standard deviation 0.50 EUR,"),
        ([0.5, 0.5], [("a", "EUR", 1, 1, 1), ("b", "m", 1, 1, 1)], "standard deviation 0.50 in each of 2 coordinates,"),
        ([0.5, 2.0], [("a", "EUR", 1, 1, 1), ("b", "", 1, 1, 1)], "standard deviation 0.50 EUR, 2.0,"),
        ([0.5, 2.0], [("a", "EUR", 1, 1, 1)], "standard deviation 0.50, 2.0,"),
        ([float(n) for n in range(1, 9)], [("a", "", 1, 1, 1)], "standard deviation 1.0 to 8.0 over 8 coordinates,"),
    ],
)
def test_the_noise_is_said_by_coordinate_as_far_as_it_can_be(rms, rows, sizes):
    assert sizes in term(of(noise={"rms": rms}, values=values(rows)), "Noise")


def test_where_the_noise_came_from():
    noise = term(of(), "Noise")
    assert "on a grid of step 9.537 \N{MULTIPLICATION SIGN} 10⁻⁷. It was drawn once, from the operating system" in noise
    assert "grid" not in term(of(noise={"grid": None}), "Noise")
    assert "drawn from a seed that was given" in term(of(insecure_seed=True), "Noise")
    assert "It is not drawn yet." in term(of(values=[]), "Noise")
    assert term(of(certificate={"no_noise": True}), "Noise") == "None: the draw alone keeps the promise."


def test_couplings_in_words():
    assert term(of(), "Coupling") == "Swap: the person is exchanged for another one that is out. Nothing is sampled."
    assert term(of(certificate={"coupling": "complement"}), "Coupling").startswith("Complement: the data are exchanged")
    assert term(of(certificate={"coupling": "a new one"}), "Coupling").startswith("A new one. Nothing")
    assert page_of(certificate={"coupling": ""}).coupling is None


def test_the_charts_are_introduced_by_what_is_there():
    curves = [ceiling()[1], attack()[1], without()[1]]
    for drawn, heading in [
        (curves, "The best attack and its ceiling"),
        (curves[1:], "The best attack"),
        (curves[:1], "The ceiling"),
    ]:
        assert f"## {heading} " in said(of(curves=drawn))
    assert "hatched" not in said(of(curves=curves[1:]))
    assert (
        "Lower limits of 95 % intervals, at each rate by itself, from 20,000 games without the person: at a few rates"
        in said(of(curves=curves))
    )


def test_a_sample_of_equal_error():
    """The variance of a mean of m records is v/m: v/m = v/k + noise^2."""
    for k, noise, sampling in [(500, 0.37, 0.39), (90, 2.0, 0.5), (1000, 0.001, 1.0)]:
        m = sample_worth(noise, sampling, k)
        v = k * sampling**2
        assert v / (m + 1) < sampling**2 + noise**2 <= v / m
    assert sample_worth(1.0, 1e-9, 500) == 0


def test_values_are_printed_to_the_second_digit_of_their_noise():
    def released(value, noise, family="gaussian"):
        report = of(values=values([("a", "", value, noise, None)]), noise={"family": family})
        (row,) = value_rows(release_result(report))
        assert ("noise_std" in row) is (family == "uniform ball")  # there is no interval of another noise
        return [flat(str(cell)) for column, cell in row.items() if column not in ("statistic", "unit")]

    assert released(3.14159, 0.1) == ["3.14", "± 0.20"]
    assert released(3.14159, 100.0) == ["3", "± 200"]
    assert released(1234567.0, 1000.0) == ["1,234,600", "± 2,000"]
    assert released(0.0, 0.01) == ["0.000", "± 0.020"]
    assert released(-2.5, 0.0) == ["\u22122.5", "none"]
    # 95 % of a Laplace distribution of standard deviation 1 lies within ln(20)/sqrt(2)
    assert released(0.5, 1.0, "laplace") == ["0.5", "± 2.1"]
    assert released(0.5, 1.0, "uniform ball") == ["0.5", "± 1.0"]
    inside = 1 - math.exp(-math.sqrt(2) * HALF_OF_95_PERCENT["laplace"])
    assert math.isclose(inside, 0.95)


def test_columns_that_say_nothing_are_left_out():
    cost = page_of(values=values([("a", "", 1.0, 0.5, None)])).cost
    assert cells(cost.tables[0]) == [["Statistic", "Noise"], ["a", "0.50"]]
    assert cost.sample == ""
    assert cost_rows(release_result(made_protected.no_noise())) == []


def test_values_and_costs_have_two_digits_of_the_noise():
    report = made_protected.means()
    result = release_page(report)
    assert result.values is not None
    # 1.959964 * .56 = 1.0976, .0517 -> .10133, .37 -> .72519
    assert [[flat(cell) for cell in row[1:]] for row in cells(result.values.tables[0])[1:]] == [
        ["43.2", "± 1.1", "years"],
        ["2.92", "± 0.10", "EUR 1,000"],
        ["36.58", "± 0.73", "hours"],
    ]
    # hypot(.57, .56) = .79906; 500 * .57^2/.79906^2 = 254.4; .79906/.57 = 1.4019
    assert [flat(cell) for cell in cells(result.cost.tables[0])[1][2:]] == [
        "0.57", "0.56", "0.80", "+40 %", "254 of 500",
    ]  # fmt: skip
    assert "as that of a sample of 253 to 263 instead of 500." in said(report)
    assert "the sampling error is about 1.4 times that of all." in said(report)  # sqrt(1000/500)
    assert "43.217" not in report.to_html()


def test_the_promise_the_attack_and_the_release_without_noise_are_said():
    whole = said(made_protected.means())
    # Phi(.2/2) = .539828, Phi(.37/2) = .573385; 1.96 sqrt(.25/40000) = .0049
    assert (
        "An attacker who guesses whether a given person is in the data is right in at most 55.0 of 100 cases, whoever "
        "the person is and whatever the attacker computes; guessing from the prior alone gives 50. The best attack "
        "that we know is right in 54.0 of 100 for the most exposed person (95 %: 53.4 to 54.5). Without noise it "
        "would be right in about 57.3." in whole
    )
    assert "is right with probability at most 0.5500." in whole
    # Phi(Phi^-1(.01) + .25132) = .018895, Phi(Phi^-1(.001) + .25132) = .002256: upper bounds are rounded up
    assert "At 1 % false alarms no attacker finds more than 1.9 % of the members." in whole
    assert "At 0.1 % false alarms no attacker finds more than 0.23 % of the members." in whole


@pytest.mark.slow
def test_nobody_is_named_and_no_secret_is_shown():
    for report in (made_protected.means(), made_protected.insecure()):
        for text in (report.to_html(), report.to_html(records=False), report.table(), report.table(full=True)):
            assert "10617" not in text
            assert "40.12" not in text
    assert not any("10617" in text.get_text() for text in made_protected.means().plot().texts)
    assert "Not for publication." in flat(made_protected.means()._repr_html_())
    for text in (made_protected.insecure().table(), said(made_protected.insecure())):
        assert "Not for publication." in text
        assert "Proved" not in text


def test_only_a_certificate_proves():
    proved = {name for name in SAMPLES if release_page(getattr(made_protected, name)()).verdict}
    assert proved == set(SAMPLES) - {"insecure"}


def contradicted(*findings, curve=None) -> Texts:
    found, certified = ceiling()
    return release_page(protected([*found, *findings], [curve or certified]))


def exact_attack(value: float, status: Any = "certified") -> Finding:
    return Finding("accuracy", value, **AT_ONE_HALF, attack="bayes", bound_type="lower", status=status)


def test_an_exact_attack_above_the_certificate_is_a_contradiction():
    assert contradicted(exact_attack(0.5501)).contradictions == ("exact Bayes",)
    assert not contradicted(exact_attack(0.5501)).verdict
    assert not contradicted(exact_attack(0.55)).contradictions
    assert not contradicted(exact_attack(0.56, "measured")).contradictions  # a sample may exceed a tight bound
    verdict = Verdict(Claim("eta", 0.05), "refuted")
    refuted = Curve("certified", "", "certified", Gaussian(0.25), verdict=verdict)
    assert contradicted(curve=refuted).contradictions == ("certified",)
    report = protected([*ceiling()[0], exact_attack(0.5501)])
    for text in (flat(report.table()), said(report)):  # a terminal warns, too
        assert "Two results contradict each other." in text
        assert "In question: exact Bayes." in text


@pytest.mark.slow
def test_average_promises_say_whom_they_leave_out():
    whole = said(made_protected.average())
    assert "whether a randomly chosen person is in the data is right in at most 60.0 of 100 cases, whatever" in whole
    assert (
        "except with probability 5 % over the calibration; guessing from the prior alone gives 50. This says nothing "
        "about a particular person." in whole
    )
    assert "Anything about a particular person." in whole
    assert "Noted. Three fits did not converge." in whole


def test_many_values_fold_and_the_rest_is_in_the_json():
    result = release_page(made_protected.average())
    assert result.values is not None
    for table in (result.values.tables[0], result.cost.tables[0]):
        assert (len(table.rows), len(table.folded), table.n_folded, table.n_left_out) == (8, 200, "200", "92")
    assert str(table.folded[-1].cells[0]) == "coefficient 207"
    assert result.short is not None
    assert str(result.short.rows[-1].cells[0]) == "and 294 more"


def test_no_noise_is_said_where_none_is_needed():
    whole = said(made_protected.no_noise())
    assert "It needs no noise." in whole
    assert "No noise was added: the draw alone keeps the promise." in whole
    assert "right in 53.9 of 100 for the most exposed person." in whole
    assert "Worth a sample of" not in whole


def test_other_priors_and_sizes():
    report = made_protected.uneven()
    whole = said(report)
    assert "right in at most 82.5 of 100 cases" in whole
    assert "guessing from the prior alone gives 80." in whole
    assert "Prior 200/1,000." in whole
    assert "\N{MINUS SIGN}123,500,000" in whole  # the second digit of 1.96 * 4,500,000 is the 100,000
    assert "1.235 \N{MULTIPLICATION SIGN} 10⁻⁷" in whole
    assert release_page(report).dots is None  # the axis of the dots begins at 50


def test_a_table_of_records_is_refused():
    report = replace(made_protected.means(), record_table={"record": [1], "eta": [0.1]})
    for show in (Report.to_html, Report._repr_html_, Report.table, Report.plot):
        with pytest.raises(ValueError, match="a protected release shows no records, got the columns record, eta"):
            show(report)


def test_an_attack_says_the_false_positive_rate_that_it_had():
    tried: dict[str, Any] = {"operating_point": {"fpr": 0.01}, "attack": "bayes", "bound_type": "lower"}
    found = Finding("tpr", 0.02, status="measured", detail={"fpr": 0.0097}, **tried)
    (table,) = page_of(found).findings
    assert flat(str(table.rows[0].status)) == "measured, realised FPR 0.97 %"
