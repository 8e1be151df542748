"""Claims of papers compared with our numbers: as text, and as one page with the figures."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from leakbound.reports.render import document
from leakbound.reports.results.papers import papers_page

DOCUMENT = "papers.md.jinja"


def text(documents: Sequence[Mapping[str, Any]], width: int, full: bool) -> str:
    """Write the answer and some claims of experiments, or all of the page, in lines of at most ``width`` columns."""
    return document.terminal(DOCUMENT, papers_page(documents), width, full)


def page(documents: Sequence[Mapping[str, Any]], figures: Mapping[str, bytes]) -> str:
    """Render one page of claims and figures, without network or script to load."""
    pictures = {name: f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}" for name, svg in figures.items()}
    return document.page(DOCUMENT, papers_page(documents, figures), pictures, "p")
