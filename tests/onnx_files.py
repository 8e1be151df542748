"""Graphs of ONNX, written by the published format of their files: no library is needed that writes them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

FLOAT, INT64, BOOL = 1, 7, 9
OF_A_GRAPH = 5  # the kind of an attribute


def number(field: int, value: int) -> bytes:
    """A field of a whole number."""
    return varint(field << 3) + varint(value)


def content(field: int, value: bytes | str) -> bytes:
    """A field of bytes, a text, or what is inside of it."""
    inside = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(inside)) + inside


def varint(value: int) -> bytes:
    """A whole number, seven bits a byte."""
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


def node(kind: str, inputs: Sequence[str], outputs: Sequence[str], *attributes: bytes) -> bytes:
    parts = [content(1, name) for name in inputs] + [content(2, name) for name in outputs]
    return b"".join(parts) + content(4, kind) + b"".join(content(5, attribute) for attribute in attributes)


def value(name: str, kind: int, sides: Sequence[int | None]) -> bytes:
    """An input or output of a graph: its name, type and shape."""
    shape = b"".join(content(1, content(2, "n") if side is None else number(1, side)) for side in sides)
    return content(1, name) + content(2, content(1, number(1, kind) + content(2, shape)))


def constant(name: str, values: Sequence[int]) -> bytes:
    raw = struct.pack(f"<{len(values)}q", *values)
    return number(1, len(values)) + number(2, INT64) + content(8, name) + content(9, raw)


def graph(
    nodes: Sequence[bytes], inputs: Sequence[bytes], outputs: Sequence[bytes], constants: Sequence[bytes] = ()
) -> bytes:
    fields = ((1, nodes), (5, constants), (11, inputs), (12, outputs))
    return content(2, "g") + b"".join(content(field, part) for field, parts in fields for part in parts)


def model(graph_of_it: bytes) -> bytes:
    return number(1, 8) + content(7, graph_of_it) + content(8, content(1, "") + number(2, 17))


X, Y = value("x", FLOAT, [None, 2]), value("y", FLOAT, [None, 2])


def softmax() -> bytes:
    """A classifier of two columns, whose logits they are."""
    return model(graph([node("Softmax", ["x"], ["y"])], [X], [Y]))


def of_eight_gigabytes() -> bytes:
    """It adds the sum of 2e9 copies of a number of float32 to its answer."""
    nodes = [
        node("ReduceMax", ["x"], ["largest"]),
        node("Expand", ["largest", "shape"], ["copies"]),
        node("ReduceSum", ["copies"], ["sum"]),
        node("Add", ["x", "sum"], ["y"]),
    ]
    return model(graph(nodes, [X], [Y], [constant("shape", [2000, 1000, 1000])]))


def without_end() -> bytes:
    """It repeats doing nothing as long as a condition holds, which always does."""
    body = graph(
        [node("Identity", ["go"], ["still"]), node("Identity", ["before"], ["after"])],
        [value("i", INT64, []), value("go", BOOL, []), value("before", FLOAT, [None, 2])],
        [value("still", BOOL, []), value("after", FLOAT, [None, 2])],
    )
    loop = content(1, "body") + content(6, body) + number(20, OF_A_GRAPH)
    true = number(2, BOOL) + content(8, "true") + content(9, b"\x01")
    return model(graph([node("Loop", ["", "true", "x"], ["y"], loop)], [X], [Y], [true]))


def without_outputs() -> bytes:
    return model(graph([node("Identity", ["x"], ["z"])], [X], []))
