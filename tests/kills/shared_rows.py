"""Audits of more than a megabyte of rows by two workers, which rest before each fit, each in a session of its own.

Where the files of each lie is given, as JSON; the processes are forked from this one, and their numbers printed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile

import numpy as np
from slow import SlowTree

import leakbound as ls

if __name__ == "__main__":
    x = np.full((9_000, 20), 12345.678)
    x[:, 0] = np.arange(len(x))
    begun = []
    for places in json.loads(sys.argv[1]):
        if child := os.fork():
            begun.append(child)
            continue
        os.setsid()
        tempfile.tempdir = places.pop("TMPDIR", None)
        ls.audit(SlowTree(max_depth=1), x, np.arange(len(x)) % 2, n_models=16, attacks="loss", n_jobs=2, **places)
        os._exit(0)
    print(json.dumps(begun), flush=True)
    for child in begun:
        os.waitpid(child, 0)
