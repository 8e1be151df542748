"""What every store does, wherever it lies: in a folder, in this process, on a server of S3 on this machine."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from threading import Barrier
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from leakbound.runtime import checkpoints as checkpoints_module
from leakbound.runtime import machine, places
from leakbound.runtime import store as store_module
from leakbound.runtime.checkpoints import StoredCheckpoints
from leakbound.runtime.inputs import Inputs
from leakbound.runtime.machine import Machine, this_machine
from leakbound.runtime.observe import Execution
from leakbound.runtime.places import LocalFolder, ObjectStore
from leakbound.runtime.store import Collected, Saved, Store, key
from tests.marks import slow_but
from tests.s3_server import ENVIRONMENT, Server

ARRAYS = {"loss": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array(7)}
OTHERS = {"loss": np.zeros((2, 3), dtype=np.float32), "n": np.array(7)}
KEY = key(row=0)
OTHER_MACHINE = Machine({**this_machine().facts, "features": ["NEON"]})
ROOT = Path(__file__).resolve().parents[2]


PLACES = ["folder", "file", "memory", "s3", "without links"]


@pytest.fixture(params=slow_but(PLACES, "folder", "file", "memory", "without links"))
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str | Path]:
    """A new place of each kind."""
    name = uuid4().hex
    if request.param == "memory":
        yield f"memory://{name}/store"
        Store(f"memory://{name}/store").clear()
        return
    if request.param == "s3":
        request.getfixturevalue("s3")
        yield f"s3://bucket/{name}/store"
        return
    if request.param == "without links":
        monkeypatch.setattr(os, "link", refuse_links)
    yield (tmp_path / "store").as_uri() if request.param == "file" else tmp_path / "store"


@pytest.fixture
def store(url: str | Path) -> Store:
    return Store(url)


def refuse_links(*_: object) -> None:
    """As a FAT file system does."""
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def after_a_moment(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, but slow to begin."""

    def slow(*arguments: Any, **words: Any) -> Any:
        time.sleep(0.01)
        return function(*arguments, **words)

    return slow


def put(store: Store, name: str, content: bytes) -> None:
    """Write an object as somebody who does not know the rules."""
    if isinstance(store.place, LocalFolder):
        path = store.place.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    else:
        store.place.replace(name, content)


def content_of(store: Store, name: str = f"{KEY}.npz") -> bytes:
    content = store.place.read(name)
    assert content is not None
    return content


def objects(store: Store) -> set[str]:
    """All names, but that of the probe."""
    names = {entry.name for entry in store.place.entries()} - {places.PROBE, ".chunks.lock"}
    return names | {f"notes/{entry.name}" for entry in store.place.entries("notes")}


class TestChunks:
    def test_come_back_as_they_were(self, store):
        saved = store.save(KEY, ARRAYS)
        assert saved == Saved(KEY, True, saved.digest, len(content_of(store)))
        found = store.load(KEY)
        assert found is not None
        assert found.keys() == ARRAYS.keys()
        for name, values in ARRAYS.items():
            np.testing.assert_array_equal(found[name], values)
            assert found[name].dtype == values.dtype

    def test_are_missing_until_they_are_saved(self, store):
        assert store.load(KEY) is None
        assert store.ls() == []
        assert store.size() == (0, 0)
        assert store.missing([KEY]) == {KEY}
        assert store.clear() == 0
        assert store.gc(0.0) == Collected()
        assert store.verify().n_chunks == 0

    def test_the_first_stays(self, store):
        store.save(KEY, ARRAYS)
        before = content_of(store)
        again = store.save(KEY, ARRAYS)
        assert (again.created, again.other_machine, again.differs) == (False, False, False)
        differing = store.save(KEY, OTHERS)
        assert (differing.created, differing.other_machine, differing.differs) == (False, False, True)
        assert differing.digest == again.digest
        assert content_of(store) == before
        assert (store.n_differing, store.n_other_machine) == (1, 0)

    def test_of_another_machine_stay_and_are_used(self, store, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(store_module, "this_machine", lambda: OTHER_MACHINE)
            there = store.save(KEY, OTHERS)
            store.save(key(row=1), ARRAYS)
        here = store.save(KEY, ARRAYS)
        assert here == Saved(KEY, False, there.digest, there.n_bytes, other_machine=True)
        same = store.save(key(row=1), ARRAYS)  # other machines give the same arrays as a rule
        assert (same.created, same.other_machine, same.differs) == (False, False, False)
        assert (store.n_differing, store.n_other_machine) == (0, 1)
        np.testing.assert_array_equal(store.keep(KEY, dict(ARRAYS))["loss"], OTHERS["loss"])
        assert store.verify().damaged == {}
        assert list(store.verify().machines.values()) == [2]

    def test_that_do_not_fit_are_replaced(self, store):
        store.save(KEY, {"loss": np.zeros(1)})
        saved = store.save(KEY, ARRAYS, lambda arrays: "n" in arrays)
        assert saved.created
        assert store.load(KEY, lambda arrays: "n" in arrays) is not None

    def test_are_the_same_bytes_every_time(self, store):
        store.save(KEY, ARRAYS)
        first = content_of(store)
        store.clear()
        store.save(KEY, ARRAYS)
        assert content_of(store) == first

    def test_python_objects_are_refused(self, store):
        with pytest.raises(ValueError, match="'loss' holds Python objects"):
            store.save(KEY, {"loss": np.array([{}], dtype=object)})
        assert objects(store) == set()

    def test_a_store_is_the_same_in_another_process(self, store):
        """What goes with a task to a worker."""
        store.save(KEY, ARRAYS)
        other = pickle.loads(pickle.dumps(store))
        assert other.url == store.url
        assert other.load(KEY) is not None
        assert not other.save(KEY, ARRAYS).created


class TestManyWriters:
    def test_of_eight_threads_exactly_one_creates_a_chunk(self, url, monkeypatch):
        """Each with a store of its own; they begin together, five times. Between a look and a write there is time."""
        for owner, name in ((places, "_rename"), (MemoryFileSystem, "pipe_file")):
            monkeypatch.setattr(owner, name, after_a_moment(getattr(owner, name)))
        stores = [Store(url) for _ in range(8)]
        for each in stores:
            each.load(KEY)
        begin = Barrier(8)
        with ThreadPoolExecutor(8) as threads:
            for row in range(5):

                def save(number: int, row: int = row) -> Saved:
                    begin.wait()
                    return stores[number].save(key(row=row), {"loss": np.full(1000, number)})

                saved = list(threads.map(save, range(8)))
                created = [each for each in saved if each.created]
                assert len(created) == 1
                assert {(each.digest, each.n_bytes) for each in saved} == {(created[0].digest, created[0].n_bytes)}
                assert sum(each.differs for each in saved) == 7
        assert stores[0].size()[0] == 5
        assert stores[0].verify().damaged == {}

    @pytest.mark.slow
    def test_of_two_processes_exactly_one_creates_a_chunk(self, url, monkeypatch):
        """On 30 chunks, in the same order, each with arrays of its own."""
        if str(url).startswith("memory:"):
            code = "from leakbound.runtime.store import Store; import sys; print(Store(sys.argv[1]).size()[0])"
            Store(url).save(KEY, ARRAYS)
            other = subprocess.run([sys.executable, "-c", code, str(url)], capture_output=True, text=True, check=True)
            assert other.stdout == "0\n"  # it is of one process, as it says
            return
        lines = [
            "import json, os, sys, numpy as np, errno",
            "from leakbound.runtime.store import Store, key",
            "def refuse(*_): raise OSError(errno.EPERM, 'no links')",
            "if sys.argv[3] == 'True': os.link = refuse",
            "store, number = Store(sys.argv[1]), int(sys.argv[2])",
            "store.ls(); print('ready', flush=True); sys.stdin.readline()",
            "saved = [store.save(key(row=row), {'loss': np.full(3000, number)}) for row in range(30)]",
            "print(json.dumps([[each.created, each.digest] for each in saved]))",
        ]
        has_no_links = os.link is refuse_links
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", "\n".join(lines), str(url), str(number), str(has_no_links)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(2)
        ]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        one, two = (json.loads(process.communicate(timeout=60)[0]) for process in processes)
        for (created_one, digest_one), (created_two, digest_two) in zip(one, two, strict=True):
            assert created_one + created_two == 1
            assert digest_one == digest_two
        verified = Store(url).verify()
        assert (verified.n_chunks, verified.damaged) == (30, {})


class TestDamage:
    """A damaged object counts as missing, is named, and is replaced."""

    @pytest.fixture(params=["cut off", "flipped", "of another key", "empty", "text"])
    def damaged(self, request, store) -> Callable[[], bytes]:
        store.save(KEY, ARRAYS)
        whole = content_of(store)
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 4
        other = store.save(key(row=1), ARRAYS)
        assert other.created
        kinds = {
            "cut off": whole[: len(whole) // 2],
            "flipped": bytes(flipped),
            "of another key": content_of(store, f"{key(row=1)}.npz"),
            "empty": b"",
            "text": b"<html>not here</html>",
        }
        put(store, f"{KEY}.npz", kinds[request.param])
        return whole

    def test_is_missing_named_and_replaced(self, store, damaged):
        assert store.load(KEY) is None
        verified = store.verify()
        assert (verified.n_chunks, list(verified.damaged)) == (2, [KEY])
        assert verified.damaged[KEY].startswith("it ")
        assert store.missing([KEY]) == set()  # a listing shows no damage; load does
        saved = store.save(KEY, ARRAYS)
        assert saved.created
        assert content_of(store) == damaged
        assert store.verify().damaged == {}


class TestListings:
    @pytest.mark.slow
    def test_of_more_than_a_thousand_objects_are_whole(self, store, request):
        """S3 gives a thousand at a time."""
        names = [key(row=row) for row in range(1100)]
        store.save(names[0], ARRAYS)
        content, others = content_of(store, f"{names[0]}.npz"), [f"{name}.npz" for name in names[1:-1]]
        if store.url.startswith("s3:"):
            request.getfixturevalue("s3").fill(store.url.removeprefix("s3://bucket/"), others, content)
        else:
            for other in others:
                put(store, other, content)
        assert [entry.name for entry in store.ls()] == sorted(names[:-1])
        assert store.size() == (1099, 1099 * len(content))
        assert store.missing(names) == {names[-1]}

    def test_tell_when_a_chunk_was_written(self, store):
        store.save(KEY, ARRAYS)
        [entry] = store.ls()
        assert (entry.name, entry.n_bytes) == (KEY, len(content_of(store)))
        assert abs(entry.changed - time.time()) < 60

    def test_names_that_are_not_ours_are_never_touched(self, store):
        foreign = {"notes.txt", f"{KEY}.npz.bak", f"{KEY[:-1]}.npz", f"{KEY.upper()}.npz", "notes/notes.json"}
        for name in foreign:
            put(store, name, b"mine")
        store.save(KEY, ARRAYS)
        assert store.size()[0] == 1
        assert store.verify().damaged == {}
        assert store.gc(older_than=-1.0).chunks == 1
        with store.prepared():
            pass
        store.save(KEY, ARRAYS)
        assert store.clear() == 1
        assert objects(store) == foreign
        assert places.PROBE not in {entry.name for entry in store.place.entries()}
        assert all(content_of(store, name) == b"mine" for name in foreign)


class TestCollection:
    def test_chunks_go_by_age_and_only_if_asked(self, store, monkeypatch):
        store.save(KEY, ARRAYS)
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 10 * 24 * 3600)
        assert store.gc() == Collected()
        assert store.gc(older_than=11) == Collected()
        assert store.gc(older_than=9) == Collected(chunks=1)
        assert store.size()[0] == 0


class TestRefusals:
    @pytest.mark.parametrize("url", ["ftp://host/runs", "http://host/runs", "az://c/runs", "simplecache::s3://b/runs"])
    def test_other_protocols_are_refused_with_the_list_of_those_that_are_allowed(self, url):
        with pytest.raises(ValueError, match=r"no store can be on .*; allowed are a folder, file://, s3://") as caught:
            Store(url)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("url", ["s3://user:secret@bucket/x", "s3://bucket/x?token=secret", "s3://bucket/x#secret"])
    def test_credentials_in_a_url_are_refused_and_not_repeated(self, url):
        with pytest.raises(ValueError, match="credentials and options come from the environment") as caught:
            Store(url)
        assert "secret" not in str(caught.value)

    def test_urls_that_cannot_be_meant(self):
        with pytest.raises(ValueError, match="names no bucket"):
            Store("s3://")
        with pytest.raises(ValueError, match="was read as a path"):
            Store(Path("s3://bucket/runs"))
        with pytest.raises(ValueError, match="is on another host"):
            Store("file://server/runs")
        with pytest.raises(ValueError, match="is no folder of this machine"):
            _ = Store("memory://a").folder

    def test_a_library_that_is_not_installed_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "s3fs", None)
        with pytest.raises(
            ValueError, match=r"^a store on s3:// needs s3fs; install it with: pip install 'leakbound\[s3\]'"
        ):
            Store("s3://bucket-of-nobody/runs").ls()

    def test_temporary_files_of_workers_are_never_at_a_url(self, tmp_path):
        assert Execution("s3://bucket/runs").temporary_place is None
        assert Execution("memory://runs").temporary_place is None
        assert Execution((tmp_path / "a b").as_uri()).temporary_place == tmp_path / "a b"
        assert Execution(str(tmp_path)).temporary_place == tmp_path


class TestLocalFolders:
    def test_a_file_url_is_that_folder(self, tmp_path):
        Store((tmp_path / "a b").as_uri()).save(KEY, ARRAYS)
        assert Store(tmp_path / "a b").load(KEY) is not None

    def test_folders_are_for_their_owner_alone_and_leave_nothing(self, tmp_path):
        store = Store(tmp_path / "store")
        with store.prepared():
            StoredCheckpoints(store, KEY).write("aa", b"epoch 1")
            assert (store.folder / "checkpoints").stat().st_mode & 0o077 == 0
            store.clear()
        assert list(tmp_path.iterdir()) == []

    def test_a_link_whose_answer_was_lost_is_ours(self, tmp_path, monkeypatch):
        """A network drive does it, asks again, and is told that the name is taken."""
        link = os.link

        def twice(part: Path, target: Path) -> None:
            link(part, target)
            link(part, target)

        monkeypatch.setattr(os, "link", twice)
        assert Store(tmp_path).save(KEY, ARRAYS).created

    def test_a_read_only_disk(self, disk):
        disk.mount("size=1m")
        store = Store(disk.folder / "store")
        store.save(KEY, ARRAYS)
        disk.mount("remount,ro")
        assert store.load(KEY) is not None
        assert not store.save(KEY, ARRAYS).created  # nothing needs to be written
        with pytest.raises(OSError) as caught:
            store.save(key(row=1), ARRAYS)
        assert str(caught.value) == f"the store {store.url} cannot be written: {os.strerror(errno.EROFS)}"
        assert store.size()[0] == 1

    def test_a_full_disk(self, disk):
        disk.mount("size=64k")
        store = Store(disk.folder / "store")
        store.save(KEY, ARRAYS)
        with pytest.raises(OSError) as caught:
            store.save(key(row=1), {"loss": np.zeros(100_000)})
        assert str(caught.value) == f"the store {store.url} cannot be written: {os.strerror(errno.ENOSPC)}"
        assert [path.name for path in store.folder.iterdir()] == [f"{KEY}.npz"]
        assert store.load(KEY) is not None
        disk.mount("remount,size=4m")
        assert store.save(key(row=1), {"loss": np.zeros(100_000)}).created


class TestServers:
    """A server that is slow, full, refuses, or does not know the rule."""

    @pytest.fixture
    def store(self, s3: Server) -> Store:
        return Store(f"s3://bucket/{uuid4().hex}")

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "told",
        [
            {"status": 503, "code": "SlowDown"},
            {"status": 500, "code": "InternalError"},
            {"status": 409, "code": "ConditionalRequestConflict"},
            {"status": 429, "code": "TooManyRequests"},
        ],
        ids=lambda told: told["code"],
    )
    def test_what_passes_is_waited_for(self, s3, store, told):
        store.place.probe()
        s3.tell(refuse=1, **told)
        assert store.save(KEY, ARRAYS).created
        if told["status"] != 409:  # the answer to conditional puts alone
            s3.tell(refuse=1, **told)
            assert store.load(KEY) is not None
            s3.tell(refuse=1, **told)
            assert store.ls() != []

    @pytest.mark.slow
    def test_what_does_not_pass_is_one_line_and_loses_nothing(self, s3, store, monkeypatch):
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")  # half a minute unless it is set
        store.save(KEY, ARRAYS)
        s3.tell(refuse=1_000)
        for operation, what in ((lambda: store.save(key(row=1), ARRAYS), "written"), (store.ls, "read")):
            with pytest.raises(OSError, match=rf"^the store {store.url} cannot be {what}: ") as caught:
                operation()
            assert str(caught.value).endswith("what is finished is kept: run the same command again later")
        s3.tell()
        assert store.load(KEY) is not None
        assert store.save(key(row=1), ARRAYS).created

    @pytest.mark.slow
    def test_a_server_that_is_not_there(self, store, monkeypatch):
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        with pytest.raises(OSError, match="Could not connect to the endpoint URL") as caught:
            store.save(KEY, ARRAYS)
        assert "\n" not in str(caught.value)

    @pytest.mark.slow
    def test_a_put_whose_answer_was_lost_is_not_made_twice(self, s3, store):
        store.place.probe()
        s3.tell(lose=1)
        saved = store.save(KEY, ARRAYS)
        assert (saved.created, saved.differs, saved.other_machine) == (False, False, False)
        assert store.load(KEY) is not None

    @pytest.mark.parametrize(
        ("told", "words"),
        [
            ({"status": 403, "code": "AccessDenied"}, "access is denied; check the credentials in the environment"),
            ({"status": 403, "code": "InvalidAccessKeyId"}, "access is denied"),
            ({"status": 507, "code": "XMinioStorageFull"}, "no space is left; make room there"),
            ({"status": 501, "code": "NotImplemented"}, "puts on the condition If-None-Match"),
            ({"status": 400, "code": "InvalidRequest"}, r"told to, \$AWS_SECRET_ACCESS_KEY"),
        ],
        ids=lambda each: each["code"] if isinstance(each, dict) else "",
    )
    def test_what_waiting_does_not_mend_is_one_line_at_once(self, s3, store, told, words):
        s3.tell(refuse=1, **told)
        with pytest.raises(OSError, match=words) as caught:
            store.save(KEY, ARRAYS)
        assert "\n" not in str(caught.value)
        assert not any(value in str(caught.value) for name, value in ENVIRONMENT.items() if "KEY" in name)

    def test_no_bucket(self, s3):
        store = Store("s3://nowhere/runs")
        for operation in (store.ls, store.size, lambda: store.load(KEY), lambda: store.save(KEY, ARRAYS), store.clear):
            with pytest.raises(OSError, match="there is no such bucket; create it, or correct the URL"):
                operation()

    def test_no_credentials(self, store, monkeypatch, tmp_path):
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
            monkeypatch.setenv(name, str(tmp_path / "none"))
        with pytest.raises(OSError, match="access is denied; check the credentials in the environment"):
            store.save(KEY, ARRAYS)

    def test_one_that_ignores_the_condition_is_refused_before_anything_is_computed(self, s3, store):
        s3.tell(ignore_conditions=1)
        with pytest.raises(OSError, match="has no create-only put: it took the object create-only"):
            store.save(KEY, ARRAYS)
        with pytest.raises(OSError, match="has no create-only put"), store.prepared():
            raise AssertionError("not reached")
        assert store.ls() == []

    @pytest.mark.slow
    def test_an_object_is_put_in_one_request(self, s3, store):
        """Larger than what s3fs would put in parts, of which a broken-off upload would leave some."""
        arrays = {"loss": np.zeros(14_000_000)}
        store.place.probe()
        before = s3.tell()["n_requests"]
        assert store.save(KEY, arrays).created
        assert s3.tell()["n_requests"] - before == 1


class TestMachine:
    def test_its_kind_does_not_depend_on_what_was_imported_or_on_cores(self):
        """A new process that imports nothing else, with other threads, is of the same kind."""
        code = "from leakbound.runtime.machine import this_machine; print(this_machine().digest)"
        environment = os.environ | {"OMP_NUM_THREADS": "3", "OPENBLAS_NUM_THREADS": "3"}
        fresh = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, cwd=ROOT
        )
        import_module("scipy.linalg")
        import_module("sklearn.tree")
        machine.this_machine.cache_clear()
        assert fresh.stdout.strip() == this_machine().digest

    @pytest.mark.parametrize("fact", ["system", "cpu", "features", "blas", "threads", "versions"])
    def test_each_fact_makes_another_kind(self, fact):
        other: dict[str, Any] = {**this_machine().facts, fact: "another"}
        assert Machine(other).digest != this_machine().digest

    def test_instructions_that_numpy_does_not_use_make_another_kind(self):
        features = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
        code = "from leakbound.runtime.machine import this_machine; print(*this_machine().facts['features'])"
        environment = os.environ | {"NPY_DISABLE_CPU_FEATURES": features[-1]}
        fresh = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, cwd=ROOT
        )
        assert fresh.stdout.split() == [name for name in this_machine().facts["features"] if name != features[-1]]

    def test_it_names_nobody(self):
        import getpass
        import socket

        text = json.dumps(this_machine().facts)
        assert socket.gethostname() not in text
        assert str(Path.home()) not in text
        assert getpass.getuser() not in text.replace("root", "") or getpass.getuser() == "root"


def test_nothing_is_asked_before_something_is_needed(monkeypatch):
    """A store is opened without a library or a network."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(places, "_file_system", fail)
    assert isinstance(Store("s3://bucket/runs").place, ObjectStore)
    assert Store("S3://bucket/runs/").url == "s3://bucket/runs"


class TestCheckpoints:
    def test_come_back_until_the_chunk_is_made(self, store):
        checkpoints = StoredCheckpoints(store, KEY)
        checkpoints.write("aa", b"epoch 1")
        checkpoints.write("aa", b"epoch 2")
        assert StoredCheckpoints(store, KEY).read("aa") == b"epoch 2"
        assert StoredCheckpoints(store, key(row=1)).read("aa") is None
        inputs = b'{"files": {}, "environment": {}}\n'
        assert store.bytes_beside() == 32 + len(inputs) + len(b"epoch 2")
        assert store.size() == (0, 0)
        assert store.gc() == Collected()
        store.save(KEY, ARRAYS)
        assert store.gc() == Collected(checkpoints=1)
        assert store.bytes_beside() == 0

    def test_come_back_only_while_what_was_read_is_as_it_was(self, store, monkeypatch, tmp_path):
        settings = tmp_path / "conf.json"
        settings.write_text("1", encoding="utf-8")
        digest = hashlib.sha256(b"1").hexdigest()
        monkeypatch.setattr(checkpoints_module, "inputs_so_far", lambda: Inputs(files={str(settings): digest}))
        StoredCheckpoints(store, KEY).write("aa", b"epoch 1")
        assert StoredCheckpoints(store, KEY).read("aa") == b"epoch 1"
        settings.write_text("2", encoding="utf-8")
        assert StoredCheckpoints(store, KEY).read("aa") is None

    def test_of_another_version_are_none(self, store):
        checkpoints = StoredCheckpoints(store, KEY)
        for state in (b"\x80\x02 no line of inputs", b"{}\n", b"[]\nstate"):
            store.place.replace(checkpoints._path("aa"), hashlib.sha256(state).digest() + state)
            assert checkpoints.read("aa") in (None, b"")

    def test_go_when_nobody_has_gone_on_for_a_week(self, store, monkeypatch):
        StoredCheckpoints(store, KEY).write("aa", b"epoch 1")
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 6 * 24 * 3600)
        assert store.gc() == Collected()
        monkeypatch.setattr(time, "time", lambda: now + 8 * 24 * 3600)
        assert store.gc() == Collected(checkpoints=1)

    def test_go_with_the_store(self, store):
        store.save(KEY, ARRAYS)
        StoredCheckpoints(store, key(row=1)).write("aa", b"epoch 1")
        assert store.clear() == 2
        assert store.bytes_beside() == 0

    def test_a_place_that_fails_costs_the_checkpoint_alone(self, store, monkeypatch):
        def fail(*_: object) -> None:
            raise OSError("full")

        monkeypatch.setattr(store.place, "replace", fail)
        monkeypatch.setattr(store.place, "read", fail)
        checkpoints = StoredCheckpoints(store, KEY)
        checkpoints.write("aa", b"epoch 1")
        assert checkpoints.read("aa") is None
        checkpoints.remove()
