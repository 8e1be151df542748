"""Data sets and DataLoaders of PyTorch as features and labels."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, random_split

from leakbound.data import from_arrays
from leakbound.data.records import Fields, Sequences
from leakbound.releases.networks.tensors import from_dataset
from leakbound.releases.specs import is_dataset

X = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
Y = np.arange(12) % 3


class Rows(Dataset):
    """A data set whose points are computed by a function of their index."""

    def __init__(self, point, n=6):
        self.point, self.n = point, n

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        return self.point(index)


class Endless(IterableDataset):
    def __iter__(self):
        yield from iter(int, 1)


def test_a_tensor_dataset_and_its_loader():
    dataset = TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    for given in (dataset, DataLoader(dataset, batch_size=5, shuffle=True)):
        x, y = from_dataset(given)
        np.testing.assert_array_equal(x, X)
        np.testing.assert_array_equal(y, Y)
        assert (x.dtype, y.dtype) == (np.float32, np.int64)


def test_a_part_of_a_dataset_is_read_in_its_stored_order():
    dataset = TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    part, _ = random_split(dataset, [7, 5], torch.Generator().manual_seed(0))
    x, y = from_dataset(DataLoader(part, batch_size=2, shuffle=True))
    np.testing.assert_array_equal(x, X[part.indices])
    np.testing.assert_array_equal(y, Y[part.indices])


def test_points_of_any_dataset():
    x, y = from_dataset(Rows(lambda index: (X[index], int(Y[index]))))
    np.testing.assert_array_equal(x, X[:6])
    np.testing.assert_array_equal(y, Y[:6])
    x, y = from_dataset(
        Rows(lambda index: ({"ids": torch.arange(3) + index, "mask": torch.ones(3)}, torch.eye(6)[index]))
    )
    assert isinstance(from_arrays(x).x, Fields)
    np.testing.assert_array_equal(x["ids"], np.arange(3) + np.arange(6)[:, None])
    np.testing.assert_array_equal(y, np.eye(6))
    x, y = from_dataset(Rows(lambda index: (torch.arange(index + 1), 0)))
    assert isinstance(from_arrays(x).x, Sequences)
    assert [row.tolist() for row in x[:3]] == [[0], [0, 1], [0, 1, 2]]


def test_a_dataset_without_labels():
    x, y = from_dataset(TensorDataset(torch.from_numpy(X).bfloat16().requires_grad_()))
    np.testing.assert_allclose(x, X, rtol=1e-2)
    assert y is None


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (TensorDataset(*[torch.zeros(3)] * 3), "a TensorDataset of features and labels has 2 tensors, got 3"),
        (Rows(lambda index: {"x": 1}), r"the points of Rows must be pairs \(x, y\), got a dict"),
        (Rows(lambda index: (1, 2), n=0), "Rows has no points"),
        (Endless(), "Endless has no length and cannot be read point by point"),
        (DataLoader(Endless()), "Endless has no length and cannot be read point by point"),
    ],
)
def test_datasets_that_cannot_be_read(dataset, message):
    with pytest.raises(ValueError, match=message):
        from_dataset(dataset)


def flipped(value):
    return value.flip(-1) if torch.rand(()) < 0.5 else value


@pytest.mark.parametrize(
    "point",
    [
        lambda index: (flipped(torch.arange(4) + index), 0),
        lambda index: (torch.arange(4) + index + 0.01 * torch.randn(4), 0),  # noise alone
        lambda index: (torch.arange(4) + index if index < 90 else torch.randn(4), 0),  # only a part of the points
        lambda index: ({"ids": torch.arange(3), "mask": flipped(torch.arange(3))}, 0),
        lambda index: (torch.arange(2 + int(torch.randint(9, ()))), 0),  # other lengths
        lambda index: (torch.arange(4) + index, int(torch.randint(9, ()))),  # labels
        lambda index: (np.asarray(flipped(torch.arange(4))), 0),
    ],
)
def test_a_dataset_that_changes_its_points_at_random_is_refused(point):
    """Random transforms halve the leak that is seen: the model does not see the record that it was trained on."""
    torch.manual_seed(0)
    rows = Rows(point, n=100)
    for dataset in (rows, DataLoader(rows, batch_size=8, shuffle=True), random_split(rows, [95, 5])[0]):
        with pytest.raises(ValueError, match=r"gives other values each time it is read .* random transforms hide"):
            from_dataset(dataset)


def test_the_same_values_in_another_order_are_no_random_transform():
    rows = Rows(lambda index: (np.full(3, np.nan if index == 2 else index), index % 2), n=100)
    x, _ = from_dataset(DataLoader(rows, batch_size=8, shuffle=True))
    np.testing.assert_array_equal(x[:, 0], [np.nan if index == 2 else index for index in range(100)])


def test_a_dataset_that_is_seeded_by_the_position_is_read():
    def point(index):
        return torch.randn(3, generator=torch.Generator().manual_seed(index)), 0

    assert from_dataset(Rows(point))[0].shape == (6, 3)


def test_datasets_are_recognised_without_importing_pytorch():
    dataset = TensorDataset(torch.from_numpy(X))
    assert is_dataset(dataset)
    assert is_dataset(DataLoader(dataset))
    assert is_dataset(Rows(None))
    assert not is_dataset(X)
    assert not is_dataset([dataset])
    code = (
        "import sys, numpy\nfrom leakbound.releases.specs import is_dataset\n"
        "assert not is_dataset(numpy.zeros(3)) and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
