"""What a reader must know of a statistic: the response, the scale of the columns, a penalty, what was rounded."""

from __future__ import annotations

from leakbound.reports.about import ColumnScale, PublishedTable, StatisticParameters
from leakbound.reports.numbers import count, parameter, powers, significant
from leakbound.reports.results.findings import Text
from leakbound.reports.results.release.result import ReleaseResult
from leakbound.reports.results.words import capital
from leakbound.reports.sentences import Sentence, Texts

MOST_SCALES = 12  # columns whose centre and spread are shown
FITTED = ("ridge", "poisson", "huber", "logistic")  # whose penalty depends on the scale of the columns


def statistic_notes(result: ReleaseResult) -> list[Texts]:
    """Say what a reader must know of each statistic, and what was made of its numbers."""
    notes = []
    for name, own in result.by_statistic or (("", result),):
        sentences = [*parameter_notes(own.about.parameters), *table_notes(own.about.table)]
        if sentences:
            notes.append(Texts(name=capital(name), sentences=sentences))
    return notes


def table_notes(published: PublishedTable | None) -> list[Sentence]:
    """Say what was made of the released numbers of a table."""
    if published is None:
        return []
    notes = [Sentence("table.rounded")]
    if published.total is not None:
        notes = [Sentence("table.adds_up", {"total": count(published.total)})]
    is_so = {
        "margins": any(None in cell.levels for cell in published.cells),
        "non_negative": published.non_negative,
        "no_mean": any(cell.value is None for cell in published.cells),
        "half_of_interval": any(cell.low is not None for cell in published.cells),
    }
    return [*notes, *(Sentence(f"table.{name}") for name, holds in is_so.items() if holds)]


def parameter_notes(facts: StatisticParameters | None) -> list[Sentence]:
    """Say what a reader must know of a statistic; nothing where the names of its numbers say all.

    >>> print(*parameter_notes(StatisticParameters(kind="ratio", denominator="hours")))
    Each ratio is a total divided by the total of hours.
    """
    if facts is None:
        return []
    gaps: dict[str, Text] = {
        "response": facts.response or Sentence("statistic.response"),
        "modelled_class": facts.modelled_class,
        "denominator": facts.denominator,
        "penalty": "" if facts.penalty is None else parameter(facts.penalty),
        "threshold": "" if facts.threshold is None else parameter(facts.threshold),
    }
    notes = [] if facts.kind == "second_moment" and facts.scales else [Sentence(f"statistic.{facts.kind}", gaps)]
    notes += _scales(facts)
    if facts.penalty and facts.kind in FITTED[1:]:
        notes.append(Sentence(f"statistic.penalty_of_{facts.kind}", gaps))
    if facts.of_values:
        notes.append(Sentence("statistic.of_values"))
        if facts.least_count is not None:
            least = {"least": powers(significant(facts.least_count))}
            notes.append(Sentence(f"statistic.intervals_of_{facts.kind}", least))
    return notes


def _scales(facts: StatisticParameters) -> list[Sentence]:
    """Say by which numbers the columns are moved and scaled."""
    if facts.scales_of_data:
        return [Sentence("statistic.scaled_by_data")]
    if not facts.scales:
        return [Sentence("statistic.as_they_are")] if facts.kind in FITTED else []
    is_moved = facts.kind == "second_moment"
    notes = [Sentence(f"statistic.{'centred' if is_moved else 'scaled'}")]
    notes += [_scale(scale, is_moved) for scale in facts.scales[:MOST_SCALES]]
    n_more = len(facts.scales) - MOST_SCALES
    return [*notes, Sentence("statistic.more_scales", {"n": count(n_more)})] if n_more > 0 else notes


def _scale(scale: ColumnScale, is_moved: bool) -> Sentence:
    gaps: dict[str, Text] = {
        "column": scale.column,
        "centre": parameter(scale.centre),
        "spread": parameter(scale.spread),
    }
    return Sentence("statistic.centre" if is_moved else "statistic.scale", gaps)
