"""Two reports side by side."""

from __future__ import annotations

from typing import NamedTuple

from leakscope.core.findings import Finding
from leakscope.reports import Report
from leakscope.reports.about import releases_of
from leakscope.reports.phrases import place

OperatingPoint = tuple[tuple[str, float], ...]
BOUND_TYPES = {"": "", "point": "", "upper": "upper bound", "lower": "lower bound"}


class Key(NamedTuple):
    """What two findings have in common that are compared."""

    release: str
    attack: str
    quantity: str
    at: OperatingPoint
    bound_type: str  # of a theorem; empty for an attack
    source: str  # where two theorems are about one number; mostly empty

    @property
    def title(self) -> str:
        """The quantity, and where it was taken, in words."""
        at = " ".join(f"{name} {value:g}" for name, value in self.at)
        parts = [f"{self.quantity} {at}".strip(), BOUND_TYPES[self.bound_type], self.source]
        return ", ".join(part for part in parts if part)


OF_ALL_ATTACKS = ("epsilon", "most_exposed")  # the best attack is matched whichever it was


def compare(first: Report, second: Report) -> list[dict[str, str]]:
    """Compare the findings of two reports row by row, and tell whether their intervals are apart.

    Parameters
    ----------
    first, second : Report

    Returns
    -------
    list of dict
        ``release``, ``attack``, ``quantity``, ``first``, ``second`` and ``difference``, as text. A finding
        that one report does not have is a dash. Bounds are matched by their bound type and their prior too. A report
        of one release is compared with each release of the other, whatever their names.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import leakscope as ls
    >>> from leakscope.core.findings import Finding
    >>> base = ls.bound("dp", epsilon=1.0)
    >>> findings = [Finding("auc", value, value - 0.01, value + 0.01, attack="lira") for value in (0.6, 0.7)]
    >>> first, second = (replace(base, findings=[finding]) for finding in findings)
    >>> compare(first, second)[0]["difference"]
    '+0.1, intervals apart'
    """
    # a report of one release is compared with every release of the other
    names = max(_releases(first), _releases(second), key=len)
    left, right = _by_key(first, names), _by_key(second, names)
    rows = []
    for key in [*left, *(key for key in right if key not in left)]:
        before, after = left.get(key), right.get(key)
        rows.append(
            {
                "release": key.release or "-",
                "attack": key.attack or "-",
                "quantity": key.title,
                "first": _shown(before),
                "second": _shown(after),
                "difference": _difference(before, after),
            }
        )
    return [{name: cell for name, cell in row.items() if name != "release" or len(names) > 1} for row in rows]


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
        attack = "" if finding.quantity in OF_ALL_ATTACKS else finding.attack
        is_bound = _is_bound(finding)
        # a bound is about one prior; attacks are compared at whatever prior they were reported
        at = tuple((name, value) for name, value in finding.operating_point.items() if is_bound or name != "prior")
        for release in names if alone else [_place(report, finding)]:
            key = Key(release, attack, finding.quantity, at, finding.bound_type if is_bound else "", "")
            if key in by_key and is_bound:  # two theorems about one number differ in their source
                key = key._replace(source=finding.source)
            by_key[key] = finding
    return by_key


def _is_bound(finding: Finding) -> bool:
    """Tell a theorem about any attacker from the number of an attack."""
    return not finding.attack and not (finding.quantity in OF_ALL_ATTACKS and finding.bound_type == "lower")


def _shown(finding: Finding | None) -> str:
    if finding is None or finding.value is None:
        return "-"
    if finding.refused:
        return f"{finding.value:.4g} (too few models)"
    if finding.low is None or finding.high is None:
        return f"{finding.value:.4g}"
    return f"{finding.value:.4g} ({finding.low:.3g}..{finding.high:.3g})"


def _difference(before: Finding | None, after: Finding | None) -> str:
    if before is None or after is None or before.value is None or after.value is None:
        return "-"
    ends = (before.low, before.high, after.low, after.high)
    low, high, other_low, other_high = (end if end is not None else 0.0 for end in ends)
    apart = None not in ends and (low > other_high or other_low > high)
    return f"{after.value - before.value:+.3g}{', intervals apart' if apart else ''}"
