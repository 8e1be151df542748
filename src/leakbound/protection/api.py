"""The public calls: keywords or fields of a plan in, a calibration or a release out.

`request` makes one object of what was asked for, and `run` has the steps that follow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Required, TypedDict, Unpack

from leakbound.core.checks import known_keywords
from leakbound.core.types import Noise, Signals
from leakbound.plans.help import listing_options
from leakbound.plans.plan import asked_of
from leakbound.plans.protects import CalibrationPlan, Promise, ProtectionPlan
from leakbound.protection.design_costs import DesignTable, cost_of_designs
from leakbound.protection.request import Asked, Several, arrays_request, request_of_file
from leakbound.protection.run import CalibratedNoise, Protected, run_calibration, run_declaration, run_release
from leakbound.reports import Report
from leakbound.runtime.observe import Execution

_OF_A_CHOICE = ("promise",)  # what a table of all designs does not ask for
Coupling = Literal["auto", "swap", "mixture_swap", "complement", "average_swap"]


class ArraysOptions(TypedDict, total=False):
    """Keywords of a query of arrays in addition to those that `declare` names: see `protect`."""

    promise: Promise | None
    budget: float | None
    k: int | None
    about: Literal["every", "average"]
    id: str | None
    group: str | None
    allow_exact: bool
    at_most: str | Sequence[str]
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
    others: str | Sequence[str]
    rules: Mapping[str, float]
    pairs_seed: int
    title: str
    unit: str
    date: str
    fpr: float | Sequence[float]
    depends_on: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


# what the command line calibrates beside statistics
_NO_STATISTICS = {
    "dpsgd": "ls.dpsgd.dpsgd_multiplier(sample_rate, steps, advantage=0.1), the noise multiplier of DP-SGD"
}


class CalibrationOptions(ArraysOptions, total=False):
    """Keywords of a query of a file: the fields of ``leakbound.plans.CalibrationPlan``, which says what they mean."""

    data: Required[str | os.PathLike[str]]
    label: str | None
    drop: Sequence[str]
    drop_missing: bool
    separator: str | None
    decimal: Literal[".", ","] | None
    encoding: str | None
    statistic: str | Several
    noise: str
    eta: Required[float]


class ProtectionOptions(CalibrationOptions, total=False):
    """Keywords of a release of a file: the fields of ``leakbound.plans.ProtectionPlan``, which says what they mean."""

    ledger: str | os.PathLike[str] | None
    another_design: bool
    allow_known_people: bool
    known_ledgers: str | os.PathLike[str] | None
    declare: bool
    insecure_seed: int | None
    merge: Mapping[str, Sequence[str]]
    non_negative: bool


@known_keywords(first=_NO_STATISTICS)
def calibrate(
    statistic: Asked | Several,
    x: Any,
    y: Any = None,
    *,
    eta: float,
    promise: Promise | None = None,
    budget: float | None = None,
    k: int | None = None,
    about: Literal["every", "average"] = "every",
    id: str | None = None,
    group: str | None = None,
    allow_exact: bool = False,
    at_most: str | Sequence[str] = (),
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
    others: str | Sequence[str] = (),
    rules: Mapping[str, float] | None = None,
    pairs_seed: int = 0,
    title: str = "",
    unit: str = "record",
    date: str = "",
    fpr: float | Sequence[float] = (0.01, 0.001),
    depends_on: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    tmp: str | os.PathLike[str] | None = None,
) -> CalibratedNoise:
    """Find the least noise with which a statistic keeps a promise; nothing is released.

    Parameters
    ----------
    statistic : str, callable, Statistic, or list of str or mapping
        A row of ``leakbound.releases.statistics.statistic.STATISTICS``, ``"module:function"``, or a function of the
        records that gives an array of fixed shape. Of a list all are released together, with one eta: each is a name,
        or a mapping with ``statistic`` and its own ``weight``, ``name``, ``drop``, ``by``, ``levels``, ``set``,
        ``ranges``, ``others``, ``noise``, ``noise_scale``, ``allow_exact``, ``merge``, ``non_negative`` or ``rules``.
    x : array-like of shape (n, p), or frame of n rows
        All records.
    y : array-like of shape (n,), optional
        Response of a regression.
    eta : float
        Accuracy above the better prior guess that is allowed, > 0 and < 1/2; of k of n records < min(k/n, 1 - k/n).
    promise : {"anyone", "file", "drawn"}
        What must not be told: whether somebody's record is in the file, to anyone whatever the file
        (differential privacy); the same of the records of this file, to somebody who knows all others; or which k of
        the n records were drawn. There is no default: they promise different things at different prices.
    budget : float, optional
        Of "dp" and "leave-one-out": accuracy above 1/2 that all releases of the ledger together may
        give, fixed by the first of them; eta unless given, so that no second one follows.
    k : int, optional
        Of "half": records that are drawn; half of them unless given.
    about : {"every", "average"}
        Of "half": the promise is to every record, or to a record drawn at random.
    id : str, optional
        Of a file: the column that names the records, so that a later version of the data leaves the same one out.
    group : str, optional
        Of a file: the column that says whose each row is; a person is left out with all rows.
    allow_exact : bool
        Of "leave-one-out": release numbers exactly that are the same whoever is left out, or for so many of them that
        the promise needs no noise; what they tell of the file is outside of the promise.
    at_most : str or sequence of str
        Of "leave-one-out": limits that are declared beforehand on how often the record left out is recognised, as
        ``"tpr@0.001=0.003"``: in at most 0.3 % of cases at 0.1 % false positives. The noise keeps them as well.
    noise : str, Noise, or callable
        A row of ``leakbound.noise.families.FAMILIES``; a noise as it is, which is refused unless it keeps eta; or
        the noise of each scale.
    noise_scale : float or sequence of float, optional
        A scale that is public beforehand, for all numbers or for each: it is refused unless it keeps eta. The least
        that does unless given.
    coupling : {"auto", "swap", "mixture_swap", "complement", "average_swap"}
        The proof of the promise.
    by : str or sequence of str
        Columns of a histogram or a table, or whose levels are groups of a mean.
    levels : mapping of str to sequence, optional
        Public levels of the columns of a table or of groups, as ``{"sector": ["care", "trade"]}``.
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
    others : str or sequence of str
        Columns of ``by`` that get one more level under promise anyone, called others, for every value without a level
        of its own and for missing ones: with one for every column the counts of a table add up to n.
    rules : mapping of str to float, optional
        Thresholds of the rules of statistics offices that are checked for the owner: ``minimum`` (10), ``dominance_n``
        (2), ``dominance_k`` (0.9), ``p`` (0.1).
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
    depends_on : path or sequence of path
        Files that the statistic reads unseen, as by a program that it starts. A stored fit is used again only while
        they are the same.
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
    >>> import leakbound as ls
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> calibration = ls.calibrate("mean", rows, eta=0.1, promise="drawn", games=0)
    >>> calibration.noise.rms(2) < 0.2
    True
    """
    options = {
        "eta": eta,
        "promise": promise,
        "budget": budget,
        "k": k,
        "about": about,
        "id": id,
        "group": group,
        "allow_exact": allow_exact,
        "at_most": at_most,
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
        "others": others,
        "rules": rules,
        "pairs_seed": pairs_seed,
        "title": title,
        "unit": unit,
        "date": date,
        "fpr": fpr,
        "depends_on": depends_on,
    }
    execution = Execution(store, n_jobs, tmp)
    fields = asked_of(CalibrationPlan, options)
    return run_calibration(arrays_request(CalibrationPlan, statistic, x, y, noise, fields, execution))


@known_keywords({"insecure_seed": "seed", "declare": "leakbound.protection.declare"}, _NO_STATISTICS)
def protect(
    statistic: Asked | Several,
    x: Any,
    y: Any = None,
    *,
    eta: float,
    promise: Promise | None = None,
    budget: float | None = None,
    k: int | None = None,
    about: Literal["every", "average"] = "every",
    id: str | None = None,
    group: str | None = None,
    allow_exact: bool = False,
    at_most: str | Sequence[str] = (),
    noise: str | Noise | Callable[[float], Noise] = "gaussian",
    noise_scale: float | Sequence[float] | None = None,
    coupling: Coupling = "auto",
    by: str | Sequence[str] = (),
    levels: Mapping[str, Sequence[Any]] | None = None,
    set: Mapping[str, Any] | None = None,
    merge: Mapping[str, Sequence[str]] | None = None,
    non_negative: bool = False,
    rules: Mapping[str, float] | None = None,
    confidence: float = 0.95,
    fits: int = 2000,
    games: int = 2000,
    delta: float = 1e-5,
    compare: bool = False,
    clip: float | None = None,
    ranges: str | Sequence[str] = (),
    others: str | Sequence[str] = (),
    pairs_seed: int = 0,
    title: str = "",
    unit: str = "record",
    date: str = "",
    fpr: float | Sequence[float] = (0.01, 0.001),
    ledger: str | os.PathLike[str] | None = None,
    another_design: bool = False,
    allow_known_people: bool = False,
    known_ledgers: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    depends_on: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    tmp: str | os.PathLike[str] | None = None,
) -> Protected:
    """Release a statistic with the least noise that keeps a promise, and its certificate.

    No attacker who sees the release guesses whether a given record is in use with an accuracy above the better prior
    guess by more than eta. Who may be in use, and what the attacker knows, is the ``promise``: that of the certificate.

    Parameters
    ----------
    statistic : str, callable, Statistic, or list of str or mapping
        A row of ``leakbound.releases.statistics.statistic.STATISTICS``, ``"module:function"``, or a function of the
        records that gives an array of fixed shape. Of a list all are released together, with one eta: each is a name,
        or a mapping with ``statistic`` and its own ``weight``, ``name``, ``drop``, ``by``, ``levels``, ``set``,
        ``ranges``, ``others``, ``noise``, ``noise_scale``, ``allow_exact``, ``merge``, ``non_negative`` or ``rules``.
    x : array-like of shape (n, p), or frame of n rows
        All records.
    y : array-like of shape (n,), optional
        Response of a regression.
    eta : float
        Accuracy above the better prior guess that is allowed, > 0 and < 1/2; of k of n records < min(k/n, 1 - k/n).
    promise : {"anyone", "file", "drawn"}
        What must not be told: whether somebody's record is in the file, to anyone whatever the file
        (differential privacy); the same of the records of this file, to somebody who knows all others; or which k of
        the n records were drawn. There is no default: they promise different things at different prices.
    budget : float, optional
        Of "dp" and "leave-one-out": accuracy above 1/2 that all releases of the ledger together may
        give, fixed by the first of them; eta unless given, so that no second one follows.
    k : int, optional
        Of "half": records that are drawn; half of them unless given.
    about : {"every", "average"}
        Of "half": the promise is to every record, or to a record drawn at random.
    id : str, optional
        Of a file: the column that names the records, so that a later version of the data leaves the same one out.
    group : str, optional
        Of a file: the column that says whose each row is; a person is left out with all rows.
    allow_exact : bool
        Of "leave-one-out": release numbers exactly that are the same whoever is left out, or for so many of them that
        the promise needs no noise; what they tell of the file is outside of the promise.
    at_most : str or sequence of str
        Of "leave-one-out": limits that are declared beforehand on how often the record left out is recognised, as
        ``"tpr@0.001=0.003"``: in at most 0.3 % of cases at 0.1 % false positives. The noise keeps them as well.
    noise : str, Noise, or callable
        A row of ``leakbound.noise.families.FAMILIES``; a noise as it is, which is refused unless it keeps eta; or
        the noise of each scale.
    noise_scale : float or sequence of float, optional
        A scale that is public beforehand, for all numbers or for each: it is refused unless it keeps eta. The least
        that does unless given.
    coupling : {"auto", "swap", "mixture_swap", "complement", "average_swap"}
        The proof of the promise.
    by : str or sequence of str
        Columns of a histogram or a table, or whose levels are groups of a mean.
    levels : mapping of str to sequence, optional
        Public levels of the columns of a table or of groups, as ``{"sector": ["care", "trade"]}``.
    set : mapping, optional
        Parameters of the statistic, as ``{"probabilities": [0.5]}``.
    merge : mapping of str to sequence of str, optional
        Neighbouring levels of a table that are published as one, as ``{"age": ["20-29:40-49"]}``; the release itself is
        of the levels as they were declared.
    non_negative : bool
        Publish counts as the nearest ones >= 0; small counts are then too large on average.
    rules : mapping of str to float, optional
        Thresholds of the rules of statistics offices that the owner's half checks: ``minimum`` (10), ``dominance_n``
        (2), ``dominance_k`` (0.9), ``p`` (0.1).
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
    others : str or sequence of str
        Columns of ``by`` that get one more level under promise anyone, called others, for every value without a level
        of its own and for missing ones: with one for every column the counts of a table add up to n.
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
        Private file that remembers who is in use and what was released, for further releases; see
        `leakbound.protection.declare`. Needed unless the design is "half": it is kept for the life of the data.
    another_design : bool
        Release although the ledger is of another design: in one of its own beside it. The certificate names what was
        released under the other design; no joint number is promised over both.
    allow_known_people : bool
        Release although another ledger of this design holds these people, or half of these records. The certificate
        says so, and nothing adds up the releases of the two.
    known_ledgers : path, optional
        The list of the ledgers begun so far, which are asked whether they hold these people; "none" for no list. That
        of the user unless given: ``$XDG_STATE_HOME/leakbound/ledgers``, in ``~/.local/state``.
    seed : int, optional
        Draw and noise from this seed: for tests. The certificate says that it is not for publication.
    depends_on : path or sequence of path
        Files that the statistic reads unseen, as by a program that it starts. A stored fit is used again only while
        they are the same.
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
    >>> import leakbound as ls
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> released = ls.protect("mean", rows, eta=0.1, promise="drawn", games=0)
    >>> released.value.shape, released.certificate.about.certificate.coupling
    ((2,), 'swap')
    """
    options = {
        "eta": eta,
        "promise": promise,
        "budget": budget,
        "k": k,
        "about": about,
        "id": id,
        "group": group,
        "allow_exact": allow_exact,
        "at_most": at_most,
        "noise_scale": noise_scale,
        "coupling": coupling,
        "by": by,
        "levels": levels,
        "set": set,
        "merge": merge,
        "non_negative": non_negative,
        "rules": rules,
        "confidence": confidence,
        "fits": fits,
        "games": games,
        "delta": delta,
        "compare": compare,
        "clip": clip,
        "ranges": ranges,
        "others": others,
        "pairs_seed": pairs_seed,
        "title": title,
        "unit": unit,
        "date": date,
        "fpr": fpr,
        "depends_on": depends_on,
        "ledger": ledger,
        "another_design": another_design,
        "allow_known_people": allow_known_people,
        "known_ledgers": known_ledgers,
        "insecure_seed": seed,
    }
    execution = Execution(store, n_jobs, tmp)
    fields = asked_of(ProtectionPlan, options)
    return run_release(arrays_request(ProtectionPlan, statistic, x, y, noise, fields, execution))


@listing_options(CalibrationPlan, ArraysOptions, skip=_OF_A_CHOICE)
def design_table(
    statistic: Asked | Several,
    x: Any,
    y: Any = None,
    *,
    eta: float,
    **options: Unpack[ArraysOptions],
) -> DesignTable:
    """Compute what each design would cost for a statistic, to choose a promise; nothing is drawn or released.

    Parameters
    ----------
    statistic, x, y, eta
        As in `protect`.
    **options
        As in `protect`, without a promise or design; ``ranges``, ``levels`` and ``noise_scale`` say what is declared:

    Returns
    -------
    DesignTable
        The total error of each design against the statistic of all records, for the owner of the data alone, and a
        recommendation that follows from public facts.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.protection import design_table
    >>> wages = np.random.default_rng(0).uniform(0, 80, size=(1000, 1))
    >>> table = design_table("mean", wages, eta=0.05, ranges="x0=0:80")
    >>> table.recommended, [row.design for row in table.rows if row.errors is not None and not row.method]
    ('dp', ['dp', 'leave-one-out', 'half'])
    """
    fields = asked_of(CalibrationPlan, dict(options, eta=eta))
    noise = fields.pop("noise", "gaussian")
    return cost_of_designs(arrays_request(CalibrationPlan, statistic, x, y, noise, fields, Execution()))


@listing_options(CalibrationPlan, CalibrationOptions, skip=_OF_A_CHOICE)
def design_table_of_file(
    *,
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    tmp: str | os.PathLike[str] | None = None,
    tell_owner: Callable[[str], Any] = lambda line: None,
    **options: Unpack[CalibrationOptions],
) -> DesignTable:
    """Do for a file what `design_table` does for arrays.

    Parameters
    ----------
    store, n_jobs, tmp, tell_owner
        As in `calibrate_file`.
    **options
        As in `calibrate_file`, without a promise or design:
    """
    table = cost_of_designs(request_of_file(CalibrationPlan, options, "calibrate", Execution(store, n_jobs, tmp)))
    for note in table.owner_notes:
        tell_owner(note)
    return table


@listing_options(CalibrationPlan, CalibrationOptions)
def calibrate_file(
    *,
    command: str = "",
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    tmp: str | os.PathLike[str] | None = None,
    simulated: Callable[[Signals], Any] | None = None,
    tell_owner: Callable[[str], Any] = lambda line: None,
    **options: Unpack[CalibrationOptions],
) -> CalibratedNoise:
    """Do for a file what `calibrate` does for arrays: ``leakbound calibrate``.

    Parameters
    ----------
    command, store, n_jobs, tmp, simulated, tell_owner
        As in `protect_file`.
    **options
        The fields of a ``leakbound.plans.CalibrationPlan``:
    """
    request = request_of_file(CalibrationPlan, options, "calibrate", Execution(store, n_jobs, tmp), command)
    return run_calibration(replace(request, tell_owner=tell_owner), simulated)


@listing_options(ProtectionPlan, ProtectionOptions)
def protect_file(
    *,
    command: str = "",
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    tmp: str | os.PathLike[str] | None = None,
    before: Callable[[], Any] = lambda: None,
    simulated: Callable[[Signals], Any] | None = None,
    publish: Callable[[Report, Report], Any] = lambda public, owner: None,
    tell_owner: Callable[[str], Any] = lambda line: None,
    **options: Unpack[ProtectionOptions],
) -> Protected:
    """Do for a file what `protect` does for arrays: ``leakbound protect``.

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
    tell_owner : callable
        Called before anything is drawn with each line that the owner should read first: how many values are missing,
        outside of their range or of no declared level. These are exact numbers of the data, for the owner alone.
    **options
        The fields of a ``leakbound.plans.ProtectionPlan``; ``insecure_seed`` is what `protect` calls seed, and
        ``statistic`` may be a list, as in `protect`: the ``[[statistic]]`` tables of a plan in TOML.
    """
    request = request_of_file(ProtectionPlan, options, "protect", Execution(store, n_jobs, tmp), command)
    return run_release(replace(request, tell_owner=tell_owner), before, simulated, publish)


@listing_options(CalibrationPlan, ArraysOptions)
def declare(
    statistic: Asked | Several,
    x: Any,
    y: Any = None,
    *,
    eta: float,
    ledger: str | os.PathLike[str],
    noise: str | Noise | Callable[[float], Noise] = "gaussian",
    allow_known_people: bool = False,
    known_ledgers: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    **options: Unpack[ArraysOptions],
) -> str:
    """Announce a query in a ledger, before the first release of its draw; what was done, in a line.

    Parameters
    ----------
    statistic, x, y, eta, noise, allow_known_people, known_ledgers, seed
        As in `protect`: those with which it will be released. The first query begins the ledger, and draws.
    ledger : path
        Private file.
    **options
        As in `protect`:

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import leakbound as ls
    >>> from leakbound.protection import declare
    >>> rows, ledger = np.random.default_rng(0).normal(size=(100, 2)), f"{tempfile.mkdtemp()}/ledger.json"
    >>> for name in ("mean", "sum"):
    ...     print(declare(name, rows, eta=0.1, promise="drawn", ledger=ledger).split(": ")[1])
    1 declared, 0 released
    2 declared, 0 released
    >>> ls.protect("mean", rows, eta=0.1, promise="drawn", ledger=ledger, games=0).value.shape
    (2,)
    """
    of_ledgers = {"allow_known_people": allow_known_people, "known_ledgers": known_ledgers, "insecure_seed": seed}
    fields = dict(options, eta=eta, ledger=os.fspath(ledger), declare=True, **of_ledgers)
    return run_declaration(arrays_request(ProtectionPlan, statistic, x, y, noise, fields, Execution()))


@listing_options(ProtectionPlan, ProtectionOptions)
def declare_file(**options: Unpack[ProtectionOptions]) -> str:
    """Announce a query of a file in a ledger, before its first release; what was done, in a line.

    Parameters
    ----------
    **options
        As in `protect_file`:
    """
    return run_declaration(request_of_file(ProtectionPlan, dict(options, declare=True), "protect", Execution()))
