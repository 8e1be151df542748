"""What may be said of an audit, chosen from all of its numbers at once, so that no sentence contradicts another.

The words are made in `leakscope.reports.sections.audit.words`; here only which of them apply. The rules are those of
the test over a grid of findings: nobody is called exposed or not exposed where too little was measured to tell, nothing
is said of single records that the headline contradicts, and no headline denies a leak where a claim is refuted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FEWEST_RECORDS = 20
FEWEST_MODELS = 4  # of several: the intervals of a single audited model are over its points
ALMOST_PERFECT, HIGH, CLEAR = 0.8, 0.5, 0.2  # of the way from the baseline to certainty: 90, 75, 60 of 100
Headline = Literal[
    "nothing_played",
    "too_few",
    "planted",
    "almost_perfect",
    "high",
    "clear",
    "some_exposed",
    "little",
    "little_untested",
    "refuted_only",
    "ranking_only",
    "no_leak",
]
Records = Literal["none", "untestable", "not_shown", "not_shown_though_inferred", "exposed"]


@dataclass(frozen=True)
class Numbers:
    """The numbers of one audited release that sentences are chosen from.

    Parameters
    ----------
    accuracy_low : float or None
        Lower end of the accuracy of the best attack; None if no attack could be played.
    accuracy_high : float or None
        The largest upper end over the attacks.
    baseline : float
        Accuracy of a guess from the prior alone.
    n_records, n_models : int
        Target records and attacked models.
    n_played : int
        Games against each record; 0 where there were none.
    first_exposed : int or None
        Fewest correct guesses that show a record as exposed; None if not even all of them would.
    n_exposed : int
        Records that are shown to be exposed.
    refuted : bool
        A claim about the release is refuted.
    ranks_members_higher : bool
        The AUC of some attack is above 1/2.
    planted : bool
        The records are canaries, made to be found.
    """

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


@dataclass(frozen=True)
class Statements:
    """Which sentences apply.

    Parameters
    ----------
    headline : str
    records : str
        What is said of single records.
    excluded : bool
        Whether a larger leak by these attacks may be called excluded.
    """

    headline: Headline
    records: Records
    excluded: bool = False


def statements(numbers: Numbers) -> Statements:
    """Choose one consistent set of statements.

    Parameters
    ----------
    numbers : Numbers

    Returns
    -------
    Statements

    Examples
    --------
    >>> statements(Numbers(0.94, 0.96, 0.5, n_records=178, n_models=16, n_played=16, first_exposed=16))
    Statements(headline='almost_perfect', records='not_shown_though_inferred', excluded=False)
    """
    if numbers.accuracy_low is None:
        return Statements("nothing_played", "none")
    if numbers.n_records < FEWEST_RECORDS or 1 < numbers.n_models < FEWEST_MODELS:
        return Statements("too_few", "none")
    headline = _headline(numbers, (numbers.accuracy_low - numbers.baseline) / (1 - numbers.baseline))
    inferred = headline in ("planted", "almost_perfect", "high", "clear", "little", "little_untested")
    high = numbers.accuracy_high
    excluded = headline in ("no_leak", "ranking_only") and high is not None and high < 0.995
    return Statements(headline, _records(numbers, inferred), excluded)


def _headline(numbers: Numbers, gained: float) -> Headline:
    if gained > 0 and numbers.planted and not numbers.n_exposed:  # they say little of the other records
        return "planted"
    steps: tuple[tuple[float, Headline], ...] = ((ALMOST_PERFECT, "almost_perfect"), (HIGH, "high"), (CLEAR, "clear"))
    for least, headline in steps:
        if gained >= least - 1e-12:
            return headline
    if numbers.n_exposed:
        return "some_exposed"
    if gained > 0:
        testable = numbers.n_played > 0 and numbers.first_exposed is not None
        return "little" if testable else "little_untested"
    if numbers.refuted:
        return "refuted_only"
    return "ranking_only" if numbers.ranks_members_higher else "no_leak"


def _records(numbers: Numbers, inferred: bool) -> Records:
    if not numbers.n_played:
        return "none"
    if numbers.first_exposed is None:
        return "untestable"
    if numbers.n_exposed:
        return "exposed"
    return "not_shown_though_inferred" if inferred else "not_shown"
