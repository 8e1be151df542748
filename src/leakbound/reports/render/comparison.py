"""Two reports side by side: as text, as a fragment for notebooks, and as a page."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from markupsafe import Markup

from leakbound.reports.about import releases_of
from leakbound.reports.charts.comparison import dots_figure, figure
from leakbound.reports.comparison import Comparison
from leakbound.reports.publication import is_for_owner
from leakbound.reports.render.html import THEMES, fragment, frame
from leakbound.reports.render.text import WIDTH, clean, columns, flat, wrapped
from leakbound.reports.results.comparison import all_rows, begun, strongest, verdict
from leakbound.version import __version__


def text(comparison: Comparison, width: int = WIDTH) -> str:
    """Write the table, and what it says below it, as lines of at most ``width`` columns.

    >>> import leakbound as ls
    >>> print(text(ls.compare(ls.bound("dp", epsilon=1.0), ls.bound("dp", epsilon=2.0))).splitlines()[0])
    attack  quantity                               first     second    difference
    """
    # names and ids may come from files: no control sequence reaches the terminal
    rows = [{name: clean(cell) for name, cell in row.items()} for row in comparison.rows]
    judged = verdict(comparison)
    below = ["\n".join(wrapped(flat(said), width)) for said in (judged.sentence, judged.notes) if said]
    return "\n\n".join(part for part in (columns(rows, width), *below) if part)


def notebook(comparison: Comparison) -> str:
    """Render the sentence, the plot and the folded table as a fragment for a notebook."""
    return fragment("notebook_comparison", **_content(comparison, "n"), **THEMES)


def page(comparison: Comparison) -> str:
    """Render a page: the sentence, the plot and the table."""
    content = _content(comparison, "c")
    facts = [
        f"first: {comparison.names[0]} (digest {comparison.first.digest()})",
        f"second: {comparison.names[1]} (digest {comparison.second.digest()})",
        f"leakbound {__version__}",
    ]
    return frame(
        title=content["title"],
        facts=facts,
        about=SimpleNamespace(leakbound=__version__),
        sections=[Markup(fragment("comparison", **content))],
        digest="",
        command="leakbound compare",
        for_owner=any(is_for_owner(report) for report in (comparison.first, comparison.second)),
    )


def _content(comparison: Comparison, prefix: str) -> dict[str, Any]:
    """Collect what page and fragment show."""
    judged = verdict(comparison)
    digest = hashlib.sha256(f"{comparison.first.digest()} {comparison.second.digest()}".encode()).hexdigest()
    compared = [releases_of(report.about) for report in (comparison.first, comparison.second)]
    first, second = (begun(name) for name in comparison.names)
    if {judged.first.kind, judged.second.kind} == {"measured"} and not any(len(releases) > 1 for releases in compared):
        first, second = judged.first.name, judged.second.name
    heads: Mapping[str, str] = {
        "release": "Release",
        "quantity": "Quantity",
        "first": first,
        "second": second,
        "difference": "Second less first",
    }
    rows = all_rows(comparison)
    names = [name for name in heads if name != "release" or any(row.release for row in rows)]
    return {
        "title": comparison.title or f"Comparison of {judged.first.name} and {judged.second.name}",
        "headline": judged.sentence,
        "notes": judged.notes,
        "drawn": figure(comparison, f"{prefix}{digest[:6]}"),
        "dots": dots_figure(comparison, f"{prefix}d{digest[:6]}"),
        "names": names,
        "heads": heads,
        "strongest": strongest(comparison),
        "apart": [row for row in rows if row.is_apart],
        "others": [row for row in rows if not row.is_apart],
    }
