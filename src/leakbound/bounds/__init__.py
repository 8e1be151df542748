"""Bounds: what a theorem proves about any attacker, as numbers and trade-offs.

``BOUNDS`` is the table of them; ``leakbound bound NAME`` is made from it. A row names a function and does not
import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from leakbound.core.checks import one_of
from leakbound.core.findings import Status

if TYPE_CHECKING:
    from leakbound.bounds.dp import dp_from_mip, dpsgd_tradeoff, mip_from_dp, posterior_from_dp, posterior_from_tradeoff
    from leakbound.bounds.exact import (
        bayes_attacker,
        exact_eta,
        exact_eta_discrete,
        exact_tradeoff,
        pmp_discrete,
        subsets,
    )
    from leakbound.bounds.exponential import (
        clipped_mean_sensitivity,
        geometric_median_loss,
        geometric_median_sensitivity,
        pmp_exponential,
        subset_epsilon,
        subset_sensitivity,
    )
    from leakbound.bounds.gaussian import analytic_gaussian_epsilon, analytic_gaussian_scale
    from leakbound.bounds.generalisation import (
        Exponential,
        SubGaussian,
        gap_bound,
        gap_lower,
        generalisation_bound,
        generalisation_bound_tails,
    )
    from leakbound.bounds.information import gaussian_information, kl_upper, mutual_information_discrete
    from leakbound.bounds.leakage import (
        leakage_score,
        leakage_scores,
        leakage_threshold,
        leakage_tradeoff,
        noisy_score,
        plug_in_score,
        wrong_target,
    )
    from leakbound.bounds.left_out import exact_left_out
    from leakbound.bounds.membership import (
        epsilon_for_accuracy,
        epsilon_for_subset,
        epsilons_exponential,
        epsilons_gaussian,
        pmp_gaussian,
        scale_for_accuracy,
    )
    from leakbound.bounds.posterior import gaussian_mean_tau, membership_posterior, posterior_bound
    from leakbound.bounds.regression import correlation_tv, leverages, linear_regression_bayes, simulate_regression_game
    from leakbound.bounds.tables import (
        cells_to_merge,
        exact_eta_table,
        related_cells_to_merge,
        smallest_cell,
    )
    from leakbound.bounds.totals import WholeNoise, exact_eta_total, on_grid


@dataclass(frozen=True)
class Bound:
    """A row of the table of bounds.

    Parameters
    ----------
    name : str
        As users ask for it: ``leakbound bound NAME``.
    function : str
        Import path, ``"package.module:name"``, of the theorem.
    source : str
        Key of the bibliography and the theorem.
    summary : str
        One line.
    report : str
        Import path of the function that makes the report from a plan, whose fields are the options.
    example : str
        A command.
    status : {"certified", "asymptotic"}
        Of what it says.
    publishable : bool
        Whether some of it may go to people who may not see the data.

    Examples
    --------
    >>> from leakbound.bounds import BOUNDS
    >>> BOUNDS["dp"].status
    'certified'
    """

    name: str
    function: str
    source: str
    summary: str
    report: str
    example: str
    status: Status = "certified"
    publishable: bool = True


_HERE, _REPORTS = "leakbound.bounds", "leakbound.bounding"
_ROWS = (
    Bound(
        name="dp",
        function=f"{_HERE}.dp:mip_from_dp",
        source="kairouz2015, Theorem 2.1; izzo2022, Theorem 4",
        summary="Ceilings of (epsilon, delta)-DP: accuracy, eta, TPR at FPR; or the epsilon that keeps a limit.",
        report=f"{_REPORTS}.from_numbers:dp",
        example="leakbound bound dp --epsilon 1 --delta 1e-5",
    ),
    Bound(
        name="gaussian",
        function="leakbound.core.tradeoff:Gaussian",
        source="dong2022, eq. 6",
        summary="Ceilings of mu-GDP, or the mu that keeps a limit.",
        report=f"{_REPORTS}.from_numbers:gaussian",
        example="leakbound bound gaussian --mu 1",
    ),
    Bound(
        name="dpsgd",
        function=f"{_HERE}.dp:dpsgd_tradeoff",
        source="dp_accounting, privacy loss distributions of the subsampled Gaussian",
        summary="Ceilings of DP-SGD by its privacy loss distribution.",
        report=f"{_REPORTS}.from_numbers:dpsgd",
        example="leakbound bound dpsgd --noise-multiplier 1.1 --sample-rate 0.01 --steps 10000",
    ),
    Bound(
        name="pmp",
        function=f"{_HERE}.exponential:pmp_exponential",
        source="lowy2024, Propositions 9 and 12",
        summary="Practical membership privacy on this data: noisy mean, or exponential mechanism.",
        report=f"{_REPORTS}.from_data:pmp",
        example="leakbound bound pmp --data wine --clip 1 --scale 0.1",
    ),
    Bound(
        name="leakage",
        function=f"{_HERE}.leakage:leakage_score",
        source="azize2024, Theorems 3.1, 4.1, 4.3 (corrected) and 4.5",
        summary="Per-datum leakage: score and ceiling of every record of a table.",
        report=f"{_REPORTS}.from_data:leakage",
        example="leakbound bound leakage --data people.csv --unit person",
        status="asymptotic",
    ),
    Bound(
        name="table",
        function=f"{_HERE}.tables:exact_eta_table",
        source="Bayes posterior given the counts, exact",
        summary="Counts without noise: exact eta of every cell, the smallest cell, the cells to merge.",
        report=f"{_REPORTS}.from_data:table",
        example="leakbound bound table --data people.csv --by sector,region --eta 0.1",
    ),
    Bound(
        name="total",
        function=f"{_HERE}.totals:exact_eta_total",
        source="distribution of the total by characteristic functions, exact",
        summary="A total without noise: exact eta of every record.",
        report=f"{_REPORTS}.from_data:total",
        example="leakbound bound total --data people.csv --column pay",
    ),
    Bound(
        name="leave-one-out",
        function="leakbound.noise.left_out:LeftOut",
        source="two Gaussians, exact; wang2019 (per-instance differential privacy)",
        summary="A statistic of all records with declared noise: how well each record is told from its absence.",
        report=f"{_REPORTS}.left_out:leave_one_out",
        example="leakbound bound leave-one-out --data people.csv --statistic mean --noise-scale 0.2",
        publishable=False,
    ),
    Bound(
        name="gap",
        function=f"{_HERE}.generalisation:generalisation_bound",
        source="delgrosso2021, Theorem 2",
        summary="Accuracy that some attacker reaches, by the gap alone.",
        report=f"{_REPORTS}.from_numbers:gap",
        example="leakbound bound gap --gap 0.2",
    ),
    Bound(
        name="information",
        function=f"{_HERE}.information:kl_upper",
        source="delgrosso2021, Theorem 5 (for accuracy of at least the prior guess)",
        summary="Ceiling of the accuracy by mutual information.",
        report=f"{_REPORTS}.from_numbers:information",
        example="leakbound bound information --information 0.1",
    ),
    Bound(
        name="regression",
        function=f"{_HERE}.regression:linear_regression_bayes",
        source="delgrosso2021, section 4.1; closed form of the Bayes attacker",
        summary="Linear regression: accuracy of the Bayes attacker, exact, and of every row.",
        report=f"{_REPORTS}.from_data:regression",
        example="leakbound bound regression --data wine --noise-std 2",
    ),
)
BOUNDS: Mapping[str, Bound] = MappingProxyType({row.name: row for row in _ROWS})

_FROM = {
    "dp": (
        "dp_from_mip",
        "dpsgd_tradeoff",
        "mip_from_dp",
        "posterior_from_dp",
        "posterior_from_tradeoff",
    ),
    "exact": (
        "bayes_attacker",
        "exact_eta",
        "exact_eta_discrete",
        "exact_tradeoff",
        "pmp_discrete",
        "subsets",
    ),
    "exponential": (
        "clipped_mean_sensitivity",
        "geometric_median_loss",
        "geometric_median_sensitivity",
        "pmp_exponential",
        "subset_epsilon",
        "subset_sensitivity",
    ),
    "gaussian": (
        "analytic_gaussian_epsilon",
        "analytic_gaussian_scale",
    ),
    "generalisation": (
        "Exponential",
        "SubGaussian",
        "gap_bound",
        "gap_lower",
        "generalisation_bound",
        "generalisation_bound_tails",
    ),
    "information": (
        "gaussian_information",
        "kl_upper",
        "mutual_information_discrete",
    ),
    "leakage": (
        "leakage_score",
        "leakage_scores",
        "leakage_threshold",
        "leakage_tradeoff",
        "noisy_score",
        "plug_in_score",
        "wrong_target",
    ),
    "left_out": ("exact_left_out",),
    "membership": (
        "epsilon_for_accuracy",
        "epsilon_for_subset",
        "epsilons_exponential",
        "epsilons_gaussian",
        "pmp_gaussian",
        "scale_for_accuracy",
    ),
    "posterior": (
        "gaussian_mean_tau",
        "membership_posterior",
        "posterior_bound",
    ),
    "regression": (
        "correlation_tv",
        "leverages",
        "linear_regression_bayes",
        "simulate_regression_game",
    ),
    "tables": (
        "cells_to_merge",
        "exact_eta_table",
        "related_cells_to_merge",
        "smallest_cell",
    ),
    "totals": (
        "WholeNoise",
        "exact_eta_total",
        "on_grid",
    ),
}
_HOME = {name: module for module, names in _FROM.items() for name in names}

__all__ = [
    "BOUNDS",
    "Bound",
    "Exponential",
    "SubGaussian",
    "WholeNoise",
    "analytic_gaussian_epsilon",
    "analytic_gaussian_scale",
    "bayes_attacker",
    "cells_to_merge",
    "clipped_mean_sensitivity",
    "correlation_tv",
    "dp_from_mip",
    "dpsgd_tradeoff",
    "epsilon_for_accuracy",
    "epsilon_for_subset",
    "epsilons_exponential",
    "epsilons_gaussian",
    "exact_eta",
    "exact_eta_discrete",
    "exact_eta_table",
    "exact_eta_total",
    "exact_left_out",
    "exact_tradeoff",
    "find",
    "gap_bound",
    "gap_lower",
    "gaussian_information",
    "gaussian_mean_tau",
    "generalisation_bound",
    "generalisation_bound_tails",
    "geometric_median_loss",
    "geometric_median_sensitivity",
    "kl_upper",
    "leakage_score",
    "leakage_scores",
    "leakage_threshold",
    "leakage_tradeoff",
    "leverages",
    "linear_regression_bayes",
    "membership_posterior",
    "mip_from_dp",
    "mutual_information_discrete",
    "noisy_score",
    "on_grid",
    "plug_in_score",
    "pmp_discrete",
    "pmp_exponential",
    "pmp_gaussian",
    "posterior_bound",
    "posterior_from_dp",
    "posterior_from_tradeoff",
    "related_cells_to_merge",
    "scale_for_accuracy",
    "simulate_regression_game",
    "smallest_cell",
    "subset_epsilon",
    "subset_sensitivity",
    "subsets",
    "wrong_target",
]


def find(name: str) -> Bound:
    """Return the row of a name.

    Parameters
    ----------
    name : str
        A key of ``BOUNDS``.

    Returns
    -------
    Bound
        The row of the table.

    Raises
    ------
    ValueError
        For an unknown name, with the nearest known one.

    Examples
    --------
    >>> from leakbound.bounds import find
    >>> find("leakage").status
    'asymptotic'
    """
    return BOUNDS[one_of("bound", name, BOUNDS)]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used (PEP 562)."""
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
