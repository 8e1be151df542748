"""Gates: limits against the strongest attack, and the exit code that follows."""

from __future__ import annotations

from typing import Any

import pytest

from leakbound.cli.gates import exit_code, failures, refuted, remarks
from leakbound.core.findings import Finding, Term
from leakbound.core.tradeoff import EpsilonDelta
from leakbound.core.tradeoff.claims import Claim
from leakbound.reports import Curve, Report, Verdict
from tests.reports.abouts import changed
from tests.reports.made import made

CLAIM = Claim("epsilon", 4.0, adjacency="add_remove")


def report(*findings: Finding, words: tuple[Any, ...] = (), names: tuple[str, ...] = ("forest",)) -> Report:
    """Findings of releases, and a verdict a word on the first of them."""
    curves = [
        Curve(f"claim {word}", names[0], "claimed", EpsilonDelta(1.0, 0.0), verdict=Verdict(CLAIM, word))
        for word in words
    ]
    (release,) = made().about.releases
    releases = [release.model_dump() | {"name": name} for name in names]
    return Report(changed(made().about, releases=releases), findings, curves)


def auc(value: float | None, attack: str, release: str = "forest", reason: Term | None = None) -> Finding:
    return Finding("auc", value, release=release, attack=attack, reason=reason)


def tpr(value: float, fpr: float, attack: str = "lira") -> Finding:
    return Finding("tpr", value, operating_point={"fpr": fpr}, release="forest", attack=attack)


def test_the_strongest_attack_counts():
    found = report(auc(0.55, "gap"), auc(0.71, "lira"), auc(0.6, "loss"))
    assert failures(found, ["auc=0.7"]) == ["forest: auc=0.7 is exceeded: lira reaches 0.71"]
    assert failures(found, ["auc=0.72"]) == []


@pytest.mark.parametrize(("limit", "code"), [("auc=0.70", 3), ("auc=0.71", 0), ("auc=0.72", 0)])
def test_a_limit_is_exceeded_above_it_only(limit, code):
    assert exit_code(report(auc(0.71, "lira")), [limit]) == code


def test_a_rate_is_taken_where_it_was_asked_for():
    found = report(tpr(0.3, 0.01), tpr(0.02, 0.001))
    assert failures(found, ["tpr@0.01=0.25"]) == ["forest: tpr@0.01=0.25 is exceeded: lira reaches 0.3"]
    assert failures(found, ["tpr@0.001=0.25"]) == []


def test_what_was_not_measured_fails_with_its_reason():
    found = report(
        auc(None, "lira", reason=Term("needs reference models")), auc(None, "rmia", reason=Term("needs a population"))
    )
    assert failures(found, ["auc=0.9"]) == [
        "forest: auc=0.9 could not be measured: needs a population; needs reference models"
    ]
    assert failures(found, ["epsilon=3"]) == ["forest: epsilon=3 could not be measured: there is no such finding"]
    assert exit_code(found, ["auc=0.9"]) == 3


def test_one_attack_that_could_be_played_is_enough():
    found = report(auc(None, "rmia", reason=Term("needs a population")), auc(0.5, "gap"))
    assert exit_code(found, ["auc=0.9"]) == 0


def test_each_release_is_held_to_each_limit():
    found = report(auc(0.6, "gap"), auc(0.8, "gap", release="tree"), names=("forest", "tree"))
    assert failures(found, ["auc=0.7", "auc=0.5"]) == [
        "tree: auc=0.7 is exceeded: gap reaches 0.8",
        "forest: auc=0.5 is exceeded: gap reaches 0.6",
        "tree: auc=0.5 is exceeded: gap reaches 0.8",
    ]


def test_a_refuted_claim_wins_over_a_limit():
    found = report(auc(0.9, "lira"), words=("not_refuted", "refuted"))
    assert refuted(found) == ["forest: epsilon = 4, add/remove"]
    assert exit_code(found, ["auc=0.5"]) == 2
    assert exit_code(found) == 2


@pytest.mark.parametrize("word", ["not_refuted", "cannot_be_tested"])
def test_other_verdicts_do_not_stop_a_pipeline(word):
    assert exit_code(report(words=(word,))) == 0


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("cannot_hold", "cannot hold: the training as declared gives more"),
        ("not_supported", "is not supported: the accountant shows more for the training as declared"),
    ],
)
def test_a_claim_that_the_accountant_denies_stops_a_pipeline(word, says):
    found = report(words=(word,))
    assert refuted(found) == []  # nothing was measured
    assert failures(found, []) == [f"forest: epsilon = 4, add/remove {says}"]
    assert exit_code(found) == 3
    assert exit_code(report(words=(word, "refuted"))) == 2


def test_a_limit_is_read_as_a_limit():
    with pytest.raises(ValueError, match="--fail-above takes QUANTITY"):
        failures(report(), ["auk=1"])


def test_a_ceiling_is_not_what_was_found():
    promised = Finding("epsilon", 4.8, release="forest", bound_type="upper", status="certified")
    found = report(promised, Finding("epsilon", 1.5, release="forest", attack="likelihood_ratio", bound_type="lower"))
    assert failures(found, ["epsilon=2"]) == []
    assert failures(found, ["epsilon=1"]) == ["forest: epsilon=1 is exceeded: likelihood_ratio reaches 1.5"]
    assert failures(report(promised), ["epsilon=9"]) == [
        "forest: epsilon=9 could not be measured: there is no such finding"
    ]


def test_a_limit_on_what_a_release_adds_to_guesses_of_an_attribute():
    found = report(Finding("attribute_gain", 0.12, release="forest", attack="loss"))
    assert failures(found, ["attribute_gain=0.1"]) == ["forest: attribute_gain=0.1 is exceeded: loss reaches 0.12"]
    assert failures(found, ["attribute_gain=0.15"]) == []


def estimate(value: float, attack: str = "lira") -> Finding:
    """A rate over too few models: without an interval."""
    return Finding(
        "tpr",
        value,
        operating_point={"fpr": 0.01},
        release="forest",
        attack=attack,
        detail={"between_model_spread": 1.23},
        refused="too_few_models",
    )


@pytest.mark.parametrize("value", [0.01, 0.9])
def test_a_rate_without_an_interval_keeps_no_limit_and_breaks_none(value):
    found = report(estimate(value), tpr(0.02, 0.01, "loss"))
    (said,) = failures(found, ["tpr@0.01=0.05"])
    assert said.startswith("forest: tpr@0.01=0.05 could not be measured: LiRA has no interval, for its scores shift")
    assert "(spread 1.2)" in said
    assert "It has one with 400 models, perhaps with fewer; or limit tpr_these_models" in said
    assert exit_code(found, ["tpr@0.01=0.05"]) == 3


def test_a_rate_with_an_interval_breaks_the_limit_beside_one_without():
    found = report(estimate(0.9), tpr(0.3, 0.01, "loss"))
    assert failures(found, ["tpr@0.01=0.05"]) == ["forest: tpr@0.01=0.05 is exceeded: loss reaches 0.3"]


def test_the_rate_for_these_models_has_a_limit_of_its_own():
    these = Finding(
        "tpr_these_models", 0.03, 0.02, 0.04, operating_point={"fpr": 0.01}, release="forest", attack="lira"
    )
    found = report(estimate(0.9), these)
    assert exit_code(found, ["tpr_these_models@0.01=0.05"]) == 0
    assert exit_code(found, ["tpr_these_models@0.01=0.02"]) == 3


def test_the_message_says_whether_the_attack_without_an_interval_is_the_only_trouble():
    with_interval = Finding("tpr", 0.02, 0.01, 0.04, operating_point={"fpr": 0.01}, release="forest", attack="loss")
    says = "the intervals of all other attacks lie below the limit"
    assert says in failures(report(estimate(0.01), with_interval), ["tpr@0.01=0.05"])[0]
    assert says not in failures(report(estimate(0.01), with_interval), ["tpr@0.01=0.03"])[0]
    assert says not in failures(report(estimate(0.01)), ["tpr@0.01=0.05"])[0]


def of_one_model(*findings: Finding, shared: int = 0) -> Report:
    """The report of a trained model."""
    (release,) = made().about.releases
    facts = release.model_dump() | {"name": "forest", "game": "one_model", "shared": shared}
    return Report(changed(made().about, releases=[facts]), findings, [])


def test_records_on_both_sides_are_no_measurement():
    assert failures(of_one_model(auc(0.55, "loss"), shared=10), ["auc=0.6"]) == [
        "forest: auc=0.6 could not be measured: 10 of the others are among the members too, so attacks look weaker "
        "than they are; leave these records out of the others"
    ]
    assert failures(of_one_model(auc(0.55, "loss")), ["auc=0.6"]) == []
    (exceeded,) = failures(of_one_model(auc(0.65, "loss"), shared=10), ["auc=0.6"])
    assert "is exceeded" in exceeded
    assert exit_code(of_one_model(auc(0.55, "loss"), shared=10), ["auc=0.6"]) == 3
    assert exit_code(of_one_model(auc(0.55, "loss"), shared=10)) == 0  # without a limit


def test_a_limit_says_which_attacks_it_does_not_know_of():
    missing = [auc(None, name, reason=Term("no_reference", n=0)) for name in ("lira", "rmia")]
    found = of_one_model(auc(0.55, "loss"), auc(0.52, "gap"), *missing)
    (said,) = remarks(found, ["auc=0.6"])
    assert said.startswith("forest: compared with what loss and gap reached; LiRA and rmia did not run")
    assert "no reference models to compare with" in said
    assert remarks(found, []) == []
    assert remarks(of_one_model(auc(0.55, "loss"), auc(0.5, "lira")), ["auc=0.6"]) == []
