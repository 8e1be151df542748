"""The sections of an audit of membership."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from leakbound.core.findings import Finding
from leakbound.reports import Report
from leakbound.reports.numbers import near, percent
from leakbound.reports.sections.audit import claims, decisions, method, models, notes, slices, sources, words
from leakbound.reports.sections.audit import groups as group_words
from leakbound.reports.sections.audit.advice import advice
from leakbound.reports.sections.audit.records import exposed
from leakbound.reports.sections.audit.result import Result, results
from leakbound.reports.sections.curves import SMALL_ADVANTAGE
from leakbound.reports.sections.document import (
    Block,
    Columns,
    Document,
    Figure,
    Heading,
    Panel,
    Rows,
    Section,
    findings_section,
    interval_head,
    noted,
)
from leakbound.reports.sections.findings import groups, not_run, ordered, slice_groups
from leakbound.reports.sections.quantities import shown
from leakbound.reports.sections.words import joined, listed

MOST_CURVES = 4
NAME = 22  # columns for the name of an attack


def document(report: Report) -> Document:
    """Write an audit down."""
    as_planned = results(report)
    releases = models.ordered(as_planned)  # one order in all sections: that of the table of models
    about = releases[0].about
    table = [*groups(releases, ordered), *slice_groups(releases)]
    head = interval_head(about.confidence)
    caption = f"A lower bound means: the best attacker reaches at least this. {notes.over(releases)}"
    prefix = f"n{report.digest()[:6]}"  # several reports may be in one notebook
    parts = [
        _contradictions(releases),
        _models(releases, f"{prefix}-m"),
        _decisions(releases),
        _summary(releases),
        _claims(releases),
        Section("advice", {"advice": advice(releases)}),
        _curves(releases),
        _records(releases),
        slices.group_section(releases),
        slices.section(releases),
        findings_section(table, head, caption),
        Section("audit_method", {"found": releases, "played": method, "level": words.level(releases[0])}, noted(about)),
    ]
    return Document(
        about,
        words.question(as_planned),
        words.facts(releases),
        joined([claims.leading(releases), words.lede(releases)]),
        head,
        table,
        [part for part in parts if part is not None],
        [Panel(result.title, Figure("roc", result, f"{prefix}-{i}")) for i, result in enumerate(_worst(releases))],
    )


def _contradictions(results: Sequence[Result]) -> Section | None:
    """Proved ceilings that a measurement exceeds."""
    curves = claims.contradictions(results)
    names = [f"{curve.release}: {curve.name}" for curve in curves]
    return Section("contradictions", {"names": names}) if names else None


def _models(results: Sequence[Result], prefix: str) -> Section | None:
    """Put several models side by side."""
    if len(results) == 1:
        return None
    rows = models.rows(results)
    panels = [Panel("What each reveals", Figure("models", results, f"{prefix}0"))]
    kinds = {finding.quantity for result in results if (finding := models.quality(result)) is not None}
    if len(kinds) == 1:
        names = models.varied(results[0])
        caption = f"Next to each dot: {listed(names)}." if names else ""
        panels.append(Panel("Against its quality", Figure("quality", results, f"{prefix}1"), caption=caption))
    content = {
        "heading": _heading(results),
        "lede": models.lede(results),
        "heads": models.heads(results),
        "rows": rows,
        "note": models.note(results),
        "panels": panels,
    }
    text = [{"model": title} | {head: cell.short for head, cell in cells.items()} for title, cells in rows]
    return Section("models", content, [[Rows(text)], [models.note(results)]])


def _heading(results: Sequence[Result]) -> str:
    """Say what is put side by side: models, or variants of one."""
    if not results[0].about.plan.get("vary"):
        return "The models side by side"
    model = results[0].facts.description.partition("(")[0]
    return f"Variants of {model} side by side"


def _decisions(results: Sequence[Result]) -> Section | None:
    """Show the verdicts of a policy with their reasons."""
    written = decisions.decisions(results)
    if not written:
        return None
    facts = decisions.facts(results)
    text: list[Block] = []
    for decision in written:
        lines = [
            {"limited": check.title, "limit": check.limit, "measured": check.measured, "verdict": _with_reason(check)}
            for check in decision.checks
        ]
        title = f"{decision.title}: {decision.verdict.lower()}"
        said = joined([decision.summary, Markup.escape(decision.not_run), Markup.escape(decision.action)])
        text += [[Heading(title), said], [Rows(lines)]]
    text.append([facts["level"]])
    return Section("decisions", {"decisions": written, **facts}, text)


def _with_reason(check: decisions.Check) -> str:
    return f"{check.outcome}: {check.why}" if check.why else check.outcome


def _summary(results: Sequence[Result]) -> Section:
    """Show the accuracy of the best attack on each release."""
    releases = [_release(result, f"s{i}") for i, result in enumerate(results)]
    content = {
        "lede": joined([claims.leading(results), words.lede(results), claims.counted(results)]),
        "releases": releases,
        "note": joined([notes.summary(results), notes.known_pool(results)]),
        "others": _other_attacks(results),
    }
    prepared = joined(words.prepared(result) for result in results)
    text: list[Block] = [[joined([claims.leading(results), words.lede(results)])], [prepared]]
    for result in results:
        text += _text_of(result, alone=len(results) == 1)
    text.append([notes.known_pool(results)])
    return Section("summary", content, text)


def _other_attacks(results: Sequence[Result]) -> dict[str, Any] | None:
    """Show every attack of the releases where some say nothing new; a page folds this."""
    shown = [result for result in results if not result.too_few]
    n_others = max((len(result.attacks_that_ran) - len(result.telling) for result in shown), default=0)
    if not n_others:
        return None
    title = f"The {'other attack' if n_others == 1 else f'{n_others} other attacks'}, which say nothing new"
    if len(results) > 1:
        title = "All attacks on each model, also those that say nothing new"
    panels = [Panel(result.title, Figure("all_attacks", result, f"a{i}")) for i, result in enumerate(shown)]
    return {"title": title, "panels": panels, "note": notes.OTHERS}


def _release(result: Result, prefix: str) -> dict[str, Any]:
    """Collect the big number, the paragraph and the dot plot of a release."""
    accuracy = result.accuracy
    big, unit = "—", ""
    if accuracy is not None and result.too_few:
        big, unit = str(round((accuracy.value or 0) * result.n_games)), f"of {result.n_games}"
    elif accuracy is not None:
        big, unit = shown(accuracy).value, "of 100"
    figure = None if result.too_few else Figure("audit_dots", result, prefix)
    said = joined([words.summary(result), words.prepared(result)])
    return {"title": result.title, "big": big, "unit": unit, "text": said, "figure": figure}


def _claims(results: Sequence[Result]) -> Section | None:
    """Each claim with its verdict."""
    lines = claims.lines(results)
    if not lines:
        return None
    return Section("claims", {"claims": lines}, [[line.text for line in lines]])


def _curves(results: Sequence[Result]) -> Section | None:
    """ROC of the releases, of the worst four where there are more; then their gains over guessing."""
    drawn = [result for result in _worst(results) if not result.too_few]
    if not drawn:
        return None
    captions = {result.name: notes.curves(result) for result in drawn}
    apart = len(set(captions.values())) > 1  # a note that is the same for all is printed once, under all of them
    several = len(results) > 1
    panels = []
    for place, result in enumerate(drawn):
        caption = captions[result.name] if apart else ""
        title = result.title if several else ""
        panels.append(Panel(title, Figure("roc", result, f"r{place}"), caption=caption))
    if max(result.advantage for result in drawn) < SMALL_ADVANTAGE:
        for place, result in enumerate(drawn):
            panels.append(Panel(result.title if several else "", Figure("gain", result, f"g{place}")))
    captioned = any(panel.caption for panel in panels)
    undrawn = notes.not_drawn(drawn)
    note = joined([*([] if captioned else [notes.curves(results[0])]), notes.doubled(results), undrawn])
    ceilings = any(result.ceilings for result in results)
    content = {
        "heading": "The attack and its ceiling" if ceilings else "The attack at each rate of false alarms",
        "intro": notes.curves_intro(results),
        "panels": panels,
        "note": note,
        "fold": "" if ceilings else notes.found(results),  # a ceiling says something that the summary does not
    }
    return Section("curves", content)


def _records(results: Sequence[Result]) -> Section | None:
    """Histograms of correct guesses, or the sentence in their place, and the most exposed records."""
    panels = []
    for place, result in enumerate(results):
        if result.games is None or result.too_few:
            continue
        drawn = Figure("histogram", result, f"h{place}") if result.first_exposed and result.games.won else None
        above = group_words.exposed(result) if result.n_exposed else words.exposure(result)
        panels.append(Panel(result.title, drawn, above=above))
    if not panels:
        return None
    tables = [exposed(result) for result in results if not result.too_few]
    content = {
        "several": len(results) > 1,
        "fold": notes.exposed(results),
        "intro": notes.records_intro(results),
        "panels": panels,
        "note": notes.histograms(results) if any(panel.figure for panel in panels) else "",
        "exposed": [table for table in tables if table is not None],
        "legend": notes.strips(results),
    }
    return Section("records", content)


def _worst(results: Sequence[Result]) -> Sequence[Result]:
    """Select the four releases that reveal most, in the order of the page."""
    if len(results) <= MOST_CURVES:
        return results
    order = sorted(results, key=lambda result: result.strength, reverse=True)[:MOST_CURVES]
    return [result for result in results if result in order]


def _text_of(result: Result, alone: bool) -> list[Block]:
    """Lay out a release in a text: its attacks, those that did not run, its most exposed record."""
    names = [*(_cut(result.attack_title(name)) for name in result.attacks_that_ran), "baseline"]
    attacks = Columns("attack", names, list(_columns(result)))
    accuracies = (finding for finding in result.findings if finding.quantity == "accuracy" and finding.attack)
    below = joined([words.exposure(result), words.bounds(result), words.epsilon(result), sources.note(result)])
    return [[*([] if alone else [Heading(result.title)]), attacks], not_run(result, accuracies), [below]]


def _columns(result: Result) -> Iterator[tuple[str, list[str]]]:
    """Lay out a title and a cell for each attack that ran, then the baseline."""
    names = result.attacks_that_ran
    baseline = near(100 * result.prior_accuracy, 1).removesuffix(".0")
    prior = "" if result.prior == 0.5 else f", prior {percent(result.prior)}"
    yield f"attack accuracy, %{prior}", [*(_cell(result, name, "accuracy") for name in names), baseline]
    yield "AUC", [*(_cell(result, name, "auc") for name in names), "0.5"]
    for fpr in result.about.fpr:
        yield f"TPR at FPR {percent(fpr)}", [*(_cell(result, name, "tpr", fpr) for name in names), percent(fpr)]


def _cell(result: Result, attack: str, quantity: str, fpr: float | None = None) -> str:
    """``91.3 (91.1..91.5)``, or a dash."""
    finding: Finding | None = result.find(quantity, attack, **({} if fpr is None else {"fpr": fpr}))
    if finding is None:
        return "-"
    text = shown(finding)
    ends = f" ({text.low}..{text.high})" if text.low and text.high else ""
    if finding.refused:
        ends = " (too few models)"
    return f"{text.value}{' %' if quantity == 'tpr' else ''}{ends}"


def _cut(name: str) -> str:
    return name if len(name) <= NAME else name[: NAME - 3] + "..."
