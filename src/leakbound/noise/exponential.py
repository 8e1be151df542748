"""Noise whose density falls exponentially with a norm: Laplace noise, and its forms in several dimensions."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from jaxtyping import Float, Num
from numpy.typing import ArrayLike
from scipy.special import gammaln

from leakbound.core import hockey
from leakbound.core.checks import one_of, positive
from leakbound.core.types import NotApplicable
from leakbound.noise.norms import EUCLIDEAN, Lp, Mahalanobis, dimension, vectors

Array = np.ndarray


@final
@dataclass(frozen=True)
class LaplaceNoise:
    """Laplace noise for one number: density ``exp(-|z|/scale)/(2 scale)``.

    Its shift is exact: total variation ``1 - exp(-u/(2 scale))``, hockey-stick divergence
    ``(1 - exp((ln gamma - u/scale)/2))_+``.

    Parameters
    ----------
    scale : float
        > 0; the standard deviation is sqrt(2) times it.

    Examples
    --------
    >>> from leakbound.noise import LaplaceNoise
    >>> noise = LaplaceNoise(1.0)
    >>> round(float(noise.shift_tv(1.0)), 6), round(noise.rms(1), 6)
    (0.393469, 1.414214)
    """

    scale: float

    def __post_init__(self) -> None:
        positive("scale", self.scale)

    @property
    def d(self) -> int:
        """1."""
        return 1

    @property
    def norm(self) -> Lp:
        """The absolute value, as the Euclidean norm of one number."""
        return EUCLIDEAN

    def sample(self, value: Num[Array, "*batch 1"], rng: np.random.Generator) -> Float[Array, "*batch 1"]:
        """Add an independent draw to each number."""
        value = vectors(value, 1)
        return value + rng.laplace(scale=self.scale, size=value.shape)

    def log_density(self, z: Num[Array, "*batch 1"]) -> Float[Array, "*batch"]:
        """Compute ``-|z|/scale - ln(2 scale)``."""
        return np.asarray(-self.norm(vectors(z, 1)) / self.scale - math.log(2 * self.scale))

    def shift_tv(self, u: ArrayLike) -> Float[Array, "*shape"]:
        """Compute ``1 - exp(-u/(2 scale))``, exactly."""
        return self.shift_hockey(u, 1.0)

    def shift_hockey(self, u: ArrayLike, gamma: float) -> Float[Array, "*shape"]:
        """Compute ``(1 - exp((ln gamma - u/scale)/2))_+``, exactly."""
        return hockey.laplace(hockey.in_scales(u, self.scale), hockey.log_ratio(gamma))

    def rms(self, d: int) -> float:
        """Compute ``sqrt(2) scale``."""
        dimension(d, 1)
        return math.sqrt(2) * self.scale


@final
@dataclass(frozen=True)
class NormNoise:
    """Noise ``r U`` with density ``exp(-||z||/scale)`` of any norm: r from Gamma(d, scale), U from the cone measure.

    The total variation of a shift is exact for Euclidean norms (Lp(2) and Mahalanobis) and in one dimension. For
    any other norm, or where d is unknown, the upper bound ``tanh(u/(2 scale))`` and its hockey-stick form are used.
    They hold in any dimension; in high dimensions a Euclidean norm needs far less noise.
    Source: izzo2022, theorem 7 and corollary 8.

    Parameters
    ----------
    scale : float
        b > 0.
    norm : Lp or Mahalanobis
    radius : {"gamma", "laplace-literal"}
        ``"laplace-literal"`` draws r from the Laplace distribution as algorithm 1 of Izzo et al. (2022) prints it. For
        d > 1 its density is not ``exp(-||z||/scale)`` and their theorem does not cover it. It is for
        reproduction only, and gives a warning.
    d : int, optional
        Number of coordinates, where the norm does not fix it.

    Examples
    --------
    >>> from leakbound.noise import Lp, NormNoise
    >>> noise = NormNoise(1.0, Lp(2), d=3)
    >>> round(float(noise.shift_tv(1.0)), 6), round(float(NormNoise(1.0, Lp(1)).shift_tv(1.0)), 6)
    (0.241837, 0.462117)
    """

    scale: float
    norm: Lp | Mahalanobis
    radius: Literal["gamma", "laplace-literal"] = "gamma"
    d: int | None = None

    def __post_init__(self) -> None:
        positive("scale", self.scale)
        one_of("radius", self.radius, ("gamma", "laplace-literal"))
        if self.d is None:
            object.__setattr__(self, "d", self.norm.d)
        else:
            dimension(self.d, self.norm.d)
        if self.radius == "laplace-literal":
            warnings.warn("laplace-literal is for reproduction: it promises less than its theorem", stacklevel=3)

    def sample(self, value: Num[Array, "*batch d"], rng: np.random.Generator) -> Float[Array, "*batch d"]:
        """Add an independent draw to each vector."""
        value = vectors(value, self.d)
        freedom = value.shape[-1] if self.radius == "gamma" else 1  # the size of a Laplace draw is exponential
        radius = rng.gamma(freedom, self.scale, size=value.shape[:-1])
        return value + np.asarray(radius)[..., None] * self.norm.directions(value.shape, rng)

    def log_density(self, z: Num[Array, "*batch d"]) -> Float[Array, "*batch"]:
        """Compute ``-||z||/scale - d ln(scale) - ln(d! vol(unit ball))``; with the literal radius that of r U."""
        d = vectors(z, self.d).shape[-1]
        length = self.norm(z) / self.scale
        log_surface = math.log(d) + self.norm.log_ball_volume(d) + d * math.log(self.scale)
        if self.radius == "gamma" or d == 1:
            return np.asarray(-length - gammaln(d) - log_surface)
        with np.errstate(divide="ignore"):  # an infinite density at 0
            return np.asarray(-length - (d - 1) * np.log(length) - log_surface)

    def shift_tv(self, u: ArrayLike) -> Float[Array, "*shape"]:
        """Compute the total variation, as in `shift_hockey`; the bound for other norms is ``tanh(u/(2 scale))``."""
        return self.shift_hockey(u, 1.0)

    def shift_hockey(self, u: ArrayLike, gamma: float) -> Float[Array, "*shape"]:
        """Compute the divergence for Euclidean norms of known d and for d = 1, or else an upper bound.

        The bound is ``((e^t - gamma)/(e^t + 1))_+`` with ``t = u/scale``. With the literal radius and d > 1 it is
        the total variation for Euclidean norms, and NotApplicable is raised for others.
        """
        t, epsilon = hockey.in_scales(u, self.scale), hockey.log_ratio(gamma)
        if self.d == 1:
            return hockey.laplace(t, epsilon)
        if self.radius == "laplace-literal":
            if self.norm.order != 2 or self.d is None:
                raise NotApplicable("laplace_literal")
            return hockey.euclidean_literal(t, self.d)
        if self.norm.order == 2 and self.d is not None:
            return hockey.euclidean(t, epsilon, self.d)
        return hockey.any_norm(t, epsilon)

    def rms(self, d: int) -> float:
        """Compute ``sqrt(E r^2)`` times the root mean square of a coordinate of U; ``E r^2 = d (d+1) scale^2``."""
        dimension(d, self.d)
        mean_square = d * (d + 1) if self.radius == "gamma" else 2
        return self.scale * math.sqrt(mean_square * self.norm.mean_square_direction(d))
