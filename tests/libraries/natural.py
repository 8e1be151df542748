"""Natural calls: what one is, the data they use, and how their results are checked.

A call is a function without arguments that uses leakbound as its documentation suggests, and then checks the result:
a planted leak is found, or a model without a leak is not accused.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

CALLS: dict[str, Call] = {}
N_MODELS = 12


@dataclass(frozen=True)
class Call:
    """A call, what it needs, and what it is about."""

    function: Callable[[], None]
    about: str  # a sentence of the user's: "a random forest on a frame of mixed types"
    kind: str  # the section of the table: frames, texts, boosters, ...
    libraries: tuple[str, ...]  # distributions, or "R", without which it cannot run


class WrongResult(AssertionError):
    """The call ran, but a planted leak was not found, or a model without a leak was accused."""


def natural(kind: str, about: str, *libraries: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register a call under the name of its function."""

    def register(function: Callable[[], None]) -> Callable[[], None]:
        assert function.__name__ not in CALLS, f"two calls are named {function.__name__}"
        CALLS[function.__name__] = Call(function, about, kind, libraries)
        return function

    return register


def people(n: int = 240, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """People with numbers, text, dates left out, missing values, an index of their own, and a noisy yes or no.

    A quarter of the labels is random, so that a model that is right about all of its training data has memorised.
    """
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n)
    hours = rng.normal(38, 9, n).round(1)
    frame = pd.DataFrame(
        {
            "age": age,
            "hours": np.where(rng.random(n) < 0.1, np.nan, hours),
            "town": rng.choice(["Bern", "Chur", "Genève", "Zug"], n),
            "job": rng.choice(["nurse", "driver", "teacher", "clerk", "cook"], n),
            "married": rng.random(n) < 0.5,
        },
        index=[f"P{number:04d}" for number in rng.permutation(n)],
    )
    rich = (age > 45) ^ (rng.random(n) < 0.25)
    return frame, pd.Series(np.where(rich, "high", "low"), index=frame.index, name="income")


def numbers(n: int = 240, n_columns: int = 12, n_classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns of numbers in float32 and a class from 0 on; a quarter of the labels is random."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, n_columns)).astype(np.float32)
    label = np.argmax(x[:, :n_classes], axis=1)
    return x, np.where(rng.random(n) < 0.25, rng.integers(0, n_classes, n), label)


def reviews(n: int = 240, seed: int = 0) -> tuple[list[str], list[str]]:
    """Short texts and "good" or "bad"; a quarter of the labels is random."""
    rng = np.random.default_rng(seed)
    good = ["fine", "lovely", "warm", "quick", "friendly", "clean", "tasty"]
    bad = ["cold", "rude", "slow", "dirty", "bland", "late", "noisy"]
    both = [f"{word}{number}" for word in ("table", "street", "dish", "waiter") for number in range(40)]
    texts, labels = [], []
    for _ in range(n):
        is_good = rng.random() < 0.5
        words = [*rng.choice(good if is_good else bad, 3), *rng.choice(both, 6)]
        texts.append(" ".join(rng.permutation(words)))
        labels.append("good" if is_good ^ (rng.random() < 0.25) else "bad")
    return texts, labels


def tokens(n: int = 240, length: int = 12, n_words: int = 50, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Sequences of token ids in int64 and a class that depends on them; a quarter of the labels is random."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, n_words, size=(n, length))
    label = (x < n_words // 2).sum(axis=1) > length // 2
    return x, np.where(rng.random(n) < 0.25, rng.random(n) < 0.5, label).astype(np.int64)


def accuracy(report: Any, release: str | None = None) -> tuple[float, float, float]:
    """Best attack accuracy of a report, with the lowest and highest end of its interval."""
    found = [
        finding
        for finding in report.findings
        if finding.quantity == "accuracy" and finding.value is not None and release in (None, finding.release)
    ]
    if not found:
        raise WrongResult("the report has no attack accuracy")
    best = max(found, key=lambda finding: finding.low if finding.low is not None else finding.value)
    return best.value, best.low, best.high


def finds_a_leak(report: Any, release: str | None = None, above: float = 0.55) -> None:
    """The model memorises: the lower end of the best attack's accuracy is above."""
    value, low, _ = accuracy(report, release)
    if low is None or low <= above:
        raise WrongResult(f"a model that memorises has attack accuracy {value:.3f}, lower end {low}")


def finds_no_leak(report: Any, release: str | None = None) -> None:
    """The model cannot memorise: no interval is clearly above 1/2, it is narrow, and no record is called exposed.

    At 95 % a few attacks of one report may be a little above by chance; .53 is far above what a constant model gives.
    """
    value, low, _ = accuracy(report, release)
    if low is not None and low > 0.53:
        raise WrongResult(f"a model that cannot memorise is accused: accuracy {value:.3f}, lower end {low:.3f}")
    highest = max(
        finding.high if finding.high is not None else 1.0
        for finding in report.findings
        if finding.quantity == "accuracy"
        and finding.attack  # the bound for some attacker has no upper end
        and finding.value is not None
        and release in (None, finding.release)
    )
    if highest > 0.62:
        raise WrongResult(f"little was measured: an attack may have accuracy {highest:.3f}")
    exposed = [
        finding
        for finding in report.findings
        if finding.quantity == "most_exposed" and release in (None, finding.release) and (finding.low or 0) > 0.5
    ]
    if exposed:
        raise WrongResult(f"a record of a model that cannot memorise is called exposed: {exposed[0].low:.3f}")


def leakbound(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command line in the current folder and return what it printed; a failure raises with its error."""
    command = [sys.executable, "-m", "leakbound", *map(str, words)]
    environment = os.environ | {"COLUMNS": "200"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode == 1:
        lines = done.stderr.strip().splitlines() or ["exit code 1 without a word"]
        raise RuntimeError(lines[-1])
    return done


def in_new_folder(function: Callable[[], None]) -> None:
    """Run a function in an empty folder that is removed afterwards."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        function()
