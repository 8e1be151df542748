"""Releases: what leaves the house. Models never leave this room, only arrays.

The names of the room are imported when they are first used: PyTorch is not loaded by ``import leakscope``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leakscope.releases import canaries
    from leakscope.releases.dpsgd import DpSgd
    from leakscope.releases.estimator import Estimator
    from leakscope.releases.making import release_from
    from leakscope.releases.means import Bernoulli, FreshMean, Knowledge, Mean, Normal
    from leakscope.releases.network import Network
    from leakscope.releases.private import PrivateNetwork
    from leakscope.releases.recipe import Recipe

_HOME = {
    "Bernoulli": "means",
    "DpSgd": "dpsgd",
    "Estimator": "estimator",
    "FreshMean": "means",
    "Knowledge": "means",
    "Mean": "means",
    "Network": "network",
    "Normal": "means",
    "PrivateNetwork": "private",
    "Recipe": "recipe",
    "release_from": "making",
}

__all__ = [
    "Bernoulli",
    "DpSgd",
    "Estimator",
    "FreshMean",
    "Knowledge",
    "Mean",
    "Network",
    "Normal",
    "PrivateNetwork",
    "Recipe",
    "canaries",
    "release_from",
]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used (PEP 562)."""
    if name == "canaries":
        return import_module(f"{__name__}.canaries")
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
