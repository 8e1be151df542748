"""The certificate of a release of who was drawn: what is promised, what was released, what it cost, who is exposed.

Everything in the public half is declared public (n, k, names of columns, levels, the plan), or the released value and
its noise as they are printed, or computed from these. The owner's half also holds exact functions of the file: what is
proved beyond the promise, sampling errors, attacks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.tradeoff import Piecewise
from leakbound.noise import BallNoise
from leakbound.plans.protects import ProtectionPlan
from leakbound.protection.certificate.facts import (
    FAILED,
    Audience,
    about_release,
    family_of,
    next_command,
    noise_facts,
    rows_of_values,
)
from leakbound.protection.certificate.office_rules import check_office_rules
from leakbound.protection.certificate.planned import planned_numbers
from leakbound.protection.certificate.published_table import counts_below_0, table_for_publication
from leakbound.protection.certificate.statistic_parameters import parameters_of
from leakbound.protection.promises.drawn.jobs import Job
from leakbound.protection.promises.drawn.noise_search import NoiseSearchResult
from leakbound.protection.setting.mechanism import game_of
from leakbound.releases.statistics.counts_and_sums import Finished
from leakbound.reports import Curve, Report
from leakbound.reports.about import CertificateFacts, PlannedNumber, ProtectedAbout, PublishedTable, term_facts

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
CHOSEN = "chosen_by_pilot"  # a coupling of the plan's "auto" for statistics that are fitted
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


def public_report(job: Job, calibration: NoiseSearchResult, value: Float[Array, " d"], note: str = "") -> Report:
    """Build the certificate that is published with a release."""
    # Everything here follows from the plan, n, k, the names of the columns, the printed noise and the value.
    eta, mechanism = job.target.eta, job.mechanism
    common = _common(job, calibration)
    common["source"] = SOURCES.get(_coupling(job, calibration), SOURCES["swap"])
    ceiling = promised_curve(eta, mechanism.prior)
    findings = [
        *_accuracy(job, eta, common),
        *(
            Finding("tpr", float(ceiling.tpr_at(rate)), operating_point={"fpr": rate}, **common)
            for rate in job.plan.fpr
        ),
        rms_finding(calibration, source=common["source"]),
    ]
    table = _table(job, calibration, value)
    notes = [ENOUGH] if calibration.noise is None else []
    if not np.isfinite(value).all():
        notes.append(FAILED)
    notes += counts_below_0([table])
    if note:
        notes.append(note)
    about = _about(job, calibration, "public", notes, value, table=table)
    return Report(about, findings, (Curve("certified", "", "certified", ceiling),))


def report_of(
    job: Job,
    calibration: NoiseSearchResult,
    value: Float[Array, " d"] | None = None,
    findings: Sequence[Finding] = (),
    curves: Sequence[Curve] = (),
) -> Report:
    """Build the owner's certificate of a calibration and, where a value is given, of its release."""
    ceiling = [] if calibration.band is None else [Curve("certified", "", "certified", calibration.band)]
    notes = [*job.request.owner_notes, *_notes(job, calibration, value)]
    contents: dict[str, Any] = {"rules": check_office_rules(job.plan, job.mechanism.statistic, job.request.data.points)}
    if value is None:
        contents["release_command"], refused = next_command(job.plan)
        contents["planned"] = _planned(job, calibration)
        notes += refused
    else:
        contents["table"] = _table(job, calibration, value)
    about = _about(job, calibration, "owner", notes, value, **contents)
    return Report(about, (*_allowed(job, calibration), *findings), (*ceiling, *curves))


def _about(
    job: Job,
    calibration: NoiseSearchResult,
    audience: Audience,
    notes: Sequence[str],
    value: Float[Array, " d"] | None,
    **contents: Any,
) -> ProtectedAbout:
    mechanism, values = job.mechanism, ()
    if value is not None:
        unknown = np.full(mechanism.d, np.nan)
        finished = Finished(mechanism.labels, value, calibration.rms, unknown, unknown)
        values = rows_of_values(finished, mechanism.k, calibration.sampling_std if audience == "owner" else None)
    return about_release(
        job.request,
        audience,
        _certificate(job, calibration, audience),
        [*job.request.notes, *notes],
        values=values,
        parameters=parameters_of(job.plan, mechanism.statistic, job.request.data.points),
        **contents,
    )


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


def _common(job: Job, calibration: NoiseSearchResult) -> dict[str, Any]:
    """Return what the findings of the promise share."""
    return {
        "bound_type": "upper",
        "status": "certified",
        "confidence": calibration.confidence,
        "game": game_of(job.mechanism),
        "assumptions": assumptions(job, calibration),
        "source": SOURCES[calibration.coupling],
    }


def _accuracy(job: Job, eta: float, common: Mapping[str, Any]) -> list[Finding]:
    """List how well any attacker guesses at most."""
    at = {"prior": job.mechanism.prior}
    return [
        Finding("accuracy", job.mechanism.prior_accuracy + eta, operating_point=at, **common),
        Finding("eta", eta, operating_point=at, **common),
    ]


def _allowed(job: Job, calibration: NoiseSearchResult) -> list[Finding]:
    """List what the certificate allows any attacker, and the size of the noise."""
    common = _common(job, calibration)
    findings = _accuracy(job, calibration.eta, common)
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


def _table(job: Job, calibration: NoiseSearchResult, value: Float[Array, " d"]) -> PublishedTable | None:
    """Make the table for publication from what was released."""
    return table_for_publication(
        job.plan,
        job.mechanism.statistic,
        value,
        calibration.rms,
        n_in_use=job.mechanism.k,
        is_gaussian=family_of(calibration.noise) == "gaussian",
    )


def _certificate(job: Job, calibration: NoiseSearchResult, audience: Audience) -> CertificateFacts:
    """State the promise; published is that of the target: what is proved beyond it is a function of the file."""
    mechanism, is_public, confidence = job.mechanism, audience == "public", calibration.confidence
    fits = calibration.n_fits
    if is_public:
        fits = None if confidence is None else job.target.fits
    return CertificateFacts(
        eta=job.target.eta if is_public else _promised(job, calibration),
        promise="drawn",
        design="half",
        about=job.target.about,
        prior=mechanism.prior,
        k=mechanism.k,
        n=mechanism.n,
        coupling=_coupling(job, calibration) if is_public else calibration.coupling,
        noise=noise_facts(
            calibration.noise,
            calibration.rms,
            calibration.grid,
            calibration.noisy_coords,
            divisor=mechanism.divisor,
            shape=calibration.printed_shape,
            declared=calibration.declared and calibration.noise is not None,
        ),
        exact=confidence is None,
        confidence=1.0 if confidence is None else confidence,
        pairs=None if is_public else calibration.n_pairs,
        fits=fits,
        failures=None if is_public else calibration.n_failures,
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
        *job.request.assumptions,
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
        notes.append(FAILED)
    labels = np.array(job.mechanism.labels)
    without_noise = labels[~calibration.noisy_coords].tolist()
    if without_noise and calibration.noise is not None:
        notes.append(f"the same for (nearly) every draw, and released without noise: {', '.join(without_noise[:6])}")
    if calibration.n_failures:
        notes.append(
            f"{calibration.n_failures:,} of {calibration.n_fits:,} fits failed; each counts against the certificate"
        )
    return notes


def _coupling(job: Job, calibration: NoiseSearchResult) -> str:
    """Name what proves the promise, if that follows from plan and statistic; a choice by pilot tells of the file."""
    if calibration.noise is None:
        return ""
    chosen = job.target.coupling == "auto" and job.mechanism.features is None
    return CHOSEN if chosen else calibration.coupling


def _planned(job: Job, calibration: NoiseSearchResult) -> tuple[PlannedNumber, ...]:
    """List the noise of each number of a calibration."""
    mechanism = job.mechanism
    exact = np.zeros(mechanism.d)
    if mechanism.features is not None:
        exact = mechanism.prior * mechanism.features.sum(axis=0) / mechanism.divisor
    unknown = np.full(mechanism.d, np.nan)
    finished = Finished(mechanism.labels, exact, calibration.rms, unknown, unknown)
    table = _table(job, calibration, exact)
    return planned_numbers(table, finished, calibration.sampling_std, family_of(calibration.noise))
