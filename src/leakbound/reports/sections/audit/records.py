"""The most exposed records of a release: preview, signal with and without the record, correct guesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakbound.reports import Table, plain
from leakbound.reports.numbers import count
from leakbound.reports.sections.audit.result import Result, most_exposed, record_name
from leakbound.reports.sections.words import least_of_100, several

FIELD = 40  # characters of a field


@dataclass(frozen=True)
class Record:
    """A row of the table; ``name`` is the index where the record has no name."""

    number: str
    name: str
    label: str
    won: str
    low: str
    log_odds: np.ndarray | None
    member: np.ndarray | None
    image: Sequence[Sequence[Any]]
    description: str
    fields: Mapping[str, str]


@dataclass(frozen=True)
class Exposed:
    """The table of a release."""

    title: str
    ties: str
    pictures: bool
    rows: Sequence[Record]
    scale: tuple[float, float] | None  # log-odds at the ends of the strips; None where no signals are known


def exposed(result: Result) -> Exposed | None:
    """At most ten exposed records, most correct guesses first, ties by margin; None if there are none."""
    order = most_exposed(result.records)
    if not order:
        return None
    table = result.records
    signals = [table["log_odds"][row] for row in order if table["log_odds"][row] is not None]
    rows = [_record(table, row) for row in order]
    pictures = any(len(row.image) for row in rows)
    scale = _scale(signals) if signals else None
    return Exposed(result.title, _ties(result, order[0], len(order)), pictures, rows, scale)


def _ties(result: Result, worst: int, n_shown: int) -> str:
    """How many records share the first place."""
    table, unit = result.records, result.about.unit
    won, games = int(table["won"][worst]), int(table["games"][worst])
    # of all records: the table has the most exposed ones
    ties = result.games.won[won] if result.games and result.games.won else int(np.sum(np.asarray(table["won"]) == won))
    if ties > n_shown:
        return f"{several(ties, unit)} tie at {count(won)} of {count(games)}; ordered by margin"
    return f"{several(ties, unit)} at {count(won)} of {count(games)}"


def _scale(signals: Sequence[Sequence[float]]) -> tuple[float, float]:
    """One scale for the strips of a release, a little wider than its signals."""
    low, high = float(np.min(signals)), float(np.max(signals))
    margin = 0.04 * (high - low) or 1.0
    return low - margin, high + margin


def _record(table: Table, row: int) -> Record:
    """One row, with what there is to see of the record."""
    cells = plain({column: values[row] for column, values in table.items()})
    preview = cells["preview"] or {}
    image, number, label = preview.get("image") or (), cells["record"], _label(cells["label"])
    log_odds = member = None
    if cells["log_odds"] is not None:
        log_odds, member = np.asarray(cells["log_odds"], dtype=float), np.asarray(cells["member"], dtype=bool)
    name = _cut(record_name(table, row))
    described = f"{len(image)} by {len(image[0])} pixel image of record {name}" if image else ""
    return Record(
        str(number),
        name,
        label,
        f"{count(cells['won'])} of {count(cells['games'])}",
        least_of_100(cells["low"]),
        log_odds,
        member,
        image,
        f"{described}, {label}" if label else described,
        {name: _cut(str(value)) for name, value in preview.get("fields", {}).items()},
    )


def _label(text: str) -> str:
    """Mark a label that is a number alone: it would be taken for another record."""
    return f"label {text}" if text and not any(map(str.isalpha, text)) else text


def _cut(text: str) -> str:
    return text if len(text) <= FIELD else f"{text[: FIELD - 1]}…"
