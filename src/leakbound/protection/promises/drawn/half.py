"""Promise drawn, step by step: k of the n records are drawn in secret, and their statistic is released with noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
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
from leakbound.protection.promises.drawn.certificate import public_report, refuse_exact, report_of, rms_finding
from leakbound.protection.promises.drawn.comparison import compared, total_errors
from leakbound.protection.promises.drawn.in_ledger import LedgerQuery, LedgerRelease, randomness
from leakbound.protection.promises.drawn.jobs import Job
from leakbound.protection.promises.drawn.noise_search import NoiseSearchResult, search_noise
from leakbound.protection.setting.elsewhere import (
    NOWHERE,
    Elsewhere,
    NamePeople,
    beside_the_data,
    note_begun,
    of_the_same_people,
    own_ledger,
    with_others,
)
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.protection.setting.request import Request
from leakbound.protection.setting.results import CalibratedNoise, Protected, rounded_to_rms
from leakbound.protection.setting.steps import Counted, Ready, Steps
from leakbound.protection.setting.units import people_of
from leakbound.reports import Curve
from leakbound.runtime.progress import progress

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class OfDraw(Steps):
    """The steps of promise drawn."""

    request: Request

    def check_signals(self) -> None:
        """Refuse signals of nobody, and of somebody to whom nothing is promised."""
        promise = self.request.plan.under(Drawn)
        if not promise.games:
            raise ValueError("signals are of simulated releases: games must be >= 1, got 0")
        if promise.about == "average":
            raise ValueError("signals are of the most exposed record, to whom about = average promises nothing")

    def calibrated(self, simulated: Callable[[Signals], Any] | None) -> CalibratedNoise:
        """Find the noise, from all n records, or from pairs of data sets that nobody uses."""
        ready = _prepared(Job.of(self.request), None, NOWHERE)
        if simulated:
            simulated(ready.signals())
        owner = report_of(ready.job, ready.calibration, None, ready.findings, ready.curves)
        return CalibratedNoise(ready.calibration.noise, owner)

    def declared(self) -> str:
        """Announce the query; the first one begins the ledger, and draws."""
        query, elsewhere = _in_its_ledger(self.request)
        if query is None:
            raise ValueError("declare needs a ledger")
        elsewhere.refuse()
        note_begun(self.request, query.path)
        return query.declare()

    def ready(self) -> _Ready:
        """Find the noise, and refuse what would be published exactly."""
        # The ledger, if there is one, says which coupling adds up with its earlier releases.
        query, elsewhere = _in_its_ledger(self.request)
        if query is None or query.is_new:
            elsewhere.refuse()
        job = Job.of(self.request) if query is None else query.job
        notes = (*self.request.owner_notes, *elsewhere.notes)
        return _prepared(replace(job, request=replace(self.request, owner_notes=notes)), query, elsewhere)


def _in_its_ledger(request: Request) -> tuple[LedgerQuery | None, Elsewhere]:
    """Find the place of a request in its ledger, if it has one, and its people in other ledgers."""
    names: NamePeople = cache(partial(people_of, request))
    path = None if request.ledger_path is None else own_ledger(request)
    elsewhere = beside_the_data(request, path)
    elsewhere.refuse()
    query = None
    if path is not None:
        query = LedgerQuery.of(Job.of(request), str(path), names() if request.insecure_seed is None else None)
    ledger = None if query is None else query.ledger
    elsewhere = elsewhere.with_(of_the_same_people(request, path, names, ledger, known=elsewhere.paths))
    for note in elsewhere.notes:
        request.tell_owner(note)
    return query, elsewhere


def _prepared(job: Job, query: LedgerQuery | None, elsewhere: Elsewhere) -> _Ready:
    """Find the noise, and what only the owner sees: how far attacks get, and what other methods need."""
    with progress("search for the noise"):
        calibration = search_noise(job.mechanism, job.target)
    if isinstance(job.plan, ProtectionPlan):
        refuse_exact(job, calibration)
    findings, curves = _owner_findings(job, calibration)
    return _Ready(job, calibration, findings, curves, query, elsewhere)


@dataclass(frozen=True, eq=False)
class _Ready(Ready):
    """A job with its noise, and with its place in a ledger if it has one."""

    job: Job
    calibration: NoiseSearchResult
    findings: Sequence[Finding]
    curves: Sequence[Curve]
    query: LedgerQuery | None
    elsewhere: Elsewhere

    def signals(self) -> Signals:
        """Simulate releases, of which an audit judges the most exposed record: the promise is to every one."""
        simulated = signals(self.job.mechanism, self.calibration.noise, _attack_config(self.job, self.calibration))
        is_target_point = np.arange(simulated.game.member.shape[1]) == 0
        return replace(simulated, game=replace(simulated.game, kind="per_datum", is_target_point=is_target_point))

    def counted(self) -> Counted:
        """Draw the records in use, unless a ledger holds the draw, and add the noise to their statistic."""
        mechanism, calibration, seed = self.job.mechanism, self.calibration, self.job.request.insecure_seed
        in_ledger = None
        if self.query is None:
            member = subsets(mechanism.n, mechanism.k, 1, randomness(seed, "draw"))[0]
            value = _released(mechanism, calibration, member, randomness(seed, "noise"))
        else:
            note_begun(self.query.job.request, self.query.path)
            in_ledger = self.query.release(calibration)
            value = in_ledger.value
        return _Counted(self, rounded_to_rms(value, calibration.rms), in_ledger)


@dataclass(frozen=True, eq=False)
class _Counted(Counted):
    """A value that nobody has seen yet."""

    ready: _Ready
    value: Float[Array, " d"]
    in_ledger: LedgerRelease | None

    def certified(self) -> Protected:
        """Write both halves of the certificate."""
        job, calibration, value = self.ready.job, self.ready.calibration, self.value
        note, joint = "", []
        if self.in_ledger is not None:
            note, joint = self.in_ledger.note, self.in_ledger.joint
        public = public_report(job, calibration, value, note)
        owner = report_of(job, calibration, value, [*self.ready.findings, *joint], self.ready.curves)
        elsewhere = self.ready.elsewhere
        return Protected(
            value,
            calibration.noise,
            with_others(public, elsewhere.releases, knows_people=elsewhere.knows_people),
            with_others(owner, elsewhere.releases, knows_people=elsewhere.knows_people),
        )

    def mark_published(self) -> None:
        """Tell the ledger, if there is one, that the value has reached its place."""
        if self.in_ledger is not None:
            self.in_ledger.ledger.mark_published(self.in_ledger.place)


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
