"""What an audit of DP-SGD would do, and what one training takes."""

from __future__ import annotations

import json
import re

import pytest
from torch import nn

import leakbound as ls
from leakbound import data
from leakbound.attacks import find
from leakbound.auditing.canaries import planned
from leakbound.auditing.dry_run import dry_run
from leakbound.auditing.run import setting
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.network import PrivateNetwork
from leakbound.plans import AuditPlan, ModelPlan
from leakbound.runtime.observe import Execution, observe
from tests.cli.calling import caller
from tests.networks.training_privately import Training

HERE = __name__
STEPS = 30


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 8), nn.Tanh(), nn.Linear(8, 10))


own = Training(DpSgd(sample_rate=0.05, steps=STEPS), 1797)


def planting(kind: str = "dirac", **dpsgd) -> AuditPlan:
    model = ModelPlan(spec=f"{HERE}:network", name="net", dpsgd={"steps": STEPS, **dpsgd})
    return AuditPlan(dataset="digits", game=ls.Canaries(kind, n=50), model=(model,))


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


def test_what_is_compared_and_what_the_training_takes(steps):
    lines = list(dry_run(planting()))
    assert lines[0] == "digits: 1,797 points, 50 dirac canaries, each in by a fair coin"
    assert re.match(
        r"net: compared with epsilon = \d.*, add/remove, by the accountant of noise mult.* 30 steps", lines[2]
    )
    assert lines[3].startswith("net: 1 model, ")
    assert len(lines) == 4
    assert steps == [STEPS]


def test_the_disk_is_that_of_all_steps():
    """Three numbers of 4 bytes for each step and each of the 1,797 records and 50 canaries; and 59 of the training."""
    n_bytes = 4 * (3 * STEPS * 1847 + 59)
    megabytes = f"{n_bytes / 1e6:.1f}"
    assert list(dry_run(planting()))[3].endswith(f", {megabytes} MB in the store for all")
    short = setting(planting().game, 1, find("likelihood_ratio"), planned(planting().model[0]), data.load("digits"))
    want = short.wanted(find("likelihood_ratio"))
    arrays = observe(short.release, short.data.points, short.game.member, want, execution=Execution(n_jobs=1))
    assert sum(array.nbytes for array in arrays.values()) == n_bytes


def test_canaries_that_a_training_chooses_are_not_chosen_here_but_counted(steps):
    lines = list(dry_run(planting("mahalanobis")))
    assert lines[0] == "digits: 1,797 points, 50 mahalanobis canaries, each in by a fair coin"
    assert lines[3] == "net: the canaries are chosen in one more training"
    assert steps == [STEPS]


def test_a_training_of_ones_own_is_measured(steps):
    lines = list(dry_run(planting("mislabelled", train=f"{HERE}:own")))
    assert lines[3].startswith("net: 1 model, ")
    assert steps == [STEPS]


@pytest.mark.slow
def test_half_splits_are_compared_with_the_curve_of_a_swap(steps):
    plan = AuditPlan(dataset="digits", n_models=8, model=planting().model)
    lines = list(dry_run(plan))
    assert lines[0] == "digits: 1,797 points, 1,618 target points, 179 set aside"
    assert ", replace one, " in lines[2]
    assert lines[3].startswith("net: 8 models, ")


def test_from_the_command_line(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    words = f"--model {HERE}:network --dataset digits --dpsgd steps=20 --game canaries,kind=random"
    left = caller(monkeypatch, capfd)(f"audit {words} --dry-run --json --allow-modules {HERE}")
    assert left.code == 0
    assert [line.split(":")[0].split(",")[0] for line in json.loads(left.out)][:5] == [
        f"imports {HERE}", "digits", "one model is fitted now", "network", "network",
    ]  # fmt: skip
    assert not list(tmp_path.iterdir())
