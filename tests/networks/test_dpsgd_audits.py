"""DP-SGD compared with its accountant in one run, from Python and from the command line.

A training that is right is refuted with probability at most 1e-3 a run, were its noise at the accountant's limit.
"""

from __future__ import annotations

import builtins
import html
import math
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.datasets import load_digits
from torch import nn

import leakbound as ls
from leakbound.attacks import ATTACKS
from leakbound.auditing.canaries import attacks_on, private_network
from leakbound.auditing.claim_tests import LEVEL, OF_NOISE, OF_STEPS, ClaimTest
from leakbound.auditing.noise_tests import StepNoise
from leakbound.cli.gates import exit_code
from leakbound.core import games
from leakbound.core.findings import Finding, Term
from leakbound.core.tradeoff.claims import Claim
from leakbound.core.types import Scores
from leakbound.data import from_arrays
from leakbound.dpsgd import dpsgd_multiplier
from leakbound.dpsgd.clipping import clipped_sum
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.diagnostics import StepDiagnostics
from leakbound.dpsgd.promise import AccountantClaim, denied
from leakbound.metrics.counting import Guesses
from leakbound.metrics.epsilon import evidence
from leakbound.papers.azize2024.networks import shallow
from leakbound.runtime.observe import Execution, observe
from tests.cli.calling import caller, refused
from tests.marks import nightly, nightly_but
from tests.networks.training_privately import Training
from tests.test_docs import ROOT, is_shown

HERE = __name__
CLAIMED = DpSgd(noise_multiplier=3.0, sample_rate=0.05, steps=200)  # epsilon = .94 at delta = 1e-5
SHORT = DpSgd(noise_multiplier=2.0, sample_rate=0.1, steps=20)
MISLABELLED = {"game": ls.Canaries("mislabelled", n=60)}
NETWORK = f"audit --model {HERE}:network --dataset digits --n-jobs 1"
PLANTED = f"{NETWORK} --game canaries,n=300"


def network(width: int = 32) -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, width), nn.Tanh(), nn.Linear(width, 10))


def linear() -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 10))


def normed() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 8), nn.BatchNorm1d(8), nn.Linear(8, 10))


def noise_of_the_mean(parts, dpsgd, noise, normaliser):
    """The noise that belongs to the mean, on the sum: B times too little."""
    return clipped_sum(parts, dpsgd.clip, start=dpsgd.noise_multiplier * dpsgd.clip / normaliser * noise)


def without_clipping(parts, dpsgd, noise, normaliser):
    return dpsgd.noise_multiplier * dpsgd.clip * noise + sum(rows.sum() for rows in parts)


def batch_clipping(parts, dpsgd, noise, normaliser):
    """The mean gradient is clipped, not each gradient."""
    mean = sum(rows.sum() for rows in parts) / normaliser
    return dpsgd.noise_multiplier * dpsgd.clip * noise + mean * min(1, dpsgd.clip / float(mean.norm())) * normaliser


class OnlyCanariesClipped(Training):
    """The parameters of the added layer, the last ones, are clipped and those of the network are not."""

    def update(self, gradients, normaliser, generator):
        n_own = sum(each.numel() for each in network().parameters())
        own, added = gradients[:, :n_own], gradients[:, n_own:]
        clip = self.dpsgd.clip
        added = added * (clip / added.norm(dim=1, keepdim=True).clamp(min=1e-12)).clamp(max=1.0)
        total = torch.cat([own.sum(0), added.sum(0)])
        noise = self.dpsgd.noise_multiplier * clip * torch.randn(len(total), generator=generator)
        return (total + noise) / normaliser


only_canaries_clipped = OnlyCanariesClipped(SHORT, 1797 + 50)
own_training = Training(SHORT, 1797)
quiet_training = Training(replace(SHORT, noise_multiplier=0.9 * SHORT.noise_multiplier), 1797)  # than claimed
MISTAKES = ["noise_of_the_mean", "without_clipping", "batch_clipping"]


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return X[:1000].astype(np.float32) / 16, y[:1000]


@pytest.fixture
def leakbound(tmp_path, monkeypatch, capfd, as_users_run_it):
    monkeypatch.chdir(tmp_path)
    return caller(monkeypatch, capfd)


def epsilons(report: ls.Report, release: str = "network") -> dict[tuple[str, bool], float | None]:
    """Bounds of epsilon by their side and whether they are of the whole curve; without those step by step."""
    of_release = [each for each in report.findings if each.quantity == "epsilon" and each.release == release]
    found = [each for each in of_release if Term("step_by_step") not in each.method]
    return {(each.bound_type, Term("whole_curve") in each.method): each.value for each in found}


def of_independent_canaries(report: ls.Report) -> list[Finding]:
    return [each for each in report.findings if Term("independent_canaries") in each.method]


def accountants(report: ls.Report) -> list:
    return [curve for curve in report.curves if curve.role == "certified"]


class TestVerdicts:
    @pytest.mark.slow
    def test_a_right_training_is_not_accused(self, digits):
        right = replace(CLAIMED, noise_multiplier=1.0)
        report = ls.audit(network, *digits, train={"dpsgd": right}, game=ls.Canaries(n=500), n_jobs=1)
        (curve,) = accountants(report)
        assert curve.verdict is not None
        assert curve.verdict.word == "not_refuted"
        assert curve.tradeoff.epsilon(1e-5) == curve.verdict.allowed == right.ceiling().epsilon(1e-5)
        found = epsilons(report)
        assert found["upper", False] == curve.verdict.allowed
        assert 0 < found["lower", False] <= found["upper", False]
        assert 0 < curve.verdict.measured <= found["lower", True] <= found["upper", False]
        (independent,) = of_independent_canaries(report)
        assert list(independent.assumptions) == [Term("dpsgd_but_for_its_noise"), Term("canaries_independent")]
        assert found["lower", True] < independent.value <= found["upper", False]
        # the verdict does not assume it, and another report is compared with each bound by itself
        claim_test = ClaimTest("coins", {"ratio": evidence(self.ratio(report, right), "coins")}, {})
        assert curve.verdict.measured == AccountantClaim(right, "add_remove", 1e-5).ruled_out(
            claim_test.curve_p_value, LEVEL - 7 * OF_NOISE - OF_STEPS
        )
        compared = [row for row in ls.compare(report, report).rows if row["quantity"].startswith("epsilon")]
        assert sorted(row["first"] for row in compared) == sorted(
            each.value for each in report.findings if each.quantity == "epsilon"
        )
        assert exit_code(report) == 0
        assert max(map(len, report.table().splitlines())) <= 100
        (release,) = report.about.releases
        assert (release.target_points, release.models, release.data.records) == (500, 1, 1000)

    @staticmethod
    def ratio(report: ls.Report, dpsgd: DpSgd) -> Scores:
        return ATTACKS["likelihood_ratio"].with_parameters(rate=dpsgd.sample_rate)(report.signals())

    @pytest.mark.by_day("words2-False")
    @pytest.mark.parametrize(
        ("words", "shown"),
        [
            ({}, True),
            ({"knowledge": "distribution"}, False),  # the unknown records reach the coordinates of all canaries
            ({"kind": "mislabelled"}, False),
        ],
    )
    def test_canaries_are_trials_of_their_own_where_dpsgd_makes_them_independent(self, digits, words, shown):
        dpsgd = replace(SHORT, noise_multiplier=1.0)
        game, n_models = ls.Canaries(n=60, **words), 3 if shown else 1
        report = ls.audit(network, *digits, train=dpsgd, game=game, n_models=n_models, n_jobs=1)
        found = of_independent_canaries(report)
        assert len(found) == shown
        if found:
            assert found[0].value > 0  # 180 canaries of three models together
            assert report.about.releases[0].models == 3

    @pytest.mark.usefixtures("without_charts")
    @pytest.mark.parametrize("mistake", nightly_but(MISTAKES, "batch_clipping"))
    def test_wrong_ones_are_refuted(self, leakbound, mistake, tmp_path):
        left = leakbound(f"{PLANTED} --dpsgd noise_multiplier=3 --dpsgd aggregate={HERE}:{mistake}")
        assert left.code == 2
        assert "leakbound: refuted: network: epsilon = 0.936, delta = 1e-05, add/remove, by the account" in left.err
        assert "rules out every noise with an ε below " in " ".join(left.out.split())
        assert max(map(len, left.out.splitlines())) <= 100
        report = ls.Report.from_json(tmp_path / "leakbound-report" / "report.json")
        found = epsilons(report)
        assert found["lower", True] > found["upper", False]
        page = (tmp_path / "leakbound-report" / "report.html").read_text()
        assert "Two results contradict" not in page  # the training is wrong, neither the attack nor the theorem

    @pytest.mark.nightly
    @pytest.mark.parametrize("make", [shallow, linear])
    @pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0, 8.0])
    def test_mnist_in_every_run_between_what_was_seen_and_the_accountant(self, real_data, make, epsilon):
        """2,000 images and as many Dirac canaries; at epsilon = 8 each of three runs shows at least 2."""
        with np.load(real_data / "mnist_train60k.npz", allow_pickle=False) as arrays:
            X, y = arrays["x"][:2000], arrays["y"][:2000]
        noise = dpsgd_multiplier(0.05, 500, epsilon=epsilon, delta=1e-5, adjacency="add_remove")
        dpsgd = DpSgd(noise, 1.0, 0.05, 500)
        words = {"game": ls.Canaries(n=2000), "n_jobs": 1}
        for seed in range(3):
            report = ls.audit(make, X, y, train={"dpsgd": dpsgd}, seed=seed, **words)
            (accountant,) = accountants(report)
            assert accountant.verdict is not None
            assert accountant.verdict.word == "not_refuted"
            (release,) = {each.release for each in report.findings}
            found = epsilons(report, release)
            assert found["upper", False] == pytest.approx(epsilon, rel=1e-3)
            assert (2 if epsilon == 8 else 0) < found["lower", False] <= found["lower", True] <= epsilon

    @pytest.mark.slow
    def test_black_box_attacks_stand_beside_on_records(self, digits):
        report = ls.audit(network, *digits, train={"dpsgd": SHORT}, n_jobs=1, **MISLABELLED)
        measured = {each.attack for each in report.findings if each.quantity == "auc" and each.value is not None}
        assert measured == {"likelihood_ratio(rate=0.1)", "gap", "loss", "confidence", "entropy"}
        assert len(accountants(report)) == 1

    @pytest.mark.usefixtures("without_charts")
    @pytest.mark.slow
    def test_the_same_bytes_from_plan_and_call_whatever_the_store(self, leakbound, tmp_path):
        X, y = load_digits(return_X_y=True)
        flags = "--dpsgd steps=20 --dpsgd sample_rate=0.1 --dpsgd noise_multiplier=2"
        command = f"{NETWORK} --game canaries,kind=mislabelled,n=60 {flags} --seed 3"
        for out in ("one", "two"):
            assert leakbound(f"{command} --out {out} --store store").code == 0
        texts = [(tmp_path / out / "report.json").read_text() for out in ("one", "two")]
        one, two = (text.replace("--out one", "").replace("--out two", "") for text in texts)
        assert one == two
        called = ls.audit(network, X, y, train={"dpsgd": SHORT}, seed=3, n_jobs=1, **MISLABELLED)
        assert epsilons(called) == epsilons(ls.Report.from_json(tmp_path / "one" / "report.json"))

    @pytest.mark.slow
    def test_two_rates_are_told_apart(self, digits):
        nets = {
            name: private_network(network, replace(SHORT, sample_rate=q), name) for name, q in (("a", 0.1), ("b", 0.2))
        }
        report = ls.audit(nets, *digits, attacks=["likelihood_ratio"], n_jobs=1, **MISLABELLED)
        assert set(report.about.attacks) == {"likelihood_ratio(rate=0.1)", "likelihood_ratio(rate=0.2)"}
        assert [curve.release for curve in accountants(report)] == ["a", "b"]

    def test_a_training_of_ones_own(self, digits):
        words = {**SHORT.describe(), "train": f"{HERE}:own_training"}
        report = ls.audit(network, *digits, train={"dpsgd": words}, n_jobs=1, **MISLABELLED)
        (curve,) = accountants(report)
        assert curve.verdict is not None
        assert curve.verdict.word == "not_refuted"

    @pytest.mark.slow
    def test_a_training_of_ones_own_with_less_noise(self, leakbound, tmp_path):
        words = " ".join(f"--dpsgd {name}={value}" for name, value in SHORT.describe().items())
        planted = "--game canaries,kind=mislabelled,n=60"
        left = leakbound(f"{NETWORK} {planted} {words} --dpsgd train={HERE}:quiet_training --full")
        assert left.code == 2
        said = (
            "the steps hold noise of a multiplier of at most 1.88 (99.999 %), and 2 is claimed: the promise counts on"
        )
        assert said in " ".join(left.out.split())
        assert said in (tmp_path / "leakbound-report" / "report.html").read_text()

    @pytest.mark.by_day("0.9-20-0.5")
    @pytest.mark.parametrize(
        ("share", "refused", "lr"), [(0.9, 20, 0.5), nightly(0.9, 20, 1e-3), (1 / 180, 20, 0.5), (1.0, 0, 0.5)]
    )
    def test_noise_of_ones_own_is_tested_in_20_of_20_runs(self, digits, share, refused, lr):
        """A right one is accused with probability at most 1e-5 a run; 1/180 is the noise of the mean on the sum."""
        claimed = replace(SHORT, lr=lr)
        own = Training(replace(claimed, noise_multiplier=share * SHORT.noise_multiplier), 1800)
        release = private_network(network, {**claimed.describe(), "train": own, "references": 2})
        points, game = from_arrays(*digits), games.half_split(1000, 20)
        seen = observe(replace(release, watched=(0, 1)), points, game.member, ["step_noise"], 0, Execution(n_jobs=1))
        each = [StepNoise(*row) for row in seen["step_noise"].tolist()]
        assert sum(noise.p_value() < OF_NOISE for noise in each) == refused
        together = StepNoise.of(StepDiagnostics.of(seen))
        assert together is not None
        assert (together.p_value() < OF_NOISE) == (refused > 0)

    @pytest.mark.parametrize("lr", nightly_but([1e-7, 1e-6, 1e-5, 1e-3, 1.0], 1e-7, 1.0))
    @pytest.mark.parametrize("whose", ["ours", "user-supplied"])
    def test_right_noise_below_the_resolution_of_the_parameters_is_accused_in_none_of_20_runs(self, digits, whose, lr):
        """In float32 with 500 records to a batch most steps at lr = 1e-7 are rounded to 0, and look like no noise.

        Each run is accused with probability at most 1e-5.
        """
        claimed = replace(SHORT, sample_rate=0.5, steps=5, lr=lr)
        words = {**claimed.describe(), "references": 2}
        if whose == "user-supplied":
            words["train"] = Training(claimed, 1000)
        release = replace(private_network(network, words), watched=(0, 1))
        member = games.half_split(1000, 20).member
        seen = observe(release, from_arrays(*digits), member, ["step_noise"], 0, Execution(n_jobs=1))
        each = [StepNoise(*row) for row in seen["step_noise"].tolist()]
        assert all(noise.p_value() >= OF_NOISE for noise in each)
        assert all((noise.n_coarse > 0) == (lr < 1e-4) for noise in each)

    def test_what_is_too_coarse_to_be_tested_is_said(self, leakbound, tmp_path):
        words = "--dpsgd noise_multiplier=2 --dpsgd sample_rate=0.1 --dpsgd steps=4 --dpsgd lr=1e-8"
        left = leakbound(f"{NETWORK} --game canaries,kind=mislabelled,n=60 {words}")
        assert left.code == 0
        said = "The test for too little noise was not made: "
        assert said.lower() in left.out.lower().replace("\n", " ")
        assert said.lower() in (tmp_path / "leakbound-report" / "report.html").read_text().lower()

    @pytest.mark.slow
    @pytest.mark.usefixtures("without_charts")
    def test_a_loop_that_does_not_clip_its_own_layers_is_refuted_though_canaries_do_not_see_it(
        self, leakbound, tmp_path
    ):
        """It clips the layer that is added for the canaries, and nothing else."""
        words = " ".join(f"--dpsgd {name}={value}" for name, value in SHORT.describe().items())
        planted = "--game canaries,n=100"
        left = leakbound(f"{NETWORK} {planted} {words} --dpsgd train={HERE}:only_canaries_clipped --full")
        assert left.code == 2
        text = " ".join(left.out.split())
        assert re.search(r"one record adds about [\d.]+ clipping norms to a step", text), text
        limit = "show whether gradients in that layer are clipped, not whether those of the network's own layers are"
        assert limit in text
        page = html.unescape((tmp_path / "leakbound-report" / "report.html").read_text())
        assert limit in page
        report = ls.Report.from_json(tmp_path / "leakbound-report" / "report.json")
        assert any(limit in note for note in report.about.notes)
        by_the_curve = [each for each in report.findings if Term("whole_curve") in each.method]
        assert all(Term("own_layers_unseen") in each.assumptions for each in by_the_curve)
        assert len(by_the_curve) == 2
        assert len(of_independent_canaries(report)) == 1
        assert "ε of any other noise, canaries independent" in page
        assert "the noise in the coordinate of each canary is independent of the noise in those of the others" in page

    @pytest.mark.slow
    def test_half_splits_are_compared_with_the_curve_of_a_swap(self, digits):
        report = ls.audit(
            network, *digits, n_models=4, train={"dpsgd": SHORT}, attacks=["loss", "likelihood_ratio"], n_jobs=1
        )
        (curve,) = accountants(report)
        assert curve.tradeoff.epsilon(1e-5) == SHORT.ceiling("replace_one").epsilon(1e-5)
        assert "replace one" in curve.name


class TestFalseClaims:
    """Claims of less than the declared training gives: no attack may refute them, and they are false."""

    @pytest.mark.parametrize(
        ("epsilon", "delta", "adjacency", "reason"),
        [
            (0.8, 1e-5, "add_remove", "declared_gives_more"),
            (0.8, 0.0, "add_remove", "declared_gives_more"),  # with delta = 0 even more is given
            (1.075, 1e-5, "add_remove", "accountant_gives_more"),  # between the two calculations, 1.0745 and 1.0755
            (1.0, 1e-5, "replace_one", "accountant_gives_more"),  # there is no lower bound of a swap
            (1.8, 1e-5, "replace_one", ""),
            (1.1, 1e-5, "add_remove", ""),
        ],
    )
    def test_what_the_accountant_says(self, epsilon, delta, adjacency, reason):
        claim = Claim("epsilon", epsilon, delta, adjacency)
        denial = denied(claim, AccountantClaim(SHORT, "add_remove", 1e-5))
        assert (denial.reason.id if denial else "") == reason
        if denial is not None:
            assert denial.is_certain == (reason == "declared_gives_more")
            assert denial.reason.values["given"] == pytest.approx(
                1.0755 if adjacency == "add_remove" else 1.7956, abs=1e-4
            )

    def test_a_mu_is_compared_by_the_epsilon_that_it_allows(self):
        """SHORT gives epsilon = 1.0755 at 1e-5: that of mu = .262, by the closed form of Gaussian privacy."""

        def excess(mu: float, epsilon: float = 1.0755) -> float:
            delta = norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
            return delta - 1e-5

        mu = float(brentq(excess, 0.1, 1.0))  # pyright: ignore[reportArgumentType] -- a float unless full_output is asked for
        promise = AccountantClaim(SHORT, "add_remove", 1e-5)
        denial = denied(Claim("mu", 0.9 * mu, 0.0, "add_remove"), promise)
        assert denial is not None
        term = denial.reason
        assert term.id == "declared_gives_more_than_mu"
        assert term.values["allowed"] < term.values["least"] < term.values["given"]
        assert denied(Claim("mu", mu, 0.0, "add_remove"), promise) is None
        swapped = denied(Claim("mu", mu, 0.0, "replace_one"), promise)
        assert swapped is not None
        assert swapped.reason.id == "accountant_gives_more_than_mu"

    @pytest.mark.parametrize(("noise", "steps"), [(20.0, 100), (4.0, 64), (1.0, 1), (50.0, 1000)])
    def test_the_true_mu_of_whole_batches_is_not_denied(self, noise, steps):
        whole = replace(SHORT, noise_multiplier=noise, sample_rate=1.0, steps=steps)
        mu = math.sqrt(steps) / noise
        promise = AccountantClaim(whole, "add_remove", 1e-5)
        assert denied(Claim("mu", mu, 0.0, "add_remove"), promise) is None
        assert denied(Claim("mu", 0.95 * mu, 0.0, "add_remove"), promise) is not None

    def test_it_says_nothing_of_other_promises_or_of_fixed_batches_in_another_game(self):
        assert denied(Claim("eta", 0.01), AccountantClaim(SHORT, "add_remove", 1e-5)) is None
        fixed = AccountantClaim(replace(SHORT, batches="fixed"), "add_remove", 1e-5)
        assert denied(Claim("epsilon", 0.8, 1e-5, "replace_one"), fixed) is None

    @pytest.mark.slow
    def test_the_verdict_says_so_first(self, digits):
        claim = "epsilon=0.8,delta=1e-5,adjacency=add_remove"
        words = {"n_models": 1, "n_jobs": 1, "game": ls.Canaries(n=20), "claims": claim}
        report = ls.audit(network, *digits, train={"dpsgd": SHORT}, attacks=["likelihood_ratio"], **words)
        first = next(curve for curve in report.curves if curve.verdict is not None)
        assert (first.role, first.verdict.word, exit_code(report)) == ("claimed", "cannot_hold", 3)
        table = report.table()
        assert table.index("Cannot hold: network") < table.index("Not refuted: network")  # of the accountant's epsilon


class TestRuledOut:
    """At rate 1 the curve is Gaussian with mu = sqrt(T)/sigma: the twin tries every noise on a grid by itself."""

    WHOLE = DpSgd(noise_multiplier=3.0, sample_rate=1.0, steps=4)

    @staticmethod
    def trial(made: int, right: int) -> ClaimTest:
        return ClaimTest("coins", {"a": Guesses("coins", 200, np.array([made]), np.array([[right]]))}, {})

    @pytest.mark.by_day("100-90-0.5")
    @pytest.mark.parametrize(("made", "right", "claimed"), [(100, 90, 0.5), (100, 90, 60.0), (200, 150, 3.0)])
    def test_it_is_the_last_refused_one(self, made, right, claimed):
        trial = self.trial(made, right)
        told = AccountantClaim(replace(self.WHOLE, noise_multiplier=claimed), "add_remove", 1e-5)
        curves = [ls.tradeoff.Gaussian(2 / noise) for noise in np.geomspace(0.5, 50, 60)]
        refused = [trial.curve_p_value(curve) < LEVEL for curve in curves]
        first = refused.index(True)
        assert all(refused[first:])
        epsilon = [curve.epsilon(1e-5) for curve in curves]
        assert epsilon[first] * 0.98 <= told.ruled_out(trial.curve_p_value, LEVEL) <= epsilon[first - 1]

    def test_nothing_is_ruled_out_by_guessing(self):
        assert (
            AccountantClaim(self.WHOLE, "add_remove", 1e-5).ruled_out(self.trial(200, 100).curve_p_value, LEVEL) == 0.0
        )

    def test_what_no_noise_explains_has_an_end(self):
        """One step at rate .05 shows a record in a twentieth of all cases, whatever the noise."""
        told = AccountantClaim(replace(CLAIMED, steps=1), "add_remove", 1e-5)
        assert 0 < told.ruled_out(self.trial(200, 200).curve_p_value, LEVEL) < math.inf


class TestBadInput:
    @pytest.mark.parametrize(
        ("flags", "line"),
        [
            ("--dpsgd clip=1", "--dpsgd needs a --model"),
            (
                f"--model {HERE}:network --dpsgd clpi=1",
                "unknown word of DP-SGD 'clpi' (did you mean 'clip'?); known: noise",
            ),
            (
                f"--model {HERE}:network --dpsgd noise_multiplier=0",
                "network: noise_multiplier must be > 0; without noise",
            ),
            (f"--model {HERE}:network --dpsgd clip=0", "clip must be > 0, got 0"),
            (
                f"--model {HERE}:network --dpsgd train=1",
                "train must be a function or the import path of one, got a int",
            ),
            (f"--model {HERE}:network --dpsgd clip=1 --train epochs=2", "audit: model.0: train says how"),
            ("--model sklearn.tree:DecisionTreeClassifier --dpsgd clip=1", "dpsgd trains networks; give a class"),
            (
                "--model sklearn.tree:DecisionTreeClassifier --game canaries",
                "dirac canaries need the steps of DP-SGD, and DecisionTreeClassifier shows none: give dpsgd, or ",
            ),
            ("--canaries dirac", "audit has no --canaries; use --game canaries,kind=..."),
            ("--n-canaries 5", "audit has no --n-canaries; use --game canaries,n=..."),
            (
                f"--model {HERE}:network --dpsgd clip=1 --game canaries,kind=diracs",
                "audit: game: canaries: kind: Input should be 'dirac', ",
            ),
            (
                f"--model {HERE}:network --dpsgd clip=1 --game canaries,kind=random,n=1797",
                "canaries must be fewer than the 1,797 points, got 1,797",
            ),
            (
                f"--model {HERE}:network --dpsgd clip=1 --game canaries,n=3000",
                "3,000 Dirac canaries in 2,410 parameters; allowed: one a parameter, n = 2410 at most",
            ),
            (
                f"--model {HERE}:normed --dpsgd clip=1 --game canaries,n=5 --n-jobs 1",
                "BatchNorm1d mixes the points of a batch: no point has a gradient of its own; use GroupNorm",
            ),
            (
                f"--model {HERE}:network --dpsgd train={HERE}:own_training --game canaries,knowledge=others",
                "nobody knows the batches of a user-supplied training loop: knowledge must be 'distribution'",
            ),
            (
                f"--model {HERE}:network --dpsgd noise_multiplier=0 --dry-run --allow-modules {HERE}",
                "network: noise_multiplier must be > 0; without noise",
            ),
            (
                "--model sklearn.tree:DecisionTreeClassifier --game canaries --dry-run",
                "dirac canaries need the steps of DP-SGD",
            ),
        ],
    )
    def test_is_one_line(self, leakbound, flags, line):
        refused(leakbound(f"audit --dataset digits {flags}"), line)

    def test_flags_of_networks_are_idle_elsewhere(self, leakbound):
        refused(leakbound("audit signals a.npz --canaries dirac"), "audit signals has no --canaries; use --game")

    def test_without_pytorch_it_is_said_what_to_install(self, monkeypatch):
        def no_torch(name, *rest):
            if name.split(".")[0] == "torch":
                raise ModuleNotFoundError("No module named 'torch'", name="torch")
            return importing(name, *rest)

        importing = builtins.__import__
        monkeypatch.delitem(sys.modules, "leakbound.dpsgd.network")
        monkeypatch.setattr(builtins, "__import__", no_torch)
        with pytest.raises(ValueError, match=r"pip install 'leakbound\[torch\]'"):
            private_network(network, SHORT)

    def test_words_that_calls_cannot_use(self, digits):
        with pytest.raises(ValueError, match=r"train is a recipe or .*, not both; got dpsgd and epochs"):
            ls.audit(network, *digits, train={"dpsgd": SHORT, "epochs": 1})
        with pytest.raises(TypeError, match="audit_scores takes no dpsgd; use train=DpSgd"):
            ls.audit_scores(np.arange(4.0), np.arange(4) % 2 == 0, dpsgd=SHORT)


class TestAttacks:
    def test_the_ratio_takes_the_rate_of_the_release(self):
        release = private_network(network, SHORT)
        assert attacks_on([release], "default", True)[0].name == "likelihood_ratio(rate=0.1)"
        assert [each.name for each in attacks_on([release], ["loss"])] == ["loss"]
        assert "lira" in [each.name for each in attacks_on([release], ("default",))]
        assert [each.name for each in attacks_on([], ["likelihood_ratio"])] == ["likelihood_ratio"]

    def test_a_network_from_words(self):
        words = {**SHORT.describe(), "aggregate": f"{HERE}:batch_clipping", "references": 12, "gradients": "vmap"}
        release = private_network(f"{HERE}:network", words, parameters={"width": 8})
        assert release.dpsgd == SHORT
        assert (release.aggregate, release.references, release.gradients) == (batch_clipping, 12, "vmap")
        assert (release.name, release.n_parameters()) == ("network", 65 * 8 + 9 * 10)
        assert (
            release.describe() is None
        )  # pytest lets this module import builtins, so that its code cannot be followed
        assert "which code that runs cannot be read off" in release.not_stored
        assert isinstance(release.make(), torch.nn.Module)


class TestPage:
    """The page about networks, which is read where there is no PyTorch and runs here."""

    TEXT = (ROOT / "docs" / "networks.md").read_text(encoding="utf-8")

    @pytest.mark.slow
    def test_the_audit_prints_what_the_page_shows(self, leakbound, tmp_path, monkeypatch):
        package = re.search(r"^```python\n(# my_package\.py\n.*?)^```$", self.TEXT, re.MULTILINE | re.DOTALL)
        shown = re.search(r"^\$ leakbound (.*--dpsgd .*)\n((?:.*\n)*?)```$", self.TEXT, re.MULTILINE)
        assert package
        assert shown
        (tmp_path / "my_package.py").write_text(package[1], encoding="utf-8")
        monkeypatch.delitem(sys.modules, "my_package", raising=False)
        left = leakbound(f"{shown[1]} --n-jobs 1")
        assert left.code == 0
        assert is_shown(shown[2], left.out)

    @pytest.mark.filterwarnings("ignore")  # Opacus has many, of PyTorch and of its generators
    @pytest.mark.parametrize(
        ("multiplier", "epochs", "code"), [("3.0", 1, 0), nightly("3.0", 10, 0), nightly("2.7", 10, 2)]
    )
    def test_the_training_by_opacus_is_compared_with_its_claim(
        self, leakbound, tmp_path, monkeypatch, multiplier, epochs, code
    ):
        """By day the example trains for one epoch instead of 10."""
        for name in ("my_package", "my_training"):
            shown = re.search(rf"^```python\n(# {name}\.py\n.*?)^```$", self.TEXT, re.MULTILINE | re.DOTALL)
            assert shown
            written = shown[1].replace("noise_multiplier=3.0", f"noise_multiplier={multiplier}")
            written = written.replace("range(10)", f"range({epochs})")
            (tmp_path / f"{name}.py").write_text(written, encoding="utf-8")
            monkeypatch.delitem(sys.modules, name, raising=False)
        command = re.search(r"^\$ leakbound (.*) \\\n +(.*train=my_training:train.*)$", self.TEXT, re.MULTILINE)
        assert command
        words = command[2].replace("steps=200", f"steps={20 * epochs}")
        assert leakbound(f"{command[1]} {words} --n-jobs 1").code == code
