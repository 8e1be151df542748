"""The recipe of a release, which all promises share.

Everything that can be refused is refused before the next step: first the plan, then what ledgers know, the noise, the
last question of the caller. Only then is anything drawn; the ledger is written before the value is published, and
marked after that, so that the same request gives the same bytes once more after an interruption.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from leakbound.core.types import Signals
from leakbound.plans.promises import Design
from leakbound.plans.protects import NO_CHOICE
from leakbound.protection.setting.request import Request
from leakbound.protection.setting.results import CalibratedNoise, Protected
from leakbound.protection.setting.steps import Steps
from leakbound.reports import Report

Simulated = Callable[[Signals], Any]
_HERE = "leakbound.protection"
# How each promise is kept. Promise drawn imports what audits need, which takes a second.
STEPS: Mapping[Design, tuple[str, str]] = {
    "dp": ("of_all", "OfAnyone"),
    "leave-one-out": ("of_all", "OfFile"),
    "half": ("promises.drawn.half", "OfDraw"),
}


def run_calibration(request: Request, simulated: Simulated | None = None) -> CalibratedNoise:
    """Find the noise of a request and its certificate; nothing is released."""
    return _steps(request, simulated).calibrated(simulated)


def run_release(
    request: Request,
    before: Callable[[], Any] = lambda: None,
    simulated: Simulated | None = None,
    publish: Callable[[Report, Report], Any] = lambda public, owner: None,
) -> Protected:
    """Release the statistic of a request."""
    steps = _steps(request, simulated)
    # The least noise that keeps the promise, in a ledger that has room for it, of people whom no other ledger holds.
    ready = steps.ready()
    # The last moment to refuse.
    before()
    if simulated:
        simulated(ready.signals())
    # The draw and the noise; the ledger notes the release before anybody sees it.
    counted = ready.counted()
    # Both halves of the certificate, published together. If this does not return, the ledger knows that the release has
    # not reached its place.
    released = counted.certified()
    publish(released.certificate, released.owner)
    counted.mark_published()
    return released


def run_declaration(request: Request) -> str:
    """Announce the query of a request in its ledger."""
    return _steps(request).declared()


def _steps(request: Request, simulated: Simulated | None = None) -> Steps:
    """Choose the steps of a promise, and tell the owner what the data have, before anything is computed."""
    if request.plan.chosen is None:
        raise ValueError(NO_CHOICE)
    module, name = STEPS[request.plan.chosen]
    steps = getattr(import_module(f"{_HERE}.{module}"), name)(request)
    if simulated:
        steps.check_signals()
    for note in request.owner_notes:
        request.tell_owner(note)
    return steps
