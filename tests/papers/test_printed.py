"""What is printed, and how it is compared."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import pytest

from leakbound.papers import PAPERS
from leakbound.papers.printed import Ours, Printed, changes, judged_again, printed, settings

ERRATA = (Path(__file__).resolve().parents[2] / "docs" / "errata.md").read_text(encoding="utf-8")
PAPERS_OF = tuple(dict.fromkeys(each.paper for each in PAPERS.values()))
THEIRS = [printed(paper) for paper in PAPERS_OF]
ALL = [claim for figures in THEIRS for claims in figures.values() for claim in claims.values()]


def number(kind, **given) -> Printed:
    return Printed("a/b", "key", "It is so", "Figure 1", kind, **given)


def test_at_least_sixty_numbers_and_statements_are_compared():
    assert len(ALL) >= 60


def test_every_claim_belongs_to_an_experiment_and_every_experiment_has_claims():
    assert {claim.experiment for claim in ALL} == set(PAPERS)


@pytest.mark.parametrize("claim", ALL, ids=[f"{claim.experiment}-{claim.key}" for claim in ALL])
def test_every_claim_is_whole(claim):
    assert (claim.value is None) == (claim.kind == "holds")
    assert claim.kind == "holds" or claim.because
    assert claim.tolerance >= 0
    assert claim.where
    assert not re.search(r"[{}]", claim.key + claim.says)
    if claim.erratum is not None:
        assert f"(erratum-{claim.erratum})=" in ERRATA
        title = ERRATA.split(f"[{claim.erratum}](#erratum-{claim.erratum}) | ")[1]
        assert title.startswith(claim.experiment.split("/")[0])


@pytest.mark.parametrize(
    ("value", "error", "verdict"),
    [
        (7.75, 0.0, "agrees"),
        (7.76, 0.0, "agrees"),
        (7.765, 0.0, "differs"),
        (7.752, 0.002, "agrees"),
        (7.752, 0.003, "cannot tell"),  # 7.743 to 7.761
        (7.79, 0.01, "cannot tell"),
        (7.80, 0.01, "differs"),
        (7.75, 1.0, "cannot tell"),  # a large error of ours proves nothing
        (9.0, 1.0, "cannot tell"),
    ],
)
def test_a_number_agrees_only_if_its_interval_is_within_the_tolerance(value, error, verdict):
    claim = number("about", value=7.75, tolerance=0.01)
    assert claim.compared_with(Ours(value, error)).verdict == verdict


@pytest.mark.parametrize(
    ("kind", "value", "verdict"),
    [
        ("at_most", 0.9, "agrees"),
        ("at_most", 6.4, "differs"),
        ("at_least", 16.0, "agrees"),
        ("at_least", 0.5, "differs"),
    ],
)
def test_limits_are_one_sided(kind, value, verdict):
    assert number(kind, value=1.0 if kind == "at_most" else 16.0).compared_with(Ours(value)).verdict == verdict


@pytest.mark.parametrize(
    ("kind", "value", "error", "verdict"),
    [
        ("at_most", 0.9, 0.01, "agrees"),
        ("at_most", 0.9, 0.1, "cannot tell"),
        ("at_most", 1.1, 0.1, "cannot tell"),
        ("at_most", 1.4, 0.1, "differs"),
        ("at_least", 1.4, 0.1, "agrees"),
        ("at_least", 1.1, 0.1, "cannot tell"),
        ("at_least", 0.5, 0.1, "differs"),
    ],
)
def test_limits_need_the_whole_interval(kind, value, error, verdict):
    assert number(kind, value=1.0).compared_with(Ours(value, error)).verdict == verdict


def test_the_error_of_the_printed_number_is_added():
    claim = number("about", value=1.0, tolerance=0.01, error=0.03)  # 0.9 to 1.1
    assert claim.compared_with(Ours(1.05, 0.016)).verdict == "agrees"
    assert claim.compared_with(Ours(1.05, 0.018)).verdict == "cannot tell"
    assert claim.compared_with(Ours(1.2, 0.03)).verdict == "differs"


def test_the_same_value_never_agrees_by_a_larger_error():
    """Where a small error differs, a large one can at most not tell."""
    claim = number("about", value=0.25, tolerance=0.005)
    verdicts = [claim.compared_with(Ours(0.217, error)).verdict for error in (0.004, 0.02, 0.2)]
    assert verdicts == ["differs", "cannot tell", "cannot tell"]


def test_a_statement_that_is_not_clear_has_no_verdict():
    claim = number("holds", erratum=9)
    assert claim.compared_with(Ours.stated(None)).verdict == "cannot tell"
    assert claim.compared_with(Ours.stated(None)).row()["ours"] is None
    assert [claim.compared_with(Ours.stated(each)).verdict for each in (True, False)] == ["agrees", "erratum"]


def test_a_statement_holds_or_not():
    assert number("holds").compared_with(Ours(True)).verdict == "agrees"
    assert number("holds").compared_with(Ours(False)).verdict == "differs"


def test_a_difference_with_an_erratum_is_the_papers():
    claim = number("about", value=0.34, erratum=9)
    assert claim.compared_with(Ours(0.1)).verdict == "erratum"
    assert claim.compared_with(Ours(0.34)).verdict == "agrees"


def test_what_is_smaller_or_missing_has_no_verdict():
    claim = number("about", value=0.694)
    assert claim.compared_with(Ours(0.6, smaller="400 of 15,000 images")).verdict == "smaller"
    assert claim.compared_with(None).verdict == "not run"
    assert claim.compared_with(None).difference is None


def test_the_difference_is_ours_less_the_printed():
    assert number("about", value=1.0).compared_with(Ours(1.5)).difference == 0.5


def test_rounding_alone_is_no_difference():
    assert number("about", value=0.1).compared_with(Ours(0.1 + 1e-15)).verdict == "agrees"


def test_a_difference_is_explained_only_by_a_setting_that_agrees_by_the_same_rule():
    claim = number("about", value=1.0, tolerance=0.1)
    near, wide, far = Ours(1.05), Ours(1.05, 0.05), Ours(2.0)
    assert claim.compared_with(far, {"code": near}).explained_by == "code"
    assert claim.compared_with(far, {"first": far, "second": near, "third": near}).explained_by == "second"
    assert claim.compared_with(far, {"code": wide}).explained_by == ""
    assert claim.compared_with(far, {"code": replace(near, smaller="a tenth")}).explained_by == ""
    assert claim.compared_with(far).explained_by == ""
    explained = claim.compared_with(far, {"code": near})
    assert explained.verdict == "differs"
    assert [tried["verdict"] for tried in explained.row()["tried"]] == ["agrees"]


def test_only_a_difference_needs_an_explanation():
    claim = number("about", value=1.0, tolerance=0.1)
    assert claim.compared_with(Ours(1.0), {"code": Ours(1.0)}).explained_by == ""
    assert claim.compared_with(None, {"code": Ours(1.0)}).explained_by == ""


def test_a_setting_that_agrees_comes_before_an_erratum():
    claim = number("about", value=1.0, tolerance=0.1, erratum=9)
    explained = claim.compared_with(Ours(2.0), {"code": Ours(1.0)})
    assert (explained.verdict, explained.explained_by) == ("differs", "code")
    wide = claim.compared_with(Ours(2.0), {"code": Ours(1.0, 0.2)})
    assert (wide.verdict, wide.explained_by) == ("erratum", "")


def test_what_could_not_have_failed_is_an_identity_unless_it_fails():
    claim = number("about", value=1.0, identity="by definition")
    assert [claim.compared_with(Ours(value)).verdict for value in (1.0, 2.0)] == ["identity", "differs"]
    assert claim.compared_with(Ours(1.0)).row()["identity"] == "by definition"


def test_the_claims_that_could_not_have_failed():
    assert sum(bool(claim.identity) for claim in ALL) == 16


@pytest.mark.parametrize(
    ("kind", "error", "can_agree"),
    [("about", 0.01, True), ("about", 0.013, True), ("about", 0.014, False), ("at_most", 0.014, True)],
)
def test_whether_any_value_with_such_an_error_agrees(kind, error, can_agree):
    """.01 and three printed errors of .01 hold three of ours up to .0133."""
    claim = number(kind, value=1.0, tolerance=0.01, error=0.01)
    assert claim.compared_with(Ours(1.0, error)).row()["can_agree"] is can_agree
    assert (claim.compared_with(Ours(1.0, error)).verdict == "agrees") == (can_agree and kind == "about")


def test_a_lower_bound_has_no_upper_end():
    claim = number("about", value=1.0, tolerance=0.1)
    verdicts = [claim.compared_with(Ours(value, at_least=True)).verdict for value in (0.5, 1.0, 1.2)]
    assert verdicts == ["cannot tell", "cannot tell", "differs"]


def test_claims_that_are_kept_are_judged_by_what_is_printed_today():
    """As in the file of a run, whose verdicts are old, and which lacks a claim."""
    claims = printed("delgrosso2021")["section33"]
    first, *others = [claim.compared_with(Ours(5.0, 0.1)).row() for claim in claims.values()]
    rows = [first | {"verdict": "agrees"}, *others[1:]]
    found = judged_again("delgrosso2021/section33", rows)
    assert [row["verdict"] for row in found] == ["differs", "not run", "differs", "differs"]
    assert (found[0]["ours"], found[0]["error"], found[1]["ours"]) == (5.0, 0.1, None)
    smaller = claims["success"].compared_with(Ours(5.0, smaller="a tenth")).row()
    unclear = claims["success"].compared_with(Ours.stated(None, detail="why")).row()
    for row in (smaller, unclear):
        assert judged_again("delgrosso2021/section33", [row])[0] == row


@pytest.mark.parametrize("paper", PAPERS_OF)
def test_every_setting_belongs_to_an_experiment_and_says_why(paper):
    for figure, by_name in settings(paper).items():
        assert f"{paper}/{figure}" in PAPERS
        for name, setting in by_name.items():
            assert name == setting.name != "text"
            assert setting.says
            assert setting.why
            assert not (setting.says + setting.why).endswith(".")


def test_every_change_since_the_first_commit_of_the_claims_is_listed():
    """``first_claims.csv`` holds each claim as it was first committed, before it was run; ``first_claims.py`` makes it.

    A claim that was committed later than the first ones of its experiment is a change, too.
    """
    with (Path(__file__).parent / "first_claims.csv").open(newline="", encoding="utf-8") as file:
        first = {(row["experiment"], row["key"]): row for row in csv.DictReader(file)}
    now = {(claim.experiment, claim.key): claim for claim in ALL}
    begun = {experiment: min(row["since"] for row in rows) for experiment, rows in by_experiment(first).items()}
    changed = first.keys() ^ now.keys()
    changed |= {name for name, row in first.items() if row["since"] != begun[row["experiment"]]}
    for name in first.keys() & now.keys():
        row, claim = first[name], now[name]
        before = (row["kind"], row["value"], float(row["tolerance"]), row["erratum"], 0.0)
        value = "" if claim.value is None else str(claim.value)
        after = (claim.kind, value, claim.tolerance, str(claim.erratum or ""), claim.error)
        if before != after:
            changed.add(name)
    listed = {(change.experiment, key) for paper in PAPERS_OF for change in changes(paper) for key in change.keys}
    assert changed <= listed
    assert listed <= first.keys() | now.keys()
    assert {name: claim.since for name, claim in now.items()} == {name: first[name]["since"] for name in now}


def by_experiment(first):
    groups = {}
    for row in first.values():
        groups.setdefault(row["experiment"], []).append(row)
    return groups


def test_changes_are_shown():
    page = (Path(__file__).resolve().parents[2] / "docs" / "papers" / "changes.md").read_text(encoding="utf-8")
    for paper in PAPERS_OF:
        for change in changes(paper):
            assert change.experiment in page
            assert change.what in page
