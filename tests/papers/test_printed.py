"""What is printed, and how it is judged."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from leakscope.papers import PAPERS
from leakscope.papers.printed import Ours, Printed, printed

ERRATA = (Path(__file__).resolve().parents[2] / "docs" / "errata.md").read_text(encoding="utf-8")
THEIRS = [printed(paper) for paper in dict.fromkeys(each.paper for each in PAPERS.values())]
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
        (7.79, 0.01, "agrees"),
        (7.80, 0.01, "differs"),
    ],
)
def test_a_number_agrees_to_its_tolerance_and_three_standard_errors(value, error, verdict):
    claim = number("about", value=7.75, tolerance=0.01)
    assert claim.judged(Ours(value, error)).verdict == verdict


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
    assert number(kind, value=1.0 if kind == "at_most" else 16.0).judged(Ours(value)).verdict == verdict


def test_a_statement_holds_or_not():
    assert number("holds").judged(Ours(True)).verdict == "agrees"
    assert number("holds").judged(Ours(False)).verdict == "differs"


def test_a_difference_with_an_erratum_is_the_papers():
    claim = number("about", value=0.34, erratum=9)
    assert claim.judged(Ours(0.1)).verdict == "erratum"
    assert claim.judged(Ours(0.34)).verdict == "agrees"


def test_what_is_smaller_or_missing_is_not_judged():
    claim = number("about", value=0.694)
    assert claim.judged(Ours(0.6, smaller="400 of 15,000 images")).verdict == "smaller"
    assert claim.judged(None).verdict == "not run"
    assert claim.judged(None).difference is None


def test_the_difference_is_ours_less_the_printed():
    assert number("about", value=1.0).judged(Ours(1.5)).difference == 0.5


def test_rounding_alone_is_no_difference():
    assert number("about", value=0.1).judged(Ours(0.1 + 1e-15)).verdict == "agrees"
