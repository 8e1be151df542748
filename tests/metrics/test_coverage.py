"""Coverage where whole models shift their scores: a short version, and the whole range of docs/coverage.md."""

import pytest
from scipy import stats

from tests.levels import allowed, sizes
from tests.marks import nightly_but
from tests.metrics.coverage import (
    MAPPED,
    METRICS,
    TIED_METRICS,
    Setting,
    Tied,
    counts,
    settings,
    tied_counts,
    tied_settings,
)

SHIFTED = [
    Setting(shape, spread, 16, distance=distance)
    for shape, spread, distance in [
        ("normal", 1.0, 1.0),
        ("normal", 2.0, 1.0),
        ("right", 1.0, 1.0),
        ("right", 2.0, 1.0),
        ("right", 1.0, 2.5),
    ]
]


@pytest.mark.statistics
@pytest.mark.parametrize("setting", nightly_but(SHIFTED, SHIFTED[0], SHIFTED[-1]), ids=str)
def test_shifted_models_at_a_low_rate(setting):
    """Of 75 audits at most 10 print an interval that misses.

    At a level of 5 % more than 10 have probability .12 %; a level of 20 % is found in 9 of 10. The linearised interval
    missed in 5 to 47 % of audits. `test_the_range` has 300 audits of each of these settings.
    """
    found = counts(setting, 75, ("TPR at 1 %", "these models, 1 %"))
    assert found["TPR at 1 %"].wrong <= allowed(75)
    assert found["TPR at 1 %"].refused >= 67  # too few models: no interval that covers is known
    assert found["these models, 1 %"].wrong <= allowed(75)
    assert found["these models, 1 %"].refused == 0


@pytest.mark.by_day("right-50")
@pytest.mark.statistics
@pytest.mark.parametrize("n_audits", sizes(50, full=400))
@pytest.mark.parametrize("shape", ["normal", "right"])
def test_many_models_at_a_high_rate_have_an_interval_at_any_spread(shape, n_audits):
    """At a level of 5 % more than 8 misses of 50, or 33 of 400, have probability .22 % at most; levels of 25 % and
    10.3 % are found in 9 of 10.
    """
    found = counts(Setting(shape, 2.0, 64, distance=2.5), n_audits, ("TPR at 10 %",))["TPR at 10 %"]
    assert found.refused == 0
    assert found.wrong <= allowed(n_audits)


@pytest.mark.by_day("6-150")
@pytest.mark.statistics
@pytest.mark.parametrize("n_audits", sizes(150, full=400))
@pytest.mark.parametrize("n_models", [3, 4, 6])
def test_success_of_few_models(n_models, n_audits):
    """At a level of 5 % more than 16 misses of 150, or 33 of 400, have probability .22 % at most; levels of 14.6 % and
    10.3 % are found in 9 of 10. Without the second error 12 to 20 % are missed.
    """
    found = counts(Setting("right", 1.0, n_models, distance=2.5), n_audits, ("accuracy",))["accuracy"]
    assert found.wrong <= allowed(n_audits)


@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.parametrize("n_audits", sizes(75, full=400))
def test_records_that_are_hard_in_all_models(n_audits):
    """For these models records are the sampling units. At a level of 5 % more than 10 misses of 75, or 33 of 400, have
    probability .22 % at most; levels of 20 % and 10.3 % are found in 9 of 10.
    """
    setting = Setting("normal", 0.5, 16, difficulty=1.5)
    found = counts(setting, n_audits, ("these models, 1 %", "these models, 10 %"))
    assert max(count.wrong for count in found.values()) <= allowed(n_audits)


@pytest.mark.nightly
@pytest.mark.parametrize(("seed", "setting"), list(enumerate(settings())), ids=str)
def test_the_range(seed, setting):
    """All settings of docs/coverage.md.

    Of 300 audits at most 29 print an interval that misses; at a level of 5 % 30 or more have probability .03 %.
    """
    names = tuple(name for name in METRICS if name not in MAPPED)
    found = counts(setting, 300, names, seed)
    assert stats.binom.sf(29, 300, 0.05) < 5e-4
    wrong = {name: count.wrong for name, count in found.items()}
    assert max(wrong.values()) <= 29, wrong


@pytest.mark.parametrize(("mapped", "of"), [("PPV at 10 %", "TPR at 10 %"), ("advantage", "accuracy")])
def test_mapped_metrics_cover_where_the_other_does(mapped, of):
    found = counts(Setting("normal", 0.2, 16), 20, (mapped, of))
    assert (found[mapped].refused, found[mapped].covered) == (found[of].refused, found[of].covered)


THREE = (1.0, 0.7, 0.2)
JUST_ABOVE = Tied("three values", (1.0, 0.055, 0.001), THREE, 0.05, 0.7)
JUST_BELOW = Tied("three values", (1.0, 0.049, 0.001), THREE, 0.05, 0.7)


@pytest.mark.by_day("below-150")
@pytest.mark.statistics
@pytest.mark.parametrize("n_audits", sizes(150, full=400))
@pytest.mark.parametrize("setting", [JUST_ABOVE, JUST_BELOW], ids=["above", "below"])
def test_the_rate_of_one_model_where_a_tie_has_nearly_the_rate_asked_for(setting, n_audits):
    """At a level of 5 % more than 16 misses of 150, or 33 of 400, have probability .22 % at most; levels of 14.6 % and
    10.3 % are found in 9 of 10. Limits that forget the jump missed in 50 and 17 %.
    """
    found = tied_counts(setting, n_audits, ("TPR", "PPV"))
    assert found["TPR"].refused == 0
    assert max(count.wrong for count in found.values()) <= allowed(n_audits)


@pytest.mark.nightly
@pytest.mark.parametrize(("seed", "setting"), list(enumerate(tied_settings())), ids=str)
def test_the_range_of_tied_scores(seed, setting):
    """All settings of tied scores in docs/coverage.md.

    Of 300 audits at most 29 print an interval that misses; at a level of 5 % 30 or more have probability .03 %.
    """
    found = tied_counts(setting, 300, tuple(TIED_METRICS), seed)
    wrong = {name: count.wrong for name, count in found.items()}
    assert max(wrong.values()) <= 29, wrong
