"""Bounds: what a theorem proves about any attacker, as numbers and trade-offs.

``BOUNDS`` is the table of them; ``leakscope bound NAME`` is made from it. A row names a function and does not
import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from leakscope.core.checks import one_of
from leakscope.core.findings import Status

if TYPE_CHECKING:
    from leakscope.bounds.dp import dp_from_mip, dpsgd_tradeoff, mip_from_dp, posterior_from_dp
    from leakscope.bounds.exact import (
        bayes_attacker,
        exact_eta,
        exact_eta_discrete,
        exact_tradeoff,
        pmp_discrete,
        subsets,
    )
    from leakscope.bounds.exponential import (
        clipped_mean_sensitivity,
        geometric_median_loss,
        geometric_median_sensitivity,
        pmp_exponential,
        subset_epsilon,
        subset_sensitivity,
    )
    from leakscope.bounds.gaussian import analytic_gaussian_epsilon, analytic_gaussian_scale
    from leakscope.bounds.generalisation import (
        Exponential,
        SubGaussian,
        gap_bound,
        gap_lower,
        generalisation_bound,
        generalisation_bound_tails,
    )
    from leakscope.bounds.information import gaussian_information, kl_upper, mutual_information_discrete
    from leakscope.bounds.leakage import (
        leakage_score,
        leakage_scores,
        leakage_threshold,
        leakage_tradeoff,
        noisy_score,
        plug_in_score,
        wrong_target,
    )
    from leakscope.bounds.membership import (
        epsilon_for_accuracy,
        epsilons_exponential,
        epsilons_gaussian,
        pmp_gaussian,
        scale_for_accuracy,
    )
    from leakscope.bounds.posterior import gaussian_mean_tau, membership_posterior, posterior_bound
    from leakscope.bounds.regression import correlation_tv, leverages, linear_regression_bayes, simulate_regression_game
    from leakscope.bounds.tables import (
        categories_to_merge,
        cells_to_merge,
        exact_eta_table,
        related_cells_to_merge,
        smallest_cell,
    )
    from leakscope.bounds.totals import WholeNoise, exact_eta_total, on_grid


@dataclass(frozen=True)
class Bound:
    """A row of the table of bounds.

    Parameters
    ----------
    name : str
        As users ask for it: ``leakscope bound NAME``.
    question : str
        What it answers.
    function : str
        Import path, ``"package.module:name"``, of the theorem.
    source : str
        Key of the bibliography and the theorem.
    summary : str
        One line.
    status : {"certified", "asymptotic"}
        Of what it says.

    Examples
    --------
    >>> from leakscope.bounds import BOUNDS
    >>> BOUNDS["dp"].status
    'certified'
    """

    name: str
    question: str
    function: str
    source: str
    summary: str
    status: Status = "certified"


_HERE = "leakscope.bounds"
_ROWS = (
    Bound(
        "dp",
        "What does (epsilon, delta)-differential privacy allow any attacker?",
        f"{_HERE}.dp:mip_from_dp",
        "kairouz2015, Theorem 2.1; izzo2022, Theorem 4",
        "Ceilings of (epsilon, delta)-DP: accuracy, eta, TPR at FPR; or the epsilon that keeps a limit.",
    ),
    Bound(
        "gaussian",
        "What does Gaussian differential privacy allow any attacker?",
        "leakscope.core.tradeoff:Gaussian",
        "dong2022, eq. 6",
        "Ceilings of mu-GDP, or the mu that keeps a limit.",
    ),
    Bound(
        "dpsgd",
        "What does this DP-SGD training allow any attacker?",
        f"{_HERE}.dp:dpsgd_tradeoff",
        "dp_accounting, privacy loss distributions of the subsampled Gaussian",
        "Ceilings of DP-SGD by its privacy loss distribution.",
    ),
    Bound(
        "pmp",
        "What may an attacker learn who knows these records, but not which half of them was used?",
        f"{_HERE}.exponential:pmp_exponential",
        "lowy2024, Propositions 9 and 12",
        "Practical membership privacy on this data: noisy mean, or exponential mechanism.",
    ),
    Bound(
        "leakage",
        "How much does the mean of this table reveal about each of its records?",
        f"{_HERE}.leakage:leakage_score",
        "azize2024, Theorems 3.1, 4.1, 4.3 (corrected) and 4.5",
        "Per-datum leakage: score and ceiling of every record of a table.",
        "asymptotic",
    ),
    Bound(
        "table",
        "How much do the counts of this table reveal about who is in?",
        f"{_HERE}.tables:exact_eta_table",
        "Bayes posterior given the counts, exact",
        "Counts without noise: exact eta of every cell, the smallest cell, the cells to merge.",
    ),
    Bound(
        "total",
        "How much does this total reveal about who is in?",
        f"{_HERE}.totals:exact_eta_total",
        "law of the total by characteristic functions, exact",
        "A total without noise: exact eta of every record.",
    ),
    Bound(
        "gap",
        "What does a generalisation gap give to an attacker?",
        f"{_HERE}.generalisation:generalisation_bound",
        "delgrosso2021, Theorem 2",
        "Accuracy that some attacker reaches, by the gap alone.",
    ),
    Bound(
        "information",
        "What does so much mutual information allow any attacker?",
        f"{_HERE}.information:kl_upper",
        "delgrosso2021, Theorem 5 (for accuracy of at least the prior guess)",
        "Ceiling of the accuracy by mutual information.",
    ),
    Bound(
        "regression",
        "How much does least squares on this design reveal about each of its rows?",
        f"{_HERE}.regression:linear_regression_bayes",
        "delgrosso2021, section 4.1; closed form of the Bayes attacker",
        "Linear regression: accuracy of the Bayes attacker, exact, and of every row.",
    ),
)
BOUNDS: Mapping[str, Bound] = MappingProxyType({row.name: row for row in _ROWS})

_FROM = {
    "dp": (
        "dp_from_mip",
        "dpsgd_tradeoff",
        "mip_from_dp",
        "posterior_from_dp",
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
    "membership": (
        "epsilon_for_accuracy",
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
        "categories_to_merge",
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
    "categories_to_merge",
    "cells_to_merge",
    "clipped_mean_sensitivity",
    "correlation_tv",
    "dp_from_mip",
    "dpsgd_tradeoff",
    "epsilon_for_accuracy",
    "epsilons_exponential",
    "epsilons_gaussian",
    "exact_eta",
    "exact_eta_discrete",
    "exact_eta_table",
    "exact_eta_total",
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
    """The row of a name.

    Raises
    ------
    ValueError
        For an unknown name, with the nearest known one.

    Examples
    --------
    >>> from leakscope.bounds import find
    >>> find("leakage").status
    'asymptotic'
    """
    return BOUNDS[one_of("bound", name, BOUNDS)]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used (PEP 562)."""
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
