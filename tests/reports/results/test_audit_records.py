import numpy as np
import pytest

from leakbound.reports import Report
from leakbound.reports.charts.audits import audit_charts
from leakbound.reports.charts.previews import data_uri
from leakbound.reports.charts.strips import strip, strip_axis
from leakbound.reports.results.audit.page import audit_page
from leakbound.reports.results.audit.result import MOST, most_exposed
from tests.reports.made import made, spread


def table(won, games=64, **columns):
    n = len(won)
    return {
        "release": ["forest"] * n,
        "record": list(range(n)),
        "label": ["cat"] * n,
        "games": [games] * n,
        "won": won,
        "low": [0.85] * n,
        "exposed": [wins > 50 for wins in won],
        "margin": [0.0] * n,
        "log_odds": [[1.0, -1.0]] * n,
        "member": [[1, 0]] * n,
        "preview": [None] * n,
    } | columns


def shown(rows, won=None):
    base = made(won=won or spread(64, w32=90, w64=10))
    report = Report(base.about, base.findings, base.curves, rows)
    part = audit_page(report).recorded
    assert part is not None
    return part.exposed[0] if part.exposed else None


def test_order_is_by_games_then_margin_then_number():
    rows = table([60, 64, 40, 60, 64], margin=[2.0, 0.1, 9.0, 3.0, 0.2])
    assert most_exposed(rows) == [4, 1, 3, 0]  # record 2 is not exposed
    by_number = table([60, 60, 60], record=["c", "a", "b"])
    assert most_exposed(by_number) == [1, 2, 0]


@pytest.mark.parametrize("array", [list, np.asarray])
def test_arrays_and_lists_are_the_same(array):
    rows = {
        name: array(values) if name in {"won", "exposed", "record", "low"} else values
        for name, values in table([64]).items()
    }
    row = shown(rows).rows[0]
    assert (row.number, row.label, row.won, row.least) == ("0", "cat", "64 of 64", "85")


def test_at_most_ten_and_the_ties_are_counted():
    assert len(shown(table([64] * 30)).rows) == MOST
    # of all records, of which the table has the most exposed ones
    many = shown(table([64] * 30), won=spread(64, w32=70, w64=30))
    assert str(many.ties).startswith("At 64 of 64 correct guesses: 30 records; those with the largest margin")
    one = shown(table([64, 60, 60]), won=spread(64, w32=97, w60=2, w64=1))
    assert str(one.ties) == "At 64 of 64 correct guesses: 1 record."


def test_nobody_exposed_is_no_table():
    assert shown(table([10, 20])) is None
    assert shown({}) is None


def test_pictures_fields_and_nothing():
    pictured = shown(table([64], preview=[{"image": [[0, 255], [255, 0]]}]))
    assert pictured.has_pictures
    assert str(pictured.rows[0].described) == "2 by 2 pixel image of record 0, cat"
    listed = shown(table([64], preview=[{"fields": {"name": "x" * 60}}]))
    assert not listed.has_pictures
    assert [(field.name, field.text) for field in listed.rows[0].fields] == [("name", "x" * 39 + "…")]
    assert not shown(table([64])).has_pictures


def test_strips_share_a_scale_and_may_be_missing():
    rows = table([64, 64], log_odds=[[-2.0, 2.0], [0.0, 4.0]], preview=[{"image": [[0, 255], [255, 0]]}, None])
    two = shown(rows)
    base = made(won=spread(64, w32=90, w64=10))
    charts = audit_charts(Report(base.about, base.findings, base.curves, rows))
    # ends at -2 and 4, and a margin of .24 at both: 2 px + 186 px * (odds + 2.24) / 6.48
    assert [charts[row.strip] for row in two.rows] == [
        strip(np.array(odds), np.array([True, False]), -2.24, 4.24) for odds in ([-2.0, 2.0], [0.0, 4.0])
    ]
    assert charts[two.rows[0].picture] == data_uri([[0, 255], [255, 0]])
    assert charts[two.scale] == strip_axis(-2.24, 4.24)
    none = shown(table([64], log_odds=[None], member=[None]))
    assert (none.rows[0].strip, none.has_strips) == ("", False)


def test_a_label_that_is_a_number_says_so():
    assert str(shown(table([64], label=["9"])).rows[0].label) == "label 9"
    assert shown(table([64], label=[""])).rows[0].label == ""
