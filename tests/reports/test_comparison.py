import itertools
from typing import Any

import pytest

from leakscope.core.findings import Finding, Term
from leakscope.reports import Report
from leakscope.reports.comparison import compare
from tests.reports import made_bounds
from tests.reports.abouts import about


def auc(value: float | None, low: float | None = None, high: float | None = None, **words: Any) -> Finding:
    named: dict[str, Any] = {"attack": "lira", "release": "forest"} | words
    return Finding("auc", value, low, high, **named)


def one(*findings: Finding) -> Report:
    return Report(about(kind="bound"), findings)


@pytest.mark.parametrize(
    ("first", "second", "difference"),
    [
        ((0.6, 0.59, 0.61), (0.7, 0.69, 0.71), "+0.1, intervals apart"),
        ((0.7, 0.69, 0.71), (0.6, 0.59, 0.61), "-0.1, intervals apart"),
        ((0.6, 0.55, 0.65), (0.66, 0.64, 0.68), "+0.06"),
        ((0.6, 0.55, 0.65), (0.6, 0.55, 0.65), "+0"),
        ((0.6, 0.5, 0.65), (0.7, 0.65, 0.75), "+0.1"),  # intervals that touch are not apart
        ((0.6, None, None), (0.7, 0.69, 0.71), "+0.1"),
    ],
)
def test_intervals_are_apart_or_not(first, second, difference):
    assert [row["difference"] for row in compare(one(auc(*first)), one(auc(*second)))] == [difference]


def test_numbers_are_shown_with_their_intervals():
    (row,) = compare(one(auc(0.61234, 0.6, 0.62)), one(auc(0.7)))
    assert row == {
        "attack": "lira", "quantity": "auc", "first": "0.6123 (0.6..0.62)", "second": "0.7", "difference": "+0.0877",
    }  # fmt: skip


def test_what_one_report_lacks_is_a_dash():
    gap, lira = auc(0.55, attack="gap"), auc(0.7)
    rows = compare(one(gap), one(lira, auc(None, attack="gap", reason=Term("no"))))
    assert [(row["attack"], row["first"], row["second"], row["difference"]) for row in rows] == [
        ("gap", "0.55", "-", "-"),
        ("lira", "-", "0.7", "-"),
    ]


def test_rates_are_matched_by_where_they_were_taken():
    rates = [Finding("tpr", 0.1 * n, operating_point={"fpr": 10.0**-n, "prior": 0.5}, attack="lira") for n in (1, 2)]
    rows = compare(one(*rates), one(*rates[::-1]))
    assert [(row["quantity"], row["difference"]) for row in rows] == [("tpr fpr 0.1", "+0"), ("tpr fpr 0.01", "+0")]


def test_releases_are_matched_by_name_unless_a_report_has_one_only():
    forest, tree = auc(0.6), auc(0.7, release="tree")
    rows = compare(one(forest, tree), one(tree, forest))
    assert [(row["release"], row["difference"]) for row in rows] == [("forest", "+0"), ("tree", "+0")]
    (row,) = compare(one(forest), one(tree))
    assert row["difference"] == "+0.1"
    assert "release" not in row


def test_one_release_against_several_is_compared_with_each():
    rows = compare(one(auc(0.6)), one(auc(0.7, release="tree"), auc(0.8, release="net")))
    assert [row["difference"] for row in rows] == ["+0.1", "+0.2"]


@pytest.mark.parametrize("quantity", ["epsilon", "most_exposed"])
def test_the_best_of_all_attacks_is_matched_whichever_it_was(quantity):
    first, second = (Finding(quantity, value, attack=attack) for value, attack in ((0.5, "gap"), (0.75, "lira")))
    (row,) = compare(one(first), one(second))
    assert (row["attack"], row["difference"]) == ("-", "+0.25")


def test_bounds_are_matched_by_side_and_prior():
    def bound(value, bound_type="upper", prior=0.5, **words):
        return Finding(
            "accuracy", value, operating_point={"prior": prior}, bound_type=bound_type, status="certified", **words
        )

    first = one(bound(0.85, source="kl"), bound(0.51, "lower"), bound(0.9, prior=0.1), bound(0.8, source="other"))
    second = one(bound(0.51, "lower"), bound(0.8, source="kl"), bound(0.8, "point"), bound(0.7, source="other"))
    rows = compare(first, second)
    assert [(row["quantity"], row["first"], row["second"]) for row in rows] == [
        ("accuracy prior 0.5, upper bound", "0.85", "0.8"),
        ("accuracy prior 0.5, lower bound", "0.51", "0.51"),
        ("accuracy prior 0.1, upper bound", "0.9", "-"),
        ("accuracy prior 0.5, upper bound, other", "0.8", "0.7"),
        ("accuracy prior 0.5", "-", "0.8"),
    ]


def test_reports_of_bounds_are_compared():
    rows = compare(made_bounds.dp(1.0), made_bounds.dp(2.0))
    (accuracy,) = [row for row in rows if row["quantity"].startswith("accuracy")]
    assert (accuracy["first"], accuracy["second"], accuracy["difference"]) == ("0.7311", "0.8808", "+0.15")
    assert "advantage, upper bound" in [row["quantity"] for row in rows]
    assert all(row["first"] != "-" != row["second"] for row in rows)


def test_two_orders_of_the_same_findings_are_the_same():
    found = [auc(0.5 + n / 10, attack=name) for n, name in enumerate(("gap", "loss", "lira"))]
    tables = [compare(one(*found), one(*order)) for order in itertools.permutations(found)]
    assert all(table == tables[0] for table in tables)
    assert compare(one(), one()) == []
