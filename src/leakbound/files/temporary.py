"""Files and folders that exist only while they are written or used, with their owner in the name.

A file is written under another name in the same folder and renamed when it is complete. The name holds the host,
the process and a random part, so that neither another host nor another thread of the same process takes it for a
file of its own. What a killed process left is removed by a later run: at once if that process ran on this host and
is gone, otherwise a week after its last sign of life.
"""

from __future__ import annotations

import atexit
import os
import re
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from leakbound.files.system import OWNERS_FOLDER, is_alive

MAX_AGE = 7 * 24 * 3600.0  # seconds without a sign of life, after which an owner that we cannot ask counts as gone
PART = ".part"
FOLDER = ".leakbound.{owner}.tmp"
_NAME = r"(?P<host>[\w-]+)\.(?P<process>\d+)\.[0-9a-f]{16}"
_OWNER = re.compile(rf"\.{_NAME}\.(?:part|tmp)$", re.ASCII)


def part_of(target: Path) -> Path:
    """Name the file or folder next to a target in which it is written until it is complete.

    >>> part_of(Path("out/report.json")) == part_of(Path("out/report.json"))
    False
    """
    return target.with_name(f".{target.name[:120]}.{owner()}{PART}")


def parts_of(target: Path) -> str:
    """Give the glob pattern of all parts of a target in its folder."""
    escaped = re.sub(r"([*?[])", r"[\1]", target.name[:120])
    return f".{escaped}.*{PART}"


def sweep(folder: Path, pattern: str) -> None:
    """Remove the files and folders of a folder that match a pattern and whose owner is gone."""
    for path in folder.glob(pattern):
        if abandoned(path):
            remove(path)


def abandoned(path: Path) -> bool:
    """Tell whether the process that a temporary file or folder is named after is gone.

    A process on this host is asked for; what belongs to another host, has no owner in its name, or to a process
    number that is in use, counts as abandoned when nobody has changed it for `MAX_AGE` seconds.
    """
    named = _OWNER.search(path.name)
    if named is not None and named["host"] == _host() and not is_alive(int(named["process"])):
        return True
    try:
        return time.time() - path.stat().st_mtime > MAX_AGE
    except OSError:  # somebody else has removed it
        return False


def remove(path: Path) -> None:
    """Remove a temporary file, or a folder with all that is in it; one that is gone already is no error."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink(missing_ok=True)


def touch(path: Path) -> None:
    """Give a sign of life, so that nobody takes what belongs to a long run for abandoned."""
    with suppress(OSError):
        os.utime(path)


@contextmanager
def folder(place: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """Lend this process its temporary folder in a place, readable by its owner alone.

    What killed processes left in the place is removed first. The folder itself is removed when its last user leaves
    and it is empty, and with all that is in it when the process ends.

    >>> with folder(tempfile.mkdtemp()) as lent:
    ...     oct(lent.stat().st_mode & 0o777)
    '0o700'
    """
    root = Path(tempfile.gettempdir() if place is None else place).resolve()
    if root.exists() and not root.is_dir():
        raise ValueError(f"the place for temporary files {root} is a file; give a folder")
    sweep(root, FOLDER.format(owner="*"))
    lent = _FOLDERS.lend(root)
    try:
        yield lent
    finally:
        _FOLDERS.take_back(root)


class _Folders:
    """The temporary folders of this process: one for each place, with the number of those that use it now."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.paths: dict[Path, Path] = {}
        # Folders above a temporary one that were not there, the lowest first.
        self.new_parents: dict[Path, list[Path]] = {}
        self.n_users: dict[Path, int] = {}
        self.lock = Lock()

    def lend(self, root: Path) -> Path:
        """Make the folder, or use it once more."""
        with self.lock:
            if self.process != os.getpid():  # after a fork the folders belong to the parent
                self.process, self.paths, self.new_parents, self.n_users = os.getpid(), {}, {}, {}
            path = self.paths.setdefault(root, root / FOLDER.format(owner=owner()))
            missing = [folder for folder in (root, *root.parents) if not folder.exists()]
            self.new_parents[root] = missing or self.new_parents.get(root, [])
            try:
                root.mkdir(parents=True, exist_ok=True, mode=OWNERS_FOLDER)
                path.mkdir(exist_ok=True, mode=OWNERS_FOLDER)
            except OSError as error:
                reason = error.strerror or error
                raise OSError(f"no temporary folder can be made in {root}: {reason}; name another place") from error
            self.n_users[root] = self.n_users.get(root, 0) + 1
            return path

    def take_back(self, root: Path) -> None:
        """Remove the folder where nobody uses it any more; it stays while there are files of a worker in it.

        With it go the folders above that were made for it, unless something else is in them by now: a run that fails
        leaves nothing.
        """
        with self.lock:
            self.n_users[root] -= 1
            if self.n_users[root] > 0:
                return
            path = self.paths[root]
            below = [Path(folder) for folder, _, _ in os.walk(path, topdown=False)]
            for folder in (*below, *self.new_parents[root]):
                with suppress(OSError):
                    folder.rmdir()

    def remove_all(self) -> None:
        """At the end of the process that made them."""
        if self.process == os.getpid():
            for root, path in self.paths.items():
                shutil.rmtree(path, ignore_errors=True)
                for folder in self.new_parents[root]:
                    with suppress(OSError):
                        folder.rmdir()


_FOLDERS = _Folders()
atexit.register(_FOLDERS.remove_all)


def owner() -> str:
    """Name an owner of this process that nobody else is: host, number of the process and a random part."""
    return f"{process_name()}.{secrets.token_hex(8)}"


def process_name() -> str:
    """Name this process: host and number."""
    return f"{_host()}.{os.getpid()}"


def _host() -> str:
    """Return the name of this host, in characters that are allowed in a file name."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", socket.gethostname())[:64] or "unknown"
