"""Exactly what a release reveals about each record, by enumeration of the data sets that it may have been made from.

D is one of finitely many equally likely (or weighted) subsets of the records. With f = pi P_in - (1 - pi) P_out the
accuracy of the Bayes attacker is ``int max(pi P_in, (1 - pi) P_out) = (1 + int |f|)/2``; eta is what it is above
``max(pi, 1 - pi)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike
from scipy.special import expit, logsumexp

from leakbound.bounds.quadrature import Density, absolute_integral
from leakbound.core.checks import count
from leakbound.core.tradeoff import Piecewise

Array = np.ndarray

MOST_SUBSETS = 200_000


def subsets(n: int, k: int | None = None) -> Bool[Array, "n_subsets n"]:
    """All subsets of n records, a row each: of k records, or of any number.

    Source: izzo2022, lemma 10; lowy2024, lemma 3.

    Parameters
    ----------
    n : int
    k : int or None
        Size of the subsets, from 0 to n; None for all 2^n.

    Returns
    -------
    bool array of shape (n_subsets, n)
        ``member[s, i]``: record i is in subset s.

    Raises
    ------
    ValueError
        If there are more than 200,000 of them.

    Examples
    --------
    >>> from leakbound.bounds.exact import subsets
    >>> subsets(3, 2).astype(int).tolist()
    [[1, 1, 0], [1, 0, 1], [0, 1, 1]]
    """
    n = count("n", n)
    sizes = range(n + 1) if k is None else [count("k", k, least=0)]
    if sizes[-1] > n:
        raise ValueError(f"k must be <= n = {n}, got {k}")
    n_subsets = sum(math.comb(n, size) for size in sizes)
    if n_subsets > MOST_SUBSETS:
        raise ValueError(f"{n} records have {n_subsets:,} such subsets; the limit is {MOST_SUBSETS:,}")
    member = np.zeros((n_subsets, n), dtype=bool)
    for row, chosen in enumerate(chosen for size in sizes for chosen in combinations(range(n), size)):
        member[row, list(chosen)] = True
    return member


def exact_eta(
    outputs: ArrayLike, member: ArrayLike, noise: Density | None = None, weights: ArrayLike | None = None
) -> Float[Array, " n"]:
    """Accuracy of the best attacker above the better prior guess, for each record, over all data sets.

    This is the eta of membership inference privacy (izzo2022, Definition 1, whose eta is the largest of these), for
    an attacker who knows all records, the algorithm and the noise, and sees one release.
    Source: delgrosso2021, definition 2.

    Parameters
    ----------
    outputs : array_like of shape (n_subsets, d) or (n_subsets,)
        The statistic A(D) of each subset, before noise.
    member : array_like of bool, shape (n_subsets, n)
        Who is in each subset; `subsets` makes all of one size.
    noise : object with ``log_density`` and ``rms``, or None
        Added to the statistic. None: the statistic itself is released, and outputs are compared exactly (round them
        first if their last digits are those of the summation order).
    weights : array_like of shape (n_subsets,), optional
        Probabilities of the subsets, in any unit; equal by default.

    Returns
    -------
    array of shape (n,)
        In [0, 1/2]. Errors: rounding without noise, below 1e-12 with noise for d = 1, about 1e-6 for d = 2.

    Raises
    ------
    ValueError
        For d > 2 with noise, or for a noise that cannot be integrated; see `leakbound.bounds.quadrature`.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.bounds.exact import exact_eta, subsets
    >>> member = subsets(4, 2)
    >>> exact_eta(member @ [0.0, 1.0, 3.0, 7.0], member).tolist()  # all sums differ: each subset is known
    [0.5, 0.5, 0.5, 0.5]
    >>> exact_eta(member @ [1.0, 1.0, 1.0, 7.0], member).tolist()  # 3 or 9: the release tells the fourth record
    [0.16666666666666663, 0.16666666666666663, 0.16666666666666663, 0.5]
    """
    member, weights = _game(member, weights)
    outputs = _releases(outputs, len(member))
    values, which = np.unique(outputs, axis=0, return_inverse=True)
    difference = np.zeros((len(values), member.shape[1]))
    np.add.at(difference, which, weights[:, None] * np.where(member, 1.0, -1.0))
    total = np.abs(difference).sum(axis=0) if noise is None else absolute_integral(values, difference, noise)
    return _eta(total, weights @ member)


def exact_eta_discrete(
    probability: ArrayLike, member: ArrayLike, weights: ArrayLike | None = None
) -> Float[Array, " n"]:
    """Compute `exact_eta` of a randomised algorithm with finitely many outputs.

    Source: delgrosso2021, theorem 1 and proposition 1.

    Parameters
    ----------
    probability : array_like of shape (n_subsets, n_outputs)
        ``P(A(D) = o)``; each row sums to 1.
    member : array_like of bool, shape (n_subsets, n)
        Whether each record is in each subset.
    weights : array_like of shape (n_subsets,), optional
        Probabilities of the subsets; equal where None.

    Returns
    -------
    array of shape (n,)
        Of each record.

    Raises
    ------
    ValueError
        If a row of ``probability`` is no distribution.

    Examples
    --------
    Each record of D is published with probability p = .1, all or nothing: eta = p/2 (izzo2022, Theorem 5), although
    no epsilon of differential privacy holds.

    >>> import numpy as np
    >>> from leakbound.bounds.exact import exact_eta_discrete, subsets
    >>> member = subsets(4, 2)
    >>> published = np.column_stack([np.full(6, 0.9), 0.1 * np.eye(6)])
    >>> exact_eta_discrete(published, member).round(12).tolist()
    [0.05, 0.05, 0.05, 0.05]
    """
    member, weights = _game(member, weights)
    probability = _probabilities(probability, len(member))
    difference = (weights * np.where(member, 1.0, -1.0).T) @ probability
    return _eta(np.abs(difference).sum(axis=1), weights @ member)


def pmp_discrete(probability: ArrayLike, member: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Compute the smallest epsilon of practical membership privacy, ``max |ln P_in(o)/P_out(o)|`` over all outputs.

    Both directions count: Proposition 9 of lowy2024 as printed has ``ln P_in/P_out`` alone, which is not enough for
    its Definition 2.
    Source: izzo2022, proposition 6.

    Parameters
    ----------
    probability : array_like of shape (n_subsets, n_outputs)
        Of each output given each subset, as in `exact_eta_discrete`.
    member : array_like of shape (n_subsets, n)
        Whether each record is in each subset, as in `exact_eta_discrete`; each is in some subsets and not in others.
    weights : array_like of shape (n_subsets,), optional
        Probabilities of the subsets, as in `exact_eta_discrete`.

    Returns
    -------
    float
        In nats; infinity if an output proves membership or its absence.

    Raises
    ------
    ValueError
        If a record is in all subsets or in none.

    Examples
    --------
    The sum modulo 6 of three of the records 0 ... 5 (lowy2024, Proposition 5): epsilon = ln 2.

    >>> import numpy as np
    >>> from leakbound.bounds.exact import deterministic, pmp_discrete, subsets
    >>> member = subsets(6, 3)
    >>> round(pmp_discrete(deterministic(member @ np.arange(6) % 6), member), 12)
    0.69314718056
    """
    member, weights = _game(member, weights)
    records = np.arange(member.shape[1])
    inside, outside = _conditional(_probabilities(probability, len(member)), member, weights, records)
    possible = (inside > 0) | (outside > 0)
    with np.errstate(divide="ignore"):
        return float(np.abs(np.log(inside[possible]) - np.log(outside[possible])).max())


def exact_tradeoff(
    probability: ArrayLike, member: ArrayLike, record: int, weights: ArrayLike | None = None
) -> Piecewise:
    """Compute the best trade-off of any attacker against one record: Neyman and Pearson's tests of P_out against P_in.

    Source: azize2024, theorem 2.2; delgrosso2021, definition 5 and proposition 1; lowy2024, definition 2, lemma 3 and
    corollary 4.

    Parameters
    ----------
    probability : array_like of shape (n_subsets, n_outputs)
        Of each output given each subset, as in `exact_eta_discrete`.
    member : array_like of shape (n_subsets, n)
        Whether each record is in each subset, as in `exact_eta_discrete`.
    record : int
        Index of the record, a column of ``member``.
    weights : array_like of shape (n_subsets,), optional
        Probabilities of the subsets, as in `exact_eta_discrete`.

    Returns
    -------
    Piecewise
        Convex; its corners are the outputs in the order of falling ``P_in/P_out``.

    Raises
    ------
    ValueError
        If the record is in all subsets or in none.

    Examples
    --------
    >>> from leakbound.bounds.exact import exact_tradeoff
    >>> curve = exact_tradeoff([[0.75, 0.25], [0.25, 0.75]], [[True], [False]], 0)  # randomised response
    >>> curve.advantage(), float(curve.tpr_at(0.25))
    (0.5, 0.75)
    """
    member, weights = _game(member, weights)
    one = np.array([_record(record, member.shape[1])])
    inside, outside = _conditional(_probabilities(probability, len(member)), member, weights, one)
    inside, outside = inside[0], outside[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.nan_to_num(inside / outside, posinf=np.inf), kind="stable")
    alarms, members = np.cumsum(outside[order]), np.cumsum(inside[order][::-1])[::-1]
    return Piecewise(np.minimum(alarms, 1.0), np.minimum(np.append(members[1:], 0.0), 1.0))


def deterministic(outputs: ArrayLike) -> Float[Array, "n_subsets n_outputs"]:
    """Return the probabilities, 0 or 1, of an algorithm without randomness.

    >>> deterministic([3, 1, 3]).tolist()
    [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    """
    values, which = np.unique(_releases(outputs, len(np.asarray(outputs))), axis=0, return_inverse=True)
    return np.eye(len(values))[which]


@dataclass(frozen=True, eq=False)
class BayesAttacker:
    """The attacker whom `exact_eta` measures, against one record; made by `bayes_attacker`."""

    outputs: Float[Array, "n_subsets d"]
    member: Bool[Array, " n_subsets"]
    weights: Float[Array, " n_subsets"]
    noise: Density | None

    def posterior(self, release: ArrayLike) -> Float[Array, " n_releases"]:
        """Probability that the record is a member, given each release."""
        releases = np.asarray(release, dtype=float)
        if releases.ndim <= 1 and self.outputs.shape[1] == 1:
            releases = releases.reshape(-1, 1)  # one number a release
        else:
            releases = np.atleast_2d(releases)
        if releases.shape[1:] != self.outputs.shape[1:]:
            raise ValueError(f"a release has {self.outputs.shape[1]} numbers, got {releases.shape[-1]}")
        difference = releases[:, None] - self.outputs
        if self.noise is None:
            level = np.where((difference == 0).all(axis=-1), 0.0, -np.inf)
        else:
            level = self.noise.log_density(difference)
        with np.errstate(divide="ignore"):
            level = level + np.log(self.weights)
        inside = np.asarray(logsumexp(np.where(self.member, level, -np.inf), axis=1))
        outside = np.asarray(logsumexp(np.where(self.member, -np.inf, level), axis=1))
        impossible = np.flatnonzero((inside == -np.inf) & (outside == -np.inf))
        if len(impossible):
            first = impossible[0]
            raise ValueError(f"release {first} is impossible: no subset gives {releases[first].tolist()}")
        return expit(inside - outside)

    @property
    def accuracy(self) -> float:
        """The accuracy of the attacker: that of the better prior guess plus eta."""
        eta = exact_eta(self.outputs, self.member[:, None], self.noise, self.weights)[0]
        prior = float(self.weights[self.member].sum())
        return float(eta) + max(prior, 1 - prior)


def bayes_attacker(
    outputs: ArrayLike,
    member: ArrayLike,
    record: int,
    noise: Density | None = None,
    weights: ArrayLike | None = None,
) -> BayesAttacker:
    """Return the attacker with the highest accuracy: a member if the posterior of membership is above 1/2.

    Source: izzo2022, proposition 2; azize2024, theorem 2.2; delgrosso2021, definition 2 and theorem 1.

    Parameters
    ----------
    outputs : array_like of shape (n_subsets, d) or (n_subsets,)
        As in `exact_eta`, for any d; but `BayesAttacker.accuracy` needs d <= 2 with noise.
    member : array_like of shape (n_subsets, n)
        Whether each record is in each subset.
    record : int
        Index of the record, a column of ``member``.
    noise : object with ``log_density`` and ``rms``, optional
        As in `exact_eta`.
    weights : array_like of shape (n_subsets,), optional
        Probabilities of the subsets.

    Returns
    -------
    BayesAttacker
        Against this record.

    Examples
    --------
    >>> from leakbound.bounds.exact import bayes_attacker, subsets
    >>> member = subsets(4, 2)
    >>> attacker = bayes_attacker(member @ [1, 1, 1, 7], member, record=0)
    >>> attacker.posterior([2, 8]).round(6).tolist(), round(attacker.accuracy, 6)
    ([0.666667, 0.333333], 0.666667)
    """
    member, weights = _game(member, weights)
    return BayesAttacker(_releases(outputs, len(member)), member[:, _record(record, member.shape[1])], weights, noise)


def _game(member: ArrayLike, weights: ArrayLike | None) -> tuple[Bool[Array, "s n"], Float[Array, " s"]]:
    """Memberships, and probabilities of the subsets that sum to 1."""
    table = np.asarray(member)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"member must have shape (n_subsets, n), at least (1, 1); got {table.shape}")
    if not ((table == 0) | (table == 1)).all():
        raise ValueError("member must be true or false everywhere")
    chances = np.ones(len(table)) if weights is None else np.asarray(weights, dtype=float)
    if chances.shape != (len(table),):
        raise ValueError(f"weights must have shape ({len(table)},), one a subset; got {chances.shape}")
    if not (np.isfinite(chances).all() and (chances >= 0).all() and chances.sum() > 0):
        raise ValueError("weights must be finite, >= 0 and not all 0")
    return table.astype(bool), chances / chances.sum()


def _releases(outputs: ArrayLike, n_subsets: int) -> Float[Array, "s d"]:
    """Finite outputs, a row a subset."""
    values = np.asarray(outputs, dtype=float) + 0.0  # -0.0 and 0.0 are one output
    if values.ndim not in (1, 2) or len(values) != n_subsets or values.size == 0:
        raise ValueError(f"outputs must have shape ({n_subsets}, d), a row a subset; got {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError("outputs must be finite")
    return values.reshape(n_subsets, -1)


def _probabilities(probability: ArrayLike, n_subsets: int) -> Float[Array, "s o"]:
    table = np.asarray(probability, dtype=float)
    if table.ndim != 2 or len(table) != n_subsets or table.size == 0:
        raise ValueError(f"probability must have shape ({n_subsets}, n_outputs), a row a subset; got {table.shape}")
    if not ((table >= 0).all() and np.allclose(table.sum(axis=1), 1, rtol=0, atol=1e-9)):
        raise ValueError("each row of probability must be >= 0 and sum to 1")
    return table


def _record(record: int, n: int) -> int:
    if count("record", record, least=0) >= n:
        raise ValueError(f"record must be < {n}, the number of records; got {record}")
    return record


def _eta(total: Float[Array, " n"], prior: Float[Array, " n"]) -> Float[Array, " n"]:
    """Convert ``int |f|`` to eta, cut to its range against rounding errors."""
    best_guess = np.maximum(prior, 1 - prior)
    return np.clip((1 + total) / 2 - best_guess, 0.0, 1 - best_guess)


def _conditional(
    probability: Float[Array, "s o"], member: Bool[Array, "s n"], weights: Float[Array, " s"], records: Array
) -> tuple[Float[Array, "r o"], Float[Array, "r o"]]:
    """Compute P_in and P_out of some records."""
    chosen = member[:, records]
    prior = weights @ chosen
    certain = np.flatnonzero((prior <= 0) | (weights @ ~chosen <= 0))
    if len(certain):
        where = "all subsets" if prior[certain[0]] > 0 else "no subset"
        raise ValueError(f"record {records[certain[0]]} is in {where}: it has no distribution of the other kind")
    inside, outside = ((weights[:, None] * which).T @ probability for which in (chosen, ~chosen))
    return inside / prior[:, None], outside / (weights @ ~chosen)[:, None]
