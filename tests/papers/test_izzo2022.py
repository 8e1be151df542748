"""Izzo et al. 2022: the figures' pieces against enumeration, closed forms and naive twins."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import comb, log, sqrt

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import leakbound as ls
from leakbound.papers import PAPERS
from leakbound.papers.izzo2022 import figure1, figure2, theorem5
from leakbound.papers.lab import Lab
from leakbound.papers.reproduction import Reproduction

# --- Figure 1 ---------------------------------------------------------------------------------------------------------


def releases(n: int) -> tuple[np.ndarray, np.ndarray]:
    """One over the sum of every half of Proposition 9's records, A the last of them; and the halves."""
    root = 1 / sqrt(comb(n, n // 2))
    halves = list(combinations(range(n), n // 2))
    outputs = []
    for half in halves:
        whole = sum(2**i for i in half if i < n - 1)
        outputs.append(1 / (whole - sum(2**i for i in range(n // 2 - 1)) + root if n - 1 in half else whole))
    return np.array(outputs), np.array([[i in half for i in range(n)] for half in halves])


@pytest.mark.parametrize("n", [6, 8, 10])
def test_the_standard_deviation_is_that_of_all_halves(n):
    outputs, _ = releases(n)
    assert figure1.Pairs.of(n, width=0.0).standard_deviation == pytest.approx(outputs.std(), rel=1e-12)
    assert outputs.std() * (1 - 1e-12) <= figure1.Pairs.of(n).standard_deviation <= outputs.std() * (1 + 2.0**-8)


def test_the_printed_numbers_of_eight_records():
    assert figure1.Pairs.of(8, width=0.0).standard_deviation ** 2 == pytest.approx(0.980201, abs=1e-6)
    assert figure1.sensitivity(8) == pytest.approx(8.3525, abs=5e-5)


@pytest.mark.parametrize("n", [6, 8, 10])
def test_the_sensitivity_is_the_largest_change_of_one_record(n):
    outputs, member = releases(n)
    neighbours = (member[:, None] != member[None]).sum(axis=2) == 2
    assert figure1.sensitivity(n) == pytest.approx(np.abs(outputs[:, None] - outputs)[neighbours].max(), rel=1e-12)


def test_the_groups_hold_all_halves_and_are_narrow():
    pairs = figure1.Pairs.of(48)
    assert pairs.n_halves.sum() == comb(47, 23)
    assert pairs.low.min() == 0
    assert (pairs.high >= pairs.low).all()
    assert (pairs.high - pairs.low <= pairs.low / 256).all()
    mean = pairs.chance @ (pairs.low + pairs.high) / 2
    exact = Fraction(23, 47) * (2**47 - 1) - (2**23 - 1)
    assert mean == pytest.approx(float(exact), rel=2e-3)


def test_the_shifts_are_those_of_the_complement():
    outputs, member = releases(8)
    wanted = ls.noise.complement(outputs[:, None], member)
    pairs = figure1.Pairs.of(8, width=0.0)
    assert np.sort(pairs.shifts.values[0]) == pytest.approx(np.sort(wanted.values[0]), rel=1e-12)
    scale, coarser = figure1.least(wanted, 0.1), figure1.least(figure1.Pairs.of(8).shifts, 0.1)
    assert scale * (1 - 1e-6) <= coarser <= scale * 1.01
    assert ls.bounds.exact_eta(outputs, member, ls.noise.LaplaceNoise(coarser)).max() <= 0.1


def test_the_lines_of_figure_1(as_users_run_it):
    found = figure1.scales(36)
    tenth = found[found["eta"] == 0.1].set_index("promise")["scale"]
    assert tenth[figure1.DP] == pytest.approx(figure1.sensitivity(36) / log(1.2 / 0.8), rel=1e-12)
    assert tenth[figure1.MIP] == pytest.approx(3794.56, rel=1e-6)
    assert tenth[figure1.MOMENT] == pytest.approx(1 / log(1 / 0.8), rel=1e-6)
    assert tenth[figure1.COMPLEMENT] < 1e-9


@pytest.mark.slow
def test_figure_1_says_what_is_printed(as_users_run_it):
    outcome = figure1.measure(Lab())
    assert all(outcome.ours[key].value is True for key in ("needs_less_36", "needs_less_later", "constant"))
    assert outcome.ours["exponential"].value == pytest.approx(sqrt(comb(48, 24) / comb(36, 18)), rel=1e-9)
    (ax,) = figure1.draw(outcome.numbers).axes
    assert "eta" in ax.get_xlabel()
    assert "standard deviations" in ax.get_ylabel()
    assert len(ax.lines) == 8


# --- Theorems 3 and 5 -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "p"), [(4, 0.02), (6, 0.02), (6, 0.3)])
def test_eta_of_published_records_is_half_of_p(n, p):
    found = {row["release"]: row["eta"] for row in theorem5.etas(p, n)}
    assert found[theorem5.EXACT] == pytest.approx(p / 2, abs=1e-12)
    assert found["each of them if its coin says so"] == pytest.approx(p / 4, abs=1e-12)  # published with chance p/2
    hit = sum(comb(n // 2 - 1, j) * p**j * (1 - p) ** (n // 2 - 1 - j) / (j + 1) for j in range(n // 2))
    assert found["one of them, drawn at random"] <= p * hit / 2 + 1e-12
    assert found[theorem5.PROOF] >= found[theorem5.EXACT]


def test_the_chances_of_published_sets():
    distribution, member = theorem5.published(0.1, 4)
    assert distribution.sum(axis=1) == pytest.approx(np.ones(6))
    half = member[0]
    for chance, published in zip(distribution[0], theorem5.outputs(4), strict=True):
        size = published.sum()
        wanted = 0.1**size * 0.9 ** (2 - size) if set(np.flatnonzero(published)) <= set(np.flatnonzero(half)) else 0
        assert chance == pytest.approx(wanted, abs=1e-15)


def test_epsilon_is_that_of_randomised_response():
    member = np.array([[True, False], [False, True]])
    assert theorem5.epsilon(np.array([[0.75, 0.25], [0.25, 0.75]]), member) == pytest.approx(log(3))
    assert theorem5.epsilon(*theorem5.published(0.02, 4)) == np.inf


def test_no_question_tells_more_than_the_output():
    found = theorem5.questions(0.02, 4)
    assert found.shape == (2**11,)
    assert found.max() == pytest.approx(0.01, abs=1e-12)
    distribution, member = theorem5.published(0.02, 4)
    number = 0b10110010110
    answer = distribution[:, [number >> o & 1 == 1 for o in range(11)]].sum(axis=1)
    eta = ls.bounds.exact_eta_discrete(np.c_[answer, 1 - answer], member).max()
    assert found[number] == pytest.approx(eta, abs=1e-12)


def test_theorem_5_says_what_is_printed():
    outcome = theorem5.measure(Lab())
    assert outcome.ours["eta"].value == pytest.approx(0.01, abs=1e-12)
    assert outcome.ours["no_dp"].value is True
    assert outcome.ours["post_processing"].value is True
    (ax,) = theorem5.draw(outcome.numbers).axes
    assert "p:" in ax.get_xlabel()
    assert "eta" in ax.get_ylabel()


# --- Figure 2 ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def outer() -> np.ndarray:
    x = np.random.default_rng(5).normal(size=(200, 3)) @ np.linalg.cholesky(figure2.SIGMA).T
    return np.einsum("ni,nj->nij", x, x).reshape(200, 9)


def test_descent_reaches_the_mean(outer):
    path = figure2.descend(outer.mean(axis=0))
    assert path[3] == pytest.approx((1 - 0.8**3) * outer.mean(axis=0))
    assert path[-1] == pytest.approx(outer.mean(axis=0), rel=1e-4)


def test_the_clip_is_the_median_length_of_all_gradients(outer):
    path = figure2.descend(outer.mean(axis=0))
    naive = [np.linalg.norm(2 * (A - row)) for A in path[:-1] for row in outer]
    assert figure2.median_length(outer, path) == pytest.approx(np.median(naive), rel=1e-6)


@pytest.mark.parametrize("divided", [True, False])
def test_dp_sgd_is_its_naive_twin(outer, divided):
    eta, clip, A = 0.2, 2.5, np.zeros(9)
    epsilon = log((1 + 2 * eta) / (1 - 2 * eta))

    def delta(z: float) -> float:
        """Of all steps with noise z clip on the sum: N(0, 1) against N(mu, 1)."""
        mu = 2 * sqrt(figure2.STEPS) / z
        return norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)

    z = brentq(lambda z: delta(z) - figure2.DELTA, 1.0, 1000.0, xtol=1e-10)
    rng = np.random.default_rng(7)
    for _ in range(figure2.STEPS):
        total = np.zeros(9)
        for row in outer:
            gradient = 2 * (A - row)
            total += gradient * min(1, clip / np.linalg.norm(gradient))
        noise = rng.normal(size=9) * z * clip
        A = A - figure2.RATE * (total / len(outer) + noise / (len(outer) if divided else 1))
    found = figure2.private_descent(outer, clip, eta, np.random.default_rng(7), divided)
    assert found == pytest.approx(A, rel=1e-6)


def test_the_moments_are_those_of_halves_of_all_records(outer):
    found = figure2.mip_noises(outer, np.random.default_rng(3))
    noise = found["M = 2, Gamma"][figure2.ETAS.index(0.1)]
    assert noise.scale == pytest.approx(61.6**2)
    sigma = (9 * np.array(noise.norm.weights)) ** -0.5
    wanted = outer.std(axis=0, ddof=1) / sqrt(len(outer))  # of the mean of half of a finite population
    assert sigma == pytest.approx(wanted, rel=0.25)  # 128 halves: four standard errors of 6 %
    assert {noise.radius for noise in found["M = 4"]} == {"laplace-literal"}


@pytest.fixture
def few_etas(monkeypatch) -> tuple[float, ...]:
    """The smallest eta, the largest and two between; the others are calculated in the same way."""
    monkeypatch.setattr(figure2, "ETAS", (*figure2.ETAS[:-1:5], figure2.ETAS[-1]))
    return figure2.ETAS


@pytest.mark.slow
def test_our_noise_keeps_eta_and_no_less_does(outer, few_etas, as_users_run_it):
    shrunk = (1 - 0.8**figure2.STEPS) * outer
    lengths = np.linalg.norm(shrunk[:, None] - shrunk, axis=2) / 100

    def bound(scale: float) -> float:
        """Of eta, for the record that needs the most: its swap with each of the 199 others."""
        return (2 * norm.cdf(lengths / scale / 2) - 1).sum(axis=1).max() / 199 / 2

    found = figure2.our_noises(outer, seed=0)
    for eta, worst, average in zip(few_etas, found["ours, worst record"], found["ours, average record"], strict=True):
        assert bound(worst.scale) <= eta < bound(0.999 * worst.scale)
        assert average.scale < worst.scale


def test_errors_of_a_matrix_and_of_what_it_generates():
    assert figure2.errors(figure2.SIGMA.reshape(1, 9)) == pytest.approx([0, 1, 0], abs=1e-12)
    half, size = figure2.SIGMA.ravel() / 2, np.linalg.norm(figure2.SIGMA)
    assert figure2.errors(half[None]) == pytest.approx([0.5, 0, 0.5], abs=1e-12)
    crooked = np.diag([2.0, -1.0, 0.0]) + np.array([[0, 1.0, 0], [-1.0, 0, 0], [0, 0, 0]])
    kept = np.diag([2.0, 0.0, 0.0])
    wanted = [np.linalg.norm(each - figure2.SIGMA) / size for each in (crooked, 2 * kept, kept)]
    assert figure2.errors(crooked.reshape(1, 9)) == pytest.approx(wanted)


def test_where_an_error_falls_below_one():
    assert figure2.crossing((np.array(figure2.ETAS) / 0.23) ** -1.5) == pytest.approx(0.23)


def made_up(*, dp: float) -> dict[str, np.ndarray]:
    """Errors of two runs: those of membership privacy fall below 1 at .05 (M = 6), .1 and .2."""
    eta = np.array(figure2.ETAS)
    curves = {"M = 2": (eta / 0.2) ** -2, "M = 4": (eta / 0.1) ** -1.5, "M = 6": (eta / 0.05) ** -1.3}
    curves["DP-SGD"] = np.full(len(eta), dp)
    curves["DP-SGD, noise not divided by k"] = np.full(len(eta), 5000.0)
    return {name: np.repeat(np.stack([curve] * 2)[..., None], 3, axis=2) for name, curve in curves.items()}


def test_claims_of_made_up_errors():
    good, bad = figure2.claims(made_up(dp=50.0)), figure2.claims(made_up(dp=0.5))
    assert [good[f"beats_dp_{M}_from_0.1"].value for M in (2, 4, 6)] == [True] * 3
    assert [good[f"beats_dp_{M}_everywhere"].value for M in (4, 6)] == [True, True]
    assert [bad[f"beats_dp_{M}_from_0.1"].value for M in (2, 4, 6)] == [False, False, True]
    assert [bad[f"beats_dp_{M}_everywhere"].value for M in (4, 6)] == [False, False]
    assert (good["dp_above_1"].value, bad["dp_above_1"].value) == (50.0, 0.5)
    assert good["mip_below_1"].value == pytest.approx(0.05)
    tried = figure2.claims(made_up(dp=0.5), figure2.DP["undivided"])
    assert all(tried[key].value is True for key in tried if key.startswith("beats_dp"))
    assert tried["dp_above_1"].value == 5000.0
    assert tried["mip_below_1"] == bad["mip_below_1"]


@pytest.mark.nightly
@pytest.mark.parametrize(("rate", "steps", "delta"), list(product([0.05, 0.2], [25, 100], [1e-5, 1e-8])))
def test_what_explains_the_baseline_does_so_at_other_rates_steps_and_deltas(monkeypatch, rate, steps, delta):
    """They are not printed: all that the text says of the baseline holds with each combination, in each run.

    Of two runs no standard error is worth much: instead the baseline's error is five times as large in both of them.
    """
    monkeypatch.setattr(figure2, "RATE", rate)
    monkeypatch.setattr(figure2, "STEPS", steps)
    monkeypatch.setattr(figure2, "DELTA", delta)
    monkeypatch.setattr(figure2, "ETAS", figure2.ETAS[::3])
    monkeypatch.setattr(figure2, "our_noises", lambda *_: {})
    runs = [figure2.run(500_000, number, 0) for number in range(2)]
    later = np.array(figure2.ETAS) >= 0.1
    for run in runs:
        of_A = {name: values[..., 0] for name, values in run.items()}
        baseline = of_A[figure2.DP["undivided"]]
        assert all((baseline[later] > 5 * of_A[f"M = {M}"][later]).all() for M in (2, 4, 6))
        assert all((baseline > 5 * of_A[f"M = {M}"]).all() for M in (4, 6))
        assert baseline.min() > 5  # the error is relative: 1 is that of no release at all


@pytest.mark.parametrize(
    ("lab", "n", "verdicts"),
    [
        (Lab(), 500_000, {"agrees", "differs", "cannot tell"}),
        (Lab(quick=True), 20_000, {"smaller"}),
        (Lab(quick=True, set={"n": 1000}), 1000, set()),
    ],
)
def test_a_quick_run_of_figure_2_has_fewer_records_and_says_so(monkeypatch, lab, n, verdicts):
    """Fewer records than the paper's change the noise of Corollary 8, so that no claim has a verdict."""
    methods = [*figure2.DP.values(), *(f"M = {M}" for M in figure2.MOMENTS)]
    falling = np.geomspace(2, 0.1, len(figure2.ETAS))[:, None] * np.ones(3)
    asked = []

    def repeat(self, task, arguments, what, name=""):
        asked.extend(arguments)
        return [dict.fromkeys(methods, falling * (1 + number / 100)) for number in range(len(arguments))]

    monkeypatch.setattr(Lab, "repeat", repeat)
    found = Reproduction(PAPERS["izzo2022/figure2"], lab, figure2.measure(lab))
    assert {each[0] for each in asked} == {n}
    assert {claim.verdict for claim in found.claims} <= verdicts
    assert bool(found.claims) == bool(verdicts)


@pytest.mark.slow
def test_a_small_run_is_the_same_twice_and_can_be_drawn(few_etas, as_users_run_it):
    one, other = figure2.run(200, 0, 0), figure2.run(200, 1, 0)
    again = figure2.run(200, 0, 0)
    assert all((one[name] == again[name]).all() for name in one)
    assert not (one["raw"] == other["raw"]).any()
    assert {values.shape for values in one.values()} == {(len(few_etas), 3)}
    numbers = figure2.table({name: np.stack([one[name], other[name]]) for name in one})
    assert len(numbers) == len(one) * len(few_etas) * 3
    left, right, legend, *zooms = figure2.draw(numbers).axes
    assert all("eta" in ax.get_xlabel() and "Sigma" in ax.get_ylabel() for ax in (left, right, *zooms))
    assert [ax.get_yscale() for ax in zooms] == ["linear"] * 3
    assert len(legend.get_legend().texts) == len(left.get_legend_handles_labels()[0])
    assert {line.get_label() for line in left.lines} >= {"raw", "DP-SGD", "M = 6", "ours, worst record"}
