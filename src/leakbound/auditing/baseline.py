"""Test whether members and others come from one source, without looking at the model.

Where the user says who was in, an attack can succeed because members and others differ, and not because of the model.
So a classifier that sees the records and not the model is trained to tell them apart, cross-fitted: each record is
scored by a classifier that was trained without it. If members and others were drawn from one source, the label of a
record that was held out is random given all that the classifier learned, and the expected area under the ROC of each
fold is 1/2.

The folds are not independent. A record that resembles another one of its side raises the other's score, and in another
fold the other raises its own: each pair of records counts twice. Where the score of a record is a sum over the records
that the classifier learned from, the variance of the area is therefore twice DeLong's; simulated with this
classifier it is 1.7 to 2.3 times DeLong's, and less where the two sides are far apart. `OVERLAP` is the largest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.special import expit, logit, ndtri

from leakbound.core.findings import Term
from leakbound.core.intervals import FEWEST_RARE, Interval, clopper_pearson, placements
from leakbound.core.numerics import bisect
from leakbound.core.seeds import integer, stream
from leakbound.core.types import Game, NotApplicable, Points
from leakbound.data.features import Features, features
from leakbound.runtime import pool

Array = np.ndarray
N_FOLDS = 5
MOST_ROWS = 20_000
MOST_COLUMNS = 256  # beyond it each fold keeps those whose means differ most, on its own training records
MOST_MODELS = 4  # with different members, of which each is tested
FEWEST = 10  # members and others, at least
IN_ONE_PROCESS = 2_000_000  # numbers of the matrix up to which workers cost more than they save
PLANTED = 2_000_000  # numbers of the matrix up to which the smallest shift of a column is simulated
POWER = 0.9
OVERLAP = 2.3  # variance of the area over that of independent folds
SHIFTS = (1.2, 1.6, 2.2, 3.0)  # planted, in units of the shift that a classifier would need that knew the column


@dataclass(frozen=True)
class SourceTest:
    """Whether members and others come from one source, as far as a classifier can tell."""

    # Area under the ROC of the classifier over records. Its detail has smallest_auc, which 9 of 10 samples of this
    # size distinguish from 1/2, and smallest_shift of one column, in standard deviations, that leads to this area.
    number: Interval | NotApplicable
    accepted: bool = False

    @property
    def found(self) -> bool:
        """The interval excludes chance: members and others differ."""
        return isinstance(self.number, Interval) and self.number.low > 0.5

    @property
    def stops(self) -> bool:
        """A difference that was not accepted: no verdict, no epsilon, no limit is tested."""
        return self.found and not self.accepted


def same_source(
    points: Points | None,
    game: Game,
    *,
    seed: int = 0,
    confidence: float = 0.95,
    n_jobs: int | None = None,
    accepted: bool = False,
) -> SourceTest:
    """Let a classifier tell members from others by the records alone.

    Gradient boosting in five folds on at most 20,000 records. Models with different members are tested one by one,
    at most four of them at a level that is corrected for their number, and the one with the largest lower end counts.

    >>> from leakbound import data
    >>> from leakbound.core import games
    >>> x = np.random.default_rng(0).normal(size=(400, 3))
    >>> game = games.one_model(200, 200)
    >>> same_source(data.from_arrays(x), game, n_jobs=1).found
    False
    >>> x[:200, 1] += 1.0
    >>> same_source(data.from_arrays(x), game, n_jobs=1).found
    True
    """
    try:
        number = _largest(points, game, seed, confidence, n_jobs)
    except NotApplicable as reason:
        return SourceTest(reason, accepted)
    return SourceTest(number, accepted)


def _largest(points: Points | None, game: Game, seed: int, confidence: float, n_jobs: int | None) -> Interval:
    """Return the interval of the model whose members differ most from others."""
    if points is None:
        raise NotApplicable("no_records")
    if len(points) != game.member.shape[1]:
        raise ValueError(f"there are {len(points):,} records for the {game.member.shape[1]:,} points of the game")
    if game.is_target_point.ndim == 2:
        raise NotApplicable("record_of_its_own")
    members = np.unique(game.target_member, axis=0)
    n_tests = min(MOST_MODELS, len(members))
    rows = np.unique(np.linspace(0, len(members) - 1, n_tests).round().astype(int))
    level = 1 - (1 - confidence) / len(rows)  # Bonferroni: the largest of the intervals is reported
    intervals = [_tested(points, game.target_points, member, seed, level, n_jobs) for member in members[rows]]
    return replace(max(intervals, key=lambda interval: interval.low), confidence=confidence)


def _tested(
    points: Points,
    columns: Int[Array, " J"],
    member: Bool[Array, " J"],
    seed: int,
    confidence: float,
    n_jobs: int | None,
) -> Interval:
    """Return the interval of the area for one choice of members against the others."""
    rows = _sampled(member, seed)
    unit = np.arange(len(rows)) if points.group is None else _numbered(points.group[columns[rows]])
    row_features, row_member = features(points, columns[rows]), member[rows]
    # a unit is on the side of its first row
    first = np.unique(unit, return_index=True)[1]
    unit_member = row_member[first]
    sizes = int(unit_member.sum()), int((~unit_member).sum())
    if min(sizes) < FEWEST:
        raise NotApplicable("few_records", fewest=FEWEST, members=int(sizes[0]), others=int(sizes[1]))
    fold = _folds(unit_member, seed)  # of units: a unit with rows in two folds would be recognised
    score = _scores(row_features, row_member, fold[unit], seed, n_jobs)
    area = _area(score, unit, unit_member, fold, confidence)
    detail = {
        "members": float(sizes[0]),
        "others": float(sizes[1]),
        "columns": float(row_features.values.shape[1]),
        "smallest_auc": smallest_area(*sizes, confidence),
    }
    if row_features.values.size <= PLANTED:
        shift = _smallest_shift(row_features, unit, unit_member, fold, detail["smallest_auc"], seed, n_jobs)
        if shift is not None:
            detail["smallest_shift"] = shift
    return replace(area, detail=detail)


def smallest_area(n_members: int, n_others: int, confidence: float = 0.95) -> float:
    """Compute the area under the ROC that an interval of this confidence tells from 1/2 in 9 of 10 samples.

    With the variance of Hanley and McNeil (1982) for two normal distributions, on the logit scale.

    >>> round(smallest_area(500, 500), 2)
    0.59
    """
    quantiles = float(ndtri((1 + confidence) / 2) + ndtri(POWER))

    def is_found(area: float) -> bool:
        # Hanley and McNeil's Q1 and Q2: two members both score above one other, one member above two others
        both_members, both_others = area / (2 - area), 2 * area**2 / (1 + area)
        variance = (
            area * (1 - area) + (n_members - 1) * (both_members - area**2) + (n_others - 1) * (both_others - area**2)
        ) / (n_members * n_others)
        # the standard error on the logit scale, by the delta method, is that of the area over area (1 - area)
        standard_error = math.sqrt(OVERLAP * variance) / (area * (1 - area))
        return bool(logit(area) > quantiles * standard_error)

    return bisect(is_found, inside=1.0 - 1e-9, outside=0.5)


def _sampled(member: Bool[Array, " J"], seed: int) -> Int[Array, " n"]:
    """At most 20,000 records, with as large a fraction of members as all have."""
    if len(member) <= MOST_ROWS:
        return np.arange(len(member))
    rng = stream(seed, "membership without the model", "rows")
    sampled_rows = []
    for side in (True, False):
        rows = np.flatnonzero(member == side)
        n_sampled = max(FEWEST, math.floor(MOST_ROWS * len(rows) / len(member)))
        sampled_rows.append(rng.permutation(rows)[:n_sampled])
    return np.sort(np.concatenate(sampled_rows))


def _numbered(group: Shaped[Array, " n"]) -> Int[Array, " n"]:
    return np.unique(group, return_inverse=True)[1]


def _folds(member: Bool[Array, " U"], seed: int) -> Int[Array, " U"]:
    """Assign a fold to each unit so that all folds have equally many members, and equally many others."""
    rng = stream(seed, "membership without the model", "folds")
    fold = np.empty(len(member), dtype=int)
    for side in (True, False):
        units = np.flatnonzero(member == side)
        fold[rng.permutation(units)] = np.arange(len(units)) % N_FOLDS
    return fold


def _scores(
    row_features: Features, member: Bool[Array, " n"], fold: Int[Array, " n"], seed: int, n_jobs: int | None
) -> Float[Array, " n"]:
    """Each record's log-odds of membership, by a classifier that was trained on the other folds."""
    random_state = integer(seed, "membership without the model", "classifier")
    tasks = [(row_features, member, fold == held_out, random_state) for held_out in range(N_FOLDS)]
    n_workers = 1 if row_features.values.size <= IN_ONE_PROCESS else n_jobs
    score = np.empty(len(member))
    for held_out, fold_score in pool.run(_fitted, tasks, n_workers):
        score[fold == held_out] = fold_score
    return score


def _fitted(
    row_features: Features, member: Bool[Array, " n"], held_out: Bool[Array, " n"], random_state: int
) -> Float[Array, " h"]:
    """Scores of the records that are held out."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # here, for it takes seconds to import

    columns = _telling(row_features.values[~held_out], member[~held_out])
    # with few records on a side, leaves of at least 20 records would allow no split
    smaller = min(np.count_nonzero(member[~held_out]), np.count_nonzero(~member & ~held_out))
    classifier = HistGradientBoostingClassifier(
        max_iter=50,
        max_leaf_nodes=8,
        min_samples_leaf=int(np.clip(smaller // 5, 2, 20)),
        l2_regularization=1.0,
        early_stopping=False,  # pyright: ignore[reportArgumentType] -- its stubs know "auto" alone
        categorical_features=row_features.categorical[columns],  # pyright: ignore[reportArgumentType]
        random_state=random_state,
    )
    classifier.fit(row_features.values[~held_out][:, columns], member[~held_out])
    return classifier.decision_function(row_features.values[held_out][:, columns])


def _telling(values: Float[Array, "n p"], member: Bool[Array, " n"]) -> Int[Array, " c"]:
    """Find the columns whose means differ most between members and others, in standard deviations."""
    if values.shape[1] <= MOST_COLUMNS:
        return np.arange(values.shape[1])
    is_known = ~np.isnan(values)
    filled = np.where(is_known, values, 0.0)
    filled = filled / np.maximum(np.abs(filled).max(axis=0), 1e-300)  # so that no square overflows
    means = [filled[side].sum(axis=0) / np.maximum(is_known[side].sum(axis=0), 1) for side in (member, ~member)]
    difference = np.abs(means[0] - means[1]) / (filled.std(axis=0) + 1e-12)
    # the sides may also differ in which values are missing; that is a 0-1 column, of standard deviation at most 1/2
    missing = np.abs(is_known[member].mean(axis=0) - is_known[~member].mean(axis=0))
    return np.sort(np.argsort(-np.maximum(difference, 2 * missing), kind="stable")[:MOST_COLUMNS])


def _area(
    score: Float[Array, " n"],
    unit: Int[Array, " n"],
    member: Bool[Array, " U"],
    fold: Int[Array, " U"],
    confidence: float,
) -> Interval:
    """Area under the ROC within folds, with DeLong's variance over units on the logit scale."""
    score = np.bincount(unit, score) / np.bincount(unit)
    # scores of different folds come from different classifiers, and are not compared
    pairs = [placements(score[member & (fold == idx)], score[~member & (fold == idx)]) for idx in range(N_FOLDS)]
    above, below = (np.concatenate(side) for side in zip(*pairs, strict=True))
    area = float((above.mean() + below.mean()) / 2)  # the two differ where folds differ by a record
    smaller = min(len(above), len(below))
    variance = OVERLAP * (above.var(ddof=1) / len(above) + below.var(ddof=1) / len(below))
    boosted = Term("boosted_folds", folds=N_FOLDS)
    # near 0 or 1 the normal approximation fails: take the exact interval of as many trials as the smaller side has
    # records, divided by the overlap
    if smaller * min(area, 1 - area) < FEWEST_RARE or variance <= 0:
        trials = smaller / OVERLAP
        exact = clopper_pearson(area * trials, trials, confidence)
        method = (boosted, Term("clopper_pearson_pairs"))
        return Interval(area, exact.low, exact.high, confidence, "points", method)
    half = float(ndtri((1 + confidence) / 2)) * math.sqrt(variance) / (area * (1 - area))
    low, high = float(expit(logit(area) - half)), float(expit(logit(area) + half))
    method = (boosted, Term("delong_within_folds", overlap=OVERLAP))
    return Interval(area, low, high, confidence, "points", method)


def _smallest_shift(
    row_features: Features,
    unit: Int[Array, " n"],
    member: Bool[Array, " U"],
    fold: Int[Array, " U"],
    area: float,
    seed: int,
    n_jobs: int | None,
) -> float | None:
    """Find the shift of one column, in standard deviations, with which this classifier reaches an area.

    Members are drawn anew, so that nothing else tells them apart, and a normal column is added that is shifted for
    them. The shift is read off a line through a few simulated ones, on the probit scale, where the area of a
    classifier that knew the column is a line.
    """
    rng = stream(seed, "membership without the model", "shift")
    random_member = np.empty_like(member)
    for idx in range(N_FOLDS):
        random_member[fold == idx] = rng.permutation(member[fold == idx])
    noise = rng.normal(size=len(member))
    needed = float(ndtri(area))
    # two unit normals that are d apart have the area Phi(d / sqrt 2)
    shifts = [factor * math.sqrt(2) * needed for factor in SHIFTS]
    reached: list[float] = []
    for shift in shifts:
        column = (noise + shift * random_member)[unit]
        planted = Features(np.column_stack([row_features.values, column]), np.append(row_features.categorical, False))
        score = _scores(planted, random_member[unit], fold[unit], seed, n_jobs)
        planted_area = _area(score, unit, random_member, fold, 0.95).value
        reached.append(float(ndtri(np.clip(planted_area, 1e-6, 1 - 1e-6))))
        if reached[-1] >= needed:
            break
    return _crossing([0.0, *shifts], [0.0, *reached], needed)


def _crossing(shifts: Sequence[float], reached: Sequence[float], needed: float) -> float | None:
    """Where a line through the last two points reaches the area; None if the largest shift did not."""
    if reached[-1] < needed:
        return None
    last = len(reached) - 1
    low, high = max(reached[last - 1], 0.0), reached[last]
    fraction = (needed - low) / (high - low) if high > low else 1.0
    return shifts[last - 1] + float(np.clip(fraction, 0.0, 1.0)) * (shifts[last] - shifts[last - 1])
