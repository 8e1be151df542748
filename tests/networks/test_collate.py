"""Rows of different lengths: trained networks, references, training functions and DataLoaders."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import leakbound as ls
from leakbound.releases.networks.recipe import Recipe
from leakbound.releases.networks.tensors import collate_of
from leakbound.releases.training_function import TrainingFunction
from tests.marks import nightly

RNG = np.random.default_rng(0)
X = [RNG.integers(1, 30, RNG.integers(2, 8)).tolist() for _ in range(80)]
Y = RNG.integers(0, 2, 80)
WORDS = {"attacks": ["loss"], "n_jobs": 1, "accept_shift": True}


class Bag(nn.Module):
    """The mean of the embeddings of the tokens that are no padding."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(30, 8, padding_idx=0)
        self.head = nn.Linear(8, 2)

    def forward(self, ids):
        return self.head(self.embedding(ids).sum(1) / (ids != 0).sum(1, keepdim=True))


def pad_lists(pairs):
    """For points that are lists, or arrays of them."""
    rows, labels = zip(*pairs, strict=True)
    return pad_sequence([torch.as_tensor(row) for row in rows], batch_first=True), torch.as_tensor(labels)


def pad_tensors(pairs):
    """As people write it for a data set of tensors: it fails on arrays and numbers."""
    rows, labels = zip(*pairs, strict=True)
    return pad_sequence(rows, batch_first=True), torch.stack(labels)


def fit(rows, labels, seed):
    """A user-supplied training loop that returns a network."""
    torch.manual_seed(seed)
    network = Bag()
    optimiser = torch.optim.Adam(network.parameters(), lr=0.05)
    ids, targets = pad_lists(list(zip(rows, labels, strict=True)))
    for _ in range(20):
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(ids), targets).backward()
        optimiser.step()
    return network.eval()


class Rows(Dataset):
    """Points as a data set returns them."""

    def __init__(self, rows, labels, of_row=torch.tensor, of_label=torch.tensor):
        self.rows, self.labels, self.of_row, self.of_label = rows, labels, of_row, of_label

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.of_row(self.rows[index]), self.of_label(int(self.labels[index]))


def as_loaders(collate=pad_tensors, **words):
    sides = (slice(0, 40), slice(40, 80))
    return [DataLoader(Rows(X[side], Y[side], **words), batch_size=8, collate_fn=collate) for side in sides]


MEMBERS, OTHERS = (X[:40], Y[:40]), (X[40:], Y[40:])
NETWORK = fit(*MEMBERS, 0)


def auc(report):
    return next(each.value for each in report.findings if each.quantity == "auc" and each.attack == "loss")


def losses(network, rows, labels):
    with torch.no_grad():
        log_p = network(pad_sequence([torch.tensor(row) for row in rows], batch_first=True)).log_softmax(1)
    return -log_p[np.arange(len(rows)), labels].double().numpy()


@pytest.mark.slow
def test_a_trained_network():
    report = ls.audit_model(NETWORK, MEMBERS, OTHERS, train={"collate": pad_lists}, **WORDS)
    inside, outside = losses(NETWORK, *MEMBERS), losses(NETWORK, *OTHERS)
    assert auc(report) == pytest.approx((inside[:, None] < outside).mean(), abs=1e-3)
    assert auc(report) > 0.65


@pytest.mark.by_day("fit")
@pytest.mark.parametrize("references", [fit, Bag])
def test_its_references(references):
    train = {"collate": pad_lists} if references is fit else {"collate": pad_lists, "epochs": 2}
    report = ls.audit_model(
        NETWORK, MEMBERS, OTHERS, references=ls.Fitted(references, n=4), train=train, **WORDS | {"attacks": ["lira"]}
    )
    assert any(each.attack == "lira" and each.value is not None for each in report.findings)


@pytest.mark.parametrize("train", [{"collate": pad_lists}, Recipe(collate=pad_lists)])
def test_a_training_function_that_returns_a_network(train):
    assert auc(ls.audit(fit, X, Y, n_models=8, train=train, attacks=["loss"], n_jobs=1)) > 0.6


def test_collate_is_part_of_the_description_of_a_training_function():
    plain, padded = TrainingFunction(fit), TrainingFunction(fit, collate=pad_lists)
    assert plain.describe() is not None
    assert "collate" not in plain.describe()
    assert "pad_lists" in json.dumps(padded.describe())
    assert TrainingFunction(fit, collate=lambda pairs: pad_lists(pairs)).describe() is None


@pytest.mark.parametrize("model", [NETWORK])
@pytest.mark.parametrize(
    ("collate", "types"),
    [
        (pad_tensors, {}),
        nightly(pad_lists, {"of_row": list, "of_label": int}),
        nightly(pad_lists, {"of_row": np.array, "of_label": int}),
    ],
)
@pytest.mark.slow
def test_loaders_of_a_trained_network_bring_their_own(model, collate, types):
    expected = ls.audit_model(model, MEMBERS, OTHERS, train={"collate": pad_lists}, **WORDS)
    report = ls.audit_model(model, *as_loaders(collate, **types), **WORDS)
    assert auc(report) == auc(expected)


def test_loaders_of_models_to_train_bring_their_own():
    loader = DataLoader(Rows(X, Y), batch_size=8, shuffle=True, collate_fn=pad_tensors)
    words = {"n_models": 4, "attacks": ["loss"], "n_jobs": 1}
    expected = ls.audit(Bag, X, Y, train={"epochs": 2, "collate": pad_lists}, **words)
    assert auc(ls.audit(Bag, loader, train={"epochs": 2}, **words)) == auc(expected)
    assert auc(ls.audit(fit, loader, **words)) > 0.6
    varied = ls.audit(Bag, loader, vary={"train.epochs": [1, 2]}, **words)
    assert len(varied.about.releases) == 2


@pytest.mark.slow
def test_a_recipe_comes_before_the_loader():
    def fails(pairs):
        raise AssertionError

    report = ls.audit_model(NETWORK, *as_loaders(fails), train={"collate": pad_lists}, **WORDS)
    assert auc(report) > 0.65


def test_what_a_loader_has_of_its_own():
    tensors = TensorDataset(torch.eye(4), torch.arange(4))
    assert collate_of(tensors) is None
    assert collate_of(DataLoader(tensors)) is None
    assert collate_of(DataLoader(tensors, batch_size=None)) is None

    class Endless(IterableDataset):
        def __iter__(self):
            return iter([])

    assert collate_of(DataLoader(Endless(), collate_fn=pad_tensors)) is None
    own = collate_of(DataLoader(tensors, collate_fn=pad_tensors))
    assert own is not None
    assert own.__name__ == "pad_tensors"
    assert own([(np.ones(4, dtype=np.float32), 1)])[0].dtype == torch.float32
    one_of_each = collate_of(DataLoader(Rows(X, Y, of_row=tuple), collate_fn=lambda pairs: pairs))
    assert one_of_each is not None
    assert one_of_each([(np.array([3, 1]), 1)]) == [((3, 1), torch.tensor(1))]


@pytest.mark.usefixtures("as_users_run_it")
def test_what_is_refused():
    advice = r"the rows of x have different lengths; pad them, or give train=\{'collate': FUNCTION\}"
    with pytest.raises(ValueError, match=advice):
        ls.audit_model(NETWORK, MEMBERS, OTHERS, **WORDS)
    with pytest.raises(ValueError, match="there are none: leave epochs out, or give the recipe as references="):
        ls.audit_model(NETWORK, MEMBERS, OTHERS, train={"collate": pad_lists, "epochs": 3}, **WORDS)
    with pytest.raises(ValueError, match="there are none: leave it out, or give"):
        ls.audit_model(NETWORK, MEMBERS, OTHERS, train=Recipe(epochs=3), **WORDS)
    with pytest.raises(ValueError, match="collate makes batches for a network of PyTorch; a function gets the points"):
        ls.audit_model(lambda rows: rows, MEMBERS, OTHERS, train={"collate": pad_lists}, **WORDS)
    with pytest.raises(ValueError, match="fit does that itself; it takes collate alone"):
        ls.audit(fit, X, Y, n_models=4, train={"collate": pad_lists, "epochs": 3})
    members, others = as_loaders()
    others = DataLoader(others.dataset, collate_fn=pad_lists)
    with pytest.raises(ValueError, match="members and others have different collate functions"):
        ls.audit_model(NETWORK, members, others, **WORDS)
    with pytest.raises(ValueError, match="the rows of x have different lengths; pad them to one length") as refused:
        ls.audit(
            Bag,
            X,
            Y,
            train={"dpsgd": {"noise_multiplier": 1, "clip": 1, "sample_rate": 0.1, "steps": 2}},
            n_models=2,
            n_jobs=1,
        )
    assert "collate" not in str(refused.value)


def test_a_collate_function_that_changes_its_points_at_random_is_refused():
    """The audited model would be asked about other inputs than those that it was trained on."""

    def noisy(pairs):
        ids, labels = pad_lists(pairs)
        return torch.where(torch.rand(ids.shape) < 0.2, 0, ids), labels

    with pytest.raises(ValueError, match="collate makes other inputs of the same points each time: random transforms"):
        ls.audit_model(NETWORK, MEMBERS, OTHERS, train={"collate": noisy}, **WORDS)
