"""The public calls: keywords or fields of a plan in, a calibration or a release out.

`jobs` makes one object of what was asked for, and `run` has the steps that follow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Required, TypedDict, Unpack

from leakscope.core.checks import known_keywords
from leakscope.core.types import Noise, Signals
from leakscope.plans.plan import asked_of, read
from leakscope.plans.protects import CalibrationPlan, ProtectionPlan
from leakscope.protection.jobs import arrays_job, file_job
from leakscope.protection.ledger_query import LedgerQuery
from leakscope.protection.run import CalibratedNoise, Protected, run_calibration, run_release
from leakscope.releases.statistics.statistic import Statistic
from leakscope.reports import Report
from leakscope.runtime.observe import Execution

Coupling = Literal["auto", "swap", "mixture_swap", "complement", "average_swap"]


class ArraysOptions(TypedDict, total=False):
    """Keywords of a query of arrays in addition to those that `declare` names: see `protect`."""

    k: int | None
    promise: Literal["every", "average"]
    levels: Mapping[str, Sequence[Any]]
    by: str | Sequence[str]
    set: Mapping[str, Any]
    noise_scale: float | Sequence[float] | None
    coupling: Coupling
    confidence: float
    fits: int
    games: int
    delta: float
    compare: bool
    clip: float | None
    ranges: str | Sequence[str]
    pairs_seed: int
    title: str
    unit: str
    date: str
    fpr: float | Sequence[float]


class CalibrationOptions(ArraysOptions, total=False):
    """Keywords of a query of a file: the fields of ``leakscope.plans.CalibrationPlan``, which says what they mean."""

    data: Required[str | os.PathLike[str]]
    label: str | None
    drop: Sequence[str]
    separator: str | None
    decimal: Literal[".", ","] | None
    statistic: str
    noise: str
    eta: Required[float]


class ProtectionOptions(CalibrationOptions, total=False):
    """Keywords of a release of a file: the fields of ``leakscope.plans.ProtectionPlan``, which says what they mean."""

    ledger: str | os.PathLike[str] | None
    declare: bool
    insecure_seed: int | None


@known_keywords()
def calibrate(
    statistic: str | Callable[..., Any] | Statistic,
    x: Any,
    y: Any = None,
    *,
    eta: float,
    k: int | None = None,
    promise: Literal["every", "average"] = "every",
    noise: str | Noise | Callable[[float], Noise] = "gaussian",
    noise_scale: float | Sequence[float] | None = None,
    coupling: Coupling = "auto",
    by: str | Sequence[str] = (),
    levels: Mapping[str, Sequence[Any]] | None = None,
    set: Mapping[str, Any] | None = None,
    confidence: float = 0.95,
    fits: int = 2000,
    games: int = 2000,
    delta: float = 1e-5,
    compare: bool = False,
    clip: float | None = None,
    ranges: str | Sequence[str] = (),
    pairs_seed: int = 0,
    title: str = "",
    unit: str = "record",
    date: str = "",
    fpr: float | Sequence[float] = (0.01, 0.001),
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    tmp: str | os.PathLike[str] | None = None,
) -> CalibratedNoise:
    """Find the least noise with which a statistic of a random subset keeps a promise; nothing is released.

    Parameters
    ----------
    statistic : str, callable, or Statistic
        A row of ``leakscope.releases.statistics.statistic.STATISTICS``, ``"module:function"``, or a function of the
        records that gives an array of fixed shape.
    x : array-like of shape (n, p), or frame of n rows
        All records, of which k are drawn.
    y : array-like of shape (n,), optional
        Response of a regression.
    eta : float
        Accuracy above the better prior guess that is allowed, > 0 and < min(k/n, 1 - k/n).
    k : int, optional
        Records that are drawn; half of them unless given.
    promise : {"every", "average"}
        To every record, or to a record drawn at random.
    noise : str, Noise, or callable
        A row of ``leakscope.noise.families.FAMILIES``; a noise as it is, which is refused unless it keeps eta; or
        the noise of each scale.
    noise_scale : float or sequence of float, optional
        A scale that is public beforehand, for all numbers or for each: it is refused unless it keeps eta. The least
        that does unless given.
    coupling : {"auto", "swap", "mixture_swap", "complement", "average_swap"}
        The proof of the promise.
    by : str or sequence of str
        Columns of a histogram or a table.
    levels : mapping of str to sequence, optional
        Public levels of the columns of a table, as ``{"sector": ["care", "trade"]}``.
    set : mapping, optional
        Parameters of the statistic, as ``{"probabilities": [0.5]}``.
    confidence : float
        Of a certificate from sampled pairs.
    fits : int
        Fits of the statistic that the calibration may take.
    games : int
        Simulated releases on which the best attack is tried; 0 for none.
    delta : float
        Of the epsilon of practical membership privacy.
    compare : bool
        Add the noise that other methods need for the same promise.
    clip : float, optional
        With ``compare``: no value of a column without a range is larger; for differential privacy.
    ranges : str or sequence of str
        With ``compare``: the least and the largest value of columns, as ``"wage=0:80"``; for differential privacy.
    pairs_seed : int
        Of the pairs and the simulated releases, never of a real one.
    title : str
        The question on top of the page.
    unit : str
        The unit of privacy in words: record, person, household.
    date : str
        Printed on the page as it is.
    fpr : float or sequence of float
        False positive rates of interest, as fractions.
    store : path, optional
        Folder where finished fits of the calibration stay.
    n_jobs : int, optional
        Workers; all cores unless given.
    tmp : path, optional
        Where the workers' temporary files lie, among them the records, in a folder that is readable by its owner
        alone; in the store unless given.

    Returns
    -------
    CalibratedNoise
        The noise, and a certificate without values.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope as ls
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> calibration = ls.calibrate("mean", rows, eta=0.1, games=0)
    >>> calibration.noise.rms(2) < 0.2
    True
    """
    options = {
        "eta": eta,
        "k": k,
        "promise": promise,
        "noise_scale": noise_scale,
        "coupling": coupling,
        "by": by,
        "levels": levels,
        "set": set,
        "confidence": confidence,
        "fits": fits,
        "games": games,
        "delta": delta,
        "compare": compare,
        "clip": clip,
        "ranges": ranges,
        "pairs_seed": pairs_seed,
        "title": title,
        "unit": unit,
        "date": date,
        "fpr": fpr,
    }
    execution = Execution(store, n_jobs, tmp)
    fields = asked_of(CalibrationPlan, options)
    return run_calibration(arrays_job(CalibrationPlan, statistic, x, y, noise, fields, execution))


@known_keywords({"insecure_seed": "seed", "declare": "leakscope.protection.declare"})
def protect(
    statistic: str | Callable[..., Any] | Statistic,
    x: Any,
    y: Any = None,
    *,
    eta: float,
    k: int | None = None,
    promise: Literal["every", "average"] = "every",
    noise: str | Noise | Callable[[float], Noise] = "gaussian",
    noise_scale: float | Sequence[float] | None = None,
    coupling: Coupling = "auto",
    by: str | Sequence[str] = (),
    levels: Mapping[str, Sequence[Any]] | None = None,
    set: Mapping[str, Any] | None = None,
    confidence: float = 0.95,
    fits: int = 2000,
    games: int = 2000,
    delta: float = 1e-5,
    compare: bool = False,
    clip: float | None = None,
    ranges: str | Sequence[str] = (),
    pairs_seed: int = 0,
    title: str = "",
    unit: str = "record",
    date: str = "",
    fpr: float | Sequence[float] = (0.01, 0.001),
    ledger: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    tmp: str | os.PathLike[str] | None = None,
) -> Protected:
    """Release a statistic of a random subset of the records with the least noise that keeps a promise.

    k of the n records are drawn in secret, the statistic of those alone is computed, and noise is added. Whoever
    knows all n records, and sees the release, guesses whether a given record was drawn with an accuracy of at most
    ``max(k/n, 1 - k/n) + eta``. This holds for every attacker, with the assumptions in the certificate.

    Parameters
    ----------
    statistic : str, callable, or Statistic
        A row of ``leakscope.releases.statistics.statistic.STATISTICS``, ``"module:function"``, or a function of the
        records that gives an array of fixed shape.
    x : array-like of shape (n, p), or frame of n rows
        All records, of which k are drawn.
    y : array-like of shape (n,), optional
        Response of a regression.
    eta : float
        Accuracy above the better prior guess that is allowed, > 0 and < min(k/n, 1 - k/n).
    k : int, optional
        Records that are drawn; half of them unless given.
    promise : {"every", "average"}
        To every record, or to a record drawn at random.
    noise : str, Noise, or callable
        A row of ``leakscope.noise.families.FAMILIES``; a noise as it is, which is refused unless it keeps eta; or
        the noise of each scale.
    noise_scale : float or sequence of float, optional
        A scale that is public beforehand, for all numbers or for each: it is refused unless it keeps eta. The least
        that does unless given.
    coupling : {"auto", "swap", "mixture_swap", "complement", "average_swap"}
        The proof of the promise.
    by : str or sequence of str
        Columns of a histogram or a table.
    levels : mapping of str to sequence, optional
        Public levels of the columns of a table, as ``{"sector": ["care", "trade"]}``.
    set : mapping, optional
        Parameters of the statistic, as ``{"probabilities": [0.5]}``.
    confidence : float
        Of a certificate from sampled pairs.
    fits : int
        Fits of the statistic that the calibration may take.
    games : int
        Simulated releases on which the best attack is tried; 0 for none.
    delta : float
        Of the epsilon of practical membership privacy.
    compare : bool
        Add the noise that other methods need for the same promise.
    clip : float, optional
        With ``compare``: no value of a column without a range is larger; for differential privacy.
    ranges : str or sequence of str
        With ``compare``: the least and the largest value of columns, as ``"wage=0:80"``; for differential privacy.
    pairs_seed : int
        Of the pairs and the simulated releases, never of a real one.
    title : str
        The question on top of the page.
    unit : str
        The unit of privacy in words: record, person, household.
    date : str
        Printed on the page as it is.
    fpr : float or sequence of float
        False positive rates of interest, as fractions.
    ledger : path, optional
        Private file that remembers the draw, for further releases of it; see `leakscope.protection.declare`.
    seed : int, optional
        Draw and noise from this seed: for tests. The certificate says that it is not for publication.
    store : path, optional
        Folder where finished fits of the calibration stay.
    n_jobs : int, optional
        Workers; all cores unless given.
    tmp : path, optional
        Where the workers' temporary files lie, among them the records, in a folder that is readable by its owner
        alone; in the store unless given.

    Returns
    -------
    Protected
        The value for publication, its noise, and both halves of the certificate.

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
    >>> released.value.shape, released.certificate.about.certificate.coupling
    ((2,), 'swap')
    """
    options = {
        "eta": eta,
        "k": k,
        "promise": promise,
        "noise_scale": noise_scale,
        "coupling": coupling,
        "by": by,
        "levels": levels,
        "set": set,
        "confidence": confidence,
        "fits": fits,
        "games": games,
        "delta": delta,
        "compare": compare,
        "clip": clip,
        "ranges": ranges,
        "pairs_seed": pairs_seed,
        "title": title,
        "unit": unit,
        "date": date,
        "fpr": fpr,
        "ledger": ledger,
        "insecure_seed": seed,
    }
    execution = Execution(store, n_jobs, tmp)
    fields = asked_of(ProtectionPlan, options)
    return run_release(arrays_job(ProtectionPlan, statistic, x, y, noise, fields, execution))


def calibrate_file(
    *,
    command: str = "",
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    tmp: str | os.PathLike[str] | None = None,
    simulated: Callable[[Signals], Any] | None = None,
    **options: Unpack[CalibrationOptions],
) -> CalibratedNoise:
    """Do for a file what `calibrate` does for arrays: ``leakscope calibrate``.

    Parameters
    ----------
    command, store, n_jobs, tmp, simulated
        As in `protect_file`.
    **options
        As in `protect_file`, without ``ledger``, ``declare`` and ``insecure_seed``.
    """
    job = file_job(read(CalibrationPlan, options, "calibrate"), Execution(store, n_jobs, tmp), command)
    return run_calibration(job, simulated)


def protect_file(
    *,
    command: str = "",
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    tmp: str | os.PathLike[str] | None = None,
    before: Callable[[], Any] = lambda: None,
    simulated: Callable[[Signals], Any] | None = None,
    publish: Callable[[Report, Report], Any] = lambda public, owner: None,
    **options: Unpack[ProtectionOptions],
) -> Protected:
    """Do for a file what `protect` does for arrays: ``leakscope protect``.

    Parameters
    ----------
    command : str
        Printed on the page.
    store, n_jobs, tmp
        As in `protect`.
    before : callable
        Called when all is calibrated and nothing is drawn yet: the last moment to refuse.
    simulated : callable, optional
        Called after that with simulated releases of the same noise, for an audit of the promise; still before the
        draw. They are never a real draw or a real noise.
    publish : callable
        Called with the two halves of the certificate, the public one and the owner's. If it does not return, a ledger
        knows that the release has not reached its place, and the same call gives the same bytes again.
    **options
        The fields of a ``leakscope.plans.ProtectionPlan``: ``data`` (a file or a named set), ``label`` and ``drop``
        (columns), ``separator`` and ``decimal`` (of CSV), ``statistic`` and ``noise`` by their names, ``ledger``,
        ``declare``, ``insecure_seed`` (`protect` calls it seed), and as in `protect` ``eta``, ``k``, ``promise``,
        ``noise_scale``, ``coupling``, ``by``, ``levels``, ``set``, ``confidence``, ``fits``, ``games``, ``delta``,
        ``compare``, ``clip``, ``ranges``, ``pairs_seed``, ``title``, ``unit``, ``date``, ``fpr``.
    """
    plan = read(ProtectionPlan, options, "protect")
    job = file_job(plan, Execution(store, n_jobs, tmp), command)
    return run_release(job, before, simulated, publish)


def declare(
    statistic: str | Callable[..., Any] | Statistic,
    x: Any,
    y: Any = None,
    *,
    eta: float,
    ledger: str | os.PathLike[str],
    noise: str | Noise | Callable[[float], Noise] = "gaussian",
    seed: int | None = None,
    **options: Unpack[ArraysOptions],
) -> str:
    """Announce a query in a ledger, before the first release of its draw; what was done, in a line.

    Parameters
    ----------
    statistic, x, y, eta, noise, seed
        As in `protect`: those with which it will be released. The first query begins the ledger, and draws.
    ledger : path
        Private file.
    **options
        As in `protect`: ``k``, ``promise``, ``noise_scale``, ``coupling``, ``by``, ``levels``, ``set``,
        ``confidence``, ``fits``, ``games``, ``delta``, ``compare``, ``clip``, ``ranges``, ``pairs_seed``, ``title``,
        ``unit``, ``date``, ``fpr``.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import leakscope as ls
    >>> from leakscope.protection import declare
    >>> rows, ledger = np.random.default_rng(0).normal(size=(100, 2)), f"{tempfile.mkdtemp()}/ledger.json"
    >>> for name in ("mean", "sum"):
    ...     print(declare(name, rows, eta=0.1, ledger=ledger).split(": ")[1])
    1 declared, 0 released
    2 declared, 0 released
    >>> ls.protect("mean", rows, eta=0.1, ledger=ledger, games=0).value.shape
    (2,)
    """
    fields = dict(options, eta=eta, insecure_seed=seed, ledger=os.fspath(ledger), declare=True)
    job = arrays_job(ProtectionPlan, statistic, x, y, noise, fields, Execution())
    return LedgerQuery.of(job, os.fspath(ledger)).declare()


def declare_file(**options: Unpack[ProtectionOptions]) -> str:
    """Announce a query of a file in a ledger, before its first release; what was done, in a line.

    Parameters
    ----------
    **options
        As in `protect_file`.
    """
    plan = read(ProtectionPlan, dict(options, declare=True), "protect")
    return LedgerQuery.of(file_job(plan, Execution(), ""), plan.ledger or "").declare()
