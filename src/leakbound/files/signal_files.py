"""Signals in a folder of array files, which are read as memmaps.

A folder holds ``signals.json`` (format, number of models, points and targets) and an array file of numpy for each
array, in rows of a point:

* ``member.npy``, truth values or 0 and 1 of shape (N, M);
* one for each signal, as ``loss.npy``: numbers of shape (N, M, ...), float32 best, of scores float64;
* ``labels.npy`` of shape (N,), class indices, with ``log_prob.npy``;
* ``is_target_point.npy`` of shape (N,), unless all points that are in some model and out of another are target points.

It is the transpose of the arrays of `Signals`: the models of a point are neighbours, in memory as on disk, so that a
block of points is one piece of a file. Nothing is unpickled.

Axes: M models, m of them at a time, N points, B points of a block.
"""

from __future__ import annotations

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
from jaxtyping import Bool, Int, Num

from leakbound.core.checks import count, known_keywords
from leakbound.core.on_disk import blocks_of, empty_on_disk, reserve
from leakbound.core.signals import QUERY_SIGNALS, SIGNALS, class_indices, precision_of
from leakbound.core.types import Game, Signals
from leakbound.files.system import OWNERS_FOLDER, open_new
from leakbound.files.untrusted import LARGEST_HEADER, in_one_line, json_value

Array = np.ndarray
ABOUT = "signals.json"
FORMAT = "leakscope signals by point"  # our former name, so that older files are read
_NOT_SIGNALS = ("member", "labels", "is_target_point")


@known_keywords()
@in_one_line
def open_signals(folder: str | os.PathLike[str]) -> Signals:
    """Open a folder of signals: arrays that are read from its files when they are used.

    Parameters
    ----------
    folder : path
        As `write_blocks` makes it.

    Returns
    -------
    Signals
        Of memmaps. What an audit computes from them and is as large lies in files without a name in the folder for
        temporary files (``TMPDIR``).

    Raises
    ------
    ValueError
        In one line, if a file is missing, no array of numbers, or of the wrong shape or length, or has values that a
        signal cannot have: with the points among which they are.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import leakbound as ls
    >>> folder = Path(tempfile.mkdtemp()) / "signals"
    >>> member = np.arange(12).reshape(6, 2) % 3 == 0
    >>> with ls.write_blocks(folder, n_models=2) as write:
    ...     write(member[:4], {"loss": np.where(member[:4], 0.5, 1.0)})
    ...     write(member[4:], {"loss": np.where(member[4:], 0.5, 1.0)})
    >>> signals = ls.open_signals(folder)
    >>> signals.array("loss").shape, signals.game.n_target_points
    ((2, 6), 4)
    """
    # from cheap to dear: names and shapes first, then every value once
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder of signals")
    if not (folder / ABOUT).is_file():
        raise ValueError(f"{folder}: has no {ABOUT}; it is written by ls.write_blocks when it is finished")
    n_models, n_points, n_targets = _numbers(folder / ABOUT)
    files = {path.stem: _opened(path) for path in sorted(folder.glob("*.npy"))}
    _refuse_wrong_files(folder, files, (n_points, n_models))
    member = _truths(folder / "member.npy", files["member"]).T
    if "is_target_point" in files:
        is_target_point = np.array(_truths(folder / "is_target_point.npy", files["is_target_point"]))
    else:
        is_target_point = _is_mixed(member)
    if not is_target_point.any():
        raise ValueError(
            f"{folder}: there is no target point, or each one is in all models or in none: nothing to guess"
        )
    given = {name: _rounded(name, array).swapaxes(0, 1) for name, array in files.items() if name not in _NOT_SIGNALS}
    labels = None
    if "log_prob" in given:
        labels = class_indices(files["labels"], n_points, given["log_prob"].shape[2])
    arrays = _checked(folder, member, given, labels)
    game = Game("signals", member, is_target_point, n_targets, prior=_prior(member[:n_targets], is_target_point))
    return Signals(game, None, arrays, labels, checked=True)


def _checked(
    folder: Path, member: Bool[Array, "M N"], given: Mapping[str, Array], labels: Int[Array, " N"] | None
) -> dict[str, Array]:
    """Check all values block by block, and write what follows from ``log_prob`` beside the other signals."""
    changed: dict[str, Array] = {}
    n_models, n_points = member.shape
    row_length = max(math.prod(array.shape[2:]) for array in given.values()) * n_models
    for block in blocks_of(n_points, row_length):
        game = Game("signals", member[:, block], np.ones(block.stop - block.start, dtype=bool), n_models)
        part = {name: array[:, block] for name, array in given.items()}
        try:
            checked = Signals(game, None, part, None if labels is None else labels[block])
        except ValueError as error:
            raise ValueError(f"{folder}, points {block.start} to {block.stop - 1}: {error}") from None
        for name, values in checked.arrays.items():
            if name in part and values is part[name]:
                continue
            if name not in changed:
                changed[name] = empty_on_disk((n_points, n_models), np.float32).T
                if name in given:  # losses below 0 by rounding, which become 0
                    changed[name][:] = given[name]
            changed[name][:, block] = values
    return {**given, **changed}


def _prior(member: Bool[Array, "T N"], is_target_point: Bool[Array, " N"]) -> float:
    """Return the fraction of members among the target points."""
    blocks = blocks_of(member.shape[1], len(member))
    n_members = sum(int(np.count_nonzero(member[:, block][:, is_target_point[block]])) for block in blocks)
    return n_members / (int(np.count_nonzero(is_target_point)) * len(member))


def _is_mixed(member: Bool[Array, "M N"]) -> Bool[Array, " N"]:
    """Whether a point is in some model and out of another; all points of a single model are."""
    if len(member) == 1:
        return np.ones(member.shape[1], dtype=bool)
    return np.array(member.any(axis=0) & ~member.all(axis=0))


def _opened(path: Path) -> Array:
    """Open an array file, and check that it is as long as its header says."""
    try:
        array = np.lib.format.open_memmap(path, mode="r", max_header_size=LARGEST_HEADER)
    except (OSError, ValueError, EOFError, TypeError, SyntaxError, MemoryError, OverflowError) as error:
        raise ValueError(f"{path}: no array file of numpy: {error}") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{path}: must hold numbers, got {array.dtype}")
    if path.stat().st_size != array.offset + array.nbytes:
        raise ValueError(f"{path}: has {path.stat().st_size:,} bytes, expected {array.offset + array.nbytes:,}")
    return array


def _refuse_wrong_files(folder: Path, files: Mapping[str, Array], expected: tuple[int, int]) -> None:
    """Refuse arrays that are missing, unknown or of another shape."""
    if "member" not in files:
        raise ValueError(f"{folder}: no array 'member' (N, M); arrays: {', '.join(files)}")
    signals = [name for name in files if name not in _NOT_SIGNALS]
    if not signals:
        raise ValueError(f"{folder}: no signals in addition to member; known: {', '.join(SIGNALS)}")
    for name in signals:
        if name not in SIGNALS:
            raise ValueError(f"{folder}: unknown signal {name!r}; known: {', '.join(SIGNALS)}")
        if name in QUERY_SIGNALS:
            raise ValueError(
                f"{folder}: {name!r} has an axis of queries, which is for signals in memory; leave it out, or give "
                "ls.Signals or an .npz file"
            )
    # a loss is computed from log_prob at the true class
    if "log_prob" in files and "labels" not in files:
        raise ValueError(f"{folder}: signal 'log_prob' needs labels (N,): the class index of each point")
    for name, array in files.items():
        n_axes = 1 if name in ("labels", "is_target_point") else 2
        n_all = len(SIGNALS[name].axes) if name in SIGNALS else n_axes
        if array.shape[:n_axes] != expected[:n_axes] or array.ndim != n_all:
            raise ValueError(
                f"{folder / name}.npy: has shape {array.shape}; it must have {n_all} axes and begin with "
                f"{expected[:n_axes]}"
            )


def _numbers(path: Path) -> tuple[int, int, int]:
    """Read how many models, points and targets there are."""
    about = json_value(path)
    if not isinstance(about, dict) or about.get("format") != FORMAT or about.get("version") != 1:
        raise ValueError(f"{path}: expected the format {FORMAT!r}, version 1")
    n_models, n_points, n_targets = (
        count(f"{path}: {name}", about.get(name)) for name in ("models", "points", "targets")
    )
    if n_targets > n_models:
        raise ValueError(f"{path}: targets must be from 1 to the {n_models} models, got {n_targets}")
    return n_models, n_points, n_targets


def _truths(path: Path, values: Array) -> Array:
    """Return truth values, which may have been written as 0 and 1."""
    if values.dtype == np.bool_:
        return values
    truths = empty_on_disk(values.shape, bool)
    for block in blocks_of(len(values), math.prod(values.shape[1:])):
        part = values[block]
        if ((part != 0) & (part != 1)).any():
            raise ValueError(f"{path}: must hold truth values, or 0 and 1")
        truths[block] = part
    return truths


def _rounded(name: str, values: Array) -> Array:
    """Return a signal in the precision in which it is kept."""
    if values.dtype == precision_of(name):
        return values
    rounded = empty_on_disk(values.shape, precision_of(name))
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is refused as that
        rounded[:] = values
    return rounded


class SignalsWriter(ABC):
    """Writes a folder of signals; as a context it is finished at the end, and abandoned after an error."""

    @abstractmethod
    def close(self) -> None:
        """Finish the folder; without this it is not taken."""

    @abstractmethod
    def abandon(self) -> None:
        """End without finishing the folder."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()


class BlockWriter(SignalsWriter):
    """Writes signals point by point; see `write_blocks`."""

    def __init__(self, folder: Path, n_models: int, n_targets: int) -> None:
        self.folder, self.n_models, self.n_targets = folder, n_models, n_targets
        self.n_points = 0
        self._files: dict[str, BinaryIO] = {}
        self._heads: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {}

    def __call__(
        self,
        member: Bool[Array, "B M"],
        signals: Mapping[str, Num[Array, "B M ..."]],
        labels: Int[Array, " B"] | None = None,
        is_target_point: Bool[Array, " B"] | None = None,
    ) -> None:
        """Write the next points."""
        arrays: dict[str, Array] = {"member": np.asarray(member, dtype=bool)}
        arrays |= {name: np.asarray(array, dtype=precision_of(name)) for name, array in signals.items()}
        if labels is not None:
            arrays["labels"] = np.asarray(labels, dtype=np.int64)
        if is_target_point is not None:
            arrays["is_target_point"] = np.asarray(is_target_point, dtype=bool)
        if self._heads and self._heads.keys() != arrays.keys():
            raise ValueError(f"expected {', '.join(self._heads)} as at the first call, got {', '.join(arrays)}")
        n_points = len(arrays["member"])
        for name, array in arrays.items():  # all are checked before the first is written
            axes = (n_points,) if name in ("labels", "is_target_point") else (n_points, self.n_models)
            if array.shape[: len(axes)] != axes:
                raise ValueError(f"{name} has shape {array.shape}; it must begin with {axes}")
            expected = self._heads.get(name, (array.shape[1:], array.dtype))
            if expected != (array.shape[1:], array.dtype):
                raise ValueError(f"{name} has shape {array.shape}; expected {(n_points, *expected[0])}")
        for name, array in arrays.items():
            if name not in self._files:
                self._files[name] = _new_file(self.folder, name)
                self._heads[name] = (array.shape[1:], array.dtype)
                self._files[name].write(_array_header((0, *array.shape[1:]), array.dtype))
            self._files[name].write(np.ascontiguousarray(array).tobytes())
        self.n_points += n_points

    def close(self) -> None:
        """Finish the files; without this the folder is not taken."""
        for name, file in self._files.items():
            further, dtype = self._heads[name]
            file.seek(0)
            file.write(_array_header((self.n_points, *further), dtype))
            file.close()
        _finish(self.folder, self.n_models, self.n_points, self.n_targets)

    def abandon(self) -> None:
        """Close the files of a folder that was not finished."""
        for file in self._files.values():
            file.close()


@known_keywords()
def write_blocks(folder: str | os.PathLike[str], *, n_models: int, n_targets: int | None = None) -> BlockWriter:
    """Write signals to a folder, some points at a time, for an audit of more points than fit into memory.

    Parameters
    ----------
    folder : path
        A new one, readable by its owner alone.
    n_models : int
        M.
    n_targets : int, optional
        The first T models are attacked; all unless given.

    Returns
    -------
    BlockWriter
        Call it with the memberships and signals of the next points, arrays in rows of a point, and close it, or use it
        as a context.

    Raises
    ------
    ValueError
        If the folder has something in it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import leakbound as ls
    >>> rng, folder = np.random.default_rng(0), Path(tempfile.mkdtemp()) / "signals"
    >>> with ls.write_blocks(folder, n_models=16) as write:
    ...     for _ in range(3):
    ...         member = rng.random((100, 16)) < 0.5
    ...         write(member, {"loss": rng.exponential(np.where(member, 0.5, 1.0))})
    >>> ls.open_signals(folder).game.n_target_points
    300
    """
    n_models = count("n_models", n_models)
    n_targets = n_models if n_targets is None else count("n_targets", n_targets)
    if n_targets > n_models:
        raise ValueError(f"n_targets must be from 1 to the {n_models} models, got {n_targets}")
    return BlockWriter(_new_folder(folder), n_models, n_targets)


class ModelWriter(SignalsWriter):
    """Writes signals model by model: columns of the array files.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from leakbound.files.signal_files import ModelWriter, open_signals
    >>> folder = Path(tempfile.mkdtemp()) / "signals"
    >>> member = np.array([[True, False, True], [False, True, True]])
    >>> with ModelWriter(folder, member, np.array([True, True, False]), n_targets=2) as writer:
    ...     for model in range(2):
    ...         writer.add(slice(model, model + 1), {"loss": np.full((1, 3), model, dtype=np.float32)})
    >>> open_signals(folder).array("loss").tolist()
    [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        member: Bool[Array, "M N"],
        is_target_point: Bool[Array, " N"],
        *,
        n_targets: int,
    ) -> None:
        self.folder, self.n_targets = _new_folder(folder), n_targets
        self.n_models, self.n_points = member.shape
        self._arrays: dict[str, Array] = {}
        self._is_there = np.zeros(self.n_models, dtype=bool)
        self._new("member", (self.n_points, self.n_models), bool)[:] = member.T
        self._new("is_target_point", (self.n_points,), bool)[:] = is_target_point

    def add(self, rows: slice, arrays: Mapping[str, Num[Array, "m N ..."]]) -> None:
        """Take the signals of some models."""
        shapes = {name: array.shape[2:] for name, array in arrays.items()}
        earlier = {name: array.shape[2:] for name, array in self._arrays.items()}
        if earlier and shapes != earlier:
            raise ValueError(f"models 0 to {rows.start - 1} have the signals {earlier}, model {rows.start} {shapes}")
        for name, array in arrays.items():
            if array.shape[:2] != (rows.stop - rows.start, self.n_points):
                raise ValueError(f"{name} has shape {array.shape}; expected {rows.stop - rows.start} x {self.n_points}")
            if name not in self._arrays:
                shape = (self.n_points, self.n_models, *array.shape[2:])
                self._arrays[name] = self._new(name, shape, precision_of(name))
            self._arrays[name][:, rows] = np.swapaxes(array, 0, 1)
        self._is_there[rows] = True

    def close(self) -> None:
        """Finish the folder; without this it is not taken."""
        n_missing = int(np.count_nonzero(~self._is_there))
        if n_missing:
            self.abandon()
            raise ValueError(f"{n_missing:,} of {self.n_models:,} models are missing in {self.folder}")
        if "log_prob" in self._arrays:  # of a release, the true label's class is the first
            self._new("labels", (self.n_points,), np.int64)
        self._arrays.clear()
        _finish(self.folder, self.n_models, self.n_points, self.n_targets)

    def abandon(self) -> None:
        """Remove what was written."""
        self._arrays.clear()
        for path in self.folder.glob("*.npy"):
            path.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()

    def _new(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """Create an array file of zeros, and open it."""
        with _new_file(self.folder, name) as file:
            file.write(_array_header(shape, np.dtype(dtype)))
            n_bytes = file.tell() + math.prod(shape) * np.dtype(dtype).itemsize
            file.truncate(n_bytes)
            reserve(file, n_bytes, str(self.folder))
        return np.lib.format.open_memmap(self.folder / f"{name}.npy", mode="r+")


def _new_folder(folder: str | os.PathLike[str]) -> Path:
    """Make a folder for signals, readable by its owner alone."""
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is not empty; name a new folder for the signals")
    folder.mkdir(parents=True, exist_ok=True, mode=OWNERS_FOLDER)
    return folder


def _new_file(folder: Path, name: str) -> BinaryIO:
    """Create an array file, for the owner alone from the first moment on, whatever the mode of the folder."""
    return os.fdopen(open_new(folder / f"{name}.npy"), "wb")


def _finish(folder: Path, n_models: int, n_points: int, n_targets: int) -> None:
    """Write the file without which a folder of signals is not taken."""
    about = {"format": FORMAT, "version": 1, "models": n_models, "points": n_points, "targets": n_targets}
    with os.fdopen(open_new(folder / ABOUT), "w", encoding="utf-8") as file:
        file.write(json.dumps(about, indent=1) + "\n")


def _array_header(shape: Iterable[int], dtype: np.dtype[Any]) -> bytes:
    """Header of an array file, of the same length for any number of rows."""
    text = repr({"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": tuple(shape)})
    n_bytes = 256 - 10
    return b"\x93NUMPY\x01\x00" + n_bytes.to_bytes(2, "little") + text.ljust(n_bytes - 1).encode("latin1") + b"\n"
