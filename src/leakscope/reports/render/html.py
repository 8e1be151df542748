"""What every page is made of: one HTML file, no network, and the same report gives the same bytes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from leakscope.reports import Report
from leakscope.reports.about import About
from leakscope.reports.charts.previews import data_uri
from leakscope.reports.charts.strips import strip, strip_axis
from leakscope.reports.phrases import plural
from leakscope.reports.render.toml import toml
from leakscope.reports.sections import method as shared_method
from leakscope.reports.sections import words
from leakscope.reports.sections.attribute import words as attribute_words
from leakscope.reports.sections.audit import method as audit_method
from leakscope.reports.sections.audit import notes
from leakscope.reports.sections.audit import words as audit_words
from leakscope.reports.sections.bound import words as bound_words
from leakscope.reports.sections.protected import costs as protected_costs
from leakscope.reports.sections.protected import words as protected_words


def render(template: str, **said: Any) -> str:
    """A page of its own, from a template that fills the frame.

    Everything that came from the user is escaped, and a content security policy forbids the network and every
    script but the one that sorts the findings.

    Parameters
    ----------
    template : str
        A file of the folder ``templates``.
    **said
        What the template asks for; see `common`.
    """
    script = _asset("sort.js")
    assets = {"style": Markup(_asset("style.css")), "script": Markup(script), "policy": _policy(script)}
    return fragment(template, **assets, **said)


def fragment(template: str, **said: Any) -> str:
    """A filled template without a frame, for a notebook."""
    return _environment().get_template(template).render(**said)


def common(report: Report, about: About) -> dict[str, Any]:
    """What every page says of its report."""
    return {
        "about": about,
        "unit": about.unit,
        "units": plural(about.unit),
        "plan": toml(about.plan),
        "digest": report.digest(),
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
    environment.globals.update(_functions())
    return environment


def _functions() -> Mapping[str, Any]:
    """The functions that the templates call, for sentences and for pictures of records."""
    return {
        "words": words,
        "method": shared_method,
        "audit": audit_words,
        "played": audit_method,
        "notes": notes,
        "said": bound_words,
        "guessed": attribute_words,
        "certified": protected_words,
        "certified_costs": protected_costs,
        "picture": data_uri,
        "strip": lambda *of: Markup(strip(*of)),
        "strip_axis": lambda *ends: Markup(strip_axis(*ends)),
    }
