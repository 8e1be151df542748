"""Covariances with an inverse: full, diagonal, low rank with a floor. Axes: d columns, r factors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from leakbound.core.checks import non_negative, positive

Array = np.ndarray
SHOWN = 8  # column numbers in one line of an error


@final
@dataclass(frozen=True, eq=False, init=False)
class Full:
    """A positive definite matrix.

    Parameters
    ----------
    matrix : array of shape (d, d)
        Symmetric.

    Raises
    ------
    ValueError
        If it is not symmetric and finite, or has no inverse. The rank that counts is that of the
        correlations, so that the units of the columns do not matter.

    Examples
    --------
    >>> from leakbound.core.covariance import Full
    >>> float(Full([[2.0, 1.0], [1.0, 2.0]]).quad([1.0, 1.0]).round(6))
    0.666667
    """

    matrix: Float[Array, "d d"]

    def __init__(self, matrix: ArrayLike) -> None:
        matrix = finite_array("matrix", matrix)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
            raise ValueError(f"matrix has shape {matrix.shape}; a covariance is (d, d), d >= 1")
        if (asymmetry := float(np.abs(matrix - matrix.T).max())) > 1e-9 * np.abs(matrix).max():
            raise ValueError(f"a covariance must be symmetric, and entries of this matrix differ by {asymmetry:g}")
        _check_variances(np.diag(matrix))
        object.__setattr__(self, "matrix", matrix)
        d, eigenvalues = len(matrix), self._spectrum[1]
        rank = int((eigenvalues > d * np.finfo(float).eps * eigenvalues[-1]).sum())
        if rank < d:
            raise ValueError(f"a covariance of rank {rank:,} in {d:,} columns has no inverse; {INSTEAD}")

    @cached_property
    def _spectrum(self) -> tuple[Float[Array, " d"], Float[Array, " d"], Float[Array, "d d"]]:
        """Standard deviations, and eigenvalues (ascending) and eigenvectors of the correlations."""
        deviation = np.sqrt(np.diag(self.matrix))
        correlation = self.matrix / deviation / deviation[:, None]
        eigenvalues, vectors = np.linalg.eigh((correlation + correlation.T) / 2)
        return deviation, eigenvalues, vectors

    def quad(self, v: ArrayLike) -> Float[Array, "..."]:
        """``v^T C^-1 v`` of each vector of an array (..., d)."""
        deviation, eigenvalues, vectors = self._spectrum
        rotated = (_vectors(v, len(deviation)) / deviation) @ vectors
        return np.asarray((rotated**2 / eigenvalues).sum(axis=-1))

    def solve(self, v: ArrayLike) -> Float[Array, "... d"]:
        """``C^-1 v`` of each vector of an array (..., d)."""
        deviation, eigenvalues, vectors = self._spectrum
        rotated = (_vectors(v, len(deviation)) / deviation) @ vectors
        return (rotated / eigenvalues) @ vectors.T / deviation

    def plus(self, variance: float) -> Full:
        """``C + variance I``: independent noise in every column."""
        return Full(self.matrix + non_negative("variance", variance) * np.eye(len(self.matrix)))

    def sample(self, count: int, rng: np.random.Generator) -> Float[Array, "count d"]:
        """Independent vectors of N(0, C)."""
        deviation, eigenvalues, vectors = self._spectrum
        white = rng.standard_normal((count, len(deviation)))
        return (white * np.sqrt(eigenvalues)) @ vectors.T * deviation


@final
@dataclass(frozen=True, eq=False, init=False)
class Diagonal:
    """Independent columns.

    Parameters
    ----------
    variance : array of shape (d,)
        > 0.

    Raises
    ------
    ValueError
        If a variance is not finite and positive, with the number of its column.

    Examples
    --------
    >>> from leakbound.core.covariance import Diagonal
    >>> float(Diagonal([1.0, 4.0]).quad([1.0, 2.0]))
    2.0
    """

    variance: Float[Array, " d"]

    def __init__(self, variance: ArrayLike) -> None:
        variance = finite_array("variance", variance)
        if variance.ndim != 1 or not variance.size:
            raise ValueError(f"variance has shape {variance.shape}; give one number a column, (d,), d >= 1")
        _check_variances(variance)
        object.__setattr__(self, "variance", variance)

    def quad(self, v: ArrayLike) -> Float[Array, "..."]:
        """``v^T C^-1 v`` of each vector of an array (..., d)."""
        return np.asarray((_vectors(v, len(self.variance)) ** 2 / self.variance).sum(axis=-1))

    def solve(self, v: ArrayLike) -> Float[Array, "... d"]:
        """``C^-1 v`` of each vector of an array (..., d)."""
        return _vectors(v, len(self.variance)) / self.variance

    def plus(self, variance: float) -> Diagonal:
        """``C + variance I``: independent noise in every column."""
        return Diagonal(self.variance + non_negative("variance", variance))

    def sample(self, count: int, rng: np.random.Generator) -> Float[Array, "count d"]:
        """Independent vectors of N(0, C)."""
        return rng.standard_normal((count, len(self.variance))) * np.sqrt(self.variance)


@final
@dataclass(frozen=True, eq=False, init=False)
class LowRank:
    """A floor and a few factors, ``C = floor I + F^T F``, for many columns: nothing of size (d, d) is made.

    ``C^-1 = (I - F^T (floor I + F F^T)^-1 F)/floor`` (Woodbury): O(r^2 d) once and O(r d) a vector. Products
    with the factors are made in their own precision, all of size r in float64; relative rounding errors are
    that precision times the condition number of C.

    Parameters
    ----------
    floor : float
        Variance in every direction, > 0.
    factors : array of shape (r, d)
        float32 stays float32.

    Raises
    ------
    ValueError
        If the floor is not positive: fewer factors than columns have no inverse without it.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.covariance import LowRank
    >>> float(LowRank(1.0, np.ones((1, 3))).quad(np.ones(3)))
    0.75
    """

    floor: float
    factors: Float[Array, "r d"]

    def __init__(self, floor: float, factors: ArrayLike) -> None:
        factors = finite_array("factors", factors, single=True)
        if factors.ndim != 2 or not factors.size:
            raise ValueError(f"factors have shape {factors.shape}; give (r, d), r >= 1 and d >= 1")
        r, d = factors.shape
        if floor == 0:
            why = f"{d - r:,} directions have no variance" if r < d else "give their product to Full"
            raise ValueError(f"floor must be > 0, got 0 with {r:,} factors in {d:,} columns: {why}")
        object.__setattr__(self, "floor", positive("floor", floor))
        object.__setattr__(self, "factors", factors)

    @cached_property
    def _gram(self) -> LowRankGram:
        return LowRankGram(self.floor, self.factors @ self.factors.T)

    def quad(self, v: ArrayLike) -> Float[Array, "..."]:
        """``v^T C^-1 v`` of each vector of an array (..., d); many vectors at once are one product."""
        v, along = self._along(v)
        squares = np.einsum("...d,...d->...", v, v, dtype=np.float64)
        return np.asarray(np.maximum(self._gram.product(squares, along, along), 0))

    def solve(self, v: ArrayLike) -> Float[Array, "... d"]:
        """``C^-1 v`` of each vector of an array (..., d), in the precision of the factors."""
        v, along = self._along(v)
        weights = self._gram.weights(along).astype(self.factors.dtype)
        return (v - weights @ self.factors) / self.factors.dtype.type(self.floor)

    def plus(self, variance: float) -> LowRank:
        """``C + variance I``: independent noise in every column."""
        return LowRank(self.floor + non_negative("variance", variance), self.factors)

    def sample(self, count: int, rng: np.random.Generator) -> Float[Array, "count d"]:
        """Independent vectors of N(0, C)."""
        r, d = self.factors.shape
        return rng.standard_normal((count, d)) * np.sqrt(self.floor) + rng.standard_normal((count, r)) @ self.factors

    def _along(self, v: ArrayLike) -> tuple[Float[Array, "... d"], Float[Array, "... r"]]:
        """Convert vectors to the precision of the factors, and multiply them with the factors."""
        v = _vectors(v, self.factors.shape[1]).astype(self.factors.dtype, copy=False)
        return v, (v @ self.factors.T).astype(np.float64)


@final
@dataclass(frozen=True, eq=False, init=False)
class LowRankGram:
    """`LowRank` where vectors and factors are known by their inner products alone, as those too long to be kept.

    ``x^T C^-1 y = (x.y - (F x)^T (floor I + F F^T)^-1 F y)/floor`` (Woodbury).

    Parameters
    ----------
    floor : float
        Variance in every direction, > 0.
    gram : array of shape (r, r)
        F F^T.

    Raises
    ------
    ValueError
        If the floor is not positive, or gram is not square and finite.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.covariance import LowRankGram
    >>> float(LowRankGram(1.0, [[3.0]]).product(3.0, [3.0], [3.0]))  # x = y = (1, 1, 1), the only factor too
    0.75
    """

    floor: float
    gram: Float[Array, "r r"]

    def __init__(self, floor: float, gram: ArrayLike) -> None:
        gram = finite_array("gram", gram)
        if gram.ndim != 2 or gram.shape[0] != gram.shape[1]:
            raise ValueError(f"gram has shape {gram.shape}; the products of r factors are (r, r)")
        object.__setattr__(self, "floor", positive("floor", floor))
        object.__setattr__(self, "gram", gram)

    @cached_property
    def _spectrum(self) -> tuple[Float[Array, " r"], Float[Array, "r r"]]:
        """Eigenvalues of floor I + F F^T, and its eigenvectors."""
        eigenvalues, vectors = np.linalg.eigh((self.gram + self.gram.T) / 2)
        return self.floor + np.maximum(eigenvalues, 0), vectors

    def weights(self, along: ArrayLike) -> Float[Array, "... r"]:
        """``(floor I + F F^T)^-1 F v`` from F v of each vector, an array (..., r)."""
        eigenvalues, vectors = self._spectrum
        return (np.asarray(along) @ vectors / eigenvalues) @ vectors.T

    def product(self, dots: ArrayLike, left: ArrayLike, right: ArrayLike) -> Float[Array, "..."]:
        """``x^T C^-1 y`` from ``x.y``, an array (...), ``F x`` and ``F y``, arrays (..., r)."""
        eigenvalues, vectors = self._spectrum
        explained = (np.asarray(left) @ vectors / eigenvalues * (np.asarray(right) @ vectors)).sum(axis=-1)
        return np.asarray((dots - explained) / self.floor)


Covariance = Full | Diagonal | LowRank
INSTEAD = "use a diagonal one, or Ledoit-Wolf shrinkage"


def as_covariance(covariance: Covariance | ArrayLike) -> Covariance:
    """Convert variances (d,) to a diagonal covariance and a matrix (d, d) to a full one; keep a covariance.

    Parameters
    ----------
    covariance : Full, Diagonal, LowRank or array_like
        A covariance, variances or a matrix.

    Returns
    -------
    Full, Diagonal or LowRank
        The covariance.

    Examples
    --------
    >>> from leakbound.core.covariance import as_covariance
    >>> as_covariance([1.0, 4.0])
    Diagonal(variance=array([1., 4.]))
    """
    if isinstance(covariance, Full | Diagonal | LowRank):
        return covariance
    array = finite_array("covariance", covariance)
    if array.ndim not in (1, 2):
        raise ValueError(f"covariance has shape {array.shape}; allowed: variances (d,) or a matrix (d, d)")
    return Diagonal(array) if array.ndim == 1 else Full(array)


def finite_array(name: str, values: Any, *, single: bool = False) -> Float[Array, "..."]:
    """Check that values are finite numbers, and return them as float64."""
    try:
        array = np.asarray(values)
        array = array if single and array.dtype == np.float32 else array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers") from None
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        raise ValueError(f"{name} has NaN or infinite values, the first at {tuple(bad[0].tolist())}")
    return array


def refuse_constant(columns: Int[Array, " c"]) -> None:
    """One line for columns without variance."""
    if len(columns):
        shown = ", ".join(str(column) for column in columns[:SHOWN]) + (", ..." if len(columns) > SHOWN else "")
        which = f"column {shown} is" if len(columns) == 1 else f"{len(columns):,} columns ({shown}) are"
        raise ValueError(f"{which} constant, so there is no inverse; leave {'it' if len(columns) == 1 else 'them'} out")


def _check_variances(variance: Float[Array, " d"]) -> None:
    if (variance < 0).any():
        raise ValueError(f"variances must be > 0, got {variance.min():g} in column {int(variance.argmin())}")
    refuse_constant(np.flatnonzero(variance == 0))


def _vectors(v: ArrayLike, d: int) -> Float[Array, "... d"]:
    array = np.asarray(v)
    if array.ndim == 0 or array.shape[-1] != d:
        raise ValueError(
            f"vectors of shape {array.shape} do not fit a covariance of {d:,} columns: their last axis is d"
        )
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)
