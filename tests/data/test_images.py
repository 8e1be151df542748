"""Folders of images, read with Pillow."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from PIL import Image

from leakbound import data
from leakbound.data import images as room
from leakbound.data.images import read_folder


@pytest.fixture
def folder(tmp_path):
    """Three classes with two grey images each, 4 x 5 pixels."""
    rng = np.random.default_rng(0)
    for name in ("b", "a", "c"):
        (tmp_path / "set" / name).mkdir(parents=True)
        for number in range(2):
            pixels = rng.integers(256, size=(4, 5), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "set" / name / f"{number}.png")
    (tmp_path / "set" / "a" / ".hidden.png").write_bytes(b"")
    (tmp_path / "set" / "a" / "readme.txt").write_text("no image")
    return tmp_path / "set"


def decoded(path):
    return np.asarray(Image.open(path))


@pytest.mark.parametrize("in_memory", [10**9, 1])
def test_images_of_a_folder(folder, monkeypatch, in_memory):
    monkeypatch.setattr(room, "IN_MEMORY", in_memory)
    images, label, _ = read_folder(folder)
    assert label.tolist() == ["a", "a", "b", "b", "c", "c"]
    assert images.shape == (6, 4, 5)
    assert (images.decoded is None) == (in_memory == 1)
    np.testing.assert_array_equal(
        images.pixels(np.array([5, 0])), [decoded(folder / "c" / "1.png"), decoded(folder / "a" / "0.png")]
    )
    taken = images.take(np.array([4, 2]))
    np.testing.assert_array_equal(taken.pixels(np.array([1])), [decoded(folder / "b" / "0.png")])


def test_points_of_a_folder(folder):
    loaded = data.load(str(folder))
    assert loaded.name == "set"
    assert len(loaded.points) == 6
    assert data.preview(loaded, 3)["image"] == decoded(folder / "b" / "1.png").tolist()
    half = loaded.points.take(np.array([0, 2, 4]))
    assert half.y.tolist() == ["a", "b", "c"]
    both = data.join(half, loaded.points)
    assert data.repeated(both).tolist() == [False] * 3 + [True, False] * 3
    assert data.shared(half, loaded.points) == 3


def test_the_digest_tells_names_and_contents(folder):
    before = data.load(str(folder)).points.digest
    assert data.load(str(folder)).points.digest == before
    (folder / "a" / "0.png").rename(folder / "a" / "7.png")
    renamed = data.load(str(folder)).points.digest
    Image.new("L", (5, 4)).save(folder / "a" / "7.png")
    assert len({before, renamed, data.load(str(folder)).points.digest}) == 3


def test_colour(folder):
    Image.new("RGB", (5, 4), (10, 20, 30)).save(folder / "a" / "0.bmp")
    loaded = data.load(str(folder))
    assert loaded.points.x.shape == (7, 4, 5, 3)
    assert loaded.points.x.pixels(np.array([0]))[0, 0, 0].tolist() == [10, 20, 30]
    assert data.preview(loaded, 0)["image"][0][0] == [10, 20, 30]


def spoil(folder, what):
    if what == "size":
        Image.new("L", (6, 4)).save(folder / "b" / "1.png")
    if what == "content":
        (folder / "b" / "1.png").write_bytes(b"no image")
    if what == "half":
        whole = (folder / "b" / "1.png").read_bytes()
        (folder / "b" / "1.png").write_bytes(whole[:50])
    if what == "empty class":
        (folder / "d").mkdir()
    if what == "depth":
        Image.fromarray(np.zeros((4, 5), dtype=np.uint16)).save(folder / "b" / "1.png")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("size", r"b/1\.png: the image has 4 x 6 pixels, 0\.png has 4 x 5"),
        ("content", r"b/1\.png: cannot be read as an image"),
        ("half", r"b/1\.png: cannot be read as an image"),
        ("empty class", "the sub-folder 'd' has no images"),
        ("depth", r"b/1\.png: cannot read pixels of mode 'I;16'"),
    ],
)
def test_the_line_that_names_what_is_wrong(folder, what, message):
    spoil(folder, what)
    with pytest.raises(ValueError, match=message) as caught:
        data.load(str(folder))
    assert "\n" not in str(caught.value)


def test_a_folder_is_no_table(folder, tmp_path):
    with pytest.raises(ValueError, match="the sub-folders are the labels"):
        data.load(str(folder), label="y")
    with pytest.raises(ValueError, match="at least 2 classes, has 0"):
        data.load(str(folder / "a"))


def test_images_of_other_shapes_do_not_join(folder, tmp_path):
    for name in ("x", "y"):
        (tmp_path / "other" / name).mkdir(parents=True)
        Image.new("L", (9, 9)).save(tmp_path / "other" / name / "0.png")
    with pytest.raises(ValueError, match="members are images of shape"):
        data.join(data.load(str(folder)).points, data.load(str(tmp_path / "other")).points)
    with pytest.raises(ValueError, match="give both in the same form"):
        data.join(data.load(str(folder)).points, data.from_arrays(np.zeros((3, 2)), np.zeros(3)))


def test_pillow_is_an_extra(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ValueError, match=r"pip install 'leakbound\[images\]'"):
        data.load(str(folder))


@pytest.mark.parametrize("in_memory", [10**9, 1])
def test_a_training_loop_gets_images_as_an_array(folder, monkeypatch, in_memory):
    monkeypatch.setattr(room, "IN_MEMORY", in_memory)
    images, _, _ = read_folder(folder)
    pixels = np.asarray(images)
    assert (pixels.dtype, pixels.shape) == (np.uint8, (6, 4, 5))
    np.testing.assert_array_equal(pixels[2], decoded(folder / "b" / "0.png"))
    some = np.asarray(images.take(np.array([5, 0])), dtype=np.float32)
    assert some.dtype == np.float32
    np.testing.assert_array_equal(some, pixels[[5, 0]])
    copied = np.array(images, copy=True)
    copied[:] = 0
    np.testing.assert_array_equal(np.asarray(images), pixels)
