"""The public calls: keywords or fields of a plan in, a calibration or a release out.

`request` makes one object of what was asked for, and `release` has the steps that follow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from leakbound.core.checks import known_keywords
from leakbound.core.types import Signals
from leakbound.plans.moved import OF_PROTECTIONS, keywords
from leakbound.plans.page import Page, Store, store_of
from leakbound.plans.plan import asked_of
from leakbound.plans.promises import Promise
from leakbound.plans.protects import CalibrationPlan, ProtectionPlan
from leakbound.plans.statistic_objects import Statistic, Weighted
from leakbound.protection.design_costs import DesignTable, cost_of_designs
from leakbound.protection.release import CalibratedNoise, Protected, run_calibration, run_declaration, run_release
from leakbound.protection.setting.request import Request, arrays_request, request_of_file
from leakbound.releases.statistics.statistic import Statistic as Rule
from leakbound.reports import Report
from leakbound.runtime.observe import Execution

Single = str | Statistic | Rule | Callable[..., Any]
Asked = Single | Sequence[Single | Weighted]
Promised = Promise | Literal["anyone", "file", "drawn"]
Compared = bool | Promise | Sequence[Promise]
Kept = Store | str | os.PathLike[str] | None

# what the command line calibrates beside statistics
_NO_STATISTICS = {
    "dpsgd": "ls.dpsgd.dpsgd_multiplier(sample_rate, steps, advantage=0.1), the noise multiplier of DP-SGD"
}
_FIELDS = {"ids": "id", "groups": "group"}  # arguments whose field of a plan has another name
_NO_FIELDS = ("statistic", "x", "y", "page", "store", "n_jobs")
_MOVED = {**keywords(OF_PROTECTIONS), "declare": "leakbound.protection.declare"}


@known_keywords(_MOVED, _NO_STATISTICS)
def calibrate(
    statistic: Asked,
    x: Any,
    y: Any = None,
    *,
    eta: float,
    promise: Promised | None = None,
    budget: float | None = None,
    ids: str | None = None,
    groups: str | None = None,
    rules: Mapping[str, float] | None = None,
    compare: Compared = False,
    fpr: float | Sequence[float] = (0.01, 0.001),
    page: Page = Page(),
    store: Kept = None,
    n_jobs: Any = None,
) -> CalibratedNoise:
    """Find the least noise with which a statistic keeps a promise; nothing is released.

    Parameters
    ----------
    statistic, x, y, eta, promise, budget, ids, groups, rules, compare, fpr, page, store, n_jobs : see `protect`
        As in `protect`.

    Returns
    -------
    CalibratedNoise
        The noise, and a certificate without values.

    Examples
    --------
    >>> import numpy as np
    >>> import leakbound as ls
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> calibration = ls.calibrate("mean", rows, eta=0.1, promise=ls.Drawn(games=0))
    >>> calibration.noise.rms(2) < 0.2
    True
    """
    return run_calibration(_of_arrays(CalibrationPlan, locals()))


@known_keywords(_MOVED, _NO_STATISTICS)
def protect(
    statistic: Asked,
    x: Any,
    y: Any = None,
    *,
    eta: float,
    promise: Promised | None = None,
    budget: float | None = None,
    ids: str | None = None,
    groups: str | None = None,
    rules: Mapping[str, float] | None = None,
    compare: Compared = False,
    fpr: float | Sequence[float] = (0.01, 0.001),
    page: Page = Page(),
    ledger: str | os.PathLike[str] | None = None,
    another_promise: bool = False,
    allow_known_people: bool = False,
    known_ledgers: str | os.PathLike[str] | None = None,
    insecure_seed: int | None = None,
    store: Kept = None,
    n_jobs: Any = None,
) -> Protected:
    """Release a statistic with the least noise that keeps a promise, and its certificate.

    No attacker who sees the release guesses whether a given record is in use with an accuracy above the better prior
    guess by more than eta. Who may be in use, and what the attacker knows, is the ``promise``: that of the certificate.

    Parameters
    ----------
    statistic : str, statistic, callable, or list of them
        A statistic as `Table` or `Quantiles`, or its name in snake case (``"mean"`` is ``Mean()``);
        ``"module:function"``, or a function of the records that gives an array of fixed shape. Of a list all are
        released together, with one eta; `Weighted` says the weight, the name and the columns of one of them.
    x : array-like of shape (n, p), or frame of n rows
        All records.
    y : array-like of shape (n,), optional
        Response of a regression.
    eta : float
        Accuracy above the better prior guess that is allowed, > 0 and < 1/2; of k of n records < min(k/n, 1 - k/n).
    promise : Anyone, File or Drawn
        What must not be told: whether somebody's record is in the file, to anyone whatever the file (differential
        privacy); the same of the records of this file, to somebody who knows all others; or which k of the n records
        were drawn. There is no default: they promise different things at different prices. ``"file"`` is ``File()``.
    budget : float, optional
        Of `Anyone` and `File`: accuracy above 1/2 that all releases of the ledger together may give, fixed by the
        first of them; eta unless given, so that no second one follows.
    ids : str, optional
        The column of a frame that names the records, so that a later version of the data leaves the same one out.
    groups : str, optional
        Of `File`: the column of a frame that says whose each row is; a person is left out with all rows.
    rules : mapping of str to float, optional
        Thresholds of the rules of statistics offices that the owner's half checks: ``minimum`` (10), ``dominance_n``
        (2), ``dominance_k`` (0.9), ``p`` (0.1).
    compare : bool, promise, or sequence of promises
        For the owner, what every promise and the noise of other methods would cost; a promise says what is declared
        for it, as ``Anyone(ranges={"wage": (0, 80)})``.
    fpr : float or sequence of float
        False positive rates of interest, as fractions.
    page : Page
        What is shown on the page: title, unit of privacy, date.
    ledger : path, optional
        Private file that remembers who is in use and what was released, for further releases; see
        `leakbound.protection.declare`. Needed unless the promise is `Drawn`: it is kept for the life of the data.
    another_promise : bool
        Release although the ledger is of another promise: in one of its own beside it. The certificate names what was
        released under the other promise; no joint number is promised over both.
    allow_known_people : bool
        Release although another ledger of this promise holds these people, or half of these records. The certificate
        says so, and nothing adds up the releases of the two.
    known_ledgers : path, optional
        The list of the ledgers begun so far, which are asked whether they hold these people; "none" for no list. That
        of the user unless given: ``$XDG_STATE_HOME/leakbound/ledgers``, in ``~/.local/state``.
    insecure_seed : int, optional
        Draw and noise from this seed: for tests. The certificate says that it is not for publication.
    store : Store, path or URL, optional
        Where finished fits of the calibration stay.
    n_jobs : int, str or distributed.Client, optional
        Workers; all cores unless given.

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
    >>> released = ls.protect("mean", rows, eta=0.1, promise=ls.Drawn(games=0))
    >>> released.value.shape, released.certificate.about.certificate.coupling
    ((2,), 'swap')
    """
    return run_release(_of_arrays(ProtectionPlan, locals()))


@known_keywords(_MOVED, _NO_STATISTICS)
def design_table(
    statistic: Asked,
    x: Any,
    y: Any = None,
    *,
    eta: float,
    ids: str | None = None,
    groups: str | None = None,
    rules: Mapping[str, float] | None = None,
    compare: Compared = False,
) -> DesignTable:
    """Compute what each promise would cost for a statistic, to choose one; nothing is drawn or released.

    Parameters
    ----------
    statistic, x, y, eta, ids, groups, rules : see `protect`
        As in `protect`.
    compare : promise, or sequence of promises
        What is declared for a promise, as ``Anyone(ranges={"wage": (0, 80)})``.

    Returns
    -------
    DesignTable
        Its ``facts`` are the total error of each promise against the statistic of all records, for the owner of the
        data alone, and a recommendation that follows from public facts.

    Examples
    --------
    >>> import numpy as np
    >>> import leakbound as ls
    >>> from leakbound.protection import design_table
    >>> wages = np.random.default_rng(0).uniform(0, 80, size=(1000, 1))
    >>> table = design_table("mean", wages, eta=0.05, compare=ls.Anyone(ranges={"x0": (0, 80)}))
    >>> table.facts.recommended, [row.name for row in table.facts.designs if row.errors is not None and not row.method]
    ('dp', ['dp', 'leave-one-out', 'half'])
    """
    return cost_of_designs(_of_arrays(CalibrationPlan, locals()))


@known_keywords(_MOVED, _NO_STATISTICS)
def declare(
    statistic: Asked,
    x: Any,
    y: Any = None,
    *,
    eta: float,
    ledger: str | os.PathLike[str],
    promise: Promised | None = None,
    budget: float | None = None,
    ids: str | None = None,
    groups: str | None = None,
    rules: Mapping[str, float] | None = None,
    compare: Compared = False,
    fpr: float | Sequence[float] = (0.01, 0.001),
    page: Page = Page(),
    another_promise: bool = False,
    allow_known_people: bool = False,
    known_ledgers: str | os.PathLike[str] | None = None,
    insecure_seed: int | None = None,
) -> str:
    """Announce a query in a ledger, before the first release of its draw; what was done, in a line.

    Parameters
    ----------
    statistic, x, y, eta, promise, budget, ids, groups, rules, compare, fpr, page : see `protect`
        As in `protect`.
    another_promise, allow_known_people, known_ledgers, insecure_seed
        As in `protect`: those with which it will be released. The first query begins the ledger, and draws.
    ledger : path
        Private file.

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
    >>> ls.protect("mean", rows, eta=0.1, promise=ls.Drawn(games=0), ledger=ledger).value.shape
    (2,)
    """
    return run_declaration(_of_arrays(ProtectionPlan, locals(), declare=True))


def _of_arrays(kind: type[CalibrationPlan], given: Mapping[str, Any], **more: Any) -> Request:
    """Make the request of a call with these arguments: most of them are fields of its plan."""
    fields = {_FIELDS.get(name, name): value for name, value in given.items() if name not in _NO_FIELDS}
    kept = store_of(given.get("store"))
    page = page_words(given.get("page", Page()))
    fields = asked_of(kind, {**fields, **more, **page, "depends_on": kept.depends_on})
    execution = Execution.of(kept.path, given.get("n_jobs"), kept.depends_on)
    return arrays_request(kind, given["statistic"], given["x"], given["y"], fields, execution)


def page_words(page: Page) -> dict[str, Any]:
    """Return the fields of a plan that its page shows; a release names no author."""
    if page.author:
        raise ValueError("the page of a release names no author: leave author out")
    return {name: value for name, value in page.words.items() if name != "author"}


def design_table_of_file(
    plan: Mapping[str, Any],
    *,
    store: Kept = None,
    n_jobs: Any = None,
    tell_owner: Callable[[str], Any] = lambda line: None,
) -> DesignTable:
    """Do for a file what `design_table` does for arrays.

    Parameters
    ----------
    plan : mapping
        The keys of a plan, without a promise.
    store, n_jobs, tell_owner
        As in `protect_file`.
    """
    table = cost_of_designs(_of_file(CalibrationPlan, "calibrate", plan, store, n_jobs))
    for note in table.owner_notes:
        tell_owner(note)
    return table


def calibrate_file(
    plan: Mapping[str, Any],
    *,
    command: str = "",
    store: Kept = None,
    n_jobs: Any = None,
    simulated: Callable[[Signals], Any] | None = None,
    tell_owner: Callable[[str], Any] = lambda line: None,
) -> CalibratedNoise:
    """Do for a file what `calibrate` does for arrays: ``leakbound calibrate``.

    Parameters
    ----------
    plan, command, store, n_jobs, simulated, tell_owner
        As in `protect_file`.
    """
    request = _of_file(CalibrationPlan, "calibrate", plan, store, n_jobs, command)
    return run_calibration(replace(request, tell_owner=tell_owner), simulated)


def protect_file(
    plan: Mapping[str, Any],
    *,
    command: str = "",
    store: Kept = None,
    n_jobs: Any = None,
    before: Callable[[], Any] = lambda: None,
    simulated: Callable[[Signals], Any] | None = None,
    publish: Callable[[Report, Report], Any] = lambda public, owner: None,
    tell_owner: Callable[[str], Any] = lambda line: None,
) -> Protected:
    """Do for a file what `protect` does for arrays: ``leakbound protect``.

    Parameters
    ----------
    plan : mapping
        The keys of a plan: the fields of a ``leakbound.plans.ProtectionPlan``, with a list of tables as ``statistic``
        where there are several. ``leakbound.plans.several.from_toml`` reads them from a file.
    command : str
        Printed on the page.
    store, n_jobs
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
    """
    request = _of_file(ProtectionPlan, "protect", plan, store, n_jobs, command)
    return run_release(replace(request, tell_owner=tell_owner), before, simulated, publish)


def declare_file(plan: Mapping[str, Any]) -> str:
    """Announce a query of a file in a ledger, before its first release; what was done, in a line.

    Parameters
    ----------
    plan : mapping
        As in `protect_file`.
    """
    return run_declaration(_of_file(ProtectionPlan, "protect", {**plan, "declare": True}))


def _of_file(
    kind: type[CalibrationPlan],
    call: str,
    plan: Mapping[str, Any],
    store: Kept = None,
    n_jobs: Any = None,
    command: str = "",
) -> Request:
    """Make the request of a plan."""
    return request_of_file(kind, plan, call, Execution.of(store_of(store).path, n_jobs), command)
