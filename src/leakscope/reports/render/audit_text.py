"""An audit as plain text, at most 100 columns wide, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leakscope.reports import Report
from leakscope.reports.numbers import near, percent
from leakscope.reports.render.text import ASCII, WIDTH, clean, flat, wrapped
from leakscope.reports.sections.audit import claims as verdicts
from leakscope.reports.sections.audit import sources, words
from leakscope.reports.sections.audit.result import Result, results
from leakscope.reports.sections.quantities import shown
from leakscope.reports.sections.words import execution, joined, listed, sentence

NAME = 22  # columns for the name of an attack


def table(report: Report) -> str:
    """The audit as text: per release its attacks, strongest first, its most exposed record, its verdicts.

    Accuracy is in cases of 100; intervals stand in brackets at the confidence of the report.

    Parameters
    ----------
    report : Report
        Of an audit.

    Returns
    -------
    str
        Lines of at most 100 columns, without colour or control characters; ends with a newline.

    Examples
    --------
    >>> import numpy as np
    >>> import leakscope as ls
    >>> rng = np.random.default_rng(0)
    >>> member = rng.random(200) < 0.5
    >>> report = ls.audit_scores(rng.normal(size=200) + member, member)
    >>> print(table(report).splitlines()[0])
    How much do these scores reveal about who is in the training data?
    """
    found = results(report)
    blocks = [
        wrapped(words.question(found)) + wrapped(", ".join(words.facts(found))),
        wrapped(flat(words.lede(found))),
        *(_release(result, alone=len(found) == 1) for result in found),
        _claims(found),
        [line for note in report.about.notes for line in wrapped(sentence(note))],
        wrapped(execution(found[0].about)),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _release(result: Result, alone: bool) -> list[str]:
    """A release: its heading, the columns of its attacks, its most exposed record."""
    heading = [] if alone else [clean(result.title)[:WIDTH]]
    lines = [*heading, *_columns(result), *_not_run(result)]
    below = flat(joined([words.exposure(result), words.bounds(result), sources.note(result)]))
    lines += ["", *wrapped(below)] if below else []
    return lines


def _columns(result: Result) -> list[str]:
    """Attacks by quantity; quantities that do not fit beside the others follow below."""
    names = [_cut(clean(result.attack_title(name))) for name in result.attacks] + ["baseline"]
    columns = [[title, *cells] for title, cells in _cells(result)]
    lines: list[str] = []
    for group in _fitting(columns, WIDTH - max([len(name) for name in names] + [6])):
        block = [["attack", *names], *group]
        widths = [max(len(cell) for cell in column) for column in block]
        rows = zip(*block, strict=True)
        lines += [""] * bool(lines)
        lines += [_aligned(row, widths) for row in rows]
    return lines


def _not_run(result: Result) -> list[str]:
    """Attacks without a result, with the reason; those with the same one share a line."""
    by_reason: dict[str, list[str]] = {}
    for finding in result.findings:
        if finding.quantity == "accuracy" and finding.attack and finding.value is None:
            by_reason.setdefault(finding.reason, []).append(clean(result.attack_title(finding.attack)))
    lines: list[str] = []
    for reason, titles in by_reason.items():
        lines += wrapped(f"not run: {listed(titles)}: {clean(reason)}")
    return ["", *lines] if lines else []


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _cells(result: Result) -> Iterator[tuple[str, list[str]]]:
    """A title and a cell for each attack."""
    baseline = near(100 * result.blind, 1).removesuffix(".0")
    prior = "" if result.prior == 0.5 else f", prior {percent(result.prior)}".translate(ASCII)
    yield f"attack accuracy, %{prior}", [*(_cell(result, name, "accuracy") for name in result.attacks), baseline]
    yield "AUC", [*(_cell(result, name, "auc") for name in result.attacks), "0.5"]
    for fpr in result.about.fpr:
        title = f"TPR at FPR {percent(fpr)}".translate(ASCII)
        cells = [_cell(result, name, "tpr", fpr) for name in result.attacks]
        yield title, [*cells, f"{percent(fpr)}".translate(ASCII)]


def _cell(result: Result, attack: str, quantity: str, fpr: float | None = None) -> str:
    """``91.3 (91.1..91.5)``, or a dash."""
    finding = result.find(quantity, attack) if fpr is None else result.find(quantity, attack, fpr=fpr)
    if finding is None:
        return "-"
    text = shown(finding)
    ends = f" ({text.low}..{text.high})" if text.low and text.high else ""
    ends = " (too few models)" if finding.refused else ends
    sign = " %" if quantity == "tpr" else ""
    return f"{text.value}{sign}{ends}".translate(ASCII)


def _fitting(columns: Sequence[list[str]], width: int) -> Iterator[list[list[str]]]:
    """Runs of columns that fit beside the names."""
    group: list[list[str]] = []
    used = 0
    for column in columns:
        need = 2 + max(len(cell) for cell in column)
        if group and used + need > width:
            yield group
            group, used = [], 0
        group.append(column)
        used += need
    if group:
        yield group


def _claims(found: tuple[Result, ...]) -> list[str]:
    """A paragraph a claim."""
    lines: list[str] = []
    for result in found:
        for verdict in result.verdicts:
            why = flat(verdicts.reason(result, verdict))
            lines += wrapped(f"{verdicts.NAMES[verdict.word]}: {result.title}, {verdict.claim}. {why}")
    return lines


def _cut(name: str) -> str:
    return name if len(name) <= NAME else name[: NAME - 3] + "..."
