"""Speed and memory: at least half of each wanted ratio, measured as users measure it, in a process of its own.

By day each ratio is measured on less work and in this process; where a ratio grows with the size of the work, a size is
taken at which half of the wanted one is exceeded by a quarter or more.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import dpsgd, half_splits, memory, pmp, protection, scoring, statistic, whitebox
from benchmarks.__main__ import peak_gigabytes
from benchmarks.scoring import Row

ROOT = Path(__file__).parents[1]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

pytestmark = pytest.mark.benchmarks
BY_DAY = [
    pytest.param(scoring, scoring.rows, {"N_POINTS": 20_000}, id="scoring"),
    pytest.param(statistic, statistic.rows, {"N_ROUNDS": 500, "PART": 100}, id="mean"),
    pytest.param(pmp, pmp.exact, {}, id="exact"),
    pytest.param(
        pmp, pmp.sampled, {"N_SAMPLED": 300, "N_SUBSETS": 2**13, "PART": 500, "REPEATS": 4}, id="sampled"
    ),
]


@pytest.mark.nightly
def test_at_least_half_of_each_ratio() -> None:
    command, alone = [sys.executable, "-m", "benchmarks"], {**os.environ, **ONE_THREAD}
    done = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert len(re.findall(r"x +[\d,]+x$", done.stdout, re.MULTILINE)) >= 3
    assert re.search(r"peak memory +[\d.]+ GB +< 4 GB$", done.stdout, re.MULTILINE)
