"""Canaries as records of a network with a layer more: what it answers, and what their gradients are."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from leakbound.dpsgd.canary_layer import marked
from leakbound.dpsgd.clipping import clipped_sum, gradients_of
from leakbound.releases.networks.tensors import inputs_of

N, LENGTH = 30, 20.0
CANARIES = np.array([4, 9, 17, 28])


def dense() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))


def convolution() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.Tanh(), nn.Flatten(), nn.Linear(2 * 16, 3))


@pytest.fixture(params=[(dense, (6,)), (convolution, (1, 6, 6))], ids=["dense", "images"])
def given(request):
    """A network, its points as they were, and all three with canaries."""
    factory, shape = request.param
    torch.manual_seed(0)
    network, rng = factory(), np.random.default_rng(0)
    inputs = inputs_of(rng.normal(size=(N, *shape)))
    label = torch.from_numpy(rng.integers(3, size=N))
    return network, inputs, label, marked(network, inputs, label, CANARIES, LENGTH)


def test_only_the_canaries_are_others_than_they_were(given):
    _, inputs, label, (_, read, labels) = given
    everyone, others = np.arange(N), np.setdiff1d(np.arange(N), CANARIES)
    x = read.batch(everyone)
    assert torch.equal(x[others, :-1].unflatten(1, inputs.shape), inputs.batch(others))
    assert (x[CANARIES, :-1] == 0).all()
    assert x[CANARIES, -1].tolist() == [1, 2, 3, 4]
    assert (x[others, -1] == 0).all()
    assert torch.equal(labels[others], label[others])
    assert labels[CANARIES].tolist() == [0, 1, 2, 0]


def test_the_answers_are_those_of_the_network_whatever_the_layer_holds(given):
    network, inputs, _, (both, read, _) = given
    nn.init.normal_(both.canaries.weight)
    features = inputs.batch(np.arange(N))
    features[CANARIES] = 0
    assert torch.allclose(both(read.batch(np.arange(N))), network(features), atol=1e-5)


def test_a_canary_has_a_parameter_of_its_own(given):
    """length (p - 1) there, p the probability of its class, and 0 at those of the others."""
    network, _, _, (both, read, labels) = given
    for number in range(N):
        both.zero_grad()
        answer = both(read.batch(np.array([number])))
        cross_entropy(answer, labels[number : number + 1]).backward()
        expected = np.zeros(len(CANARIES))
        if number in CANARIES:
            p = float(answer.detach().softmax(1)[0, labels[number]])
            expected[CANARIES.tolist().index(number)] = LENGTH * (p - 1)
        np.testing.assert_allclose(both.canaries.weight.grad[0], expected, rtol=1e-5, atol=1e-6)
    assert network is both.network


def test_clipping_leaves_them_nothing_else(given):
    """Of a gradient of norm c at least .9 c: what is left for the network's own parameters is little."""
    _, _, _, (both, read, labels) = given
    theta = nn.utils.parameters_to_vector(both.parameters()).detach()
    names, first = dict(both.named_parameters()), 0
    for name, each in names.items():
        if name == "canaries.weight":
            break
        first += each.numel()
    own = slice(first, first + len(CANARIES))
    rows = gradients_of(both).rows(theta, read.batch(CANARIES), labels[CANARIES])
    total = clipped_sum([rows], 0.5, torch.zeros_like(theta))[own]
    assert (total < -0.45).all()
    assert (total >= -0.5).all()


def test_opacus_sees_the_same_gradients(given):
    _, _, _, (both, read, labels) = given
    theta = nn.utils.parameters_to_vector(both.parameters()).detach()
    x = read.batch(np.arange(N))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Full backward hook", category=UserWarning)
        hooks = gradients_of(both, "opacus").rows(theta, x, labels)
    plain = gradients_of(both, "vmap").rows(theta, x, labels)
    vector = torch.from_numpy(np.random.default_rng(1).normal(size=len(theta))).float()
    np.testing.assert_allclose(hooks.squares(), plain.squares(), rtol=1e-4)
    np.testing.assert_allclose(hooks.dots(vector), plain.dots(vector), rtol=1e-3, atol=1e-4)
