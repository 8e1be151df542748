"""Networks that bring a training step of their own, as those of Lightning do."""

import numpy as np
import pytest
import torch
from torch import nn

import leakbound as ls
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.network import PrivateNetwork
from leakbound.releases.factory import release_of, trained_release

STEPS = []


class Classifier(nn.Module):
    """What leakbound sees of a LightningModule: a network with a method training_step."""

    def __init__(self, width=2):
        super().__init__()
        self.net = nn.Linear(3, width)

    def forward(self, rows):
        return self.net(rows)

    def training_step(self, batch, index):
        STEPS.append(index)
        rows, labels = batch
        return nn.functional.cross_entropy(self(rows), labels)


def make():
    return Classifier(2)


def fit(X, y, seed):
    """What a Trainer does, in five lines."""
    torch.manual_seed(seed)
    network = Classifier()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for index in range(3):
        optimizer.zero_grad()
        network.training_step((torch.tensor(X), torch.tensor(y)), index).backward()
        optimizer.step()
    return network


def data():
    X = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
    return X, (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("model", [Classifier, make, Classifier()], ids=["class", "function", "instance"])
def test_leakbound_does_not_train_them_by_another_step(model):
    with pytest.raises(ValueError, match=r"has a training_step, which leakbound would not call: give a function fit\("):
        release_of(model, train={"epochs": 1})


def test_a_function_that_calls_their_trainer_is_audited():
    STEPS.clear()
    report = ls.audit(fit, *data(), n_models=4, attacks=["loss"])
    assert len(STEPS) >= 3 * 4
    assert report.findings


def test_they_may_be_trained_already():
    network = fit(*data(), 0)
    assert trained_release(network).name == "model"


def test_dp_sgd_asks_for_their_loop():
    with pytest.raises(ValueError, match=r"give the loop that does as dpsgd=\{"):
        PrivateNetwork(make, DpSgd(steps=1), watched=(0,)).n_parameters()
    own = PrivateNetwork(make, DpSgd(steps=1), watched=(0,), train=print)
    assert own.n_parameters() == 8
