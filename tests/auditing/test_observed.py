"""A release that has been observed."""

from __future__ import annotations

import numpy as np

from leakbound.auditing.observed import FindingSpec, ObservedRelease
from leakbound.core import games
from leakbound.core.findings import Term
from leakbound.core.intervals import Interval
from leakbound.core.types import NotApplicable, Scores, Signals
from leakbound.data import from_arrays


def _subject(group=None) -> ObservedRelease:
    game = games.half_split(4, 2, group=group)
    points = from_arrays(np.zeros((4, 1)), np.zeros(4), group)
    return ObservedRelease("model", Signals(game, points, {}))


def test_by_unit_averages_the_rows_of_each_unit() -> None:
    observed = _subject(np.array(["b", "a", "b", "c"]))
    value = np.array([[1.0, 5.0, 3.0, 7.0], [0.0, 1.0, 2.0, 3.0]])
    member = np.array([[True, False, True, False], [False, True, False, True]])
    pooled = observed.by_unit(Scores("x", value, member))
    assert pooled.value.tolist() == [[5.0, 2.0, 7.0], [1.0, 1.0, 3.0]]
    assert pooled.member.tolist() == [[False, True, False], [True, False, True]]


def test_points_without_units_stay_as_they_are() -> None:
    scores = Scores("x", np.zeros((2, 4)), np.zeros((2, 4), dtype=bool))
    assert _subject().by_unit(scores) is scores


def test_a_number_and_a_reason() -> None:
    asked = FindingSpec("tpr", "lower", "lira", "carlini2022", {"fpr": 0.01}, (Term("coins are fair"),))
    found = _subject().finding(
        asked, Interval(0.2, 0.1, 0.3, 0.95, "models", (Term("cluster_t"),), {"false_alarms": 12})
    )
    assert (found.value, found.low, found.high, found.interval_over) == (0.2, 0.1, 0.3, "models")
    assert (found.release, found.attack, found.operating_point) == ("model", "lira", {"fpr": 0.01})
    assert (found.game, found.assumptions) == (Term("half_split", others="pool"), (Term("coins are fair"),))
    missing = _subject().finding(asked, NotApplicable("too few"))
    assert (missing.value, missing.reason, missing.source) == (None, Term("own_words", words="too few"), "carlini2022")
