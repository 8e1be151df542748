"""Whether a change of layout, names or ids left every number as it was.

``python -m tests.same_numbers make FILE`` carries out 12 small requests through the public calls and writes their
numbers; ``python -m tests.same_numbers compare A B [--relative 0]`` prints each number that differs between two such
files, and exits with 1 if one differs by more than that. ``make`` at two commits on one machine, then ``compare``.

``tests/same_numbers.json`` was made on 2026-11-27 with numpy 2.4.6, scipy 1.17.1, scikit-learn 1.9.1 and
dp-accounting 0.6.0. Other versions may give other numbers, and another processor other last bits: numpy and BLAS
choose their code by it (without AVX-512 no number was further off than 1e-13).

A file holds no names of the package, so that renamed keys, ids and moved fields change nothing in it: findings,
curves and columns of records stand in the order of the report. Each number is a ``float.hex()``, null where there is
none. A long array is half of its SHA-256 (of little-endian float64) and a few of its numbers. What a keyword or a field
is called is said once, in this script: in the requests, and in the functions from `protected` to `verdict_numbers`.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

import leakbound as ls

LIBRARIES = ("numpy", "scipy", "scikit-learn", "dp-accounting")
KEPT_WHOLE = 6  # numbers of an array; of a longer one a digest is kept and some of its numbers
KEPT_OF_LONG = 3
FPR = (0.01, 0.1)  # false positive rates at which every curve is evaluated
PLACES = {  # what the lists of `finding_numbers` and `curve_numbers` hold, for the places that `compare` prints
    "findings": ("value", "low", "high", "confidence", "operating_point", "detail"),
    "curves": ("tradeoff", "fnr", "band", "verdict"),
}
NO_RESULT = ("plan", "versions", "execution", "attacks")  # parts of Report.about: what was asked, and of the run

Parts = Mapping[str, Any]  # what a request returns: reports, released values, noises


# The requests: each a few calls of the public interface.


def audit() -> Parts:
    """Every model attacked with the others as references, a claim that is refuted and one that is not."""
    x, y = load_digits(return_X_y=True)
    report = ls.audit(
        RandomForestClassifier(8),
        x[:200],
        y[:200],
        n_models=16,
        attacks=("confidence", "entropy", "mast", "lira", "rmia"),
        claims=("epsilon=0.5,adjacency=replace_one", "eta=0.4"),
        seed=1,
        n_jobs=1,
        fpr=(0.1,),
    )
    return {"report": report}


def audit_model() -> Parts:
    """One trained model, attacked with and without references."""
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(2).permutation(len(x))[:300]
    x, y = x[order], y[order]
    tree = DecisionTreeClassifier(max_depth=6, random_state=0).fit(x[::2], y[::2])
    report = ls.audit_model(
        tree.predict_proba,
        members=(x[::2], y[::2]),
        others=(x[1::2], y[1::2]),
        references=ls.Fitted(DecisionTreeClassifier(max_depth=6), n=8),
        attacks=("gap", "loss", "lira", "rmia"),
        seed=2,
        n_jobs=1,
        fpr=(0.1,),
    )
    return {"report": report}


def audit_signals() -> Parts:
    """Losses of many models from anywhere, compared with a claim of Gaussian DP."""
    game = ls.games.half_split(120, 16, seed=3)
    loss = np.random.default_rng(3).exponential(np.where(game.member, 0.1, 1.0))
    signals = ls.Signals(game, None, {"loss": loss})
    claim = "mu=0.3,adjacency=add_remove"
    report = ls.audit_signals(signals, attacks=("loss", "lira"), claims=claim, fpr=(0.1,), n_jobs=1)
    return {"report": report}


def audit_scores() -> Parts:
    """Scores of one model, and those of several at an unequal prior."""
    rng = np.random.default_rng(4)
    member = np.arange(400) < 150
    one = ls.audit_scores(rng.normal(member), member, fpr=(0.1,), n_jobs=1)
    members = rng.random((10, 60)) < 0.5
    several = ls.audit_scores(rng.normal(members), members, prior=0.2, fpr=(0.1,), n_jobs=1, references_are="none")
    return {"one": one, "several": several}


def audit_attribute() -> Parts:
    """The attacks guess a column of the members' records, from each of two releases."""
    x, y = load_wine(return_X_y=True)
    releases = {"tree": DecisionTreeClassifier(max_depth=8), "forest": RandomForestClassifier(3)}
    report = ls.audit(releases, x, y, n_models=8, seed=5, n_jobs=1, game=ls.Attribute("x0", bins=4))
    return {"report": report}


def bound_numbers() -> Parts:
    """Theorems that need numbers alone."""
    return {
        "dp": ls.bound("dp", epsilon=1.5, delta=1e-6, prior=0.3),
        "dp_at_most": ls.bound("dp", at_most="accuracy=0.55", adjacency="add_remove"),
        "gaussian": ls.bound("gaussian", at_most="tpr@0.01=0.05"),
        "gap": ls.bound("gap", gap=0.2),
        "information": ls.bound("information", information=0.1, prior=0.4),
    }


def bound_table() -> Parts:
    """Counts of a table with cells of unequal size."""
    rng = np.random.default_rng(6)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "people.csv"
        table = np.column_stack([rng.integers(0, 3, 300), rng.binomial(2, 0.2, 300)])
        np.savetxt(file, table, fmt="%d", delimiter=",", header="sector,region", comments="")
        return {"report": ls.bound("table", data=str(file), by="sector,region", k=120, eta=0.1)}


def bound_leakage() -> Parts:
    """Leakage of the mean of each record."""
    return {"report": ls.bound("leakage", data="wine", covariance="ledoit_wolf", rate=0.5)}


def bound_pmp() -> Parts:
    """Practical membership privacy: exact for few records, sampled for many."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "few.npz"
        np.savez(file, x=np.random.default_rng(7).normal(size=(12, 3)))
        few = ls.bound("pmp", data=str(file), clip=1.0, scale=0.1)
    many = ls.bound("pmp", data="wine", clip=1.0, mechanism="exponential", epsilon=2.0, n_subsets=512, seed=7)
    return {"exact": few, "sampled": many}


def calibrate() -> Parts:
    """Noise for a statistic that is fitted to pairs of data sets."""
    x, y = load_wine(return_X_y=True)
    found = ls.calibrate("ols", x[:, :3], y, promise=ls.Drawn(fits=400, games=100, seed=8), eta=0.1, n_jobs=1)
    return {"noise": found.noise, "certificate": found.certificate}


def protect() -> Parts:
    """A mean, compared with other promises, and a median, released with a seed; the mean from a ledger, too.

    A ledger draws its noise from a digest of what describes the release, names of fields and of classes included.
    """
    x, _ = load_wine(return_X_y=True)
    x = x[:, :2]
    words: dict[str, Any] = {"insecure_seed": 9, "n_jobs": 1}
    mean = ls.protect("mean", x, eta=0.05, promise=ls.Drawn(games=100, fits=200), compare=True, **words)
    laplace = ls.Drawn(noise="laplace", games=100)
    median = ls.protect(ls.Quantiles([0.5]), x[:, :1], eta=0.1, promise=laplace, **words)
    with tempfile.TemporaryDirectory() as folder:
        noted = ls.protect("mean", x, eta=0.05, promise=ls.Drawn(games=0), ledger=f"{folder}/ledger.json", **words)
    return {**protected("mean", mean), **protected("median", median), "ledger_value": noted.value}


def calibrate_dpsgd() -> Parts:
    """The noise multiplier of DP-SGD, from the command line: no call of Python has it."""
    command = [sys.executable, "-m", "leakbound", "calibrate", "dpsgd", "--json"]
    command += ["--sample-rate", "0.02", "--steps", "200", "--advantage", "0.1"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.json"
        file.write_bytes(done.stdout)
        return {"report": ls.Report.from_json(file)}


REQUESTS: Mapping[str, Callable[[], Parts]] = {
    request.__name__: request
    for request in (
        audit,
        audit_model,
        audit_signals,
        audit_scores,
        audit_attribute,
        bound_numbers,
        bound_table,
        bound_leakage,
        bound_pmp,
        calibrate,
        protect,
        calibrate_dpsgd,
    )
}


# The numbers of what the requests return.


def protected(name: str, released: Any) -> Parts:
    """A release: its values, its noise, and both halves of its certificate."""
    return {
        f"{name}_value": released.value,
        f"{name}_noise": released.noise,
        f"{name}_certificate": released.certificate,
        f"{name}_owner": released.owner,
    }


def noise_numbers(noise: Any) -> list[Any]:
    """What defines a noise, exact: its scale, and its shape where it has one."""
    return [in_order(getattr(noise, field.name)) for field in dataclasses.fields(noise)]


def report_numbers(report: ls.Report) -> dict[str, Any]:
    """The numbers of a report."""
    about = {name: value for name, value in report.about.model_dump().items() if name not in NO_RESULT}
    for release in about.get("releases", ()):  # groups came after the file was made: they add to the other numbers
        release.pop("groups", None)
    return {
        "findings": [finding_numbers(finding) for finding in report.findings if finding.scope.kind != "group"],
        "curves": [curve_numbers(curve) for curve in report.curves],
        "records": [column_numbers(column) for column in report.record_table.values()],
        "about": about_numbers(about),
    }


def finding_numbers(finding: ls.Finding) -> list[Any]:
    """Value, interval, confidence; then where it was taken (rates, prior, delta), and its details."""
    numbers = (finding.value, finding.low, finding.high, finding.confidence, finding.operating_point, finding.detail)
    return [in_order(each) for each in numbers]


def curve_numbers(curve: Any) -> list[Any]:
    """What defines a curve, the curve at fixed rates, its band, and what is said of the claim that it stands for."""
    return [
        in_order(curve.tradeoff.to_dict()),
        in_order(curve.tradeoff.fnr(np.array(FPR))),
        [in_order(each) for each in (curve.band_fpr, curve.low, curve.high, curve.confidence, curve.n_nonmember)],
        None if curve.verdict is None else verdict_numbers(curve.verdict),
    ]


def verdict_numbers(verdict: Any) -> list[Any]:
    """What is allowed and measured, whether the claim is refuted (1 or 0), and the operating point that shows it."""
    refuted = verdict.word == "refuted"
    numbers = (verdict.allowed, verdict.measured, verdict.confidence, refuted, verdict.operating_point)
    return [in_order(each) for each in numbers]


def column_numbers(column: Sequence[Any] | np.ndarray) -> dict[str, Any] | list[str]:
    """A column of the records; of one that holds texts or previews of rows only how long it is."""
    items = column.tolist() if isinstance(column, np.ndarray) else column
    values = [math.nan if item is None else item for item in items]
    if all(is_number(value) for value in values):
        return array_numbers(np.array(values, dtype=float))
    return {"length": len(values)}


def about_numbers(about: Mapping[str, Any]) -> list[Any]:
    """Numbers and lists of numbers from anywhere in the facts of a report, sorted: fields may move."""
    units = sorted(numbers_within(about), key=lambda unit: (len(unit), [(math.isnan(each), each) for each in unit]))
    return [number(unit[0]) if len(unit) == 1 else array_numbers(np.array(unit)) for unit in units]


def numbers_within(value: Any) -> Iterator[list[float]]:
    """Each number, and each list of numbers as a whole; no truth values, which are no results."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        for item in value.values():
            yield from numbers_within(item)
    elif isinstance(value, list | tuple):
        if value and all(is_number(item) for item in value):
            yield [float(item) for item in value]
        else:
            for item in value:
                yield from numbers_within(item)
    elif is_number(value) and not isinstance(value, bool):
        yield [float(value)]


def in_order(value: Any) -> Any:
    """Numbers as they are nested, without the keys; texts are left out."""
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        return array_numbers(value)
    if isinstance(value, Mapping):
        return [in_order(item) for item in value.values() if not isinstance(item, str)]
    if isinstance(value, list | tuple):
        if value and all(is_number(item) for item in value):
            return array_numbers(np.array(value, dtype=float))
        return [in_order(item) for item in value if not isinstance(item, str)]
    return number(value)


def array_numbers(array: np.ndarray) -> dict[str, Any] | list[str]:
    """All numbers of a short array; the length, the digest and some numbers of a long one."""
    flat = np.ravel(array).astype("<f8") + 0.0  # + 0.0: a zero has no sign
    if len(flat) <= KEPT_WHOLE:
        return [number(value) for value in flat]
    step = math.ceil(len(flat) / KEPT_OF_LONG)
    flat[np.isnan(flat)] = np.nan  # the bits of one nan
    return {
        "length": len(flat),
        "sha256": hashlib.sha256(flat.tobytes()).hexdigest()[:32],
        "points": [number(value) for value in flat[::step]],
    }


def number(value: Any) -> str:
    """All bits of a number, as text."""
    return (float(value) + 0.0).hex()


def is_number(value: Any) -> bool:
    """Numbers and truth values."""
    return isinstance(value, bool | int | float | np.number | np.bool_)


def part_numbers(part: Any) -> Any:
    """Of a report, of released values, or of a noise."""
    if isinstance(part, ls.Report):
        return report_numbers(part)
    return array_numbers(part) if isinstance(part, np.ndarray) else noise_numbers(part)


# Making and comparing files.


def numbers_of(name: str) -> dict[str, Any]:
    """The numbers of one request, made by one thread."""
    with threadpool_limits(1):
        parts = REQUESTS[name]()
    return {part: part_numbers(value) for part, value in parts.items()}


def installed() -> dict[str, str]:
    """Versions of the libraries that numbers depend on."""
    return {name: version(name) for name in LIBRARIES}


def make(file: Path) -> None:
    """Carry out all requests, print their seconds, and write the file: a line for each request."""
    lines: list[str] = []
    began = time.perf_counter()
    for name in REQUESTS:
        started = time.perf_counter()
        content = json.dumps(numbers_of(name), separators=(",", ":"), allow_nan=False)
        lines.append(f"{json.dumps(name)}:{content}")
        print(f"{name:16} {time.perf_counter() - started:6.1f} s {len(content):7,} bytes", flush=True)
    versions = json.dumps(installed(), separators=(",", ":"))
    text = f'{{"versions":{versions},\n"requests":{{\n' + ",\n".join(lines) + "\n}}\n"
    file.write_text(text, encoding="utf-8")
    print(f"{'together':16} {time.perf_counter() - began:6.1f} s {len(text):7,} bytes")


class Difference(NamedTuple):
    """Two numbers that are not the same, or a place that only one side has."""

    place: str
    left: str
    right: str
    relative: float


def differences(left: Any, right: Any, place: str = "") -> Iterator[Difference]:
    """All differences between the contents of two files, or of two places of them.

    Parameters
    ----------
    left, right : JSON values
    place : str
        Where they stand.

    Yields
    ------
    Difference
        Its relative difference is that to the larger of the two numbers; infinite where one side is missing.
    """
    if left == right:
        return
    if isinstance(left, dict) and isinstance(right, dict):
        yield from _of_mappings(left, right, place)
    elif isinstance(left, list) and isinstance(right, list):
        yield from _of_lists(left, right, place)
    elif isinstance(left, str) and isinstance(right, str):
        one, other = float.fromhex(left), float.fromhex(right)
        if one != other:
            yield Difference(place, repr(one), repr(other), _relative(one, other))
    else:
        yield Difference(place, _kind(left), _kind(right), math.inf)


def _of_mappings(left: dict[str, Any], right: dict[str, Any], place: str) -> Iterator[Difference]:
    for key in dict.fromkeys([*left, *right]):
        inner = f"{place}.{key}" if place else key
        if key not in left or key not in right:
            yield Difference(inner, _kind(left.get(key)), _kind(right.get(key)), math.inf)
        elif key == "sha256" and left[key] != right[key]:
            # By how much the numbers that are not kept differ is unknown: too much for a tolerance of 0 alone.
            yield Difference(inner, left[key][:8], right[key][:8], math.ulp(0.0))
        else:
            yield from differences(left[key], right[key], inner)


def _of_lists(left: list[Any], right: list[Any], place: str) -> Iterator[Difference]:
    if len(left) != len(right):
        same = (index for index, (one, other) in enumerate(zip(left, right, strict=False)) if one != other)
        first = next(same, min(len(left), len(right)))
        yield Difference(f"{place}, from [{first}]", f"{len(left)} items", f"{len(right)} items", math.inf)
        return
    for index, (one, other) in enumerate(zip(left, right, strict=True)):
        yield from differences(one, other, _item(place, index))


def _item(place: str, index: int) -> str:
    """Where an item of a list stands: ``findings[3].low``, ``findings[3].detail[0]``."""
    list_name, is_item, _ = place.rpartition(".")[2].partition("[")
    if is_item and place.count("[") == 1 and list_name in PLACES:
        return f"{place}.{PLACES[list_name][index]}"
    return f"{place}[{index}]"


def _relative(one: float, other: float) -> float:
    """Infinite where one of them is no finite number."""
    if not (math.isfinite(one) and math.isfinite(other)):
        return math.inf
    return abs(one - other) / max(abs(one), abs(other))


def _kind(value: Any) -> str:
    """What stands on one side, where the other has something else."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return repr(float.fromhex(value))
    if isinstance(value, int):
        return str(value)
    return f"{len(value)} items"


def compare(left: Path, right: Path, relative: float = 0.0) -> int:
    """Print every number that differs; 1 if one differs by more than `relative`, else 0.

    Of a long array a tolerance is tested on the numbers that are kept: another digest is a difference at 0 alone.
    """
    one, other = (json.loads(file.read_text(encoding="utf-8")) for file in (left, right))
    for library in dict.fromkeys([*one["versions"], *other["versions"]]):
        versions = [each["versions"].get(library, "none") for each in (one, other)]
        if versions[0] != versions[1]:
            print(f"{library}: {versions[0]} and {versions[1]}")
    found = list(differences(one["requests"], other["requests"]))
    for each in found:
        print(f"{each.place}: {each.left} and {each.right}, relative difference {each.relative:.3g}")
    too_large = sum(each.relative > relative for each in found)
    requests = len(one["requests"].keys() & other["requests"].keys())
    print(f"{requests} requests compared: {len(found)} differences, {too_large} of them above {relative:g}")
    return int(too_large > 0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make a file, or compare two."""
    parser = argparse.ArgumentParser(prog="python -m tests.same_numbers", description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make", help="carry out the requests and write their numbers")
    making.add_argument("file", type=Path)
    comparing = commands.add_parser("compare", help="print each number that differs; 1 if one does")
    comparing.add_argument("left", type=Path)
    comparing.add_argument("right", type=Path)
    comparing.add_argument("--relative", type=float, default=0.0, help="largest relative difference that is allowed")
    chosen = parser.parse_args(arguments)
    if chosen.command == "make":
        make(chosen.file)
        return 0
    return compare(chosen.left, chosen.right, chosen.relative)


if __name__ == "__main__":
    sys.exit(main())
