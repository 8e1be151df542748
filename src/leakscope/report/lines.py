"""The curves of one release as they are drawn: what each is called, how it looks, and where it may begin."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from leakscope.report import Curve, Report
from leakscope.report.canvas import ATTACK, CLAIM, DASHED, DOTTED, INK, MUTE, shorten
from leakscope.report.results import Result
from leakscope.tradeoff import EpsilonDelta, TradeOff

Array = np.ndarray
Role = Literal["best", "attack", "ceiling", "asymptotic", "guessing"]
FALSE_ALARMS = 10  # fewer of them support no point of a curve
_DASH_DOT = (0, (4, 1.2, 1, 1.2))
_CEILINGS: dict[str, Role] = {"claimed": "ceiling", "certified": "ceiling", "asymptotic": "asymptotic"}
_GREEK = {"epsilon": "ε", "delta": "δ", "eta": "η", "mu": "μ"}


@dataclass(frozen=True, eq=False)
class Line:
    """A trade-off and how it is drawn.

    Parameters
    ----------
    label : str
        Short enough to stand beside the curve.
    tradeoff : TradeOff
    role : {"best", "attack", "ceiling", "asymptotic", "guessing"}
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
    """

    label: str
    tradeoff: TradeOff
    role: Role
    start: float = 0.0
    point: tuple[float, float] | None = None
    band: tuple[Sequence[float], Sequence[float], Sequence[float]] = ((), (), ())
    dashes: Any = "solid"
    stated: Mapping[float, float] = field(default_factory=dict)

    def found(self, fpr: float) -> float:
        """Members found at a rate, as the findings say it where they do."""
        return self.stated.get(fpr, float(self.tradeoff.tpr(fpr)))

    @property
    def color(self) -> str:
        """By role."""
        return {"best": ATTACK, "ceiling": CLAIM, "guessing": INK}.get(self.role, MUTE)

    @property
    def width(self) -> float:
        """By role."""
        return {"best": 2.3, "ceiling": 1.7, "guessing": 0.9}.get(self.role, 1.2)

    @property
    def weight(self) -> int:
        """Of its name: bold for the best attack."""
        return 700 if self.role == "best" else 400

    @property
    def vacuous(self) -> bool:
        """A ceiling that allows an attack to find everybody, at every rate that is drawn."""
        return self.role == "ceiling" and float(self.tradeoff.tpr(self.start)) > 0.995


def lines_of(result: Result, floor: float) -> list[Line]:
    """Guessing, ceilings, and the attacks from the weakest to the best: the order of drawing.

    Parameters
    ----------
    result : Result
    floor : float
        Smallest false-positive rate on the page; ceilings begin there.
    """
    lines = [Line("guessing", EpsilonDelta(0.0), "guessing", floor, dashes=DOTTED)]
    lines += [
        Line(_ceiling_label(curve), curve.tradeoff, _CEILINGS[curve.role], floor, dashes=DASHED)
        for curve in result.curves
        if curve.role != "measured"
    ]
    rank = {name: place for place, name in enumerate((result.best, *result.attacks))}
    measured = [curve for curve in result.curves if curve.role == "measured"]
    played = [curve for curve in measured if curve.n_nonmember > FALSE_ALARMS]
    for curve in sorted(played, key=lambda curve: (curve.name == result.best, -rank.get(curve.name, 0))):
        lines.append(_measured(curve, result))
    return lines


def floor_of(report: Report, lowest: float = 1e-5) -> float:
    """The decade below ten false alarms, the same for every release of a page.

    At least two decades are drawn, and nothing below 0.001 %.
    """
    games = max((curve.n_nonmember for curve in report.curves), default=0)
    decade = np.floor(np.log10(FALSE_ALARMS / games)) if games > FALSE_ALARMS else -2.0
    return float(np.clip(10.0**decade, lowest, 1e-2))


def _measured(curve: Curve, result: Result) -> Line:
    """The line of an attack."""
    fpr, tpr = np.asarray(curve.tradeoff.knots, dtype=float), curve.tradeoff.tpr(curve.tradeoff.knots)
    inner = np.unique(np.column_stack([fpr, tpr])[(fpr + tpr > 0) & (fpr + tpr < 2)], axis=0)
    strictest = float(fpr[fpr > 0].min(initial=1.0))
    return Line(
        shorten(result.attack_title(curve.name)),
        curve.tradeoff,
        "best" if curve.name == result.best else "attack",
        max(strictest, FALSE_ALARMS / curve.n_nonmember if curve.n_nonmember else 0.0) if len(inner) else 0.0,
        (float(inner[0, 0]), float(inner[0, 1])) if len(inner) == 1 else None,
        (curve.at, curve.low, curve.high),
        _DASH_DOT if curve.name == "loss" else "solid",
        {
            each.at["fpr"]: each.value
            for each in result.findings
            if each.quantity == "tpr" and each.attack == curve.name and each.value is not None
        },
    )


def _ceiling_label(curve: Curve) -> str:
    """``ceiling if ε = 4`` of a claim, ``certified ceiling`` of a proof, or its own name."""
    if curve.role == "certified":
        return "certified ceiling"
    if curve.role == "asymptotic":
        return f"{shorten(curve.name)} (asymptotic)"
    first = curve.name.split(",")[0].strip()
    return shorten("ceiling if " + re.sub(r"\b(epsilon|delta|eta|mu)\b", lambda word: _GREEK[word[0]], first), 32)
