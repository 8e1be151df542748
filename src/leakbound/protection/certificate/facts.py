"""What the reports of all promises are made of: the printed noise, the rows of values, the head of a report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from leakbound.core.grid import Grid
from leakbound.core.types import Noise
from leakbound.noise import BallNoise, Mahalanobis
from leakbound.plans.promises import NAME_OF, PROMISE_OF
from leakbound.plans.protects import printed
from leakbound.protection.setting.request import Request
from leakbound.protection.setting.rounding import PrintedShape
from leakbound.releases.statistics.counts_and_sums import Finished
from leakbound.reports.about import CertificateFacts, DataFacts, NoiseFacts, ProtectedAbout, ReleasedValue, envelope
from leakbound.reports.numbers import outward, rounded_to_noise
from leakbound.reports.results.release.result import question_of

Array = np.ndarray
Audience = Literal["public", "owner"]
FAILED = "the statistic failed on the draw; that it did is all that is released"


def about_release(
    request: Request,
    audience: Audience,
    certificate: CertificateFacts,
    notes: Sequence[str],
    *,
    asked: str = "",
    more_of_plan: dict[str, Any] | None = None,
    **contents: Any,
) -> ProtectedAbout:
    """Put a certificate and its contents together with what was asked for; the command is the owner's."""
    plan, points = request.plan, request.data.points
    promise = plan.under(PROMISE_OF[certificate.design])
    content = printed(plan) | (more_of_plan or {})
    head = envelope(content, seed=promise.seed, confidence=promise.confidence, notes=notes)
    # the number of people, and not of their rows, which depends on each of them
    data = DataFacts(name=request.data.name, digest="", records=certificate.n)
    if audience == "owner":
        head["command"] = request.command
        data = DataFacts(name=request.data.name, digest=points.digest[:16], records=len(points))
    return ProtectedAbout(
        kind="protected",
        audience=audience,
        **head,
        question=question_of(NAME_OF[certificate.design], asked or plan.statistic),
        insecure_seed=request.insecure_seed is not None,
        fpr=plan.fpr,
        data=data,
        certificate=certificate,
        **contents,
    )


def noise_facts(
    noise: Noise | None,
    rms: Float[Array, " d"],
    grid: Grid,
    noisy_coords: Bool[Array, " d"],
    *,
    divisor: float,
    shape: PrintedShape | None,
    declared: bool,
) -> NoiseFacts:
    """Describe a noise as it is printed, so that it can be drawn again, and the promise checked."""
    if noise is None:
        return NoiseFacts(
            family="none",
            scale=0.0,
            deviations=None,
            correlations=None,
            rms=rms.tolist(),
            grid=None,
            declared=declared,
        )
    deviations, correlations = _shape(noise, shape)
    steps = np.broadcast_to(grid.steps, rms.shape) / divisor
    return NoiseFacts(
        family=family_of(noise),
        scale=float(noise.radius if isinstance(noise, BallNoise) else getattr(noise, "scale", math.nan)),
        deviations=None if deviations is None else deviations.tolist(),
        correlations=None if correlations is None else correlations.tolist(),
        rms=rms.tolist(),
        grid=tuple(float(step) if noisy else None for step, noisy in zip(steps, noisy_coords, strict=True)),
        declared=declared,
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


def rows_of_values(
    finished: Finished, k: int, sampling_std: Float[Array, " e"] | None = None
) -> tuple[ReleasedValue, ...]:
    """Make a row for each published number; its standard error, a function of the data, is the owner's."""
    errors = np.full(len(finished.labels), np.nan) if sampling_std is None else sampling_std
    columns = (finished.labels, finished.value, finished.noise_std, finished.low, finished.high, errors)
    rows = []
    for label, number, noise_std, low, high, error in zip(*columns, strict=True):
        is_shown = bool(np.isfinite(number))
        known = is_shown and bool(np.isfinite(error) and error > 0)
        has_interval = bool(np.isfinite(low) and np.isfinite(high))
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
                sample_cost=k * (noise_std / math.hypot(noise_std, error)) ** 2 if known else None,
            )
        )
    return tuple(rows)
