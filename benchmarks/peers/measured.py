"""Runs the functions of one package on the arrays: ``python -P measured.py RUNNER ARRAYS WARM OUT``.

It runs in the environment of the package, so it imports nothing but numpy and the standard library. RUNNER is a script
of ``runners/``; it has ``PACKAGES``, the distributions whose versions are told, and ``ROWS``, tuples of

    (measure, call, function, note).

A function gets ``timed`` as its first argument, which calls what it is given, as ``timed(call, *arguments)``, and
measures the CPU time of that alone. What follows depends on the measure:

* attacks: a dictionary of arrays, of which row 0 is the target and the others are references; scores are returned.
* lower bounds of epsilon: scores of members, scores of others, delta; a bound at 95 % confidence is returned.
* DP-SGD: noise multiplier, sampling rate, steps, delta; epsilon is returned.
* noise of DP-SGD: advantage, sampling rate, steps; the noise multiplier is returned.

OUT is rewritten after each row, so that a run that is stopped leaves the rows that were finished.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import time
from collections.abc import Callable
from importlib import metadata
from statistics import median
from typing import Any

import numpy as np

ATTACKS = ("loss attack", "LiRA online", "LiRA offline", "RMIA online", "RMIA offline")
BOUNDS = ("epsilon, one run", "epsilon, many runs")
DPSGD = "epsilon of DP-SGD"
NOISE = "noise of DP-SGD"
MEASURES = (*ATTACKS, *BOUNDS, DPSGD, NOISE)

REPEATS = 3  # of one call, of which the median is taken
ENOUGH_SECONDS = 10.0  # a call that took as long is not repeated
LIMIT_SECONDS = 60.0  # of bounds, after which no more repetitions are begun
ABOVE = 0.01  # a null bound above this says that something leaks
SETTINGS = ((1.0, 0.01, 1000), (0.7, 0.005, 10_000))  # noise multiplier, sampling rate, steps of DP-SGD
DELTA = 1e-5
ADVANTAGE = 0.1


class Stopwatch:
    """CPU seconds of what it calls."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, function: Callable, *arguments: object, **keywords: object) -> Any:
        start = time.process_time()
        result = function(*arguments, **keywords)
        self.seconds += time.process_time() - start
        return result


def timed_call(function: Callable, *arguments: object) -> tuple[Any, float]:
    """Return what a function of a runner returns, and the CPU seconds of what it gave to ``timed``."""
    stopwatch = Stopwatch()
    result = function(stopwatch, *arguments)
    return result, stopwatch.seconds


def repeated(function: Callable, *arguments: object) -> tuple[Any, float]:
    """Call a function several times; return the last result and the median of the CPU seconds."""
    times: list[float] = []
    result = None
    while len(times) < REPEATS and sum(times) < ENOUGH_SECONDS:
        result, seconds = timed_call(function, *arguments)
        times.append(seconds)
    return result, median(times)


def measure_attack(function: Callable, arrays: dict, warm: dict) -> list[dict]:
    """Scores of the target points."""
    timed_call(function, warm)
    scores, seconds = repeated(function, arrays)
    return [{"scores": np.asarray(scores, dtype=float).ravel().tolist(), "seconds": seconds}]


def bounds_of(function: Callable, members: np.ndarray, others: np.ndarray) -> tuple[list[float], list[float]]:
    """One bound for each repetition, as many as the time allows, and the CPU seconds of each."""
    bounds, times = [], []
    for inside, outside in zip(members, others, strict=True):
        if sum(times) > LIMIT_SECONDS:
            break
        bound, seconds = timed_call(function, inside, outside, DELTA)
        bounds.append(float(bound))
        times.append(seconds)
    return bounds, times


def measure_bound(function: Callable, arrays: dict, warm: dict) -> list[dict]:
    """Bounds where the truth is known, and where nothing leaks; the time is that of one bound."""
    timed_call(function, warm["members"][0], warm["others"][0], DELTA)
    bounds, times = bounds_of(function, arrays["members"], arrays["others"])
    null, _ = bounds_of(function, arrays["null_members"], arrays["null_others"])
    n_above = sum(bound > ABOVE for bound in null)
    return [{"bounds": bounds, "null_above": n_above, "null_repetitions": len(null), "seconds": median(times)}]


def measure_dpsgd(function: Callable, arrays: dict, warm: dict) -> list[dict]:
    """Epsilon of each setting."""
    rows = []
    for setting in SETTINGS:
        timed_call(function, setting[0], setting[1], 10, DELTA)
        epsilon, seconds = repeated(function, *setting, DELTA)
        rows.append({"setting": list(setting), "value": float(epsilon), "seconds": seconds})
    return rows


def measure_noise(function: Callable, arrays: dict, warm: dict) -> list[dict]:
    """Noise multiplier of the first setting that keeps the advantage."""
    _, sample_rate, steps = SETTINGS[0]
    timed_call(function, 2 * ADVANTAGE, sample_rate, steps // 10)
    noise, seconds = repeated(function, ADVANTAGE, sample_rate, steps)
    return [{"setting": [ADVANTAGE, sample_rate, steps], "value": float(noise), "seconds": seconds}]


def measurement(measure: str) -> Callable:
    """Return what measures a row."""
    if measure in ATTACKS:
        return measure_attack
    if measure in BOUNDS:
        return measure_bound
    return measure_dpsgd if measure == DPSGD else measure_noise


def one_line(error: BaseException) -> str:
    """Say an error in one line."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}"[:200]


def write(path: str, content: dict) -> None:
    """Write a JSON file at once: what is there is whole."""
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(content, file)
    os.replace(path + ".part", path)


def arrays_of(path: str) -> dict:
    """Read arrays; nothing is unpickled."""
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def main(runner: str, arrays_path: str, warm_path: str, out: str) -> int:
    """Measure all rows of a runner."""
    content: dict = {"python": sys.version.split()[0], "versions": {}, "rows": []}
    try:
        script = runpy.run_path(runner)
    except Exception as error:  # whatever the package raises when it is imported
        write(out, content | {"error": one_line(error)})
        return 1
    for package in ("numpy", *script["PACKAGES"]):
        try:
            content["versions"][package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            content["versions"][package] = None
    arrays, warm = arrays_of(arrays_path), arrays_of(warm_path)
    heads = [{"measure": measure, "call": call, "note": note} for measure, call, _, note in script["ROWS"]]
    for place, (measure, _, function, _) in enumerate(script["ROWS"]):
        write(out, content | {"waiting": heads[place:]})
        head = heads[place]
        try:
            content["rows"] += [head | row for row in measurement(measure)(function, arrays, warm)]
        except Exception as error:  # the other rows go on
            content["rows"].append(head | {"reason": one_line(error)})
    write(out, content)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
