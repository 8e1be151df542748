"""Several versions of each record, of which every model is asked: shifted images, rows with noise, or the user's own.

A release is fitted on the records themselves and then seen at the versions, as at records that are in no model. So any
release can be asked, and what it says of the records is what it says without the versions.

Axes: M models, N points, Q queries (versions of a point; the first one is the point itself).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, cast

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from leakbound.core.checks import count
from leakbound.core.seeds import stream
from leakbound.core.signals import QUERY_SIGNALS
from leakbound.core.types import Points
from leakbound.data import from_arrays, join
from leakbound.data.images import Images
from leakbound.data.records import as_given
from leakbound.plans.games import VERSIONS
from leakbound.releases.factory import adapted, prepared
from leakbound.releases.specs import (
    canonical,
    described_inside,
    first_line,
    imported,
)
from leakbound.releases.wrapped import Wrapped

Array = np.ndarray
Function = Callable[[Any, int], Any]  # from the features of all records and the number of the version to features
NOISE = 0.1  # standard deviation of the noise, in those of the column
GROWING = (0.02, 4.0)  # the same of the first and the last version of growing noise
_CHANNELS = (1, 3)
_NOT_OF_VERSIONS = "taylor"  # refits that know nothing of the game would be of versions, too
_LARGEST_SHIFT = 4  # a shift is at most the shorter side divided by this


@dataclass(frozen=True)
class Versions:
    """How versions of records are made.

    >>> points = Points(np.arange(32, dtype=np.uint8).reshape(2, 4, 4), np.array([0, 1]))
    >>> versions = Versions(3, "shifts")
    >>> versions.of(points).x.shape  # the images, their mirror images, and the images one pixel higher
    (6, 4, 4)
    """

    n_queries: int
    # shifts of images by whole pixels, mirrored or not, the smallest first (the edge is reflected); noise on numeric
    # columns; or growing noise: how far a label holds measures the distance to the decision boundary
    how: str | Function
    seed: int = 0

    @classmethod
    def for_points(cls, points: Points, n_queries: int, how: str | Function | None, seed: int = 0) -> Versions:
        """Choose how versions of these points are made, where nobody says it, and refuse what does not fit them."""
        count("n_queries", n_queries, least=2)
        is_image = image_shape(points.x) is not None
        # images are shifted, numbers get noise
        if how is None:
            how = "shifts" if is_image else "noise"
        if isinstance(how, str) and ":" in how:
            how = cast("Function", imported(how))
        if isinstance(how, str) and how not in VERSIONS:
            raise ValueError(
                f"versions must be {', '.join(VERSIONS)}, module:function or a function of the features and a number; "
                f"got {how!r}"
            )
        if how == "shifts" and not is_image:
            raise ValueError(
                "versions='shifts' moves images, arrays of shape (N, H, W), (N, H, W, 3) or (N, 3, H, W), and these "
                "records are none; give versions='noise' or a function"
            )
        if how in ("noise", "growing_noise"):
            _refuse_without_numbers(points.x)
        versions = cls(n_queries, how, seed)
        if how == "shifts":
            versions._refuse_too_many(points.x)
        return versions

    def of(self, points: Points) -> Points:
        """Return the points, then all of their second versions, all of their third ones, and so on."""
        if isinstance(self.how, str):
            x = _shifted(points.x, self.n_queries) if self.how == "shifts" else self._noisy(points.x)
        else:
            x = self._by_function(self.how, points.x)
        y = None if points.y is None else np.concatenate([points.y] * self.n_queries)
        return Points(x, y)

    def describe(self) -> Mapping[str, Any]:
        """Return what the versions depend on, for the store."""
        how = self.how if isinstance(self.how, str) else canonical(self.how)
        return {"n_queries": self.n_queries, "versions": how, "seed": self.seed}

    @property
    def words(self) -> str:
        """What the versions are, in the sentence of a report."""
        if not isinstance(self.how, str):
            return f"made by {getattr(self.how, '__name__', 'a function')}"
        return {
            "shifts": "mirrored and shifted",
            "noise": f"with noise of {NOISE:g} standard deviations of each column",
            "growing_noise": f"with noise from {GROWING[0]:g} to {GROWING[1]:g} standard deviations of each column",
        }[self.how]

    def _refuse_too_many(self, x: Any) -> None:
        shape = image_shape(x)
        assert shape is not None
        most = 2 * (2 * (min(shape) // _LARGEST_SHIFT) + 1) ** 2
        if self.n_queries > most:
            raise ValueError(
                f"queries must be at most {most} for images of {shape[0]} x {shape[1]} pixels, whose shifts are at "
                f"most a quarter of a side; got {self.n_queries}"
            )

    def _noisy(self, x: Any) -> Any:
        """Add noise to all numbers, of another draw in each version."""
        n_others = self.n_queries - 1
        if self.how == "noise":
            scales = np.full(n_others, NOISE)
        else:
            scales = np.geomspace(*GROWING, n_others) if n_others > 1 else np.array(GROWING[:1])
        rngs = [stream(self.seed, "queries", number) for number in range(1, self.n_queries)]
        if isinstance(x, Images):
            x = x.pixels(np.arange(len(x)))
        if isinstance(x, np.ndarray):
            return np.concatenate([x, *(_with_noise(x, scale, rng) for scale, rng in zip(scales, rngs, strict=True))])
        joined = Points(_replaced(x, _numbers(x)))  # numbers as floats, the type that they have with noise
        for scale, rng in zip(scales, rngs, strict=True):
            joined = join(joined, Points(_frame_with_noise(x, scale, rng)))
        return joined.x

    def _by_function(self, function: Function, x: Any) -> Any:
        name = getattr(function, "__name__", "the function")
        joined = Points(x)
        for number in range(1, self.n_queries):
            try:
                version = function(as_given(x), number)
            except Exception as error:  # the function is the user's: it may raise anything
                raise ValueError(f"versions: {name} fails on {len(x):,} records: {first_line(error)}") from error
            try:
                records = from_arrays(version)
                joined = join(joined, records)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"versions: {name} must return records of the kind that it gets: {first_line(error)}"
                ) from None
            if len(records) != len(x):
                raise ValueError(f"versions: {name} returned {len(records):,} records for {len(x):,}; return as many")
        return joined.x


@dataclass(frozen=True)
class Queried(Wrapped):
    """A release that is asked about several versions of each record.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from leakbound.releases.estimator import Estimator
    >>> points = Points(np.arange(8.0)[:, None], np.arange(8) % 2)
    >>> release = Queried(Estimator(DecisionTreeClassifier()), Versions(3, "noise"))
    >>> seen = release.observe(points, np.arange(8) < np.array([[4], [6]]), np.array([0, 1]), ["correct"])
    >>> seen["correct"].shape, seen["query_correct"].shape
    ((2, 8), (2, 8, 3))
    """

    versions: Versions

    def _description(self) -> Mapping[str, Any]:
        return {"queried": described_inside(self.release), **self.versions.describe()}

    def for_points(self, points: Points) -> Queried:
        """Let the release find out what it needs so that it can be fitted on these points."""
        return replace(self, release=adapted(self.release, points))

    def prepared(self, points: Points) -> str:
        """Say what the release does to the points."""
        return prepared(self.release, points)

    @property
    def owner_note(self) -> str:
        """That of the release."""
        return getattr(self.release, "owner_note", "")

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m N ..."]]:
        """Make the releases, and see them at every point and at its other versions, which are in no model.

        Returns the wanted signals of the points, and with an axis of queries those of `QUERY_SIGNALS`.
        """
        n_points, n_queries = len(points), self.versions.n_queries
        nobody = np.zeros((len(member), n_points * (n_queries - 1)), dtype=bool)
        names = [name for name in want if name != _NOT_OF_VERSIONS]
        everywhere = self.release.observe(
            self.versions.of(points), np.concatenate([member, nobody], axis=1), seeds, names
        )
        signals = {name: array[:, :n_points] for name, array in everywhere.items()}
        for query_name, name in QUERY_SIGNALS.items():
            if name in everywhere:
                by_version = everywhere[name].reshape(len(member), n_queries, n_points)
                signals[query_name] = by_version.swapaxes(1, 2)
        return signals


def image_shape(x: Any) -> tuple[int, int] | None:
    """Return height and width where records are images; None where they are none.

    >>> image_shape(np.zeros((5, 28, 32), dtype=np.uint8)), image_shape(np.zeros((5, 64)))
    ((28, 32), None)
    """
    if isinstance(x, Images):
        return x.size
    if not isinstance(x, np.ndarray) or x.ndim not in (3, 4) or x.dtype.kind not in "fu":
        return None
    if x.ndim == 3:
        return x.shape[1], x.shape[2]
    if x.shape[1] in _CHANNELS:
        return x.shape[2], x.shape[3]
    return (x.shape[1], x.shape[2]) if x.shape[3] in _CHANNELS else None


def shifts(n_queries: int) -> list[tuple[bool, int, int]]:
    """List the first versions of an image: mirrored or not, and pixels downwards and to the right.

    >>> shifts(4)
    [(False, 0, 0), (True, 0, 0), (False, -1, 0), (True, -1, 0)]
    """
    # the first 18 are all shifts by at most a pixel, the first 50 by at most two
    ordered, radius = [(0, 0)], 0
    while 2 * len(ordered) < n_queries:
        radius += 1
        side = range(-radius, radius + 1)
        ring = [(down, right) for down in side for right in side if max(abs(down), abs(right)) == radius]
        ordered += sorted(ring, key=lambda shift: (abs(shift[0]) + abs(shift[1]), abs(shift[1]), shift))
    both = ((mirrored, down, right) for down, right in ordered for mirrored in (False, True))
    return list(islice(both, n_queries))


def _shifted(x: Any, n_queries: int) -> Shaped[Array, "n ..."]:
    """Concatenate the versions of images."""
    images = x.pixels(np.arange(len(x))) if isinstance(x, Images) else x
    rows = 1 if images.ndim == 3 or images.shape[1] not in _CHANNELS else 2
    columns = rows + 1
    versions = []
    for mirrored, down, right in shifts(n_queries):
        image = np.flip(images, columns) if mirrored else images
        versions.append(_moved(_moved(image, down, rows), right, columns))
    return np.concatenate(versions)


def _moved(images: Shaped[Array, "N ..."], pixels: int, axis: int) -> Shaped[Array, "N ..."]:
    """Shift images along an axis; what comes in is their reflection at the edge, without the edge itself."""
    length = images.shape[axis]
    source = np.abs(np.arange(length) - pixels)
    return np.take(images, np.where(source < length, source, 2 * (length - 1) - source), axis)


def _refuse_without_numbers(x: Any) -> None:
    if isinstance(x, Images) or (isinstance(x, np.ndarray) and x.dtype.kind in "biuf"):
        return
    is_frame = callable(getattr(x, "select_dtypes", None))  # a frame of pandas, which this file does not import
    if is_frame and len(_numbers(x)):
        return
    kind = "has no column of numbers" if is_frame else f"holds {type(x).__name__.lower()}"
    raise ValueError(f"noise is added to numbers, and x {kind}; give versions=, a function of the records and a number")


def _with_noise(x: Shaped[Array, "N ..."], scale: float, rng: np.random.Generator) -> Shaped[Array, "N ..."]:
    """Add noise to the columns of an array; pixels in 8 bits stay pixels."""
    values = x.astype(np.float64)
    noisy = values + scale * values.std(axis=0) * rng.standard_normal(values.shape)
    if x.dtype == np.uint8:
        return np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    return noisy.astype(x.dtype) if x.dtype.kind == "f" else noisy


def _numbers(frame: Any) -> dict[Any, Float[Array, " N"]]:
    """Return the numeric columns of a frame as floats."""
    numeric = frame.select_dtypes("number")
    return {name: numeric[name].to_numpy(dtype=float, na_value=np.nan) for name in numeric.columns}


def _frame_with_noise(frame: Any, scale: float, rng: np.random.Generator) -> Any:
    """Add noise to the numeric columns of a frame; what is missing stays missing."""
    noisy = {}
    for name, values in _numbers(frame).items():
        spread = np.nanstd(values) if np.isfinite(values).any() else 0.0
        noisy[name] = values + scale * spread * rng.standard_normal(len(values))
    return _replaced(frame, noisy)


def _replaced(frame: Any, columns: Mapping[Any, Float[Array, " N"]]) -> Any:
    """Copy a frame with other values in some columns."""
    copy = frame.copy()
    for name, values in columns.items():
        copy[name] = values
    return copy
