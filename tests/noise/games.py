"""Small membership games by brute force: what the code under test is compared with."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy import stats


def all_subsets(n, k):
    """Membership of every k-subset."""
    member = np.zeros((len(list(combinations(range(n), k))), n), dtype=bool)
    for row, subset in enumerate(combinations(range(n), k)):
        member[row, list(subset)] = True
    return member


def outputs_of(statistic, data, member):
    """A(D) of every subset, as numbers."""
    return np.array([statistic(data[row]) for row in member], dtype=float)


def random_game(rng, even=False):
    """Data, size, statistic: normal or Cauchy, with outliers and duplicates, one number out."""
    n = int(rng.choice([4, 6])) if even else int(rng.integers(4, 7))
    data = rng.standard_cauchy(n) if rng.random() < 0.5 else rng.normal(size=n)
    if rng.random() < 0.25:
        data[1] = data[0]
    if rng.random() < 0.25:
        data[2] *= 30
    statistic = (np.mean, np.sum, np.max, np.median)[rng.integers(4)]
    k = n // 2 if even else int(rng.integers(1, n))
    return data, k, statistic


def divergence_by_cells(outputs, member, law, gamma=None, step=0.05):
    """Hockey-stick divergences of every record's two laws, from below.

    An attacker who sees only which of many small cells the release is in; coarsening only loses.

    Parameters
    ----------
    outputs : array of shape (s,)
    member : bool array of shape (s, n)
    law : frozen scipy.stats law of the noise, symmetric
    gamma : float or None
        None: eta, the accuracy of the best guess above the better prior guess.
    step : float
        Cell width around each output, in standard deviations of the noise.

    Returns
    -------
    array of shape (n,), or (n, 2) with both directions of a divergence
    """
    width = step * law.std()
    near = np.unique(np.round(outputs / width)[:, None] + np.arange(-round(12 / step), round(12 / step)))
    edges = np.r_[-np.inf, near * width, np.inf]
    mass = np.diff(law.cdf(edges - outputs[:, None]), axis=1)
    inside, outside = (side.astype(float).T @ mass / side.sum(axis=0)[:, None] for side in (member, ~member))
    if gamma is None:
        prior = member[0].mean()
        return np.maximum(prior * inside, (1 - prior) * outside).sum(axis=1) - max(prior, 1 - prior)
    both = [np.maximum(p - gamma * q, 0).sum(axis=1) for p, q in ((inside, outside), (outside, inside))]
    return np.stack(both, axis=1)


LAWS = {"laplace": stats.laplace, "gaussian": stats.norm}
