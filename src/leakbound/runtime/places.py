"""Where a store lies: a folder of this machine, or objects under a URL, with one rule for both.

The rule is the create-only put: of all who write an object of one name, at any time and on any machine, exactly one
is told that it created it, and a reader sees a whole object or none. Places without it are refused:

=============  ====================================================================================================
folder, file   the bytes are written next to their place and then linked to it, which fails where a file is; a file
               system without hard links takes a lock, a look and a rename instead
s3             a PUT with ``If-None-Match: *``, by s3fs; servers that ignore the header are noticed and refused
memory         within one process, under a lock
=============  ====================================================================================================
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit
from urllib.request import url2pathname

from filelock import FileLock

from leakbound.files import temporary
from leakbound.files.system import OWNER_ALONE, OWNERS_FOLDER, open_new
from leakbound.runtime.chunk_file import Damaged
from leakbound.runtime.server_errors import is_conflict, is_missing_bucket, reason

T = TypeVar("T")
ALLOWED = "a folder, file://, s3://BUCKET/FOLDER, memory://NAME (within one process)"
KEY = "[0-9a-f]" * 64  # the names of chunks: nothing else is ours to count or remove
CHECKPOINTS = "checkpoints"  # the folder of trainings that are under way
PROBE = "create-only.probe"  # an object whose second put tells whether the server knows the rule
_URL = re.compile(r"(?P<protocol>[A-Za-z][A-Za-z0-9+.:-]*)://(?P<rest>.*)", re.DOTALL)
_COLLAPSED = re.compile(r"(s3|memory|file):[/\\](?![/\\])")  # what pathlib makes of a URL
_PROTOCOLS = ("s3", "memory")
_LARGEST_PUT = 5 * 2**30  # bytes: what S3 takes in one request, which is created as a whole or not at all
_ATTEMPTS = 3
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
_PARTS = f".{KEY}.*{temporary.PART}"
_TEMPORARY_FOLDERS = temporary.FOLDER.format(owner="*")
_LOCK = ".chunks.lock"
_MEMORY = RLock()  # of memory://, which all stores of a process share


@dataclass(frozen=True)
class Entry:
    """An object of a listing."""

    name: str
    n_bytes: int
    changed: float


class Place(Protocol):
    """Where the objects of a store lie. Names are relative, with at most one folder: ``checkpoints/NAME``."""

    url: str

    def read(self, name: str) -> bytes | None:
        """Return the bytes of an object; None where there is none."""
        ...

    def put_new(self, name: str, content: bytes) -> bool:
        """Create an object; False, and nothing has changed, where there is one already."""
        ...

    def replace(self, name: str, content: bytes) -> None:
        """Write an object whether or not there is one: for those that are damaged."""
        ...

    def entries(self, folder: str = "") -> list[Entry]:
        """List the objects of a folder, with their names in it."""
        ...

    def remove(self, name: str) -> None:
        """Remove an object; one that is gone already is no error."""
        ...

    def prepared(self) -> AbstractContextManager[None]:
        """Find out whether objects can be written, before hours are spent; a folder that stays empty is removed."""
        ...

    def sweep(self, *, everything: bool = False) -> int:
        """Remove what writers that are gone left half-written, or ``everything`` half-written: how much there was."""
        ...


class LocalFolder:
    """A folder of this machine, or of a network drive."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = str(folder)
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"the store {folder} is a file; give a folder")

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return (self.folder / name).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None
            except IsADirectoryError as error:
                raise Damaged("it is a folder") from error
            except OSError as error:
                # a file of a network drive that was replaced meanwhile is there when it is opened again
                if error.errno != errno.ESTALE or attempt == _ATTEMPTS:
                    reason = error.strerror or error
                    raise OSError(f"the store {self.url} cannot be read: {reason}, {name}") from error
        raise AssertionError("the last attempt returns or raises")

    def put_new(self, name: str, content: bytes) -> bool:
        """Write next to the place, flush to the disk, then link: whole or not there, and never over another file."""
        if (self.folder / name).exists():  # then nothing needs to be written, nor can be written on a full disk
            return False
        return self._written(name, content, partial(_link, lock=self.folder / _LOCK))

    def replace(self, name: str, content: bytes) -> None:
        """Write next to the place, flush to the disk, then rename."""
        self._written(name, content, _rename)

    def entries(self, folder: str = "") -> list[Entry]:
        """List the files of the folder."""
        found = []
        try:
            with os.scandir(self.folder / folder) as files:
                for file in files:
                    with suppress(FileNotFoundError):  # somebody has just removed it
                        if file.is_file():
                            state = file.stat()
                            found.append(Entry(file.name, state.st_size, state.st_mtime))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise OSError(f"the store {self.url} cannot be read: {error.strerror or error}") from error
        return found

    def remove(self, name: str) -> None:
        """Remove a file."""
        temporary.remove(self.folder / name)

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """Make the folder, try a write and sweep it; if it is empty at the end, remove what was made."""
        missing = [folder for folder in (self.folder, *self.folder.parents) if not folder.exists()]
        self._make()
        try:
            self.sweep()
            self._try_a_write()
            yield
        finally:
            for folder in (self.folder / CHECKPOINTS, *missing):
                with suppress(OSError):  # something is in it
                    folder.rmdir()

    def sweep(self, *, everything: bool = False) -> int:
        """Remove parts of files, and the temporary folders of workers that are gone.

        Temporary folders of running processes stay in any case: their workers read them.
        """
        parts = [*self.folder.glob(_PARTS), *(self.folder / CHECKPOINTS).glob(_PARTS)]
        unused = [path for path in self.folder.glob(_TEMPORARY_FOLDERS) if temporary.abandoned(path)]
        unused += [path for path in parts if everything or temporary.abandoned(path)]
        for path in unused:
            temporary.remove(path)
        if everything:
            with suppress(OSError):  # something is in it
                (self.folder / CHECKPOINTS).rmdir()
        return len(unused)

    @contextmanager
    def _writable(self) -> Iterator[None]:
        """Turn the errors of the system into one line."""
        try:
            yield
        except OSError as error:
            raise OSError(f"the store {self.url} cannot be written: {error.strerror or error}") from error

    def _try_a_write(self) -> None:
        """Make and remove a file: the folder may be of somebody else, or on a disk that can only be read."""
        part = temporary.part_of(self.folder / "trial")
        with self._writable():
            try:
                os.close(open_new(part))
            finally:
                part.unlink(missing_ok=True)

    def _make(self) -> None:
        with self._writable():
            self.folder.mkdir(parents=True, exist_ok=True, mode=OWNERS_FOLDER)

    def _written(self, name: str, content: bytes, put: Callable[[Path, Path], bool]) -> bool:
        target = self.folder / name
        self._make()
        with self._writable():
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    target.parent.mkdir(parents=True, exist_ok=True, mode=OWNERS_FOLDER)
                    return _put(target, content, put)
                except FileNotFoundError:  # somebody cleared the store between write and link
                    if attempt == _ATTEMPTS:
                        raise
        raise AssertionError("the last attempt returns or raises")


def _put(target: Path, content: bytes, put: Callable[[Path, Path], bool]) -> bool:
    """Write a part next to the target and put it in its place: a reader never sees a half-written file."""
    part = temporary.part_of(target)
    try:
        with os.fdopen(open_new(part), "wb") as file:  # signals of single records: for its owner alone
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return put(part, target)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _rename(part: Path, target: Path) -> bool:
    os.replace(part, target)
    return True


def _link(part: Path, target: Path, lock: Path) -> bool:
    """Give a part the name of its target, if that is free."""
    try:
        os.link(part, target)
    except FileExistsError:
        # a network drive may repeat a request whose answer was lost: then the second name is ours
        return part.stat().st_nlink > 1
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return _rename_under(lock, part, target)
    return True


def _rename_under(lock: Path, part: Path, target: Path) -> bool:
    """Do the same where the file system has no hard links: all writers look and rename one after another."""
    with FileLock(lock, mode=OWNER_ALONE):
        if target.exists():
            return False
        return _rename(part, target)


class ObjectStore:
    """Objects under a URL, by fsspec."""

    def __init__(self, url: str) -> None:
        # credentials, region and endpoint come from where s3fs looks: the environment and the cloud's own files
        self.protocol, self.root = _parts(url)
        self.url = f"{self.protocol}://{self.root}"
        self._is_probed = False
        self._opening = Lock()
        self._files: Any = None

    def __reduce__(self) -> tuple[type[ObjectStore], tuple[str]]:
        """Leave the connection in its process."""
        return ObjectStore, (self.url,)

    def read(self, name: str) -> bytes | None:
        """Return the bytes of an object."""
        try:
            return self._do("read", lambda files: files.cat_file(self._path(name)))
        except FileNotFoundError:
            return None

    def put_new(self, name: str, content: bytes) -> bool:
        """Create an object in one request, which the server refuses where there is one already.

        An answer that was lost is asked for again; the second answer then says that the object is there.
        """
        self.probe()
        return self._do("written", lambda files: self._created(files, name, content))

    def replace(self, name: str, content: bytes) -> None:
        """Write an object whether or not there is one."""
        self._do("written", lambda files: files.pipe_file(self._path(name), content, **self._in_one_request))

    def entries(self, folder: str = "") -> list[Entry]:
        """List the objects below the URL."""
        path = self._path(folder).rstrip("/")
        try:
            listed = self._do("read", lambda files: self._listed(files, path))
        except FileNotFoundError:  # nothing is below that name
            return []
        objects = [each for each in listed if each["type"] == "file"]
        return [Entry(each["name"].rpartition("/")[2], each["size"], _changed(each)) for each in objects]

    def remove(self, name: str) -> None:
        """Remove an object."""
        with suppress(FileNotFoundError):
            self._do("written", lambda files: files.rm_file(self._path(name)))

    def prepared(self) -> AbstractContextManager[None]:
        """Put the probe: it needs the credentials, the bucket and the rule."""
        self.probe()
        return nullcontext()

    def sweep(self, *, everything: bool = False) -> int:
        """Remove the probe, with ``everything``: an object is put in one request, and is never half there."""
        if everything:
            self._is_probed = False
            self.remove(PROBE)
        return 0

    def probe(self) -> None:
        """Put one object twice, once for each place: the second put must not succeed."""
        if self._is_probed:
            return
        content = b"leakbound writes this object twice; a store must refuse the second time\n"
        # a probe that lies there already is refused at once
        for _ in range(2):
            if not self._do("written", lambda files: self._created(files, PROBE, content)):
                self._is_probed = True
                return
        raise OSError(
            f"the store {self.url} has no create-only put: it took the object {PROBE} twice, so that two "
            f"writers could overwrite each other; allowed are {ALLOWED}"
        )

    @property
    def _in_one_request(self) -> dict[str, Any]:
        """Keywords that keep s3fs from putting an object together from parts."""
        return {"chunksize": _LARGEST_PUT} if self.protocol == "s3" else {}

    def _created(self, files: Any, name: str, content: bytes) -> bool:
        path = self._path(name)
        try:
            if self.protocol == "memory":
                with _MEMORY:  # fsspec looks and writes in two steps
                    if files.exists(path):
                        return False
                    files.pipe_file(path, content)
            else:
                files.pipe_file(path, content, mode="create", **self._in_one_request)
        except FileExistsError:
            return False
        except OSError as error:
            if not is_conflict(error):  # then the caller looks what is there, and tries again
                raise
            return False
        return True

    def _listed(self, files: Any, path: str) -> list[dict[str, Any]]:
        if self.protocol == "memory":
            with _MEMORY:
                return files.ls(path, detail=True)
        return files.ls(path, detail=True, refresh=True)

    def _path(self, name: str) -> str:
        path = f"{self.root}/{name}"
        return f"/{path}" if self.protocol == "memory" else path

    def _do(self, what: str, operation: Callable[[Any], T]) -> T:
        """Do something with the file system; what goes wrong for good becomes one line without credentials."""
        with self._opening:
            if self._files is None:
                self._files = _file_system(self.protocol)
        try:
            return operation(self._files)
        except Exception as error:  # each library raises classes of its own
            if isinstance(error, FileNotFoundError) and not is_missing_bucket(error):
                raise
            raise OSError(f"the store {self.url} cannot be {what}: {reason(error)}") from error


def place_of(store: str | os.PathLike[str]) -> LocalFolder | ObjectStore:
    """Find the place that a path or a URL names; nothing is made and nothing is asked yet.

    >>> place_of("memory://runs").url
    'memory://runs'
    >>> place_of("ftp://host/runs")
    Traceback (most recent call last):
    ...
    ValueError: no store can be on ftp://; allowed are a folder, file://, s3://BUCKET/FOLDER, memory://NAME (within \
one process)
    """
    folder = local_folder(store)
    if folder is not None:
        return LocalFolder(folder)
    return ObjectStore(os.fspath(store))


def local_folder(store: str | os.PathLike[str] | None) -> Path | None:
    """Return the folder of a store on this machine; None for no store, and for one at a URL.

    >>> print(local_folder("s3://bucket/runs"), local_folder("file:///srv/runs"))
    None /srv/runs
    """
    if store is None:
        return None
    text = os.fspath(store)
    if _COLLAPSED.match(text):
        protocol = text.partition(":")[0]  # what follows may hold a secret
        raise ValueError(f"a store at a URL of {protocol} was read as a path; give it as text, with two slashes")
    url = _URL.fullmatch(text)
    if url is None:
        return Path(text)
    if url["protocol"].lower() != "file":
        return None
    parsed = urlsplit(text)
    if parsed.netloc not in ("", "localhost"):
        raise ValueError("a store at file:// is on another host; write file:///FOLDER for a folder of this machine")
    return Path(url2pathname(parsed.path))


def _parts(text: str) -> tuple[str, str]:
    """Protocol and path of a URL."""
    url = _URL.fullmatch(text)
    protocol, rest = (url["protocol"].lower(), url["rest"]) if url is not None else ("", "")
    if protocol not in _PROTOCOLS:
        raise ValueError(f"no store can be on {protocol}://; allowed are {ALLOWED}")
    root = rest.strip("/")
    if set(root) & set("@?#"):  # not repeated here: a secret may be in it
        raise ValueError(
            f"the URL of a {protocol} store has one of @ ? # in it; write {protocol}://BUCKET/FOLDER alone: "
            "credentials and options come from the environment"
        )
    if not root:
        raise ValueError(f"the store {text} names no bucket; allowed are {ALLOWED}")
    return protocol, root


def _file_system(protocol: str) -> Any:
    """Open a file system of fsspec that caches no listing; what may pass by itself is tried again by botocore."""
    import fsspec

    if protocol == "memory":
        return fsspec.filesystem("memory")
    # half a minute on average, also for 429, which the newer mode does not know; the environment may say how often
    again = {} if "AWS_MAX_ATTEMPTS" in os.environ else {"retries": {"mode": "legacy", "max_attempts": 6}}
    try:
        files: Any = fsspec.filesystem(
            "s3", skip_instance_cache=True, use_listings_cache=False, config_kwargs={"read_timeout": 60, **again}
        )
    except ImportError:
        raise ValueError("a store on s3:// needs s3fs; install it with: pip install 'leakbound[s3]'") from None
    files.retries = 2  # attempts of s3fs, for an answer that breaks off while it is read
    return files


def _changed(listed: dict[str, Any]) -> float:
    """When an object was written, by the names that s3fs and memory give it."""
    changed: datetime | float = listed.get("LastModified") or listed["created"]
    return changed.timestamp() if isinstance(changed, datetime) else changed
