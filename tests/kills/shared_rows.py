"""An audit of more than a megabyte of rows by two workers, which rest before each fit; where its files lie is given."""

from __future__ import annotations

import json
import sys

import numpy as np
from slow import SlowTree

import leakscope as ls

if __name__ == "__main__":
    places = json.loads(sys.argv[1])
    x = np.full((9_000, 20), 12345.678)
    x[:, 0] = np.arange(len(x))
    ls.audit(SlowTree(max_depth=1), x, np.arange(len(x)) % 2, n_models=16, attacks="loss", n_jobs=2, **places)
