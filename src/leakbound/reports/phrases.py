"""The words for what findings hold as ids: one table an id, read by nothing but the reports."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeGuard

from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.reasons import REASONS
from leakbound.core.unit_words import UnitWord
from leakbound.reports import Curve, Verdict
from leakbound.reports.about import About, BoundAbout, TermFacts

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
    "slice": "{rows} of the slice",
    "group": "{rows} of the group",
}
WITHOUT = "without_noise"  # the release of findings and curves that say what the noise is good for
RELEASES = {  # of reports that name no release of the user's
    WITHOUT: "without noise",
    "joint": "all releases of this draw that this ledger knows of",
    "joint_of_one": "the only release of this draw that this ledger knows of",
    "spent": "all releases of this ledger so far",
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
    "student_t": "Student's t",
    "paired_t_points": "paired t, clustered by points",
    # what they are of
    "all_records_at_once": "all records at once",
    "all_slices_at_once": "all slices at once, {intervals:,} intervals",
    "all_groups_at_once": "all groups and attacks at once, {intervals:,} intervals",
    "boosted_folds": "gradient boosting on the records alone, {folds} folds",
    "coins": "coins",
    "coins_of_records": "coins of records",
    "gap_of_models": "gap of each model",
    "independent_canaries": "independent canaries, thresholds at fixed ranks",
    "many_runs": "many runs, thresholds at fixed ranks",
    "one_run": "one run",
    "pairs": "pairs",
    "several_runs": "{runs} runs",
    "simulated_releases": "{games:,} simulated releases",
    "threshold_of_other_half": "threshold set on the other half",
    "threshold_of_other_models": "threshold set on other models",
    "step_by_step": "each canary in each step",
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
    # what numbers rest on: audits
    "searched": "by its class, and by a comparison of all that is in it with the training data",
    "random_members": "who was in was drawn at random from one source",
    "not_by_the_shift": f"the attack succeeds because of the model, although {REASONS['shift']}",
    "scores_of_one_model": "the scores of a model use no other attacked model",
    "training_as_described": "the training does what is said of it",
    "poisson_batches": "each record is in a batch by a coin of its own",
    "fixed_batches": "each batch is a fixed number of records, drawn anew",
    "dpsgd_but_for_its_noise": (
        "ε by the whole curve: the training is DP-SGD at its rate and number of steps, with more noise or less"
    ),
    "canaries_independent": (
        "ε of independent canaries: in addition, the noise in the coordinate of each canary is independent of the "
        "noise in those of the others"
    ),
    "gaussian_steps": (
        "ε step by step: each step is a Gaussian mechanism of one size, and the accountant adds the steps up; it is no "
        "lower bound of ε for any other mechanism"
    ),
    "independent_noise": "ε step by step: the noise of the steps and of the coordinates of canaries is independent",
    "fixed_thresholds": "ε step by step: the thresholds follow from the claimed noise, and were fixed beforehand",
    "counted_rate": (
        "ε step by step: each canary that is in the data is in each batch by a coin of its own, whose probability is "
        "counted"
    ),
    "own_layers_unseen": REASONS["own_layers_unseen"],
    "dpsgd_accountant": (
        "the accountant of noise multiplier {noise_multiplier:g}, sample rate {sample_rate:g}, {steps:,} steps"
    ),
    "dpsgd_accountant_fixed": (
        "the accountant of noise multiplier {noise_multiplier:g}, sample rate {sample_rate:g}, {steps:,} steps, "
        "batches of fixed size"
    ),
    # bounds
    "large_table": "many records and many columns (asymptotic)",
    "moments_of_the_table": (
        "the distribution of the records has the mean and the {covariance} covariance of the table"
    ),
    "knows_all_other_records": "the attacker knows all other records, the statistic and the noise",
    "noise_declared": (
        "the noise was declared without looking at these data: a scale that is computed from them tells about each"
    ),
    "only_this_statistic": "nothing else of these data is released",
    "knows_the_distribution": "the attacker knows this distribution, and no other record",
    "register": (
        "the file is the register: what is published is the count or total of the records that are in, drawn from it"
    ),
    "knows_the_register": "the attacker knows the register, and not who is in",
    "only_this_release": "nothing else of the same draw is released, not even its size where that is random",
    "cells_fixed_beforehand": "cells and rounding were fixed beforehand",
    "uniform_half": "the half is drawn uniformly, and nothing else of it is released",
    "public_parameters": "clip, noise and candidates do not depend on the half",
    "others_unprotected": "{units} outside this data set are not protected by it",
    "linear_responses": (
        "responses are linear in the row plus independent Gaussian noise; an intercept is a column of ones"
    ),
    "knows_all_else": "the attacker knows all else",
    "poisson_batches_of_dpsgd": "batches are drawn by a coin for each record",
    "fixed_batches_of_dpsgd": (
        "a batch is as many records in each step, drawn without replacement: at most the sample rate times the "
        "fewest records that there may be"
    ),
    "sees_every_step": "the attacker may see every step",
    "bounded_loss": "every loss is from {low:g} to {high:g}",
    "true_gap": "the gap is the true expected one; an estimated gap needs its lower confidence limit",
    "information_of_one": (
        "the information is that between the membership of the {unit} in question and all that is released"
    ),
    "swap_is_two_steps": "a swap is two steps of adding and removing (group privacy)",
    # protected releases
    "drawn_in_secret": (
        "the {k:,} records in use were drawn uniformly from all {n:,}, in secret, and nothing else tells who they are"
    ),
    "knows_all_but_draw_and_noise": (
        "the attacker knows all {n:,} records, the statistic, the noise and this certificate, but neither draw nor "
        "noise"
    ),
    "no_ledger": (
        "nothing else of the same draw is released: the draw is kept nowhere, and no ledger knows of this release"
    ),
    "in_a_ledger": "what else is released of the same draw is in its ledger, and counts in the joint bound alone",
    "ledger_not_rolled_back": (
        "the ledger was never put back to an earlier copy: that cannot be noticed, and what was released in between "
        "would be missing from it (the same release again has the same bytes)"
    ),
    "declared_queries": "the queries were declared before the first release, and released in that order",
    "on_a_grid": (
        "statistic and noise are rounded to a grid of their own before they are added, so that no low bit tells more"
    ),
    "on_a_grid_counted": (
        "statistic and noise are rounded to a grid of their own before they are added, and the noise is larger by what "
        "rounding adds to what one record moves"
    ),
    "refusals_not_published": (
        "that a command refused these data, and why, is not published: it can depend on a single record"
    ),
    "time_not_published": "the time that the command took is not published",
    "noise_has_an_end": REASONS["noise_has_an_end"],
    # protected releases of all records, or of all but one
    "left_out_in_secret": (
        "one of all {n:,} was left out, drawn uniformly and in secret, and nothing else tells which one"
    ),
    "knows_all_but_left_out": (
        "the attacker knows all {n:,}, the statistic, the distribution of the noise and this certificate, but neither "
        "which one is left out nor the noise that was drawn"
    ),
    "function_of_the_others": (
        "the release is a function of the others alone, plus noise; all else is public, and does not depend on which "
        "one is left out"
    ),
    "ledger_keeps_left_out": (
        "the same one is left out for the life of the data, in a ledger: a fresh one for each release would protect "
        "nobody; no other ledger of this design is used for these data"
    ),
    "declared_form": (
        "every file that is compared with this one has the declared form; whether a file was refused is not for "
        "publication"
    ),
    "replace_one_any_data": "any one of {n:,} records may be replaced by any other one, whatever the data are",
    "add_or_remove": (
        "one record is added or removed, and the noisy numbers alone are seen: the number of records, which this page "
        "states, changes with it"
    ),
    "n_is_public": "the number of records, {n:,}, is public, and the same in every file that is compared with this one",
    "ranges_declared": "declared ranges, which were not taken from the data: {ranges}",
    "levels_declared": (
        "levels and edges were declared, and not taken from the data: a record whose value is missing, or is none of "
        "them, is in no cell or bin; how many these are is not published"
    ),
    "nothing_outside_the_ledger": (
        "no statistic of the same {units} is published without noise, or from another ledger, but for releases that "
        "this certificate names: leakbound asks the ledgers that it knows, and no program can check the rest"
    ),
    "known_people": (
        "another ledger of this kind holds people of these data, and its owner has released all the same: no number of "
        "this certificate counts the releases of that ledger"
    ),
    "row_is_a_unit": "each row of the file is one {unit}, and no {unit} has two: that is not checked",
    "rows_of_a_unit": (
        "the column {column} says whose each row is, and no {unit} has two names there: that is not checked"
    ),
    "rates_beforehand": "the limit {limits} was declared before anybody looked at these data",
    "limits_beforehand": "eta and the budget of the ledger were chosen before anybody looked at these data",
    "statistic_fixed_beforehand": (
        "the statistic, its levels and its parameters were chosen without looking at the data: they were given as they "
        "are, so that this is not checked"
    ),
    "values_clamped": (
        "values outside of the declared ranges are moved to the nearer end, and a value that is missing or no number "
        "is in no count and no sum; how many these are is not published"
    ),
    "values_clamped_owner": (
        "values of these data outside of the declared ranges, which were moved to the nearer end: {beyond:,}"
    ),
    "versions_differ": (
        "the data changed since an earlier release of this ledger: the promise is to those who are in its first "
        "version, whoever came or went later; with probability {difference:.2g} not the same one is left out of all "
        "versions"
    ),
    "knows_records_and_noise": "the attacker knows every record, the statistic and the distribution of the noise",
    "only_release_of_the_draw": "nothing else of the same draw is released",
    "poisson_draws": (
        "each record is in the data in use independently of the others, with probability k/n (Poisson draws)"
    ),
    "declared_ranges": "declared ranges: {ranges}",
    "declared_ranges_clip": (
        "declared ranges: {ranges}; {beyond:,} values of these data are beyond, and would be clipped"
    ),
    "ranges_of_these_data": (
        "no range was declared of {columns}: that of these data is taken, which favours differential privacy, whose "
        "ranges must not depend on the data"
    ),
}
GAMES = {  # what was played, or what a theorem is about
    "half_split": "each model has a random half of the points",
    "one_model": "one trained model, and who is in its data",
    "signals": "signals of models, and who is in their data",
    "scores": "scores of an attack, and who is in the data",
    "canaries": "planted records, each in by a fair coin of its own",
    "per_datum": "one fixed record, in or out of the data of each model",
    "average_datum": "a random record in each model",
    "candidates": "which value of an attribute belongs to a record",
    "fixed_record": "one fixed record, the others fresh from the distribution of the table",
    "random_half": "a random half of these {units} is used; the attacker knows all of them, not which half",
    "with_or_without": "all records are used, or all but the one in question; the attacker knows all others",
    "left_out": (
        "one of {n:,} records is left out, drawn at random and in secret; the attacker knows all of them, but not "
        "which one"
    ),
    "any_data": (
        "all {n:,} records are used, whatever they are; the attacker knows all but one, and two candidates for that one"
    ),
    "own_or_fresh_response": "a random row with its own response, or with a fresh one",
    "member_or_fresh_record": "a record of the training data, or a fresh one",
    "swap": "k of n records are in; the attacker may know all of them, but not whether x or another record was used",
    "coin": "each record is in by a coin of its own; the attacker may know all others",
    "each_by_a_coin": "each {unit} is in with probability {prior:g}",
    "fixed_number": "{k:,} of them are in, drawn at random",
    "drawn_records": "{k:,} of {n:,} records are drawn; the attacker knows all of them",
}
DECISIONS = {  # verdicts of a policy
    "release": "release",
    "ask": "ask",
    "do_not_release": "do not release",
}
ROWS = {"table": "cell"}  # what a row of a bound is called, where it is no single record


def plural(unit: str) -> str:
    """Return the word for several of a unit: as it was given, else by the rules of English.

    >>> [plural(unit) for unit in ("record", "canary", "survey", "batch", "person")]
    ['records', 'canaries', 'surveys', 'batches', 'people']
    >>> plural(UnitWord("Person/Personen")), plural("Person")
    ('Personen', 'Person')
    """
    if isinstance(unit, UnitWord) and unit.several is not None:
        return unit.several
    if not unit.isascii() or unit[:1].isupper():  # no English word: how it is written for several must be given
        return unit
    if unit in PLURALS:
        return PLURALS[unit]
    if re.search(r"[^aeiou]y$", unit):
        return f"{unit[:-1]}ies"
    return f"{unit}es" if re.search(r"(s|x|z|ch|sh)$", unit) else f"{unit}s"


def row_word(about: About) -> str:
    """Return what the numbers of a report are about: its unit, or the cell of a table."""
    return ROWS[about.bound] if of_cells(about) else about.unit


def of_cells(about: About) -> TypeGuard[BoundAbout]:
    """Whether the rows of a report are cells, each of which holds several records."""
    return isinstance(about, BoundAbout) and about.bound in ROWS


def game(term: Term) -> str:
    """Write what was played in words.

    >>> game(Term("drawn_records", k=500, n=1000))
    '500 of 1,000 records are drawn; the attacker knows all of them'
    """
    return _filled(GAMES, term)


def words(term: Term | TermFacts) -> str:
    """Write a term in words; an id that this version does not know is printed as it is.

    >>> words(Term("covariance_of_draws", worked=498, drawn=1000))
    'covariance from 498 of 1,000 draws'
    """
    return _filled(PHRASES, term)


def _filled(table: Mapping[str, str], term: Term | TermFacts) -> str:
    pattern = table.get(term.id)
    return term.id.replace("_", " ") if pattern is None else pattern.format(**term.values)


def claim(verdict: Verdict) -> str:
    """Write the claim that a verdict is about, and whose accountant makes it."""
    text = verdict.claim.text
    return text if verdict.training is None else f"{text}, by {words(verdict.training)}"


def method(terms: Sequence[Term]) -> str:
    """How a number was made, in words."""
    return ", ".join(words(term) for term in terms)


def scope(which: Scope, row: str) -> str:
    """Whom a number is about, with the index of the record or the name of the cell where it is known.

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
