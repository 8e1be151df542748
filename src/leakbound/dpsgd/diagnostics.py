"""What the steps of trainings by DP-SGD show of themselves: numbers of each training, not of its points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from leakbound.core.signals import DIAGNOSTICS

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class StepDiagnostics:
    """What the steps of M trainings show; None where it was not observed.

    w is the released sum of a batch less what is known of it, sigma c the deviation of its claimed noise.
    """

    # the sum over the steps of |w|^2/(sigma c)^2; how many numbers these w are: its mean if they were the claimed noise
    # alone; and how many more were left out, because the parameters are rounded too coarsely
    noise: Float[Array, "M 3"] | None = None
    # four numbers of each parameter tensor: |w|^2/(sigma c)^2 summed over the steps, how many numbers these are, and
    # the same two of the changes of w from one step to the next
    tensors: Float[Array, "M T"] | None = None
    # whether the noise of every step is new: how many coordinates were compared, and for each family of mistakes the
    # log of the p-value, which two steps, and what is left of the claimed noise
    fresh: Float[Array, "M F"] | None = None
    # whether the batches are drawn as claimed: how many canaries show it, the log of the p-value of the sampling rate,
    # the rate, the log of the p-value of the order, and after how many steps it comes again
    batches: Float[Array, "M 5"] | None = None
    # what one record adds to a step, from a short training on copies of one record: how many steps, the length of its
    # gradient in clipping norms, whether the sizes of the batches are known, and whether the steps are seen in the
    # parameters; then for its gradient, the parts of it made equally long by tensors and by layers, and the part in
    # each parameter tensor: the log of the p-value, and how many clipping norms it adds
    records: Float[Array, "M R"] | None = None

    @classmethod
    def of(cls, observed: Mapping[str, Array]) -> StepDiagnostics:
        """Take them from what was observed of the trainings, where they have the names of ``DIAGNOSTICS``."""
        arrays: dict[str, Array] = {}
        for name in DIAGNOSTICS:
            if name in observed:
                if not np.isfinite(observed[name]).all():
                    raise ValueError(f"{name} has NaN or infinite values")
                arrays[name.removeprefix("step_")] = observed[name].astype(float)
        return cls(**arrays)
