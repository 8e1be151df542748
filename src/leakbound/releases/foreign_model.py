"""A model in somebody else's file, which a process of its own reads and asks.

A graph of 400 bytes may ask for 8 GB, or never end. So the process has so much memory and time, and no more; what it
sends back are texts, numbers and arrays of plain types, of which nothing is unpickled.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import struct
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import MethodType
from typing import IO, Any

import numpy as np

from leakbound.files.system import TOO_LATE, free_memory, limit_process, without_ctrl_c
from leakbound.files.untrusted import TIMES, megabytes
from leakbound.releases import user_modules
from leakbound.releases.specs import first_line, own, printed

Array = np.ndarray
SPARE_MEMORY = 1_000_000_000  # bytes, besides 100 times those of the file and of the records that it is asked about
SPARE_SECONDS = 60.0
TIMES_THE_FIRST = 20  # a record may take so many times as long as the first one did
SECONDS_OF_STRUCTURE = 600.0
METHODS = ("predict_proba", "decision_function", "predict")
_KINDS = "biufU"  # of arrays that are sent back
_OUT_OF_MEMORY = ("bad_alloc", "Failed to allocate", "Unable to allocate", "std::length_error")
_LENGTH = struct.Struct("<Q")
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from leakbound.releases.foreign_model import serve; serve()"
)


class ForeignModel:
    """A model of a file, as it answers.

    It has those of the methods ``predict_proba``, ``decision_function`` and ``predict`` that the model has, and its
    ``classes_``.
    """

    def __init__(self, path: str | os.PathLike[str], trusted_types: Sequence[str] = ()) -> None:
        self._path = Path(path)
        self._size = self._path.stat().st_size
        self._seconds_of_first: float | None = None
        self._process = _started()
        self._stop = weakref.finalize(self, _end, self._process)
        self._seconds = SPARE_SECONDS + self._size / 1e6
        try:
            facts = self._sent("read", os.fspath(path), list(trusted_types), user_modules.for_workers())
        except ValueError:
            self._stop()
            raise
        self._estimator_type, self.class_name = facts["kind"], facts["class_name"]
        self._text = facts["text"]
        self._methods = frozenset(facts["methods"])
        self._learn_classes(facts["classes"])

    def __repr__(self) -> str:
        return self._text

    def __getattr__(self, name: str) -> Any:
        """Return a method of the model; kept ones would refer to this object, and its process would not end with it."""
        if name in self.__dict__.get("_methods", ()):
            return MethodType(_method(name), self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def answers(self, method: str, X: Any) -> Any:
        """Compute what a method of the model answers for records."""
        shape = getattr(X, "shape", None)  # a sparse matrix has no length
        n_records = len(X) if shape is None else shape[0]
        if self._seconds_of_first is None:
            self._seconds = SPARE_SECONDS
        else:
            self._seconds = SPARE_SECONDS + TIMES_THE_FIRST * n_records * self._seconds_of_first
        started = time.perf_counter()
        answer = self._sent("answers", method, X)
        if self._seconds_of_first is None:
            self._seconds_of_first = (time.perf_counter() - started) / max(n_records, 1)
        self._learn_classes(answer["classes"])
        return answer["values"]

    def computed(self, function: str, *arguments: Any) -> Any:
        """Compute one of our own functions of the model, and return its plain result."""
        self._seconds = SECONDS_OF_STRUCTURE + self._size / 1e6
        return self._sent("computed", function, *arguments)

    def _learn_classes(self, classes: Any) -> None:
        if classes is not None:
            self.classes_ = classes

    def _sent(self, action: str, *arguments: Any) -> Any:
        """Send a request and wait for its answer; whatever the process does, it is one line."""
        if not self._stop.alive:
            raise ValueError(f"{self._path}: the process that computes it was stopped; read the file again")
        request = pickle.dumps((action, arguments), protocol=pickle.HIGHEST_PROTOCOL)
        n_bytes = min(SPARE_MEMORY + TIMES * (self._size + len(request)), free_memory() // 2)
        limits = pickle.dumps((n_bytes, self._seconds))
        is_over, process = threading.Event(), self._process

        def end() -> None:  # without a reference to this object, which the timer's thread would keep for a moment
            is_over.set()
            process.terminate()

        timer = threading.Timer(self._seconds, end)
        timer.daemon = True
        timer.start()
        try:
            _put(self._process.stdin, limits)
            _put(self._process.stdin, request)
            reply = json.loads(_got(self._process.stdout, n_bytes))
        except (OSError, EOFError):
            raise ValueError(self._why_gone(is_over.is_set(), n_bytes)) from None
        except BaseException:  # Ctrl-C, too: what it is doing has no reader any more
            self._stop()
            raise
        finally:
            timer.cancel()
        if reply["memory"]:
            raise ValueError(f"{self._path} {_too_much(n_bytes)}")
        if reply["error"]:
            raise ValueError(reply["error"])
        return _from_plain(reply["value"])

    def _why_gone(self, is_late: bool, n_bytes: int) -> str:
        status = None if is_late else self._process.wait()
        self._stop()
        if is_late or status in TOO_LATE:
            return f"{self._path} did not answer in {self._seconds:,.0f} seconds, and was stopped"
        return f"{self._path} ended its process ({status}): it is damaged, or {_too_much(n_bytes)}"


def _method(name: str) -> Callable[[ForeignModel, Any], Any]:
    def method(model: ForeignModel, X: Any) -> Any:
        return model.answers(name, X)

    method.__name__ = name
    return method


def _too_much(n_bytes: int) -> str:
    return f"needs more than the {megabytes(n_bytes)} of memory that a model of its size may take"


def _started() -> subprocess.Popen[bytes]:
    """Start the process: it never hears Ctrl-C, and finds modules where this one does."""
    command = [sys.executable, "-P", "-c", _START, json.dumps([path for path in sys.path if isinstance(path, str)])]
    with without_ctrl_c():
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()


def _put(stream: IO[bytes] | None, content: bytes) -> None:
    assert stream is not None
    rest = memoryview(_LENGTH.pack(len(content)) + content)
    while rest:
        rest = rest[stream.write(rest) :]


def _got(stream: IO[bytes] | None, most: int) -> bytes:
    """Read what the other side sent, of at most so many bytes."""
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    if length > most:
        raise EOFError("more than it may send")
    return _exactly(stream, length)


def _exactly(stream: IO[bytes] | None, n_bytes: int) -> bytes:
    assert stream is not None
    parts, n_missing = [], n_bytes
    while n_missing:
        part = stream.read(min(n_missing, 1 << 20))
        if not part:
            raise EOFError("the process has ended")
        parts.append(part)
        n_missing -= len(part)
    return b"".join(parts)


def _plain(value: Any) -> Any:
    """Write a value as JSON: texts, numbers, lists, mappings, and arrays of plain types in base 64."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return {"objects": [_plain(item) for item in value.ravel().tolist()], "shape": list(value.shape)}
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in _KINDS:
            raise ValueError(f"the model answers with {value.dtype}, which is no plain type")
        content = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode("ascii")
        return {"array": content, "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {"mapping": {str(name): _plain(item) for name, item in value.items()}}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise ValueError(f"the model answers with {type(value).__name__}, and not with numbers")


def _from_plain(value: Any) -> Any:
    """Read what `_plain` wrote; another process wrote it, so that each array is checked."""
    if isinstance(value, list):
        return [_from_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "mapping" in value:
        return {name: _from_plain(item) for name, item in value["mapping"].items()}
    if "objects" in value:
        array = np.empty(len(value["objects"]), dtype=object)
        array[:] = [_from_plain(item) for item in value["objects"]]
        return array.reshape(value["shape"])
    dtype = np.dtype(value["dtype"])
    if dtype.kind not in _KINDS:
        raise ValueError(f"an answer of {dtype}, which is no plain type")
    return np.frombuffer(base64.b64decode(value["array"]), dtype=dtype).reshape(value["shape"]).copy()


def serve() -> None:
    """Read a model and answer until nobody asks any more: what the process of a `ForeignModel` does."""
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb", buffering=0)
    with open(os.devnull, "wb") as nowhere:  # what a model prints would be read as an answer
        os.dup2(nowhere.fileno(), 1)
    model: Any = None
    while True:
        try:
            n_bytes, seconds = pickle.loads(_got(requests, sys.maxsize))
            action, arguments = pickle.loads(_got(requests, sys.maxsize))
        except EOFError:
            return
        limit_process(n_bytes, seconds)
        model, reply = reply_to(model, action, arguments)
        _put(replies, json.dumps(reply).encode())


def reply_to(model: Any, action: str, arguments: Sequence[Any]) -> tuple[Any, dict[str, Any]]:
    """Do what a request asks for: return the model, which the first request reads, and what is sent back."""
    reply = {"value": None, "error": "", "memory": False}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if action == "read":
                model = _read(*arguments)
            reply["value"] = _plain(_RESULTS[action](model, *arguments))
    except MemoryError:
        reply["memory"] = True
    except Exception as error:  # a model may raise anything
        reply["error"] = first_line(error)
        reply["memory"] = any(words in str(error) for words in _OUT_OF_MEMORY)
    return model, reply


def _read(path: str, trusted_types: Sequence[str], folder: tuple[str, tuple[str, ...]] | None) -> Any:
    """Read the file; the modules of trusted types may lie in the folder of the command."""
    if folder is not None:
        user_modules.look_in(*folder)
    for name in trusted_types:
        user_modules.may_be_found(name)
    return own("leakbound.releases.model_files:read_here")(Path(path), trusted_types)


def _facts(model: Any, *_: Any) -> dict[str, Any]:
    """Say which methods a model has, and how it prints itself."""
    answers = import_module("leakbound.releases.answers")
    return {
        "methods": [name for name in METHODS if callable(getattr(model, name, None))],
        "kind": "regressor" if answers.predicts_numbers(model) else "classifier",
        "class_name": type(answers.answering_estimator(model)[0]).__name__,
        "classes": getattr(model, "classes_", None),
        "text": printed(model),
    }


def _answers(model: Any, method: str, x: Any) -> dict[str, Any]:
    try:
        with own("threadpoolctl:threadpool_limits")(limits=1):  # as in every process that fits or asks a model
            given = getattr(model, method)(x)
    except MemoryError:
        raise
    except Exception as error:
        raise ValueError(own("leakbound.releases.answers:why_no_answers")(model, x, error)) from None
    values = list(given) if isinstance(given, list) else np.asarray(given)
    return {"values": values, "classes": getattr(model, "classes_", None)}


def _computed(model: Any, function: str, *arguments: Any) -> Any:
    return own(function)(model, *arguments)


_RESULTS: Mapping[str, Callable[..., Any]] = {"read": _facts, "answers": _answers, "computed": _computed}
