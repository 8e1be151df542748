"""Integrals of ``|f|`` for f a signed mixture of shifted densities: on a line to rounding, on a plane to a tolerance.

A panel (a cell) carries the Legendre series of f through its Gauss nodes. As ``|P_j| <= 1``, a constant term above the
sum of the others proves that f keeps its sign, and as ``|P_j'| <= j (j + 1)/2``, a linear term above the so weighted
sum of the others proves that it changes at most once. Whatever is not proved is cut and looked at again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float
from numpy.polynomial import legendre
from numpy.typing import ArrayLike

from leakbound.core.numerics import bisect, bisect_arrays

Array = np.ndarray

N_NODES = 12  # inside a panel
LINE_TOLERANCE = 1e-13  # of an integral on a line
PLANE_TOLERANCE = 1e-6  # of an integral on a plane
MOST_OUTPUTS = 20_000  # distinct centres of a mixture
MOST_CELLS = 60_000  # of a plane
_BLOCK = 1 << 22  # densities in memory at once


@runtime_checkable
class Density(Protocol):
    """What the integrals ask of a noise."""

    def log_density(self, z: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
        """Compute the logarithm of the density at each z."""
        ...

    def rms(self, d: int) -> float:
        """Root mean square of a coordinate: the length on which the density changes."""
        ...


def absolute_integral(
    outputs: Float[Array, "n_outputs d"], weights: Float[Array, "n_outputs n"], noise: Density
) -> Float[Array, " n"]:
    """``int |sum_u w_u g(z - u)| dz`` for each column of weights, g the density of the noise."""
    # The density must decrease away from 0 and be smooth but at 0 (for d = 2: but on lines through 0 along an axis).
    n_outputs, d = outputs.shape
    if d > 2:
        raise ValueError(f"the integral over the noise is done for releases of 1 or 2 numbers, got {d}")
    if n_outputs > MOST_OUTPUTS:
        raise ValueError(f"{n_outputs:,} distinct outputs with noise; the limit is {MOST_OUTPUTS:,}")
    mixtures = np.column_stack([weights, np.full(n_outputs, 1 / n_outputs)])  # the last one has mass 1: a check
    if d == 1:
        totals, tolerance = _on_line(outputs[:, 0], mixtures, noise), 1e-11
    else:
        totals, tolerance = _on_plane(outputs, mixtures, noise), 10 * PLANE_TOLERANCE
    if abs(totals[-1] - 1) > tolerance:
        raise ValueError(f"the density of the noise integrates to {totals[-1]:.12g}, not to 1")
    return totals[:-1]


def panel_nodes() -> Float[Array, " m"]:
    """Where `panel_integrals` wants the values of a panel: the ends -1 and 1, between them Gauss nodes."""
    return _NODES


def panel_integrals(
    values: Float[Array, "m p n"], width: ArrayLike, negligible: float
) -> tuple[Float[Array, "p n"], Bool[Array, "p n"]]:
    """Integral of ``|f|`` over panels, from the values of f at their nodes."""
    series = np.tensordot(_SERIES, values[1:-1], axes=1)
    size = np.abs(series)
    others = size[1:].sum(axis=0)
    jump = np.abs(np.tensordot(_ENDS, series, axes=1) - values[[0, -1]]).max(axis=0)  # between an end and a node
    rest = np.maximum(size[-2:].sum(axis=0), 0.1 * jump)
    width = np.broadcast_to(width, others.shape)
    resolved = (rest <= 1e-14 * size.max(axis=0)) | (width * rest <= negligible)
    # Legendre polynomials are at most 1 in size, so a constant term above the sum of the others proves one sign; then
    # the integral of |f| is that of f, the constant term. A slope that is surely of one sign proves at most one root.
    one_sign = size[0] >= others
    turns_once = size[1] >= np.tensordot(_SLOPES, size[2:], axes=1)
    integral = width * np.where(one_sign, size[0], np.tensordot(_MEAN, np.abs(values[1:-1]), axes=1))
    crossed = resolved & turns_once & ~one_sign
    integral[crossed] = width[crossed] * _mean_across_a_root(series[:, crossed])
    # proved: the series is resolved and its sign changes at most once, or there is too little to matter
    return integral, (resolved & (one_sign | turns_once)) | (width * (size[0] + others) <= negligible)


def reach(noise: Density, d: int) -> float:
    """Distance along an axis at which the density is e^-46 = 1e-20 of that at 0."""
    distances = noise.rms(d) * 1.25 ** np.arange(40)
    points = np.zeros((41, d))
    points[1:, 0] = distances
    level = noise.log_density(points)
    low = np.flatnonzero(level[1:] < level[0] - 46)
    if len(low) == 0:
        raise ValueError(
            f"the density of the noise falls too slowly: e^{level[-1] - level[0]:.3g} at {distances[-1]:g}"
        )
    return float(distances[low[0]])


def graded(width: float, length: float) -> Float[Array, " b"]:
    """Cuts from 0 to width, 1, 4, 16 ... lengths from either end, so that no panel misses a peak at an end."""
    n_steps = max(0, int(np.ceil(np.log(max(width / (2 * length), 1.0)) / np.log(4.0))))
    steps = length * 4.0 ** np.arange(n_steps)
    steps = steps[steps < width / 2]
    return np.concatenate([[0.0], steps, [width / 2] * bool(len(steps)), width - steps[::-1], [width]])


def _mean_across_a_root(series: Float[Array, "m p"]) -> Float[Array, " p"]:
    """Mean over (-1, 1) of the absolute value of monotone Legendre series."""
    rising = legendre.legval(1.0, series) > legendre.legval(-1.0, series)

    def after_root(x: Float[Array, " p"]) -> Bool[Array, " p"]:
        return (legendre.legval(x, series, tensor=False) < 0) != rising

    end = np.ones(series.shape[1])
    root = bisect_arrays(after_root, inside=end, outside=-end, n_steps=28)  # f is 0 there: its error counts squared
    primitive = legendre.legint(series, lbnd=-1)
    left = legendre.legval(root, primitive, tensor=False)
    return (np.abs(left) + np.abs(legendre.legval(1.0, primitive) - left)) / 2


def _series_matrix(m: int) -> tuple[Float[Array, "m m"], Float[Array, " m"]]:
    """From values at the Gauss nodes to Legendre coefficients, and to the mean."""
    nodes, weights = legendre.leggauss(m)
    degrees = np.arange(m)
    return (degrees + 0.5)[:, None] * legendre.legvander(nodes, m - 1).T * weights, weights / 2


_NODES = np.concatenate([[-1.0], legendre.leggauss(N_NODES)[0], [1.0]])
_ENDS = legendre.legvander(np.array([-1.0, 1.0]), N_NODES - 1)
_SERIES, _MEAN = _series_matrix(N_NODES)
_SLOPES = np.arange(2, N_NODES) * np.arange(3, N_NODES + 1) / 2


def _on_line(outputs: Float[Array, " u"], weights: Float[Array, "u n"], noise: Density) -> Float[Array, " n"]:
    """Panels between the centres, cut until each is proved or too small to matter."""
    order = np.argsort(outputs)
    outputs, weights = outputs[order], weights[order]
    anchor, left, width = _line_panels(outputs, noise)
    negligible = LINE_TOLERANCE / len(left)
    total = np.zeros(weights.shape[1])
    todo = np.ones((len(left), weights.shape[1]), dtype=bool)
    while len(left):
        values = _on_panels(anchor, left, width, outputs, weights, noise)
        integral, proved = panel_integrals(values, width[:, None], negligible)
        # A panel as narrow as rounding allows is taken as it is: halving it again would change nothing.
        smallest = width <= 8 * np.finfo(float).eps * (np.abs(left) + width)
        done = proved | smallest[:, None]
        total += np.where(todo & done, integral, 0.0).sum(axis=0)
        todo &= ~done
        again = todo.any(axis=1)
        half = width[again] / 2
        anchor, todo = np.tile(anchor[again], 2), np.tile(todo[again], (2, 1))
        left, width = np.concatenate([left[again], left[again] + half]), np.tile(half, 2)
    return total


def _line_panels(ordered: Float[Array, " u"], noise: Density) -> tuple[Array, Array, Array]:
    """Panels as an anchor, the distance of their left end from it, and their width.

    The anchor is the nearest centre, so that distances from it are exact however far the centre is from 0. A kink is
    at a centre: the end of a panel.
    """
    far, length = reach(noise, 1), noise.rms(1)
    end = _end_of_support(noise, far)
    ends = np.concatenate([ordered - end, ordered + end]) if end < far else [ordered[0] - far, ordered[-1] + far]
    edges = np.unique(np.concatenate([ordered, ends]))
    panels = []
    for a, b in pairwise(edges):
        cuts = graded(b - a, length)
        n_left = max(1, len(cuts) // 2)
        panels += [(a, x, y - x) for x, y in pairwise(cuts[: n_left + 1])]
        panels += [(b, x, y - x) for x, y in pairwise(-cuts[::-1][n_left:])]
    anchor, left, width = np.array(panels).T
    return anchor, left, width


def _end_of_support(noise: Density, far: float) -> float:
    """Where a density that is 0 at ``far`` jumps to 0; ``far`` if it does not."""

    def in_support(x: float) -> bool:
        return bool(noise.log_density(np.array([[x]]))[0] > -np.inf)

    return far if in_support(far) else bisect(in_support, inside=0.0, outside=far)


def _on_panels(
    anchor: Float[Array, " p"],
    left: Float[Array, " p"],
    width: Float[Array, " p"],
    outputs: Float[Array, " u"],
    weights: Float[Array, "u n"],
    noise: Density,
) -> Float[Array, "m p n"]:
    """Evaluate the mixtures at the nodes and ends of the panels, from the centres within reach."""
    far, fraction = reach(noise, 1), ((_NODES + 1) / 2)[:, None]
    values = np.zeros((len(_NODES), len(left), weights.shape[1]))
    step = max(1, min(64, _BLOCK // (len(_NODES) * len(outputs))))
    order = np.argsort(anchor + left)
    for block in (order[start : start + step] for start in range(0, len(left), step)):
        first, last = block[0], block[-1]
        ends = anchor[first] + left[first] - far, anchor[last] + left[last] + width[block].max() + far
        near = slice(*np.searchsorted(outputs, ends))
        points = (anchor[block, None] - outputs[near]) + (left[block] + width[block] * fraction)[..., None]
        values[:, block] = np.exp(noise.log_density(points[..., None])) @ weights[near]
    return values


@dataclass(frozen=True)
class _Cells:
    """Rectangles with the integral over each, for every mixture, and an estimate of its error."""

    corner: Float[Array, "c 2"]
    width: Float[Array, "c 2"]
    value: Float[Array, "c n"]
    error: Float[Array, "c n"]

    def take(self, chosen: Array) -> _Cells:
        return _Cells(*(column[chosen] for column in (self.corner, self.width, self.value, self.error)))

    def joined(self, other: _Cells) -> _Cells:
        return _Cells(
            np.concatenate([self.corner, other.corner]),
            np.concatenate([self.width, other.width]),
            np.concatenate([self.value, other.value]),
            np.concatenate([self.error, other.error]),
        )


def _on_plane(outputs: Float[Array, "u 2"], weights: Float[Array, "u n"], noise: Density) -> Float[Array, " n"]:
    """Cells cut where the estimated error is largest, until the errors sum to less than the tolerance."""
    far = reach(noise, 2)
    cells = _integrated(*_first_cells(outputs, far), outputs, weights, noise, far)
    n_cells = len(cells.corner)
    while (reached := cells.error.sum(axis=0).max()) > PLANE_TOLERANCE:
        worst = cells.error.max(axis=1)
        order = np.argsort(worst)
        # The best cells together may keep half of the tolerance as they are; all others are cut.
        n_kept = int(np.searchsorted(np.cumsum(worst[order]), PLANE_TOLERANCE / 2))
        parent = cells.take(order[n_kept:])
        n_cells += 2 * len(parent.corner)
        if n_cells > MOST_CELLS:
            raise ValueError(f"{MOST_CELLS:,} cells leave an error of {reached:.2g}; wanted {PLANE_TOLERANCE:g}")
        step = parent.width / 2 * (np.arange(2) == parent.width.argmax(axis=1)[:, None])  # halves the longer side
        corner, width = np.concatenate([parent.corner, parent.corner + step]), np.tile(parent.width - step, (2, 1))
        children = _integrated(corner, width, outputs, weights, noise, far)
        cells = cells.take(order[:n_kept]).joined(children)
    return cells.value.sum(axis=0)


def _first_cells(outputs: Float[Array, "u 2"], far: float) -> tuple[Float[Array, "c 2"], Float[Array, "c 2"]]:
    """Lines through the centres, where a density may have a kink; even ones where those would be too many."""
    low, high = outputs.min(axis=0) - far, outputs.max(axis=0) + far
    lines = [np.unique(np.r_[a, x, b]) for a, x, b in zip(low, outputs.T, high, strict=True)]
    if len(lines[0]) * len(lines[1]) > _MOST_FIRST_CELLS:
        lines = [np.linspace(a, b, 33) for a, b in zip(low, high, strict=True)]
    corner = np.stack(np.meshgrid(*(line[:-1] for line in lines), indexing="ij"), axis=-1).reshape(-1, 2)
    width = np.stack(np.meshgrid(*(np.diff(line) for line in lines), indexing="ij"), axis=-1).reshape(-1, 2)
    return corner, width


def _integrated(
    corner: Float[Array, "c 2"],
    width: Float[Array, "c 2"],
    outputs: Float[Array, "u 2"],
    weights: Float[Array, "u n"],
    noise: Density,
    far: float,
) -> _Cells:
    """Each cell by its Legendre series; nothing is where no centre is within reach."""
    value = np.zeros((len(corner), weights.shape[1]))
    error = np.zeros_like(value)
    step = max(1, _BLOCK // (_PLANE_NODES**2 * len(outputs)))
    for start in range(0, len(corner), step):
        block = slice(start, start + step)
        outside = np.abs(corner[block, None] + width[block, None] / 2 - outputs) - width[block, None] / 2
        near = np.flatnonzero(outside.max(axis=2).min(axis=1) <= far) + start
        points = corner[near, None] + width[near, None] * _PLANE_POINTS
        density = np.exp(noise.log_density(points[:, :, None] - outputs))
        area = width[near].prod(axis=1)[:, None]
        mean, deviation = _cell_means(np.moveaxis(density @ weights, 1, 0), _NO_MATTER / area)
        too_wide = width[near].max(axis=1) > 2 * noise.rms(2)  # a peak between the nodes would not be seen
        value[near], error[near] = area * mean, area * deviation + too_wide[:, None]
    return _Cells(corner, width, value, error)


def _cell_means(
    values: Float[Array, "m2 c n"], negligible: Float[Array, "c 1"]
) -> tuple[Float[Array, "c n"], Float[Array, "c n"]]:
    """Mean of ``|f|`` over cells from the values at their nodes, with an estimate of its error."""
    series = np.tensordot(_PLANE_SERIES, values, axes=1)
    size = np.abs(series)
    error = np.tensordot(_LAST, size, axes=1)
    mean = size[0].copy()
    others = size[1:].sum(axis=0)
    crossed = (size[0] < others) & (others > negligible)
    value, along, across = (matrix @ series[:, crossed] for matrix in _FINE_VALUES)
    mean[crossed] = _mean_of_linear(value, along / _FINE, across / _FINE).mean(axis=0)
    error[crossed] += 1.5 * np.tensordot(_CURVATURES, size[:, crossed], axes=1) / _FINE**3
    return mean, error


def _mean_of_linear(a: Float[Array, "q p"], b: Float[Array, "q p"], c: Float[Array, "q p"]) -> Float[Array, "q p"]:
    """Mean of ``|a + b x + c y|`` over the square (-1, 1)^2: a mixed difference of ``t^2 |t| / 6``."""
    b, c = np.abs(b), np.abs(c)
    mean = np.abs(a)
    crossed = mean < b + c
    a, b, c = a[crossed], b[crossed], c[crossed]
    least = 1e-4 * (b + c)  # keeps the difference quotient from 0/0
    b, c = np.maximum(b, least), np.maximum(c, least)
    corners = ((1, a + b + c), (-1, a + b - c), (-1, a - b + c), (1, a - b - c))
    mean[crossed] = sum(sign * t**2 * np.abs(t) for sign, t in corners) / (24 * b * c)
    return mean


def _plane_matrices() -> tuple[Array, Array, Array]:
    """From series to values and slopes along the axes at the midpoints of a fine grid."""
    midpoints = (np.arange(_FINE) + 0.5) * 2 / _FINE - 1
    values = legendre.legvander(midpoints, _PLANE_NODES - 1)
    slopes = legendre.legval(midpoints, legendre.legder(np.eye(_PLANE_NODES))).T
    return np.kron(values, values), np.kron(slopes, values), np.kron(values, slopes)


_MOST_FIRST_CELLS = 10_000
_NO_MATTER = 1e-13  # an integral over a cell
_PLANE_NODES = 8  # an axis
_FINE = 12  # a cell with a change of sign is integrated as linear on so many squares an axis
_PLANE_POINTS = np.stack(
    np.meshgrid(*(2 * ((legendre.leggauss(_PLANE_NODES)[0] + 1) / 2,)), indexing="ij"), axis=-1
).reshape(-1, 2)
_PLANE_SERIES = np.kron(*(2 * (_series_matrix(_PLANE_NODES)[0],)))
_FINE_VALUES = _plane_matrices()
_DEGREES = np.indices((_PLANE_NODES, _PLANE_NODES)).reshape(2, -1)
_LAST = (_DEGREES.max(axis=0) == _PLANE_NODES - 1).astype(float)
_CURVATURES = ((_DEGREES - 1) * _DEGREES * (_DEGREES + 1) * (_DEGREES + 2) / 8).sum(axis=0)
_CURVATURES += (_DEGREES * (_DEGREES + 1) / 2).prod(axis=0)
