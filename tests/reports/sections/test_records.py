import numpy as np
import pytest

from leakbound.reports import Report
from leakbound.reports.charts.previews import data_uri
from leakbound.reports.charts.strips import strip
from leakbound.reports.sections.audit.records import exposed
from leakbound.reports.sections.audit.result import MOST, most_exposed, results
from tests.reports.made import made


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


def shown(rows):
    base = made()
    return exposed(results(Report(base.about, base.findings, base.curves, rows))[0])


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
    assert (row.number, row.label, row.won, row.low) == ("0", "cat", "64 of 64", "85")


def test_at_most_ten_and_the_ties_are_counted():
    assert len(shown(table([64] * 30)).rows) == MOST
    assert shown(table([64] * 30)).ties == "30 records tie at 64 of 64; ordered by margin"
    assert shown(table([64, 60, 60])).ties == "1 record at 64 of 64"


def test_nobody_exposed_is_no_table():
    assert shown(table([10, 20])) is None
    assert shown({}) is None


def test_pictures_fields_and_nothing():
    pictured = shown(table([64], preview=[{"image": [[0, 255], [255, 0]]}]))
    assert pictured.pictures
    assert data_uri(pictured.rows[0].image).startswith("data:image/png;base64,")
    assert pictured.rows[0].description == "2 by 2 pixel image of record 0, cat"
    listed = shown(table([64], preview=[{"fields": {"name": "x" * 60}}]))
    assert not listed.pictures
    assert listed.rows[0].fields == {"name": "x" * 39 + "…"}
    assert not shown(table([64])).pictures


def test_strips_share_a_scale_and_may_be_missing():
    two = shown(table([64, 64], log_odds=[[-2.0, 2.0], [0.0, 4.0]]))
    assert two.scale is not None
    drawn = [strip(row.log_odds, row.member, *two.scale) for row in two.rows]
    assert [part.count("M") for part in drawn] == [2, 2]
    assert drawn[0] != drawn[1]
    none = shown(table([64], log_odds=[None], member=[None]))
    assert (none.rows[0].log_odds, none.rows[0].member, none.scale) == (None, None, None)


def test_a_label_that_is_a_number_says_so():
    assert shown(table([64], label=["9"])).rows[0].label == "label 9"
    assert shown(table([64], label=[""])).rows[0].label == ""
