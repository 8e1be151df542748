"""Trained models in files: skops, ONNX and, for those who trust them, pickles.

A pickle runs whatever code it holds as soon as it is read. It is read only if the user says by name that it is trusted.
A file of skops holds the names of its types, and only known or named ones are made. A file of ONNX holds a graph of
operations, which onnxruntime computes.
"""

from __future__ import annotations

import os
import sys
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Shaped

from leakbound.data.points import some
from leakbound.files.untrusted import in_one_line, refuse_archive
from leakbound.releases.foreign_model import ForeignModel
from leakbound.releases.specs import OR_SCORE, first_line

Array = np.ndarray
PICKLES = (".joblib", ".pkl", ".pickle")
SUFFIXES = (".skops", ".onnx", *PICKLES)
# Types that skops does not list and models of these libraries consist of: they hold numbers and settings.
KNOWN_TYPES = frozenset(
    {
        "collections.OrderedDict",
        "lightgbm.basic.Booster",
        "lightgbm.sklearn.LGBMClassifier",
        "lightgbm.sklearn.LGBMRegressor",
        "numpy.dtype",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        "sklearn.gaussian_process.kernels.ConstantKernel",
        "sklearn.gaussian_process.kernels.Product",
        "sklearn.gaussian_process.kernels.RBF",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
        "xgboost.core.Booster",
        "xgboost.sklearn.XGBClassifier",
        "xgboost.sklearn.XGBRegressor",
    }
)

# Modules whose functions and classes run commands or code, load libraries, or reach files, memory and networks: no
# model consists of them. Those with an underscore before the name, and all modules below, are meant too.
NEVER_TRUSTED = frozenset(
    {
        "antigravity", "asyncio", "atexit", "bdb", "builtins", "code", "codeop", "cProfile", "ctypes", "distutils",
        "ensurepip", "faulthandler", "fileinput", "ftplib", "gc", "glob", "http", "idlelib", "imaplib", "imp",
        "importlib", "inspect", "io", "linecache", "logging", "mailbox", "marshal", "mmap", "multiprocessing",
        "nntplib", "nt", "ntpath", "operator", "os", "pathlib", "pdb", "pickle", "pickletools", "pip", "pkgutil",
        "platform", "poplib", "posix", "posixpath", "posixshmem", "posixsubprocess", "profile", "pty", "pydoc",
        "runpy", "sched", "selectors", "setuptools", "shelve", "shutil", "signal", "site", "smtplib", "socket",
        "socketserver", "sqlite3", "ssl", "subprocess", "sys", "tarfile", "telnetlib", "tempfile", "test", "thread",
        "threading", "timeit", "trace", "tracemalloc", "turtle", "types", "unittest", "urllib", "venv", "weakref",
        "webbrowser", "winapi", "winreg", "wsgiref", "xmlrpc", "zipapp", "zipfile", "zipimport", "cffi",
        "cloudpickle", "dill", "fsspec", "IPython", "jsonpickle", "numba", "pexpect", "psutil", "requests", "sh",
        "joblib.memory", "joblib.numpy_pickle", "joblib.parallel", "joblib.externals", "numpy.ctypeslib",
        "numpy.distutils", "numpy.f2py", "numpy.lib.npyio", "numpy.lib._npyio_impl", "numpy.testing",
        "pandas.core.computation", "pandas.io", "torch.hub", "torch.serialization",
    }
)  # fmt: skip


@in_one_line
def read_model(
    path: str | os.PathLike[str],
    *,
    unpickle_trusted: bool = False,
    trusted_types: Sequence[str] = (),
    is_scored: bool = False,
) -> Any:
    """Read a trained model from a file.

    Parameters
    ----------
    path : path
        ``.skops``, ``.onnx``, or ``.joblib``, ``.pkl``, ``.pickle``.
    unpickle_trusted : bool
        Whether the user trusts a pickle, which runs the code that it holds.
    trusted_types : sequence of str
        Types in a file of skops that the user trusts, besides those that skops does.
    is_scored : bool
        Whether a score sees the model, so that an object in a pickle need not predict anything.

    Returns
    -------
    object
        Of a pickle, the fitted estimator that is in it. Of other files a model that answers from a process of its
        own, which has limits of memory and time, with the methods and ``classes_`` of the one in the file.

    Raises
    ------
    ValueError
        In one line: if the file is a pickle that nobody trusts, holds types that nobody trusts, or some that nobody
        may trust, needs a library that is not installed, cannot be read, or holds no model.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path}: a model is read from {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    if path.suffix not in PICKLES:
        return ForeignModel(path, trusted_types)
    if not unpickle_trusted:
        raise ValueError(
            f"{path} is a pickle, which runs any code that it holds when it is read: say unpickle_trusted "
            "(--unpickle-trusted) if you "
            "trust whoever made it, or save the model with skops or as ONNX"
        )
    model = _read(path, lambda: import_module("joblib").load(path))  # it reads other pickles, too
    return model if is_scored else _answering(path, model)


def read_here(path: Path, trusted_types: Sequence[str]) -> Any:
    """Read a file of skops or ONNX into this process, which should have limits: see `ForeignModel`."""
    return _answering(path, _skops(path, trusted_types) if path.suffix == ".skops" else OnnxModel(path))


def _answering(path: Path, model: Any) -> Any:
    if not callable(getattr(model, "predict", None)) and not callable(getattr(model, "predict_proba", None)):
        kind = type(model).__name__
        raise ValueError(
            f"{path} holds a {kind}, which has neither predict_proba nor predict: give one that has, {OR_SCORE}"
        )
    return model


class OnnxModel:
    """A model in a file of ONNX, computed by onnxruntime."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        runtime = _library("onnxruntime", path, "onnx")
        try:
            options = runtime.SessionOptions()
            options.log_severity_level = 4
            options.intra_op_num_threads = options.inter_op_num_threads = 1  # numbers do not depend on the machine
            self.session = runtime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime raises kinds of its own
            raise ValueError(f"{path}: cannot be read as ONNX: {first_line(error)}") from None
        self.inputs = {node.name: node for node in self.session.get_inputs()}
        self.outputs = [node.name for node in self.session.get_outputs()]
        if not self.inputs or not self.outputs:
            raise ValueError(f"{path} holds a graph without {'outputs' if self.inputs else 'inputs'}: it is no model")
        # classifiers have a label and probabilities, or probabilities alone
        output = self.session.get_outputs()[0]
        is_one_number = output.type.startswith("tensor") and (len(output.shape) < 2 or output.shape[-1] == 1)
        self._estimator_type = "regressor" if len(self.outputs) == 1 and is_one_number else "classifier"

    def predict_proba(self, X: Any) -> Float[Array, "n K"]:
        """Compute the probabilities of the classes; where the file names the classes, they become `classes_`."""
        answer = self.session.run(self.outputs[-1:], self._feed(X))[0]
        if isinstance(answer, list):  # a mapping from labels to probabilities for each point
            self.classes_ = np.array(sorted(answer[0]))
            return np.array([[row[label] for label in self.classes_] for row in answer], dtype=float)
        return np.asarray(answer, dtype=float)

    def predict(self, X: Any) -> Shaped[Array, " n"]:
        """Compute predictions."""
        return np.ravel(self.session.run(self.outputs[:1], self._feed(X))[0])

    def _feed(self, X: Any) -> dict[str, Array]:
        """Arrange features as the inputs of the graph: one matrix, or a column for each input by its name."""
        if len(self.inputs) == 1:
            name, node = next(iter(self.inputs.items()))
            values = X.to_numpy() if isinstance(X, pd.DataFrame) else np.asarray(X)
            n_columns = node.shape[1] if len(node.shape) == 2 else None
            if isinstance(n_columns, int) and values.ndim == 2 and values.shape[1] != n_columns:
                names = (
                    f": {some(X.columns)}; leave out those that are no features (--drop; in Python "
                    ".drop(columns=[...]))"
                    if isinstance(X, pd.DataFrame)
                    else ""
                )
                raise ValueError(f"the model reads {n_columns} columns, and there are {values.shape[1]}{names}")
            return {name: values.astype(_dtype(node.type))}
        if not isinstance(X, pd.DataFrame):
            raise ValueError(f"the model reads columns by name: {some(self.inputs)}; give a table with them")
        missing = [name for name in self.inputs if name not in X.columns]
        if missing:
            raise ValueError(f"the model reads columns that are not there: {some(missing)}")
        return {name: X[[name]].to_numpy().astype(_dtype(node.type)) for name, node in self.inputs.items()}


def _skops(path: Path, trusted_types: Sequence[str]) -> Any:
    skops = _library("skops.io", path, "skops")
    try:
        with zipfile.ZipFile(path) as archive:
            refuse_archive(path, archive)
        holds = set(skops.get_untrusted_types(file=path))
    except ValueError:
        raise
    except Exception as error:  # skops raises many kinds for files of another format
        raise ValueError(f"{path}: cannot be read by skops: {first_line(error)}") from None
    forbidden = sorted(name for name in holds - KNOWN_TYPES if _runs_code(name))
    if forbidden:
        raise ValueError(
            f"{path} holds {some(forbidden)}, which can run commands on this machine or read its files: no model "
            "needs it, and trusted_types (--trust) does not allow it. Nothing of the file was run; return it to "
            "whoever sent it"
        )
    unknown = holds - KNOWN_TYPES - set(trusted_types)
    if unknown:
        flags = " ".join(f"--trust {name}" for name in sorted(unknown))
        raise ValueError(f"{path} holds types that skops does not know; if you trust them: trusted_types ({flags})")
    return _read(path, lambda: skops.load(path, trusted=sorted(holds)))


def _runs_code(name: str) -> bool:
    """Tell whether a name in a file is of something that no model consists of, whatever the user trusts.

    That is all of the modules in NEVER_TRUSTED, by the name in the file or by where it was defined, and of Python's
    own library anything but a class.
    """
    module, _, attribute = name.rpartition(".")
    if _is_never_trusted(module) or _is_never_trusted(name):
        return True
    loaded = sys.modules.get(module)
    if loaded is None and module.partition(".")[0] in sys.stdlib_module_names:
        return True  # of Python's library, models use what is loaded already
    found = getattr(loaded, attribute, None)
    if isinstance(found, ModuleType) or _is_never_trusted(str(getattr(found, "__module__", ""))):
        return True
    return module.partition(".")[0] in sys.stdlib_module_names and not isinstance(found, type)


def _is_never_trusted(module: str) -> bool:
    parts = module.split(".")
    names = {".".join(parts[:n]) for n in range(1, len(parts) + 1)} | {parts[0].lstrip("_")}
    return not names.isdisjoint(NEVER_TRUSTED)


def _read(path: Path, load: Callable[[], Any]) -> Any:
    """Call a reader; whatever it raises becomes one line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about other versions of scikit-learn
            return load()
    except Exception as error:  # a file may name modules that are not there, and much more
        raise ValueError(f"{path}: cannot be read: {type(error).__name__}: {first_line(error)}") from None


def _library(module: str, path: str | os.PathLike[str], extra: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        name = module.partition(".")[0]
        if error.name != name:
            raise
        raise ValueError(f"{path} needs {name}; install it with: pip install 'leakbound[{extra}]'") from None


def _dtype(name: str) -> Any:
    """Return the type of the values of an input of ONNX: ``tensor(float)``."""
    kinds: Mapping[str, Any] = {
        "tensor(float)": np.float32,
        "tensor(double)": np.float64,
        "tensor(int64)": np.int64,
        "tensor(int32)": np.int32,
        "tensor(bool)": np.bool_,
        "tensor(string)": object,
    }
    if name not in kinds:
        raise ValueError(f"inputs of {name} are not supported; allowed: {', '.join(kinds)}")
    return kinds[name]
