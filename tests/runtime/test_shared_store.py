"""Runs that share a store at a URL: the same bytes as alone, whatever the store does in the meantime."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound.reports.content import read
from leakbound.runtime import fits, places
from leakbound.runtime import store as store_module
from leakbound.runtime.machine import Machine, this_machine
from leakbound.runtime.observe import Execution, Tally, observe
from leakbound.runtime.places import ObjectStore
from leakbound.runtime.store import Store
from tests.cli.calling import caller
from tests.marks import slow_but
from tests.results import of_the_result
from tests.runtime.test_observe import MEMBER, POINTS, Plain

WINE = load_wine(return_X_y=True)


def audited(store: str | None, n_jobs: int = 1) -> ls.Report:
    return ls.audit(DecisionTreeClassifier(), *WINE, n_models=8, attacks=["loss"], store=store, n_jobs=n_jobs)


def seen(store: str, release: Plain | None = None) -> tuple[np.ndarray, Tally]:
    execution = Execution(store, 1)
    return observe(release or Plain([]), POINTS, MEMBER, ("loss",), execution=execution)["loss"], execution.tally


@pytest.fixture(params=slow_but(["memory", "s3"], "memory"))
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "s3":
        request.getfixturevalue("s3")
        return f"s3://bucket/{uuid4().hex}"
    return f"memory://{uuid4().hex}"


def test_a_run_finds_what_another_one_has_finished(url):
    alone = Plain([])
    expected = observe(alone, POINTS, MEMBER, ("loss",), execution=Execution(n_jobs=1))["loss"]
    log: list[Any] = []
    for n_computed in (10, 0):
        values, tally = seen(url, Plain(log))
        np.testing.assert_array_equal(values, expected)
        assert (tally.computed, tally.reused) == (n_computed, 10 - n_computed)
    assert log == [3, 3, 3, 1]


def test_two_runs_at_once_have_the_same_numbers(url):
    with ThreadPoolExecutor(2) as threads:
        (one, _), (two, _) = threads.map(lambda _: seen(url), range(2))
    np.testing.assert_array_equal(one, two)
    assert Store(url).size()[0] == 4
    assert Store(url).verify().damaged == {}


@pytest.mark.parametrize("is_other", [True, False])
def test_who_comes_second_goes_on_with_the_first_ones_numbers(url, is_other, monkeypatch):
    """Another run stores all chunks, with other bytes, after this one has looked."""
    facts = {**this_machine().facts, "cpu": "another"} if is_other else this_machine().facts
    with monkeypatch.context() as patch:
        patch.setattr(store_module, "this_machine", lambda: Machine(facts))
        first, _ = seen(url)
        rounded = {entry.name: Store(url).load(entry.name) for entry in Store(url).ls()}
        Store(url).clear()
        for name, arrays in rounded.items():
            assert arrays is not None
            Store(url).save(
                name, {signal: np.nextafter(values, 1, dtype=np.float32) for signal, values in arrays.items()}
            )
    monkeypatch.setattr(Store, "missing", lambda _, names: set(names))
    monkeypatch.setattr(fits._Run, "_load", lambda run, number: None)
    values, tally = seen(url)
    np.testing.assert_array_equal(values, np.nextafter(first, 1, dtype=np.float32))
    assert (tally.computed, tally.reused) == (10, 0)
    assert (tally.other_machine, tally.differing) == ((4, 0) if is_other else (0, 4))


def test_a_store_that_cannot_be_written_is_told_before_the_first_fit(tmp_path, monkeypatch):
    def refuse(path: Path) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(places, "open_new", refuse)
    log: list[Any] = []
    with pytest.raises(OSError, match=rf"^the store {tmp_path}/new cannot be written: Read-only file system$"):
        seen(str(tmp_path / "new"), Plain(log))
    assert log == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("mode", "is_told"), [(0o700, False), (0o775, False), (0o777, True)])
def test_a_store_that_every_user_can_write_is_told(tmp_path, mode, is_told):
    tmp_path.chmod(mode)
    told = "The folder of the store can be written by every user of the machine (mode 777)"
    assert (told in " ".join(audited(str(tmp_path)).table(full=True).split())) == is_told


def test_repeated_tasks_are_found_at_a_url(url):
    calls = [(seed,) for seed in range(3)]
    first = ls.repeat(drawn, calls, store=url, n_jobs=1)
    assert Store(url).size()[0] == 3
    assert ls.repeat(drawn, calls, store=url, n_jobs=1) == first


def drawn(seed: int) -> dict[str, float]:
    return {"draw": float(ls.seeds.stream(seed, "draw").random())}


@pytest.mark.nightly
@pytest.mark.slow
def test_an_audit_at_a_url_that_fails_for_a_moment_has_the_same_bytes(s3):
    """Two workers, and a server that refuses once."""
    alone = audited(None)
    url = f"s3://bucket/{uuid4().hex}"
    s3.tell(refuse=1)
    first = audited(url, n_jobs=2)
    again = audited(url)
    for report in (first, again):
        assert of_the_result(report.to_json()) == of_the_result(alone.to_json())
        assert of_the_result(report.to_html()) == of_the_result(alone.to_html())
    facts = first.about.execution
    assert (facts.reused, facts.made) == (0, 8)
    assert again.about.execution.reused == 8


@pytest.mark.slow
def test_a_command_that_is_refused_is_one_line_and_goes_on_later(s3, monkeypatch, capfd, tmp_path):
    """Access is denied after the first of two chunks, and allowed again."""
    monkeypatch.chdir(tmp_path)
    leakbound = caller(monkeypatch, capfd)
    audit = "audit --dataset wine --model sklearn.tree:DecisionTreeClassifier --n-models 8 --attack loss --n-jobs 1"
    url = f"s3://bucket/{uuid4().hex}"
    assert leakbound(f"{audit} --out alone").code == 0
    names: list[str] = []

    def denied_later(place: ObjectStore, name: str, content: bytes) -> bool:
        if "/" not in name:  # a chunk
            names.append(name)
        if len(names) == 2:
            s3.tell(refuse=1, status=403, code="AccessDenied")
        return put_new(place, name, content)

    put_new = ObjectStore.put_new
    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "put_new", denied_later)
        left = leakbound(f"{audit} --store {url}")
    assert (left.code, left.out) == (1, "")
    assert left.err == (
        f"leakbound: error: the store {url} cannot be written: access is denied; check the credentials in the "
        "environment, and that they allow to list, read and write\n"
    )
    assert Store(url).size()[0] == 1  # what was finished
    assert leakbound(f"{audit} --store {url}").code == 0
    report = read("leakbound-report/report.json")
    assert (report.about.execution.reused, report.about.execution.made) == (4, 4)
    for name in ("report.json", "report.html"):
        alone, resumed = (Path(folder, name).read_text() for folder in ("alone", "leakbound-report"))
        assert of_the_result(alone) == of_the_result(resumed)
    assert not Path("leakbound-report", "store").exists()
    assert url not in Path("leakbound-report", "report.json").read_text()
