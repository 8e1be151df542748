"""Figure 2 of azize2024: the game on sizes that can be counted out, and its claims at a fifth of the size."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import leakscope as ls
from leakscope.papers import figures
from leakscope.papers.azize2024 import figure2
from leakscope.papers.azize2024.mean_game import (
    Games,
    Sizes,
    World,
    advantage,
    band_widths,
    distance,
    first_rounds,
    moments,
    operating_points,
    over_draws,
    ratio,
)
from leakscope.papers.lab import Lab
from leakscope.papers.printed import printed

LAB = Lab(quick=True, n_jobs=1)


def world(n: int, d: int, medium="coins") -> World:
    return World.drawn(0.3, medium, Sizes(n, d), np.random.default_rng(0))


def scored(value, member) -> ls.Scores:
    return ls.Scores("made", np.array(value, dtype=float)[:, None], np.array(member)[:, None])


class TestWorld:
    def test_scores_are_sums_of_odds(self):
        drawn = world(10, 30)
        likely = np.maximum(drawn.p, 1 - drawn.p)
        assert drawn.score("easy") == pytest.approx((likely / (1 - likely)).sum() / 10)
        assert drawn.score("hard") == pytest.approx(((1 - likely) / likely).sum() / 10)
        gamma, variance = 0.5, drawn.p * (1 - drawn.p)
        noisy = sum(
            (z - p) ** 2 / (v + gamma**2) for z, p, v in zip(drawn.targets["med"], drawn.p, variance, strict=True)
        )
        assert drawn.score("med", gamma) == pytest.approx(noisy / 10)

    def test_a_medium_target_of_the_law_has_the_likelier_bits(self):
        """Sum of p_j over its ones and 1 - p_j over its zeros, 5,000 columns: mean 2,567 against 2,500, deviation 8."""
        for medium, mean in (("distribution", 5000 * (0.5 + 2 * 0.2**2 / 3)), ("coins", 2500)):
            drawn = world(1, 5000, medium)
            assert abs(np.where(drawn.targets["med"] == 1, drawn.p, 1 - drawn.p).sum() - mean) < 33

    def test_the_mean_over_draws_has_its_own_error(self):
        worlds = [World.drawn(0.3, "coins", Sizes(10, 30), np.random.default_rng(seed)) for seed in range(5)]
        m = [each.score("easy") for each in worlds]
        found = over_draws(worlds, "easy")
        assert (found.value, found.error) == pytest.approx((np.mean(m), np.std(m, ddof=1) / np.sqrt(5)))


class TestGames:
    def test_the_mean_of_one_record_is_the_target_or_any_record(self):
        """Ratio m/2 for members, else that of one of the 2^d records."""
        drawn = world(1, 5)
        scores = ratio(Games(LAB, drawn, 60).play("hard"))
        m, z = drawn.score("hard"), drawn.targets["hard"]
        weight = (z - drawn.p) / (drawn.p * (1 - drawn.p))
        records = np.array(list(itertools.product([0, 1], repeat=5))) - drawn.p
        allowed = records @ weight - m / 2
        assert scores.value[scores.member] == pytest.approx(m / 2, rel=1e-5)
        outside = scores.value[~scores.member]
        assert np.abs(outside[:, None] - allowed).min(axis=1).max() < 1e-4
        assert len(np.unique(outside)) > 10

    def test_one_of_two_records(self):
        """A member is the record that is drawn in half of the rounds; the ratio is that of the mixture."""
        drawn = world(2, 5)
        scores = ratio(Games(LAB, drawn, 200).play("easy", rho=0.5), 0.5)
        present = np.log(0.5 + 0.5 * np.exp(drawn.score("easy")))  # m of one record, over 2
        hit = np.isclose(scores.value[scores.member], present, rtol=1e-5)
        assert 0.3 < hit.mean() < 0.75  # one half, and a 32nd of the others' rounds or so
        assert scores.value.min() > np.log(0.5)

    def test_noise_lowers_the_score(self):
        drawn = world(20, 100)
        plain, noisy = (Games(LAB, drawn, 300).play("easy", gamma=gamma).array("step_norm") for gamma in (0, 2))
        assert plain == pytest.approx(drawn.score("easy"), rel=1e-5)
        assert noisy == pytest.approx(drawn.score("easy", 2), rel=1e-5)


class TestNumbers:
    def test_moments_in_units_of_m(self):
        found = moments(scored([-3, -1, -2, 2, 4], [False] * 3 + [True] * 2), m=4.0)
        assert {name: each.value for name, each in found.items()} == pytest.approx(
            {"out_mean": 1.0, "in_mean": 1.5, "variance": 0.25}
        )
        assert found["in_mean"].error == pytest.approx(0.5)

    def test_advantage_at_zero(self):
        found = advantage(scored([1, 2, 3, -1, 1, -2, -3, -4], [True] * 4 + [False] * 4))
        assert found.value == pytest.approx(3 / 4 - 1 / 4)
        assert found.error == pytest.approx(np.sqrt(2 * 0.25 / 4))  # variance of three equal ones of four: 1/4

    def test_operating_points_one_by_one(self):
        rng = np.random.default_rng(1)
        value, member = rng.normal(size=30), rng.random(30) < 0.5
        rates = [((value >= t)[~member].mean(), (value >= t)[member].mean()) for t in [np.inf, *sorted(value)[::-1]]]
        assert np.array(operating_points(scored(value, member))) == pytest.approx(np.array(rates).T)

    def test_distance_from_the_diagonal(self):
        point, curve = (np.array([0.2]), np.array([0.4])), ls.tradeoff.Gaussian(0.0)
        assert distance(*point, curve, (0.1, 0.1)) == pytest.approx(1.0, abs=0.02)
        assert distance(*point, curve, (0.1, 0.3)) == pytest.approx(0.5, abs=0.02)  # meets (.25, .25)

    @pytest.mark.statistics
    def test_the_band_holds(self):
        """At most one game in 1,000 leaves the band; 3 or more of 60 have a probability below 4e-5."""
        rng, m, outside, missed = np.random.default_rng(2), 3.42, 0, 0
        member = np.arange(500) < 250
        for _ in range(60):
            scores = scored(rng.normal(np.where(member, m / 2, -m / 2), np.sqrt(m)), member)
            points, widths = operating_points(scores), band_widths(scores)
            outside += distance(*points, ls.bounds.leakage_tradeoff(m), widths) > 1
            missed += distance(*points, ls.bounds.leakage_tradeoff(8 * m), widths) <= 1
        assert outside <= 2
        assert missed == 0

    def test_first_rounds(self):
        assert first_rounds(scored([1, 2, 3], [True, False, True]), 2).value.tolist() == [[1.0], [2.0]]


@pytest.fixture(scope="module")
def outcome():
    """d/n = 5 as in the paper."""
    return figure2.measured(LAB, Sizes(n=160, d=800, rounds=600, draws=30))


class TestFigure:
    def test_every_claim_is_judged_as_it_should(self, outcome):
        known = printed("azize2024")["figure2"]
        verdicts = {key: claim.compared_with(outcome.ours[key]).verdict for key, claim in known.items()}
        wrong = {*(f"m_{target}_as_written" for target in ("easy", "med", "hard")), "subsampled_0.1", "subsampled_0.5"}
        assert {key for key, verdict in verdicts.items() if verdict == "erratum"} == wrong
        assert {verdict for key, verdict in verdicts.items() if key not in wrong} <= {"agrees", "cannot tell"}
        assert {verdicts[f"m_{target}"] for target in ("easy", "med", "hard")} == {"agrees"}

    @pytest.mark.slow
    def test_the_error_of_one_draw_of_p(self):
        """The deviation over draws of p, 1,000 of them; its own relative standard error is 1/sqrt(2000)."""
        known, rng = printed("azize2024")["figure2"], np.random.default_rng(5)
        for a, suffix in ((0.25, "_as_written"), (0.30, "")):
            p = rng.uniform(a, 1 - a, (1000, 5000))
            targets = {"easy": p <= 0.5, "hard": p > 0.5, "med": rng.random(p.shape) < (p if suffix else 0.5)}
            for target, z in targets.items():
                deviation = (((z - p) ** 2 / (p * (1 - p))).sum(axis=1) / 1000).std()
                assert known[f"m_{target}{suffix}"].error == pytest.approx(deviation, rel=0.09)

    def test_the_mixture_is_right(self, outcome):
        for rho in (0.1, 0.5):
            ours, right = outcome.ours[f"subsampled_{rho}"], ls.bounds.leakage_tradeoff(7.75, rho).advantage()
            assert abs(ours.value - right) < 4 * ours.error

    @pytest.mark.slow
    def test_same_bytes_from_a_store(self, tmp_path):
        sizes = Sizes(n=20, d=30, rounds=200, draws=3)
        made = [
            figure2.measured(Lab(True, 0, store, 1), sizes).numbers.to_csv() for store in (None, tmp_path, tmp_path)
        ]
        assert made[0] == made[1] == made[2]

    @pytest.mark.slow
    def test_axes_have_labels_and_legends(self, outcome):
        with figures.looking():
            figure = figure2.draw(outcome.numbers)
        assert len(figure.axes) == 6
        assert all(
            ax.get_xlabel() and ax.get_ylabel() and ax.get_title("left") and ax.get_legend() for ax in figure.axes
        )
        assert figure.axes[0].get_xlabel() == "log-likelihood ratio (nats)"
        assert len(figures.as_bytes(figure, "png")) > 10_000
