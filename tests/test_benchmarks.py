"""Speed and memory: at least half of each wanted ratio, measured as users measure it, in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@pytest.mark.benchmarks
def test_at_least_half_of_each_ratio() -> None:
    command, alone = [sys.executable, "-m", "benchmarks"], {**os.environ, **ONE_THREAD}
    done = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert len(re.findall(r"x +[\d,]+x$", done.stdout, re.MULTILINE)) >= 3
    assert re.search(r"peak memory +[\d.]+ GB +< 4 GB$", done.stdout, re.MULTILINE)
