"""The designs side by side, as a text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from leakbound.reports.about import DesignsCompared, OfficeRule
from leakbound.reports.render.text import columns, wrapped
from leakbound.reports.sections.protected import compared, sign_off, table
from leakbound.reports.sections.protected.designs import ONE_DESIGN


def designs_as_text(facts: DesignsCompared, command: str = "", rules: Sequence[OfficeRule] = ()) -> str:
    """Write the errors of all designs, why some have none, and which one is recommended."""
    below = [
        compared.too_many(facts),
        *compared.reasons(facts),
        *compared.notes(facts),
        compared.RECOMMENDED[facts.why],
        ONE_DESIGN,
        compared.FOR_THE_OWNER,
    ]
    lines = [line for text in below for line in wrapped(text)]
    first = [line for text in sign_off.of_designs(facts, command) for line in wrapped(text)]
    checked = [{table.RULE_HEADS[name]: cell for name, cell in table.rule_cells(rule).items()} for rule in rules]
    if checked:
        lines += ["", *wrapped(table.RULES_INTRO), columns(checked)]
    shown = compared.rows(facts)[: compared.MOST_ROWS]
    return "\n".join([*first, "", *wrapped(compared.title(facts)), "", columns(shown), "", *lines])
