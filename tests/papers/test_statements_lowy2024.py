"""Lowy et al. 2024: statements of the text that no experiment and no other test holds, most of them at n = 6."""

from __future__ import annotations

import io
from collections import Counter
from itertools import combinations, pairwise, product
from math import comb, exp, log

import numpy as np
import pandas as pd
import pytest
from docs import gallery
from scipy.stats import kstest, norm

import leakbound as ls
from leakbound.bounds.exact import deterministic
from leakbound.papers.lowy2024 import (
    clipped_mean,
    figure1,
    figure2,
    figure3,
    figure4,
    figure5,
    figure6,
    geometric_median,
)
from leakbound.papers.lowy2024.ratios import EXACT, NOMINAL, PROMISE
from tests.papers.asked import first_task

N = 6  # records in use, of 12
MEMBER = ls.bounds.subsets(2 * N, N)


def adjacent(member: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of data sets that differ in one record."""
    shared = member.astype(np.float32) @ member.T.astype(np.float32)
    first, second = np.nonzero(shared == member[0].sum() - 1)
    return first, second


NEIGHBOURS = adjacent(MEMBER)


def random_mechanism(seed: int, n_outputs: int = 4, member: np.ndarray = MEMBER) -> np.ndarray:
    """Chances of the outputs for each data set; the first record is told from the others by most of them."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(len(member), n_outputs)) + member @ rng.normal(size=(member.shape[1], n_outputs))
    logits += 2 * np.outer(member[:, 0], rng.normal(size=n_outputs))
    weight = np.exp(rng.choice([0.1, 0.5, 1.0]) * logits)
    return weight / weight.sum(axis=1, keepdims=True)


def conditional(chances: np.ndarray, record: int, member: np.ndarray = MEMBER) -> tuple[np.ndarray, np.ndarray]:
    """Distributions of the output with the record in D, and without it."""
    inside = member[:, record]
    return chances[inside].mean(axis=0), chances[~inside].mean(axis=0)


def stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """Hockey-stick divergence of two discrete distributions."""
    return float(np.maximum(p - exp(epsilon) * q, 0).sum(axis=-1).max())


def pmp_delta(chances: np.ndarray, epsilon: float, member: np.ndarray = MEMBER) -> float:
    """Delta of practical membership privacy, by Definition 2 and the worst event."""
    pairs = [conditional(chances, record, member) for record in range(member.shape[1])]
    return max(max(stick(p, q, epsilon), stick(q, p, epsilon)) for p, q in pairs)


def dp_delta(chances: np.ndarray, epsilon: float) -> float:
    """Delta of differential privacy among the halves."""
    first, second = NEIGHBOURS
    return stick(chances[first], chances[second], epsilon)


def events(n_outputs: int) -> np.ndarray:
    """All sets of outputs, a row each."""
    return np.array(list(product([0, 1], repeat=n_outputs)))


# --- The definitions and their equivalents ----------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
def test_lemma_11_both_sticks_are_the_largest_over_all_events(epsilon):
    """Definition 2 is about events; the hockey sticks, which the curve of leakbound gives, are the worst of them."""
    for seed in range(3):
        chances = random_mechanism(seed)
        for record in range(3):
            p, q = conditional(chances, record)
            excess = events(4) @ np.array([p - exp(epsilon) * q, q - exp(epsilon) * p]).T
            curve = ls.bounds.exact_tradeoff(chances, MEMBER, record)
            assert curve.hockey_sticks(epsilon) == pytest.approx(excess.max(axis=0), abs=1e-12)
            assert curve.delta(epsilon) == pytest.approx(excess.max(), abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_lemma_3_prints_the_parent_set_for_the_data_set(n):
    """It has "x in X" in X_in and "x not in X" in X_out: the sets are not halves of all. With D for X, as in Lemma 15,
    each has N = C(2n, n)/2 sets.
    """
    parent, x = range(2 * n), 0
    drawn = list(combinations(parent, n))
    as_printed = [D for D in drawn if x in parent], [D for D in drawn if x not in parent]
    meant = [D for D in drawn if x in D], [D for D in drawn if x not in D]
    assert [len(sets) for sets in as_printed] == [comb(2 * n, n), 0]
    assert [len(sets) for sets in meant] == [comb(2 * n, n) / 2] * 2
    member = ls.bounds.subsets(2 * n, n)
    assert [int(member[:, x].sum()), int((~member[:, x]).sum())] == [len(sets) for sets in meant]


def test_at_n_1_without_delta_pmp_is_dp():
    """The sentence before Corollary 4: the same epsilon, which is that of local differential privacy.

    Five possible records, four outputs; the parent set is any two of them.
    """
    pair = ls.bounds.subsets(2, 1)
    for seed in range(20):
        chances = np.random.default_rng(seed).dirichlet(np.full(4, 0.7), 5) * 0.99 + 0.0025
        by_dp = max(np.log(chances[one] / chances[other]).max() for one, other in product(range(5), repeat=2))
        by_pmp = max(ls.bounds.pmp_discrete(chances[list(parent)], pair) for parent in combinations(range(5), 2))
        assert by_pmp == pytest.approx(by_dp)


def test_lemma_15_first_part_for_one_event():
    """From (1) with delta follows (2) with 2 delta, for every pair of chances of an event; nearly all of it is needed
    where both chances are near 1.
    """
    chance = np.linspace(0.001, 1, 200)
    inside, outside = np.meshgrid(chance, chance)
    posterior = inside / (inside + outside)
    for epsilon in (0.0, 0.1, 1.0):
        one, two = posterior - exp(epsilon) * (1 - posterior), (1 - posterior) - exp(epsilon) * posterior
        delta = np.maximum(np.maximum(one, two), 0)  # the least with (1)
        needed = np.maximum(np.maximum(inside - exp(epsilon) * outside, outside - exp(epsilon) * inside), 0)
        assert (needed <= 2 * delta + 1e-12).all()
    one, two = 0.999, 0.998  # at epsilon = 0
    needed, delta = one - two, (one - two) / (one + two)
    assert needed > 1.99 * delta


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
def test_lemma_15_with_every_event_needs_no_factor_2(epsilon):
    """If (1) holds with delta for every event, so does (2) with delta: erratum 5. At n = 6."""
    for seed in range(6):
        chances, largest = random_mechanism(seed), 0.0
        for record in range(2 * N):
            p, q = (events(4)[1:] @ each for each in conditional(chances, record))
            posterior = p / (p + q)  # the event that nothing is released is left out
            odds = posterior - exp(epsilon) * (1 - posterior), (1 - posterior) - exp(epsilon) * posterior
            largest = max(largest, odds[0].max(), odds[1].max())
        curves = [ls.bounds.exact_tradeoff(chances, MEMBER, record) for record in range(2 * N)]
        assert max(curve.delta(epsilon) for curve in curves) <= largest + 1e-12


@pytest.mark.parametrize("delta", [1e-3, 0.1])
def test_lemma_15_second_part_is_false(delta):
    """(2), which has 2 delta, does not give (3), which has delta: the averages in (3) are the chances in (2)."""
    truth = (1 - 2 * delta) / (1 + exp(1.0))
    inside, outside = [2 * delta, truth * exp(1.0), truth, 0.0], [0.0, truth, truth * exp(1.0), 2 * delta]
    chances = np.where(MEMBER[:, :1], [inside], [outside])
    first_output = chances[MEMBER[:, 0], 0].sum() / (comb(2 * N, N) / 2)  # as in (3), with S the first output
    assert first_output == pytest.approx(conditional(chances, 0)[0][0]) == pytest.approx(2 * delta)
    found = ls.bounds.exact_tradeoff(chances, MEMBER, 0).delta(1.0)
    assert found == pytest.approx(2 * delta)  # so that (2) holds
    assert first_output > exp(1.0) * chances[~MEMBER[:, 0], 0].mean() + delta  # and (3) does not


def test_lemma_15_third_part_without_delta():
    """With delta = 0 the posterior odds, the conditional chances and the averages have the same least epsilon."""
    for seed in range(6):
        chances = random_mechanism(seed)
        by_posterior, by_sums = [], []
        for record in range(2 * N):
            inside = MEMBER[:, record]
            posterior = chances[inside].sum(axis=0) / chances.sum(axis=0)
            by_posterior.append(np.abs(np.log(posterior / (1 - posterior))).max())
            by_sums.append(np.abs(np.log(chances[inside].sum(axis=0) / chances[~inside].sum(axis=0))).max())
        assert max(by_posterior) == pytest.approx(max(by_sums))
        assert ls.bounds.pmp_discrete(chances, MEMBER) == pytest.approx(max(by_posterior))


@pytest.mark.by_day("0.0")
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3])
def test_lemma_14_post_processing(epsilon):
    """With the same delta, for all functions of five outputs to three and for random ones; at n = 6."""
    chances = random_mechanism(1, 5)
    delta = pmp_delta(chances, epsilon)
    assert delta > 1e-3
    assert max(ls.bounds.exact_tradeoff(chances, MEMBER, x).delta(epsilon) for x in range(12)) == pytest.approx(delta)
    for values in product(range(3), repeat=5):
        assert pmp_delta(chances @ np.eye(3)[list(values)], epsilon) <= delta + 1e-12
    for seed in range(20):
        function = np.random.default_rng(seed).dirichlet(np.ones(5), 5)
        assert pmp_delta(chances @ function, epsilon) <= delta + 1e-12


@pytest.mark.parametrize("delta", [1e-3, 0.1, 0.3])
def test_corollary_4_has_a_factor_2_too_much(delta):
    """At n = 1 a release is (1, 2 delta)-PMP and (1, 2 delta)-DP, and not (1, delta)-DP: erratum 5."""
    truth = (1 - 2 * delta) / (1 + exp(1.0))
    chances = np.array([[2 * delta, truth * exp(1.0), truth, 0.0], [0.0, truth, truth * exp(1.0), 2 * delta]])
    member = ls.bounds.subsets(2, 1)
    assert stick(chances[0], chances[1], 1.0) == pytest.approx(2 * delta)  # adjacent data sets: DP
    assert ls.bounds.exact_tradeoff(chances, member, 0).delta(1.0) == pytest.approx(2 * delta)
    assert pmp_delta(chances, 1.0, member) == pytest.approx(2 * delta)


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0])
def test_corollary_4_at_n_6_is_one_direction(epsilon):
    """(epsilon, delta)-DP gives (epsilon, delta)-PMP at every n; back it does not go."""
    for seed in range(6):
        chances = random_mechanism(seed)
        delta = dp_delta(chances, epsilon)
        found = max(ls.bounds.exact_tradeoff(chances, MEMBER, record).delta(epsilon) for record in range(2 * N))
        assert found <= delta + 1e-12
    modular = deterministic(MEMBER @ np.arange(12) % 12)
    assert dp_delta(modular, 10.0) == 1.0
    assert ls.bounds.exact_tradeoff(modular, MEMBER, 0).delta(0.0) < 0.005


def test_proposition_5_first_part_at_n_6():
    """Epsilon-PMP follows from epsilon-DP; with equality where the release answers whether one record is in."""
    first, second = NEIGHBOURS
    for seed in range(10):
        chances = random_mechanism(seed)
        epsilon = np.log(chances[first] / chances[second]).max()
        assert ls.bounds.pmp_discrete(chances, MEMBER) <= epsilon
    answer = np.where(MEMBER[:, :1], [[0.75, 0.25]], [[0.25, 0.75]])
    assert np.log(answer[first] / answer[second]).max() == pytest.approx(log(3))
    assert ls.bounds.pmp_discrete(answer, MEMBER) == pytest.approx(log(3))


@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_proposition_5_second_part(n):
    """The sum modulo 2n: ln 2 or less for the records 0 ... 2n - 1, and no differential privacy."""
    member = ls.bounds.subsets(2 * n, n)
    outputs = member @ np.arange(2 * n) % (2 * n)
    found = ls.bounds.pmp_discrete(deterministic(outputs), member)
    assert found <= log(2) * (1 + 1e-12)
    first, second = adjacent(member)
    assert (outputs[first] != outputs[second]).any()  # an output that the adjacent half never has
    if n == 3:  # as the proof counts for x = 0
        assert np.bincount(outputs[member[:, 0]], minlength=6).max() == 2
        assert np.bincount(outputs[~member[:, 0]], minlength=6).min() == 1
    if n == 6:
        assert found == pytest.approx(log(38 / 37))
        assert found < log(40 / 37) < 0.08


def test_the_ratio_of_proposition_17_is_upside_down():
    """Printed is P(S | x not in D)/P(S | x in D) = (sum over D with x)/(sum over D without x): it is the inverse.

    What the proof then bounds by e^epsilon is the printed right side, so that its conclusion holds.
    """
    first, second = NEIGHBOURS
    for seed in range(5):
        chances = random_mechanism(seed)
        epsilon = np.log(chances[first] / chances[second]).max()
        inside, outside = conditional(chances, 0)
        event = inside > outside
        ratio = outside[event].sum() / inside[event].sum()
        printed = chances[MEMBER[:, 0]][:, event].sum() / chances[~MEMBER[:, 0]][:, event].sum()
        assert ratio < 1 < printed <= exp(epsilon)
        assert printed == pytest.approx(1 / ratio)


def test_mip_is_an_average_over_outcomes():
    """The appendix calls MIP "worst-case over outcomes": one may prove membership, and eta is as small as wished.

    The records are published with probability .01; then the posterior is 0 or 1, and PMP keeps no epsilon.
    """
    p = 0.01
    published = np.hstack([p * np.eye(len(MEMBER)), np.full((len(MEMBER), 1), 1 - p)])
    posterior = MEMBER[:, 0] @ published / published.sum(axis=0)
    assert {0.0, 1.0} < set(posterior)
    assert ls.bounds.exact_eta_discrete(published, MEMBER).max() == pytest.approx(p / 2)
    assert ls.bounds.pmp_discrete(published, MEMBER) == np.inf


@pytest.mark.parametrize(("n_records", "k"), [(6, 2), (6, 4), (9, 3), (10, 3)])
def test_a_parent_set_of_another_size(n_records, k):
    """Footnote 1: with alpha n records in X, epsilon-PMP still follows from epsilon-DP."""
    member = ls.bounds.subsets(n_records, k)
    first, second = adjacent(member)
    for seed in range(5):
        chances = random_mechanism(seed, member=member)
        assert ls.bounds.pmp_discrete(chances, member) <= np.log(chances[first] / chances[second]).max()


# --- Numbers of the introduction --------------------------------------------------------------------------------------


def test_the_numbers_of_the_introduction():
    """52.5 % at epsilon = .1, .999 at 7, both by Theorem 4 of Izzo et al. and attained by randomised response."""
    assert 0.5 + ls.bounds.mip_from_dp(0.1) == pytest.approx(0.525, abs=5e-4)
    assert 0.5 + ls.bounds.mip_from_dp(7.0) > 0.999
    truth = 1 / (1 + exp(-7.0))
    answer = np.where(MEMBER[:, :1], [[truth, 1 - truth]], [[1 - truth, truth]])
    assert 0.5 + ls.bounds.exact_eta_discrete(answer, MEMBER)[0] > 0.999
    assert 0.5 + ls.bounds.mip_from_dp(7.5 / 75) == pytest.approx(0.525, abs=5e-4)


def test_the_mechanism_of_the_introduction():
    """An epsilon of 7.5 leaves 7.5/75 on the data of Figure 2, with no epsilon(X) in it; by all halves."""
    left = []
    for number in range(8):
        loss, sensitivity = geometric_median.game(0, figure2.SETTING, number)
        weight = np.exp(-7.5 / (2 * sensitivity) * (MEMBER @ loss.T) / N)
        chances = weight / weight.sum(axis=1, keepdims=True)
        odds = [np.log(conditional(chances, x)[0] / conditional(chances, x)[1]) for x in range(2 * N)]
        found = ls.bounds.pmp_exponential(loss, 7.5, sensitivity)
        assert found == pytest.approx(np.abs(odds).max())
        left.append(found)
    assert min(left) < np.mean(left) < 7.5 / 75
    assert 1 / (1 + exp(-min(left))) < 0.525


def test_the_success_that_the_text_on_figure_2_prints():
    """1/(1 + e^-.123) is about .53; with 123, as printed, it is 1: erratum 20."""
    assert ls.tradeoff.EpsilonDelta(0.123).accuracy() == pytest.approx(0.53, abs=0.005)
    assert ls.tradeoff.EpsilonDelta(123.0).accuracy() == pytest.approx(1.0)


# --- The simulations --------------------------------------------------------------------------------------------------


def test_settings_of_the_exponential_mechanism():
    """The captions of Figures 1 to 3: all that is kept, and each value on the axis once. Figure 3 has no C."""
    kept = {
        figure1: ("sigma", {"d": 1, "n": 6, "n_outputs": 10, "clip": 10.0, "subset": 5.0, "n_outliers": 0}),
        figure2: ("clip", {"d": 5, "n": 6, "n_outputs": 32, "sigma": 1.0, "subset": 10.0, "n_outliers": 2}),
        figure3: ("d", {"n": 6, "n_outputs": 10, "sigma": 1.0, "subset": 2.0, "n_outliers": 0}),
    }
    for figure, (axis, values) in kept.items():
        settings = [setting for _, setting, _ in first_task(figure.measure)]
        assert len(set(settings)) == len({getattr(setting, axis) for setting in settings}) > 4
        for setting in settings:
            assert values.items() <= setting._asdict().items()
    assert geometric_median.OUTLIER == 100
    assert 1.0 in figure1.SIGMAS
    assert min(figure1.SIGMAS) < 0.1
    assert 50.0 in figure2.CLIPS


def test_settings_of_the_gaussian_mechanism():
    """The captions of Figures 4 to 6, and the text on Figure 5: epsilon = 5 at C = 100. Figure 6 has no epsilon."""
    kept = {
        figure4: ("value", {"n": 100, "d": 20, "clip": 50.0, "sigma": 1.0, "n_outliers": 0, "fixed": EXACT}),
        figure5: ("clip", {"n": 100, "d": 10, "sigma": 5.0, "n_outliers": 2, "value": 5.0, "fixed": PROMISE}),
        figure6: ("d", {"n": 100, "clip": 50.0, "sigma": 1.0, "n_outliers": 0, "fixed": EXACT}),
    }
    for figure, (axis, values) in kept.items():
        settings = [setting for _, setting, _ in first_task(figure.measure)]
        assert len(set(settings)) == len({getattr(setting, axis) for setting in settings}) > 4
        for setting in settings:
            assert values.items() <= setting._asdict().items()
    assert (clipped_mean.DELTA, clipped_mean.OUTLIER) == (0.01, 10)
    assert max(figure4.SUBSETS) == 10
    assert max(figure5.CLIPS) == 100


def drawn_game(setting, number, monkeypatch):
    """Outputs and records of a data set of Section 3."""
    seen = []
    real = ls.bounds.geometric_median_loss
    with monkeypatch.context() as patch:
        patch.setattr(ls.bounds, "geometric_median_loss", lambda *given: seen.append(given) or real(*given))
        geometric_median.game(0, setting, number)
    ((outputs, records),) = seen
    return outputs, records


@pytest.mark.statistics
def test_the_data_of_section_3(monkeypatch):
    """Unit vectors in random directions, records around the first of them, clipped to C; outliers times 100.

    Two Kolmogorov tests at level 1e-4 each; the seed is fixed.
    """
    free = geometric_median.Setting(subset=1.0, d=2, sigma=0.3, clip=1e6)
    angles, shifts = [], []
    for number in range(60):
        outputs, records = drawn_game(free, number, monkeypatch)
        assert outputs.shape == (10, 2)
        assert records.shape == (12, 2)
        assert np.linalg.norm(outputs, axis=1) == pytest.approx(np.ones(10))
        angles.append(np.arctan2(outputs[:, 1], outputs[:, 0]))
        shifts.append((records - outputs[0]).ravel() / 0.3)
        clipped = drawn_game(free._replace(clip=1.0), number, monkeypatch)[1]
        assert clipped == pytest.approx(records * np.minimum(1, 1 / np.linalg.norm(records, axis=1))[:, None])
        with_outliers = drawn_game(free._replace(n_outliers=2), number, monkeypatch)[1]
        assert with_outliers == pytest.approx(records * np.r_[100, 100, np.ones(10)][:, None])
    assert kstest(np.concatenate(angles) / (2 * np.pi) + 0.5, "uniform").pvalue > 1e-4
    assert kstest(np.concatenate(shifts), "norm").pvalue > 1e-4


@pytest.mark.statistics
def test_the_data_of_section_4():
    """Records around 0, clipped to C; outliers times 10. A Kolmogorov test at level 1e-4; the seed is fixed."""
    free = clipped_mean.Setting(5.0, PROMISE, d=3, sigma=5.0, clip=1e6)
    records = clipped_mean.data(0, free, 0)
    assert records.shape == (200, 3)
    assert kstest(records.ravel() / 5.0, "norm").pvalue > 1e-4
    clipped = clipped_mean.data(0, free._replace(clip=7.0), 0)
    assert clipped == pytest.approx(records * np.minimum(1, 7 / np.linalg.norm(records, axis=1))[:, None])
    with_outliers = clipped_mean.data(0, free._replace(n_outliers=2), 0)
    assert with_outliers == pytest.approx(records * np.r_[10, 10, np.ones(198)][:, None])


@pytest.mark.slow
def test_larger_n_does_not_make_the_ratio_to_epsilon_smaller():
    """Section 3 on Figure 2 expects smaller ratios for n above 6. They are the same at n = 10, with epsilon(X) = 10.

    The difference of two means of 200 data sets has a standard error of 1.1 %: a ratio that does not change fails with
    a chance of .001, one that falls by 6 % passes with .02.
    """
    mean = {}
    for n in (6, 10):
        setting = figure2.SETTING._replace(n=n)
        ratios = []
        for number in range(200):
            loss, sensitivity = geometric_median.game(0, setting, number)
            epsilon = geometric_median.nominal_epsilon(loss, 10.0, sensitivity)
            ratios.append(ls.bounds.pmp_exponential(loss, epsilon, sensitivity) / epsilon)
        mean[n] = np.mean(ratios)
        assert np.std(ratios) / np.sqrt(200) < 0.01 * mean[n]
    assert mean[10] > 0.965 * mean[6]


def kept(figure: str, line: str, x: float) -> pd.DataFrame:
    """The epsilons of each data set of a run that is kept, at one place of the axis."""
    result = gallery.read(f"lowy2024/{figure}")
    assert result is not None
    trials = pd.read_csv(io.StringIO(result["trials"]))
    here = trials[(trials["line"] == line) & (trials["x"] == x)]
    return here.pivot(index="trial", columns="quantity", values="value")


def above(larger: pd.Series, smaller: pd.Series | float) -> bool:
    """Whether a mean over data sets is larger by three standard errors or more."""
    difference = larger - smaller
    return difference.mean() > 3 * difference.std() / np.sqrt(len(difference))


def test_the_ratio_to_epsilon_is_largest_at_the_smallest_epsilon_of_x():
    """Figure 4: "at its largest" at epsilon(X) = 10, says the text; it is small everywhere, and largest at 1.

    The distance between the two curves is large, and larger where epsilon(X) is. 20 data sets at ten places.
    """
    runs = [kept("figure4", EXACT, float(value)) for value in range(1, 11)]
    assert {len(run) for run in runs} == {20}
    ratios = [run["pmp"] / run["epsilon"] for run in runs]
    assert all(above(ratios[0], ratio) for ratio in ratios[1:])
    assert all(above(0.05 - ratio, 0.0) for ratio in ratios)
    gaps = [run["epsilon"] / run["subset"] for run in runs]
    assert above(gaps[0], 10.0)
    assert above(gaps[-1], gaps[0])


def test_the_gap_is_larger_in_figure_5_than_in_figure_2():
    """Section 4: so by the nominal reading of epsilon(X) in Figure 2; by the exact one it is the other way round.

    The gap between the curves is epsilon over epsilon(X), or the difference of the two ratios. 50 data sets each.
    """
    gaps = []
    for figure, line, clip in (("figure2", NOMINAL, 50.0), ("figure5", PROMISE, 100.0), ("figure2", EXACT, 50.0)):
        run = kept(figure, line, clip)
        assert len(run) == 50
        gaps.append((run["epsilon"] / run["subset"], run["pmp"] / run["subset"] - run["pmp"] / run["epsilon"]))
    for less, more in pairwise(gaps):
        assert all(above(larger, smaller) for larger, smaller in zip(more, less, strict=True))


@pytest.mark.slow
def test_records_that_are_alike_allow_a_larger_epsilon():
    """Discussion: the epsilon that keeps every attacker below .525, for sigma = .1 and 1; 20 data sets of Figure 1."""
    allowed = {sigma: [] for sigma in (0.1, 1.0)}
    for sigma, number in product(allowed, range(20)):
        loss, sensitivity = geometric_median.game(0, figure1.SETTING._replace(sigma=sigma), number)
        epsilon = ls.bounds.epsilon_for_accuracy(loss, sensitivity, 0.525)
        assert ls.bounds.pmp_exponential(loss, epsilon, sensitivity) <= log(0.525 / 0.475)
        allowed[sigma].append(epsilon)
    assert above(pd.Series(allowed[0.1]), 2 * pd.Series(allowed[1.0]))


@pytest.mark.slow
def test_clipping_lowers_what_outliers_need():
    """Discussion: the noise that keeps every attacker below .55, for 20 data sets of Figure 5."""
    setting = clipped_mean.Setting(5.0, PROMISE, d=10, sigma=5.0, n_outliers=2)
    scales = {}
    for clip in (10.0, 100.0):
        records = [clipped_mean.data(0, setting._replace(clip=clip), number) for number in range(20)]
        scales[clip] = pd.Series([ls.bounds.scale_for_accuracy(data, 0.55) for data in records])
    assert above(scales[100.0], 3 * scales[10.0])


@pytest.mark.parametrize("query", ["mean", "sum"])
def test_proposition_12_is_an_average_over_the_other_record(query):
    """The double sum over adjacent halves, and the single one over x' that replaces it; at n = 3 of 6."""
    member = ls.bounds.subsets(6, 3)
    features = np.random.default_rng(0).normal(size=(6, 2))
    values = member @ features / (3 if query == "mean" else 1)
    first, second = adjacent(member)
    scale, delta = (0.5, 0.01) if query == "mean" else (1.5, 0.01)
    epsilon = ls.bounds.pmp_gaussian(features, scale, delta, query)

    def hockey(distance: np.ndarray) -> np.ndarray:
        m = distance / scale
        return norm.cdf(m / 2 - epsilon / m) - exp(epsilon) * norm.cdf(-m / 2 - epsilon / m)

    right_side = []
    for record in range(6):
        pairs = member[first, record] & ~member[second, record]
        distance = np.linalg.norm(values[first[pairs]] - values[second[pairs]], axis=1)
        assert len(distance) == 3 * comb(5, 2)  # n |X_in(x)|
        others = np.delete(features, record, axis=0) - features[record]
        single = hockey(np.linalg.norm(others, axis=1) / (3 if query == "mean" else 1)).mean()
        assert hockey(distance).mean() == pytest.approx(single)
        right_side.append(single)
    assert max(right_side) == pytest.approx(delta)


def test_a_naive_third_step_takes_exponentially_many_terms():
    """Section 4, Our Approach: the double sum of Proposition 12 for one record x, at n = 2 to 5.

    It has n C(2n - 1, n - 1) terms, each x' in C(2n - 2, n - 1) of them; the simplified sum has one for each x'.
    """
    terms = []
    for n in (2, 3, 4, 5):
        with_x = [{0, *rest} for rest in combinations(range(1, 2 * n), n - 1)]
        swapped_in = Counter(other for D in with_x for other in range(2 * n) if other not in D)
        assert swapped_in == {other: comb(2 * n - 2, n - 1) for other in range(1, 2 * n)}
        terms.append(swapped_in.total())
        assert terms[-1] == n * comb(2 * n - 1, n - 1)
        assert len(swapped_in) == 2 * n - 1
    assert all(later > 3 * earlier for earlier, later in pairwise(terms))


# --- Discussion and appendix ------------------------------------------------------------------------------------------


def test_two_releases_may_tell_what_neither_does():
    """Discussion: no sequential composition. Two sums modulo 12, the second with the first two records swapped."""
    labels = np.arange(12)
    swapped = np.r_[1, 0, labels[2:]]
    sums = [MEMBER @ each % 12 for each in (labels, swapped)]
    for each in sums:
        assert ls.bounds.pmp_discrete(deterministic(each), MEMBER) == pytest.approx(log(38 / 37))
    assert ls.bounds.pmp_discrete(deterministic(np.column_stack(sums)), MEMBER) == np.inf


def test_a_known_parity_lets_a_simulator_release_the_data():
    """Appendix: A(D) = D is as good as simulated from all records but one if their parity is known; PMP forbids it."""
    sequences = np.array([bits for bits in product([0, 1], repeat=4) if sum(bits) % 2 == 0])
    for left_out in range(4):
        missing = np.delete(sequences, left_out, axis=1).sum(axis=1) % 2
        assert (missing == sequences[:, left_out]).all()
    assert ls.bounds.pmp_discrete(np.eye(len(MEMBER)), MEMBER) == np.inf


def test_a_guarantee_on_average_may_leave_a_person_without_any():
    """Appendix, on Yeom et al.: an algorithm that names the first record if it is in."""
    named = np.where(MEMBER[:, :1], [[1.0, 0.0]], [[0.0, 1.0]])
    eta = ls.bounds.exact_eta_discrete(named, MEMBER)
    assert eta[0] == pytest.approx(0.5)
    assert eta.mean() < 0.1
    assert ls.bounds.pmp_discrete(named, MEMBER) == np.inf


@pytest.mark.parametrize("eta", [0.01, 0.1])
def test_one_published_record_keeps_eta_and_no_epsilon(eta):
    """Appendix, on Izzo et al.: D_1 is released with probability n eta. Drawn at random it costs eta/2; as the first
    one in the order of X it costs n eta/2, more than eta.
    """
    random = np.column_stack([MEMBER * eta, np.full(len(MEMBER), 1 - N * eta)])
    assert ls.bounds.exact_eta_discrete(random, MEMBER) == pytest.approx(np.full(12, eta / 2))
    assert ls.bounds.pmp_discrete(random, MEMBER) == np.inf
    first = np.eye(12)[MEMBER.argmax(axis=1)] * N * eta
    ordered = np.column_stack([first, np.full(len(MEMBER), 1 - N * eta)])
    assert ls.bounds.exact_eta_discrete(ordered, MEMBER).max() == pytest.approx(N * eta / 2)
