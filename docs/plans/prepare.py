"""Files for the plans beside this one, from a folder of public data: ``python prepare.py FOLDER``."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
from PIL import Image

N = 2222  # images of each set: 222 are set aside, and models are trained on 1,000 of the others

data = Path(sys.argv[1])
for name, file in {"mnist": "mnist_train60k.npz", "fashion": "fashion_mnist_train60k.npz"}.items():
    arrays = np.load(data / file, allow_pickle=False)
    np.savez(f"{name}.npz", x=arrays["x"][:N], y=arrays["y"][:N])
    if name == "mnist":  # all of them are trained on
        np.savez("mnist-2000.npz", x=arrays["x"][:2000], y=arrays["y"][:2000])
table = parquet.read_table(data / "cifar10_jpeg.parquet").slice(0, N)
pixels = [np.asarray(Image.open(io.BytesIO(image))) for image in table["image_bytes"].to_pylist()]
np.savez("cifar10.npz", x=np.stack(pixels), y=table["label"].to_numpy())

pen = np.load(data / "pendigits.npz", allow_pickle=False)
order = np.random.default_rng(0).permutation(len(pen["label"]))
for n in (100, 500, 2000):  # that a model is trained on
    pick = order[: 2 * n]
    stroke = np.stack([pen["x"], pen["y"]], axis=-1)[pick].astype(float)
    low, high = stroke.min(axis=1, keepdims=True), stroke.max(axis=1, keepdims=True)
    stroke = ((stroke - low) / (high - low).max(axis=2, keepdims=True)).reshape(len(pick), -1)
    x = np.column_stack([stroke, pen["n_strokes"][pick], pen["length"][pick] / pen["length"].max()])
    writer, y = pen["writer"][pick].astype(str), pen["label"][pick].astype(int)
    np.savez(f"pendigits-{n}.npz", x=x.astype(np.float32), y=y, writer=writer)
