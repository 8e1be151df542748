"""Pages and fragments for notebooks: no network, and the same report gives the same bytes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache, partial
from importlib import import_module, resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from leakscope.reports import Report
from leakscope.reports.charts.figures import draw
from leakscope.reports.charts.previews import data_uri
from leakscope.reports.charts.strips import strip, strip_axis
from leakscope.reports.render.toml import toml
from leakscope.reports.sections import method, words
from leakscope.reports.sections.document import Document, Section


def page(report: Report) -> str:
    """Render a report as a page.

    Parameters
    ----------
    report : Report
        Of any kind.

    Returns
    -------
    str
        One HTML file with its styles, its charts and one script that sorts the findings. Everything that
        came from the user is escaped, and a content security policy forbids the network.

    Raises
    ------
    ValueError
        If a protected release has a table of records.

    Examples
    --------
    >>> import leakscope as ls
    >>> "at most 73.2 of 100 cases" in page(ls.bound("dp", epsilon=1.0))
    True
    """
    document = document_of(report)
    common = _common(report, document)
    sections = [_section(section, common) for section in document.sections if section.content is not None]
    return frame(**common, title=document.title, facts=document.facts, sections=sections)


def notebook(report: Report) -> str:
    """Render a report as a fragment for a notebook: lede, charts and findings, with styles of its own.

    Parameters
    ----------
    report : Report
        Of any kind.

    Returns
    -------
    str

    Examples
    --------
    >>> import leakscope as ls
    >>> notebook(ls.bound("dp", epsilon=1.0)).startswith('<div class="leakscope">')
    True
    """
    document = document_of(report)
    return fragment("notebook", **_common(report, document), document=document)


def document_of(report: Report) -> Document:
    """Return what a report says: the ``document`` of its kind."""
    return import_module(f"leakscope.reports.sections.{report.about.kind}.document").document(report)


def frame(**content: Any) -> str:
    """Fill the frame of a page.

    The content security policy forbids every script but the one that sorts the findings.
    """
    script = _asset("sort.js")
    return fragment(
        "frame", style=Markup(_asset("style.css")), script=Markup(script), policy=_policy(script), **content
    )


def fragment(template: str, **content: Any) -> str:
    """Fill a template, named without its ending."""
    return _environment().get_template(f"{template}.html.jinja").render(**content)


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


def _policy(script: str) -> str:
    """Content security policy: nothing from the network, and no script but ours."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"


@cache
def _asset(name: str) -> str:
    return resources.files("leakscope.reports.render").joinpath("templates", name).read_text(encoding="utf-8").strip()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("leakscope.reports.render", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        words=words,
        method=method,
        picture=data_uri,
        strip=lambda *signals: Markup(strip(*signals)),
        strip_axis=lambda *ends: Markup(strip_axis(*ends)),
    )
    return environment
