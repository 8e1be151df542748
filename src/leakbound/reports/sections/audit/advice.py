"""What can be done about what an audit found: sentences chosen by its statements, never a promise."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from leakbound.reports.numbers import count
from leakbound.reports.phrases import plural
from leakbound.reports.sections.audit import sources
from leakbound.reports.sections.audit.result import Result
from leakbound.reports.sections.audit.statements import Statements
from leakbound.reports.sections.audit.words import INFERRED, chosen
from leakbound.reports.sections.findings import without_references
from leakbound.reports.sections.words import listed, say, several

HARDLY = ("little", "little_untested", "no_leak", "ranking_only")
UNDECIDED = ("too_few", "nothing_played")

ONE_SOURCE = "First draw members and others from one source: until then the numbers are not about the model."
CLEAR_UP = (
    "Attacks on {who} are wrong more often than a guess: look whether members and others are exchanged, and which way "
    "the scores point. Until then there is no verdict."
)
REFUTED = "Withdraw the refuted claim, or find where the training departs from it, before anything is published."
CHANGE = (
    "Keep {who} from anybody who may not see the data, or change {them}: a simpler model most often reveals less "
    "({simpler}). That has no guarantee, so audit the new model. {guarantee}"
)
SIMPLER = {  # by the family of the model
    "trees": "shallower trees, larger leaves",
    "regularised": "stronger regularisation",
    "neighbours": "more neighbours with equal weights, though such a model holds its training data",
    "network": "of a network fewer epochs, augmentation, weight decay",
    "dpsgd": "of training by DP-SGD more noise, a smaller sample rate, fewer steps",
}
GUARANTEES = {
    "network": "Training with noise, by DP-SGD, has one: leakbound calibrate dpsgd computes how much.",
    "dpsgd": "What DP-SGD guarantees follows from its accountant: leakbound calibrate dpsgd computes how much noise it "
    "needs.",
    "regularised": "Noise has one: of a logistic regression, ridge or least squares, leakbound protect computes how "
    "much.",
}
NO_GUARANTEE = "A guarantee takes training with noise, which leakbound does not have for such models."
LOOK = (
    "Look at the {units} that are exposed: unusual and mislabelled ones come first. If they are left out, others may "
    "become exposed: audit the new model."
)
CANARIES = (
    "More noise, a smaller sample rate or fewer steps make canaries harder to find. What is promised follows from the "
    "accountant, not from this audit."
)
NO_REASON = (
    "This audit gives no reason to change {it}. It does not prove that nothing leaks: a better attack may exist, and "
    "only noise with a certificate excludes every attack."
)
NOT_ALL_RAN = (
    "The strongest attacks did not run: {attacks} compare with reference models, and there are too few. So this audit "
    "is no reason to release {it}: give its recipe, by which references are trained, and audit again."
)
NOT_KEPT = (
    "Limits of the policy are not kept by {who}: the verdict names them. Change {them} and audit again, or do not "
    "release {them}."
)
OPEN = (
    "This audit could not decide on {who}: limits of the policy are open, and the verdict says why. {needed} Until "
    "then a person decides."
)
NEEDED = {  # what would decide a limit, by the reason why it is open
    "interval_includes_limit": "More models or records would narrow the intervals.",
    "interval_of_one_model_includes_limit": "More records would narrow the intervals; more reference models would not.",
    "group_includes_limit": "More models would narrow the intervals of the groups.",
    "group_too_small": "More records of the small groups would.",
    "records_of_one_model": "Single records are tested by an audit of the recipe, with many models.",
    "records_untested": "More models would test single records.",
    "no_classes_known": "Name columns to group the records by (slice).",
    "too_few_models": "More models would give every attack an interval.",
    "too_few_models_at_spread": "More models would give every attack an interval: the verdict says how many.",
    "too_few_models_at_rate": "Many more models would give every attack an interval: the verdict says how many.",
    "default_left_out": "Run the default attacks, too.",
    "attack_was_not_run": "Run the attacks that the policy asks for.",
    "structure_not_readable": "The structure of the fitted model cannot be read: somebody who knows it must check it.",
    "not_all_read": "A part of the model cannot be searched: somebody who knows it must check it.",
    "unexplained_attributes": "Ask what the attributes are that the class of the model does not have, or have them "
    "removed.",
}
MORE_GAMES = "Train more models, or attack more {units}: these are too few for a verdict."
MORE_WOULD_DECIDE = "About {needed} would decide how much {it} leaks, if the values stay as they are."
HARDLY_DECIDED = "How much {it} leaks lies close to a border between two words: more {few} will hardly decide it."
MORE_MODELS = "Train at least {needed} models to test single {units}: {models} cannot single one out."
CHOOSE = "Of the models that are good enough, prefer one that reveals less."


def advice(results: Sequence[Result]) -> list[Markup]:
    """Say what can be done, the most urgent first."""
    unit = results[0].about.unit
    units = plural(unit)
    choices = [chosen(result) for result in results]
    headlines = {choice.headline for choice in choices}
    it = "the model" if len(results) == 1 else "these models"
    below = [result for result in results if sources.below(result) is not None]
    sentences = _first(results, below)
    if any(verdict.word == "refuted" for result in results for verdict in result.verdicts):
        sentences.append(say(REFUTED))
    leaky = [result for result, choice in zip(results, choices, strict=True) if choice.headline in INFERRED]
    if leaky:
        sentences.append(_change(leaky, results))
    if any(result.n_exposed for result in results):
        sentences.append(say(LOOK, units=units))
    if "planted" in headlines:
        sentences.append(say(CANARIES))
    if headlines.intersection(UNDECIDED):
        sentences.append(say(MORE_GAMES, units=units))
    pairs = zip(results, choices, strict=True)
    sentences += [_decided(result, choice, results) for result, choice in pairs if choice.perhaps is not None]
    untested = [result for result, choice in zip(results, choices, strict=True) if choice.records == "untestable"]
    if untested:
        needed = max((result.games.models_needed for result in untested if result.games), default=0)
        sentences.append(say(MORE_MODELS, needed=count(needed), units=units, models=count(untested[0].n_played)))
    of_policy = _of_policy(results, leaky)
    sentences += of_policy
    if len(results) > 1 and len(headlines) > 1:
        sentences.append(say(CHOOSE))
    if not sentences or (headlines <= set(HARDLY) and not of_policy and not below):
        sentences.append(_no_reason(results, it))
    return sentences


def _change(leaky: Sequence[Result], results: Sequence[Result]) -> Markup:
    """Say what makes models of these families simpler, and which training has a guarantee."""
    families = {result.facts.family for result in leaky}
    if "" in families:  # of a model that is known by its answers: what there is for any
        families = {"trees", "regularised", "network"}
    simpler = "; ".join(words for family, words in SIMPLER.items() if family in families)
    guarantees = [words for family, words in GUARANTEES.items() if family in families]
    them = "it" if len(leaky) == 1 else "them"
    guarantee = " ".join(guarantees) or NO_GUARANTEE
    return say(CHANGE, who=_who(leaky, results), them=them, simpler=simpler, guarantee=guarantee)


def _first(results: Sequence[Result], below: Sequence[Result]) -> list[Markup]:
    """Say what must be cleared up before any number is about the model."""
    sentences = []
    if any(sources.differ(result) and not sources.accepted(result) for result in results):
        sentences.append(say(ONE_SOURCE))
    if below:
        sentences.append(say(CLEAR_UP, who=_who(below, results)))
    return sentences


def _no_reason(results: Sequence[Result], it: str) -> Markup:
    """Say that nothing speaks for a change, unless the attacks that compare with references are missing."""
    missing = {
        name: result.attack_title(name)
        for result in results
        for name in without_references(result.findings)
        if result.facts.game == "one_model"
    }
    if missing:
        return say(NOT_ALL_RAN, attacks=listed(missing.values()), it=it)
    return say(NO_REASON, it=it)


def _of_policy(results: Sequence[Result], leaky: Sequence[Result]) -> list[Markup]:
    """Say what follows from limits of a policy that are not kept, or open; of leaky models more is said before."""
    checks = {decision.release: decision.checks for decision in results[0].about.decisions}
    not_kept, undecided, reasons = [], [], set()
    for result in results:
        of_result = checks.get(result.name, ())
        if result not in leaky and any(check.outcome == "not_kept" and check.check != "claim" for check in of_result):
            not_kept.append(result)
        open_reasons = {check.reason.id for check in of_result if check.outcome == "open" and check.reason is not None}
        if open_reasons:
            undecided.append(result)
            reasons |= open_reasons
    sentences = []
    if not_kept:
        sentences.append(say(NOT_KEPT, who=_who(not_kept, results), them="it" if len(not_kept) == 1 else "them"))
    if undecided:
        needed = " ".join(sentence for reason, sentence in NEEDED.items() if reason in reasons)
        sentences.append(say(OPEN, who=_who(undecided, results), needed=needed))
    return sentences


def _decided(result: Result, choice: Statements, results: Sequence[Result]) -> Markup:
    """Say how many models, or records of a single model, would decide between the words for a leak."""
    noun = "model" if result.facts.targets > 1 else result.about.unit
    it = _who([result], results)
    if choice.needed is None:
        return say(HARDLY_DECIDED, it=it, few=plural(noun))
    return say(MORE_WOULD_DECIDE, it=it, needed=several(choice.needed, noun))


def _who(named: Sequence[Result], results: Sequence[Result]) -> str:
    """Name some of the models; the only one has no need of its name."""
    return "the model" if len(results) == 1 else listed(result.title for result in named)
