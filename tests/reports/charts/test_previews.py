import base64
import io

import numpy as np
import pytest
from matplotlib.image import imread

from leakbound.reports.charts.previews import data_uri, png


@pytest.mark.parametrize("shape", [(8, 8), (5, 3), (1, 1), (6, 4, 3)])
def test_another_reader_sees_the_same_pixels(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    seen = imread(io.BytesIO(png(pixels)), format="png")  # shares of 255
    assert np.array_equal(np.round(seen * 255).astype(np.uint8), pixels)


def test_data_uri_holds_the_picture_and_clips():
    uri = data_uri([[0, 300], [-5, 128]])
    head, body = uri.split(",")
    assert head == "data:image/png;base64"
    seen = imread(io.BytesIO(base64.b64decode(body)), format="png")
    assert np.round(seen * 255).tolist() == [[0, 255], [0, 128]]


def test_other_shapes_are_refused():
    with pytest.raises(ValueError, match=r"\(H, W\) or \(H, W, 3\), got \(2, 2, 4\)"):
        png(np.zeros((2, 2, 4), dtype=np.uint8))
