"""Every mistake in DP-SGD once on MNIST: 1,000 images, 784-32-10, epsilon = 4, rate .05, 500 steps."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
from torch import nn

from leakbound.auditing.claim_tests import OF_NOISE
from leakbound.core.types import Points
from leakbound.dpsgd.config import DpSgd
from tests.networks import test_equal_records as adding
from tests.networks import test_noise_bugs as bugs
from tests.networks.training_privately import BATCHES, NOISES

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.filterwarnings("ignore:Full backward hook:UserWarning", "ignore:Secure RNG:UserWarning"),
    pytest.mark.skipif(not os.environ.get("LEAKBOUND_DATA"), reason="LEAKBOUND_DATA: MNIST is not there"),
]
CLAIMED = DpSgd(1.44623, 1.0, 0.05, 500)  # epsilon = 4 at delta = 1e-5, as in docs/plans/dpsgd.toml


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(784, 32), nn.Tanh(), nn.Linear(32, 10))


TENSORS = [parameter.numel() for parameter in network().parameters()]


@pytest.fixture(scope="module")
def images() -> Points:
    with np.load(Path(os.environ["LEAKBOUND_DATA"], "mnist_train60k.npz")) as arrays:
        x, y = (arrays[name] for name in sorted(arrays, key=lambda name: -arrays[name].ndim))
    return Points(x[:1000].reshape(1000, 784).astype(np.float32) / 255, y[:1000].astype(np.int64), digest="mnist")


@pytest.fixture(autouse=True)
def of_mnist(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (bugs, adding):
        monkeypatch.setattr(module, "network", network)
        monkeypatch.setattr(module, "TENSORS", TENSORS)
    monkeypatch.setattr(adding, "LAYERS", (784 * 32 + 32, 330))


@pytest.mark.parametrize("whose", ["ours", "plain", "opacus"])
@pytest.mark.parametrize("mistake", [*NOISES, *(mistake for mistake in BATCHES if mistake != "shuffled"), "none"])
def test_of_the_noise_and_the_batches(images, whose, mistake) -> None:
    """In leakbound's own training the batches are its own."""
    reasons = {*bugs.refused(images, bugs.wrong(whose, CLAIMED, mistake), 0)}
    if mistake == "none" or (whose == "ours" and mistake in BATCHES):
        assert not reasons
    else:
        assert bugs.expected(mistake) & reasons


@pytest.mark.parametrize("whose", ["leakbound", "plain, told", "opacus"])
@pytest.mark.parametrize("clipping", [*adding.MISTAKES, "right"])
def test_of_what_one_record_adds(images, whose, clipping) -> None:
    seen = adding.seen(images, adding.release(whose, clipping, CLAIMED), 0)
    (test,) = bugs.noise_tests(seen, adding.NO_SIGNALS, CLAIMED, adding.NAMES, OF_NOISE)
    assert (test.log_p < math.log(OF_NOISE)) == (clipping != "right")
