"""The games against single records: how many are exposed, and the most exposed ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leakbound.reports import Table, plain
from leakbound.reports.about import GamesFacts
from leakbound.reports.numbers import count, percent
from leakbound.reports.results.audit.answer import exposed_of_groups, least_of_100, single_records
from leakbound.reports.results.audit.result import Result, level, most_exposed, record_name, written
from leakbound.reports.results.findings import Text
from leakbound.reports.results.made import ChartName, Named
from leakbound.reports.results.words import cut, listed, several
from leakbound.reports.sentences import Sentence, Texts

FIELD = 40  # characters of a field


def records_part(results: Sequence[Result]) -> Texts | None:
    """Write the games against single records down; None where there were none, or too few."""
    known = [(place, result) for place, result in enumerate(results) if result.games and not result.too_few]
    if not known:
        return None
    is_alone = len(results) == 1
    histograms, said, exposed = [], [], []
    for place, result in known:
        title = "" if is_alone else result.title
        games = result.games
        if games is not None and result.first_exposed and games.won:
            histograms.append(_histogram(result, games, ChartName(f"histogram{place}"), title))
        else:
            said += [Named(title, sentence) for sentence in single_records(result)]
        if most_exposed(result.records):
            exposed.append(_exposed(result, place, title))
    played = sorted({result.n_played for _, result in known})
    return Texts(
        found=_found(results) if is_alone else "",
        played=listed(map(count, played)),
        baseline=listed(count(round(results[0].prior_accuracy_in_game * n)) for n in played),
        level=level(results[0]),
        histograms=histograms,
        said=said,
        exposed=exposed,
        in_both=_in_both(results),
        has_strips=any(shown.has_strips for shown in exposed),
    )


def _found(results: Sequence[Result]) -> Text:
    """Say in a few words how many records are exposed."""
    games = results[0].games
    if games is None or results[0].first_exposed is None:
        return ""
    return Sentence("single.found", {"exposed": count(games.exposed), "all": count(games.records)})


def _histogram(result: Result, games: GamesFacts, name: ChartName, title: str) -> Texts:
    return Texts(
        title=title,
        name=name,
        sentences=list(exposed_of_groups(result)) if result.n_exposed else single_records(result),
        first=count(result.first_exposed or 0),
        records=several(games.records, result.about.unit),
        median=median(games),
        played=count(len(games.won) - 1),
    )


def median(games: GamesFacts) -> str:
    """Fraction of the games that the attacker wins at least, against half of the records."""
    won, n_records = games.won, 0  # won[n]: records against which n games are won
    n_games = len(won) - 1
    for n in range(n_games, 0, -1):
        n_records += won[n]
        if 2 * n_records >= sum(won):
            return percent(n / n_games)
    return percent(0.0)


def _exposed(result: Result, place: int, title: str) -> Texts:
    """Write at most ten records down, most correct guesses first, ties by margin."""
    table, order = result.records, most_exposed(result.records)
    rows = [_record(result, table, row, place) for row in order]
    return Texts(
        title=title,
        ties=_ties(result, order[0], len(order)),
        rows=rows,
        has_pictures=any(row.picture for row in rows),
        has_fields=any(row.fields for row in rows),
        has_names=any(row.name != row.number for row in rows),
        has_strips=any(row.strip for row in rows),
        scale=ChartName(f"scale{place}"),
    )


def _ties(result: Result, worst: int, n_shown: int) -> Sentence:
    """Say how many records share the first place."""
    table, games = result.records, result.games
    won = int(table["won"][worst])
    # of all records: the table has the most exposed ones
    n_ties = games.won[won] if games and games.won else int(np.sum(np.asarray(table["won"]) == won))
    gaps = {"won": count(won), "games": count(int(table["games"][worst]))}
    name = "single.tie_beyond" if n_ties > n_shown else "single.tie"
    return written(result, name, n=several(n_ties, result.about.unit), **gaps)


def _record(result: Result, table: Table, row: int, place: int) -> Texts:
    """Write one record down, with what there is to see of it."""
    cells = plain({column: values[row] for column, values in table.items()})
    preview = cells["preview"] or {}
    image, name, label = preview.get("image") or (), cut(record_name(table, row), FIELD), _label(cells["label"])
    described: Text = ""
    if image:
        gaps: dict[str, Text] = {"width": str(len(image[0])), "height": str(len(image)), "name": name, "label": label}
        described = written(result, "single.picture_labelled" if label else "single.picture", **gaps)
    return Texts(
        name=name,
        number=str(cells["record"]),
        label=label,
        won=f"{count(cells['won'])} of {count(cells['games'])}",
        least=least_of_100(cells["low"]),
        fields=[Named(cut(field, FIELD), cut(str(value), FIELD)) for field, value in preview.get("fields", {}).items()],
        picture=ChartName(f"picture{place}x{row}" if image else ""),
        described=described,
        strip=ChartName(f"strip{place}x{row}" if cells["log_odds"] is not None else ""),
    )


def _label(text: str) -> Text:
    """Mark a label that is a number alone: it would be taken for another record."""
    return Sentence("single.label", {"label": text}) if text and not any(map(str.isalpha, text)) else text


def _in_both(results: Sequence[Result]) -> Text:
    """Name the records that are in the tables of several releases."""
    listings = [record_name(result.records, row) for result in results for row in most_exposed(result.records)]
    both = [name for name in dict.fromkeys(listings) if listings.count(name) > 1]
    return Sentence("single.in_both", {"names": listed(both)}) if both else ""
