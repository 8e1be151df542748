"""Pages and fragments for notebooks: no network, and the same report gives the same bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from leakbound.core.checks import visible
from leakbound.reports import Curve, Report
from leakbound.reports.charts.audits import audit_charts
from leakbound.reports.charts.bounds import bound_charts
from leakbound.reports.charts.canvas import PALETTE
from leakbound.reports.charts.figures import curve_figures
from leakbound.reports.charts.guesses import guesses_charts
from leakbound.reports.charts.releases import release_charts
from leakbound.reports.render.document import Charts, document_name
from leakbound.reports.render.document import notebook as notebook_of
from leakbound.reports.render.document import page as page_of
from leakbound.reports.render.text import DOCUMENTS
from leakbound.reports.results.curves import one_curve


def page(report: Report) -> str:
    """Render a report as a page.

    >>> import leakbound as ls
    >>> "at most 73.2 of 100 cases" in page(ls.bound("dp", epsilon=1.0))
    True
    """
    return page_of(*_documented(report))


def notebook(report: Report) -> str:
    """Render a report as a fragment for a notebook: the numbers, the lede, charts and folded findings.

    >>> import leakbound as ls
    >>> notebook(ls.bound("dp", epsilon=1.0)).startswith('<div class="leakbound">')
    True
    """
    return fragment(notebook_of(*_documented(report)))


def _documented(report: Report) -> tuple[str, Any, Charts, str]:
    """Return the document of a report, what it is handed, its charts, and what their ids begin with."""
    kind = report.about.kind
    return document_name(report.about), DOCUMENTS[kind](report), CHARTS[kind](report), f"d{report.digest()[:6]}"


def curve_fragment(curve: Curve) -> str:
    """Render a single curve as a fragment for a notebook.

    >>> import leakbound as ls
    >>> curve_fragment(ls.bound("dp", epsilon=1.0).curves[0]).startswith('<div class="leakbound">')
    True
    """
    prefix = f"c{hashlib.sha256(repr(curve.tradeoff.to_dict()).encode()).hexdigest()[:6]}"
    return fragment(notebook_of("curve.md.jinja", one_curve(curve), curve_figures(curve), prefix))


# The charts of each kind of report.
CHARTS: Mapping[str, Callable[[Report], Charts]] = {
    "attribute": guesses_charts,
    "audit": audit_charts,
    "bound": bound_charts,
    "protected": release_charts,
}


# The colours of a fragment, which follow the theme of the notebook where it names one.
THEMES = {
    "light": "".join(f"--{name}: {colour}; " for name, colour in PALETTE.items()),
    "dark": "--ink: #e4e7ea; --mute: #9aa4ae; --rule: #3a424a; --attack: #6cb0f5; --claim: #f0915a; --paper: #14181c; "
    "--wash: #1b2025;",
}


def fragment(body: str) -> str:
    """Put blocks of a document into the style of a notebook; what a browser would obey is shown by its number."""
    template = Environment(loader=PackageLoader("leakbound.reports", "documents"), autoescape=True)
    return visible(template.get_template("notebook.html.jinja").render(body=Markup(body), **THEMES))
