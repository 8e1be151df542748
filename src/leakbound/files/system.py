"""What differs between operating systems, in one place: locks, modes, processes, memory, Ctrl-C.

Everything here has an answer on Linux, macOS and Windows; where a system lacks something (modes of files, a mask of
signals), the functions do what is left to do. No other module imports or calls what exists on some systems alone.
"""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing import resource_tracker
from pathlib import Path
from types import ModuleType

import psutil

HAS_MODES = os.name == "posix"  # elsewhere a file has no owner, group and others in its mode
OWNER_ALONE = 0o600
OWNERS_FOLDER = 0o700
_OTHERS = 0o077
_ANYBODY_WRITES = 0o002
_CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0)
TOO_LATE = (-getattr(signal, "SIGXCPU", signal.SIGTERM),)  # exit codes of a process that computed for too long
_SAFE_PATH = "PYTHONSAFEPATH"
_DO_NOT_WAIT = getattr(os, "O_NONBLOCK", 0)
_AS_BYTES = getattr(os, "O_BINARY", 0)  # Windows would translate the ends of lines


def is_root() -> bool:
    """Tell whether this process is run by the user who may do everything, where the system has one.

    >>> is_root() in (True, False)
    True
    """
    return os.name == "posix" and os.geteuid() == 0


def open_new(path: Path, mode: int = OWNER_ALONE) -> int:
    """Create a file and open it for writing, with a mode from its first moment on.

    >>> import tempfile
    >>> with os.fdopen(open_new(Path(tempfile.mkdtemp()) / "new"), "wb") as file:
    ...     file.write(b"text")
    4
    """
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOSE_ON_EXEC | _AS_BYTES, mode)


def open_there(path: Path) -> int:
    """Open a file for reading without waiting for anybody, as a pipe would have us do: its descriptor."""
    return os.open(path, os.O_RDONLY | _CLOSE_ON_EXEC | _DO_NOT_WAIT | _AS_BYTES)


def open_to_others(state: os.stat_result) -> str:
    """Say which mode lets others than the owner read or write a file; empty where none does, or modes are unknown."""
    if HAS_MODES and state.st_mode & _OTHERS:
        return f"{stat.S_IMODE(state.st_mode):o}"
    return ""


def writable_by_anybody(state: os.stat_result) -> str:
    """Say which mode lets every user of the machine write a file or folder; empty where none does, or is unknown."""
    if HAS_MODES and state.st_mode & _ANYBODY_WRITES:
        return f"{stat.S_IMODE(state.st_mode):o}"
    return ""


def sync_folder(path: Path) -> None:
    """Write the entries of a folder to the disk, so that a renamed file survives a loss of power."""
    try:
        folder = os.open(path, os.O_RDONLY)
    except PermissionError:  # Windows opens no folders, and keeps its entries by itself
        if HAS_MODES:
            raise
        return
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def is_alive(process: int) -> bool:
    """Tell whether a process of this number runs on this machine, whoever owns it.

    >>> is_alive(os.getpid())
    True
    """
    with suppress(OverflowError):  # a number that no process can have
        return psutil.pid_exists(process)
    return False


def free_memory() -> int:
    """Bytes that this process may still take: of the machine, of its control group, of its own limit.

    >>> free_memory() > 0
    True
    """
    limits = [psutil.virtual_memory().available]
    resource = _module("resource")
    if resource is not None:
        own, _ = resource.getrlimit(resource.RLIMIT_AS)
        if own != resource.RLIM_INFINITY:
            limits.append(own)
    with suppress(OSError, ValueError):  # no control group, or one without a limit ("max")
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(limits)


def limit_process(n_bytes: int, seconds: float) -> None:
    """Let this process take so much more memory and time, where the system can limit them: each call sets both anew.

    A process that takes more memory gets a MemoryError; one that computes for longer is ended, whoever waits for it.
    """
    resource = _module("resource")
    if resource is None:
        return
    process = psutil.Process()
    cores = psutil.cpu_count() or 1
    computed = sum(process.cpu_times()[:2])
    for kind, most in (
        (resource.RLIMIT_AS, process.memory_info().vms + n_bytes),
        (resource.RLIMIT_CPU, int(computed + seconds * cores) + 1),
    ):
        with suppress(ValueError, OSError):  # more than this process may ask for
            resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


@contextmanager
def python_without_current_folder() -> Iterator[None]:
    """Start Python here without the current folder as the first place where it looks for modules.

    Workers, and what watches them, are started as ``python -m``: a file named like one of their modules would be run.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


@contextmanager
def without_ctrl_c() -> Iterator[None]:
    """Start processes here that never hear Ctrl-C; this process hears it afterwards, if it came meanwhile.

    Where signals cannot be blocked, they hear it as this process does.
    """
    mask = getattr(signal, "pthread_sigmask", None)
    if mask is None:
        with _ctrl_c_later():
            yield
        return
    resource_tracker.ensure_running()  # it would lift the mask if it were started later, together with a worker
    with _ctrl_c_later():
        before = mask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            mask(signal.SIG_SETMASK, before)


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Hold Ctrl-C back: a mask is of one thread, and Python interrupts the main thread for what any other hears."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or handler is None:
        yield
        return
    heard = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: heard.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if heard.is_set():
            signal.raise_signal(signal.SIGINT)


def flush_c_streams() -> None:
    """Write out what the C library has buffered, where it can be reached."""
    with suppress(OSError, TypeError, AttributeError):  # a system whose C library has another name
        ctypes.CDLL(None).fflush(None)


def _module(name: str) -> ModuleType | None:
    """Import a module of the standard library that some systems lack."""
    try:
        return import_module(name)
    except ImportError:
        return None
