"""Signals that lie in files, read some points at a time.

A folder holds ``signals.json`` (format, number of models, points and targets) and an array file of numpy for each
array, in rows of a point:

* ``member.npy``, truth values or 0 and 1 of shape (N, M);
* one for each signal, as ``loss.npy``: numbers of shape (N, M, ...), float32 best;
* ``labels.npy`` of shape (N,), class indices, with ``log_prob.npy``;
* ``is_target_point.npy`` of shape (N,), unless all points that are in some model and out of another are target points.

It is the transpose of the arrays of `Signals`: the models of a point are neighbours, so that a block of points is one
piece of a file. Files are read by plain reads; nothing of them stays in memory, and nothing is unpickled.

Axes: M models, N points, T targets, J target points, B points of a block.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

import numpy as np
from jaxtyping import Bool, Int, Num

from leakbound.core.checks import count, known_keywords
from leakbound.core.external_sort import read_into, write_all
from leakbound.core.signals import QUERY_SIGNALS, SIGNALS, why_missing
from leakbound.core.system import OWNERS_FOLDER, open_new
from leakbound.core.types import NotApplicable, PartOfGame, References, Signals
from leakbound.core.untrusted import LARGEST_HEADER, in_one_line, json_value

Array = np.ndarray
ABOUT = "signals.json"
FORMAT = "leakscope signals by point"  # our former name, so that older files are read
BLOCK = 1 << 17  # models x points of a block: that of the attacks, so that sums are added in the same order
_NOT_SIGNALS = ("member", "labels", "is_target_point")


@dataclass(frozen=True, eq=False)
class BlockGame:
    """What an audit says of the game of signals in files; as `Game`, without its arrays."""

    n_models: int
    n_targets: int
    n_points: int
    n_target_points: int
    n_population: int
    prior: float
    n_in: int  # how many models each target point is in; 0 where that differs
    references: References
    kind: str = "signals"
    others: str = "pool"
    sampling: str = "fixed"

    @property
    def leave_one_out(self) -> bool:
        """Whether every model is a target."""
        return self.n_targets == self.n_models

    @property
    def n_references(self) -> int:
        """Number of reference models of each target."""
        return self.n_models - (1 if self.leave_one_out else self.n_targets)


@dataclass(frozen=True)
class _ArrayFile:
    """An array in a file, of which rows are read."""

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int

    @classmethod
    def of(cls, path: Path) -> _ArrayFile:
        """Read the header, and check that the file is as long as it says."""
        try:
            with path.open("rb") as file:
                version = np.lib.format.read_magic(file)
                read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
                if version not in read:
                    raise ValueError(f"version {version} of the format")
                shape, is_fortran, dtype = read[version](file, max_header_size=LARGEST_HEADER)
                offset = file.tell()
                n_bytes = os.fstat(file.fileno()).st_size - offset
        except FileNotFoundError:
            raise ValueError(f"{path}: no such file") from None
        except (OSError, ValueError, EOFError, TypeError, SyntaxError, MemoryError) as error:
            raise ValueError(f"{path}: no array file of numpy: {error}") from None
        if dtype.kind not in "biuf" or dtype.hasobject:
            raise ValueError(f"{path}: must hold numbers, got {dtype}")
        if is_fortran and len(shape) > 1:
            raise ValueError(f"{path}: must be in rows (C order); write np.ascontiguousarray of it")
        n_expected = dtype.itemsize
        for length in shape:
            n_expected *= length
        if not shape or n_bytes != n_expected:
            raise ValueError(f"{path}: shape {shape} of {dtype} takes {n_expected:,} bytes, the file has {n_bytes:,}")
        return cls(path, tuple(shape), dtype, offset)

    def rows(self, start: int, stop: int) -> Array:
        """Read some rows."""
        array = np.empty((stop - start, *self.shape[1:]), dtype=self.dtype)
        if array.size:
            with FileIO(self.path) as file:
                file.seek(self.offset + start * (array.nbytes // len(array)))
                read_into(file, array.reshape(-1))
        return array


@dataclass(frozen=True, eq=False)
class BlockSignals:
    """Signals in a folder of array files, read some points at a time: any number of points.

    Parameters
    ----------
    folder : path
        As `write_blocks` makes it.

    Raises
    ------
    ValueError
        In one line, if a file is missing, no array of numbers, or of the wrong shape or length.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp()) / "signals"
    >>> member = np.arange(12).reshape(6, 2) % 3 == 0
    >>> with write_blocks(folder, n_models=2) as write:
    ...     write(member[:4], {"loss": np.where(member[:4], 0.5, 1.0)})
    ...     write(member[4:], {"loss": np.where(member[4:], 0.5, 1.0)})
    >>> signals = BlockSignals(folder)
    >>> signals.n_points, signals.names, signals.game.n_target_points
    (6, ('loss',), 4)
    """

    folder: Path
    n_models: int = field(init=False)
    n_points: int = field(init=False)
    n_targets: int = field(init=False)
    files: Mapping[str, _ArrayFile] = field(init=False)

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        found = _opened(Path(folder))
        for name, value in found.items():
            object.__setattr__(self, name, value)

    @property
    def names(self) -> tuple[str, ...]:
        """The signals that are there; those that follow from ``log_prob`` are, too."""
        names = {name for name in self.files if name not in _NOT_SIGNALS}
        if "log_prob" in names:
            names |= {"loss", "log_odds", "correct"}
        return tuple(sorted(names))

    @property
    def points(self) -> None:
        """The records behind the signals, which files do not have."""
        return None

    def no_signal(self, *names: str) -> NoReturn:
        """Raise the reason why none of these signals is there, as `Signals.array`."""
        raise NotApplicable(why_missing(names, self.names))

    @property
    def block_points(self) -> int:
        """Points of a block."""
        return max(1, BLOCK // self.n_models)

    @cached_property
    def game(self) -> BlockGame:
        """Who is in and who is out, in numbers: from one pass over the memberships."""
        return self._game()

    def member_rows(self) -> Iterator[tuple[Bool[Array, "B M"], Bool[Array, " B"]]]:
        """Iterate over the memberships of all points, and whether each is a target point."""
        for start, stop in self._ranges():
            member = _truths(self.files["member"], start, stop)
            yield member, self._is_target(member, start, stop)

    def target_members(self, *, of_all: bool = False) -> Iterator[Bool[Array, "B m"]]:
        """Iterate over the memberships of the target points: in the data of the targets, or of all models."""
        n_models = self.n_models if of_all else self.n_targets
        rows = (member[is_target, :n_models] for member, is_target in self.member_rows())
        return _rejoined(rows, self.block_points)

    def target_indices(self) -> Iterator[Int[Array, " B"]]:
        """Iterate over the indices of the target points among all points."""
        ranges = zip(self._ranges(), self.member_rows(), strict=True)
        return _rejoined(
            (start + np.flatnonzero(is_target) for (start, _), (_, is_target) in ranges), self.block_points
        )

    def target_blocks(self, names: Iterable[str]) -> Iterator[Signals]:
        """Iterate over the target points: signals of some names, of `block_points` points each.

        The game of a block has these points alone, all of them target points; `References` are those of all points.

        Raises
        ------
        ValueError
            For values that a signal cannot have, with the points among which they are.
        """
        return self._blocks(names, lambda member, is_target: is_target, is_target=True)

    def population_blocks(self, names: Iterable[str]) -> Iterator[Signals]:
        """Iterate over the points that are in no model and no target points, as `target_blocks`."""
        return self._blocks(names, lambda member, is_target: ~is_target & ~member.any(axis=1), is_target=False)

    def sampled_members(self, n_columns: int) -> Bool[Array, "M n"]:
        """Memberships of target points at even steps, as ``np.linspace`` takes them."""
        n = self.game.n_target_points
        wanted = np.linspace(0, n - 1, min(n, n_columns)).astype(int)
        parts, n_before = [], 0
        for member, is_target in self.member_rows():
            rows = np.flatnonzero(is_target)
            here = wanted[(wanted >= n_before) & (wanted < n_before + len(rows))] - n_before
            parts.append(member[rows[here]])
            n_before += len(rows)
        return np.concatenate(parts).T

    def _ranges(self) -> Iterator[tuple[int, int]]:
        for start in range(0, self.n_points, self.block_points):
            yield start, min(start + self.block_points, self.n_points)

    def _is_target(self, member: Bool[Array, "B M"], start: int, stop: int) -> Bool[Array, " B"]:
        if "is_target_point" in self.files:
            return _truths(self.files["is_target_point"], start, stop)
        if self.n_models == 1:
            return np.ones(len(member), dtype=bool)
        return np.asarray((member != member[:, :1]).any(axis=1))

    def _game(self) -> BlockGame:
        n_target_points, n_population, n_members = 0, 0, 0
        fewest, most = self.n_models, 0
        first = 0 if self.n_targets == self.n_models else self.n_targets
        without = including = both = False
        for member, is_target in self.member_rows():
            n_population += int((~is_target & ~member.any(axis=1)).sum())
            member = member[is_target]
            if not len(member):
                continue
            n_target_points += len(member)
            n_members += int(member[:, : self.n_targets].sum())
            n_in = member.sum(axis=1)
            fewest, most = min(fewest, int(n_in.min())), max(most, int(n_in.max()))
            references = member[:, first:]
            has, lacks = references.any(axis=1), ~references.all(axis=1)
            without |= bool(lacks.any())
            including |= bool(has.any())
            both |= bool((has & lacks).any())
        if not n_target_points:
            raise ValueError(
                f"{self.folder}: there is no target point, or each one is in all models or in none: nothing to guess"
            )
        prior = n_members / (n_target_points * self.n_targets)
        n_in = fewest if fewest == most and fewest not in (0, self.n_models) else 0
        return BlockGame(
            self.n_models, self.n_targets, self.n_points, n_target_points, n_population, prior, n_in,
            References(without, including, both),
        )  # fmt: skip

    def _blocks(
        self, names: Iterable[str], choose: Callable[[Array, Array], Array], is_target: bool
    ) -> Iterator[Signals]:
        stored = self._stored(names)
        for part in _rejoined_mappings(self._rows(stored, choose), self.block_points):
            member, labels = part.pop("member").T, part.pop("labels", None)
            start, stop = (int(index) for index in part.pop("index")[[0, -1]])
            game = PartOfGame(
                "signals",
                member,
                np.ones(member.shape[1], dtype=bool),
                self.n_targets,
                self.game.prior,
                references=self.game.references,
            )
            arrays = {name: array.swapaxes(0, 1) for name, array in part.items()}
            try:
                yield Signals(game, None, arrays, labels)
            except ValueError as error:
                raise ValueError(f"{self.folder}, points {start} to {stop}: {error}") from None

    def _rows(self, stored: list[str], choose: Callable[[Array, Array], Array]) -> Iterator[dict[str, Array]]:
        for (start, stop), (member, is_target) in zip(self._ranges(), self.member_rows(), strict=True):
            chosen = choose(member, is_target)
            part = {"member": member[chosen], "index": np.arange(start, stop)[chosen]}
            if "log_prob" in stored:
                part["labels"] = self.files["labels"].rows(start, stop)[chosen]
            for name in stored:
                with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is refused as that
                    part[name] = self.files[name].rows(start, stop)[chosen].astype(np.float32)
            yield part

    def _stored(self, names: Iterable[str]) -> list[str]:
        """List the files that hold these signals, or what they follow from."""
        stored = {name for name in names if name in self.files}
        if "log_prob" in self.files and {"log_prob", "loss", "log_odds", "correct"} & set(names):
            stored.add("log_prob")
        return sorted(stored)


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
        self._files: dict[str, FileIO] = {}
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
        arrays |= {name: np.asarray(array, dtype=np.float32) for name, array in signals.items()}
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
                # for the owner alone from the first moment on, whatever the mode of the folder
                self._files[name] = FileIO(open_new(self.folder / f"{name}.npy"), "w")
                self._heads[name] = (array.shape[1:], array.dtype)
                self._files[name].write(array_header(self._heads[name], 0))
            write_all(self._files[name], array)
        self.n_points += n_points

    def close(self) -> None:
        """Finish the files; without this the folder is not taken."""
        for name, file in self._files.items():
            file.seek(0)
            file.write(array_header(self._heads[name], self.n_points))
            file.close()
        finish(self.folder, self.n_models, self.n_points, self.n_targets)

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
    >>> ls.BlockSignals(folder).game.n_target_points
    300
    """
    n_models = count("n_models", n_models)
    n_targets = n_models if n_targets is None else count("n_targets", n_targets)
    if n_targets > n_models:
        raise ValueError(f"n_targets must be from 1 to the {n_models} models, got {n_targets}")
    return BlockWriter(new_folder(folder), n_models, n_targets)


def new_folder(folder: str | os.PathLike[str]) -> Path:
    """Make a folder for signals, readable by its owner alone."""
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is not empty; name a new folder for the signals")
    folder.mkdir(parents=True, exist_ok=True, mode=OWNERS_FOLDER)
    return folder


def finish(folder: Path, n_models: int, n_points: int, n_targets: int) -> None:
    """Write the file without which a folder of signals is not taken."""
    about = {"format": FORMAT, "version": 1, "models": n_models, "points": n_points, "targets": n_targets}
    with os.fdopen(open_new(folder / ABOUT), "w", encoding="utf-8") as file:
        file.write(json.dumps(about, indent=1) + "\n")


@in_one_line
def _opened(folder: Path) -> dict[str, Any]:
    """Read the headers of all files and compare their shapes."""
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder of signals")
    if not (folder / ABOUT).is_file():
        raise ValueError(f"{folder}: has no {ABOUT}; it is written by ls.write_blocks when it is finished")
    n_models, n_points, n_targets = _numbers(folder / ABOUT)
    files = {path.stem: _ArrayFile.of(path) for path in sorted(folder.glob("*.npy"))}
    if "member" not in files:
        raise ValueError(f"{folder}: no array 'member' (N, M); arrays: {', '.join(files)}")
    signals = [name for name in files if name not in _NOT_SIGNALS]
    if not signals:
        raise ValueError(f"{folder}: no signals in addition to member; known: {', '.join(SIGNALS)}")
    _refuse_unread(folder, signals)
    if "log_prob" in files and "labels" not in files:
        raise ValueError(f"{folder}: signal 'log_prob' needs labels (N,): the class index of each point")
    for name, file in files.items():
        n_axes = 1 if name in ("labels", "is_target_point") else 2
        n_all = len(SIGNALS[name].axes) if name in SIGNALS else n_axes
        expected = (n_points, n_models)[:n_axes]
        if file.shape[:n_axes] != expected or len(file.shape) != n_all:
            raise ValueError(
                f"{file.path}: has shape {file.shape}; it must have {n_all} axes and begin with {expected}"
            )
    return {"folder": folder, "n_models": n_models, "n_points": n_points, "n_targets": n_targets, "files": files}


def _refuse_unread(folder: Path, signals: Iterable[str]) -> None:
    """Refuse signals that nobody knows, and those that are read in memory alone."""
    for name in signals:
        if name not in SIGNALS:
            raise ValueError(f"{folder}: unknown signal {name!r}; known: {', '.join(SIGNALS)}")
        if name in QUERY_SIGNALS:
            raise ValueError(
                f"{folder}: {name!r} has an axis of queries, which is for signals in memory; leave it out, or give "
                "ls.Signals or an .npz file"
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


def _truths(file: _ArrayFile, start: int, stop: int) -> Array:
    values = file.rows(start, stop)
    if values.dtype == np.bool_:
        return values
    if not np.isin(values, (0, 1)).all():
        raise ValueError(f"{file.path}: must hold truth values, or 0 and 1")
    return values.astype(bool)


def _rejoined(rows: Iterator[Array], n: int) -> Iterator[Array]:
    """Cut and join arrays so that all but the last have n rows."""
    for part in _rejoined_mappings(({"rows": array} for array in rows), n):
        yield part["rows"]


def _rejoined_mappings(parts: Iterator[dict[str, Array]], n: int) -> Iterator[dict[str, Array]]:
    """Cut and join arrays of equal length so that all but the last have n rows."""
    kept: dict[str, Array] = {}
    for part in parts:
        if kept:
            part = {name: np.concatenate([kept[name], array]) for name, array in part.items()}
        n_rows = len(next(iter(part.values())))
        start = 0
        while n_rows - start >= n:
            yield {name: array[start : start + n] for name, array in part.items()}
            start += n
        kept = {name: array[start:] for name, array in part.items()}
    if kept and len(next(iter(kept.values()))):
        yield kept


def array_header(head: tuple[tuple[int, ...], np.dtype[Any]], n_rows: int) -> bytes:
    """Header of an array file, of the same length for any number of rows."""
    further, dtype = head
    text = repr({"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (n_rows, *further)})
    n_bytes = 256 - 10
    return b"\x93NUMPY\x01\x00" + n_bytes.to_bytes(2, "little") + text.ljust(n_bytes - 1).encode("latin1") + b"\n"
