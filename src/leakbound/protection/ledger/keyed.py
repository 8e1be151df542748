"""Noise that only the holder of a key can make: the same for the same release, independent for any other one.

A digest of everything that the released bytes depend on and a secret key of 256 bits go into SHAKE-256 (FIPS 202),
and what comes out is read as uniform numbers. Without the key these cannot be told from fair coins, and two digests
that differ in one bit give unrelated numbers. So a release that is made again has the same noise, and nothing can be
averaged; releases with different data, statistics or scales have independent noise, and no part of it cancels.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import struct
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from jaxtyping import Float, UInt8, UInt64
from numpy.typing import ArrayLike
from scipy.special import gammainccinv, gammaincinv, ndtri

Array = np.ndarray
Size = int | tuple[int, ...] | None

# Version of the way from key and digest to numbers. A change of anything below is another version: old noise
# subtracted from new noise of the same bits would show a part of the value.
SCHEME = "leakscope keyed noise 1"  # our former name: with another one the same release would get other noise
KEY_BYTES = 32
NAME_BYTES = 16  # of a unit, and of its keyed hashes
_LARGEST_EXACT = 2**53  # whole numbers up to here are doubles


def new_key() -> bytes:
    """Draw a key of 256 bits from the operating system's entropy.

    >>> len(new_key()), new_key() == new_key()
    (32, False)
    """
    return secrets.token_bytes(KEY_BYTES)


def text_names(texts: Sequence[str]) -> UInt8[Array, "n 16"]:
    """Name units, which are known by a text each, by 16 bytes: the BLAKE2b hash of the text (RFC 7693).

    >>> text_names(["Ada", "Ben"]).shape
    (2, 16)
    """
    hashes = (hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=NAME_BYTES) for text in texts)
    return np.frombuffer(b"".join(each.digest() for each in hashes), np.uint8).reshape(len(texts), NAME_BYTES)


def keyed_hashes(key: bytes, purpose: str, names: UInt8[Array, "n 16"]) -> UInt8[Array, "n 16"]:
    """Compute a hash of each name that only the holder of a key can compute: keyed BLAKE2b of 16 bytes (RFC 7693).

    >>> names = text_names(["Ada", "Ben"])
    >>> hashes = keyed_hashes(new_key(), "unit", names)
    >>> hashes.shape, bool((hashes == names).any(axis=None) and (hashes == names).all())
    ((2, 16), False)
    """
    begun = hashlib.blake2b(key=key, person=purpose.encode(), digest_size=NAME_BYTES)
    content, hashes = np.ascontiguousarray(names).tobytes(), bytearray()
    for start in range(0, len(content), NAME_BYTES):
        each = begun.copy()  # with the block of the key, which is the same for all
        each.update(content[start : start + NAME_BYTES])
        hashes += each.digest()
    return np.frombuffer(hashes, np.uint8).reshape(len(names), NAME_BYTES)


def canonical_digest(subject: Any) -> str:
    """Compute the SHA-256 of a value made of numbers, texts, arrays, sequences and mappings.

    Equal values have equal digests however they are stored: numbers and arrays count as little-endian float64 in C
    order (whole numbers beyond 2^53 by their digits), minus zero as zero, mappings whatever their order. Each part
    is preceded by its kind and length, so that no two different values are written alike.

    >>> one = canonical_digest({"scale": 2, "shape": np.ones((2, 2), dtype=np.float32)})
    >>> one == canonical_digest({"shape": np.ones((2, 2), order="F"), "scale": 2.0})
    True
    >>> one == canonical_digest({"shape": np.ones((2, 2)), "scale": np.nextafter(2.0, 3.0)})
    False
    """
    digest = hashlib.sha256()
    for piece in _canonical(subject):
        digest.update(piece)
    return digest.hexdigest()


def _canonical(value: Any) -> list[bytes | memoryview]:
    """Encode a value as bytes: its kind, its length, its content; in pieces, so that no large array is copied."""
    if value is None:
        return _part(b"none", [])
    if isinstance(value, bool | np.bool_):
        return _part(b"bool", [b"1" if value else b"0"])
    if isinstance(value, int | np.integer | float | np.floating):
        return _canonical_number(value)
    if isinstance(value, str):
        return _part(b"text", [value.encode("utf-8", "surrogatepass")])
    if isinstance(value, bytes):
        return _part(b"bytes", [value])
    if isinstance(value, np.ndarray):
        return _canonical_array(value)
    if isinstance(value, Mapping):
        return _canonical_mapping(value)
    if isinstance(value, Sequence):
        return _part(b"sequence", [piece for item in value for piece in _canonical(item)])
    raise TypeError(f"{type(value).__name__} has no canonical bytes")


def _canonical_number(value: Any) -> list[bytes | memoryview]:
    """Encode a number: 1 and 1.0 alike, and whole numbers that no double holds by their digits."""
    if isinstance(value, int | np.integer) and abs(int(value)) > _LARGEST_EXACT:
        return _part(b"integer", [str(int(value)).encode()])
    return _part(b"number", [_doubles(float(value))])


def _canonical_array(value: np.ndarray) -> list[bytes | memoryview]:
    if value.dtype.kind not in "biuf":
        raise TypeError(f"an array of {value.dtype} has no canonical bytes")
    return _part(b"array", [*_canonical(list(value.shape)), _doubles(value)])


def _canonical_mapping(value: Mapping[Any, Any]) -> list[bytes | memoryview]:
    """Encode a mapping in the order of the texts of its keys."""
    pairs = sorted((str(name), content) for name, content in value.items())
    if len({name for name, _ in pairs}) < len(value):
        raise TypeError("a mapping has two keys of the same text")
    pieces = [piece for name, content in pairs for piece in (*_canonical(name), *_canonical(content))]
    return _part(b"mapping", pieces)


def _part(kind: bytes, content: Sequence[bytes | memoryview]) -> list[bytes | memoryview]:
    """Put the kind and the number of bytes before a content."""
    size = sum(memoryview(piece).nbytes for piece in content)
    return [kind + b":" + struct.pack("<Q", size), *content]


def _doubles(values: ArrayLike) -> memoryview:
    """Encode numbers as little-endian float64 in C order; minus zero as zero, every NaN as the same one."""
    numbers = np.ascontiguousarray(np.asarray(values, dtype="<f8") + 0.0)
    numbers[np.isnan(numbers)] = np.nan
    return numbers.reshape(-1).view(np.uint8).data


@final
class KeyedGenerator(np.random.Generator):
    """Random numbers as a function of a secret key and a subject.

    The methods by which the families of noise are drawn read uniform bits from SHAKE-256, 64 for each number, and
    take the inverse of the distribution function on each side of its median. Their values therefore depend on no
    version of a sampler in numpy. Everything else that a generator of numpy can do is done by its Philox generator,
    with a key from the same bits.

    >>> from leakbound.noise import GaussianNoise
    >>> key, noise = new_key(), GaussianNoise(2.0)
    >>> first, again, other = (noise.sample(np.zeros(1), KeyedGenerator(key, name)) for name in ("mean", "mean", "sum"))
    >>> first == again, first == other
    (array([ True]), array([False]))
    """

    def __init__(self, key: bytes, subject: str) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, got {len(key)}")
        # Lengths are fixed or stated, so that no two pairs of key and subject begin with the same bytes.
        scheme, of_subject = _part(b"scheme", [SCHEME.encode()]), _part(b"subject", [subject.encode()])
        self._start = b"".join([*scheme, key, *of_subject])
        self._n_reads = 0
        start = self._read(48)
        philox = np.random.Philox(
            key=int.from_bytes(start[:16], "little"), counter=int.from_bytes(start[16:], "little")
        )
        super().__init__(philox)

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Size = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] -- of the overloads only float64
        """Draw numbers in [low, high), multiples of 2^-53 of the width."""
        unit = (self._words(size) >> np.uint64(11)).astype(float) * 2.0**-53
        return low + (high - low) * unit

    def standard_normal(self, size: Size = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] -- as above
        """Draw standard normal numbers, up to 9.15 standard deviations; a fraction of 2^-64 would be beyond."""
        tail, sign = self._tails(size)
        return sign * -ndtri(tail)

    def laplace(self, loc: float = 0.0, scale: float = 1.0, size: Size = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] -- as above
        """Draw Laplace numbers: minus the logarithm of twice a tail, with a fair sign."""
        tail, sign = self._tails(size)
        return loc - scale * sign * np.log(2 * tail)

    def standard_gamma(self, shape: float, size: Size = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] -- as above
        """Draw gamma numbers of scale 1; a fair bit decides on which side of the median."""
        tail, sign = self._tails(size)
        return np.where(sign < 0, gammaincinv(shape, tail), gammainccinv(shape, tail))

    def gamma(self, shape: float, scale: float = 1.0, size: Size = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] -- as above
        """Draw gamma numbers of a scale."""
        return scale * self.standard_gamma(shape, size)

    def _tails(self, size: Size) -> tuple[Float[Array, "*size"], Float[Array, "*size"]]:
        """Draw probabilities uniform in (0, 1/2), fine near 0, and fair signs."""
        words = self._words(size)
        sign = np.where(words & np.uint64(1), 1.0, -1.0)
        tail = ((words >> np.uint64(1)).astype(float) + 0.5) * 2.0**-64
        return tail, sign

    def _words(self, size: Size) -> UInt64[Array, "*size"]:
        if size is None:
            shape: tuple[int, ...] = ()
        elif isinstance(size, tuple):
            shape = size
        else:
            shape = (size,)
        return np.frombuffer(self._read(8 * math.prod(shape)), dtype="<u8").reshape(shape)

    def _read(self, n_bytes: int) -> bytes:
        """Read the next bytes; the number of the call goes into the hash, together with key and subject."""
        content = self._start + struct.pack("<Q", self._n_reads)
        self._n_reads += 1
        return hashlib.shake_256(content).digest(n_bytes)
