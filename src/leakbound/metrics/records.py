"""Record by record: the games that an attacker wins against each record."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from leakbound.core.checks import count, probability
from leakbound.core.intervals import clopper_pearson_lower
from leakbound.core.on_disk import blocks_of
from leakbound.core.types import NotApplicable, Scores
from leakbound.metrics.rows import ranked
from leakbound.metrics.thresholds import earlier_thresholds

Array = np.ndarray
# An attack that leaves one model out learns the sign and the spread of a record's effect from the games that
# it then plays. On random labels LiRA (Gaussian signals, 12 to 128 models, 10 to 3,000 records) exposes some
# record in up to 4.3 % of runs with this factor at 95 %, in up to 9 % with half of it.
LEARNED = 4


@dataclass(frozen=True, eq=False)
class RecordGames:
    """Correct guesses about each record.

    Parameters
    ----------
    won : int array of shape (J,)
        Models in which the guess about the record was right.
    games : int
        Models, T.
    low : array of shape (J,)
        Lower confidence limit of the chance to win, for all records at once.
    exposed : bool array of shape (J,)
        The limit is above the baseline accuracy.
    margin : array of shape (J,)
        Mean distance of the score from the threshold, on the right side positive, in standard deviations of
        all scores.
    smallest_detectable : float
        Least fraction of correct guesses that would show a record as exposed; above 1 if none would.
    confidence : float
        Of all limits together.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.types import Scores
    >>> member = np.arange(160).reshape(16, 10) % 3 == 0
    >>> games_won(Scores("example", 1.0 * member, member)).won
    array([16, 16, 16, 16, 16, 16, 16, 16, 16, 16])
    """

    won: Int[Array, " J"]
    games: int
    low: Float[Array, " J"]
    exposed: Bool[Array, " J"]
    margin: Float[Array, " J"]
    smallest_detectable: float
    confidence: float


def games_won(
    scores: Scores, confidence: float = 0.95, *, baseline_accuracy: float = 0.5, independent: bool = False
) -> RecordGames:
    """How often each record's membership is guessed right, and which records are exposed beyond chance.

    The guess about a model uses the threshold that is most accurate on all other models. The limits are
    one-sided Clopper-Pearson at ``(1 - confidence)/(4 J)``: the J is for all records at once (Bonferroni),
    the 4 for attacks that leave one model out, whose games against one record are not quite independent.

    Parameters
    ----------
    scores : Scores
        Each row judges the same points, in the same order.
    confidence : float
    baseline_accuracy : float
        Baseline accuracy: that of the better prior guess.
    independent : bool
        The caller's word that the score of a target uses no other target. Then each threshold is learned on
        earlier models alone, the games are independent and the 4 is not needed.

    Returns
    -------
    RecordGames
        One entry a record, with simultaneous limits.

    Raises
    ------
    NotApplicable
        If there is one target model only.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.types import Scores
    >>> rng = np.random.default_rng(0)
    >>> member = rng.random((40, 3)) < 0.5
    >>> value = rng.normal(size=(40, 3)) + np.array([0.0, 0.0, 9.0]) * (member - 0.5)
    >>> games_won(Scores("example", value, member)).exposed.tolist()
    [False, False, True]
    """
    alpha = 1 - probability("confidence", confidence, open_ends=True)
    games, n_records = scores.value.shape
    if games < 2:
        raise NotApplicable("one_trained_model")
    if independent:
        threshold = earlier_thresholds(scores.value, scores.member)
    else:
        threshold = ranked(scores).held_out_thresholds()
    limits = limits_of_games(games, n_records, alpha, independent)
    won, margin = _won_and_margin(scores.value, scores.member, threshold, float(scores.value.max()))
    return RecordGames(
        won=won,
        games=games,
        low=limits[won],
        exposed=limits[won] > baseline_accuracy,
        margin=margin,
        smallest_detectable=smallest_detectable(limits, baseline_accuracy),
        confidence=confidence,
    )


def limits_of_games(games: int, n_records: int, alpha: float, independent: bool = False) -> Float[Array, " g"]:
    """Lower limits of the chance to be right, for 0, 1, ... correct guesses, of all records at once (`games_won`)."""
    level = alpha / (n_records if independent else LEARNED * n_records)
    return clopper_pearson_lower(np.arange(games + 1), games, level)


def smallest_detectable(limits: Float[Array, " g"], baseline_accuracy: float) -> float:
    """Return the least fraction of correct guesses that shows a record as exposed; infinite if none does."""
    enough = np.flatnonzero(limits > baseline_accuracy)
    return float(enough[0] / (len(limits) - 1)) if len(enough) else math.inf


def _won_and_margin(
    value: Float[Array, "T J"], member: Bool[Array, "T J"], threshold: Float[Array, " T"], top: float
) -> tuple[Int[Array, " J"], Float[Array, " J"]]:
    """Count the correct guesses about each record, and measure how clearly, in standard deviations of all scores."""
    n_models, n_records = value.shape
    won, margin = np.empty(n_records, dtype=np.int64), np.empty(n_records)
    middle = np.float64(value.mean(dtype=np.float64))  # so that differences are in float64, too
    square = 0.0
    for block in blocks_of(n_records, n_models):
        score, truth = value[:, block], member[:, block]
        won[block] = ((score >= threshold[:, None]) == truth).sum(axis=0)
        distance = score - np.minimum(threshold, top)[:, None]
        margin[block] = np.where(truth, distance, -distance).mean(axis=0)
        square += float(np.square(score - middle).sum())
    return won, margin / (math.sqrt(square / value.size) or 1.0)


def models_needed(n_records: int, confidence: float = 0.95, baseline_accuracy: float = 0.5) -> int:
    """Smallest number of models M for which M correct guesses of M show a record as exposed.

    ``((1 - confidence)/(4 n_records)) ** (1/M) > baseline_accuracy``; see `games_won`.

    Parameters
    ----------
    n_records : int
    confidence : float
    baseline_accuracy : float

    Returns
    -------
    int
        The least number of target models.

    Examples
    --------
    >>> from leakbound.metrics.records import models_needed
    >>> models_needed(1500)
    17
    """
    alpha = 1 - probability("confidence", confidence, open_ends=True)
    return math.floor(math.log(LEARNED * count("records", n_records) / alpha) / -math.log(baseline_accuracy)) + 1
