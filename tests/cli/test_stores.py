"""The commands of a store: its chunks and nothing else in the folder."""

from __future__ import annotations

import re
import time
from uuid import uuid4

import numpy as np
import pytest
from typer.testing import CliRunner

from leakbound.cli.stores import app
from leakbound.runtime.checkpoints import StoredCheckpoints
from leakbound.runtime.machine import this_machine
from leakbound.runtime.store import Store, key


def run(*words: str):
    return CliRunner().invoke(app, words)


def test_only_chunks_are_counted_and_removed(tmp_path):
    store = Store(tmp_path)
    for seed in range(3):
        store.save(key(seed=seed), {"loss": np.zeros(100_000)})
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "data.npz").write_bytes(bytes(5_000_000))
    size = sum(path.stat().st_size for path in tmp_path.glob("*.npz")) - 5_000_000
    assert run("size", str(tmp_path)).output == f"3 chunks, {size / 1e6:,.1f} MB\n"
    assert size / 1e6 == pytest.approx(2.4, abs=0.01)
    assert run("clear", str(tmp_path)).output == "removed 3 files\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.npz", "notes.txt"]
    assert run("size", str(tmp_path)).output == "0 chunks, 0.0 MB\n"


@pytest.mark.parametrize("command", ["size", "clear", "ls", "verify", "gc"])
def test_a_folder_that_is_none_is_not_made(tmp_path, command):
    for place in (tmp_path / "nowhere", tmp_path / "file"):
        (tmp_path / "file").write_text("x")
        assert str(run(command, str(place)).exception) == f"{place}: no such store"
    assert not (tmp_path / "nowhere").exists()


@pytest.fixture(params=["folder", "file", "memory"])
def url(request, tmp_path) -> str:
    places = {"folder": str(tmp_path), "file": tmp_path.as_uri(), "memory": f"memory://{uuid4().hex}"}
    return places[request.param]


def test_chunks_are_listed(url, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)
    store = Store(url)
    for seed in range(2):
        store.save(key(seed=seed), {"loss": np.zeros(100_000)})
    chunks = run("ls", url).output.splitlines()
    assert [line.split()[:2] for line in chunks] == [
        [entry.name, f"{entry.n_bytes:,}"] for entry in sorted(store.ls(), key=lambda entry: entry.name)
    ]
    assert all(re.search(r"  20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC$", line) for line in chunks)


def test_damage_is_named_and_is_the_exit_code(url):
    store = Store(url)
    for seed in range(3):
        store.save(key(seed=seed), {"loss": np.zeros(10)})
    left = run("verify", url)
    assert (left.exit_code, left.output.splitlines()[-1]) == (0, "3 chunks, all as they were written")
    assert left.output.startswith(f"3 of {this_machine().digest}: ")
    store.place.replace(f"{key(seed=1)}.npz", b"cut")
    left = run("verify", url)
    assert left.output.splitlines()[-1] == f"{key(seed=1)}  damaged: it is too short"
    assert str(left.exception) == "1 of 3 chunks are damaged; the next run that needs one replaces it"


def test_what_is_unused_is_removed_and_chunks_by_age(url, monkeypatch):
    store = Store(url)
    store.save(key(seed=0), {"loss": np.zeros(10)})
    assert run("gc", url).output == "removed 0 checkpoints, 0 leftovers, 0 chunks\n"
    assert run("gc", url, "--older-than", "1").output == "removed 0 checkpoints, 0 leftovers, 0 chunks\n"
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 2 * 24 * 3600)
    assert run("gc", url, "--older-than", "1").output == "removed 0 checkpoints, 0 leftovers, 1 chunks\n"
    assert run("size", url).output == "0 chunks, 0.0 MB\n"


def test_checkpoints_are_counted_and_removed_with_their_chunk(url):
    store = Store(url)
    StoredCheckpoints(store, key(seed=0)).write("aa", bytes(199_968))
    assert run("size", url).output == "0 chunks, 0.0 MB\ncheckpoints: 0.2 MB\n"
    assert run("gc", url).output == "removed 0 checkpoints, 0 leftovers, 0 chunks\n"
    store.save(key(seed=0), {"loss": np.zeros(10)})
    assert run("gc", url).output == "removed 1 checkpoints, 0 leftovers, 0 chunks\n"
    assert "checkpoints" not in run("size", url).output


def test_a_url_that_is_none_is_one_line():
    for url in ("ftp://host/runs", "s3://"):
        assert "allowed are a folder, file://" in str(run("size", url).exception)
