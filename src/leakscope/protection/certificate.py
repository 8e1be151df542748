"""The owner's certificate of a protected release: what is promised, what was released, what it cost, who is exposed.

It holds exact functions of the file (what is proved beyond the promise, sampling errors, attacks, a digest), and is
never published; ``publishing`` makes the half that is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from leakscope.core.findings import Finding, Scope
from leakscope.core.types import Noise
from leakscope.noise import BallNoise, Mahalanobis
from leakscope.plans.protects import ProtectionPlan
from leakscope.protection.calibration import Calibrated
from leakscope.protection.jobs import Job
from leakscope.protection.mechanism import game_of
from leakscope.reports import Curve, Report
from leakscope.reports.about import (
    CertificateFacts,
    DataFacts,
    NoiseFacts,
    ProtectedAbout,
    ReleasedValue,
    envelope,
)

Array = np.ndarray
SOURCES: Mapping[str, str] = {
    "swap": "ours: joint convexity over a swap of one record; with Gaussian noise lowy2024, Proposition 12",
    "mixture swap": "ours: joint convexity over all but the record that comes in",
    "average swap": "ours: joint convexity over a swap of a random record",
    "complement": "ours: joint convexity over a data set and its complement",
    "disjoint": "ours: joint convexity over data sets that share as little as possible",
    "table": "ours: the posterior of a cell's records given its count",
    "total": "ours: the distribution of a total by its characteristic function",
}
DRAWN = "the {k:,} records in use were drawn uniformly from all {n:,}, in secret, and nothing else tells who they are"
KNOWS = (
    "the attacker knows all {n:,} records, the statistic, the noise and this certificate, but neither draw nor noise"
)
ALONE = "nothing else of the same draw is released: the draw is kept nowhere, and no ledger knows of this release"
RECORDED = "what else is released of the same draw stands in its ledger, and counts in the joint bound alone"
ROLLED_BACK = (
    "the ledger was never put back to an earlier copy: that cannot be noticed, and what was released in between would "
    "be missing from it (the same release again has the same bytes)"
)
ON_GRID = "statistic and noise are rounded to a grid of their own before they are added, so that no low bit tells more"
BALL = "the noise has an end: a release near it proves the membership of some record for certain"


def report_of(
    job: Job,
    found: Calibrated,
    value: Float[Array, " d"] | None = None,
    findings: Sequence[Finding] = (),
    curves: Sequence[Curve] = (),
    insecure: bool = False,
) -> Report:
    """The owner's certificate of a calibration and, where a value is given, of its release.

    Parameters
    ----------
    job : Job
    found : Calibrated
    value : array of shape (d,), optional
        What was released.
    findings, curves : sequences
        What attacks reach, what other methods need.
    insecure : bool
        Draw and noise came from a seed that was given.
    """
    ceiling = [] if found.band is None else [Curve("certified", "", "certified", found.band)]
    about = _about(job, found, value, insecure)
    return Report(about, (*_allowed(job, found), *findings), (*ceiling, *curves))


def _allowed(job: Job, found: Calibrated) -> list[Finding]:
    """What the certificate allows any attacker, and the size of the noise."""
    mechanism, at = job.mechanism, {"prior": job.mechanism.prior}
    common: dict[str, Any] = {
        "bound_type": "upper",
        "status": "certified",
        "confidence": found.confidence,
        "game": game_of(mechanism),
        "assumptions": assumptions(job, found),
        "source": SOURCES[found.coupling],
    }
    made = [
        Finding("accuracy", mechanism.blind + found.eta, operating_point=at, **common),
        Finding("eta", found.eta, operating_point=at, **common),
    ]
    if found.band is not None:
        made += [
            Finding("tpr", float(found.band.tpr(rate)), operating_point={"fpr": rate}, **common)
            for rate in job.plan.fpr
        ]
        made.append(_practical(job, found, common))
    return [*made, rms_finding(found)]


def rms_finding(
    found: Calibrated, name: str = "", promise: Literal["every", "average"] = "every", source: str = ""
) -> Finding:
    """The noise over all coordinates, root mean square.

    Parameters
    ----------
    found : Calibrated
    name : str
        Of a row in a comparison; empty for the release itself.
    promise : {"every", "average"}
        Of that row.
    source : str
        That of the coupling unless given.
    """
    scope = Scope("average") if name and promise == "average" else Scope()
    rms, level = float(np.sqrt(np.square(found.rms).mean())), found.confidence if name else None
    source = source or SOURCES[found.coupling]
    return Finding("noise_rms", rms, scope=scope, release=name, status="certified", confidence=level, source=source)


def _practical(job: Job, found: Calibrated, common: Mapping[str, Any]) -> Finding:
    """Epsilon of practical membership privacy at the plan's delta."""
    at = {"delta": job.plan.delta}
    if isinstance(found.noise, BallNoise):
        return Finding("pmp_epsilon", None, operating_point=at, reason=BALL)
    epsilon = found.band.epsilon(job.plan.delta) if found.band is not None else math.inf
    if math.isinf(epsilon):
        return Finding(
            "pmp_epsilon", None, operating_point=at, reason=f"no epsilon is certified at delta = {job.plan.delta:g}"
        )
    return Finding("pmp_epsilon", epsilon, operating_point=at, **common)


def _about(job: Job, found: Calibrated, value: Float[Array, " d"] | None, insecure: bool) -> ProtectedAbout:
    plan, points = job.plan, job.data.points
    notes = [*job.notes, *_notes(job, found, value)]
    said = envelope(plan_of(job), seed=plan.pairs_seed, confidence=plan.confidence, command=job.command, notes=notes)
    return ProtectedAbout(
        kind="protected",
        audience="owner",
        **said,
        question=f"Who is in the {plan.statistic}?",
        insecure_seed=insecure,
        fpr=plan.fpr,
        data=DataFacts(name=job.data.name, digest=points.digest[:16], records=len(points)),
        certificate=_certificate(job, found),
        values=_values(job, found, value),
    )


def plan_of(job: Job) -> dict[str, Any]:
    """The plan without secrets."""
    return job.plan.model_dump(exclude={"ledger", "insecure_seed"})


def noise_content(job: Job, found: Calibrated) -> NoiseFacts:
    """The noise as it is printed: whole enough to draw it again, and to check the promise on all n records.

    Returns
    -------
    NoiseFacts
    """
    if found.noise is None:
        rms = found.rms.tolist()
        return NoiseFacts(
            family="none", scale=0.0, deviations=None, correlations=None, rms=rms, grid=None, declared=False
        )
    deviations, correlations = _shape(found)
    steps = np.broadcast_to(found.grid.steps, found.rms.shape) / job.mechanism.divisor
    return NoiseFacts(
        family=_family(found.noise),
        scale=_scale(found.noise),
        deviations=None if deviations is None else deviations.tolist(),
        correlations=None if correlations is None else correlations.tolist(),
        rms=found.rms.tolist(),
        grid=tuple(float(step) if noised else None for step, noised in zip(steps, found.noised, strict=True)),
        declared=found.declared,
    )


def _shape(found: Calibrated) -> tuple[Float[Array, " d"] | None, Float[Array, "d d"] | None]:
    """Deviations and correlations of a Gaussian noise of scale 1; None where all are 1, and where they are 0."""
    if found.printed_shape is not None:
        return found.printed_shape.deviations, found.printed_shape.correlations
    norm = None if found.noise is None else found.noise.norm
    if not isinstance(norm, Mahalanobis):
        return None, None
    if norm.shape.ndim == 1:
        return np.sqrt(norm.shape), None
    deviations = np.sqrt(np.diagonal(norm.shape))
    return deviations, norm.shape / deviations / deviations[:, None]


def _certificate(job: Job, found: Calibrated) -> CertificateFacts:
    mechanism = job.mechanism
    return CertificateFacts(
        eta=_promised(job, found),
        promise=job.target.promise,
        prior=mechanism.prior,
        k=mechanism.k,
        n=mechanism.n,
        coupling=found.coupling,
        noise=noise_content(job, found),
        exact=found.confidence is None,
        confidence=1.0 if found.confidence is None else found.confidence,
        pairs=found.n_pairs,
        fits=found.n_fits,
        failures=found.n_failures,
        assumptions=tuple(assumptions(job, found)),
        ledger=has_ledger(job),
        no_noise=found.noise is None,
        void="",
    )


def _promised(job: Job, found: Calibrated) -> float:
    """Without noise what is proved, rounded up; else what was asked for."""
    return math.ceil(found.eta * 1e4) / 1e4 if found.noise is None and found.eta > 0 else job.target.eta


def assumptions(job: Job, found: Calibrated) -> list[str]:
    """What the promise rests on, in sentences."""
    size = {"k": job.mechanism.k, "n": job.mechanism.n}
    others = [RECORDED, ROLLED_BACK] if has_ledger(job) else [ALONE]
    said = [DRAWN.format(**size), KNOWS.format(**size), *others, ON_GRID]
    return [*said, BALL] if isinstance(found.noise, BallNoise) else said


def has_ledger(job: Job) -> bool:
    """Whether the release is noted in a ledger."""
    return isinstance(job.plan, ProtectionPlan) and job.plan.ledger is not None


def _notes(job: Job, found: Calibrated, value: Float[Array, " d"] | None) -> list[str]:
    """What a reader should know of the noise."""
    made = [found.reason] if found.reason else []
    if value is not None and not np.isfinite(value).all():
        made.append("the statistic failed on the draw; that it did is all that is released")
    bare = [label for label, noised in zip(job.mechanism.labels, found.noised, strict=True) if not noised]
    if bare and found.noise is not None:
        made.append(f"the same for (nearly) every draw, and released without noise: {', '.join(bare[:6])}")
    if found.n_failures:
        made.append(f"{found.n_failures:,} of {found.n_fits:,} fits failed; each counts against the certificate")
    return made


def _values(job: Job, found: Calibrated, value: Float[Array, " d"] | None) -> tuple[ReleasedValue, ...]:
    """A row for each released number."""
    if value is None:
        return ()
    noise, k = found.rms, job.mechanism.k
    error = found.sampling_std if found.sampling_std is not None else np.full(len(noise), np.nan)
    known = np.isfinite(error) & (error > 0)
    cost = np.where(known, k * noise**2 / np.where(known, noise**2 + error**2, 1.0), np.nan)
    return tuple(
        ReleasedValue(
            name=label,
            unit="",
            value=float(value[row]) if np.isfinite(value[row]) else None,
            noise_std=float(noise[row]),
            sampling_std=float(error[row]) if known[row] else None,
            sample_cost=float(cost[row]) if known[row] else None,
        )
        for row, label in enumerate(job.mechanism.labels)
    )


def _family(noise: Noise) -> str:
    return type(noise).__name__.removesuffix("Noise").lower()


def _scale(noise: Noise) -> float:
    """The one parameter that was calibrated."""
    return float(noise.radius if isinstance(noise, BallNoise) else getattr(noise, "scale", math.nan))
