"""Several models side by side: how good each of them is, and how much it reveals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from leakbound.core.findings import Finding
from leakbound.core.parameter_names import short_names
from leakbound.reports.numbers import THIN, count, near, percent
from leakbound.reports.phrases import DECISIONS, plural
from leakbound.reports.sections.audit import groups, words
from leakbound.reports.sections.audit.result import Result
from leakbound.reports.sections.audit.statements import ALMOST_PERFECT, CLEAR, HIGH
from leakbound.reports.sections.findings import WITHOUT
from leakbound.reports.sections.quantities import shown
from leakbound.reports.sections.words import capital, joined, listed, say

QUALITIES = {"test_accuracy": "Test accuracy", "test_r2": "Test R2"}
ORDER = ("release", "ask", "do_not_release")  # of a policy: what may be released comes first
FOUND: Mapping[str, str] = {  # verdicts without a policy, by the headline of the summary
    "nothing_played": "not attacked",
    "almost_perfect": "reveals almost all",
    "high": "reveals much",
    "clear": "reveals clearly",
    "high_perhaps": "reveals much or more",
    "clear_perhaps": "reveals clearly or more",
    "some_exposed": "exposes some",
    "exposed_perhaps": "exposes some",
    "little_perhaps": "too few to say how much",
    "not_shown": "too few to say",
    "little": "reveals little",
    "little_untested": "reveals little, records untested",
    "too_few": "too few to say",
    "refuted_only": "claim refuted",
    "ranking_only": "ranks members higher",
    "no_leak": "no leak found",
    "planted": "see below",
}
MAY = {  # of one model, and of several
    "release": ("may be released", "may be released"),
    "ask": ("is for a person to decide", "are for a person to decide"),
    "do_not_release": ("is not to be released", "are not to be released"),
}
RANGE = (
    "The strongest attack is right in {low} of 100 cases against {least}, and in <b>{high} of 100</b> against {most}."
)
NOTE = (
    "The models that reveal least come first. Test quality is measured on records that were not in a model's training "
    "data, and the baseline is that of a model that looks at nothing; the gap is training minus test. "
    "Accuracy and TPR are those of the attack that reaches most. Intervals are at {level}."
)
NOTE_OF_WORDS = (
    "Reveals clearly, much or almost all: {clear}, {high} or {almost} of 100 guesses are right, where {baseline} would "
    "be without the model."
)
NOTE_OF_UNTESTED = (
    "A dash under Exposed: there are too few models to test single {units}, so none can be shown to be exposed; "
    "compare variants with equally many models."
)
NOTE_OF_ONE_CLASS = "{titles} always {predict} the same class."
NOTE_OF_ONE_RIGHT = "{titles} {are} right about one class at most, and about no record of another."
NOTE_OF_SOME = "{n} of {all} {title} models always predict the same class."


@dataclass(frozen=True)
class Cell:
    """A cell of the table: its text, and whether it is a number or words."""

    text: Markup
    kind: Literal["n", "u"] = "n"

    @property
    def short(self) -> str:
        """The text for a terminal: ``54 (52..56)``."""
        return self.text.striptags().replace(" to ", "..")


def quality(result: Result) -> Finding | None:
    """Return the finding about the quality of a model, if it was measured."""
    return next((finding for name in QUALITIES if (finding := result.find(name)) is not None), None)


def ordered(results: Sequence[Result]) -> list[Result]:
    """Put what may be released first, then those that reveal least."""
    verdicts = {decision.release: decision.verdict for decision in results[0].about.decisions}

    def place(result: Result) -> tuple[int, float]:
        verdict = verdicts.get(result.name, ORDER[0])
        return ORDER.index(verdict), result.strength

    return sorted(results, key=place)


def varied(result: Result) -> list[str]:
    """Name the parameters that differ between the variants of one model; none where models are compared."""
    return list(short_names(list(result.about.plan.get("vary") or {})).values())


def heads(results: Sequence[Result]) -> list[str]:
    """Name the columns."""
    fpr = results[0].about.fpr[0]
    kinds = {finding.quantity for result in results if (finding := quality(result)) is not None}
    test = "Test quality"
    if len(kinds) == 1:
        test = QUALITIES[kinds.pop()]
    return [
        test,
        "Baseline",
        "Gap",
        "Attack accuracy",
        *(["Worst group"] if _have_groups(results) else []),
        f"TPR at FPR{THIN}{percent(fpr)}",
        "Exposed",
        "Verdict",
    ]


def rows(results: Sequence[Result]) -> list[tuple[str, dict[str, Cell]]]:
    """Lay out a row a model: its title, and its cells by the names of the columns."""
    names = heads(results)
    grouped = _have_groups(results)
    return [(result.title, dict(zip(names, _cells(result, grouped), strict=True))) for result in ordered(results)]


def lede(results: Sequence[Result]) -> Markup:
    """Say what may be released, or without a policy how much the least and the most revealing model reveal."""
    verdicts = [decision.verdict for decision in results[0].about.decisions]
    if verdicts:
        counts = {verdict: verdicts.count(verdict) for verdict in MAY if verdict in verdicts}
        parts = [f"{count(n)} {MAY[verdict][n > 1]}" for verdict, n in counts.items()]
        return say("Of {n} models, {parts}.", n=count(len(results)), parts=listed(parts))
    known = [result for result in results if result.accuracy is not None and not result.too_few]
    if len(known) < 2:
        return Markup("")
    least, *_, most = ordered(known)
    low, high = (shown(result.accuracy).value if result.accuracy else "" for result in (least, most))
    return say(RANGE, least=least.title, most=most.title, low=low, high=high)


def note(results: Sequence[Result]) -> Markup:
    """Explain the columns, and name the models that always predict the same class."""
    level = words.level(results[0])
    return joined([*_constant(results), say(NOTE, level=level), *_explained(results)])


def _have_groups(results: Sequence[Result]) -> bool:
    """Whether a model has several groups of records that were measured."""
    return any(groups.worst(result) is not None for result in results)


def _worst_group(result: Result) -> Markup:
    """Write the accuracy on the worst group, and which one it is."""
    finding = groups.worst(result)
    if finding is None:
        return Markup("—")
    return say('{number} <span class="q">{group}</span>', number=_with_interval(finding, ""), group=finding.scope.name)


def _cells(result: Result, grouped: bool) -> list[Cell]:
    found = quality(result)
    baseline = None if found is None else found.detail.get("baseline")
    gap = None if found is None else found.detail.get("gap")
    accuracy = result.accuracy
    tpr = _largest_tpr(result)
    return [
        Cell(_quality(found)),
        Cell(_percent(found, baseline)),
        Cell(_percent(found, gap)),
        Cell(_with_interval(accuracy, "")),
        *([Cell(_worst_group(result))] if grouped else []),
        Cell(_with_interval(tpr, f"{THIN}%")),
        Cell(_exposed(result)),
        Cell(_verdict(result), "u"),
    ]


def _explained(results: Sequence[Result]) -> Iterator[Markup]:
    """Explain the words and the dashes that are in the table."""
    headlines = {words.chosen(result).headline for result in results}
    has_verdicts = bool(results[0].about.decisions)
    if not has_verdicts and headlines.intersection(words.INFERRED):
        baseline = results[0].prior_accuracy
        least = {
            name: near(100 * (baseline + gained * (1 - baseline)), 0)
            for name, gained in (("clear", CLEAR), ("high", HIGH), ("almost", ALMOST_PERFECT))
        }
        yield say(NOTE_OF_WORDS, baseline=near(100 * baseline, 0), **least)
    if any(result.games is not None and result.first_exposed is None for result in results):
        yield say(NOTE_OF_UNTESTED, units=plural(results[0].about.unit))


def _largest_tpr(result: Result) -> Finding | None:
    """Return the largest TPR of an attack at the first rate of interest; the strongest attack may have none there."""
    rates = [
        finding
        for finding in result.findings
        if finding.quantity == "tpr"
        and finding.attack
        and finding.value is not None
        and not finding.scope.is_part
        and finding.operating_point.get("fpr") == result.about.fpr[0]
    ]
    return max(rates, key=lambda finding: (finding.value or 0.0, finding.low or 0.0), default=None)


def _quality(finding: Finding | None) -> Markup:
    if finding is None or finding.value is None:
        return Markup("—")
    return _percent(finding, finding.value)


def _percent(finding: Finding | None, value: float | None) -> Markup:
    """Write an accuracy in percent with one decimal, and an R2 as it is."""
    if finding is None or value is None:
        return Markup("—")
    if finding.quantity == "test_r2":
        return Markup.escape(f"{value:.2f}".replace("-", "\u2212"))
    return Markup.escape(f"{100 * value:.1f}{THIN}%".replace("-", "\u2212"))


def _with_interval(finding: Finding | None, unit: str) -> Markup:
    """Write a value with its interval below it where there is room."""
    if finding is None or finding.value is None:
        return Markup("—")
    text = shown(finding)
    if finding.refused:
        return say(
            '{value}{unit} <span class="q">({why})</span>', value=text.value, unit=unit, why=WITHOUT[finding.refused]
        )
    if not (text.low and text.high):
        return Markup.escape(f"{text.value}{unit}")
    return say(
        '{value}{unit} <span class="q">({low} to {high})</span>',
        value=text.value,
        unit=unit,
        low=text.low,
        high=text.high,
    )


def _exposed(result: Result) -> Markup:
    """Count the records that are shown to be exposed; a dash where no record could be tested by itself."""
    if result.games is None or result.first_exposed is None:
        return Markup("—")
    return Markup.escape(count(result.n_exposed))


def _verdict(result: Result) -> Markup:
    """Return the verdict of the policy, or what the audit found in two words."""
    for decision in result.about.decisions:
        if decision.release == result.name:
            text = capital(DECISIONS[decision.verdict])
            return say('<span class="outcome {name}">{text}</span>', name=decision.verdict, text=text)
    return Markup.escape(FOUND[words.chosen(result).headline])


def _constant(results: Sequence[Result]) -> list[Markup]:
    """Name the models that always predict the same class, or are right about a single one."""
    sentences = []
    always, right_once = [], []
    for result in results:
        found = quality(result)
        n_constant = 0 if found is None else int(found.detail.get("models_of_one_class", 0))
        if found is None or not n_constant:
            continue
        if n_constant < result.facts.targets:
            sentences.append(
                say(NOTE_OF_SOME, n=count(n_constant), all=count(result.facts.targets), title=result.title)
            )
        elif found.detail.get("classes") == 2:
            always.append(result.title)
        else:
            right_once.append(result.title)
    if always:
        predict = "predicts" if len(always) == 1 else "predict"
        sentences.insert(0, say(NOTE_OF_ONE_CLASS, titles=listed(always), predict=predict))
    if right_once:
        are = "is" if len(right_once) == 1 else "are"
        sentences.append(say(NOTE_OF_ONE_RIGHT, titles=listed(right_once), are=are))
    return sentences
