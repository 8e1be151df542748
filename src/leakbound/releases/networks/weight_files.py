"""Weights of a network in files: state dicts of PyTorch and safetensors. Nothing is unpickled, no code is run."""

from __future__ import annotations

import json
import math
import os
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from leakbound.files.untrusted import JSON_TIMES, in_one_line, refuse_archive, refuse_large

_LONGEST_HEADER = 100_000_000  # bytes, as the library of safetensors allows
_SIZE_OF_LENGTH = 8
_MOST_NUMBERS = 2**48
_TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_SAVE = "save its weights by torch.save(network.state_dict(), FILE)"


@in_one_line
def weights_of(file: str | os.PathLike[str]) -> Mapping[str, Any]:
    """Read the tensors of a network.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".pt") as file:
    ...     torch.save({"weight": torch.ones(2, 3)}, file.name)
    ...     weights_of(file.name)["weight"].shape
    torch.Size([2, 3])
    """
    try:
        with open(file, "rb") as opened:
            start = opened.read(_SIZE_OF_LENGTH + 1)
    except FileNotFoundError:
        raise ValueError(f"{file}: no such file") from None
    if start[_SIZE_OF_LENGTH:] == b"{":
        return _of_safetensors(file)
    return _of_torch(file)


def _of_torch(file: str | os.PathLike[str]) -> Mapping[str, Any]:
    """Read a file of ``torch.save``."""
    no_state_dict = f"{file}: no state dict; tensors alone are read, nothing is unpickled: {_SAVE}"
    try:
        with zipfile.ZipFile(file) as archive:
            refuse_archive(file, archive)
            names = archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError):  # zipfile raises the second for features it does not support
        raise ValueError(no_state_dict) from None
    if any(name.endswith("/constants.pkl") for name in names):
        raise ValueError(
            f"{file}: an archive of TorchScript, which holds code; nothing of it is run. Save its weights by "
            "torch.save(torch.jit.load(FILE).state_dict(), 'net.pt'), or audit it in Python: "
            "ls.audit_model(torch.jit.load(FILE), members, others)"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about files of another format
            state = torch.load(file, map_location="cpu", weights_only=True)
    except Exception:  # torch raises many kinds for files of another format
        if any(name.endswith("/data.pkl") for name in names):
            raise ValueError(
                f"{file}: a network or other objects in a pickle, which runs code when it is read; it is not read: "
                f"{_SAVE}"
            ) from None
        raise ValueError(no_state_dict) from None
    if not isinstance(state, Mapping):
        raise ValueError(no_state_dict)
    return state


def _of_safetensors(file: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Read a file of safetensors: the length of a header in JSON, the header, and the numbers of all tensors."""
    size = os.path.getsize(file)
    refuse_large(file, size)
    with open(file, "rb") as opened:
        length = int.from_bytes(opened.read(_SIZE_OF_LENGTH), "little")
        if length > min(_LONGEST_HEADER, size - _SIZE_OF_LENGTH):
            raise ValueError(f"{file}: a damaged file of safetensors: its header is longer than the file")
        refuse_large(file, size + JSON_TIMES * length)
        try:
            header = json.loads(opened.read(length))
        except (ValueError, RecursionError):
            raise ValueError(f"{file}: a damaged file of safetensors: its header is no JSON") from None
        content = opened.read()
    header.pop("__metadata__", None)
    places = [_place(file, str(name), entry) for name, entry in header.items()]
    # Tensors that share bytes would take more memory than the file has.
    end_before = 0
    for place in sorted(places, key=lambda place: (place.begin, place.end)):
        if place.begin != end_before:
            raise ValueError(
                f"{file}: a damaged file of safetensors: {place.name} does not follow the tensor before it"
            )
        end_before = place.end
    if end_before != len(content):
        raise ValueError(f"{file}: a damaged file of safetensors: its tensors do not end where it ends")
    return {place.name: place.tensor(content) for place in places}


@dataclass(frozen=True)
class _Place:
    """Where a tensor is in a file of safetensors."""

    name: str
    dtype: torch.dtype
    shape: Sequence[int]
    begin: int
    end: int

    def tensor(self, content: bytes) -> Tensor:
        if self.begin == self.end:
            return torch.empty(list(self.shape), dtype=self.dtype)
        return torch.frombuffer(bytearray(content[self.begin : self.end]), dtype=self.dtype).reshape(list(self.shape))


def _place(file: str | os.PathLike[str], name: str, entry: Any) -> _Place:
    """Read the entry of a tensor."""
    try:
        dtype, shape, (begin, end) = _TYPES.get(entry["dtype"]), entry["shape"], entry["data_offsets"]
        whole = all(type(number) is int and number >= 0 for number in (*shape, begin, end))
    except (TypeError, KeyError, ValueError):
        raise ValueError(f"{file}: a damaged file of safetensors: {name} has no type, shape and place") from None
    if dtype is None:
        raise ValueError(f"{file}: {name} has numbers of type {entry['dtype']}; read are {', '.join(_TYPES)}")
    is_large = whole and math.prod(max(side, 1) for side in shape) > _MOST_NUMBERS  # also of a tensor without numbers
    if not whole or is_large or end - begin != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{file}: a damaged file of safetensors: {name} does not have the bytes of its shape")
    return _Place(name, dtype, shape, begin, end)
