"""The words for what findings hold as ids: one table an id, read by nothing but the reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from leakscope.core.findings import Finding, Scope, Term
from leakscope.reports import Curve
from leakscope.reports.about import About, BoundAbout

PLURALS = {"person": "people"}
SCOPES = {
    "every": "every {row}",
    "worst": "most exposed {row}",
    "median": "median {row}",
    "average": "random {row}",
    "one": "{row} in question",
    "any_data": "any data set",
    "halves": "halves of these {rows}, exact",
    "nominal": "these {rows}, nominal",
}
WITHOUT = "without_noise"  # the release of findings and curves that say what the noise is good for
RELEASES = {  # of reports that name no release of the user's
    WITHOUT: "without noise",
    "joint": "all releases of this draw that this ledger knows of",
    "joint_of_one": "the only release of this draw that this ledger knows of",
    "add_remove": "adjacency add_remove, a record is added or removed, as Opacus and TF Privacy count",
    "replace_one": "adjacency replace_one, a record is replaced by another",
    # what a protected release is compared with
    "this_calibration": "this calibration",
    "every_record": "the same, for every {row}",
    "random_record": "the same, for a random {row}",
    "dp_laplace": "DP Laplace",
    "dp_gaussian": "DP Gaussian",
    "dp_gaussian_pair": "DP Gaussian by (epsilon, delta)",
    "dp_gaussian_all_records": "DP Gaussian on all records",
    "pac_shape_of_sigma": "PAC privacy, shape of Sigma",
    "pac_least_noise": "PAC privacy, least noise",
    "averaged_information": "averaged information, Poisson draws",
    "izzo_printed": "Algorithm 1 as printed",
    "izzo_gamma": "Algorithm 1, Gamma radius",
    "moment_bound": "moment bound",
}
PHRASES = {  # of the terms of findings
    # how intervals are made
    "chernoff_kl_means": "Chernoff-KL of both means",
    "clopper_pearson": "Clopper-Pearson",
    "clopper_pearson_equal_models": "Clopper-Pearson over equal models",
    "clopper_pearson_joined": "Clopper-Pearson (square and add)",
    "clopper_pearson_pairs": "Clopper-Pearson on disjoint pairs",
    "clopper_pearson_points": "Clopper-Pearson over the points",
    "clopper_pearson_won_lost": "Clopper-Pearson of points won and lost",
    "cluster_t": "cluster t",
    "delong": "DeLong",
    "delong_within_folds": "DeLong within folds, variance times {overlap:g}",
    "empirical_bernstein": "empirical Bernstein, all records and outputs together",
    "hoeffding": "Hoeffding",
    "korn_graubard": "Korn-Graubard",
    "korn_graubard_models": "one threshold for all models, Korn-Graubard over models (square and add)",
    "korn_graubard_records": "one threshold for these models, Korn-Graubard over records (square and add)",
    "order_statistics": "order statistics and Clopper-Pearson (square and add)",
    "paired_t_models_points": "paired t, clustered by models and by points",
    "paired_t_points": "paired t, clustered by points",
    # what they are of
    "all_records_at_once": "all records at once",
    "boosted_folds": "gradient boosting on the records alone, {folds} folds",
    "coins": "coins",
    "coins_of_records": "coins of records",
    "gap_of_models": "gap of each model",
    "many_runs": "many runs, Clopper-Pearson",
    "one_run": "one run",
    "pairs": "pairs",
    "several_runs": "{runs} runs",
    "simulated_releases": "{games:,} simulated releases",
    "threshold_of_other_half": "threshold set on the other half",
    "threshold_of_other_models": "threshold set on other models",
    "whole_curve": "whole curve",
    # how values are made
    "better_prior_guess": "max(prior, 1 - prior)",
    "bisection": "bisection of the ceiling for {limit}",
    "exact": "exact",
    "keeps_limit": "keeps {limit}",
    "privacy_loss_distributions": "privacy loss distributions",
    "search_ended": "the search ended there",
    "the_limit": "the limit {limit}",
    # attacks on a protected release
    "all_data_sets": "all {sets:,} data sets",
    "failed_data_sets": "{failed:,} of which fail and are guessed by the prior",
    "gaussian_known": "Gaussian distribution with the exact mean and covariance, guess by the posterior",
    "gaussian_learned": "Gaussian distribution learned from {learned:,} other releases, threshold from {aside:,}",
    "posterior": "posterior over the data sets",
    # other methods than ours
    "covariance_of_draws": "covariance from {worked:,} of {drawn:,} draws",
    "covariance_of_features": "covariance from the features of all records",
    "dp_replace_one": "differential privacy, replacing one record: every record of any data",
    "error_against_all": "error against the statistic of all records",
    "information_average": (
        "mutual information of the data in use and the release, shared by its records: a random record"
    ),
    "information_every": "mutual information of the data in use and the release: every record of these data",
    "noise_alone": "noise alone",
    "second_moment_of_outputs": "second moment of the outputs, any algorithm: every record of these data",
    "second_moments": "second moments of each coordinate: every record of these data",
    "sigma_of_all_draws": (
        "sigma is taken from draws of all records: from halves of the data in use, as printed, it promises nothing"
    ),
}
ROWS = {"table": "cell"}  # what a row of a bound is called, where it is no single record


def plural(unit: str) -> str:
    """Several of a unit."""
    return PLURALS.get(unit, f"{unit}s")


def row_word(about: About) -> str:
    """Return what the numbers of a report are about: its unit, or the cell of a table."""
    return ROWS[about.bound] if of_cells(about) else about.unit


def of_cells(about: About) -> TypeGuard[BoundAbout]:
    """Whether the rows of a report are cells, each of which holds several records."""
    return isinstance(about, BoundAbout) and about.bound in ROWS


def words(term: Term) -> str:
    """Write a term in words; an id that this version does not know is printed as it is.

    Examples
    --------
    >>> words(Term("covariance_of_draws", worked=498, drawn=1000))
    'covariance from 498 of 1,000 draws'
    """
    pattern = PHRASES.get(term.id)
    return term.id.replace("_", " ") if pattern is None else pattern.format(**term.values)


def method(terms: Sequence[Term]) -> str:
    """How a number was made, in words."""
    return ", ".join(words(term) for term in terms)


def scope(which: Scope, row: str) -> str:
    """Whom a number is about, with the index of the record or the name of the cell where it is known.

    Examples
    --------
    >>> scope(Scope("worst", 17), "record"), scope(Scope("worst", name="Sales / F"), "cell"), scope(Scope(), "person")
    ('most exposed record (17)', 'most exposed cell: Sales / F', 'every person')
    """
    words = SCOPES[which.kind].format(row=row, rows=plural(row))
    if which.name:
        return f"{words}: {which.name}"
    return words if which.index is None else f"{words} ({which.index})"


def place(item: Finding | Curve) -> str:
    """Return the id of a release, else that of a scope: what the numbers of one part have in common."""
    return item.release or ("" if item.scope.kind == "every" else item.scope.kind)


def title(release: str, which: Scope, row: str) -> str:
    """Title a part of a bound or of a protected release: its release, or whom it is about."""
    if release in RELEASES:
        return RELEASES[release].format(row=row)
    if release:
        return release
    return scope(which, row)
