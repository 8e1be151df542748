"""The last layer of a network around refits of it that are independent of the game: the signal ``taylor``.

Axes: N points, n points of a fit, K classes, D features with the intercept, c systems that are solved at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from leakbound.core import seeds
from leakbound.releases.networks.ensemble import laid_out
from leakbound.releases.networks.signals import logits_of
from leakbound.releases.networks.training import TrainingData

Array = np.ndarray
N_PAIRS = 8  # of fits, as in ``leakbound.releases.taylor``
LARGEST = 1 << 16  # parameters of the layer
TOLERANCE = 1e-6  # relative, of the residual of a system; the error of g^T H^-1 g falls with its square
STATIONARY = 1e-10  # norm of a gradient, relative to the sum of the norms of the features
_STEP = 1e-2  # relative residual of a Newton step: the next step corrects the rest
_MOST_STEPS = 100
_BYTES = 32e6  # of the systems that are solved at once, and as many of the products with the points


def taylor(module: nn.Module, data: TrainingData) -> Float[Array, "N 2"] | None:
    """Compute ``(theta - theta0) . g`` and ``g^T H^-1 g`` of the last linear layer on the network's own features.

    Parameters of two networks cannot be compared: the channels of one can be permuted. But with the features of the
    trained network held fixed, the training loss is convex in the layer that reads them, and refits of that layer
    have one minimum. What membership changes in the features themselves changes the refits too, and is not measured.

    The ridge of the refits is that of a normal prior of the weights, with the variance that has the largest likelihood
    for the target's own weights W: for a normal sample with (K - 1) D free numbers it is ``|W|^2/((K - 1) D)``, W less
    its mean over the classes, which does not change the softmax; the ridge is its inverse. So it follows the scale of
    the features, and accounts for weight decay and early stopping, which made W as small as it is.

    >>> from leakbound.releases.networks.recipe import Recipe
    >>> from leakbound.releases.networks.tensors import inputs_of
    >>> label = torch.tensor([0, 1, 0, 1, 0, 1])
    >>> inputs = inputs_of(np.random.default_rng(0).normal(size=(6, 4)))
    >>> data = TrainingData(inputs, label, Recipe(), torch.device("cpu"), "net")
    >>> taylor(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)), data).shape
    (6, 2)
    """
    data = data.in_fastest_layout(module)
    if not data.has_gradients or data.device.type == "mps":  # which has no float64
        return None
    layer = _last_linear(module, data)
    if data.recipe.loss != "cross_entropy" or len(data.label) < 4 or layer is None:
        return None
    theta, design = layer.weight.detach().double(), _features(module, layer, data)
    if layer.bias is not None:
        theta = torch.cat([theta, layer.bias.detach().double()[:, None]], dim=1)
        design = torch.cat([design, design.new_ones(len(design), 1)], dim=1)
    theta = theta - theta.mean(0)
    n_classes, n_features = theta.shape
    size = float(theta.square().sum())
    if n_classes * n_features > LARGEST or size == 0:
        return None
    return terms(design, data.label, theta, (n_classes - 1) * n_features / size).cpu().numpy()


@torch.no_grad()
def terms(
    design: Float[Tensor, "N D"], label: Int[Tensor, " N"], theta: Float[Tensor, "K D"], ridge: float
) -> Float[Tensor, "N 2"]:
    """Compute the two terms of a softmax regression around its refits on random halves of the points.

    The halves are those of ``leakbound.releases.taylor``: 8 with their complements, drawn independently of the game,
    and one more for H. theta0 of a point is the mean of the 8 refits without it. H is the Hessian of the sum of
    the losses of that one half at the mean of all 16 refits, of the loss of the point at its theta0 if it is not in
    the half, and of the ridge.

    With p = softmax(theta x) the gradient of a point is ``r x^T``, r = p - e_y, and the Hessian of n points takes V to
    ``X^T [(diag p - p p^T) (X V)]``: conjugate gradients need no more. Only up to 2,000 parameters, 32 MB, is H
    computed: with its factor they need few steps. The gradients of all points, N K D numbers, are never in memory at
    once.
    """
    n_points = len(design)
    drawn = seeds.subsets(n_points, n_points // 2, N_PAIRS + 1, seeds.stream(0, "taylor"))
    halves = torch.as_tensor(np.concatenate([drawn[:-1], ~drawn[:-1]]), device=design.device)
    predictor, mean_theta = design.new_zeros(n_points, len(theta)), torch.zeros_like(theta)
    for inside in halves:
        refit = Layer(design[inside], label[inside], ridge).refit(theta)
        mean_theta += refit / len(halves)
        predictor[~inside] += design[~inside] @ refit.T / N_PAIRS  # at theta0, the mean of the refits without the point
    residual = _residual(predictor, label)
    first = ((design @ theta.T - predictor) * residual).sum(1)
    hessian_half = torch.as_tensor(drawn[-1], device=design.device)
    curvature = Layer(design[hessian_half], label[hessian_half], ridge).curvature(mean_theta)
    if 8 * theta.numel() ** 2 <= _BYTES:
        curvature = curvature.as_matrix()
    length = residual.norm(dim=1)  # divided out, so that squares of small gradients do not vanish
    unit = residual / torch.where(length > 0, length, 1)[:, None]
    second = torch.empty_like(length)
    size = max(1, int(_BYTES / (6 * 8 * theta.numel())))  # six arrays in `solve`
    for start in range(0, n_points, size):
        part = slice(start, start + size)
        x, p = design[part], predictor[part].softmax(1)
        gradient = unit[part, :, None] * x[:, None]
        point_hessian = _PointHessians(x * ~hessian_half[part, None], p)  # points of the half are in H already
        solution = solve(curvature, gradient, TOLERANCE, point_hessian)
        second[part] = (gradient * solution).sum((1, 2)) * length[part].square()
    return torch.stack([first, second], dim=1)


@dataclass(frozen=True, eq=False)
class Layer:
    """The loss of a last layer: the sum of the cross-entropies of points, and a ridge."""

    design: Float[Tensor, "n D"]
    label: Int[Tensor, " n"]
    ridge: float

    def loss(self, theta: Float[Tensor, "K D"]) -> float:
        """Compute the loss in nats."""
        total = cross_entropy(self.design @ theta.T, self.label, reduction="sum")
        return float(total + self.ridge / 2 * theta.square().sum())

    def gradient(self, theta: Float[Tensor, "K D"]) -> Float[Tensor, "K D"]:
        """Compute the gradient of the loss."""
        return _residual(self.design @ theta.T, self.label).T @ self.design + self.ridge * theta

    def curvature(self, theta: Float[Tensor, "K D"]) -> Curvature:
        """Return the Hessian of the loss."""
        return Curvature(self.design, (self.design @ theta.T).softmax(1), self.ridge)

    def refit(self, theta: Float[Tensor, "K D"]) -> Float[Tensor, "K D"]:
        """Find the minimum from a start by Newton steps, with conjugate gradients and a line search by halving.

        It ends where the norm of the gradient is 1e-10 of the sum of the norms of the features, which is its largest
        possible value but for a factor of sqrt(2). The sum over the classes of the minimum is zero.
        """
        theta = theta - theta.mean(0)
        aim = STATIONARY * float(self.design.norm(dim=1).sum())
        for _ in range(_MOST_STEPS):
            gradient = self.gradient(theta)
            if float(gradient.norm()) <= aim:
                break
            step = -solve(self.curvature(theta), gradient[None], _STEP)[0]
            loss, slope, factor = self.loss(theta), float((gradient * step).sum()), 1.0
            rounding = 1e-12 * loss
            while self.loss(theta + factor * step) > loss + 1e-4 * factor * slope + rounding and factor > 1e-8:
                factor /= 2  # Armijo's condition
            theta = theta + factor * step
        return theta


@dataclass(frozen=True, eq=False)
class Curvature:
    """The Hessian of a `Layer` as a linear map."""

    design: Float[Tensor, "n D"]
    p: Float[Tensor, "n K"]
    ridge: float

    def times(self, v: Float[Tensor, "c K D"]) -> Float[Tensor, "c K D"]:
        """Compute H v, over the points in blocks."""
        product, rows = self.ridge * v, v.flatten(0, 1)
        size = max(1, int(_BYTES / (4 * 8 * len(rows))))  # four arrays of one number for each point, class and system
        for start in range(0, len(self.design), size):
            x, p = self.design[start : start + size], self.p[start : start + size, None]
            weighted = _weighted(p, (x @ rows.T).unflatten(1, v.shape[:2]))
            product += (weighted.flatten(1).T @ x).view_as(v)
        return product

    def precondition(self, v: Float[Tensor, "c K D"]) -> Float[Tensor, "c K D"]:
        """Apply an approximate inverse on the vectors whose sum over the classes is zero, as that of all gradients."""
        solution = torch.cholesky_solve(v.flatten(0, 1).T, self._factor).T.reshape(v.shape)
        return solution - solution.mean(1, keepdim=True)

    def as_matrix(self) -> CurvatureMatrix:
        """Compute the matrix, block by block of two classes."""
        n_classes, n_features = self.p.shape[1], self.design.shape[1]
        blocks = self.design.new_empty(n_classes, n_features, n_classes, n_features)
        for a in range(n_classes):
            for b in range(a, n_classes):
                weight = self.p[:, a] * (float(a == b) - self.p[:, b])
                blocks[a, :, b] = self.design.T @ (weight[:, None] * self.design)
                blocks[b, :, a] = blocks[a, :, b]
        matrix = blocks.reshape(n_classes * n_features, -1)
        matrix.diagonal().add_(self.ridge)
        return CurvatureMatrix(matrix, torch.linalg.cholesky(matrix))

    @cached_property
    def _factor(self) -> Float[Tensor, "D D"]:
        """Cholesky factor of H with each ``diag p - p p^T`` replaced by the multiple of the identity of equal trace."""
        weight = (1 - self.p.square().sum(1)).clamp(min=0) / (self.p.shape[1] - 1)
        mean = self.design.T @ (weight[:, None] * self.design)
        mean.diagonal().add_(self.ridge)
        return torch.linalg.cholesky(mean)


@dataclass(frozen=True, eq=False)
class CurvatureMatrix:
    """The Hessian of a small `Layer`, with its Cholesky factor: systems with a point added take at most K steps."""

    matrix: Float[Tensor, "P P"]
    factor: Float[Tensor, "P P"]

    def times(self, v: Float[Tensor, "c K D"]) -> Float[Tensor, "c K D"]:
        """Compute H v."""
        return (v.flatten(1) @ self.matrix).view_as(v)

    def precondition(self, v: Float[Tensor, "c K D"]) -> Float[Tensor, "c K D"]:
        """Compute H^-1 v."""
        return torch.cholesky_solve(v.flatten(1).T, self.factor).T.reshape(v.shape)


@dataclass(frozen=True, eq=False)
class _PointHessians:
    """The Hessians of single points, one for each system; that of a point of zeros is zero."""

    x: Float[Tensor, "c D"]
    p: Float[Tensor, "c K"]

    def times(self, v: Float[Tensor, "c K D"]) -> Float[Tensor, "c K D"]:
        weighted = _weighted(self.p, (v @ self.x[:, :, None])[..., 0])
        return weighted[:, :, None] * self.x[:, None]


def solve(
    curvature: Curvature | CurvatureMatrix,
    right: Float[Tensor, "c K D"],
    tolerance: float,
    point_hessians: _PointHessians | None = None,
) -> Float[Tensor, "c K D"]:
    """Compute ``(H + H_point)^-1`` times each right-hand side, by preconditioned conjugate gradients."""
    solution, residual = torch.zeros_like(right), right.clone()
    preconditioned = curvature.precondition(residual)
    direction, gain = preconditioned.clone(), (residual * preconditioned).sum((1, 2))
    # One system for each right-hand side, all at once; those that are solved exactly take steps of 0.
    aim = tolerance * right.flatten(1).norm(dim=1)
    for _ in range(2 * right[0].numel()):
        if bool((residual.flatten(1).norm(dim=1) <= aim).all()):
            break
        image = curvature.times(direction)
        if point_hessians is not None:
            image += point_hessians.times(direction)
        step = _ratio(gain, (direction * image).sum((1, 2)))
        solution += step * direction
        residual -= step * image
        preconditioned = curvature.precondition(residual)
        gain_before, gain = gain, (residual * preconditioned).sum((1, 2))
        direction = preconditioned + _ratio(gain, gain_before) * direction
    return solution


def _ratio(a: Float[Tensor, " c"], b: Float[Tensor, " c"]) -> Float[Tensor, "c 1 1"]:
    """Divide, with 0 for systems that are solved exactly."""
    return torch.where(b > 0, a / torch.where(b > 0, b, 1), 0)[:, None, None]


def _weighted(p: Float[Tensor, "*b K"], u: Float[Tensor, "*b2 K"]) -> Float[Tensor, "*b2 K"]:
    """Compute ``(diag p - p p^T) u``."""
    return p * (u - (p * u).sum(-1, keepdim=True))


def _residual(logits: Float[Tensor, "n K"], label: Int[Tensor, " n"]) -> Float[Tensor, "n K"]:
    """Compute the derivative of the cross-entropies with respect to the logits."""
    residual = logits.softmax(1)
    residual[torch.arange(len(residual), device=residual.device), label] -= 1
    return residual


@torch.no_grad()
def _last_linear(module: nn.Module, data: TrainingData) -> nn.Linear | None:
    """Find the trained linear layer whose output is that of the network."""
    calls: dict[nn.Module, list[tuple[Tensor, Tensor]]] = {}

    def note(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        calls.setdefault(layer, []).append((inputs[0], output.clone()))  # later layers may work in place

    linear = [part for part in module.modules() if isinstance(part, nn.Linear)]
    handles = [layer.register_forward_hook(note) for layer in linear]
    try:
        network_output = module(laid_out(data.inputs.batch(np.arange(2), data.device), data.channels_last is not False))
    finally:
        for handle in handles:
            handle.remove()
    for layer in linear:
        layer_calls = calls.get(layer, [])
        if len(layer_calls) != 1:
            continue
        layer_input, layer_output = layer_calls[0]
        if layer_input.ndim == 2 and torch.equal(layer_output, network_output):
            return layer if layer.weight.requires_grad else None
    return None


def _features(module: nn.Module, layer: nn.Linear, data: TrainingData) -> Float[Tensor, "N d"]:
    """Compute the inputs of the layer at every point."""
    blocks: list[Tensor] = []
    handle = layer.register_forward_pre_hook(lambda _, inputs: blocks.append(inputs[0].double()))
    try:
        logits_of(module, data)
    finally:
        handle.remove()
    return torch.cat(blocks)[-len(data.inputs) :]  # a pass that ran out of memory left blocks before those of the last
