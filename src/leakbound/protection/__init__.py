"""Protection: a statistic that is released with the least noise that keeps a promise, and a certificate.

`api` holds the public calls, `request` makes one object of what was asked for, and `release` is the recipe that all
promises share. Each promise hands over what it `prepared`, and `certificate.halves` writes both halves of the
certificate:

* `promises.anyone`: of all records, for anyone who may be in any file, from the `sensitivity` of the statistic.
* `promises.file`: one record of this file is left out for the life of the data.
* `promises.drawn`: k of the n records are drawn.

The ledger of the first two is that of `of_all`; who is left out is one of its `units`. Several statistics that are
released together are `several` parts of one release. `ledger` remembers what was released, and `elsewhere` asks what
other ledgers know of the same people. `design_costs` puts all promises side by side.

Promise drawn makes of a request a `jobs.Job`: what is protected (`mechanism`) and what is promised (`target`).
`noise_search` finds the noise, from the features of sums and means, or from pairs of data sets (`pairs`, some of them
in closed form: `swaps`) after a `pilot` has chosen coupling, shape and grid. `no_noise` knows where the draw alone is
enough, `rounding` how noise is printed. `attack` attacks the release in simulated games.

The names of this package are imported when they are first used: pydantic is not loaded by ``import leakbound``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leakbound.protection.api import (
        CalibratedNoise,
        Protected,
        calibrate,
        calibrate_file,
        declare,
        declare_file,
        design_table,
        design_table_of_file,
        protect,
        protect_file,
    )
    from leakbound.protection.design_costs import DesignTable
    from leakbound.protection.multiplier import multiplier_report
    from leakbound.protection.setting.results import ReleasedStatistic

__all__ = [
    "CalibratedNoise",
    "DesignTable",
    "Protected",
    "ReleasedStatistic",
    "calibrate",
    "calibrate_file",
    "declare",
    "declare_file",
    "design_table",
    "design_table_of_file",
    "multiplier_report",
    "protect",
    "protect_file",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used (PEP 562)."""
    if name in __all__:
        files = {
            "multiplier_report": "multiplier",
            "DesignTable": "design_costs",
            "ReleasedStatistic": "setting.results",
        }
        file = files.get(name, "api")
        return getattr(import_module(f"{__name__}.{file}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
