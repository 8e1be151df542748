"""Canaries for trainings that leakbound does not run, in a loop of plain numpy, and the file of their secret."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

import leakbound as ls
from leakbound.auditing.claim_tests import OF_NOISE, OF_STEPS
from leakbound.auditing.noise_tests import StepNoise, noise_tests
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.planted import LENGTH, PlantedCanaries, read_game
from leakbound.dpsgd.step_level import StepLevel
from tests.marks import nightly

N_CANARIES = 300
CLAIM = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "add_remove"}
CLAIMED = DpSgd(0.9396563932978698, 1.0, 0.05, 100)  # epsilon = 4 at delta = 1e-5
MISTAKES = ["no noise", "clipped at 2C", "same noise", "twice the rate", "shuffled"]


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return X[:600] / 16, y[:600]


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / "canaries.json"


def descend(planted: PlantedCanaries, steps: ls.follow, mistake: str, seed: int, tells: bool) -> None:
    """Softmax regression by DP-SGD in numpy; the last parameters are those of the canaries."""
    rng, clip, rate = np.random.default_rng(seed), CLAIMED.clip, CLAIMED.sample_rate
    features, n_canaries = np.c_[planted.x, np.ones(len(planted.x))], len(planted.inside)
    theta = np.zeros((features.shape[1], 10))
    first, part = rng.normal(size=theta.size + n_canaries), np.zeros(len(planted.x))
    for step in range(CLAIMED.steps):
        batch = rng.random(len(planted.x)) < rate * (2 if mistake == "twice the rate" else 1)
        if mistake == "shuffled":
            if step % 20 == 0:
                part = rng.permutation(len(planted.x)) % 20
            batch = part == step % 20
        logits = features[batch] @ theta
        errors = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        errors[np.arange(batch.sum()), planted.y[batch]] -= 1
        gradients = np.einsum("ni,nk->nik", features[batch], errors).reshape(batch.sum(), -1)
        # the gradient of 100 c w[number], which is added to the loss
        marks = LENGTH * clip * (planted.number[batch, None] == np.arange(n_canaries))
        gradients = np.c_[gradients, marks]
        norm = 2 * clip if mistake == "clipped at 2C" else clip
        gradients *= np.minimum(1, norm / np.linalg.norm(gradients, axis=1, keepdims=True))
        noise = first if mistake == "same noise" else rng.normal(size=gradients.shape[1])
        total = gradients.sum(axis=0) + (mistake != "no noise") * CLAIMED.noise_multiplier * clip * noise
        in_batch = marks.any(axis=0)
        steps.step(total[theta.size :], in_batch if tells else None)
        theta -= CLAIMED.lr * total[: theta.size].reshape(theta.shape) / (rate * len(planted.x))


def followed(digits, file: Path, mistake: str, seed: int = 0, tells: bool = True) -> ls.follow:
    """All steps of one training."""
    planted = ls.canaries(*digits, N_CANARIES, file=file, seed=seed)
    steps = ls.follow(file, CLAIMED)
    descend(planted, steps, mistake, seed, tells)
    return steps


def reasons(steps: ls.follow) -> set[str]:
    """The ids of the reasons that it is refuted for."""
    signals, shown = steps.signals(), steps.diagnostics()
    noise, level = StepNoise.of(shown), StepLevel.of(signals, CLAIMED)
    assert noise is not None
    found = {
        test.reason.id for test in noise_tests(shown, signals, CLAIMED, [], OF_NOISE) if test.log_p < math.log(OF_NOISE)
    }
    if noise.p_value() < OF_NOISE:
        found.add("too_little_noise")
    if level is not None and level.p_value() < OF_STEPS:
        found.add("larger_batches" if level.least_rate(OF_STEPS) > CLAIMED.sample_rate else "steps_reveal_more")
    return found


class TestLoopsOfNumpy:
    def test_a_right_one_is_not_accused(self, digits, file):
        assert reasons(followed(digits, file, "none")) == set()

    @pytest.mark.parametrize(
        ("mistake", "reason"),
        [
            ("no noise", "too_little_noise"),
            ("clipped at 2C", "steps_reveal_more"),
            ("same noise", "noise_repeated"),
            ("twice the rate", "larger_batches"),
            ("shuffled", "batches_shuffled"),
        ],
    )
    def test_wrong_ones_are_accused_of_what_is_wrong(self, digits, file, mistake, reason):
        assert reason in reasons(followed(digits, file, mistake))

    @pytest.mark.slow
    @pytest.mark.parametrize(("mistake", "word"), [("none", "not_refuted"), ("clipped at 2C", "refuted")])
    def test_the_report_has_the_verdict(self, digits, file, mistake, word):
        report = followed(digits, file, mistake).report()
        (curve,) = [curve for curve in report.curves if curve.role == "certified"]
        assert curve.verdict is not None
        assert curve.verdict.word == word
        assert "step by step" in report.table(full=True).lower()

    @pytest.mark.nightly
    @pytest.mark.parametrize("tells", [True, False])
    @pytest.mark.parametrize("mistake", ["none", *MISTAKES])
    def test_in_20_runs(self, digits, tmp_path, mistake, tells):
        """Without the batches, 2C and twice the rate are found by the sums of the canaries that are in."""
        runs = [reasons(followed(digits, tmp_path / str(seed), mistake, seed, tells)) for seed in range(20)]
        found = sum(map(bool, runs))
        print(mistake, "told" if tells else "not told", found)
        if mistake == "none" or (mistake == "shuffled" and not tells):
            assert found == 0
        else:
            assert found >= 18

    @pytest.mark.slow
    def test_the_report_says_what_is_not_seen(self, digits, file):
        planted = ls.canaries(*digits, 20, file=file, seed=0)
        steps = ls.follow(planted, DpSgd(2.0, 1.0, 0.1, 4), name="mine")
        rng = np.random.default_rng(0)
        for _ in range(4):
            steps.step(2.0 * rng.normal(size=20))
        report = steps.report(title="My loop")
        assert "mine: seen at the parameters of the canaries alone" in " ".join(report.about.notes)
        assert report.about.releases[0].description.startswith("mine, trained outside of leakbound")
        saved = file.with_name("report.json")
        saved.write_text(report.to_json())
        assert ls.Report.from_json(saved).to_json() == report.to_json()

    def test_signals_are_those_of_the_sums(self, digits, file):
        planted = ls.canaries(*digits, 4, file=file, seed=1)
        steps = ls.follow(planted, DpSgd(2.0, 0.5, 0.1, 2))
        sums = np.array([[1.0, 2, 3, 4], [0, 0, 1, 0]])
        for row in sums:
            steps.step(row, planted.inside)
        signals = steps.signals()
        np.testing.assert_allclose(signals.array("step_dot")[0], sums.T * 0.5 / (2.0 * 0.5) ** 2)
        assert (signals.array("step_norm") == 0.25).all()
        np.testing.assert_array_equal(signals.array("step_in")[0, :, 0] > 0, planted.inside)
        np.testing.assert_allclose(steps.diagnostics().noise, [[np.square(sums).sum(), 8, 0]])


class TestCanaries:
    @pytest.mark.parametrize("kind", ["dirac", "mislabelled", "random"])
    def test_who_is_in_is_in_the_training_data(self, digits, file, kind):
        X, y = digits
        planted = ls.canaries(X, y, 200, file=file, kind=kind, seed=3)
        assert 60 < planted.inside.sum() < 140
        n_others = 600 if kind == "dirac" else 400
        assert len(planted.x) == len(planted.y) == len(planted.number) == n_others + planted.inside.sum()
        assert sorted(planted.number[planted.number >= 0]) == np.flatnonzero(planted.inside).tolist()
        of_canaries = planted.number >= 0
        np.testing.assert_array_equal(planted.x[of_canaries], planted.canary_x[planted.number[of_canaries]])
        np.testing.assert_array_equal(planted.y[of_canaries], planted.canary_y[planted.number[of_canaries]])
        wrong = [not np.any(y[(x == X).all(axis=1)] == label) for x, label in zip(*canaries_of(planted), strict=True)]
        assert all(wrong) == any(wrong) == (kind == "mislabelled")

    def test_the_file_is_of_its_owner_alone_and_holds_the_coins(self, digits, file):
        planted = ls.canaries(*digits, 50, file=file)
        if os.name == "posix":
            assert file.stat().st_mode & 0o777 == 0o600
        game = read_game(file)
        np.testing.assert_array_equal(game.member[0], planted.inside)
        assert (game.kind, game.sampling, game.prior) == ("canaries", "poisson", 0.5)
        other = ls.canaries(*digits, 50, file=file.with_name("other.json"))
        assert (other.inside != planted.inside).any()

    def test_scores_are_judged_by_coins(self, digits, file):
        planted = ls.canaries(*digits, 400, file=file, kind="random", seed=0)
        scores = planted.inside + 0.1 * np.random.default_rng(0).normal(size=400)
        for member in (planted, file, str(file)):
            report = ls.audit_scores(scores, member, claims=CLAIM)
            (verdict,) = [curve.verdict for curve in report.curves if curve.verdict is not None]
            assert verdict.word == "refuted"
            bounds = [each for each in report.findings if each.quantity == "epsilon" and each.bound_type == "lower"]
            assert all(bound.game.id == "canaries" for bound in bounds)
        guesses = np.random.default_rng(1).normal(size=400)
        report = ls.audit_scores(guesses, file, claims=CLAIM)
        assert [curve.verdict.word for curve in report.curves if curve.verdict is not None] == ["not_refuted"]

    @pytest.mark.parametrize("n_runs", [2, nightly(200)])
    def test_scores_that_say_nothing_refute_nothing(self, digits, tmp_path, n_runs):
        refuted = 0
        for run in range(n_runs):
            planted = ls.canaries(*digits, 200, file=tmp_path / str(run), kind="random", seed=run)
            report = ls.audit_scores(np.random.default_rng(run).normal(size=200), planted, claims=CLAIM)
            refuted += any(curve.verdict and curve.verdict.word == "refuted" for curve in report.curves)
        assert refuted == 0


def canaries_of(planted: PlantedCanaries) -> tuple[np.ndarray, np.ndarray]:
    return planted.canary_x, planted.canary_y


@pytest.mark.usefixtures("as_users_run_it")
class TestBadInput:
    @pytest.mark.parametrize(
        ("words", "line"),
        [
            ({"n": 0}, "n must be >= 1"),
            ({"n": 600, "kind": "random"}, "canaries must be fewer than the 600 points"),
            ({"kind": "diracs"}, "did you mean 'dirac'"),
        ],
    )
    def test_of_canaries(self, digits, file, words, line):
        with pytest.raises(ValueError, match=line):
            ls.canaries(*digits, **{"n": 5, **words}, file=file)
        assert not file.exists()

    def test_labels_that_do_not_fit(self, digits, file):
        with pytest.raises(ValueError, match=r"X has 600 records, y has shape \(5,\)"):
            ls.canaries(digits[0], digits[1][:5], 5, file=file)

    def test_a_secret_is_not_replaced(self, digits, file):
        ls.canaries(*digits, 5, file=file)
        before = file.read_bytes()
        with pytest.raises(ValueError, match="exists already"):
            ls.canaries(*digits, 5, file=file)
        assert file.read_bytes() == before

    def test_files_that_are_none(self, digits, file, tmp_path):
        with pytest.raises(ValueError, match="cannot be read"):
            read_game(tmp_path / "nothing.json")
        ls.canaries(*digits, 5, file=file)
        if os.name == "posix":
            file.chmod(0o644)
            with pytest.raises(ValueError, match="chmod 600"):
                ls.audit_scores(np.arange(5.0), file)
            file.chmod(0o600)
        text = file.read_text()
        file.write_text(text.replace("true", "false", 1) if "true" in text else text.replace("false", "true", 1))
        with pytest.raises(ValueError, match="damaged"):
            read_game(file)

    def test_of_steps(self, digits, file):
        planted = ls.canaries(*digits, 5, file=file, seed=0)
        steps = ls.follow(planted, {"noise_multiplier": 1.0, "steps": 1})
        for sums, in_batch, line in (
            (np.zeros(4), None, "sums must be 5 finite numbers, one for each canary, got shape (4,)"),
            (np.full(5, np.nan), None, "sums must be 5 finite numbers"),
            (np.zeros(5), np.zeros(5), "in_batch must be 5 truth values, got float64"),
            (np.zeros(5), ~planted.inside, "in_batch names a canary that is not in the data"),
        ):
            with pytest.raises(ValueError, match=line.replace("(", r"\(").replace(")", r"\)")):
                steps.step(sums, in_batch)
        with pytest.raises(ValueError, match="the training made 0 steps, and 1 are claimed"):
            steps.report()
        steps.step(np.zeros(5))
        with pytest.raises(ValueError, match="1 steps are claimed, and here is another one"):
            steps.step(np.zeros(5))
        with pytest.raises(ValueError, match="noise_multiplier must be > 0"):
            ls.follow(planted, {"noise_multiplier": 0.0})
