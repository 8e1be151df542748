"""Bounds from numbers, against formulas worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from leakbound.bounding.api import bound
from leakbound.core.findings import Finding, Scope, Term
from leakbound.reports import Report


def value(report: Report, quantity: str, **at: float) -> float:
    return only(report, quantity, **at).value or 0.0


def only(report: Report, quantity: str, **at: float) -> Finding:
    found = [
        each
        for each in report.findings
        if each.quantity == quantity and at.items() <= dict(each.operating_point).items()
    ]
    assert len(found) == 1, found
    return found[0]


def test_dp() -> None:
    report = bound("dp", epsilon=1.0, delta=0.01, fpr=(0.1,))
    assert value(report, "eta") == pytest.approx(0.233747992844)
    assert value(report, "accuracy") == pytest.approx(0.733747992844)
    assert value(report, "tpr", fpr=0.1) == pytest.approx(0.01 + math.e * 0.1)
    assert only(report, "accuracy").bound_type == "upper"
    assert report.curves[0].role == "certified"


def test_dp_at_another_prior() -> None:
    report = bound("dp", epsilon=1.0, prior=0.6)
    assert value(report, "accuracy") == pytest.approx(0.731058578630)
    assert value(report, "posterior") == pytest.approx(0.6 * math.e / (0.6 * math.e + 0.4))


def test_a_gain_that_nobody_sees_is_not_shown() -> None:
    """The upper bound is 0.01 + 1e-10: it was printed as 99.1, next to a guess of 99."""
    report = bound("dpsgd", noise_multiplier=0.95, sample_rate=0.01, steps=1000, prior=0.01)
    assert 1e-12 < value(report, "eta") < 1e-7
    text = " ".join(report.table(200, full=True).split())
    assert "right in at most 99.0 of 100 cases" in text
    assert "Nobody does better than guessing by more than one case in a million." in text
    assert "Gain over guessing of any attacker, prior 1 % 1.00 \u00d7 10⁻⁶" in text


@pytest.mark.parametrize("prior", [0.01, 0.5, 0.9])
def test_the_mean_posterior_of_a_gaussian(prior: float) -> None:
    """Against its integral: never below, and close."""
    given = value(bound("gaussian", mu=1.0, prior=prior), "mean_posterior", prior=prior)
    x = np.linspace(-12, 13, 20_001)
    posterior = 1 / (1 + (1 - prior) / prior * np.exp(0.5 - x))
    exact = float(np.trapezoid(norm.pdf(x, 1.0) * posterior, x))
    assert exact <= given < exact + 1e-5


def test_no_posterior_where_some_releases_may_prove_membership() -> None:
    quantities = {each.quantity for each in bound("dp", epsilon=1.0, delta=1e-5).findings}
    assert "posterior" not in quantities
    assert "mean_posterior" in quantities
    assert "accuracy" in quantities


def test_no_finite_epsilon_without_a_delta() -> None:
    assert value(bound("gaussian", mu=1.0, delta=0.0), "epsilon") == math.inf
    report = bound("dpsgd", noise_multiplier=1.0, sample_rate=1.0, steps=1, delta=0.0)
    assert value(report, "epsilon") == math.inf


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (1.0, 1e-3)])
def test_a_swap_is_two_steps_of_adding_and_removing(epsilon: float, delta: float) -> None:
    swapped = bound("dp", epsilon=epsilon, delta=delta, adjacency="add_remove")
    doubled = bound("dp", epsilon=2 * epsilon, delta=(1 + math.exp(epsilon)) * delta)
    assert value(swapped, "accuracy") == pytest.approx(value(doubled, "accuracy"))
    alone = bound("dp", epsilon=epsilon, delta=delta, adjacency="add_remove", sampling="poisson")
    assert value(alone, "accuracy") == pytest.approx(value(bound("dp", epsilon=epsilon, delta=delta), "accuracy"))


def test_a_claim_about_swaps_says_nothing_of_coins() -> None:
    with pytest.raises(ValueError, match="bound dp: a replace-one claim says nothing of a record"):
        bound("dp", epsilon=1.0, sampling="poisson")


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 50.0, 1e3, 1e6])
def test_no_epsilon_crashes(epsilon: float) -> None:
    report = bound("dp", epsilon=epsilon)
    assert value(report, "accuracy") == pytest.approx(1 / (1 + math.exp(-min(epsilon, 700))))
    assert report.table()


def test_a_ceiling_that_excludes_nothing_says_so() -> None:
    assert "A bound this high excludes nothing." in " ".join(bound("dp", epsilon=1e3).table().split())
    assert "excludes nothing" not in bound("dp", epsilon=3.0).table()


def test_the_other_way_round() -> None:
    report = bound("dp", at_most="accuracy=0.6")
    assert value(report, "largest_epsilon") == pytest.approx(math.log(1.5), rel=1e-5)  # 2 atanh(2 * 0.1)
    assert only(report, "largest_epsilon").bound_type == "lower"
    assert value(report, "accuracy") <= 0.6
    report = bound("dp", at_most="eta=0.1", adjacency="add_remove")
    assert value(report, "largest_epsilon") == pytest.approx(math.log(1.5) / 2, rel=1e-5)
    report = bound("gaussian", at_most="advantage=0.1")
    assert only(report, "epsilon", delta=1e-5).bound_type == "upper"
    assert value(report, "largest_mu") == pytest.approx(2 * norm.ppf(0.55), rel=1e-5)


def test_gaussian() -> None:
    report = bound("gaussian", mu=7.75**0.5, fpr=(0.01,))
    assert value(report, "advantage") == pytest.approx(0.8360597625, abs=1e-10)
    assert value(report, "tpr", fpr=0.01) == pytest.approx(0.6763564755, abs=1e-10)
    doubled = bound("gaussian", mu=0.5, adjacency="add_remove")
    assert value(doubled, "advantage") == pytest.approx(2 * norm.cdf(0.5) - 1)


def test_dpsgd() -> None:
    """One step with every record: the Gaussian mechanism, sensitivity 1 (add/remove) or 2 (replace one)."""
    added, replaced = (
        bound("dpsgd", noise_multiplier=2.0, sample_rate=1.0, steps=1, adjacency=each)
        for each in ("add_remove", "replace_one")
    )
    assert value(added, "advantage") == pytest.approx(2 * norm.cdf(0.25) - 1, abs=1e-4)
    assert value(replaced, "advantage") == pytest.approx(2 * norm.cdf(0.5) - 1, abs=1e-4)
    assert value(added, "epsilon", delta=1e-5) < value(replaced, "epsilon", delta=1e-5)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_dpsgd_with_batches_of_fixed_size(adjacency: str) -> None:
    """All records in one step: whoever takes the record's place may be 2 clipping norms away, in either game."""
    words = {"noise_multiplier": 2.0, "sample_rate": 1.0, "steps": 1, "adjacency": adjacency}
    report = bound("dpsgd", **words, batches="fixed")
    assert value(report, "advantage") == pytest.approx(2 * norm.cdf(0.5) - 1, abs=1e-4)
    assert "1 steps, fixed batches, " in report.table()
    assumed = only(report, "advantage").assumptions
    assert assumed[0].id == "fixed_batches_of_dpsgd"
    assert only(bound("dpsgd", **words), "advantage").assumptions[0].id == "poisson_batches_of_dpsgd"


def test_gap_and_information() -> None:
    report = bound("gap", gap=-0.2, low=0.0, high=2.0, prior=0.5)
    assert value(report, "accuracy") == pytest.approx(0.55)
    assert only(report, "accuracy").bound_type == "lower"
    report = bound("information", information=0.1)
    assert value(report, "accuracy") == pytest.approx(0.7197946262)
    assert value(bound("information", information=5.0), "accuracy") == 1.0


@pytest.mark.parametrize(
    ("name", "key"), [("dp", "epsilon"), ("gaussian", "mu"), ("gap", "gap"), ("information", "information")]
)
def test_infinity_is_refused_by_every_bound(name, key) -> None:
    with pytest.raises(ValueError, match=f"^{key} must be finite, got inf$"):
        bound(name, **{key: math.inf})


def test_a_prior_is_never_printed_as_none() -> None:
    assert "prior 1e\u2212298 %" in " ".join(bound("dp", epsilon=1.0, prior=1e-300).table().split())


@pytest.mark.parametrize("unit", ["random walk", "average wage", "cell", "most exposed plate"])
def test_the_name_of_a_unit_changes_no_scope(unit) -> None:
    """A bound for one record is not taken for one on average, nor for one of a cell, because its name says so."""
    text = " ".join(bound("information", information=0.1, unit=unit).table().split())
    assert "says nothing about a particular" not in text
    assert f"whether the {unit} in question is in the data is right in at most 72.0 of" in text


def test_information_is_about_one_record() -> None:
    """Lede, findings and assumption name the same record, and promise nothing for the others."""
    report = bound("information", information=0.1, unit="person")
    assert {each.scope for each in report.findings} == {Scope("one")}
    (said,) = only(report, "accuracy").assumptions
    assert said == Term("information_of_one", unit="person")
    text = " ".join(report.table().split())
    assert "An attacker who guesses whether the person in question is in the data is right in at most 72.0 of" in text
    assert "whoever" not in text
