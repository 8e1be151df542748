"""Why a method cannot say anything, as ids with their values: one table holds the words."""

from __future__ import annotations

from collections.abc import Mapping

from leakbound.core.findings import Term

_DEPENDENT = (
    "the data of the other models tell who was in the data of the attacked one ({how}), and references would too; "
    "draw the data of each model by itself, or so that each point is in exactly half of the models"
)
_SHIFT = "members and others do not come from one source: a classifier that does not see the model tells them apart"
_THESE_MODELS = "a limit on tpr_these_models@{fpr:g} has an interval now, and is a promise about these models alone"
_LAYER = (
    "Dirac canaries in a user-supplied training loop reach only the layer that is added for them: they show whether "
    "gradients in that layer are clipped, not whether those of the network's own layers are"
)

REASONS: Mapping[str, str] = {
    "own_words": "{words}",  # of an attack of the user's own, or of an error
    # signals and games
    "missing_signal": "needs the signal {names}, which this release does not give",
    "misspelt_signal": "needs the signal {names}, which is not given; is {given!r} a misspelling of it?",
    "unknown_signal": "needs the signal {names}, which this release does not give (did you mean {meant!r}?)",
    "needs_predictions": "needs the predictions of a model, and this release is seen by a score alone",
    "constant_score": "the score is the same at every record of each model, and tells nothing of who was in",
    "score_of_no_model": "the score of a record is the same in every model, and tells nothing of who was in",
    "one_trained_model": "one trained model cannot single out a record; needs at least 2 target models",
    "target_of_its_own": "each model has a target of its own: no record plays more than one game",
    "no_mixed_model": "no model has both members and non-members among its target points",
    "no_members_and_others": "a gap needs members and others in every attacked model",
    "few_members": "needs at least 2 members and 2 non-members",
    "few_models_with_point": "needs at least 2 target models with the point and 2 without",
    "points_not_independent": "points of one model are not independent trials: needs one point a model",
    "few_guesses": "needs at least {fewest} {unit}, got {n}",
    "no_attacked_record": "no attacked record is asked for in any model",
    "no_attack": "no attack applies",
    "no_classes_known": "no classes are known: name columns to group by (slice)",
    "no_groups_in_game": "this game is about single records",
    # references
    "no_reference": "needs at least 1 reference model, and there are {n}",
    "few_references": "needs at least {fewest} reference models, and there are {n}",
    "no_reference_without": "needs reference models without a target point, and there are none",
    "no_reference_with": "needs reference models with a target point, and there are none",
    "no_reference_of_both": "needs reference models with and without the same target point, and there are none",
    "references_of_one_kind": "needs reference models with and without the target points, and all are of one kind",
    "references_are_targets": "with one point a model the references must not be targets; add references",
    "targets_not_independent": "the references of a target are targets too, so the targets are not independent",
    "no_second_target": "{models} models leave no second target beside the references; needs at least 4",
    "few_points": "needs at least {fewest} points to learn from, and there are {n}",
    "pairs_share_fewer_points": _DEPENDENT.format(how="some pairs of models share fewer points than others"),
    "pairs_share_points": _DEPENDENT.format(how="pairs of models share more or fewer points than chance has it"),
    "counts_tell": _DEPENDENT.format(how="by how many of them have a point"),
    # false positive rates
    "fpr_not_resolvable": "{games:,} games reach FPR {reached:.2g} %",
    "tpr_not_resolvable": "{games:,} members reach TPR {reached:.4g} %",
    "one_threshold": "one point, at FPR {strictest:.1f} %",
    "strictest_threshold": "strictest threshold gives FPR {strictest:.1f} %",
    # attributes
    "knows_the_answer": "compares with models that were trained on the record: they would tell its true value",
    "learned_from_others": "the imputation has learned from the records that are not in: it knows their values",
    "needs_candidates": "needs a game of candidates, with the same target records in every model",
    # controls of synthetic data
    "every_control_matched": "every one of the others equals a synthetic row, so that nothing tells members from them",
    "no_predicate": "no predicate singles out a synthetic row",
    # one source of members and others
    "no_records": "the records were not given",
    "record_of_its_own": "each model has a record of its own",
    "few_records": "needs at least {fewest} members and {fewest} others, got {members} and {others}",
    "few_of_each": "a model needs at least {fewest} members and {fewest} others among them",
    "unreadable_records": "the records are a {type}, which no classifier reads without the model",
    "shift": _SHIFT,
    "if_shift_is_not_the_cause": f"this holds only if the attack succeeds because of the model, although {_SHIFT}",
    # claims
    "replace_one_by_coins": (
        "a replace-one claim says nothing of a record that is in or out by a coin of its own; "
        'play with sampling = "fixed"'
    ),
    "declared_gives_more": (
        "the training as declared (noise, sampling rate, steps) gives epsilon = {given:.4g} at delta = {delta:g}, and "
        "at least {least:.4g}: correct code would not keep the claim. This is calculated from what was declared, "
        "whatever the attacks find; claim at least {given:.4g}, or train with more noise or fewer steps"
    ),
    "accountant_gives_more": (
        "the accountant shows epsilon = {given:.4g} at delta = {delta:g} for the training as declared (noise, sampling "
        "rate, steps), and no less. This is calculated from what was declared, whatever the attacks find; claim at "
        "least {given:.4g}, or train with more noise, fewer steps or smaller batches"
    ),
    "declared_gives_more_than_mu": (
        "the training as declared (noise, sampling rate, steps) gives an epsilon of at least {least:.4g} at delta = "
        "{delta:g}, where mu = {mu:g} allows {allowed:.4g}: correct code would not keep the claim. This is calculated "
        "from what was declared, whatever the attacks find; claim a larger mu or epsilon = {given:.4g} at this delta, "
        "or train with more noise or fewer steps"
    ),
    "accountant_gives_more_than_mu": (
        "the accountant shows epsilon = {given:.4g} at delta = {delta:g} for the training as declared (noise, sampling "
        "rate, steps), and no less, where mu = {mu:g} allows {allowed:.4g}. This is calculated from what was declared, "
        "whatever the attacks find; claim a larger mu or this epsilon, or train with more noise, fewer steps or "
        "smaller batches"
    ),
    "units_of_several_records": "the accountant promises something of single records; a unit of this game has several",
    "too_little_noise": (
        "the steps hold noise of a multiplier of at most {most:.3g} ({level:g} %), and {claimed:g} is claimed: "
        "the promise counts on noise that is not there"
    ),
    "steps_reveal_more": (
        "a step reveals as much of a canary as with a noise multiplier of at most {most:.3g} ({level:g} %), and "
        "{claimed:g} is claimed: the promise counts on steps that reveal less"
    ),
    "larger_batches": (
        "the canaries are in a batch with a probability of at least {least:.3g} ({level:g} %), and {claimed:g} is "
        "claimed: the promise counts on smaller batches"
    ),
    "too_little_noise_in_tensor": (
        "in {tensor} the steps hold noise of a multiplier of about {seen:.2g}, and {claimed:g} is claimed "
        "({n_refused:,} of {n_tensors:,} parameter tensors have too little)"
    ),
    "noise_repeated": "step {last:,} has the noise of step {first:,} again: their difference has {left:.2g} of "
    "the claimed {claimed:g}, and noise must be new in every step",
    "noise_negated": "step {last:,} has the noise of step {first:,} with the opposite sign: their sum has {left:.2g} "
    "of the claimed {claimed:g}, and noise must be new in every step",
    "noise_cancelled": "the noise of steps {first:,} to {last:,} cancels out: their sum has {left:.2g}, less than the "
    "{claimed:g} that is claimed of a single step",
    "noise_missing_in_step": "step {step:,} has noise of a multiplier of {left:.2g}, and {claimed:g} is claimed",
    "noise_predicted": "the noise of a step can be predicted from that {first:,} step(s) before: a multiplier of "
    "{left:.3g} is left of the claimed {claimed:g}, and noise must be new in every step",
    "batches_too_large": "the canaries add as much to the steps as if they were in a fraction of {seen:.2g} of the "
    "batches, and a sample rate of {claimed:g} is claimed: the batches are larger, or gradients longer, than claimed",
    "batches_in_order": "the same records are together again {lag:,} step(s) later, and the claim is of batches that "
    "are drawn anew in every step",
    "batches_shuffled": "records are in exactly one batch of {n_steps:,} steps more often than by coins of their own: "
    "they are shuffled, and the claim is of batches that are drawn anew in every step",
    "own_layers_unseen": _LAYER,
    "record_adds_more": "one record adds about {added:.3g} clipping norms to a step ({in_tensor:.3g} of them in "
    "{tensor}), and at most 1 is claimed: gradients are not clipped, at a larger norm, or each layer by itself",
    "parts_clipped_apart": "one record adds about {added:.3g} clipping norms to a step, spread over the {parts}, and "
    "at most 1 is claimed: it seems that each of them is clipped by itself",
    # noise
    "laplace_literal": "with radius 'laplace-literal' only Euclidean norms of known d have a bound",
    "equal_left_out": "the release is the same whoever is left out: it would be exact, and is outside of this promise",
    "equal_outputs": "no noise is needed for eta = {eta:g}: so many pairs have the same output",
    "no_noise_needed": "no noise is needed for {limit}",
    "noise_has_an_end": "the noise has an end: a release near it proves the membership of some record for certain",
    "proved_with_delta": "uniform noise proves membership for certain with probability delta",
    "no_epsilon": "no epsilon is certified at delta = {delta:g}",
    "no_games": "no release was simulated: games = 0",
    # what a protected release is compared with
    "too_large_numbers": "the numbers are too large for a covariance",
    "constant_statistic": "the statistic is the same for every draw of the data in use: it needs no noise",
    "large_covariance": "a covariance is made of at most {most:,} numbers, the statistic has {d:,}",
    "few_draws": "a covariance of {d:,} numbers needs more draws, {worked:,} worked",
    "no_sensitivity": "no bound of the sensitivity of {statistic} is known",
    "no_sensitivity_by_clipping": (
        "no bound of the sensitivity of {statistic} is known; clipping the data does not give one"
    ),
    # policies
    "interval_includes_limit": "the interval includes the limit: more models or records would narrow it",
    "interval_of_one_model_includes_limit": "the interval includes the limit: more records would narrow it; more "
    "reference models would not",
    "too_few_models": "too few models for an interval; train more",
    "too_few_models_at_spread": "too few models for an interval: {needed:,} give one if they differ as little as these "
    "({times:.2g} times as many fits), and {at_any_spread:,} in any case; " + _THESE_MODELS,
    "too_few_models_at_rate": "too few models for an interval: they differ too much for any number below {needed:,} "
    "({times:.2g} times as many fits); " + _THESE_MODELS,
    "these_models_above": "too few models for an interval over all models of the recipe, and the limit is exceeded by "
    "these models alone",
    "default_left_out": "the policy asks for the default attacks, and {names} left out of them; name default",
    "group_includes_limit": "the interval includes the limit: {needed:,} models can judge a group of this size",
    "group_too_small": "this group has too few records to be judged: give more data, or join it with another",
    "records_untested": "{models:,} models cannot test single records; {needed:,} would",
    "records_of_one_model": "one model cannot test single records; an audit of its recipe with {needed:,} models can",
    "small_group_exposed": "this group is judged by its single records, and some of them are exposed",
    "shared_records": "{n:,} of the others are among the members too, so that the attacks look weaker than they are",
    "attack_was_not_run": "the policy asks for this attack, and it was not run",
    "structure_not_readable": "this model does not tell, or no fitted model was given",
    "exchanged": (
        "AUC below 0.5 beyond chance, of {n} attacks: members and others are probably exchanged; there is no verdict "
        "until this is cleared up"
    ),
    "wrong_sign": (
        "AUC of {attack} below 0.5 beyond chance: its score probably has the wrong sign; there is no "
        "verdict until this is cleared up"
    ),
    "exchanged_or_sign": (
        "AUC below 0.5 beyond chance: members and others are probably exchanged, or the attack's score "
        "has the wrong sign; there is no verdict until this is cleared up"
    ),
    "references_of_another_class": (
        "the references are of another class, {references}, than the model, {model}: give the recipe of the model"
    ),
    "class_keeps_records": "{name} keeps training records",
    "holds_rows": "{n:,} rows of the training data are in {where}",
    "holds_names": "{n:,} names of records are in {where}",
    "holds_values": "{n:,} values of {column} that one or two records have are in {where}",
    "holds_column": "a value for each training record, in their order, is in {where}: {column}",
    "holds_records": "the fitted model holds training records",
    "unexplained_attributes": "{name} has no attributes such as these, and somebody must say what they are: {names}",
    "not_all_read": "a part of the model cannot be pickled, and was not searched",
    "no_records_found": "by its class, and by a search",
    "no_records_in_extra": "by its class, and by a search, also of attributes that its class does not have: {names}",
    "no_leaves": "the model has no leaves",
    "no_classes": "a regression has no classes",
    # generators
    "unseeded_generator": "it takes no seed, so that its files cannot be made again: they differ from run to run",
    "identifiers_not_compared": "{names}: another value in each record, which is not compared",
    # reports
    "single_record": "it is about a single record, and this report is without records",
    "rate_not_reached_in_slice": "no threshold reaches this rate among these records",
    "without_counts": "the reason counts records, and this report is without such counts",
    "too_few_for_percentage": "too few for a percentage",
}


def words(reason: Term) -> str:
    """Write a reason in words; an id that this version does not know is printed as it is.

    >>> words(Term("few_references", fewest=2, n=0))
    'needs at least 2 reference models, and there are 0'
    """
    pattern = REASONS.get(reason.id)
    return reason.id.replace("_", " ") if pattern is None else pattern.format(**reason.values)


def as_reason(error: Exception) -> Term:
    """Return the reason of a `NotApplicable`, or the message of another error in its own words."""
    reason = getattr(error, "reason", None)
    return reason if isinstance(reason, Term) else Term("own_words", words=str(error))
