"""Functions as users write them: each releases something of the records, or fails in its own way."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier


def range_of(x: Any) -> Any:
    """The range of each column."""
    return np.asarray(x).max(axis=0) - np.asarray(x).min(axis=0)


def slope(x: Any, y: Any) -> float:
    """Covariance of the first column with the label."""
    return float(np.cov(np.asarray(x)[:, 0], y)[0, 1])


def bootstrap(x: Any, rng: np.random.Generator) -> Any:
    """Mean of as many records, drawn again."""
    table = np.asarray(x)
    return table[rng.integers(len(table), size=len(table))].mean(axis=0)


def moody(x: Any) -> Any:
    """Fails in a different way for each smallest record."""
    first = int(np.asarray(x)[:, 0].min())
    if first == 0:
        raise RuntimeError("will not\nat all")
    return {1: [np.nan, 1.0], 2: [np.inf, 1.0], 3: [1.0], 4: ["a", "b"], 5: [1j, 2.0], 6: None}.get(first, [1.0, first])


def alters_its_data(x: Any) -> Any:
    """Works in place."""
    x[:] = x - x.mean(axis=0)
    return x.std(axis=0)


NOT_A_FUNCTION = 3


def fit_tree(X: Any, y: Any, seed: int, depth: int = 3) -> Any:
    """Trains a tree and returns it."""
    return DecisionTreeClassifier(max_depth=depth, random_state=seed).fit(X, y)


def fit_tree_without_seed(X: Any, y: Any) -> Any:
    """Trains a tree whose ties are broken in the same way each time."""
    return DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)


def pipeline(scale: bool = True) -> Any:
    """Returns an estimator that is not fitted."""
    return make_pipeline(StandardScaler(with_std=scale), DecisionTreeClassifier())
