import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from leakbound.bounds import quadrature
from leakbound.bounds.exact import (
    bayes_attacker,
    deterministic,
    exact_eta,
    exact_eta_discrete,
    exact_tradeoff,
    pmp_discrete,
    subsets,
)
from leakbound.core.seeds import stream
from leakbound.noise import BallNoise, GaussianNoise, LaplaceNoise, Lp, NormNoise
from tests.marks import nightly


def means(values, k):
    member = subsets(len(values), k)
    return member @ np.asarray(values, dtype=float) / k, member


def naive_eta(outputs, member, weights, density, record):
    """Adaptive integration of the larger of the two mixtures, between the outputs."""
    inside = member[:, record]
    prior = weights[inside].sum()

    def larger(z):
        each = weights * density(z - outputs)
        return max(each[inside].sum(), each[~inside].sum())

    cuts = np.concatenate([[outputs.min() - 60], np.unique(outputs), [outputs.max() + 60]])
    pieces = [integrate.quad(larger, a, b, limit=400, epsabs=1e-13)[0] for a, b in pairwise(cuts)]
    return sum(pieces) - max(prior, 1 - prior)


@pytest.mark.parametrize(
    ("noise", "eta"),
    [
        (LaplaceNoise(1.0), [0.188796355621, 0.120160455592, 0.150225144504, 0.355954904306]),
        (LaplaceNoise(2.0), [0.137895897152, 0.087219947062, 0.054566525960, 0.242132804222]),
        (GaussianNoise(1.0), [0.202917702018, 0.122265982878, 0.152434440017, 0.385166133767]),
        (GaussianNoise(2.0), [0.152516729047, 0.093953592862, 0.028921718791, 0.249963240162]),
    ],
)
def test_the_mean_of_two_of_four_records(noise, eta):
    outputs, member = means([0, 1, 3, 7], 2)
    np.testing.assert_allclose(exact_eta(outputs, member, noise), eta, rtol=0, atol=6e-13)


def test_the_mean_of_three_of_five_records():
    outputs, member = means([0, 1, 3, 7, 8], 3)
    found = exact_eta(outputs, member, LaplaceNoise(1.0))
    expected = [0.09184092568, 0.0470062091508, 0.0167941910403, 0.0559711342482, 0.108175500232]
    np.testing.assert_allclose(found, expected, rtol=0, atol=6e-13)


@pytest.mark.parametrize(
    ("noise", "eta"), [(LaplaceNoise(3.0), (1 - math.exp(-1 / 3)) / 2), (GaussianNoise(3.0), 0.13055866)]
)
def test_a_statistic_that_tells_one_membership(noise, eta):
    member = subsets(4, 2)
    found = exact_eta(np.where(member[:, 2], 1.0, -1.0), member, noise)
    assert found[2] == pytest.approx(eta, abs=5e-9)
    assert eta == pytest.approx({LaplaceNoise: 0.1417343447, GaussianNoise: 0.13055866}[type(noise)], abs=5e-9)
    assert (found[[0, 1, 3]] < found[2]).all()


@pytest.mark.parametrize("case", range(6))
def test_one_dimension_is_its_naive_twin(case):
    rng = stream(0, "naive twin", case)
    n, k = 5, 1 + case % 4
    member = subsets(n, k)
    weights = rng.random(len(member))
    weights /= weights.sum()
    outputs = (rng.standard_cauchy(len(member)) if case % 2 else rng.normal(size=len(member))).round(case)
    scale = 0.3 + case / 5
    gaussian = exact_eta(outputs, member, GaussianNoise(scale), weights)
    laplace = exact_eta(outputs, member, LaplaceNoise(scale), weights)
    for record in range(0, n, 2):
        normal = naive_eta(
            outputs,
            member,
            weights,
            lambda z: np.exp(-((z / scale) ** 2) / 2) / (scale * math.sqrt(2 * math.pi)),
            record,
        )
        double = naive_eta(outputs, member, weights, lambda z: np.exp(-np.abs(z) / scale) / (2 * scale), record)
        assert gaussian[record] == pytest.approx(normal, abs=2e-8)
        assert laplace[record] == pytest.approx(double, abs=2e-8)


def test_a_density_with_jumps_is_integrated_too():
    # uniform noise on [-r, r]: the mixtures are step functions
    outputs, member = means([0, 1, 3, 7], 2)
    radius = 1.5
    cuts = np.unique(np.concatenate([outputs - radius, outputs + radius]))
    middle = (cuts[1:] + cuts[:-1]) / 2
    level = (np.abs(middle[:, None] - outputs) <= radius) / (2 * radius * len(outputs))
    for record in range(4):
        inside = member[:, record]
        larger = np.maximum(level[:, inside].sum(axis=1), level[:, ~inside].sum(axis=1))
        found = exact_eta(outputs, member, BallNoise(radius, 1))[record]
        assert found == pytest.approx(larger @ np.diff(cuts) - 0.5, abs=1e-12)


def test_outputs_far_apart_are_all_seen():
    member = subsets(6, 3)
    outputs = 1e4 * np.arange(len(member)) ** 2
    np.testing.assert_allclose(exact_eta(outputs, member, GaussianNoise(1.0)), 0.5, atol=1e-12)
    np.testing.assert_allclose(exact_eta(1e-9 * outputs, member, GaussianNoise(1e3)), 0.0, atol=1e-5)


@pytest.mark.parametrize("noise", [LaplaceNoise, GaussianNoise])
def test_scale_shift_and_sign_change_nothing(noise):
    outputs, member = means([0.3, -1.2, 2.0, 0.9, 5.5], 2)
    eta = exact_eta(outputs, member, noise(0.7))
    np.testing.assert_allclose(exact_eta(-1e3 * outputs + 4e3, member, noise(700.0)), eta, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("angle", "flat", "noise"),
    [
        (0.0, GaussianNoise(1.0), GaussianNoise(1.0)),
        (0.4, GaussianNoise(1.0), GaussianNoise(1.0)),
        nightly(math.pi / 2, NormNoise(1.0, Lp(1)), LaplaceNoise(1.0)),
    ],
)
def test_a_line_in_the_plane_is_one_dimension(angle, flat, noise):
    outputs, member = means([0, 1, 3, 7], 2)
    turned = outputs[:, None] * [math.cos(angle), math.sin(angle)]
    np.testing.assert_allclose(exact_eta(turned, member, flat), exact_eta(outputs, member, noise), rtol=0, atol=1e-6)


@pytest.mark.parametrize("noise", [GaussianNoise(0.6), nightly(NormNoise(0.3, Lp(2))), nightly(NormNoise(0.4, Lp(1)))])
def test_the_plane_is_its_naive_twin(noise):
    # a midpoint grid: an error of about its step squared
    member = subsets(4, 2)
    outputs = member @ stream(0, "plane").normal(size=(4, 2))
    axis = (np.arange(700) + 0.5) / 700 * 24 - 12
    inside, outside = np.zeros((4, 700, 700)), np.zeros((4, 700, 700))
    for output, row in zip(outputs, member, strict=True):
        level = np.exp(noise.log_density(np.stack(np.meshgrid(*(axis - o for o in output)), axis=-1))) / len(member)
        inside[row] += level
        outside[~row] += level
    naive = np.maximum(inside, outside).sum(axis=(1, 2)) * (24 / 700) ** 2 - 0.5
    np.testing.assert_allclose(exact_eta(outputs, member, noise), naive, rtol=0, atol=1e-4)


def test_noise_in_the_plane_that_is_too_rough_is_refused(monkeypatch):
    monkeypatch.setattr(quadrature, "MOST_CELLS", 5_000)  # the same with 60,000, in a quarter of a minute
    member = subsets(4, 2)
    with pytest.raises(ValueError, match=r"^5,000 cells leave an error of .*; wanted 1e-06$"):
        exact_eta(member @ stream(0, "plane").normal(size=(4, 2)), member, BallNoise(0.7, 2))


# -- without noise, and algorithms with finitely many outputs --


def modular_sum(n):
    """The records 0 ... 2n - 1 and the sum of n of them modulo 2n (lowy2024, Proposition 5)."""
    member = subsets(2 * n, n)
    return member @ np.arange(2 * n) % (2 * n), member


@pytest.mark.parametrize(
    ("n", "epsilon", "eta"),
    [
        (3, math.log(2), 0.1),
        (4, math.log(5 / 4), 1 / 70),
        (5, 0.1541506798, 0.0238095),
        (6, math.log(38 / 37), 0.0021645),
        (7, 0.0244910200, 0.0058275),
    ],
)
def test_the_modular_sum(n, epsilon, eta):
    outputs, member = modular_sum(n)
    assert pmp_discrete(deterministic(outputs), member) == pytest.approx(epsilon, abs=5e-11)
    assert exact_eta(outputs, member).max() == pytest.approx(eta, abs=5e-8)


def test_the_modular_sum_of_repeated_records_may_prove_membership():
    member = subsets(6, 3)
    outputs = member @ np.array([0, 0, 0, 0, 0, 1]) % 6
    assert pmp_discrete(deterministic(outputs), member) == math.inf
    assert exact_eta(outputs, member)[-1] == 0.5


@pytest.mark.parametrize("p", [0.01, 0.3, 1.0])
def test_publishing_everything_with_probability_p_has_eta_half_p(p):
    # izzo2022, Theorem 5: eta-MIP without differential privacy
    member = subsets(6, 3)
    published = np.column_stack([np.full(20, 1 - p), p * np.eye(20)])
    np.testing.assert_allclose(exact_eta_discrete(published, member), p / 2, rtol=0, atol=1e-15)
    assert pmp_discrete(published, member) == math.inf


@pytest.mark.parametrize("p", [0.01, 0.3])
def test_publishing_each_record_with_probability_p_has_eta_half_p(p):
    # the same by independent coins: an output is the set of published records
    member, shown = subsets(6, 3), subsets(6)
    possible = (shown[None] <= member[:, None]).all(axis=2)
    probability = possible * p ** shown.sum(axis=1) * (1 - p) ** (3 - shown.sum(axis=1).clip(max=3))
    seen = exact_eta_discrete(probability, member)
    # a published record is certain; unpublished ones become less likely with every other record that is published
    assert (seen >= p / 2 - 1e-15).all()
    assert np.ptp(seen) < 1e-15


def test_both_directions_of_membership_privacy_count():
    # lowy2024, Proposition 9 as printed has the first direction alone
    member = subsets(4, 2)
    first = np.where(member[:, 0], 0.001, 0.5)
    probability = np.column_stack([first, 1 - first])
    one_sided = max(
        math.log(probability[row, o].mean() / probability[~row, o].mean()) for row in member.T for o in range(2)
    )
    assert one_sided == pytest.approx(0.692146680, abs=5e-10)
    assert pmp_discrete(probability, member) == pytest.approx(6.214608098, abs=5e-10)


def test_one_over_the_sum_of_powers_of_two():
    # izzo2022, Proposition 9: a small variance beside a large sensitivity
    n, k = 8, 4
    p = 1 / math.comb(n, k)
    values = np.append(2.0 ** np.arange(n - 1), math.sqrt(p) - 7)
    member = subsets(n, k)
    outputs = 1 / (member @ values)
    neighbours = (member[:, None] != member[None]).sum(axis=2) == 2
    apart = np.abs(outputs[:, None] - outputs)
    assert outputs.var() == pytest.approx(0.980201, abs=5e-7)
    assert apart[neighbours].max() == pytest.approx(8.3525, abs=5e-5)
    assert np.ptp(outputs) == pytest.approx(8.3583, abs=5e-5)
    np.testing.assert_allclose(exact_eta(outputs, member), 0.5, atol=1e-15)
    mean_deviation = np.abs(outputs - outputs.mean()).mean()
    scale = mean_deviation / math.log(1 / (1 - 2 * 0.1))  # Laplace noise that gives eta <= 0.1 from this moment alone
    assert exact_eta(outputs, member, LaplaceNoise(scale)).max() <= 0.1


def test_sizes_other_than_half_and_records_that_are_always_in():
    member = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 0], [1, 0, 0], [1, 0, 0]], dtype=bool)
    outputs = np.array([5.0, 5.0, 5.0, 1.0, 1.0])
    np.testing.assert_allclose(exact_eta(outputs, member), [0, 4 / 5 - 3 / 5, 0], atol=1e-15)
    np.testing.assert_allclose(exact_eta(outputs, member, GaussianNoise(1.0))[[0, 2]], 0, atol=1e-13)


def test_weights_are_repetitions():
    member, times = subsets(5, 2), np.arange(10) % 3
    outputs = member @ [1, 1, 2, 3, 5]
    for noise in (None, LaplaceNoise(1.0)):
        repeated = exact_eta(np.repeat(outputs, times), np.repeat(member, times, axis=0), noise)
        np.testing.assert_allclose(exact_eta(outputs, member, noise, times), repeated, rtol=0, atol=1e-12)


@st.composite
def discrete_games(draw):
    n = draw(st.integers(2, 5))
    member = subsets(n, draw(st.integers(1, n - 1)))
    counts = draw(
        st.lists(st.lists(st.integers(0, 6), min_size=4, max_size=4), min_size=len(member), max_size=len(member))
    )
    table = np.array(counts, dtype=float)
    table[table.sum(axis=1) == 0] = 1
    return table / table.sum(axis=1, keepdims=True), member


@settings(max_examples=30)
@given(discrete_games())
def test_laws_of_algorithms_with_finitely_many_outputs(game):
    probability, member = game
    prior = member[:, 0].mean()
    guess = max(prior, 1 - prior)
    eta = exact_eta_discrete(probability, member)
    assert (eta >= 0).all()
    assert (eta <= 1 - guess).all()
    curves = [exact_tradeoff(probability, member, i) for i in range(member.shape[1])]
    # the trade-off at the prior is eta, and its pure epsilon is that of membership privacy
    np.testing.assert_allclose([curve.accuracy(prior) - guess for curve in curves], eta, atol=1e-12)
    epsilon = pmp_discrete(probability, member)
    enough, too_little = (epsilon, 0.99 * epsilon) if epsilon < math.inf else (800.0, 50.0)
    assert max(curve.delta(enough) for curve in curves) < (1e-12 if epsilon < math.inf else 1.1)
    assert epsilon == 0 or max(curve.delta(too_little) for curve in curves) > 1e-9
    # what is computed from the release reveals at most as much
    merged = np.column_stack([probability[:, :2].sum(axis=1), probability[:, 2:]])
    assert (exact_eta_discrete(merged, member) <= eta + 1e-15).all()
    assert pmp_discrete(merged, member) <= epsilon + 1e-12
    # epsilon-PMP gives eta <= tanh(epsilon/2)/2 at even odds (lowy2024, Lemma 6)
    if prior == 0.5:
        assert (eta <= math.tanh(epsilon / 2) / 2 + 1e-15).all()


@pytest.mark.slow
@given(st.lists(st.integers(-4, 4), min_size=3, max_size=6), st.integers(1, 2))
def test_noise_reveals_less(values, k):
    outputs, member = means(values, k)
    bare = exact_eta(outputs, member)
    assert (exact_eta(outputs, member, LaplaceNoise(0.5)) <= bare + 1e-12).all()
    np.testing.assert_allclose(exact_eta_discrete(deterministic(outputs), member), bare, atol=1e-15)


def test_a_curve_has_the_likelihood_ratio_tests_as_corners():
    probability = [[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]]
    curve = exact_tradeoff(probability, [[1], [0]], 0)
    assert [float(curve.fnr(a)) for a in (0.0, 0.25, 0.5)] == [1.0, 0.5, 0.0]


# -- the attacker --


def test_the_attacker_plays_as_well_as_eta_says():
    """Share of right guesses in 20,000 simulated games; false alarm below 1e-5 (4.5 standard deviations)."""
    rng = stream(0, "bayes attacker")
    outputs, member = means([0, 1, 3, 7], 2)
    attacker = bayes_attacker(outputs, member, 3, GaussianNoise(1.0))
    drawn = rng.integers(len(member), size=20_000)
    release = outputs[drawn] + rng.normal(size=20_000)
    right = (attacker.posterior(release) > 0.5) == member[drawn, 3]
    assert attacker.accuracy == pytest.approx(0.885166133767, abs=6e-13)
    assert abs(right.mean() - attacker.accuracy) < 4.5 * math.sqrt(0.25 / 20_000)


def test_the_posterior_is_that_of_bayes():
    outputs, member = means([0, 1, 3, 7], 2)
    z = np.array([-3.0, 1.1, 400.0])
    likelihood = np.exp(-np.abs(z[:2, None] - outputs))
    naive = likelihood[:, member[:, 1]].sum(axis=1) / likelihood.sum(axis=1)
    posterior = bayes_attacker(outputs, member, 1, LaplaceNoise(1.0)).posterior(z)
    np.testing.assert_allclose(posterior[:2], naive, rtol=1e-13)
    assert np.isfinite(posterior).all()  # 400 scales away


def test_the_posterior_of_a_release_of_many_numbers():
    member = subsets(4, 2)
    outputs = member @ np.eye(4)
    attacker = bayes_attacker(outputs, member, 0)
    assert attacker.posterior([[1, 1, 0, 0], [0, 0, 1, 1]]).tolist() == [1.0, 0.0]
    assert attacker.accuracy == 1.0
    noisy = bayes_attacker(outputs, member, 0, GaussianNoise(1.0))
    assert 0.5 < float(noisy.posterior([1, 0, 0, 0])[0]) < 1
    with pytest.raises(
        ValueError, match=r"^the integral over the noise is done for releases of 1 or 2 numbers, got 4$"
    ):
        _ = noisy.accuracy


def test_subsets_are_all_and_different():
    member = subsets(7, 3)
    assert len(np.unique(member, axis=0)) == 35
    assert (member.sum(axis=1) == 3).all()
    assert len(np.unique(subsets(5), axis=0)) == 32
    assert subsets(3, 0).tolist() == [[False, False, False]]


# -- bad input --

TWO = [[True, False], [False, True]]


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: subsets(24, 12), "24 records have 2,704,156 such subsets; the limit is 200,000"),
        (lambda: subsets(18), "18 records have 262,144 such subsets; the limit is 200,000"),
        (lambda: subsets(3, 4), "k must be <= n = 3, got 4"),
        (lambda: subsets(0, 0), "n must be >= 1, got 0"),
        (lambda: exact_eta([1.0], TWO), "outputs must have shape (2, d), a row a subset; got (1,)"),
        (lambda: exact_eta([1.0, math.nan], TWO), "outputs must be finite"),
        (lambda: exact_eta([1.0, math.inf], TWO), "outputs must be finite"),
        (lambda: exact_eta([], []), "member must have shape (n_subsets, n), at least (1, 1); got (0,)"),
        (lambda: exact_eta([1.0, 2.0], [[0.5], [1]]), "member must be true or false everywhere"),
        (
            lambda: exact_eta([1.0, 2.0], TWO, None, [1, 2, 3]),
            "weights must have shape (2,), one a subset; got (3,)",
        ),
        (lambda: exact_eta([1.0, 2.0], TWO, None, [1, -2]), "weights must be finite, >= 0 and not all 0"),
        (
            lambda: exact_eta(np.zeros((2, 3)), TWO, GaussianNoise(1.0)),
            "the integral over the noise is done for releases of 1 or 2 numbers, got 3",
        ),
        (
            lambda: exact_eta(np.arange(20_001.0), np.ones((20_001, 1)), GaussianNoise(1.0)),
            "20,001 distinct outputs with noise; the limit is 20,000",
        ),
        (
            lambda: exact_eta_discrete([[0.5, 0.5]], TWO),
            "probability must have shape (2, n_outputs), a row a subset; got (1, 2)",
        ),
        (
            lambda: exact_eta_discrete([[0.5, 0.6], [1, 0]], TWO),
            "each row of probability must be >= 0 and sum to 1",
        ),
        (
            lambda: exact_eta_discrete([[math.nan, 1], [1, 0]], TWO),
            "each row of probability must be >= 0 and sum to 1",
        ),
        (
            lambda: pmp_discrete(np.eye(2), [[1, 0], [1, 1]]),
            "record 0 is in all subsets: it has no distribution of the other kind",
        ),
        (
            lambda: exact_tradeoff(np.eye(2), [[1, 0], [0, 0]], 1),
            "record 1 is in no subset: it has no distribution of the other kind",
        ),
        (lambda: exact_tradeoff(np.eye(2), TWO, 2), "record must be < 2, the number of records; got 2"),
        (
            lambda: bayes_attacker([1.0, 2.0], TWO, 0).posterior([1.5]),
            "release 0 is impossible: no subset gives [1.5]",
        ),
        (lambda: bayes_attacker([1.0, 2.0], TWO, 0).posterior([[1.0, 2.0]]), "a release has 1 numbers, got 2"),
    ],
)
def test_bad_input_is_one_line(call, line):
    with pytest.raises(ValueError) as refused:
        call()
    assert str(refused.value) == line


class Cauchy:
    def log_density(self, z):
        return -np.log(np.pi * (1 + z[..., 0] ** 2))

    def rms(self, d):
        return 1.0


class Unnormalised:
    def log_density(self, z):
        return -np.abs(z[..., 0])

    def rms(self, d):
        return 1.0


def test_densities_that_are_none_are_refused():
    with pytest.raises(ValueError, match=r"^the density of the noise falls too slowly: e\^-[0-9.]+ at [0-9.e+]+$"):
        exact_eta([1.0, 2.0], TWO, Cauchy())
    with pytest.raises(ValueError, match=r"^the density of the noise integrates to 2, not to 1$"):
        exact_eta([1.0, 2.0], TWO, Unnormalised())
