"""The designs: how each promise is kept, and the line that asks for a choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from typing import Any

from leakbound.core.types import Signals
from leakbound.plans.promises import Design
from leakbound.plans.protects import NO_CHOICE, CalibrationPlan
from leakbound.protection import released
from leakbound.protection.ledger.elsewhere import Elsewhere, NamePeople, beside_the_data, of_the_same_people, own_ledger
from leakbound.protection.ledger.listed import note_begun
from leakbound.protection.prepared import Prepared
from leakbound.protection.promises.anyone import prepare as anyone
from leakbound.protection.promises.drawn.in_ledger import LedgerQuery
from leakbound.protection.promises.drawn.jobs import Job
from leakbound.protection.promises.file import prepare as file
from leakbound.protection.request import Request
from leakbound.protection.results import CalibratedNoise, Protected
from leakbound.protection.units import people_of
from leakbound.reports import Report

Simulated = Callable[[Signals], Any]
_OF_HALF = "leakbound.protection.promises.drawn.half"  # it imports what audits need, which takes a second


@dataclass(frozen=True)
class Steps:
    """What a design does with a request."""

    calibrate: Callable[[Request, Simulated | None], CalibratedNoise]
    release: Callable[
        # the request; what is called before anything is released; what gets the simulated releases; what publishes
        [Request, Callable[[], Any], Simulated | None, Callable[[Report, Report], Any]],
        Protected,
    ]
    declare: Callable[[Request], str]


def chosen_design(plan: CalibrationPlan) -> Design:
    """Return the design of a plan."""
    if plan.chosen is None:
        raise ValueError(NO_CHOICE)
    return plan.chosen


def _calibrate_half(request: Request, simulated: Simulated | None) -> CalibratedNoise:
    """Calibrate one statistic; a plan of several refuses design half."""
    return import_module(_OF_HALF).calibrate_half(Job.of(request), simulated)


def _release_half(
    request: Request,
    before: Callable[[], Any],
    simulated: Simulated | None,
    publish: Callable[[Report, Report], Any],
) -> Protected:
    query, elsewhere = _half_in_its_ledger(request)
    if query is None or query.is_new:
        elsewhere.refuse()
    job = replace(Job.of(request), owner_notes=(*request.owner_notes, *elsewhere.notes))
    note = partial(note_begun, request, query.path) if query is not None else _nothing
    return import_module(_OF_HALF).release_half(job, before, simulated, publish, query, elsewhere, note)


def _nothing() -> None:
    """Note no ledger where there is none."""


def _half_in_its_ledger(request: Request) -> tuple[LedgerQuery | None, Elsewhere]:
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


def _declare_half(request: Request) -> str:
    query, elsewhere = _half_in_its_ledger(request)
    if query is None:
        raise ValueError("declare needs a ledger")
    elsewhere.refuse()
    note_begun(request, query.path)
    return query.declare()


def _refuse_signals(simulated: Simulated | None) -> None:
    if simulated is not None:
        raise ValueError("signals are of simulated releases under promise drawn; got another promise")


def _told(prepare: Callable[[Request], Prepared], request: Request) -> Prepared:
    """Prepare the noise, and tell the owner what the data have that the statistic does not count as it is."""
    prepared = prepare(request)
    if prepared.design == "dp":  # other designs refuse what they cannot count
        for note in prepared.owner_notes:
            request.tell_owner(note)
    return prepared


def _calibrate(
    prepare: Callable[[Request], Prepared], request: Request, simulated: Simulated | None
) -> CalibratedNoise:
    _refuse_signals(simulated)
    return released.calibrate(_told(prepare, request))


def _release(
    prepare: Callable[[Request], Prepared],
    request: Request,
    before: Callable[[], Any],
    simulated: Simulated | None,
    publish: Callable[[Report, Report], Any],
) -> Protected:
    _refuse_signals(simulated)
    return released.release(partial(_told, prepare), request, before, publish)


def _steps(prepare: Callable[[Request], Prepared]) -> Steps:
    """Return the steps of a design that prepares the noise, and has the ledger of all such designs."""
    return Steps(partial(_calibrate, prepare), partial(_release, prepare), partial(released.declare, prepare))


DESIGNS: Mapping[Design, Steps] = {
    "dp": _steps(anyone.prepare),
    "leave-one-out": _steps(file.prepare),
    "half": Steps(_calibrate_half, _release_half, _declare_half),
}
