"""Speed of networks: at least half of each wanted ratio, in a process of its own with one thread."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.test_benchmarks import ONE_THREAD, ROOT

MEASURE = """
import json
from benchmarks.networks import rows
print(json.dumps([(row.name, row.ratio, row.wanted) for row in rows()]))
"""


@pytest.mark.benchmarks
def test_at_least_half_of_each_ratio() -> None:
    alone = {**os.environ, **ONE_THREAD}
    done = subprocess.run([sys.executable, "-c", MEASURE], cwd=ROOT, env=alone, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert len(rows) == 6  # tiny, middle and convolutional networks; some of them with fast_matmul and in bfloat16
    assert [row for row in rows if row[1] < row[2] / 2] == []
