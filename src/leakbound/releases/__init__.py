"""Releases: what is published. Models stay in this package, and only arrays leave it.

The names of this package are imported when they are first used: ``import leakbound`` does not load PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leakbound.releases.estimator import Estimator
    from leakbound.releases.factory import release_from
    from leakbound.releases.labels import LabelsOnly
    from leakbound.releases.networks.network import Network
    from leakbound.releases.networks.recipe import Recipe
    from leakbound.releases.statistics.means import Bernoulli, FreshMean, Knowledge, Mean, Normal
    from leakbound.releases.statistics.private_descent import PrivateDescent

_HOME = {
    "Bernoulli": "statistics.means",
    "Estimator": "estimator",
    "FreshMean": "statistics.means",
    "Knowledge": "statistics.means",
    "LabelsOnly": "labels",
    "Mean": "statistics.means",
    "Network": "networks.network",
    "Normal": "statistics.means",
    "PrivateDescent": "statistics.private_descent",
    "Recipe": "networks.recipe",
    "release_from": "factory",
}

__all__ = [
    "Bernoulli",
    "Estimator",
    "FreshMean",
    "Knowledge",
    "LabelsOnly",
    "Mean",
    "Network",
    "Normal",
    "PrivateDescent",
    "Recipe",
    "release_from",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used (PEP 562)."""
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
