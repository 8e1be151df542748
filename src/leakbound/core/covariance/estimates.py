"""Estimates of a covariance from data rows. Axes: n rows, d columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from leakbound.core.checks import count
from leakbound.core.covariance.matrices import INSTEAD, Diagonal, Full, LowRank, finite_array, refuse_constant

Array = np.ndarray


def data_rows(X: ArrayLike, *, least: int = 2) -> Float[Array, "n d"]:
    """Check that a table has finite numbers and no constant column, and return it as float64.

    Parameters
    ----------
    X : array of shape (n, d)
    least : int
        Smallest allowed n.

    Returns
    -------
    array of shape (n, d)
        The rows.

    Raises
    ------
    ValueError
        If it is no such table; constant columns are named by their numbers.

    Examples
    --------
    >>> from leakbound.core.covariance import data_rows
    >>> data_rows([[1, 2], [3, 5]]).tolist()
    [[1.0, 2.0], [3.0, 5.0]]
    """
    rows = _table(X, least)
    refuse_constant(np.flatnonzero((rows == rows[0]).all(axis=0)))
    return rows


def full(X: ArrayLike) -> Full:
    """Compute the sample covariance of data rows, with the divisor n - 1.

    Parameters
    ----------
    X : array of shape (n, d)
        n > d rows.

    Returns
    -------
    Full
        Of the d columns.

    Raises
    ------
    ValueError
        If there are too few rows, or columns that are constant or follow from others.

    Examples
    --------
    >>> from leakbound.core.covariance import full
    >>> full([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]]).matrix.round(6).tolist()
    [[1.333333, 0.0], [0.0, 1.333333]]
    """
    rows = data_rows(X)
    n, d = rows.shape
    if n <= d:
        raise ValueError(f"{n:,} records give a covariance of rank <= {n - 1:,} in {d:,} columns; {INSTEAD}")
    centred, scale = scaled(rows)
    return Full(centred.T @ centred / (n - 1) * scale**2)


def diagonal(X: ArrayLike) -> Diagonal:
    """Compute the variances of data rows, with the divisor n - 1; correlations are taken as 0.

    Parameters
    ----------
    X : array of shape (n, d)
        n >= 2 rows.

    Returns
    -------
    Diagonal
        Of the d columns.

    Raises
    ------
    ValueError
        If a column is constant.

    Examples
    --------
    >>> from leakbound.core.covariance import diagonal
    >>> diagonal([[0.0, 0.0], [2.0, 4.0]]).variance.tolist()
    [2.0, 8.0]
    """
    rows = data_rows(X)
    centred, scale = scaled(rows)
    return Diagonal((centred**2).sum(axis=0) / (len(rows) - 1) * scale**2)


def ledoit_wolf(X: ArrayLike) -> Full:
    """Compute the covariance of data rows, shrunk towards a multiple of the identity by its estimated error.

    ``(1 - w) S + w (tr S/d) I``, S with the divisor n, w from `shrinkage` (Ledoit & Wolf 2004, eq. 14). The
    identity treats all columns alike: bring them to one scale first.

    Parameters
    ----------
    X : array of shape (n, d)
        n >= 3 rows; n may be below d.

    Returns
    -------
    Full
        Of the d columns.

    Raises
    ------
    ValueError
        If there are too few rows, or a column is constant.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.covariance import ledoit_wolf
    >>> ledoit_wolf(np.eye(4)).matrix.round(6).tolist()[0]
    [0.1875, 0.0, 0.0, 0.0]
    """
    rows = data_rows(X, least=3)
    n, d = rows.shape
    centred, scale = scaled(rows)
    sample = centred.T @ centred / n
    fourth = ((centred**2).sum(axis=1) ** 2).mean()
    weight = float(shrinkage(np.trace(sample), (sample**2).sum(), fourth, n, d))
    return Full(((1 - weight) * sample + weight * np.trace(sample) / d * np.eye(d)) * scale**2)


def shrinkage(trace: ArrayLike, squares: ArrayLike, fourth: ArrayLike, n: int, d: int) -> Float[Array, "..."]:
    """Weight of the identity in Ledoit and Wolf's estimate, from moments of the centred rows x.

    ``min(b, e)/e`` with the spread ``e = |S|^2 - (tr S)^2/d`` of the eigenvalues of S, and the expected
    square error of S, ``b = (mean |x|^4 - |S|^2)/n`` (Ledoit & Wolf 2004, lemmas 3.3 and 3.4, times d).

    Parameters
    ----------
    trace, squares : array_like
        tr S, and |S|^2, the sum of the squares of its entries; S has the divisor n.
    fourth : array_like
        Mean of |x|^4 over the rows.
    n, d : int
        Rows and columns.

    Returns
    -------
    array
        Weights in [0, 1].

    Examples
    --------
    >>> from leakbound.core.covariance import shrinkage
    >>> float(shrinkage(3.0, 5.0, 8.0, n=10, d=2))  # (8 - 5)/10 over 5 - 9/2
    0.6
    """
    trace, squares, fourth = (np.asarray(moment, dtype=float) for moment in (trace, squares, fourth))
    spread = np.maximum(squares - trace**2 / d, 0)
    error = np.clip((fourth - squares) / n, 0, spread)
    return np.asarray(np.divide(error, spread, out=np.zeros_like(spread), where=spread > 0))


ESTIMATES: Mapping[str, Callable[[ArrayLike], Full | Diagonal]] = MappingProxyType(
    {"diagonal": diagonal, "full": full, "ledoit_wolf": ledoit_wolf}
)


def low_rank(X: ArrayLike, floor: float) -> LowRank:
    """Compute the sample covariance of a few rows of many columns, on a floor.

    Parameters
    ----------
    X : array of shape (r, d)
        r >= 2 rows; float32 stays float32.
    floor : float
        Variance > 0 in every direction on top of that of the rows, as of known noise.

    Returns
    -------
    LowRank
        With the centred rows over sqrt(r - 1) as factors.

    Raises
    ------
    ValueError
        If the floor is not positive.

    Examples
    --------
    >>> from leakbound.core.covariance import low_rank
    >>> low_rank([[0.0, 0.0], [2.0, 4.0]], floor=1.0).factors.tolist()
    [[-1.0, -2.0], [1.0, 2.0]]
    """
    rows = _table(X, least=2, single=True)
    return LowRank(floor, (rows - rows.mean(axis=0)) / rows.dtype.type(np.sqrt(len(rows) - 1)))


def scaled(rows: Float[Array, "n d"]) -> tuple[Float[Array, "n d"], float]:
    """Centred rows over their largest entry, so that no fourth power overflows, and that entry."""
    with np.errstate(over="ignore", invalid="ignore"):
        centred = rows - rows.mean(axis=0)
        scale = float(np.abs(centred).max())
    if not 1e-150 < scale < 1e150:
        raise ValueError(f"X deviates from its mean by up to {scale:g}; allowed: 1e-150 to 1e150")
    return centred / scale, scale


def _table(X: ArrayLike, least: int, single: bool = False) -> Float[Array, "n d"]:
    rows = finite_array("X", X, single=single)
    if rows.ndim != 2 or not rows.shape[1]:
        raise ValueError(f"X has shape {rows.shape}; a table is (records, columns), columns >= 1")
    count("records", len(rows), least=least)
    return rows
