import json

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from leakbound.core.findings import Finding, Term
from leakbound.core.tradeoff import EpsilonDelta, Gaussian
from leakbound.core.tradeoff.claims import Claim
from leakbound.reports import Curve, Report, Verdict
from leakbound.reports.about import GamesFacts
from leakbound.reports.publication import without_records
from leakbound.reports.render.html import page
from leakbound.reports.results.audit.page import audit_page
from leakbound.reports.results.audit.records import median
from leakbound.reports.results.audit.result import results
from leakbound.reports.results.method import assumptions, intervals
from tests.reports import samples
from tests.reports.made import games, made, spread
from tests.reports.page_reading import Page, said
from tests.reports.test_report import SCHEMA


def curves_of(report):
    curves = audit_page(report).curves
    assert curves is not None
    return curves


@pytest.mark.parametrize(
    "won",
    [spread(64, w32=1), spread(64, w10=5, w20=5), spread(64, w10=6, w20=5), spread(64, w1=1, w2=1, w64=1)],
)
def test_against_half_of_the_records_the_attacker_wins_at_least(won):
    each = np.repeat(np.arange(65), won)  # games won, a number a record
    share = float(median(GamesFacts(**games(won))).rstrip("\u202f%"))
    assert (each >= share / 100 * 64 - 1e-9 - 0.5 * 0.64).sum() * 2 >= len(each)
    assert ((each >= share / 100 * 64 + 1).sum()) * 2 < len(each) + 1


KNOWN = "The attacker knows the pool of records from which halves are drawn (Jälkö et al., arXiv:2605.25819)."


@pytest.mark.parametrize("report", [made(), without_records(made())])
def test_of_halves_every_page_says_what_the_attacker_knows(report):
    assert page(report).count(KNOWN) == 1
    assert " ".join(report.table(full=True).split()).count(KNOWN) == 1


@pytest.mark.parametrize(
    "facts", [{"game": "one_model", "models": 9, "targets": 1, "references": 8}, {"references": 0}]
)
def test_other_attackers_are_not_said_to_know_a_pool(facts):
    report = made(facts=facts)
    assert "knows the pool" not in page(report) + report.table(full=True)


def test_summary_note_names_unit_and_what_the_interval_is_over():
    people = audit_page(made(about={"unit": "person"}))
    assert (str(people.fraction), people.units) == ("half", "people")
    assert said(people.over_accuracy) == "Intervals speak of training the models again; the people are fixed."
    assert said(audit_page(made(facts={"prior": 0.2})).fraction) == "20 %"
    assert "the models are fixed" in said(audit_page(samples.one_model_no_claim()).over_accuracy)


def test_note_of_the_curves_counts_games_and_names_the_ceiling():
    report = made(verdict=Verdict(Claim("epsilon", 4.0, 1e-5, "replace_one"), "not_refuted", "epsilon", 4.0, 0.0))
    note = said(curves_of(report).panels[0].caption)
    assert "3,200 member and 3,200 non-member games (64 models, 100 records)." in note
    assert note.endswith("with ε = 4 and δ = 10⁻⁵.")


@pytest.mark.parametrize(
    ("ceiling", "words"),
    [
        (EpsilonDelta(0.0, 0.2), "The ceiling is TPR ≤ FPR + 0.2."),
        (Gaussian(1.5), "with μ = 1.5."),
        (EpsilonDelta(float("inf")), "record"),  # allows everything: nothing to say of it
    ],
)
def test_formula_of_a_ceiling(ceiling, words):
    report = made()
    claimed = Curve("claim", "forest", "claimed", ceiling)
    note = said(curves_of(Report(report.about, report.findings, (*report.curves, claimed), {})).panels[0].caption)
    assert words in note
    assert ("The ceiling" in note) == (ceiling.to_dict() != EpsilonDelta(float("inf")).to_dict())


def test_an_add_remove_claim_is_doubled_where_halves_have_a_fixed_size():
    verdict = Verdict(Claim("epsilon", 2.0, adjacency="add_remove"), "not_refuted", "epsilon", 2.0, 0.0)
    assert "doubled" in said(curves_of(made(verdict=verdict)).notes)
    assert said(curves_of(made(verdict=verdict, facts={"sampling": "poisson"})).notes) == ""
    replaced = Verdict(Claim("epsilon", 2.0, adjacency="replace_one"), "not_refuted", "epsilon", 2.0, 0.0)
    assert said(curves_of(made(verdict=replaced)).notes) == ""


def test_intro_of_the_curves_says_where_the_attack_is_inside():
    at = {"fpr": 0.001, "tpr": 0.43, "low": 0.41, "high": 0.46, "ceiling": 0.055}
    claim = Claim("epsilon", 4.0, 1e-5, "replace_one")
    inside = made(verdict=Verdict(claim, "refuted", "epsilon", 4.0, 5.0, 0.999, "lira", at))
    assert "There LiRA on Random forest lies inside it, at 0.1 % false alarms." in said(curves_of(inside).intro)
    below = made(verdict=Verdict(claim, "refuted", "epsilon", 4.0, 5.0, 0.999, "lira", at | {"low": 0.01}))
    assert "lies inside" not in said(curves_of(below).intro)
    assert "hatched" not in said(curves_of(made()).intro)


def test_histogram_note_says_from_where_a_record_is_exposed():
    report = made(won=spread(64, w32=60, w64=40))
    text = " ".join(Page(page(report)).whole.split())
    first = results(report)[0].first_exposed
    assert f"Blue: {first} games or more, which happens to none of 100 records by guessing" in text
    assert "at least 50 % of the games" in said(text)


def test_records_in_several_lists_are_named():
    report = samples.two_models()
    table = {column: [values[0], values[0]] for column, values in report.record_table.items()}
    table |= {"release": ["forest", "regression"], "exposed": [True, True]}
    part = audit_page(Report(report.about, report.findings, report.curves, table)).recorded
    assert part is not None
    assert said(part.in_both) == f"In more than one list: {table['record'][0]}."


def test_rows_of_customers_are_not_counted_as_customers():
    data = {"name": "kunden.csv", "digest": "", "records": 1225}
    about = {"unit": "customer"}
    grouped = audit_page(made(facts={"data": data, "units": 1200}, about=about))
    assert "Data: kunden.csv, 1,225 rows of 1,200 customers." in said(grouped.played[0].sentences)
    single = audit_page(made(facts={"data": data}, about=about))
    assert "Data: kunden.csv, 1,225 customers." in said(single.played[0].sentences)


@pytest.mark.parametrize("game", ["half_split", "one_model", "per_datum", "average_datum", "canaries", "scores"])
def test_every_game_has_a_sentence(game):
    written = said(audit_page(made(facts={"game": game, "population": 10})).played[0].sentences)
    assert "whose membership nobody guesses: 10 records." in written
    assert "Every model is attacked once; the other 63 are its references." in written


def test_what_who_sees_the_steps_knows_is_said_where_steps_are_seen():
    distribution, others = (
        said(audit_page(made(facts={"knowledge": known}, about={"unit": "person"})).played[0].sentences)
        for known in ("distribution", "others")
    )
    assert (
        "knows the distribution of the gradients of the other people, not which of them are in a batch." in distribution
    )
    assert "knows which of the other people are in each batch, and their gradients." in others
    assert "Who sees the steps" not in said(audit_page(made()).played[0].sentences)
    Draft202012Validator(SCHEMA).validate(json.loads(made(facts={"knowledge": "distribution"}).to_json()))


def test_method_lists_intervals_and_assumptions_once():
    common = {"release": "forest", "method": (Term("cluster_t"),), "assumptions": (Term("models are independent"),)}
    found = (Finding("auc", 0.7, 0.6, 0.8, **common), Finding("advantage", 0.3, 0.2, 0.4, **common))
    listed = results(made(findings=found))
    assert intervals(listed) == [("area under the curve and advantage", "Cluster t.")]
    assert assumptions(listed) == ["Models are independent."]
    assert said(audit_page(made(findings=found)).limits).endswith("A better attack may exist.")
