"""The page of an audit of an attribute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leakscope.reports import Report
from leakscope.reports.charts.figures import guesses_figure
from leakscope.reports.numbers import percent
from leakscope.reports.render import html
from leakscope.reports.sections import findings
from leakscope.reports.sections.attribute import words as attribute_words
from leakscope.reports.sections.attribute.result import AttributeResult, attribute_results, ordered
from leakscope.reports.sections.quantities import shown


def page(report: Report) -> str:
    """The report of an audit of an attribute as a page.

    Parameters
    ----------
    report : Report
        Of an audit of an attribute.

    Returns
    -------
    str
        One HTML file with its styles, its charts and one script that sorts the findings. Everything that
        came from the user is escaped, and a content security policy forbids the network.

    Examples
    --------
    >>> import leakscope as ls
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> report = ls.audit(KNeighborsClassifier(1), X, y, n_models=8, attribute=0, bins=4, attacks="loss", n_jobs=1)
    >>> "is what the release adds" in page(report)
    True
    """
    found = attribute_results(report)
    return html.render(
        "attribute.html.jinja",
        **_said(report, found),
        caption="Only a gain is what the release adds; an accuracy is also what anybody could have guessed.",
        summaries=[_summary(report, result, f"s{place}") for place, result in enumerate(found)],
    )


def notebook(report: Report) -> str:
    """The report as a fragment for a notebook: lede, findings and the chart, with styles of its own."""
    found = attribute_results(report)
    prefix = f"n{report.digest()[:6]}"  # several reports stand in one notebook
    panels = [
        {"title": result.title, "figure": guesses_figure(report, result, f"{prefix}-{place}")}
        for place, result in enumerate(found)
    ]
    return html.fragment("notebook.html.jinja", **_said(report, found), curves=panels)


def _said(report: Report, found: Sequence[AttributeResult]) -> dict[str, Any]:
    """What page and notebook have in common."""
    return {
        **html.common(report, found[0].about),
        "found": found,
        "title": attribute_words.question(found),
        "facts": attribute_words.facts(found),
        "lede": attribute_words.lede(found),
        "interval_head": f"{percent(found[0].about.confidence)} interval",
        "layout": "one" if len(found) == 1 else "two",
        "groups": findings.groups(found, ordered),
    }


def _summary(report: Report, result: AttributeResult, prefix: str) -> dict[str, Any]:
    """The big number, the paragraph and the chart of a release."""
    gain = result.gain
    big, unit = ("—", "") if gain is None else (shown(gain).value, "of 100 more")
    text = attribute_words.summary(result)
    return {
        "title": result.title,
        "big": big,
        "unit": unit,
        "text": text,
        "figure": guesses_figure(report, result, prefix),
    }
