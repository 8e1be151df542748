"""A calibration, a release, and a declaration in a ledger: each design has its own steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leakbound.core.types import Signals
from leakbound.protection.designs import DESIGNS, chosen_design
from leakbound.protection.request import Request
from leakbound.protection.results import CalibratedNoise, Protected
from leakbound.reports import Report

Simulated = Callable[[Signals], Any]


def run_calibration(request: Request, simulated: Simulated | None = None) -> CalibratedNoise:
    """Find the noise of a request and its certificate; nothing is released."""
    steps = DESIGNS[chosen_design(request.plan)]
    _tell_owner(request)
    return steps.calibrate(request, simulated)


def run_release(
    request: Request,
    before: Callable[[], Any] = lambda: None,
    simulated: Simulated | None = None,
    publish: Callable[[Report, Report], Any] = lambda public, owner: None,
) -> Protected:
    """Release the statistic of a request."""
    steps = DESIGNS[chosen_design(request.plan)]
    _tell_owner(request)
    return steps.release(request, before, simulated, publish)


def _tell_owner(request: Request) -> None:
    """Tell the owner what the data have, before anything is computed."""
    for note in request.owner_notes:
        request.tell_owner(note)


def run_declaration(request: Request) -> str:
    """Announce the query of a request in its ledger."""
    return DESIGNS[chosen_design(request.plan)].declare(request)
