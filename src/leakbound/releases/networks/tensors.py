"""Points as tensors: the inputs of a network from an array, a frame, images, several arrays or a collate function."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int, Integer, Num, Shaped, UInt8
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, default_collate, default_convert

from leakbound.core.types import Points
from leakbound.data.columns import refuse_free_text
from leakbound.data.points import some
from leakbound.data.records import Fields, Sequences, Texts
from leakbound.releases.networks.recipe import Collate
from leakbound.releases.specs import first_line

Array = np.ndarray
_CHANNELS = (1, 3)  # grey or colour
_MOST_NAMED = 5  # columns with missing values that an error names
_WIDEST = 10_000  # columns that a frame may become
_WHITE = 255.0  # of a pixel in 8 bits
_NAMED = 3  # columns of a table in an error
_READ_TWICE = 64  # points of a data set that are compared with a second reading
_COLLATED_TWICE = 16  # points that are given to a collate function twice
PointType = Literal["tensor", "list", "tuple", "array", "as_they_are"]


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
    """The inputs of a network for each point, in batches."""

    source: Shaped[Tensor, "N ..."] | Pictures
    shape: tuple[int, ...]
    origin: str = ""

    def __len__(self) -> int:
        return int(self.source.shape[0])

    @property
    def image(self) -> bool:
        """Whether a point has channels, rows and columns."""
        return len(self.shape) == 3 and not self.integers

    @property
    def integers(self) -> bool:
        """Whether the network gets whole numbers, as token ids."""
        return isinstance(self.source, Tensor) and self.source.dtype == torch.int64

    @property
    def title(self) -> str:
        """What is read, in an error."""
        return f"points of shape {self.shape}{self.origin}"

    def batch(self, indices: Int[Array, " B"], device: torch.device | str = "cpu") -> Shaped[Tensor, "B ..."]:
        """Return the inputs of some points."""
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


@dataclass(frozen=True, eq=False)
class FieldInputs:
    """The inputs of a network that takes several tensors by name."""

    parts: Mapping[str, Inputs]

    def __len__(self) -> int:
        return len(next(iter(self.parts.values())))

    @property
    def image(self) -> bool:
        """False: a dictionary is no image."""
        return False

    @property
    def title(self) -> str:
        """What is read, in an error."""
        return ", ".join(f"{name} of shape {part.shape}" for name, part in self.parts.items())

    def batch(
        self, indices: Int[Array, " B"], device: torch.device | str = "cpu"
    ) -> dict[str, Shaped[Tensor, "B ..."]]:
        """Return the tensors of some points by name."""
        return {name: part.batch(indices, device) for name, part in self.parts.items()}

    def on(self, device: torch.device | str) -> FieldInputs:
        """Move the tensors to a device."""
        return FieldInputs({name: part.on(device) for name, part in self.parts.items()})


@dataclass(frozen=True, eq=False)
class CollatedInputs:
    """The inputs that a user-supplied function makes of a list of points."""

    records: Shaped[Array, "N ..."] | Fields | Sequences | Texts
    labels: Num[Array, "N ..."]
    collate: Collate

    def __len__(self) -> int:
        return len(self.records)

    @property
    def image(self) -> bool:
        """False: what the function makes is not augmented."""
        return False

    @property
    def title(self) -> str:
        """What is read, in an error."""
        return "points that collate puts together"

    def batch(self, indices: Int[Array, " B"], device: torch.device | str = "cpu") -> Any:
        """Return what the function makes of some points, on the device."""
        labels = self.labels[indices]
        pairs = [
            (self._record(int(index)), label.item() if np.ndim(label) == 0 else label)
            for index, label in zip(indices, labels, strict=True)
        ]
        try:
            collated = self.collate(pairs)
        except Exception as error:  # the function is the user's: it may raise anything
            raise ValueError(f"collate fails on {len(pairs):,} points: {first_line(error)}") from error
        if not isinstance(collated, list | tuple) or len(collated) != 2:
            raise ValueError(f"collate must return a pair (inputs, labels), got a {type(collated).__name__}")
        inputs, returned = collated
        values = returned.detach().cpu().numpy() if isinstance(returned, Tensor) else np.asarray(returned)
        # a function that sorts its batch by length would mix up the points
        if values.size != labels.size or not np.allclose(values.reshape(-1), labels.reshape(-1), rtol=1e-5):
            raise ValueError("collate must return the labels that it gets, in the order of the points")
        return _moved(inputs, device)

    def on(self, device: torch.device | str) -> CollatedInputs:
        """Return the same inputs: batches are moved one by one."""
        return self

    def _record(self, index: int) -> Any:
        if isinstance(self.records, Fields):
            return {name: array[index] for name, array in self.records.arrays.items()}
        if isinstance(self.records, Sequences):
            return self.records.rows[index]
        if isinstance(self.records, Texts):
            return self.records.values[index]
        return self.records[index]


AnyInputs = Inputs | FieldInputs | CollatedInputs


def field_inputs(fields: Fields) -> FieldInputs:
    """Convert several arrays to tensors: whole numbers to int64, truth values to bool, other numbers to float32.

    Pixels in 8 bits, of 3 or 4 axes, are images as in `inputs_of`.
    """
    parts = {}
    for name, array in fields.arrays.items():
        if array.dtype == np.uint8 and array.ndim in (3, 4):
            source = _channels_first(torch.from_numpy(np.array(array)))
        elif array.dtype.kind == "b":
            source = torch.from_numpy(np.array(array))
        elif array.dtype.kind in "iu":
            source = _whole_numbers(array)
        else:
            source = torch.from_numpy(_finite(array))
        parts[name] = Inputs(source, tuple(source.shape[1:]))
    return FieldInputs(parts)


def token_inputs(x: Shaped[Array, "N ..."]) -> Inputs | None:
    """Convert an array of whole numbers to int64, for networks that look them up; None for other arrays and pixels."""
    if x.dtype.kind not in "iu" or (x.dtype == np.uint8 and x.ndim in (3, 4)):
        return None
    source = _whole_numbers(x)
    return Inputs(source, tuple(source.shape[1:]))


def collated_inputs(x: Any, labels: Num[Array, "N ..."], collate: Collate) -> CollatedInputs:
    """Give the points of a batch to a user-supplied function."""
    if not isinstance(x, np.ndarray | Fields | Sequences | Texts):
        raise ValueError(f"collate takes rows of arrays, lists or texts, and x is a {type(x).__name__}")
    inputs = CollatedInputs(x, labels, collate)
    some = np.arange(min(len(x), _COLLATED_TWICE))
    if len(some) and not _equal(inputs.batch(some), inputs.batch(some)):
        raise ValueError(
            "collate makes other inputs of the same points each time: random transforms hide what the model remembers "
            "of its records. Give a collate function without them, and apply them in a training function of your own"
        )
    return inputs


def from_dataset(dataset: Any) -> tuple[Any, Array | None]:
    """Read all points of a data set of PyTorch, in their stored order.

    >>> dataset = TensorDataset(torch.eye(3), torch.tensor([0, 1, 0]))
    >>> X, y = from_dataset(DataLoader(dataset, batch_size=2, shuffle=True))
    >>> X.tolist()[1], y.tolist()
    ([0.0, 1.0, 0.0], [0, 1, 0])
    """
    # a loader may shuffle: its data set has the stored order
    if isinstance(dataset, DataLoader):
        dataset = dataset.dataset
    if isinstance(dataset, TensorDataset):
        if len(dataset.tensors) > 2:
            raise ValueError(f"a TensorDataset of features and labels has 2 tensors, got {len(dataset.tensors)}")
        arrays = [_as_array(tensor) for tensor in dataset.tensors]
        return arrays[0], arrays[1] if len(arrays) == 2 else None
    name = type(dataset).__name__
    if isinstance(dataset, IterableDataset) or not isinstance(dataset, Sized):
        raise ValueError(f"{name} has no length and cannot be read point by point; give a data set with positions")
    # any other data set is read point by point
    features, labels = [], []
    reader: Any = dataset
    for index in range(len(dataset)):
        point = reader[index]
        if not isinstance(point, list | tuple) or len(point) != 2:
            raise ValueError(f"the points of {name} must be pairs (x, y), got a {type(point).__name__}")
        features.append(point[0])
        labels.append(_as_array(point[1]))
    if not features:
        raise ValueError(f"{name} has no points")
    _refuse_random_points(reader, name, features, labels)
    if isinstance(features[0], Mapping):
        return {key: _joined([row[key] for row in features]) for key in features[0]}, np.stack(labels)
    return _joined(features), np.stack(labels)


@dataclass(frozen=True)
class DatasetCollate:
    """The collate function of a DataLoader, which gets points in the types that its data set returns.

    leakbound keeps the points as arrays; a function that pads tensors would fail on them.
    """

    collate: Collate
    of_features: PointType
    of_labels: PointType

    @property
    def __name__(self) -> str:
        """That of the function, for the report."""
        return getattr(self.collate, "__name__", type(self.collate).__name__)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, by which stored models are recognised."""
        return {"collate": self.collate, "of_features": self.of_features, "of_labels": self.of_labels}

    def __call__(self, pairs: list[tuple[Any, Any]]) -> Any:
        """Make a batch of a list of points."""
        return self.collate([(_as_type(x, self.of_features), _as_type(y, self.of_labels)) for x, y in pairs])


def collate_of(dataset: Any) -> DatasetCollate | None:
    """Return the collate function of a DataLoader; None for a data set, and where it is that of PyTorch.

    >>> from torch.nn.utils.rnn import pad_sequence
    >>> def pad(pairs):
    ...     rows, labels = zip(*pairs)
    ...     return pad_sequence(rows, batch_first=True), torch.tensor(labels)
    >>> loader = DataLoader([(torch.tensor([3, 1]), 0), (torch.tensor([4]), 1)], collate_fn=pad)
    >>> collate_of(loader)([(np.array([3, 1]), 0), (np.array([4]), 1)])[0].tolist()
    [[3, 1], [4, 0]]
    """
    if not isinstance(dataset, DataLoader) or dataset.collate_fn in (default_collate, default_convert):
        return None
    source = dataset.dataset
    if isinstance(source, IterableDataset) or not isinstance(source, Sized) or not len(source):
        return None  # which is refused where the points are read
    point = source[0]
    if not isinstance(point, list | tuple) or len(point) != 2:
        return None
    return DatasetCollate(dataset.collate_fn, _type_of(point[0]), _type_of(point[1]))


def inputs_of(x: Any) -> Inputs:
    """Convert the features of points to the inputs of networks.

    * Images, an array of 3 axes (N, H, W) or 4: one channel is added to the former, (N, H, W, 1 or 3) become
      channels first, (N, 1 or 3, H, W) stay. Pixels in 8 bits (``uint8``) are divided by 255.
    * Other arrays are converted to float32.
    * Numeric columns of a frame are standardised, a constant column becomes zeros; every other column becomes one
      column for each of its values, a missing value being one of them. Means, deviations and values are those of all
      records: what they reveal about a single record is not part of the audit.

    >>> images = inputs_of(np.full((10, 28, 28), 255, dtype=np.uint8))
    >>> images.shape, images.batch(np.array([3, 5])).mean().item()
    ((1, 28, 28), 1.0)
    """
    if isinstance(x, Pictures) and not isinstance(x, np.ndarray):
        return Inputs(x, (1, *x.shape[1:]) if len(x.shape) == 3 else (x.shape[3], *x.shape[1:3]))
    if isinstance(x, pd.DataFrame):
        source = torch.from_numpy(_of_frame(x))
        return Inputs(source, tuple(source.shape[1:]), _encoded(x, source.shape[1]))
    if isinstance(x, np.ndarray):
        source = _of_array(x)
    elif isinstance(x, Fields):
        raise ValueError("several arrays by name are read by networks that are not trained by DP-SGD; give one array")
    elif isinstance(x, Sequences):
        raise ValueError("the rows of x have different lengths; pad them to one length")
    else:
        raise ValueError(f"networks read arrays, frames and images, got a {type(x).__name__}")
    return Inputs(source, tuple(source.shape[1:]))


def labels_of(points: Points, name: str) -> tuple[Shaped[Array, " K"], Int[Array, " N"]]:
    """Find the classes of the labels, sorted, and the index of each point's class."""
    if points.y is None:
        raise ValueError(f"{name} needs labels")
    if np.ndim(points.y) > 1:
        raise ValueError(f"{name} takes one label for each point, got {np.shape(points.y)[1]}")
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
    return _channels_first(torch.from_numpy(_finite(x)))


def _finite(x: Shaped[Array, "N ..."]) -> Float[Array, "N ..."]:
    """Convert numbers to float32."""
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is refused as that
        values = np.array(x, dtype=np.float32)
    if not np.isfinite(values).all():
        holes = ~np.isfinite(values)
        n_rows = int(holes.reshape(len(holes), -1).any(axis=1).sum())
        by_column = holes.sum(axis=0) if values.ndim == 2 else np.zeros(0, dtype=int)
        raise _not_finite({f"x{idx}": int(by_column[idx]) for idx in np.flatnonzero(by_column)}, n_rows, len(values))
    return values


def _not_finite(by_column: Mapping[str, int], n_rows: int, n: int) -> ValueError:
    """Say where values are missing, infinite or too large, in how many rows, and what can be done."""
    where = "the features"
    if by_column:
        worst = sorted(by_column, key=lambda name: -by_column[name])
        shown = ", ".join(f"{name!r} ({by_column[name]:,})" for name in worst[:_MOST_NAMED])
        more = f" and {len(worst) - _MOST_NAMED:,} more" if len(worst) > _MOST_NAMED else ""
        where = f"column{'' if len(worst) == 1 else 's'} {shown}{more}"
    return ValueError(
        f"{where}: missing or infinite values in {n_rows:,} of {n:,} rows, and networks need finite numbers; leave the "
        "columns out (--drop NAME; in Python .drop(columns=[...])), or "
        "fill them in the data, or inside of a function that trains, fit(X, y, seed)"
    )


def _whole_numbers(x: Integer[Array, "N ..."]) -> Int[Tensor, "N ..."]:
    return torch.from_numpy(np.array(x, dtype=np.int64))


def _as_array(value: Any) -> Array:
    """Convert a tensor, a number or whatever else a data set holds to an array."""
    if not isinstance(value, Tensor):
        return np.asarray(value)
    value = value.detach().cpu()
    return (value.float() if value.dtype == torch.bfloat16 else value).numpy()


def _refuse_random_points(reader: Any, name: str, features: list[Any], labels: list[Array]) -> None:
    """Read some points again, and refuse a data set that changes them at random: a member would not be recognised."""
    some = np.unique(np.linspace(0, len(features) - 1, min(len(features), _READ_TWICE)).astype(int))
    n_changed = 0
    for index in some.tolist():
        x, y = reader[index]
        n_changed += not (_equal(features[index], x) and _equal(labels[index], y))
    if n_changed:
        raise ValueError(
            f"{name} gives other values each time it is read ({n_changed} of {len(some)} points that were read twice): "
            "random transforms hide what the model remembers of its records. Give a data set without them; a training "
            "function, or train={'augment': ...}, may still apply them. To audit one reading all the same, give arrays"
        )


def _equal(first: Any, second: Any) -> bool:
    """Whether two readings of a point, or of a batch, have the same values; what is no array counts as equal."""
    if isinstance(first, Mapping):
        return first.keys() == second.keys() and all(_equal(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple) and any(isinstance(item, Tensor) for item in first):
        return len(first) == len(second) and all(map(_equal, first, second))
    first, second = _as_array(first), _as_array(second)
    if first.dtype == object:
        return True
    if first.shape != second.shape:
        return False
    return bool(np.array_equal(first, second, equal_nan=first.dtype.kind == second.dtype.kind == "f"))


def _type_of(value: Any) -> PointType:
    """Name the type of a point's features or label."""
    if isinstance(value, Mapping):
        value = next(iter(value.values()), None)
    if isinstance(value, Tensor):
        return "tensor"
    if type(value) in (list, tuple):
        return "list" if isinstance(value, list) else "tuple"
    return "array" if isinstance(value, np.ndarray) else "as_they_are"


def _as_type(value: Any, kind: PointType) -> Any:
    """Convert an array or a number back to what the data set returned."""
    if isinstance(value, Mapping):
        return {name: _as_type(item, kind) for name, item in value.items()}
    if kind == "tensor":
        return torch.as_tensor(value)
    if kind in ("list", "tuple"):
        items = np.asarray(value).tolist()
        return items if kind == "list" else tuple(items)
    return np.asarray(value) if kind == "array" else value


def _joined(rows: list[Any]) -> Any:
    """Stack rows of equal shape; a list of those of different shapes."""
    arrays = [_as_array(row) for row in rows]
    return np.stack(arrays) if len({array.shape for array in arrays}) == 1 else arrays


def _moved(value: Any, device: torch.device | str) -> Any:
    """Move all tensors in what a collate function returned to a device."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, Mapping):
        return {name: _moved(item, device) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_moved(item, device) for item in value)
    return value.to(device) if callable(getattr(value, "to", None)) else value  # a packed sequence


def _channels_first(values: Shaped[Tensor, "N ..."]) -> Shaped[Tensor, "N ..."]:
    if values.ndim == 3:
        return values[:, None]
    if values.ndim == 4 and values.shape[3] in _CHANNELS and values.shape[1] not in _CHANNELS:
        return values.permute(0, 3, 1, 2).contiguous()
    return values


def _of_frame(frame: pd.DataFrame) -> Float[Array, "N d"]:
    """Standardise numeric columns, and encode the others one-hot."""
    parts, width = [], 0
    _refuse_holes(frame)
    encoded = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    refuse_free_text(frame, encoded, "the network", "give arrays of token ids")
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


def what_is_done(x: Any, name: str) -> str:
    """Say how a table or 8-bit numbers are changed before a network reads them; empty if they are read as they are."""
    if isinstance(x, pd.DataFrame):
        encoded = [str(column) for column in x if not pd.api.types.is_numeric_dtype(x[column])]
        words = f", {some(encoded)} one-hot encoded" if encoded else ""
        return f"Before {name} reads them, numbers are standardised{words}, by what is computed from all records"
    in_8_bits = x.dtype == np.uint8 if isinstance(x, np.ndarray) else isinstance(x, Pictures)
    return f"Before {name} reads them, 8-bit numbers are divided by 255" if in_8_bits else ""


def _refuse_holes(frame: pd.DataFrame) -> None:
    """Refuse missing and infinite numbers, naming all columns that have any."""
    numeric = {str(name): column for name, column in frame.items() if pd.api.types.is_numeric_dtype(column)}
    holes = {name: ~np.isfinite(column.to_numpy(dtype=float, na_value=np.nan)) for name, column in numeric.items()}
    by_column = {name: int(rows.sum()) for name, rows in holes.items() if rows.any()}
    if by_column:
        n_rows = int(np.any([holes[name] for name in by_column], axis=0).sum())
        raise _not_finite(by_column, n_rows, len(frame))


def _encoded(frame: pd.DataFrame, width: int) -> str:
    """Say which columns of a table become most of the columns that a network gets; empty if each becomes one."""
    if width == frame.shape[1]:
        return ""
    others = frame.select_dtypes(exclude="number")
    n_values = others.nunique(dropna=False).sort_values(ascending=False, kind="stable").head(_NAMED)
    most = ", ".join(f"{name}: {n:,}" for name, n in n_values.items())
    return (
        f": the table's {frame.shape[1]:,} columns become {width:,}, for text has one for each of its values ({most}); "
        "make the network for as many inputs, or leave columns out (--drop NAME; in Python .drop(columns=[...]))"
    )


def _standardised(column: pd.Series) -> Float[Array, "N 1"]:
    values = column.to_numpy(dtype=float, na_value=np.nan)
    size = np.abs(values).max()
    scaled = values / size if size > 0 else values  # squares of huge numbers overflow
    spread = scaled.std()
    if spread <= 1e-12:  # nothing but rounding
        return np.zeros((len(values), 1), dtype=np.float32)
    return ((scaled - scaled.mean()) / spread).astype(np.float32)[:, None]


def _one_hot(column: pd.Series) -> Float[Array, "N v"]:
    code, _ = pd.factorize(column.astype(str).where(column.notna(), "missing"), sort=True)
    return (code[:, None] == np.arange(code.max() + 1)).astype(np.float32)
