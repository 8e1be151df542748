"""Promise drawn, prepared: k of the n records are drawn, and the least noise that hides who was drawn.

Everything that is published is declared public (n, k, names of columns, levels, the plan), or the released value and
its noise as they are printed, or computed from these. What is proved beyond the promise, the coupling that a pilot
chose, sampling errors and attacks are exact functions of the file, for its owner.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.types import Signals
from leakbound.noise import BallNoise
from leakbound.plans.protects import ProtectionPlan
from leakbound.protection.attack.games import AttackConfig
from leakbound.protection.attack.release import attack_release, signals
from leakbound.protection.certificate.curves import promised_curve
from leakbound.protection.promises.drawn.jobs import Job
from leakbound.protection.promises.drawn.noise_search import NoiseSearchResult, search_noise
from leakbound.protection.setting.mechanism import game_of
from leakbound.protection.setting.prepared import Prepared
from leakbound.runtime.progress import progress

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


def least_noise(job: Job) -> NoiseSearchResult:
    """Find the noise, from all n records, or from pairs of data sets that nobody uses."""
    with progress("search for the noise"):
        calibration = search_noise(job.mechanism, job.target)
    if isinstance(job.plan, ProtectionPlan):
        refuse_exact(job, calibration)
    return calibration


def prepared_of(job: Job, calibration: NoiseSearchResult) -> Prepared:
    """Collect what a statistic of drawn records with its noise promises, and how far the best attack gets."""
    mechanism, target, confidence = job.mechanism, job.target, calibration.confidence
    config = _attack_config(job, calibration)
    with progress("attacks on simulated releases"):
        attacks, attack_curves = attack_release(mechanism, calibration.noise, config)
    expected = np.zeros(mechanism.d)
    if mechanism.features is not None:
        expected = mechanism.prior * mechanism.features.sum(axis=0)
    # published is the coupling where it follows from plan and statistic; a choice by pilot tells of the file
    coupling = _public_coupling(job, calibration)
    owner_facts = {
        "eta": _proved_eta(job, calibration),
        "coupling": calibration.coupling,
        "pairs": calibration.n_pairs,
        "fits": calibration.n_fits,
        "failures": calibration.n_failures,
    }
    prepared = Prepared(
        job.request,
        job.request.data.points,
        "half",
        mechanism.n,
        k=mechanism.k,
        labels=mechanism.labels,
        noise=calibration.noise,
        shape=calibration.printed_shape,
        noisy_coords=calibration.noisy_coords,
        grid=calibration.grid,
        rms=calibration.rms,
        declared=calibration.declared and calibration.noise is not None,
        scope=Scope(),
        game=game_of(mechanism),
        assumptions=assumptions(job, calibration),
        source=SOURCES[calibration.coupling],
        value_of=lambda left_out: expected,
        divisor=mechanism.divisor,
        prior=mechanism.prior,
        about=target.about,
        confidence=confidence,
        owner_notes=_notes(job, calibration),
        sampling_std=calibration.sampling_std,
        proved_eta=calibration.eta,
        curve=calibration.band,
        public_curve=promised_curve(target.eta, mechanism.prior),
        public_source=SOURCES.get(coupling, SOURCES["swap"]),
        owner_facts=owner_facts,
        public_facts={"coupling": coupling, "fits": None if confidence is None else target.fits},
        attacks=attacks,
        attack_curves=attack_curves,
        signals=lambda: _simulated(job, calibration, config),
    )
    if calibration.band is None:
        return prepared
    return replace(prepared, owner_findings=[_practical(job, calibration, prepared.common)])


def _attack_config(job: Job, calibration: NoiseSearchResult) -> AttackConfig:
    """Attack the most exposed record, of the release as it is rounded."""
    return AttackConfig(
        job.promise.games,
        job.target.seed,
        job.promise.confidence,
        job.plan.fpr,
        record=calibration.exposed,
        promise=job.target.about,
        grid=calibration.grid,
        noisy_coords=None if calibration.noise is None else calibration.noisy_coords,
    )


def _simulated(job: Job, calibration: NoiseSearchResult, config: AttackConfig) -> Signals:
    """Simulate releases, of which an audit judges the most exposed record: the promise is to every one."""
    simulated = signals(job.mechanism, calibration.noise, config)
    is_target_point = np.arange(simulated.game.member.shape[1]) == 0
    return replace(simulated, game=replace(simulated.game, kind="per_datum", is_target_point=is_target_point))


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


def _practical(job: Job, calibration: NoiseSearchResult, common: dict[str, Any]) -> Finding:
    """Report epsilon of practical membership privacy at the plan's delta."""
    at = {"delta": job.promise.delta}
    if isinstance(calibration.noise, BallNoise):
        return Finding("pmp_epsilon", None, operating_point=at, reason=Term(BALL))
    epsilon = calibration.band.epsilon(job.promise.delta) if calibration.band is not None else math.inf
    if math.isinf(epsilon):
        return Finding("pmp_epsilon", None, operating_point=at, reason=Term("no_epsilon", delta=job.promise.delta))
    return Finding("pmp_epsilon", epsilon, operating_point=at, **common)


def _proved_eta(job: Job, calibration: NoiseSearchResult) -> float:
    """Return eta of the target; without noise the one that is proved, rounded up."""
    if calibration.noise is None and calibration.eta > 0:
        return math.ceil(calibration.eta * 1e4) / 1e4
    return job.target.eta


def assumptions(job: Job, calibration: NoiseSearchResult) -> list[Term]:
    """List what the promise rests on."""
    k, n = job.mechanism.k, job.mechanism.n
    others = [Term("in_a_ledger"), ROLLED_BACK] if job.request.ledger_path is not None else [Term("no_ledger")]
    terms = [
        Term("drawn_in_secret", k=k, n=n),
        Term("knows_all_but_draw_and_noise", n=n),
        *others,
        *job.request.assumptions,
        Term("on_a_grid"),
    ]
    return [*terms, Term(BALL)] if isinstance(calibration.noise, BallNoise) else terms


def no_noise_words(calibration: NoiseSearchResult) -> str:
    """Say why no noise is needed."""
    return NO_NOISE[calibration.reason].format(eta=calibration.eta)


def _notes(job: Job, calibration: NoiseSearchResult) -> list[str]:
    """List what a reader should know of the noise."""
    notes = [no_noise_words(calibration)] if calibration.reason else []
    labels = np.array(job.mechanism.labels)
    without_noise = labels[~calibration.noisy_coords].tolist()
    if without_noise and calibration.noise is not None:
        notes.append(f"the same for (nearly) every draw, and released without noise: {', '.join(without_noise[:6])}")
    if calibration.n_failures:
        notes.append(
            f"{calibration.n_failures:,} of {calibration.n_fits:,} fits failed; each counts against the certificate"
        )
    return notes


def _public_coupling(job: Job, calibration: NoiseSearchResult) -> str:
    """Name what proves the promise, if that follows from plan and statistic; a choice by pilot tells of the file."""
    if calibration.noise is None:
        return ""
    chosen = job.target.coupling == "auto" and job.mechanism.features is None
    return CHOSEN if chosen else calibration.coupling
