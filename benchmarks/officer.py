"""An output checker's path beside SACRO-ML's: from a model file and two CSV files to a report with a verdict.

Run as ``python -m benchmarks.officer --sacro-ml PYTHON --with-torch PYTHON --repeats 5`` in an environment with
``leakbound[skops]`` and without PyTorch. ``PYTHON`` are the interpreters of two further environments: one with
``sacroml``, one with leakbound and PyTorch; a side without an interpreter is left out, and said to be.

Both sides get the same random forest and data, and train 100 reference models. Each run is a process of its own, in a
new folder, on one thread (leakbound with ``--n-jobs 1``, without which it takes all cores). CPU seconds are those of
the process and of all that it starts, such as the browser that prints leakbound's PDF. SACRO-ML is called as its
documentation does it: https://ai-sdc.github.io/SACRO-ML/.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

N_TREES, N_REFERENCES = 100, 100
COMMAND = (
    "leakbound audit model model.skops --members train.csv --others test.csv --label label --policy research --pdf "
    f"--model sklearn.ensemble:RandomForestClassifier --set n_estimators={N_TREES} --n-models {N_REFERENCES}"
)
SCRIPT = f"""\
import pickle
import pandas as pd
from sacroml.attacks.likelihood_attack import LIRAAttack
from sacroml.attacks.structural_attack import StructuralAttack
from sacroml.attacks.target import Target
with open("model.pkl", "rb") as file:
    model = pickle.load(file)
train, test = pd.read_csv("train.csv"), pd.read_csv("test.csv")
X_train, y_train = train.drop(columns="label").to_numpy(), train["label"].to_numpy()
X_test, y_test = test.drop(columns="label").to_numpy(), test["label"].to_numpy()
data = dict(X_train=X_train, y_train=y_train, X_test=X_test, y_test=y_test)
target = Target(model=model, dataset_name="breast cancer", **data)
StructuralAttack().attack(target)
LIRAAttack(n_shadow_models={N_REFERENCES}).attack(target)
"""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# What an interpreter says of its environment: versions, and the bytes of site-packages.
ENVIRONMENT = """\
import json, os, sysconfig
from importlib import metadata
folder = sysconfig.get_path("purelib")
size = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)
versions = {d.metadata["Name"].lower(): d.version for d in metadata.distributions()}
print(json.dumps({"bytes": size, "versions": versions}))
"""


@dataclass(frozen=True)
class Side:
    """One way to the report: the interpreter of its environment, and what it runs."""

    name: str
    python: str
    arguments: Sequence[str]
    exit_code: int  # of a run that did its work


@dataclass(frozen=True)
class Run:
    """CPU and wall seconds of a run, the largest memory of one of its processes, and the folder that it left."""

    cpu: float
    wall: float
    gigabytes: float
    folder: Path


def make_files(folder: Path) -> None:
    """Write the forest, as a file of skops and as a pickle, and its training and test data as CSV."""
    import pickle

    import pandas as pd
    import skops.io
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split

    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    for name, features, label in (("train.csv", X_train, y_train), ("test.csv", X_test, y_test)):
        pd.DataFrame(features).add_prefix("x").assign(label=label).to_csv(folder / name, index=False)
    forest = RandomForestClassifier(N_TREES, random_state=0).fit(X_train, y_train)
    skops.io.dump(forest, folder / "model.skops")
    (folder / "model.pkl").write_bytes(pickle.dumps(forest))
    (folder / "checks.py").write_text(SCRIPT)


def timed(side: Side, files: Path, folder: Path) -> Run:
    """Run a side once, in a new folder with a copy of the files."""
    shutil.copytree(files, folder)
    environment = {**os.environ, **ONE_THREAD}
    environment.pop("PYTHONPATH", None)  # what is installed is what is run
    with (folder / "output.txt").open("wb") as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            [side.python, *side.arguments], cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != side.exit_code:
        raise RuntimeError(f"{side.name} ended with {process.returncode}:\n{(folder / 'output.txt').read_text()}")
    return Run(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024**2, folder)


def environment_of(python: str) -> tuple[float, Mapping[str, str]]:
    """Gigabytes of an environment's site-packages, and the versions of what is installed there."""
    done = subprocess.run([python, "-I", "-c", ENVIRONMENT], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    return said["bytes"] / 1e9, said["versions"]


def middle(values: Sequence[float], digits: int = 1) -> str:
    """Median, and the least and the largest value."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def main() -> int:
    """Time the sides in turn and print what they took, what is installed, and what the officer writes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.officer")
    parser.add_argument("--sacro-ml", metavar="PYTHON", help="interpreter of an environment with sacroml")
    parser.add_argument("--with-torch", metavar="PYTHON", help="one of an environment with leakbound and PyTorch")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="new folder for files and reports of all runs")
    options = parser.parse_args()

    audit = ["-m", *shlex.split(COMMAND), "--n-jobs", "1"]
    not_released = 3  # what the policy says of this forest
    sides = [
        Side("leakbound", sys.executable, audit, not_released),
        Side("leakbound, no PDF", sys.executable, [word for word in audit if word != "--pdf"], not_released),
    ]
    if options.with_torch:
        sides.append(Side("leakbound, PyTorch there", options.with_torch, audit, not_released))
    if options.sacro_ml:
        sides.append(Side("SACRO-ML", options.sacro_ml, ["checks.py"], 0))

    print(
        f"The officer writes one command:\n\n{COMMAND}\n\nWith SACRO-ML, {len(SCRIPT.splitlines())} lines:\n\n{SCRIPT}"
    )
    print(f"{'side':26} {'CPU seconds':>22} {'wall seconds':>22} {'memory':>8} {'site-packages':>14}")
    with tempfile.TemporaryDirectory() as temporary:
        work = options.keep or Path(temporary)
        files = work / "files"
        files.mkdir(parents=True)
        make_files(files)
        runs: dict[str, list[Run]] = {side.name: [] for side in sides}
        for turn in range(options.repeats + 1):
            for number, side in enumerate(sides):
                run = timed(side, files, work / f"turn{turn}-{number}")
                if turn > 0:  # the first one warms up: caches of the system, compiled Python files
                    runs[side.name].append(run)
        for side in sides:
            installed, _ = environment_of(side.python)
            print(
                f"{side.name:26} {middle([run.cpu for run in runs[side.name]]):>22} "
                f"{middle([run.wall for run in runs[side.name]]):>22} "
                f"{max(run.gigabytes for run in runs[side.name]):5.2f} GB {installed:11.2f} GB"
            )
        for side in sides:
            _, versions = environment_of(side.python)
            shown = [f"{name} {versions[name]}" for name in ("leakbound", "sacroml", "torch") if name in versions]
            print(f"{side.name}: {', '.join([*shown, 'scikit-learn ' + versions['scikit-learn']])}")
    for option, given in (("--sacro-ml", options.sacro_ml), ("--with-torch", options.with_torch)):
        if not given:
            print(f"left out: no {option}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
