"""Protection: a statistic of a random subset, released with the least noise that keeps a promise, and a certificate.

``mechanisms`` says what is protected, ``jobs`` reads it from a plan. ``calibrating`` finds the noise: by the features
of sums and means, or, after a pilot (``piloting``), by pairs of data sets, some of them in closed form
(``swapping``); ``unneeded`` knows where the draw alone is enough. ``releasing`` draws and adds, ``remembering`` keeps
the ledger, ``certifying`` writes the certificate. ``contesting`` attacks what is protected: ``enumerating`` tries
every data set, ``approximating`` takes the statistic for Gaussian, both on the games of ``simulating``. ``comparing``
and ``wrapping`` say what other methods do. ``multiplying`` is for DP-SGD, whose accountant does the rest.

The names of the room are imported when they are first used: pydantic is not loaded by ``import leakscope``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leakscope.protecting.multiplying import multiplier_report
    from leakscope.protecting.releasing import (
        CalibratedNoise,
        Protected,
        calibrate,
        calibrate_file,
        declare,
        declare_file,
        protect,
        protect_file,
    )

__all__ = [
    "CalibratedNoise",
    "Protected",
    "calibrate",
    "calibrate_file",
    "declare",
    "declare_file",
    "multiplier_report",
    "protect",
    "protect_file",
]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used (PEP 562)."""
    if name in __all__:
        file = "multiplying" if name == "multiplier_report" else "releasing"
        return getattr(import_module(f"{__name__}.{file}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
