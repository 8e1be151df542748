"""Uniform noise in a ball."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Num
from numpy.typing import ArrayLike

from leakbound.core import hockey
from leakbound.core.checks import count, positive
from leakbound.noise.norms import EUCLIDEAN, Lp, dimension, vectors

Array = np.ndarray


@final
@dataclass(frozen=True)
class BallNoise:
    """Noise that is uniform in a Euclidean ball of R^d.

    It has the least root mean square for a given eta up to about 1/3. But with a probability of about 2 eta the
    release falls where only one of the two data sets can have put it, which proves membership or its absence with
    certainty. So it is good for membership inference privacy (a bound on average accuracy), and never for practical
    membership privacy or low false positive rates.

    Parameters
    ----------
    radius : float
        R > 0.
    d : int
        Number of coordinates.

    Examples
    --------
    >>> from leakbound.noise import BallNoise
    >>> noise = BallNoise(2.5, d=1)
    >>> float(noise.shift_tv(1.0)), round(noise.rms(1), 3)
    (0.2, 1.443)
    """

    radius: float
    d: int

    def __post_init__(self) -> None:
        positive("radius", self.radius)
        count("d", self.d)

    @property
    def norm(self) -> Lp:
        """The Euclidean norm."""
        return EUCLIDEAN

    def sample(self, value: Num[Array, "*batch d"], rng: np.random.Generator) -> Float[Array, "*batch d"]:
        """Add an independent draw to each vector."""
        value = vectors(value, self.d)
        # the volume within a fraction r of the radius is proportional to r^d
        distance = np.asarray(rng.uniform(size=value.shape[:-1])) ** (1 / self.d)
        return value + self.radius * distance[..., None] * self.norm.directions(value.shape, rng)

    def log_density(self, z: Num[Array, "*batch d"]) -> Float[Array, "*batch"]:
        """Compute minus the logarithm of the volume of the ball inside of it, and minus infinity outside."""
        log_volume = self.norm.log_ball_volume(self.d) + self.d * math.log(self.radius)
        return np.where(self.norm(vectors(z, self.d)) <= self.radius, -log_volume, -np.inf)

    def shift_tv(self, u: ArrayLike) -> Float[Array, "*shape"]:
        """Compute ``I_x(1/2, (d+1)/2)`` with ``x = (u/(2 R))^2``, exactly."""
        return hockey.ball(hockey.in_scales(u, self.radius), self.d)

    def shift_hockey(self, u: ArrayLike, gamma: float) -> Float[Array, "*shape"]:
        """Compute the total variation, which is exact for every gamma >= 1."""
        hockey.log_ratio(gamma)
        return self.shift_tv(u)

    def rms(self, d: int) -> float:
        """Compute ``R/sqrt(d + 2)``."""
        dimension(d, self.d)
        return self.radius / math.sqrt(d + 2)
