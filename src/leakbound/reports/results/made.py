"""How a report was made: what every page says at its end."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from leakbound.reports import Report
from leakbound.reports.about import AttributeAbout, AuditAbout, TheoremFacts, all_notes
from leakbound.reports.numbers import count
from leakbound.reports.results.method import Judged, assumptions, intervals
from leakbound.reports.results.words import begun, capital, cited, note, sentence
from leakbound.reports.sentences import Sentence, Texts
from leakbound.reports.toml import toml
from leakbound.version import __version__


@dataclass(frozen=True)
class Named:
    """A text under a name: a chart's row, quantities and their method, a library and its version."""

    name: str | Sentence
    text: str | Sentence


class ChartName(str):
    """The name of a chart, or of a heading: an id, and never the text of a user."""


def program() -> Texts:
    """Name the program alone: what a page says that is not made from a single report."""
    return Texts(version=__version__)


def made(report: Report, judged: Judged, certified: Collection[str] = (), seed: str | Sentence = "") -> Texts:
    """Say how a report was made, of which the judged parts are the contents.

    Assumptions of a certificate are not said again; the seed is the plan's unless a sentence says more of it.
    """
    about = report.about
    return Texts(
        intervals=[Named(capital(quantities), method) for quantities, method in intervals(judged)],
        assumptions=[assumption for assumption in assumptions(judged) if assumption not in certified],
        notes=[note(text, of_names=False) for text in all_notes(about)],
        command=about.command,
        plan=toml(about.plan),
        versions=[Named(name, version) for name, version in about.versions.items()],
        seed=seed or str(about.seed),
        version=about.leakbound,
        digest=report.digest(),
    )


def attack_method(name: str, facts: TheoremFacts) -> Texts:
    """Name an attack, its source, and what it computes; a name that its owner gave stays as it is."""
    summary = sentence(facts.summary) if facts.summary else ""
    return Texts(
        title=begun(facts.title, name),
        source=cited(facts.source),
        summary=summary if facts.title == name else capital(summary),
    )


def stored(about: AuditAbout | AttributeAbout) -> list[Sentence]:
    """Say how many models came from the store and how many were made in this run; nothing where no store was used."""
    facts = about.execution
    if facts is None:
        return []
    gaps: dict[str, str | Sentence] = {"reused": count(facts.reused), "made": count(facts.made)}
    name = "stored.models"
    if facts.first_written:
        name = "stored.models_written"
        when = Sentence("stored.from_to", {"first": facts.first_written, "last": facts.last_written})
        gaps["when"] = facts.first_written if facts.first_written == facts.last_written else when
    said = [Sentence(name, gaps)]
    for what, n in (("other_machine", facts.other_machine), ("differing", facts.differing)):
        if n:
            said.append(Sentence(f"stored.{what}", {"n": count(n)}))
    return said
