"""The packages, an environment for each, and one run in it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
MARK = "installed.txt"  # in an environment whose installation ended well: what was asked for
# One thread for every library that a package may use, and no graphics card.
ONE_THREAD = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"),
    **dict.fromkeys(("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
}


class NotRun(Exception):
    """Why a package was not measured, in one line."""


@dataclass(frozen=True)
class Peer:
    """A package: its name on the command line and in the table, its runner, and where its code comes from.

    Parameters
    ----------
    name : str
        For ``--only``, and the name of its runner.
    title : str
    requirements : tuple of str
        What pip installs into its environment; nothing for leakbound, which runs in the present one.
    repository : str
        Of a package that is read from a checkout: the address of its code. Its checkout is the folder in that of
        ``--checkouts`` with the last part of the address as its name.
    without_dependencies : tuple of str
        What pip installs after that without what it asks for.
    runner : Path
        Another script than that of its name in ``runners/``.
    """

    name: str
    title: str
    requirements: tuple[str, ...] = ()
    repository: str = ""
    without_dependencies: tuple[str, ...] = ()
    runner: Path | None = None

    @property
    def script(self) -> Path:
        """The script with its functions."""
        return self.runner or FOLDER / "runners" / f"{self.name.replace('-', '_')}.py"

    @property
    def checkout(self) -> str:
        """Name of the folder of its checkout."""
        return self.repository.rsplit("/", 1)[-1]


TORCH = "torch==2.13.0"  # of packages that ask for any version
# What LeakPro's own pyproject.toml asks for, with its extra "mia" but without torchvision.
LEAKPRO = (
    *(TORCH, "scipy==1.17.1", "scikit-learn==1.9.1", "optuna", "opacus", "pandas", "matplotlib", "seaborn"),
    *("dotmap", "jinja2", "tqdm", "joblib", "pyyaml", "pydantic", "ts2vec", "umap-learn"),
)
# PyPI's privacy-guard and leakpro are other people's; its privacyguard-platform 0.0.2 and privacy-meter 1.0.1 are older
# than the repositories. So these come from checkouts, and what is installed for them is what the modules import that
# their runners call.
PEERS = (
    Peer("leakbound", "leakbound"),
    Peer("sacroml", "SACRO-ML", ("sacroml==2.0.1", TORCH)),
    Peer("art", "ART", ("adversarial-robustness-toolbox==1.20.1", "packaging")),
    Peer("riskcal", "riskcal", ("riskcal==1.5.1",)),
    Peer("dp-accounting", "dp-accounting", ("dp-accounting==0.6.0",)),
    Peer("jax-privacy", "jax-privacy", ("jax-privacy==2.0.0",)),
    # tensorflow-privacy 0.9.0 has the training alone, and cannot be imported with the TensorFlow that pip takes for it.
    # The attacks and bounds are in tensorflow-empirical-privacy. They need no TensorFlow, but a function of
    # scikit-learn that newer versions do not have.
    Peer(
        "tensorflow-privacy",
        "TF Privacy",
        ("numpy<2", "scipy", "scikit-learn==1.5.2", "statsmodels", "immutabledict"),
        without_dependencies=("tensorflow-empirical-privacy==0.1.0",),
    ),
    Peer(
        "privacyguard",
        "PrivacyGuard",
        (TORCH, "pandas==2.3.3", "scipy==1.17.1", "scikit-learn==1.9.1", "tqdm", "matplotlib"),
        "https://github.com/facebookresearch/PrivacyGuard",
    ),
    Peer("leakpro", "LeakPro", LEAKPRO, "https://github.com/aidotse/LeakPro"),
    Peer(
        "privacy-meter",
        "Privacy Meter",
        (TORCH, "scipy==1.17.1", "scikit-learn==1.9.1", "matplotlib"),
        "https://github.com/privacytrustlab/ml_privacy_meter",
    ),
)


@dataclass
class Outcome:
    """What a package said: versions, rows, and why rows are missing."""

    peer: Peer
    python: str = ""
    versions: dict[str, str | None] = field(default_factory=dict)
    commit: str = ""
    rows: list[dict[str, Any]] = field(default_factory=list)
    reason: str = ""


def default_environments() -> Path:
    """Return a folder of this user in the system's temporary folder; others may not have made it."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"leakbound-peers-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if hasattr(os, "getuid") and folder.stat().st_uid != user:
        raise SystemExit(f"{folder} belongs to another user, who could change what runs there; give --environments DIR")
    return folder


def run(command: Sequence[str], environment: Mapping[str, str], log: Path, timeout: float) -> int:
    """Run a command with its output in a file; what it started ends with it when the time is over."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
        try:
            return process.wait(timeout)
        except BaseException as stopped:
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait()
            if isinstance(stopped, subprocess.TimeoutExpired):
                raise NotRun(f"not finished after {timeout:g} s (--timeout)") from None
            raise


def last_line(log: Path) -> str:
    """The last line of a log that says something, for a reason of one line."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    # pip says what went wrong in lines that begin with ERROR, and talks on.
    errors = [line for line in lines if line.startswith("ERROR")] or [line for line in lines if line]
    return errors[-1][:200] if errors else "no output"


def python_of(environment: Path) -> Path:
    """The interpreter of an environment."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def make_environment(folder: Path) -> None:
    """Make an empty environment with pip, in place of what is there."""
    venv.EnvBuilder(clear=True, with_pip=True).create(folder)


def installed_environment(peer: Peer, environments: Path, timeout: float) -> Path:
    """Return the interpreter of a package's environment, which is made unless it is there."""
    folder = environments / peer.name
    python, mark = python_of(folder), folder / MARK
    asked = "\n".join((f"Python {sys.version.split()[0]}", *peer.requirements, *peer.without_dependencies))
    if mark.is_file() and mark.read_text(encoding="utf-8") == asked:
        return python
    if folder.exists() and not (folder / "pyvenv.cfg").is_file():
        raise NotRun(f"{folder} is no environment; it is not overwritten")
    print(f"{peer.title}: pip install", *peer.requirements, *peer.without_dependencies, file=sys.stderr, flush=True)
    try:
        make_environment(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotRun(f"no environment could be made: {error}") from error
    log = folder / "pip.log"
    pip = [str(python), "-m", "pip", "install", "--no-input"]
    steps = [[*pip, *peer.requirements]]
    if peer.without_dependencies:
        steps.append([*pip, "--no-deps", *peer.without_dependencies])
    for command in steps:
        if run(command, clean_environment(), log, timeout) != 0:
            raise NotRun(f"not installed: {last_line(log)}")
    mark.write_text(asked, encoding="utf-8")
    return python


def clean_environment() -> dict[str, str]:
    """The variables of this process without those that would mix environments, and one thread."""
    mixing = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if name not in mixing}
    return kept | ONE_THREAD | {"PYTHONNOUSERSITE": "1"}


def git(folder: Path, *arguments: str) -> str:
    """What git says of a checkout, or nothing."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def commit_of(folder: Path) -> str:
    """The commit of a checkout with its date, and whether files were changed since."""
    commit = git(folder, "log", "-1", "--format=%H of %cs")
    changed = git(folder, "status", "--porcelain", "--untracked-files=no")
    return f"{commit}, with changes" if changed else commit


def interpreter_of(
    peer: Peer, environments: Path, checkouts: Path | None, timeout: float
) -> tuple[str, dict[str, str], str]:
    """Return the interpreter, the variables of its process and the commit of a package's code."""
    if not peer.requirements and not peer.repository:  # leakbound, as it is imported here
        path = os.pathsep.join(entry for entry in (str(ROOT / "src"), os.environ.get("PYTHONPATH", "")) if entry)
        return sys.executable, clean_environment() | {"PYTHONPATH": path}, commit_of(ROOT)
    variables, commit = clean_environment(), ""
    if peer.repository:
        if checkouts is None:
            raise NotRun(f"read from a checkout: git clone {peer.repository}, and give its folder with --checkouts")
        checkout = checkouts / peer.checkout
        if not checkout.is_dir():
            raise NotRun(f"{checkout} is not there: git clone {peer.repository}")
        variables["PYTHONPATH"] = str(checkout.resolve())
        commit = commit_of(checkout)
    return str(installed_environment(peer, environments, timeout)), variables, commit


def measured(
    peer: Peer, arrays: tuple[Path, Path], environments: Path, checkouts: Path | None, timeout: float
) -> Outcome:
    """Measure a package; whatever goes wrong is a reason in the outcome."""
    outcome = Outcome(peer)
    with tempfile.TemporaryDirectory(prefix="leakbound-peer-") as temporary:
        out, log = Path(temporary) / "out.json", Path(temporary) / "output.txt"
        try:
            python, variables, outcome.commit = interpreter_of(peer, environments, checkouts, timeout)
            print(f"{peer.title}: measuring", file=sys.stderr, flush=True)
            # -P: the names of the runners are those of the packages, and must not be found in their place
            command = [python, "-P", str(FOLDER / "measured.py"), str(peer.script), *map(str, arrays), str(out)]
            exit_code = run(command, variables, log, timeout)
            if exit_code != 0 and not out.exists():
                raise NotRun(f"ended with exit code {exit_code}: {last_line(log)}")
            outcome.reason = f"ended with exit code {exit_code}: {last_line(log)}" if exit_code else ""
        except (NotRun, OSError) as why:
            outcome.reason = str(why)
        if out.exists():
            try:
                fill(outcome, json.loads(out.read_text(encoding="utf-8")))
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                outcome.rows, outcome.reason = [], f"what its runner wrote cannot be read: {error}"
        elif not outcome.reason:
            outcome.reason = "its runner wrote nothing"
    return outcome


def fill(outcome: Outcome, content: Mapping[str, Any]) -> None:
    """Take over what a runner wrote; rows that it did not come to get the reason of the run."""
    outcome.python, outcome.versions = content["python"], dict(content["versions"])
    if "error" in content:
        outcome.reason = content["error"]
    waiting = [dict(row) | {"reason": outcome.reason} for row in content.get("waiting", [])]
    for row in [*content["rows"], *waiting]:
        outcome.rows.append(dict(row) | {name: str(row[name]) for name in ("measure", "call", "note")})
