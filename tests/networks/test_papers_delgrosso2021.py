"""Networks of delgrosso2021: the attacks, the strategies and the claims against obvious twins, on made-up data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import leakbound as ls
from leakbound.papers import data, figures
from leakbound.papers.delgrosso2021 import figure4, figure5, gap, images, networks, table1
from leakbound.papers.lab import Lab
from leakbound.papers.printed import Ours
from tests.marks import nightly


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
def few_epochs(monkeypatch):
    """Networks that have hardly begun to learn, for what does not depend on it."""
    for recipe in (images.RECIPE, images.CODE):
        monkeypatch.setitem(recipe, "epochs", 3)


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


@pytest.mark.slow
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


@pytest.mark.nightly
def test_both_image_experiments_run_and_their_figures_say_what_they_show(
    made_up_images, few_epochs, monkeypatch
) -> None:
    monkeypatch.setattr(table1, "RECALL", 0.89)  # of so few members
    lab = Lab(quick=True, n_jobs=1)
    plan, as_code = {"mnist": {10: 2}, "fashion": {10: 2}}, {"mnist": {12: 2}, "fashion": {12: 2}}
    outcome = figure4.study(lab, plan, as_code, {"mnist": 10}, 40)
    of_both = {"below_half_mnist", "bound_holds_mnist", "bound_holds_fashion", "threshold_mnist", "threshold_fashion"}
    assert set(outcome.ours) == of_both | {"parameters_mnist", "mse_mnist"}
    assert {setting: set(ours) for setting, ours in outcome.tried.items()} == {"code": of_both, "trained": of_both}
    assert all(ours.smaller for key, ours in outcome.ours.items() if key != "parameters_mnist")
    shown = outcome.numbers.groupby("setting").size().to_dict()
    n_lines = len(figure4.LINES)
    assert shown == {"text": 2 * n_lines, "code": 2 * n_lines, "trained": 2 * n_lines, "result file": 2 * 4 * 3}
    assert outcome.numbers["value"].between(0, 1).all()
    figure = figure4.draw(outcome.numbers)
    _labelled(figure, 8)
    assert "their result file, LK" in [text.get_text() for text in figure.legends[0].get_texts()]
    table = table1.study(lab, 16, 20, {"text": 2, "code": 3})
    least = 8 * 0.9 / (8 * 0.9 + 10)  # nine of ten true members found, and everybody else called one, too
    assert table.numbers["ppv"].between(least, 1).all()
    assert table.numbers.groupby("setting").size().to_dict() == {"text": 18, "code": 27, "trained": 27}
    of_text = table.numbers[table.numbers["setting"] == "text"]
    means = of_text.groupby(["data", "attack"])["ppv"].mean()
    assert f"precision is {means.max() - 8000 / 18_000:.3f} above 8/18" in table.run
    assert all(ours.smaller for found in (table.ours, *table.tried.values()) for ours in found.values())
    assert set(table.ours) == set(table.tried["code"]) == set(table.tried["trained"])
    _labelled(table1.draw(table.numbers), 3)


@pytest.mark.parametrize("setting", ["text", nightly("code"), nightly("trained")])
@pytest.mark.slow
def test_one_setting_can_be_run_alone(made_up_images, few_epochs, setting, monkeypatch) -> None:
    monkeypatch.setattr(table1, "RECALL", 0.89)  # of so few members
    lab = Lab(quick=True, n_jobs=1, setting=setting)
    outcome = figure4.study(lab, {"mnist": {12: 2}}, {"mnist": {12: 2}}, {"mnist": 12}, 40)
    assert outcome.tried == {}
    assert ("parameters_mnist" in outcome.ours) == (setting == "text")
    assert set(outcome.numbers["setting"]) == ({"text"} if setting == "text" else {setting, "result file"})
    _labelled(figure4.draw(outcome.numbers), 2)
    table = table1.study(lab, 16, 20, {"text": 2, "code": 2})
    assert table.tried == {}
    assert set(table.numbers["setting"]) == {setting}
    _labelled(table1.draw(table.numbers), 3)


@pytest.mark.slow
def test_two_thirds_of_the_images_are_trained_on_as_in_the_public_code(made_up_images) -> None:
    found = images.attacked_as_code("mnist", 30, 40, 0, 3)
    assert {found[attack].shape for attack in images.ATTACKS} == {(70,)}
    trained, unseen, other = (found["loss"][part].mean() for part in (slice(20), slice(20, 30), slice(30, None)))
    assert trained > unseen + 0.3  # random labels that it has memorised, and others that it has not
    assert found["code_gap"] == pytest.approx((20 * trained + 10 * unseen) / 30 - other, abs=1e-5)
    assert found["trained_gap"] == pytest.approx(trained - other, abs=1e-5)
    called = np.exp(found["likelihood"]) > 0.8
    right_of_others = 1 - called[30:].mean()
    assert found["code_success"] == pytest.approx((called[:30].mean() + right_of_others) / 2)
    assert found["trained_success"] == pytest.approx((called[:20].mean() + right_of_others) / 2)
    assert found["code_test_accuracy"] == found["trained_test_accuracy"]
    again = images.attacked_as_code("mnist", 30, 40, 0, 3)
    assert all(np.array_equal(found[name], again[name]) for name in found)
    assert not np.array_equal(found["loss"], images.attacked_as_code("mnist", 30, 40, 1, 3)["loss"])


def test_the_same_images_are_drawn_for_both_recipes(made_up_images, monkeypatch) -> None:
    drawn, calls = images.drawn, []
    monkeypatch.setattr(images, "drawn", lambda *given: calls.append(given) or drawn(*given))
    images.attacked("mnist", 12, 20, 0, 3)
    images.attacked_as_code("mnist", 12, 20, 0, 3)
    assert calls == [("mnist", 12, 20, 0, 3)] * 2


def test_called_members_are_all_images_or_those_trained_on() -> None:
    scores = {attack: np.arange(10.0) for attack in images.ATTACKS}  # 6 images, 4 of them trained on, 4 others
    facts = {"code_success": 0.6, "code_gap": 0.1, "trained_success": 0.7, "trained_gap": 0.2}
    of_all, of_trained = (images.called(scores | facts, setting, 6) for setting in images.SETTINGS)
    assert of_all["loss"].tolist() == list(range(10))
    assert of_trained["loss"].tolist() == [0, 1, 2, 3, 6, 7, 8, 9]
    assert (of_all["success"], of_all["gap"]) == (0.6, 0.1)
    assert (of_trained["success"], of_trained["gap"]) == (0.7, 0.2)
    assert [images.n_members(setting, 8000) for setting in ("text", "code", "trained")] == [8000, 8000, 5333]


def test_batch_norm_has_the_statistics_of_the_images_that_are_asked() -> None:
    """Against the textbook: (z - mean)/sqrt(variance + 1e-5) over the images of one side."""
    with networks.seeded(0):
        network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
        network[1].running_mean.fill_(100.0)  # of a training that is not looked at
        x = torch.randn(7, 3)
    found = networks.ask_in_training_mode(network, x)
    weights = {name: value.double().numpy() for name, value in network.state_dict().items()}
    z = x.double().numpy() @ weights["0.weight"].T + weights["0.bias"]
    normed = (z - z.mean(axis=0)) / np.sqrt(z.var(axis=0) + 1e-5)
    assert found == pytest.approx(normed @ weights["2.weight"].T + weights["2.bias"], abs=1e-5)


def test_many_images_are_asked_in_equal_parts(monkeypatch) -> None:
    monkeypatch.setattr(networks, "LARGEST_BATCH", 4)
    sizes = []

    class Listening(nn.Module):
        def forward(self, x):
            sizes.append(len(x))
            return x

    assert networks.ask_in_training_mode(Listening(), torch.arange(10.0)[:, None])[:, 0].tolist() == list(range(10))
    assert sizes == [4, 3, 3]


def test_training_as_the_public_code_is_that_of_leakbound_with_the_same_batch() -> None:
    """One batch an epoch: neither the order of the images nor the mean over batches makes a difference."""
    rng = np.random.default_rng(0)
    x, label = rng.normal(size=(40, 110)).astype(np.float32), np.arange(40) % 10
    recipe = {"lr": 5e-3, "batch": 50, "epochs": 12, "stop": 1e-3}
    network = ls.releases.Network(networks.dense, ls.releases.Recipe.of(recipe | {"loss": "mse"}))
    points = ls.data.from_arrays(x, label)
    theirs = network.observe(points, np.arange(40)[None] < 30, np.array([5]), ["log_prob"])["log_prob"][0]
    with networks.seeded(ls.seeds.integer(5, "init")):
        own = networks.dense()
        networks.train(own, torch.from_numpy(x[:30]), label[:30], **recipe)
    with torch.no_grad():
        logits = own.eval()(torch.from_numpy(x)).numpy()
    assert images.true_first(logits, label) == pytest.approx(theirs, abs=1e-3)


def test_training_stops_by_the_plain_mean_over_batches(monkeypatch) -> None:
    """Losses 0 and .5 of batches of 4 and 2, then .375 and .125: their mean is the same, that over images is not."""
    told = iter([0.0, 0.5, 0.375, 0.125, 0.0, 0.0, 0.0, 0.0])
    n_steps = 0

    def loss(prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        nonlocal n_steps
        n_steps += 1
        return 0 * prediction.sum() + next(told)

    monkeypatch.setattr(networks, "mse_loss", loss)
    with networks.seeded(0):
        networks.train(nn.Linear(3, 10), torch.randn(6, 3), np.arange(6), lr=1e-2, batch=4, epochs=4, stop=1e-3)
    assert n_steps == 4  # two epochs


def test_true_labels_come_first() -> None:
    rng = np.random.default_rng(4)
    logits, label = rng.normal(size=(20, 10)) * 3, rng.integers(10, size=20)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    found = np.exp(images.true_first(logits, label))
    for row in range(20):
        assert found[row].tolist() == pytest.approx([p[row, label[row]], *np.delete(p[row], label[row])])
    assert images.true_first(np.array([[0.0, 500.0]]), np.array([0]))[0, 0] == pytest.approx(np.log(1e-12))


def test_pixels_are_scaled_and_channels_come_first() -> None:
    pixels = np.arange(2 * 3 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3, 3)
    found = networks.tensor(pixels)
    assert found.shape == (2, 3, 3, 3)
    assert found[1, 2, 0, 1].item() == pytest.approx(pixels[1, 0, 1, 2] / 255)
    assert networks.tensor(pixels[..., 0]).shape == (2, 1, 3, 3)


def test_the_best_threshold_is_told_from_others_by_its_lead() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(scale=1e-3, size=(5, 1))
    peaked = 0.6 - 0.1 * (figure4.THRESHOLDS - 0.8) ** 2 + noise
    assert figure4.best_threshold(dict.fromkeys(figure4.FULL, peaked)).value is True
    assert figure4.best_threshold(dict.fromkeys(figure4.FULL, peaked)).smaller == ""
    found = figure4.best_threshold({100: 0.6 - 0.1 * (figure4.THRESHOLDS - 0.5) ** 2 + noise})
    assert (found.value, found.smaller[:12]) == (False, "1 of 10 size")
    assert "largest with 0.5: 0.600" in found.detail
    unclear = peaked + rng.normal(scale=0.1, size=(5, 9))
    assert figure4.best_threshold({100: unclear}).unclear


def test_success_at_each_threshold_is_that_of_its_games() -> None:
    p = np.array([0.95, 0.55, 0.75, 0.35])  # two members, two others
    found = figure4.success_by_threshold([{"likelihood": np.log(p)}] * 2, 2)
    assert found.shape == (2, 9)
    for place, threshold in enumerate(figure4.THRESHOLDS):
        right_guesses = [p[0] > threshold, p[1] > threshold, p[2] <= threshold, p[3] <= threshold]
        assert found[0, place] == np.mean(right_guesses)


@pytest.mark.nightly
def test_the_effect_of_the_loss_is_a_difference_of_accuracies(made_up_images) -> None:
    lab = Lab(quick=True, n_jobs=1)
    runs = [{"success": 0.5, "gap": 0.1, "test_accuracy": value} for value in (0.8, 0.9)]
    found = figure4.effect_of_loss(12, runs, figure4.accuracy_by_entropy(lab, "mnist", 12, 2, 40))
    others = [images.attacked("mnist", 12, 40, number, 0, "cross_entropy")["test_accuracy"] for number in (0, 1)]
    assert found.value == pytest.approx(0.85 - np.mean(others))
    assert found.smaller == "n = 12 of 1,000 images"


def test_the_attack_by_the_training_loss_is_that_of_its_definition() -> None:
    runs = [{"loss": np.array([-0.1, -0.3, -0.5, -0.2, -0.4])}, {"loss": np.array([-0.1, -0.1, -0.1, -0.2, -0.4])}]
    found = table1.by_training_loss(runs, 3)  # mean losses .3 and .1
    first = (2 / 3) / (2 / 3 + 1 / 2)
    assert found.value == pytest.approx((first + 1.0) / 2)
    assert found.smaller.endswith("with a recall of 0.83")


def test_precision_is_that_of_the_highest_threshold_with_such_a_recall() -> None:
    rng = np.random.default_rng(0)
    for n, others in ((160, 200), (400, 500), (133, 250)):  # in the last as where a third was never trained on
        score = np.round(rng.normal(size=n + others) + 0.3 * (np.arange(n + others) < n), 2)  # with ties
        for threshold in sorted(set(score), reverse=True):
            called = score >= threshold
            if called[:n].mean() > 0.99:
                break
        tpr, fpr = called[:n].mean(), called[n:].mean()
        assert table1.precision(score, n) == pytest.approx(8 * tpr / (8 * tpr + 10 * fpr))
    assert table1.precision(np.zeros(360), 160) == pytest.approx(8 / 18)  # everybody is called


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


@pytest.mark.slow
def test_ten_records_are_kept_aside_as_in_the_public_code(made_up_writers, monkeypatch) -> None:
    given = []
    observed = ls.signals_of

    def listening(release, points, game, *rest, **words):
        given.append((release.recipe, game.member[0].sum(), game.member.shape[1], np.asarray(points.x)))
        return observed(release, points, game, *rest, **words)

    monkeypatch.setattr(ls, "signals_of", listening)
    found = figure5.attacked_writers(100, 0, 0, "code")
    figure5.attacked_writers(100, 0, 0)
    (recipe, n_members, n_points, x), (own_recipe, own_members, own_points, own_x) = given
    assert (recipe.batch, recipe.epochs, recipe.stop) == (50, 150, 1e-5)
    assert (own_recipe.batch, own_recipe.epochs, own_recipe.stop) == (200, 2500, 1e-4)
    assert (n_members, own_members) == (90, 100)
    assert (n_points, own_points) == (90 + 2992 + 90 * 44, 100 + 2992 + 100 * 44)
    assert np.array_equal(x[:90], own_x[:90])
    assert np.array_equal(x[90:3082], own_x[100:3092])  # the same others
    assert set(found) == {*figure5.STRATEGIES, *figure5.BLIND, "success", "gap", "test_accuracy"}


def _runs(likelihood: float, loss: float, success: float) -> list[dict[str, float]]:
    spread = (-0.01, 0.0, 0.01)
    rest = {"accuracy": 0.0, "gradient": 0.0, "gap": 0.1, "test_accuracy": 0.9}
    return [rest | {"likelihood": likelihood + d, "loss": loss + d, "success": success + d} for d in spread]


def test_claims_of_figure_5_are_about_the_best_strategy() -> None:
    runs = {100: _runs(0.2, 0.3, 0.8), 8000: _runs(0.05, 0.04, 0.51)}
    found = figure5.attribute_claims(runs) | figure5.membership_claims(runs)
    assert found["gain_100"].value == pytest.approx(0.3 - 1 / 44)
    assert "loss" in found["gain_100"].detail
    assert found["gain_100"].error == pytest.approx(0.01 / np.sqrt(3))
    assert found["success_8000"].value == pytest.approx(0.05)
    assert (found["falls"].value, found["membership_100"].value) == (True, True)
    assert found["bound_holds"].unclear  # within three standard errors of the bound at some n
    assert found["membership_8000"].value == pytest.approx(0.51)
    assert set(figure5.attribute_claims({100: runs[100]})) == {"gain_100", "white_box"}


def test_the_gradient_norm_must_beat_every_other_strategy() -> None:
    spread = np.array([-0.01, 0.0, 0.01])

    def runs(gradient: np.ndarray) -> list[dict[str, float]]:
        others = {"likelihood": 0.1, "accuracy": 0.2, "loss": 0.25}
        return [others | {"gradient": value} for value in gradient]

    assert figure5.white_box(runs(0.3 + spread)).value is True
    assert figure5.white_box(runs(0.2 + spread)).value is False
    assert figure5.white_box(runs(0.26 + spread)).unclear


def test_a_success_that_rises_between_does_not_fall() -> None:
    assert figure5.falls({100: Ours(0.3, 0.01), 500: Ours(0.31, 0.01), 8000: Ours(0.1, 0.01)})
    assert not figure5.falls({100: Ours(0.3, 0.01), 500: Ours(0.4, 0.01), 8000: Ours(0.1, 0.01)})
    assert not figure5.falls({100: Ours(0.3, 0.01), 8000: Ours(0.28, 0.01)})


def test_figure_5_says_what_it_shows() -> None:
    lines = (*figure5.STRATEGIES, *figure5.BLIND, *figure5.MEMBERSHIP)
    values = {"value": 0.6, "low": 0.5, "high": 0.7}
    of_text = [{"setting": "text", "n": n, "line": line} | values for n in (100, 8000) for line in lines]
    of_code = [{"setting": "code", "n": 100, "line": line} | values for line in (*figure5.STRATEGIES, *figure5.BLIND)]
    figure = figure5.draw(pd.DataFrame(of_text + of_code))
    _labelled(figure, 3)
    said = [text.get_text() for ax in figure.axes for text in (ax.get_legend().get_texts() if ax.get_legend() else ())]
    assert len(said) == len(lines) + len(figure5.STRATEGIES) + 1  # and chance
    alone = figure5.draw(pd.DataFrame(of_code))
    _labelled(alone, 1)
    assert len(alone.axes[0].get_legend().get_texts()) == len(figure5.STRATEGIES) + 1


def test_figure_5_runs_by_text_and_as_the_public_code(monkeypatch) -> None:
    def attacked(n: int, number: int, seed: int, setting: str) -> dict[str, float]:
        level = {("text", 100): 0.24, ("code", 100): 0.28}.get((setting, n), 0.05)
        lines = dict.fromkeys((*figure5.STRATEGIES, *figure5.BLIND), level + 0.001 * number)
        return lines | {"success": 0.6 + 0.001 * number, "gap": 0.1 + 0.001 * number, "test_accuracy": 0.9}

    monkeypatch.setattr(figure5, "attacked_writers", attacked)
    outcome = figure5.measure(Lab(quick=True, n_jobs=1))
    assert outcome.ours["gain_100"].value == pytest.approx(0.24 - 1 / 44, abs=0.01)
    assert outcome.tried["code"]["gain_100"].value == pytest.approx(0.28 - 1 / 44, abs=0.01)
    assert set(outcome.tried["code"]) == {"gain_100", "white_box"}  # one n in quick mode
    assert set(outcome.numbers["setting"]) == {"text", "code"}
    alone = figure5.measure(Lab(quick=True, n_jobs=1, setting="code"))
    assert alone.ours["gain_100"] == outcome.tried["code"]["gain_100"]
    assert (alone.tried, set(alone.numbers["setting"])) == ({}, {"code"})


def _labelled(figure, n_axes: int) -> None:
    """Every axis says what it shows, and the picture can be drawn."""
    assert len(figure.axes) == n_axes
    for ax in figure.axes:
        assert ax.get_ylabel()
    assert sum(bool(ax.get_xlabel()) for ax in figure.axes) >= n_axes / 2
    assert figures.as_bytes(figure, "png").startswith(b"\x89PNG")
