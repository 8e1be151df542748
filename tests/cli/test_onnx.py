"""A model in a file of ONNX, and tables whose columns are not those that it reads."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakbound.reports import Report
from tests.cli.calling import caller, draw_no_pages, refused

AUDIT = "audit model model.onnx --members train.csv --others test.csv --label label"
EXTRA = "model.onnx gives no numbers for 1 points: the model reads 3 columns, and there are 4: "
NAMES = ("a", "b", "c")


# What is called of onnxruntime: a classifier of three columns in one matrix.
RUNTIME = """
from types import SimpleNamespace as SessionOptions
import numpy as np

class InferenceSession:
    def __init__(self, path, options, providers):
        pass
    def get_inputs(self):
        return [SessionOptions(name="X", shape=[None, 3], type="tensor(float)")]
    def get_outputs(self):
        return [SessionOptions(name="label", shape=[None], type="tensor(int64)"),
                SessionOptions(name="probabilities", shape=[None, 2], type="tensor(float)")]
    def run(self, outputs, feed):
        (values,) = feed.values()
        assert values.shape[1] == 3
        of_second = 1 / (1 + np.exp(-values[:, 0]))
        return [np.column_stack([1 - of_second, of_second])]
"""


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
def fake_runtime(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library lies where the process of a model finds it."""
    Path("model.onnx").write_bytes(b"a graph")
    installed = tmp_path_factory.mktemp("installed")
    (installed / "onnxruntime.py").write_text(RUNTIME)
    monkeypatch.syspath_prepend(installed)


@pytest.mark.slow
def test_a_table_with_one_column_more_is_refused_in_one_line(run: Any, fake_runtime: None) -> None:
    write_tables(extra=True)
    refused(run(AUDIT), f"{EXTRA}a, customer, b, c; leave out those that are no features (--drop; ")
    assert sorted(path.name for path in Path().iterdir()) == ["model.onnx", "test.csv", "train.csv"]


@pytest.mark.slow
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
    refused(run(AUDIT), f"{EXTRA}a, customer, b, c; leave out those that are no features (--drop; ")
