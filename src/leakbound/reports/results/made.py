"""How a report was made: what every page says at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leakbound.reports import Report
from leakbound.reports.about import all_notes
from leakbound.reports.sections.method import Judged, assumptions, intervals
from leakbound.reports.sections.words import capital, note
from leakbound.reports.sentences import Sentence
from leakbound.reports.toml import toml


@dataclass(frozen=True)
class Named:
    """A text under a name: a chart's row, quantities and their method, a library and its version."""

    name: str | Sentence
    text: str | Sentence


@dataclass(frozen=True)
class Made:
    """Method, assumptions, notes, and what is needed to do it again."""

    intervals: Sequence[Named]
    assumptions: Sequence[str]
    notes: Sequence[str]
    command: str
    plan: str
    versions: Sequence[Named]
    seed: str
    version: str
    digest: str


def made(report: Report, judged: Judged) -> Made:
    """Say how a report was made, of which the judged parts are the contents."""
    about = report.about
    return Made(
        intervals=[Named(capital(quantities), method) for quantities, method in intervals(judged)],
        assumptions=assumptions(judged),
        notes=[note(text, of_names=False) for text in all_notes(about)],
        command=about.command,
        plan=toml(about.plan),
        versions=[Named(name, version) for name, version in about.versions.items()],
        seed=str(about.seed),
        version=about.leakbound,
        digest=report.digest(),
    )


class ChartName(str):
    """The name of a chart: an id, and never the text of a user."""
