"""Public data sets: from a folder, or fetched where the user asks for that."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from leakbound.papers import data


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """Nothing is remembered between tests, and no folder is set."""
    monkeypatch.delenv(data.FOLDER, raising=False)
    monkeypatch.delenv(data.FETCH, raising=False)
    data.images.cache_clear()
    data.source.cache_clear()
    data.writers.cache_clear()
    yield
    data.images.cache_clear()
    data.source.cache_clear()
    data.writers.cache_clear()


def test_images_come_from_the_folder(monkeypatch, tmp_path):
    x, y = np.arange(5 * 4).reshape(5, 2, 2).astype(np.uint8), np.arange(5)
    np.savez(tmp_path / "mnist_train60k.npz", x=x[:3], y=y[:3])
    np.savez(tmp_path / "mnist_t10k.npz", x=x[3:], y=y[3:])
    monkeypatch.setenv(data.FOLDER, str(tmp_path))
    found = data.images("mnist")
    np.testing.assert_array_equal(found.x, x)
    np.testing.assert_array_equal(found.y, y)


def test_other_files_are_another_source(monkeypatch, tmp_path):
    monkeypatch.setenv(data.FETCH, "1")
    assert data.source("mnist") == "openml:mnist_784:1"
    found = set()
    for number in (0, 1, 0):
        for file in data.SETS["mnist"].files:
            (tmp_path / file).write_bytes(bytes([number]))
        monkeypatch.setenv(data.FOLDER, str(tmp_path))
        data.source.cache_clear()
        found.add(data.source("mnist"))
    assert len(found) == 2


def test_nothing_is_fetched_unless_the_user_asks(monkeypatch):
    def fetch(*names, **words):
        raise AssertionError("the network was used")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    with pytest.raises(
        ValueError, match=r"MNIST is not there .*, or fetch it: --download \(in Python set LEAKBOUND_FETCH=1\)"
    ):
        data.images("mnist")


def test_what_is_fetched_must_be_what_was_published(monkeypatch):
    x, y = np.arange(3 * 784).reshape(3, 784) % 256, np.array(["5", "0", "4"])
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda *names, **words: SimpleNamespace(data=x, target=y))
    monkeypatch.setenv(data.FETCH, "1")
    with pytest.raises(ValueError, match="what OpenML gives as mnist_784 is not MNIST as it was published"):
        data.images("mnist")
    known = data.SETS["mnist"]
    right = data.digest(x.astype(np.uint8).reshape(3, 28, 28), y.astype(int))
    monkeypatch.setitem(data.SETS, "mnist", type(known)(**vars(known) | {"sha256": right}))
    found = data.images("mnist")
    assert found.x.shape == (3, 28, 28)
    assert found.y.tolist() == [5, 0, 4]


def test_colours_come_last(monkeypatch):
    x = np.arange(2 * 3072) % 251
    monkeypatch.setattr(
        "sklearn.datasets.fetch_openml",
        lambda *names, **words: SimpleNamespace(data=x.reshape(2, 3072), target=np.array(["1", "2"])),
    )
    monkeypatch.setenv(data.FETCH, "1")
    found = data.images("cifar10")
    assert found.x.shape == (2, 32, 32, 3)
    assert found.x[1, 0, 1].tolist() == [x[3072 + channel * 1024 + 1] for channel in range(3)]


@pytest.mark.slow
def test_real_images_are_those_that_were_published(real_data, monkeypatch):
    monkeypatch.setenv(data.FOLDER, str(real_data))
    for name in ("mnist", "fashion"):
        found = data.images(name)
        assert data.digest(found.x, found.y) == data.SETS[name].sha256
        assert (found.n_train, len(found.x) - found.n_train) == (60_000, 10_000)
    known = data.SETS["cifar10"]
    split = pd.read_parquet(real_data / known.files[0], columns=["split"])["split"]
    assert set(split[: known.n_train]) == {"train"}
    assert set(split[known.n_train :]) == {"test"}
    assert (known.n_train, len(split) - known.n_train) == (50_000, 10_000)
    assert len(set(data.writers()["writer"].tolist())) == 44
    assert {len(array) for array in data.writers().values()} == {10_992}  # not 11,990: erratum 21


@pytest.mark.parametrize("library", ["pyarrow", "PIL"])
def test_the_library_of_a_file_is_asked_for_before_anything_is_run(monkeypatch, tmp_path, library):
    (tmp_path / "cifar10_jpeg.parquet").touch()
    monkeypatch.setenv(data.FOLDER, str(tmp_path))
    monkeypatch.setattr(data, "find_spec", lambda name: None if name == library else object())
    assert data.missing("cifar10") == "cifar10_jpeg.parquet needs pip install 'leakbound[parquet,images]'"
    monkeypatch.setattr(data, "find_spec", lambda name: object())
    assert data.missing("cifar10") is None


def test_writers_are_missed_in_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv(data.FOLDER, str(tmp_path))
    with pytest.raises(ValueError, match=r"PenDigits with its writers is not there \(no pendigits.npz in"):
        data.writers()
