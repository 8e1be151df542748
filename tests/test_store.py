"""The store: a chunk is whole or not there, and its name changes with everything that it depends on."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from leakscope.store import Store, key

ARRAYS = {"loss": np.arange(6, dtype=np.float32).reshape(2, 3), "correct": np.ones((2, 3), dtype=np.float32)}
PARTS = {
    "release": {"estimator": "a:B", "parameters": {"C": 1.0}},
    "data": "abc",
    "member": "0f",
    "seeds": [1, 2],
    "signals": ["loss"],
    "leakscope": "0.1.0",
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def files(store: Store) -> list[str]:
    return sorted(path.name for path in store.folder.iterdir())


class TestKey:
    @pytest.mark.parametrize(
        ("part", "value"),
        [
            ("release", {"estimator": "a:B", "parameters": {"C": 2.0}}),
            ("release", {"estimator": "a:C", "parameters": {"C": 1.0}}),
            ("data", "abd"),
            ("member", "f0"),
            ("seeds", [2, 1]),
            ("seeds", ["1", 2]),
            ("signals", ["correct", "loss"]),
            ("leakscope", "0.1.1"),
        ],
    )
    def test_changes_with_each_part(self, part, value):
        assert key(**{**PARTS, part: value}) != key(**PARTS)

    def test_does_not_depend_on_the_order_of_names(self):
        assert key(**dict(reversed(PARTS.items()))) == key(**PARTS)

    def test_is_a_sha256(self):
        assert len(key(**PARTS)) == 64
        assert set(key(**PARTS)) <= set("0123456789abcdef")


class TestChunks:
    def test_come_back_as_they_were(self, store):
        store.save(key(row=0), ARRAYS)
        found = store.load(key(row=0))
        assert found is not None
        assert found.keys() == ARRAYS.keys()
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(found[name], array)
            assert found[name].dtype == array.dtype

    def test_are_missing_until_they_are_saved(self, store):
        assert store.load(key(row=0)) is None
        assert store.size() == (0, 0)
        assert store.clear() == 0

    def test_are_the_same_bytes_every_time(self, tmp_path):
        stores = [Store(tmp_path / name) for name in "ab"]
        for each in stores:
            each.save(key(row=0), ARRAYS)
        first, second = ((each.folder / files(each)[0]).read_bytes() for each in stores)
        assert first == second

    def test_are_for_their_owner_alone(self, store):
        store.save(key(row=0), ARRAYS)
        assert store.folder.stat().st_mode & 0o077 == 0

    def test_nothing_stays_beside_them(self, store):
        store.save(key(row=0), ARRAYS)
        assert files(store) == [f"{key(row=0)}.npz"]


class TestDamage:
    def test_a_changed_byte_is_never_read_as_a_chunk(self, store):
        """Each single bit of a chunk turned over: the same arrays (an unused field), or none."""
        store.save(key(row=0), {"loss": np.arange(3.0)})
        path = store.folder / files(store)[0]
        whole = path.read_bytes()
        n_refused = 0
        for place in range(len(whole)):
            for bit in range(8):
                damaged = bytearray(whole)
                damaged[place] ^= 1 << bit
                path.write_bytes(bytes(damaged))
                found = store.load(key(row=0))
                n_refused += found is None
                assert found is None or (list(found) == ["loss"] and found["loss"].tolist() == [0, 1, 2])
        assert n_refused > 4 * len(whole)

    def test_a_cut_off_chunk_is_missing(self, store):
        store.save(key(row=0), ARRAYS)
        path = store.folder / files(store)[0]
        whole = path.read_bytes()
        for length in range(0, len(whole), 7):
            path.write_bytes(whole[:length])
            assert store.load(key(row=0)) is None

    def test_a_damaged_chunk_is_made_again(self, store):
        store.save(key(row=0), ARRAYS)
        (store.folder / files(store)[0]).write_bytes(b"half")
        assert store.load(key(row=0)) is None
        store.save(key(row=0), ARRAYS)
        assert store.load(key(row=0)) is not None

    def test_pickles_are_refused(self, store):
        store.save(key(row=0), {"loss": np.array([{}], dtype=object)})
        assert store.load(key(row=0)) is None


class TestFailures:
    @pytest.mark.parametrize(("step", "number"), [("replace", errno.EACCES), ("fsync", errno.ENOSPC)])
    def test_nothing_half_written_stays(self, store, monkeypatch, step, number):
        store.save(key(row=0), ARRAYS)

        def fail(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, step, fail)
        with pytest.raises(OSError) as caught:
            store.save(key(row=1), ARRAYS)
        assert str(caught.value) == f"the store {store.folder} cannot be written: {os.strerror(number)}"
        monkeypatch.undo()
        assert files(store) == [f"{key(row=0)}.npz"]
        store.save(key(row=1), ARRAYS)
        assert store.size()[0] == 2

    def test_an_old_chunk_survives_a_failed_rewrite(self, store, monkeypatch):
        store.save(key(row=0), ARRAYS)

        def fail(*_: object) -> None:
            raise OSError(errno.EIO, "input/output error")

        monkeypatch.setattr(os, "replace", fail)
        with pytest.raises(OSError):
            store.save(key(row=0), {"loss": np.zeros(1)})
        found = store.load(key(row=0))
        assert found is not None
        np.testing.assert_array_equal(found["loss"], ARRAYS["loss"])

    def test_a_folder_that_cannot_be_made(self, tmp_path):
        (tmp_path / "file").touch()
        store = Store(tmp_path / "file" / "store")
        with pytest.raises(OSError) as caught:
            store.save(key(row=0), ARRAYS)
        assert str(caught.value) == f"the store {store.folder} cannot be written: {os.strerror(errno.ENOTDIR)}"

    def test_a_file_is_no_store(self, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(ValueError) as caught:
            Store(tmp_path / "file")
        assert str(caught.value) == f"the store {tmp_path / 'file'} is a file; give a folder"

    def test_a_kill_before_the_rename_leaves_the_chunk_missing(self, store):
        """A process that dies between write and rename; the sweep of the next run removes what it left."""
        code = (
            "import os, sys, numpy as np; from leakscope.store import Store, key\n"
            "os.replace = lambda *_: os._exit(9)\n"
            "Store(sys.argv[1]).save(key(row=0), {'loss': np.zeros(1000)})"
        )
        died = subprocess.run([sys.executable, "-c", code, str(store.folder)], check=False)
        assert died.returncode == 9
        assert len(files(store)) == 1
        assert store.load(key(row=0)) is None
        store.sweep()
        assert files(store) == []


class TestSweep:
    def test_removes_only_what_dead_processes_left(self, store):
        store.save(key(row=0), ARRAYS)
        dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
        left = store.folder / f".{key(row=1)}.{int(dead.stdout)}.part"
        ours = store.folder / f".{key(row=2)}.{os.getpid()}.part"
        init = store.folder / f".{key(row=3)}.1.part"
        foreign = [store.folder / name for name in (".notes.part", ".a.b.part", "data.npz")]
        for path in (left, ours, init, *foreign):
            path.touch()
        store.sweep()
        assert files(store) == sorted([f"{key(row=0)}.npz", *(path.name for path in (ours, init, *foreign))])


class TestSizeAndClear:
    def test_count_chunks_and_their_bytes(self, store):
        for row in range(3):
            store.save(key(row=row), ARRAYS)
        paths = list(store.folder.iterdir())
        assert store.size() == (3, sum(path.stat().st_size for path in paths))

    def test_clear_removes_chunks_and_leftovers_and_nothing_else(self, store):
        store.save(key(row=0), ARRAYS)
        (store.folder / f".{key(row=1)}.{os.getpid()}.part").touch()
        for name in ("mine.npz", "notes.txt", ".mine.part"):
            (store.folder / name).touch()
        assert store.size()[0] == 1
        assert store.clear() == 2
        assert files(store) == [".mine.part", "mine.npz", "notes.txt"]
