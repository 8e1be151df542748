"""What the making of a model reads besides its arguments: files, variables of the environment, programs that it starts.

While a model is made, an audit hook of Python sees every file that is opened, and every process and connection that is
begun; reads of ``os.environ`` and ``os.environb`` are seen by a subclass of theirs. A stored model is used again only
while all of this is as it was. What cannot be seen (another process, another machine, the keyboard) is a reason not to
store the model at all.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import multiprocessing.process
import os
import shutil
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock, Thread
from types import FrameType, ModuleType
from typing import Any

from leakbound.files.temporary import process_name
from leakbound.releases.source_code import UserCode, is_installed, other_module, user_code

ABSENT = "absent"
_OF_THE_MACHINE = ("/proc/", "/sys/", "/dev/")
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_OWN = "leakbound."
# Variables of threads, temporary files and programs: they differ between workers, and no model depends on them.
_VARIABLES_OF_THE_MACHINE = {"TMPDIR", "TEMP", "TMP", "PATH", "CUDA_VISIBLE_DEVICES", "PYTEST_CURRENT_TEST"}
_THREADS_AND_WORKERS = ("_NUM_THREADS", "LOKY_", "JOBLIB_", "KMP_")
_PROCESSES = {
    "os.exec": "starts a program in its own place", "os.fork": "starts processes of its own",
    "os.forkpty": "starts processes of its own", "os.system": "starts a program by a shell",
    "os.startfile": "starts a program by a shell",
}  # fmt: skip
_UNSEEN = _PROCESSES | {
    "socket.connect": "connects to another machine", "socket.sendto": "connects to another machine",
    "socket.getaddrinfo": "connects to another machine", "urllib.Request": "connects to another machine",
    "builtins.input": "reads from the keyboard", "ctypes.dlopen": "loads a library with ctypes",
}  # fmt: skip
_CLOCK = 20_000_000  # nanoseconds by which the clock of a file system may lag behind


@dataclass(frozen=True)
class Inputs:
    """What was read, by digests."""

    files: Mapping[str, str] = field(default_factory=dict)  # of a folder, that of the names in it
    environment: Mapping[str, str] = field(default_factory=dict)
    unseen: str = ""  # why it is not all

    def still_hold(self) -> bool:
        """Whether a model that is made now would read the same."""
        return all(digest_of_file(path) == digest for path, digest in self.files.items()) and all(
            _digest_of_variable(name) == digest for name, digest in self.environment.items()
        )

    def with_those_of(self, other: Inputs) -> Inputs:
        """Return these and others, of which those that are in both are as they were in these."""
        return Inputs(
            {**other.files, **self.files}, {**other.environment, **self.environment}, self.unseen or other.unseen
        )

    def as_json(self) -> dict[str, dict[str, str]]:
        """Return them as a chunk holds them."""
        return {"files": dict(sorted(self.files.items())), "environment": dict(sorted(self.environment.items()))}


NOTHING_READ = Inputs()


def digest_of_file(path: str) -> str:
    """Return the SHA-256 of a file, or of the names in a folder; `ABSENT` where there is none that can be read."""
    try:
        if os.path.isdir(path):
            return hashlib.sha256("\0".join(sorted(os.listdir(path))).encode(errors="surrogateescape")).hexdigest()
        facts = os.stat(path)
        return _digest_of_content(os.path.abspath(path), facts.st_size, facts.st_mtime_ns, facts.st_ino)
    except (OSError, ValueError):
        return ABSENT


@lru_cache(maxsize=4096)
def _digest_of_content(path: str, size: int, modified: int, inode: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest_of_variable(name: str) -> str:
    value = os.environ.get(name)
    return ABSENT if value is None else hashlib.sha256(value.encode(errors="surrogateescape")).hexdigest()


@contextmanager
def watched(code: UserCode, describe: Callable[[], object], programs: bool = False) -> Iterator[Watch]:
    """Watch what is read in this context by this thread, and by those that it starts."""
    watch, modules = Watch(bool(code.states), programs), code.modules
    if other := _module_that_differs(code, describe):
        watch.cannot_see(f"is made by workers in which {other} is not what it is here; restart Python")
    with _LOCK:
        if not _HOOKED:
            _install_hook()  # it cannot be removed
            _HOOKED.append(True)
        _WATCHES.append(watch)
        for environment in _ENVIRONMENTS:
            environment.__class__ = _ENVIRONMENT
    try:
        yield watch
    finally:
        with _LOCK:
            _WATCHES.remove(watch)
            if not _WATCHES:
                for environment in _ENVIRONMENTS:
                    environment.__class__ = os._Environ
        watch.end()
        for module in [sys.modules[name] for name in modules if name in sys.modules]:
            _KNOWN[module] = watch.inputs.with_those_of(_KNOWN.get(module, NOTHING_READ))
            watch.inputs = watch.inputs.with_those_of(_KNOWN[module])


def inputs_so_far() -> Inputs:
    """Return what was read up to now in the context of this thread that is watched; nothing outside of one."""
    inputs = NOTHING_READ
    for watch in _watches_here():
        inputs = watch.so_far().with_those_of(inputs)
    return inputs


def _module_that_differs(code: UserCode, describe: Callable[[], object]) -> str:
    """Name a module of the user that is other code, or has other values, than where the store was looked at."""
    if code.digest in _SAME_CODE or code.process == process_name():
        return ""
    with user_code() as here, suppress(Exception):  # what cannot be described here is not the same
        for module in code.modules:
            importlib.import_module(module)
        describe()
    other = other_module(here, code)
    if not other:
        _SAME_CODE.add(code.digest)
    return other


class Watch:
    """What is seen while it is watched."""

    def __init__(self, follows_processes: bool, programs: bool) -> None:
        self.inputs = Inputs()
        self._files: dict[str, str] = {}
        self._environment: dict[str, str] = {}
        self._unseen = ""
        self._follows_processes, self._programs = follows_processes, programs
        self._thread = threading.get_ident()
        self._begin = time.time_ns() - _CLOCK
        self._n_processes = _n_processes()
        self._folder = os.getcwd()  # a path in it is kept as it was given, so that project and store can move
        self._has_started_program = False

    def end(self) -> None:
        """Collect what was seen."""
        if _n_processes() != self._n_processes:
            self.cannot_see("starts processes of its own")
        self.inputs = self.so_far()

    def so_far(self) -> Inputs:
        """Return what was seen up to now."""
        return Inputs(self._files, self._environment, self._unseen if self._follows_processes else "")

    def is_here(self) -> bool:
        """Whether this thread is watched."""
        me = threading.get_ident()
        return me == self._thread or any(thread.ident == me for thread in list(_STARTED))

    def cannot_see(self, what: str) -> None:
        """Note what is done that cannot be followed."""
        self._unseen = self._unseen or what

    def variable(self, name: str) -> None:
        """Note a variable of the environment that is read."""
        is_of_threads = name.startswith(_THREADS_AND_WORKERS[1:]) or name.endswith(_THREADS_AND_WORKERS[0])
        if not is_of_threads and name not in _VARIABLES_OF_THE_MACHINE | _SET:
            self._environment.setdefault(name, _digest_of_variable(name))

    def event(self, event: str, arguments: tuple[Any, ...], frame: FrameType) -> None:
        """Note an event of Python's audit hooks, and the frame that has led to it."""
        if event in ("open", "sqlite3.connect"):
            mode, flags = arguments[1:] if event == "open" else ("r", 0)
            self._opened(arguments[0], mode, flags, frame)
        elif event in ("os.listdir", "os.scandir"):
            self._listed(arguments[0], frame)
        elif event == "os.mkdir":
            _MADE.add(os.path.abspath(os.fsdecode(arguments[0])))
        elif event == "os.rename":  # and of os.replace
            _MADE.add(os.path.abspath(os.fsdecode(arguments[1])))
        elif event in ("subprocess.Popen", "os.posix_spawn"):
            self._started(arguments[0], arguments[1])
        elif event != "ctypes.dlopen" or _has_loaded(frame):
            self.cannot_see(_UNSEEN[event])

    def _opened(self, opened: Any, mode: str | None, flags: int, frame: FrameType) -> None:
        if isinstance(opened, int) or opened is None:
            return
        path = os.fsdecode(opened)
        if path.endswith(".pyc"):
            path = _source_of(path)
        full = os.path.abspath(path)
        if _is_left_out(full) or os.path.isdir(full):
            return
        reads, makes = _purpose(mode, flags)
        makes = makes or ((flags & os.O_CREAT) > 0 and not os.path.exists(full))
        if reads and not makes and not self._is_product(full) and _is_of_model(frame):
            self._add(path, full)
        if makes or (reads and flags & os.O_RDWR):  # what is read later was written here
            _MADE.add(full)

    def _listed(self, opened: Any, frame: FrameType) -> None:
        if isinstance(opened, int):
            return
        path = "." if opened is None else os.fsdecode(opened)
        full = os.path.abspath(path)
        if not _is_left_out(full + os.sep) and not self._is_product(full) and _is_of_model(frame, lists=True):
            self._add(path, full)

    def _add(self, path: str, full: str) -> None:
        digest = digest_of_file(full)
        if self._files.setdefault(path if os.getcwd() == self._folder else full, digest) != digest:
            self.cannot_see(f"reads {os.path.basename(path)}, which was changed meanwhile")

    def _is_product(self, full: str) -> bool:
        """Whether a file was made by models of this process, or by a program that this one has started."""
        if full in _MADE or any(full.startswith(folder + os.sep) for folder in _MADE):
            return True
        try:
            return self._has_started_program and os.stat(full).st_ctime_ns >= self._begin
        except OSError:
            return False

    def _started(self, program: Any, arguments: Any) -> None:
        """Note a program, and the files among its arguments."""
        words = [arguments] if isinstance(arguments, (str, bytes, os.PathLike)) else list(arguments or ())
        named = program or (words[0] if words else "")
        found = shutil.which(os.fsdecode(named)) or os.fsdecode(named)
        for path in [found, *(os.fsdecode(word) for word in words[1:])]:
            full = os.path.abspath(path)
            if os.path.isfile(full) and not self._is_product(full):
                self._add(path, full)
        if not self._programs:
            name = os.path.basename(os.fsdecode(named))
            self.cannot_see(f"starts {name}, and what that reads is not known: name it (depends_on, --depends-on FILE)")
        self._has_started_program = True


_LOCK = Lock()
_ENVIRONMENTS: list[Any] = [os.environ]
if os.name == "posix":
    _ENVIRONMENTS.append(os.environb)
_HOOKED: list[bool] = []
_WATCHES: list[Watch] = []
_STARTED: weakref.WeakSet[Thread] = weakref.WeakSet()  # threads that models have started
_BUSY = threading.local()
# Of this process, whatever model it was: files and folders that models have made, variables that they have set, and
# what the code of each module has read, which it may keep.
_MADE: set[str] = set()
_SET: set[str] = set()
_SAME_CODE: set[str] = set()  # digests of modules that were found to be the same in this process
_KNOWN: weakref.WeakKeyDictionary[ModuleType, Inputs] = weakref.WeakKeyDictionary()
_THREADS = {"_thread.start_new_thread", "_thread.start_joinable_thread"}
_NOTED = {
    "open", "sqlite3.connect", "os.listdir", "os.scandir", "os.mkdir", "os.rename", "subprocess.Popen",
    "os.posix_spawn", *_UNSEEN, *_THREADS,
}  # fmt: skip


def _watching_environment() -> type[Any]:
    """Make the class of an environment that tells what is read of it."""

    class WatchedEnvironment(os._Environ):  # type: ignore[type-arg]
        """The environment while models are made."""

        def __getitem__(self, key: Any) -> Any:
            with _busy() as is_first:
                for watch in _watches_here() if is_first and isinstance(key, str | bytes) else ():
                    watch.variable(os.fsdecode(key))
            return super().__getitem__(key)

        def __setitem__(self, key: Any, value: Any) -> None:
            with _busy() as is_first:
                if is_first and _watches_here():
                    _SET.add(os.fsdecode(key))
            super().__setitem__(key, value)

        def __iter__(self) -> Iterator[Any]:
            with _busy() as is_first:
                for watch in _watches_here() if is_first else ():
                    watch.cannot_see("reads the whole environment")
            return super().__iter__()

    return WatchedEnvironment


@contextmanager
def _busy() -> Iterator[bool]:
    """Yield whether nothing is being noted in this thread: what is done to note something has events of its own."""
    if getattr(_BUSY, "is_busy", False):
        yield False
        return
    _BUSY.is_busy = True
    try:
        yield True
    finally:
        _BUSY.is_busy = False


def _watches_here() -> list[Watch]:
    return [watch for watch in list(_WATCHES) if watch.is_here()]


def _install_hook() -> None:
    """Let Python tell what happens in this process, which does nothing while nothing is watched."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if not _WATCHES or event not in _NOTED:
            return
        with _busy() as is_first:
            if not is_first:
                return
            try:
                _tell(event, arguments, sys._getframe(1))
            except Exception as error:  # it would stop what the model does
                for watch in _WATCHES:
                    watch.cannot_see(f"does what could not be noted ({event}: {type(error).__name__})")

    sys.addaudithook(hook)


def _tell(event: str, arguments: tuple[Any, ...], frame: FrameType) -> None:
    for watch in _watches_here():
        if event not in _THREADS:
            watch.event(event, arguments, frame)
        elif isinstance(started := getattr(arguments[0], "__self__", None), Thread):
            _STARTED.add(started)


def _n_processes() -> str:
    """Count the processes that were started by multiprocessing, which has no event for them."""
    return repr(getattr(multiprocessing.process, "_process_counter", ""))


def _purpose(mode: str | None, flags: int) -> tuple[bool, bool]:
    """Tell whether a file is opened to be read, and whether it is made anew."""
    if mode is None:
        return flags & 3 != os.O_WRONLY, bool(flags & (os.O_TRUNC | os.O_EXCL))
    return "r" in mode or "+" in mode, "w" in mode or "x" in mode


def _source_of(path: str) -> str:
    """Return the source of a compiled module; the module itself where there is none."""
    try:
        return importlib.util.source_from_cache(path)
    except ValueError:
        return path


def _is_left_out(full: str) -> bool:
    """Whether a file belongs to the machine, to an installed package, or to leakbound: their versions are known."""
    return full.startswith((*_OF_THE_MACHINE, _HERE)) or _is_installed(full)


@lru_cache(maxsize=65536)
def _is_installed(full: str) -> bool:
    return is_installed(os.path.realpath(full))


def _has_loaded(frame: FrameType | None) -> bool:
    """Whether code of the user loads a library with ctypes itself; what installed code loads goes by its version."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if not name.startswith(("ctypes", "numpy.ctypeslib")):
            return _is_written_by_user(frame)
        frame = frame.f_back
    return False


def _is_written_by_user(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return not file.startswith(("<", _HERE)) and not _is_installed(file)


def _is_of_model(frame: FrameType | None, lists: bool = False) -> bool:
    """Whether a model has opened a file, or the user's code in it has listed a folder.

    leakbound itself opens the files of the data and of the store, and Python lists folders when it imports.
    """
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if lists and name.startswith("importlib"):
            return False
        if name.startswith(_OWN) and name != __name__:
            return not lists and name.startswith((_OWN + "releases.", _OWN + "dpsgd."))
        if _is_written_by_user(frame):
            return True
        frame = frame.f_back
    return not lists  # in a thread that the model has started


_ENVIRONMENT = _watching_environment()
