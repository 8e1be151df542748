"""Norms in which the length of a shift is measured: a p-norm after a linear map."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Float, Num
from scipy.special import gammaln

from leakbound.core.checks import count, positive, real
from leakbound.core.lengths import p_norm

Array = np.ndarray


class Norm(ABC):
    """A norm ``||v|| = ||T v||_p`` with an invertible linear map T.

    Every distribution of a norm noise follows from that of the plain p-norm: draw in the standard coordinates
    ``T v``, then go back with ``T^-1``.
    """

    @property
    @abstractmethod
    def order(self) -> float:
        """p, from 1 to infinity."""

    @property
    @abstractmethod
    def d(self) -> int | None:
        """Number of coordinates; None if any number will do."""

    @property
    @abstractmethod
    def log_volume_factor(self) -> float:
        """``ln |det T^-1|``."""

    @property
    @abstractmethod
    def spread(self) -> float:
        """Mean square of a coordinate of ``T^-1 z``, z of independent coordinates with variance 1."""

    @abstractmethod
    def standardise(self, v: Num[Array, "*batch d"]) -> Float[Array, "*batch d"]:
        """Compute ``T v``: coordinates in which the norm is the plain p-norm."""

    @abstractmethod
    def restore(self, z: Num[Array, "*batch d"]) -> Float[Array, "*batch d"]:
        """Compute ``T^-1 z``."""

    @final
    def __call__(self, v: Num[Array, "*batch d"]) -> Float[Array, "*batch"]:
        """Compute the lengths of vectors; NaN where a vector is not finite."""
        return p_norm(self.standardise(v), self.order)

    @final
    def log_ball_volume(self, d: int) -> float:
        """Compute the logarithm of the volume of the unit ball.

        The volume for the p-norm is ``(2 Gamma(1+1/p))^d / Gamma(1+d/p)``.
        """
        plain = d * (math.log(2) + gammaln(1 + 1 / self.order)) - gammaln(1 + d / self.order)
        return float(plain + self.log_volume_factor)

    @final
    def directions(self, shape: tuple[int, ...], rng: np.random.Generator) -> Float[Array, "*batch d"]:
        """Draw unit vectors from the cone measure: the direction of a point uniform in the unit ball.

        Coordinates with density ``exp(-|y|^p)``, divided by their norm, have that distribution. ``|y|^p`` is
        Gamma(1/p), drawn as ``u^p Gamma(1 + 1/p)`` with u uniform: that does not underflow for large p, and
        gives the cube for p = infinity.
        Source: izzo2022, corollary 8.
        """
        size = rng.uniform(size=shape) * rng.standard_gamma(1 + 1 / self.order, size=shape) ** (1 / self.order)
        y = np.where(rng.uniform(size=shape) < 0.5, -size, size)
        return self.restore(y / p_norm(y, self.order)[..., None])

    @final
    def mean_square_direction(self, d: int) -> float:
        """Compute the mean square of a coordinate of a unit vector from the cone measure.

        It is ``E y_1^2 / E ||y||^2`` of the vectors y behind `directions`, because direction and length are
        independent: ``Gamma(3/p) Gamma(d/p)/(Gamma(1/p) Gamma((d+2)/p))``, written so that p = infinity works.
        """
        p = self.order
        log_ratio = gammaln(1 + 3 / p) - gammaln(1 + 1 / p) + gammaln(1 + d / p) - gammaln(1 + (d + 2) / p)
        return self.spread * (d + 2) / (3 * d) * math.exp(log_ratio)


@final
@dataclass(frozen=True)
class Lp(Norm):
    """Weighted p-norm ``(sum_i w_i |v_i|^p)^(1/p)``; for p = infinity the largest ``|v_i|``.

    Source: izzo2022, corollary 8.

    Parameters
    ----------
    p : float
        From 1 to infinity.
    weights : sequence of float of length d, optional
        All > 0; 1 where None. Not with p = infinity. The norm of Izzo et al. (2022), corollary 8, has
        ``w_i = 1/(d sigma_i^p)``.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import Lp
    >>> v = np.array([3.0, -4.0])
    >>> float(Lp(2)(v)), float(Lp(1)(v)), float(Lp(np.inf)(v)), float(Lp(1, [1.0, 0.5])(v))
    (5.0, 7.0, 4.0, 5.0)
    """

    p: float = 2.0
    weights: Sequence[float] | Num[Array, " d"] | None = None

    def __post_init__(self) -> None:
        if self.p != math.inf and real("p", self.p) < 1:
            raise ValueError(f"p must be >= 1, got {self.p:g}")
        if self.weights is None:
            return
        if self.p == math.inf:
            raise ValueError("weights need a finite p, got p = inf")
        if not len(self.weights):
            raise ValueError("weights must not be empty")
        object.__setattr__(self, "weights", tuple(positive("weight", weight) for weight in self.weights))

    @property
    def order(self) -> float:
        """The order p."""
        return self.p

    @property
    def d(self) -> int | None:
        """The number of weights; None without weights."""
        return None if self.weights is None else len(self.weights)

    @cached_property
    def stretch(self) -> Float[Array, " d"] | float:
        """``w_i^(1/p)``: the diagonal of T."""
        return 1.0 if self.weights is None else np.asarray(self.weights, dtype=float) ** (1 / self.p)

    @property
    def log_volume_factor(self) -> float:
        """``-sum_i ln(w_i)/p``."""
        return -float(np.sum(np.log(self.stretch)))

    @property
    def spread(self) -> float:
        """Mean of ``w_i^(-2/p)``."""
        return float(np.mean(np.square(1 / np.asarray(self.stretch))))

    def standardise(self, v: Num[Array, "*batch d"]) -> Float[Array, "*batch d"]:
        """Compute ``w_i^(1/p) v_i``."""
        return vectors(v, self.d) * self.stretch

    def restore(self, z: Num[Array, "*batch d"]) -> Float[Array, "*batch d"]:
        """Compute ``w_i^(-1/p) z_i``."""
        return vectors(z, self.d) / self.stretch


@final
@dataclass(frozen=True, eq=False, repr=False)
class Mahalanobis(Norm):
    """``sqrt(v^T S^-1 v)``: the Euclidean norm after whitening with S.

    Parameters
    ----------
    shape : array of shape (d, d) or (d,)
        S, symmetric positive definite, or its diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import Mahalanobis
    >>> float(Mahalanobis(np.array([4.0, 9.0]))(np.array([2.0, 0.0])))
    1.0
    """

    shape: Num[Array, "d d"] | Num[Array, " d"]

    def __post_init__(self) -> None:
        shape = np.array(self.shape, dtype=float)
        if not shape.size or shape.ndim not in (1, 2) or shape.shape[0] != shape.shape[-1]:
            raise ValueError(f"shape must be (d, d) or (d,) with d >= 1, got {shape.shape}")
        if not np.isfinite(shape).all():
            raise ValueError("shape must be finite")
        if shape.ndim == 2 and not np.allclose(shape, shape.T, rtol=1e-9, atol=1e-12 * np.abs(shape).max()):
            raise ValueError("shape must be symmetric")
        unit = _units(shape)
        scaled = shape / unit / (unit[:, None] if shape.ndim == 2 else unit)
        smallest = float(np.min(scaled if shape.ndim == 1 else np.linalg.eigvalsh(scaled)))
        if smallest <= 1e-14:
            raise ValueError(f"shape must be positive definite, its smallest eigenvalue is {smallest:g}")
        shape.setflags(write=False)
        object.__setattr__(self, "shape", shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mahalanobis) and np.array_equal(self.shape, other.shape)

    def __hash__(self) -> int:
        return hash(self.shape.tobytes())

    def __repr__(self) -> str:
        return f"Mahalanobis(shape of {' x '.join(map(str, self.shape.shape))})"

    @property
    def order(self) -> float:
        """The order 2."""
        return 2.0

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return len(self.shape)

    @cached_property
    def root(self) -> Float[Array, "d d"] | Float[Array, " d"]:
        """L with ``S = L L^T``, or the square roots of a diagonal: T^-1."""
        return np.sqrt(self.shape) if self.shape.ndim == 1 else np.linalg.cholesky(self.shape)

    @property
    def log_volume_factor(self) -> float:
        """``ln det(S)/2``."""
        return float(np.log(self.root if self.root.ndim == 1 else np.diagonal(self.root)).sum())

    @property
    def spread(self) -> float:
        """``tr(S)/d``."""
        return float(np.mean(self.shape if self.shape.ndim == 1 else np.diagonal(self.shape)))

    def standardise(self, v: Num[Array, "*batch d"]) -> Float[Array, "*batch d"]:
        """Compute ``L^-1 v``."""
        v = vectors(v, self.d)
        if self.root.ndim == 1:
            return v / self.root
        unit = _units(self.shape)
        scaled = (v / unit).reshape(-1, self.d)
        return np.linalg.solve(self.root / unit[:, None], scaled.T).T.reshape(v.shape)

    def restore(self, z: Num[Array, "*batch d"]) -> Float[Array, "*batch d"]:
        """Compute ``L z``."""
        z = vectors(z, self.d)
        return z * self.root if self.root.ndim == 1 else z @ self.root.T


EUCLIDEAN = Lp(2.0)


def _units(shape: Float[Array, "d d"] | Float[Array, " d"]) -> Float[Array, " d"]:
    """Return powers of two near the standard deviations, as units in which no coordinate is small by its unit alone."""
    variances = np.diagonal(shape) if shape.ndim == 2 else shape
    return np.exp2(np.rint(np.log2(np.where(variances > 0, variances, 1.0)) / 2))


def vectors(v: Num[Array, "*shape"], d: int | None) -> Float[Array, "*batch d"]:
    """Convert vectors of d coordinates to floats; any number of coordinates where d is None."""
    v = np.asarray(v, dtype=float)
    if v.ndim == 0 or not v.shape[-1] or d not in (None, v.shape[-1]):
        raise ValueError(f"vectors must have shape (..., {'d' if d is None else d}), got {v.shape}")
    return v


def dimension(d: int, known: int | None) -> int:
    """Check that a number of coordinates is the known one; any will do where none is known."""
    if known not in (None, count("d", d)):
        raise ValueError(f"d must be {known}, got {d}")
    return d
