"""Two reports side by side."""

from __future__ import annotations

from leakscope.findings import Finding
from leakscope.report import Report

Key = tuple[str, str, str, str]


def compare(first: Report, second: Report) -> list[dict[str, str]]:
    """The findings of two reports, row by row, with whether their intervals are apart.

    Parameters
    ----------
    first, second : Report

    Returns
    -------
    list of dict
        ``release``, ``attack``, ``quantity``, ``first``, ``second`` and ``difference``, as text. A finding
        that one report does not have is a dash. A report of one release is compared with each release of
        the other, whatever their names.

    Examples
    --------
    >>> from leakscope.report import Report
    >>> from leakscope.findings import Finding
    >>> one, two = (Report({}, [Finding("auc", v, v - 0.01, v + 0.01, attack="lira")]) for v in (0.6, 0.7))
    >>> compare(one, two)[0]["difference"]
    '+0.1, intervals apart'
    """
    names = max(_releases(first), _releases(second), key=len)
    left, right = _by_key(first, names), _by_key(second, names)
    rows = []
    for key in [*left, *(key for key in right if key not in left)]:
        before, after = left.get(key), right.get(key)
        release, attack, quantity, at = key
        rows.append(
            {
                "release": release or "-",
                "attack": attack or "-",
                "quantity": f"{quantity} {at}".strip(),
                "first": _shown(before),
                "second": _shown(after),
                "difference": _difference(before, after),
            }
        )
    return [{name: cell for name, cell in row.items() if name != "release" or len(names) > 1} for row in rows]


def _releases(report: Report) -> list[str]:
    return list(dict.fromkeys(finding.release for finding in report.findings))


def _by_key(report: Report, names: list[str]) -> dict[Key, Finding]:
    """Findings by release, attack, quantity and where it was taken; those of an only release under all names."""
    found, alone = {}, len(_releases(report)) == 1
    for each in report.findings:
        at = " ".join(f"{name} {value:g}" for name, value in each.at.items() if name != "prior")
        attack = "" if each.quantity in ("epsilon", "most_exposed") else each.attack
        for release in names if alone else [each.release]:
            found[release, attack, each.quantity, at] = each
    return found


def _shown(finding: Finding | None) -> str:
    if finding is None or finding.value is None:
        return "-"
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
