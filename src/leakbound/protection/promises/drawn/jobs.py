"""Design half: a statistic of k records that are drawn from all n of them, and what is promised about the draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leakbound.core.findings import Term
from leakbound.data import Data
from leakbound.plans.promises import Drawn
from leakbound.plans.protects import CalibrationPlan
from leakbound.protection.mechanism import Mechanism
from leakbound.protection.promises.drawn.target import PrivacyTarget
from leakbound.protection.request import Request


@dataclass(frozen=True, eq=False)
class Job:
    """What was asked for, and of what."""

    plan: CalibrationPlan
    promise: Drawn
    data: Data
    mechanism: Mechanism
    target: PrivacyTarget
    command: str = ""
    notes: Sequence[str] = ()
    assumptions: Sequence[Term] = ()
    owner_notes: Sequence[str] = ()

    @classmethod
    def of(cls, request: Request) -> Job:
        """Protect a statistic of k records of a request."""
        plan, promise = request.plan, request.plan.under(Drawn)
        mechanism = Mechanism.of(request.statistic, request.data.points, promise.k, promise.seed, request.execution)
        target = PrivacyTarget(
            plan.eta,
            promise.about,
            promise.noise,
            promise.coupling,
            promise.confidence,
            promise.fits,
            promise.seed,
            promise.scale,
        )
        return cls(
            plan,
            promise,
            request.data,
            mechanism,
            target,
            command=request.command,
            notes=request.notes,
            assumptions=request.assumptions,
            owner_notes=request.owner_notes,
        )
