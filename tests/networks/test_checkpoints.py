"""A training that is interrupted goes on from its checkpoint, and ends with the bytes of one that was not."""

from __future__ import annotations

import io
import pickle
import stat
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from leakbound.core import checkpoints
from leakbound.core.checkpoints import kept_in
from leakbound.dpsgd import network
from leakbound.dpsgd.clipping import noisy_sum
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.network import PrivateNetwork
from leakbound.releases.networks import training
from leakbound.releases.networks.ensemble import BatchedEnsemble, SingleModel, VmapEnsemble, single_model
from leakbound.releases.networks.network import Network
from leakbound.releases.networks.recipe import Recipe
from leakbound.releases.networks.training import train
from leakbound.runtime.checkpoints import StoredCheckpoints
from leakbound.runtime.execution import Execution
from leakbound.runtime.observe import observe
from leakbound.runtime.store import Store, key

from .branches import Branches
from .conftest import stack
from .test_ensemble import made

KEY = key(row=0)


class Killed(BaseException):
    """Stands for the end of the process: nothing in the package catches it."""


class Normalised(nn.Module):
    """Batch norm, whose running statistics are no parameters, a buffer that is in no state dict, and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))
        self.register_buffer("n_calls", torch.zeros(()), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.n_calls += 1
        return self.layers(x) * (1 + self.n_calls / 100)


class Counts(nn.Module):
    """Changes a plain attribute in training."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.n_calls = nn.Linear(6, 3), 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.n_calls += self.training
        return self.layer(x) * (1 + self.n_calls / 100)


@pytest.fixture(autouse=True)
def after_each_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    monkeypatch.setattr(checkpoints, "MOST_OF_TIME", np.inf)


@pytest.fixture
def epochs(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """How many epochs were trained, and after how many the process is killed."""
    counts: dict[str, Any] = {"trained": 0, "kill_at": np.inf}
    whole = training._train_epoch

    def one_epoch(*arguments: Any) -> Any:
        if counts["trained"] == counts["kill_at"]:
            raise Killed
        counts["trained"] += 1
        return whole(*arguments)

    monkeypatch.setattr(training, "_train_epoch", one_epoch)
    return counts


def numbers_of(modules: list[nn.Module]) -> list[np.ndarray]:
    return [tensor.detach().numpy() for module in modules for tensor in (*module.parameters(), *module.buffers())]


LEARNERS = [
    (single_model, Normalised, 1, {}),
    (single_model, Normalised, 1, {"augment": "none", "optimiser": "sgd", "lr": 0.05, "momentum": 0.9}),
    (BatchedEnsemble, stack, 4, {"stop": 0.02, "lr": 0.02}),
    (BatchedEnsemble, partial(stack, dropout=0.2), 4, {"optimiser": "sgd", "lr": 0.1, "schedule": "cosine"}),
    (VmapEnsemble, partial(Branches, dropout=0.2), 3, {"optimiser": "adamw", "weight_decay": 0.1}),
    (VmapEnsemble, Branches, 4, {"stop": 0.02, "lr": 0.02, "schedule": "step", "decay_epochs": 3}),
]


@pytest.mark.by_day("single_model-Normalised-1-words0", "VmapEnsemble-Branches-4-words5")
@pytest.mark.parametrize(("kind", "make", "n", "words"), LEARNERS)
def test_the_bytes_are_those_of_a_training_without_interruption(kind, make, n, words, training_data_of, epochs) -> None:
    recipe = Recipe(epochs=9, batch=16, **words)
    data, members = training_data_of(recipe), [np.arange(start, start + 48) for start in range(0, 20 * n, 20)]
    seeds = list(range(n))
    whole = made(make, n)
    train(kind(whole), data, members, seeds)
    n_epochs = epochs["trained"]
    assert n_epochs > 4
    # wherever it is killed, and twice: after a resume it may be killed again
    for kills in [(1,), (n_epochs // 2,), (n_epochs - 1,), (2, 2)]:
        place = StoredCheckpoints(Store("memory://interrupted"), key(kills=kills, kind=kind.__name__, words=words))
        n_trained, modules = 0, []
        for kill_at in (*kills, np.inf):
            epochs |= {"trained": 0, "kill_at": kill_at}
            modules = made(make, n)  # a new process builds them anew
            with kept_in(place):
                if kill_at < np.inf:
                    with pytest.raises(Killed):
                        train(kind(modules), data, members, seeds)
                else:
                    train(kind(modules), data, members, seeds)
            n_trained += epochs["trained"]
        assert n_trained == n_epochs, "no epoch is trained twice"
        for resumed, expected in zip(numbers_of(modules), numbers_of(whole), strict=True):
            assert resumed.tobytes() == expected.tobytes()
        place.remove()


def test_models_that_stop_leave_before_the_others(training_data_of, epochs) -> None:
    """So that the test above sees a checkpoint of some of the models."""
    place = StoredCheckpoints(Store("memory://stopping"), KEY)
    recipe = Recipe(epochs=9, batch=16, stop=0.02, lr=0.02)
    epochs["kill_at"] = 6
    with kept_in(place), pytest.raises(Killed):
        train(
            BatchedEnsemble(made(stack)),
            training_data_of(recipe),
            [np.arange(start, start + 48) for start in (0, 20, 40, 60)],
            [0, 1, 2, 3],
        )
    (path,) = place._names
    content = Store("memory://stopping").place.read(path)
    assert content is not None
    _, _, written = content[32:].partition(b"\n")  # behind the digest, and what was read so far
    state = torch.load(io.BytesIO(written), weights_only=True)
    assert 0 < len(state["models"]["training"]) < 4
    place.remove()


def test_a_network_with_a_state_of_its_own_begins_again(training_data_of, epochs) -> None:
    recipe, store = Recipe(epochs=5, batch=16), Store("memory://counting")
    data, members = training_data_of(recipe), [np.arange(48)]
    (whole,) = made(Counts, 1)
    train(SingleModel(whole), data, members, [0])
    epochs |= {"trained": 0, "kill_at": 3}
    with kept_in(StoredCheckpoints(store, KEY)), pytest.raises(Killed):
        train(SingleModel(made(Counts, 1)[0]), data, members, [0])
    assert store.bytes_beside() == 0
    epochs |= {"trained": 0, "kill_at": np.inf}
    (again,) = made(Counts, 1)
    with kept_in(StoredCheckpoints(store, KEY)):
        train(SingleModel(again), data, members, [0])
    assert epochs["trained"] == 5
    for resumed, expected in zip(numbers_of([again]), numbers_of([whole]), strict=True):
        assert resumed.tobytes() == expected.tobytes()


class Opened:
    """Writes a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.file,))


@pytest.mark.parametrize("content", ["cut", "changed", "pickled", "other kind", "other machine"])
def test_what_cannot_be_used_is_not_used(content, training_data_of, epochs, tmp_path, monkeypatch) -> None:
    recipe, store = Recipe(epochs=4, batch=16), Store(tmp_path / "store")
    data, members, place = training_data_of(recipe), [np.arange(48)], StoredCheckpoints(store, KEY)
    (whole,) = made(stack, 1)
    train(SingleModel(whole), data, members, [0])
    epochs |= {"trained": 0, "kill_at": 2}
    with kept_in(place), pytest.raises(Killed):
        train(SingleModel(made(stack, 1)[0]), data, members, [0])
    kind: type[SingleModel] = SingleModel
    (path,) = (tmp_path / "store" / "checkpoints").iterdir()
    written = path.read_bytes()
    if content == "cut":
        path.write_bytes(written[:-10])
    elif content == "changed":
        path.write_bytes(written[:500] + bytes([written[500] ^ 1]) + written[501:])
    elif content == "pickled":  # by somebody who knows the digest
        place.write(path.name.split(".")[2], pickle.dumps(Opened(tmp_path / "opened")))
    elif content == "other kind":
        kind = type("Another", (SingleModel,), {})
    else:
        monkeypatch.setattr("leakbound.runtime.checkpoints.this_machine", lambda: type("", (), {"digest": "0" * 16}))
    epochs |= {"trained": 0, "kill_at": np.inf}
    (again,) = made(stack, 1)
    with kept_in(StoredCheckpoints(store, KEY)):
        train(kind(again), data, members, [0])
    assert epochs["trained"] == 4
    assert not (tmp_path / "opened").exists()
    for resumed, expected in zip(numbers_of([again]), numbers_of([whole]), strict=True):
        assert resumed.tobytes() == expected.tobytes()


# ---------------------------------------------------------------------------------------------------------------------
# By DP-SGD


@dataclass
class Steps:
    """How many steps of DP-SGD were made, and after how many the process is killed."""

    made: int = 0
    kill_at: float = np.inf


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    counts, drawn = Steps(), network._Training._drawn_batch

    def one_batch(*arguments: Any) -> Any:
        if counts.made == counts.kill_at:
            raise Killed
        counts.made += 1
        return drawn(*arguments)

    monkeypatch.setattr(network._Training, "_drawn_batch", one_batch)
    return counts


def without_dropout() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


DPSGD = DpSgd(noise_multiplier=1.0, sample_rate=0.2, steps=9, lr=0.2)
CANARIES = tuple(range(60, 90))
PRIVATE = {
    "records": {"watched": CANARIES},
    "Dirac canaries": {"watched": CANARIES, "coordinates": tuple(range(30)), "knowledge": "others"},
    "batches of fixed size": {"watched": CANARIES, "dpsgd": replace(DPSGD, batches="fixed")},
    "coarse parameters": {"watched": CANARIES, "dpsgd": replace(DPSGD, lr=1e-7)},
}
SIGNALS = ["loss", "step_dot", "step_norm", "step_noise", "step_tensors", "step_fresh", "step_batches", "step_in"]


@pytest.mark.by_day("Dirac canaries")
@pytest.mark.parametrize("words", PRIVATE.values(), ids=list(PRIVATE))
def test_a_training_by_dpsgd_and_what_was_seen_of_it_go_on(words, points, member, steps, tmp_path) -> None:
    release = PrivateNetwork(without_dropout, **({"dpsgd": DPSGD} | words))
    what = (release, points, member[:2], SIGNALS)
    whole = observe(*what, execution=Execution(tmp_path / "whole", n_jobs=1))
    assert steps.made == 18
    assert {"loss", "step_dot", "step_fresh"} <= whole.keys()
    for kill_at in (4, 8, 2):  # in the first model, in its last step, and in the second one
        steps.made, steps.kill_at = 0, kill_at
        with pytest.raises(Killed):
            observe(*what, execution=Execution(tmp_path / "store", n_jobs=1))
    steps.made, steps.kill_at = 0, np.inf
    resumed = observe(*what, execution=Execution(tmp_path / "store", n_jobs=1))
    assert steps.made == 18 - (4 + 8 + 2)
    assert resumed.keys() == whole.keys()
    for name, values in whole.items():
        assert resumed[name].tobytes() == values.tobytes(), name
    assert not (tmp_path / "store" / "checkpoints").exists()


def own_sum(*arguments: Any) -> Any:
    return noisy_sum(*arguments)


def test_a_sum_of_a_users_own_may_remember_and_has_no_checkpoints(points, member, steps, tmp_path) -> None:
    release = PrivateNetwork(without_dropout, DPSGD, watched=CANARIES, aggregate=own_sum)
    steps.kill_at = 5
    with pytest.raises(Killed):
        observe(release, points, member[:1], ["step_dot"], execution=Execution(tmp_path / "store", n_jobs=1))
    assert Store(tmp_path / "store").bytes_beside() == 0


# ---------------------------------------------------------------------------------------------------------------------
# In a store


def test_an_audit_goes_on_inside_a_model(points, member, epochs, tmp_path) -> None:
    release = Network(Normalised, Recipe(epochs=6, batch=16), rows=1)
    whole = observe(release, points, member[:3], ["loss"], execution=Execution(tmp_path / "whole", n_jobs=1))["loss"]
    assert epochs["trained"] == 18
    epochs |= {"trained": 0, "kill_at": 10}  # in the second model, after 4 of its epochs
    with pytest.raises(Killed):
        observe(release, points, member[:3], ["loss"], execution=Execution(tmp_path / "store", n_jobs=1))
    (checkpoint,) = (tmp_path / "store" / "checkpoints").iterdir()
    assert stat.S_IMODE(checkpoint.stat().st_mode) == 0o600
    assert Store(tmp_path / "store").bytes_beside() == checkpoint.stat().st_size
    epochs |= {"trained": 0, "kill_at": np.inf}
    resumed = observe(release, points, member[:3], ["loss"], execution=Execution(tmp_path / "store", n_jobs=1))["loss"]
    assert epochs["trained"] == 8
    assert resumed.tobytes() == whole.tobytes()
    assert not (tmp_path / "store" / "checkpoints").exists()


def test_without_a_store_nothing_is_written(points, member, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(training.TrainingCheckpoint, "_plain_attributes", lambda self: pytest.fail("asked"))
    release = Network(stack, Recipe(epochs=2, batch=16))
    observe(release, points, member[:2], ["loss"], execution=Execution(None, n_jobs=1))


def test_short_trainings_write_none(points, member, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(checkpoints, "EVERY", 60.0)
    monkeypatch.setattr(StoredCheckpoints, "write", lambda *_: pytest.fail("written"))
    release = Network(stack, Recipe(epochs=2, batch=16))
    observe(release, points, member[:2], ["loss"], execution=Execution(tmp_path / "store", n_jobs=1))
