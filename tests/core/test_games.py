"""Games: a row depends on the seed and its number alone, and has the law that its docstring says."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from leakbound.core import games
from leakbound.core.games import candidates, half_split

FALSE_ALARM = 1e-6  # of each simulated test below; seeds are fixed


def uniform_over(cells: np.ndarray, n_cells: int) -> bool:
    """Chi-square test that draws are uniform over so many cells."""
    counts = np.bincount(cells, minlength=n_cells)
    assert len(counts) == n_cells
    return float(stats.chisquare(counts).pvalue) > FALSE_ALARM


def fair(coins: np.ndarray) -> bool:
    """Exact binomial test of fair coins."""
    return float(stats.binomtest(int(coins.sum()), coins.size).pvalue) > FALSE_ALARM


def subset_number(rows: np.ndarray, size: int) -> np.ndarray:
    """The number of each row among the subsets of its columns that have this size."""
    number = {subset: i for i, subset in enumerate(itertools.combinations(range(rows.shape[1]), size))}
    return np.array([number[tuple(np.flatnonzero(row).tolist())] for row in rows])


EVERY_GAME = {
    "fixed halves": lambda m, seed: games.half_split(50, m, seed=seed),
    "coins": lambda m, seed: games.half_split(50, m, seed=seed, sampling="poisson"),
    "population": lambda m, seed: games.half_split(50, m, seed=seed, population=0.2),
    "groups": lambda m, seed: games.half_split(50, m, seed=seed, group=np.arange(50) // 3),
    "per datum": lambda m, seed: games.per_datum(50, 7, m, seed=seed),
    "per datum, fresh": lambda m, seed: games.per_datum(50, 7, m, seed=seed, others="fresh"),
    "average datum": lambda m, seed: games.average_datum(50, m, seed=seed),
    "average datum, fresh": lambda m, seed: games.average_datum(50, m, seed=seed, others="fresh"),
    "canaries": lambda m, seed: games.canaries(50, np.arange(0, 50, 5), m, seed=seed),
    "one model": lambda m, seed: games.one_model(20, 30, references=m, seed=seed),
    "fresh": lambda m, seed: games.fresh(100, m, targets=5, size=20, seed=seed, population=0.1),
    "fresh, groups": lambda m, seed: games.fresh(200, m, targets=5, size=15, seed=seed, group=np.arange(200) // 2),
}


@pytest.mark.parametrize("make", EVERY_GAME.values(), ids=EVERY_GAME)
class TestEveryGame:
    def test_more_models_begin_with_the_same_rows(self, make):
        few, many = make(64, 3), make(128, 3)
        np.testing.assert_array_equal(many.member[: len(few.member)], few.member)
        if few.is_target_point.ndim == 2:
            np.testing.assert_array_equal(many.is_target_point[:64], few.is_target_point)
        else:
            np.testing.assert_array_equal(many.is_target_point, few.is_target_point)

    def test_the_seed_decides(self, make):
        assert (make(16, 0).member == make(16, 0).member).all()
        assert (make(16, 0).member != make(16, 1).member).any()

    def test_rows_differ(self, make):
        game = make(64, 0)
        assert len(np.unique(game.member, axis=0)) > (1 if game.member.shape[1] == 1 else 16)

    def test_there_is_something_to_guess(self, make):
        assert 0 < make(64, 0).target_member.mean() < 1


class TestFresh:
    def test_sizes_prior_and_population(self):
        game = games.fresh(500, 40, targets=20, size=100, population=0.1)
        assert (game.member.sum(axis=1) == 100).all()
        assert (game.kind, game.others, game.sampling, game.prior) == ("fresh", "fresh", "fixed", 0.5)
        assert (game.leave_one_out, game.n_target_points, game.by_coins) == (True, 20, True)
        assert (game.size, game.pool) == (100, 500 - 20 - 50)
        assert len(game.population) == 50
        assert not half_split(4, 2).by_coins

    @pytest.mark.statistics
    def test_targets_are_in_by_fair_coins_and_the_rest_is_uniform(self):
        """2 targets, 4 of a data set, 16 others: all 4 pairs of coins, and each filling given them, alike."""
        game = games.fresh(18, 6000, targets=2, size=4, seed=1)
        coins = game.target_member
        assert uniform_over(coins @ np.array([1, 2]), 4)
        others = game.member[:, ~game.is_target_point]
        for n_in in (0, 1, 2):
            rows = others[coins.sum(axis=1) == n_in]
            assert (rows.sum(axis=1) == 4 - n_in).all()
            assert uniform_over(np.nonzero(rows)[1], 16)
        both = others[coins.all(axis=1)]
        assert uniform_over(subset_number(both, 2), 120)

    @pytest.mark.statistics
    def test_every_set_of_targets_is_equally_likely(self):
        chosen = np.array([games.fresh(10, 1, targets=2, size=2, seed=seed).is_target_point for seed in range(3000)])
        assert uniform_over(subset_number(chosen, 2), 45)

    def test_units_are_in_or_out_together(self):
        group = np.repeat(np.arange(60), [1, 2, 3] * 20)
        game = games.fresh(120, 30, targets=4, size=12, group=group, population=0.1)
        for unit in range(60):
            rows = game.member[:, group == unit]
            assert (rows == rows[:, :1]).all()
        n_units = [len(np.unique(group[row])) for row in game.member]
        assert set(n_units) == {12}
        assert len(np.unique(group[game.is_target_point])) == 4

    def test_a_population_changes_no_target(self):
        plain, aside = (games.fresh(500, 3, targets=20, size=50, seed=4, population=part) for part in (0, 0.1))
        np.testing.assert_array_equal(plain.is_target_point, aside.is_target_point)
        np.testing.assert_array_equal(plain.target_member, aside.target_member)

    def test_a_sample_of_the_targets_is_attacked_in_the_same_models(self):
        whole = games.fresh(500, 30, targets=20, size=100, seed=3)
        game = games.fresh(500, 30, targets=20, size=100, seed=3, sample=5)
        np.testing.assert_array_equal(game.member, whole.member)
        assert (game.n_target_points, game.sampled_from, whole.sampled_from) == (5, 20, None)
        assert not (game.is_target_point & ~whole.is_target_point).any()

    @pytest.mark.parametrize(
        ("words", "line"),
        [
            (
                {"targets": 20, "size": 121},
                "size=121 need 484 others .* there are 480; give a size of at most 120",
            ),
            ({"targets": 30, "size": 20}, "a data set of size=20 cannot hold 30 targets"),
            ({"targets": 0, "size": 20}, "targets must be >= 1, got 0"),
            ({"targets": 5, "size": 20, "sample": 6}, "sample must be from 1 to the 5 targets, got 6"),
        ],
    )
    def test_what_cannot_be_drawn(self, words, line):
        with pytest.raises(ValueError, match=line):
            games.fresh(500, 4, **words)

    def test_the_smallest_file(self):
        assert games.fresh(500, 4, targets=20, size=120).pool == 480


class TestHalfSplit:
    @pytest.mark.parametrize("n_points", [2, 3, 10, 11])
    def test_sizes_and_prior(self, n_points):
        game = games.half_split(n_points, 20)
        assert (game.member.sum(axis=1) == n_points // 2).all()
        assert game.prior == pytest.approx((n_points // 2) / n_points)
        assert game.prior == pytest.approx(game.target_member.mean())
        assert game.is_target_point.all()
        assert (game.leave_one_out, game.n_references, game.n_target_points) == (True, 19, n_points)
        assert (game.sampling, game.others, game.kind) == ("fixed", "pool", "half_split")

    @pytest.mark.statistics
    def test_every_half_is_equally_likely(self):
        member = games.half_split(6, 4000, seed=1).member
        assert uniform_over(subset_number(member, 3), 20)

    @pytest.mark.statistics
    def test_rows_are_independent_of_the_rows_before(self):
        number = subset_number(games.half_split(4, 6001, seed=2).member, 2)
        assert uniform_over(number[:-1] * 6 + number[1:], 36)

    @pytest.mark.statistics
    def test_columns_are_not_balanced(self):
        """The members of a column are Binomial(M, 1/2), with its full variance M/4; 1e-6 false alarms."""
        n_models, n_points = 64, 2000
        total = games.half_split(n_points, n_models, seed=3).member.sum(axis=0)
        spread = ((total - n_models / 2) ** 2).sum() / (n_models / 4)
        assert stats.chi2.ppf(FALSE_ALARM / 2, n_points) < spread < stats.chi2.isf(FALSE_ALARM / 2, n_points)

    @pytest.mark.statistics
    def test_coins(self):
        game = games.half_split(6, 4000, seed=4, sampling="poisson")
        assert uniform_over(game.member @ (1 << np.arange(6)), 64)
        assert (game.prior, game.sampling) == (0.5, "poisson")

    def test_a_population_is_in_no_model_and_no_target(self):
        game = games.half_split(200, 30, population=0.1)
        assert len(game.population) == 20
        assert not game.member[:, game.population].any()
        assert not game.is_target_point[game.population].any()
        assert (game.member.sum(axis=1) == 90).all()
        assert game.prior == 0.5

    def test_a_population_is_never_larger_than_it_needs_to_be(self, monkeypatch):
        monkeypatch.setattr(games, "LARGEST_POPULATION", 25)
        assert len(games.half_split(1000, 2, population=0.5).population) == 25
        assert len(games.one_model(10, 1000, population=0.5).population) == 25

    def test_a_sample_of_the_points_is_attacked_in_the_same_models(self):
        whole = games.half_split(200, 30, population=0.1, seed=3)
        game = games.half_split(200, 30, population=0.1, seed=3, sample=25)
        np.testing.assert_array_equal(game.member, whole.member)
        assert (game.n_target_points, game.sampled_from, whole.sampled_from) == (25, 180, None)
        assert not (game.is_target_point & ~whole.is_target_point).any()
        np.testing.assert_array_equal(game.population, whole.population)
        assert games.half_split(200, 30, sample=200).sampled_from is None

    @pytest.mark.slow
    @pytest.mark.statistics
    def test_every_sample_is_equally_likely(self):
        chosen = np.array([games.half_split(6, 1, seed=seed, sample=3).is_target_point for seed in range(4000)])
        assert uniform_over(subset_number(chosen, 3), 20)

    def test_a_sample_is_one_of_whole_units(self):
        group = np.repeat(np.arange(20), [1, 2, 3, 4] * 5)
        game = games.half_split(50, 8, group=group, sample=7)
        assert len(np.unique(group[game.is_target_point])) == 7
        assert not set(group[game.is_target_point]) & set(group[~game.is_target_point])

    @pytest.mark.parametrize(
        ("sample", "line"), [(0, "sample must be >= 1, got 0"), (9, "must be from 1 to the 8 that")]
    )
    def test_a_sample_that_cannot_be(self, sample, line):
        with pytest.raises(ValueError, match=line):
            games.half_split(8, 4, sample=sample)

    def test_the_rows_of_a_unit_are_in_or_out_together(self):
        group = np.array(["ann", "bob", "ann", "cem", "bob", "dan", "ann", "eve"])
        game = games.half_split(8, 40, group=group, population=0.2)
        for name in np.unique(group):
            rows = game.member[:, group == name]
            assert (rows == rows[:, :1]).all()
            assert len(np.unique(game.is_target_point[group == name])) == 1
        units = game.member[:, [0, 1, 3, 5, 7]].sum(axis=1)
        assert (units == 2).all()  # one of five units is set aside, half of the other four is in
        assert len(np.unique(group[game.population])) == 1


class TestPerDatum:
    @pytest.mark.slow
    @pytest.mark.statistics
    def test_a_fair_coin_for_the_target_and_a_uniform_rest(self):
        """Given the coin, every set of others of the right size is equally likely: 10 + 10 cells."""
        game = games.per_datum(6, 2, 4000, seed=5)
        assert (game.member.sum(axis=1) == 3).all()
        inside = game.member[:, 2]
        assert fair(inside)
        others = np.delete(game.member, 2, axis=1)
        assert uniform_over(subset_number(others[inside], 2), 10)
        assert uniform_over(subset_number(others[~inside], 3), 10)

    @pytest.mark.slow
    @pytest.mark.statistics
    def test_coins_of_neighbouring_rows_are_independent(self):
        coin = games.per_datum(6, 2, 4001, seed=6).member[:, 2]
        assert uniform_over(coin[:-1] * 2 + coin[1:], 4)

    def test_only_the_target_is_attacked(self):
        game = games.per_datum(50, 7, 6, references=10)
        assert game.target_points.tolist() == [7]
        assert (game.n_targets, game.n_models, game.n_references) == (6, 16, 10)
        assert not game.leave_one_out
        assert (game.prior, game.sampling) == (0.5, "fixed")

    def test_references_are_the_rows_that_more_targets_would_be(self):
        np.testing.assert_array_equal(
            games.per_datum(50, 7, 6, references=10, seed=1).member, games.per_datum(50, 7, 16, seed=1).member
        )

    def test_with_fresh_others_the_target_is_the_only_column(self):
        pool, fresh = (games.per_datum(50, 7, 30, others=others) for others in ("pool", "fresh"))
        assert fresh.member.shape == (30, 1)
        np.testing.assert_array_equal(fresh.member[:, 0], pool.member[:, 7])
        assert fresh.others == "fresh"


class TestAverageDatum:
    def test_one_point_a_target(self):
        game = games.average_datum(9, 5, references=3)
        assert game.is_target_point.shape == (5, 9)
        assert game.target_points.shape == (5, 1)
        assert (game.member.sum(axis=1) == 4).all()
        assert game.member.shape == (8, 9)

    @pytest.mark.parametrize(("n_points", "n_models"), [(2, 2), (5, 1)])
    @pytest.mark.parametrize("others", ["pool", "fresh"])
    def test_the_shape_does_not_depend_on_luck(self, n_points, n_models, others):
        """Also where all random targets happen to be the same point."""
        for seed in range(8):
            game = games.average_datum(n_points, n_models, seed=seed, others=others)
            assert game.is_target_point.shape == game.member.shape == (n_models, n_points)

    @pytest.mark.slow
    @pytest.mark.statistics
    def test_uniform_targets_and_fair_coins(self):
        game = games.average_datum(8, 4000, seed=7)
        assert uniform_over(game.target_points[:, 0], 8)
        assert fair(game.target_member)
        cell = game.target_points[:, 0] * 2 + game.target_member[:, 0]
        assert uniform_over(cell, 16)  # the coin does not know the target

    def test_with_fresh_others_a_model_holds_its_own_target_or_nobody(self):
        game = games.average_datum(9, 200, others="fresh")
        own = game.target_member[:, 0]
        np.testing.assert_array_equal(game.member.sum(axis=1), own)
        assert 0 < own.sum() < 200


class TestCanaries:
    canary = np.array([3, 8, 21])

    def test_all_other_points_are_in_every_model(self):
        game = games.canaries(30, self.canary, 40, references=2)
        assert np.delete(game.member, self.canary, axis=1).all()
        assert game.target_points.tolist() == [3, 8, 21]
        assert (game.n_targets, game.n_models, game.sampling, game.prior) == (40, 42, "poisson", 0.5)

    def test_a_canary_named_twice_is_one(self):
        assert games.canaries(30, np.array([8, 3, 8]), 4).target_points.tolist() == [3, 8]

    @pytest.mark.statistics
    def test_independent_fair_coins(self):
        member = games.canaries(30, self.canary, 4000, seed=8).member[:, self.canary]
        assert uniform_over(member @ np.array([1, 2, 4]), 8)


class TestOneModel:
    def test_the_trained_model_is_row_0(self):
        game = games.one_model(6, 4, references=5)
        assert game.member[0].tolist() == [True] * 6 + [False] * 4
        assert (game.member[1:].sum(axis=1) == 5).all()
        assert (game.n_targets, game.n_references, game.prior) == (1, 5, 0.6)

    def test_a_population_comes_from_the_others(self):
        game = games.one_model(60, 40, references=20, population=0.25)
        assert len(game.population) == 10
        assert game.population.min() >= 60
        assert game.prior == 60 / 90
        assert (game.member[1:].sum(axis=1) == 45).all()

    def test_somebody_is_left_to_judge(self):
        assert games.one_model(3, 1, population=0.9).n_target_points == 4

    @pytest.mark.statistics
    def test_references_are_uniform_halves_of_members_and_others(self):
        member = games.one_model(2, 4, references=4000, seed=9).member[1:]
        assert uniform_over(subset_number(member, 3), 20)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: games.half_split(1, 4), "points must be >= 2, got 1"),
        (lambda: games.half_split(10, 0), "n_models must be >= 1, got 0"),
        (
            lambda: games.half_split(10, 4, sampling="coin"),  # pyright: ignore[reportArgumentType]
            "unknown sampling 'coin'; known: fixed, poisson",
        ),
        (lambda: games.half_split(10, 4, population=1.0), "a half split needs at least 2 units, got 0"),
        (lambda: games.half_split(10, 4, population=-0.5), "population must be >= 0 and <= 1, got -0.5"),
        (lambda: games.half_split(4, 2, group=np.zeros(4)), "a half split needs at least 2 units, got 1"),
        (lambda: games.half_split(4, 2, group=np.arange(3)), "group has 3 values for 4 points"),
        (lambda: games.per_datum(10, 10, 4), "target must be from 0 to 9, got 10"),
        (lambda: games.per_datum(10, -1, 4), "target must be from 0 to 9, got -1"),
        (lambda: games.per_datum(1, 0, 4), "points must be >= 2, got 1"),
        (lambda: games.per_datum(10, 0, 4, references=-1), "references must be >= 0, got -1"),
        (
            lambda: games.per_datum(10, 0, 4, others="none"),  # pyright: ignore[reportArgumentType]
            "unknown others 'none'; known: pool, fresh",
        ),
        (lambda: games.average_datum(1, 4), "points must be >= 2, got 1"),
        (lambda: games.average_datum(10, 0), "n_models must be >= 1, got 0"),
        (lambda: games.canaries(10, np.array([10]), 1), "canary must be from 0 to 9, got 10"),
        (lambda: games.canaries(10, np.array([1]), 0), "n_models must be >= 1, got 0"),
        (lambda: games.canaries(10, np.array([1]), 1, references=-1), "references must be >= 0, got -1"),
        (
            lambda: games.canaries(10, np.array([], dtype=int), 1),
            "each target must have the same number of target points, at least 1; got [0]",
        ),
        (lambda: games.one_model(0, 3), "members must be >= 1, got 0"),
        (lambda: games.one_model(3, 0), "others must be >= 1, got 0"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_the_line_that_a_bad_game_gets(call, message):
    with pytest.raises(ValueError) as caught:
        call()
    assert str(caught.value) == message


OF = np.r_[np.arange(6), np.repeat([1, 4], 3)]
OWN = np.arange(12) < 6


def test_candidates_are_in_with_their_own_row_alone():
    records = half_split(6, 9, seed=1)
    game = candidates(records, OF, OWN)
    assert (game.member[:, OWN] == records.member).all()
    assert not game.member[:, ~OWN].any()
    assert game.target_points.tolist() == [6, 7, 8, 9, 10, 11]
    assert game.candidate_of.tolist() == OF.tolist()
    assert (game.kind, game.n_targets, game.prior) == ("candidates", 9, 0.5)
    assert game.split().candidate_of is game.candidate_of


def test_records_set_aside_stay_the_population_of_a_game_about_an_attribute():
    records = half_split(20, 30, seed=1, population=0.2)
    playing = records.target_points[:2]
    game = candidates(records, np.r_[np.arange(20), np.repeat(playing, 2)], np.arange(24) < 20)
    assert game.population.tolist() == records.population.tolist()
    with pytest.raises(ValueError, match="must be target points of every model"):
        candidates(records, np.r_[np.arange(20), np.repeat(records.population[:1], 2)], np.arange(22) < 20)


@pytest.mark.parametrize(
    ("of", "own", "line"),
    [
        (OF, OWN & (np.arange(12) > 0), "each of the 6 records needs one row of its own"),
        (np.r_[OF[:5], 4, OF[6:]], OWN, "each of the 6 records needs one row of its own"),
        (np.r_[OF, 1], np.r_[OWN, False], "the same number of candidates"),
        (OF[:6], OWN[:6], "there must be one to attack"),
    ],
)
def test_rows_that_make_no_game_about_an_attribute_are_refused(of, own, line):
    with pytest.raises(ValueError, match=line):
        candidates(half_split(6, 4), of, own)


@pytest.mark.usefixtures("as_users_run_it")
def test_the_rows_and_the_game_are_of_one_length():
    with pytest.raises(ValueError, match=r"candidate_of has shape \(3,\); allowed: \(6,\)"):
        replace(half_split(6, 4), candidate_of=np.zeros(3, dtype=int))
