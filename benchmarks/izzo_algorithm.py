"""Algorithm 1 of Izzo et al. (2022) as a whole: subsets, moments, noise, release; as printed, and made sound.

The printed algorithm takes the spread of the outputs from halves of the data in use and multiplies the noise by it.
Who is in use then sets the size of the noise, which can be seen; no promise holds. Sound is the same noise with a
spread that does not depend on who is in use: from subsets of all records, which the attacker may know.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from leakbound.core import seeds
from leakbound.core.checks import count, numbers, one_of, positive
from leakbound.core.findings import Status
from leakbound.core.grid import Grid
from leakbound.core.types import Points
from leakbound.noise import NormNoise, izzo
from leakbound.protection.setting.mechanism import Mechanism
from leakbound.releases.statistics.statistic import Statistic
from leakbound.runtime.observe import DataSets, Execution

Array = np.ndarray
_FOR_SIZE = 8  # draws that show how large the outputs are, where sigma is known


class CertificateVoid(UserWarning):
    """A release whose noise was calibrated on the data in use."""


@dataclass(frozen=True, eq=False)
class Algorithm1:
    """Which of the two algorithms, and its parameters.

    Source: izzo2022, algorithm 1.
    """

    variant: Literal["sound", "printed"] = "sound"
    moment: float = 2.0
    n_subsets: int = 200
    # upper bounds of these moments over draws of D, known beforehand: then nothing is estimated (variant "sound")
    sigma: ArrayLike | None = None
    k: int | None = None

    def __post_init__(self) -> None:
        one_of("variant", self.variant, ("sound", "printed"))
        count("n_subsets", self.n_subsets, least=2)
        if self.variant == "printed" and (self.sigma is not None or self.k is not None):
            name = "k" if self.sigma is None else "sigma"
            raise ValueError(f"{name} is for the variant 'sound'; 'printed' uses all points and estimates sigma")


@dataclass(frozen=True, eq=False)
class Wrapped:
    """A statistic of the data in use with the noise of Algorithm 1."""

    value: Float[Array, " d"]
    noise: NormNoise  # in units of sigma: each coordinate of a draw was multiplied by its sigma
    sigma: Float[Array, " d"]  # as printed it depends on who is in use: not to be published
    status: Status
    variant: Literal["sound", "printed"]
    void: str = ""
    seeded: bool = False  # draw and noise came from a given seed: not to be published

    @property
    def rms(self) -> Float[Array, " d"]:
        """Standard deviation of the noise in each coordinate."""
        return self.sigma * self.noise.rms(len(self.sigma))


def wrap(
    statistic: Statistic,
    points: Points,
    eta: float,
    algorithm: Algorithm1 = Algorithm1(),
    seed: int | None = None,
    execution: Execution = Execution(),
) -> Wrapped:
    """Release a statistic with noise by the moments of its outputs, so that no attacker gains more than eta.

    "sound": D is a uniform k-subset of the points; sigma comes from B other subsets of all points, which say nothing
    of D, or is known beforehand; the radius follows the Gamma distribution of theorem 7. Statistic and noise are added
    on a grid. Any k is covered: with the norm of the noise ``E||theta - E theta||^M <= 1``, and independent D, D' give
    ``eta <= tanh(1/b)/2`` (see ``moment``), which is below eta at their b.

    "printed": the points are D_train, all in use (the split of line 1 is the caller's); sigma comes from B random
    halves of D_train (lines 2 to 9), the radius from the Laplace distribution. A coordinate with ``sigma_j = 0`` gets
    no noise, the limit of small sigma_j. It warns: for reproduction only.
    Source: izzo2022, algorithm 1.

    >>> from leakbound.releases.statistics.statistic import named
    >>> points = Points(np.arange(100.0)[:, None])
    >>> wrapped = wrap(named("mean"), points, eta=0.1, algorithm=Algorithm1(sigma=[3.0]), seed=0)
    >>> wrapped.status, wrapped.rms.round().tolist()
    ('certified', [16099.0])
    """
    points_in_draw = len(points) // 2 if algorithm.variant == "printed" else algorithm.k
    # without a seed, draw and noise come from the system's entropy; the subsets behind sigma have seed 0 for the store
    mechanism = Mechanism.of(statistic, points, points_in_draw, 0 if seed is None else seed, execution)
    return (_printed if algorithm.variant == "printed" else _sound)(mechanism, eta, algorithm, seed)


def _printed(mechanism: Mechanism, eta: float, algorithm: Algorithm1, seed: int | None) -> Wrapped:
    """Carry out lines 2 to 14 of the algorithm; the last of the data sets is D_train."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the literal radius: the line below says more
        unit = izzo(np.ones(mechanism.d), eta, algorithm.moment, "laplace-literal")
    void = "the noise was calibrated on the data in use, so its size reveals members"
    warnings.warn(f"the certificate is void, for reproduction only: {void}", CertificateVoid, stacklevel=3)
    rng, halves = _generator(seed), _subsets(mechanism, algorithm.n_subsets, seed)
    all_points = np.ones((1, mechanism.n), dtype=bool)
    sets = DataSets(np.vstack([halves.member, all_points]), np.append(halves.fit_seeds, rng.integers(2**32)))
    outputs = _outputs(mechanism, sets)
    sigma = _moments(outputs[:-1], algorithm.moment)
    value = outputs[-1] + sigma * unit.sample(np.zeros(mechanism.d), rng)
    return Wrapped(value, unit, sigma, "estimated", "printed", void, seed is not None)


def _sound(mechanism: Mechanism, eta: float, algorithm: Algorithm1, seed: int | None) -> Wrapped:
    """Take a sigma that does not depend on D, which is drawn from a stream of its own."""
    known = algorithm.sigma is not None
    outputs = _outputs(mechanism, _subsets(mechanism, _FOR_SIZE if known else algorithm.n_subsets, seed))
    sigma = numbers("sigma", algorithm.sigma) if algorithm.sigma is not None else _moments(outputs, algorithm.moment)
    if sigma.shape != (mechanism.d,):
        raise ValueError(f"sigma must have shape ({mechanism.d},), a number for each output, got {sigma.shape}")
    if not known and not sigma.all():
        label = mechanism.labels[int(np.argmin(sigma))]
        raise ValueError(f"{label} is the same in all {algorithm.n_subsets:,} subsets: leave it out, or give sigma")
    for moment in sigma:
        positive("sigma", moment)
    # Noise of unit moments, multiplied by sigma: so its grid depends on sigma and on the size of the outputs alone.
    unit = izzo(np.ones(mechanism.d), eta, algorithm.moment)
    size = outputs if mechanism.features is None else mechanism.k * mechanism.features  # a mean is released as a sum
    least = mechanism.divisor * float(sigma.min()) * unit.rms(mechanism.d)
    grid, rng = Grid.for_noise(least, float(np.abs(size).max())), _generator(seed)
    member = seeds.subsets(mechanism.n, mechanism.k, 1, rng)[0]
    private = replace(mechanism, execution=Execution(n_jobs=1))  # no store keeps the statistic of D
    value = private.release(member, sigma * unit.sample(np.zeros(mechanism.d), rng), grid, rng)
    if not np.isfinite(value).all():
        raise ValueError(f"{mechanism.statistic.name} failed on the data in use; nothing was released")
    return Wrapped(value, unit, sigma, "certified" if known else "estimated", "sound", seeded=seed is not None)


def _generator(seed: int | None) -> np.random.Generator:
    """Return the generator of draw and noise."""
    return seeds.entropy() if seed is None else seeds.stream(seed, "wrap", "release")


def _subsets(mechanism: Mechanism, n_subsets: int, seed: int | None) -> DataSets:
    """Draw k-subsets whose outputs show the spread."""
    return mechanism.draws(n_subsets, 0 if seed is None else seed, "wrap")


def _outputs(mechanism: Mechanism, sets: DataSets) -> Float[Array, "m d"]:
    """Compute the statistic of each data set; refuse one that fails."""
    outputs = mechanism.outputs(sets)
    n_failed = int((~np.isfinite(outputs).all(axis=1)).sum())
    if n_failed:
        raise ValueError(f"{mechanism.statistic.name} failed on {n_failed:,} of {sets.n_fits:,} data sets: no moments")
    return outputs


def _moments(outputs: Float[Array, "m d"], order: float) -> Float[Array, " d"]:
    """Compute ``(mean |theta_j - mean theta_j|^M)^(1/M)``, divisor B as printed; exactly 0 where all are the same."""
    from_first = outputs - outputs[0]
    size = np.abs(from_first - from_first.mean(axis=0))
    largest = size.max(axis=0)
    relative = size / np.where(largest > 0, largest, 1)  # so that no power overflows
    return largest * (relative**order).mean(axis=0) ** (1 / order)
