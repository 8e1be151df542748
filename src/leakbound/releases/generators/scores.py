"""What synthetic rows say of each record: scores, higher = more likely in the data of the generator.

Letters: N records, S synthetic rows, R reference rows, p columns; d1 <= d2 <= ... Gower's distances of a record to its
nearest rows.

* ``matches``: 1 where d1 = 0;
* ``nearest``: -d1; ``nearest5``: -(d1 + ... + d5) / 5;
* ``density_ratio``: log(mean d to the rows of R + a) - log(mean d to the rows of S + a), an estimate of
  log p_S(x) - log p_R(x) by the nearest rows (van Breugel, Sun, Qian & van der Schaar 2023, DOMIAS);
* ``gen_lra``: the sum over the 200 rows s of S nearest to x of log p_{R + x}(s) - log p_R(s) (Ward et al. 2025), with a
  kernel estimate of p.

Only the first three need no reference.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
from jaxtyping import Float, Shaped
from scipy.special import logsumexp
from sklearn.neighbors import NearestNeighbors

from leakbound.releases.generators.distances import Encoded, nearest_distances

Array = np.ndarray
OF_ROWS = ("nearest", "nearest5", "matches")
WITH_REFERENCE = ("density_ratio", "gen_lra")
NEIGHBOURS = 5  # of nearest5, and of density_ratio in the smaller of the two files
FLOOR = 0.01  # a, of Gower's distance: a hundredth of the range in every column
NEAR_ROWS = 200  # of gen_lra
MOST_COLUMNS = 20  # of gen_lra: a kernel estimate says nothing of more
_PAIRS = 1 << 20  # of rows whose kernels are in memory at once


def scores(
    records: Encoded,
    synthetic: Encoded,
    want: Collection[str],
    reference: Encoded | None = None,
    group: Shaped[Array, " N"] | None = None,
) -> dict[str, Float[Array, " N"]]:
    """Compute those of the wanted scores that these rows can give; without ``reference`` the first three at most.

    All rows of a unit (``group``) get the largest score of its rows: it is in the data as soon as one of them is.

    >>> from leakbound.releases.generators.distances import Encoding
    >>> people = np.array([[0.0], [4.0], [10.0]])
    >>> encoding = Encoding.of(people)
    >>> rows = encoding.encode(people), encoding.encode(np.array([[4.0], [7.0]]))
    >>> {name: score.round(2).tolist() for name, score in scores(*rows, ["matches", "nearest"]).items()}
    {'nearest': [-0.4, 0.0, -0.3], 'matches': [0.0, 1.0, 0.0]}
    """
    result: dict[str, Array] = {}
    if set(want) & set(OF_ROWS):
        distance = nearest_distances(records, synthetic, NEIGHBOURS)
        result["nearest"] = 0 - distance[:, 0]
        result["nearest5"] = 0 - distance.mean(axis=1)
        result["matches"] = (distance[:, 0] == 0).astype(float)
    if reference is not None and "density_ratio" in want:
        result["density_ratio"] = _density_ratio(records, synthetic, reference)
    if reference is not None and "gen_lra" in want and records.n_columns <= MOST_COLUMNS:
        result["gen_lra"] = _gen_lra(records, synthetic, reference)
    wanted = {name: score for name, score in result.items() if name in want}
    return wanted if group is None else {name: largest_of_units(score, group) for name, score in wanted.items()}


def largest_of_units(score: Float[Array, " N"], group: Shaped[Array, " N"]) -> Float[Array, " N"]:
    """Give all rows of a unit the largest of their scores.

    >>> largest_of_units(np.array([-0.3, -0.1, -0.2]), np.array(["Ann", "Bob", "Ann"])).tolist()
    [-0.2, -0.1, -0.2]
    """
    unit = np.unique(group, return_inverse=True)[1]
    largest = np.full(unit.max() + 1, -np.inf)
    np.maximum.at(largest, unit, score)
    return largest[unit]


def _density_ratio(records: Encoded, synthetic: Encoded, reference: Encoded) -> Float[Array, " N"]:
    """Compare the mean distances to the nearest rows of both files, to the same fraction of each."""
    smaller = min(len(synthetic), len(reference))
    means = []
    for rows in (reference, synthetic):
        k = max(1, round(NEIGHBOURS * len(rows) / smaller))
        means.append(nearest_distances(records, rows, k).mean(axis=1))
    to_reference, to_synthetic = means
    return np.log(to_reference + FLOOR) - np.log(to_synthetic + FLOOR)


def _gen_lra(records: Encoded, synthetic: Encoded, reference: Encoded) -> Float[Array, " N"]:
    """Sum ``log p_{R + x}(s) - log p_R(s)`` over the rows s nearest to x, p a Gaussian kernel estimate.

    With the kernel K of R alone, ``p_{R + x} = (R p_R + K(s - x)) / (R + 1)``.
    """
    n, p = len(reference), reference.n_columns
    bandwidth = (n * (p + 2) / 4) ** (-1 / (p + 4))  # Silverman's, in standard deviations of each column
    features = _features(reference.followed_by(synthetic).followed_by(records), n) / bandwidth
    reference_features, synthetic_features, record_features = np.split(features, [n, n + len(synthetic)])
    k = min(NEAR_ROWS, len(synthetic))
    neighbours = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(synthetic_features)
    log_kernels = _log_sum_of_kernels(synthetic_features, reference_features)  # log(R p_R), without the constant
    result = np.empty(len(records))
    n_rows = max(1, _PAIRS // k)
    for start in range(0, len(records), n_rows):
        block = slice(start, start + n_rows)
        distance, nearest = neighbours.kneighbors(record_features[block])
        without = log_kernels[nearest]
        ratio = np.logaddexp(without, -(distance**2) / 2) - without - math.log1p(1 / n)
        result[block] = ratio.sum(axis=1)
    return result


def _log_sum_of_kernels(rows: Float[Array, "S f"], centres: Float[Array, "R f"]) -> Float[Array, " S"]:
    """Compute ``log sum over r of exp(-|s - r|^2 / 2)`` in blocks of rows."""
    result = np.empty(len(rows))
    lengths = (centres**2).sum(axis=1)
    n_rows = max(1, _PAIRS // len(centres))
    for start in range(0, len(rows), n_rows):
        block = rows[start : start + n_rows]
        squares = (block**2).sum(axis=1)[:, None] - 2 * block @ centres.T + lengths
        result[start : start + n_rows] = logsumexp(-np.maximum(squares, 0) / 2, axis=1)
    return result


def _features(rows: Encoded, n: int) -> Float[Array, "n f"]:
    """Write rows as numbers with unit variance of each column in the first n, the reference.

    A category is one-hot, divided by the root of the total variance of its levels, so that two draws from any column
    differ by 2 in the mean of their squared distance. A missing number is the mean, and a feature says so.
    """
    columns = []
    for values in rows.numbers.T:
        absent = np.isnan(values)
        mean = values[:n][~absent[:n]].mean() if not absent[:n].all() else 0.0
        columns.append(np.column_stack([np.where(absent, mean, values), absent]))
    columns += [(code[:, None] == np.unique(code)).astype(float) for code in rows.codes.T]
    least = math.sqrt(1 / n)  # about that of a level that one of n rows has
    scaled = [column / max(math.sqrt(column[:n].var(axis=0).sum()), least) for column in columns]
    return np.hstack(scaled)
