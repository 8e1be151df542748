"""Ceilings as findings, and the parameter that keeps a limit."""

from __future__ import annotations

import math

import pytest
from scipy.stats import norm

from leakbound.bounding.ceilings import allowed, largest, reach
from leakbound.core.tradeoff import EpsilonDelta, Gaussian
from leakbound.plans.limits import PROVED, Limit


def test_what_a_ceiling_allows() -> None:
    made = {
        (each.quantity, *each.operating_point.values()): each.value for each in allowed(Gaussian(1.0), 0.5, (0.1, 0.01))
    }
    assert made["accuracy", 0.5] == pytest.approx(norm.cdf(0.5))
    assert made["eta", 0.5] == pytest.approx(norm.cdf(0.5) - 0.5)
    assert made["advantage",] == pytest.approx(2 * norm.cdf(0.5) - 1)
    for rate in (0.1, 0.01):
        assert made["tpr", rate] == pytest.approx(norm.cdf(norm.ppf(rate) + 1))


def test_every_number_is_an_upper_bound_with_what_was_said_of_all() -> None:
    made = allowed(EpsilonDelta(1.0), 0.3, (0.1,), status="certified", source="kairouz2015")
    assert {(each.bound_type, each.status, each.source) for each in made} == {("upper", "certified", "kairouz2015")}
    assert made[0].value == pytest.approx(0.7 + 0.3 * (math.e - 7 / 3) / (math.e + 1))  # worked by hand


@pytest.mark.parametrize(
    ("text", "prior", "epsilon"),
    [
        ("accuracy=0.75", 0.5, math.log(3)),
        ("eta=0.25", 0.5, math.log(3)),
        ("advantage=0.5", 0.5, math.log(3)),
        ("tpr@0.01=0.05", 0.5, math.log(5)),
        ("accuracy=0.8", 0.7, math.log(4)),  # e^eps/(1 + e^eps), above gamma = 7/3
    ],
)
def test_the_largest_epsilon_keeps_the_limit_and_more_does_not(text: str, prior: float, epsilon: float) -> None:
    found = largest(EpsilonDelta, text, prior)
    assert found == pytest.approx(epsilon, rel=1e-5)
    limit = Limit.parse(text, known=PROVED)
    assert reach(EpsilonDelta(found), limit, prior) <= limit.limit
    assert reach(EpsilonDelta(found * 1.001), limit, prior) > limit.limit


def test_a_limit_below_blind_guessing() -> None:
    with pytest.raises(ValueError) as caught:
        largest(EpsilonDelta, "accuracy=0.4", 0.5)
    assert str(caught.value) == "at_most accuracy=0.4 is below the baseline accuracy, 0.5"
    with pytest.raises(ValueError, match=r"is below the baseline accuracy, 0\.01"):
        largest(EpsilonDelta, "tpr@0.01=0.005", 0.5)


def test_a_limit_that_allows_everything() -> None:
    with pytest.raises(ValueError) as caught:
        largest(EpsilonDelta, "accuracy=1", 0.5)
    assert (
        str(caught.value) == "at_most accuracy=1: a limit of 1 can never be exceeded, "
        "for accuracy is at most 1; give a smaller one"
    )
