"""Attacks with several queries, against plain loops that know nothing of leakbound's arrays."""

import numpy as np
import pytest
from scipy.stats import norm

import leakbound as ls
from leakbound.attacks import ATTACKS
from leakbound.attacks.lira import lira, lira_offline
from leakbound.attacks.quantile import quantile
from leakbound.attacks.rmia import majority_fraction, rmia, rmia_offline
from leakbound.core.types import Game, Signals
from leakbound.files.signal_files import open_signals, write_blocks
from leakbound.runtime.observe import read_signals

N_QUERIES = 3


def asked(signals: Signals, n_queries: int = N_QUERIES, seed: int = 5) -> Signals:
    """The same models, asked about more versions of each point, whose losses differ from that of the point."""
    rng = np.random.default_rng(seed)
    loss = signals.array("loss")
    factor = rng.uniform(0.5, 2.0, size=(*loss.shape, n_queries))
    factor[:, :, 0] = 1
    query_loss = loss[:, :, None] * factor
    query_log_odds = -query_loss - np.log(-np.expm1(-query_loss))
    arrays = {**signals.arrays, "query_loss": query_loss, "query_log_odds": query_log_odds}
    return Signals(signals.game, None, arrays, signals.labels)


@pytest.fixture
def several(signals):
    return asked(signals)


class TestLira:
    def test_the_mean_over_the_queries_of_the_ratio_of_two_gaussians(self, several, references, loop):
        phi, member = several.arrays["query_log_odds"], several.game.member

        def score(t, i, rows):
            rows = np.array(rows)
            inside, outside = phi[rows[member[rows, i]], i], phi[rows[~member[rows, i]], i]  # (R, Q)
            if not len(inside) or not len(outside):
                return 0.0
            # one Gaussian of Q coordinates with a diagonal covariance on each side; by Q
            of_members = norm.logpdf(phi[t, i], inside.mean(axis=0), spread(inside, t, i, 1))
            of_others = norm.logpdf(phi[t, i], outside.mean(axis=0), spread(outside, t, i, 0))
            return (of_members.sum() - of_others.sum()) / N_QUERIES

        pooled = pooled_variances(several, references)

        def spread(values, t, i, side):
            n = len(values)
            return np.sqrt((n * values.var(axis=0) + 8 * pooled[t, side]) / (n + 8))

        np.testing.assert_allclose(lira(several), loop(several, score), rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("attack", [lira, lira_offline])
    def test_queries_that_are_all_the_same_change_nothing(self, signals, attack):
        arrays = {name: np.repeat(signals.arrays[name][:, :, None], 4, axis=2) for name in ("loss", "log_odds")}
        same = Signals(signals.game, None, {f"query_{name}": array for name, array in arrays.items()})
        np.testing.assert_allclose(attack(same), attack(signals), rtol=1e-12, atol=1e-12)


def pooled_variances(signals, references):
    """(T, 2, Q): of the references without and with each target point."""
    game, phi = signals.game, signals.arrays["query_log_odds"]
    pooled = np.empty((game.n_targets, 2, phi.shape[2]))
    for t in range(game.n_targets):
        rows = np.array(references(game, t))
        own = game.is_target_point if game.is_target_point.ndim == 1 else game.is_target_point[t]
        for side in (0, 1):
            parts = [phi[rows[game.member[rows, i] == side], i] for i in np.flatnonzero(own)]
            squares = sum(len(part) * part.var(axis=0) for part in parts if len(part))
            pooled[t, side] = squares / max(sum(map(len, parts)), 1)
    return pooled


def ratios_of(several, t, rows):
    """(N, Q): p of the target by the mean p of the references, for each query."""
    p = np.exp(-several.arrays["query_loss"])
    return p[t] / p[rows].mean(axis=0)


def tie_breaker(log_ratio):
    return (1 + log_ratio / (1 + abs(log_ratio))) / 2


class TestRmia:
    @pytest.mark.by_day("7-fixed-own-1.0", "7-loo-own-population-1.0")
    @pytest.mark.parametrize("gamma", [1.0, 2.0])
    def test_a_record_exceeds_others_in_the_majority_of_queries(self, several, loop, gamma):
        game = several.game

        def score(t, i, rows):
            ratios = ratios_of(several, t, rows)
            own = game.is_target_point if game.is_target_point.ndim == 1 else game.is_target_point[t]
            population = game.population if len(game.population) else np.flatnonzero(own)
            n_exceeded = 0
            for z in population:
                votes = [ratios[i, q] / ratios[z, q] >= gamma * (1 - 1e-12) for q in range(N_QUERIES)]
                n_exceeded += sum(votes) > N_QUERIES / 2
            mean = np.log(ratios[i]).mean()
            return (n_exceeded + tie_breaker(mean)) / (len(population) + 1) - 1

        ours = rmia(several, gamma=gamma, vote="majority")
        np.testing.assert_allclose(ours, loop(several, score), rtol=1e-7, atol=1e-7)

    def test_by_the_mean_of_the_log_ratios(self, several, loop):
        game = several.game

        def score(t, i, rows):
            mean = np.log(ratios_of(several, t, rows)).mean(axis=1)
            own = game.is_target_point if game.is_target_point.ndim == 1 else game.is_target_point[t]
            population = game.population if len(game.population) else np.flatnonzero(own)
            n_exceeded = (mean[i] >= mean[population] - 1e-10).sum()
            return (n_exceeded + tie_breaker(mean[i])) / (len(population) + 1) - 1

        np.testing.assert_allclose(rmia(several), loop(several, score), rtol=1e-7, atol=1e-7)

    @pytest.mark.by_day(
        "7-fixed-all-mean-rmia",
        "7-fixed-own-majority-rmia",
        "7-loo-all-population-mean-rmia",
        "7-loo-own-mean-rmia",
    )
    @pytest.mark.parametrize("attack", [rmia, rmia_offline])
    @pytest.mark.parametrize("vote", ["mean", "majority"])
    def test_queries_that_are_all_the_same_change_nothing(self, signals, attack, vote):
        array = np.repeat(signals.arrays["loss"][:, :, None], 4, axis=2)
        same = Signals(signals.game, None, {"query_loss": array})
        np.testing.assert_allclose(attack(same, vote=vote), attack(signals), rtol=1e-12, atol=1e-12)

    def test_half_of_the_queries_are_no_majority(self):
        two_of_four = np.log([[3.0], [3.0], [0.1], [0.1]])
        score = 1 + majority_fraction(two_of_four, np.log([[1.0]] * 4))
        assert score[0] < 0.5  # it exceeds none of the one

    def test_blocks_of_records_are_joined(self, monkeypatch):
        rng = np.random.default_rng(0)
        own, population = rng.normal(size=(3, 50)), rng.normal(size=(3, 40))
        whole = majority_fraction(own, population)
        monkeypatch.setattr("leakbound.attacks.rmia._PAIRS", 7 * 40)
        np.testing.assert_array_equal(majority_fraction(own, population), whole)

    def test_an_unknown_vote_is_refused(self, several):
        with pytest.raises(ValueError, match=r"^unknown vote 'all'; known: mean, majority$"):
            rmia(several, vote="all")


def test_the_quantile_attack_takes_the_mean_log_odds(several):
    mean = several.arrays["query_log_odds"].mean(axis=2)
    expected = quantile(Signals(several.game, None, {"log_odds": mean}))
    np.testing.assert_allclose(quantile(several), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["gap", "confidence", "loss", "entropy", "mast", "mast_threshold", "shadow"])
def test_other_attacks_take_the_record_alone(name):
    rng = np.random.default_rng(1)
    game = ls.games.half_split(60, 8)
    log_prob = np.log(rng.dirichlet(np.ones(3), size=(8, 60)))
    plain = Signals(game, None, {"log_prob": log_prob}, rng.integers(3, size=60))
    np.testing.assert_array_equal(ATTACKS[name](asked(plain)).value, ATTACKS[name](plain).value)


@pytest.mark.slow
def test_several_queries_find_more_where_each_one_is_noisy():
    rng, game = np.random.default_rng(2), ls.games.half_split(600, 16, population=0.1)
    hard = rng.normal(size=(1, 600, 1))
    query_log_odds = hard + 0.5 * game.member[:, :, None] + rng.normal(size=(16, 600, 9))
    query_loss = np.logaddexp(0, -query_log_odds)
    several = Signals(game, None, {"query_log_odds": query_log_odds, "query_loss": query_loss})
    one = Signals(game, None, {name: several.array(name) for name in ("log_odds", "loss")})
    for name in ("lira", "lira_offline", "rmia", "rmia_offline", "quantile"):
        scores = [ls.metrics.auc(ATTACKS[name](signals)).value for signals in (one, several)]
        assert scores[1] > scores[0] + 0.05, (name, scores)


@pytest.mark.slow
def test_nothing_is_found_where_nothing_leaks():
    """Each model's answers are noise: an interval of 95 % misses 1/2 in 1 of 20 cases."""
    names, n_outside = ("lira", "lira_offline", "rmia", "quantile"), 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        game = ls.games.half_split(200, 12, seed=seed, population=0.1)
        # the same noise in all queries: the hardest case, as many queries count for one
        noise = rng.normal(size=(12, 200, 1)) + 0.3 * rng.normal(size=(12, 200, 4))
        signals = Signals(game, None, {"query_log_odds": noise, "query_loss": np.logaddexp(0, -noise)})
        report = ls.audit_signals(signals, attacks=list(names))
        for finding in report.findings:
            if finding.quantity == "auc":
                n_outside += not finding.low <= 0.5 <= finding.high
    assert n_outside <= 9  # of 80 at 5 %: 1e-2


def test_balanced_designs_leave_out_a_reference_in_each_query():
    """Each point in exactly half of the models: without the correction LiRA finds members in pure noise."""
    rng = np.random.default_rng(3)
    order = rng.random((8, 400)).argsort(axis=0)
    game = Game("signals", order < 4, np.ones(400, dtype=bool), 8)
    noise = rng.normal(size=(8, 400, 3))
    value = ATTACKS["lira"](Signals(game, None, {"query_log_odds": noise}))
    assert abs(ls.metrics.auc(value).value - 0.5) < 0.03


class TestSignals:
    game = Game("signals", np.array([[True, False], [False, True]]), np.array([True, True]), 2)

    def test_what_is_not_given_is_that_of_the_first_query(self):
        rng = np.random.default_rng(0)
        log_odds = rng.normal(size=(2, 2, 3))
        arrays = {"query_log_odds": log_odds, "query_loss": np.logaddexp(0, -log_odds)}
        signals = Signals(self.game, None, arrays)
        np.testing.assert_array_equal(signals.array("log_odds"), log_odds[:, :, 0])
        np.testing.assert_array_equal(signals.array("loss"), np.logaddexp(0, -log_odds[:, :, 0]))

    @pytest.mark.parametrize(
        ("arrays", "line"),
        [
            (
                {"query_loss": np.ones((2, 2))},
                "signal 'query_loss' has shape (2, 2); its axes are (M, N, Q) with (M, N) = (2, 2)",
            ),
            (
                {"query_loss": np.ones((2, 2, 0))},
                "signal 'query_loss' has no queries; the last axis must have at least 1",
            ),
            (
                {"query_loss": np.ones((2, 2, 3)), "query_correct": np.ones((2, 2, 2))},
                "signal 'query_correct' has Q = 2, another signal has Q = 3",
            ),
            (
                {"query_loss": np.full((2, 2, 2), [0.5, -1.0])},
                "query 1: signal 'loss' is -log p(true label), which is at least 0; got -1",
            ),
            (
                {"query_loss": np.ones((2, 2, 2)), "loss": np.array([[1.0, 1.0], [1.0, 2.0]])},
                "signal 'loss' is not that of the first query: model 1, point 1 has 2, and query_loss begins with 1; "
                "the first version of a point is the point itself",
            ),
            (
                {"query_loss": np.full((2, 2, 2), 0.5), "query_log_odds": np.full((2, 2, 2), 3.0)},
                "query 0: signals 'loss' and 'log_odds' disagree: model 0, point 0 has loss 0.5, and log_odds 3 is a "
                "loss of 0.0486",
            ),
        ],
    )
    def test_bad_input_is_refused_in_one_line(self, arrays, line):
        with pytest.raises(ValueError) as caught:
            Signals(self.game, None, arrays)
        assert str(caught.value) == line

    def test_a_file_of_arrays_may_have_queries(self, tmp_path):
        path = tmp_path / "signals.npz"
        np.savez(path, member=self.game.member, query_loss=np.ones((2, 2, 3)))
        report = ls.audit_signals(read_signals(path), attacks=["loss", "rmia"])
        of_rmia = [finding for finding in report.findings if finding.attack == "rmia"]
        assert [finding.value for finding in of_rmia if finding.quantity == "auc"] == [0.5]

    def test_a_folder_of_signals_has_none(self, tmp_path):
        with write_blocks(tmp_path / "signals", n_models=2) as write:
            write(self.game.member.T, {"loss": np.ones((2, 2)), "query_loss": np.ones((2, 2, 3))})
        with pytest.raises(ValueError, match=r"'query_loss' has an axis of queries, which is for signals in memory"):
            open_signals(tmp_path / "signals")
