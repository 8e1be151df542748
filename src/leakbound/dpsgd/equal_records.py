"""Whether a record moves a step by more than the clipping norm: a short training on copies of one record.

DP-SGD promises that each record adds at most c to the sum of a step, over all parameters together. In a batch of n
different records nobody sees what one of them adds. But n copies of one record add n times the same vector. So for any
direction u of length 1 that is chosen before the step, the noisy sum w of a training that keeps its promise has

    w.u <= n c + N(0, sigma^2 c^2),

whatever its loss and whatever it does with the gradients. The sum over the first s steps is compared with the sum of
the n. It is known where the training tells its batches, or sends them through the network by themselves; otherwise it
is ``Binomial(s N, q)``, for Poisson batches. The bound is nearly attained where all copies are clipped and u points
along their gradient: clipping at 1.3c is 1.3 times the bound.

Directions are the gradient of the record, each of its parts in one parameter tensor, and the sum of these parts made
equally long, by tensors and by layers (if each layer is clipped at c by itself, L layers add ``sqrt(L) c`` along it).
All directions and all s are tested, and the p-values are corrected for their number (Bonferroni).

What counts for a promise is c relative to the noise. So everything is measured in units of the noise that is seen
beside the gradients, if that is more than the claimed noise: neither more noise nor a normaliser that is told too large
accuses a training.

Axes: d parameters, D directions, S steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy import stats
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from leakbound.core.seeds import stream
from leakbound.dpsgd.clipping import out_of_place, trained_parameters
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.followed_steps import FollowedStep
from leakbound.dpsgd.residual_noise import LEAST_LOG
from leakbound.releases.networks.tensors import Inputs

Array = np.ndarray
MOST_STEPS = 8  # after that the record is learned, and its gradient is short
_N_CANDIDATES = 24  # records from which one is chosen
_SCALES = (1.0, 3.0, 10.0)  # by which their features are multiplied
_LONG_ENOUGH = 5.0  # clipping norms in a tensor, above which longer gradients are no better
_SPREADS = 6.0  # standard errors by which the measured variance of the noise is enlarged: fails with probability 1e-9


def tensors_and_layers(module: nn.Module) -> tuple[list[int], list[str]]:
    """Return the size of each parameter tensor that is trained, and the name of the layer that it belongs to."""
    named = [(name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad]
    return [parameter.numel() for _, parameter in named], [name.rpartition(".")[0] for name, _ in named]


def chosen_record(
    module: nn.Module, inputs: Inputs, clip: float, seed: int
) -> tuple[Float[Tensor, "1 ..."], Int[Tensor, " 1"]]:
    """Choose a record whose gradient is long in every parameter tensor, at the parameters before the training."""
    network, device = out_of_place(module), next(module.parameters()).device
    n_tried = min(_N_CANDIDATES, len(inputs))
    tried = np.sort(stream(seed, "equal records").choice(len(inputs), n_tried, replace=False))
    # numbers that are no token ids are tried at several sizes
    scales = _SCALES if inputs.batch(tried[:1]).is_floating_point() else (1.0,)
    best, chosen = (-1.0, -1.0), None
    for number in tried:
        for scale in scales:
            x = inputs.batch(np.array([number]), device) * (scale if scale != 1 else 1)
            with torch.no_grad():
                y = network(x).argmin(dim=1)
            lengths = [float(part.norm()) / clip for part in _gradient(network, x, y)]
            value = (min(_LONG_ENOUGH, min(lengths)), float(np.linalg.norm(lengths)))
            if np.isfinite(value).all() and value > best:
                best, chosen = value, (x, y)
    if chosen is None:
        raise ValueError("no record has a finite gradient")
    return chosen


@dataclass
class EqualRecords:
    """The steps of a training on copies of one record."""

    module: nn.Module
    x: Float[Tensor, "1 ..."]
    y: Int[Tensor, " 1"]
    n_copies: int
    dpsgd: DpSgd
    _along: list[Float[Array, " D"]] = field(default_factory=list)
    _sizes: list[int | None] = field(default_factory=list)
    _noise: list[tuple[float, int]] = field(default_factory=list)
    _length: float = 0.0
    _in_parameters: bool = True

    def __post_init__(self) -> None:
        self.module = out_of_place(self.module)
        self._tensors, self._layers = tensors_and_layers(self.module)

    @property
    def n_steps(self) -> int:
        """Number of steps that were seen."""
        return len(self._along)

    @property
    def is_finished(self) -> bool:
        """Whether more steps would not be looked at."""
        return self.n_steps >= min(MOST_STEPS, self.dpsgd.steps)

    def step(self, step: FollowedStep, n_in_batch: int | None = None) -> None:
        """Observe a step."""
        if self.is_finished:
            return
        self._in_parameters &= step.before is step.parameters
        _set(self.module, step.parameters)
        parts = [part.reshape(-1).double() for part in _gradient(self.module, self.x, self.y)]
        if not self._along:
            self._length = float(torch.cat(parts).norm()) / self.dpsgd.clip
        deviation = self.dpsgd.noise_multiplier * self.dpsgd.clip
        before, after = step.before.double(), step.after.double()
        total = (before - after) * (step.scale / deviation)
        unit, smallest = (torch.as_tensor(value).to(before.device, torch.float64) for value in step.rounding)
        # how far a number may be off because the parameters are rounded, as in `observer._NoiseSum`
        error = step.scale / deviation * (unit * after.abs() + smallest) + 32 * unit * total.abs()
        directions = self._directions(parts)
        along = directions @ total - directions.abs() @ error
        beside = float(total.square().sum() - (directions[3:] @ total).square().sum())
        self._along.append(along.cpu().numpy())
        self._sizes.append(n_in_batch)
        self._noise.append((beside, len(total) - int((directions[3:] != 0).any(dim=1).sum())))

    def numbers(self) -> Float[Array, " P"]:
        """Return what was found."""
        n_directions = len(self._tensors) + 3
        found = np.zeros((n_directions, 2))
        is_told = self._sizes_are_known()
        if self._along:
            sums = np.cumsum(self._along, axis=0)
            squares, degrees = np.cumsum(self._noise, axis=0).T
            sizes = np.cumsum([size or 0 for size in self._sizes]) if is_told else None
            for s in range(self.n_steps):
                self._compare(s, sums[s], squares[s], degrees[s], None if sizes is None else int(sizes[s]), found)
            found[:, 0] = np.minimum(0.0, found[:, 0] + np.log(found.shape[0] * self.n_steps))
        # for each direction the logarithm of the p-value, corrected for the numbers of directions and steps, and how
        # many clipping norms a record adds to a step along it
        return np.concatenate([[self.n_steps, self._length, is_told, self._in_parameters], found.ravel()])

    def _sizes_are_known(self) -> bool:
        """Whether the number of copies in each batch is known; fewer than the rate leads to are not believed."""
        sizes = [size for size in self._sizes if size is not None]
        if not sizes or len(sizes) < len(self._sizes):
            return False
        n, q = len(sizes) * self.n_copies, self.dpsgd.sample_rate
        return bool(sum(sizes) >= n * q - _SPREADS * np.sqrt(n * q * (1 - q)) - 1)

    def _compare(
        self,
        s: int,
        sums: Float[Array, " D"],
        square: float,
        n_degrees: float,
        n_in_batches: int | None,
        found: Float[Array, "D 2"],
    ) -> None:
        """Compare the sums over the first s + 1 steps with what the copies in their batches may add."""
        if n_degrees < 1:
            return
        seen = max(1.0, square / n_degrees)  # variance of the noise, in units of the claimed one
        variance = max(1.0, square / n_degrees * (1 + _SPREADS * np.sqrt(2 / n_degrees)))
        each = np.sqrt(variance) / self.dpsgd.noise_multiplier  # what a copy may add
        spread = np.sqrt((s + 1) * variance)
        n, q = (s + 1) * self.n_copies, self.dpsgd.sample_rate
        for number, total in enumerate(sums):
            if n_in_batches is None:
                log_p, expected = _log_tail(total, n, q, each, spread), n * q
            else:
                log_p, expected = float(stats.norm.logsf((total - n_in_batches * each) / spread)), n_in_batches
            if expected and log_p < found[number, 0]:
                moved = total * self.dpsgd.noise_multiplier / np.sqrt(seen) / expected
                found[number] = max(log_p, LEAST_LOG), moved

    def _directions(self, parts: Sequence[Float[Tensor, " _"]]) -> Float[Tensor, "D d"]:
        """Return the gradient, its parts made equally long by tensors and by layers, and each part; of length 1."""
        gradient = torch.cat(list(parts))
        rows = [gradient, _equally_long(parts, [str(number) for number in range(len(parts))])]
        rows.append(_equally_long(parts, self._layers))
        first = 0
        for part in parts:
            alone = torch.zeros_like(gradient)
            alone[first : first + len(part)] = part
            rows.append(alone)
            first += len(part)
        matrix = torch.stack(rows)
        return matrix / matrix.norm(dim=1, keepdim=True).clamp(min=1e-300)


def _equally_long(parts: Sequence[Float[Tensor, " _"]], groups: Sequence[str]) -> Float[Tensor, " d"]:
    """Concatenate the parts, those of each group together made of length 1."""
    squares = dict.fromkeys(groups, 0.0)
    for part, group in zip(parts, groups, strict=True):
        squares[group] += float(part.square().sum())
    return torch.cat([part / max(np.sqrt(squares[group]), 1e-300) for part, group in zip(parts, groups, strict=True)])


def _log_tail(total: float, n: int, rate: float, each: float, spread: float) -> float:
    """Compute the logarithm of the probability that ``each Binomial(n, rate) + N(0, spread^2)`` is at least a total."""
    mean, deviation = n * rate, np.sqrt(n * rate * (1 - rate))
    counts = np.arange(max(0, int(mean - 40 * deviation - 40)), min(n, int(mean + 40 * deviation + 40)) + 1)
    log_terms = stats.binom.logpmf(counts, n, rate) + stats.norm.logsf((total - counts * each) / spread)
    log_p = float(np.logaddexp.reduce(log_terms))
    if counts[-1] < n:
        log_p = float(np.logaddexp(log_p, stats.binom.logsf(counts[-1], n, rate)))
    return max(LEAST_LOG, log_p)


def _gradient(network: nn.Module, x: Tensor, y: Tensor) -> list[Tensor]:
    """Compute the gradient of the loss of a record, by parameter tensors."""
    loss = cross_entropy(network(x), y)
    parameters = trained_parameters(network)
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    pairs = zip(gradients, parameters, strict=True)
    return [torch.zeros_like(parameter) if part is None else part for part, parameter in pairs]


def _set(network: nn.Module, theta: Float[Tensor, " d"]) -> None:
    """Write a vector into the parameters that are trained."""
    first = 0
    with torch.no_grad():
        for parameter in trained_parameters(network):
            parameter.copy_(theta[first : first + parameter.numel()].view_as(parameter))
            first += parameter.numel()
