"""Rules of statistics offices, on cases that are counted by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from leakbound.core.types import Points
from leakbound.plans.plan import read
from leakbound.plans.protects import ProtectionPlan
from leakbound.protection.certificate.office_rules import check_office_rules
from leakbound.releases.statistics.of_plan import statistic_of

DATA = {"data": "people.csv", "eta": 0.1}


def failing(frame: pd.DataFrame, y=None, **words) -> dict[str, tuple[str, ...]]:
    plan = read(ProtectionPlan, DATA | words, "here")
    points = Points(frame, y)
    return {rule.rule: rule.failing for rule in check_office_rules(plan, statistic_of(plan, points), points)}


def test_minimum_frequency_of_a_table() -> None:
    """9 records fail, 10 pass, and an empty cell has nobody to protect."""
    frame = pd.DataFrame({"town": ["a"] * 9 + ["b"] * 10})
    words = {"statistic": "table", "by": ["town"], "levels": {"town": ["a", "b", "c"]}}
    assert failing(frame, **words) == {"minimum_frequency": ("a",)}
    assert failing(frame, **words, rules={"minimum": 9}) == {"minimum_frequency": ()}


def test_minimum_frequency_of_a_histogram() -> None:
    frame = pd.DataFrame({"age": [1.0] * 3 + [5.0] * 12})
    words = {"statistic": "histogram", "by": ["age"], "set": {"edges": [0, 4, 8]}}
    assert failing(frame, **words) == {"minimum_frequency": ("age from 0 to 4",)}


@pytest.mark.parametrize(
    ("wages", "dominated", "close"),
    [
        ([900, 50, 50], True, True),  # two of three have 95 %; the third is 50 < 90
        ([500, 300, 100, 100], False, False),  # 80 %; 200 >= 50
        ([100, 800, 9], True, True),
        ([1000, 50, 60, 50], True, False),  # 1,060 of 1,160 is 91 %; the others, 100, are a tenth of 1,000
        ([0, 0, 0], False, False),
    ],
)
def test_contributions_to_a_mean(wages: list[int], dominated: bool, close: bool) -> None:
    found = failing(pd.DataFrame({"wage": wages}), rules={"minimum": 3})
    assert found == {
        "minimum_frequency": (),
        "dominance": ("wage",) if dominated else (),
        "p_percent": ("wage",) if close else (),
    }


def test_groups() -> None:
    frame = pd.DataFrame({"sector": ["a"] * 12 + ["b"] * 3, "wage": [1.0] * 12 + [100.0, 1.0, 1.0]})
    found = failing(frame, by=["sector"], levels={"sector": ["a", "b"]})
    assert found == {
        "minimum_frequency": ("b",),
        "dominance": ("mean of wage in b",),
        "p_percent": ("mean of wage in b",),
    }


def test_degrees_of_freedom() -> None:
    x = np.random.default_rng(0).normal(size=(12, 2))
    frame = pd.DataFrame(x, columns=["a", "b"])
    assert failing(frame, y=x[:, 0], statistic="ols", label="c") == {
        "degrees_of_freedom": ("ols: 12 records, 3 coefficients",)
    }
    assert failing(frame, y=x[:, 0], statistic="ols", label="c", rules={"minimum": 9}) == {"degrees_of_freedom": ()}


def test_other_statistics_have_none() -> None:
    assert failing(pd.DataFrame({"a": [1.0, 2.0]}), statistic="covariance") == {}
