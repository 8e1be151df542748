"""A classifier and a statistic that take their time without the processor, so that a kill falls into their fits."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier


class SlowTree(DecisionTreeClassifier):
    """A tree that rests before each fit, for the seconds that the environment says."""

    def fit(self, X: Any, y: Any, *arguments: Any, **words: Any) -> SlowTree:
        """Rest, then fit."""
        # a variable of workers: whatever it is, models from the store are used
        time.sleep(float(os.environ.get("JOBLIB_SLOW_TREE_SECONDS", "0")))
        return super().fit(X, y, *arguments, **words)


def middle(x: Any) -> Any:
    """The median of each column, after as long a rest."""
    time.sleep(float(os.environ.get("JOBLIB_SLOW_TREE_SECONDS", "0")))
    return np.median(np.asarray(x), axis=0)
