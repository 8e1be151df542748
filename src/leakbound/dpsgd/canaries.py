"""Canaries: points whose membership DP-SGD hides least well, and gradients that no record has.

``CANARIES`` is the table of them; a row names a function and does not import it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from leakbound.core.checks import count
from leakbound.core.seeds import integer, stream
from leakbound.core.types import Points

if TYPE_CHECKING:
    from leakbound.dpsgd.network import PrivateNetwork

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Canaries:
    """The points of a game, and which of them are canaries."""

    points: Points
    numbers: Int[Array, " C"]
    coordinates: Int[Array, " c"] = field(default_factory=lambda: np.zeros(0, dtype=int))

    def watched_by(self, release: PrivateNetwork) -> PrivateNetwork:
        """Make a release whose steps are observed at the canaries."""
        watched, coordinates = tuple(self.numbers.tolist()), tuple(self.coordinates.tolist())
        return replace(release, watched=watched, coordinates=coordinates)


def random(points: Points, n: int, seed: int = 0) -> Canaries:
    """Draw records at random, unchanged: an audit without designed canaries attacks these.

    >>> len(random(Points(np.zeros((100, 2)), np.arange(100) % 2), 10).numbers)
    10
    """
    return Canaries(points, _draw(points, n, seed))


def mislabelled(points: Points, n: int, seed: int = 0) -> Canaries:
    """Draw records at random and give each another label, drawn uniformly from the other classes.

    >>> y = np.arange(100) % 2
    >>> int((mislabelled(Points(np.zeros((100, 2)), y), 10).points.y != y).sum())
    10
    """
    if points.y is None:
        raise ValueError("mislabelled canaries need labels")
    classes, label = np.unique(points.y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"mislabelled canaries need at least 2 classes, got only {classes[0]}")
    canary_idx, y = _draw(points, n, seed), points.y.copy()
    shift = stream(seed, "canaries", "labels").integers(1, len(classes), size=n)
    y[canary_idx] = classes[(label[canary_idx] + shift) % len(classes)]
    digest = _digest(points, "mislabelled", canary_idx, y[canary_idx].astype(str))
    return Canaries(replace(points, y=y, digest=digest), canary_idx)


def mahalanobis(
    points: Points, n: int, seed: int = 0, *, release: PrivateNetwork, candidates: int | None = None
) -> Canaries:
    """Choose the records with the largest clipped gradients, in the metric of what a step releases without them.

    One network is trained without the candidates, which are ranked in each step by ``g^T C0^-1 g``; those with the
    largest sums of ranks are chosen. C0 is the covariance of the noise of the step plus the second moment of the
    gradients of the other records; azize2024, Algorithm 6 leaves out the noise, so that its matrix has no inverse.

    >>> from torch import nn
    >>> from leakbound.dpsgd.config import DpSgd
    >>> from leakbound.dpsgd.network import PrivateNetwork
    >>> X = np.random.default_rng(0).normal(size=(80, 3))
    >>> release = PrivateNetwork(lambda: nn.Linear(3, 2), DpSgd(steps=5))
    >>> len(mahalanobis(Points(X, (X[:, 0] > 0).astype(int)), 10, release=release).numbers)
    10
    """
    n_candidates = len(points) // 2 if candidates is None else count("candidates", candidates)
    if n > n_candidates:
        raise ValueError(f"{n:,} canaries of {n_candidates:,} candidates; allowed: at most as many as candidates")
    candidate_idx = _draw(points, n_candidates, seed, "candidates")
    member = np.ones((1, len(points)), dtype=bool)
    member[0, candidate_idx] = False
    observing = replace(release, watched=tuple(candidate_idx.tolist()), coordinates=(), knowledge="distribution")
    seeds = np.array([integer(seed, "canaries", "train")])
    norms = observing.observe(points, member, seeds, ["step_norm"])["step_norm"][0, candidate_idx]
    best = np.argsort(-rank_sums(norms), kind="stable")[:n]
    return Canaries(points, np.sort(candidate_idx[best]))


def dirac(points: Points, n: int, seed: int = 0, *, release: PrivateNetwork) -> Canaries:
    """Make gradients with the clipping norm at one coordinate each, added to the sum as if a record had them.

    No record has such a gradient, but the guarantee of DP-SGD holds for any. Canaries of different coordinates do not
    interfere, so that many fit into one run (Nasr et al. 2023, Section C.2; azize2024, Section 4.4).

    >>> from torch import nn
    >>> from leakbound.dpsgd.config import DpSgd
    >>> from leakbound.dpsgd.network import PrivateNetwork
    >>> points = Points(np.zeros((20, 3)), np.arange(20) % 2)
    >>> canaries = dirac(points, 4, release=PrivateNetwork(lambda: nn.Linear(3, 2), DpSgd()))
    >>> canaries.numbers.tolist(), canaries.points.x.shape
    ([20, 21, 22, 23], (24, 3))
    """
    # a user-supplied training loop gets parameters for the canaries alone, as many as are wanted
    n_parameters = release.n_parameters() if release.train is None else count("canaries", n)
    if count("canaries", n) > n_parameters:
        raise ValueError(
            f"{n:,} Dirac canaries in {n_parameters:,} parameters; allowed: one a parameter, n = {n_parameters} at most"
        )
    coordinates = np.sort(stream(seed, "canaries", "coordinates").choice(n_parameters, n, replace=False))
    canary_idx = np.arange(len(points), len(points) + n)
    with_canaries = points.take(np.concatenate([np.arange(len(points)), np.zeros(n, dtype=int)]))
    return Canaries(replace(with_canaries, digest=_digest(points, "dirac", coordinates)), canary_idx, coordinates)


def rank_sums(values: Float[Array, "C S"]) -> Float[Array, " C"]:
    """Sum the ranks of each candidate over the steps, the largest value ranked last; equal values share a rank.

    Source: azize2024, algorithm 6.

    >>> rank_sums(np.array([[1.0, 9.0], [2.0, 9.0], [3.0, 0.0]])).tolist()
    [3.5, 4.5, 4.0]
    """
    total = np.zeros(len(values))
    for column in values.T:
        ordered = np.sort(column)
        total += (np.searchsorted(ordered, column, "left") + np.searchsorted(ordered, column, "right") + 1) / 2
    return total


CANARIES: Mapping[str, str] = MappingProxyType(
    {name: f"leakbound.dpsgd.canaries:{name}" for name in ("dirac", "mahalanobis", "mislabelled", "random")}
)


def _draw(points: Points, n: int, seed: int, what: str = "numbers") -> Int[Array, " C"]:
    """Draw the indices of random points, ascending."""
    if not 1 <= count("canaries", n) < len(points):
        raise ValueError(f"canaries must be fewer than the {len(points):,} points, got {n:,}")
    return np.sort(stream(seed, "canaries", what).choice(len(points), n, replace=False))


def _digest(points: Points, kind: str, *what: Array) -> str:
    """Compute a digest of points that were derived from others."""
    sha = hashlib.sha256(f"{points.digest}|{kind}".encode())
    for values in what:
        sha.update(b"|" + ",".join(map(str, values.tolist())).encode())
    return sha.hexdigest()
