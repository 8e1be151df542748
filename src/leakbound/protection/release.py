"""The recipe of a release, which all promises share: prepare, ask the ledger, draw, note, publish.

Everything that can be refused is refused before the next step: first the plan, then what ledgers know, the noise, the
last question of the caller. Only then is anything drawn; the ledger is written before the value is published, and
marked after that, so that the same request gives the same bytes once more after an interruption.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from leakbound.core.types import Signals
from leakbound.plans.promises import Design, Drawn
from leakbound.plans.protects import NO_CHOICE, CalibrationPlan
from leakbound.protection.certificate.halves import certified, owner_half
from leakbound.protection.design_costs import cost_of_designs
from leakbound.protection.setting.prepared import Prepared, Ready
from leakbound.protection.setting.request import Request
from leakbound.protection.setting.results import CalibratedNoise, Protected
from leakbound.reports import Report
from leakbound.reports.about import DesignsCompared

Simulated = Callable[[Signals], Any]
# The module with `prepare`, `ready` and `declared` of each design: dp is promise anyone, leave-one-out is promise file,
# half is promise drawn. It is imported when it is needed: that of half takes a second to load.
MODULE_OF: Mapping[Design, str] = {"dp": "of_all", "leave-one-out": "of_all", "half": "promises.drawn.half"}


def run_calibration(request: Request, simulated: Simulated | None = None) -> CalibratedNoise:
    """Find the noise of a request and its certificate; nothing is released."""
    prepared: Prepared = _keeper(request, simulated).prepare(request)
    _show_signals(prepared, simulated)
    designs, notes = _designs(request)
    return CalibratedNoise(prepared.noise, owner_half(prepared, designs=designs, notes=notes))


def run_release(
    request: Request,
    before: Callable[[], Any] = lambda: None,
    simulated: Simulated | None = None,
    publish: Callable[[Report, Report], Any] = lambda public, owner: None,
) -> Protected:
    """Release the statistic of a request."""
    # The least noise that keeps the promise, in a ledger that has room for it, of people whom no other ledger holds.
    ready: Ready = _keeper(request, simulated).ready(request)
    # The comparison with other promises may fail, so it is computed while no value is drawn.
    designs, notes = _designs(request)
    # The last moment to refuse.
    before()
    _show_signals(ready.prepared, simulated)
    # Draw the value and add the noise. The ledger is written first.
    counted = ready.counted()
    # Publish both halves of the certificate together. If publish() raises, the ledger keeps the release as not yet
    # published. From Python nothing is written here: the release counts as published once the caller has it.
    released = certified(counted, designs, notes)
    publish(released.certificate, released.owner)
    counted.mark_published()
    return released


def run_declaration(request: Request) -> str:
    """Announce the query of a request in its ledger."""
    return _keeper(request).declared(request)


def _keeper(request: Request, simulated: Simulated | None = None) -> ModuleType:
    """Import the module of a promise, after the owner was told what was found in the data."""
    plan = request.plan
    if plan.chosen is None:
        raise ValueError(NO_CHOICE)
    if simulated:
        _check_signals(plan)
    for note in request.owner_notes:
        request.tell_owner(note)
    return import_module(f"leakbound.protection.{MODULE_OF[plan.chosen]}")


def _check_signals(plan: CalibrationPlan) -> None:
    """Refuse signals unless the promise is drawn, has simulated releases, and is about every record."""
    promise = plan.promise
    if not isinstance(promise, Drawn):
        raise ValueError("signals are of simulated releases under promise drawn; got another promise")
    if not promise.games:
        raise ValueError("signals are of simulated releases: games must be >= 1, got 0")
    if promise.about == "average":
        raise ValueError("signals are of the most exposed record, to whom about = average promises nothing")


def _show_signals(prepared: Prepared, simulated: Simulated | None) -> None:
    """Hand out simulated releases, for an audit of the promise."""
    if simulated and prepared.signals:
        simulated(prepared.signals())


def _designs(request: Request) -> tuple[DesignsCompared | None, list[str]]:
    """Compute what every promise would cost, for the owner who asks for it, or say why that is not known."""
    if not request.plan.compare:
        return None, []
    try:
        return cost_of_designs(request).facts, []
    except ValueError as reason:  # the release goes on without the comparison
        return None, [f"what other promises would cost cannot be computed: {reason}"]
