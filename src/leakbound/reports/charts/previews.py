"""Pictures of records as data URIs, without an image library."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import UInt8


def png(pixels: UInt8[np.ndarray, "H W ..."]) -> bytes:
    r"""Encode a picture with 8 bits a channel, grey or RGB (PNG, ISO/IEC 15948).

    >>> png(np.zeros((8, 8), dtype=np.uint8))[:4]
    b'\x89PNG'
    """
    if pixels.ndim not in (2, 3) or pixels.shape[2:] not in ((), (3,)):
        raise ValueError(f"a picture has shape (H, W) or (H, W, 3), got {pixels.shape}")
    height, width = pixels.shape[:2]
    colour = 0 if pixels.ndim == 2 else 2
    rows = np.ascontiguousarray(pixels).reshape(height, -1)
    unfiltered = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    body = zlib.compress(unfiltered.tobytes(), 9)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def data_uri(image: Sequence[Sequence[Any]]) -> str:
    """Encode a picture of 0..255 for the ``src`` of an image; values outside are clipped."""
    pixels = np.clip(np.asarray(image), 0, 255).astype(np.uint8)
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode("ascii")


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
