"""The public data sets that the papers use: from a folder, or from their public homes if the user asks for that.

``LEAKBOUND_DATA`` names the folder. What is fetched is kept by scikit-learn's client in its own cache.
"""

from __future__ import annotations

import hashlib
import io
import os
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

FOLDER = "LEAKBOUND_DATA"
FETCH = "LEAKBOUND_FETCH"  # set by --download: workers are processes of their own, and see the environment alone


@dataclass(frozen=True, eq=False)
class Images:
    """Images and their classes, those to train on apart from those to test on."""

    x: np.ndarray
    y: np.ndarray
    n_train: int


@dataclass(frozen=True)
class _Set:
    """Where a set of images is."""

    title: str
    files: tuple[str, ...]
    openml: tuple[str, int]  # name and version there
    shape: tuple[int, ...]
    n_train: int
    sha256: str | None  # of pixels and classes together; none where the folder's files hold other pixels


SETS = {
    "mnist": _Set(
        "MNIST",
        ("mnist_train60k.npz", "mnist_t10k.npz"),
        ("mnist_784", 1),
        (28, 28),
        60_000,
        "c2069063c1105f2bf96266aef1ff68c6e13bdda7a54e37bf19c16f1db24efc83",
    ),
    "fashion": _Set(
        "Fashion-MNIST",
        ("fashion_mnist_train60k.npz", "fashion_mnist_t10k.npz"),
        ("Fashion-MNIST", 1),
        (28, 28),
        60_000,
        "2cbc59191665e1ba3f2494648f17edac5974f748ab89fb2ae05597d658161f54",
    ),
    "cifar10": _Set("CIFAR-10", ("cifar10_jpeg.parquet",), ("CIFAR_10", 1), (3, 32, 32), 50_000, None),
}
WRITERS = "pendigits.npz"
NAMES = (*SETS, "pendigits")


def missing(name: str) -> str | None:
    """Why a data set cannot be had and what to do, or None where it can."""
    files = SETS[name].files if name in SETS else (WRITERS,)
    title = SETS[name].title if name in SETS else "PenDigits with its writers"
    folder = os.environ.get(FOLDER, "")
    absent = [file for file in files if not (folder and (Path(folder) / file).is_file())]
    if not absent:
        return _unreadable(files)
    where = f"no {absent[0]} in {FOLDER}={folder}" if folder else f"{FOLDER} is not set"
    put = f"set {FOLDER} to a folder with {' and '.join(files)}"
    if name not in SETS:
        return f"{title} is not there ({where}); {put}; it has no public home that can be read without unpacking .Z"
    if os.environ.get(FETCH):
        return None
    return f"{title} is not there ({where}); {put}, or fetch it: --download (in Python set {FETCH}=1)"


def _unreadable(files: tuple[str, ...]) -> str | None:
    """Name the library that files need and that is not installed, with what to do."""
    for file in files:
        if file.endswith(".parquet") and not all(find_spec(library) for library in ("pyarrow", "PIL")):
            return f"{file} needs pip install 'leakbound[parquet,images]'"
    return None


@lru_cache(maxsize=len(NAMES))
def source(name: str) -> str:
    """Where a data set comes from: the SHA-256 of its files, or its name and version at OpenML."""
    if reason := missing(name):
        raise ValueError(reason)
    paths = [Path(os.environ.get(FOLDER, "")) / file for file in (SETS[name].files if name in SETS else (WRITERS,))]
    if not all(path.is_file() for path in paths):
        return ":".join(map(str, ("openml", *SETS[name].openml)))
    return hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in paths)).hexdigest()


@lru_cache(maxsize=2)
def images(name: str) -> Images:
    """Load a set of images: ``"mnist"``, ``"fashion"``, or ``"cifar10"``."""
    if reason := missing(name):
        raise ValueError(reason)
    known = SETS[name]
    folder = Path(os.environ.get(FOLDER, ""))
    if all((folder / file).is_file() for file in known.files):
        parts = [_read(folder / file) for file in known.files]
        x, y = (np.concatenate([part[column] for part in parts]) for column in (0, 1))
        return Images(x, y.astype(np.int64), known.n_train)
    return _fetched(known)


@lru_cache(maxsize=1)
def writers() -> dict[str, np.ndarray]:
    """Load the strokes of PenDigits with the writer of each."""
    if reason := missing("pendigits"):
        raise ValueError(reason)
    with np.load(Path(os.environ[FOLDER]) / WRITERS, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in ("x", "y", "label", "writer", "n_strokes", "length")}


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Pixels and classes of a file."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return arrays["x"], arrays["y"]
    from PIL import Image

    table = pd.read_parquet(path)
    pixels = [np.asarray(Image.open(io.BytesIO(image))) for image in table["image_bytes"]]
    return np.stack(pixels), table["label"].to_numpy()


def _fetched(known: _Set) -> Images:
    """From OpenML by scikit-learn's client, which checks OpenML's digest and keeps it; other content is refused."""
    from sklearn.datasets import fetch_openml

    name, version = known.openml
    bunch: Any = fetch_openml(name, version=version, as_frame=False, parser="auto")
    x = np.asarray(bunch.data).astype(np.uint8).reshape(-1, *known.shape)
    if len(known.shape) == 3:
        x = x.transpose(0, 2, 3, 1)
    y = np.asarray(bunch.target).astype(np.int64)
    if known.sha256 is not None and digest(x, y) != known.sha256:
        raise ValueError(f"what OpenML gives as {name} is not {known.title} as it was published; give {FOLDER}")
    return Images(x, y, known.n_train)


def digest(x: np.ndarray, y: np.ndarray) -> str:
    """SHA-256 of pixels and classes."""
    return hashlib.sha256(np.ascontiguousarray(x).tobytes() + y.astype(np.uint8).tobytes()).hexdigest()
