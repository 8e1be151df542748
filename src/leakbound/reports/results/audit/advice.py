"""What can be done about what an audit found: sentences chosen by its statements, never a promise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leakbound.reports.numbers import count
from leakbound.reports.phrases import plural
from leakbound.reports.results.audit.answer import INFERRED, chosen
from leakbound.reports.results.audit.result import Result, written
from leakbound.reports.results.audit.statements import CLEAR, Statements
from leakbound.reports.results.findings import Text
from leakbound.reports.results.words import listed, several
from leakbound.reports.sentences import Sentence, sentences

HARDLY = ("little", "little_untested", "no_leak", "ranking_only")
UNDECIDED = ("too_few", "nothing_played")
WITHOUT_REFERENCES = (
    "no_reference", "few_references", "no_reference_of_both", "no_reference_with", "no_reference_without",
)  # fmt: skip


def advice(results: Sequence[Result]) -> list[Sentence]:
    """Say what can be done, the most urgent first."""
    choices = {result.name: chosen(result) for result in results}
    headlines = {choice.headline for choice in choices.values()}
    leaky = [result for result in results if _should_change(result, choices[result.name])]
    doubts, of_policy = list(_doubts(results)), list(_of_policy(results, leaky))
    said = [*doubts, *_of_leaks(results, leaky, headlines), *decides(results), *_untested(results), *of_policy]
    if len(results) > 1 and len(headlines) > 1:
        said.append(Sentence("advice.choose"))
    if not said or (headlines <= set(HARDLY) and not of_policy and not doubts):
        said.append(_no_reason(results))
    return said


def _doubts(results: Sequence[Result]) -> Iterator[Sentence]:
    """Say what must be cleared up before any number is about the model."""
    if any(result.is_withheld for result in results):
        yield Sentence("advice.one_source")
    below = [result for result in results if result.below_chance is not None]
    if below:
        yield Sentence("advice.clear_up", {"who": _who(below, results)})


def _of_leaks(results: Sequence[Result], leaky: Sequence[Result], headlines: set[str]) -> Iterator[Sentence]:
    """Say what can be done about claims that are refuted, models that reveal much, and records that are exposed."""
    first = results[0]
    if any(verdict.word == "refuted" for result in results for verdict in result.verdicts):
        yield Sentence("advice.refuted")
    if leaky:
        yield _change(leaky, results)
    for result in results:
        if chosen(result).headline == "group_exposed" and result.worst_group is not None:
            yield written(result, "advice.look_at_group", group=result.worst_group.scope.name)
    if any(result.n_exposed for result in results):
        yield written(first, "advice.look")
    if "planted" in headlines:
        yield Sentence("advice.canaries")
    if headlines.intersection(UNDECIDED):
        yield written(first, "advice.more_games")


def decides(results: Sequence[Result]) -> list[Sentence]:
    """Say what would decide between the words for a leak, and what it costs; or that nothing will."""
    said = []
    for result in results:
        choice = chosen(result)
        if choice.perhaps is None:
            continue
        noun = "model" if result.facts.targets > 1 else result.about.unit
        who = _who([result], results)
        if choice.needed is None:
            said.append(Sentence("advice.hardly_decided", {"who": who, "few": plural(noun)}))
        else:
            said.append(Sentence("advice.more_would_decide", {"who": who, "needed": several(choice.needed, noun)}))
    return said


def _should_change(result: Result, choice: Statements) -> bool:
    """Whether a model reveals so much, on average or of one group, that it should not be published as it is."""
    if choice.headline in INFERRED:
        return True
    worst = result.worst_group
    return choice.headline == "group_exposed" and worst is not None and (worst.low or 0.0) >= (1 + CLEAR) / 2


def _change(leaky: Sequence[Result], results: Sequence[Result]) -> Sentence:
    """Say what makes models of these families simpler, and which training has a guarantee."""
    families = {result.facts.family or "any" for result in leaky}
    if "any" in families:  # of a model that is known by its answers: what there is for any
        families = {"any"}
    simpler = [str(Sentence(f"simpler.{name}")) for name in sorted(families)]
    guarantees = [str(Sentence(f"guarantee.{name}")) for name in sorted(families) if f"guarantee.{name}" in sentences()]
    guarantee = " ".join(guarantees) or Sentence("guarantee.none")
    gaps: dict[str, Text] = {"who": _who(leaky, results), "simpler": "; ".join(simpler), "guarantee": guarantee}
    return Sentence("advice.change_generator" if families == {"generator"} else "advice.change", gaps)


def _untested(results: Sequence[Result]) -> Iterator[Sentence]:
    """Say how many models would test single records."""
    untested = [result for result in results if chosen(result).records == "untestable"]
    if untested:
        needed = max((result.games.models_needed for result in untested if result.games), default=0)
        gaps = {"needed": count(needed), "models": count(untested[0].n_played)}
        yield written(untested[0], "advice.more_models", **gaps)


def without_references(result: Result) -> list[str]:
    """List the attacks that did not run because there are no, or too few, models to compare with."""
    missing = [
        result.attack_title(finding.attack)
        for finding in result.findings
        if finding.reason is not None and finding.reason.id in WITHOUT_REFERENCES
    ]
    return list(dict.fromkeys(missing))


def _no_reason(results: Sequence[Result]) -> Sentence:
    """Say that nothing speaks for a change, unless the attacks that compare with references are missing."""
    who = _only(results[0]) if len(results) == 1 else Sentence("advice.these_models")
    missing = [title for result in results if result.facts.game == "one_model" for title in without_references(result)]
    if missing:
        return Sentence("advice.not_all_ran", {"attacks": listed(dict.fromkeys(missing)), "who": who})
    return Sentence("advice.no_reason", {"who": who})


def _of_policy(results: Sequence[Result], leaky: Sequence[Result]) -> Iterator[Sentence]:
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
    if not_kept:
        yield Sentence("advice.not_kept", {"who": _who(not_kept, results)})
    if undecided:
        yield Sentence("advice.open", {"who": _who(undecided, results)})
        for name in sentences():
            if name.startswith("decides.") and name.removeprefix("decides.") in reasons:
                yield Sentence(name)


def _who(named: Sequence[Result], results: Sequence[Result]) -> Text:
    """Name some of the models; the only one has no need of its name."""
    if len(results) == 1:
        return _only(results[0])
    return listed(result.title for result in named)


def _only(result: Result) -> Sentence:
    """Name what is released, where it is the only release."""
    is_synthetic = result.facts.family == "generator" or result.facts.synthetic is not None
    return Sentence("advice.the_synthetic_data" if is_synthetic else "advice.the_model")
