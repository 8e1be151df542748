"""What networks read and how they answer: token ids, dictionaries, ragged rows, objects with logits, memory layouts."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from leakbound.core.types import Points
from leakbound.data import from_arrays
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.network import PrivateNetwork
from leakbound.releases.networks import devices
from leakbound.releases.networks.architecture import Architecture, built
from leakbound.releases.networks.ensemble import SingleModel, laid_out, works_channels_last
from leakbound.releases.networks.interface import Interface, reading_of, reading_of_array
from leakbound.releases.networks.network import Network, Trained
from leakbound.releases.networks.recipe import Recipe
from leakbound.releases.networks.tensors import field_inputs, inputs_of
from leakbound.releases.networks.training import TrainingData, trained

QUICK = Recipe(epochs=3, batch=16, lr=0.05)
EVERYONE, NO_SEED = np.ones((1, 40), dtype=bool), np.zeros(1, dtype=int)
WANT = ["loss", "log_odds", "correct", "log_prob", "gradient_norm"]


@dataclass
class Output:
    """What a model of Hugging Face returns."""

    logits: torch.Tensor
    loss: torch.Tensor | None = None


class Tokens(nn.Module):
    """Mean of embeddings, and a linear layer; ``answer`` says in what the logits are returned."""

    def __init__(self, answer: str = "tensor") -> None:
        super().__init__()
        self.embedding, self.head, self.answer = nn.Embedding(20, 4), nn.Linear(4, 3), answer

    def forward(self, input_ids, attention_mask=None):
        embedded = self.embedding(input_ids)
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        mask = mask.unsqueeze(-1)
        return answered(self.head((embedded * mask).sum(dim=1) / mask.sum(dim=1)), self.answer)


class Padded(Tokens):
    """A network that finds the padding by the token 0."""

    def forward(self, ids):
        return super().forward(ids, (ids > 0).long())


def answered(logits: torch.Tensor, answer: str):
    forms = {
        "tensor": logits,
        "object": Output(logits),
        "dict": {"loss": None, "logits": logits},
    }
    return forms[answer]


def cross_entropies(module: nn.Module, *batch, label: np.ndarray) -> np.ndarray:
    """The loss of each point by PyTorch alone."""
    with torch.no_grad():
        logits = module.eval()(*batch).double()
    return nn.functional.cross_entropy(logits, torch.as_tensor(label), reduction="none").numpy()


@pytest.fixture
def ids() -> Points:
    rng = np.random.default_rng(0)
    return Points(rng.integers(20, size=(40, 6)), np.arange(40) % 3)


@pytest.fixture
def ragged(ids) -> Points:
    lengths = np.random.default_rng(2).integers(2, 7, size=40)
    rows = [(row % 19 + 1)[:length].tolist() for row, length in zip(ids.x, lengths, strict=True)]
    return from_arrays(rows, ids.y)


@pytest.fixture
def member() -> np.ndarray:
    return np.random.default_rng(1).random((3, 40)) < 0.5


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_token_ids_stay_whole_numbers(ids, dtype):
    module, x = Tokens(), ids.x.astype(dtype)
    reading = reading_of_array(module, x, "net")
    assert reading.inputs.shape == (6,)
    batch = reading.inputs.batch(np.array([3, 0]))
    assert batch.dtype == torch.int64
    np.testing.assert_array_equal(batch.numpy(), x[[3, 0]])
    seen = Trained(module).observe(Points(x, ids.y), EVERYONE, NO_SEED, WANT)
    np.testing.assert_allclose(seen["loss"][0], cross_entropies(module, torch.as_tensor(ids.x), label=ids.y), rtol=1e-5)


def test_whole_numbers_are_floats_for_other_networks():
    reading = reading_of_array(nn.Linear(3, 2), np.arange(12).reshape(4, 3), "net")
    assert reading.inputs.batch(np.arange(4)).dtype == torch.float32
    assert reading.interface == Interface()


@pytest.mark.parametrize("shape", [(40, 2, 3), (40, 2, 3, 3)])
def test_token_ids_are_no_images(shape):
    class Flat(Tokens):
        def forward(self, x):
            return super().forward(x.flatten(1))

    reading = reading_of_array(Flat(), np.random.default_rng(0).integers(20, size=shape), "net")
    assert reading.inputs.shape == shape[1:]
    assert not reading.inputs.image


def test_a_token_that_is_out_of_range_is_refused_before_training(ids, member):
    ids.x[17, 2] = 20
    with pytest.raises(ValueError, match=r"Tokens cannot read points of shape \(6,\): .*out of range"):
        Network(Tokens, QUICK).observe(ids, member, np.arange(3), ["loss"])


def test_gradients_of_a_network_with_tokens(ids):
    module = Tokens()
    seen = Trained(module).observe(ids, EVERYONE, NO_SEED, ["gradient_norm"])["gradient_norm"][0]
    for point in (0, 7):
        module.zero_grad()
        logits = module(torch.as_tensor(ids.x[point : point + 1]))
        nn.functional.cross_entropy(logits, torch.as_tensor(ids.y[point : point + 1])).backward()
        square = sum(float(parameter.grad.square().sum()) for parameter in module.parameters())
        assert seen[point] == pytest.approx(np.sqrt(square), rel=1e-4)


@pytest.mark.parametrize("answer", ["object", "dict"])
def test_logits_in_what_is_returned(ids, member, answer):
    """The same numbers as of the network that returns a tensor."""
    plain = Network(Tokens, QUICK).observe(ids, member, np.arange(3), WANT)
    seen = Network(Tokens, QUICK, parameters={"answer": answer}).observe(ids, member, np.arange(3), WANT)
    assert set(seen) == set(WANT)
    for name in WANT:
        np.testing.assert_allclose(seen[name], plain[name], rtol=1e-5, atol=1e-6)


def test_layers_of_a_network_that_returns_an_object(ids, member):
    seen, plain = (
        Network(Tokens, QUICK, parameters={"answer": answer}, layers="head").observe(
            ids, member, np.arange(3), ["gradient_norm"]
        )
        for answer in ("object", "tensor")
    )
    np.testing.assert_allclose(seen["gradient_norm"], plain["gradient_norm"], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("wrapped", "kind"), [(lambda logits: {"loss": logits}, "dict"), (lambda y: (y, y), "tuple")])
def test_an_answer_without_logits(ids, wrapped, kind):
    class Nothing(Tokens):
        def forward(self, input_ids):
            return wrapped(super().forward(input_ids))

    message = rf"must answer 2 points with a tensor of shape \(2, classes\), got a {kind}; wrap it in a network whose"
    with pytest.raises(ValueError, match=message):
        Trained(Nothing()).observe(ids, EVERYONE, NO_SEED, ["loss"])


def test_whole_numbers_that_a_network_cannot_read():
    """The error says what they are to this network, and how they become the other."""

    class Looks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.ones(20, 3))

        def forward(self, x):
            return self.table[x].sum(1)

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.last = nn.Embedding(3, 3), nn.Linear(6, 3)

        def forward(self, x):
            return self.last(x) + self.embedding.weight.sum(0)

    x = np.arange(12).reshape(2, 6)
    with pytest.raises(ValueError, match=r"whole numbers are float32 for networks without nn.Embedding; by name, X="):
        reading_of_array(Looks(), x, "net")
    assert reading_of(Looks(), field_inputs(from_arrays({"x": x}, np.arange(2)).x), "net").n_outputs == 3
    with pytest.raises(ValueError, match=r"whole numbers are int64 for networks with nn.Embedding; X.astype"):
        reading_of_array(Scaled(), x, "net")
    assert reading_of_array(Scaled(), x.astype("float32"), "net").n_outputs == 3


def test_a_dictionary_of_arrays(ids, member):
    mask = (np.arange(6) < np.random.default_rng(2).integers(2, 7, size=40)[:, None]).astype(np.int64)
    points = from_arrays({"input_ids": ids.x, "attention_mask": mask}, ids.y)
    module = Tokens()
    seen = Trained(module).observe(points, EVERYONE, NO_SEED, ["loss", "gradient_norm"])
    assert set(seen) == {"loss"}  # gradients are those of networks with one tensor as input
    batch = torch.as_tensor(ids.x), torch.as_tensor(mask)
    np.testing.assert_allclose(seen["loss"][0], cross_entropies(module, *batch, label=ids.y), rtol=1e-5)
    rows = Network(Tokens, QUICK).observe(points, member, np.arange(3), ["loss"])["loss"]
    assert rows.shape == (3, 40)
    assert np.isfinite(rows).all()


def test_a_mask_of_ones_is_no_mask(ids, member):
    """A dictionary, one model after the other, against an array, all models at once."""
    points = from_arrays({"input_ids": ids.x, "attention_mask": np.ones((40, 6), dtype=np.int64)}, ids.y)
    rows = Network(Tokens, QUICK).observe(points, member, np.arange(3), ["loss"])["loss"]
    plain = Network(Tokens, QUICK).observe(ids, member, np.arange(3), ["loss"])["loss"]
    np.testing.assert_allclose(rows, plain, rtol=1e-4, atol=1e-5)


def test_fields_keep_their_kind_of_numbers():
    class Kinds(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))

        def forward(self, whole, truth, real, pixels):
            assert (whole.dtype, truth.dtype, real.dtype) == (torch.int64, torch.bool, torch.float32)
            assert pixels.shape[1:] == (1, 4, 4)
            return torch.stack([pixels.mean((1, 2, 3)), real], dim=1) * self.scale

    x = {
        "whole": np.arange(40, dtype=np.int16),
        "truth": np.arange(40) > 3,
        "real": np.linspace(0, 1, 40),
        "pixels": np.full((40, 4, 4), 255, dtype=np.uint8),
    }
    seen = Trained(Kinds()).observe(from_arrays(x, np.arange(40) % 2), EVERYONE, NO_SEED, ["loss"])["loss"][0]
    logits = np.column_stack([np.ones(40), x["real"]])
    expected = np.log(np.exp(logits).sum(1)) - logits[np.arange(40), np.arange(40) % 2]
    np.testing.assert_allclose(seen, expected, rtol=1e-5)


def test_a_name_that_the_network_does_not_take(ids, member):
    points = from_arrays({"input_idz": ids.x}, ids.y)
    with pytest.raises(ValueError, match=r"cannot read input_idz of shape \(6,\): .*unexpected keyword .*input_idz"):
        Network(Tokens, QUICK).observe(points, member, np.arange(3), ["loss"])


def pad(batch):
    rows, labels = zip(*batch, strict=True)
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True), torch.tensor(labels)


def sort_and_pad(batch):
    return pad(sorted(batch, key=lambda pair: -pair[1]))


def pad_and_mask(batch):
    ids, labels = pad(batch)
    return {"input_ids": ids, "attention_mask": (ids > 0).long()}, labels


@pytest.mark.parametrize(("make", "collate"), [(Padded, pad), (Tokens, pad_and_mask)])
def test_rows_of_different_lengths(ragged, member, make, collate):
    """Against the same rows, padded beforehand."""
    recipe = Recipe(epochs=3, batch=16, lr=0.05, collate=collate)
    rows = Network(make, recipe).observe(ragged, member, np.arange(3), ["loss", "log_odds"])
    padded = pad_sequence([torch.tensor(row) for row in ragged.x.rows], batch_first=True).numpy()
    expected = Network(Padded, QUICK).observe(Points(padded, ragged.y), member, np.arange(3), ["loss", "log_odds"])
    np.testing.assert_allclose(rows["loss"], expected["loss"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(rows["log_odds"], expected["log_odds"], rtol=1e-3, atol=1e-4)


def test_what_collate_must_do(as_users_run_it, ragged, member):
    cases = [
        (Recipe(), "the rows of x have different lengths; pad them, or give train="),
        (Recipe(collate=sort_and_pad), "collate must return the labels that it gets, in the order of the points"),
        (Recipe(collate=lambda batch: 3), r"collate must return a pair \(inputs, labels\), got a int"),
        (Recipe(collate=lambda batch: 1 / 0), "collate fails on 16 points: division by zero"),
    ]
    for recipe, message in cases:
        with pytest.raises(ValueError, match=message):
            Network(Padded, recipe).observe(ragged, member, np.arange(3), ["loss"])
    with pytest.raises(ValueError, match=r"collate must be a function .* got a int"):
        Recipe(collate=3)
    with pytest.raises(ValueError, match="the rows of x have different lengths"):
        Trained(Padded()).observe(ragged, EVERYONE, NO_SEED, ["loss"])


def test_collate_is_part_of_the_description():
    described = [json.dumps(Network(Padded, Recipe(collate=each)).describe()) for each in (None, pad, sort_and_pad)]
    assert len(set(described)) == 3
    assert "collate" not in Recipe().describe()
    unnamed = Network(Padded, Recipe(collate=lambda batch: pad(batch)))
    assert unnamed.describe() is None
    assert "lambda" in unnamed.not_stored
    assert Network(Padded, Recipe(collate=pad)).description.endswith("collate=pad")
    assert "collate" not in Network(Padded).description


class Viewed(nn.Module):
    """A convolution, then ``view``."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.head = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4 * 64, 3)

    def forward(self, x):
        x = self.convolution(x).relu()
        return self.head(x.view(x.size(0), -1))


class Flattened(Viewed):
    """The same with ``flatten``, which works in every layout."""

    def forward(self, x):
        return self.head(self.convolution(x).relu().flatten(1))


class ViewedBackwards(torch.autograd.Function):
    """Nothing but a backward pass that needs memory in the usual order."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return torch.empty(gradient.shape).copy_(gradient) + gradient.view(-1).sum() * 0


def test_a_network_that_flattens_with_view(member):
    rng = np.random.default_rng(0)
    points = Points(rng.normal(size=(40, 3, 8, 8)), np.arange(40) % 3)
    recipe = Recipe(optimiser="sgd", epochs=3, batch=16, lr=0.05)
    rows = Network(Viewed, recipe).observe(points, member, np.arange(3), WANT)
    expected = Network(Flattened, recipe).observe(points, member, np.arange(3), WANT)
    for name in WANT:
        np.testing.assert_allclose(rows[name], expected[name], rtol=1e-3, atol=1e-4)
    module = Viewed()
    seen = Trained(module).observe(points, EVERYONE, NO_SEED, ["loss", "gradient_norm"])
    by_hand = cross_entropies(module, torch.as_tensor(points.x).float(), label=points.y)
    np.testing.assert_allclose(seen["loss"][0], by_hand, rtol=1e-4)


def test_the_layout_is_tried_and_changes_nothing():
    x = torch.randn(2, 3, 8, 8)
    state = torch.get_rng_state()
    module = Flattened()
    torch.set_rng_state(state)
    assert works_channels_last(module, x)
    assert torch.equal(torch.get_rng_state(), state)
    assert module.convolution.weight.is_contiguous()
    assert all(parameter.grad is None for parameter in module.parameters())
    assert not works_channels_last(Viewed(), x)
    assert works_channels_last(nn.Linear(6, 3), torch.randn(2, 6))
    assert laid_out(x).is_contiguous(memory_format=torch.channels_last)
    assert laid_out(x, channels_last=False).is_contiguous()


def test_the_layout_is_tried_backwards_too():
    class Backwards(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)

        def forward(self, x):
            return self.last(ViewedBackwards.apply(self.first(x))).mean((2, 3))

    x = torch.randn(2, 3, 8, 8)
    Backwards()(x).sum().backward()
    assert not works_channels_last(Backwards(), x)


@pytest.mark.parametrize("kind", ["stack", "vmap", "one"])
def test_dropout_of_zero_is_no_dropout(kind):
    class Branched(nn.Module):
        def __init__(self, dropout):
            super().__init__()
            self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)
            self.drop = nn.Dropout(p=0.0) if dropout else nn.Identity()

        def forward(self, x):
            return self.last(self.drop(torch.relu(self.first(x))))

    def make(dropout):
        if kind != "stack":
            return Branched(dropout)
        off = [nn.Dropout(p=0.0)] if dropout else []
        return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), *off, nn.Linear(8, 3))

    x, label = np.random.default_rng(0).normal(size=(40, 6)), torch.as_tensor(np.arange(40) % 3)
    data = TrainingData(inputs_of(x), label, QUICK, torch.device("cpu"), "net")
    results = {}
    for dropout in (True, False):

        def build(seed, dropout=dropout):
            return built(make, {"dropout": dropout}, seed)

        architecture = Architecture.of(make(dropout), QUICK)
        assert architecture.kind == ("stack" if kind == "stack" else "vmap")
        if kind == "one":
            architecture = Architecture("one", 0, "", "")
        modules = trained(build, architecture, data, [np.arange(20), np.arange(10, 30)], [3, 4])
        results[dropout] = [parameter for module in modules for parameter in module.parameters()]
    for with_dropout, without in zip(results[True], results[False], strict=True):
        torch.testing.assert_close(with_dropout, without, rtol=0, atol=0)


def test_names_of_devices(as_users_run_it):
    for name in ("cpu", "cuda", "cuda:1", "mps", "auto"):
        assert Recipe(device=name).device == name
    for name in ("cuda:x", "gpu", "cuda:-1", "cuda:1 ", 0):
        with pytest.raises(ValueError, match="device"):
            Recipe(device=name)


def test_a_device_that_is_not_there_is_refused_before_training(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    for name, message in (("cuda:1", "device='cuda:1' needs a GPU"), ("mps", "device='mps' needs the GPU of an Apple")):
        with pytest.raises(ValueError, match=message):
            Network(Tokens, Recipe(device=name))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert devices.device_of(Recipe(device="cuda:1")) == torch.device("cuda", 1)
    assert devices.device_of(Recipe(device="cuda")) == torch.device("cuda")
    assert devices.device_of(Recipe(device="mps")) == torch.device("mps")
    assert devices.device_of(Recipe(device="auto")) == torch.device("cuda")
    with pytest.raises(ValueError, match="device='cuda:2': PyTorch sees 2 GPUs, numbered from cuda:0 on"):
        devices.device_of(Recipe(device="cuda:2"))


@pytest.mark.parametrize("kind", ["object", "fields", "ragged"])
def test_dpsgd_reads_and_returns_one_tensor(ids, ragged, kind):
    class Object(nn.Linear):
        def forward(self, x):
            return Output(super().forward(x))

    points, message = {
        "object": (Points(np.zeros((40, 6)), ids.y), "must answer points with a tensor of shape"),
        "fields": (from_arrays({"input_ids": ids.x}, ids.y), "are read by networks that are not trained by DP-SGD"),
        "ragged": (ragged, "the rows of x have different lengths"),
    }[kind]
    release = PrivateNetwork(lambda: Object(6, 3), DpSgd(1.0, 1.0, 0.1, steps=1))
    with pytest.raises(ValueError, match=message):
        release.observe(points, EVERYONE, NO_SEED, ["loss"])


def test_a_single_model_takes_a_dictionary():
    model = SingleModel(Interface(plain=False).adapt(nn.Bilinear(2, 2, 3)))
    batch = {"input1": torch.ones(4, 2), "input2": torch.ones(4, 2)}
    assert model.logits([batch]).shape == (1, 4, 3)
