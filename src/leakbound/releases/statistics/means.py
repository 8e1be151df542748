"""Releases of a mean: of a table's member rows (pool games), or of fresh rows from a distribution (fresh games).

The signals are step_dot, step_norm (one step) and dot, for an attacker who knows the mean and the covariance of one
record. Axes: m rows of a game (releases), N points, d columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int, Num
from numpy.typing import ArrayLike

from leakbound.core.checks import count, non_negative, one_of, positive, probability
from leakbound.core.covariance import ESTIMATES, Covariance, Diagonal, as_covariance, data_rows
from leakbound.core.covariance.matrices import finite_array
from leakbound.core.seeds import stream
from leakbound.core.types import Points
from leakbound.releases.specs import identity

Array = np.ndarray


@dataclass(frozen=True, eq=False, init=False)
class Knowledge:
    """What an attacker knows of one record: the mean and the covariance of its distribution.

    Source: azize2024, Section 3.

    Parameters
    ----------
    mean : array of shape (d,)
    covariance : Full, Diagonal, LowRank, or array of shape (d,) or (d, d)

    Examples
    --------
    >>> from leakbound.releases.statistics.means import Knowledge
    >>> Knowledge.from_rows([[0.0, 0.0], [2.0, 4.0]]).covariance
    Diagonal(variance=array([2., 8.]))
    """

    mean: Float[Array, " d"]
    covariance: Covariance

    def __init__(self, mean: ArrayLike, covariance: Covariance | ArrayLike) -> None:
        mean, covariance = finite_array("mean", mean), as_covariance(covariance)
        if mean.ndim != 1:
            raise ValueError(f"mean has shape {mean.shape}; give one number a column, (d,)")
        covariance.quad(mean)  # the shapes fit
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "covariance", covariance)

    @classmethod
    def from_rows(cls, X: ArrayLike, covariance: Literal["diagonal", "full", "ledoit_wolf"] = "diagonal") -> Knowledge:
        """Estimate mean and covariance from reference records, as the population that a game sets aside.

        Parameters
        ----------
        X : array of shape (n0, d)
        covariance : {"diagonal", "full", "ledoit_wolf"}

        Returns
        -------
        Knowledge

        Raises
        ------
        ValueError
            If the rows do not suffice for the covariance, or a column is constant.
        """
        one_of("covariance", covariance, ESTIMATES)
        return cls(data_rows(X).mean(axis=0), ESTIMATES[covariance](X))


@dataclass(frozen=True, eq=False, init=False)
class Bernoulli:
    """Independent columns of 0 and 1, as the distribution of fresh records.

    Parameters
    ----------
    p : array of shape (d,)
        Probabilities of 1, in (0, 1).

    Examples
    --------
    >>> from leakbound.releases.statistics.means import Bernoulli
    >>> Bernoulli([0.5, 0.2]).knowledge.covariance
    Diagonal(variance=array([0.25, 0.16]))
    """

    p: Float[Array, " d"]

    def __init__(self, p: ArrayLike) -> None:
        p = finite_array("p", p)
        if p.ndim != 1 or not p.size or not ((p > 0) & (p < 1)).all():
            raise ValueError("p must be one probability > 0 and < 1 a column, (d,)")
        object.__setattr__(self, "p", p)

    @property
    def knowledge(self) -> Knowledge:
        """Mean and covariance of a record."""
        return Knowledge(self.p, Diagonal(self.p * (1 - self.p)))

    def deviation(self, n: int, rng: np.random.Generator) -> Float[Array, " d"]:
        """Draw the sum of n records, less its mean, exactly: by binomial counts, not n times d bits."""
        rare, sign = self._rarer
        return sign * (rng.binomial(n, rare) - n * rare)

    @cached_property
    def _rarer(self) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
        """Probability of the rarer of 0 and 1, and 1 if that is 1, else -1: numpy draws its counts a fifth faster."""
        return np.minimum(self.p, 1 - self.p), np.where(self.p <= 0.5, 1.0, -1.0)


@dataclass(frozen=True, eq=False)
class Normal:
    """N(mu, C), as the distribution of fresh records.

    Source: azize2024, eq. 110 and 111.

    Parameters
    ----------
    knowledge : Knowledge
        mu and C.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.releases.statistics.means import Knowledge, Normal
    >>> Normal(Knowledge([0.0, 1.0], [1.0, 4.0])).deviation(9, np.random.default_rng(0)).shape
    (2,)
    """

    knowledge: Knowledge

    def deviation(self, n: int, rng: np.random.Generator) -> Float[Array, " d"]:
        """Draw the sum of n records, less its mean: one vector of N(0, n C)."""
        return np.sqrt(n) * self.knowledge.covariance.sample(1, rng)[0]


@dataclass(frozen=True, eq=False)
class Mean:
    """The mean of the member rows of a table: the others of a target come from the pool.

    Source: azize2024, Section 4.2.

    Parameters
    ----------
    knowledge : Knowledge
        Of the attacker: exact, or ``Knowledge.from_rows`` of records that are in no release.
    noise : float
        Standard deviation of the Gaussian noise that is added to each column of the mean.
    rate : float
        k/n in (0, 1]: k of the n member rows, drawn without replacement, are averaged.
    pool : int, optional
        N, if ``knowledge`` is that of a finite pool of N records from which the others are drawn: the variance of a
        mean of k of them is C/k (1 - k/N).
    name : str
        The name in the report.
    chunk : int
        Releases that are computed and stored together.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.games import half_split
    >>> from leakbound.releases.statistics.means import Knowledge, Mean
    >>> from leakbound.core.types import Points
    >>> x, game = np.random.default_rng(0).normal(size=(50, 3)), half_split(50, 4)
    >>> release = Mean(Knowledge(np.zeros(3), np.ones(3)))
    >>> release.observe(Points(x), game.member, np.arange(4), ["step_dot"])["step_dot"].shape
    (4, 50, 1)
    """

    knowledge: Knowledge
    noise: float = 0.0
    rate: float = 1.0
    pool: int | None = None
    name: str = "mean"
    chunk: int = 256

    def __post_init__(self) -> None:
        _check(self.noise, self.rate)
        if self.pool is not None:
            count("pool", self.pool, least=2)

    def describe(self) -> Mapping[str, Any]:
        """Return the parameters, arrays by a hash of their content."""
        return _description(self)

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m N ..."]]:
        """Release one mean for each row of ``member`` and compute its signals at every point.

        Raises
        ------
        ValueError
            If the points have other columns than the distribution, or a row has too few members.
        """
        x = _table("x", points.x, self.knowledge)
        rngs = [stream(int(seed), "mean") for seed in seeds]
        n = member.sum(axis=1)
        size = np.rint(self.rate * n).astype(int)
        if (size < 1).any():
            row = int(np.argmin(size))
            raise ValueError(f"row {row} averages {self.rate:g} of {n[row]:,} members: a mean needs at least 1 record")
        averaged = np.array([_averaged(*row) for row in zip(member, n.tolist(), size.tolist(), rngs, strict=True)])
        deviation = averaged.astype(float) @ (x - self.knowledge.mean) / size[:, None]
        deviation += np.array([_noise(self.noise, x.shape[1], rng) for rng in rngs])
        return _Attacker(self.knowledge, self.noise, self.pool).signals(x, deviation, size, want)


@dataclass(frozen=True, eq=False)
class FreshMean:
    """The mean of n records: the member rows, and others that are drawn anew from a distribution for every release.

    A release takes O(d) draws, whatever n is. For games with fresh others, whose columns are the target points alone.
    Source: azize2024, algorithms 1 and 3.

    Parameters
    ----------
    distribution : Bernoulli or Normal
        The distribution of the others.
    n : int
        Number of records in the data, members included.
    noise : float
        Standard deviation of the Gaussian noise that is added to each column of the mean.
    rate : float
        k/n in (0, 1]: k of the n records, drawn without replacement, are averaged; a member is among them with
        probability k/n.
    inserted : array of shape (N, d), optional
        The record that is in the data if a point is a member, if the attacker tests for another record than the true
        one; the points themselves unless given.
    knowledge : Knowledge, optional
        Of the attacker; mean and covariance of `distribution` unless given.
    name : str
        The name in the report.
    chunk : int
        Releases that are computed and stored together.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.core.games import per_datum
    >>> from leakbound.releases.statistics.means import Bernoulli, FreshMean
    >>> from leakbound.core.types import Points
    >>> game = per_datum(1, 0, 8, others="fresh")
    >>> release = FreshMean(Bernoulli([0.3, 0.4]), n=100)
    >>> release.observe(Points(np.ones((1, 2))), game.member, np.arange(8), ["dot"])["dot"].shape
    (8, 1)
    """

    distribution: Bernoulli | Normal
    n: int
    noise: float = 0.0
    rate: float = 1.0
    inserted: Num[Array, "N d"] | None = None
    knowledge: Knowledge | None = None
    name: str = "mean"
    chunk: int = 256

    def __post_init__(self) -> None:
        _check(self.noise, self.rate)
        if round(self.rate * count("n", self.n)) < 1:
            raise ValueError(f"rate {self.rate:g} of n = {self.n:,} records is none: a mean needs at least 1 record")
        if self.knowledge is not None:
            _table("the known mean", self.knowledge.mean[None], self.distribution.knowledge)

    def describe(self) -> Mapping[str, Any]:
        """Return the parameters, arrays by a hash of their content."""
        return _description(self)

    def observe(
        self, points: Points, member: Bool[Array, "m N"], seeds: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m N ..."]]:
        """Release one mean for each row of ``member`` and compute its signals at every point.

        Raises
        ------
        ValueError
            If the points have other columns than the distribution, or a row has more than n members.
        """
        truth = self.distribution.knowledge
        knowledge = self.knowledge or truth
        x = _table("x", points.x, truth)
        inserted = x if self.inserted is None else _table("inserted", self.inserted, truth)
        inserted = inserted - truth.mean
        if inserted.shape != x.shape:
            raise ValueError(
                f"inserted has shape {inserted.shape}, the points {x.shape}; give one record for each point"
            )
        most = int(member.sum(axis=1).max(initial=0))
        if most > self.n:
            raise ValueError(f"a row has {most:,} members in a mean of n = {self.n:,} records")
        rngs, size = [stream(int(seed), "mean") for seed in seeds], round(self.rate * self.n)
        deviation = np.empty((len(member), x.shape[1]))
        shift = truth.mean - knowledge.mean
        for row, (inside, rng) in enumerate(zip(member, rngs, strict=True)):
            # Members come from `inserted`; all other records are fresh, and only their sum is drawn.
            averaged = _averaged(inside, self.n, size, rng)
            total = inserted[averaged].sum(axis=0) + self.distribution.deviation(size - int(averaged.sum()), rng)
            deviation[row] = total / size + shift + _noise(self.noise, x.shape[1], rng)
        return _Attacker(knowledge, self.noise).signals(x, deviation, np.full(len(member), size), want)


@dataclass(frozen=True, eq=False)
class _Attacker:
    """What an attacker knows of released means, and the signals that follow."""

    knowledge: Knowledge
    noise: float
    pool: int | None = None

    def signals(
        self, x: Float[Array, "N d"], deviation: Float[Array, "m d"], size: Int[Array, " m"], want: Sequence[str]
    ) -> Mapping[str, Float[Array, "m N ..."]]:
        """Compute the wanted signals of means of ``size`` records, given as deviations from the known mean.

        Without the point a mean of k records has the covariance ``C0 = r/k (C + s^2 k/r I)``, with noise of standard
        deviation s and r = 1, or r = 1 - k/N for a pool of N; the point changes the mean by ``(z - mu)/k``.
        """
        z = x - self.knowledge.mean
        signals = {"dot": deviation @ z.T} if "dot" in want else {}
        if not {"step_dot", "step_norm"} & set(want):
            return signals
        if self.pool is not None and self.pool <= size.max():
            raise ValueError(f"pool must be > the {size.max():,} records of a mean, got {self.pool:,}")
        r = np.ones(len(size)) if self.pool is None else 1 - size / self.pool
        added_variance = self.noise**2 * size / r
        dot, norm = np.empty((2, len(size), len(x)))
        for variance in np.unique(added_variance):
            rows = added_variance == variance
            covariance = self.knowledge.covariance
            if variance > 0:
                covariance = covariance.plus(float(variance))
            weighted = covariance.solve(z)
            dot[rows] = deviation[rows] @ weighted.T / r[rows, None]
            norm[rows] = (weighted * z).sum(axis=1) / (size * r)[rows, None]
        steps = {"step_dot": dot[..., None], "step_norm": norm[..., None]}
        return signals | {name: array for name, array in steps.items() if name in want}


def _averaged(inside: Bool[Array, " N"], n: int, size: int, rng: np.random.Generator) -> Bool[Array, " N"]:
    """Draw which members are among the records that are averaged: ``size`` of n, without replacement."""
    if size == n:
        return inside
    places, members = rng.permutation(n)[:size], np.flatnonzero(inside)
    averaged = np.zeros_like(inside)
    averaged[members[places[places < len(members)]]] = True
    return averaged


def _noise(scale: float, d: int, rng: np.random.Generator) -> Float[Array, " d"]:
    return scale * rng.standard_normal(d) if scale else np.zeros(d)


def _check(noise: float, rate: float) -> None:
    non_negative("noise", noise)
    positive("rate", probability("rate", rate))


def _table(name: str, x: Any, knowledge: Knowledge) -> Float[Array, "N d"]:
    table = finite_array(name, x)
    if table.ndim != 2 or table.shape[1] != len(knowledge.mean):
        raise ValueError(
            f"{name}: shape {table.shape} is no table of the {len(knowledge.mean):,} columns of the distribution"
        )
    return table


def _description(release: Mean | FreshMean) -> Mapping[str, Any]:
    """Return class, parameters, and the version of the library whose random numbers are used."""
    names = [field.name for field in fields(release) if field.name not in ("name", "chunk")]
    parameters = {name: _canonical(getattr(release, name)) for name in names}
    return {"release": identity(type(release)), **parameters, "versions": {"numpy": np.__version__}}


def _canonical(value: Any) -> Any:
    """Convert a parameter to plain JSON: arrays by a hash of their content, frozen values by their fields."""
    if isinstance(value, np.ndarray):
        content = f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes()
        return hashlib.sha256(content).hexdigest()
    if isinstance(value, Knowledge | Bernoulli | Normal | Covariance):
        content = {field.name: _canonical(getattr(value, field.name)) for field in fields(value)}
        return {"kind": type(value).__name__} | content
    return value
