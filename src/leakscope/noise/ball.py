"""Uniform noise in a ball."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Num
from numpy.typing import ArrayLike
from scipy.special import hyp0f1

from leakscope.core.checks import count, positive
from leakscope.noise import hockey
from leakscope.noise.norms import EUCLIDEAN, Lp, dimension, vectors

Array = np.ndarray


@final
@dataclass(frozen=True)
class BallNoise:
    """Noise uniform in the Euclidean ball of R^d.

    The least root mean square for a given eta up to about 1/3. But with a probability of about 2 eta the
    release falls where one of the two data sets cannot have put it, which proves membership or its absence
    for certain: good for membership inference privacy (a bound on average accuracy), never for practical
    membership privacy or for low false-positive rates.

    Parameters
    ----------
    radius : float
        R > 0.
    d : int
        Number of coordinates; what a ball hides depends on it.

    Examples
    --------
    >>> from leakscope.noise import BallNoise
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
        """Euclidean."""
        return EUCLIDEAN

    def sample(self, value: Num[Array, "*batch d"], rng: np.random.Generator) -> Float[Array, "*batch d"]:
        """Each vector plus an independent draw."""
        value = vectors(value, self.d)
        share = np.asarray(rng.uniform(size=value.shape[:-1])) ** (1 / self.d)
        return value + self.radius * share[..., None] * self.norm.directions(value.shape, rng)

    def log_density(self, z: Num[Array, "*batch d"]) -> Float[Array, "*batch"]:
        """Minus the log of the ball's volume inside, minus infinity outside."""
        log_volume = self.norm.log_ball_volume(self.d) + self.d * math.log(self.radius)
        return np.where(self.norm(vectors(z, self.d)) <= self.radius, -log_volume, -np.inf)

    def characteristic(self, w: Num[Array, "*batch d"]) -> Float[Array, "*batch"]:
        """``0F1(d/2 + 1; -R^2 ||w||^2/4)``: a Bessel function J of order d/2 over its power."""
        return np.asarray(hyp0f1(self.d / 2 + 1, -np.square(self.radius * self.norm(vectors(w, self.d))) / 4))

    def shift_tv(self, u: ArrayLike) -> Float[Array, "*shape"]:
        """``I_x(1/2, (d+1)/2)`` with ``x = (u/(2 R))^2``, exact."""
        return hockey.ball(hockey.in_scales(u, self.radius), self.d)

    def shift_hockey(self, u: ArrayLike, gamma: float) -> Float[Array, "*shape"]:
        """The total variation, for every gamma >= 1: exact."""
        hockey.log_ratio(gamma)
        return self.shift_tv(u)

    def rms(self, d: int) -> float:
        """``R/sqrt(d + 2)``."""
        dimension(d, self.d)
        return self.radius / math.sqrt(d + 2)
