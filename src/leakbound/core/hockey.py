"""Hockey-stick divergence between a noise of scale 1 and its shift: the closed forms behind the families.

``H_g(Z + v || Z) = int (p - g q)_+`` with p the density of ``Z + v`` and q that of Z; the total variation is
``H_1``. Shifts come as lengths ``t = ||v||/scale``, infinity allowed, and ratios g as ``epsilon = ln g >= 0``.
All distributions here are symmetric, so the two directions of the divergence agree.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import betainc, k0e, k1e, roots_legendre

from leakbound.core.checks import real

Array = np.ndarray


def in_scales(u: ArrayLike, scale: float) -> Float[Array, "*shape"]:
    """Convert lengths of shifts to units of the scale; NaN becomes infinity, the length of a failed pair."""
    u = np.asarray(u, dtype=float)
    if (u < 0).any():
        raise ValueError(f"the length of a shift must be >= 0, got {np.nanmin(u):g}")
    with np.errstate(over="ignore"):
        return np.asarray(np.where(np.isnan(u), np.inf, u) / scale)


def log_ratio(gamma: float) -> float:
    """Compute ``epsilon = ln(gamma)`` of a hockey-stick divergence; a gamma below 1 is a ValueError."""
    if real("gamma", gamma) < 1:
        raise ValueError(f"gamma must be >= 1, got {gamma:g}")
    return math.log(gamma)


def laplace(t: Float[Array, "*shape"], epsilon: float) -> Float[Array, "*shape"]:
    """Compute the divergence for a density ``exp(-|z|)/2`` shifted by t: ``(1 - e^((epsilon - t)/2))_+``."""
    return np.asarray(-np.expm1(np.minimum(epsilon - t, 0) / 2))


def any_norm(t: Float[Array, "*shape"], epsilon: float) -> Float[Array, "*shape"]:
    """Bound the divergence for a density ``exp(-||z||)`` of any norm by ``((e^t - e^epsilon)/(e^t + 1))_+``.

    By the triangle inequality the likelihood ratio lies within ``e^t``, and no pair within that ratio has a
    larger divergence than randomised response (Kairouz, Oh & Viswanath 2015). At epsilon = 0 it is tanh(t/2).
    """
    return np.asarray(-np.expm1(np.minimum(epsilon - t, 0)) / (1 + np.exp(-t)))


def euclidean(t: Float[Array, "*shape"], epsilon: float, d: int) -> Float[Array, "*shape"]:
    """Compute the divergence for a density ``exp(-||z||_2)`` in R^d shifted by t, exactly.

    In prolate spheroidal coordinates with foci 0 and v, ``||z|| + ||z-v|| = t xi`` and ``||z|| - ||z-v|| =
    t cos(a)``, the likelihood ratio depends on the angle a alone, and the integral over xi gives Bessel K:

    ``H = int_0^A (e^(x cos a) - e^(epsilon - x cos a)) w(a) da / int_0^pi e^(x cos a) w(a) da`` with
    ``x = t/2``, ``cos A = epsilon/t``, ``w(a) = sin(a)^(d-2) (1 + r sin(a)^2)`` and
    ``r = x K_nu(x)/((d-1) K_(nu+1)(x))``, ``nu = d/2 - 1``. The integrands are analytic: Gauss-Legendre.
    """
    if d == 1:
        return laplace(t, epsilon)
    result = np.where(t > epsilon, 1.0, 0.0)
    near = (t > epsilon) & (t - epsilon < 200 + 4 * d)  # beyond, 1 - H < 1e-16
    t = t[near]
    n_angles = 80 + 6 * math.isqrt(d)  # the crest has a width of 1/sqrt(d + t): error below 1e-11 for d up to 10,000
    x, stop = t / 2, np.arccos(epsilon / t)
    r = x * _bessel_ratio(x, d) / (d - 1)
    crest = t / (np.hypot(d - 2, t) + d - 2)  # the cosine at which e^(x cos a) sin(a)^(d-2) is largest
    peak = x * crest + ((d - 2) / 2 * np.log1p(-(crest**2)) if d > 2 else 0)

    def density(angle: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Compute ``e^(x cos a) w(a)`` over its crest."""
        sine = np.sin(angle)
        return np.exp(x * np.cos(angle) + (d - 2) * np.log(sine) - peak) * (1 + r * sine**2)

    above, total = np.zeros_like(t), np.zeros_like(t)
    for node, weight in zip(*roots_legendre(n_angles), strict=True):
        angle, quarter = stop * (1 + node) / 2, np.full_like(t, np.pi * (1 + node) / 4)
        above -= weight * stop * density(angle) * np.expm1(np.minimum(epsilon - t * np.cos(angle), 0))
        total += weight * np.pi / 2 * density(quarter) * (1 + np.exp(-t * np.cos(quarter)))  # and pi - a
    result[near] = np.clip(above / total, 0, 1)
    return result


def euclidean_literal(t: Float[Array, "*shape"], d: int) -> Float[Array, "*shape"]:
    """Compute the total variation of ``r U`` shifted by t: U uniform on the sphere of R^d, r exponential with mean 1.

    The density is radially decreasing, so the total variation is ``P(r |U_1| < t/2) = 1 - E exp(-t/(2 |U_1|))``.
    With ``|U_1| = sin(a)``, ``tan(a) = e^y`` the distribution of y has density ``e^y (1 + e^(2y))^(-d/2)``,
    analytic and with exponential tails: the trapezoidal rule.
    """
    if d == 1:
        return laplace(t, 0.0)
    y = np.arange(-40, 40, 0.2) - math.log(d) / 2
    log_cosecant = np.logaddexp(0, 2 * y) / 2 - y
    log_weight = y - d * np.logaddexp(0, 2 * y) / 2
    weight = np.exp(log_weight - log_weight.max())
    result = np.zeros_like(t)
    with np.errstate(over="ignore"):
        for probability, cosecant in zip(weight / weight.sum(), np.exp(log_cosecant), strict=True):
            result -= probability * np.expm1(-t / 2 * cosecant)
    return np.where(np.isinf(t), 1.0, result)


def ball(t: Float[Array, "*shape"], d: int) -> Float[Array, "*shape"]:
    """Compute the divergence for the uniform distribution in the unit ball of R^d shifted by t, for every epsilon.

    It is ``I_(t/2)^2(1/2, (d+1)/2)``: both densities are constant, so the divergence is the mass outside the other
    ball, and ``Z_1^2`` of a point of the ball has the distribution Beta(1/2, (d+1)/2).
    """
    return np.asarray(betainc(0.5, (d + 1) / 2, np.square(np.minimum(t / 2, 1))))


def _bessel_ratio(x: Float[Array, " s"], d: int) -> Float[Array, " s"]:
    """Compute ``K_nu(x)/K_(nu+1)(x)``, nu = d/2 - 1, by the stable upward recurrence ``1/r_nu = r_(nu-1) + 2 nu/x``."""
    ratio = np.ones_like(x) if d % 2 else k0e(x) / k1e(x)  # nu = -1/2, nu = 0
    for nu in np.arange(0.5 if d % 2 else 1.0, d / 2 - 0.9):
        with np.errstate(over="ignore"):
            ratio = 1 / (ratio + 2 * nu / x)
    return ratio
