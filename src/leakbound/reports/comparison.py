"""Two reports side by side."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from leakbound.core.checks import known_keywords
from leakbound.core.findings import Finding
from leakbound.reports import Report, write
from leakbound.reports.about import releases_of
from leakbound.reports.phrases import place

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

OperatingPoint = tuple[tuple[str, float], ...]


class Key(NamedTuple):
    """What two findings have in common that are compared."""

    release: str
    attack: str
    quantity: str
    at: OperatingPoint
    bound_type: str  # of a theorem; empty for an attack
    source: str = ""  # where two theorems are about one number; mostly empty
    slice_name: str = ""  # of the slice of the records; mostly empty


OF_ALL_ATTACKS = ("epsilon", "most_exposed")  # the best attack is matched whichever it was


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two reports side by side: ``compare`` makes it.

    >>> import leakbound as ls
    >>> comparison = ls.compare(ls.bound("dp", epsilon=1.0), ls.bound("dp", epsilon=2.0))
    >>> print(comparison.headline)
    The second report allows more than the first report: at most 88.1 of 100 cases against at most 73.2.
    >>> comparison.to_frame().loc[0, "difference"].round(3)
    np.float64(0.15)
    """

    first: Report
    second: Report
    names: tuple[str, str] = ("the first report", "the second report")
    title: str = ""

    def __repr__(self) -> str:
        """Show the sentence and the strongest numbers."""
        return self.table().rstrip("\n")

    def table(self, width: int = 100, full: bool = False) -> str:
        """Return the sentence and the strongest numbers, or all of the page, in lines of at most ``width`` columns."""
        return import_module("leakbound.reports.render.comparison").text(self, width, full)

    def _repr_html_(self) -> str:
        return import_module("leakbound.reports.render.comparison").notebook(self)

    @cached_property
    def pairs(self) -> Sequence[Pair]:
        """The findings of both, those about the same number together."""
        return tuple(_pairs(self.first, self.second))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The numbers, a row a quantity: ``first`` and ``second`` with the ends of their intervals.

        ``difference`` is second less first. ``apart`` is whether the intervals do not overlap, or for two numbers that
        are exact, whether they differ.
        """
        return [_numbers(pair) for pair in self.pairs]

    @property
    def headline(self) -> str:
        """What may be said of the two in one sentence.

        One is said to reveal more only if the intervals of its strongest attack and that of the other do not overlap.
        """
        return str(import_module("leakbound.reports.results.comparison").judged(self).sentence)

    def to_frame(self) -> pd.DataFrame:
        """Return the ``rows`` as a frame."""
        return import_module("pandas").DataFrame(self.rows)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the strongest attack, or the ceiling, of both on one log-log axis, ``ax`` or that of a new figure."""
        return import_module("leakbound.reports.charts.comparison").plot(self, ax)

    def to_html(self, path: str | os.PathLike[str] | None = None, *, publish: bool = False) -> str:
        """Render a page with the sentence, the plot and the table: one file without network or scripts to load."""
        shown = self
        if publish:
            shown = replace(self, first=self.first.without_records(), second=self.second.without_records())
        text = import_module("leakbound.reports.render.comparison").page(shown)
        if path is not None:
            write(path, text, private=(self.first.on_data or self.second.on_data) and not publish)
        return text


@known_keywords()
def compare(
    first: Report | str | os.PathLike[str],
    second: Report | str | os.PathLike[str],
    *,
    unverified: bool = False,
    title: str = "",
) -> Comparison:
    """Put two reports side by side, and say whether one reveals more than the other.

    Parameters
    ----------
    first, second : Report or path
        Reports of any kind, or files that ``to_json`` wrote.
    unverified : bool
        Whether files are read that were changed since they were written.
    title : str
        Of the page; the names of what is compared unless given.

    Returns
    -------
    Comparison
        Print it, show it in a notebook, or write it by ``to_html``; ``rows``, ``to_frame()``, ``headline``, ``plot()``.

    Raises
    ------
    ValueError
        In one line: for a file that is no report.

    Examples
    --------
    >>> import numpy as np
    >>> import leakbound as ls
    >>> game = ls.games.half_split(200, 16)
    >>> losses = [np.random.default_rng(0).exponential(np.where(game.member, mean, 1.0)) for mean in (0.2, 0.9)]
    >>> reports = [ls.audit_signals(ls.Signals(game, None, {"loss": loss}), attacks=["loss"]) for loss in losses]
    >>> ls.compare(*reports).headline.partition(":")[0]
    'signals (the first report) reveals more than signals (the second report)'
    """
    reports = []
    for source in (first, second):
        if isinstance(source, Report):
            reports.append(source)
        elif isinstance(source, (str, os.PathLike)):
            reports.append(Report.from_json(source, unverified=unverified))
        else:
            raise ValueError(f"expected a report or the path of one, got a {type(source).__name__}")
    return Comparison(reports[0], reports[1], _names(first, second), title)


def _names(first: object, second: object) -> tuple[str, str]:
    """Name two reports by their files, or the folders of these; by their order where these are the same."""
    if isinstance(first, (str, os.PathLike)) and isinstance(second, (str, os.PathLike)):
        paths = Path(first), Path(second)
        for one, other in ((path.stem for path in paths), (path.absolute().parent.name for path in paths)):
            if one != other:
                return one, other
    return Comparison.names


@dataclass(frozen=True)
class Pair:
    """A number in two reports; None where a report does not have it."""

    key: Key
    before: Finding | None
    after: Finding | None

    @property
    def attack(self) -> str:
        """The attack; of a slice, which is attacked by the strongest one of each report, both where they differ."""
        if not self.key.slice_name:
            return self.key.attack
        findings = [finding for finding in (self.before, self.after) if finding is not None]
        return ", ".join(dict.fromkeys(finding.attack for finding in findings))

    @property
    def difference(self) -> float | None:
        """Second minus first; None where one has no value."""
        if self.before is None or self.after is None or self.before.value is None or self.after.value is None:
            return None
        return self.after.value - self.before.value

    @property
    def apart(self) -> bool:
        """Whether the intervals do not overlap; that of an exact number is the number."""
        return self.before is not None and self.after is not None and apart(self.before, self.after)


def apart(one: Finding, other: Finding) -> bool:
    """Whether the intervals of two numbers do not overlap.

    An interval that is open has no end on that side, and a number without an interval is apart from none, unless it is
    exact: certified or asymptotic, without a confidence.

    >>> wide, narrow = Finding("auc", 0.6, 0.5, 0.7), Finding("auc", 0.8, 0.75, 0.85)
    >>> apart(wide, narrow), apart(wide, Finding("auc", 0.8))
    (True, False)
    """
    first, second = _interval(one), _interval(other)
    if first is None or second is None:
        return False
    return first[0] > second[1] or second[0] > first[1]


def _interval(finding: Finding) -> tuple[float, float] | None:
    if finding.value is None or finding.refused:
        return None
    if finding.low is not None and finding.high is not None:
        return finding.low, finding.high
    is_exact = finding.low is finding.high is finding.confidence is None
    if is_exact and finding.status in ("certified", "asymptotic"):
        return finding.value, finding.value
    return None


def _pairs(first: Report, second: Report) -> Iterator[Pair]:
    """Match the findings, in the order of the first report, then of the second."""
    names = _all_releases(first, second)
    left, right = _by_key(first, names), _by_key(second, names)
    for key in [*left, *(key for key in right if key not in left)]:
        yield Pair(key, left.get(key), right.get(key))


def _numbers(pair: Pair) -> dict[str, Any]:
    """Return a pair as the row of a frame."""
    ends = ("value", "low", "high")
    before, after = (
        {end: None if finding is None else getattr(finding, end) for end in ends}
        for finding in (pair.before, pair.after)
    )
    return {
        "release": pair.key.release,
        "attack": pair.attack,
        "quantity": pair.key.quantity,
        "slice": pair.key.slice_name,
        "operating_point": dict(pair.key.at),
        "bound_type": pair.key.bound_type,
        "first": before["value"],
        "first_low": before["low"],
        "first_high": before["high"],
        "second": after["value"],
        "second_low": after["low"],
        "second_high": after["high"],
        "difference": pair.difference,
        "apart": pair.apart,
    }


def _all_releases(first: Report, second: Report) -> list[str]:
    """Return the releases of the report that has more: one of a single release is compared with each of them."""
    return max(_releases(first), _releases(second), key=len)


def _releases(report: Report) -> list[str]:
    return list(dict.fromkeys(_place(report, finding) for finding in report.findings))


def _place(report: Report, finding: Finding) -> str:
    """Return the release of an audit; in a report of one release, whom a number is about."""
    return finding.release if releases_of(report.about) else place(finding)


def _by_key(report: Report, names: list[str]) -> dict[Key, Finding]:
    """Order findings by what is compared; those of an only release under all names."""
    by_key: dict[Key, Finding] = {}
    alone = len(_releases(report)) == 1
    for finding in report.findings:
        slice_name = finding.scope.name if finding.scope.is_part else ""
        # a slice is listed under the strongest attack of its report, which may be another one in the other report
        of_any_attack = finding.quantity in OF_ALL_ATTACKS or bool(slice_name)
        attack = "" if of_any_attack else finding.attack
        is_bound = _is_bound(finding)
        bound_type = finding.bound_type if is_bound else ""
        # an accuracy or a precision at another prior is another number
        at = tuple(finding.operating_point.items())
        for release in names if alone else [_place(report, finding)]:
            key = Key(release, attack, finding.quantity, at, bound_type, slice_name=slice_name)
            # two theorems about one number differ in their source, and so do bounds that make other assumptions
            if key in by_key and (is_bound or finding.assumptions):
                key = key._replace(source=finding.source)
            by_key[key] = finding
    return by_key


def _is_bound(finding: Finding) -> bool:
    """Tell a theorem about any attacker from the number of an attack."""
    return (
        not finding.scope.is_part
        and not finding.attack
        and not (finding.quantity in OF_ALL_ATTACKS and finding.bound_type == "lower")
    )
