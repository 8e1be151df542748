"""Tests of what a training by DP-SGD does in its steps besides the amount of its noise: each with a p-value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import stats
from scipy.special import gammainc, gammaincinv

from leakbound.core.findings import Term
from leakbound.core.types import Signals
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.diagnostics import StepDiagnostics
from leakbound.dpsgd.residual_noise import FAMILIES, LEAST_LOG, Residual, log_chi_squared

Array = np.ndarray
_WORDS = {  # of a family
    "repeated": "noise_repeated",
    "negated": "noise_negated",
    "cancelled": "noise_cancelled",
    "predicted": "noise_predicted",
}


_LONG_ENOUGH = 2.0  # clipping norms of a gradient that clipping at twice the norm lengthens
_APART = 1.03  # of what a record adds along its parts made equally long and along its gradient, if these are told apart
_HEAD = 4  # numbers of the records before those of the directions
LEAST_DEGREES = 100  # of freedom, of which half of the claimed noise is found nearly surely
_MUCH_LESS = 0.8  # noise in one tensor or step, of that in all together, so that it is named


@dataclass(frozen=True)
class StepNoise:
    """How large all steps of DP-SGD are together: there was no more noise than that.

    Whatever the batches and their gradients, a step's sum w is something that its noise does not depend on, and the
    noise: |w|^2/(sigma c)^2 is at least chi-squared with as many degrees of freedom as w has numbers (noncentral and,
    given the steps before, stochastically larger), and so is the sum over the steps. Too small a sum refutes the noise.
    Numbers that are rounded too coarsely are left out, see `leakbound.dpsgd.observer`.

    >>> round(StepNoise(square=2500.0, n_degrees=10_000.0).most(1e-5), 3)  # of the claimed noise
    0.515
    """

    square: float
    n_degrees: float
    n_coarse: float = 0.0  # numbers left out: parameters rounded too coarsely to show the noise

    @classmethod
    def of(cls, diagnostics: StepDiagnostics) -> StepNoise | None:
        """Of all models; None where no steps were seen."""
        if diagnostics.noise is None:
            return None
        square, n_degrees, n_coarse = diagnostics.noise.sum(axis=0)
        return cls(float(square), float(n_degrees), float(n_coarse))

    @property
    def testable(self) -> bool:
        """Whether enough is left to say something of the noise."""
        return self.n_degrees > 0 and (self.n_coarse == 0 or self.n_degrees >= LEAST_DEGREES)

    @property
    def note(self) -> str:
        """What a reader should know of the numbers that were left out; empty if none was."""
        if not self.n_coarse:
            return ""
        n_all = self.n_degrees + self.n_coarse
        cause = (
            f"{self.n_coarse:,.0f} of {n_all:,.0f} numbers in the steps are rounded too coarsely to show the claimed "
            "noise (the learning rate is small compared with the spacing of the parameters' floating-point numbers)"
        )
        if self.testable:
            return f"{cause}: they are left out of the test for too little noise"
        return f"the test for too little noise was not made: {cause}"

    def p_value(self) -> float:
        """Of the claimed noise."""
        return float(gammainc(self.n_degrees / 2, self.square / 2))

    def most(self, level: float) -> float:
        """Compute the largest noise that is not rejected, in units of the claimed one."""
        return math.sqrt(self.square / 2 / float(gammaincinv(self.n_degrees / 2, level)))


@dataclass(frozen=True)
class NoiseTest:
    """A test of the steps, over all models."""

    log_p: float
    reason: Term
    narrow: bool = True


def noise_tests(
    diagnostics: StepDiagnostics, signals: Signals, dpsgd: DpSgd, tensors: Sequence[str], level: float
) -> list[NoiseTest]:
    """Test the noise of each parameter tensor, whether it is new, the batches, and what one record adds to a step."""
    tests, of_all = [], 1.0
    if diagnostics.tensors is not None:
        numbers = diagnostics.tensors.sum(axis=0).reshape(-1, 4)
        of_all = math.sqrt(float(numbers[:, 0].sum()) / max(float(numbers[:, 1].sum()), 1.0))
        tests.append(_of_tensors(numbers, dpsgd, tensors, level, of_all))
    # the first number of the others says how much was seen: a model of which it is 0 tests nothing
    fresh = _with_numbers(diagnostics.fresh)
    if fresh is not None:
        tests.append(_of_new_noise(fresh[:, 1:].reshape(len(fresh), len(FAMILIES), -1), dpsgd, level, of_all))
    batches = _with_numbers(diagnostics.batches)
    if batches is not None:
        tests += _of_batches(batches, dpsgd)
    if "step_in" in signals.arrays and dpsgd.batches == "poisson":
        tests += _of_epochs(signals, dpsgd)
    records = _with_numbers(diagnostics.records)
    if records is not None:
        tests.append(_of_records(records, tensors))
    return tests


def _with_numbers(found: Float[Array, "M P"] | None) -> Float[Array, "m P"] | None:
    """Select the models of which something was seen; None if there are none."""
    if found is None or not (found[:, 0] > 0).any():
        return None
    return found[found[:, 0] > 0]


def record_notes(diagnostics: StepDiagnostics) -> list[str]:
    """Say in one line each what could not be tested of what a record adds to a step."""
    if diagnostics.records is None:
        return []
    # of several models the one of which least is known decides
    n_steps, length, is_known, in_parameters = diagnostics.records.min(axis=0)[:_HEAD]
    if not n_steps:
        return [
            "what one record adds to a step was not tested, nor whether all layers are clipped: the training could not "
            "be run on copies of one record"
        ]
    notes = []
    if length < _LONG_ENOUGH:
        notes.append(
            f"what one record adds to a step was tested with gradients of {length:.2g} clipping norms: clipping at a "
            "norm that is larger than that, or no clipping, is not seen"
        )
    if not is_known:
        notes.append(
            "what one record adds to a step was tested without knowing the batches: that each layer is clipped by "
            "itself is hardly seen; tell them by follow(optimizer, normaliser, batch=...)"
        )
    if not in_parameters:
        notes.append(
            "the noisy gradients are read where the optimizer takes them (it is not plain gradient descent): that "
            "nothing else changes the parameters is not tested"
        )
    return notes


def _of_tensors(
    numbers: Float[Array, "K 4"], dpsgd: DpSgd, names: Sequence[str], level: float, of_all: float
) -> NoiseTest:
    """Test the sums of squares of each tensor, and of its changes from step to step: two tests a tensor."""
    log_p, most = [], []
    for square, n_degrees, change, n_changes in numbers:
        pairs = [(change, n_changes), (square, n_degrees)]
        by_pair = [log_chi_squared(total, n) if n else 0.0 for total, n in pairs]
        best = int(np.argmin(by_pair))
        log_p.append(by_pair[best])
        most.append(math.sqrt(pairs[best][0] / pairs[best][1]) if pairs[best][1] else math.inf)
    corrected = np.array(log_p) + math.log(2 * len(log_p))
    refused = corrected < math.log(level)
    # of several at the smallest p-value that is told apart: the one with the least noise
    worst = min(range(len(log_p)), key=lambda tensor: (log_p[tensor], most[tensor]))
    name = names[worst] if len(names) == len(log_p) else f"tensor {worst + 1}"
    reason = Term(
        "too_little_noise_in_tensor",
        tensor=name,
        seen=float(dpsgd.noise_multiplier * most[worst]),
        claimed=dpsgd.noise_multiplier,
        n_refused=int(refused.sum()),
        n_tensors=len(log_p),
    )
    return NoiseTest(min(0.0, float(corrected[worst])), reason, narrow=bool(most[worst] < _MUCH_LESS * of_all))


def _of_new_noise(found: Float[Array, "M F 4"], dpsgd: DpSgd, level: float, of_all: float) -> NoiseTest:
    """Take the smallest p-value of all models and families; of several that are refused, show the least noise."""
    n_models, n_families, _ = found.shape
    correction = math.log(n_models * n_families)
    log_p, left = found[:, :, 0], found[:, :, 3]
    is_shown = log_p <= max(log_p.min(), math.log(level) - correction)
    model, family = np.unravel_index(np.where(is_shown, left, np.inf).argmin(), left.shape)
    worst = Residual(
        float(log_p.min()), int(found[model, family, 1]), int(found[model, family, 2]), left[model, family]
    )
    reason = Term(
        _WORDS[FAMILIES[family]],
        first=worst.first,
        last=worst.last,
        left=dpsgd.noise_multiplier * worst.left,
        claimed=dpsgd.noise_multiplier,
    )
    if FAMILIES[family] == "cancelled" and worst.first == worst.last:
        reason = Term(
            "noise_missing_in_step", step=worst.first, left=reason.values["left"], claimed=dpsgd.noise_multiplier
        )
    narrow = bool(worst.left < _MUCH_LESS * of_all)  # less noise everywhere leaves less of each step too
    return NoiseTest(min(0.0, worst.log_p + correction), reason, narrow)


def _of_epochs(signals: Signals, dpsgd: DpSgd) -> list[NoiseTest]:
    """Count in how many epochs each member is in exactly one batch: in all of them, if the records are shuffled.

    An epoch is 1/q steps. By Poisson sampling the number of its batches with a record is binomial, and independent
    over records and epochs.
    """
    candidates = {max(2, math.floor(1 / dpsgd.sample_rate)), max(2, math.ceil(1 / dpsgd.sample_rate))}
    lengths = sorted(length for length in candidates if length <= dpsgd.steps)
    if not lengths:  # no whole epoch
        return []
    log_p = []
    for length in lengths:
        n_epochs = dpsgd.steps // length
        n_once = n_cells = 0
        for block in signals.blocks():
            in_batch = signals.targets("step_in", block) > 0
            member = signals.game.at_targets(signals.game.member, block)
            chosen = in_batch[member][:, : n_epochs * length].reshape(-1, n_epochs, length)
            n_once += int((chosen.sum(axis=2) == 1).sum())
            n_cells += chosen.shape[0] * n_epochs
        once = length * dpsgd.sample_rate * (1 - dpsgd.sample_rate) ** (length - 1)
        log_p.append(float(stats.binom.logsf(n_once - 1, n_cells, once)) if n_cells else 0.0)
    least = max(LEAST_LOG, min(log_p))
    reason = Term("batches_shuffled", n_steps=lengths[int(np.argmin(log_p))])
    return [NoiseTest(min(0.0, least + math.log(len(lengths))), reason)]


def _of_records(found: Float[Array, "M P"], names: Sequence[str]) -> NoiseTest:
    """Take the smallest p-value of all models and directions; the direction along which a record adds most is named."""
    by_direction = found[:, _HEAD:].reshape(len(found), -1, 2)
    log_p = by_direction[:, :, 0]
    model = int(log_p.min(axis=1).argmin())
    added = by_direction[model, :, 1]
    direction = int(added.argmax())
    of_tensors = added[3:]
    tensor = int(of_tensors.argmax())
    if direction in (1, 2) and added[direction] > _APART * added[0] and of_tensors[tensor] < 2 - 1 / _APART:
        parts = "parameter tensors" if direction == 1 else "layers"
        reason = Term("parts_clipped_apart", added=float(added[direction]), parts=parts)
    else:
        name = names[tensor] if len(names) >= len(of_tensors) else f"tensor {tensor + 1}"
        reason = Term(
            "record_adds_more",
            added=float(added.max()),
            in_tensor=float(of_tensors[tensor]),
            tensor=name,
        )
    return NoiseTest(min(0.0, float(log_p.min()) + math.log(len(found))), reason, narrow=False)


def _of_batches(found: Float[Array, "M 5"], dpsgd: DpSgd) -> list[NoiseTest]:
    """Test rate and order, each over all models."""
    by_rate, by_order = found[found[:, 1].argmin()], found[found[:, 3].argmin()]
    correction = math.log(len(found))
    return [
        NoiseTest(
            min(0.0, float(by_rate[1]) + correction),
            Term("batches_too_large", seen=float(by_rate[2]), claimed=dpsgd.sample_rate),
            narrow=False,  # where the batches are told, the steps say which of the two it is
        ),
        NoiseTest(min(0.0, float(by_order[3]) + correction), Term("batches_in_order", lag=int(by_order[4]))),
    ]
