"""Trained models in files."""

from __future__ import annotations

import os
import pickle
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from leakbound.releases.model_files import KNOWN_TYPES, _runs_code, read_here, read_model

X = np.random.default_rng(0).normal(size=(20, 3))
Y = np.arange(20) % 2
MODEL = LogisticRegression().fit(X, Y)


class Harmful:
    """Unpickling it leaves a file behind."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (self.mark,)


@pytest.mark.parametrize("suffix", [".joblib", ".pkl", ".pickle"])
class TestPickles:
    def test_they_are_read_by_those_who_trust_them(self, tmp_path, suffix):
        path = tmp_path / f"model{suffix}"
        (joblib.dump if suffix == ".joblib" else lambda model, file: file.write_bytes(pickle.dumps(model)))(MODEL, path)
        found = read_model(path, unpickle_trusted=True)
        np.testing.assert_array_equal(found.predict_proba(X), MODEL.predict_proba(X))

    def test_otherwise_no_byte_of_them_is_run(self, tmp_path, suffix):
        path, mark = tmp_path / f"model{suffix}", tmp_path / "mark"
        path.write_bytes(pickle.dumps(Harmful(str(mark))))
        with pytest.raises(
            ValueError,
            match=r"is a pickle, which runs any code .*: say unpickle_trusted \(--unpickle-trusted\) if you ",
        ):
            read_model(path)
        assert not mark.exists()

    def test_a_broken_one_is_one_line(self, tmp_path, suffix):
        path = tmp_path / f"model{suffix}"
        path.write_bytes(b"no pickle\nat all")
        with pytest.raises(ValueError, match="cannot be read: ") as caught:
            read_model(path, unpickle_trusted=True)
        assert "\n" not in str(caught.value)


def test_what_is_no_model(tmp_path):
    path = tmp_path / "list.pkl"
    path.write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(ValueError, match=r"holds a list, which has neither .* score=fn"):
        read_model(path, unpickle_trusted=True)
    assert read_model(path, unpickle_trusted=True, is_scored=True) == [1, 2]


@pytest.mark.parametrize(
    ("name", "message"),
    [("model.h5", "a model is read from .skops, .onnx, .joblib, .pkl, .pickle"), ("model.onnx", "no such file")],
)
def test_files_that_are_refused(tmp_path, name, message):
    with pytest.raises(ValueError, match=message):
        read_model(tmp_path / name)


@pytest.mark.parametrize(("suffix", "library"), [(".skops", "skops"), (".onnx", "onnxruntime")])
def test_a_missing_library_is_named_with_the_command_that_installs_it(tmp_path, monkeypatch, suffix, library):
    path = tmp_path / f"model{suffix}"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", "{}")
    real = __import__("importlib").import_module

    def without(name: str):
        if name.partition(".")[0] == library:
            raise ModuleNotFoundError(f"No module named {library!r}", name=library)
        return real(name)

    monkeypatch.setattr("leakbound.releases.model_files.import_module", without)
    with pytest.raises(ValueError, match=rf"needs {library}; install it with: pip install 'leakbound\["):
        read_here(path, ())


class FakeSkops:
    """The two functions of skops that are called."""

    def __init__(self, types: list[str]) -> None:
        self.types = types
        self.trusted: list[str] | None = None

    def get_untrusted_types(self, *, file: Path) -> list[str]:
        return self.types

    def load(self, path: Path, trusted: list[str]) -> object:
        self.trusted = trusted
        return MODEL


@pytest.mark.parametrize(
    ("types", "trust", "missing"),
    [
        (["sklearn.tree._tree.Tree"], (), ""),
        (["numpy.dtype"], (), ""),  # of every imputer
        (["sklearn.metrics._scorer._PassthroughScorer", "sklearn.model_selection._split.StratifiedKFold"], (), ""),
        (["sklearn.utils._bunch.Bunch"], (), ""),  # of a vote
        (["mine.Model"], (), "--trust mine.Model"),
        (["mine.Model"], ("mine.Model",), ""),
        (["other.function", "mine.Model"], ("mine.Model",), "--trust other.function"),
        (["datetime.date", "mine.Model"], ("datetime.date", "mine.Model"), ""),  # a class of Python's library
        (["b.B", "a.A"], (), "--trust a.A --trust b.B"),
    ],
)
def test_types_in_a_file_of_skops(tmp_path, monkeypatch, types, trust, missing):
    path, fake = tmp_path / "model.skops", FakeSkops(types)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", "{}")
    monkeypatch.setattr("leakbound.releases.model_files._library", lambda *words: fake)
    if missing:
        with pytest.raises(ValueError) as caught:
            read_here(path, trust)
        assert (
            str(caught.value)
            == f"{path} holds types that skops does not know; if you trust them: trusted_types ({missing})"
        )
        assert fake.trusted is None
    else:
        assert read_here(path, trust) is MODEL
        assert fake.trusted == types


@pytest.mark.parametrize(
    "name",
    [
        *("posix.system", "os.system", "nt.system", "subprocess.Popen", "_posixsubprocess.fork_exec", "builtins.eval"),
        *("builtins.exec", "builtins.compile", "builtins.open", "builtins.__import__", "builtins.getattr"),
        *("sys.settrace", "shutil.rmtree", "importlib.import_module", "pickle.loads", "_pickle.loads", "io.open"),
        *("ctypes.CDLL", "socket.socket", "runpy.run_path", "code.interact", "pty.spawn", "webbrowser.open"),
        *("http.client.HTTPConnection", "urllib.request.urlopen", "asyncio.subprocess.create_subprocess_shell"),
        *("multiprocessing.context.Process", "operator.methodcaller", "joblib.numpy_pickle.load", "pathlib.Path"),
        "copy.deepcopy",  # any function of Python's library
        "leakbound.releases.model_files.os",  # a module by the name of another one
        "leakbound.releases.model_files.import_module",  # defined in importlib
        "tkinter.Tk",  # of Python's library, and not loaded
    ],
)
def test_what_runs_code_is_refused_whatever_is_trusted(tmp_path, monkeypatch, name):
    path, fake = tmp_path / "model.skops", FakeSkops([name, "mine.Model"])
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", "{}")
    monkeypatch.setattr("leakbound.releases.model_files._library", lambda *words: fake)
    for trust in ((), (name, "mine.Model")):
        with pytest.raises(ValueError, match="can run commands on this machine") as caught:
            read_here(path, trust)
        assert name in str(caught.value)
        assert "--trust " + name not in str(caught.value)  # nothing to copy
        assert fake.trusted is None


def test_the_types_that_are_known_are_never_refused():
    assert not [name for name in KNOWN_TYPES if _runs_code(name)]


def test_a_file_of_skops_that_is_none(tmp_path, monkeypatch):
    path = tmp_path / "model.skops"
    path.write_bytes(b"no archive")
    monkeypatch.setattr("leakbound.releases.model_files._library", lambda *words: FakeSkops([]))
    with pytest.raises(ValueError, match="cannot be read by skops: File is not a zip file"):
        read_here(path, ())
