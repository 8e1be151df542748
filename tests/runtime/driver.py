"""A run of `tests.runtime.logged` in a process of its own, which a test may kill: python -m tests.runtime.driver."""

from __future__ import annotations

import sys

import numpy as np

from leakbound.runtime.execution import Execution
from leakbound.runtime.observe import observe
from tests.runtime.logged import Logged
from tests.runtime.test_observe import MEMBER, POINTS


def main(folder: str, store: str, cluster: str, seconds: str) -> None:
    words = {"n_jobs": int(cluster)} if cluster.isdecimal() else {"cluster": cluster}
    release = Logged(folder, seconds=float(seconds))
    values = observe(release, POINTS, MEMBER, ("loss",), execution=Execution(store, **words))["loss"]
    np.save(f"{folder}/values.npy", values)


if __name__ == "__main__":
    main(*sys.argv[1:])
