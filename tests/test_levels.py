"""The false alarms and the power of statistical tests are those that the table of tests/levels.py states."""

import pytest
from scipy import stats

from tests.levels import FALSE_ALARM, allowed


@pytest.mark.parametrize(
    ("n_runs", "most", "found"),
    [
        (20, 5, 0.415),
        (30, 6, 0.325),
        (50, 8, 0.247),
        (75, 10, 0.198),
        (100, 12, 0.173),
        (150, 16, 0.147),
        (200, 20, 0.133),
        (400, 33, 0.1031),
        (1000, 71, 0.083),
        (4000, 240, 0.0651),
    ],
)
def test_the_stated_false_alarm_and_power(n_runs, most, found):
    assert allowed(n_runs) == most
    assert stats.binom.sf(most, n_runs, 0.05) <= FALSE_ALARM < stats.binom.sf(most - 1, n_runs, 0.05)
    assert stats.binom.sf(most, n_runs, found) >= 0.9 > stats.binom.sf(most, n_runs, found - 0.001)
