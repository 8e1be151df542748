"""Points of arrays and frames, checked, with a digest of their content; rows that occur twice."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, UInt64
from pandas.util import hash_pandas_object

from leakscope.core.types import Points
from leakscope.data.images import Images

Array = np.ndarray


@dataclass(frozen=True)
class Data:
    """Points with what a person calls them.

    Parameters
    ----------
    points : Points
    name : str
        The file's name or the name of the set.
    image : tuple of int, optional
        Height and width where the features of a point are the pixels of an image.
    """

    points: Points
    name: str
    image: tuple[int, int] | None = None


def from_arrays(x: Any, y: Any = None, group: Any = None) -> Points:
    """Points of arrays, lists or a frame, checked, with a digest of their content.

    Parameters
    ----------
    x : array-like of shape (N, ...), frame of N rows, or Images
    y : array-like of shape (N,), optional
        Labels (numbers or text) or responses.
    group : array-like of shape (N,), optional

    Raises
    ------
    ValueError
        If there are fewer than 2 points, lengths differ, or a label is missing.
    """
    if not isinstance(x, (pd.DataFrame, np.ndarray, Images)):
        x = np.asarray(x)
    if isinstance(x, np.ndarray) and x.dtype == object:
        raise ValueError("x is an array of objects; give numbers, or a pandas DataFrame for columns of several types")
    if isinstance(x, np.ndarray) and x.ndim < 2:
        raise ValueError(f"x must have a row for each point and a column for each feature, got shape {x.shape}")
    if len(x) < 2:
        raise ValueError(f"a game needs at least 2 points, got {len(x)}")
    y = None if y is None else _column("label", y, len(x))
    group = None if group is None else _column("group", group, len(x))
    if isinstance(x, pd.DataFrame):
        x = x.reset_index(drop=True)
    return Points(x, y, group, _digest(x, y, group))


def rows(points: Points) -> UInt64[Array, " N"]:
    """A 64-bit hash of each point's features and label: equal rows have equal hashes."""
    hashed = points.x.content if isinstance(points.x, Images) else _hashes(_framed(points.x))
    return hashed if points.y is None else hashed * np.uint64(31) + _hashes(pd.DataFrame(points.y))


def repeated(points: Points) -> Bool[Array, " N"]:
    """Whether a point repeats an earlier one in all features and the label."""
    return pd.Series(rows(points)).duplicated().to_numpy()


def shared(members: Points, others: Points) -> int:
    """How many of the others stand among the members too."""
    return int(np.isin(rows(others), rows(members)).sum())


def join(first: Points, second: Points) -> Points:
    """One set of points after the other."""
    if type(first.x) is not type(second.x):
        raise ValueError("members and others must both be frames or both be arrays, or both images")
    if isinstance(first.x, Images):
        x = first.x.followed_by(second.x)
    elif isinstance(first.x, pd.DataFrame):
        if list(first.x.columns) != list(second.x.columns):
            raise ValueError("members and others have different columns")
        x = pd.concat([first.x, second.x], ignore_index=True)
    else:
        if first.x.shape[1:] != second.x.shape[1:]:
            raise ValueError(f"members have features of shape {first.x.shape[1:]}, others {second.x.shape[1:]}")
        x = np.concatenate([first.x, second.x])
    if (first.y is None) != (second.y is None):
        raise ValueError("members and others must both have labels, or neither")
    y = None if first.y is None or second.y is None else np.concatenate([first.y, second.y])
    return from_arrays(x, y)


def preview(data: Data, record: int) -> dict[str, Any]:
    """A record as a person would recognise it: its picture, or its first fields by name."""
    x = data.points.x
    if isinstance(x, Images):
        return {"image": x.pixels(np.array([record]))[0].tolist()}
    if data.image is not None:
        picture = np.asarray(x[record], dtype=float).reshape(*data.image, *np.shape(x)[3:])
        top = 255 if picture.max() > 1 and np.asarray(x).dtype == np.uint8 else picture.max()
        return {"image": np.rint(picture / top * 255 if top > 0 else picture).astype(int).tolist()}
    if isinstance(x, pd.DataFrame):
        return {"fields": {str(name): str(x.iloc[record][name]) for name in x.columns[:4]}}
    flat = np.asarray(x[record]).reshape(-1)[:4]
    return {"fields": {f"x{number}": f"{value:.4g}" for number, value in enumerate(flat)}}


def picture_size(x: Any) -> tuple[int, int] | None:
    """Height and width of pixels in 8 bits, an array of shape (N, H, W) or (N, H, W, 3); None for anything else."""
    if isinstance(x, np.ndarray) and x.dtype == np.uint8 and x.shape[3:] in ((), (3,)) and x.ndim in (3, 4):
        return x.shape[1], x.shape[2]
    return None


def _framed(x: Any) -> pd.DataFrame:
    return x if isinstance(x, pd.DataFrame) else pd.DataFrame(x.reshape(len(x), -1))


def _column(name: str, values: Any, n_points: int) -> Array:
    column = np.asarray(values)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.shape != (n_points,):
        raise ValueError(f"{name} must have shape ({n_points},), one value a point; got {column.shape}")
    missing = pd.isna(column)
    if missing.any():
        raise ValueError(f"{name} is missing at {int(missing.sum())} points, first at point {int(missing.argmax())}")
    if column.dtype == object:
        column = column.astype(str)
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise ValueError(f"{name} has infinite values")
    return column


def _digest(x: Any, *columns: Array | None) -> str:
    sha = hashlib.sha256()
    if isinstance(x, pd.DataFrame):
        sha.update(repr([(str(name), str(kind)) for name, kind in x.dtypes.items()]).encode())
        sha.update(_hashes(x).tobytes())
    if isinstance(x, Images):
        sha.update(f"{x.shape}".encode() + x.content.tobytes())
    for array in (() if isinstance(x, (pd.DataFrame, Images)) else (x,)) + columns:
        if array is not None:
            sha.update(f"{array.dtype.str}{array.shape}".encode())
            sha.update(np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()


def _hashes(frame: pd.DataFrame) -> UInt64[Array, " N"]:
    """A hash of each row; in columns of objects the number 1 and the text "1" differ."""
    typed = frame.apply(lambda column: column.map(repr) if column.dtype == object else column)
    return hash_pandas_object(typed, index=False).to_numpy()  # pyright: ignore[reportCallIssue] -- exported lazily


def some(names: Iterable[Any], most: int = 12) -> str:
    """The first names of many, in words."""
    words = [str(name) for name in names]
    return ", ".join(words[:most]) + (f", ... ({len(words)} in all)" if len(words) > most else "")
