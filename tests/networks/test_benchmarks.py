"""Speed of networks: at least half of each wanted ratio, in a process of its own with one thread."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from benchmarks.networks import has_bfloat16

from tests.test_benchmarks import ONE_THREAD, ROOT

MEASURE = """
import json
from benchmarks import networks
print(json.dumps([(row.name, row.ratio, row.wanted) for row in networks.{rows}()]))
"""


def measured(rows: str) -> list[tuple[str, float, float]]:
    """Name, ratio and wanted ratio of each row."""
    alone = {**os.environ, **ONE_THREAD}
    command = [sys.executable, "-c", MEASURE.format(rows=rows)]
    done = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.benchmarks
def test_at_least_half_of_each_ratio() -> None:
    rows = measured("short_rows")
    assert len(rows) == 2
    assert [row for row in rows if row[1] < row[2] / 2] == []


@pytest.mark.benchmarks
@pytest.mark.nightly
def test_at_least_half_of_the_other_ratios() -> None:
    """Of convolutions, and in bfloat16 where the processor has it."""
    rows = measured("long_rows")
    assert len(rows) == 1 + 2 * has_bfloat16()
    assert [row for row in rows if row[1] < row[2] / 2] == []
