"""The rows of a chart of accuracies, which a document lists for those who cannot see the chart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from leakbound.core.findings import Finding
from leakbound.reports.results.quantities import shown

Role = Literal["attack", "best", "exposed", "ceiling", "bound"]


@dataclass(frozen=True)
class Dot:
    """An accuracy in cases of 100, with its interval as a wide bar; without a value there is no dot."""

    name: str
    value: float | None
    text: str
    role: Role = "attack"
    low: float | None = None
    high: float | None = None
    outside: float | None = None  # that about records that were not in: a hollow dot
    records: str = ""  # the number of records that it is about


def dot(name: str, finding: Finding | None, role: Role = "attack", records: str = "") -> Dot:
    """Lay out an accuracy; a row without a value is that of no attack in particular.

    >>> dot("LiRA", Finding("accuracy", 0.579), "best")
    Dot(name='LiRA', value=57.9, text='57.9', role='best', low=None, high=None, outside=None, records='')
    """
    if finding is None or finding.value is None:
        return Dot(name, None, "—", records=records)
    value, text = 100 * finding.value, shown(finding).value
    if finding.low is None or finding.high is None:
        return Dot(name, value, text, role, records=records)
    return Dot(name, value, text, role, 100 * finding.low, 100 * finding.high, records=records)
