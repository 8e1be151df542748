"""Design half, step by step: k of the n records are drawn in secret, and their statistic is released with noise.

Everything that can be refused is refused before the next step: first the plan, then the ledger, the noise,
what would be published exactly, the last question of the caller. Only then are the records in use drawn, unless a
ledger already holds the draw, and the ledger is written before the value is published.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from leakbound.core.findings import Finding
from leakbound.core.reasons import as_reason
from leakbound.core.seeds import subsets
from leakbound.core.types import Signals
from leakbound.plans.promises import Anyone, Drawn
from leakbound.plans.protects import ProtectionPlan
from leakbound.protection.attack.games import AttackConfig
from leakbound.protection.attack.release import attack_release, signals
from leakbound.protection.comparison import compared, total_errors
from leakbound.protection.ledger.elsewhere import NOWHERE, Elsewhere, with_others
from leakbound.protection.mechanism import Mechanism
from leakbound.protection.promises.drawn.in_ledger import LedgerQuery, randomness
from leakbound.protection.promises.drawn.jobs import Job
from leakbound.protection.promises.drawn.noise_search import NoiseSearchResult, search_noise
from leakbound.protection.promises.drawn.owner import report_of, rms_finding
from leakbound.protection.promises.drawn.public import public_report, refuse_exact
from leakbound.protection.results import CalibratedNoise, Protected
from leakbound.reports import Curve, Report
from leakbound.reports.numbers import rounded_to_noise
from leakbound.runtime.progress import progress

Array = np.ndarray


def calibrate_half(job: Job, simulated: Callable[[Signals], Any] | None = None) -> CalibratedNoise:
    """Find the noise of a job and its certificate; nothing is drawn."""
    if simulated:
        _check_audited(job.promise)
    with progress("search for the noise"):
        calibration = search_noise(job.mechanism, job.target)
    findings, curves = _owner_findings(job, calibration)
    if simulated:
        simulated(_audited_signals(job, calibration))
    return CalibratedNoise(calibration.noise, report_of(job, calibration, None, findings, curves))


def release_half(
    job: Job,
    before: Callable[[], Any] = lambda: None,
    simulated: Callable[[Signals], Any] | None = None,
    publish: Callable[[Report, Report], Any] = lambda public, owner: None,
    ledger_query: LedgerQuery | None = None,
    elsewhere: Elsewhere = NOWHERE,
    note_begun: Callable[[], Any] = lambda: None,
) -> Protected:
    """Find the noise of a job, draw the records in use, and release their statistic."""
    if simulated:
        _check_audited(job.promise)
    # The ledger, if there is one, says which coupling adds up with its earlier releases.
    plan = job.plan
    seed = plan.insecure_seed if isinstance(plan, ProtectionPlan) else None
    if ledger_query is not None:
        job = ledger_query.job
    # The noise: from all n records, or from pairs of data sets that nobody uses.
    with progress("search for the noise"):
        calibration = search_noise(job.mechanism, job.target)
    refuse_exact(job, calibration)
    # What only the owner sees: how far attacks get on simulated releases, and what other methods need.
    findings, curves = _owner_findings(job, calibration)
    # The last moment to refuse.
    before()
    if simulated:
        simulated(_audited_signals(job, calibration))
    # The draw, the statistic of the k records and the noise; a ledger notes the release before anybody sees it.
    ledger_release = None
    if ledger_query is None:
        member = subsets(job.mechanism.n, job.mechanism.k, 1, randomness(seed, "draw"))[0]
        value = _released(job.mechanism, calibration, member, randomness(seed, "noise"))
    else:
        note_begun()
        ledger_release = ledger_query.release(calibration)
        value = ledger_release.value
        findings = [*findings, *ledger_release.joint]
    value = np.array([rounded_to_noise(*pair) for pair in zip(value.tolist(), calibration.rms.tolist(), strict=True)])
    # Both halves of the certificate, published together.
    note = "" if ledger_release is None else ledger_release.note
    public = public_report(job, calibration, value, seed is not None, note)
    owner = report_of(job, calibration, value, findings, curves, seed is not None)
    public, owner = (
        with_others(half, elsewhere.releases, knows_people=elsewhere.knows_people) for half in (public, owner)
    )
    publish(public, owner)
    if ledger_release is not None:
        ledger_release.ledger.mark_published(ledger_release.place)
    return Protected(value, calibration.noise, public, owner)


def _check_audited(promise: Drawn) -> None:
    """Refuse, before anything is computed, signals that would audit no promise."""
    if not promise.games:
        raise ValueError("signals are of simulated releases: games must be >= 1, got 0")
    if promise.about == "average":
        raise ValueError("signals are of the most exposed record, to whom about = average promises nothing")


def _released(
    mechanism: Mechanism, calibration: NoiseSearchResult, member: Bool[Array, " n"], rng: np.random.Generator
) -> Float[Array, " d"]:
    """Add a draw of the noise to the statistic of the members."""
    noise = np.zeros(mechanism.d)
    if calibration.noise is not None:
        n_noised = int(calibration.noisy_coords.sum())
        noise[calibration.noisy_coords] = calibration.noise.sample(np.zeros(n_noised), rng)
    return mechanism.release(member, noise, calibration.grid, rng)


def _owner_findings(job: Job, calibration: NoiseSearchResult) -> tuple[list[Finding], list[Curve]]:
    """Find how far the best attack gets, and what other methods need."""
    with progress("attacks on simulated releases"):
        findings, curves = attack_release(job.mechanism, calibration.noise, _attack_config(job, calibration))
    if job.plan.compare:
        with progress("noise of other methods"):
            findings += _compared(job, calibration)
    return findings, curves


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


def _audited_signals(job: Job, calibration: NoiseSearchResult) -> Signals:
    """Simulate releases, of which an audit judges the most exposed record: the promise is to every one."""
    simulated = signals(job.mechanism, calibration.noise, _attack_config(job, calibration))
    is_target_point = np.arange(simulated.game.member.shape[1]) == 0
    return replace(simulated, game=replace(simulated.game, kind="per_datum", is_target_point=is_target_point))


def _compared(job: Job, calibration: NoiseSearchResult) -> list[Finding]:
    """Find the noise of other methods, ours for the other promise, and the total errors of ours and of DP."""
    plan, target = job.plan, job.target
    other = replace(target, about="average" if target.about == "every" else "every", coupling="auto")
    name = "random_record" if other.about == "average" else "every_record"
    try:
        ours = rms_finding(search_noise(job.mechanism, other), name, other.about)
    except ValueError as reason:
        ours = Finding("noise_rms", None, release=name, reason=as_reason(reason))
    n_draws, ranges = target.fits // 2, plan.under(Anyone).ranges
    theirs = compared(job.mechanism, target.eta, n_draws, target.seed, ranges)
    errors = total_errors(job.mechanism, target.eta, calibration.rms, ranges, n_draws=n_draws, seed=target.seed)
    return [ours, *theirs, *errors]
