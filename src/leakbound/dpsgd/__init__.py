"""DP-SGD: configuration, accountant, noise for a privacy target, training, canaries, and the observer of the steps.

The names of this package are imported when they are first used: ``import leakbound`` does not load PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leakbound.dpsgd import canaries
    from leakbound.dpsgd.calibration import dpsgd_multiplier
    from leakbound.dpsgd.config import DpSgd
    from leakbound.dpsgd.network import PrivateNetwork

_HOME = {
    "DpSgd": "config",
    "PrivateNetwork": "network",
    "dpsgd_multiplier": "calibration",
}

__all__ = [
    "DpSgd",
    "PrivateNetwork",
    "canaries",
    "dpsgd_multiplier",
]


def __getattr__(name: str) -> Any:
    """Import public names when they are first used (PEP 562)."""
    if name == "canaries":
        return import_module(f"{__name__}.canaries")
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
