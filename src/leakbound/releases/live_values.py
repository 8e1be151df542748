"""A digest of a value as it is now, with the user's functions and classes in it by their content.

The value is pickled for its digest alone, and nothing is unpickled. Equal values have the same digest in every process:
sets are sorted, texts and tuples are not known by their addresses, and what has no value to compare (a lock, a logger,
the environment) counts by its type.
"""

from __future__ import annotations

import functools
import hashlib
import io
import logging
import os
import pickle
import random
import threading
import types
import weakref
from collections.abc import Callable
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from typing import Any

import numpy as np

Leads = Callable[[Any], bool]
_PLAIN = (type(None), bool, int, float, complex, str, bytes, bytearray, list, tuple, dict)
_DEFINITIONS = (types.FunctionType, type, staticmethod, classmethod, property)
_CACHED: Any = type(functools.lru_cache(len))
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType)
_WITHOUT_VALUE = (
    type(threading.Lock()), type(threading.RLock()), threading.local, logging.Logger, logging.Handler,
    weakref.ref, weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet,
)  # fmt: skip
# of a class: kept by Python (that of slots when it is pickled first), or a text for readers
_NOT_OF_A_CLASS = {
    "__slotnames__", "__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__annotations__",
    "__annotate__", "__annotate_func__", "__annotations_cache__", "__firstlineno__", "__static_attributes__",
    "_abc_impl",
}  # fmt: skip


def digest_of_value(value: Any, leads: Leads) -> str:
    """Compute the SHA-256 of a value.

    `leads` is asked about every function, class and module in the value: whether its name leads to it and says enough,
    since it is installed or its module is looked at. One that its name does not lead to counts by its content.

    >>> digest_of_value({"a": {1, 2}}, lambda named: True) == digest_of_value({"a": {2, 1}}, lambda named: True)
    True
    """
    return _Pickler(leads).digest_of(value)


def digest_of_definition(value: Any, leads: Leads) -> str:
    """Compute the SHA-256 of the content of a function or a class, although its name leads to it."""
    pickler = _Pickler(leads)
    return pickler.digest_of(pickler.content(value))


_PythonPickler: Any = getattr(pickle, "_Pickler")  # noqa: B009  # the one in C cannot be extended


class _Pickler(_PythonPickler):
    """Writes plain values as pickle does, and everything else as tuples of them."""

    def __init__(self, leads: Leads) -> None:
        self.stream = io.BytesIO()
        super().__init__(self.stream, protocol=3)  # without frames, whose borders depend on sizes
        self._leads = leads
        self._inside: dict[int, int] = {}  # functions and classes that are written by content

    def digest_of(self, value: Any) -> str:
        self.dump(value)
        return hashlib.sha256(self.stream.getvalue()).hexdigest()

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        super().save(obj if type(obj) in _PLAIN else self._written(obj), save_persistent_id)

    def memoize(self, obj: Any) -> None:
        """Remember an object; not what cannot change, which is the same object in some processes only."""
        if not isinstance(obj, (str, bytes, tuple)):
            super().memoize(obj)

    def _written(self, obj: Any) -> Any:
        if isinstance(obj, types.ModuleType):
            self._leads(obj)
            return "module", obj.__name__
        if isinstance(obj, (type, types.FunctionType)):
            return self._definition(obj)
        if isinstance(obj, np.ndarray) and not obj.dtype.hasobject:
            digest = hashlib.sha256(np.ascontiguousarray(obj).reshape(-1).view(np.uint8).data).hexdigest()
            return "array", type(obj).__name__, str(obj.dtype.descr), obj.shape, digest
        if isinstance(obj, (np.generic, np.dtype)):
            dtype = obj if isinstance(obj, np.dtype) else obj.dtype
            return type(obj).__name__, str(dtype), obj.tobytes() if isinstance(obj, np.generic) else b""
        if isinstance(obj, (set, frozenset)):
            return "set", sorted(digest_of_value(item, self._leads) for item in obj)
        if _has_no_value(obj):
            return "type", type(obj).__name__
        parts = _parts(obj)
        return obj if parts is None else (type(obj).__name__, *parts)

    def _definition(self, obj: Any) -> Any:
        name = f"{obj.__module__}:{obj.__qualname__}"
        if self._leads(obj):
            return "named", name
        if id(obj) in self._inside:
            return "again", self._inside[id(obj)]
        self._inside[id(obj)] = len(self._inside)
        return name, self.content(obj)

    def content(self, obj: Any) -> tuple[Any, ...]:
        """List what a function or a class consists of."""
        if isinstance(obj, types.FunctionType):
            cells = [cell.cell_contents for cell in obj.__closure__ or () if not _is_empty(cell)]
            code = _of_code(obj.__code__) if _is_as_written(obj) else None
            return code, obj.__defaults__, obj.__kwdefaults__, cells, dict(obj.__dict__)
        attributes: list[tuple[str, Any]] = []
        for name, value in sorted(vars(obj).items()):
            if name in _NOT_OF_A_CLASS:
                continue
            if name.startswith("__") and not isinstance(value, _DEFINITIONS):
                # what libraries keep there may be anything
                with suppress(Exception):
                    attributes.append((name, digest_of_value(value, self._leads)))
                continue
            attributes.append((name, value))
        return type(obj), obj.__bases__, attributes


def _has_no_value(obj: Any) -> bool:
    """Tell whether two runs have nothing to compare: what a model reads of these is seen elsewhere, or is chance."""
    if obj is os.environ or obj is getattr(os, "environb", None) or isinstance(obj, _WITHOUT_VALUE):
        return True
    return obj is getattr(random, "_inst", None) or obj is getattr(np.random.mtrand, "_rand", None)


def _parts(obj: Any) -> tuple[Any, ...] | None:
    """Take apart what pickle knows by its name alone, or does not know; None for anything else."""
    if isinstance(obj, types.CodeType):
        return _of_code(obj)
    if isinstance(obj, (staticmethod, classmethod, types.MethodType)):
        return (obj.__func__, getattr(obj, "__self__", None))
    if isinstance(obj, property):
        return (obj.fget, obj.fset, obj.fdel)
    if isinstance(obj, types.MappingProxyType):
        return (dict(obj),)
    if isinstance(obj, _DESCRIPTORS):
        return (obj.__name__,)
    if callable(obj) and not isinstance(obj, types.BuiltinFunctionType):
        inner = getattr(obj, "py_func", None) or getattr(obj, "__wrapped__", None)  # a compiled or cached function
        # Nothing shows the values in a cache, only how many they are.
        return None if inner is None else (inner, n_cached(obj))
    return None


def n_cached(function: Any) -> int:
    """Count the values that ``functools.cache`` keeps of a function; 0 for any other function."""
    return function.cache_info().currsize if isinstance(function, _CACHED) else 0


def _of_code(code: types.CodeType) -> tuple[Any, ...]:
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return code.co_name, counts, names, code.co_code, code.co_consts, getattr(code, "co_exceptiontable", b"")


def _is_as_written(function: types.FunctionType) -> bool:
    """Whether a function is what Python makes of its source: pytest and others rewrite what they import."""
    loader = function.__globals__.get("__loader__")
    return loader is None or type(loader) is SourceFileLoader or function.__globals__.get("__name__") == "__main__"


def _is_empty(cell: Any) -> bool:
    try:
        return cell.cell_contents is cell
    except ValueError:
        return True
