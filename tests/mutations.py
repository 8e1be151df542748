"""Mutated files for every reader: a valid seed, changed at random; each gives a result or one line.

`check` runs in a process of its own whose memory is limited, so that a reader that takes too much fails the test and
not the machine.
"""

from __future__ import annotations

import io
import json
import random
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from benchmarks.peak import peak_bytes

from tests import onnx_files

MOST_MEMORY = 1_000_000_000  # bytes of the largest process, libraries included
ADDRESSES = 1_000_000_000  # bytes that readers may add to the address space
LONGEST = 300
PLAN = """
title = "How much?"
dataset = "wine"
n_models = 8
fpr = [0.01, 0.1]
attacks = ["loss", "lira"]
[[model]]
spec = "sklearn.tree:DecisionTreeClassifier"
set = {max_depth = 3}
[[claim]]
epsilon = 3.0
delta = 1e-5
adjacency = "replace_one"
"""


class Reader(NamedTuple):
    """A seed as bytes, the name of its file, and what reads it."""

    name: str
    seed: Callable[[], bytes]
    read: Callable[[Path], Any]


def frame() -> pd.DataFrame:
    """Numbers, texts, dates and gaps."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "a": rng.normal(size=30).round(3),
            "city": [f"city {n % 4}" for n in range(30)],
            "day": pd.date_range("2020-01-01", periods=30),
            "b": np.where(np.arange(30) % 7, np.arange(30.0), np.nan),
            "label": np.arange(30) % 2,
        }
    )


def csv_seed() -> bytes:
    return frame().to_csv(index=False).encode()


def parquet_seed() -> bytes:
    made = io.BytesIO()
    frame().to_parquet(made)
    return made.getvalue()


def npz_seed() -> bytes:
    made = io.BytesIO()
    np.savez_compressed(made, x=np.arange(40.0).reshape(20, 2), y=np.arange(20) % 2)
    return made.getvalue()


def signals_seed() -> bytes:
    made, rng = io.BytesIO(), np.random.default_rng(1)
    np.savez(made, member=rng.random((4, 12)) < 0.5, loss=rng.random((4, 12)))
    return made.getvalue()


def png_seed() -> bytes:
    from PIL import Image

    made = io.BytesIO()
    pixels = np.random.default_rng(2).integers(0, 255, (9, 7, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(made, "PNG")
    return made.getvalue()


def report_seed() -> bytes:
    from tests.reports import made_bounds

    return made_bounds.leakage(20).to_json().encode()


def state_seed() -> bytes:
    import torch

    made = io.BytesIO()
    torch.save({"weight": torch.ones(2, 3), "bias": torch.zeros(2)}, made)
    return made.getvalue()


def safetensors_seed() -> bytes:
    header = {
        "weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "bias": {"dtype": "F32", "shape": [2], "data_offsets": [24, 32]},
    }
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + np.arange(8, dtype=np.float32).tobytes()


def skops_seed() -> bytes:
    import skops.io
    from sklearn.tree import DecisionTreeClassifier

    x = np.arange(40.0).reshape(20, 2)
    return skops.io.dumps(DecisionTreeClassifier(max_depth=3).fit(x, np.arange(20) % 3))


def read_plan(path: Path) -> Any:
    from leakbound.plans import from_toml

    return from_toml(path)


def read_data(path: Path) -> Any:
    from leakbound.data import load

    return load(str(path), None if path.suffix == ".npz" else "label")


def read_signals(path: Path) -> Any:
    from leakbound.runtime.observe import read_signals

    return read_signals(str(path))


def read_image(path: Path) -> Any:
    from leakbound.data.images import read_folder

    return read_folder(path.parent.parent)


def read_report(path: Path) -> Any:
    from leakbound.reports import Report

    return Report.from_json(path)


def read_unverified(path: Path) -> Any:
    from leakbound.reports import Report

    return Report.from_json(path, unverified=True)


def read_state(path: Path) -> Any:
    import torch

    from leakbound.releases.networks.network import weighted

    return weighted(torch.nn.Linear, {"in_features": 3, "out_features": 2}, str(path))


def ask_model(path: Path) -> Any:
    """What the process of a foreign model does; it may send back one line, and must not end or take too much."""
    from leakbound.core.checks import one_line
    from leakbound.releases.foreign_model import reply_to

    model, reply = reply_to(None, "read", (str(path), (), None))
    if model is not None and not reply["error"]:
        _, reply = reply_to(model, "answers", ("predict_proba", np.ones((4, 2), dtype=np.float32)))
    if reply["error"] or reply["memory"]:
        raise ValueError(one_line(reply["error"] or "too much memory"))
    return json.dumps(reply)


READERS: Mapping[str, Reader] = {
    "toml": Reader("plan.toml", PLAN.encode, read_plan),
    "csv": Reader("data.csv", csv_seed, read_data),
    "parquet": Reader("data.parquet", parquet_seed, read_data),
    "npz": Reader("data.npz", npz_seed, read_data),
    "signals": Reader("signals.npz", signals_seed, read_signals),
    "image": Reader("folder/cats/1.png", png_seed, read_image),
    "report": Reader("report.json", report_seed, read_report),
    "unverified": Reader("unverified.json", report_seed, read_unverified),
    "state": Reader("weights.pt", state_seed, read_state),
    "safetensors": Reader("weights.safetensors", safetensors_seed, read_state),
}
MODELS: Mapping[str, Reader] = {  # each needs a library that not every environment has
    "onnx": Reader("model.onnx", onnx_files.softmax, ask_model),
    "skops": Reader("model.skops", skops_seed, ask_model),
}
ODD = (
    b"\x00", b"\xff" * 8, b"-1", b"1e999", b"9" * 400, b"[" * 50, b'"', b"\n", b"\r", b",", b"{}", b"nan", b"\x1b[2J",
)  # fmt: skip
VALUES = (None, True, -1, 0.5, 1e308, "", "x" * 400, [], [[]], {}, {"a": {}}, 10**400)


def mutated(whole: bytes, rng: random.Random) -> bytes:
    """Bytes that are flipped, cut, inserted or repeated, once or several times; of JSON also values of other types."""
    if whole[:1] == b"{" and rng.random() < 0.4:
        return with_another_value(whole, rng)
    made = bytearray(whole)
    for _ in range(rng.choice((1, 1, 2, 8))):
        place, length = rng.randrange(len(made) + 1), rng.choice((1, 2, 8, 64))
        way = rng.randrange(6)
        if way == 0 and place < len(made):
            made[place] ^= 1 << rng.randrange(8)
        elif way == 1:
            made[place : place + length] = rng.randbytes(length)
        elif way == 2:
            del made[place:]
        elif way == 3:
            del made[place : place + length]
        elif way == 4:
            made[place:place] = rng.choice(ODD)
        else:
            made[place:place] = made[place : place + length] * rng.choice((1, 3, 50))
    return bytes(made)


def with_another_value(whole: bytes, rng: random.Random) -> bytes:
    """A document of JSON with one of its values replaced."""
    document = json.loads(whole)
    inner, steps = document, []
    while isinstance(inner, dict | list) and inner and (not steps or rng.random() < 0.8):
        key = rng.choice(list(inner)) if isinstance(inner, dict) else rng.randrange(len(inner))
        steps.append((inner, key))
        inner = inner[key]
    holder, key = steps[-1]
    holder[key] = rng.choice(VALUES)
    return json.dumps(document).encode()


def fault_of(reader: Reader, path: Path) -> str:
    """What is wrong with how a reader took a file; empty where it gave a result or one line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader.read(path)
    except (ValueError, OSError) as error:
        line = str(error)
        if len(line) > LONGEST or "\n" in line or not line.isprintable():
            return f"no line of {LONGEST} characters: {line[:400]!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def prepared(reader: Reader, folder: Path) -> Path:
    """The place of a reader's file, with what must stand beside it; a valid file is read once."""
    path = folder / reader.name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".png":
        other = path.parent.parent / "dogs"
        other.mkdir(exist_ok=True)
        (other / "1.png").write_bytes(reader.seed())
    path.write_bytes(reader.seed())
    reader.read(path)
    return path


def main(kind: str, n_files: int, first: int) -> None:
    """Read many mutated files and print what went wrong, as JSON."""
    reader = {**READERS, **MODELS}[kind]
    with tempfile.TemporaryDirectory() as folder:
        path = prepared(reader, Path(folder))
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + ADDRESSES, used + ADDRESSES))
        whole, faults = path.read_bytes(), {}
        for seed in range(first, first + n_files):
            path.write_bytes(mutated(whole, random.Random(f"{kind} {seed}")))
            if wrong := fault_of(reader, path):
                faults[seed] = wrong.replace(folder, "")
    print(json.dumps({"faults": faults, "peak": peak_bytes()}))


def check(kind: str, n_files: int, first: int = 0) -> None:
    """Assert that every mutated file gives a result or one line, in less than a gigabyte."""
    command = [sys.executable, "-m", "tests.mutations", kind, str(n_files), str(first)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).resolve().parents[1])
    assert done.returncode == 0, f"{kind}: ended with {done.returncode}: {done.stderr[-2000:]}"
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["faults"] == {}
    assert found["peak"] < MOST_MEMORY


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
