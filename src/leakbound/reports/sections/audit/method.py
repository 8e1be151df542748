"""How the numbers were made: the games, the intervals, the assumptions and the limits."""

from __future__ import annotations

from collections.abc import Sequence

from leakbound.reports.numbers import count, percent
from leakbound.reports.phrases import plural
from leakbound.reports.sections.audit.notes import over
from leakbound.reports.sections.audit.result import Result
from leakbound.reports.sections.words import sentence, several

GAMES = {
    "half_split": "{models}, each trained on a random half of the {units}; the membership of {points} is guessed.",
    "one_model": "One trained model; the membership of {points} is guessed, {fraction} of them members.",
    "per_datum": "{models}, each trained with or without one fixed {unit}, at random.",
    "average_datum": "{models}; for each one {unit} is drawn, which is in its data or not, at random.",
    "canaries": "{models} and {points} that were planted, each in the data of each model or not, at random.",
    "signals": "Signals of {models} at {points} were given, together with their membership.",
    "scores": "Scores of {points} by {models} were given, together with their membership.",
}
KNOWLEDGE = {
    "distribution": "The attacker who sees the steps knows the distribution of the gradients of the other {units}, "
    "not which of them are in a batch.",
    "others": "The attacker who sees the steps knows which of the other {units} are in each batch, "
    "and their gradients.",
}

STEPS_BY = {  # which numbers of DP-SGD were told, and which were seen
    "leakbound": "Set by leakbound, which trained the network: noise, clipping norm, sample rate and number of steps.",
    "own_sum": "Set by leakbound: sample rate and number of steps. Declared by you: noise and clipping norm. Measured "
    "against that: the noise of each parameter tensor, and what one record adds to a step.",
    "own_loop": "Declared by you: noise, clipping norm and sample rate. Counted: the steps. Measured against what is "
    "declared: the noise of each parameter tensor, what one record adds to a step, and, with Dirac canaries, the "
    "batches.",
    "elsewhere": "Declared by you: noise, clipping norm and sample rate. Counted: the steps. Measured against what is "
    "declared, at the canaries alone: the noise and the batches.",
}


def game(result: Result) -> str:
    """Say what was played, in a few sentences."""
    facts, unit = result.facts, result.about.unit
    sentence = GAMES[facts.game].format(
        models=several(facts.models, "model"),
        points=several(facts.target_points, unit),
        unit=unit,
        units=plural(unit),
        fraction=percent(facts.prior),
    )
    knowledge = KNOWLEDGE[facts.knowledge].format(units=plural(unit)) if facts.knowledge else ""
    return " ".join(part for part in (sentence, knowledge, _population(result), _references(result)) if part)


def _population(result: Result) -> str:
    n, unit = result.facts.population, result.about.unit
    return f"{several(n, unit)} are population: in no model, and nobody guesses their membership." if n else ""


def _references(result: Result) -> str:
    """Who is compared with whom."""
    facts = result.facts
    if not facts.references:
        return "There are no reference models."
    references = several(facts.references, "reference model")
    if facts.targets == facts.models:
        return f"Every model is attacked once; the other {count(facts.references)} are its references."
    return f"Each of {several(facts.targets, 'attacked model')} is compared with {references}."


def release(result: Result) -> str:
    """Say what was released, fitted on what."""
    facts, data = result.facts, result.facts.data
    parts = [sentence(facts.description)] if facts.description else []
    if facts.steps_by is not None:
        parts.append(STEPS_BY[facts.steps_by])
    if data.name or data.digest:
        size = _size(result)
        parts.append(f"Data: {', '.join(part for part in (data.name, size) if part)}")
        parts[-1] += f", digest {data.digest}." if data.digest else "."
    return " ".join(parts)


def _size(result: Result) -> str:
    """Count the records, and the units that they belong to."""
    facts, unit = result.facts, result.about.unit
    if facts.units is None:
        return several(facts.data.records, unit)
    return f"{several(facts.data.records, 'row')} of {several(facts.units, unit)}"


def limits(results: Sequence[Result]) -> str:
    """Say what the numbers do not tell."""
    n_attacks = len(results[0].about.attacks)
    unit = results[0].about.unit
    shared = (
        f"Games against one {unit} share reference models: their limits are set at a quarter of the level, as much as "
        "simulated audits of noise ask for."
    )
    overlap = (
        "Models that are each other's references are not independent trials: the intervals of attacks that learn from "
        "them are widened as simulated audits of noise ask for."
    )
    best = f"The best of {n_attacks} attacks is quoted; its interval is not widened for that choice."
    parts = [
        over(results),
        shared if any(result.games for result in results) else "",
        overlap if any(result.facts.targets == result.facts.models > 1 for result in results) else "",
        best if n_attacks > 1 else "",
        "A better attack may exist.",
    ]
    return " ".join(part for part in parts if part)
