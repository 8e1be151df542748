import math
import warnings
from functools import partial

import numpy as np
import pytest
from scipy import integrate, stats

from leakbound.core.seeds import stream
from leakbound.core.types import Noise, NotApplicable
from leakbound.noise import BallNoise, GaussianNoise, LaplaceNoise, Lp, Mahalanobis, NormNoise
from tests.marks import nightly

S = np.array([[2.0, 0.6], [0.6, 1.0]])


def literal(*arguments):
    """The literal radius without its warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return NormNoise(*arguments)


ONE = [LaplaceNoise(1.3), GaussianNoise(0.7), NormNoise(1.3, Lp(4), d=1), BallNoise(2.0, 1)]
TWO = [
    GaussianNoise(0.7),
    GaussianNoise(0.7, S),
    GaussianNoise(0.7, np.array([2.0, 0.5])),
    NormNoise(0.8, Lp(2), d=2),
    NormNoise(0.8, Mahalanobis(S)),
    NormNoise(0.8, Lp(1), d=2),
    NormNoise(0.8, Lp(4, [1.0, 0.3])),
    NormNoise(0.8, Lp(math.inf), d=2),
    literal(1.5, Lp(2, [1.0, 0.5]), "laplace-literal"),
    BallNoise(2.0, 2),
]
FOUR = [GaussianNoise(0.7), NormNoise(0.8, Lp(2), d=4), NormNoise(0.8, Lp(1.5), d=4), BallNoise(2.0, 4)]
EVERY = [(noise, 1) for noise in ONE] + [(noise, 2) for noise in TWO] + [(noise, 4) for noise in FOUR]
every_family = pytest.mark.parametrize(("noise", "d"), EVERY, ids=[f"{noise}-{d}" for noise, d in EVERY])


def is_exact(noise, d):
    """Whether shift_hockey is the divergence itself, not a bound of it."""
    if not isinstance(noise, NormNoise) or d == 1:
        return True
    return noise.norm.order == 2 and noise.radius == "gamma"


@every_family
def test_every_family_is_a_noise(noise, d):
    assert isinstance(noise, Noise)
    assert noise.d in (None, d)


@pytest.mark.parametrize("noise", ONE, ids=str)
def test_density_integrates_to_one_on_the_line(noise):
    mass = integrate.quad(lambda z: float(np.exp(noise.log_density(np.array([z])))), -40, 40, points=[-2, 0, 2])[0]
    assert mass == pytest.approx(1, abs=1e-7)


@pytest.mark.by_day("NormNoise(scale=0.8, norm=Lp(p=1, weights=None), radius='gamma', d=2)")
@pytest.mark.parametrize("noise", [each for each in TWO if getattr(each, "radius", "") != "laplace-literal"], ids=str)
def test_density_integrates_to_one_in_the_plane(noise):
    """Midpoints of small squares; the density of a ball is 0 outside, hence the tolerance."""
    side = np.arange(-12, 12, 0.02) + 0.01
    z = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1)
    assert np.exp(noise.log_density(z)).sum() * 0.02**2 == pytest.approx(1, abs=1e-3)


def test_density_of_the_literal_radius_integrates_to_one():
    """In polar coordinates, where the pole at 0 is integrable."""
    noise = literal(1.5, Lp(2, [1.0, 0.5]), "laplace-literal")
    angle = np.linspace(0, 2 * np.pi, 721)[:-1]
    direction = np.stack([np.cos(angle), np.sin(angle)], axis=-1)

    def ring(r):
        return r * np.exp(noise.log_density(r * direction)).mean() * 2 * np.pi

    assert integrate.quad(ring, 0, 60, limit=200)[0] == pytest.approx(1, abs=1e-6)
    assert noise.log_density(np.zeros(2)) == math.inf


@every_family
@pytest.mark.statistics
def test_sampler_has_the_law_of_its_lengths(noise, d):
    """Kolmogorov-Smirnov at 1e-4 for each family."""
    lengths = noise.norm(noise.sample(np.zeros((20_000, d)), stream(1, "lengths")))
    match noise:
        case GaussianNoise():
            law = stats.chi(d, scale=noise.scale)
        case LaplaceNoise():
            law = stats.expon(scale=noise.scale)
        case BallNoise():
            law = stats.beta(d, 1, scale=noise.radius)
        case NormNoise():
            law = stats.gamma(d if noise.radius == "gamma" else 1, scale=noise.scale)
    assert stats.kstest(lengths, law.cdf).pvalue > 1e-4


@pytest.mark.by_day(
    "GaussianNoise(scale=0.7, shape=None)-1",
    "BallNoise(radius=2.0, d=1)-1",
    "GaussianNoise(scale=0.7, shape=None)-4",
)
@every_family
@pytest.mark.statistics
def test_sampler_has_the_root_mean_square_and_no_mean(noise, d):
    """4.5 standard errors: false alarm below 1e-5 for each number."""
    z = noise.sample(np.zeros((100_000, d)), stream(2, "moments"))
    square = np.square(z).mean(axis=1)
    assert square.mean() == pytest.approx(noise.rms(d) ** 2, abs=4.5 * square.std() / 316)
    assert (np.abs(z.mean(axis=0)) < 4.5 * z.std(axis=0) / 316).all()


@pytest.mark.by_day(
    "GaussianNoise(scale=0.7, shape=None)-1",
    "BallNoise(radius=2.0, d=1)-1",
    "GaussianNoise(scale=0.7, shape=None)-4",
)
@every_family
@pytest.mark.statistics
def test_shift_against_sampled_likelihood_ratios(noise, d):
    """``E (1 - g f(W)/f(W - v))_+`` over W = Z + v; 4.5 standard errors: false alarm below 1e-5 each."""
    rng = stream(3, "shift")
    for length, gamma in [(0.8, 1.0), (0.8, 1.4), (2.5, 1.0), (2.5, 3.0)]:
        v = noise.norm.directions((d,), rng) * length
        z = noise.sample(np.zeros((40_000, d)), rng)
        with np.errstate(over="ignore"):
            gain = np.maximum(1 - gamma * np.exp(noise.log_density(z + v) - noise.log_density(z)), 0)
        found, error = gain.mean(), 4.5 * gain.std() / 200 + 1e-9
        assert found - error <= noise.shift_hockey(length, gamma)
        if is_exact(noise, d):
            assert noise.shift_hockey(length, gamma) <= found + error


@pytest.mark.by_day(
    "LaplaceNoise(scale=1.3)-1",
    "GaussianNoise(scale=0.7, shape=array([2. , 0.5]))-2",
    "BallNoise(radius=2.0, d=2)-2",
)
@every_family
def test_shape_of_the_divergence(noise, d):
    u = np.linspace(0, 30, 301)
    tv = noise.shift_tv(u)
    np.testing.assert_array_equal(tv, noise.shift_hockey(u, 1.0))
    assert (np.diff(tv, 2) <= 1e-12).all()  # concave
    gammas = np.linspace(1, 12, 45)
    table = np.array([noise.shift_hockey(u, gamma) for gamma in gammas])
    assert (np.diff(table, axis=1) >= -1e-13).all()
    assert (np.diff(table, axis=0) <= 1e-13).all()
    assert (np.diff(table, 2, axis=0) >= -1e-12).all()  # convex
    assert ((table >= 0) & (table <= 1)).all()
    assert noise.shift_hockey([0.0, math.inf, math.nan], 1.5).tolist() == [0.0, 1.0, 1.0]
    assert noise.shift_hockey(1e300, 2.0) == pytest.approx(1)
    assert noise.shift_tv(0.0).shape == ()


def test_without_a_dimension_the_bound_of_any_norm_stands_in():
    assert NormNoise(2.0, Lp(2)).shift_tv(1.0) == pytest.approx(math.tanh(0.25))
    assert NormNoise(2.0, Lp(3), d=5).shift_tv(1.0) == pytest.approx(math.tanh(0.25))
    assert NormNoise(2.0, Lp(3), d=1).shift_tv(1.0) == pytest.approx(1 - math.exp(-0.25))
    assert NormNoise(2.0, Lp(2), d=3).shift_tv(1.0) < NormNoise(2.0, Lp(2)).shift_tv(1.0)


def scale_for(noise_of, tv=0.2):
    """Scale at which a shift of length 1 has this total variation."""
    low, high = 1e-3, 1e3
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if noise_of(middle).shift_tv(1.0) > tv else (low, middle)
    return high


@pytest.mark.parametrize(
    ("family", "d", "rms"),
    [
        (partial(BallNoise, d=1), 1, 1.443),
        (GaussianNoise, 1, 1.974),
        (LaplaceNoise, 1, 3.169),
        (lambda scale: NormNoise(scale, Lp(2)), 1, 3.488),
        (partial(BallNoise, d=10), 10, 1.850),
        (GaussianNoise, 10, 1.974),
        (lambda scale: NormNoise(scale, Lp(2), d=10), 10, 2.118),
        (lambda scale: NormNoise(scale, Lp(2)), 10, 8.180),
        (GaussianNoise, 100, 1.974),
        nightly(lambda scale: NormNoise(scale, Lp(2), d=100), 100, 1.988),
        (lambda scale: NormNoise(scale, Lp(2)), 100, 24.8),
    ],
)
def test_root_mean_square_at_mean_shift_one_and_eta_a_tenth(family, d, rms):
    digits = 1 if rms == 24.8 else 3
    assert round(family(scale_for(family)).rms(d), digits) == rms


def test_a_draw_is_added_to_each_vector():
    value = np.arange(6).reshape(3, 2)
    for noise in TWO:
        released = noise.sample(value, stream(0, "draw"))
        np.testing.assert_allclose(released - noise.sample(np.zeros((3, 2)), stream(0, "draw")), value, atol=1e-12)
        assert len(np.unique(released - value)) == 6
        assert noise.sample(value[0], stream(0, "one")).shape == (2,)


def test_the_literal_radius_warns():
    with pytest.warns(UserWarning, match="^laplace-literal is for reproduction: it promises less than its theorem$"):
        NormNoise(1.0, Lp(2), "laplace-literal", 3)


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: GaussianNoise(0.0), "scale must be > 0, got 0"),
        (lambda: GaussianNoise(math.nan), "scale must be finite, got nan"),
        (lambda: LaplaceNoise(-1.0), "scale must be > 0, got -1"),
        (lambda: NormNoise(math.inf, Lp(2)), "scale must be finite, got inf"),
        (lambda: NormNoise(1.0, Lp(2), "gama"), r"unknown radius 'gama' \(did you mean 'gamma'\?\); known: .*"),
        (lambda: NormNoise(1.0, Lp(2, [1.0, 1.0]), d=3), "d must be 2, got 3"),
        (lambda: NormNoise(1.0, Lp(2), d=0), "d must be >= 1, got 0"),
        (lambda: BallNoise(0.0, 2), "radius must be > 0, got 0"),
        (lambda: BallNoise(1.0, 0), "d must be >= 1, got 0"),
        (lambda: LaplaceNoise(1.0).rms(2), "d must be 1, got 2"),
        (lambda: GaussianNoise(1.0, S).rms(3), "d must be 2, got 3"),
        (lambda: LaplaceNoise(1.0).sample(np.zeros(2), stream(0)), r"vectors must have shape \(..., 1\), got \(2,\)"),
        (lambda: BallNoise(1.0, 3).sample(np.zeros(2), stream(0)), r"vectors must have shape \(..., 3\), got \(2,\)"),
        (lambda: GaussianNoise(1.0).sample(np.array(0.0), stream(0)), r"vectors must have shape \(..., d\), got \(\)"),
        (lambda: GaussianNoise(1.0).shift_tv([1.0, -2.0]), "the length of a shift must be >= 0, got -2"),
        (lambda: GaussianNoise(1.0).shift_hockey(1.0, 0.5), "gamma must be >= 1, got 0.5"),
        (lambda: BallNoise(1.0, 1).shift_hockey(1.0, 0.5), "gamma must be >= 1, got 0.5"),
        (lambda: LaplaceNoise(1.0).shift_hockey(1.0, math.inf), "gamma must be finite, got inf"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_bad_noises(make, line):
    with pytest.raises(ValueError, match=f"^{line}$"):
        make()


def test_what_has_no_bound_says_so():
    noise = literal(1.0, Lp(3), "laplace-literal", 4)
    line = "with radius 'laplace-literal' only Euclidean norms of known d have a bound"
    with pytest.raises(NotApplicable, match=f"^{line}$"):
        noise.shift_tv(1.0)
