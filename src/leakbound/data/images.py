"""Folders of images: a sub-folder for each class."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int, Shaped, UInt8, UInt64
from numpy.typing import DTypeLike

from leakbound.files.untrusted import Refused, free_memory, in_one_line, parsing

Array = np.ndarray
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
IN_MEMORY = 1_000_000_000  # bytes of pixels that are decoded once and kept
MOST_PIXELS = 50_000_000  # of one image
FORMATS = ("PNG", "JPEG", "BMP", "WEBP")  # by content, not by name: some other decoders of Pillow start programs
_GREY = ("1", "L", "LA")  # modes of Pillow that lose nothing in 8 bits of grey
_COLOUR = ("RGB", "RGBA", "RGBX", "P", "PA", "CMYK", "YCbCr")
_PILLOW = "images need Pillow; install it with: pip install 'leakbound[images]'"


@dataclass(frozen=True, eq=False)
class Images:
    """Images of one size, in files or decoded."""

    files: Sequence[str]
    size: tuple[int, int]
    colour: bool
    content: UInt64[Array, " N"]
    decoded: UInt8[Array, "N H W ..."] | None = None

    def __len__(self) -> int:
        return len(self.files)

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, H, W), or (N, H, W, 3)."""
        return (len(self), *self.size, *((3,) if self.colour else ()))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """Decode all images: ``np.asarray(images)`` has 8-bit pixels, of shape (N, H, W) or (N, H, W, 3)."""
        pixels = self.pixels(np.arange(len(self)))
        pixels = pixels if dtype is None else pixels.astype(dtype, copy=False)
        return pixels.copy() if copy and pixels is self.decoded else pixels

    def take(self, indices: Int[Array, " n"]) -> Images:
        """Return the images at these positions."""
        decoded = None if self.decoded is None else self.decoded[indices]
        files = [self.files[index] for index in indices.tolist()]
        return replace(self, files=files, content=self.content[indices], decoded=decoded)

    def pixels(self, indices: Int[Array, " b"]) -> UInt8[Array, "b H W ..."]:
        """Decode the images at these positions."""
        if self.decoded is not None:
            return self.decoded[indices]
        pixels = np.empty((len(indices), *self.shape[1:]), dtype=np.uint8)
        for row, index in enumerate(indices):
            with _opened(self.files[int(index)]) as image:
                pixels[row] = np.asarray(image.convert("RGB" if self.colour else "L"))
        return pixels

    def kept(self) -> Images:
        """Decode all images now if they take at most a gigabyte and half of the memory that is free."""
        if self.decoded is not None or math.prod(self.shape) > min(IN_MEMORY, free_memory() // 2):
            return self
        return replace(self, decoded=self.pixels(np.arange(len(self))))

    def followed_by(self, other: Images) -> Images:
        """Append other images to these."""
        if self.shape[1:] != other.shape[1:]:
            raise ValueError(f"members are images of shape {self.shape[1:]}, others {other.shape[1:]}")
        decoded = None
        if self.decoded is not None and other.decoded is not None:
            decoded = np.concatenate([self.decoded, other.decoded])
        content = np.concatenate([self.content, other.content])
        return replace(self, files=[*self.files, *other.files], content=content, decoded=decoded)


@in_one_line
def read_folder(folder: str | Path) -> tuple[Images, Shaped[Array, " N"], str]:
    """Find the images of a folder, the class of each one, and a digest of their names and contents."""
    root = Path(folder)
    classes = sorted(path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
    if len(classes) < 2:
        raise ValueError(f"{folder}: needs a sub-folder of images for each of at least 2 classes, has {len(classes)}")
    # in alphabetical order, so that records have the same numbers on every system
    files, label = [], []
    for name in classes:
        class_files = sorted(path for path in (root / name).rglob("*") if _is_image(path))
        if not class_files:
            raise ValueError(f"{folder}: the sub-folder {name!r} has no images; read are {', '.join(SUFFIXES)}")
        files += class_files
        label += [name] * len(class_files)
    size, colour = _common_size(files)
    # the digest of the data set, and of each image for comparing records
    sha, content = hashlib.sha256(), np.empty(len(files), dtype=np.uint64)
    for row, file in enumerate(files):
        file_digest = hashlib.sha256(file.read_bytes()).digest()
        content[row] = int.from_bytes(file_digest[:8], "little")
        sha.update(f"{file.relative_to(root).as_posix()}\0".encode() + file_digest)
    images = Images([str(file) for file in files], size, colour, content)
    return images.kept(), np.array(label), sha.hexdigest()


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and path.is_file()


def _common_size(files: Sequence[Path]) -> tuple[tuple[int, int], bool]:
    """Return height and width of all images, and whether any is in colour; only their headers are read."""
    first, colour = None, False
    for file in files:
        size, mode = _header(file)
        first = first or size
        if size != first:
            raise ValueError(
                f"{file}: the image has {size[0]} x {size[1]} pixels, {files[0].name} has {first[0]} x {first[1]}; all "
                "images must be of one size (height x width)"
            )
        if mode not in (*_GREY, *_COLOUR):
            raise ValueError(f"{file}: cannot read pixels of mode {mode!r}; allowed: 8 bits of grey or of colour")
        colour |= mode in _COLOUR
    return first or (0, 0), colour


def _header(file: Path) -> tuple[tuple[int, int], str]:
    """Read height, width and mode of an image; nothing is decoded."""
    with _opened(file) as image:
        n_pixels = image.height * image.width
        if n_pixels > MOST_PIXELS:
            raise Refused(f"{file}: the image has {n_pixels:,} pixels; allowed are {MOST_PIXELS:,}")
        return (image.height, image.width), image.mode


@contextmanager
def _opened(file: str | Path) -> Iterator[Any]:
    """Open an image by one of four decoders; every error is one line."""
    image_of = _pillow()
    with parsing(file, "an image"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about large images, which are refused here, and about odd metadata
        with image_of.open(file, formats=FORMATS) as image:
            yield image


def _pillow():
    try:
        from PIL import Image  # an optional dependency, for folders of images only
    except ModuleNotFoundError:
        raise ValueError(_PILLOW) from None
    return Image
