"""Models of somebody else's files: they answer from a process with limits, and every way to fail is one line."""

from __future__ import annotations

import json
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leakbound.core.types import Points
from leakbound.releases import foreign_model
from leakbound.releases.answers import method_of
from leakbound.releases.foreign_model import ForeignModel, _from_plain, _plain
from leakbound.releases.model_files import read_model
from leakbound.releases.structure import class_and_parameters, structure_of
from tests import onnx_files
from tests.mutations import check

# What is called of onnxruntime; the file says what the graph does.
RUNTIME = """
import os, time
import numpy as np

class SessionOptions: pass
class Value:
    def __init__(self, name, shape, type): self.name, self.shape, self.type = name, shape, type

class InferenceSession:
    def __init__(self, path, options, providers):
        self.does = open(path).read()
        print("read" * 10_000)
        if self.does == "wrong": raise LookupError("no graph\\nat all")
    def get_inputs(self):
        return [] if self.does == "no inputs" else [Value("x", [None, 2], "tensor(float)")]
    def get_outputs(self):
        outputs = [Value("label", [None], "tensor(int64)"), Value("p", [None, 2], "tensor(float)")]
        return [] if self.does == "no outputs" else outputs
    def run(self, outputs, feed):
        print("answer" * 10_000)
        (x,) = feed.values()
        if self.does == "endless" and len(x) > 1:
            while True: pass
        if self.does == "large": np.ones(10**12)
        if self.does == "dies": os._exit(3)
        if self.does == "objects": return [np.array([object()] * len(x))]
        if self.does == "long": return [np.ones((len(x), 10**8))]
        p = 1 / (1 + np.exp(-x[:, 0].astype(float)))
        if self.does == "mapping": return [[{"yes": one, "no": 1 - one} for one in p]]
        return [np.column_stack([1 - p, p])]
"""
X = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
P = 1 / (1 + np.exp(-X[:, 0].astype(float)))


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Read a file of ONNX by a runtime that is not there."""
    (tmp_path / "onnxruntime.py").write_text(RUNTIME)
    monkeypatch.syspath_prepend(tmp_path)

    def from_file(does: str) -> ForeignModel:
        (tmp_path / "m.onnx").write_text(does)
        return read_model(tmp_path / "m.onnx")

    return from_file


def is_over(model: ForeignModel) -> bool:
    return model._process.poll() is not None


def test_it_answers_as_in_this_process_however_much_it_prints(read):
    model = read("probabilities")
    assert method_of(model) == "predict_proba"
    for rows in (X, X[:1], pd.DataFrame(X, columns=["a", "b"])):
        np.testing.assert_array_equal(model.predict_proba(rows)[:, 1], P[: len(rows)])
    assert not hasattr(model, "decision_function")


@pytest.mark.slow
def test_classes_are_learned_from_an_answer(read):
    model = read("mapping")
    assert not hasattr(model, "classes_")
    np.testing.assert_array_equal(model.predict_proba(X), np.column_stack([1 - P, P]))
    assert model.classes_.tolist() == ["no", "yes"]


@pytest.mark.by_day("no outputs-m.onnx holds a graph without outputs: it is no model")
@pytest.mark.parametrize(
    ("does", "line"),
    [
        ("no outputs", "m.onnx holds a graph without outputs: it is no model"),
        ("no inputs", "m.onnx holds a graph without inputs: it is no model"),
        ("wrong", "m.onnx: cannot be read as ONNX: no graph"),
    ],
)
def test_a_graph_that_is_no_model(read, does, line):
    with pytest.raises(ValueError) as caught:
        read(does)
    assert str(caught.value).endswith(line)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("does", "line", "goes_on"),
    [
        ("large", "m.onnx needs more than the 1,0.. MB of memory that a model of its size may take", True),
        pytest.param(
            "long",
            "m.onnx needs more than the 1,0.. MB of memory that a model of its size may take",
            True,
            marks=pytest.mark.slow,
        ),
        ("dies", r"m.onnx ended its process \(3\): it is damaged, or needs more than the 1,0.. MB", False),
        pytest.param(
            "objects",
            "could not convert|float\\(\\) argument|must be a string or a real number",
            True,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_an_answer_may_not_do(read, does, line, goes_on):
    model = read(does)
    with pytest.raises(ValueError, match=line):
        model.predict_proba(X)
    assert is_over(model) != goes_on
    with pytest.raises(ValueError, match=line if goes_on else "the process that computes it was stopped"):
        model.predict_proba(X)


@pytest.mark.slow
def test_one_that_never_ends_is_stopped(read, monkeypatch):
    model = read("endless")
    model.predict_proba(X[:1])
    monkeypatch.setattr(foreign_model, "SPARE_SECONDS", 1.0)
    model._seconds_of_first = 0.0
    started = time.perf_counter()
    with pytest.raises(ValueError, match=r"m\.onnx did not answer in 1 seconds, and was stopped"):
        model.predict_proba(X)
    assert time.perf_counter() - started < 20
    assert is_over(model)


@pytest.mark.slow
def test_ctrl_c_ends_it(read):
    model = read("endless")
    # a signal to this very thread, as it waits for the process without running any Python
    threading.Timer(0.5, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
    started = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        model.predict_proba(X)
    assert time.perf_counter() - started < 20
    assert is_over(model)


@pytest.mark.slow
def test_it_ends_with_its_model(read):
    model = read("probabilities")
    process = model._process
    del model
    assert process.poll() is not None


@pytest.mark.parametrize(
    "value",
    [
        None,
        "text",
        [1, 2.5, True],
        {"a": np.array([[1, 2]]), "b": [np.array(["x", "yz"])]},
        np.array([0.1, np.nan, -np.inf], dtype=np.float32),
        np.array(["a", 1, None], dtype=object),
        np.zeros((0, 3)),
    ],
)
def test_what_is_sent_back_is_the_same(value):
    found = _from_plain(json.loads(json.dumps(_plain(value))))
    np.testing.assert_equal(found, value)
    assert getattr(found, "dtype", None) == getattr(value, "dtype", None)


def test_objects_are_not_sent_back():
    with pytest.raises(ValueError, match="answers with object, and not with numbers"):
        _plain([object()])
    with pytest.raises(ValueError, match="no plain type"):
        _from_plain({"array": "", "dtype": "O", "shape": [0]})


class TestSkops:
    @pytest.fixture
    def forest(self, tmp_path):
        skops = pytest.importorskip("skops.io", reason="skops: it is not installed")
        frame = pd.DataFrame(X, columns=["a", "b"]).assign(c=np.arange(20.0))
        model = make_pipeline(StandardScaler(), RandomForestClassifier(8, random_state=0)).fit(frame, P > 0.5)
        skops.dump(model, tmp_path / "m.skops")
        return frame, model, read_model(tmp_path / "m.skops")

    def test_answers_structure_and_parameters_are_those_of_the_model(self, forest):
        frame, model, read = forest
        np.testing.assert_array_equal(read.predict_proba(frame), model.predict_proba(frame))
        assert repr(read) == repr(model)
        members = Points(frame, P > 0.5)
        assert structure_of(read, members) == structure_of(model, members)
        assert structure_of(read.predict_proba, members) == structure_of(model, members)
        assert class_and_parameters(read) == class_and_parameters(model)

    def test_other_columns_are_explained(self, forest):
        frame, _, read = forest
        with pytest.raises(ValueError, match="it was not fitted on d; leave out what is no feature: --drop d"):
            read.predict_proba(frame.assign(d=1))


class TestOnnx:
    @pytest.fixture
    def read(self, tmp_path):
        pytest.importorskip("onnxruntime", reason="ONNX: onnxruntime is not installed")

        def from_bytes(content: bytes) -> ForeignModel:
            (tmp_path / "m.onnx").write_bytes(content)
            return read_model(tmp_path / "m.onnx")

        return from_bytes

    def test_a_graph_written_by_hand(self, read):
        odds = np.exp(X)
        np.testing.assert_allclose(
            read(onnx_files.softmax()).predict_proba(X), odds / odds.sum(axis=1, keepdims=True), rtol=1e-5
        )

    def test_one_that_asks_for_eight_gigabytes(self, read):
        assert len(onnx_files.of_eight_gigabytes()) < 400
        with pytest.raises(ValueError, match=r"needs more than the 1,0.. MB of memory"):
            read(onnx_files.of_eight_gigabytes()).predict_proba(X)

    def test_one_that_never_ends(self, read, monkeypatch):
        model = read(onnx_files.without_end())
        monkeypatch.setattr(foreign_model, "SPARE_SECONDS", 1.0)
        with pytest.raises(ValueError, match="did not answer in 1 seconds"):
            model.predict_proba(X)

    def test_one_without_outputs(self, read):
        with pytest.raises(ValueError, match="holds a graph without outputs"):
            read(onnx_files.without_outputs())


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "library"), [("onnx", "onnxruntime"), ("skops", "skops")])
def test_mutated_models_give_one_line(kind, library):
    pytest.importorskip(library, reason=f"{kind}: {library} is not installed")
    check(kind, 60)


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "library"), [("onnx", "onnxruntime"), ("skops", "skops")])
def test_thousands_of_mutated_models_give_one_line_each(kind, library):
    pytest.importorskip(library, reason=f"{kind}: {library} is not installed")
    check(kind, 3000, first=60)
