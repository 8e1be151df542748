"""One number with everything that is needed to judge it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

Side = Literal["lower", "upper", "point"]
Status = Literal["certified", "measured", "estimated", "asymptotic"]
Averages = Literal["models", "points", "none"]


@dataclass(frozen=True)
class Finding:
    """One number with everything that is needed to judge it.

    Parameters
    ----------
    quantity : str
        A word of ``QUANTITIES``.
    value, low, high : float or None
        The number and its interval; ``value`` is None where it does not apply, and ``reason`` says why.
    at : mapping
        Where it was taken, as ``{"fpr": 0.01, "prior": 0.5}``.
    confidence : float or None
        Of the interval.
    side : {"lower", "upper", "point"}
        A lower bound, an upper bound, or an estimate.
    status : {"certified", "measured", "estimated", "asymptotic"}
    averages : {"models", "points", "none"}
        What the interval averages over.
    method : str
        How value and interval were made.
    release, attack, game : str
        What was attacked, by what, in which game.
    assumptions : sequence of str
    source : str
        Key of the bibliography and the theorem or equation.
    detail : mapping
        Further numbers to print: realised FPR, threshold, number of false alarms.
    reason : str
        Why there is no value.
    """

    quantity: str
    value: float | None
    low: float | None = None
    high: float | None = None
    at: Mapping[str, float] = field(default_factory=dict)
    confidence: float | None = None
    side: Side = "point"
    status: Status = "measured"
    averages: Averages = "none"
    method: str = ""
    release: str = ""
    attack: str = ""
    game: str = ""
    assumptions: Sequence[str] = ()
    source: str = ""
    detail: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

    def __post_init__(self) -> None:
        if self.quantity not in QUANTITIES:
            raise ValueError(f"unknown quantity {self.quantity!r}; known: {', '.join(QUANTITIES)}")
        if (self.value is None) != bool(self.reason):
            raise ValueError(f"{self.quantity}: a finding has a value or a reason, not both and not neither")


QUANTITIES: Mapping[str, str] = MappingProxyType(
    {
        "auc": "area under the ROC",
        "advantage": "largest TPR - FPR",
        "success": "accuracy of the best guess at a prior",
        "tpr": "members found at a false-alarm rate",
        "ppv": "share of true members among those called members",
        "average_precision": "mean precision over recall; at inside = 1 of members, 0 of non-members",
        "eta": "accuracy above the better prior guess",
        "epsilon": "epsilon of (epsilon, delta)-DP",
        "mu": "mu of Gaussian DP",
        "largest_epsilon": "largest epsilon that keeps a limit",
        "largest_mu": "largest mu that keeps a limit",
        "pmp_epsilon": "epsilon of practical membership privacy",
        "posterior": "probability of membership after the release",
        "information": "mutual information in nats",
        "leakage_score": "squared distance of a record from the mean, over n",
        "noise_rms": "root mean square of the noise in a coordinate",
        "noise_multiplier": "noise of DP-SGD over the clipping norm",
        "smallest_cell": "records that every cell needs for a wanted eta",
        "attribute_success": "share of records whose attribute is guessed right; at inside = 1 of members, 0 of others",
        "attribute_gain": "right guesses about members with the release minus those without it",
        "most_exposed": "success against the most exposed record, all records at once",
    }
)
