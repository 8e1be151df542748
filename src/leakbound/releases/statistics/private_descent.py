"""Differentially private gradient descent with full batches: DP-SGD in which every record is in every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from leakbound.core.checks import count, non_negative, one_of, positive
from leakbound.core.tradeoff import Gaussian

Array = np.ndarray


def clipped_sum(gradients: Float[Array, "n d"], clip: float) -> Float[Array, " d"]:
    """Sum the records' gradients, each scaled down to a norm of at most ``clip``; one that is not finite counts as 0.

    >>> clipped_sum(np.array([[3.0, 4.0], [0.0, 0.5]]), clip=1.0).round(3).tolist()
    [0.6, 1.3]
    """
    gradients = np.where(np.isfinite(gradients).all(axis=1, keepdims=True), gradients, 0.0)
    with np.errstate(over="ignore"):  # a norm beyond floating point: its record counts as 0, too
        norms = np.linalg.norm(gradients, axis=1)
    return (clip / np.maximum(norms, clip)) @ gradients


@dataclass(frozen=True)
class PrivateDescent:
    """Gradient descent on a mean loss, with clipped gradients and Gaussian noise (Abadi et al. 2016, at rate 1).

    In each step ``theta - rate (sum of clipped gradients + clip noise_multiplier N(0, I))/n``. All steps together are
    one Gaussian mechanism: the noise of a step is independent of the steps before, and one record moves each sum by at
    most ``clip``, or by ``2 clip`` where it is replaced.

    The noise comes from the generator that is given, in floating-point numbers: for experiments and audits. For a real
    release use `leakbound.protect`.

    Parameters
    ----------
    n_steps : int
    rate : float
        Step size, > 0.
    clip : float
        Largest norm of a record's gradient, > 0.
    noise_multiplier : float
        Standard deviation of the noise on the sum over ``clip``, >= 0.

    Raises
    ------
    ValueError
        For a value out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.releases import PrivateDescent
    >>> x = np.random.default_rng(0).normal(size=(1000, 2)) + [1.0, 2.0]
    >>> descent = PrivateDescent(n_steps=100, rate=0.2, clip=5.0, noise_multiplier=20.0)
    >>> mean = descent.path(lambda theta: theta - x, np.zeros(2), np.random.default_rng(1))[-1]
    >>> bool(np.abs(mean - x.mean(axis=0)).max() < 0.1), descent.ceiling("replace_one").mu
    (True, 1.0)
    """

    n_steps: int
    rate: float
    clip: float
    noise_multiplier: float

    def __post_init__(self) -> None:
        checked = {
            "n_steps": count("n_steps", self.n_steps),
            "rate": positive("rate", self.rate),
            "clip": positive("clip", self.clip),
            "noise_multiplier": non_negative("noise_multiplier", self.noise_multiplier),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def ceiling(self, adjacency: Literal["add_remove", "replace_one"] = "replace_one") -> Gaussian:
        """Bound the trade-off of any attacker who sees all steps.

        Parameters
        ----------
        adjacency : {"add_remove", "replace_one"}
            Which data sets are neighbours; n is public, and the same.

        Returns
        -------
        Gaussian
            With ``mu = s sqrt(n_steps)/noise_multiplier``, s = 1 or 2 (Dong et al. 2022, corollary 3.3).
        """
        one_of("adjacency", adjacency, ("add_remove", "replace_one"))
        if self.noise_multiplier == 0:
            return Gaussian(np.inf)
        return Gaussian((1 if adjacency == "add_remove" else 2) * self.n_steps**0.5 / self.noise_multiplier)

    def path(
        self,
        gradients: Callable[[Float[Array, " d"]], Float[Array, "n d"]],
        start: Float[Array, " d"],
        rng: np.random.Generator,
    ) -> Float[Array, "T d"]:
        """Descend, and return all parameters on the way.

        Parameters
        ----------
        gradients : callable
            From the parameters to the gradient of each record's loss.
        start : array of shape (d,)
            Public: it may not depend on the records.
        rng : Generator

        Returns
        -------
        array of shape (n_steps + 1, d)
            The first row is the start, the last one the result.
        """
        theta = np.asarray(start, dtype=float)
        n = len(gradients(theta))
        return self.path_of_sums(lambda at, clip: clipped_sum(gradients(at), clip), n, theta, rng)

    def path_of_sums(
        self,
        sums: Callable[[Float[Array, " d"], float], Float[Array, " d"]],
        n: int,
        start: Float[Array, " d"],
        rng: np.random.Generator,
    ) -> Float[Array, "T d"]:
        """Descend where the sum of clipped gradients is computed without each of them.

        Parameters
        ----------
        sums : callable
            From the parameters and the clip to the sum of all clipped gradients, as `clipped_sum`.
        n : int
            Number of records, public.
        start : array of shape (d,)
        rng : Generator

        Returns
        -------
        array of shape (n_steps + 1, d)
        """
        path = [np.asarray(start, dtype=float)]
        for _ in range(self.n_steps):
            noise = rng.normal(scale=self.clip * self.noise_multiplier, size=path[0].shape)
            path.append(path[-1] - self.rate * (sums(path[-1], self.clip) + noise) / n)
        return np.array(path)
