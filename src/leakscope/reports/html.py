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

from leakscope.reports import (
    Report,
    attribute_words,
    bound_words,
    method,
    notes,
    plans,
    protected_costs,
    protected_words,
    words,
)
from leakscope.reports.about import About


def render(template: str, **said: Any) -> str:
    """A page of its own, from a template that fills the frame.

    Everything that came from the user is escaped, and a content security policy forbids the network and every
    script but the one that sorts the findings.

    Parameters
    ----------
    template : str
        A file of this room.
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
        "units": words.plural(about.unit),
        "plan": plans.toml(about.plan),
        "digest": report.digest(),
    }


def _policy(script: str) -> str:
    """Content security policy: nothing from the network, and no script but ours."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"


@cache
def _asset(name: str) -> str:
    return resources.files("leakscope.reports").joinpath(name).read_text(encoding="utf-8").strip()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("leakscope.reports", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(_words())
    return environment


def _words() -> Mapping[str, Any]:
    """The functions that the templates call for sentences."""
    return {
        "method": method,
        "notes": notes,
        "words": words,
        "said": bound_words,
        "guessed": attribute_words,
        "certified": protected_words,
        "certified_costs": protected_costs,
    }
