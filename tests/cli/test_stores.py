"""The commands of a store: its chunks and nothing else in the folder."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from leakscope.cli.stores import app
from leakscope.runtime.store import Store, key


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


@pytest.mark.parametrize("command", ["size", "clear"])
def test_a_folder_that_is_none_is_not_made(tmp_path, command):
    for place in (tmp_path / "nowhere", tmp_path / "file"):
        (tmp_path / "file").write_text("x")
        assert str(run(command, str(place)).exception) == f"{place}: no such store"
    assert not (tmp_path / "nowhere").exists()
