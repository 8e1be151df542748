"""A chunk of arrays as bytes, and back: the same arrays on the same kind of machine give the same bytes.

A chunk is a zip of uncompressed ``.npy`` files. Its first member lists the key, the names, shapes and dtypes of the
arrays, the SHA-256 of their values, the kind of machine that computed them, and the digests of what was read meanwhile.
The comment of the zip is the SHA-256
of all bytes before it. A chunk that does not agree with all of these is never used.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import tokenize
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib import format as npy

from leakbound.runtime.inputs import NOTHING_READ, Inputs
from leakbound.runtime.machine import Machine

Array = np.ndarray
FORMAT = 3
CONTENTS = "chunk.json"  # the member that says what is in a chunk
_DIGEST_SIZE = 64  # hexadecimal digits at the end of a chunk
_END_SIZE = 22  # bytes of the end record of a zip, of which the last two hold the length of the comment
_DAMAGE = (
    ValueError, OSError, EOFError, LookupError, TypeError, RuntimeError, OverflowError, SyntaxError,
    AttributeError, struct.error, tokenize.TokenError, zipfile.BadZipFile,
)  # fmt: skip


class Damaged(ValueError):
    """Bytes that are no whole chunk of their name."""


@dataclass(frozen=True)
class Chunk:
    """What is in a chunk."""

    arrays: dict[str, Array]
    arrays_digest: str
    machine: Machine
    n_bytes: int
    inputs: Inputs


def digest_of(arrays: Mapping[str, Array]) -> str:
    """SHA-256 of names, shapes, dtypes and values, in the order of the names.

    >>> digest_of({"a": np.zeros(2), "b": np.ones(1)}) == digest_of({"b": np.ones(1), "a": np.zeros(2)})
    True
    """
    sha = hashlib.sha256()
    for name in sorted(arrays):
        values = arrays[name]
        sha.update(json.dumps([name, list(values.shape), values.dtype.str]).encode())
        if values.nbytes:
            sha.update(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
    return sha.hexdigest()


def serialise(
    name: str, arrays: Mapping[str, Array], machine: Machine, inputs: Inputs = NOTHING_READ
) -> tuple[bytes, str]:
    """Serialise a chunk: its bytes, and the digest of its arrays."""
    arrays = {array: np.asanyarray(values) for array, values in arrays.items()}
    for array, values in arrays.items():
        if values.dtype.hasobject:
            raise ValueError(f"{array!r} holds Python objects and cannot be kept in a store; give numbers or texts")
    arrays_digest = digest_of(arrays)
    contents = {
        "format": FORMAT,
        "key": name,
        "arrays": {array: {"shape": list(values.shape), "dtype": values.dtype.str} for array, values in arrays.items()},
        "arrays_digest": arrays_digest,
        "machine": {"digest": machine.digest, "facts": dict(machine.facts)},
        "inputs": inputs.as_json(),
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(CONTENTS), json.dumps(contents))
        for array, values in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{array}.npy"), "w", force_zip64=True) as member:
                # in one memory order, so that equal arrays have equal bytes
                npy.write_array(member, np.asarray(values, order="C"), allow_pickle=False)
        archive.comment = b"0" * _DIGEST_SIZE  # the place of the digest, which does not cover itself
    with file.getbuffer() as buffer:
        digest = hashlib.sha256(buffer[:-_DIGEST_SIZE]).hexdigest().encode()
        buffer[-_DIGEST_SIZE:] = digest
    return file.getvalue(), arrays_digest


def read(content: bytes, name: str) -> Chunk:
    """Read a chunk; nothing is allocated for its arrays before all that it says of itself is compared."""
    try:
        return _read(content, name)
    except Damaged:
        raise
    except _DAMAGE as error:  # numpy and zipfile raise many kinds of errors for a file that is damaged
        raise Damaged(f"it cannot be read: {type(error).__name__}") from error


def _read(content: bytes, name: str) -> Chunk:
    body = memoryview(content)[:-_DIGEST_SIZE]
    if len(content) < _DIGEST_SIZE + _END_SIZE:
        raise Damaged("it is too short")
    if hashlib.sha256(body).hexdigest().encode() != content[-_DIGEST_SIZE:]:
        raise Damaged("it has other bytes than were written")
    # an archive that takes no more memory than its bytes
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise Damaged("it is compressed")
        if sum(member.file_size for member in members) > len(content):
            raise Damaged("its members are longer than the file")
        # of this format and this key
        contents = json.loads(archive.read(CONTENTS))
        if contents["format"] != FORMAT:
            raise Damaged(f"it has another format than {FORMAT}: another version of leakbound wrote it")
        if contents["key"] != name:
            raise Damaged("it is the chunk of another key")
        # the arrays that it lists, and no others
        listed = contents["arrays"]
        if not listed or [member.filename for member in members] != [CONTENTS, *(f"{array}.npy" for array in listed)]:
            raise Damaged("it has other arrays than it lists")
        # where and from what it was made
        machine = Machine(contents["machine"]["facts"])
        if machine.digest != contents["machine"]["digest"]:
            raise Damaged("its kind of machine does not have the digest that was written")
        str(machine)  # raises where one of its facts is missing
        sizes = dict(zip(listed, members[1:], strict=True))
        arrays = {array: _array(archive, sizes[array], facts) for array, facts in listed.items()}
        inputs = Inputs(dict(contents["inputs"]["files"]), dict(contents["inputs"]["environment"]))
        return Chunk(arrays, contents["arrays_digest"], machine, len(content), inputs)


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, facts: Mapping[str, Any]) -> Array:
    """One array, if its header agrees with the list and with the number of bytes that are there."""
    with archive.open(member) as file:
        if npy.read_magic(file) != (1, 0):
            raise Damaged("it has an array in another format")
        shape, _, dtype = npy.read_array_header_1_0(file)
        if dtype.hasobject or list(shape) != facts["shape"] or dtype.str != facts["dtype"]:
            raise Damaged("it has an array of another shape or dtype than it lists")
        n_values = 1
        for length in shape:
            n_values *= length  # in Python's integers, which do not overflow
        if file.tell() + n_values * dtype.itemsize != member.file_size:
            raise Damaged("it has an array with more or fewer values than its shape says")
    with archive.open(member) as file:
        return npy.read_array(file, allow_pickle=False)
