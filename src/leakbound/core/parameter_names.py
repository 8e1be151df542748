"""Names of the parameters of a model, as a report shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Leave out the steps of a pipeline from the names of parameters, where what is left tells them apart.

    >>> short_names(["tree__max_depth", "scaler__with_mean"])
    {'tree__max_depth': 'max_depth', 'scaler__with_mean': 'with_mean'}
    >>> short_names(["first__alpha", "second__alpha"])
    {'first__alpha': 'first__alpha', 'second__alpha': 'second__alpha'}
    """
    short = {name: name.rpartition("__")[2] for name in names}
    n_of_short = Counter(short.values())
    return {name: last if n_of_short[last] == 1 else name for name, last in short.items()}
