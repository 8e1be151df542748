"""Noise as it is printed: what was computed from the file is rounded before the noise is drawn.

Scale and shape of a noise that was calibrated are functions of all n records. In full precision they reveal exact
numbers of the file: the scale of the noise of a mean tells the largest value. So a scale is rounded up to two
significant digits, and a shape to two digits of each deviation and two decimals of each correlation; with these numbers
the promise is proved, and with these the noise is drawn. The grid follows from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context

import numpy as np
from jaxtyping import Float

from leakbound.core.grid import Grid
from leakbound.noise import Lp, Mahalanobis
from leakbound.releases.statistics.of_plan import LARGEST_NUMBER

Array = np.ndarray
_DIGITS = 2  # significant ones
_DECIMALS = 2  # of a correlation
_LEAST_EIGENVALUE = 1e-3  # of rounded correlations: every direction gets noise
_TOWARDS_NONE = 0.95  # correlations shrink by this factor until they have that eigenvalue
_FINER = 4.0  # a grid has 1,024 steps in its scale: the printed one 4,096
STEPS_A_DEVIATION = 4096.0
_ARITHMETIC = 1 + 1e-6  # above what sums of doubles lose


def rounded_up(value: float) -> float:
    """Round a scale up to two significant digits; a number of two digits stays.

    >>> rounded_up(0.3669), rounded_up(0.37), rounded_up(1234567.0)
    (0.37, 0.37, 1300000.0)
    """
    return float(Context(prec=_DIGITS, rounding=ROUND_CEILING).create_decimal(repr(float(value))))


def next_scale(printed: float) -> float:
    """Find the next larger number of two significant digits.

    >>> next_scale(0.37), next_scale(99.0)
    (0.38, 100.0)
    """
    return rounded_up(printed * (1 + 1e-6))


def check_squares(labels: Sequence[str], largest: Float[Array, " d"]) -> None:
    """Refuse a statistic whose numbers have no squares, which all searches for noise take."""
    if (largest > LARGEST_NUMBER).any():
        place = int(np.argmax(largest))
        raise ValueError(
            f"{labels[place]} is up to {largest[place]:.3g}, and has no square: divide what it is of by a public "
            f"number, so that it is below {LARGEST_NUMBER:g}"
        )


@dataclass(frozen=True, eq=False)
class PrintedShape:
    """A covariance as it is printed, of mean variance near 1."""

    deviations: Float[Array, " d"]
    correlations: Float[Array, "d d"] | None

    @classmethod
    def of(cls, covariance: Float[Array, "d d"], independent: bool = False) -> PrintedShape:
        """Round a covariance.

        Correlations that are no longer those of a positive definite matrix when they are rounded shrink until they are.
        """
        variances = np.diagonal(covariance)
        exact = np.sqrt(variances / variances.mean())
        nearest = Context(prec=_DIGITS, rounding=ROUND_HALF_EVEN)
        deviations = np.array([float(nearest.create_decimal(repr(float(deviation)))) for deviation in exact])
        if independent:
            return cls(deviations, None)
        scale = np.sqrt(variances)
        correlations = covariance / scale / scale[:, None]
        return cls(deviations, _definite(correlations))

    @property
    def covariance(self) -> Float[Array, "d d"]:
        """``D R D`` of the deviations D and the correlations R."""
        if self.correlations is None:
            return np.diag(np.square(self.deviations))
        return self.deviations[:, None] * self.correlations * self.deviations


def _definite(correlations: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """Round correlations to two decimals, with a smallest eigenvalue that is not below a thousandth."""
    factor = 1.0
    while True:
        rounded = np.round((correlations + correlations.T) / 2 * factor, _DECIMALS)
        np.fill_diagonal(rounded, 1.0)
        if np.linalg.eigvalsh(rounded)[0] >= _LEAST_EIGENVALUE:
            return rounded
        factor *= _TOWARDS_NONE


def printed_grid(rms: Float[Array, " d"], multiple: float, magnitude: Float[Array, " d"] | float = 0.0) -> Grid:
    """Compute the grid that follows from the printed noise: at least 4,096 steps in each deviation.

    >>> printed_grid(np.array([0.37]), multiple=500.0).steps.tolist()
    [0.03125]
    """
    return Grid.for_noise(np.asarray(rms, dtype=float) * multiple / _FINER, magnitude)


def rounding_length(rms: Float[Array, " d"], norm: Lp | Mahalanobis, steps: Float[Array, " d"] | float = 0.0) -> float:
    """Compute how much longer a shift can be on the printed grid than where it was measured.

    Both ends of a shift are rounded to the nearest multiple, so that it moves by at most a step in each coordinate,
    and a step is at most a 4,096th of the deviation.
    """
    rounding = (rms / STEPS_A_DEVIATION + steps) * _ARITHMETIC
    if isinstance(norm, Lp) or norm.shape.ndim == 1:
        return float(norm(rounding))  # such norms grow with the size of every coordinate
    # v = T w with |w_j| <= 1 and T = diag(rounding): v' S^-1 v is at most the sum of |T S^-1 T| over all entries
    whitened = norm.standardise(np.diag(rounding))
    return float(np.sqrt(np.abs(whitened @ whitened.T).sum()))
