"""Counts of the same group that two statistics of one release publish, each with its own noise."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from leakbound.reports.about import PublishedCell, PublishedTable
from leakbound.reports.numbers import near, significant

Group = frozenset[tuple[str, str]]  # columns with their levels; what is not named is added up


def counted_twice(tables: Mapping[str, PublishedTable]) -> list[str]:
    """Say which statistics count the same groups, and which of their counts to quote."""
    counts = {name: _counts_by_group(table) for name, table in tables.items()}
    sentences = []
    for first, second in combinations(counts, 2):
        groups = [group for group in counts[first] if group in counts[second]]
        if groups:
            sentences.append(_sentence((first, counts[first]), (second, counts[second]), groups))
    return sentences


def _counts_by_group(table: PublishedTable) -> dict[Group, PublishedCell]:
    """List the counts with noise: of the cells and of their margins."""
    counts = {}
    for cell in table.cells:
        if cell.quantity == "count" and cell.noise_std and cell.value is not None:
            levels = zip(table.by, cell.levels, strict=True)
            counts[frozenset((column, level) for column, level in levels if level is not None)] = cell
    return counts


def _sentence(
    first: tuple[str, Mapping[Group, PublishedCell]],
    second: tuple[str, Mapping[Group, PublishedCell]],
    groups: list[Group],
) -> str:
    """Say what two statistics count, with an example; the one with less noise in most groups is to be quoted."""
    n_smaller = sum(_noise(first[1][group]) <= _noise(second[1][group]) for group in groups)
    better, other = (first, second) if 2 * n_smaller >= len(groups) else (second, first)
    group = groups[0]
    levels = ", ".join(f"{column} {level}" for column, level in sorted(group)) or "all together"
    n_groups = f"{len(groups):,} groups are" if len(groups) > 1 else "A group is"
    of_most = "" if n_smaller in (0, len(groups)) else " for most of them"
    return (
        f"{n_groups} counted twice, each time with noise of its own, by {better[0]} and by {other[0]} (as {levels}: "
        f"{_shown(better[1][group])} and {_shown(other[1][group])}). Quote the count with the smaller interval, which "
        f"is that of {better[0]}{of_most}, or the mean of both with "
        "the inverse squares of noise_std as weights"
    )


def _noise(cell: PublishedCell) -> float:
    return cell.noise_std or 0.0


def _shown(cell: PublishedCell) -> str:
    half = 0.0 if cell.high is None or cell.value is None else cell.high - cell.value
    return f"{near(cell.value or 0.0)} ± {significant(half or _noise(cell))}"
