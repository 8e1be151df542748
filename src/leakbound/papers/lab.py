"""Where an experiment is run: its scale, its random numbers, its workers and its store."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from scipy.stats import binom, norm

import leakbound as ls
from leakbound.papers import data
from leakbound.papers.printed import ERRORS, Ours

T = TypeVar("T")
Number = float | int
TEXT = "text"  # the setting that a paper's text describes


@dataclass(frozen=True)
class Parameter:
    """A number of an experiment that ``leakbound reproduce --set`` changes.

    >>> clip = Parameter("C", 10.0, "norm that records are clipped to", least=0.1)
    >>> clip.of(Lab(set={"C": 20})), clip.of(Lab())
    (20.0, 10.0)
    """

    name: str
    value: Number
    says: str
    least: Number
    most: float = math.inf
    even: bool = False

    def of(self, lab: Lab) -> Any:
        """Return what was set, or the paper's value; of the type of the latter."""
        return type(self.value)(lab.set.get(self.name, self.value))

    @property
    def range(self) -> str:
        """Return what is allowed in words, as ``at least 4, even``."""
        ends = f"at least {self.least:g}" if math.isinf(self.most) else f"{self.least:g} to {self.most:g}"
        return f"{ends}, even" if self.even else ends

    def checked(self, given: Any) -> Number:
        """Return a value as a number of the type of the paper's; refuse one that the experiment cannot be run with."""
        try:
            value = float(given)
        except (TypeError, ValueError):
            raise ValueError(f"{self.name} must be a number, got {given!r}") from None
        if not math.isfinite(value):
            raise ValueError(f"{self.name} must be finite, got {value}")
        wanted = "a whole number" if isinstance(self.value, int) else "a number"
        if self.even:
            wanted = "an even number"
        ends = f">= {self.least:g}" + (f" and <= {self.most:g}" if math.isfinite(self.most) else "")
        is_whole = float(value).is_integer() and (not self.even or value % 2 == 0)
        if not self.least <= value <= self.most or (isinstance(self.value, int) and not is_whole):
            raise ValueError(f"{self.name}, the {self.says}, must be {wanted} {ends}, got {value:g}")
        return type(self.value)(value)


@dataclass(frozen=True)
class Lab:
    """What an experiment is given.

    >>> Lab(quick=True).size(full=2000, quick=200)
    200
    >>> Lab().settings("code"), Lab(setting="code").settings("code")
    (('text', 'code'), ('code',))
    """

    quick: bool = False
    seed: int = 0
    store: str | os.PathLike[str] | None = None
    n_jobs: int | None = None
    setting: str = ""  # the only one to run; empty: that of the text and all others beside it
    set: Mapping[str, Number] = field(default_factory=dict)

    def settings(self, *others: str) -> tuple[str, ...]:
        """Name the settings to run, the first of which is compared with what is printed."""
        return (self.setting,) if self.setting else (TEXT, *others)

    def size(self, full: T, quick: T) -> T:
        """Return the paper's size, or the quick one."""
        return quick if self.quick else full

    def stream(self, *path: str | int) -> np.random.Generator:
        """Random numbers of their own for each path, the same in any order."""
        return ls.seeds.stream(self.seed, *path)

    def repeat(
        self, task: Callable[..., Mapping[str, Any]], arguments: Sequence[tuple[Any, ...]], what: str, name: str = ""
    ) -> list[dict[str, np.ndarray]]:
        """Run a task for each tuple of arguments by `leakbound.repeat`; ``name`` is the data set that it loads."""
        source = data.source(name) if name and self.store is not None else ""
        return ls.repeat(task, arguments, what=what, data=source, store=self.store, n_jobs=self.n_jobs)

    @property
    def execution(self) -> dict[str, Any]:
        """Store and workers, as keywords of `leakbound.audit` and its like."""
        return {"store": self.store, "n_jobs": self.n_jobs}


@dataclass(frozen=True, eq=False)
class Outcome:
    """What an experiment found."""

    numbers: pd.DataFrame
    ours: Mapping[str, Ours]
    run: str
    tried: Mapping[str, Mapping[str, Ours]] = field(default_factory=dict)
    # each independent trial behind the means; empty where the numbers are single values, exact, or sums over rounds
    trials: pd.DataFrame = field(default_factory=pd.DataFrame)


def trials_of(values: Sequence[float] | np.ndarray, **of: Any) -> list[dict[str, Any]]:
    """Make a row of each independent trial, from which means and intervals can be computed anew.

    >>> trials_of([0.7, 0.8], attack="loss")
    [{'attack': 'loss', 'trial': 0, 'value': 0.7}, {'attack': 'loss', 'trial': 1, 'value': 0.8}]
    """
    return [{**of, "trial": trial, "value": float(value)} for trial, value in enumerate(values)]


def mean_of(values: Sequence[float] | np.ndarray, smaller: str = "", detail: str = "") -> Ours:
    """Average independent runs, with the standard error.

    >>> mean_of([1.0, 3.0]).error
    1.0
    """
    values = np.asarray(values, dtype=float)
    if len(values) < 2:
        raise ValueError(f"a mean with an error needs at least 2 runs, got {len(values)}")
    return Ours(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))), smaller, detail)


def median_of(values: Sequence[float] | np.ndarray, smaller: str = "", detail: str = "") -> Ours:
    """Take the median of independent runs; a third of its farther end from order statistics stands for the error.

    The two order statistics hold the median of the distribution as often as three standard errors hold a mean, whatever
    the distribution is. Fewer than ten runs cannot: there they are the smallest and the largest run.

    >>> median_of([0.0, 1.0, 5.0]).value
    1.0
    """
    values = np.sort(np.asarray(values, dtype=float))
    n = len(values)
    if n < 2:
        raise ValueError(f"a median with an error needs at least 2 runs, got {n}")
    outside = int(np.count_nonzero(binom.cdf(np.arange(n // 2), n, 0.5) <= norm.sf(ERRORS)))
    first = max(outside - 1, 0)  # P(the median is below the k-th smallest) = P(Bin(n, 1/2) < k)
    median = float(np.median(values))
    farther = max(median - values[first], values[n - 1 - first] - median)
    return Ours(median, float(farther / ERRORS), smaller, detail)
