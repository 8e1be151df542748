"""Signals that come model by model, written to a folder in which they lie point by point.

A model's signals are a column of each array file of `leakbound.core.block_signals`. Some models at a time are kept in
memory, and then written into all rows, block by block of points.

Axes: M models, m models at a time, N points.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Bool, Num

from leakbound.core.block_signals import BLOCK, SignalsWriter, array_header, finish, new_folder
from leakbound.core.system import open_new

Array = np.ndarray
MEMORY = 1 << 28  # bytes of signals that are kept before they are written
_FLOAT = np.dtype(np.float32)


class ModelWriter(SignalsWriter):
    """Writes signals model by model to a folder that `BlockSignals` reads.

    >>> import tempfile
    >>> from leakbound.core.block_signals import BlockSignals
    >>> folder = Path(tempfile.mkdtemp()) / "signals"
    >>> member = np.array([[True, False, True], [False, True, True]])
    >>> with ModelWriter(folder, member, np.array([True, True, False]), n_targets=2) as writer:
    ...     for model in range(2):
    ...         writer.add(slice(model, model + 1), {"loss": np.full((1, 3), model, dtype=np.float32)})
    >>> next(BlockSignals(folder).target_blocks(["loss"])).array("loss").tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        member: Bool[Array, "M N"],
        is_target_point: Bool[Array, " N"],
        *,
        n_targets: int,
        memory: int = MEMORY,
    ) -> None:
        self.folder, self.n_targets, self.memory = new_folder(folder), n_targets, memory
        self.n_models, self.n_points = member.shape
        self._kept: list[tuple[slice, Mapping[str, Array]]] = []
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._is_there = np.zeros(self.n_models, dtype=bool)
        with self._new("member", (self.n_models,), np.dtype(np.bool_)) as file:
            for start, stop in self._blocks(self.n_models):
                file.write(np.ascontiguousarray(member[:, start:stop].T).tobytes())
        with self._new("is_target_point", (), np.dtype(np.bool_)) as file:
            file.write(is_target_point.tobytes())

    def add(self, rows: slice, arrays: Mapping[str, Num[Array, "m N ..."]]) -> None:
        """Take the signals of some models."""
        shapes = {name: array.shape[2:] for name, array in arrays.items()}
        if self._shapes and shapes != self._shapes:
            raise ValueError(
                f"models 0 to {rows.start - 1} have the signals {self._shapes}, model {rows.start} {shapes}"
            )
        for name, array in arrays.items():
            if array.shape[:2] != (rows.stop - rows.start, self.n_points):
                raise ValueError(f"{name} has shape {array.shape}; expected {rows.stop - rows.start} x {self.n_points}")
            if not self._shapes:
                self._new(name, (self.n_models, *array.shape[2:]), _FLOAT).close()
        self._shapes = shapes
        self._kept.append((rows, arrays))
        if sum(array.nbytes for _, kept in self._kept for array in kept.values()) >= self.memory:
            self._write_kept()

    def close(self) -> None:
        """Write what is kept and finish the folder; without this it is not taken."""
        self._write_kept()
        n_missing = int(np.count_nonzero(~self._is_there))
        if n_missing:
            self.abandon()
            raise ValueError(f"{n_missing:,} of {self.n_models:,} models are missing in {self.folder}")
        if "log_prob" in self._shapes:  # of a release, the true label's class is the first
            with self._new("labels", (), np.dtype(np.int64)) as file:
                file.truncate(file.tell() + 8 * self.n_points)
        finish(self.folder, self.n_models, self.n_points, self.n_targets)

    def abandon(self) -> None:
        """Remove what was written."""
        for path in self.folder.glob("*.npy"):
            path.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()

    def _new(self, name: str, further: tuple[int, ...], dtype: np.dtype[Any]) -> BinaryIO:
        """Create an array file with its header, for the owner alone."""
        file = os.fdopen(open_new(self._path(name)), "wb")
        file.write(array_header((further, dtype), self.n_points))
        return file

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.npy"

    def _blocks(self, row_length: int) -> list[tuple[int, int]]:
        size = max(1, BLOCK // row_length)
        return [(start, min(start + size, self.n_points)) for start in range(0, self.n_points, size)]

    def _write_kept(self) -> None:
        """Write the columns of the models that are kept into all rows."""
        for name, further in self._shapes.items():
            row = (self.n_models, *further)
            with self._path(name).open("r+b") as file:
                offset = len(array_header((row, _FLOAT), self.n_points))
                for start, stop in self._blocks(math.prod(row)):
                    place = offset + start * math.prod(row) * _FLOAT.itemsize
                    block = np.zeros((stop - start, *row), dtype=_FLOAT)
                    file.seek(place)
                    there = file.read(block.nbytes)  # nothing, or less, where nothing has been written yet
                    block.reshape(-1).view(np.uint8)[: len(there)] = np.frombuffer(there, dtype=np.uint8)
                    for rows, arrays in self._kept:
                        block[:, rows] = np.swapaxes(arrays[name][:, start:stop], 0, 1)
                    file.seek(place)
                    file.write(block.tobytes())
        for rows, _ in self._kept:
            self._is_there[rows] = True
        self._kept.clear()
