"""Release a statistic with the least noise that keeps a promise, and with a certificate of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from leakscope.findings import Finding
from leakscope.observing import Workshop
from leakscope.plans.plan import read
from leakscope.plans.protects import CalibrationPlan, ProtectionPlan
from leakscope.protecting.calibrating import Calibrated, calibrated
from leakscope.protecting.certifying import report_of, rms_finding
from leakscope.protecting.comparing import compared
from leakscope.protecting.contesting import contest, signals
from leakscope.protecting.jobs import Given, Job, arrays_job, file_job
from leakscope.protecting.mechanisms import Mechanism
from leakscope.protecting.remembering import Memory, randomness
from leakscope.protecting.simulating import Contest
from leakscope.releases.statistics import Statistic
from leakscope.report import Curve, Report
from leakscope.seeds import subsets
from leakscope.types import Noise, Signals

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class CalibratedNoise:
    """The noise that a promise needs, before anything is released.

    Parameters
    ----------
    noise : Noise or None
        None where none is needed.
    certificate : Report
        What will be promised, and by which noise; without values.
    """

    noise: Noise | None
    certificate: Report


@dataclass(frozen=True, eq=False)
class Protected:
    """A statistic that was released with its noise.

    Parameters
    ----------
    value : array of shape (d,)
        What may be published.
    noise : Noise or None
        The law of the noise; None where none was needed. The draw is kept nowhere.
    certificate : Report
        What is promised, with the value.
    """

    value: Float[Array, " d"]
    noise: Noise | None
    certificate: Report

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Value and certificate as JSON; written beside the file and renamed where a path is given."""
        return self.certificate.to_json(path)


def calibrate(
    statistic: str | Callable[..., Any] | Statistic,
    x: Any,
    y: Any = None,
    *,
    eta: float,
    noise: str | Noise | Callable[[float], Noise] = "gaussian",
    store: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    **words: Any,
) -> CalibratedNoise:
    """The least noise with which a statistic of a random subset keeps a promise; nothing is released.

    Parameters
    ----------
    statistic, x, y, eta, noise, store, jobs, **words
        As in `protect`.

    Returns
    -------
    CalibratedNoise

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope as ls
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> found = ls.calibrate("mean", rows, eta=0.1, games=0)
    >>> found.noise.rms(2) < 0.2
    True
    """
    given = Given(statistic, x, y, noise)
    return _calibration(arrays_job(CalibrationPlan, given, dict(words, eta=eta), Workshop(store, jobs)))


def protect(
    statistic: str | Callable[..., Any] | Statistic,
    x: Any,
    y: Any = None,
    *,
    eta: float,
    noise: str | Noise | Callable[[float], Noise] = "gaussian",
    seed: int | None = None,
    store: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    **words: Any,
) -> Protected:
    """Release a statistic of a random subset of the records with the least noise that keeps a promise.

    k of the n records are drawn in secret, the statistic of those alone is computed, and noise is added. Whoever
    knows all n records, and sees the release, guesses whether a given record was drawn with an accuracy of at most
    ``max(k/n, 1 - k/n) + eta``. This holds for every attacker, with the assumptions in the certificate.

    Parameters
    ----------
    statistic : str, callable, or Statistic
        A row of ``leakscope.releases.statistics.STATISTICS``, ``"module:function"``, or a function of the records
        that gives an array of fixed shape.
    x : array-like of shape (n, p), or frame of n rows
        All records, of which k are drawn.
    y : array-like of shape (n,), optional
        Response of a regression.
    eta : float
        Accuracy above the better prior guess that is allowed, > 0 and < min(k/n, 1 - k/n).
    noise : str, Noise, or callable
        A row of ``leakscope.noise.families.FAMILIES``; a noise as it is, which is refused unless it keeps eta; or
        the noise of each scale.
    seed : int, optional
        Draw and noise from this seed: for tests. The certificate says that it is not for publication.
    store : path, optional
        Folder where finished fits of the calibration stay.
    jobs : int, optional
        Workers; all cores unless given.
    **words
        Further fields of ``leakscope.plans.ProtectionPlan``: k, promise, coupling, confidence, fits, games, ledger,
        compare, clip, delta, pairs_seed, title, unit, fpr, date, and ``set`` for the parameters of the
        statistic.

    Returns
    -------
    Protected

    Raises
    ------
    ValueError
        In one line, before anything is drawn: what was given, what is allowed.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope as ls
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> released = ls.protect("mean", rows, eta=0.1, games=0)
    >>> released.value.shape, released.certificate.about["certificate"]["coupling"]
    ((2,), 'swap')
    """
    given = Given(statistic, x, y, noise)
    for name, instead in (("insecure_seed", "seed"), ("declare", "leakscope.protecting.declare")):
        if name in words:
            raise ValueError(f"protect takes no {name}; use {instead}")
    words = dict(words, eta=eta, insecure_seed=seed)
    return _protection(arrays_job(ProtectionPlan, given, words, Workshop(store, jobs)))


def calibrate_file(
    *,
    command: str = "",
    store: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    simulated: Callable[[Signals], Any] | None = None,
    **words: Any,
) -> CalibratedNoise:
    """`calibrate` for a file: what ``leakscope calibrate`` does with the fields of a ``CalibrationPlan``.

    Parameters
    ----------
    command, store, jobs, simulated
        As in `protect_file`.
    """
    job = file_job(read(CalibrationPlan, words, "calibrate"), Workshop(store, jobs), command)
    return _calibration(job, _audited(job.plan, simulated))


def protect_file(
    *,
    command: str = "",
    store: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    before: Callable[[], Any] = lambda: None,
    simulated: Callable[[Signals], Any] | None = None,
    **words: Any,
) -> Protected:
    """`protect` for a file: what ``leakscope protect`` does with the fields of a ``ProtectionPlan``.

    Parameters
    ----------
    command : str
        Printed on the page.
    store, jobs
        As in `protect`.
    before : callable
        Called when all is calibrated and nothing is drawn yet: the last moment to refuse.
    simulated : callable, optional
        Called after that with simulated releases of the same noise, for an audit of the promise; still before the
        draw. They are never a real draw or a real noise.
    """
    plan = read(ProtectionPlan, words, "protect")
    return _protection(file_job(plan, Workshop(store, jobs), command), before, _audited(plan, simulated))


def declare(
    statistic: str | Callable[..., Any] | Statistic,
    x: Any,
    y: Any = None,
    *,
    eta: float,
    ledger: str | os.PathLike[str],
    noise: str | Noise | Callable[[float], Noise] = "gaussian",
    seed: int | None = None,
    **words: Any,
) -> str:
    """Announce a query in a ledger, before the first release of its draw; what was done, in a line.

    Parameters
    ----------
    statistic, x, y, eta, noise, seed, **words
        As in `protect`: those with which it will be released. The first query begins the ledger, and draws.
    ledger : path
        Private file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import leakscope as ls
    >>> from leakscope.protecting import declare
    >>> rows, ledger = np.random.default_rng(0).normal(size=(100, 2)), f"{tempfile.mkdtemp()}/ledger.json"
    >>> for name in ("mean", "sum"):
    ...     print(declare(name, rows, eta=0.1, ledger=ledger).split(": ")[1])
    1 declared, 0 released
    2 declared, 0 released
    >>> ls.protect("mean", rows, eta=0.1, ledger=ledger, games=0).value.shape
    (2,)
    """
    words = dict(words, eta=eta, insecure_seed=seed, ledger=os.fspath(ledger), declare=True)
    job = arrays_job(ProtectionPlan, Given(statistic, x, y, noise), words, Workshop())
    return Memory.of(job, os.fspath(ledger)).declared()


def declare_file(**words: Any) -> str:
    """Announce a query in a ledger, before its first release; what was done, in a line."""
    plan = read(ProtectionPlan, dict(words, declare=True), "protect")
    return Memory.of(file_job(plan, Workshop(), ""), plan.ledger or "").declared()


def _calibration(job: Job, simulated: Callable[[Signals], Any] | None = None) -> CalibratedNoise:
    found = calibrated(job.mechanism, job.asked)
    findings, curves = _beside(job, found)
    if simulated:
        simulated(_signals(job, found))
    return CalibratedNoise(found.noise, report_of(job, found, None, findings, curves))


def _protection(
    job: Job, before: Callable[[], Any] = lambda: None, simulated: Callable[[Signals], Any] | None = None
) -> Protected:
    """Everything that can be refused comes before the draw, and the ledger before the value."""
    plan = job.plan
    insecure = plan.insecure_seed if isinstance(plan, ProtectionPlan) else None
    memory = Memory.of(job, plan.ledger) if isinstance(plan, ProtectionPlan) and plan.ledger else None
    job = memory.job if memory else job
    found = calibrated(job.mechanism, job.asked)
    findings, curves = _beside(job, found)
    before()
    if simulated:
        simulated(_signals(job, found))
    if memory:
        ledger, joint = memory.appended(found)
        findings, member = [*findings, *joint], ledger.draw.member
    else:
        member = subsets(job.mechanism.n, job.mechanism.k, 1, randomness(insecure, "draw"))[0]
    value = _released(job.mechanism, found, member, randomness(insecure, "noise"))
    return Protected(value, found.noise, report_of(job, found, value, findings, curves, insecure is not None))


def _released(
    mechanism: Mechanism, found: Calibrated, member: Bool[Array, " n"], rng: np.random.Generator
) -> Float[Array, " d"]:
    drawn = np.zeros(mechanism.d)
    if found.noise is not None:
        drawn[found.noised] = found.noise.sample(np.zeros(int(found.noised.sum())), rng)
    return mechanism.release(member, drawn, found.grid, rng)


def _beside(job: Job, found: Calibrated) -> tuple[list[Finding], list[Curve]]:
    """What the best attack reaches, and what other methods need."""
    contested = contest(job.mechanism, found.noise, _contest(job, found))
    return [*contested.findings, *(_compared(job) if job.plan.compare else [])], list(contested.curves)


def _contest(job: Job, found: Calibrated) -> Contest:
    """How the release is attacked."""
    plan, asked, noised = job.plan, job.asked, None if found.noise is None else found.noised
    place = (found.exposed, asked.promise, plan.unit, found.grid, noised)
    return Contest(plan.games, asked.seed, plan.confidence, plan.fpr, *place)


def _signals(job: Job, found: Calibrated) -> Signals:
    """Simulated releases, of which an audit judges the most exposed record: the promise is to every one."""
    made = signals(job.mechanism, found.noise, _contest(job, found))
    first = np.arange(made.game.member.shape[1]) == 0
    return replace(made, game=replace(made.game, kind="per_datum", judged=first))


def _audited(plan: CalibrationPlan, simulated: Callable[[Signals], Any] | None) -> Callable[[Signals], Any] | None:
    """Refused before anything is computed where the signals would audit no promise."""
    if simulated and not plan.games:
        raise ValueError("signals are of simulated releases: games must be >= 1, got 0")
    if simulated and plan.promise == "average":
        raise ValueError("signals are of the most exposed record, to whom promise = average promises nothing")
    return simulated


def _compared(job: Job) -> list[Finding]:
    """The noise of other methods, and ours for the other promise."""
    plan, asked = job.plan, job.asked
    other = replace(asked, promise="average" if asked.promise == "every" else "every", coupling="auto")
    name = f"the same, for {'a random' if other.promise == 'average' else 'every'} {plan.unit}"
    try:
        ours = rms_finding(calibrated(job.mechanism, other), name, other.promise)
    except ValueError as reason:
        ours = Finding("noise_rms", None, release=name, reason=str(reason))
    return [ours, *compared(job.mechanism, asked.eta, plan.clip, asked.fits // 2, asked.seed)]
