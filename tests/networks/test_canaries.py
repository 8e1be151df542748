"""Canaries, and audits of DP-SGD with them: right trainings are not accused, wrong ones are."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from torch import nn

from leakbound.attacks import ATTACKS
from leakbound.core.games import canaries
from leakbound.core.types import Points, Signals
from leakbound.dpsgd import dpsgd_multiplier
from leakbound.dpsgd.canaries import CANARIES, Canaries, dirac, mahalanobis, mislabelled, random, rank_sums
from leakbound.dpsgd.clipping import clipped_sum, noisy_sum
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.network import PrivateNetwork
from leakbound.metrics.epsilon import epsilon_lower
from tests.marks import nightly
from tests.networks.training_privately import BatchClipping, NoiseOfTheMean, Training, WithoutClipping

DELTA = 1e-5


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))


@pytest.fixture(scope="module")
def digits() -> Points:
    X, y = load_digits(return_X_y=True)
    return Points(X[:1000].astype(np.float32) / 16, y[:1000], digest="digits")


def noise_of_the_mean(parts, dpsgd, noise, normaliser):
    """The noise that belongs to the mean, on the sum: B times too little."""
    return clipped_sum(parts, dpsgd.clip, start=dpsgd.noise_multiplier * dpsgd.clip / normaliser * noise)


def without_clipping(parts, dpsgd, noise, normaliser):
    return dpsgd.noise_multiplier * dpsgd.clip * noise + sum(rows.sum() for rows in parts)


def batch_clipping(parts, dpsgd, noise, normaliser):
    """The mean gradient is clipped, not each gradient."""
    mean = sum(rows.sum() for rows in parts) / normaliser
    return dpsgd.noise_multiplier * dpsgd.clip * noise + mean * min(1, dpsgd.clip / float(mean.norm())) * normaliser


MISTAKES = {"noise": noise_of_the_mean, "no clipping": without_clipping, "batch clipping": batch_clipping}


def played(release: PrivateNetwork, chosen: Canaries, seed: int, want: tuple[str, ...] = ()) -> Signals:
    """One training in which the canaries are in by coins."""
    game = canaries(len(chosen.points), chosen.numbers, 1, seed=seed)
    seen = chosen.watched_by(release).observe(
        chosen.points, game.member, np.array([seed]), ["step_dot", "step_norm", *want]
    )
    return Signals(game, chosen.points, seen)


def lower(signals: Signals, rate: float) -> float:
    scores = ATTACKS["likelihood_ratio"].with_parameters(rate=rate)(signals)
    return epsilon_lower(scores, DELTA, method="coins").value


class TestChoosing:
    def test_the_table_names_functions_that_are_there(self):
        for name, path in CANARIES.items():
            module, _, function = path.partition(":")
            assert getattr(import_module(module), function).__name__ == name

    def test_rank_sums_are_those_of_scipy(self):
        values = np.random.default_rng(0).integers(0, 5, size=(40, 6)).astype(float)
        expected = sum(rankdata(column) for column in values.T)
        np.testing.assert_allclose(rank_sums(values), expected)

    def test_labels_are_wrong_and_spread(self, digits):
        chosen = mislabelled(digits, 400, seed=3)
        wrong = chosen.points.y != digits.y
        np.testing.assert_array_equal(np.flatnonzero(wrong), chosen.numbers)
        assert np.bincount((chosen.points.y - digits.y)[wrong] % 10, minlength=10)[1:].min() > 20
        assert chosen.points.digest != digits.digest
        again = mislabelled(digits, 400, seed=3)
        assert again.points.digest == chosen.points.digest != mislabelled(digits, 400, seed=4).points.digest

    def test_random_ones_are_a_uniform_draw(self, digits):
        counts = sum(np.isin(np.arange(1000), random(digits, 100, seed).numbers) for seed in range(100))
        assert counts.sum() == 10_000
        assert 7 < counts.var() < 11  # binomial: 9

    def test_dirac_ones_have_points_and_coordinates_of_their_own(self, digits):
        release = PrivateNetwork(network, DpSgd())
        chosen = dirac(digits, 50, release=release)
        assert chosen.numbers.tolist() == list(range(1000, 1050))
        assert len(np.unique(chosen.coordinates)) == 50
        assert chosen.coordinates.max() < release.n_parameters() == 65 * 32 + 33 * 10
        assert chosen.points.digest != digits.digest

    @pytest.mark.slow
    def test_the_farthest_gradients_are_found(self, digits):
        """Of 40 candidates 8 have a wrong label and strong ink; the law of gradients is that of the clean records."""
        odd = random(digits, 8, seed=1).numbers
        X, y = digits.x.copy(), digits.y.copy()
        X[odd], y[odd] = 2 * X[odd], (y[odd] + 5) % 10
        drawn = mahalanobis(
            Points(X, y), 20, seed=0, release=PrivateNetwork(network, DpSgd(steps=60, clip=4.0)), candidates=500
        )
        candidates = mahalanobis(
            Points(X, y), 500, seed=0, release=PrivateNetwork(network, DpSgd(steps=1)), candidates=500
        )
        there = np.intersect1d(odd, candidates.numbers)
        assert len(there) >= 2
        assert np.isin(there, drawn.numbers).all()

    @pytest.mark.parametrize(
        ("choose", "line"),
        [
            (lambda points, release: random(points, 1000), "fewer than the 1,000 points"),
            (lambda points, release: random(points, 0), "canaries must be >= 1"),
            (lambda points, release: dirac(points, 3000, release=release), "3,000 Dirac canaries in 2,410 parameters"),
            (lambda points, release: mahalanobis(points, 9, release=release, candidates=8), "9 canaries of 8"),
            (lambda points, release: mislabelled(Points(points.x), 5), "need labels"),
            (lambda points, release: mislabelled(Points(points.x, np.zeros(1000)), 5), "at least 2 classes"),
        ],
    )
    def test_bad_numbers_are_refused_in_one_line(self, digits, choose, line):
        with pytest.raises(ValueError, match=line):
            choose(digits, PrivateNetwork(network, DpSgd()))


CLAIMED = DpSgd(noise_multiplier=3.0, sample_rate=0.05, steps=200)  # epsilon = .94 at delta = 1e-5


def audited(points: Points, dpsgd: DpSgd, aggregate, seed: int, n: int = 500) -> float:
    """Lower bound of epsilon from one training with Dirac canaries."""
    release = PrivateNetwork(network, dpsgd, knowledge="others", aggregate=aggregate)
    return lower(played(release, dirac(points, n, seed, release=release), seed), dpsgd.sample_rate)


def audited_own(points: Points, dpsgd: DpSgd, kind: type[Training], seed: int) -> float:
    """The same from a training of plain PyTorch, whose canaries are records."""
    release = PrivateNetwork(network, dpsgd, train=kind(dpsgd, len(points) + 250), references=64)
    return lower(played(release, dirac(points, 500, seed, release=release), seed), dpsgd.sample_rate)


OWN = {"noise": NoiseOfTheMean, "no clipping": WithoutClipping, "batch clipping": BatchClipping}
WHOSE = {"ours": (audited, noisy_sum, MISTAKES), "theirs": (audited_own, Training, OWN)}


@pytest.mark.parametrize("whose", ["ours", nightly("theirs")])
class TestMistakes:
    """A correct training is accused with probability at most .05 a run, were its noise at the accountant's limit.

    The mean of a batch, with canaries 100 clipping norms long, is longer than the clipping norm in every step.
    """

    @pytest.mark.slow
    def test_a_correct_training_is_not_accused_and_wrong_ones_are(self, digits, whose):
        run, right, wrong = WHOSE[whose]
        claimed = CLAIMED.ceiling().epsilon(DELTA)
        assert run(digits, CLAIMED, right, 0) <= claimed
        for mistake in wrong.values():
            assert run(digits, CLAIMED, mistake, 0) > claimed
        assert run(digits, replace(CLAIMED, clip=0.1), wrong["batch clipping"], 0) > claimed

    @pytest.mark.nightly
    @pytest.mark.parametrize("clip", [1.0, 0.1])
    @pytest.mark.parametrize("mistake", MISTAKES)
    def test_wrong_trainings_are_found_in_20_of_20_runs(self, digits, whose, mistake, clip):
        run, _, wrong = WHOSE[whose]
        claimed, dpsgd = CLAIMED.ceiling().epsilon(DELTA), replace(CLAIMED, clip=clip)
        assert min(run(digits, dpsgd, wrong[mistake], seed) for seed in range(20)) > claimed

    @pytest.mark.nightly
    @pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0, 8.0])
    def test_correct_trainings_are_accused_in_none_of_20_runs(self, digits, whose, epsilon):
        """At a level of 5 % one in 20 were no scandal, but the bound of one run lies far below the truth.

        Where the batches are unknown, half of the runs show nothing at epsilon = 1; of 20 in which there were nothing
        to show 5 would show something with probability .3 %.
        """
        run, right, _ = WHOSE[whose]
        noise = dpsgd_multiplier(0.05, 200, epsilon=epsilon, delta=DELTA, adjacency="add_remove")
        bounds = [run(digits, replace(CLAIMED, noise_multiplier=noise), right, seed) for seed in range(20)]
        assert np.count_nonzero(bounds) >= 5
        assert np.median(bounds) > 0 or (whose, epsilon) == ("theirs", 1.0)
        assert max(bounds) <= epsilon


class TestStrength:
    """Of an attacker who sees every step, on 1,000 digits with 500 canaries more or among them."""

    DPSGD = DpSgd(dpsgd_multiplier(0.05, 200, epsilon=8.0, delta=DELTA, adjacency="add_remove"), 1.0, 0.05, 200)

    def test_at_epsilon_8_one_run_shows_at_least_2(self, digits):
        bound = audited(digits, self.DPSGD, noisy_sum, 0, n=2000)
        assert 2 <= bound <= 8

    @pytest.mark.nightly
    def test_at_epsilon_8_every_one_of_20_runs_shows_at_least_2(self, digits):
        dpsgd = replace(self.DPSGD, steps=500, noise_multiplier=0.97)  # epsilon = 7.996
        bounds = [audited(digits, dpsgd, noisy_sum, seed, n=2000) for seed in range(20)]
        assert 2 <= min(bounds) <= max(bounds) <= 8

    @pytest.mark.slow
    def test_the_sum_over_the_steps_beats_the_largest_step_and_the_loss(self, digits):
        """AUC of 500 Dirac canaries; its standard error is at most .026."""
        release = PrivateNetwork(network, self.DPSGD, knowledge="others")
        best, largest, loss = aucs(played(release, dirac(digits, 500, release=release), 0, ("loss",)))
        assert best > largest + 0.05 > loss

    @pytest.mark.nightly
    @pytest.mark.parametrize("knowledge", ["distribution", "others"])
    def test_it_beats_them_on_records_too(self, digits, knowledge):
        """Mean AUC of 8 runs with 300 mislabelled canaries."""
        release = PrivateNetwork(network, self.DPSGD, knowledge=knowledge)
        runs = [aucs(played(release, mislabelled(digits, 300, seed), seed, ("loss",))) for seed in range(8)]
        best, largest, loss = np.mean(runs, axis=0)
        assert best > largest
        assert best > loss + 0.05


def aucs(signals: Signals) -> tuple[float, float, float]:
    """Of the likelihood ratio, of the largest step as printed, and of the loss."""
    member = signals.game.target_member[0]
    ratio = ATTACKS["likelihood_ratio"].with_parameters(rate=0.05)(signals).value[0]
    largest = (signals.targets("step_dot") - signals.targets("step_norm") / 2)[0].max(axis=1)
    loss = signals.targets("loss")[0]
    return roc_auc_score(member, ratio), roc_auc_score(member, largest), roc_auc_score(member, -loss)
