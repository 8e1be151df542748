"""Points as tensors: the inputs of a network from an array, a frame or images."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int, Shaped, UInt8
from torch import Tensor

from leakscope.core.types import Points

Array = np.ndarray
_CHANNELS = (1, 3)  # grey or colour
_WIDEST = 10_000  # columns that a frame may become
_WHITE = 255.0  # of a pixel in 8 bits


@runtime_checkable
class Pictures(Protocol):
    """Images that may stay on disk until they are asked for."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all of them: (N, H, W) or (N, H, W, 3)."""
        ...

    def pixels(self, indices: Int[Array, " b"]) -> UInt8[Array, "b H W ..."]:
        """Decode the images at these positions."""
        ...


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of a network for each point, in batches.

    Parameters
    ----------
    source : tensor of shape (N, ...), or Pictures
        As stored: 8-bit pixels stay 8-bit until a batch is made.
    shape : tuple of int
        The shape of one point as the network reads it; channels first.
    """

    source: Shaped[Tensor, "N ..."] | Pictures
    shape: tuple[int, ...]

    def __len__(self) -> int:
        return int(self.source.shape[0])

    @property
    def image(self) -> bool:
        """Whether a point has channels, rows and columns."""
        return len(self.shape) == 3

    def batch(self, indices: Int[Array, " B"], device: torch.device | str = "cpu") -> Float[Tensor, "B ..."]:
        """Return the inputs of some points.

        Parameters
        ----------
        indices : int array of shape (B,)
        device : torch.device or str

        Returns
        -------
        float32 tensor of shape (B, *shape)
            8-bit pixels are divided by 255.
        """
        if isinstance(self.source, Tensor):
            positions = torch.as_tensor(np.asarray(indices, dtype=np.int64), device=self.source.device)
            values = self.source.index_select(0, positions).to(device)
        else:
            pixels = torch.from_numpy(np.array(self.source.pixels(indices)))
            values = (pixels[:, None] if pixels.ndim == 3 else pixels.permute(0, 3, 1, 2)).to(device)
        return values.to(torch.float32).div_(_WHITE) if values.dtype == torch.uint8 else values

    def on(self, device: torch.device | str) -> Inputs:
        """Move the inputs to a device if they are in memory."""
        return replace(self, source=self.source.to(device)) if isinstance(self.source, Tensor) else self


def inputs_of(x: Any) -> Inputs:
    """Convert the features of points to the inputs of networks.

    * Images, an array of 3 axes (N, H, W) or 4: one channel is added to the former, (N, H, W, 1 or 3) become
      channels first, (N, 1 or 3, H, W) stay. Pixels in 8 bits (``uint8``) are divided by 255.
    * Other arrays are converted to float32.
    * Numeric columns of a frame are standardised, a constant column becomes zeros; every other column becomes one
      column for each of its values, a missing value being one of them. Means, deviations and values are those of all
      records: what they reveal about a single record is not part of the audit.

    Parameters
    ----------
    x : array of shape (N, ...), frame of N rows, or images

    Returns
    -------
    Inputs
        Arrays and frames in memory; images where they are.

    Raises
    ------
    ValueError
        If an array is not numeric, or numbers are missing or infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from leakscope.releases.networks.tensors import inputs_of
    >>> images = inputs_of(np.full((10, 28, 28), 255, dtype=np.uint8))
    >>> images.shape, images.batch(np.array([3, 5])).mean().item()
    ((1, 28, 28), 1.0)
    """
    if isinstance(x, Pictures) and not isinstance(x, np.ndarray):
        return Inputs(x, (1, *x.shape[1:]) if len(x.shape) == 3 else (x.shape[3], *x.shape[1:3]))
    if isinstance(x, pd.DataFrame):
        source = torch.from_numpy(_of_frame(x))
    elif isinstance(x, np.ndarray):
        source = _of_array(x)
    else:
        raise ValueError(f"networks read arrays, frames and images, got a {type(x).__name__}")
    return Inputs(source, tuple(source.shape[1:]))


def labels_of(points: Points, name: str) -> tuple[Shaped[Array, " K"], Int[Array, " N"]]:
    """Find the classes of the labels, sorted, and the index of each point's class.

    Parameters
    ----------
    points : Points
    name : str
        Of the release, for errors.

    Returns
    -------
    classes : array of shape (K,)
    label : int64 array of shape (N,)

    Raises
    ------
    ValueError
        If there are no labels, only one class, or numbers that are no classes.
    """
    if points.y is None:
        raise ValueError(f"{name} needs labels")
    classes, label = np.unique(np.asarray(points.y), return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"{name} needs at least 2 classes, got only {classes[0]}")
    if len(classes) > len(label) / 2 and classes.dtype.kind == "f":
        raise ValueError(f"{name} is a classifier, but the label has {len(classes):,} different numbers")
    return classes, label.astype(np.int64)


def _of_array(x: Shaped[Array, "N ..."]) -> Shaped[Tensor, "N ..."]:
    if x.dtype.kind not in "biuf":
        raise ValueError(f"networks read numbers, got an array of {x.dtype}")
    if x.ndim < 2 or x.size == 0:
        raise ValueError(f"x must have a row for each point and a value in it, got shape {x.shape}")
    if x.dtype == np.uint8 and x.ndim in (3, 4):
        return _channels_first(torch.from_numpy(np.array(x)))
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is refused as that
        values = np.array(x, dtype=np.float32)
    if not np.isfinite(values).all():
        raise ValueError("the features have missing or infinite values; networks need finite numbers")
    return _channels_first(torch.from_numpy(values))


def _channels_first(values: Shaped[Tensor, "N ..."]) -> Shaped[Tensor, "N ..."]:
    if values.ndim == 3:
        return values[:, None]
    if values.ndim == 4 and values.shape[3] in _CHANNELS and values.shape[1] not in _CHANNELS:
        return values.permute(0, 3, 1, 2).contiguous()
    return values


def _of_frame(frame: pd.DataFrame) -> Float[Array, "N d"]:
    """Standardise numeric columns, and encode the others one-hot."""
    parts, width = [], 0
    for name, column in frame.items():
        numeric = pd.api.types.is_numeric_dtype(column)
        n_values = 1 if numeric else column.nunique(dropna=False)
        width += n_values
        if width > _WIDEST:
            raise ValueError(
                f"column {name!r} has {n_values:,} different values, and the frame would have more than {_WIDEST:,} "
                "columns; drop it, or give numbers"
            )
        parts.append(_standardised(column) if numeric else _one_hot(column))
    return np.concatenate(parts, axis=1)


def _standardised(column: pd.Series) -> Float[Array, "N 1"]:
    values = column.to_numpy(dtype=float, na_value=np.nan)
    if not np.isfinite(values).all():
        raise ValueError(f"column {column.name!r} has missing or infinite values; networks need finite numbers")
    size = np.abs(values).max()
    scaled = values / size if size > 0 else values  # squares of huge numbers overflow
    spread = scaled.std()
    if spread <= 1e-12:  # nothing but rounding
        return np.zeros((len(values), 1), dtype=np.float32)
    return ((scaled - scaled.mean()) / spread).astype(np.float32)[:, None]


def _one_hot(column: pd.Series) -> Float[Array, "N v"]:
    code, _ = pd.factorize(column.astype(str).where(column.notna(), "missing"), sort=True)
    return (code[:, None] == np.arange(code.max() + 1)).astype(np.float32)
