"""Rates above thresholds at fixed ranks: exact p-values, the rank theorem with ties, levels and power."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from leakbound.core.findings import Term
from leakbound.core.numerics import bisect
from leakbound.core.tradeoff import EpsilonDelta, Gaussian, Profile
from leakbound.core.types import NotApplicable, Scores
from leakbound.dpsgd.accountant import dpsgd
from leakbound.metrics.counting import coins
from leakbound.metrics.epsilon import bound
from leakbound.metrics.one_run import Tangents
from leakbound.metrics.ranks import RankTest, _largest_tpr, by_ranks, independent_canaries, many_runs, ranks
from tests.levels import allowed, sizes

CLAIMS = [EpsilonDelta(1.0, 0.01), Gaussian(1.0)]
TESTS = [RankTest("members", *counts, alarms=0, threshold=0.0) for counts in [(40, 60, 4, 70), (9, 500, 1, 500)]]


def one_point(rng, mu, n_models=300, prior=0.5, grid=0.0):
    """Gaussian scores of one point in many models: mu-GDP, with ties if they are rounded to a grid."""
    member = rng.random((n_models, 1)) < prior
    value = rng.normal(size=member.shape) + mu * member
    return Scores("gaussian", np.round(value / grid) * grid if grid else value, member)


def curve(mu):
    """Of mu-GDP, by its tangents: quicker than the curve itself, and never above it."""
    return Profile.of(Gaussian(mu), np.linspace(0.0, 6.0, 120))


def p_values(claim, gathered):
    return np.array([test.curve_p_value(claim) for test in gathered])


class TestPValue:
    @pytest.mark.parametrize("claim", CLAIMS)
    @pytest.mark.parametrize("test", TESTS)
    def test_it_is_the_mean_tail_over_the_rates_that_a_rank_allows(self, claim, test):
        """By adaptive quadrature: the sum is above it, and by at most a tenth."""
        rate = stats.beta(test.rank, test.n_alarms - test.rank + 1)

        def integrand(fpr):
            return rate.pdf(fpr) * stats.binom.sf(test.hits - 1, test.n_hits, float(claim.tpr_at(fpr)))

        ends = [0.0, *rate.ppf([0.1, 0.5, 0.9, 0.999]), 1.0]
        exact = sum(integrate.quad(integrand, *pair)[0] for pair in pairwise(ends))
        assert exact <= test.p_value(Tangents.of(claim)) <= 1.1 * exact

    @pytest.mark.parametrize("claim", CLAIMS)
    @pytest.mark.parametrize("hits", [5, 20, 30, 45])
    def test_it_is_not_above_that_of_two_limits(self, claim, hits):
        """Limits of both rates at half of the level contradict the claim: then it is refused at this level."""
        test = RankTest("members", hits, 60, 3, 70, alarms=2, threshold=0.0)
        contradicted = 0
        promise = Tangents.of(claim)
        for level in np.geomspace(1e-6, 0.5, 30):
            fpr, tpr = stats.beta.ppf(1 - level / 2, 3, 68), stats.beta.ppf(level / 2, hits, 61 - hits)
            if tpr > float(claim.tpr_at(fpr)):
                contradicted += 1
                assert test.p_value(promise) <= level * 1.1
        assert contradicted > 0 or hits < 30

    @pytest.mark.parametrize("claim", [*CLAIMS, EpsilonDelta(2.0**30, 0.3), dpsgd(1.5, 0.1, 40, "add_remove")])
    def test_a_claim_allows_the_least_of_its_lines(self, claim):
        promise, fpr = Tangents.of(claim), np.concatenate([np.geomspace(1e-12, 1.0, 200), np.linspace(0.0, 1.0, 50)])
        ratio, delta = np.exp(np.minimum(promise.epsilon, 700.0))[:, None], promise.delta[:, None]
        lines = np.concatenate([ratio * fpr + delta, 1 - (1 - delta - fpr) / ratio])
        np.testing.assert_allclose(_largest_tpr(promise, fpr), np.clip(lines.min(axis=0), 0, 1), rtol=1e-9)

    def test_no_hit_is_no_evidence(self):
        assert RankTest("members", 0, 60, 3, 70, alarms=2, threshold=0.0).p_value(Tangents.of(EpsilonDelta(0.0))) == 1

    def test_all_tests_are_paid_for(self):
        gathered = many_runs(one_point(np.random.default_rng(0), 1.0))
        single = [test.p_value(Tangents.of(Gaussian(0.1))) for test in gathered.tests]
        assert gathered.curve_p_value(Gaussian(0.1)) == len(gathered.tests) * min(single)
        assert len(gathered.tests) == sum(
            len(ranks(side)) for side in (gathered.tests[0].n_hits, gathered.tests[0].n_alarms)
        )
        assert gathered.detail(Gaussian(0.1))["rank"] == gathered.tests[int(np.argmin(single))].rank


class TestRanks:
    def test_they_are_fixed_fractions_of_a_side_each_once(self):
        assert ranks(1000).tolist() == [4, 8, 17, 34, 70, 143, 293, 600]
        assert ranks(4).tolist() == [1, 2]
        assert ranks(1).tolist() == [1]

    def test_both_directions_by_hand(self):
        """Members 1 to 10 and 101 to 140, others 51 to 100."""
        value = np.concatenate([np.arange(1, 11), np.arange(101, 141), np.arange(51, 101)]).astype(float)
        member = np.arange(100) < 50
        gathered = by_ranks("many_runs", "target models", value, member)
        up = [test for test in gathered.tests if test.called == "members"]
        assert [test.rank for test in up] == ranks(50).tolist()
        assert [test.threshold for test in up] == [101 - rank for rank in ranks(50)]
        assert {(test.hits, test.n_hits) for test in up} == {(40, 50)}
        down = [test for test in gathered.tests if test.called == "non-members"]
        below = {test.threshold: (test.hits, test.alarms) for test in down}
        assert below[1.0] == (0, 0)
        assert below[120.0] == (50, 29)  # the 30th lowest member
        assert gathered.detail(EpsilonDelta(0.0))["called"] == "members"
        assert gathered.method == (Term("many_runs"),)

    def test_with_ties_scores_at_the_threshold_do_not_count(self):
        value = np.array([3.0, 3.0, 2.0, 1.0, 3.0, 2.0, 2.0, 0.0])
        test = by_ranks("many_runs", "target models", value, np.arange(8) < 4).tests[0]
        assert (test.rank, test.threshold, test.hits, test.alarms) == (1, 3.0, 0, 0)

    def test_a_constant_score_is_no_evidence(self):
        constant = Scores("constant", np.ones((40, 1)), (np.arange(40) < 20)[:, None])
        assert many_runs(constant).p_value(0.0, 0.0) == 1


@pytest.mark.parametrize("chances", [[1.0], [0.5, 0.5], [0.9, 0.1], [0.05, 0.2, 0.5, 0.25], [0.01] * 100])
@pytest.mark.parametrize("n", [1, 7, 12])
def test_strictly_above_a_rank_the_rate_is_at_most_beta_with_ties_too(chances, n):
    """All probabilities are exact: of scores 0, 1, ... with these chances, the j-th highest is k or more if j scores
    are. Of scores at or above the threshold the theorem fails.
    """
    at_least = np.clip(np.cumsum(chances[::-1])[::-1], 0, 1)  # P(score >= k), k = 0, 1, ...
    above = np.append(at_least[1:], 0.0)
    for rank in range(1, n + 1):
        threshold_at_least = np.append(stats.binom.sf(rank - 1, n, at_least), 0.0)
        of_threshold = -np.diff(threshold_at_least)
        rates = np.linspace(0.0, 1.0, 201)[:-1]
        beta = stats.beta.sf(rates, rank, n - rank + 1)
        assert ((above > rates[:, None]) @ of_threshold <= beta + 1e-12).all()
        assert ((at_least > rates[:, None]) @ of_threshold >= beta - 1e-12).all()


@pytest.mark.by_day("8-0.5-0.0-150")
@pytest.mark.statistics
@pytest.mark.parametrize("n_runs", sizes(150))
@pytest.mark.parametrize(
    ("n_models", "prior", "grid"), [(8, 0.5, 0.0), (60, 0.1, 0.0), (300, 0.5, 0.5), (300, 0.9, 2.0), (1000, 0.5, 0.0)]
)
def test_level_at_the_true_curve(n_models, prior, grid, n_runs):
    """Gaussian scores with exactly the claimed curve; ties on coarse grids, and few models of one kind.

    At a level of 5 % at most 16 of 150 may be rejected, and 240 of 4,000; more has probability .22 % at most. At .1 %
    at most 3 of 150 (false alarm 2e-5) and 14 of 4,000 (3e-5).
    """
    rng, claim, found = np.random.default_rng(n_models), curve(1.0), []
    for _ in range(n_runs):
        scores = one_point(rng, 1.0, n_models, prior, grid)
        if 2 <= scores.member.sum() <= n_models - 2:
            found.append(many_runs(scores).curve_p_value(claim))
    assert len(found) > 0.9 * n_runs
    assert np.count_nonzero(np.array(found) < 0.05) <= allowed(n_runs)
    assert np.count_nonzero(np.array(found) < 1e-3) <= {150: 3, 4000: 14}[n_runs]


@pytest.mark.statistics
@pytest.mark.parametrize("n_runs", sizes(150))
def test_level_of_a_single_rank(n_runs):
    """Without the number of tests to pay for, the level is nearly reached: the middle rank, scores without ties.

    As above, and at least 2 of 150 (less has probability 4e-3) and 120 of 4,000 are rejected.
    """
    rng = np.random.default_rng(3)
    promise, found = Tangents.of(Gaussian(1.0)), []
    for _ in range(n_runs):
        tests = many_runs(one_point(rng, 1.0)).tests
        found.append(tests[5].p_value(promise))
    n_rejected = np.count_nonzero(np.array(found) < 0.05)
    assert {150: 2, 4000: 120}[n_runs] <= n_rejected <= allowed(n_runs)


def test_a_thousand_models_show_most_of_epsilon():
    """At mu = .925, epsilon = 4, half of the runs refute 2.6 at least; at mu = .5 half of them .8 of 2.

    Thresholds that half of the models chose gave medians of 1.6 and .1.
    """
    rng = np.random.default_rng(0)
    for mu, least in ((0.925, 2.6), (0.5015, 0.8)):
        below = curve(
            bisect(lambda x, least=least: Gaussian(x).epsilon(1e-5) <= least, inside=1e-3, outside=mu, rtol=1e-3)
        )
        gathered = [many_runs(one_point(rng, mu, 1000)) for _ in range(10)]
        assert np.count_nonzero(p_values(below, gathered) < 0.05) >= 5
        assert np.count_nonzero(p_values(curve(mu), gathered) < 0.05) <= 2


class TestIndependentCanaries:
    NOISE, RATE, STEPS = 1.5, 0.1, 40

    def canaries(self, rng, shape=(1, 300), noise=NOISE):
        """Likelihood ratios of Dirac canaries that DP-SGD with Poisson batches hides."""
        member = rng.random(shape) < 0.5
        drawn = member[..., None] & (rng.random((*shape, self.STEPS)) < self.RATE)
        step = drawn + noise * rng.normal(size=drawn.shape)
        odds = np.log1p(self.RATE * np.expm1((step - 0.5) / noise**2))
        return Scores("ratio", odds.sum(axis=2), member)

    def test_all_of_all_models_are_trials_of_one_experiment(self):
        scores = self.canaries(np.random.default_rng(0), (3, 50))
        flat = Scores("ratio", scores.value.reshape(1, -1), scores.member.reshape(1, -1))
        gathered = independent_canaries(scores)
        assert gathered.tests == independent_canaries(flat).tests
        assert gathered.detail(EpsilonDelta(0.0))["units"] == 150
        assert gathered.method == (Term("independent_canaries"),)

    def test_too_few_are_refused(self):
        with pytest.raises(
            NotApplicable, match="needs at least 2 canaries that are in and as many that are out, got 1"
        ):
            independent_canaries(Scores("few", np.arange(6.0)[None], np.arange(6)[None] == 2))

    @pytest.mark.slow
    @pytest.mark.statistics
    @pytest.mark.parametrize("n_runs", sizes(150))
    def test_level_at_the_accountants_curve(self, n_runs):
        """The claim is the true curve of DP-SGD; allowed as in `test_level_at_the_true_curve`."""
        rng = np.random.default_rng(0)
        curve = dpsgd(self.NOISE, self.RATE, self.STEPS, "add_remove")
        found = p_values(curve, [independent_canaries(self.canaries(rng)) for _ in range(n_runs)])
        assert np.count_nonzero(found < 0.05) <= allowed(n_runs)
        assert np.count_nonzero(found < 1e-3) <= {150: 3, 4000: 14}[n_runs]

    def test_they_show_much_more_than_guesses_of_one_run(self):
        """Ten runs with 1,000 canaries against a claim of twice the noise that there is."""
        rng = np.random.default_rng(1)
        claim = dpsgd(2 * self.NOISE, self.RATE, self.STEPS, "add_remove")
        runs = [self.canaries(rng, (1, 1000)) for _ in range(10)]
        independent, guesses = (p_values(claim, map(gather, runs)) for gather in (independent_canaries, coins))
        assert np.count_nonzero(independent < 0.05) >= 6
        assert np.count_nonzero(guesses < 0.05) <= 2

    @pytest.mark.slow
    @pytest.mark.statistics
    def test_canaries_that_are_told_together_break_the_assumption(self):
        """With probability .2 all coins are told, else nothing: (0, .2)-DP. The test for any mechanism stands it.

        Of 100 runs 20 are expected to tell all; 12 or fewer has probability 2.5 %, of the fixed seed it is no accident.
        """
        rng, refuted = np.random.default_rng(0), {"coins": 0, "independent": 0}
        for _ in range(100):
            member = rng.random((1, 200)) < 0.5
            value = np.where(rng.random() < 0.2, member, rng.random(member.shape)).astype(float)
            scores = Scores("told", value, member)
            refuted["coins"] += coins(scores).p_value(0.0, 0.2) < 0.05
            refuted["independent"] += independent_canaries(scores).p_value(0.0, 0.2) < 0.05
        assert refuted["independent"] > allowed(100)
        assert refuted["coins"] <= allowed(100)


def test_bounds_are_those_of_the_pair_too():
    """Randomised response with epsilon = 2: the bound of many runs is below, and above half of it."""
    rng = np.random.default_rng(0)
    member = rng.random((1000, 1)) < 0.5
    told = np.where(rng.random(member.shape) < 1 / (1 + math.exp(-2.0)), member, ~member).astype(float)
    assert 1.0 < bound(many_runs(Scores("flipped", told, member))).value <= 2.0
