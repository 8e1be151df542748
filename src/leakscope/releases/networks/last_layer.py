"""The last layer of a network around refits of it that know nothing of the game: the signal ``taylor``.

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

from leakscope.core import seeds
from leakscope.releases.networks.ensemble import laid_out
from leakscope.releases.networks.signals import logits_of
from leakscope.releases.networks.training import Lesson

Array = np.ndarray
N_PAIRS = 8  # of fits, as in ``taylor``
LARGEST = 1 << 16  # parameters of the layer
TOLERANCE = 1e-6  # of the residual of a system, relative; the error of g^T H^-1 g falls with its square
STATIONARY = 1e-10  # of the norm of a gradient, relative to the sum of the norms of the features
_STEP = 1e-2  # of the residual of a Newton step: the next step mends what is left
_MOST_STEPS = 100
_BYTES = 32e6  # of the systems that are solved at once, and as many of the products with the points


def taylor(module: nn.Module, lesson: Lesson) -> Float[Array, "N 2"] | None:
    """``(theta - theta0) . g`` and ``g^T H^-1 g`` of the last linear layer on the network's own features.

    Parameters of two networks cannot be compared: the channels of one can be permuted. But with the features of the
    trained network held fixed, the training loss is convex in the layer that reads them, and refits of that layer
    have one minimum. Membership that is hidden in the features themselves moves refits as well and is not seen.

    Parameters
    ----------
    module : nn.Module
        Trained, in evaluation mode, on the device of the lesson.
    lesson : Lesson
        Points, labels and loss.

    Returns
    -------
    array of shape (N, 2) or None
        In nats. None unless the loss is the cross-entropy and the network answers with what a linear layer, used once
        and trained, makes of a vector; and if that layer has more than 65,536 parameters.

    Notes
    -----
    The ridge of the refits is that of a normal prior for the weights, whose variance is the one that explains the
    target's own weights W best: of a normal sample with (K - 1) D free numbers it is ``|W|^2/((K - 1) D)``, W less its
    mean over the classes, which the softmax does not see; the ridge is its inverse. So it follows the scale of the
    features, and weight decay or a training that stopped early need not be told: they made W as small as it is.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from leakscope.releases.networks.last_layer import taylor
    >>> from leakscope.releases.networks.recipe import Recipe
    >>> from leakscope.releases.networks.tensors import inputs_of
    >>> from leakscope.releases.networks.training import Lesson
    >>> label = torch.tensor([0, 1, 0, 1, 0, 1])
    >>> inputs = inputs_of(np.random.default_rng(0).normal(size=(6, 4)))
    >>> lesson = Lesson(inputs, label, Recipe(), torch.device("cpu"), "net")
    >>> taylor(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)), lesson).shape
    (6, 2)
    """
    layer = _last(module, lesson)
    if lesson.recipe.loss != "cross_entropy" or len(lesson.label) < 4 or layer is None:
        return None
    theta, design = layer.weight.detach().double(), _features(module, layer, lesson)
    if layer.bias is not None:
        theta = torch.cat([theta, layer.bias.detach().double()[:, None]], dim=1)
        design = torch.cat([design, design.new_ones(len(design), 1)], dim=1)
    theta = theta - theta.mean(0)
    n_classes, n_features = theta.shape
    size = float(theta.square().sum())
    if n_classes * n_features > LARGEST or size == 0:
        return None
    return terms(design, lesson.label, theta, (n_classes - 1) * n_features / size).cpu().numpy()


@torch.no_grad()
def terms(
    design: Float[Tensor, "N D"], label: Int[Tensor, " N"], theta: Float[Tensor, "K D"], ridge: float
) -> Float[Tensor, "N 2"]:
    """The two terms of a softmax regression around its refits on random halves of the points.

    The halves are those of the linear models of scikit-learn: 8 with their complements, drawn without regard to the
    game, and one more for H. theta0 of a point is the mean of the 8 refits without it. H is the Hessian of the sum of
    the losses of that one half at the mean of all 16 refits, of the loss of the point at its theta0 if it is not in
    the half, and of the ridge.

    Parameters
    ----------
    design : float64 tensor of shape (N, D)
        Features, with a last column of ones for the intercept if there is one.
    label : int tensor of shape (N,)
    theta : float64 tensor of shape (K, D)
        The parameters that are attacked; the refits begin there.
    ridge : float
        Positive: the refits minimise the sum of the cross-entropies and ``ridge |theta|^2/2``.

    Returns
    -------
    float64 tensor of shape (N, 2)
        In nats.

    Notes
    -----
    With p = softmax(theta x) the gradient of a point is ``r x^T``, r = p - e_y, and the Hessian of n points takes V to
    ``X^T [(diag p - p p^T) (X V)]``: conjugate gradients need no more. Only up to 2,000 parameters, 32 MB, H is made,
    and its factor leaves them few steps. The gradients of all points, N K D numbers, are never in memory at once.
    """
    n_points = len(design)
    drawn = seeds.subsets(n_points, n_points // 2, N_PAIRS + 1, seeds.stream(0, "taylor"))
    halves = torch.as_tensor(np.concatenate([drawn[:-1], ~drawn[:-1]]), device=design.device)
    predictor, centre = design.new_zeros(n_points, len(theta)), torch.zeros_like(theta)
    for inside in halves:
        fitted = Layer(design[inside], label[inside], ridge).refitted(theta)
        centre += fitted / len(halves)
        predictor[~inside] += design[~inside] @ fitted.T / N_PAIRS
    residual = _residual(predictor, label)
    first = ((design @ theta.T - predictor) * residual).sum(1)
    last = torch.as_tensor(drawn[-1], device=design.device)
    whole = Layer(design[last], label[last], ridge).curvature(centre)
    curvature = whole.held() if 8 * theta.numel() ** 2 <= _BYTES else whole
    length = residual.norm(dim=1)  # taken out, so that squares of small gradients do not vanish
    unit = residual / torch.where(length > 0, length, 1)[:, None]
    second = torch.empty_like(length)
    size = max(1, int(_BYTES / (6 * 8 * theta.numel())))  # six arrays in `solved`
    for start in range(0, n_points, size):
        part = slice(start, start + size)
        x, p = design[part], predictor[part].softmax(1)
        gradient = unit[part, :, None] * x[:, None]
        pulled = solved(curvature, gradient, TOLERANCE, _Own(x * ~last[part, None], p))
        second[part] = (gradient * pulled).sum((1, 2)) * length[part].square()
    return torch.stack([first, second], dim=1)


@dataclass(frozen=True, eq=False)
class Layer:
    """The loss of a last layer: the sum of the cross-entropies of points, and a ridge.

    Parameters
    ----------
    design : float64 tensor of shape (n, D)
    label : int tensor of shape (n,)
    ridge : float
        Positive.
    """

    design: Float[Tensor, "n D"]
    label: Int[Tensor, " n"]
    ridge: float

    def loss(self, theta: Float[Tensor, "K D"]) -> float:
        """In nats."""
        total = cross_entropy(self.design @ theta.T, self.label, reduction="sum")
        return float(total + self.ridge / 2 * theta.square().sum())

    def gradient(self, theta: Float[Tensor, "K D"]) -> Float[Tensor, "K D"]:
        """Of the loss."""
        return _residual(self.design @ theta.T, self.label).T @ self.design + self.ridge * theta

    def curvature(self, theta: Float[Tensor, "K D"]) -> Curvature:
        """The Hessian of the loss."""
        return Curvature(self.design, (self.design @ theta.T).softmax(1), self.ridge)

    def refitted(self, theta: Float[Tensor, "K D"]) -> Float[Tensor, "K D"]:
        """The minimum, from a start, by Newton steps that conjugate gradients solve and halving shortens.

        It ends where the norm of the gradient is 1e-10 of the sum of the norms of the features, which is what it
        could be at most but for a factor of sqrt(2); the sum over the classes of what it returns is zero.
        """
        theta = theta - theta.mean(0)
        aim = STATIONARY * float(self.design.norm(dim=1).sum())
        for _ in range(_MOST_STEPS):
            gradient = self.gradient(theta)
            if float(gradient.norm()) <= aim:
                break
            step = -solved(self.curvature(theta), gradient[None], _STEP)[0]
            loss, slope, share = self.loss(theta), float((gradient * step).sum()), 1.0
            rounding = 1e-12 * loss
            while self.loss(theta + share * step) > loss + 1e-4 * share * slope + rounding and share > 1e-8:
                share /= 2
            theta = theta + share * step
        return theta


@dataclass(frozen=True, eq=False)
class Curvature:
    """The Hessian of a `Layer`, as what it does to vectors.

    Parameters
    ----------
    design : float64 tensor of shape (n, D)
    p : float64 tensor of shape (n, K)
        Probabilities of the classes.
    ridge : float
        Positive.
    """

    design: Float[Tensor, "n D"]
    p: Float[Tensor, "n K"]
    ridge: float

    def times(self, v: Float[Tensor, "c K D"]) -> Float[Tensor, "c K D"]:
        """H v, over the points in blocks."""
        made, flat = self.ridge * v, v.flatten(0, 1)
        rows = max(1, int(_BYTES / (4 * 8 * len(flat))))  # four arrays of a number a point, class and system
        for start in range(0, len(self.design), rows):
            x, p = self.design[start : start + rows], self.p[start : start + rows, None]
            moved = _weighted(p, (x @ flat.T).unflatten(1, v.shape[:2]))
            made += (moved.flatten(1).T @ x).view_as(v)
        return made

    def precondition(self, v: Float[Tensor, "c K D"]) -> Float[Tensor, "c K D"]:
        """An easy inverse on the vectors whose sum over the classes is zero, where all gradients are."""
        eased = torch.cholesky_solve(v.flatten(0, 1).T, self._factor).T.reshape(v.shape)
        return eased - eased.mean(1, keepdim=True)

    def held(self) -> Held:
        """The same as a matrix, block by block of two classes."""
        n_classes, n_features = self.p.shape[1], self.design.shape[1]
        blocks = self.design.new_empty(n_classes, n_features, n_classes, n_features)
        for a in range(n_classes):
            for b in range(a, n_classes):
                weight = self.p[:, a] * (float(a == b) - self.p[:, b])
                blocks[a, :, b] = self.design.T @ (weight[:, None] * self.design)
                blocks[b, :, a] = blocks[a, :, b]
        matrix = blocks.reshape(n_classes * n_features, -1)
        matrix.diagonal().add_(self.ridge)
        return Held(matrix, torch.linalg.cholesky(matrix))

    @cached_property
    def _factor(self) -> Float[Tensor, "D D"]:
        """Of H with each ``diag p - p p^T`` as the multiple of the identity that has its trace there."""
        weight = (1 - self.p.square().sum(1)).clamp(min=0) / (self.p.shape[1] - 1)
        mean = self.design.T @ (weight[:, None] * self.design)
        mean.diagonal().add_(self.ridge)
        return torch.linalg.cholesky(mean)


@dataclass(frozen=True, eq=False)
class Held:
    """The Hessian of a small `Layer`, with its Cholesky factor: H with a point in it is solved in K steps at most.

    Parameters
    ----------
    matrix, factor : float64 tensor of shape (K D, K D)
    """

    matrix: Float[Tensor, "P P"]
    factor: Float[Tensor, "P P"]

    def times(self, v: Float[Tensor, "c K D"]) -> Float[Tensor, "c K D"]:
        """H v."""
        return (v.flatten(1) @ self.matrix).view_as(v)

    def precondition(self, v: Float[Tensor, "c K D"]) -> Float[Tensor, "c K D"]:
        """H^-1 v."""
        return torch.cholesky_solve(v.flatten(1).T, self.factor).T.reshape(v.shape)


@dataclass(frozen=True, eq=False)
class _Own:
    """The Hessians of single points, one for each system; a point of zeros has none."""

    x: Float[Tensor, "c D"]
    p: Float[Tensor, "c K"]

    def times(self, v: Float[Tensor, "c K D"]) -> Float[Tensor, "c K D"]:
        moved = _weighted(self.p, (v @ self.x[:, :, None])[..., 0])
        return moved[:, :, None] * self.x[:, None]


def solved(
    curvature: Curvature | Held, right: Float[Tensor, "c K D"], tolerance: float, own: _Own | None = None
) -> Float[Tensor, "c K D"]:
    """``(H + H_own)^-1`` times each right-hand side, by preconditioned conjugate gradients side by side.

    Parameters
    ----------
    curvature : Curvature or Held
    right : float64 tensor of shape (c, K, D)
        Their sums over the classes are zero.
    tolerance : float
        Of the norms of the residuals, relative; after 2 K D steps it ends without it.
    own : _Own, optional
        What is added to H in each system.

    Returns
    -------
    float64 tensor of shape (c, K, D)
    """
    found, left = torch.zeros_like(right), right.clone()
    eased = curvature.precondition(left)
    direction, gain = eased.clone(), (left * eased).sum((1, 2))
    aim = tolerance * right.flatten(1).norm(dim=1)
    for _ in range(2 * right[0].numel()):
        if bool((left.flatten(1).norm(dim=1) <= aim).all()):
            break
        image = curvature.times(direction)
        if own is not None:
            image += own.times(direction)
        found += (share := _ratio(gain, (direction * image).sum((1, 2)))) * direction
        left -= share * image
        eased = curvature.precondition(left)
        before, gain = gain, (left * eased).sum((1, 2))
        direction = eased + _ratio(gain, before) * direction
    return found


def _ratio(a: Float[Tensor, " c"], b: Float[Tensor, " c"]) -> Float[Tensor, "c 1 1"]:
    """0 for systems that are solved exactly."""
    return torch.where(b > 0, a / torch.where(b > 0, b, 1), 0)[:, None, None]


def _weighted(p: Float[Tensor, "*b K"], u: Float[Tensor, "*b2 K"]) -> Float[Tensor, "*b2 K"]:
    """``(diag p - p p^T) u``."""
    return p * (u - (p * u).sum(-1, keepdim=True))


def _residual(logits: Float[Tensor, "n K"], label: Int[Tensor, " n"]) -> Float[Tensor, "n K"]:
    """Derivative of the cross-entropies by the logits."""
    made = logits.softmax(1)
    made[torch.arange(len(made), device=made.device), label] -= 1
    return made


@torch.no_grad()
def _last(module: nn.Module, lesson: Lesson) -> nn.Linear | None:
    """The linear layer that makes the answers of a network."""
    calls: dict[nn.Module, list[tuple[Tensor, Tensor]]] = {}

    def note(layer: nn.Module, given: tuple[Tensor, ...], made: Tensor) -> None:
        calls.setdefault(layer, []).append((given[0], made.clone()))  # what follows may work in place

    linear = [each for each in module.modules() if isinstance(each, nn.Linear)]
    handles = [each.register_forward_hook(note) for each in linear]
    try:
        answer = module(laid_out(lesson.inputs.batch(np.arange(2), lesson.device)))
    finally:
        for handle in handles:
            handle.remove()
    for layer in linear:
        once = calls.get(layer, [])
        if len(once) == 1 and once[0][0].ndim == 2 and torch.equal(once[0][1], answer):
            return layer if layer.weight.requires_grad else None
    return None


def _features(module: nn.Module, layer: nn.Linear, lesson: Lesson) -> Float[Tensor, "N d"]:
    """What the layer is given of every point."""
    seen: list[Tensor] = []
    handle = layer.register_forward_pre_hook(lambda _, given: seen.append(given[0].double()))
    try:
        logits_of(module, lesson)
    finally:
        handle.remove()
    return torch.cat(seen)[-len(lesson.inputs) :]  # the last reading: one that ran out of memory left parts of its own
