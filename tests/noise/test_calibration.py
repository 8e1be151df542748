import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

from leakbound.core.seeds import stream
from leakbound.core.types import NotApplicable
from leakbound.noise import (
    BallNoise,
    GaussianNoise,
    LaplaceNoise,
    Lp,
    Mahalanobis,
    NormNoise,
    Shifts,
    calibrate,
    central_moment,
    complement,
    eta_bound,
    moment,
    pairs_needed,
    swap,
    swap_linear,
    worst_eta,
)
from tests.noise.games import all_subsets, divergence_by_cells, outputs_of

S = np.array([[2.0, 0.6], [0.6, 1.0]])


def scale_of(noise):
    return noise.radius if isinstance(noise, BallNoise) else noise.scale


@pytest.mark.parametrize(
    ("family", "norm", "scales"),
    [
        (GaussianNoise, Lp(2), (7.957896561, 3.947153876, 1.482602219)),
        (LaplaceNoise, Lp(2), (9.491221581, 4.481420118, 1.442695041)),
        (lambda scale: NormNoise(scale, Lp(3)), Lp(3), (9.966577309, 4.932606925, 1.820478454)),
    ],
    ids=["gaussian", "laplace", "any norm"],
)
@pytest.mark.parametrize("prior", [0.5, 0.3])
def test_scales_from_a_moment_printed(family, norm, scales, prior):
    """For every k: the prior does not enter."""
    for eta, scale in zip((0.05, 0.1, 0.25), scales, strict=True):
        assert calibrate(moment(1.0, 1, prior, norm), eta, family).scale == pytest.approx(scale, rel=1e-8)


@pytest.mark.parametrize("d", [2, 10, 100])
def test_euclidean_norm_noise_from_a_moment(d):
    """At most m_d sigma/(2 eta), and less by little: the total variation is nearly linear there."""
    slope = math.gamma(d / 2) / (math.sqrt(math.pi) * math.gamma((d + 1) / 2))
    scale = calibrate(moment(1.0, d), 0.05, partial(NormNoise, norm=Lp(2), d=d)).scale
    assert 0.95 * slope / 0.1 < scale < slope / 0.1


FAMILIES = [
    (GaussianNoise, Lp(2)),
    (partial(GaussianNoise, shape=S), Mahalanobis(S)),
    (lambda scale: NormNoise(scale, Lp(2), d=2), Lp(2)),
    (lambda scale: NormNoise(scale, Lp(1)), Lp(1)),
    (partial(BallNoise, d=2), Lp(2)),
]


@pytest.mark.by_day("10-0.1-<lambda>-norm3", "10-0.4-family4-norm4", "4-0.05-<lambda>-norm3")
@pytest.mark.parametrize(("family", "norm"), FAMILIES)
@pytest.mark.parametrize(("k", "eta"), [(10, 0.1), (10, 0.4), (4, 0.05), (16, 0.001)])
def test_the_promise_holds_and_a_thousandth_less_noise_breaks_it(family, norm, k, eta):
    features = stream(0, "features").standard_t(2, size=(20, 2))
    shifts = swap_linear(features, k, norm=norm)
    noise = calibrate(shifts, eta, family)
    assert eta_bound(shifts, noise).max() <= eta
    assert eta_bound(shifts, family(0.999 * scale_of(noise))).max() > eta


@pytest.mark.parametrize("factor", [1e-200, 1e-9, 1e9, 1e200])
def test_scales_follow_the_units(factor):
    features = stream(0, "units").normal(size=(12, 1))
    plain = calibrate(swap_linear(features, 6), 0.1).scale
    assert calibrate(swap_linear(features * factor, 6), 0.1).scale == pytest.approx(plain * factor, rel=1e-8)


def test_twelve_points_printed():
    """The mean of 12 numbers, k = 6, eta = .1: smallest Laplace scales by enumeration and by coupling."""
    rng = np.random.default_rng(2)
    rng.normal(size=6), rng.normal(size=10)
    data, member = rng.normal(size=12), all_subsets(12, 6)
    outputs = outputs_of(np.mean, data, member)
    laplace = partial(calibrate, eta=0.1, family=LaplaceNoise)
    found = [
        laplace(swap_linear(data[:, None], 6)).scale,
        laplace(swap(outputs[:, None], member)).scale,
        laplace(complement(outputs[:, None], member)).scale,
        laplace(moment(central_moment(outputs[:, None], 1), 1)).scale,
        laplace(moment(central_moment(outputs[:, None], 2), 1)).scale,
    ]
    assert [round(scale, 3) for scale in found] == [0.788, 0.788, 0.998, 1.057, 1.290]
    assert round(61.6**2 * central_moment(outputs[:, None], 2), 1) == 1092.5  # (6.16/eta)^2 sigma_2, as printed
    for scale, least in ((0.6785, True), (0.6795, False)):  # the enumeration itself, .679
        eta = divergence_by_cells(outputs, member, stats.laplace(scale=scale), step=0.05).max()
        assert (eta > 0.1) == least


def test_rows_that_need_less_do_not_matter():
    """Dropping rows while bisecting must not change the answer: the worst row alone decides."""
    values = stream(0, "rows").exponential(size=(30, 50)) * np.arange(1, 31)[:, None]
    alone = [calibrate(Shifts(row[None], "swap", 1), 0.07).scale for row in values]
    assert calibrate(Shifts(values, "swap", 1), 0.07).scale == pytest.approx(max(alone), rel=1e-8)


def test_weights_count():
    values, weights = np.array([[1.0, 5.0]]), np.array([0.75, 0.25])
    repeated = Shifts(np.array([[1.0, 1.0, 1.0, 5.0]]), "swap", 1)
    assert calibrate(Shifts(values, "swap", 1, weights=weights), 0.1).scale == calibrate(repeated, 0.1).scale


def test_no_noise_where_outputs_hardly_differ():
    """A maximum that one record in ten holds: eta is at most .05 without noise."""
    values = np.array([[0.0] * 9 + [4.0]])
    line = "no noise is needed for eta = 0.06: so many pairs have the same output"
    with pytest.raises(NotApplicable, match=f"^{line}$"):
        calibrate(Shifts(values, "swap", 1), 0.06)
    assert calibrate(Shifts(values, "swap", 1), 0.04).scale > 0
    with pytest.raises(NotApplicable, match=r"^no noise is needed for eta = 0.1: "):
        calibrate(moment(0.0, 2), 0.1)


def test_failed_pairs_need_more_noise_until_none_is_enough():
    values = np.r_[np.ones(99), math.nan][None]
    some = calibrate(Shifts(values, "swap", 1), 0.1).scale
    assert some > calibrate(Shifts(np.ones((1, 100)), "swap", 1), 0.1).scale
    with pytest.raises(ValueError, match=r"^1.0% of the pairs failed: eta must be > 0.005, got 0.004$"):
        calibrate(Shifts(values, "swap", 1), 0.004)


@pytest.mark.slow
@pytest.mark.statistics
def test_the_scale_may_be_tuned_on_the_pairs_that_certify_it():
    """Confidence .95: at most 10 of 100 calibrations break the promise. The Chernoff limit fails about once in a
    hundred: false alarm below 1e-6. The scale that suits the pairs themselves fails about half of the time."""
    law = stream(3, "law").lognormal(sigma=1.0, size=40)
    true = Shifts(law[None], "complement", 1)
    least = calibrate(true, 0.1, LaplaceNoise).scale
    drawn = stream(4, "pairs").choice(law, size=(100, 1, 80))
    sampled = [Shifts(each, "complement", 1, exact=False) for each in drawn]
    assert sum(calibrate(each, 0.1, LaplaceNoise, confidence=0.95).scale < least for each in sampled) <= 10
    taken_as_exact = [Shifts(each, "complement", 1) for each in drawn[:40]]
    assert sum(calibrate(each, 0.1, LaplaceNoise).scale < least for each in taken_as_exact) > 10


def test_a_sampled_calibration_is_sharp():
    shifts = Shifts(stream(0, "sharp").exponential(size=(4, 300)), "swap", 2, exact=False)
    noise = calibrate(shifts, 0.1, confidence=0.9)
    assert worst_eta(shifts, noise, confidence=0.9) <= 0.1
    assert worst_eta(shifts, GaussianNoise(0.999 * noise.scale), confidence=0.9) > 0.1


EXACT = Shifts(np.array([[1.0, 2.0]]), "swap", 2)
FEW = Shifts(np.full((1, 13), 1.0), "swap", 2, exact=False)  # ln(20)/-ln(1 - 2 eta) = 13.4 at eta = .1
FAILING = Shifts(np.r_[np.ones(48), math.inf, math.inf][None], "swap", 2, exact=False)


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: calibrate(EXACT, 0.0), "eta must be > 0 and < 0.5, the smaller prior; got 0"),
        (lambda: calibrate(EXACT, 0.5), "eta must be > 0 and < 0.5, the smaller prior; got 0.5"),
        (lambda: calibrate(EXACT, 0.31, prior=0.7), "eta must be > 0 and < 0.3, the smaller prior; got 0.31"),
        (lambda: calibrate(EXACT, math.nan), "eta must be finite, got nan"),
        (lambda: calibrate(EXACT, 0.1, LaplaceNoise), "the shifts have 2 coordinates, the noise 1"),
        (lambda: calibrate(EXACT, 0.1, confidence=0.9), "confidence is for sampled pairs, these are 'swap'; got 0.9"),
        (lambda: calibrate(FEW, 0.1), "sampled pairs need a confidence, as confidence=0.95"),
        (lambda: calibrate(FEW, 0.1, confidence=0.95), "eta = 0.1 needs more than 13 pairs a row, got 13"),
        (
            lambda: calibrate(FAILING, 0.05, confidence=0.95),
            "4.0% of the 50 pairs failed: too many for eta = 0.05 at this confidence",
        ),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_requests(make, line):
    with pytest.raises(ValueError, match=f"^{line}$"):
        make()


def test_one_pair_more_is_enough():
    enough = Shifts(np.full((1, 14), 1.0), "swap", 2, exact=False)
    assert calibrate(enough, 0.1, confidence=0.95).scale > 0


@pytest.mark.parametrize(("eta", "prior", "confidence", "share"), [
    (0.1, 0.5, 0.95, 1.0), (0.05, 0.5, 0.95, 1.0), (0.05, 0.2, 0.999, 1.0), (0.01, 0.9, 0.9, 0.2), (0.2, 0.5, 0.5, 0.7),
])  # fmt: skip
def test_pairs_needed_is_where_the_refusal_ends(eta, prior, confidence, share):
    needed = pairs_needed(eta, prior, confidence, share)

    def attempt(n_pairs):
        shifts = Shifts(np.ones((3, n_pairs)), "some", 1, prior=prior, exact=False, separating_fraction=share)
        return calibrate(shifts, eta, confidence=confidence).scale

    assert attempt(needed) > 0
    if needed > 1:
        with pytest.raises(ValueError, match=rf"^eta = {eta:g} needs more than {needed - 1} pairs a row, got"):
            attempt(needed - 1)
    smaller = min(prior, 1 - prior)
    assert needed == math.floor(math.log(1 / (1 - confidence)) / -math.log(1 - share * eta / smaller)) + 1


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: pairs_needed(0.5), "eta must be > 0 and < 0.5, the smaller prior; got 0.5"),
        (lambda: pairs_needed(0.1, prior=1.0), "prior must be > 0 and < 1, got 1"),
        (lambda: pairs_needed(0.1, confidence=1.0), "confidence must be > 0 and < 1, got 1"),
        (lambda: pairs_needed(0.1, separating_fraction=0.0), "separating_fraction must be > 0 and <= 1, got 0"),
    ],
)
def test_bad_numbers_of_pairs(make, line):
    with pytest.raises(ValueError, match=f"^{line}$"):
        make()
