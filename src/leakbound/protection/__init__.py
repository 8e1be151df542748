"""Protection: a statistic that is released with the least noise that keeps a promise, and a certificate.

`api` holds the public calls, `request` makes one object of what was asked for, and `run` hands it to its design, a row
of `designs`. Each design keeps one promise:

* `differential_privacy`: of all records, for anyone who may be in any file, from the `sensitivity` of the statistic.
* `leave_one_out`: one record of this file is left out for the life of the data (`left_out_noise`, `left_out_attack`).
* `half`: k of the n records are drawn.

Several statistics that are released together are `several` parts of one release. In `ledger`, `elsewhere` knows
what was released of the same people in other ledgers, and `listed` is the list of those that a user has begun.

The first three hand over what they `prepared`, and `released` does the rest: the ledger (who is left out is one of its
`units`), the value, both halves of the certificate (`release_report`). `design_costs` puts all designs side by side.

Design half, in the order of a release:

* `half` has the steps of a calibration and of a release, in order.
* `jobs` makes of a request what is protected (`mechanism`) and what is promised (`target`).
* `calibration` finds the noise, from the features of sums and means, or from pairs of data sets (`pairs`, some of them
  in closed form: `swaps`) after a `pilot` has chosen coupling, shape and grid. `no_noise` knows where the draw alone
  is enough, `rounding` how noise is printed.
* `attack` attacks the release, by the best attacker (`attack_bayes`) or an approximate one (`attack_gaussian`), in
  simulated games (`attack_games`).
* `comparison` computes the noise of other methods (differential privacy from the `sensitivity` of the statistic), and
  `izzo_algorithm` releases by one of them.
* `ledger` remembers releases; `publication` and `certificate` write the public and the owner's half of the report.
* `multiplier` is for DP-SGD, whose accountant does the rest.

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
    from leakbound.protection.results import ReleasedStatistic

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
        files = {"multiplier_report": "multiplier", "DesignTable": "design_costs", "ReleasedStatistic": "results"}
        file = files.get(name, "api")
        return getattr(import_module(f"{__name__}.{file}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
