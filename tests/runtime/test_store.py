"""The store: a chunk is whole or not there, and its name changes with everything that it depends on."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import subprocess
import sys
import time
import tracemalloc
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from leakbound.files import temporary
from leakbound.runtime.machine import this_machine
from leakbound.runtime.store import Collected, Store, key

ARRAYS = {"loss": np.arange(6, dtype=np.float32).reshape(2, 3), "correct": np.ones((2, 3), dtype=np.float32)}
PARTS = {
    "release": {"estimator": "a:B", "parameters": {"C": 1.0}},
    "data": "abc",
    "member": "0f",
    "seeds": [1, 2],
    "signals": ["loss"],
    "leakbound": "0.1.0",
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
            ("leakbound", "0.1.1"),
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
    """A chunk of several arrays that was changed, moved or forged: never another number, never an exception."""

    several = ARRAYS | {"logits": np.linspace(-1, 1, 12).reshape(2, 3, 2), "n": np.array(7)}

    def load(self, store: Store, content: bytes, name: str = key(row=0)) -> dict[str, np.ndarray] | None:
        (store.folder / f"{name}.npz").write_bytes(content)
        return store.load(name)

    def whole(self, store: Store, arrays: dict[str, np.ndarray] | None = None) -> bytes:
        store.save(key(row=0), self.several if arrays is None else arrays)
        return (store.folder / f"{key(row=0)}.npz").read_bytes()

    @pytest.mark.slow
    def test_each_single_bit_turned_over_refuses_the_chunk(self, store):
        """Headers, names, sizes, the directory of the zip, contents and the digest itself."""
        whole = self.whole(store)
        for place in range(len(whole)):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << place % 8
            assert self.load(store, bytes(damaged)) is None, f"byte {place}"
        assert self.load(store, whole) is not None

    @pytest.mark.nightly
    def test_ten_thousand_random_flips_of_one_to_eight_bits(self, store):
        whole, rng = self.whole(store), np.random.default_rng(0)
        for _ in range(10_000):
            damaged = bytearray(whole)
            for place, bit in zip(
                rng.integers(len(whole), size=8), rng.integers(8, size=rng.integers(1, 9)), strict=False
            ):
                damaged[place] ^= 1 << int(bit)
            if bytes(damaged) != whole:  # two flips of one bit
                assert self.load(store, bytes(damaged)) is None

    @pytest.mark.slow
    @pytest.mark.parametrize("n_flips", [500, pytest.param(10_000, marks=pytest.mark.nightly)])
    def test_damage_under_a_digest_that_was_made_anew_raises_nothing(self, store, n_flips):
        """As if the digest were not there: what is left are the checks of the key, the names and the sizes."""
        whole, rng = self.whole(store), np.random.default_rng(1)
        expected = {name: (array.shape, array.dtype) for name, array in self.several.items()}
        n_refused = 0
        for _ in range(n_flips):
            damaged = bytearray(whole[:-64])
            damaged[rng.integers(len(damaged))] ^= 1 << int(rng.integers(8))
            found = self.load(store, signed(bytes(damaged)))
            n_refused += found is None
            assert found is None or {name: (array.shape, array.dtype) for name, array in found.items()} == expected
        assert n_refused > n_flips / 2

    def test_a_cut_off_chunk_is_missing(self, store):
        whole = self.whole(store)
        for length in range(0, len(whole), 7):
            assert self.load(store, whole[:length]) is None
        for length in range(0, len(whole) - 66, 7):  # the last two bytes of the zip say how long the digest is
            assert self.load(store, signed(whole[:length])) is None

    def test_the_chunk_of_another_key_is_not_taken(self, store):
        other = self.whole(store)
        assert self.load(store, other, name=key(row=1)) is None

    def test_a_chunk_without_arrays_is_not_taken(self, store):
        assert self.load(store, self.whole(store, {})) is None
        assert self.load(store, signed(zipped({}))) is None

    def test_a_chunk_that_does_not_fit_is_not_taken(self, store):
        store.save(key(row=0), ARRAYS)
        assert store.load(key(row=0), lambda arrays: arrays["loss"].shape == (2, 3)) is not None
        assert store.load(key(row=0), lambda arrays: arrays["loss"].shape == (3, 3)) is None

    def test_chunks_of_numpy_alone_are_not_taken(self, store):
        """As earlier versions wrote them."""
        store.save(key(row=0), ARRAYS)
        np.savez(store.folder / f"{key(row=0)}.npz", **ARRAYS)
        assert store.load(key(row=0)) is None

    @pytest.mark.parametrize("shape", [[10**9], [10**9, 10**9, 10**9], [-1], [10**30]], ids=str)
    def test_a_header_that_declares_a_billion_rows_allocates_nothing(self, store, shape, as_users_run_it):
        self.whole(store)
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": tuple(shape)})
        machine = {"digest": this_machine().digest, "facts": this_machine().facts}
        listed = {"arrays": {"loss": {"shape": shape, "dtype": "<f8"}}, "arrays_digest": "0" * 64}
        contents = {"format": 2, "key": key(row=0), "machine": machine, **listed}
        members = {"chunk.json": json.dumps(contents).encode(), "loss.npy": header.getvalue() + bytes(80)}
        forged = signed(zipped(members))
        tracemalloc.start()
        try:
            assert self.load(store, forged) is None
            assert tracemalloc.get_traced_memory()[1] < 10e6
        finally:
            tracemalloc.stop()

    def test_a_zip_bomb_is_not_unpacked(self, store):
        self.whole(store)
        bomb = signed(zipped({"chunk.json": b" " * 50_000_000, "loss.npy": b""}, zipfile.ZIP_DEFLATED))
        assert len(bomb) < 1e5
        tracemalloc.start()
        try:
            assert self.load(store, bomb) is None
            assert tracemalloc.get_traced_memory()[1] < 10e6
        finally:
            tracemalloc.stop()

    def test_a_damaged_chunk_is_made_again(self, store):
        whole = self.whole(store)
        assert self.load(store, b"half") is None
        store.save(key(row=0), self.several)
        assert store.load(key(row=0)) is not None
        assert (store.folder / f"{key(row=0)}.npz").read_bytes() == whole

    def test_python_objects_are_refused_before_anything_is_written(self, store):
        with pytest.raises(ValueError, match="'loss' holds Python objects and cannot be kept in a store"):
            store.save(key(row=0), {"loss": np.array([{}], dtype=object)})
        assert not store.folder.exists()


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """A zip whose comment has the length of a digest."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.comment = bytes(64)
    return file.getvalue()[:-64]


def signed(body: bytes) -> bytes:
    """With the digest that a chunk ends with."""
    return body + hashlib.sha256(body).hexdigest().encode()


class TestFailures:
    @pytest.mark.parametrize(("step", "number"), [("link", errno.EACCES), ("fsync", errno.ENOSPC)])
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

    def test_what_is_there_survives_a_failed_rewrite(self, store, monkeypatch):
        store.save(key(row=0), ARRAYS)
        path = store.folder / f"{key(row=0)}.npz"
        path.write_bytes(b"damaged")

        def fail(*_: object) -> None:
            raise OSError(errno.EIO, "input/output error")

        monkeypatch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="cannot be written: input/output error"):
            store.save(key(row=0), ARRAYS)
        assert files(store) == [path.name]
        assert path.read_bytes() == b"damaged"

    def test_a_file_that_cannot_be_read_is_one_line_and_is_listed(self, store, monkeypatch):
        """As one on a bad sector; it may be readable again in a moment, so nothing takes its place."""
        store.save(key(row=0), ARRAYS)
        read = Path.read_bytes

        def fail(_: Path) -> bytes:
            raise OSError(errno.EIO, "input/output error")

        monkeypatch.setattr(Path, "read_bytes", fail)
        line = f"the store {store.url} cannot be read: input/output error, {key(row=0)}.npz"
        with pytest.raises(OSError) as caught:
            store.load(key(row=0))
        assert str(caught.value) == line
        assert store.verify().damaged == {key(row=0): line}
        monkeypatch.setattr(Path, "read_bytes", read)
        assert store.load(key(row=0)) is not None

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

    def test_a_kill_before_the_link_leaves_the_chunk_missing(self, store):
        """A process that dies between write and link; the sweep of the next run removes what it left."""
        code = (
            "import os, sys, numpy as np; from leakbound.runtime.store import Store, key\n"
            "os.link = lambda *_: os._exit(9)\n"
            "Store(sys.argv[1]).save(key(row=0), {'loss': np.zeros(1000)})"
        )
        died = subprocess.run([sys.executable, "-c", code, str(store.folder)], check=False)
        assert died.returncode == 9
        assert len(files(store)) == 1
        assert store.load(key(row=0)) is None
        store.place.sweep()
        assert files(store) == []


class TestManyAtATime:
    def test_twenty_threads_write_the_same_chunk(self, store):
        """Each under a name of its own."""
        with ThreadPoolExecutor(20) as threads:
            list(threads.map(lambda _: store.save(key(row=0), ARRAYS), range(100)))
        assert files(store) == [f"{key(row=0)}.npz"]
        assert store.load(key(row=0)) is not None

    def test_a_part_that_is_cleared_away_is_written_again(self, store, monkeypatch):
        link, cleared = os.link, []

        def clear_first(source: object, target: object) -> None:
            if not cleared:
                cleared.append(store.clear())
            link(source, target)

        monkeypatch.setattr(os, "link", clear_first)
        store.save(key(row=0), ARRAYS)
        assert cleared == [1]
        assert store.load(key(row=0)) is not None
        assert files(store) == [f"{key(row=0)}.npz"]


class TestSweep:
    def test_removes_what_dead_processes_left_and_nothing_else(self, store):
        store.save(key(row=0), ARRAYS)
        chunk = store.folder / f"{key(row=1)}.npz"
        mine = temporary.part_of(chunk)
        dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
        left = mine.with_name(mine.name.replace(f".{os.getpid()}.", f".{int(dead.stdout)}."))
        elsewhere = chunk.with_name(f".{chunk.name}.another-host.{int(dead.stdout)}.{'0' * 16}.part")
        foreign = [store.folder / name for name in (".notes.part", ".a.b.part", "data.npz")]
        for path in (mine, left, elsewhere, *foreign):
            path.touch()
        store.place.sweep()
        assert not left.exists()
        assert mine.exists()
        assert elsewhere.exists()
        assert all(path.exists() for path in foreign)
        eight_days_ago = time.time() - 8 * 24 * 3600
        os.utime(elsewhere, (eight_days_ago, eight_days_ago))
        assert store.gc() == Collected(parts=1)
        assert not elsewhere.exists()
        assert mine.exists()
        assert (store.folder / f"{key(row=0)}.npz").exists()


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


def test_the_same_arrays_have_the_same_bytes_in_any_memory_order(tmp_path) -> None:
    values = np.arange(6.0).reshape(2, 3)
    for name, array in (
        ("c", values),
        ("f", np.asfortranarray(values)),
        ("strided", np.repeat(values, 2, axis=1)[:, ::2]),
    ):
        Store(tmp_path / name).save(key(a=1), {"loss": array})
    files = [path.read_bytes() for path in sorted(tmp_path.glob("*/*.npz"))]
    assert len(files) == 3
    assert len(set(files)) == 1


def test_a_chunk_that_cannot_be_read_now_is_not_replaced(tmp_path, monkeypatch) -> None:
    """A read error says nothing of what is in the file: the first whole chunk stays."""
    store, name = Store(tmp_path), key(a=1)
    store.save(name, {"loss": np.zeros(2)})

    def fails(path: Path) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", fails)
        with pytest.raises(OSError, match=r"^the store .* cannot be read: Input/output error, "):
            store.save(name, {"loss": np.ones(2)})
    assert store.load(name)["loss"].tolist() == [0.0, 0.0]


def test_a_stale_handle_is_opened_again(tmp_path, monkeypatch) -> None:
    store, name = Store(tmp_path), key(a=1)
    store.save(name, {"loss": np.zeros(2)})
    read, failures = Path.read_bytes, [errno.ESTALE, errno.ESTALE]

    def stale_at_first(path: Path) -> bytes:
        if failures:
            raise OSError(failures.pop(), "Stale file handle")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", stale_at_first)
    assert store.load(name)["loss"].tolist() == [0.0, 0.0]


def test_no_message_repeats_what_may_be_a_secret() -> None:
    for given in (Path("s3://AKIAKEY:TOPSECRET@bucket/x"), "file://user:TOPSECRET@host/x"):
        with pytest.raises(ValueError) as refused:
            Store(given)
        assert "TOPSECRET" not in str(refused.value)
