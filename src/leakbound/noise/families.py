"""The families of noise by name, as they are given in plans: what each is good for, and its noise of a given scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from jaxtyping import Float, Num

from leakbound.core.checks import one_of
from leakbound.core.types import Noise
from leakbound.noise.ball import BallNoise
from leakbound.noise.exponential import LaplaceNoise, NormNoise
from leakbound.noise.gaussian import GaussianNoise
from leakbound.noise.norms import EUCLIDEAN, Lp, Mahalanobis
from leakbound.noise.shape import Structure

Array = np.ndarray


@dataclass(frozen=True)
class Family:
    """A row of ``FAMILIES``."""

    name: str
    summary: str
    # from a scale, a number of coordinates d and a shape (of mean variance 1, or None)
    make: Callable[[float, int, Num[Array, "d d"] | None], Noise]
    structure: Structure | None = None
    largest_d: int | None = None
    ratios: bool = True

    def of(self, d: int, shape: Num[Array, "d d"] | None = None) -> Callable[[float], Noise]:
        """Return the noise of each scale, for d coordinates."""
        if self.largest_d is not None and d > self.largest_d:
            raise ValueError(f"noise {self.name} is for one number, the statistic has {d}; take gaussian")
        return partial(self._noise, d=d, shape=shape)

    def _noise(self, scale: float, d: int, shape: Num[Array, "d d"] | None) -> Noise:
        return self.make(scale, d, shape)


def _gaussian(scale: float, d: int, shape: Num[Array, "d d"] | None) -> Noise:
    return GaussianNoise(scale, shape)


def _diagonal(scale: float, d: int, shape: Num[Array, "d d"] | None) -> Noise:
    return GaussianNoise(scale, None if shape is None else _variances(shape))


def _laplace(scale: float, d: int, shape: Num[Array, "d d"] | None) -> Noise:
    return LaplaceNoise(scale)


def _norm(scale: float, d: int, shape: Num[Array, "d d"] | None) -> Noise:
    return NormNoise(scale, EUCLIDEAN, d=d)


def _ball(scale: float, d: int, shape: Num[Array, "d d"] | None) -> Noise:
    return BallNoise(scale, d)


def _variances(shape: Num[Array, "d d"]) -> Float[Array, " d"]:
    return np.diagonal(shape).astype(float)


_ROWS = (
    Family("gaussian", "Gaussian, its shape suited to the shifts", _gaussian, "full"),
    Family("gaussian_diagonal", "Gaussian, independent in each coordinate", _diagonal, "diagonal"),
    Family("gaussian_isotropic", "Gaussian, the same in each coordinate", _gaussian),
    Family("laplace", "Laplace, for a single number", _laplace, largest_d=1),
    Family("norm", "density exp(-||z||/b) of the Euclidean norm", _norm),
    Family("ball", "uniform in a ball: least noise, but proves some memberships for certain", _ball, ratios=False),
)
FAMILIES: Mapping[str, Family] = MappingProxyType({row.name: row for row in _ROWS})


def find_family(name: str) -> Family:
    """Return the family of a name.

    >>> find_family("laplace").of(1)(2.0)
    LaplaceNoise(scale=2.0)
    """
    return FAMILIES[one_of("noise", name, FAMILIES)]


def describe(noise: Noise) -> dict[str, Any]:
    """Describe a noise by its class and all its parameters, as plain JSON.

    Two noises with the same description have the same distribution, and the same values from the same random bits.

    >>> describe(GaussianNoise(2, np.array([1.0, 4.0])))
    {'family': 'GaussianNoise', 'scale': 2.0, 'shape': [1.0, 4.0]}
    """
    if type(noise) not in (GaussianNoise, LaplaceNoise, NormNoise, BallNoise):  # a subclass may draw in another way
        raise ValueError(
            f"expected a noise of leakbound.noise (GaussianNoise, LaplaceNoise, NormNoise, BallNoise), "
            f"got {type(noise).__name__}: its parameters cannot be written down"
        )
    parameters = {field.name: _plain(getattr(noise, field.name)) for field in fields(noise)}  # pyright: ignore[reportArgumentType] -- all of them are dataclasses
    return {"family": type(noise).__name__} | parameters


def _plain(value: Any) -> Any:
    """Convert a field of a noise to plain JSON; numbers to floats, so that 2 and 2.0 are the same scale."""
    if isinstance(value, Lp | Mahalanobis):
        parameters = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return {"norm": type(value).__name__} | parameters
    if isinstance(value, np.ndarray | list | tuple):
        return np.asarray(value, dtype=float).tolist()
    if value is None or isinstance(value, str):
        return value
    return _number(value)


def _number(value: Any) -> float | str:
    """Convert to a float; to a text for infinity, which JSON does not have."""
    number = float(value)
    return number if np.isfinite(number) else str(number)
