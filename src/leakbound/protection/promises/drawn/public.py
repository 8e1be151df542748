"""What a release publishes: the public half of its certificate.

Everything in it is declared public (n, k, names of columns, levels, the plan), or the released value and its noise as
they are printed, or computed from these. The owner's half is `certificate`: it holds exact functions of the file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from leakbound.core.findings import Finding
from leakbound.core.tradeoff import Piecewise
from leakbound.protection.certificate.published_table import counts_below_0
from leakbound.protection.certificate.statistic_parameters import parameters_of
from leakbound.protection.mechanism import game_of
from leakbound.protection.promises.drawn.jobs import Job
from leakbound.protection.promises.drawn.noise_search import NoiseSearchResult
from leakbound.protection.promises.drawn.owner import (
    SOURCES,
    assumptions,
    has_ledger,
    noise_content,
    plan_of,
    rms_finding,
    table_of_half,
)
from leakbound.reports import Curve, Report
from leakbound.reports.about import CertificateFacts, DataFacts, ProtectedAbout, ReleasedValue, envelope, term_facts
from leakbound.reports.sections.protected.designs import question_of

Array = np.ndarray
CHOSEN = "chosen_by_pilot"  # a coupling of the plan's "auto" for statistics that are fitted
FAILED = "the statistic failed on the draw; that it did is all that is released"
ENOUGH = "the draw alone keeps the promise"
_MOST_LABELS = 6


def refuse_exact(job: Job, calibration: NoiseSearchResult) -> None:
    """Refuse to publish a number that would get no noise.

    A number that is the same for all records, or a fitted one that moves in no draw of the pilot, tells nothing of who
    is in, so no noise is added; but it would be published exactly. Counts are not concerned: all their cells get noise
    if one does.
    """
    if job.mechanism.features is None:
        exact = ~calibration.noisy_coords
        if not exact.any():
            return
    else:
        exact = np.ptp(job.mechanism.features, axis=0) == 0
        if not (exact & ~calibration.noisy_coords).any() or (job.mechanism.counts and not exact.all()):
            return
    labels = [label for label, same in zip(job.mechanism.labels, exact, strict=True) if same]
    more = f" and {len(labels) - _MOST_LABELS:,} more" if len(labels) > _MOST_LABELS else ""
    raise ValueError(
        f"the same for all records or in every draw, so that it would be published exactly: "
        f"{', '.join(labels[:_MOST_LABELS])}{more}; leave it out, or declare a scale"
    )


def public_report(
    job: Job, calibration: NoiseSearchResult, value: Float[Array, " d"], insecure: bool = False, note: str = ""
) -> Report:
    """Build the certificate that is published with a release."""
    # Everything here follows from the plan, n, k, the names of the columns, the printed noise and the value.
    eta, mechanism = job.target.eta, job.mechanism
    common: dict[str, Any] = {
        "bound_type": "upper",
        "status": "certified",
        "confidence": calibration.confidence,
        "game": game_of(mechanism),
        "assumptions": assumptions(job, calibration),
        "source": SOURCES.get(_coupling(job, calibration), SOURCES["swap"]),
    }
    ceiling = promised_curve(eta, mechanism.prior)
    at = {"prior": mechanism.prior}
    findings = [
        Finding("accuracy", mechanism.prior_accuracy + eta, operating_point=at, **common),
        Finding("eta", eta, operating_point=at, **common),
        *(
            Finding("tpr", float(ceiling.tpr_at(rate)), operating_point={"fpr": rate}, **common)
            for rate in job.plan.fpr
        ),
        rms_finding(calibration, source=common["source"]),
    ]
    about = _about(job, calibration, value, insecure, note)
    return Report(about, findings, (Curve("certified", "", "certified", ceiling),))


def promised_curve(eta: float, prior: float) -> Piecewise:
    """Compute the ceiling that follows from the promise alone.

    No attacker exceeds ``pi TPR + (1 - pi)(1 - FPR) <= max(pi, 1 - pi) + eta``.

    >>> round(float(promised_curve(0.05, 0.5).tpr_at(0.01)), 12)
    0.11
    """
    lowest = 1 - (max(prior, 1 - prior) + eta - (1 - prior)) / prior  # FNR at FPR = 0
    if lowest <= 0:
        return Piecewise([0.0], [0.0])
    return Piecewise([0.0, min(1.0, lowest * prior / (1 - prior))], [lowest, 0.0])


def _about(
    job: Job, calibration: NoiseSearchResult, value: Float[Array, " d"], insecure: bool, note: str
) -> ProtectedAbout:
    plan = job.plan
    table = table_of_half(job, calibration, value)
    notes = [*job.notes, *_notes(job, calibration, value), *counts_below_0([table])]
    if note:
        notes.append(note)
    return ProtectedAbout(
        kind="protected",
        audience="public",
        **envelope(plan_of(job), seed=job.promise.seed, confidence=job.promise.confidence, notes=notes),
        question=question_of("half", plan.statistic),
        insecure_seed=insecure,
        fpr=plan.fpr,
        data=DataFacts(name=job.data.name, digest="", records=job.mechanism.n),
        certificate=_certificate(job, calibration),
        values=_values(job, calibration, value),
        parameters=parameters_of(plan, job.mechanism.statistic, job.data.points),
        table=table,
    )


def _certificate(job: Job, calibration: NoiseSearchResult) -> CertificateFacts:
    """State the promise of the target: what is proved beyond it, and by how many pairs, is a function of the file."""
    mechanism = job.mechanism
    return CertificateFacts(
        eta=job.target.eta,
        promise="drawn",
        design="half",
        about=job.target.about,
        prior=mechanism.prior,
        k=mechanism.k,
        n=mechanism.n,
        coupling=_coupling(job, calibration),
        noise=noise_content(job, calibration),
        exact=calibration.confidence is None,
        confidence=1.0 if calibration.confidence is None else calibration.confidence,
        pairs=None,
        fits=None if calibration.confidence is None else job.target.fits,
        failures=None,
        assumptions=term_facts(assumptions(job, calibration)),
        ledger=has_ledger(job),
        entry=None,
        no_noise=calibration.noise is None,
    )


def _coupling(job: Job, calibration: NoiseSearchResult) -> str:
    """Name what proves the promise, if that follows from plan and statistic; a choice by pilot tells of the file."""
    if calibration.noise is None:
        return ""
    chosen = job.target.coupling == "auto" and job.mechanism.features is None
    return CHOSEN if chosen else calibration.coupling


def _notes(job: Job, calibration: NoiseSearchResult, value: Float[Array, " d"]) -> list[str]:
    """List what a reader should know of the values."""
    notes = [ENOUGH] if calibration.noise is None else []
    if not np.isfinite(value).all():
        notes.append(FAILED)
    return notes


def _values(job: Job, calibration: NoiseSearchResult, value: Float[Array, " d"]) -> tuple[ReleasedValue, ...]:
    """Make a row for each released number; its sampling error, a function of the file, is left out."""
    return tuple(
        ReleasedValue(
            name=label,
            unit="",
            value=float(released) if np.isfinite(released) else None,
            noise_std=float(noise_std),
            sampling_std=None,
            sample_cost=None,
        )
        for label, released, noise_std in zip(job.mechanism.labels, value, calibration.rms, strict=True)
    )
