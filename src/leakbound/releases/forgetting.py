"""Models from which records were removed after training: what is released, and seen, is the result of the removal."""

from __future__ import annotations

import hashlib
import inspect
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from leakbound.core.seeds import integer
from leakbound.core.types import Points
from leakbound.data.records import as_given
from leakbound.releases.estimator import Estimator
from leakbound.releases.factory import Described, Structured, adapted, owner_notes, prepared
from leakbound.releases.specs import canonical, described_inside, first_line
from leakbound.releases.structure import Structure
from leakbound.releases.training_function import TrainingFunction
from leakbound.releases.wrapped import Wrapped

Array = np.ndarray
Unlearn = Callable[..., Any]  # unlearn(model, X_removed, y_removed, X_kept, y_kept, seed) returns a model
DIGITS = 9  # after the first of the largest value of a signal: kept where models differ by rounding alone
_ARGUMENTS = ("model", "X_removed", "y_removed", "X_kept", "y_kept", "seed")


@dataclass(frozen=True)
class Removal:
    """What is done to a trained model: records that may be removed, if they were in, are."""

    function: Unlearn
    is_target: Bool[Array, " N"]

    def __call__(self, model: Any, points: Points, inside: Bool[Array, " N"], seed: int) -> Any:
        """Remove the targets that are in the data of a model."""
        removed, kept = (points.take(np.flatnonzero(inside & side)) for side in (self.is_target, ~self.is_target))
        name = getattr(self.function, "__name__", type(self.function).__name__)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                after = self.function(
                    model, as_given(removed.x), removed.y, as_given(kept.x), kept.y, integer(seed, "unlearn")
                )
        except Exception as error:  # the function is the user's: it may raise anything
            raise RuntimeError(
                f"{name} fails to remove {len(removed):,} points and to keep {len(kept):,}: {first_line(error)}"
            ) from error
        if after is None:
            raise ValueError(f"{name} returns nothing; return the model after the removal")
        return after


@dataclass(frozen=True)
class Forgetting(Wrapped):
    """A training followed by a removal.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> def again(model, X_removed, y_removed, X_kept, y_kept, seed):
    ...     return GaussianNB().fit(X_kept, y_kept)
    >>> points = Points(np.arange(8.0)[:, None], np.arange(8) % 2)
    >>> member = np.array([[1, 0, 1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1, 1, 1]], dtype=bool)
    >>> release = Forgetting(Estimator(GaussianNB()), again, np.arange(8) < 2)
    >>> loss = release.observe(points, member, np.array([0, 1]), ["loss"])["loss"]
    >>> bool((loss[0] == loss[1]).all())
    True
    """

    unlearn: Unlearn
    is_target: Bool[Array, " N"]
    kept: str = "half"

    def __post_init__(self) -> None:
        self._removing()
        takes = inspect.signature(self.unlearn)
        try:
            takes.bind(*_ARGUMENTS)
        except TypeError:
            raise ValueError(f"unlearn must take ({', '.join(_ARGUMENTS)}), got {takes}") from None

    def _description(self) -> Mapping[str, Any]:
        return {
            "trained": described_inside(self.release),
            "removed by": canonical(self.unlearn),
            "targets": hashlib.sha256(np.packbits(self.is_target).tobytes()).hexdigest(),
            "kept": self.kept,
        }

    @property
    def description(self) -> str:
        """The training and the removal."""
        return f"{self.release.description}, then {getattr(self.unlearn, '__name__', type(self.unlearn).__name__)}"

    @property
    def family(self) -> str:
        """That of the release."""
        return getattr(self.release, "family", "")

    @property
    def signals(self) -> tuple[str, ...]:
        """Those that a score sees; empty where predictions are seen."""
        return getattr(self.release, "signals", ())

    @property
    def dtype(self) -> str:
        """That of what is seen in the store."""
        return getattr(self.release, "dtype", "float32")

    def for_points(self, points: Points) -> Forgetting:
        """Find out what the training needs so that it takes these points."""
        ready = adapted(self.release, points)
        if isinstance(ready, Estimator) and ready.preparation is not None and ready.preparation.labels:
            raise ValueError(
                f"{self.name} refuses these labels, and they would be numbers for it and not for unlearn; give numbers"
            )
        return replace(self, release=ready)

    def prepared(self, points: Points) -> str:
        """Say what the training does to the points."""
        return prepared(self.release, points)

    @property
    def owner_note(self) -> str:
        """That of the training."""
        return " ".join(owner_notes([self.release]))

    def _removing(self) -> Described:
        """Return the release whose models are seen after the removal."""
        return _followed_by(self.release, Removal(self.unlearn, self.is_target))

    def structure(self, points: Points, seed: int) -> Structure:
        """Train on all points, remove the targets, and read the structure of what is left."""
        release = self._removing()
        if not isinstance(release, Structured):
            raise ValueError(f"{self.name} has no structure that could be looked at")
        return release.structure(points, seed)

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m N ..."]]:
        """Train on each row's records, remove the targets among them, and see the result."""
        arrays = self._removing().observe(points, member, seeds, want)
        if self.kept == "half":
            return arrays
        # all models are of the same records after an exact removal, and would differ in the errors of arithmetic alone
        return {name: np.stack([rounded(row) for row in array]) for name, array in arrays.items()}


def _followed_by(release: Any, removal: Removal) -> Any:
    """Return a release that removes records from each of its models before it is seen."""
    if isinstance(release, Wrapped):
        return replace(release, release=_followed_by(release.release, removal))
    if not isinstance(release, Estimator | TrainingFunction):
        raise ValueError(
            f"{release.name}: the game forgotten is played with estimators and functions that train, fit(X, y, seed); "
            "train the network in such a function"
        )
    return replace(release, after=removal)


def rounded(values: Shaped[Array, "N ..."]) -> Shaped[Array, "N ..."]:
    """Round what is seen of a model to ``1e-9`` of its size, the power of ten below the largest value.

    >>> rounded(np.array([1234.000000001, 0.3333333333])).tolist()
    [1234.0, 0.333333]
    """
    largest = float(np.abs(values).max(initial=0.0))
    if values.dtype.kind != "f" or largest == 0.0 or not math.isfinite(largest):
        return values
    return np.round(values.astype(np.float64), DIGITS - math.floor(math.log10(largest)))
