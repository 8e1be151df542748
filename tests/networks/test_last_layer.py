"""The expansion of a network's last layer: against dense algebra, scikit-learn's linear model, and games."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from leakbound.attacks import ATTACKS
from leakbound.core import seeds
from leakbound.core.games import half_split
from leakbound.core.types import NotApplicable, Points, Signals
from leakbound.releases.estimator import Estimator
from leakbound.releases.networks import last_layer
from leakbound.releases.networks.network import Network, Trained
from leakbound.releases.networks.recipe import Recipe

from .branches import Branches
from .conftest import Convolutions, stack

QUICK = Recipe(epochs=30, batch=16, lr=0.02)


def narrow() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 4), nn.ReLU(inplace=True), nn.Linear(4, 3))


def twin(design: np.ndarray, label: np.ndarray, theta: np.ndarray, ridge: float) -> np.ndarray:
    """The same two terms by refits of scipy, explicit Hessians and one solution a point."""
    n, n_classes = len(design), len(theta)

    def fit(inside):
        def loss(flat):
            logits = design[inside] @ flat.reshape(theta.shape).T
            return -log_softmax(logits, 1)[np.arange(len(logits)), label[inside]].sum() + ridge / 2 * flat @ flat

        def slope(flat):
            p = softmax(design[inside] @ flat.reshape(theta.shape).T, axis=1)
            return ((p - np.eye(n_classes)[label[inside]]).T @ design[inside]).ravel() + ridge * flat

        found = minimize(loss, np.zeros(theta.size), jac=slope, options={"gtol": 1e-8})
        return found.x.reshape(theta.shape)

    def hessian(x, parameters):
        p = softmax(parameters @ x)
        return np.kron(np.diag(p) - np.outer(p, p), np.outer(x, x))

    drawn = seeds.subsets(n, n // 2, 9, seeds.stream(0, "taylor"))
    halves = [*drawn[:8], *~drawn[:8]]
    fits = [fit(half) for half in halves]
    centre = np.mean(fits, axis=0)
    whole = ridge * np.eye(theta.size) + sum(hessian(design[i], centre) for i in np.flatnonzero(drawn[8]))
    rows = []
    for i in range(n):
        theta0 = np.mean([fit for fit, half in zip(fits, halves, strict=True) if not half[i]], axis=0)
        g = np.outer(softmax(theta0 @ design[i]) - np.eye(n_classes)[label[i]], design[i]).ravel()
        own = 0 if drawn[8][i] else hessian(design[i], theta0)
        rows.append([g @ (theta - theta0).ravel(), g @ np.linalg.solve(whole + own, g)])
    return np.array(rows)


def test_a_network_gives_what_dense_algebra_gives(points, member):
    """Features, weights and the ridge are read off the trained network by hand."""
    kept = []

    class Kept(nn.Sequential):
        def __init__(self) -> None:
            super().__init__(*narrow())
            kept.append(self)

    seen = Network(Kept, QUICK).observe(points, member[:1], np.arange(1), ["taylor", "loss"])
    net = kept[-1]
    with torch.no_grad():
        phi = net[1](net[0](torch.as_tensor(points.x, dtype=torch.float32))).double().numpy()
    theta = np.column_stack([net[2].weight.detach(), net[2].bias.detach()]).astype(float)
    theta -= theta.mean(axis=0)
    design = np.column_stack([phi, np.ones(120)])
    expected = twin(design, np.asarray(points.y), theta, 2 * 5 / (theta**2).sum())
    assert seen["taylor"].shape == (1, 120, 2)
    np.testing.assert_allclose(seen["taylor"][0], expected, rtol=1e-4, atol=1e-5)


def test_a_single_layer_is_a_logistic_regression():
    """The same numbers as the closed form, by dense factors, for scikit-learn's model with that penalty."""
    rng = np.random.default_rng(3)
    x = np.column_stack([rng.normal(size=(90, 4)), np.ones(90)])
    y = (x @ rng.normal(size=(5, 3)) + rng.normal(size=(90, 3))).argmax(axis=1)
    inside = rng.random((1, 90)) < 0.5
    model = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-12, max_iter=10_000)
    expected = Estimator(model).observe(Points(x, y), inside, np.arange(1), ["taylor"])["taylor"][0]
    theta = model.fit(x[inside[0]], y[inside[0]]).coef_
    found = last_layer.terms(torch.as_tensor(x), torch.as_tensor(y), torch.as_tensor(theta), 2.0).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_refits_are_stationary_with_separable_data_and_a_class_without_points():
    rng = np.random.default_rng(0)
    x = torch.as_tensor(np.column_stack([100 * rng.normal(size=(40, 60)), np.ones(40)]))
    label = torch.as_tensor(rng.integers(3, size=40))
    layer = last_layer.Layer(x, label, 1e-3)
    theta = layer.refit(torch.as_tensor(rng.normal(size=(4, 61))))
    p = softmax((x @ theta.T).numpy(), axis=1)
    slope = (p - np.eye(4)[label.numpy()]).T @ x.numpy() + 1e-3 * theta.numpy()
    assert np.linalg.norm(slope) < 2e-10 * np.linalg.norm(x.numpy(), axis=1).sum()
    np.testing.assert_allclose(theta.sum(0).numpy(), 0, atol=1e-12)


@pytest.mark.parametrize("make", [stack, Branches, Convolutions])
def test_networks_that_end_in_a_linear_layer_give_it(make, points, member):
    x = points.x if make is not Convolutions else np.random.default_rng(0).normal(size=(120, 8, 8))
    network = Network(make, Recipe(epochs=3, batch=16))
    seen = network.observe(Points(x, points.y), member[:2], np.arange(2), ["taylor"])["taylor"]
    assert seen.shape == (2, 120, 2)
    assert np.isfinite(seen).all()
    assert (seen[..., 1] >= 0).all()
    again = network.observe(Points(x, points.y), member[:2], np.arange(2), ["taylor"])["taylor"]
    assert seen.tobytes() == again.tobytes()


class Frozen(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(*narrow())
        self[2].requires_grad_(False)


@pytest.mark.parametrize(
    ("make", "recipe"),
    [
        (narrow, Recipe(epochs=1, loss="mse")),
        (lambda: nn.Sequential(*narrow(), nn.ReLU(inplace=True)), Recipe(epochs=1)),
        (lambda: nn.Sequential(nn.Unflatten(1, (1, 6)), nn.Linear(6, 3), nn.Flatten()), Recipe(epochs=1)),
        (Frozen, Recipe(epochs=1)),
        (lambda: nn.Sequential(nn.Linear(6, 30_000), nn.Linear(30_000, 3)), Recipe(epochs=1, batch=120)),
    ],
)
def test_others_do_not(make, recipe, points):
    game = half_split(120, 2)
    seen = Network(make, recipe, name="net").observe(points, game.member, np.arange(2), ["loss", "taylor"])
    assert set(seen) == {"loss"}
    with pytest.raises(NotApplicable, match="needs the signal taylor"):
        ATTACKS["matt"](Signals(game, points, seen))


def test_a_trained_network_alone_does_not(points, member):
    assert set(Trained(narrow()).observe(points, member[:1], np.arange(1), ["loss", "taylor"])) == {"loss"}


def _auc(score: np.ndarray, member: np.ndarray) -> float:
    ranks = np.where(member, rankdata(score, axis=1), 0).sum(axis=1)
    n_members = member.sum(axis=1)
    return float(((ranks - n_members * (n_members + 1) / 2) / (n_members * (~member).sum(axis=1))).mean())


@pytest.mark.parametrize(("n_classes", "noise", "above"), [(3, None, 0.8), (4, 2.0, 0.65)])
@pytest.mark.slow
def test_the_attack_sees_members_of_an_overfitted_network(n_classes, noise, above):
    """As the loss does, whose AUC is .93 with random labels and .78 with noisy ones; that of MATT is .89 and .75.

    Two models and 400 points: on nothing the mean AUC would vary by .02.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 20))
    told = x @ rng.normal(size=(20, n_classes)) + (noise or 0) * rng.normal(size=(400, n_classes))
    y = rng.integers(n_classes, size=400) if noise is None else told.argmax(axis=1)
    game = half_split(400, 2)
    wide = Network(
        lambda: nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, n_classes)),
        Recipe(epochs=60, batch=32, lr=0.01),
        name="wide",
    )
    seen = wide.observe(Points(x, y), game.member, np.arange(2), ["loss", "taylor"])
    signals = Signals(game, None, seen)
    matt, loss = (_auc(ATTACKS[name](signals).value, game.member) for name in ("matt", "loss"))
    assert min(matt, loss) > above, (matt, loss)


class Largest(TorchDispatchMode):
    """Notes the most bytes of a tensor that any operation makes."""

    n_bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if isinstance(made, Tensor):
            self.n_bytes = max(self.n_bytes, made.numel() * made.element_size())
        return made


@pytest.mark.slow
def test_memory_is_bounded_and_blocks_do_not_change_the_numbers(monkeypatch):
    """Gradients of all points would take 115 kB, the Hessian as well, the products 230 kB; allowed are 80 kB."""
    rng = np.random.default_rng(0)
    x, y = torch.as_tensor(rng.normal(size=(120, 30))), torch.as_tensor(rng.integers(4, size=120))
    theta = torch.as_tensor(rng.normal(size=(4, 30)))
    at_once = last_layer.terms(x, y, theta, 1.0)
    monkeypatch.setattr(last_layer, "_BYTES", 80_000)
    with Largest() as largest:
        in_blocks = last_layer.terms(x, y, theta, 1.0)
    assert largest.n_bytes <= 80_000
    np.testing.assert_allclose(in_blocks.numpy(), at_once.numpy(), rtol=last_layer.TOLERANCE)


def test_points_that_the_layer_does_not_see():
    """Features of zeros, and gradients that vanish: zero, not NaN."""
    x = torch.zeros(20, 3, dtype=torch.double)
    x[:10] = torch.as_tensor(np.random.default_rng(0).normal(size=(10, 3)))
    found = last_layer.terms(x, torch.arange(20) % 2, torch.ones(2, 3, dtype=torch.double), 1.0)
    np.testing.assert_array_equal(found[10:].numpy(), 0)
    assert torch.isfinite(found).all()
