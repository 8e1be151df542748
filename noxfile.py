"""What people and CI run, under one name each: ``nox -l`` lists the sessions, ``nox`` runs them.

With ``LEAKSCOPE_HERE=1`` the sessions run in the environment that is active, and install nothing. nox itself needs one
of its own: it asks for another release of attrs than dp-accounting does.
"""

from __future__ import annotations

import os

import nox

HERE = os.environ.get("LEAKSCOPE_HERE") == "1"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
BY_DAY = "not nightly"
SLOW = "slow and not nightly and not benchmarks"
SPEED = "benchmarks and not nightly"
EVERYTHING = ".[dev,parquet,images,torch,dpsgd,pretrained,docs]"

nox.options.sessions = ["tests", "slow", "networks", "speed", "lint", "types", "doctests", "docs"]
nox.options.default_venv_backend = "none" if HERE else "virtualenv"


def install(session: nox.Session, *what: str) -> None:
    """Install into the session's own environment, unless it runs in the one that is there."""
    if not HERE:
        session.install(*what)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests but those of networks, the slow ones and the nightly ones."""
    install(session, ".[dev,parquet]")
    session.run("python", "-m", "pytest", "-n", "2", *session.posargs, env=ONE_THREAD)


@nox.session
def slow(session: nox.Session) -> None:
    """Kills, whole command lines, browsers, long statistics."""
    install(session, ".[dev,parquet]")
    session.run("python", "-m", "pytest", "-n", "2", "-m", SLOW, *session.posargs, env=ONE_THREAD)


@nox.session
def minimum(session: nox.Session) -> None:
    """The tests, slow ones too, with the oldest releases that the base installation and parquet allow."""
    project = nox.project.load_toml("pyproject.toml")["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["parquet"]]
    session.install(*(line.replace(">=", "==") + ".*" for line in wanted))
    session.install(*project["optional-dependencies"]["dev"])
    session.install("--no-deps", ".")
    # old releases call what newer ones of their own libraries deprecate
    old = ("-W", "ignore::DeprecationWarning", "-W", "ignore::PendingDeprecationWarning")
    tests = f"{BY_DAY} and not benchmarks"  # these are ratios to what numpy does, which newer releases do faster
    session.run("python", "-m", "pytest", "-n", "2", *old, "-m", tests, *session.posargs, env=ONE_THREAD)


@nox.session
def networks(session: nox.Session) -> None:
    """Networks and DP-SGD."""
    install(session, EVERYTHING)
    by_day = f"{BY_DAY} and not benchmarks"
    session.run("python", "-m", "pytest", "-n", "2", "-m", by_day, "tests/networks", *session.posargs, env=ONE_THREAD)


@nox.session
def speed(session: nox.Session) -> None:
    """Ratios of CPU times and memory, one test at a time: run nothing beside them."""
    install(session, EVERYTHING)
    session.run("python", "-m", "pytest", "-m", SPEED, *session.posargs, env=ONE_THREAD)


@nox.session
def lint(session: nox.Session) -> None:
    """Style and format."""
    install(session, ".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Types of the package."""
    install(session, EVERYTHING)
    session.run("pyright")


@nox.session
def doctests(session: nox.Session) -> None:
    """Every example of a docstring."""
    install(session, EVERYTHING)
    session.run("python", "-m", "pytest", "-p", "no:cacheprovider", "--doctest-modules", "--pyargs", "leakscope")


@nox.session
def docs(session: nox.Session) -> None:
    """Public docstrings by numpydoc, and the documentation, where a warning is an error."""
    install(session, EVERYTHING)
    session.run("python", "-m", "docs.docstrings")
    session.run("python", "-m", "sphinx", "-W", "-q", "-b", "html", "docs", *(session.posargs or ["docs/_build/html"]))


@nox.session
def nightly(session: nox.Session) -> None:
    """Full statistics, real trainings, kills at every call."""
    install(session, EVERYTHING)
    at_night = ("-m", "nightly and not benchmarks")
    session.run("python", "-m", "pytest", "-n", "2", *at_night, *session.posargs, env=ONE_THREAD)
    session.run("python", "-m", "pytest", "-m", "nightly and benchmarks", *session.posargs, env=ONE_THREAD)
