"""Simulated calibrations against the exact game: how often a released mechanism breaks its promise, and its price."""

from dataclasses import replace
from functools import cache
from itertools import count

import numpy as np
import pytest

from leakbound.bounds import exact_eta
from leakbound.core.seeds import stream
from leakbound.noise import (
    AverageSwap,
    GaussianNoise,
    SampledDisjoint,
    SampledSwap,
    calibrate,
    complement,
    most_promising,
    swap,
    worst_eta,
)
from tests.levels import allowed
from tests.marks import nightly_but
from tests.noise.games import all_subsets, outputs_of

N, K, ETA = 8, 4, 0.1
MEMBER = all_subsets(N, K)
PLAIN = stream(0, "plain").normal(size=N)
GAMES = {
    "mean": (PLAIN, np.mean),
    "max": (PLAIN, np.max),
    "median": (PLAIN, np.median),
    "outlier": (np.r_[12.0, PLAIN[1:]], np.mean),
    "cauchy": (stream(0, "cauchy").standard_cauchy(N), np.mean),
}
SAMPLED = {"swap": SampledSwap, "complement": SampledDisjoint, "average_swap": AverageSwap}


@cache
def outputs(game):
    data, statistic = GAMES[game]
    return outputs_of(statistic, data, MEMBER)[:, None]


@cache
def least_by_enumeration(game, promise):
    """Smallest scale at which the exact eta of the mechanism itself keeps the promise."""
    low, high = 1e-2, 1e2
    while high > 1.0005 * low:
        middle = (low * high) ** 0.5
        eta = exact_eta(outputs(game), MEMBER, GaussianNoise(middle))
        low, high = (middle, high) if (eta.max() if promise == "every" else eta.mean()) > ETA else (low, middle)
    return low


@cache
def least_by_coupling(game, coupling):
    """Smallest scale that the exact expectation of the coupling allows."""
    exact = (complement if coupling == "complement" else swap)(outputs(game), MEMBER)
    return calibrate(exact.average() if coupling == "average_swap" else exact, ETA).scale


def sampled(game, coupling, n_pairs, seed):
    pairs = SAMPLED[coupling](N, K, n_pairs, seed)
    row = np.empty(2**N, dtype=int)
    row[MEMBER @ (1 << np.arange(N))] = np.arange(len(MEMBER))
    return pairs.shifts(outputs(game)[row[pairs.member @ (1 << np.arange(N))]])


def keeps(shifts, scale, confidence):
    """Whether the calibrated scale is at most this one: `test_calibrated_scales_lie_where_the_bound_holds`."""
    return worst_eta(shifts, GaussianNoise(scale), confidence=confidence) <= ETA


@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.parametrize("n_each", [25, pytest.param(200, marks=pytest.mark.nightly)])
def test_certificates_hold(n_each):
    """At most 40 of 500 break the promise at 95 % confidence, 240 of 4,000 at night.

    The false alarm is below .22 % if each breaks it at 5 %; a level of 9.8 % is found in 9 of 10 cases, 6.5 % at night.
    The scale is tuned on the pairs that certify it. Even the scale that the coupling itself needs, never less than
    what the mechanism needs, is undercut that rarely; taking the pairs for the law undercuts it all the time.
    """
    seed, undercut, broken, naive, trials = count(), 0, 0, 0, 0
    for game in GAMES:
        least = {coupling: least_by_coupling(game, coupling) for coupling in SAMPLED}
        exact = {promise: least_by_enumeration(game, promise) for promise in ("every", "average")}
        assert exact["every"] <= min(least["swap"], least["complement"])
        assert exact["average"] <= least["average_swap"]
        for tried in (["swap"], ["complement"], ["average_swap"], ["swap", "complement"]):  # the last is "auto"
            each = 1 - 0.05 / len(tried)
            for _ in range(n_each):
                shifts = [sampled(game, coupling, 60, next(seed)) for coupling in tried]
                below = [some for some in shifts if keeps(some, least[some.coupling], each)]
                undercut += bool(below)
                broken += any(keeps(some, exact[some.promise], each) for some in below)
                naive += keeps(replace(shifts[0], exact=True), least[tried[0]], None)
                trials += 1
    assert trials == 20 * n_each
    assert broken <= undercut <= allowed(trials)
    assert naive > trials / 4


@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.parametrize("game", nightly_but(GAMES, "cauchy"))
@pytest.mark.parametrize("n_scales", [5, pytest.param(15, marks=pytest.mark.nightly)])
def test_certificates_are_cheap(game, n_scales):
    """At 500 pairs the median scale is below 1.5 times that of the coupling, 2.5 times that of the mechanism.

    The median of 5 scales, or of 15, lies within a few percent of its own; the limits are far off: false alarm
    below 1e-6.
    """
    scales = []
    for seed in range(n_scales):
        tried = [sampled(game, "swap", 500, 2 * seed), sampled(game, "complement", 500, 2 * seed + 1)]
        best = tried[most_promising(tried, [500, 500], ETA, confidence=0.95)]
        scale = calibrate(
            best, ETA, confidence=0.975
        ).scale  # as of two that were measured in full: half the level each
        scales.append(scale / least_by_coupling(game, best.coupling))
    assert np.median(scales) < 1.5
    ratio = least_by_coupling(game, "swap") / least_by_enumeration(game, "every")
    assert np.median(scales) * ratio < 2.5


@pytest.mark.statistics
def test_calibrated_scales_lie_where_the_bound_holds():
    """What the count above rests on: a scale passes if and only if the calibrated one is not above it."""
    for seed, coupling in enumerate([*SAMPLED] * 3):
        shifts = sampled("mean", coupling, 60, seed)
        scale = calibrate(shifts, ETA, confidence=0.95).scale
        for factor in (0.5, 0.999, 1.001, 2.0):
            assert keeps(shifts, factor * scale, 0.95) == (factor > 1)
