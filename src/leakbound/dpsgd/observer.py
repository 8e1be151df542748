"""The steps of DP-SGD as an attacker observes them: the terms of the likelihood ratio of each watched point.

Everything is in units of the sum of a batch's clipped gradients: a step releases
``w_t = B u_t = B (theta_{t-1} - theta_t)/lr``, so that the normaliser B cancels.

Axes: J watched points, S steps, r reference gradients, d parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from leakbound.core.covariance import LowRankGram
from leakbound.core.seeds import stream
from leakbound.core.types import Points
from leakbound.dpsgd.attacker import MOST_REFERENCES, Attacker
from leakbound.dpsgd.clipping import Gradients, blocks, clipped, gradients_of, trained_parameters
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.followed_steps import FollowedStep, Rounding, followed
from leakbound.dpsgd.gradient_rows import CoordinateRows, Rows
from leakbound.dpsgd.observed_batches import batches
from leakbound.dpsgd.residual_noise import FAMILIES, MOST_COORDINATES, residuals
from leakbound.releases.networks.checkpoints import attributes_of, set_attributes
from leakbound.releases.networks.tensors import Inputs, inputs_of, labels_of

Array = np.ndarray
_TINY = 1e-300
COARSEST = 1 / 16  # largest rounding error of a parameter that is used to measure the noise, in its deviations


class _Products(NamedTuple):
    """Inner products of watched gradients x: ``x.x``, ``x.w``, and with the reference gradients."""

    squares: Float[Array, " J"]
    dots: Float[Array, " J"]
    cross: Float[Array, "J r"]


@dataclass(frozen=True, eq=False)
class _OthersSum:
    """The distribution of the sum of the others' clipped gradients, estimated from the gradients U of r references.

    Its mean is ``mu0 = U^T mean``, its covariance and that of the noise ``C0 = floor I + F^T F``, ``F = factors U``.

    A record that is in the sum with probability p adds ``p g`` to the mean and ``p (1 - p) g g^T`` to the covariance:
    for n of them at rate q the uncentred second moment ``n q (1 - q) M2``, because the size of a batch is random too.
    With batches of fixed size only the part that keeps the size is left: ``A - b b^T/s`` with A, b, s the sums of
    ``p (1 - p)`` times ``g g^T``, g, 1. For n records of equal p this is ``B (1 - B/n) C``, C the centred covariance,
    exact with the factor n/(n - 1). A record takes the place of another, so its shift is g less their mean. If r of the
    n records of a stratum are followed, each represents n/r, and the error of their mean adds its variance,
    ``(n p)^2 (1 - r/n) C/(r - 1)``.
    """

    mean: Float[Array, " r"]
    factors: Float[Array, "r r"]
    floor: float
    replaces: bool  # a record in a batch takes the place of another

    @classmethod
    def of(cls, dpsgd: DpSgd, attacker: Attacker) -> _OthersSum:
        rate, fixed, strata = dpsgd.sample_rate, dpsgd.batches == "fixed", attacker.unknown
        if fixed:
            n_records = attacker.n_records
            if attacker.knowledge == "distribution":  # a batch without the point is full of the others
                n_records = sum(stratum.n * stratum.inside for stratum in strata)
            rate = batch_size(rate, attacker.n_records) / n_records
        sizes = [stratum.n_drawn for stratum in strata]
        p = np.repeat([rate * stratum.inside for stratum in strata], sizes)
        mean = p * np.repeat([stratum.n / stratum.n_drawn for stratum in strata], sizes)
        variance = mean * (1 - p)
        weights = np.diag(variance)
        if fixed:  # A - b b^T/s, with the factor n/(n - 1)
            n = sum(stratum.n for stratum in strata)
            weights = (weights - np.outer(variance, variance) / max(variance.sum(), _TINY)) * n / max(n - 1, 1)
        first = 0
        for stratum, r in zip(strata, sizes, strict=True):
            block = slice(first, first + r)
            # Sampling error of a stratum's total from r of its n records, with the finite-population correction.
            error = (rate * stratum.inside * stratum.n) ** 2 * (1 - r / stratum.n) / (r - 1)
            weights[block, block] += error * (np.eye(r) / r - 1 / r**2)
            first += r
        eigenvalues, vectors = np.linalg.eigh(weights)
        factors = np.sqrt(np.maximum(eigenvalues, 0))[:, None] * vectors.T
        return cls(mean, factors, (dpsgd.noise_multiplier * dpsgd.clip) ** 2, fixed and bool(strata))

    def products(
        self, watched: _Products, gram: Float[Array, "r r"], total: Float[Array, " r"]
    ) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
        """Compute ``D^T C0^-1 (w - mu0)`` and ``D^T C0^-1 D`` from the inner products of U with itself and with w."""
        covariance = LowRankGram(self.floor, self.factors @ gram @ self.factors.T)
        residual = total - gram @ self.mean  # U (w - mu0)
        squares, dots, cross = watched.squares, watched.dots - watched.cross @ self.mean, watched.cross
        if self.replaces:  # D is the gradient less the mean of the others
            fraction = self.mean / self.mean.sum()
            squares = squares - 2 * cross @ fraction + fraction @ gram @ fraction
            dots, cross = dots - fraction @ residual, cross - gram @ fraction
        along = cross @ self.factors.T
        dot = covariance.product(dots, along, self.factors @ residual)
        return dot, np.maximum(covariance.product(squares, along, along), 0)


@dataclass(frozen=True, eq=False)
class CanaryCoordinates:
    """The coordinates of Dirac canaries: what is tested of the noise and of the batches there is no attack."""

    outside: Int[Array, " n"]
    inside: Int[Array, " k"]
    # nothing but noise and these canaries is in the sums there: the others' gradients are known and subtracted, or
    # do not reach them
    alone: bool
    sign: int = 1


class Watch:
    """An observer of the steps of a training: the terms of the likelihood ratio of each watched point.

    Without the point a step releases N(mu0, C0), with it N(mu0 + D, C0). The likelihood ratio of a step is
    ``log(1 - q + q e^v)``, ``v = D^T C0^-1 (w - mu0) - D^T C0^-1 D/2``, and that of all steps is their sum, because
    the batches and the noise of the steps are independent given the memberships. azize2024, Algorithm 7 leaves out the
    noise, has a singular covariance, and takes the largest v.
    """

    def __init__(
        self,
        gradients: Gradients,
        inputs: Inputs,
        label: Int[Tensor, " N"],
        dpsgd: DpSgd,
        attacker: Attacker,
        *,
        tensors: Sequence[int] = (),  # number of parameters of each tensor whose noise is tested by itself
        # where it is tested whether the noise of a step is new, and the batches; without them the noise is tested at
        # coordinates drawn at random, and the batches are not
        canaries: CanaryCoordinates | None = None,
        ratios: bool = True,  # compute step_dot and step_norm, which take most of the time
    ) -> None:
        if dpsgd.noise_multiplier == 0:
            raise ValueError(
                f"noise_multiplier is 0: at most {MOST_REFERENCES} reference gradients leave directions without "
                "variance, and no likelihood ratio; give > 0"
            )
        self._gradients, self._inputs, self._label = gradients, inputs, label
        self._dpsgd, self._attacker = dpsgd, attacker
        self._others = _OthersSum.of(dpsgd, attacker)
        self._dots: list[Float[Array, " J"]] = []
        self._norms: list[Float[Array, " J"]] = []
        self._in_batch: list[Bool[Array, " J"]] = []
        deviation = dpsgd.noise_multiplier * dpsgd.clip
        self._noise = _NoiseSum(deviation, attacker.seed, tensors)
        self._canaries, self._ratios, self._n_steps = canaries, ratios, 0
        outside = None if canaries is None or not len(canaries.outside) else canaries.outside
        self._outside = _StepRows(deviation, attacker.seed, outside)
        self._inside = None
        if canaries is not None and canaries.alone and outside is not None:
            self._inside = _StepRows(deviation, attacker.seed, canaries.inside)

    @classmethod
    def of(
        cls,
        module: nn.Module,
        points: Points,
        dpsgd: DpSgd,
        *,
        watched: Int[Array, " J"],
        known: Int[Array, " P"],
        references: int = MOST_REFERENCES,
    ) -> Watch:
        """Build the observer of a user-supplied training loop, of whatever library."""
        label = torch.from_numpy(labels_of(points, type(module).__name__)[1])
        attacker = Attacker(watched, known, n_references=references)
        tensors = [parameter.numel() for parameter in trained_parameters(module)]
        return cls(gradients_of(module), inputs_of(points.x), label, dpsgd, attacker, tensors=tensors)

    def step(
        self,
        before: Float[Tensor, " d"],
        after: Float[Tensor, " d"],
        scale: float,
        known: Float[Tensor, " d"] | None = None,  # part of the sum, for an attacker who knows everyone else
        rounding: Rounding | None = None,
        batch: Int[Array, " b"] | None = None,
        at: Float[Tensor, " d"] | None = None,
    ) -> None:
        """Observe a step."""
        if rounding is None:
            rounding = Rounding.of([after])
        # the noisy sum of the clipped gradients
        total = (before - after) * scale
        if not bool(total.isfinite().all()):
            raise ValueError("a step leads to NaN or infinite parameters; give a smaller lr")
        if self._attacker.knowledge == "others":
            if known is None:
                raise ValueError("an attacker who knows everyone else needs the sum of the others' gradients")
            total = total - known
        # the tests of the noise
        observed = _Step(before, after, scale, total, rounding)
        self._noise.add(observed)
        for rows in self._rows().values():
            rows.add(observed)
        self._n_steps += 1
        # the likelihood ratio
        if self._ratios:
            self._add_ratios(before if at is None else at, total)
        if batch is not None:
            self._in_batch.append(np.isin(self._attacker.watched, batch))

    def _add_ratios(self, before: Float[Tensor, " d"], total: Float[Tensor, " d"]) -> None:
        """Compute the terms of the likelihood ratio of a step."""
        reference_idx = self._attacker.references(len(self._dots))
        references = self._clipped(before, reference_idx)
        gram, reference_dots = _as_numpy(references.gram(references)), _as_numpy(references.dots(total))
        dot, norm = self._others.products(self._products(before, total, references), gram, reference_dots)
        # A watched point that was drawn as a reference is no other of itself: take its part of mu0 out.
        own_weight = np.zeros(len(self._inputs))
        own_weight[reference_idx] = self._others.mean
        self._dots.append(dot + own_weight[self._attacker.watched] * norm)
        self._norms.append(norm)

    @contextmanager
    def follow(
        self,
        optimizer: Any,
        normaliser: float,  # B, by which the training divides the noisy sum: opacus' expected_batch_size
        *,
        # the indices of the points in the batch of the step that was just made; without it the signals have no step_in
        batch: Callable[[], Int[Array, " b"]] | None = None,
        parameters: Sequence[Tensor] | None = None,
    ) -> Iterator[None]:
        """Observe every step of an optimizer while the context lasts."""

        def observe(step: FollowedStep) -> None:
            indices = None if batch is None else batch()
            self.step(step.before, step.after, step.scale, rounding=step.rounding, batch=indices, at=step.parameters)

        with followed(optimizer, normaliser, observe, parameters):
            yield

    def signals(self, n_points: int) -> dict[str, Float[Array, "_ ..."]]:
        """Return the signals of all steps at each of N points, 0 at points that are not watched; and diagnostics."""
        if not self._n_steps:
            raise ValueError("no step was seen; open `with follow(optimizer, normaliser):` around the training's steps")
        if self._n_steps != self._dpsgd.steps:
            raise ValueError(
                f"the training made {self._n_steps:,} steps, and {self._dpsgd.steps:,} are claimed. The records that "
                "it gets include the canaries: take batches of a fraction of them, as claimed, rather than of a fixed "
                f"size; if that is so, say steps = {self._n_steps}, or follow them all"
            )
        watched = self._attacker.watched
        rows = {}
        if self._ratios:
            rows = {"step_dot": np.stack(self._dots, axis=1), "step_norm": np.stack(self._norms, axis=1)}
        if len(self._in_batch) == self._n_steps:
            # 1 where the point is in the batch of the step
            rows["step_in"] = np.stack(self._in_batch, axis=1).astype(float)
        signals = {}
        for name, watched_rows in rows.items():
            signals[name] = np.zeros((n_points, watched_rows.shape[1]))
            signals[name][watched] = watched_rows
        # of the training as a whole, as `leakbound.dpsgd.diagnostics` has them
        return signals | {
            "step_noise": self._noise.numbers(),
            "step_tensors": self._noise.by_tensor().ravel(),
            "step_fresh": self._fresh(),
            "step_batches": self._batches(),
        }

    def state(self) -> dict[str, Any]:
        """Return all that was observed, for a checkpoint."""
        own = attributes_of(self, ("_dots", "_norms", "_in_batch", "_n_steps"))
        rows = {name: part.state() for name, part in self._rows().items()}
        return {"own": own, "noise": self._noise.state(), "rows": rows}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` returned."""
        set_attributes(self, state["own"])
        set_attributes(self._noise, state["noise"])
        for name, part in self._rows().items():
            set_attributes(part, state["rows"][name])

    def _rows(self) -> dict[str, _StepRows]:
        rows = {"outside": self._outside}
        return rows if self._inside is None else {**rows, "inside": self._inside}

    def _fresh(self) -> Float[Array, " 17"]:
        """Return the number of coordinates, and of each family of predictions the most conspicuous one."""
        values, errors = self._outside.rows()
        found = residuals(values, errors)
        return np.concatenate([[float(values.shape[1])], *([*found[family]] for family in FAMILIES)])

    def _batches(self) -> Float[Array, " 5"]:
        """Return what the steps at the canaries say of the batches, as `Batches`; 0 if it cannot be said."""
        if self._inside is None or self._canaries is None:
            return np.zeros(5)
        values, errors = self._inside.rows()
        outside, outside_errors = self._outside.rows()
        errors = np.maximum(errors, outside_errors)
        values = self._canaries.sign * values
        return np.array(batches(values, outside, self._dpsgd.sample_rate, self._dpsgd.noise_multiplier, errors))

    def _clipped(self, theta: Float[Tensor, " d"], indices: Int[Array, " b"]) -> Rows:
        x = self._inputs.batch(indices, theta.device)
        return clipped(self._gradients.rows(theta, x, self._label[torch.from_numpy(indices)]), self._dpsgd.clip)

    def _products(self, theta: Float[Tensor, " d"], total: Float[Tensor, " d"], references: Rows) -> _Products:
        """Compute the products of the watched gradients with themselves, the sum and the references."""
        parts = []
        if len(where := torch.from_numpy(self._attacker.coordinates).to(theta.device)):
            rows = CoordinateRows(where, torch.full_like(where, self._dpsgd.clip, dtype=theta.dtype), len(theta))
            parts.append((rows.squares(), rows.dots(total), rows.gram(references)))
        for block in blocks(self._attacker.records, self._gradients.block):
            rows = self._clipped(theta, block)
            parts.append((rows.squares(), rows.dots(total), rows.gram(references)))
        return _Products(*(_as_numpy(torch.cat(products)) for products in zip(*parts, strict=True)))


class _Step(NamedTuple):
    """A step as it is observed: the parameters, and the noisy sum less what is known of it."""

    before: Float[Tensor, " d"]
    after: Float[Tensor, " d"]
    scale: float
    total: Float[Tensor, " d"]
    rounding: Rounding

    def at(self, chosen: Int[Tensor, " k"]) -> _Step:
        """Return the step at some of the coordinates."""
        rounding = _at(self.rounding, chosen)
        return _Step(self.before[chosen], self.after[chosen], self.scale, self.total[chosen], rounding)


class _NoiseSum:
    """The sum of squares of the noisy sums of all steps, in units of the claimed noise; never too small.

    A step is observed through the parameters, ``X = (before - after) scale``, and these are rounded: the noisy sum w
    itself is not known. A sum of squares that is too small accuses the training, so every error must make it larger.

    1. *What rounding does to a number.* The optimizers that are followed compute ``after = fl(before - lr g)`` with one
       rounding to nearest, so that ``|after - (before - lr g)| <= u |after| + t``: u is half of machine epsilon, t the
       smallest normal number (below it a result may be flushed to 0). The few products and conversions on the way
       from w to after and back to X have relative errors of u each, in all less than 16 u. Hence, with
       ``e = scale (u |after| + t) + 16 u |X|``, always ``|w| <= |X| + e``. This is a certain bound, not an average:
       ``sum (|X| + e)^2 >= sum w^2``, and the right side is stochastically at least chi-squared. It also covers steps
       that round to 0, where quantisation takes the whole variance away (the mean of X^2 is that of w^2 plus a twelfth
       of the squared spacing only while the spacing is small compared with the noise).
    2. *Which numbers count.* The bound costs power where e is large: at ``e = 1/16`` deviation it adds
       ``2 e E|z| + e^2``, about 10 %, to noise of variance 1. Numbers whose rounding error ``scale (u |before| + t)``
       is above ``COARSEST`` deviations in the first step are left out, of the sum and of the degrees of freedom, in
       all steps. The parameters before the first step do not depend on the noise; nor does the choice.
    3. *Numbers that become too coarse later*, because lr falls or a parameter grows, which may depend on the noise of
       the steps before. Which ones is known before the step, and independent standard normal numbers replace
       them. Given the past, the squares that are added have the same distribution as without this, so that the number
       of degrees of freedom is fixed, and no stopping rule can lower the sum.

    The sums are kept for each of the parameter tensors, whose sizes are given. A second sum for each is of the changes
    from one step to the next, ``sum (|X_t - X_(t-1)| + e)^2``: X_(t-1) is known before the step, so that it is at
    least chi-squared too. Where a tensor without noise has large gradients, they are much the same in the next step.
    """

    def __init__(self, deviation: float, seed: int, tensors: Sequence[int] = ()) -> None:
        self._deviation, self._seed, self._tensors = deviation, seed, list(tensors)
        self._squares = self._changes = np.zeros(0)
        self._n_steps = 0
        self._fine_at_first: Tensor | None = None
        self._last: Tensor | None = None

    def add(self, step: _Step) -> None:
        """Add a step."""
        rounded = _Rounded.of(step)
        fine = rounded.error_before <= COARSEST * self._deviation
        if self._fine_at_first is None:
            self._fine_at_first = fine
            self._tensors = self._tensors or [len(fine)]
            self._squares = self._changes = np.zeros(len(self._tensors))
        # Known before the step: numbers that are fine count; those that were fine at first are replaced by chi-squared
        # noise (case 3); those that were not are left out, and so is their degree of freedom.
        counted = self._fine_at_first & fine
        replaced = self._of_noise(self._fine_at_first & ~fine)
        largest = rounded.total.abs() + rounded.error
        self._squares = self._squares + self._by_tensor(largest, counted) + replaced
        if self._last is not None:
            largest = (rounded.total - self._last).abs() + rounded.error
            self._changes = self._changes + self._by_tensor(largest, counted) + replaced
        self._last = rounded.total
        self._n_steps += 1

    def numbers(self) -> Float[Array, " 3"]:
        """Return the sum of squares, its degrees of freedom, and how many numbers were left out."""
        if self._fine_at_first is None:
            return np.zeros(3)
        n_kept = int(self._fine_at_first.sum())
        n_left_out = len(self._fine_at_first) - n_kept
        return np.array([self._squares.sum(), n_kept * self._n_steps, n_left_out * self._n_steps], dtype=float)

    def by_tensor(self) -> Float[Array, "K 4"]:
        """Return the sum of squares of each tensor with its degrees of freedom, and the same of the changes."""
        if self._fine_at_first is None:
            return np.zeros((len(self._tensors), 4))
        n_kept = np.array([int(part.sum()) for part in self._fine_at_first.split(self._tensors)])
        columns = [self._squares, n_kept * self._n_steps, self._changes, n_kept * (self._n_steps - 1)]
        return np.stack(columns, axis=1).astype(float)

    def state(self) -> dict[str, Any]:
        """Return all sums, for a checkpoint."""
        return attributes_of(self, ("_tensors", "_squares", "_changes", "_n_steps", "_fine_at_first", "_last"))

    def _by_tensor(self, largest: Float[Tensor, " d"], counted: Tensor) -> Float[Array, " K"]:
        """Sum the squares of the numbers that count."""
        squares = (largest / self._deviation).square() * counted
        return _as_numpy(torch.stack([part.sum() for part in squares.split(self._tensors)]))

    def _of_noise(self, replaced: Tensor) -> Float[Array, " K"]:
        """Draw the sums of squares of independent noise in place of some numbers."""
        drawn = np.zeros(len(self._tensors))
        if bool(replaced.any()):
            n_replaced = np.array([int(part.sum()) for part in replaced.split(self._tensors)])
            rng = stream(self._seed, "too coarse a step", self._n_steps)
            drawn[n_replaced > 0] = rng.chisquare(n_replaced[n_replaced > 0])
        return drawn


class _Rounded(NamedTuple):
    """A noisy sum in float64, as it is observed, and how far it may be from the true one, see `_NoiseSum`."""

    total: Float[Tensor, " d"]
    error: Float[Tensor, " d"]
    error_before: Float[Tensor, " d"]  # as far as it is known before the step

    @classmethod
    def of(cls, step: _Step) -> _Rounded:
        # float64 from here on: its own rounding is negligible compared with that of the parameters
        before, after, total = step.before.double(), step.after.double(), step.total.double()
        unit, smallest = (torch.as_tensor(value).to(before.device, torch.float64) for value in step.rounding)
        error_of_after = step.scale * (unit * after.abs() + smallest)
        error_of_products = 16 * unit * (step.scale * (before - after).abs() + total.abs())
        return cls(total, error_of_after + error_of_products, step.scale * (unit * before.abs() + smallest))


class _StepRows:
    """The noisy sums of all steps at some coordinates, in units of the claimed noise, and their rounding errors.

    Numbers that are rounded too coarsely in the first step are left out, as in `_NoiseSum`; where that comes later, the
    bound of the error is large.
    """

    def __init__(self, deviation: float, seed: int, coordinates: Int[Array, " k"] | None) -> None:
        self._deviation, self._seed, self._coordinates = deviation, seed, coordinates
        self._chosen: Tensor | None = None
        self._values: list[Float[Array, " k"]] = []
        self._errors: list[float] = []

    def add(self, step: _Step) -> None:
        """Add a step."""
        if self._chosen is None:
            self._chosen = self._choose(step)
        chosen = self._chosen
        seen = _Rounded.of(step.at(chosen))
        self._values.append(_as_numpy(seen.total) / self._deviation)
        self._errors.append(float(seen.error.max()) / self._deviation if len(chosen) else 0.0)

    def state(self) -> dict[str, Any]:
        """Return all rows, for a checkpoint."""
        return attributes_of(self, ("_chosen", "_values", "_errors"))

    def rows(self) -> tuple[Float[Array, "S k"], Float[Array, " S"]]:
        """Return the sums, and the largest rounding error of each step."""
        return np.stack(self._values), np.array(self._errors)

    def _choose(self, step: _Step) -> Int[Tensor, " k"]:
        """Draw the coordinates that are followed; nothing but the parameters before the first noise decides."""
        candidates = np.arange(len(step.before)) if self._coordinates is None else self._coordinates
        if len(candidates) > MOST_COORDINATES:
            rng = stream(self._seed, "coordinates of the noise")
            candidates = np.sort(rng.choice(candidates, MOST_COORDINATES, replace=False))
        chosen = torch.from_numpy(candidates).to(step.before.device)
        return chosen[_Rounded.of(step.at(chosen)).error_before <= COARSEST * self._deviation]


def _at(rounding: Rounding, chosen: Int[Tensor, " k"]) -> Rounding:
    """Return the rounding of some of the numbers."""
    relative, absolute = rounding
    if isinstance(relative, Tensor):
        relative = relative[chosen.to(relative.device)]
    if isinstance(absolute, Tensor):
        absolute = absolute[chosen.to(absolute.device)]
    return Rounding(relative, absolute)


def batch_size(sample_rate: float, n: float) -> int:
    """Return the number of records in a batch of fixed size, at least 1."""
    return max(1, round(sample_rate * n))


def _as_numpy(values: Tensor) -> Float[Array, "*shape"]:
    """Convert to numpy, in float64."""
    return values.detach().cpu().numpy().astype(np.float64)
