"""A model in a file of ONNX, and tables whose columns are not those that it reads."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakscope.reports import Report
from tests.cli.calling import caller, draw_no_pages, refused

AUDIT = "audit model.onnx --members train.csv --others test.csv --label label"
EXTRA = "model.onnx gives no numbers for 1 points: the model reads 3 columns, and there are 4: "
NAMES = ("a", "b", "c")


class FakeSession:
    """What is called of a session of onnxruntime: a classifier of three columns in one matrix."""

    def __init__(self, path: str, options: Any, providers: list[str]) -> None:
        self.path = path

    def get_inputs(self) -> list[Any]:
        return [SimpleNamespace(name="X", shape=[None, 3], type="tensor(float)")]

    def get_outputs(self) -> list[Any]:
        return [SimpleNamespace(name="label", shape=[None]), SimpleNamespace(name="probabilities", shape=[None, 2])]

    def run(self, outputs: list[str], feed: dict[str, np.ndarray]) -> list[np.ndarray]:
        (values,) = feed.values()
        assert values.shape[1] == 3
        of_second = 1 / (1 + np.exp(-values[:, 0]))
        return [np.column_stack([1 - of_second, of_second])]


def write_tables(extra: bool) -> None:
    rng = np.random.default_rng(0)
    for name in ("train", "test"):
        table = pd.DataFrame(rng.normal(size=(60, 3)), columns=list(NAMES))
        if extra:
            table.insert(1, "customer", np.arange(60))
        table.assign(label=(table.a > 0).astype(int)).to_csv(f"{name}.csv", index=False)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.chdir(tmp_path)
    draw_no_pages(monkeypatch)
    return caller(monkeypatch, capfd)


@pytest.fixture
def fake_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("model.onnx").write_bytes(b"a graph")
    runtime = SimpleNamespace(SessionOptions=SimpleNamespace, InferenceSession=FakeSession)
    monkeypatch.setattr("leakscope.releases.model_files._library", lambda *words: runtime)


def test_a_table_with_one_column_more_is_refused_in_one_line(run: Any, fake_runtime: None) -> None:
    write_tables(extra=True)
    refused(run(AUDIT), f"{EXTRA}a, customer, b, c; --drop those that are no features")
    assert sorted(path.name for path in Path().iterdir()) == ["model.onnx", "test.csv", "train.csv"]


def test_what_the_line_says_is_enough(run: Any, fake_runtime: None) -> None:
    write_tables(extra=True)
    assert run(f"{AUDIT} --drop customer --out made").code == 0
    digest = hashlib.sha256(b"a graph").hexdigest()
    (release,) = Report.from_json("made/report.json").about.releases
    assert release.files == {"model.onnx": digest}
    assert f"read from model.onnx, SHA-256 {digest}" in release.description


@pytest.mark.parametrize("extra", [True, False])
def test_the_same_with_onnxruntime(run: Any, extra: bool) -> None:
    pytest.importorskip("onnxruntime", reason="ONNX: onnxruntime is not installed")
    skl2onnx = pytest.importorskip("skl2onnx", reason="ONNX: skl2onnx, which writes the model, is not installed")
    from sklearn.linear_model import LogisticRegression

    write_tables(extra=False)
    table = pd.read_csv("train.csv")
    model = LogisticRegression().fit(table[list(NAMES)].to_numpy(np.float32), table.label)
    graph = skl2onnx.to_onnx(model, table[list(NAMES)].to_numpy(np.float32)[:1])
    Path("model.onnx").write_bytes(graph.SerializeToString())
    if not extra:
        assert run(f"{AUDIT} --out made").code == 0
        return
    write_tables(extra=True)
    refused(run(AUDIT), f"{EXTRA}a, customer, b, c; --drop those that are no features")
