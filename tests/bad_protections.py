"""What bad input of ``calibrate`` and ``protect`` gets: the command, the line's start, its end where told apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bad_files import text

OWN = """
import numpy as np

number = 3
def raises(x): raise KeyError("age")
def says(x): return "mean"
def turns(x): return 1j
def ragged(x): return [[1.0], [1.0, 2.0]]
def nothing(x): return None
def nans(x): return np.nan
def changes(x): return np.asarray(x)[: 1 + (np.asarray(x)[:, 0].sum() > 0), 0]
"""


def private(content: str) -> Callable[[Path], Any]:
    """A file for its owner alone, as a ledger is."""

    def write(path: Path) -> None:
        path.write_text(content, encoding="utf-8")
        path.chmod(0o600)

    return write


def open_to_others(path: Path) -> None:
    path.write_text("{}", encoding="utf-8")
    path.chmod(0o644)


PROTECTION_FILES: dict[str, Callable[[Path], Any]] = {
    "own.py": text(OWN),
    "prose_only.csv": text("a,b\n" + "x,y\n" * 20),
    "ledgers.json": Path.mkdir,
    "open.json": open_to_others,
    "damaged.json": private("{"),
    "foreign.json": private("{}"),
    "there.html": text("kept"),
}

FINE = "calibrate --data fine.csv --promise drawn --eta 0.1"
OF_OWN = f"{FINE} --statistic own"
DPSGD = "calibrate dpsgd --sample-rate 0.1 --steps 10"
NO_NUMBERS = "its output is no array of finite numbers"
TARGETS = "calibrate dpsgd: give advantage, or fpr and fnr, or epsilon and delta; got"

PROTECTIONS: list[tuple[str, ...]] = [
    # files
    ("calibrate --data empty.csv --promise drawn --eta 0.1", "empty.csv: the file is empty"),
    ("protect --data header.csv --promise drawn --eta 0.1", "header.csv: the table has no rows or no columns"),
    ("protect --data missing.csv --promise drawn --eta 0.1", "missing.csv: no such file"),
    (
        "calibrate --data garbage.npz --promise drawn --eta 0.1",
        "garbage.npz: cannot be read as npz without pickle: it is no .npz",
    ),
    # numbers of the table
    (
        "calibrate --data nan.csv --promise drawn --eta 0.1",
        "30 of 60 values of a are missing or infinite, the first in record 1: leave these rows out (--drop-missing; "
        "in Python .dropna()), ",
    ),
    ("protect --data inf.csv --promise drawn --eta 0.1", "1 of 60 values of a is missing or infinite, "),
    (
        "protect --data huge.csv --promise drawn --eta 0.1",
        "column a holds numbers up to 1e+308, ",
        "so that all are below 1e+150",
    ),
    (
        "calibrate --data prose_only.csv --promise drawn --eta 0.1",
        "not only numbers in a, b, as ",
    ),
    ("protect --data one.csv --promise drawn --eta 0.1", "one.csv: a table needs at least 2 records, got 1"),
    # regressions
    (
        "calibrate --data one_class.csv --promise drawn --eta 0.1 --statistic logistic --label label",
        "logistic cannot be computed on ",
    ),
    (
        "calibrate --data floats.csv --promise drawn --eta 0.1 --statistic logistic --label label",
        "logistic cannot be computed on ",
    ),
    (
        "calibrate --data words.csv --promise drawn --eta 0.1 --statistic ols --label label",
        "ols cannot be computed on ",
        "encode it",
    ),
    (
        "calibrate --data lost_label.csv --promise drawn --eta 0.1 --statistic ols --label label",
        "label is missing at 1 points, first",
    ),
    (
        "protect --data infinite_label.csv --promise drawn --eta 0.1 --statistic ols --label label",
        "label has infinite values",
    ),
    (
        "protect --data only.csv --promise drawn --eta 0.1 --statistic ols --label label",
        "only.csv: no feature columns are left besides",
    ),
    (f"{FINE} --statistic ols --label lable", "fine.csv: no column 'lable' (did you mean 'label'?)", "a, b, label"),
    (f"{FINE} --label label", "calibrate: statistic mean takes no label; drop leaves a column out, got 'label'"),
    # sizes and promises
    (f"{FINE} --promise drawn,k=0", "calibrate: promise: drawn: k: Input should be greater than or equal to 1, got 0"),
    (f"{FINE} --promise drawn,k=60", "k must be from 1 to n - 1 = 59, got 60"),
    ("protect --data fine.csv --promise drawn,k=99 --eta 0.1", "k must be from 1 to n - 1 = 59, got 99"),
    (f"{FINE} --promise drawn,k=half", "calibrate: promise: drawn: k: Input should be a valid integer"),
    ("calibrate --data fine.csv --promise drawn --eta 0", "calibrate: eta must be > 0 and < 0.5, got 0"),
    ("protect --data fine.csv --promise drawn --eta 0.5", "protect: eta must be > 0 and < 0.5, got 0.5"),
    ("calibrate --data fine.csv --promise drawn --eta nan", "calibrate: eta must be finite, got nan"),
    ("calibrate --data fine.csv --promise drawn --eta 5%", "Invalid value for '--eta': Input should be a valid number"),
    (
        "protect --data fine.csv --promise drawn,k=10 --eta 0.2",
        "eta must be > 0 and < 0.166667, the smaller prior; got 0.2",
    ),
    (
        "protect --data fine.csv --eta 0.1",
        "choose what is promised: promise = anyone ",
        "(who is among k of the n records)",
    ),
    (f"{FINE} --promise all", "calibrate: promise must be one of anyone, file, drawn; got 'all'"),
    (f"{FINE} --k 3", "calibrate has no --k; use --promise drawn,k=..."),
    (
        f"{FINE} --noise-scale 3",
        "calibrate has no --noise-scale; use --promise file,scale=...",
    ),
    (f"{FINE} --ranges a=0:1", "calibrate has no --ranges; use --range wage=0:80"),
    (
        f"{FINE} --promise drawn,about=all",
        "calibrate: promise: drawn: about: Input should be 'every' or 'average', got 'all'",
    ),
    (f"{FINE} --promise drawn,confidence=1", "calibrate: promise: drawn: confidence must be > 0 and < 1, got 1"),
    (
        f"{FINE} --promise drawn,games=-1",
        "calibrate: promise: drawn: games: Input should be greater than or equal to 0, got -1",
    ),
    (
        f"{FINE} --promise drawn,fits=1",
        "calibrate: promise: drawn: fits: Input should be greater than or equal to 2, got 1",
    ),
    (f"{FINE} --statistic covariance --promise drawn,fits=9", "eta = 0.1 at confidence 0.95 needs at least ", "got 9"),
    # statistics, noises, couplings
    (f"{FINE} --statistic meen", "calibrate: statistic: unknown statistic 'meen' (did you mean 'mean'?); known: mean"),
    (
        f"{FINE} --promise drawn,noise=gausian",
        "calibrate: promise: drawn: noise: unknown noise 'gausian' (did you mean 'gaussian'?); known: gauss",
    ),
    (f"{FINE} --promise drawn,noise=laplace", "noise laplace is for one number, the statistic has 3; take gaussian"),
    (
        f"{FINE} --promise drawn,coupling=swop",
        "calibrate: promise: drawn: coupling: Input should be 'auto', 'swap', 'mixture_swap', ",
        "got 'swop'",
    ),
    (
        f"{FINE} --promise drawn,coupling=average_swap",
        "calibrate: promise: drawn: coupling average_swap promises nothing to every record; it needs",
    ),
    (
        f"{FINE} --statistic covariance --promise drawn,coupling=mixture_swap",
        "coupling mixture_swap does not promise every for",
    ),
    (f"{FINE} --statistic table", "calibrate: statistic table needs by: the columns that it counts"),
    (f"{FINE} --statistic table --by c", "unknown column 'c'; known: a, b, label"),
    (f"{FINE} --statistic sum --by a", "calibrate: statistic sum takes no by"),
    (f"{FINE} --statistic histogram --by a --set bins=0", "bins must be >= 1, got 0"),
    (f"{FINE} --statistic histogram --by a --set bins=many", "bins must be a number, got 'many'"),
    (
        f"{FINE} --statistic quantiles --set probabilities=[2]",
        "a quantile's probability is a fraction: 2 is out of range; did you mean 0.02? It must be >= 0 and <= 1",
    ),
    (f"{FINE} --clip 3", "calibrate has no --clip; use a range of each column, as --compare all --range wage=-3:3"),
    (
        f"{FINE} --range a=0:3",
        "--range is for promise anyone, or for --compare; got promise drawn",
    ),
    (
        f"{FINE} --compare all --range a",
        "anyone: ranges: a range is a column with its least and",
    ),
    (
        f"{FINE} --compare all --range a=3:1",
        "anyone: ranges: a range is a column with its least and",
    ),
    # functions
    (f"{OF_OWN}:nowhere", "own:nowhere: cannot be imported: module 'own' has no attribute 'nowhere'"),
    (f"{FINE} --statistic nowhere_at_all:f", "nowhere_at_all:f: cannot be imported: No module named 'nowhere_at_all'"),
    (f"{FINE} --statistic broken:f", "broken:f: cannot be imported: invalid syntax (broken.py, line 1)"),
    (f"{OF_OWN}:number", "own:number must be a function of the records alone; got 3"),
    (f"{OF_OWN}:raises", "raises cannot be computed on any of 8 data sets: 'age'"),
    (f"{OF_OWN}:says", "says cannot be computed on any of 8 data sets: ", NO_NUMBERS),
    (f"{OF_OWN}:turns", "turns cannot be computed on any of 8 data sets: ", NO_NUMBERS),
    (f"{OF_OWN}:ragged", "ragged cannot be computed on any of 8 data sets: setting an array element with a sequence"),
    (f"{OF_OWN}:nothing", "nothing cannot be computed on any of 8 data sets: ", NO_NUMBERS),
    (f"{OF_OWN}:nans", "nans cannot be computed on any of 8 data sets: ", NO_NUMBERS),
    # DP-SGD
    ("calibrate dpsgd", "calibrate dpsgd: give sample_rate and steps, or epochs, batch_size and records; got none"),
    (DPSGD, f"{TARGETS} none"),
    (f"{DPSGD} --advantage 0.1 --epsilon 1", f"{TARGETS} advantage, epsilon"),
    (f"{DPSGD} --fpr 0.01", f"{TARGETS} fpr"),
    (f"{DPSGD} --advantage 1", "calibrate dpsgd: advantage must be > 0 and < 1, got 1"),
    (f"{DPSGD} --advantage 0.1 --steps 0", "calibrate dpsgd: steps: Input should be greater than or equal to 1, got 0"),
    (
        "calibrate dpsgd --sample-rate 2 --steps 10 --advantage 0.1",
        "calibrate dpsgd: sample_rate is a fraction: 2 is out of range; did you mean 0.02",
    ),
    (f"{DPSGD} --advantage 0.1 --adjacency swop", "calibrate dpsgd: adjacency: Input should be 'add_remove' or"),
    # places
    (
        "protect --data fine.csv --promise drawn --eta 0.1 --ledger ledgers.json",
        "ledgers.json cannot be read: Is a directory",
    ),
    (
        "protect --data fine.csv --promise drawn --eta 0.1 --ledger open.json",
        "open.json is open to others (mode 644); only its owner",
    ),
    (
        "protect --data fine.csv --promise drawn --eta 0.1 --ledger damaged.json",
        "damaged.json is damaged: not the JSON that was",
    ),
    (
        "protect --data fine.csv --promise drawn --eta 0.1 --ledger foreign.json",
        "foreign.json is damaged: not the JSON that was",
    ),
    (
        "protect --data fine.csv --promise drawn --eta 0.1 --ledger nowhere/l.json",
        "nowhere/l.json cannot be written: No such file",
    ),
    (
        "protect --data fine.csv --promise drawn --eta 0.1 --out empty.json",
        "--out empty.json: a release is a folder with release.json, ",
    ),
    (
        "protect --data fine.csv --promise drawn --eta 0.1 --out there.html",
        "--out there.html: a release is a folder with release.json, ",
    ),
    (
        "protect --data fine.csv --promise drawn --eta 0.1 --out taken/r",
        "--out taken/r: taken is a file; give a folder",
    ),
    (
        "protect --data fine.csv --promise drawn --eta 0.1 --signals nans.npz",
        "--signals nans.npz exists already; choose another name",
    ),
    (f"{FINE} --store taken --statistic quantiles", "the store taken is a file; give a folder"),
]
