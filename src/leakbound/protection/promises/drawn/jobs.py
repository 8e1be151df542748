"""A statistic of k records that are drawn from all n of them, and what is promised about the draw."""

from __future__ import annotations

from dataclasses import dataclass

from leakbound.plans.promises import Drawn
from leakbound.plans.protects import CalibrationPlan
from leakbound.protection.promises.drawn.target import PrivacyTarget
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.protection.setting.request import Request


@dataclass(frozen=True, eq=False)
class Job:
    """What was asked for, and of what."""

    request: Request
    mechanism: Mechanism
    target: PrivacyTarget

    @property
    def plan(self) -> CalibrationPlan:
        """The plan of the request."""
        return self.request.plan

    @property
    def promise(self) -> Drawn:
        """The promise, or its defaults where costs of promises are compared."""
        return self.plan.under(Drawn)

    @classmethod
    def of(cls, request: Request) -> Job:
        """Protect a statistic of k records of a request."""
        promise = request.plan.under(Drawn)
        mechanism = Mechanism.of(request.statistic, request.data.points, promise.k, promise.seed, request.execution)
        target = PrivacyTarget(
            request.plan.eta,
            promise.about,
            promise.noise,
            promise.coupling,
            promise.confidence,
            promise.fits,
            promise.seed,
            promise.scale,
        )
        return cls(request, mechanism, target)
