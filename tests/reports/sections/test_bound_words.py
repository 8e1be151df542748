from dataclasses import replace

import pytest

from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.tradeoff import EpsilonDelta
from leakbound.reports.sections.bound import words as bound_words
from leakbound.reports.sections.bound.result import bound_result
from leakbound.reports.sections.document import interval_head
from tests.reports import made_bounds
from tests.reports.made_bounds import bound


def lede(*findings, **about):
    return bound_words.lede(bound_result(bound(findings, **about))).striptags()


def accuracy(value, bound_type="upper", status="certified", prior=0.5, **words):
    return Finding("accuracy", value, operating_point={"prior": prior}, bound_type=bound_type, status=status, **words)


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        (
            accuracy(0.55001),
            "An attacker who guesses whether a given record is in the data is right in at most 55.1 of 100 cases, "
            "whoever the record is and whatever the attacker computes; guessing from the prior alone gives 50.",
        ),
        (
            accuracy(0.55, confidence=0.95),
            "An attacker who guesses whether a given record is in the data is right in at most 55.0 of 100 cases, "
            "whoever the record is and whatever the attacker computes, except with probability 5 % over the "
            "sampling; guessing from the prior alone gives 50.",
        ),
        (
            accuracy(0.93, prior=0.1),
            "An attacker who guesses whether a given record is in the data is right in at most 93.0 of 100 cases, "
            "whoever the record is and whatever the attacker computes; guessing from the prior alone, always that "
            "it is not, gives 90.",
        ),
        (
            accuracy(0.5499, "lower"),
            "Some attacker who guesses whether a record is in the data is right in at least 54.9 of 100 cases; "
            "guessing from the prior alone gives 50.",
        ),
        (
            accuracy(0.62504, "point", scope=Scope("worst", name="a / b")),
            "The best attacker who guesses whether the most exposed record is in the data is right "
            "in 62.5 of 100 cases; guessing from the prior alone gives 50.",
        ),
        (
            accuracy(0.7, status="asymptotic", scope=Scope("worst", 3)),
            "For large n, an attacker who guesses whether a given record is in the data is right in at most 70.0 of "
            "100 cases, whoever the record is and whatever the attacker computes; guessing from the prior alone gives "
            "50. This is asymptotic: an approximation for large n, certified for no particular one.",
        ),
        (
            accuracy(0.52, scope=Scope("average")),
            "An attacker who guesses whether a randomly chosen record is in the data is right in at most 52.0 of 100 "
            "cases; guessing from the prior alone gives 50. This says nothing about a particular record.",
        ),
        (
            accuracy(0.52, "point", "estimated", scope=Scope("median")),
            "The best attacker who guesses whether the median record is in the data is right in 52.0 of 100 cases; "
            "guessing from the prior alone gives 50. This is an estimate, not a guarantee.",
        ),
    ],
)
def test_the_lede_follows_side_status_and_scope(finding, said):
    assert lede(finding) == said


def test_the_unit_is_that_of_the_plan():
    assert "whether a given person is in the data" in lede(accuracy(0.6), unit="person")


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        (accuracy(1.0), "A bound this high excludes nothing."),
        (
            accuracy(1.0, method=(Term("exact"),)),
            "This is exact: of at least one record everybody can tell for certain whether it is in.",
        ),
        (accuracy(0.5), "Nobody does better than guessing."),
        (accuracy(0.9, prior=0.9), "Nobody does better than guessing."),
        (accuracy(0.5, "lower"), "A bound this low shows nothing."),
        (accuracy(0.5, "point"), "Nobody does better than guessing."),
    ],
)
def test_an_empty_bound_says_so(finding, said):
    assert lede(finding).endswith(said)


def test_the_headline_is_the_largest_of_the_first_kind_and_others_follow():
    median, worst = accuracy(0.55, scope=Scope("median")), accuracy(0.9, scope=Scope("worst"))
    said = lede(median, worst, accuracy(0.99, source="another theorem"), accuracy(0.97, prior=0.9))
    assert "at most 90.0 of 100 cases" in said
    assert said.endswith("For the median record it is at most 55.0.")


def test_scopes_become_words():
    words = {"status": "certified", "bound_type": "point"}
    found = [
        accuracy(0.9, scope=Scope("worst", name="Sales / F"), **words),
        accuracy(0.6, scope=Scope("median"), **words),
        accuracy(0.55, scope=Scope("average"), **words),
        accuracy(0.54, **words),
    ]
    said = lede(*found)
    assert "whether the most exposed record is in the data" in said
    assert said.endswith("For the median record it is 60.0. For a random record it is 55.0.")
    cells = bound_result(replace(made_bounds.odd_cells(), findings=tuple(found[:2])))
    assert "whether a record of the most exposed cell is in the data" in bound_words.lede(cells).striptags()
    assert "For the median cell it is 60.0." in bound_words.lede(cells).striptags()


def test_a_bound_without_samples_has_no_level():
    assert interval_head(1.0) == "Interval"
    assert interval_head(0.9) == "90\u202f% interval"


def test_the_size_of_the_data_stands_once():
    data = {"name": "a", "digest": "", "records": 500}
    for name, subject in [
        ("table", "the counts of 500 records"),
        ("leakage", "the mean of 500 records"),
        ("regression", "least squares on 500 rows"),
    ]:
        report = bound([], data=data, subject=subject, bound=name)
        line = " ".join(str(part) for part in bound_words.facts(bound_result(report)))
        assert line.count("500 records") == 1


def test_a_bound_without_a_success_is_said_plainly():
    said = lede(Finding("epsilon", 1.8239, operating_point={"delta": 1e-5}, bound_type="upper", status="certified"))
    assert said == "ε at δ = 10\u22125: at most 1.83."
    assert lede(Finding("leakage_score", 7.75, status="asymptotic")).startswith("Leakage score: 7.7500. This is asymp")


def test_the_large_number_says_its_side():
    for finding, said in [
        (accuracy(0.55001), ("55.1", "of 100 at most")),
        (accuracy(0.55, "lower"), ("55.0", "of 100 at least")),
        (accuracy(0.55, "point"), ("55.0", "of 100")),
        (accuracy(0.55, "point", "asymptotic"), ("55.0", "of 100, for large n")),
        (Finding("eta", 0.2, bound_type="upper", status="certified"), ("0.2000", "at most")),
        (Finding("eta", 0.2, bound_type="point", status="asymptotic"), ("0.2000", "for large n")),
    ]:
        assert bound_words.big(bound_result(bound([finding]))) == said
    assert bound_words.big(bound_result(bound([]))) == ("—", "")


def test_rates_are_those_of_the_headline():
    curve = EpsilonDelta(1.0)
    words = {"bound_type": "upper", "status": "certified"}
    found = [
        accuracy(0.731059),
        Finding("tpr", float(curve.tpr_at(0.01)), operating_point={"fpr": 0.01}, **words),
        Finding("tpr", 0.5, operating_point={"fpr": 0.01}, scope=Scope("median"), **words),
        Finding("tpr", 0.4, operating_point={"fpr": 0.01}, bound_type="lower", status="certified"),
    ]
    said = [each.striptags() for each in bound_words.rates(bound_result(bound(found)))]
    assert said == ["At 1 % false alarms no attacker finds more than 2.8 % of the members."]


def test_the_theorem_with_what_is_known_of_it():
    def said(**theorem):
        given = {"title": "", "source": "", "summary": ""} | theorem
        return bound_words.theorem(bound_result(bound([], theorem=given))).striptags()

    assert (
        said(title="a theorem", source="dong2022, eq. 6", summary="it holds")
        == "A theorem (Dong 2022, eq. 6). It holds."
    )
    assert said(summary="it holds.") == "It holds."
    of_a_command = said(title="dp", source="dong2022, eq. 6", summary="Ceilings, or the epsilon that keeps a limit.")
    assert of_a_command == (
        "The ceiling follows from ε and δ alone: it holds for any data and any attacker (Dong 2022, eq. 6)."
    )
    assert said() == ""


def test_the_note_explains_only_the_sides_that_are_there():
    note = bound_words.summary_note(bound_result(made_bounds.regression())).striptags()
    assert note.startswith(
        "Numbers are cases of 100 in which the attacker is right, when half of the records are members."
    )
    assert [word in note for word in ("An exact value", "A lower bound", "An upper bound")] == [True] * 3
    assert "lower" not in bound_words.summary_note(bound_result(made_bounds.dp()))
    assert bound_words.summary_note(bound_result(bound([]))) == ""


def test_words_of_the_ranking():
    def of(report):
        result = bound_result(report)
        return bound_words.records_heading(result), bound_words.records_intro(result).striptags()

    assert of(made_bounds.leakage()) == (
        "Record by record",
        "5,000 records, from the most to the least exposed: an average hides people.",
    )
    assert of(made_bounds.odd_cells()) == (
        "Cell by cell",
        "6 cells with 1,029 records, from the most to the least exposed.",
    )
    assert of(made_bounds.one_record()) == ("Record by record", "There is one record.")
    many = made_bounds.table([str(n) for n in range(30)], [1] * 30, [0.5] * 30)
    assert bound_words.ties(bound_result(many)) == "30 cells tie; 10 of them are shown"
    assert bound_words.ties(bound_result(made_bounds.leakage())) == ""
