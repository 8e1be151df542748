"""Networks of delgrosso2021: the attacks, the strategies and the claims against obvious twins, on made-up data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from leakscope.papers import data, figures
from leakscope.papers.delgrosso2021 import figure4, figure5, gap, images, networks, table1
from leakscope.papers.lab import Lab
from leakscope.papers.printed import Ours


@pytest.fixture
def made_up_images(monkeypatch):
    """Noise with random labels, 60 to train on and 50 to test on: what is learned is memory."""
    rng = np.random.default_rng(0)

    def made(name: str) -> data.Images:
        shape = (32, 32, 3) if name == "cifar10" else (28, 28)
        return data.Images(rng_images[name].reshape(-1, *shape), np.arange(110) % 10, 60)

    rng_images = {
        name: rng.integers(256, size=(110, size), dtype=np.uint8)
        for name, size in (("mnist", 784), ("fashion", 784), ("cifar10", 3072))
    }
    monkeypatch.setattr(data, "images", made)


@pytest.fixture
def made_up_writers(monkeypatch):
    """3,300 records in which the number of strokes and the length tell the writer."""
    rng, number = np.random.default_rng(0), np.arange(3300)
    writer = number % 44
    pen = {
        "x": rng.normal(size=(3300, 32)) * 100 + 7,
        "y": rng.normal(size=(3300, 32)) * 50 - 3,
        "label": rng.integers(10, size=3300),
        "writer": (writer + 1).astype(np.uint8),
        "n_strokes": (1 + writer % 4).astype(np.uint8),
        "length": (9 + writer // 4).astype(np.int16),
    }
    monkeypatch.setattr(data, "writers", lambda: pen)
    figure5.records.cache_clear()
    yield pen
    figure5.records.cache_clear()


def _log_p(rng: np.random.Generator, n: int) -> np.ndarray:
    p = rng.dirichlet(np.full(10, 0.2), size=n)
    return np.log(np.clip(p, 1e-6, 1))


def test_the_networks_have_as_many_parameters_as_printed() -> None:
    assert networks.n_parameters(networks.deep_cnn(1, 28)) == 376_714
    assert networks.n_parameters(networks.deep_cnn(3, 32)) == 439_722
    assert networks.n_parameters(networks.dense(64 + 2 + 44)) == 4650
    linear = [each for each in networks.dense().modules() if each.__class__.__name__ == "Linear"]
    assert len(linear) == 4


def test_squared_loss_is_the_distance_from_the_one_hot_label() -> None:
    log_p = _log_p(np.random.default_rng(0), 50)
    aim = np.eye(10)[0]
    naive = [sum((np.exp(row[i]) - aim[i]) ** 2 for i in range(10)) for row in log_p]
    assert gap.squared_loss(log_p) == pytest.approx(naive, abs=1e-12)
    assert gap.squared_loss(np.log([1e-300, 1.0])) == pytest.approx(2.0)  # the most that a loss can be


def test_what_is_seen_of_a_network_is_what_its_games_give() -> None:
    rng = np.random.default_rng(1)
    log_p, correct, n = _log_p(rng, 30), rng.integers(2, size=30), 12
    found = gap.membership_results(log_p, correct, n)
    won = {True: [], False: []}  # every game: Algorithm 2 for each member and each other
    for number, row in enumerate(log_p):
        won[number < n].append((max(np.exp(row)) > 0.8) == (number < n))
    assert found["success"] == pytest.approx((np.mean(won[True]) + np.mean(won[False])) / 2)
    loss = gap.squared_loss(log_p)
    assert found["gap"] == pytest.approx(loss[n:].mean() - loss[:n].mean())
    assert found["test_accuracy"] == pytest.approx(correct[n:].mean())


def test_the_bounds_are_those_of_both_ranges_of_the_loss() -> None:
    """Theorem 2 at even odds: 1/2 + gap/(4 l_max) with |loss| <= l_max = 2; 1/2 + gap/(2 * 2) for a loss in [0, 2]."""
    made = gap.Networks(np.array([0.7, 0.8]), np.array([0.6, 0.4]), np.array([0.5, 0.6]))
    found = made.lines()
    assert found["bound"][0] == pytest.approx(0.5 + 0.5 / 8)
    assert found["sharper"][0] == pytest.approx(0.5 + 0.5 / 4)
    assert found["test_accuracy"][0] == pytest.approx(0.55)
    for value, low, high in found.values():
        assert low < value < high
    assert made.above.value == pytest.approx((0.7 - 0.575 + 0.8 - 0.55) / 2)
    none = gap.Networks(np.array([0.5, 0.5]), np.array([-0.2, -0.1]), np.array([0.5, 0.6]))
    assert none.lines()["bound"][0] == 0.5


def test_the_bound_is_broken_only_beyond_three_errors() -> None:
    gaps = np.full(4, 0.8)  # the bound is .6
    holds = gap.Networks(np.array([0.58, 0.64, 0.6, 0.57]), gaps, gaps)
    below = gap.Networks(np.array([0.55, 0.551, 0.55, 0.549]), gaps, gaps)
    above = gap.Networks(np.array([0.68, 0.74, 0.7, 0.67]), gaps, gaps)
    assert gap.bound_holds({10: above}, [10]).value is True
    assert gap.bound_holds({10: holds}, [10]).unclear
    assert gap.bound_holds({10: holds, 100: below}, [10, 100]).value is False
    assert gap.bound_holds({10: holds}, [10]).smaller == ""
    assert gap.bound_holds({10: holds}, [10, 100, 1000]).smaller.startswith("1 of 3 sizes; ")


def test_success_and_gap_fall_from_where_they_are_largest() -> None:
    def of(success: float, gap_: float) -> gap.Networks:
        return gap.Networks(success + np.array([-0.001, 0.001]), gap_ + np.array([-0.001, 0.001]), np.array([0.5, 0.6]))

    falling = {10: of(0.6, 0.7), 100: of(0.7, 0.3), 10_000: of(0.52, 0.02)}
    found = figure4.approaches_half(falling)
    assert (found.value, found.smaller) == (True, "")
    assert figure4.approaches_half({10: of(0.6, 0.7), 10_000: of(0.65, 0.1)}).value is False
    assert figure4.smallest(falling).detail == f"at n = {max(falling):,}"
    assert figure4.smallest(falling).value == falling[max(falling)].success.mean()
    assert figure4.approaches_half({10: of(0.6, 0.7), 500: of(0.52, 0.1)}).smaller == "n up to 500 of 10,000"


def test_a_network_is_asked_about_its_own_images_first(made_up_images) -> None:
    found = images.attacked("mnist", 20, 40, 0, 3)
    assert {found[attack].shape for attack in images.ATTACKS} == {(60,)}
    member, other = (found["loss"][:20].mean(), found["loss"][20:].mean())
    assert member > other + 0.3  # it has learned random labels by heart
    assert found["gap"] == pytest.approx(member - other, abs=1e-5)
    called = np.exp(found["likelihood"]) > 0.8
    assert found["success"] == pytest.approx((called[:20].mean() + 1 - called[20:].mean()) / 2)
    assert found["modified_entropy"].max() <= 0
    again = images.attacked("mnist", 20, 40, 0, 3)
    assert all(np.array_equal(found[name], again[name]) for name in found)
    assert not np.array_equal(found["loss"], images.attacked("mnist", 20, 40, 1, 3)["loss"])


def test_thresholds_of_figure_4_are_those_of_other_networks() -> None:
    """Scores whose best threshold moves from network to network are worth nothing with another one's."""
    member = np.arange(200) < 100
    facts = {"success": 0.7, "gap": 0.5, "test_accuracy": 0.8}
    same = [{"loss": 1.0 * member, "modified_entropy": 1.0 * member + 9 * number, **facts} for number in (0, 1)]
    found = figure4.lines(same, 100)
    assert list(found) == list(figure4.LINES)
    assert found["loss"][0] == 1.0
    assert found["modified_entropy"][0] == 0.5


def test_both_image_experiments_run_and_their_figures_say_what_they_show(made_up_images) -> None:
    lab = Lab(quick=True, n_jobs=1)
    outcome = figure4.study(lab, {"mnist": {10: 2}, "fashion": {10: 2}}, 40)
    assert set(outcome.ours) == {"parameters_mnist", "below_half_mnist", "bound_holds_mnist", "bound_holds_fashion"}
    assert len(outcome.numbers) == 2 * len(figure4.LINES)
    assert outcome.numbers["value"].between(0, 1).all()
    _labelled(figure4.draw(outcome.numbers), 4)
    table = table1.study(lab, 16, 20, 2)
    assert table.numbers["ppv"].between(16 / 36, 1).all()
    assert f"precision is {table.numbers['ppv'].max() - 8000 / 18_000:.3f} above 8/18" in table.run
    assert all(each.smaller for each in table.ours.values())
    _labelled(table1.draw(table.numbers), 3)


def test_precision_is_that_of_the_highest_threshold_with_such_a_recall() -> None:
    rng = np.random.default_rng(0)
    for n, others in ((7, 5), (200, 250)):
        score = np.round(rng.normal(size=n + others) + 0.3 * (np.arange(n + others) < n), 1)  # with ties
        for threshold in sorted(set(score), reverse=True):
            called = score >= threshold
            if called[:n].mean() > 0.99:
                break
        assert table1.precision(score, n) == called[:n].sum() / called.sum()
    assert table1.precision(np.zeros(18), 8) == 8 / 18  # everybody is called


def test_records_are_read_as_printed(made_up_writers) -> None:
    x, label, writer = figure5.records()
    assert x.shape == (3300, 110)
    assert np.array_equal(x[:, :44].argmax(axis=1), made_up_writers["writer"] - 1)
    assert (x[:, :44].sum(axis=1) == 1).all()
    one = np.concatenate([made_up_writers["x"][5], made_up_writers["y"][5]])
    assert x[5, 44:108] == pytest.approx((one - one.min()) / (one.max() - one.min()), abs=1e-6)
    assert np.array_equal(x[:, 108], made_up_writers["n_strokes"])
    assert (x[:, 109].min(), x[:, 109].max()) == (0, 1)
    assert np.array_equal(label, made_up_writers["label"])
    assert np.array_equal(writer, made_up_writers["writer"] - 1)


def test_candidates_differ_in_the_writer_alone() -> None:
    x = np.random.default_rng(0).normal(size=(3, 110))
    tried = figure5.candidates(x).reshape(3, 44, 110)
    for record in range(3):
        for value in range(44):
            assert np.array_equal(tried[record, value, :44], np.eye(44)[value])
            assert np.array_equal(tried[record, value, 44:], x[record, 44:])


def test_strategies_are_the_equations() -> None:
    rng = np.random.default_rng(2)
    log_p, correct, steep = _log_p(rng, 88), rng.integers(2, size=88), rng.random(88)
    correct[44:] = 0  # nobody makes the network predict the second digit
    found = figure5.strategies(log_p, correct, steep)
    p = np.exp(log_p[:44])
    assert found["likelihood"][0].argmax() == max(range(44), key=lambda t: max(p[t]))
    right_ones = [t for t in range(44) if correct[t]]
    assert found["accuracy"][0].argmax() == max(right_ones, key=lambda t: max(p[t]))
    assert found["loss"][0].argmax() == min(range(44), key=lambda t: (1 - p[t, 0]) ** 2 + sum(p[t, 1:] ** 2))
    assert found["gradient"][0].argmax() == min(range(44), key=lambda t: steep[t])
    assert figure5.right(found["accuracy"][1:], np.array([7])) == pytest.approx(1 / 44)


def test_without_the_network_one_guesses_from_other_records(made_up_writers) -> None:
    _, label, writer = figure5.records()
    attacked, outside = np.arange(100), np.arange(200, 1000)
    found = figure5.without(label, writer, attacked, outside, 0)
    assert figure5.right(found["imputation"], writer[attacked]) > 0.5  # strokes and length give the writer away
    most = np.bincount(writer[outside]) == np.bincount(writer[outside]).max()
    chance = np.mean([most[one] / most.sum() for one in writer[attacked]])
    assert figure5.right(found["prior"], writer[attacked]) == pytest.approx(chance)


def test_a_network_for_digits_gives_a_share_for_each_line(made_up_writers) -> None:
    found = figure5.attacked_writers(100, 0, 0)
    shares = {*figure5.STRATEGIES, *figure5.BLIND, "success", "test_accuracy"}
    assert set(found) == shares | {"gap"}
    assert all(0 <= found[name] <= 1 for name in shares)
    assert found["test_accuracy"] < 0.3  # random labels
    assert found["loss"] > 3 / 44  # of which the training set is known by heart, writers and all
    assert found == figure5.attacked_writers(100, 0, 0)


def _runs(likelihood: float, loss: float, success: float) -> list[dict[str, float]]:
    spread = (-0.01, 0.0, 0.01)
    rest = {"accuracy": 0.0, "gradient": 0.0, "gap": 0.1, "test_accuracy": 0.9}
    return [rest | {"likelihood": likelihood + d, "loss": loss + d, "success": success + d} for d in spread]


def test_claims_of_figure_5_are_about_the_best_strategy() -> None:
    found = figure5.claims({100: _runs(0.2, 0.3, 0.8), 8000: _runs(0.05, 0.04, 0.51)})
    assert found["gain_100"].value == pytest.approx(0.3 - 1 / 44)
    assert "loss" in found["gain_100"].detail
    assert found["gain_100"].error == pytest.approx(0.01 / np.sqrt(3))
    assert found["success_8000"].value == pytest.approx(0.05)
    assert (found["falls"].value, found["membership_100"].value) == (True, True)
    assert found["bound_holds"].unclear  # within three standard errors of the bound at some n
    assert found["membership_8000"].value == pytest.approx(0.51)


def test_a_success_that_rises_between_does_not_fall() -> None:
    assert figure5.falls({100: Ours(0.3, 0.01), 500: Ours(0.31, 0.01), 8000: Ours(0.1, 0.01)})
    assert not figure5.falls({100: Ours(0.3, 0.01), 500: Ours(0.4, 0.01), 8000: Ours(0.1, 0.01)})
    assert not figure5.falls({100: Ours(0.3, 0.01), 8000: Ours(0.28, 0.01)})


def test_figure_5_says_what_it_shows() -> None:
    lines = (*figure5.STRATEGIES, *figure5.BLIND, *figure5.MEMBERSHIP)
    rows = [{"n": n, "line": line, "value": 0.6, "low": 0.5, "high": 0.7} for n in (100, 8000) for line in lines]
    figure = figure5.draw(pd.DataFrame(rows))
    _labelled(figure, 3)
    said = [text.get_text() for ax in figure.axes for text in (ax.get_legend().get_texts() if ax.get_legend() else ())]
    assert len(said) == len(lines) + 1  # and chance


def _labelled(figure, n_axes: int) -> None:
    """Every axis says what it shows, and the picture can be drawn."""
    assert len(figure.axes) == n_axes
    for ax in figure.axes:
        assert ax.get_ylabel()
    assert sum(bool(ax.get_xlabel()) for ax in figure.axes) >= n_axes / 2
    assert figures.as_bytes(figure, "png").startswith(b"\x89PNG")
