"""The script that compares the numbers of two commits, and two of its requests against the committed file."""

from __future__ import annotations

import json
import math
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import same_numbers
from tests.same_numbers import about_numbers, array_numbers, column_numbers, differences, main, number

COMMITTED = Path(__file__).with_name("same_numbers.json")
CHEAPEST = ("audit_scores", "bound_table")
OTHER_PROCESSOR = 1e-9  # numpy and BLAS round differently with other instructions; below 1e-13 where it was tried


def content() -> dict[str, Any]:
    """A file by hand: two findings, the second without a value, and a long column."""
    first = [number(value) for value in (0.75, 0.7, 0.8, 0.95)] + [[number(0.01)], [number(12)]]
    second = [None, None, None, None, [number(0.001)], []]
    report = {"findings": [first, second], "curves": [], "records": [array_numbers(np.arange(100.0) / 7)], "about": []}
    return {"versions": {"numpy": "2.0.0"}, "requests": {"audit": {"report": report}}}


@pytest.fixture
def compared(tmp_path, capsys):
    """Exit code and printed lines of ``compare``, for two contents."""

    def compare(left: dict[str, Any], right: dict[str, Any], *options: str) -> tuple[int, list[str]]:
        for name, each in (("left", left), ("right", right)):
            (tmp_path / name).write_text(json.dumps(each), encoding="utf-8")
        code = main(["compare", str(tmp_path / "left"), str(tmp_path / "right"), *options])
        return code, capsys.readouterr().out.splitlines()

    return compare


def test_equal_files_have_no_difference(compared):
    assert compared(content(), content()) == (0, ["1 requests compared: 0 differences, 0 of them above 0"])


def test_one_ulp_is_a_difference(compared):
    other = content()
    other["requests"]["audit"]["report"]["findings"][0][1] = number(math.nextafter(0.7, 1))
    code, lines = compared(content(), other)
    assert code == 1
    place = "audit.report.findings[0].low"
    assert lines[0] == f"{place}: 0.7 and 0.7000000000000001, relative difference 1.59e-16"
    assert compared(content(), other, "--relative", "1e-15")[0] == 0
    assert compared(content(), other, "--relative", "1e-16")[0] == 1


@pytest.mark.parametrize("missing", [0, 1])
def test_a_missing_finding_is_a_difference_at_any_tolerance(missing, compared):
    other = content()
    del other["requests"]["audit"]["report"]["findings"][missing]
    for left, right in ((content(), other), (other, content())):
        code, lines = compared(left, right, "--relative", "10")
        assert code == 1
        assert len(lines) == 2
        assert lines[0].startswith(f"audit.report.findings, from [{missing}]: ")
        assert lines[0].endswith("items, relative difference inf")


def test_a_missing_request_is_a_difference(compared):
    other = content()
    other["requests"]["bound"] = other["requests"].pop("audit")
    code, lines = compared(content(), other, "--relative", "10")
    assert code == 1
    assert [line.split(":")[0] for line in lines[:2]] == ["audit", "bound"]


def test_a_number_for_none_is_a_difference(compared):
    other = content()
    other["requests"]["audit"]["report"]["findings"][1][0] = number(0.0)
    code, lines = compared(content(), other, "--relative", "10")
    assert code == 1
    assert lines[0] == "audit.report.findings[1].value: none and 0.0, relative difference inf"


def test_every_number_that_differs_is_printed(compared):
    other = content()
    other["requests"]["audit"]["report"]["findings"][0][4] = [number(0.02)]
    other["requests"]["audit"]["report"]["findings"][0][5] = [number(math.inf)]
    _, lines = compared(content(), other)
    assert lines == [
        "audit.report.findings[0].operating_point[0]: 0.01 and 0.02, relative difference 0.5",
        "audit.report.findings[0].detail[0]: 12.0 and inf, relative difference inf",
        "1 requests compared: 2 differences, 2 of them above 0",
    ]


def test_a_number_that_is_not_kept_changes_the_digest(compared):
    other, column = content(), np.arange(100.0) / 7
    column[50] = math.nextafter(column[50], 100)
    other["requests"]["audit"]["report"]["records"] = [array_numbers(column)]
    code, lines = compared(content(), other)
    assert code == 1
    assert lines[0].startswith("audit.report.records[0].sha256: ")
    assert len(lines) == 2
    assert compared(content(), other, "--relative", "1e-12")[0] == 0


def test_other_versions_are_said_and_are_no_difference(compared):
    other = content()
    other["versions"] = {"numpy": "2.1.0", "scipy": "1.13.0"}
    code, lines = compared(content(), other)
    assert code == 0
    assert lines[:2] == ["numpy: 2.0.0 and 2.1.0", "scipy: none and 1.13.0"]


@pytest.mark.parametrize("value", [0.1, 5e-324, -3.0, math.inf, math.pi * 1e300])
def test_numbers_keep_all_bits(value):
    assert float.fromhex(number(value)) == value


def test_a_zero_has_no_sign_and_nan_is_itself():
    assert number(-0.0) == number(0.0)
    assert list(differences([number(math.nan)], [number(-math.nan)])) == []
    long = np.zeros(50)
    assert array_numbers(-long) == array_numbers(long)


def test_facts_may_be_renamed_and_moved():
    before = {"kind": "audit", "records": 178, "games": {"won": [3, 1, 2], "exposed": None}, "exact": True}
    after = {"form": "audit", "facts": {"n_wins": [3, 1, 2], "n_records": 178}, "is_exact": True, "name": "x"}
    assert about_numbers(before) == about_numbers(after)
    assert about_numbers(before) != about_numbers({"records": 178, "won": [1, 2, 3]})


def test_columns_of_texts_are_counted():
    assert column_numbers(["1", "2", "3"]) == {"length": 3}
    assert column_numbers([True, None, 2]) == [number(1), number(math.nan), number(2)]


def test_the_committed_file_holds_every_request():
    committed = json.loads(COMMITTED.read_text(encoding="utf-8"))
    assert list(committed["requests"]) == list(same_numbers.REQUESTS)
    assert COMMITTED.stat().st_size < 60 * 1024
    changed = deepcopy(committed)
    changed["requests"]["protect"]["mean_value"][0] = number(0.0)
    assert [each.place for each in differences(committed, changed)] == ["requests.protect.mean_value[0]"]


def test_the_cheapest_requests_give_the_committed_numbers():
    committed = json.loads(COMMITTED.read_text(encoding="utf-8"))
    if committed["versions"] != same_numbers.installed():
        pytest.skip(f"tests/same_numbers.json was made with other versions: {committed['versions']}")
    for name in CHEAPEST:
        found = differences(committed["requests"][name], same_numbers.numbers_of(name), name)
        assert [each for each in found if each.relative > OTHER_PROCESSOR] == []
