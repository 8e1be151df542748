"""What a metric of scores averages over: target models, or the points of one model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Bool, Float

from leakbound.core.findings import IntervalOver
from leakbound.core.types import NotApplicable, Scores
from leakbound.metrics.clustered import ModelClusters, RecordClusters
from leakbound.metrics.ranked import RankedScores
from leakbound.metrics.spread import Shifts

Array = np.ndarray
_ROWS: WeakKeyDictionary[Scores, Rows] = WeakKeyDictionary()  # each metric asks for them, and they are sorted once


@dataclass(frozen=True, eq=False)
class Rows:
    """Scores in rows that each hold members and non-members."""

    value: Float[Array, "R J"]
    member: Bool[Array, "R J"]
    interval_over: IntervalOver
    variance_inflation: float = 1.0

    @property
    def single(self) -> bool:
        """One row, whose scores are independent points; otherwise the rows are independent models."""
        return len(self.value) == 1

    @cached_property
    def ranked(self) -> RankedScores:
        """The same scores, sorted."""
        return RankedScores(self.value, self.member)

    @cached_property
    def shifts(self) -> Shifts:
        """How far whole models shift their scores."""
        return Shifts(self.ranked)

    @cached_property
    def by_model(self) -> tuple[ModelClusters, ModelClusters]:
        """The scores of others and of members, with models as clusters."""
        return ModelClusters(self.ranked, 0), ModelClusters(self.ranked, 1)

    @cached_property
    def by_record(self) -> tuple[RecordClusters, RecordClusters]:
        """The scores of others and of members, with records as clusters."""
        others, members = (RecordClusters(self.ranked, side, self.value, self.member) for side in (0, 1))
        return others, members

    @property
    def n_members(self) -> int:
        """Member scores in all rows."""
        return int(np.count_nonzero(self.member))

    @property
    def n_others(self) -> int:
        """Non-member scores in all rows."""
        return self.member.size - self.n_members


def rows(scores: Scores) -> Rows:
    """Select the rows from which a metric is computed.

    Several targets with several points each: a row a target, without the rows of one class. One target: its
    points. Several targets with one point each (J = 1, as in the per-datum and average-datum games): the T
    scores come from T independent models and form one row, and an interval over them is one over models.

    >>> scores = Scores("loss", np.array([[0.1], [0.9], [0.4]]), np.array([[False], [True], [False]]))
    >>> rows(scores).value.shape, rows(scores).interval_over
    ((1, 3), 'models')
    """
    if scores not in _ROWS:
        _ROWS[scores] = _rows(scores)
    return _ROWS[scores]


def ranked(scores: Scores) -> RankedScores:
    """Sort the scores of all models, those with members or others alone included."""
    value, member = scores.value, scores.member
    if value.shape[1] > 1 and (member.any(axis=1) & ~member.all(axis=1)).all():
        return rows(scores).ranked
    return RankedScores(value, member)


def _rows(scores: Scores) -> Rows:
    value, member = scores.value, scores.member
    if value.shape[1] == 1 and len(value) > 1:
        if scores.variance_inflation > 1:
            raise NotApplicable("references_are_targets")
        value, member = value.T, member.T
    n_members = member.sum(axis=1)
    both = (n_members > 0) & (n_members < member.shape[1])
    if not both.any():
        raise NotApplicable("no_mixed_model")
    several = len(scores.value) > 1 and (value.shape[0] == 1 or both.sum() > 1)
    if not both.all():
        value, member = value[both], member[both]
    return Rows(value, member, "models" if several else "points", scores.variance_inflation)
