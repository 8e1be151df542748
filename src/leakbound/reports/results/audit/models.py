"""Several models in one table: how good each of them is, and how much it reveals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leakbound.core.findings import Finding
from leakbound.reports.numbers import MINUS, THIN, count, near, percent
from leakbound.reports.results.audit.answer import INFERRED, chosen, group_name, has_verdict
from leakbound.reports.results.audit.groups import accuracy_text
from leakbound.reports.results.audit.result import Result, ordered, varied, written
from leakbound.reports.results.audit.statements import ALMOST_PERFECT, CLEAR, HIGH
from leakbound.reports.results.dots import Dot, dot
from leakbound.reports.results.findings import Text, with_interval
from leakbound.reports.results.made import Named
from leakbound.reports.results.quantities import shown
from leakbound.reports.results.words import listed
from leakbound.reports.sentences import Sentence, Texts

DECISIONS = ("release", "ask", "do_not_release")


def models_table(results: Sequence[Result]) -> Texts | None:
    """Put several models in one table; None of one model."""
    if len(results) == 1:
        return None
    in_order = ordered(results)
    first = results[0]
    kinds = {finding.quantity for result in results if (finding := result.quality) is not None}
    measured = [result for result in in_order if result.quality is not None and result.accuracy is not None]
    qualities = [Named(result.title, _described(result)) for result in measured if not result.too_few]
    names = [Sentence("models.next_to_each_dot", {"names": listed(varied(first))})] if varied(first) else []
    model = first.facts.description.partition("(")[0]
    return Texts(
        heading=Sentence("models.variants" if first.about.plan.get("vary") else "models.together", {"model": model}),
        lede=list(_lede(results)),
        test=Sentence(f"models.{kinds.pop()}" if len(kinds) == 1 else "models.test_quality"),
        fpr=percent(first.about.fpr[0]),
        rows=[_row(result) for result in in_order],
        have_groups=any(result.worst_group is not None for result in results),
        level=percent(first.about.confidence),
        notes=[*_constant(results), *_explained(results)],
        accuracies=model_dots(compared_models(in_order)),
        qualities=qualities if one_quality(results) and len(qualities) > 1 else [],
        names=names,
    )


def compared_models(results: Sequence[Result]) -> list[Result]:
    """Return the models whose accuracies are drawn on one axis; none where their baselines differ."""
    compared = [result for result in results if result.accuracy is not None and not result.too_few]
    return compared if len({result.prior_accuracy for result in compared}) == 1 else []


def model_dots(compared: Sequence[Result]) -> list[Dot]:
    """Lay out the accuracies of the models."""
    return [dot(result.title, result.accuracy, "best") for result in compared]


def one_quality(results: Sequence[Result]) -> bool:
    """Whether the quality of all models is of one kind, so that they can be drawn against it."""
    return len({result.quality.quantity for result in results if result.quality is not None}) == 1


def _described(result: Result) -> str:
    """Write the quality of a model and the accuracy of the attack."""
    accuracy = "" if result.accuracy is None else shown(result.accuracy).value
    return f"{_test(result.quality)}, {accuracy}"


def _lede(results: Sequence[Result]) -> Iterator[Sentence]:
    """Say what may be released, or without a policy how much the least and the most revealing model reveal."""
    verdicts = [decision.verdict for decision in results[0].about.decisions]
    for name in DECISIONS:
        if name in verdicts:
            yield Sentence(f"models.of_policy_{name}", {"n": count(verdicts.count(name)), "all": count(len(results))})
    known = [result for result in results if result.accuracy is not None and not result.too_few]
    known = [result for result in known if has_verdict(result)]
    least, *_, most = sorted(known, key=lambda result: result.strength) if len(known) > 1 else (None, None)
    if not verdicts and least and least.accuracy and most and most.accuracy:
        low, high = shown(least.accuracy).value, shown(most.accuracy).value
        yield Sentence("models.range", {"low": low, "least": least.title, "high": high, "most": most.title})
    yield from _behind_averages(known)


def _behind_averages(known: Sequence[Result]) -> Iterator[Sentence]:
    """Name the group of all models of which most is revealed, and the model that exposes most records."""
    groups = [(result, worst) for result in known if (worst := result.worst_group) is not None]
    if groups:
        result, worst = max(groups, key=lambda pair: (pair[1].low or 0.0, pair[1].value or 0.0))
        gaps = {"group": group_name(result, worst), "value": with_interval(worst)}
        yield written(result, "models.worst_group", title=result.title, **gaps)
    exposing = [result for result in known if result.n_exposed]
    if exposing:
        result = max(exposing, key=lambda result: result.n_exposed)
        yield written(result, "models.exposes", title=result.title, n=count(result.n_exposed))


def _row(result: Result) -> Texts:
    found = result.quality
    detail = {} if found is None else found.detail
    worst = result.worst_group
    group: Text = Sentence("value.none")
    group_value: Text = group
    if worst is not None:
        gaps = {"value": accuracy_text(worst), "group": worst.scope.name}
        group_value = Sentence("models.value_of_group", gaps)
        group = Sentence("models.value_of_group", {"value": with_interval(worst), "group": worst.scope.name})
    untested = result.games is None or result.first_exposed is None
    return Texts(
        title=result.title,
        test=_test(found),
        baseline=_quality(found, detail.get("baseline")),
        gap=_quality(found, detail.get("gap")),
        accuracy=with_interval(result.accuracy),
        worst_group=group,
        worst_group_value=group_value,
        tpr=_in_percent(_largest_tpr(result)),
        exposed="—" if untested else count(result.n_exposed),
        verdict=verdict_of(result),
    )


def verdict_of(result: Result) -> Sentence:
    """Return the verdict of the policy, or what the audit found in a few words."""
    for decision in result.about.decisions:
        if decision.release == result.name:
            return Sentence(f"decision.{decision.verdict}")
    if not has_verdict(result):
        return Sentence("found.withheld" if result.is_withheld else "found.below")
    return Sentence(f"found.{chosen(result).headline}")


def _largest_tpr(result: Result) -> Finding | None:
    """Return the largest TPR of an attack at the first rate of interest; the strongest attack may have none there."""
    rates = [
        finding
        for finding in result.findings
        if finding.quantity == "tpr"
        and finding.attack
        and finding.value is not None
        and finding.operating_point.get("fpr") == result.about.fpr[0]
    ]
    return max(rates, key=lambda finding: (finding.value or 0.0, finding.low or 0.0), default=None)


def _in_percent(finding: Finding | None) -> Text:
    """Write a rate with its interval."""
    if finding is None or finding.value is None:
        return Sentence("value.none")
    text = shown(finding)
    value = f"{text.value}{THIN}%"
    if finding.refused:
        return Sentence("models.too_few_models", {"value": value})
    return Sentence("value.with_interval", {"value": value, "interval": text.interval}) if text.interval else value


def _test(finding: Finding | None) -> str:
    return _quality(finding, None if finding is None else finding.value)


def _quality(finding: Finding | None, value: float | None) -> str:
    """Write an accuracy in percent with one decimal, and an R2 as it is."""
    if finding is None or value is None:
        return "—"
    text = f"{value:.2f}" if finding.quantity == "test_r2" else f"{100 * value:.1f}{THIN}%"
    return text.replace("-", MINUS)


def _explained(results: Sequence[Result]) -> Iterator[Sentence]:
    """Explain the words and the dashes that are in the table."""
    headlines = {chosen(result).headline for result in results}
    first = results[0]
    if not first.about.decisions and headlines.intersection(INFERRED):
        guess = first.prior_accuracy
        gained = {"clear": CLEAR, "high": HIGH, "almost": ALMOST_PERFECT}
        least = {name: near(100 * (guess + part * (1 - guess)), 0) for name, part in gained.items()}
        yield Sentence("models.words", {**least, "baseline": near(100 * guess, 0)})
    if any(result.games is not None and result.first_exposed is None for result in results):
        yield written(first, "models.untested")


def _constant(results: Sequence[Result]) -> Iterator[Sentence]:
    """Name the models that always predict the same class, or are right about a single one."""
    always, right_once = [], []
    for result in results:
        found = result.quality
        n_constant = 0 if found is None else int(found.detail.get("models_of_one_class", 0))
        if found is None or not n_constant:
            continue
        if n_constant < result.facts.targets:
            gaps = {"n": count(n_constant), "all": count(result.facts.targets), "title": result.title}
            yield Sentence("models.some_of_one_class", gaps)
        elif found.detail.get("classes") == 2:
            always.append(result.title)
        else:
            right_once.append(result.title)
    if always:
        yield Sentence("models.one_class", {"titles": listed(always)})
    if right_once:
        yield Sentence("models.one_right", {"titles": listed(right_once)})
