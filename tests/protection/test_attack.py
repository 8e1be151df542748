"""The best attack on a protected release, against enumeration, closed forms and the certificates."""

from __future__ import annotations

import math
import re
from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from leakbound.auditing.api import audit_signals
from leakbound.core.findings import Scope, Term
from leakbound.core.grid import Grid
from leakbound.core.types import Points
from leakbound.noise import (
    BallNoise,
    GaussianNoise,
    LaplaceNoise,
    Lp,
    Mahalanobis,
    NormNoise,
    Shifts,
    calibrate,
    complement,
    swap,
    worst_eta,
)
from leakbound.protection.attack import games as attack_games
from leakbound.protection.attack import release as attack
from leakbound.protection.attack.bayes import BayesAttacker
from leakbound.protection.attack.games import SimulatedSets
from leakbound.protection.attack.gaussian import GaussianAttacker, Moments, noise_covariance
from leakbound.protection.attack.release import AttackConfig, attack_release, signals
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.statistic import named
from leakbound.runtime.observe import Execution, read_signals
from tests.levels import allowed, sizes
from tests.marks import nightly
from tests.noise.games import random_game
from tests.reports.made_protected import ceiling, protected

HERE = "tests.protection.test_attack"
ALONE = Execution(n_jobs=1)


def first_is_in(x):
    """1 if record 0 is in the data."""
    return float((x[:, 0] == 0).any())


def first_is_in_of_three(x):
    """The same in three coordinates of very different sizes."""
    return first_is_in(x) * np.array([1.0, 1e3, -1e-3])


def fails_with_the_first(x):
    """Nothing if record 0 is in the data."""
    if (x[:, 0] == 0).any():
        raise RuntimeError("not with that one")
    return x.mean()


def always_fails_beyond_four(x):
    """Works on the four lowest numbers of records alone."""
    if x.max() > 1e5:
        raise RuntimeError("too large")
    return x.mean()


def bootstrapped(x, rng):
    """Random by itself."""
    return x[rng.integers(len(x), size=len(x))].mean()


def mean_of(x):
    """The mean of each column, as any function."""
    return x.mean(axis=0)


def same_for_all(x):
    """Says nothing."""
    return np.array([3.0, 0.0])


def points(n):
    """Records 0 ... n - 1."""
    return Points(np.arange(float(n))[:, None])


def mechanism(statistic, data, k=None, **words):
    """A statistic whose fits are made in this process."""
    records = data if isinstance(data, Points) else Points(np.asarray(data, dtype=float).reshape(len(data), -1))
    return Mechanism.of(named(statistic, **words), records, k, execution=ALONE)


def accuracy(attacked, release=""):
    """The accuracy against the release, or without noise."""
    findings, _ = attacked
    return next(x for x in findings if x.quantity == "accuracy" and x.release == release)


def exact(mech, noise, **words):
    """Accuracy of the best attacker against the record that is asked for."""
    found = accuracy(attack_release(mech, noise, AttackConfig(20, **words)))
    assert found.scope.kind == ("average" if "promise" in words else "worst")
    assert (found.status, found.bound_type, found.attack) == ("certified", "lower", "bayes")
    return found.value


class TestSmallData:
    @pytest.mark.parametrize(
        ("noise", "etas"),
        [
            (LaplaceNoise(1.0), (0.188796355621, 0.120160455592, 0.150225144504, 0.355954904306)),
            (LaplaceNoise(2.0), (0.137895897152, 0.087219947062, 0.054566525960, 0.242132804222)),
            (GaussianNoise(1.0), (0.202917702018, 0.122265982878, 0.152434440017, 0.385166133767)),
            (GaussianNoise(2.0), (0.152516729047, 0.093953592862, 0.028921718791, 0.249963240162)),
        ],
    )
    def test_the_mean_of_two_of_four(self, noise, etas) -> None:
        """Each record, to the digits of enumeration and quadrature; rounded down, never up."""
        mech = mechanism("mean", [0, 1, 3, 7])
        for record, eta in enumerate(etas):
            value = exact(mech, noise, record=record)
            assert value == pytest.approx(0.5 + eta, abs=2e-11)
            assert value < 0.5 + eta + 1e-12
        assert accuracy(attack_release(mech, noise, AttackConfig(20))).scope == Scope("worst", 3)
        assert exact(mech, noise, promise="average") == pytest.approx(0.5 + np.mean(etas), abs=2e-11)

    def test_three_of_five(self) -> None:
        etas = 0.09184092568, 0.0470062091508, 0.0167941910403, 0.0559711342482, 0.108175500232
        mech = mechanism("mean", [0, 1, 3, 7, 8], k=3)
        found = [exact(mech, LaplaceNoise(1.0), record=record) for record in range(5)]
        assert found == pytest.approx(0.6 + np.array(etas), abs=1e-9)

    @pytest.mark.parametrize("eta", [0.01, 0.1, 0.3])
    @pytest.mark.parametrize("family", [GaussianNoise, LaplaceNoise])
    def test_the_extremal_example_is_attained(self, family, eta) -> None:
        """A(D) = 1 if x is in D, else 0: the complement coupling's noise is the least there is."""
        mech = mechanism(f"{HERE}:first_is_in", points(6))
        table = BayesAttacker.of(mech, AttackConfig(20))
        noise = calibrate(complement(table.outputs, table.member), eta, family)
        found = attack_release(mech, noise, AttackConfig(20))
        assert accuracy(found).scope == Scope("worst", 0)
        assert accuracy(found).value == pytest.approx(0.5 + eta, abs=1e-6)
        assert accuracy(found).value <= 0.5 + eta
        assert accuracy(found, "without_noise").value == 1.0

    def test_the_extremal_example_on_the_plane(self) -> None:
        mech = mechanism("sum", [[1, 1], [0, 0], [0, 0], [0, 0]])
        value = exact(mech, GaussianNoise(2.0))
        assert value == pytest.approx(stats.norm.cdf(math.sqrt(2) / 4), abs=3e-6)
        assert value <= stats.norm.cdf(math.sqrt(2) / 4)

    @pytest.mark.slow
    @pytest.mark.parametrize("n_games", sizes(30, full=200))
    def test_never_above_the_certificates(self, n_games) -> None:
        """Random games: the best attacker against the exact swap, and the complement where k = n/2."""
        rng, near = np.random.default_rng(5), 0
        names = {np.mean: "mean", np.sum: "sum", np.max: "numpy:max", np.median: "numpy:median"}
        for number in range(n_games):
            data, k, statistic = random_game(rng, even=number % 2 == 0)
            mech = mechanism(names[statistic], data, k)
            noise = (GaussianNoise, LaplaceNoise)[number % 4 // 2](float(np.exp(rng.normal())))
            table = BayesAttacker.of(mech, AttackConfig(1))
            bounds = [worst_eta(swap(table.outputs, table.member), noise)]
            if 2 * k == len(data):
                bounds.append(worst_eta(complement(table.outputs, table.member), noise))
            found = accuracy(attack_release(mech, noise, AttackConfig(1)))
            assert found.status == "certified"
            assert found.value <= mech.prior_accuracy + min(bounds) + 1e-9
            assert found.value >= mech.prior_accuracy - 1e-11
            near += found.value >= mech.prior_accuracy + 0.9 * min(bounds)
        assert near >= n_games / 10

    @pytest.mark.parametrize("prior", [nightly(0.5), 0.25])
    def test_the_simulated_bayes_attacker_is_the_exact_one(self, prior) -> None:
        """Share of won games within 4 standard errors; the seeds are fixed."""
        rng = np.random.default_rng(1)
        for number in range(6):
            mech = mechanism("mean", rng.standard_cauchy(8), k=int(8 * prior))
            table = BayesAttacker.of(mech, AttackConfig(40_000, seed=number))
            played = table.attack((GaussianNoise, LaplaceNoise)[number % 2](0.3))
            assert np.mean(played.guess == played.scores.member[:, 0]) == pytest.approx(
                played.accuracy, abs=4 * math.sqrt(played.accuracy * (1 - played.accuracy) / 40_000)
            )

    @pytest.mark.slow
    def test_three_numbers_are_attacked_by_simulation(self) -> None:
        """With two coordinates that are the same for all the accuracy is that in one dimension."""
        x = np.random.default_rng(2).normal(size=8)
        noise = GaussianNoise(0.2)
        wide = mechanism("mean", np.column_stack([x, np.zeros(8), np.ones(8)]))
        found = accuracy(attack_release(wide, noise, AttackConfig(40_000)))
        assert (found.status, found.attack, found.detail["games"]) == ("measured", "bayes", 20_000)
        assert found.scope == accuracy(attack_release(mechanism("mean", x), noise, AttackConfig(20))).scope
        assert found.low <= exact(mechanism("mean", x), noise) <= found.high
        given = accuracy(attack_release(wide, noise, AttackConfig(4_000, record=2)))
        assert given.detail["games"] == 4_000  # nothing is left to be learned
        assert given.scope == Scope("worst", 2)

    def test_the_posterior_in_three_dimensions(self) -> None:
        """The log-odds of each simulated release, against ten lines without logarithms or blocks."""
        x, ask = np.random.default_rng(3).normal(size=(6, 3)), AttackConfig(50, seed=4, record=1)
        noise = GaussianNoise(0.3, np.diag([1.0, 2.0, 0.5]))
        mech = mechanism("mean", x, k=2)
        played = BayesAttacker.of(mech, ask).attack(noise)
        sets = [set(each) for each in combinations(range(6), 2)]
        which = attack_games.stream(4, "calibrate", "contest", "subsets").integers(15, size=50)
        seen = np.array([x[list(sets[place])].mean(axis=0) for place in which]) + ask.noise(noise, 50, 3)
        law = stats.multivariate_normal(np.zeros(3), 0.09 * np.diag([1.0, 2.0, 0.5]))
        odds = [
            np.log(sum(law.pdf(y - x[list(each)].mean(axis=0)) for each in sets if 1 in each))
            - np.log(sum(law.pdf(y - x[list(each)].mean(axis=0)) for each in sets if 1 not in each))
            for y in seen
        ]
        assert played.scores.value[:, 0] == pytest.approx(np.array(odds), abs=1e-9)
        assert played.scores.member[:, 0].tolist() == [1 in sets[place] for place in which]
        assert (played.guess == (np.array(odds) > 0)).all()

    def test_ball_noise_is_attacked_by_simulation(self) -> None:
        """Uniform noise on [-R, R] under a shift of 1 is told apart with probability 1/(2 R)."""
        mech = mechanism(f"{HERE}:first_is_in", points(6))
        found = accuracy(attack_release(mech, BallNoise(2.0, d=1), AttackConfig(20_000, record=0)))
        assert found.status == "measured"
        assert found.low <= 0.5 + 0.125 <= found.high

    def test_without_noise_rounding_tells_nothing(self) -> None:
        """.1 + .2 is not .3 + 0 in floating point; fractions know better."""
        values = ["0.1", "0.2", "0.3", "0", "0.4", "0.1", "0.7", "0.6"]
        found = [exact(mechanism("sum", [float(v) for v in values], k=4), None, record=record) for record in range(8)]
        sets = list(combinations(range(8), 4))
        total = {each: sum(Fraction(values[i]) for i in each) for each in sets}
        for record, value in enumerate(found):
            laws = [Counter(total[s] for s in sets if (record in s) == side) for side in (True, False)]
            best = sum(max(laws[0][t], laws[1][t]) for t in laws[0] | laws[1])
            assert value == pytest.approx(best / len(sets), abs=1e-12)
            assert 0.5 < value < 1

    def test_the_exact_curve_without_noise(self) -> None:
        """The sum of {0, 0, 1, 1}, k = 2: 0, 1 or 2, and P_in = (0, 2/3, 1/3), P_out = (1/3, 2/3, 0) for a 1."""
        findings, curves = attack_release(mechanism("sum", [0, 0, 1, 1]), None, AttackConfig(20, record=3, fpr=(0.25,)))
        assert [each.value for each in findings] == pytest.approx([2 / 3, 1 / 3 + 0.25])
        assert {each.status for each in findings} == {"certified"}
        (curve,) = curves
        assert (curve.name, curve.release, curve.role) == ("bayes", "", "measured")
        assert curve.tradeoff.tpr_at([0.0, 2 / 3]) == pytest.approx([1 / 3, 1.0])

    def test_noise_never_helps(self) -> None:
        rng = np.random.default_rng(8)
        for _ in range(20):
            data, k, _ = random_game(rng)
            found = attack_release(
                mechanism("mean", data, k), GaussianNoise(float(np.exp(rng.normal()))), AttackConfig(1)
            )
            assert accuracy(found, "without_noise").value >= accuracy(found).value

    def test_a_random_fit_is_not_enumerated(self) -> None:
        """Its output on a data set is not known to the attacker."""
        assert BayesAttacker.of(mechanism(f"{HERE}:bootstrapped", points(8)), AttackConfig(100)) is None
        assert BayesAttacker.of(mechanism(f"{HERE}:mean_of", points(8)), AttackConfig(100)) is not None

    def test_no_more_fits_than_games(self) -> None:
        """C(15, 7) = 6,435 data sets: many fits, few sums."""
        assert BayesAttacker.of(mechanism(f"{HERE}:mean_of", points(15)), AttackConfig(4_000)) is None
        assert len(BayesAttacker.of(mechanism("mean", points(15)), AttackConfig(10)).member) == 6_435
        assert BayesAttacker.of(mechanism("mean", points(18)), AttackConfig(10)) is None

    def test_failed_fits_are_guessed_by_the_prior(self) -> None:
        """D without record 0 releases a mean; with it nothing, and the attacker says "out" (k = 2 of 5)."""
        mech = mechanism(f"{HERE}:fails_with_the_first", points(5), k=2)
        assert exact(mech, None, record=0) == pytest.approx(0.6)  # always "out"
        # record 1: the 6 pairs of {1, 2, 3, 4} have the sums 3, 4, 5, 5, 6, 7; it is in (1,2), (1,3) and one of the 5s
        assert exact(mech, None, record=1) == pytest.approx((2 + 1 + 2 + 3) / 10)
        found = accuracy(attack_release(mech, GaussianNoise(1e-3), AttackConfig(2_000, record=1)))
        assert found.value == pytest.approx(0.8, abs=1e-9)
        assert found.method[1:] == (Term("all_data_sets", sets=10), Term("failed_data_sets", failed=4))

    def test_the_simulated_bayes_attacker_guesses_by_the_prior_too(self) -> None:
        mech = mechanism(f"{HERE}:fails_with_the_first", points(5), k=2)
        played = BayesAttacker.of(mech, AttackConfig(4_000, record=1)).attack(GaussianNoise(1e-3))
        assert played.n_failed == pytest.approx(0.4 * 4_000, abs=4 * math.sqrt(0.24 * 4_000))
        assert np.count_nonzero(played.scores.value[:, 0] == 0) >= played.n_failed
        assert np.mean(played.guess == played.scores.member[:, 0]) == pytest.approx(
            0.8, abs=4 * math.sqrt(0.16 / 4_000)
        )

    def test_nothing_ever_comes_out(self) -> None:
        mech = mechanism("mean", [0, 1, 3, 7])
        table = BayesAttacker(
            mech, AttackConfig(50), np.zeros((0, 4), bool), np.zeros((0, 1)), mech.draws(6, 0, "x").member
        )
        assert table.accuracy(GaussianNoise(1.0)).tolist() == [(~table.failed[:, record]).mean() for record in range(4)]
        assert table.attack(None).tradeoff.advantage() == pytest.approx(0, abs=1e-12)
        assert table.attack(GaussianNoise(1.0)).n_failed == 50


class TestLikelihoodRatio:
    @pytest.mark.parametrize(("n", "k"), [(7, 3), (6, 3), (5, 1), (5, 4), (2, 1)])
    @pytest.mark.parametrize("statistic", ["mean", "sum"])
    def test_the_law_of_sums(self, statistic, n, k) -> None:
        """Mean, covariance and what each record moves, by enumeration; the share of each case by its prior."""
        x = np.random.default_rng(n).normal(size=(n, 2)) + 5
        mech = mechanism(statistic, x, k)
        law = Moments.known(x, k, mech.divisor)
        table = BayesAttacker.of(mech, AttackConfig(1))
        assert law.mean == pytest.approx(table.outputs.mean(axis=0))
        assert law.covariance == pytest.approx(np.cov(table.outputs.T, bias=True), abs=1e-12)
        noise = GaussianNoise(0.5, np.array([[2.0, 0.5], [0.5, 1.0]]))
        ratio = law.ratio(noise)
        for record in range(n):
            inside = table.member[:, record]
            one, other = table.outputs[inside], table.outputs[~inside]
            moved = one.mean(axis=0) - other.mean(axis=0)
            assert law.delta[record] == pytest.approx(moved)
            given = k / n * np.cov(one.T, bias=True) + (1 - k / n) * np.cov(other.T, bias=True)
            given = given + 0.25 * noise.shape
            assert ratio.norm[record] == pytest.approx(moved @ np.linalg.solve(given, moved), rel=1e-6)
            assert ratio.weights[record] == pytest.approx(np.linalg.solve(given, moved), rel=1e-6, abs=1e-9)
            without = ratio.mean - ratio.fraction[record] * moved
            assert without == pytest.approx(other.mean(axis=0))

    @pytest.mark.parametrize(("k", "scale"), [nightly(500, 0.03), nightly(500, 0.3), (250, 0.02)])
    def test_the_mean_of_normal_data(self, k, scale) -> None:
        """Accuracy of N(0, 1) against N(mu, 1) at the prior, mu from the covariance of the others."""
        x = np.random.default_rng(3).normal(size=(1000, 3))
        x[17] *= 12
        found = accuracy(attack_release(mechanism("mean", x, k), GaussianNoise(scale), AttackConfig(20_000)))
        assert found.scope == Scope("worst", 17)
        others = np.delete(x, 17, axis=0)
        given = k * (1000 - k) / 1000 * np.cov(others.T, bias=True) / k**2 + scale**2 * np.eye(3)
        moved = (x[17] - others.mean(axis=0)) / k
        mu, prior = math.sqrt(moved @ np.linalg.solve(given, moved)), k / 1000
        cut = math.log((1 - prior) / prior) / mu
        truth = prior * stats.norm.cdf(mu / 2 - cut) + (1 - prior) * stats.norm.cdf(mu / 2 + cut)
        assert found.low <= truth <= found.high
        assert found.detail["games"] == 20_000
        assert max(prior, 1 - prior) < truth < 0.99

    @pytest.mark.slow
    @pytest.mark.parametrize("n_games", sizes(1_500, full=4_000))
    def test_the_extremal_example_of_many_records(self, n_games) -> None:
        """A(D) = 1 if x is in D, else 0, learned from its releases: the noise of the complement is just enough."""
        mech = mechanism(f"{HERE}:first_is_in", points(40))
        noise = calibrate(Shifts(np.ones((1, 1)), "complement", d=1), 0.2, GaussianNoise)
        found = attack_release(mech, noise, AttackConfig(n_games))
        assert accuracy(found).scope == Scope("worst", 0)
        assert accuracy(found).value >= 0.95 * 0.7
        assert accuracy(found).low <= 0.7 <= accuracy(found).high
        assert accuracy(found, "without_noise").value == 1.0
        odd = accuracy(attack_release(mech, LaplaceNoise(1 / (2 * math.log(1 / 0.6))), AttackConfig(n_games, record=0)))
        assert odd.low <= 0.7 <= odd.high  # 1 - exp(-1/(2 b)) = .4

    @pytest.mark.slow
    @pytest.mark.parametrize("n_games", sizes(1_500, full=4_000))
    def test_sizes_of_coordinates_do_not_matter(self, n_games) -> None:
        """Three copies of one bit, at 1, a thousand and a thousandth: the units go into C."""
        mech = mechanism(f"{HERE}:first_is_in_of_three", points(40))
        noise = GaussianNoise(1.0, np.diag([3.0, 3e6, 3e-6]))
        found = accuracy(attack_release(mech, noise, AttackConfig(n_games)))
        assert found.scope == Scope("worst", 0)
        assert found.low <= stats.norm.cdf(0.5) <= found.high  # D^T C^-1 D = 1
        assert accuracy(attack_release(mech, noise, AttackConfig(n_games // 2)), "without_noise").value == 1.0

    def test_who_is_alone_in_a_cell_is_found_without_noise(self) -> None:
        """The counts are dependent (they sum to k), and one of them is the membership of one record."""
        x = np.array(["a"] * 20 + ["b"] * 19 + ["c"])
        table = mechanism("sum", np.column_stack([x == "a", x == "b", x == "c"]).astype(float))
        found = attack_release(table, None, AttackConfig(500))
        assert accuracy(found).scope == Scope("worst", 39)
        assert accuracy(found).value == 1.0

    @pytest.mark.parametrize("k", [10, 30])
    @pytest.mark.parametrize("n_games", sizes(1_000, full=4_000))
    def test_a_constant_statistic_tells_nothing(self, k, n_games) -> None:
        """Accuracy is that of the better prior guess, learned or known, with noise or without."""
        for statistic, data in ((f"{HERE}:same_for_all", points(40)), ("mean", np.full((40, 2), 7.0))):
            found = attack_release(mechanism(statistic, data, k), GaussianNoise(1.0), AttackConfig(n_games))
            for each in (accuracy(found), accuracy(found, "without_noise")):
                assert each.value == pytest.approx(0.75, abs=4 * math.sqrt(0.1875 / each.detail["games"]))
            assert [each.tradeoff.advantage() for each in found[1]] == pytest.approx([0, 0], abs=1e-12)

    @pytest.mark.parametrize("statistic", ["mean", f"{HERE}:mean_of"])
    @pytest.mark.parametrize("k", [4, 36])
    @pytest.mark.parametrize("n_games", sizes(1_000, full=3_000))
    def test_an_uneven_prior_is_never_lost(self, statistic, k, n_games) -> None:
        """Where little is to be seen the attacker stays with the better prior guess, .9."""
        x = np.random.default_rng(6).normal(size=(40, 1))
        found = accuracy(attack_release(mechanism(statistic, x, k), GaussianNoise(1.0), AttackConfig(n_games)))
        assert found.value >= 0.9 - 3 * math.sqrt(0.09 / found.detail["games"])
        assert found.value <= 0.9 + 4 * math.sqrt(0.09 / found.detail["games"]) + 0.01

    def test_failed_fits_are_guessed_by_the_prior(self) -> None:
        """The statistic fails wherever one of 4 of the 44 records is in, which tells nothing that is used."""
        mech = mechanism(f"{HERE}:always_fails_beyond_four", [*range(40), *[1e6] * 4], k=15)
        drawn = SimulatedSets.of(mech, AttackConfig(300))
        assert drawn.failed.tolist() == (drawn.member(np.tile(np.arange(40, 44), (300, 1))).any(axis=1)).tolist()
        found = accuracy(attack_release(mech, GaussianNoise(1.0), AttackConfig(300, record=0)))
        assert found.detail["failed"] == int(drawn.failed[150:].sum()) > 0
        played = GaussianAttacker.of(mech, AttackConfig(300, record=0)).attack(GaussianNoise(1.0))
        assert not played.guess[drawn.failed[150:]].any()
        assert (played.scores.value[drawn.failed[150:]] == 0).all()

    def test_nothing_is_learned_where_everything_fails(self) -> None:
        mech = mechanism(f"{HERE}:mean_of", points(40), k=30)
        drawn = SimulatedSets.of(mech, AttackConfig(30))
        empty = SimulatedSets(drawn.packed, np.full((30, 1), np.nan), 40)
        law = Moments.learned(empty, mech.prior)
        played = GaussianAttacker(mech, AttackConfig(30), empty, law, False, 10, 5).attack(GaussianNoise(1.0))
        assert played.guess.tolist() == [True] * 15  # 3 of 4 records are in
        assert played.n_failed == 15

    @pytest.mark.parametrize("games", [1, 2, 3, 7])
    def test_very_few_games(self, games) -> None:
        found = attack_release(mechanism(f"{HERE}:mean_of", points(40)), GaussianNoise(1.0), AttackConfig(games))
        assert accuracy(found).detail["games"] == games - games // 2
        assert 0 <= accuracy(found).low <= accuracy(found).high <= 1

    def test_what_is_learned_of_a_mean(self) -> None:
        """Each record's effect within the error that the law states: chi-squares of 400 records, mean 2."""
        x = np.random.default_rng(9).normal(size=(400, 2))
        drawn = SimulatedSets.of(mechanism("mean", x), AttackConfig(3_000))
        law, truth = Moments.learned(drawn, 0.5), Moments.known(x, 200, 200)
        wrong = law.delta - truth.delta
        square = np.einsum("nd,nd->n", wrong, np.linalg.solve(truth.covariance, wrong.T).T) / law.error
        assert square.mean() == pytest.approx(2, abs=0.3)
        assert law.covariance == pytest.approx(truth.covariance, abs=0.1 * truth.covariance.max())
        raw = np.einsum("nd,nd->n", law.delta, np.linalg.solve(law.covariance, law.delta.T).T)
        real = truth.ratio(None).norm
        assert abs(law.ratio(None).norm.mean() - real.mean()) < abs(raw.mean() - real.mean())

    def test_the_ridge_of_few_sets(self) -> None:
        """d/(d + sets) below four sets a coordinate: 3/(3 + 6)."""
        drawn = SimulatedSets.of(mechanism("mean", np.eye(3).repeat(4, axis=0)), AttackConfig(6))
        assert Moments.learned(drawn, 0.5).ridge == pytest.approx(1 / 3)

    def test_members_are_counted_in_blocks(self, monkeypatch) -> None:
        """Whatever the size of the blocks, sums and memberships are those of the draws."""
        monkeypatch.setattr(attack_games, "_MEMBERS", 500)
        monkeypatch.setattr(attack_games, "_RECORDS", 8)
        mech = mechanism("mean", points(29), k=11)
        drawn = SimulatedSets.of(mech, AttackConfig(40))
        member = drawn.member(np.tile(np.arange(29), (40, 1)))
        assert (member.sum(axis=1) == 11).all()
        assert drawn.outputs[:, 0] == pytest.approx(member @ np.arange(29.0) / 11)
        values = np.random.default_rng(0).normal(size=(40, 2))
        assert drawn.sums(values) == pytest.approx(member.T @ values)

    @pytest.mark.parametrize(
        "noise",
        [
            GaussianNoise(0.7, np.array([[2.0, 0.6], [0.6, 1.0]])),
            GaussianNoise(0.7),
            NormNoise(0.4, Lp(1, (1.0, 9.0))),
            NormNoise(0.4, Mahalanobis(np.array([[2.0, 0.6], [0.6, 1.0]]))),
            BallNoise(3.0, d=2),
        ],
    )
    def test_the_covariance_of_the_noise(self, noise) -> None:
        drawn = noise.sample(np.zeros((200_000, 2)), np.random.default_rng(0))
        truth = noise_covariance(noise, 2)
        assert np.cov(drawn.T) == pytest.approx(truth, abs=0.02 * truth.max())

    @pytest.mark.slow
    def test_a_random_record(self) -> None:
        """Half of the records are three times as large; the share of won games is the mean over the records."""
        x = np.random.default_rng(4).choice([-1.0, 1.0], size=(200, 1)) * np.repeat([0.1, 3.0], 100)[:, None]
        mech = mechanism("mean", x)
        found = attack_release(mech, GaussianNoise(0.005), AttackConfig(20_000, promise="average"))
        law = Moments.known(x, 100, 100).ratio(GaussianNoise(0.005))
        truth = stats.norm.cdf(np.sqrt(law.norm) / 2).mean()
        own = accuracy(found)
        assert own.scope == Scope("average")
        assert own.low <= truth <= own.high
        learned = accuracy(
            attack_release(
                mechanism(f"{HERE}:mean_of", x), GaussianNoise(0.005), AttackConfig(1_500, promise="average", record=3)
            )
        )
        assert learned.low <= truth  # who learns from games is no better than who knows the law: false alarm 2.5 %


class TestWhatIsSaid:
    def test_no_games(self) -> None:
        findings, curves = attack_release(mechanism("mean", [0, 1, 3, 7]), GaussianNoise(1.0), AttackConfig(0))
        (only,) = findings
        assert (only.quantity, only.value, only.reason) == ("accuracy", None, Term("no_games"))
        assert curves == []
        certified, curve = ceiling()
        text = protected([*certified, *findings], [curve]).table(full=True)
        assert "No attack was run against it." in " ".join(text.split())

    @pytest.mark.parametrize("data", [np.arange(8.0), nightly(np.random.default_rng(0).normal(size=(300, 3)))])
    def test_the_page_shows_it(self, data) -> None:
        """Exact or measured: sentence, row, curve; and nobody's number."""
        findings, curves = attack_release(mechanism("mean", data), GaussianNoise(0.3), AttackConfig(3_000))
        certified, curve = ceiling(0.2)
        report = protected([*certified, *findings], [curve, *curves])
        text, page = " ".join(report.table(full=True).split()), report.to_html()
        assert "The best attack that we know is right in" in text
        assert "Without noise it would be right in" in text
        assert not re.search(r"person \(\d+\)", text + page)
        names = [(each.name, each.release, each.role) for each in curves]
        assert names == [(findings[0].attack, "", "measured"), ("without_noise", "without_noise", "measured")]

    def test_the_measured_curve_has_a_band(self) -> None:
        findings, curves = attack_release(
            mechanism("mean", np.random.default_rng(0).normal(size=(300, 1))), None, AttackConfig(3_000)
        )
        (curve,) = curves
        assert curve.n_nonmember == pytest.approx(1_500, abs=120)
        tpr = np.asarray(curve.tradeoff.tpr_at(curve.fpr))
        assert (np.asarray(curve.low) <= tpr + 1e-12).all()
        assert (tpr <= np.asarray(curve.high) + 1e-12).all()
        rates = {each.operating_point["fpr"]: each for each in findings if each.quantity == "tpr"}
        assert rates[0.01].value == pytest.approx(float(curve.tradeoff.tpr_at(0.01)), abs=0.01)
        assert rates[0.001].low <= rates[0.001].value <= rates[0.001].high

    def test_a_record_that_is_always_in_has_no_curve(self) -> None:
        findings, curves = attack_release(
            mechanism("mean", points(200), k=197), GaussianNoise(1.0), AttackConfig(3, record=0)
        )
        assert curves == []
        assert findings[1].reason == Term("no_mixed_model")

    def test_the_same_seed_gives_the_same(self) -> None:
        mech = mechanism(f"{HERE}:mean_of", points(40))
        once, twice, other = (
            attack_release(mech, GaussianNoise(0.3), AttackConfig(100, seed=seed)) for seed in (1, 1, 2)
        )
        assert once[0] == twice[0]
        assert once[0] != other[0]

    def test_the_grid_is_attacked(self) -> None:
        """Half a step of rounding makes two means equal: what is released cannot tell them apart."""
        coarse = Grid(1.0)
        mech = mechanism("sum", [0.1, 0.2, 0.3, 0.4])
        assert exact(mech, None) > 0.6
        assert exact(mech, None, grid=coarse) == 0.5
        fits = mechanism(f"{HERE}:mean_of", [0.1, 0.2, 0.3, 0.4])
        assert exact(fits, None, grid=coarse) == 0.5
        drawn = SimulatedSets.of(
            mechanism("mean", np.random.default_rng(0).normal(size=(40, 2))), AttackConfig(20, grid=Grid(2**-4))
        )
        assert (drawn.outputs * 20 * 16 == np.rint(drawn.outputs * 20 * 16)).all()

    def test_coordinates_without_noise_are_the_same_for_all(self) -> None:
        """A column of ones gets no noise; the rest is attacked as if it were not there."""
        x = np.random.default_rng(0).normal(size=6)
        wide = mechanism("mean", np.column_stack([np.ones(6), x]))
        noise = GaussianNoise(0.4)
        value = exact(wide, noise, noisy_coords=np.array([False, True]))
        assert value == pytest.approx(exact(mechanism("mean", x), noise))
        free = attack_release(wide, None, AttackConfig(5, noisy_coords=np.array([False, False])))
        assert accuracy(free).value == 1.0

    @pytest.mark.parametrize(
        ("words", "line"),
        [
            ({"n_games": -1}, "games must be >= 0, got -1"),
            ({"n_games": 5, "confidence": 1.0}, "confidence must be > 0 and < 1, got 1"),
            ({"n_games": 5, "fpr": (0.0,)}, "fpr must be > 0 and < 1, got 0"),
            ({"n_games": 5, "record": 4}, r"record must be from 0 to n - 1 = 3, got 4"),
            ({"n_games": 5, "record": -1}, r"record must be from 0 to n - 1 = 3, got -1"),
        ],
    )
    def test_bad_input(self, words, line) -> None:
        with pytest.raises(ValueError, match=f"^{line}$"):
            attack_release(mechanism("mean", [0, 1, 3, 7]), GaussianNoise(1.0), AttackConfig(**words))


class TestSignals:
    def test_an_audit_of_the_release(self, tmp_path) -> None:
        """The file that the audit reads gives the accuracy that the contest found."""
        x = np.random.default_rng(1).normal(size=(60, 2))
        x[7] *= 10
        mech, noise, ask = mechanism("mean", x), GaussianNoise(0.1), AttackConfig(1_000)
        seen = signals(mech, noise, ask)
        assert seen.game.member.shape == (1_000, 4)
        found = accuracy(attack_release(mech, noise, ask))
        assert found.scope == Scope("worst", 7)
        score = seen.array("step_dot")[:, 0, 0] - seen.array("step_norm")[:, 0, 0] / 2
        assert np.mean((score > 0) == seen.game.member[:, 0]) == found.value
        path = str(tmp_path / "signals.npz")
        np.savez(path, member=seen.game.member, is_target_point=seen.game.is_target_point, **seen.arrays)
        report = audit_signals(read_signals(path), attacks="likelihood_ratio")
        best = max(each.value for each in report.findings if each.quantity == "accuracy" and each.attack)
        assert 0.5 < best < found.value  # over four records, three of them drawn at random

    def test_half_of_the_games_teach(self) -> None:
        seen = signals(mechanism(f"{HERE}:first_is_in", points(40)), GaussianNoise(0.5), AttackConfig(300))
        assert seen.game.member.shape == (150, 4)
        dot = seen.array("step_dot")[:, 0, 0] - seen.array("step_norm")[:, 0, 0] / 2
        assert np.mean((dot > 0) == seen.game.member[:, 0]) == pytest.approx(stats.norm.cdf(1), abs=0.12)

    def test_the_record_that_is_asked_for_comes_first(self) -> None:
        """A two-record data set has one other; the statistic of a failed release says nothing."""
        assert signals(mechanism("mean", [0, 1]), None, AttackConfig(9)).game.member.shape == (9, 2)
        mech = mechanism(f"{HERE}:always_fails_beyond_four", [*range(40), *[1e6] * 4], k=15)
        seen, drawn = (
            signals(mech, GaussianNoise(1.0), AttackConfig(300, record=39)),
            SimulatedSets.of(mech, AttackConfig(300)),
        )
        assert seen.game.member[:, 0].tolist() == drawn.member(np.full((300, 1), 39))[150:, 0].tolist()
        failed = drawn.failed[150:]
        assert not seen.array("step_dot")[failed].any()
        assert not seen.array("step_norm")[failed].any()
        assert seen.array("step_norm")[~failed, 0].all()

    def test_no_games(self) -> None:
        with pytest.raises(ValueError, match=r"^signals need simulated releases, got games = 0$"):
            signals(mechanism("mean", [0, 1, 3, 7]), None, AttackConfig(0))


@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.parametrize("n_contests", sizes(400))
def test_coverage(n_contests) -> None:
    """Contests of 60 games each about one bit in noise: the interval holds the true accuracy in 95 %.

    A Clopper-Pearson interval covers in at least 95 %, whatever the truth: fewer than 367 of 400, or 3,760 of 4,000,
    come with a probability of .2 % at most. A coverage of 89.7 %, or 93.5 %, is found in 9 of 10 cases. The sum of one
    1 and 39 zeros is the membership of a record, so that the accuracy is ``Phi(1/(2 s))``. Contests are of the findings
    alone: their curves would take most of the time.
    """
    mech = mechanism("sum", np.eye(40)[:, :1])
    truth = stats.norm.cdf(1 / (2 * 0.8))
    held = 0
    for seed in range(n_contests):
        ask = AttackConfig(60, seed=seed, record=0, grid=Grid(1.0))
        found = attack.accuracy(mech, GaussianAttacker.of(mech, ask).attack(GaussianNoise(0.8)), ask)
        held += found.low <= truth <= found.high
    assert held >= n_contests - allowed(n_contests)
