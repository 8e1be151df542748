"""An audit of an attribute as plain text, at most 100 columns wide, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from leakscope.core.findings import Finding
from leakscope.reports import Report
from leakscope.reports.render.text import WIDTH, clean, columns, flat, wrapped
from leakscope.reports.sections.attribute import words as attribute_words
from leakscope.reports.sections.attribute.result import BASELINES, AttributeResult, attribute_results
from leakscope.reports.sections.quantities import shown
from leakscope.reports.sections.words import capital, execution, listed, sentence


def table(report: Report) -> str:
    """The audit as text: per release what each strategy gets right, what it adds, and what one gets without it.

    Numbers are cases of 100; intervals stand in brackets at the confidence of the report.

    Parameters
    ----------
    report : Report
        Of an audit of an attribute.

    Returns
    -------
    str
        Lines of at most 100 columns, without colour or control characters; ends with a newline.

    Examples
    --------
    >>> import leakscope as ls
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> report = ls.audit(KNeighborsClassifier(1), X, y, n_models=8, attribute=0, bins=4, attacks="loss", n_jobs=1)
    >>> print(table(report).splitlines()[0])
    How well does KNeighborsClassifier give away x0 of the records in the data?
    """
    found = attribute_results(report)
    blocks = [
        wrapped(attribute_words.question(found)) + wrapped(", ".join(attribute_words.facts(found))),
        wrapped(flat(attribute_words.lede(found))),
        *(_release(result, alone=len(found) == 1) for result in found),
        [line for note in found[0].about.notes for line in wrapped(capital(sentence(note)))],
        wrapped(execution(found[0].about)),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _release(result: AttributeResult, alone: bool) -> list[str]:
    heading = [] if alone else [clean(result.title)[:WIDTH]]
    rows = [{head: clean(cell) for head, cell in row.items()} for row in _rows(result)]
    found = [*columns(rows).splitlines(), *_not_run(result)]
    return [*heading, *found, "", *wrapped(flat(attribute_words.summary(result)))]


def _not_run(result: AttributeResult) -> list[str]:
    """Strategies without a result, with the reason; those with the same one share a line."""
    by_reason: dict[str, list[str]] = {}
    for finding in result.findings:
        if finding.attack in result.strategies and finding.value is None and finding.reason:
            titles = by_reason.setdefault(finding.reason, [])
            title = clean(result.attack_title(finding.attack))
            if title not in titles:
                titles.append(title)
    lines: list[str] = []
    for reason, titles in by_reason.items():
        lines += wrapped(f"not run: {listed(titles)}: {clean(reason)}")
    return ["", *lines] if lines else []


def _rows(result: AttributeResult) -> Iterator[dict[str, str]]:
    """A row a strategy, then those that need no release."""
    for name in result.strategies:
        yield {
            "strategy": result.attack_title(name),
            "members": _cell(result.find("attribute_accuracy", name, True)),
            "not in": _cell(result.find("attribute_accuracy", name, False)),
            "the release adds": _cell(result.find("attribute_gain", name)),
        }
    for name in BASELINES:
        right = _cell(result.find("attribute_accuracy", name, True))
        yield {"strategy": result.attack_title(name), "members": right, "not in": "-", "the release adds": "-"}
    chance = attribute_words.of_100(result.facts.chance)
    yield {"strategy": "Chance", "members": chance, "not in": chance, "the release adds": "-"}


def _cell(finding: Finding | None) -> str:
    """``91.3 (91.1..91.5)``, or a dash."""
    if finding is None:
        return "-"
    text = shown(finding)
    ends = f" ({text.low}..{text.high})" if text.low and text.high else ""
    return f"{text.value}{ends}"
