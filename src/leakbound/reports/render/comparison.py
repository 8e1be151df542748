"""Two reports side by side: as text, as a fragment for notebooks, and as a page."""

from __future__ import annotations

import hashlib

from leakbound.reports.charts.comparison import comparison_charts
from leakbound.reports.comparison import Comparison
from leakbound.reports.render import document
from leakbound.reports.render.html import fragment
from leakbound.reports.results.comparison import comparison_page

DOCUMENT = "comparison.md.jinja"


def text(comparison: Comparison, width: int, full: bool) -> str:
    """Write what a person reads standing, or all of the page, as lines of at most ``width`` columns.

    >>> import leakbound as ls
    >>> print(text(ls.compare(ls.bound("dp", epsilon=1.0), ls.bound("dp", epsilon=2.0)), 80, False).splitlines()[0])
    Comparison of the first report and the second report
    """
    return document.terminal(DOCUMENT, comparison_page(comparison), width, full)


def notebook(comparison: Comparison) -> str:
    """Render the sentence, the curves and the folded tables as a fragment for a notebook."""
    charts = comparison_charts(comparison)
    body = document.notebook(DOCUMENT, comparison_page(comparison), charts, f"n{_digest(comparison)}")
    return fragment(body)


def page(comparison: Comparison) -> str:
    """Render a page: the sentence, the charts and the tables."""
    charts = comparison_charts(comparison)
    return document.page(DOCUMENT, comparison_page(comparison), charts, f"c{_digest(comparison)}")


def _digest(comparison: Comparison) -> str:
    """Return what the ids of a comparison's charts begin with: several may be in one notebook."""
    both = f"{comparison.first.digest()} {comparison.second.digest()}"
    return hashlib.sha256(both.encode()).hexdigest()[:6]
