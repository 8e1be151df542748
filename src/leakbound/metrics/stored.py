"""The metrics of scores that do not fit into memory: the same numbers as of `Scores`, from files.

Each score becomes a word of 64 bits: 32 of the score itself, in its order, then the model, member or not, how many
scores of the same class the record has above it, and how many in all. The words are sorted on disk once. Every metric
follows from one pass over them, or from a few ranks and counts that an index finds: exactly, with ties as one step.
Sums are added in another order than in memory, which changes the last digits of a mean.

Axes: B records of a block, R models, J records, P pieces of sorted words, G groups of tied scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, UInt
from scipy.special import ndtri

from leakbound import metrics
from leakbound.core.checks import probability
from leakbound.core.external_sort import PIECE, RUN, STREAM, SortedWords, float_of_key, key_of_float, sort_words
from leakbound.core.findings import IntervalOver
from leakbound.core.intervals import Interval
from leakbound.core.tradeoff import Piecewise
from leakbound.core.types import NotApplicable, Scores
from leakbound.metrics import records
from leakbound.metrics.best_guess import effective_trials, halves, over_models, weighted_accuracy
from leakbound.metrics.clustered import Clustered, Ranked, RankedClass, tried_ranks
from leakbound.metrics.curve import MOST_CORNERS, curve_of, mean_over_models, steps_of_corners
from leakbound.metrics.rates import Pooled, RankedScores, Target, next_above, precision_of
from leakbound.metrics.spread import LEAST_NOISE, ShiftsOfModels

Array = np.ndarray
Blocks = Callable[[], Iterable[tuple[Float[Array, "B T"], Bool[Array, "B T"]]]]
MOST_MODELS = 1024  # whose numbers fit into a word
_KEY = np.uint64(32)
_MOST_REMEMBERED = 4096  # counts at thresholds, and scores by their ranks
_MOST_COUNTS = 4_000_000  # of scores below the pieces, by model and class, which stay in memory


class StoredScores:
    """Scores that are read block by block, as often as they are needed.

    >>> import tempfile
    >>> from leakbound.metrics import stored
    >>> member = np.arange(3000).reshape(1500, 2) % 3 == 0
    >>> value = np.random.default_rng(0).normal(size=member.shape).astype(np.float32) + member
    >>> def blocks():
    ...     yield value[:1000].astype(np.float32), member[:1000]
    ...     yield value[1000:].astype(np.float32), member[1000:]
    >>> with stored.StoredScores("example", blocks, 2, 1500, Path(tempfile.mkdtemp())) as scores:
    ...     round(stored.auc(scores).value, 3)
    0.738
    """

    def __init__(
        self,
        attack: str,
        blocks: Blocks,  # scores (float32, finite, higher = member) and truth, the same blocks at every call
        n_targets: int,
        n_records: int,
        folder: Path,
        source: str = "",
        variance_inflation: float = 1.0,
    ) -> None:
        if n_targets > MOST_MODELS:
            raise ValueError(f"scores in files are of at most {MOST_MODELS:,} models, got {n_targets:,}")
        self.attack, self.blocks, self.folder = attack, blocks, folder
        self.n_targets, self.n_records = n_targets, n_records
        self.source, self.variance_inflation = source, variance_inflation
        self._indexes: dict[bytes, Index] = {}

    def __enter__(self) -> StoredScores:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the files."""
        for index in self._indexes.values():
            index.close()
        self._indexes.clear()

    @cached_property
    def n_members(self) -> Int[Array, " T"]:
        """Member scores of each model."""
        return self._summary.n_members

    @property
    def spread(self) -> float:
        """Standard deviation of all scores."""
        return self._summary.spread

    @cached_property
    def mixed(self) -> Bool[Array, " T"]:
        """The models that have members and others."""
        return (self.n_members > 0) & (self.n_members < self.n_records)

    @cached_property
    def small(self) -> Scores | None:
        """The scores that a metric needs, where these are of one model or of one record: then they fit into memory."""
        if self.n_records == 1 or self.n_targets == 1:
            return self._in_memory(np.ones(self.n_targets, dtype=bool))
        if not self.mixed.any():
            raise NotApplicable("no_mixed_model")
        return self._in_memory(self.mixed) if self.mixed.sum() == 1 else None

    @property
    def index(self) -> Index:
        """The sorted scores of the models with members and others."""
        return self.index_of(self.mixed)

    def index_of(self, chosen: Bool[Array, " T"]) -> Index:
        """Sort the scores of some models; once."""
        key = chosen.tobytes()
        if key not in self._indexes:
            blocks = ((value[:, chosen], member[:, chosen]) for value, member in self._checked_blocks())
            if chosen.all():
                blocks = self._checked_blocks()
            self._indexes[key] = Index(blocks, int(chosen.sum()), self.n_records, self.folder)
        return self._indexes[key]

    def _in_memory(self, chosen: Bool[Array, " T"]) -> Scores:
        parts = [(value[:, chosen], member[:, chosen]) for value, member in self._checked_blocks()]
        value, member = (np.concatenate(arrays).T for arrays in zip(*parts, strict=True))
        return Scores(self.attack, value, member, self.source, self.variance_inflation)

    def _checked_blocks(self) -> Iterator[tuple[Array, Array]]:
        for value, member in self.blocks():
            if value.dtype != np.float32:
                raise ValueError(f"{self.attack}: scores in files must be float32, got {value.dtype}")
            if not np.isfinite(value).all():
                raise ValueError(f"{self.attack}: scores have NaN or infinite values")
            yield value, member

    @cached_property
    def _summary(self) -> _Summary:
        n_members = np.zeros(self.n_targets, dtype=np.int64)
        n, mean, squares = 0, 0.0, 0.0
        for value, member in self._checked_blocks():
            n_members += member.sum(axis=0)
            block_mean = float(value.mean(dtype=np.float64))
            block_squares = float(np.square(value - np.float64(block_mean)).sum())
            # Chan, Golub & LeVeque (1983): sums of squares around the mean of both parts
            distance, n_both = block_mean - mean, n + value.size
            squares += block_squares + distance**2 * n * value.size / n_both
            mean += distance * value.size / n_both
            n = n_both
        return _Summary(n_members, math.sqrt(squares / n))


class _Summary(NamedTuple):
    n_members: Int[Array, " T"]
    spread: float


def accuracy(scores: StoredScores, prior: float = 0.5, confidence: float = 0.95) -> Interval:
    """Compute `leakbound.metrics.accuracy`."""
    if scores.small is not None:
        return metrics.accuracy(scores.small, prior, confidence)
    prior, index = probability("prior", prior, open_ends=True), scores.index
    half, thresholds = index.best_thresholds(prior)
    first, second, best = thresholds
    factor = index.shifts.dilation(1 - confidence)
    n_trials = effective_trials(index.n_of_class[:, 1], index.n_of_class[:, 0], prior)
    return over_models(
        index.accuracy_at(np.where(half, second, first), prior),
        index.accuracy_at(np.full(index.n_models, best), prior),
        best,
        index.accuracy_if_dilated(factor, prior),
        n_trials,
        scores.variance_inflation,
        confidence,
    )


def auc(scores: StoredScores, confidence: float = 0.95) -> Interval:
    """Compute `leakbound.metrics.auc`."""
    if scores.small is not None:
        return metrics.auc(scores.small, confidence)
    index = scores.index
    n_pairs = int(index.n_of_class.min(axis=1).sum())
    return mean_over_models(index.areas.auc, n_pairs, confidence, scores.variance_inflation)


def average_precision(scores: StoredScores, confidence: float = 0.95, inside: bool = True) -> Interval:
    """Compute `leakbound.metrics.average_precision`."""
    if scores.small is not None:
        return metrics.average_precision(scores.small, confidence, inside)
    index = scores.index
    positives = int(index.n_of_class[:, int(inside)].sum())
    return mean_over_models(index.areas.precision[int(inside)], positives, confidence, scores.variance_inflation)


def tpr_at_fpr(scores: StoredScores, fpr: float, confidence: float = 0.95, target: Target = "population") -> Interval:
    """Compute `leakbound.metrics.tpr_at_fpr`."""
    if scores.small is not None:
        return metrics.tpr_at_fpr(scores.small, fpr, confidence, target)
    return Pooled(_Ranked(scores), confidence, target).tpr(fpr)


def roc_band(
    scores: StoredScores, at: Sequence[float] | Float[Array, " A"], confidence: float = 0.95
) -> tuple[Float[Array, " A"], Float[Array, " A"], Float[Array, " A"]]:
    """Compute `leakbound.metrics.roc_band`."""
    if scores.small is not None:
        return metrics.roc_band(scores.small, at, confidence)
    return Pooled(_Ranked(scores), confidence, "population").band(at)


def ppv(scores: StoredScores, fpr: float, prior: float = 0.5, confidence: float = 0.95) -> Interval:
    """Compute `leakbound.metrics.ppv`."""
    prior = probability("prior", prior, open_ends=True)
    return precision_of(tpr_at_fpr(scores, fpr, confidence), fpr, prior)


def roc(scores: StoredScores) -> Piecewise:
    """Compute `leakbound.metrics.roc`."""
    if scores.small is not None:
        return metrics.roc(scores.small)
    members, others = scores.index.members, scores.index.others
    top = max(members.highest(1), others.highest(1))
    corners = scores.index.few_scores
    if corners is None:
        linear_false, linear_true, log_false, log_missed = steps_of_corners(others.n, members.n)
        corners = [top]
        for ranked, steps in ((others, linear_false), (members, linear_true), (others, log_false)):
            # the strictest threshold that calls so many
            corners += [ranked.highest(math.ceil(step)) for step in steps if step > 0]
        for step in log_missed:
            # the laxest threshold that misses so many members, or the strictest one of all
            missed = members.highest(members.n + 1 - min(math.ceil(step), members.n))
            above = next_above([members, others], missed)
            corners.append(top if above is None else above)
        corners.append(scores.index.lowest)
    thresholds = np.unique(corners)[::-1].tolist()
    counts = [(others.at_least(threshold), members.at_least(threshold)) for threshold in thresholds]
    false, true = np.array(counts, dtype=np.int64).T
    return curve_of(false, true)


@dataclass(frozen=True, eq=False)
class StoredGames:
    """Correct guesses about each record, which are read block by block."""

    scores: StoredScores
    threshold: Float[Array, " T"]
    limits: Float[Array, " g"]
    baseline_accuracy: float
    smallest_detectable: float
    confidence: float

    @property
    def games(self) -> int:
        """Models, T."""
        return self.scores.n_targets

    def blocks(self) -> Iterator[tuple[Int[Array, " B"], Float[Array, " B"]]]:
        """Yield the correct guesses and the margins of the records, block by block."""
        index = self.scores.index_of(np.ones(self.scores.n_targets, dtype=bool))
        top = max(ranked.highest(1) for ranked in (index.members, index.others) if ranked.n)
        spread = self.scores.spread or 1.0
        for value, member in self.scores.blocks():
            # by model first, as in memory: the mean over models is added in the same order
            yield records.won_and_margin(value.T, member.T, self.threshold, top, spread)


def games_won(scores: StoredScores, confidence: float = 0.95, *, baseline_accuracy: float = 0.5) -> StoredGames:
    """Compute `leakbound.metrics.games_won`, to be read block by block."""
    alpha = 1 - probability("confidence", confidence, open_ends=True)
    if scores.n_targets < 2:
        raise NotApplicable("one_trained_model")
    limits = records.limits_of_games(scores.n_targets, scores.n_records, alpha)
    threshold = scores.index_of(np.ones(scores.n_targets, dtype=bool)).areas.held_out
    detectable = records.smallest_detectable(limits, baseline_accuracy)
    return StoredGames(scores, threshold, limits, baseline_accuracy, detectable, confidence)


class Areas(NamedTuple):
    """What one pass over the sorted scores finds."""

    auc: Float[Array, " R"]
    precision: Float[Array, "2 R"]
    held_out: Float[Array, " R"]
    few_scores: list[float] | None


class _Groups(NamedTuple):
    """Scores in ascending order; all that are tied are in one of these."""

    key: UInt[Array, " n"]
    code: Int[Array, " n"]  # 2 model + (1 if member)
    weight: Int[Array, " n"]  # how many scores
    group: Int[Array, " n"]  # index of the tie
    starts: Int[Array, " G"]  # first score of each tie


class Index:
    """The scores of some models, sorted."""

    def __init__(self, blocks: Iterable[tuple[Array, Array]], n_models: int, n_records: int, folder: Path) -> None:
        self.n_models, self.n_records, self.folder = n_models, n_records, folder
        self.bits = max(1, (n_models - 1).bit_length())
        self.size_squares = np.zeros(2)  # over records, of their scores of each class
        piece = PIECE
        while n_models * n_records // piece * 2 * n_models > _MOST_COUNTS:
            piece *= 2
        self.words = sort_words(self._words_of(blocks), folder, RUN, piece)
        self.below, self.sums_below = self._prefixes()
        self.n_of_class = self.below[-1]
        self._counts: dict[int, tuple[Array, Array]] = {}
        self._dilated: dict[float, SortedWords] = {}
        self._clustered: dict[str, tuple[_StoredClass, _StoredClass]] = {}

    def close(self) -> None:
        """Remove the files."""
        for words in (self.words, *self._dilated.values()):
            words.close()

    @cached_property
    def members(self) -> _StoredRanks:
        """The scores of members."""
        return _StoredRanks(self, 1)

    @cached_property
    def others(self) -> _StoredRanks:
        """The scores of non-members."""
        return _StoredRanks(self, 0)

    @property
    def lowest(self) -> float:
        """The lowest score."""
        return _score(int(self.words.first[0]) >> 32)

    @property
    def few_scores(self) -> list[float] | None:
        """All different scores, if they are at most 1,000."""
        return self.areas.few_scores

    def clustered(self, axis: Literal["models", "records"], confidence: float, variance_inflation: float) -> Clustered:
        """Take models or records as clusters; see `leakbound.metrics.clustered.Clustered.by`."""
        if axis not in self._clustered:
            by_model = axis == "models"
            self._clustered[axis] = _StoredClass(self.members, by_model), _StoredClass(self.others, by_model)
        members, others = self._clustered[axis]
        return Clustered(members, others, variance_inflation if axis == "models" else 1.0, confidence)

    def counts_from(self, key: int) -> tuple[Int[Array, "R 2"], Float[Array, "2 2"]]:
        """Count the scores at or above a key, by model and class; and the sums over records, by class.

        The sums are those of a_c^2 and of a_c n_c, where a_c of the n_c scores of a record are counted.
        """
        if key not in self._counts:
            if len(self._counts) >= _MOST_REMEMBERED:
                self._counts.clear()
            n_below = self.words.below(key << 32)
            place, n_of_piece = divmod(n_below, self.words.piece)
            below, sums_below = self.below[place], self.sums_below[place]
            if n_of_piece:
                part = self.words.read(place)[:n_of_piece]
                below, sums_below = below + self._count(part), sums_below + self._sums(part)
            self._counts[key] = self.below[-1] - below, self.sums_below[-1] - sums_below
        return self._counts[key]

    def accuracy_at(self, thresholds: Float[Array, " R"], prior: float) -> Float[Array, " R"]:
        """Compute the weighted accuracy of each model at a threshold of its own."""
        called = np.zeros((self.n_models, 2), dtype=np.int64)
        for threshold in np.unique(thresholds[np.isfinite(thresholds)]).tolist():
            counts, _ = self.counts_from(_key(threshold))
            called[thresholds == threshold] = counts[thresholds == threshold]
        return weighted_accuracy(called, self.n_of_class, prior)

    def best_thresholds(self, prior: float) -> tuple[Bool[Array, " R"], tuple[float, float, float]]:
        """Find the best thresholds of one half of the models, of the other half, and of all."""
        half = halves(np.zeros(self.n_models, dtype=bool))
        weights = self._weights(prior)
        tables = [np.where(chosen[:, None], weights, 0.0).ravel() for chosen in (half, ~half, half | ~half)]
        totals = [np.abs(weights[chosen] * self.n_of_class[chosen]).sum() for chosen in (half, ~half, half | ~half)]
        searches = [_Best(1e-12 * float(total)) for total in totals]
        before = np.zeros(2 * self.n_models)
        for part in self.groups():
            key = part.key[part.starts]
            for table, search in zip(tables, searches, strict=True):
                gain_of_all = float(table @ self.n_of_class.ravel())
                gain = _from_start(table[part.code] * part.weight, part)
                search.add(gain_of_all - float(table @ before) - gain, key)
            before += np.bincount(part.code, weights=part.weight, minlength=len(before))
        first, second, both = (search.threshold() for search in searches)
        return half, (first, second, both)

    def accuracy_if_dilated(self, factor: float, prior: float) -> float:
        """Accuracy of the best threshold if the models differed ``factor`` times as much."""
        table = self._weights(prior).ravel()
        most, before = 0.0, np.zeros(2 * self.n_models)
        words = self._dilated_words(factor)
        shift, mask = np.uint64(self.bits + 1), np.uint64((2 << self.bits) - 1)
        gain_of_all = float(table @ self.n_of_class.ravel())
        for part in _groups(words, shift, lambda word: (word & mask).astype(np.intp), len(table)):
            gain = gain_of_all - float(table @ before) - _from_start(table[part.code] * part.weight, part)
            most = max(most, float(gain.max()))
            before += np.bincount(part.code, weights=part.weight, minlength=len(before))
        return 1 - prior + most / self.n_models

    @cached_property
    def shifts(self) -> _StoredShifts:
        """How far whole models shift their scores."""
        sums, squares = np.zeros(2 * self.n_models), np.zeros(2 * self.n_models)
        for part, normal in self._normal_scores():
            score = normal[part.group]
            sums += np.bincount(part.code, weights=part.weight * score, minlength=len(sums))
            squares += np.bincount(part.code, weights=part.weight * score**2, minlength=len(sums))
        sums, squares = sums.reshape(-1, 2), squares.reshape(-1, 2)
        mean = sums.sum(axis=0) / self.n_of_class.sum(axis=0)  # of each class
        shift = (sums - self.n_of_class * mean).sum(axis=1) / self.n_records
        square = (squares - 2 * mean * sums + self.n_of_class * mean**2).sum(axis=1) / self.n_records
        within = float(np.maximum(square - shift**2, 0.0).mean())
        return _StoredShifts(self.n_records, shift, max(math.sqrt(within), LEAST_NOISE))

    @cached_property
    def areas(self) -> Areas:
        """Areas under curves, held-out thresholds and the different scores, in one pass."""
        walk = _Areas(self)
        for part in self.groups():
            walk.add(part)
        return walk.result()

    def groups(self) -> Iterator[_Groups]:
        """Iterate over all scores in ascending order, without dividing a tie."""
        shift, mask = np.uint64(2 * self.bits), np.uint64((2 << self.bits) - 1)
        return _groups(self.words, _KEY, lambda word: ((word >> shift) & mask).astype(np.intp), 2 * self.n_models)

    def _normal_scores(self) -> Iterator[tuple[_Groups, Float[Array, " G"]]]:
        """Yield the normal quantiles of the mid-ranks of all scores together."""
        n_below = 0
        for part in self.groups():
            times = np.add.reduceat(part.weight, part.starts)
            rank = n_below + np.cumsum(times) - (times - 1) / 2
            n_below += int(times.sum())
            yield part, ndtri((rank - 0.5) / self.words.n)

    def _dilated_words(self, factor: float) -> SortedWords:
        """Sort the normal scores as they would be if the models differed ``factor`` times as much.

        A word holds the upper bits of the score, all but some 5 to 11 of 64, and the model and the class.
        """
        if factor not in self._dilated:
            mask = np.uint64((2 << self.bits) - 1)
            offset = self.shifts.offsets(factor)

            def words() -> Iterator[Array]:
                for part, normal in self._normal_scores():
                    score = normal[part.group] + offset[part.code >> 1]
                    word = (key_of_float(score) & ~mask) | part.code.astype(np.uint64)
                    once = part.weight == 1
                    yield word[once]
                    for copied, n_copies in zip(word[~once], part.weight[~once].tolist(), strict=True):
                        for start in range(0, n_copies, STREAM):
                            yield np.full(min(STREAM, n_copies - start), copied)

            self._dilated[factor] = sort_words(words(), self.folder, RUN, PIECE)
        return self._dilated[factor]

    def _weights(self, prior: float) -> Float[Array, "R 2"]:
        """Weights of the scores of others and members of each model, as ``thresholds.accuracy_weights``."""
        n = np.maximum(self.n_of_class, 1)
        return np.stack([-(1 - prior) / n[:, 0], prior / n[:, 1]], axis=1)

    def _words_of(self, blocks: Iterable[tuple[Array, Array]]) -> Iterator[UInt[Array, " n"]]:
        """Pack the scores of each record, class by class in their order."""
        position = np.arange(self.n_models, dtype=np.uint64)
        bits, one = np.uint64(self.bits), np.uint64(1)
        of_model = np.uint64((1 << 10) - 1)  # the models of a row, below 1,024
        of_key = np.uint64((1 << 32) - 1)
        for value, member in blocks:
            row = key_of_float(value).astype(np.uint64) << np.uint64(10) | position
            row |= member.astype(np.uint64) << np.uint64(63)
            row.sort(axis=1)  # others first, then members; each in ascending order
            is_member = row >> np.uint64(63)
            n_in = is_member.sum(axis=1, keepdims=True, dtype=np.uint64)
            n_out = np.uint64(self.n_models) - n_in
            # scores of the same class above this one, and all of that class
            stop = np.where(is_member == one, np.uint64(self.n_models), n_out)
            size = np.where(is_member == one, n_in, n_out)
            self.size_squares += [float(np.square(n, dtype=np.float64).sum()) for n in (n_out, n_in)]
            word = (row >> np.uint64(10) & of_key) << _KEY
            word |= (row & of_model) << (np.uint64(2) * bits + one)
            word |= is_member << (np.uint64(2) * bits)
            word |= (stop - one - position) << bits
            word |= size - one
            yield word.ravel()

    def _prefixes(self) -> tuple[Int[Array, "P R 2"], Float[Array, "P 2 2"]]:
        """Count what lies below each piece of the sorted words, and below the end."""
        n_pieces = self.words.n_pieces
        below = np.zeros((n_pieces + 1, self.n_models, 2), dtype=np.int64)
        sums = np.zeros((n_pieces + 1, 2, 2))
        place, piece = 0, self.words.piece
        for words in self.words.stream(piece * max(1, STREAM // piece)):
            for start in range(0, len(words), piece):
                part = words[start : start + piece]
                below[place + 1] = below[place] + self._count(part)
                sums[place + 1] = sums[place] + self._sums(part)
                place += 1
        return below, sums

    def _count(self, words: UInt[Array, " n"]) -> Int[Array, "R 2"]:
        """Count words by model and class."""
        code = words >> np.uint64(2 * self.bits) & np.uint64((2 << self.bits) - 1)
        return np.bincount(code.astype(np.intp), minlength=2 * self.n_models).reshape(-1, 2)

    def _sums(self, words: UInt[Array, " n"]) -> Float[Array, "2 2"]:
        """Sum over the scores of each class 2 b + 1, b the same record's scores above it, and n_c; exact."""
        mask = np.uint64((1 << self.bits) - 1)
        is_member = words >> np.uint64(2 * self.bits) & np.uint64(1)
        before = words >> np.uint64(self.bits) & mask
        terms = np.stack([2 * before + np.uint64(1), (words & mask) + np.uint64(1)])
        of_all = terms.sum(axis=1)
        of_members = (terms * is_member).sum(axis=1)
        return np.stack([of_all - of_members, of_members]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class _StoredShifts(ShiftsOfModels):
    """The shifts of models whose scores lie in files."""

    n_scores: int
    of_models: Float[Array, " R"]
    within: float

    @property
    def n_records(self) -> int:
        """Scores of each model."""
        return self.n_scores

    @property
    def shift(self) -> Float[Array, " R"]:
        """Mean residual of each model."""
        return self.of_models

    @property
    def noise(self) -> float:
        """Standard deviation of the residuals within a model."""
        return self.within


@dataclass(frozen=True, eq=False)
class _StoredRanks(Ranked):
    """The scores of one class, by their ranks."""

    index: Index
    side: int  # 1: members
    scores: dict[int, float] = field(default_factory=dict)  # that were looked up, by rank

    @cached_property
    def n(self) -> int:  # pyright: ignore[reportIncompatibleMethodOverride] -- a property that is computed once
        """Scores."""
        return int(self.index.n_of_class[:, self.side].sum())

    @cached_property
    def _below(self) -> Int[Array, " P"]:
        """Scores of this class below each piece."""
        return self.index.below[:, :, self.side].sum(axis=1)

    def highest(self, k: int) -> float:
        """Return the k-th highest score."""
        if k not in self.scores:
            if len(self.scores) >= _MOST_REMEMBERED:
                self.scores.clear()
            rank = self.n - k  # from the lowest up, which is 0
            place = int(np.searchsorted(self._below, rank, "right")) - 1
            words = self.index.words.read(place)
            is_member = (words >> np.uint64(2 * self.index.bits) & np.uint64(1)).astype(bool)
            of_class = np.flatnonzero(is_member == bool(self.side))
            self.scores[k] = _score(int(words[of_class[rank - int(self._below[place])]]) >> 32)
        return self.scores[k]

    def at_least(self, threshold: float) -> int:
        """Scores at or above a threshold."""
        if math.isinf(threshold):
            return 0 if threshold > 0 else self.n
        return int(self.index.counts_from(_key(threshold))[0][:, self.side].sum())

    def above(self, threshold: float) -> int:
        """Scores above a threshold."""
        if math.isinf(threshold):
            return 0 if threshold > 0 else self.n
        return int(self.index.counts_from(_key(threshold) + 1)[0][:, self.side].sum())


@dataclass(frozen=True, eq=False)
class _StoredClass(RankedClass):
    """The scores of one class in clusters."""

    ranked: _StoredRanks
    by_model: bool

    @property
    def n(self) -> int:
        """Scores."""
        return self.ranked.n

    @property
    def n_clusters(self) -> int:
        """Models, or records."""
        return self.ranked.index.n_models if self.by_model else self.ranked.index.n_records

    @property
    def size_squares(self) -> float:
        """Sum over the clusters of n_c^2."""
        if not self.by_model:
            return float(self.ranked.index.size_squares[self.ranked.side])
        sizes = self.ranked.index.n_of_class[:, self.ranked.side].astype(np.float64)
        return float(sizes @ sizes)

    def cluster_sums(self, k: Int[Array, " r"]) -> tuple[Float[Array, " r"], Float[Array, " r"]]:
        """Sum over the clusters a_c^2, and a_c n_c."""
        pairs = [self._sums(n_called) for n_called in np.asarray(k).tolist()]
        squares, products = np.array(pairs).T
        return squares, products

    def _sums(self, k: int) -> tuple[float, float]:
        if k == 0:
            return 0.0, 0.0
        index, side = self.ranked.index, self.ranked.side
        counts, sums = index.counts_from(_key(self.ranked.highest(k)))
        if not self.by_model:
            return float(sums[side, 0]), float(sums[side, 1])
        called, sizes = counts[:, side].astype(np.float64), index.n_of_class[:, side].astype(np.float64)
        return float(called @ called), float(called @ sizes)

    def highest(self, k: int) -> float:
        """Return the k-th highest score."""
        return self.ranked.highest(k)

    def at_least(self, threshold: float) -> int:
        """Scores at or above a threshold."""
        return self.ranked.at_least(threshold)

    def above(self, threshold: float) -> int:
        """Scores above a threshold."""
        return self.ranked.above(threshold)

    @cached_property
    def ranks(self) -> Int[Array, " r"]:  # pyright: ignore[reportIncompatibleMethodOverride] -- a property that is computed once
        """Ranks that are tried, and never part of a tie."""
        whole_ties = [self.at_least(self.highest(k)) for k in tried_ranks(self.n).tolist()]
        return np.concatenate([[0], np.unique(whole_ties)])


@dataclass(frozen=True, eq=False)
class _Ranked(RankedScores):
    """What `leakbound.metrics.rates.Pooled` needs of scores in files."""

    scores: StoredScores

    @property
    def single(self) -> bool:
        """There are several models."""
        return False

    @property
    def interval_over(self) -> IntervalOver:
        """Models."""
        return "models"

    @property
    def n_models(self) -> int:
        """Models with members and others."""
        return self.scores.index.n_models

    @property
    def members(self) -> Ranked:
        """The scores of members."""
        return self.scores.index.members

    @property
    def others(self) -> Ranked:
        """The scores of non-members."""
        return self.scores.index.others

    @property
    def shifts(self) -> ShiftsOfModels:
        """How far whole models shift their scores."""
        return self.scores.index.shifts

    def clustered(self, axis: Literal["models", "records"], confidence: float) -> Clustered:
        """Take models or records as clusters."""
        return self.scores.index.clustered(axis, confidence, self.scores.variance_inflation)

    def has_two_values(self) -> bool:
        """Whether there are exactly two different scores."""
        few = self.scores.index.few_scores
        return few is not None and len(few) == 2


class _Best:
    """The highest of the thresholds whose gain is the largest to rounding; thresholds come in ascending order."""

    def __init__(self, rounding: float) -> None:
        self.rounding = rounding
        self.largest = 0.0  # of the threshold that calls nobody
        self.candidates: list[tuple[Array, Array]] = []

    def add(self, gain: Float[Array, " G"], key: UInt[Array, " G"]) -> None:
        """Add the gains of the next thresholds."""
        self.largest = max(self.largest, float(gain.max()))
        near = gain >= self.largest - self.rounding
        if near.any():
            # what may turn out to be the largest to rounding, if none that comes is larger
            self.candidates.append((gain[near], key[near]))
            self.candidates = [pair for pair in self.candidates if pair[0].max() >= self.largest - self.rounding]

    def threshold(self) -> float:
        """Return it; infinite if nothing is gained."""
        if self.largest <= self.rounding:
            return math.inf
        gain, key = (np.concatenate(arrays) for arrays in zip(*self.candidates, strict=True))
        return _score(int(key[gain >= self.largest - self.rounding].max()))


class _Areas:
    """The pass behind `Index.areas`."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.n = index.n_of_class
        n_models = index.n_models
        self.below = np.zeros((n_models, 2), dtype=np.int64)
        self.doubled = np.zeros(n_models)  # twice the number of pairs with the member above the other, ties one half
        self.precision = np.zeros((2, n_models))
        self.best = np.zeros(n_models)  # gains of the others at the best threshold; 0 calls nobody
        self.held_out = np.full(n_models, np.inf)
        self.few_keys: list[int] | None = []

    def add(self, part: _Groups) -> None:
        """Go on with the next scores."""
        model_of = (part.code >> 1).astype(np.uint16)
        order = np.argsort(model_of, kind="stable")
        model, group = model_of[order], part.group[order]
        member_weight = np.where(part.code & 1, part.weight, 0)[order]
        weight = part.weight[order]
        # ties of each model by itself
        starts = np.flatnonzero(np.r_[True, (model[1:] != model[:-1]) | (group[1:] != group[:-1])])
        n_in = np.add.reduceat(member_weight, starts)
        n_out = np.add.reduceat(weight, starts) - n_in
        model, group = model[starts].astype(np.intp), group[starts]
        n_models = self.index.n_models
        of_model = np.stack(
            [np.bincount(model, weights=n, minlength=n_models).astype(np.int64) for n in (n_out, n_in)], axis=1
        )
        first = np.cumsum(of_model, axis=0) - of_model  # before the model's own scores in this order
        below_out = np.cumsum(n_out) - n_out - first[model, 0] + self.below[model, 0]
        below_in = np.cumsum(n_in) - n_in - first[model, 1] + self.below[model, 1]
        self.doubled += np.bincount(model, weights=n_in * (2 * below_out + n_out), minlength=n_models)
        # from the top for members; from the bottom for others, whose scores are negated
        above_in, above_out = self.n[model, 1] - below_in, self.n[model, 0] - below_out
        upto_in, upto_out = below_in + n_in, below_out + n_out
        precise = [n_out * upto_out / (upto_in + upto_out), n_in * above_in / (above_in + above_out)]
        self.precision += [np.bincount(model, weights=terms, minlength=n_models) for terms in precise]
        self._hold_out(part, model, group, n_in - n_out)
        self.below += of_model
        self._keep_few(part.key[part.starts])

    def _hold_out(self, part: _Groups, model: Array, group: Array, own_gain: Array) -> None:
        """Find the threshold with the largest gain of all scores less the model's own; whole numbers, so exactly."""
        sign = np.where(part.code & 1, part.weight, -part.weight)
        gain_below = self.below[:, 1] - self.below[:, 0]
        gain_of_all = self.n[:, 1] - self.n[:, 0]
        group_gain = np.add.reduceat(sign, part.starts)
        gain = gain_of_all.sum() - gain_below.sum() - np.cumsum(group_gain) + group_gain
        key = part.key[part.starts]
        bounds = np.searchsorted(model, np.arange(self.index.n_models + 1))
        for number in range(self.index.n_models):
            own = slice(int(bounds[number]), int(bounds[number + 1]))
            # between two of its own scores what the model itself gains is constant
            stretch = np.r_[0, group[own] + 1]
            own_rest = gain_of_all[number] - gain_below[number] - np.r_[0, np.cumsum(own_gain[own])]
            if stretch[-1] == len(gain):
                stretch, own_rest = stretch[:-1], own_rest[:-1]
            if not len(stretch):
                continue
            largest = np.maximum.reduceat(gain, stretch)
            of_others = largest - own_rest
            best = of_others.max()
            if best < self.best[number] or best <= 0:
                continue
            last = int(np.flatnonzero(of_others == best)[-1])
            stop = int(stretch[last + 1]) if last + 1 < len(stretch) else len(gain)
            inner = gain[stretch[last] : stop]
            at = int(stretch[last]) + int(np.flatnonzero(inner == largest[last])[-1])
            self.best[number], self.held_out[number] = best, _score(int(key[at]))

    def _keep_few(self, key: UInt[Array, " G"]) -> None:
        if self.few_keys is not None and len(self.few_keys) + len(key) <= MOST_CORNERS:
            self.few_keys += key.tolist()
        else:
            self.few_keys = None

    def result(self) -> Areas:
        """Return what was found."""
        n = np.maximum(self.n, 1).astype(np.float64)
        few = None if self.few_keys is None else [_score(key) for key in self.few_keys]
        return Areas(self.doubled / (2 * n[:, 0] * n[:, 1]), self.precision / n.T, self.held_out, few)


def _groups(words: SortedWords, shift: np.uint64, code_of: Callable[[Array], Array], n_codes: int) -> Iterator[_Groups]:
    """Cut sorted words where the upper bits change; a tie that goes on is carried along as counts."""
    carried_key: np.uint64 | None = None
    carried = np.zeros(n_codes, dtype=np.int64)
    for piece in words.stream(STREAM):
        key, code = piece >> shift, code_of(piece)
        start = 0
        if carried_key is not None and key[0] == carried_key:
            start = int(np.searchsorted(key, carried_key, "right"))
            carried += np.bincount(code[:start], minlength=n_codes)
            if start == len(key):
                continue
        last = int(np.searchsorted(key, key[-1], "left"))
        body = key[start:last], code[start:last], np.ones(last - start, dtype=np.int64)
        if carried_key is not None:
            body = tuple(map(np.concatenate, zip(_carried(carried_key, carried), body, strict=True)))
        if len(body[0]):
            yield _grouped(*body)
        carried_key = key[-1]
        carried = np.bincount(code[last:], minlength=n_codes).astype(np.int64)
    if carried_key is not None:
        yield _grouped(*_carried(carried_key, carried))


def _carried(key: np.uint64, counts: Int[Array, " c"]) -> tuple[Array, Array, Array]:
    code = np.flatnonzero(counts)
    return np.full(len(code), key), code, counts[code]


def _grouped(key: Array, code: Array, weight: Array) -> _Groups:
    is_first = np.r_[True, key[1:] != key[:-1]]
    return _Groups(key, code, weight, np.cumsum(is_first) - 1, np.flatnonzero(is_first))


def _from_start(gain: Float[Array, " n"], part: _Groups) -> Float[Array, " G"]:
    """Sum of the gains of all scores of this part below each tie."""
    before = np.cumsum(gain) - gain
    return before[part.starts]


def _key(threshold: float) -> int:
    """Return the key of the least float32 that is at least the threshold."""
    with np.errstate(over="ignore"):
        rounded = np.float32(threshold)
    if float(rounded) < threshold:
        rounded = np.nextafter(rounded, np.float32(np.inf))
    return int(key_of_float(np.array([rounded], dtype=np.float32))[0])


def _score(key: int) -> float:
    return float(float_of_key(np.array([key], dtype=np.uint32))[0])
