"""Released numbers on a grid, so that the low bits of floating point say nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int, Num
from numpy.typing import ArrayLike

from leakbound.core.checks import non_negative, positive

Array = np.ndarray
_STEPS_A_SCALE = 2.0**10  # rounding adds less than 1e-7 of the variance of the noise
_ARITHMETIC = 2.0**-36  # relative error: n doubles added in blocks of 8,192 err by (528 + n/8192) 2^-53
_LARGEST = 2**53  # whole numbers up to here, and their products with a power of two, are doubles


@final
@dataclass(frozen=True)
class Grid:
    """Multiples of a power of two.

    Proofs about noise speak of real numbers. In floating point ``A(D) + Z`` can be a number that no noise makes
    of ``A(D')``, and then its last bits name the data (Mironov 2012). So the statistic and the continuous noise
    are each rounded to the grid and added as whole multiples of the step, exactly. Because the statistic lies on
    the grid this equals the rounding of the exact sum ``A(D) + Z``: a function of the output that was bounded,
    so every bound stays. What is bounded is the statistic *on the grid*: shifts are measured on `snap` of the
    outputs.

    Every multiple that noise can make of one statistic it can make of its neighbour too, up to the ends of the
    generator's tails: a normal draw beyond 8 standard deviations has a probability of about 1e-15.

    >>> grid = Grid.for_noise(scale=0.036, magnitude=100.0)
    >>> grid.step == 2.0**-15
    True
    >>> grid.release(np.array([41.3]), np.array([0.0171])).tolist() == [round(41.3 * 2**15) / 2**15 + 560 / 2**15]
    True
    """

    step: float | tuple[float, ...]

    def __post_init__(self) -> None:
        for step in self.step if isinstance(self.step, tuple) else (self.step,):
            if math.frexp(positive("step", step))[0] != 0.5:
                raise ValueError(f"step must be a power of two, got {step:g}")

    @classmethod
    def for_noise(cls, scale: ArrayLike, magnitude: ArrayLike, error: float | None = None) -> Grid:
        """Return the coarsest grid with at least 1,024 steps in the scale of the noise."""
        # The magnitude is the largest value that is expected of the statistic, known without a look at the data in use.
        # Its error is 2^-36 of that unless given, above that of sums and means of a billion records.
        if np.ndim(scale) or np.ndim(magnitude):
            pairs = np.broadcast_arrays(scale, magnitude)
            return cls(
                tuple(_step(float(deviation), float(size), error) for deviation, size in zip(*pairs, strict=True))
            )
        return cls(_step(float(np.asarray(scale)), float(np.asarray(magnitude)), error))

    @property
    def steps(self) -> Float[Array, "*d"]:
        """The step, or that of each coordinate."""
        return np.asarray(self.step)

    def round(self, value: ArrayLike) -> Int[Array, "*shape"]:
        """Round to the nearest multiples, as whole numbers of steps; halves go to the even one."""
        return self._in_range(self._steps(value)).astype(np.int64)

    def value(self, multiples: Int[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Convert whole numbers of steps to numbers on the grid, exactly."""
        return np.asarray(self._in_range(multiples).astype(float) * self.steps)

    def snap(self, value: ArrayLike) -> Float[Array, "*shape"]:
        """Round to the nearest numbers on the grid; NaN (a failed fit) for a value not finite or beyond 2^53 steps."""
        steps = self._steps(value)
        is_in_range = steps.size == 0 or (steps.min() >= -_LARGEST and steps.max() <= _LARGEST)  # neither holds of NaN
        if not is_in_range:
            steps[~(np.abs(steps) <= _LARGEST)] = np.nan
        steps *= self.steps
        return steps

    def release(self, statistic: ArrayLike, noise: ArrayLike) -> Float[Array, "*shape"]:
        """Add the two, each rounded to the grid first, as whole numbers."""
        return self.value(np.asarray(self.round(statistic) + self.round(noise)))

    def _steps(self, value: ArrayLike) -> Float[Array, "*shape"]:
        """Compute the nearest whole numbers of steps, in a new array; exactly, since the step is a power of two."""
        with np.errstate(over="ignore"):
            steps = np.asarray(np.asarray(value, dtype=float) / self.steps)
        return np.rint(steps, out=steps)

    def _in_range(self, steps: Num[Array, "*shape"]) -> Num[Array, "*shape"]:
        """Check that doubles hold the numbers of steps exactly."""
        if not (np.abs(steps) <= _LARGEST).all():
            raise ValueError(
                f"a value is not finite, or beyond 2^53 steps of {self.steps.max():g}: no exact sum on this grid"
            )
        return steps


def _step(scale: float, magnitude: float, error: float | None) -> float:
    """Compute the step of a coordinate."""
    error = non_negative("magnitude", magnitude) * _ARITHMETIC if error is None else non_negative("error", error)
    finest = positive("scale", scale) / _STEPS_A_SCALE
    step = 2.0 ** math.floor(math.log2(finest)) if finest > 0 else 0.0
    if not step or step < error:
        raise ValueError(
            f"no grid fits: noise of scale {scale:g} needs steps of at most {finest:g}, "
            f"the arithmetic error of the statistic is {error:g}"
        )
    return step
