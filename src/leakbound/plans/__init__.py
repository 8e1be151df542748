"""Plans: frozen descriptions of jobs. Their fields are the single list of words of TOML keys, flags and keywords.

The names of the room are imported when they are first used: pydantic is not loaded by ``import leakbound``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leakbound.plans.audits import AuditPlan, ClaimPlan, ModelPlan, from_toml
    from leakbound.plans.bounds import BOUND_PLANS
    from leakbound.plans.limits import Limit
    from leakbound.plans.plan import Plan, read
    from leakbound.plans.protects import CalibrationPlan, MultiplierPlan, ProtectionPlan

_FROM = {
    "AuditPlan": "audits",
    "BOUND_PLANS": "bounds",
    "CalibrationPlan": "protects",
    "ClaimPlan": "audits",
    "Limit": "limits",
    "ModelPlan": "audits",
    "MultiplierPlan": "protects",
    "Plan": "plan",
    "ProtectionPlan": "protects",
    "from_toml": "audits",
    "read": "plan",
}

__all__ = [
    "BOUND_PLANS",
    "AuditPlan",
    "CalibrationPlan",
    "ClaimPlan",
    "Limit",
    "ModelPlan",
    "MultiplierPlan",
    "Plan",
    "ProtectionPlan",
    "from_toml",
    "read",
]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used (PEP 562)."""
    if name in _FROM:
        return getattr(import_module(f"{__name__}.{_FROM[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
