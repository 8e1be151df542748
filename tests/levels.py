"""Sizes of statistical tests: a fast one on every day, the full one at night.

A test of a level counts in how many of its simulated runs an interval misses the truth, or a true claim is rejected,
and allows as many as a true level of 5 % exceeds with a probability of at most .22 %. The power is the smallest wrong
level that fails the test in 9 of 10 repetitions (``tests/test_levels.py`` computes both):

| runs  | allowed | found in 9 of 10 |
|-------|---------|------------------|
| 20    | 5       | 41.5 %           |
| 30    | 6       | 32.5 %           |
| 50    | 8       | 24.7 %           |
| 75    | 10      | 19.8 %           |
| 100   | 12      | 17.3 %           |
| 150   | 16      | 14.7 %           |
| 200   | 20      | 13.3 %           |
| 400   | 33      | 10.3 %           |
| 1,000 | 71      | 8.3 %            |
| 4,000 | 240     | 6.5 %            |
"""

from __future__ import annotations

import pytest
from _pytest.mark import ParameterSet
from scipy import stats

FALSE_ALARM = 0.0022
FULL = 4000


def sizes(fast: int, *case: object, full: int = FULL) -> list[ParameterSet]:
    """A case of a parametrised test and a number of runs: that of the day, and the full one, marked as nightly."""
    return [pytest.param(*case, fast), pytest.param(*case, full, marks=pytest.mark.nightly)]


def allowed(n_runs: int, level: float = 0.05) -> int:
    """Largest number of failures among the runs with which a test passes."""
    return int(stats.binom.isf(FALSE_ALARM, n_runs, level))
