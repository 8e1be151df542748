"""What both halves of a certificate are made of: the printed noise, and the rows of values."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from leakbound.core.types import Noise
from leakbound.noise import BallNoise, Mahalanobis
from leakbound.protection.setting.prepared import Prepared
from leakbound.protection.setting.rounding import PrintedShape
from leakbound.reports.about import NoiseFacts, ReleasedValue
from leakbound.reports.numbers import outward, rounded_to_noise

Array = np.ndarray


def noise_facts(prepared: Prepared) -> NoiseFacts:
    """Describe the noise as it is printed, so that it can be drawn again, and the promise checked."""
    if prepared.parts:
        return _noise_of_all(prepared)
    noise, rms = prepared.noise, prepared.rms
    if noise is None:
        return NoiseFacts(
            family="none",
            scale=0.0,
            deviations=None,
            correlations=None,
            rms=rms.tolist(),
            grid=None,
            declared=prepared.declared,
        )
    deviations, correlations = _shape(noise, prepared.shape)
    # the grid of a mean is that of its sum, divided
    steps = np.broadcast_to(prepared.grid.steps, rms.shape) / prepared.divisor
    is_noisy = prepared.noisy_coords
    return NoiseFacts(
        family=family_of(noise),
        scale=float(noise.radius if isinstance(noise, BallNoise) else getattr(noise, "scale", math.nan)),
        deviations=None if deviations is None else deviations.tolist(),
        correlations=None if correlations is None else correlations.tolist(),
        rms=rms.tolist(),
        grid=tuple(float(step) if noisy else None for step, noisy in zip(steps, is_noisy, strict=True)),
        declared=prepared.declared,
    )


def _noise_of_all(prepared: Prepared) -> NoiseFacts:
    """Describe the noise of several statistics; the correlations are with each of them."""
    of_parts = [noise_facts(part) for part in prepared.parts]
    grids = [noise.grid or [None] * len(noise.rms) for noise in of_parts]
    is_noisy = not prepared.no_noise
    return NoiseFacts(
        family="gaussian" if is_noisy else "none",
        scale=1.0 if is_noisy else 0.0,
        deviations=prepared.rms[prepared.noisy_coords].tolist() if is_noisy else None,
        correlations=None,
        rms=prepared.rms.tolist(),
        grid=tuple(step for grid in grids for step in grid) if is_noisy else None,
        declared=prepared.declared,
    )


def family_of(noise: Noise | None) -> str:
    """Name the family, as in ``leakbound.noise.families.FAMILIES``; what needs no noise counts as Gaussian."""
    return "gaussian" if noise is None else type(noise).__name__.removesuffix("Noise").lower()


def _shape(
    noise: Noise, printed_shape: PrintedShape | None
) -> tuple[Float[Array, " d"] | None, Float[Array, "d d"] | None]:
    """Return deviations and correlations of a noise of scale 1; None where all are 1, and where they are 0."""
    if printed_shape is not None:
        return printed_shape.deviations, printed_shape.correlations
    if not isinstance(noise.norm, Mahalanobis):
        return None, None
    shape = noise.norm.shape
    if shape.ndim == 1:
        return np.sqrt(shape), None
    deviations = np.sqrt(np.diagonal(shape))
    return deviations, shape / deviations / deviations[:, None]


def rows_of_values(prepared: Prepared, value: Float[Array, " d"], *, is_public: bool) -> tuple[ReleasedValue, ...]:
    """Make a row for each published number; its standard error, a function of the data, is the owner's."""
    finished, errors = prepared.finished(value), prepared.sampling_std
    if is_public or errors is None:
        errors = np.full(len(finished.labels), np.nan)
    columns = (finished.labels, finished.value, finished.noise_std, finished.low, finished.high, errors)
    rows = []
    for label, number, noise_std, low, high, error in zip(*columns, strict=True):
        is_shown = bool(np.isfinite(number))
        known = is_shown and bool(np.isfinite(error) and error > 0)
        has_interval = bool(np.isfinite(low) and np.isfinite(high))
        # intervals are rounded outward, and the value by its noise, so that no digit is noise alone
        low, high = outward(low, high, noise_std)
        rows.append(
            ReleasedValue(
                name=label,
                unit="",
                value=rounded_to_noise(float(number), noise_std) if is_shown else None,
                noise_std=float(noise_std) if np.isfinite(noise_std) else None,
                low=low if has_interval else None,
                high=high if has_interval else None,
                sampling_std=float(error) if known else None,
                # without noise, so many records fewer would be as accurate
                sample_cost=prepared.k * (noise_std / math.hypot(noise_std, error)) ** 2 if known else None,
            )
        )
    return tuple(rows)
