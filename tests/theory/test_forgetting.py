"""Removal from ridge regression: an exact one keeps the level, and one gradient step is caught."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.forgetting import ATTACKS, EXACT, downdate, fit, line, one_step, rank_one, repeated, retrain

from tests.levels import allowed, sizes


@pytest.mark.by_day("30-downdate-half")
@pytest.mark.statistics
@pytest.mark.parametrize("kept", ["half", "all"])
@pytest.mark.parametrize("unlearn", EXACT, ids=lambda unlearn: unlearn.__name__)
@pytest.mark.parametrize("n_repeats", sizes(30, full=200))
def test_an_exact_removal_keeps_the_level(kept, unlearn, n_repeats) -> None:
    """The mean AUC is 1/2 within 5 standard errors of less than .03 an audit, and no interval misses it too often.

    The intervals of each attack miss 1/2 in at most 5 % of audits, and that of the strongest attack, corrected, lies
    above it in at most 5 %.
    """
    found = repeated(unlearn, kept, n_repeats)
    for name in ATTACKS:
        assert np.mean([each.auc[name] for each in found]) == pytest.approx(0.5, abs=5 * 0.03 / np.sqrt(n_repeats))
        assert sum(each.misses[name] for each in found) <= allowed(n_repeats)
    assert sum(each.told_apart for each in found) <= allowed(n_repeats), line(found)


@pytest.mark.statistics
@pytest.mark.parametrize(("n_repeats", "fewest"), [(10, 8), pytest.param(40, 36, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(("kept", "least", "most"), [("half", 0.59, 0.63), ("all", 0.70, 0.78)])
def test_one_gradient_step_is_caught_by_the_strongest_attack_and_not_by_lira_alone(
    kept, least, most, n_repeats, fewest
) -> None:
    """With the kept half LiRA alone finds it in 8 to 18 % of audits: in 5 of 10 with a probability of 2 % at most."""
    found = repeated(one_step, kept, n_repeats)
    assert sum(each.told_apart for each in found) >= fewest
    for name in ("mast", "rmia"):
        assert least < np.mean([each.auc[name] for each in found]) < most
    if kept == "half":
        assert sum(each.alone["lira"] for each in found) <= (4 if n_repeats == 10 else 12)


def test_three_exact_removals_are_one() -> None:
    """Of one model, to the rounding of the arithmetic."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 5)), rng.normal(size=60)
    removed, kept = slice(0, 15), slice(15, 60)
    results = [
        unlearn(fit(x, y), x[removed], y[removed], x[kept], y[kept], 0) for unlearn in (retrain, downdate, rank_one)
    ]
    for result in results[1:]:
        np.testing.assert_allclose(result.weights, results[0].weights, rtol=1e-10)
