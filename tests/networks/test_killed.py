"""A training of networks that is killed goes on from its store, with the same bytes."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.results import of_the_result

pytestmark = pytest.mark.kills
MINE = """
import time

from torch import nn


class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Sequential(nn.BatchNorm1d(13), nn.Linear(13, 3))  # batch norm: one model at a time

    def forward(self, x):
        time.sleep(0.002)
        return self.layer(x)
"""
COMMAND = shlex.split(
    "audit --dataset wine --model slow_net:Slow --train epochs=8 --n-models 12 --attack loss --attack lira_offline"
)


OFTEN = """
from leakbound.core import checkpoints

checkpoints.EVERY, checkpoints.MOST_OF_TIME = 0.0, float("inf")  # after each epoch
"""


def started(folder: Path, command: list[str] = COMMAND, before: str = "") -> subprocess.Popen[bytes]:
    program = f"{before}\nfrom leakbound.cli.main import main\nmain()"
    words = [sys.executable, "-c", program, *command, "--out", "out", "--store", "store", "--n-jobs", "1"]
    return subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def written(folder: Path) -> dict[str, bytes]:
    """Finished chunks by name."""
    return {file.name: file.read_bytes() for file in (folder / "store").glob("[!.]*.npz")}


@pytest.mark.nightly
def test_a_kill_costs_a_chunk(tmp_path):
    """As of any models, which tests/test_kills.py kills by day."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder in (whole, cut):
        folder.mkdir()
        (folder / "slow_net.py").write_text(MINE)
    assert started(whole).wait(timeout=240) == 0
    chunks = written(whole)
    assert len(chunks) > 2
    run = started(cut)
    while len(written(cut)) < 2:
        assert run.poll() is None
        time.sleep(0.02)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    left = written(cut)
    assert 2 <= len(left) < len(chunks)
    assert left.items() <= chunks.items()
    assert not (cut / "out" / "report.json").exists()
    assert started(cut).wait(timeout=240) == 0
    assert written(cut) == chunks
    for name in ("report.json", "report.html"):
        assert of_the_result((cut / "out" / name).read_bytes()) == of_the_result((whole / "out" / name).read_bytes())


@pytest.mark.nightly
def test_a_kill_inside_a_training_costs_an_epoch(tmp_path):
    command = [word.replace("epochs=8", "epochs=400") for word in COMMAND]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder in (whole, cut):
        folder.mkdir()
        (folder / "slow_net.py").write_text(MINE)
    begin = time.monotonic()
    assert started(whole, command).wait(timeout=500) == 0
    seconds = time.monotonic() - begin
    assert not (whole / "store" / "checkpoints").exists()
    seen = set()
    for _ in range(3):  # each time inside a training, wherever that is
        run = started(cut, command, OFTEN)
        end = time.monotonic() + max(3.0, seconds / 6)
        while not (there := list((cut / "store" / "checkpoints").glob("[!.]*"))) or time.monotonic() < end:
            assert run.poll() is None
            time.sleep(0.01)
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        seen |= {file.name for file in there}
    assert seen
    assert started(cut, command, OFTEN).wait(timeout=500) == 0
    assert written(cut) == written(whole)
    assert not (cut / "store" / "checkpoints").exists()
