"""A classifier that takes its time without the processor, so that a kill falls into its fits."""

from __future__ import annotations

import os
import time
from typing import Any

from sklearn.tree import DecisionTreeClassifier


class SlowTree(DecisionTreeClassifier):
    """A tree that rests before each fit, for the seconds that the environment says."""

    def fit(self, X: Any, y: Any, *arguments: Any, **words: Any) -> SlowTree:
        """Rest, then fit."""
        time.sleep(float(os.environ.get("SLOW_TREE_SECONDS", "0")))
        return super().fit(X, y, *arguments, **words)
