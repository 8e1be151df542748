"""What the document of a bound is handed: which sentences, which side, which rounding."""

from dataclasses import replace

import pytest

from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.tradeoff import EpsilonDelta
from leakbound.reports.results.bound_page import bound_page
from tests.reports import made_bounds
from tests.reports.made_bounds import bound


def lede(*findings, **about):
    """The lede of the page, of which the text of a terminal is the same document."""
    text = bound(findings, **about).table(4000)
    return text.split("\n\n")[1]


def accuracy(value, bound_type="upper", status="certified", prior=0.5, **words):
    return Finding("accuracy", value, operating_point={"prior": prior}, bound_type=bound_type, status=status, **words)


WHOEVER = " That holds whoever the record is and whatever the attacker computes."
EVEN = " Guessing from the prior alone is right in 50."


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        (
            accuracy(0.55001),
            "An attacker who guesses whether a given record is in the data is right in at most 55.1 of 100 cases."
            + WHOEVER + EVEN,
        ),
        (
            accuracy(0.55, confidence=0.95),
            "An attacker who guesses whether a given record is in the data is right in at most 55.0 of 100 cases."
            + WHOEVER + " It holds except with probability 5 % over the sampling." + EVEN,
        ),
        (
            accuracy(0.93, prior=0.1),
            "An attacker who guesses whether a given record is in the data is right in at most 93.0 of 100 cases."
            + WHOEVER + " Guessing from the prior alone, always that it is not, is right in 90.",
        ),
        (
            accuracy(0.5499, "lower"),
            "Some attacker who guesses whether a record is in the data is right in at least 54.9 of 100 cases." + EVEN,
        ),
        (
            accuracy(0.62504, "point", scope=Scope("worst", name="a / b")),
            "The best attacker who guesses whether the most exposed record is in the data is right in 62.5 of 100 "
            "cases." + EVEN,
        ),
        (
            accuracy(0.7, status="asymptotic", scope=Scope("worst", 3)),
            "For large n, an attacker who guesses whether a given record is in the data is right in at most 70.0 of "
            "100 cases." + WHOEVER + EVEN
            + " This is asymptotic: an approximation for large n, certified for no particular one.",
        ),
        (
            accuracy(0.52, scope=Scope("average")),
            "An attacker who guesses whether a randomly chosen record is in the data is right in at most 52.0 of 100 "
            "cases." + EVEN + " This says nothing about a particular record.",
        ),
        (
            accuracy(0.52, "point", "estimated", scope=Scope("median")),
            "The best attacker who guesses whether the median record is in the data is right in 52.0 of 100 cases."
            + EVEN + " This is an estimate, not a guarantee.",
        ),
    ],
)  # fmt: skip
def test_the_lede_follows_side_status_and_scope(finding, said):
    assert lede(finding) == said


def test_the_unit_is_that_of_the_plan():
    assert "whether a given person is in the data" in lede(accuracy(0.6), unit="person")
    assert "whether an image is in the data" in lede(accuracy(0.6, "lower"), unit="image")


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        (accuracy(1.0), "A bound this high excludes nothing."),
        (
            accuracy(1.0, method=(Term("exact"),)),
            "This is exact: of at least one record everybody can tell for certain whether it is in.",
        ),
        (accuracy(0.5), "Nobody does better than guessing."),
        (accuracy(0.5 + 1e-7), "Nobody does better than guessing by more than one case in a million."),
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
    assert "For the median record it is at most 55.0." in said


@pytest.mark.parametrize(
    ("game", "said"),
    [
        (Term("fixed_number", k=1500), "1,500 of the 3,000 records are drawn at random into the data."),
        (Term("each_by_a_coin", unit="r", prior=0.1), "Each of the 3,000 records is in the data with probability 0.1."),
        (Term("random_half", units="records"), "A random half of the 3,000 records is the data."),
    ],
)  # fmt: skip
def test_the_game_stands_first_where_it_draws_the_records(game, said):
    data = {"name": "a", "digest": "", "records": 3000}
    assert lede(accuracy(0.6, game=game), data=data).startswith(said)
    assert not lede(accuracy(0.6, game=Term("swap")), data=data).startswith(said[:5])


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
    assert "For the median record it is 60.0. For a random record it is 55.0." in said
    cells = replace(made_bounds.odd_cells(), findings=tuple(found[:2])).table(4000)
    assert "whether a record of the most exposed cell is in the data" in cells
    assert "For the median cell it is 60.0." in cells


def test_a_bound_without_samples_has_no_level():
    assert str(bound_page(bound([], confidence=1.0)).interval) == "Interval"
    assert str(bound_page(bound([], confidence=0.9)).interval) == "90\u202f% interval"


def test_the_size_of_the_data_stands_once():
    data = {"name": "a", "digest": "", "records": 500}
    for name, subject in [
        ("table", "the counts of 500 records"),
        ("leakage", "the mean of 500 records"),
        ("regression", "least squares on 500 rows"),
    ]:
        facts = bound([], data=data, subject=subject, bound=name).table(4000).splitlines()[1]
        assert facts.count("500 records") == 1


def test_a_bound_without_a_success_is_said_plainly():
    said = lede(Finding("epsilon", 1.8239, operating_point={"delta": 1e-5}, bound_type="upper", status="certified"))
    assert said == "ε at δ = 10⁻⁵: at most 1.83."
    assert lede(Finding("leakage_score", 7.75, status="asymptotic")).startswith("Leakage score: 7.7500. This is asymp")
    assert "(median record)" in lede(Finding("leakage_score", 7.75, status="asymptotic", scope=Scope("median")))


def test_the_large_number_says_its_side():
    for finding, said in [
        (accuracy(0.55001), ("55.1", "of 100 at most")),
        (accuracy(0.55, "lower"), ("55.0", "of 100 at least")),
        (accuracy(0.55, "point"), ("55.0", "of 100")),
        (accuracy(0.55, "point", "asymptotic"), ("55.0", "of 100, for large n")),
        (Finding("eta", 0.2, bound_type="upper", status="certified"), ("0.2000", "at most")),
        (Finding("eta", 0.2, bound_type="point", status="certified"), ("0.2000", "None")),
        (Finding("eta", 0.2, bound_type="point", status="asymptotic"), ("0.2000", "for large n")),
    ]:
        answer = bound_page(bound([finding])).answer
        assert (answer.right, str(answer.side)) == said
    assert bound_page(bound([])).answer.right == "—"


def test_rates_are_those_of_the_headline():
    curve = EpsilonDelta(1.0)
    words = {"bound_type": "upper", "status": "certified"}
    found = [
        accuracy(0.731059),
        Finding("tpr", float(curve.tpr_at(0.01)), operating_point={"fpr": 0.01}, **words),
        Finding("tpr", 0.5, operating_point={"fpr": 0.01}, scope=Scope("median"), **words),
        Finding("tpr", 0.4, operating_point={"fpr": 0.01}, bound_type="lower", status="certified"),
    ]
    said = [str(rate).replace("\u202f", " ") for rate in bound_page(bound(found)).answer.rates]
    assert said == ["At 1 % false alarms no attacker finds more than 2.8 % of the members."]


def test_only_the_sides_that_are_there_are_explained():
    meanings = [each.id for each in bound_page(made_bounds.regression()).answer.meanings]
    assert sorted(meanings) == ["meaning.lower", "meaning.point", "meaning.upper"]
    assert [each.id for each in bound_page(made_bounds.dp()).answer.meanings] == ["meaning.upper"]
    assert bound_page(bound([])).answer.meanings == ()


def test_words_of_the_ranking():
    def of(report):
        ranking = bound_page(report).ranking
        return ranking.row_title, str(ranking.intro), ranking.ties and str(ranking.ties)

    leakage = "5,000 records, from the most to the least exposed: an average hides people."
    assert of(made_bounds.leakage()) == ("Record", leakage, None)
    cells = "6 cells with 1,029 records, from the most to the least exposed."
    assert of(made_bounds.odd_cells()) == ("Cell", cells, "2 cells tie.")
    assert of(made_bounds.one_record()) == ("Record", "There is one record.", None)
    many = made_bounds.table([str(n) for n in range(30)], [1] * 30, [0.5] * 30)
    assert of(many)[2] == "30 cells tie; 10 of them are shown."


def test_a_table_has_the_findings_of_a_scope_and_no_title_where_it_is_the_only_one():
    assert [table.title for table in bound_page(made_bounds.dp()).tables] == [""]
    assert [table.title for table in bound_page(made_bounds.leakage()).tables] == [
        "Most exposed record (17)",
        "Median record",
    ]
    (table,) = bound_page(made_bounds.empty()).tables
    assert (str(table.rows[0].bound_type), table.rows[0].status) == ("not applicable", "the covariance has rank 2 of 3")
