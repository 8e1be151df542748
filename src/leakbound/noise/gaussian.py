"""Gaussian noise, isotropic or with a covariance of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Float, Num
from numpy.typing import ArrayLike

from leakbound.core import hockey
from leakbound.core.checks import positive
from leakbound.core.divergences import gaussian_hockey
from leakbound.noise.norms import EUCLIDEAN, Lp, Mahalanobis, dimension, vectors

Array = np.ndarray


@final
@dataclass(frozen=True, eq=False)
class GaussianNoise:
    """Noise ``N(0, scale^2 S)``.

    What it hides of a shift is known exactly: with ``m = ||v||_(S^-1)/scale`` the total variation is ``2 Phi(m/2) - 1``
    and the hockey-stick divergence ``Phi(m/2 - e/m) - gamma Phi(-m/2 - e/m)``, ``e = ln gamma`` (Balle & Wang 2018,
    theorem 5).
    Source: lowy2024, section 4.

    Parameters
    ----------
    scale : float
        > 0; the standard deviation where S is the identity.
    shape : array of shape (d, d) or (d,), optional
        S, symmetric positive definite, or its diagonal; the identity where None.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import GaussianNoise
    >>> noise = GaussianNoise(2.0)
    >>> round(float(noise.shift_tv(1.0)), 6), noise.rms(3)
    (0.197413, 2.0)
    """

    scale: float
    shape: Num[Array, "d d"] | Num[Array, " d"] | None = None

    def __post_init__(self) -> None:
        positive("scale", self.scale)
        if isinstance(self._norm, Mahalanobis):
            object.__setattr__(self, "shape", self._norm.shape)

    @property
    def norm(self) -> Lp | Mahalanobis:
        """The Euclidean norm, or the Mahalanobis norm of S."""
        return self._norm

    @cached_property
    def _norm(self) -> Lp | Mahalanobis:
        return EUCLIDEAN if self.shape is None else Mahalanobis(self.shape)

    @property
    def d(self) -> int | None:
        """Number of coordinates of S; None for the identity."""
        return self.norm.d

    def sample(self, value: Num[Array, "*batch d"], rng: np.random.Generator) -> Float[Array, "*batch d"]:
        """Add an independent draw to each vector."""
        value = vectors(value, self.d)
        return value + self.scale * self.norm.restore(rng.standard_normal(value.shape))

    def log_density(self, z: Num[Array, "*batch d"]) -> Float[Array, "*batch"]:
        """Compute ``-||z||^2/(2 scale^2) - d ln(scale sqrt(2 pi)) - ln det(S)/2``."""
        d = vectors(z, self.d).shape[-1]
        normaliser = d * (math.log(self.scale) + math.log(2 * math.pi) / 2) + self.norm.log_volume_factor
        return np.asarray(-np.square(self.norm(z) / self.scale) / 2 - normaliser)

    def shift_tv(self, u: ArrayLike) -> Float[Array, "*shape"]:
        """Compute ``2 Phi(u/(2 scale)) - 1``, exactly."""
        return self.shift_hockey(u, 1.0)

    def shift_hockey(self, u: ArrayLike, gamma: float) -> Float[Array, "*shape"]:
        """Compute ``Phi(m/2 - e/m) - gamma Phi(-m/2 - e/m)``, ``m = u/scale``, ``e = ln gamma``, exactly."""
        return gaussian_hockey(hockey.in_scales(u, self.scale), hockey.log_ratio(gamma))

    def rms(self, d: int) -> float:
        """Compute ``scale sqrt(tr(S)/d)``."""
        dimension(d, self.d)
        return self.scale * math.sqrt(self.norm.spread)
