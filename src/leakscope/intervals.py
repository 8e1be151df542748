"""Confidence intervals (skeleton: the value type)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leakscope.types import Averages


@dataclass(frozen=True)
class Interval:
    """A number with its confidence interval.

    Parameters
    ----------
    value, low, high : float
        ``low <= value <= high``; a one-sided interval has an end of the range as its other end.
    confidence : float
        Coverage in (0, 1).
    averages : {"models", "points", "none"}
        What the interval averages over.
    method : str
        The name of the interval, as the report prints it.
    detail : mapping
        Further numbers: realised FPR, threshold, false alarms.
    """

    value: float
    low: float
    high: float
    confidence: float
    averages: Averages = "none"
    method: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)
