"""The owner's certificate of a protected release: what is promised, what was released, what it cost, who is exposed.

It holds exact functions of the file (what is proved beyond the promise, sampling errors, attacks, a digest), and is
never published; `publication` makes the half that is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.types import Noise
from leakbound.noise import BallNoise, GaussianNoise, Mahalanobis
from leakbound.plans.protects import ProtectionPlan, printed
from leakbound.protection.certificate.office_rules import check_office_rules
from leakbound.protection.certificate.planned import planned_numbers
from leakbound.protection.certificate.published_table import table_for_publication
from leakbound.protection.certificate.release_command import NO_RELEASE, release_command
from leakbound.protection.certificate.statistic_parameters import parameters_of
from leakbound.protection.mechanism import game_of
from leakbound.protection.promises.drawn.jobs import Job
from leakbound.protection.promises.drawn.noise_search import NoiseSearchResult
from leakbound.releases.statistics.counts_and_sums import Finished
from leakbound.reports import Curve, Report
from leakbound.reports.about import (
    CertificateFacts,
    DataFacts,
    NoiseFacts,
    OfficeRule,
    PlannedNumber,
    ProtectedAbout,
    PublishedTable,
    ReleasedValue,
    envelope,
    term_facts,
)
from leakbound.reports.sections.protected.designs import question_of

Array = np.ndarray
SOURCES: Mapping[str, str] = {
    "swap": "ours: joint convexity over a swap of one record; with Gaussian noise lowy2024, Proposition 12",
    "mixture_swap": "ours: joint convexity over all but the record that comes in",
    "average_swap": "ours: joint convexity over a swap of a random record",
    "complement": "ours: joint convexity over a data set and its complement",
    "disjoint": "ours: joint convexity over data sets that share as little as possible",
    "table": "ours: the posterior of a cell's records given its count",
    "total": "ours: the distribution of a total by its characteristic function",
}
NO_NOISE: Mapping[str, str] = {
    "": "",
    "equal_records": "all records have the same values",
    "table": "enough records share their values: the draw alone keeps the promise",
    "total": "enough subsets have the same total: the draw alone keeps the promise",
    "equal_outputs": "no noise is needed for eta = {eta:g}: so many pairs have the same output",
}
ROLLED_BACK = Term("ledger_not_rolled_back")
BALL = "noise_has_an_end"


def report_of(
    job: Job,
    calibration: NoiseSearchResult,
    value: Float[Array, " d"] | None = None,
    findings: Sequence[Finding] = (),
    curves: Sequence[Curve] = (),
    insecure: bool = False,
) -> Report:
    """Build the owner's certificate of a calibration and, where a value is given, of its release."""
    ceiling = [] if calibration.band is None else [Curve("certified", "", "certified", calibration.band)]
    about = _about(job, calibration, value, insecure)
    return Report(about, (*_allowed(job, calibration), *findings), (*ceiling, *curves))


def _allowed(job: Job, calibration: NoiseSearchResult) -> list[Finding]:
    """List what the certificate allows any attacker, and the size of the noise."""
    mechanism, at = job.mechanism, {"prior": job.mechanism.prior}
    common: dict[str, Any] = {
        "bound_type": "upper",
        "status": "certified",
        "confidence": calibration.confidence,
        "game": game_of(mechanism),
        "assumptions": assumptions(job, calibration),
        "source": SOURCES[calibration.coupling],
    }
    findings = [
        Finding("accuracy", mechanism.prior_accuracy + calibration.eta, operating_point=at, **common),
        Finding("eta", calibration.eta, operating_point=at, **common),
    ]
    if calibration.band is not None:
        findings += [
            Finding("tpr", float(calibration.band.tpr_at(rate)), operating_point={"fpr": rate}, **common)
            for rate in job.plan.fpr
        ]
        findings.append(_practical(job, calibration, common))
    return [*findings, rms_finding(calibration)]


def rms_finding(
    calibration: NoiseSearchResult, name: str = "", promise: Literal["every", "average"] = "every", source: str = ""
) -> Finding:
    """Report the noise over all coordinates, root mean square."""
    scope = Scope("average") if name and promise == "average" else Scope()
    rms, level = float(np.sqrt(np.square(calibration.rms).mean())), calibration.confidence if name else None
    source = source or SOURCES[calibration.coupling]
    return Finding("noise_rms", rms, scope=scope, release=name, status="certified", confidence=level, source=source)


def _practical(job: Job, calibration: NoiseSearchResult, common: Mapping[str, Any]) -> Finding:
    """Report epsilon of practical membership privacy at the plan's delta."""
    at = {"delta": job.promise.delta}
    if isinstance(calibration.noise, BallNoise):
        return Finding("pmp_epsilon", None, operating_point=at, reason=Term(BALL))
    epsilon = calibration.band.epsilon(job.promise.delta) if calibration.band is not None else math.inf
    if math.isinf(epsilon):
        return Finding("pmp_epsilon", None, operating_point=at, reason=Term("no_epsilon", delta=job.promise.delta))
    return Finding("pmp_epsilon", epsilon, operating_point=at, **common)


def _about(
    job: Job, calibration: NoiseSearchResult, value: Float[Array, " d"] | None, insecure: bool
) -> ProtectedAbout:
    plan, points = job.plan, job.data.points
    notes = [*job.notes, *job.owner_notes, *_notes(job, calibration, value)]
    command, refusal = ("", "") if value is not None else release_command(plan)
    if refusal:
        notes.append(NO_RELEASE.format(reason=refusal))
    common = envelope(
        plan_of(job), seed=job.promise.seed, confidence=job.promise.confidence, command=job.command, notes=notes
    )
    return ProtectedAbout(
        kind="protected",
        audience="owner",
        **common,
        question=question_of("half", plan.statistic),
        insecure_seed=insecure,
        fpr=plan.fpr,
        data=DataFacts(name=job.data.name, digest=points.digest[:16], records=len(points)),
        certificate=_certificate(job, calibration),
        values=_values(job, calibration, value),
        parameters=parameters_of(plan, job.mechanism.statistic, points),
        release_command=command,
        planned=_planned(job, calibration) if value is None else (),
        table=None if value is None else table_of_half(job, calibration, value),
        rules=_rules(job),
    )


def table_of_half(job: Job, calibration: NoiseSearchResult, value: Float[Array, " d"]) -> PublishedTable | None:
    """Make the table for publication from what was released."""
    is_gaussian = calibration.noise is None or isinstance(calibration.noise, GaussianNoise)
    return table_for_publication(
        job.plan,
        job.mechanism.statistic,
        value,
        calibration.rms,
        n_in_use=job.mechanism.k,
        is_gaussian=is_gaussian,
    )


def _rules(job: Job) -> tuple[OfficeRule, ...]:
    """Check the rules of statistics offices on all records."""
    return check_office_rules(job.plan, job.mechanism.statistic, job.data.points)


def plan_of(job: Job) -> dict[str, Any]:
    """Return the plan without secrets."""
    return printed(job.plan)


def noise_content(job: Job, calibration: NoiseSearchResult) -> NoiseFacts:
    """Describe the noise as it is printed: so that it can be drawn again, and the promise checked on all n records."""
    if calibration.noise is None:
        rms = calibration.rms.tolist()
        return NoiseFacts(
            family="none", scale=0.0, deviations=None, correlations=None, rms=rms, grid=None, declared=False
        )
    deviations, correlations = _shape(calibration)
    steps = np.broadcast_to(calibration.grid.steps, calibration.rms.shape) / job.mechanism.divisor
    return NoiseFacts(
        family=_family(calibration.noise),
        scale=_scale(calibration.noise),
        deviations=None if deviations is None else deviations.tolist(),
        correlations=None if correlations is None else correlations.tolist(),
        rms=calibration.rms.tolist(),
        grid=tuple(float(step) if noisy else None for step, noisy in zip(steps, calibration.noisy_coords, strict=True)),
        declared=calibration.declared,
    )


def _shape(calibration: NoiseSearchResult) -> tuple[Float[Array, " d"] | None, Float[Array, "d d"] | None]:
    """Return deviations and correlations of a Gaussian noise of scale 1; None where all are 1, and where they are 0."""
    if calibration.printed_shape is not None:
        return calibration.printed_shape.deviations, calibration.printed_shape.correlations
    norm = None if calibration.noise is None else calibration.noise.norm
    if not isinstance(norm, Mahalanobis):
        return None, None
    if norm.shape.ndim == 1:
        return np.sqrt(norm.shape), None
    deviations = np.sqrt(np.diagonal(norm.shape))
    return deviations, norm.shape / deviations / deviations[:, None]


def _certificate(job: Job, calibration: NoiseSearchResult) -> CertificateFacts:
    mechanism = job.mechanism
    return CertificateFacts(
        eta=_promised(job, calibration),
        promise="drawn",
        design="half",
        about=job.target.about,
        prior=mechanism.prior,
        k=mechanism.k,
        n=mechanism.n,
        coupling=calibration.coupling,
        noise=noise_content(job, calibration),
        exact=calibration.confidence is None,
        confidence=1.0 if calibration.confidence is None else calibration.confidence,
        pairs=calibration.n_pairs,
        fits=calibration.n_fits,
        failures=calibration.n_failures,
        assumptions=term_facts(assumptions(job, calibration)),
        ledger=has_ledger(job),
        entry=None,
        no_noise=calibration.noise is None,
    )


def _promised(job: Job, calibration: NoiseSearchResult) -> float:
    """Return eta of the target; without noise the one that is proved, rounded up."""
    return (
        math.ceil(calibration.eta * 1e4) / 1e4 if calibration.noise is None and calibration.eta > 0 else job.target.eta
    )


def assumptions(job: Job, calibration: NoiseSearchResult) -> list[Term]:
    """List what the promise rests on."""
    k, n = job.mechanism.k, job.mechanism.n
    others = [Term("in_a_ledger"), ROLLED_BACK] if has_ledger(job) else [Term("no_ledger")]
    terms = [
        Term("drawn_in_secret", k=k, n=n),
        Term("knows_all_but_draw_and_noise", n=n),
        *others,
        *job.assumptions,
        Term("on_a_grid"),
    ]
    return [*terms, Term(BALL)] if isinstance(calibration.noise, BallNoise) else terms


def has_ledger(job: Job) -> bool:
    """Tell whether the release is noted in a ledger."""
    return isinstance(job.plan, ProtectionPlan) and job.plan.ledger is not None


def no_noise_words(calibration: NoiseSearchResult) -> str:
    """Say why no noise is needed."""
    return NO_NOISE[calibration.reason].format(eta=calibration.eta)


def _notes(job: Job, calibration: NoiseSearchResult, value: Float[Array, " d"] | None) -> list[str]:
    """List what a reader should know of the noise."""
    notes = [no_noise_words(calibration)] if calibration.reason else []
    if value is not None and not np.isfinite(value).all():
        notes.append("the statistic failed on the draw; that it did is all that is released")
    labels = np.array(job.mechanism.labels)
    without_noise = labels[~calibration.noisy_coords].tolist()
    if without_noise and calibration.noise is not None:
        notes.append(f"the same for (nearly) every draw, and released without noise: {', '.join(without_noise[:6])}")
    if calibration.n_failures:
        notes.append(
            f"{calibration.n_failures:,} of {calibration.n_fits:,} fits failed; each counts against the certificate"
        )
    return notes


def _values(job: Job, calibration: NoiseSearchResult, value: Float[Array, " d"] | None) -> tuple[ReleasedValue, ...]:
    """Make a row for each released number."""
    if value is None:
        return ()
    noise, k = calibration.rms, job.mechanism.k
    error = calibration.sampling_std if calibration.sampling_std is not None else np.full(len(noise), np.nan)
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


def _planned(job: Job, calibration: NoiseSearchResult) -> tuple[PlannedNumber, ...]:
    """List the noise of each number of a calibration."""
    mechanism = job.mechanism
    exact = np.zeros(mechanism.d)
    if mechanism.features is not None:
        exact = mechanism.prior * mechanism.features.sum(axis=0) / mechanism.divisor
    noise = calibration.rms
    family = "gaussian" if calibration.noise is None else _family(calibration.noise)
    table = table_for_publication(
        job.plan, mechanism.statistic, exact, noise, n_in_use=mechanism.k, is_gaussian=family == "gaussian"
    )
    unknown = np.full(mechanism.d, np.nan)
    finished = Finished(mechanism.labels, exact, noise, unknown, unknown)
    return planned_numbers(table, finished, calibration.sampling_std, family)


def _family(noise: Noise) -> str:
    """Name the family, as in ``leakbound.noise.families.FAMILIES``."""
    return type(noise).__name__.removesuffix("Noise").lower()


def _scale(noise: Noise) -> float:
    """Return the one parameter that was calibrated."""
    return float(noise.radius if isinstance(noise, BallNoise) else getattr(noise, "scale", math.nan))
