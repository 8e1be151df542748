"""Outputs that are not a number for each class: one logit, several labels, responses. Against PyTorch and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import leakbound as ls
from leakbound.core.seeds import integer, stream
from leakbound.core.types import Points
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.network import PrivateNetwork
from leakbound.releases.networks.architecture import built
from leakbound.releases.networks.heads import head_of
from leakbound.releases.networks.network import Network, Trained
from leakbound.releases.networks.recipe import Recipe
from leakbound.releases.networks.training import losses

N = 40
EVERYONE, NO_SEED = np.ones((1, N), dtype=bool), np.zeros(1, dtype=int)
WANT = ["loss", "log_odds", "correct", "log_prob", "gradient_norm", "taylor"]
RECIPE = Recipe(optimiser="sgd", lr=0.1, epochs=4, batch=8)
BINARY = functional.binary_cross_entropy_with_logits


class Squeezed(nn.Module):
    """A number for each point, without an axis."""

    def __init__(self, n_outputs: int = 1) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(5, 8), nn.Linear(8, n_outputs)

    def forward(self, x):
        return self.last(torch.tanh(self.first(x))).squeeze()


def stack(n_outputs: int = 1) -> nn.Module:
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, n_outputs))


class Looped(Squeezed):
    """The same with a state, so that models are trained one after the other."""

    def __init__(self, n_outputs: int = 1) -> None:
        super().__init__(n_outputs)
        self.register_buffer("state", torch.zeros(1))

    def forward(self, x):
        return self.last(torch.tanh(self.first(x)))


def labels(kind: str) -> np.ndarray:
    rng = np.random.default_rng(1)
    made = {
        "one_logit": np.array(["no", "yes"])[np.arange(N) % 2],
        "labels": rng.integers(2, size=(N, 3)),
        "responses": rng.normal(size=N),
        "several responses": rng.normal(size=(N, 2)) * [1, 10],
    }
    return made[kind]


def points_with(y: np.ndarray) -> Points:
    return Points(np.random.default_rng(0).normal(size=(N, 5)), y)


def by_hand(make, n_outputs: int, points: Points, members: np.ndarray, seed: int, loss) -> nn.Module:
    """Train one network by a plain loop with PyTorch's own SGD, in the order of the recipe."""
    module = built(make, {"n_outputs": n_outputs}, integer(seed, "init")).train()
    optimiser = torch.optim.SGD(module.parameters(), lr=RECIPE.lr)
    x = torch.as_tensor(points.x, dtype=torch.float32)
    for epoch in range(RECIPE.epochs):
        order = members[stream(seed, "batches", epoch).permutation(len(members))]
        for batch in np.split(order, range(RECIPE.batch, len(order), RECIPE.batch)):
            optimiser.zero_grad()
            loss(module(x[batch]).reshape(len(batch), n_outputs), batch).backward()
            optimiser.step()
    return module.eval()


CASES = {
    "one_logit": (1, lambda y, z, batch: BINARY(z[:, 0], torch.as_tensor(y[batch] == "yes").float())),
    "labels": (3, lambda y, z, batch: BINARY(z, torch.as_tensor(y[batch]).float(), reduction="none").sum(1).mean()),
    "responses": (1, lambda y, z, batch: functional.mse_loss(z[:, 0], torch.as_tensor(y[batch]).float())),
    "several responses": (2, lambda y, z, batch: functional.mse_loss(z, torch.as_tensor(y[batch]).float())),
}


@pytest.mark.parametrize("make", [stack, Squeezed, Looped])
@pytest.mark.parametrize("kind", CASES)
def test_networks_are_trained_and_read_as_in_a_plain_loop(kind, make):
    n_outputs, loss = CASES[kind]
    y = labels(kind)
    points = points_with(y)
    member = np.stack([np.arange(N) < 24, np.arange(N) >= 16])
    seen = Network(make, RECIPE, parameters={"n_outputs": n_outputs}).observe(points, member, np.array([5, 6]), WANT)
    for row, seed in enumerate((5, 6)):
        module = by_hand(make, n_outputs, points, np.flatnonzero(member[row]), seed, lambda z, batch: loss(y, z, batch))
        with torch.no_grad():
            z = module(torch.as_tensor(points.x, dtype=torch.float32)).double().numpy().reshape(N, n_outputs)
        expected = expected_signals(kind, y, z)
        assert set(seen) == set(expected)
        for name, values in expected.items():
            np.testing.assert_allclose(seen[name][row], values, rtol=2e-4, atol=2e-5)


def expected_signals(kind: str, y: np.ndarray, z: np.ndarray) -> dict[str, np.ndarray]:
    """The signals from the outputs, by their definitions."""
    if "responses" in kind:
        y = y.reshape(N, -1)
        return {"loss": ((y - z) ** 2 / (2 * y.std(axis=0) ** 2)).sum(axis=1)}
    sign = np.where(y.reshape(N, -1) == ("yes" if kind == "one_logit" else 1), 1, -1)
    p_true = 1 / (1 + np.exp(-sign * z))
    product = p_true.prod(axis=1)
    signals = {
        "loss": -np.log(product),
        "log_odds": np.log(product) - np.log1p(-product),
        "correct": (p_true > 0.5).all(axis=1),
    }
    if kind == "one_logit":
        signals["log_prob"] = np.log(np.column_stack([p_true, 1 - p_true]))
    return signals


def test_losses_of_heads():
    z, y = torch.randn(2, 3, 4), torch.randint(2, (2, 3, 4)).float()
    torch.testing.assert_close(losses(z, y, "cross_entropy", "labels"), BINARY(z, y, reduction="none").sum(-1))
    torch.testing.assert_close(losses(z, y, "cross_entropy", "responses"), (z - y).square().mean(-1))
    one = losses(z[..., :1], y[..., 0].long(), "cross_entropy", "one_logit")
    torch.testing.assert_close(one, BINARY(z[..., 0], y[..., 0], reduction="none"))


def test_a_trained_network_with_one_logit_and_named_classes():
    module, points = stack(), points_with(labels("one_logit"))
    plain = Trained(module).observe(points, EVERYONE, NO_SEED, ["loss"])["loss"][0]
    turned = Trained(module, np.array(["yes", "no"])).observe(points, EVERYONE, NO_SEED, ["loss"])["loss"][0]
    np.testing.assert_allclose(np.exp(-plain) + np.exp(-turned), 1, rtol=1e-6)
    with pytest.raises(ValueError, match="the label 'yes' is none of classes="):
        Trained(module, np.array(["no", "maybe"])).observe(points, EVERYONE, NO_SEED, ["loss"])


def test_confident_logits_keep_their_digits():
    """1 - p would be 0 at a logit of 40."""
    module = nn.Linear(1, 1)
    with torch.no_grad():
        module.weight.fill_(1.0)
        module.bias.fill_(0.0)
    points = Points(np.array([[40.0], [-20.0]]), np.array([1, 0]))
    seen = Trained(module).observe(points, np.ones((1, 2), dtype=bool), NO_SEED, ["log_odds"])["log_odds"][0]
    assert seen[1] == pytest.approx(20, rel=1e-6)
    assert seen[0] > 27


def test_whole_numbers_of_floats_are_classes():
    """As in ``are_responses``: three values of floats, all whole."""
    head = head_of(3, points_with(np.arange(N) % 3 * 1.0), "net")
    assert (head.kind, head.values.dtype) == ("classes", np.int64)
    assert head_of(1, points_with(np.arange(N) % 2 * 1.0), "net").kind == "one_logit"
    assert head_of(2, points_with(np.arange(N) % 2), "net").kind == "classes"


@pytest.mark.parametrize(
    ("make", "y", "recipe", "message"),
    [
        (
            lambda: stack(1),
            np.arange(N) % 3,
            RECIPE,
            "gives 1 number a point, and the label has 3 classes; .* all whole",
        ),
        (lambda: stack(2), labels("labels"), RECIPE, "gives 2 numbers a point, and each point has 3 labels"),
        (lambda: stack(3), np.arange(3 * N).reshape(N, 3) % 4, RECIPE, "each of several labels must have two values"),
        (lambda: stack(3), labels("several responses"), RECIPE, "gives 3 numbers a point, and each .* 2 responses"),
        (lambda: stack(1), np.arange(N) % 2, Recipe(loss="mse"), "loss='mse' is of networks with a number for each"),
        (lambda: nn.Sequential(stack(1), nn.Sigmoid()), np.arange(N) % 2, RECIPE, "ends in a sigmoid; leave it out"),
        (lambda: nn.Sequential(stack(3), nn.Sigmoid()), labels("labels"), RECIPE, "ends in a sigmoid; leave it out"),
    ],
)
def test_heads_that_do_not_fit_the_labels(make, y, recipe, message):
    with pytest.raises(ValueError, match=message):
        Network(make, recipe).observe(points_with(y), EVERYONE, NO_SEED, ["loss"])


def test_a_sigmoid_within_a_function_is_found():
    class Squashed(Squeezed):
        def forward(self, x):
            return torch.sigmoid(super().forward(x)).view(-1, 1)

    with pytest.raises(ValueError, match="ends in a sigmoid"):
        Trained(Squashed()).observe(points_with(np.arange(N) % 2), EVERYONE, NO_SEED, ["loss"])
    seen = Trained(Squashed()).observe(points_with(labels("responses")), EVERYONE, NO_SEED, ["loss"])
    assert np.isfinite(seen["loss"]).all()  # a response may lie between 0 and 1


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("one_logit", "gives 1 number a point, and the label has 2 classes"),
        ("labels", "takes one label for each point, got 3"),
        ("responses", "is a classifier, but the label has 40 different numbers"),
    ],
)
def test_dpsgd_trains_classifiers_alone(kind, message):
    release = PrivateNetwork(lambda: stack(CASES[kind][0]), DpSgd(1.0, 1.0, 0.1, steps=1))
    with pytest.raises(ValueError, match=message):
        release.observe(points_with(labels(kind)), EVERYONE, NO_SEED, ["loss"])


@pytest.mark.parametrize("kind", ["one_logit", "responses"])
def test_attacks_on_gradients_are_refused_before_training(kind):
    points = points_with(labels(kind))
    words = {"n_models": 4, "n_jobs": 1, "train": {"epochs": 1}}
    with pytest.raises(ValueError, match="attack 'gradient_norm' cannot run"):
        ls.audit(Looped, points.x, points.y, attacks=["gradient_norm"], **words)
    report = ls.audit(Looped, points.x, points.y, attacks=["loss"], **words)
    assert any(finding.attack == "loss" and finding.value is not None for finding in report.findings)
