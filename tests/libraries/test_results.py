"""The kept results of the calls: each call is there, nine tenths run, and the page says what the file says."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.libraries.__main__ import load_calls
from tests.libraries.natural import CALLS, WrongResult, finds_a_leak, finds_no_leak, in_new_folder, people
from tests.libraries.table import LAST, PAGE, page, rows_of
from tests.marks import nightly

load_calls()


def test_every_call_has_a_result():
    assert sorted(row["name"] for row in rows_of(LAST)) == sorted(CALLS)


def test_nine_tenths_run_and_none_gives_a_wrong_result():
    results = [row["result"] for row in rows_of(LAST)]
    assert results.count("runs") >= 0.9 * len(results)
    assert "wrong" not in results


KINDS = {"frames", "texts", "tasks", "other libraries", "own loops", "networks", "files"}


def test_there_are_sixty_calls_of_each_kind():
    kinds = [call.kind for call in CALLS.values()]
    assert len(kinds) >= 60
    assert set(kinds) == KINDS


def test_in_each_kind_a_model_without_a_leak_must_not_be_accused():
    without_leak = [call for call in CALLS.values() if call.function.__module__.endswith("calls_without_leak")]
    assert {call.kind for call in without_leak} == KINDS


def test_the_page_is_made_of_the_results():
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize(
    "name",
    [
        nightly("forest_on_mixed_frame"),
        "tfidf_on_list_of_texts",
        nightly("sample_weights_in_a_function"),
        nightly("independent_scores_do_not_accuse"),
    ],
)
def test_calls_without_further_libraries_run_here_too(name):
    in_new_folder(CALLS[name].function)


def report(low: float, high: float = 0.6, exposed: float = 0.4) -> SimpleNamespace:
    """A report with one attack accuracy, and the lower end of the accuracy against the most exposed record."""
    attack = {"quantity": "accuracy", "attack": "loss", "release": "m", "value": low + 0.01, "low": low, "high": high}
    record = {"quantity": "most_exposed", "attack": "loss", "release": "m", "value": 0.9, "low": exposed, "high": 1.0}
    return SimpleNamespace(findings=[SimpleNamespace(**attack), SimpleNamespace(**record)])


def test_the_checks_of_the_calls_can_fail():
    finds_a_leak(report(low=0.6, high=0.7))
    with pytest.raises(WrongResult):
        finds_a_leak(report(low=0.5))
    finds_no_leak(report(low=0.5))
    with pytest.raises(WrongResult, match="cannot memorise is accused"):
        finds_no_leak(report(low=0.54))
    with pytest.raises(WrongResult, match="little was measured"):
        finds_no_leak(report(low=0.3, high=0.9))
    with pytest.raises(WrongResult, match="is called exposed"):
        finds_no_leak(report(low=0.5, exposed=0.51))


def test_data_of_the_calls():
    frame, label = people()
    assert frame["hours"].isna().any()
    assert 0.2 < (label != "high").mean() < 0.8
