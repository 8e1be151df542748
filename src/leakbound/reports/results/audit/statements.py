"""What may be said of an audit, chosen from all of its numbers at once, so that no sentence contradicts another.

The words are in `documents/sentences.toml`; here only which of them apply. The rules are those of the test over a grid
of findings: nobody is called exposed or not exposed where too little was measured to tell, nothing is said of single
records that the headline contradicts, and no headline denies a leak where a claim is refuted, or where a group of
records, such as a class, is shown to be guessed better than all of them together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

FEWEST_RECORDS = 20
FEWEST_MODELS = 4  # of several: the intervals of a single audited model are over its points
ALMOST_PERFECT, HIGH, CLEAR = 0.8, 0.5, 0.2  # of the way from the baseline to certainty: 90, 75, 60 of 100
NARROW = 0.05  # an interval that crosses a border for no lack of models
LEAST_DISTANCE, MOST_MODELS = 0.01, 4096  # beyond them more models will hardly decide between two words
Headline = Literal[
    "nothing_played",
    "too_few",
    "planted",
    "almost_perfect",
    "high",
    "high_perhaps",
    "clear",
    "clear_perhaps",
    "some_exposed",
    "group_exposed",
    "exposed_perhaps",
    "little",
    "little_perhaps",
    "not_shown",
    "little_untested",
    "refuted_only",
    "ranking_only",
    "no_leak",
]
OF_THE_AVERAGE = ("no_leak", "little", "little_untested", "refuted_only", "ranking_only")
BANDS: tuple[Headline, ...] = ("no_leak", "little", "clear", "high", "almost_perfect")
Records = Literal["none", "untestable", "not_shown", "not_shown_though_inferred", "exposed"]


@dataclass(frozen=True)
class Numbers:
    """The numbers of one audited release that sentences are chosen from."""

    accuracy_low: float | None
    accuracy_high: float | None
    baseline: float
    n_records: int
    n_models: int
    n_played: int = 0
    first_exposed: int | None = None
    n_exposed: int = 0
    refuted: bool = False
    ranks_members_higher: bool = False
    planted: bool = False
    accuracy: float | None = None
    group_low: float | None = None  # of the worst group, at even odds


@dataclass(frozen=True)
class Statements:
    """Which sentences apply."""

    headline: Headline
    records: Records
    excluded: bool = False
    perhaps: Headline | None = None
    needed: int | None = None


def statements(numbers: Numbers) -> Statements:
    """Choose one consistent set of statements.

    >>> statements(Numbers(0.94, 0.96, 0.5, n_records=178, n_models=16, n_played=16, first_exposed=16)).headline
    'almost_perfect'
    """
    if numbers.accuracy_low is None:
        return Statements("nothing_played", "none")
    if numbers.n_records < FEWEST_RECORDS or 1 < numbers.n_models < FEWEST_MODELS:
        return Statements("too_few", "none")
    low, high = band(numbers.accuracy_low, numbers.baseline), _highest_band(numbers, numbers.accuracy_low)
    is_narrow = high - low <= 1 and (numbers.accuracy_high or 0.0) - numbers.accuracy_low <= NARROW + 1e-12
    if low == high or (low, high) == (0, 1) or is_narrow:
        headline = _of_one_band(numbers, high if low else 0)
    else:
        headline = _of_several_bands(numbers, low)
    if headline in OF_THE_AVERAGE and numbers.group_low is not None and band(numbers.group_low, 0.5) > low:
        headline = "group_exposed"
    records = _records(numbers, inferred=low > 0 and headline not in ("some_exposed", "exposed_perhaps"))
    if headline.endswith("_perhaps") or headline == "not_shown":
        return Statements(headline, records, perhaps=BANDS[high], needed=_needed(numbers, numbers.accuracy_low))
    upper = numbers.accuracy_high
    excluded = headline in ("no_leak", "ranking_only") and upper is not None and upper < 0.995
    return Statements(headline, records, excluded)


def band(accuracy: float, baseline: float) -> int:
    """Return the index of the word for an accuracy in `BANDS`."""
    gained = (accuracy - baseline) / (1 - baseline)
    return (gained > 0) + sum(gained >= least - 1e-12 for least in (CLEAR, HIGH, ALMOST_PERFECT))


def _highest_band(numbers: Numbers, accuracy_low: float) -> int:
    """Return the band of the largest upper end; of canaries, which say little of other records, that of the lower."""
    if numbers.planted or numbers.accuracy_high is None:
        return band(accuracy_low, numbers.baseline)
    return band(max(numbers.accuracy_high, accuracy_low), numbers.baseline)


def _of_one_band(numbers: Numbers, word: int) -> Headline:
    """Choose the headline of an accuracy that is known well enough for one word."""
    if word > 0 and numbers.planted and not numbers.n_exposed:  # they say little of the other records
        return "planted"
    if word > 1:
        return BANDS[word]
    if numbers.n_exposed:
        return "some_exposed"
    if word == 1:
        testable = numbers.n_played > 0 and numbers.first_exposed is not None
        return "little" if testable else "little_untested"
    return _without_a_leak(numbers, "no_leak")


def _of_several_bands(numbers: Numbers, low: int) -> Headline:
    """Choose the headline of an accuracy that may deserve more than the word of its lower end."""
    if low > 1:
        return "high_perhaps" if BANDS[low] == "high" else "clear_perhaps"
    if numbers.n_exposed:
        return "exposed_perhaps"
    return "little_perhaps" if low == 1 else _without_a_leak(numbers, "not_shown")


def _without_a_leak(numbers: Numbers, otherwise: Headline) -> Headline:
    if numbers.refuted:
        return "refuted_only"
    return "ranking_only" if numbers.ranks_members_higher else otherwise


def _needed(numbers: Numbers, low: float) -> int | None:
    """Return ``T (w/d)^2``, rounded up: half-widths w fall like 1/sqrt(T), and d is the distance to a border."""
    high = numbers.accuracy_high
    if numbers.accuracy is None or high is None:
        return None
    value, baseline = numbers.accuracy, numbers.baseline
    borders = [baseline + gained * (1 - baseline) for gained in (0.0, CLEAR, HIGH, ALMOST_PERFECT)]
    distance = min(abs(value - border) for border in borders)
    if distance < LEAST_DISTANCE:
        return None
    width = max(value - low, high - value)
    n = numbers.n_records if numbers.n_models == 1 else numbers.n_models
    needed = math.ceil(n * (width / distance) ** 2)
    return None if numbers.n_models > 1 and needed > MOST_MODELS else needed


def _records(numbers: Numbers, inferred: bool) -> Records:
    if not numbers.n_played:
        return "none"
    if numbers.first_exposed is None:
        return "untestable"
    if numbers.n_exposed:
        return "exposed"
    return "not_shown_though_inferred" if inferred else "not_shown"
