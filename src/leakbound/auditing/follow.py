"""The steps of a training by DP-SGD that leakbound does not run, as plain arrays, compared with its accountant.

Axes: C canaries, S steps.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike

from leakbound.attacks import ATTACKS
from leakbound.auditing.observed import ObservedRelease
from leakbound.auditing.private_training import PrivateTraining
from leakbound.auditing.report import AuditRun, reported
from leakbound.core.types import Signals
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.diagnostics import StepDiagnostics
from leakbound.dpsgd.observed_batches import batches
from leakbound.dpsgd.planted import PlantedCanaries, read_game
from leakbound.dpsgd.promise import DEFAULT_DELTA, AccountantClaim
from leakbound.dpsgd.residual_noise import FAMILIES, MOST_COORDINATES, residuals
from leakbound.plans.audits import AuditPlan
from leakbound.plans.games import Canaries
from leakbound.reports import Report

Array = np.ndarray


class follow:  # noqa: N801
    """Follow the steps of a training by DP-SGD that leakbound does not run, at its Dirac canaries.

    Parameters
    ----------
    planted : PlantedCanaries or path
        What `leakbound.canaries` returned, or the file that it wrote.
    dpsgd : DpSgd or mapping
        The claim: noise_multiplier, clip, sample_rate, steps.
    name : str
        What the report calls the training.

    Notes
    -----
    The sums at the canaries' own parameters are all that is seen. They show how much noise there is, whether it is new
    in every step, whether the gradients of canaries are clipped at the norm that is claimed, and the batches, as in
    `leakbound.audit` for a user-supplied loop. Whether other parameters are clipped and have noise is **not** seen.

    Examples
    --------
    A loop that clips at 3 times the norm that it claims:

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import leakbound as ls
    >>> file, rng = Path(tempfile.mkdtemp()) / "canaries.json", np.random.default_rng(0)
    >>> planted = ls.canaries(np.zeros((50, 3)), np.arange(50) % 2, 200, file=file, seed=0)
    >>> steps = ls.follow(file, {"noise_multiplier": 1.0, "clip": 1.0, "sample_rate": 0.1, "steps": 40})
    >>> for _ in range(40):
    ...     in_batch = rng.random(len(planted.x)) < 0.1
    ...     canary_in_batch = np.bincount(planted.number[in_batch & (planted.number >= 0)], minlength=200) > 0
    ...     steps.step(3.0 * canary_in_batch + rng.normal(size=200), canary_in_batch)
    >>> report = steps.report()
    >>> report.curves[-1].verdict.word, report.curves[-1].verdict.reason.id
    ('refuted', 'steps_reveal_more')
    """

    def __init__(
        self,
        planted: PlantedCanaries | str | os.PathLike[str],
        dpsgd: DpSgd | dict[str, Any],
        *,
        name: str = "training",
    ) -> None:
        self._game = planted.game if isinstance(planted, PlantedCanaries) else read_game(planted)
        self._dpsgd = dpsgd if isinstance(dpsgd, DpSgd) else DpSgd.of(dpsgd)
        if self._dpsgd.noise_multiplier == 0:
            raise ValueError("noise_multiplier must be > 0; without noise DP-SGD promises nothing")
        self._name = name
        self._sums: list[Float[Array, " C"]] = []
        self._in_batch: list[Bool[Array, " C"]] = []

    def step(self, sums: ArrayLike, in_batch: ArrayLike | None = None) -> None:
        """Add a step.

        Parameters
        ----------
        sums : array-like of shape (C,)
            The noisy sum of the batch's clipped gradients at the parameters of the canaries, before it is divided by
            anything.
        in_batch : bool array-like of shape (C,), optional
            Which canaries are in the batch. If all steps tell it, the report also says what a single step reveals.

        Raises
        ------
        ValueError
            For other shapes, numbers that are not finite, a canary in a batch that is not in the data, or more steps
            than are claimed.
        """
        values, n = np.asarray(sums, dtype=float), self._game.n_target_points
        if values.shape != (n,) or not np.isfinite(values).all():
            raise ValueError(f"sums must be {n:,} finite numbers, one for each canary, got shape {values.shape}")
        if len(self._sums) == self._dpsgd.steps:
            raise ValueError(f"{self._dpsgd.steps:,} steps are claimed, and here is another one")
        if in_batch is not None:
            inside = np.asarray(in_batch)
            if inside.shape != (n,) or inside.dtype != bool:
                raise ValueError(f"in_batch must be {n:,} truth values, got {inside.dtype} of shape {inside.shape}")
            if (inside & ~self._game.member[0]).any():
                raise ValueError("in_batch names a canary that is not in the data")
            self._in_batch.append(inside)
        self._sums.append(values)

    def signals(self) -> Signals:
        """Return what was seen, as signals of one model.

        Raises
        ------
        ValueError
            If not all claimed steps were added.
        """
        rows, sigma = self._rows(), self._dpsgd.noise_multiplier
        arrays = {"step_dot": rows.T[None] / sigma}
        arrays["step_norm"] = np.full_like(arrays["step_dot"], 1 / sigma**2)
        if len(self._in_batch) == len(self._sums):
            arrays["step_in"] = np.stack(self._in_batch, axis=1)[None].astype(float)
        return Signals(self._game, None, arrays)

    def diagnostics(self) -> StepDiagnostics:
        """Return what the steps show of the training itself: its noise and its batches.

        Raises
        ------
        ValueError
            If not all claimed steps were added.
        """
        rows, member = self._rows(), self._game.member[0]
        outside, inside = rows[:, ~member][:, :MOST_COORDINATES], rows[:, member]
        found = residuals(outside)
        fresh = [outside.shape[1], *(x for family in FAMILIES for x in found[family])]
        return StepDiagnostics(
            noise=np.array([[np.square(rows).sum(), rows.size, 0.0]]),
            fresh=np.array([fresh], dtype=float),
            batches=np.array([batches(inside, outside, self._dpsgd.sample_rate, self._dpsgd.noise_multiplier)], float),
        )

    def _rows(self) -> Float[Array, "S C"]:
        """Return the sums of all steps, in deviations of the claimed noise."""
        if len(self._sums) != self._dpsgd.steps:
            raise ValueError(
                f"the training made {len(self._sums):,} steps, and {self._dpsgd.steps:,} are claimed; add all of them, "
                f"or claim steps = {len(self._sums)}"
            )
        return np.stack(self._sums) / (self._dpsgd.noise_multiplier * self._dpsgd.clip)

    def report(self, *, confidence: float = 0.95, title: str = "") -> Report:
        """Compare what was seen with the accountant of the claim.

        Parameters
        ----------
        confidence : float
            Of the intervals.
        title : str
            On the page.

        Returns
        -------
        Report
            With the accountant's curve and its verdict.
        """
        signals, game = self.signals(), self._game
        plan = AuditPlan(game=Canaries(n=game.n_target_points), confidence=confidence, title=title)
        attacks = [ATTACKS["likelihood_ratio"].with_parameters(rate=self._dpsgd.sample_rate)]
        facts = {"description": f"{self._name}, trained outside of leakbound, {self._dpsgd!r}", "steps_by": "elsewhere"}
        observed = ObservedRelease(self._name, signals, None, [], facts, diagnostics=self.diagnostics())
        notes = [
            f"{self._name}: seen at the parameters of the canaries alone: whether other parameters are clipped and "
            "have noise is not tested"
        ]
        training = PrivateTraining(
            AccountantClaim(self._dpsgd, "add_remove", DEFAULT_DELTA),
            tensors=["the parameters added for the canaries"],
            canaries_independent=True,
            own_layers_unseen=True,
        )
        return reported(plan, attacks, AuditRun([observed], {self._name: training}, notes))
