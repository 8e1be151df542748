"""The designs side by side, as a text for a terminal."""

from __future__ import annotations

from leakscope.reports.about import DesignsCompared
from leakscope.reports.render.text import columns, wrapped
from leakscope.reports.sections.protected import compared


def designs_as_text(facts: DesignsCompared) -> str:
    """Write the errors of all designs, why some have none, and which one is recommended.

    Parameters
    ----------
    facts : DesignsCompared

    Returns
    -------
    str
        Lines that fit a terminal.
    """
    below = [
        compared.too_many(facts),
        *compared.reasons(facts),
        *compared.notes(facts),
        compared.RECOMMENDED[facts.why],
        compared.FOR_THE_OWNER,
    ]
    lines = [line for text in below for line in wrapped(text)]
    shown = compared.rows(facts)[: compared.MOST_ROWS]
    return "\n".join([*wrapped(compared.title(facts)), "", columns(shown), "", *lines])
