"""What an audit of DP-SGD would do and cost, from a few steps."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass
from time import sleep

import pytest
from torch import nn

from leakscope import data
from leakscope.attacks import find
from leakscope.auditing import costs
from leakscope.auditing.canaries import planned
from leakscope.auditing.costs import cost
from leakscope.auditing.run import setting
from leakscope.core.stopwatch import Stopwatch
from leakscope.dpsgd.config import DpSgd
from leakscope.dpsgd.network import PrivateNetwork
from leakscope.plans import AuditPlan, ModelPlan
from leakscope.runtime.observe import Execution, observe
from tests.cli.calling import caller
from tests.networks.training_privately import Training

HERE = __name__
STEPS = 30


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 8), nn.Tanh(), nn.Linear(8, 10))


own = Training(DpSgd(sample_rate=0.05, steps=STEPS), 1797)


def planting(kind: str = "dirac", **dpsgd) -> AuditPlan:
    model = ModelPlan(spec=f"{HERE}:network", name="net", dpsgd={"steps": STEPS, **dpsgd})
    return AuditPlan(dataset="digits", game="canaries", canaries=kind, n_canaries=50, model=(model,))


@pytest.fixture
def steps(monkeypatch) -> list[int]:
    """The number of steps of every training."""
    taken: list[int] = []
    real = PrivateNetwork.observe

    def spy(self, points, member, row_seeds, want):
        taken.append(self.dpsgd.steps)
        return real(self, points, member, row_seeds, want)

    monkeypatch.setattr(PrivateNetwork, "observe", spy)
    return taken


def test_a_few_steps_stand_for_all(steps):
    lines = list(cost(planting(), n_jobs=1))
    assert lines[0] == "digits: 1,797 points, 50 dirac canaries, each in by a fair coin"
    assert re.match(
        r"net: compared with epsilon = \d.*, add/remove, by the accountant of noise mult.* 30 steps", lines[2]
    )
    assert lines[3].startswith("net: 1 model, ")
    assert " with 1 worker, " in lines[3]
    assert lines[3].endswith("; measured on 11 of 30 steps")
    assert len([line for line in lines if not line.startswith("the machine is busy")]) == 4
    assert steps == [1, 1, 11]


def test_the_clock_is_that_of_all_steps(monkeypatch):
    """2 s for one step and 7 s for 11: half a second each, so 60 take 31.5 s."""
    clock = iter([9.0, 2.0, 7.0])

    @contextmanager
    def timed(limit):
        stopwatch = Stopwatch()
        yield stopwatch
        stopwatch.is_whole, stopwatch.seconds = True, next(clock)

    monkeypatch.setattr("leakscope.auditing.costs.timed", timed)
    monkeypatch.setattr("leakscope.auditing.costs._load", lambda: 1.0)
    line = list(cost(planting(steps=60), n_jobs=2))[3]
    assert "net: 1 model, 32 s each, between 21 and 63 s in all with 1 worker, " in line


def test_the_disk_is_that_of_all_steps():
    """Three numbers of 4 bytes for each step and each of the 1,797 records and 50 canaries, and 59 for all steps."""
    plan = planting(steps=2000)
    megabytes = f"{4 * (3 * 2000 + 59) * 1847 / 1e6:.1f}"
    assert f", {megabytes} MB in the store; measured on 11 of 2,000 steps" in list(cost(plan, n_jobs=1))[3]
    short = setting(planting(), find("likelihood_ratio"), planned(planting().model[0]), data.load("digits"))
    want = short.wanted(find("likelihood_ratio"))
    arrays = observe(short.release, short.data.points, short.game.member, want, execution=Execution(n_jobs=1))
    assert sum(array.nbytes for array in arrays.values()) == 4 * (3 * STEPS + 59) * 1847


def test_canaries_that_a_training_chooses_are_not_chosen_here_but_counted(steps):
    lines = list(cost(planting("mahalanobis"), n_jobs=1))
    assert lines[0] == "digits: 1,797 points, 50 mahalanobis canaries, each in by a fair coin"
    assert lines[3] == "net: the canaries are chosen in one more training"
    assert steps == [1, 1, 11]


def test_a_training_of_ones_own_is_timed_whole(steps):
    lines = list(cost(planting("mislabelled", train=f"{HERE}:own"), n_jobs=1))
    assert lines[3].startswith("net: 1 model, ")
    assert steps == [STEPS]


@dataclass(frozen=True)
class Slow(Training):
    """A loop of which a step takes 20 ms."""

    def update(self, gradients, normaliser, generator):
        sleep(0.02)
        return super().update(gradients, normaliser, generator)


slow = Slow(DpSgd(sample_rate=0.05, steps=STEPS), 1797)


def test_a_long_training_of_ones_own_is_stopped_and_its_steps_stand_for_all(steps, monkeypatch):
    """Nothing else is trained: neither a part of the records nor the canaries that a training would choose."""
    monkeypatch.setattr(costs, "MOST_SECONDS", 0.5)
    lines = list(cost(planting("mahalanobis", train=f"{HERE}:slow"), n_jobs=1))
    assert steps == [STEPS]
    [seconds, n_steps] = re.search(
        r"net: 1 model, (\d\.?\d*) s each, .* measured on the first (\d+) of 30 steps$", lines[4]
    ).groups()
    assert 2 <= int(n_steps) < STEPS
    assert float(seconds) >= 0.02 * STEPS


def test_half_splits_are_compared_with_the_curve_of_a_swap(steps):
    plan = AuditPlan(dataset="digits", n_models=8, model=planting().model)
    lines = list(cost(plan, n_jobs=2))
    assert lines[0] == "digits: 1,797 points, 1,618 target points, 179 set aside"
    assert ", replace one, " in lines[2]
    assert lines[3].startswith("net: 8 models, ")


def test_from_the_command_line(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    words = f"--model {HERE}:network --dataset digits --dpsgd steps=20 --game canaries --canaries random"
    left = caller(monkeypatch, capfd)(f"audit {words} --dry-run --json --allow-modules {HERE}")
    assert left.code == 0
    assert [line.split(":")[0].split(",")[0] for line in json.loads(left.out)][:5] == [
        f"imports {HERE}", "digits", "to find out what this costs", "network", "network",
    ]  # fmt: skip
    assert not list(tmp_path.iterdir())
