"""Couplings: ways to pair a data set with a record x and one without it, and the shifts that the pairs show.

The game draws D uniformly from the k-subsets of n records (records are told apart by their number: equal
records are distinct). A coupling pairs a uniform D that holds x with a uniform D' that does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int, Num

from leakbound.core.checks import count, non_negative, probability, real, same_length
from leakbound.noise.norms import EUCLIDEAN, Lp, Mahalanobis
from leakbound.noise.shifts import Shifts

Array = np.ndarray
_LARGEST_N = 62  # a subset is a 64-bit word


def swap(outputs: Num[Array, "s d"], member: Bool[Array, "s n"], norm: Lp | Mahalanobis = EUCLIDEAN) -> Shifts:
    """Measure the swap of one record, for any algorithm: ``D' = D - x + x'`` over all D with x and all x' outside.

    Source: izzo2022, lemma 10.

    Parameters
    ----------
    outputs : array of shape (C(n, k), d)
        A(D) of every k-subset of the n records, n <= 62; a row that is not finite is a fit that failed.
    member : bool array of shape (C(n, k), n)
        The subsets.
    norm : Lp or Mahalanobis
        That of the noise.

    Returns
    -------
    Shifts
        A row of ``C(n-1, k-1) (n-k)`` pairs for each record.

    Raises
    ------
    ValueError
        If these are not all subsets of one size, each once.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import swap
    >>> member = ~np.eye(3, dtype=bool)  # the three pairs of three records
    >>> outputs = (member * [0.0, 1.0, 5.0]).max(axis=1, keepdims=True)
    >>> swap(outputs, member).values.tolist()
    [[0.0, 4.0], [0.0, 4.0], [4.0, 4.0]]
    """
    subsets = _Subsets(outputs, member)
    values = []
    for x in range(subsets.n):
        inside = np.flatnonzero(member[:, x])
        pair, incoming = np.nonzero(~member[inside])
        partner = subsets.find(subsets.word[inside[pair]] - (1 << x) + (1 << incoming))
        values.append(subsets.lengths(inside[pair], partner, norm))
    return subsets.shifts(np.array(values), "swap", norm)


def complement(outputs: Num[Array, "s d"], member: Bool[Array, "s n"], norm: Lp | Mahalanobis = EUCLIDEAN) -> Shifts:
    """Compare D with all other records, for k = n/2: one row serves every record, as x is in exactly one of the two.

    Parameters
    ----------
    outputs : array of shape (C(n, k), d)
        As in `swap`.
    member : bool array of shape (C(n, k), n)
        As in `swap`.
    norm : Lp or Mahalanobis
        That of the noise.

    Returns
    -------
    Shifts
        One row of C(n, k)/2 pairs.

    Raises
    ------
    ValueError
        If k is not n/2; then take `disjoint`.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import complement
    >>> member = np.eye(2, dtype=bool)
    >>> complement(np.array([[1.0], [4.0]]), member).values.tolist()
    [[3.0]]
    """
    subsets = _Subsets(outputs, member)
    if 2 * subsets.k != subsets.n:
        raise ValueError(f"complement needs k = n/2, got k = {subsets.k} of n = {subsets.n}; disjoint takes any k")
    first = np.flatnonzero(member[:, 0])
    partner = subsets.find((1 << subsets.n) - 1 - subsets.word[first])
    return subsets.shifts(subsets.lengths(first, partner, norm)[None], "complement", norm)


def disjoint(outputs: Num[Array, "s d"], member: Bool[Array, "s n"], norm: Lp | Mahalanobis = EUCLIDEAN) -> Shifts:
    """Compare D with x to a D' without x that shares as little as possible: disjoint, or for k > n/2 covering all.

    For k != n/2 a pair leaves some records out of both sets (or in both), so each record has its own row: the
    mean over all disjoint pairs bounds no single record.

    Parameters
    ----------
    outputs : array of shape (C(n, k), d)
        As in `swap`.
    member : bool array of shape (C(n, k), n)
        As in `swap`.
    norm : Lp or Mahalanobis
        That of the noise.

    Returns
    -------
    Shifts
        A row for each record.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import disjoint
    >>> disjoint(np.array([[0.0], [1.0], [5.0]]), np.eye(3, dtype=bool)).values.tolist()
    [[1.0, 5.0], [1.0, 4.0], [5.0, 4.0]]
    """
    subsets = _Subsets(outputs, member)
    shared = max(0, 2 * subsets.k - subsets.n)
    counts = member.astype(np.int64)
    values = []
    for x in range(subsets.n):
        inside, outside = np.flatnonzero(member[:, x]), np.flatnonzero(~member[:, x])
        pair, other = np.nonzero(counts[inside] @ counts[outside].T == shared)
        values.append(subsets.lengths(inside[pair], outside[other], norm))
    return subsets.shifts(np.array(values), "disjoint", norm)


def independent(outputs: Num[Array, "s d"], member: Bool[Array, "s n"], norm: Lp | Mahalanobis = EUCLIDEAN) -> Shifts:
    """Compare every D with x to every D' without it.

    Parameters
    ----------
    outputs : array of shape (C(n, k), d)
        As in `swap`.
    member : bool array of shape (C(n, k), n)
        As in `swap`.
    norm : Lp or Mahalanobis
        That of the noise.

    Returns
    -------
    Shifts
        A row of ``C(n-1, k-1) C(n-1, k)`` pairs for each record.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import independent
    >>> independent(np.array([[0.0], [1.0], [5.0]]), np.eye(3, dtype=bool)).values.tolist()
    [[1.0, 5.0], [1.0, 4.0], [5.0, 4.0]]
    """
    subsets = _Subsets(outputs, member)
    values = []
    for x in range(subsets.n):
        inside, outside = np.flatnonzero(member[:, x]), np.flatnonzero(~member[:, x])
        pairs = np.meshgrid(inside, outside, indexing="ij")
        values.append(subsets.lengths(pairs[0].ravel(), pairs[1].ravel(), norm))
    return subsets.shifts(np.array(values), "independent", norm)


def central_moment(outputs: Num[Array, "s d"], order: float = 1.0, norm: Lp | Mahalanobis = EUCLIDEAN) -> float:
    """Compute ``sigma_M = (E ||theta - E theta||^M)^(1/M)`` over the given outputs.

    Source: izzo2022, lemma 12.

    Parameters
    ----------
    outputs : array of shape (s, d)
        theta of every data set (exact), or of some (an estimate, which bounds nothing).
    order : float
        M >= 1; any M gives a bound, M = 1 the least. Absolute values are taken, so odd M are allowed.
    norm : Lp or Mahalanobis
        In which the lengths are measured.

    Returns
    -------
    float
        In units of the outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from leakbound.noise import central_moment
    >>> central_moment(np.array([[0.0], [2.0], [4.0], [6.0]]), order=1)
    2.0
    """
    if real("order", order) < 1:
        raise ValueError(f"order must be >= 1, got {order:g}")
    outputs = _outputs(outputs)
    if not np.isfinite(outputs).all():
        raise ValueError("outputs must be finite for a moment")
    lengths = norm(outputs - outputs.mean(axis=0))
    largest = float(lengths.max())
    return largest * float(np.mean((lengths / largest) ** order)) ** (1 / order) if largest > 0 else 0.0


def moment(sigma: float, d: int, prior: float = 0.5, norm: Lp | Mahalanobis = EUCLIDEAN, exact: bool = True) -> Shifts:
    """Bound the mean shift of every record by the spread of the outputs alone, for any algorithm and any k.

    With D and D' independent, ``E||v|| <= E_in||theta - E theta|| + E_out||theta - E theta||``, and the mean of
    the two terms with weights pi and 1 - pi is sigma_1 <= sigma_M: ``E||v|| <= sigma/min(pi, 1-pi)``. Minimax
    tight at k = n/2: ``A(D) = a if x in D else a'`` attains the eta that follows.
    Source: izzo2022, theorem 7.

    Parameters
    ----------
    sigma : float
        At least ``(E ||theta - E theta||^M)^(1/M)`` for some M >= 1.
    d : int
        Number of coordinates of an output.
    prior : float
        pi = k/n.
    norm : Lp or Mahalanobis
        That of the noise.
    exact : bool
        Whether sigma is a bound known beforehand. If it is estimated from samples, all that follows is an estimate.

    Returns
    -------
    Shifts
        One row with a mean length.

    Examples
    --------
    >>> from leakbound.noise import LaplaceNoise, eta_bound, moment
    >>> eta_bound(moment(1.0, d=1), LaplaceNoise(2.0)).round(6).tolist()
    [0.196735]
    """
    prior = probability("prior", prior, open_ends=True)
    mean_length = non_negative("sigma", sigma) / min(prior, 1 - prior)
    return Shifts(np.array([[mean_length]]), "moment", count("d", d), norm, prior, exact, mean_only=True)


@dataclass(frozen=True, eq=False)
class _Subsets:
    """All k-subsets of n records with their outputs."""

    outputs: Num[Array, "s d"]
    member: Bool[Array, "s n"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "outputs", _outputs(self.outputs))
        if self.member.ndim != 2 or self.member.dtype != bool:
            raise ValueError(f"member must be a bool array (subsets, n), got {self.member.dtype} {self.member.shape}")
        same_length(outputs=self.outputs, member=self.member)
        if not 2 <= self.n <= _LARGEST_N:
            raise ValueError(f"n must be from 2 to {_LARGEST_N} to list all subsets, got {self.n}")
        subset_size(self.k, self.n)
        n_subsets = math.comb(self.n, self.k)
        if (
            (self.member.sum(axis=1) != self.k).any()
            or len(np.unique(self.word)) != n_subsets
            or len(self.word) != n_subsets
        ):
            raise ValueError(f"member must list each of the {n_subsets:,} {self.k}-subsets of {self.n} records once")

    @property
    def n(self) -> int:
        return self.member.shape[1]

    @cached_property
    def k(self) -> int:
        return int(self.member[0].sum())

    @cached_property
    def word(self) -> Int[Array, " s"]:
        """Encode each subset as the bits of a number."""
        return self.member.astype(np.int64) @ (1 << np.arange(self.n))

    @cached_property
    def order(self) -> Int[Array, " s"]:
        return np.argsort(self.word)

    def find(self, word: Int[Array, " p"]) -> Int[Array, " p"]:
        """Return the rows of the subsets with these words."""
        return self.order[np.searchsorted(self.word, word, sorter=self.order)]

    def lengths(
        self, inside: Int[Array, " p"], outside: Int[Array, " p"], norm: Lp | Mahalanobis
    ) -> Float[Array, " p"]:
        """Compute ``||A(D) - A(D')||``, infinite where a fit failed."""
        with np.errstate(over="ignore", invalid="ignore"):
            return norm(self.outputs[inside] - self.outputs[outside])

    def shifts(self, values: Float[Array, "R P"], coupling: str, norm: Lp | Mahalanobis) -> Shifts:
        """Return the lengths as shifts of this game."""
        return Shifts(values, coupling, self.outputs.shape[1], norm, self.k / self.n)


def _outputs(outputs: Num[Array, "s d"]) -> Float[Array, "s d"]:
    outputs = np.asarray(outputs, dtype=float)
    if outputs.ndim != 2 or not outputs.size:
        raise ValueError(f"outputs must have shape (subsets, d), got {outputs.shape}")
    return outputs


def finite_features(features: Num[Array, "n d"]) -> Float[Array, "n d"]:
    """Check what records add to a sum or mean: an array of two rows or more, all finite."""
    features = np.asarray(features, dtype=float)
    if features.ndim != 2 or len(features) < 2 or not features.shape[1]:
        raise ValueError(f"features must have shape (n, d) with n >= 2 and d >= 1, got {features.shape}")
    if not np.isfinite(features).all():
        bad = int(np.flatnonzero(~np.isfinite(features).all(axis=1))[0])
        raise ValueError(f"features must be finite, those of record {bad} are not")
    return features


def subset_size(k: int, n: int) -> None:
    """Check that a size of D leaves at least one record in and one out."""
    if not 1 <= count("k", k) <= n - 1:
        raise ValueError(f"k must be from 1 to n - 1 = {n - 1}, got {k}")
