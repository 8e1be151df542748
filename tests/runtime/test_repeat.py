"""Tasks repeated by the pool, kept in the store."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import leakbound as ls
from tests.marks import nightly

DONE: list[int] = []


def drawn(seed: int, size: int) -> dict[str, object]:
    """Noted where it is done in this process: a value of the module, and so a part of the key until it is emptied."""
    DONE.append(seed)
    return {"draw": ls.seeds.stream(seed, "draw").random(size), "size": size}


def failing(seed: int) -> dict[str, object]:
    if seed == 2:
        raise ValueError("no more")
    return drawn(seed, 1)


@pytest.fixture(autouse=True)
def nothing_done():
    DONE.clear()


def test_results_stand_in_the_order_of_the_arguments():
    found = ls.repeat(drawn, [(seed, 2) for seed in (3, 1, 2)], n_jobs=1)
    for seed, result in zip((3, 1, 2), found, strict=True):
        np.testing.assert_array_equal(result["draw"], ls.seeds.stream(seed, "draw").random(2))
        assert result["size"] == 2


def test_the_number_of_workers_changes_nothing(monkeypatch):
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    arguments = [(seed, 3) for seed in range(5)]
    one, two = (ls.repeat(drawn, arguments, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert [each["draw"].tobytes() for each in one] == [each["draw"].tobytes() for each in two]


def test_what_is_in_the_store_is_not_done_again(tmp_path):
    ls.repeat(drawn, [(1, 2), (2, 2)], store=tmp_path, n_jobs=1)
    assert DONE == [1, 2]
    DONE.clear()
    found = ls.repeat(drawn, [(2, 2), (3, 2), (1, 2)], store=tmp_path, n_jobs=1)
    assert DONE == [3]
    np.testing.assert_array_equal(found[2]["draw"], ls.seeds.stream(1, "draw").random(2))


def test_a_run_that_fails_keeps_what_was_finished(tmp_path):
    with pytest.raises(ValueError, match="no more"):
        ls.repeat(failing, [(1,), (2,), (3,)], store=tmp_path, n_jobs=1)
    assert DONE == [1]
    DONE.clear()
    ls.repeat(failing, [(1,), (3,)], store=tmp_path, n_jobs=1)
    assert DONE == [3]


def test_a_task_whose_code_cannot_be_followed_is_not_stored(tmp_path):
    with pytest.warns(UserWarning, match=r"^runs of <lambda> are not stored: a lambda has no name to find it by$"):
        found = ls.repeat(lambda seed: {"it": seed}, [(3,)], store=tmp_path / "store", n_jobs=1)
    assert found[0]["it"] == 3
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(("name", "n_stored"), [("script.py", 1), nightly("-", 0)])
def test_a_task_of_the_script_that_is_run_is_stored_and_one_of_a_session_is_not(tmp_path, name, n_stored):
    code = (
        "import warnings, leakbound as ls\n"
        "def task(seed): return {'it': seed}\n"
        "warnings.simplefilter('ignore')\n"
        "print(ls.repeat(task, [(3,)], store='store', n_jobs=1)[0]['it'])\n"
    )
    (tmp_path / "script.py").write_text(code)
    done = subprocess.run([sys.executable, name], input=code, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"
    assert len(list(tmp_path.glob("store/*.npz"))) == n_stored


def test_other_data_are_another_run(tmp_path):
    for source, done in (("one", [1]), ("other", [1]), ("one", [])):
        DONE.clear()
        ls.repeat(drawn, [(1, 2)], data=source, store=tmp_path, n_jobs=1)
        assert done == DONE


def test_a_task_that_changes_a_value_that_it_names_is_done_again_in_the_same_process(tmp_path):
    for done in ([1], [1, 1]):
        ls.repeat(drawn, [(1, 2)], store=tmp_path, n_jobs=1)
        assert done == DONE


def test_arrays_cannot_be_part_of_a_key(tmp_path):
    with pytest.raises(ValueError, match=r"drawn cannot be kept in a store: .*; give numbers and texts, and load arr"):
        ls.repeat(drawn, [(np.zeros(2), 1)], store=tmp_path)


def test_nothing_to_do():
    assert ls.repeat(drawn, []) == []
