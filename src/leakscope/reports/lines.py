"""A curve as it is drawn: what it is called, how it looks, and where it may begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from leakscope.core.tradeoff import TradeOff
from leakscope.reports import Report
from leakscope.reports.canvas import ATTACK, CLAIM, INK, MUTE
from leakscope.reports.numbers import percent, percent_at_most

Role = Literal["best", "attack", "ceiling", "asymptotic", "unprotected", "guessing"]
SMALL_ADVANTAGE = 0.15  # below it the gain over guessing shows what a ROC hides
FALSE_ALARMS = 10  # fewer of them support no point of a curve


@dataclass(frozen=True, eq=False)
class Line:
    """A trade-off and how it is drawn.

    Parameters
    ----------
    label : str
        Short enough to stand beside the curve.
    tradeoff : TradeOff
    role : {"best", "attack", "ceiling", "asymptotic", "unprotected", "guessing"}
        "unprotected" is the best attack if there were no noise.
    start : float
        False-positive rate from which the curve is drawn.
    point : tuple of float or None
        (FPR, TPR) of an attack that has one threshold only; it is a circle, not a curve.
    band : arrays
        False-positive rates, lower and upper true-positive rates; may be empty.
    dashes : Any
        The line style of matplotlib.
    stated : mapping of float to float
        What the findings say at the rates asked for: a realised rate is a little below the one asked for.
    release : str
        Ceilings of one release hold together.
    at_most : bool
        The rates of a ceiling are rounded up where they are written.
    """

    label: str
    tradeoff: TradeOff
    role: Role
    start: float = 0.0
    point: tuple[float, float] | None = None
    band: tuple[Sequence[float], Sequence[float], Sequence[float]] = ((), (), ())
    dashes: Any = "solid"
    stated: Mapping[float, float] = field(default_factory=dict)
    release: str = ""
    at_most: bool = False

    def found(self, fpr: float) -> float:
        """Members found at a rate, as the findings say it where they do."""
        return self.stated.get(fpr, float(self.tradeoff.tpr(fpr)))

    def said(self, fpr: float) -> str:
        """The same as text."""
        return percent_at_most(self.found(fpr)) if self.at_most else percent(self.found(fpr))

    @property
    def color(self) -> str:
        """By role."""
        return {"best": ATTACK, "ceiling": CLAIM, "asymptotic": CLAIM, "guessing": INK}.get(self.role, MUTE)

    @property
    def width(self) -> float:
        """By role."""
        return {"best": 2.3, "ceiling": 1.7, "asymptotic": 1.4, "unprotected": 1.3, "guessing": 0.9}.get(self.role, 1.2)

    @property
    def weight(self) -> int:
        """Of its name: bold for the best attack."""
        return 700 if self.role == "best" else 400

    @property
    def vacuous(self) -> bool:
        """A ceiling that allows an attack to find everybody, at every rate that is drawn."""
        return self.role == "ceiling" and float(self.tradeoff.tpr(self.start)) > 0.995


def floor_of(report: Report, lowest: float = 1e-5) -> float:
    """The decade below ten false alarms, the same for every release of a page.

    At least two decades are drawn, and nothing below 0.001 %.
    """
    games = max((curve.n_nonmember for curve in report.curves), default=0)
    decade = np.floor(np.log10(FALSE_ALARMS / games)) if games > FALSE_ALARMS else -2.0
    return float(np.clip(10.0**decade, lowest, 1e-2))
