"""The kept results of the calls: each call is there, nine tenths run, and the page says what the file says."""

from __future__ import annotations

import pytest

from tests.libraries.__main__ import load_calls
from tests.libraries.natural import CALLS, WrongResult, finds_a_leak, finds_no_leak, people
from tests.libraries.table import FIRST, LAST, PAGE, page, rows_of

load_calls()


def test_every_call_has_a_result_of_before_and_of_now():
    for file in (FIRST, LAST):
        assert sorted(row["name"] for row in rows_of(file)) == sorted(CALLS)


def test_nine_tenths_run_and_none_gives_a_wrong_result():
    results = [row["result"] for row in rows_of(LAST)]
    assert results.count("runs") >= 0.9 * len(results)
    assert "wrong" not in results


def test_there_are_sixty_calls_of_each_kind():
    kinds = [call.kind for call in CALLS.values()]
    assert len(kinds) >= 60
    assert set(kinds) == {"frames", "texts", "tasks", "other libraries", "own loops", "networks", "files"}


def test_the_page_is_made_of_the_results():
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("name", ["forest_on_mixed_frame", "tfidf_on_list_of_texts", "sample_weights_in_a_function"])
def test_calls_without_further_libraries_run_here_too(name):
    CALLS[name].function()


class Report:
    """A report with one attack accuracy."""

    def __init__(self, low: float) -> None:
        finding = type(
            "Finding", (), {"quantity": "accuracy", "release": "m", "value": low + 0.05, "low": low, "high": 1.0}
        )
        self.findings = [finding]


def test_the_checks_of_the_calls_can_fail():
    finds_a_leak(Report(0.6))
    finds_no_leak(Report(0.5))
    with pytest.raises(WrongResult):
        finds_a_leak(Report(0.5))
    with pytest.raises(WrongResult):
        finds_no_leak(Report(0.6))
    frame, label = people()
    assert frame["hours"].isna().any()
    assert 0.2 < (label != "high").mean() < 0.8
