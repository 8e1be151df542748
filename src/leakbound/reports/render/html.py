"""Pages and fragments for notebooks: no network, and the same report gives the same bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module, resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from leakbound.core.checks import visible
from leakbound.reports import Curve, Report, publication
from leakbound.reports.charts.audits import audit_charts
from leakbound.reports.charts.bounds import bound_charts
from leakbound.reports.charts.canvas import PALETTE
from leakbound.reports.charts.figures import curve_figure, draw
from leakbound.reports.render.document import Charts
from leakbound.reports.render.document import notebook as notebook_of
from leakbound.reports.render.document import page as page_of
from leakbound.reports.render.gaps import policy
from leakbound.reports.results.audit_page import audit_page
from leakbound.reports.results.bound_page import bound_page
from leakbound.reports.sections import method, words
from leakbound.reports.sections.curves import one_curve
from leakbound.reports.sections.document import Document, Section
from leakbound.reports.toml import toml


def page(report: Report) -> str:
    """Render a report as a page.

    >>> import leakbound as ls
    >>> "at most 73.2 of 100 cases" in page(ls.bound("dp", epsilon=1.0))
    True
    """
    if report.about.kind in DOCUMENTS:
        return page_of(*_documented(report))
    document = document_of(report)
    common = _common(report, document)
    sections = [_section(section, common) for section in document.sections if section.content is not None]
    return frame(
        **common,
        title=document.title,
        facts=document.facts,
        sections=sections,
        for_owner=publication.is_for_owner(report),
    )


def notebook(report: Report) -> str:
    """Render a report as a fragment for a notebook: the numbers, the lede, charts and folded findings.

    >>> import leakbound as ls
    >>> notebook(ls.bound("dp", epsilon=1.0)).startswith('<div class="leakbound">')
    True
    """
    if report.about.kind in DOCUMENTS:
        return fragment("notebook_document", body=Markup(notebook_of(*_documented(report))), **THEMES)
    document = document_of(report)
    section = next(section for section in document.sections if section.name in NUMBERS)
    summary = section.content or {}
    numbers, lede = NUMBERS[section.name](summary), summary["lede"]
    content = {"numbers": numbers, "warning": summary.get("warning", ""), "lede": lede, "document": document}
    return fragment("notebook", **_common(report, document), **THEMES, **content)


def _documented(report: Report) -> tuple[str, Any, Charts, str]:
    """Return the document of a report, what it is handed, its charts, and what their ids begin with."""
    made, charts = DOCUMENTS[report.about.kind]
    return f"{report.about.kind}.md.jinja", made(report), charts(report), f"d{report.digest()[:6]}"


def curve_fragment(curve: Curve) -> str:
    """Render a single curve as a fragment for a notebook.

    >>> import leakbound as ls
    >>> curve_fragment(ls.bound("dp", epsilon=1.0).curves[0]).startswith('<div class="leakbound">')
    True
    """
    big, text = one_curve(curve)
    prefix = f"c{hashlib.sha256(repr(curve.tradeoff.to_dict()).encode()).hexdigest()[:6]}"
    return fragment("notebook_curve", big=big, text=text, drawn=curve_figure(curve, prefix), **THEMES)


def _of_releases(summary: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Take the number of each release, and the sentence next to it."""
    return summary["releases"]


def _of_promise(release: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Take the promise of a protected release."""
    return [{"title": "", "big": release["big"], "unit": release["big_unit"], "text": release["promise"]}]


# The kinds of reports whose page is a document: what it is handed, and its charts.
DOCUMENTS: Mapping[str, tuple[Callable[[Report], Any], Callable[[Report], Charts]]] = {
    "audit": (audit_page, audit_charts),
    "bound": (bound_page, bound_charts),
}

# Where a document has the numbers that a notebook begins with: the name of the section, and how they are read.
NUMBERS: Mapping[str, Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]]] = {
    "summary": _of_releases,
    "release": _of_promise,
}


# The colours of a fragment, which follow the theme of the notebook where it names one.
THEMES = {
    "light": "".join(f"--{name}: {colour}; " for name, colour in PALETTE.items()),
    "dark": "--ink: #e4e7ea; --mute: #9aa4ae; --rule: #3a424a; --attack: #6cb0f5; --claim: #f0915a; --paper: #14181c; "
    "--wash: #1b2025;",
}


def document_of(report: Report) -> Document:
    """Return what a report says: the ``document`` of its kind."""
    return import_module(f"leakbound.reports.sections.{report.about.kind}.document").document(report)


def frame(*, for_owner: bool = False, **content: Any) -> str:
    """Fill the frame of a page, which says on its top whether it is for the owner of the data.

    The content security policy forbids every script but the one that sorts the findings.
    """
    script = _asset("sort.js")
    assets = {"style": Markup(_asset("style.css")), "script": Markup(script), "policy": policy(script)}
    return fragment("frame", **assets, for_owner=for_owner, **content)


def fragment(template: str, **content: Any) -> str:
    """Fill a template, named without its ending; what a browser would obey in a name is shown by its number."""
    return visible(_environment().get_template(f"{template}.html.jinja").render(**content))


def _section(section: Section, common: Mapping[str, Any]) -> Markup:
    """Render a section from its template, which is escaped already."""
    return Markup(fragment(section.template or section.name, **{**common, **(section.content or {})}))


def _common(report: Report, document: Document) -> dict[str, Any]:
    """Collect what every template may ask for."""
    return {
        "about": document.about,
        "unit": document.unit,
        "units": document.units,
        "plan": toml(document.about.plan),
        "digest": report.digest(),
        "draw": partial(draw, report),
    }


@cache
def _asset(name: str) -> str:
    return resources.files("leakbound.reports.render").joinpath("templates", name).read_text(encoding="utf-8").strip()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("leakbound.reports.render", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        words=words,
        method=method,
    )
    return environment
