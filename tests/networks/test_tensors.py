"""What networks read of arrays, frames and images."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from leakbound.core.types import Points
from leakbound.data.images import read_folder
from leakbound.releases.networks.tensors import inputs_of, labels_of, what_is_done


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((4, 5), (5,)),
        ((4, 8, 9), (1, 8, 9)),
        ((4, 8, 9, 3), (3, 8, 9)),
        ((4, 8, 9, 1), (1, 8, 9)),
        ((4, 3, 8, 9), (3, 8, 9)),
        ((4, 3, 5, 3), (3, 5, 3)),
    ],
)
@pytest.mark.parametrize("dtype", [np.uint8, np.float64, np.int32])
def test_axes(shape, expected, dtype):
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    inputs = inputs_of(x)
    assert inputs.shape == expected
    assert len(inputs) == 4
    read = inputs.batch(np.array([2, 0])).numpy()
    assert read.dtype == np.float32
    aim = x[[2, 0]] / (255 if dtype == np.uint8 and len(shape) > 2 else 1)
    if expected[0] in (1, 3) and len(shape) == 4 and shape[1:] != expected:
        read = np.moveaxis(read, 1, 3)
    np.testing.assert_allclose(read.reshape(aim.shape), aim, rtol=1e-6)


def test_a_frame_is_standardised_and_one_hot():
    frame = pd.DataFrame(
        {"pay": [1.0, 2.0, 6.0], "sex": ["f", None, "m"], "same": [7, 7, 7], "big": [1e300, 0, -1e300]}
    )
    read = inputs_of(frame).batch(np.arange(3)).numpy()
    pay = (frame["pay"] - 3) / np.sqrt(14 / 3)
    np.testing.assert_allclose(read[:, 0], pay, rtol=1e-6)
    np.testing.assert_array_equal(read[:, 1:4], [[1, 0, 0], [0, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(read[:, 4], 0)
    np.testing.assert_allclose(read[:, 5], [np.sqrt(1.5), 0, -np.sqrt(1.5)], rtol=1e-6)


def test_pictures_of_a_folder_are_read_as_their_pixels(image_folder):
    images, _, _ = read_folder(image_folder)
    inputs = inputs_of(images)
    assert inputs.shape == (3, 4, 5)
    chosen = np.array([3, 1])
    expected = np.moveaxis(images.pixels(chosen), 3, 1) / 255
    np.testing.assert_allclose(inputs.batch(chosen).numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.array([[1.0, np.nan]]), "missing or infinite"),
        (np.array([[1e300]]), "missing or infinite"),
        (np.array([["a"]]), "networks read numbers, got an array of <U1"),
        (np.empty((3, 0)), "a value in it"),
        (np.arange(3), "a row for each point"),
        (pd.DataFrame({"a": [1.0, np.inf]}), "column 'a' \\(1\\): missing or infinite values in 1 of 2"),
        (
            pd.DataFrame({"a": [1.0, None, None], "b": ["x", None, "y"], "c": [None, None, None]}, dtype=object).astype(
                {"a": float, "c": float}
            ),
            "columns 'c' \\(3\\), 'a' \\(2\\): missing or infinite values in 3 of 3 rows, and networks need finite",
        ),
        (np.array([[1.0, np.nan], [0.0, 1.0]]), "column 'x1' \\(1\\): missing or infinite values in 1 of 2 rows"),
        (pd.DataFrame({"id": [str(each) for each in [*range(10_001)] * 2]}), "column 'id' has 10,001 different values"),
        ([[1.0]], "networks read arrays, frames and images, got a list"),
    ],
)
def test_what_networks_cannot_read(x, message):
    with pytest.raises(ValueError, match=message):
        inputs_of(x)


def test_reading_changes_nothing_of_the_array():
    x = np.full((3, 2, 2), 7, dtype=np.uint8)
    x.flags.writeable = False
    assert inputs_of(x).batch(np.array([1])).max() == pytest.approx(7 / 255)
    torch.testing.assert_close(torch.from_numpy(x.copy()), torch.full((3, 2, 2), 7, dtype=torch.uint8))


def test_labels():
    classes, label = labels_of(Points(np.zeros((3, 1)), np.array(["b", "a", "b"])), "net")
    assert classes.tolist() == ["a", "b"]
    assert label.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "net needs labels"),
        (np.zeros(4), "net needs at least 2 classes, got only 0"),
        (np.arange(4) / 3, "net is a classifier, but the label has 4 different numbers"),
    ],
)
def test_labels_that_are_none(y, message):
    with pytest.raises(ValueError, match=message):
        labels_of(Points(np.zeros((4, 1)), y), "net")


def test_a_table_says_which_columns_make_it_wide():
    """A network that was made for the columns of the file cannot read the encoded ones."""
    frame = pd.DataFrame(
        {
            "age": [20.0, 30.0, 40.0] * 2,
            "start": ["1.2.20", "1.3.20", "1.4.20"] * 2,
            "town": ["a", "b", "a"] * 2,
            "n": [1, 2, 3] * 2,
        }
    )
    inputs = inputs_of(frame)
    assert inputs.shape == (7,)
    says = (
        "the table's 4 columns become 7, for text has one for each of its values (start: 3, town: 2); make the network"
    )
    assert says in inputs.title
    assert inputs_of(frame[["age", "n"]]).title == "points of shape (2,)"


def test_a_column_of_free_text_is_refused():
    frame = pd.DataFrame({"age": np.arange(20.0, 40.0), "note": [f"is ill for {day} days" for day in range(20)]})
    with pytest.raises(
        ValueError, match=r"^the network reads no text, .* of note occur once: give arrays of token ids"
    ):
        inputs_of(frame)


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (
            pd.DataFrame({"age": [20.0, 30.0], "town": ["a", "a"]}),
            "Before net reads them, numbers are standardised, town one-hot encoded, "
            "by what is computed from all records",
        ),
        (np.zeros((2, 3), dtype=np.uint8), "Before net reads them, 8-bit numbers are divided by 255"),
        (np.zeros((2, 3)), ""),
    ],
)
def test_what_is_done_to_points_is_said(x, said):
    assert what_is_done(x, "net") == said
