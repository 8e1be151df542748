"""One number with everything that is needed to judge it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, get_args

BoundType = Literal["lower", "upper", "point"]
Status = Literal["certified", "measured", "estimated", "asymptotic"]
IntervalOver = Literal["models", "points", "none"]
Refused = Literal["", "too_few_models"]  # why a value has no interval
# every: each record, whoever it is. worst, median: the most exposed record (or cell of a table), and the middle one.
# average: a record drawn at random; such a number says nothing about a particular one. one: a fixed record.
# any_data: each record of any data set, not only of this one. halves: each record of the halves of this data set;
# nominal: the same by the nominal sensitivity. slice: a record drawn at random from those with one value of a column
# that the user names. group: one from a class, or from a part of the response.
Kind = Literal["every", "worst", "median", "average", "one", "any_data", "halves", "nominal", "slice", "group"]


@dataclass(frozen=True)
class Scope:
    """Whom a number is about.

    >>> Scope("worst", 17).unnamed
    Scope(kind='worst', index=None, name='')
    """

    kind: Kind = "every"
    index: int | None = None
    name: str = ""  # of the cell, slice or group, from the data; or what the owner calls the record

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown scope {self.kind!r}; known: {', '.join(KINDS)}")

    @classmethod
    def of_slice(cls, column: str, level: str) -> Scope:
        """Name the records with one value of a column: ``town = Zug``; see `slice_column`."""
        return cls("slice", name=f"{slice_column(column)} = {level}")

    @property
    def is_part(self) -> bool:
        """Whether the number is about some of the records, grouped by what they have in common."""
        return self.kind in ("slice", "group")

    @property
    def unnamed(self) -> Scope:
        """The scope without what says which record or cell it is."""
        return Scope(self.kind)


def slice_column(column: str) -> str:
    """Write a column in the name of a slice; in quotation marks if it could be read as a column and a level."""
    return f"'{column}'" if " = " in column or column.startswith("'") else column


KINDS: tuple[str, ...] = get_args(Kind)
EVERY, AVERAGE = Scope("every"), Scope("average")


@dataclass(frozen=True, init=False)
class Term:
    """A fact as data: an id, and the numbers and names that belong to it.

    Reports make words of it, from one table, and no code reads the words.

    Parameters
    ----------
    id : str
        A key of ``reports/documents/sentences.toml``: of methods, assumptions or games.
    **values : float, int or str

    Examples
    --------
    >>> Term("covariance_of_draws", worked=498, drawn=500).values["drawn"]
    500
    """

    id: str
    values: Mapping[str, float | int | str]

    def __init__(self, id: str, /, **values: float | int | str) -> None:
        object.__setattr__(self, "id", id)
        object.__setattr__(self, "values", values)

    def __hash__(self) -> int:
        return hash((self.id, *self.values.items()))

    def __repr__(self) -> str:
        return f"Term({', '.join([repr(self.id), *(f'{name}={value!r}' for name, value in self.values.items())])})"


@dataclass(frozen=True)
class Finding:
    """One number with everything that is needed to judge it.

    Parameters
    ----------
    quantity : str
        A word of ``QUANTITIES``.
    value, low, high : float or None
        The number and its interval; ``value`` is None where it does not apply, and ``reason`` says why.
    operating_point : mapping
        Where it was taken, as ``{"fpr": 0.01, "prior": 0.5}``.
    confidence : float or None
        Of the interval.
    bound_type : {"lower", "upper", "point"}
        A lower bound, an upper bound, or an estimate.
    status : {"certified", "measured", "estimated", "asymptotic"}
    interval_over : {"models", "points", "none"}
        What the interval averages over.
    scope : Scope
        Whom the number is about.
    method : sequence of Term
        How value and interval were made.
    release, attack : str
        What was attacked, and by what.
    game : Term or None
        What was played: its id is that of a game of ``leakbound.core.games``, or of a theorem.
    assumptions : sequence of Term
        What the number rests on.
    source : str
        Key of the bibliography and the theorem or equation.
    detail : mapping
        Further numbers to print: realised FPR, threshold, number of false positives.
    reason : Term or None
        Why there is no value: its id is a key of ``leakbound.core.reasons.REASONS``.
    refused : {"", "too_few_models"}
        Why there is a value without an interval, where one was asked for: no interval that these models allow is
        known to cover. Such a value shows nothing about anybody, and keeps no limit.
    per_record : bool
        Whether the number tells of one record more than that it is the most exposed one of all: without records
        (``--no-records``, ``--publish``) it is left out.

    Examples
    --------
    >>> finding = Finding("accuracy", 0.7, 0.66, 0.74, operating_point={"prior": 0.5}, confidence=0.95)
    >>> finding.bound_type, finding.status
    ('point', 'measured')
    """

    quantity: str
    value: float | None
    low: float | None = None
    high: float | None = None
    operating_point: Mapping[str, float] = field(default_factory=dict)
    confidence: float | None = None
    bound_type: BoundType = "point"
    status: Status = "measured"
    interval_over: IntervalOver = "none"
    scope: Scope = EVERY
    method: Sequence[Term] = ()
    release: str = ""
    attack: str = ""
    game: Term | None = None
    assumptions: Sequence[Term] = ()
    source: str = ""
    detail: Mapping[str, float] = field(default_factory=dict)
    reason: Term | None = None
    refused: Refused = ""
    per_record: bool = False

    def __post_init__(self) -> None:
        if self.quantity not in QUANTITIES:
            raise ValueError(f"unknown quantity {self.quantity!r}; known: {', '.join(QUANTITIES)}")
        if (self.value is None) != (self.reason is not None):
            raise ValueError(f"{self.quantity}: a finding has a value or a reason, not both and not neither")


QUANTITIES: Mapping[str, str] = MappingProxyType(
    {
        "auc": "area under the ROC",
        "advantage": "largest TPR - FPR",
        "accuracy": "accuracy of the best guess at a prior",
        "baseline_accuracy": "accuracy of a guess that looks at nothing: max(prior, 1 - prior)",
        "membership_without_model": "area under the ROC of a classifier that sees the records and not the model",
        "told_apart": "area under the ROC of the strongest attack on removed records, for all attacks at once",
        "tpr": "true positive rate at a false positive rate",
        "tpr_these_models": "true positive rate at a false positive rate, for the attacked models alone",
        "ppv": "fraction of true members among those called members",
        "average_precision": "mean precision over recall; at inside = 1 of members, 0 of non-members",
        "eta": "accuracy above the better prior guess",
        "named_right": "probability that the record that was left out is named",
        "epsilon": "epsilon of (epsilon, delta)-DP",
        "mu": "mu of Gaussian DP",
        "largest_epsilon": "largest epsilon that keeps a limit",
        "largest_mu": "largest mu that keeps a limit",
        "pmp_epsilon": "epsilon of practical membership privacy",
        "posterior": "probability of membership after the release",
        "mean_posterior": "probability of membership of a member after the release, mean over the releases",
        "information": "mutual information in nats",
        "leakage_score": "squared distance of a record from the mean, over n",
        "noise_rms": "root mean square of the noise in a coordinate",
        "noise_multiplier": "noise of DP-SGD over the clipping norm",
        "smallest_cell": "records that every cell needs for a wanted eta",
        "attribute_accuracy": "fraction of records whose attribute is inferred; at inside = 1 of members, 0 of others",
        "attribute_gain": "correct guesses about members with the release minus those without it",
        "most_exposed": "accuracy against the most exposed record, all records at once",
        "test_accuracy": "accuracy of the models on records that are not in their training data",
        "test_r2": "R2 of the models on records that are not in their training data",
        "degrees_of_freedom": "training records minus parameters of the fitted model",
        "smallest_leaf": "training records in the smallest leaf of a tree",
        "smallest_group": "training records in the smallest group that shares a leaf in every tree",
        "one_label_groups": "groups of training records that share a leaf in every tree and all have one label",
        "excess_matches": "fraction of members that equal a synthetic row, minus that of others",
        "disclosed_fraction": "1 - (1 - a)/(1 - h): of members that equal a synthetic row beyond chance",
        "excess_singled_out": "fraction of members that predicates of synthetic rows single out, minus that of others",
        "excess_linked": "fraction of members whose columns a synthetic row links, minus that of others",
        "excess_inferred": "fraction of members whose value the nearest synthetic row has, minus that of others",
        "stores_records": "whether the fitted model holds training records: 1 or 0",
    }
)
