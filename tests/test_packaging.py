"""What is installed and how: wheel, sdist, container, conda recipe, GitHub Action, hooks, and the page about them.

The nox session ``package`` runs the tools that read these files: twine, check-wheel-contents, pyroma, hadolint,
check-jsonschema, pre-commit, DVC and rattler-build.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.core import TyperGroup

import leakbound
from leakbound.cli.main import app
from tests import dist_files

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGE_DATA = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"][
    "package-data"
]
DOCKERFILE = ROOT / "packaging" / "Dockerfile"
RECIPE = ROOT / "packaging" / "conda" / "recipe.yaml"
PIPELINE = ROOT / "packaging" / "dvc" / "dvc.yaml"
ACTION = ROOT / "action.yml"
HOOKS = ROOT / ".pre-commit-hooks.yaml"
PAGE = ROOT / "docs" / "install.md"
CONDA_NAMES = {"matplotlib": "matplotlib-base"}  # matplotlib of conda-forge would bring Qt
NEEDED = ("leakbound/reports/schema.json", "leakbound/plan.toml", "leakbound/py.typed",
          "leakbound/reports/documents/notebook.html.jinja", "leakbound/plans/research.toml")  # fmt: skip
SMALL_PLAN = """
dataset = "wine"
n_models = 4
attacks = ["loss"]

[[model]]
name = "tree"
spec = "sklearn.tree:DecisionTreeClassifier"
"""


def load_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


# What the build is told


def test_every_file_that_is_not_python_is_named_in_the_package_data() -> None:
    package = ROOT / "src" / "leakbound"
    data = {package / name.removeprefix("leakbound/") for name in dist_files.sources() if not name.endswith(".py")}
    # As the build reads a pattern: one star does not pass a folder's border.
    named = {pattern: set(package.glob(pattern)) for pattern in PACKAGE_DATA["leakbound"]}
    assert data - set().union(*named.values()) == set()
    assert [pattern for pattern, files in named.items() if not files & data] == []


def test_a_file_that_is_missing_from_a_wheel_is_named(tmp_path: Path) -> None:
    sources = dist_files.sources()
    wheel = tmp_path / "leakbound-0.1.0-py3-none-any.whl"
    left_out = (*NEEDED, "leakbound/core/seeds.py")
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in sources.items():
            if name not in left_out:
                archive.writestr(name, content + b"\n" if name == "leakbound/version.py" else content)
        archive.writestr("leakbound/left_behind.py", "")
        for name in dist_files.METADATA[1:]:
            archive.writestr(f"leakbound-0.1.0.dist-info/{name}", "")
    assert set(dist_files.wheel_complaints(wheel)) == {
        *(f"{wheel.name}: {name} is missing" for name in left_out),
        f"{wheel.name}: METADATA is missing",
        f"{wheel.name}: leakbound/left_behind.py is unexpected",
        f"{wheel.name}: leakbound/version.py is different",
    }


# What is built


def clean_copy(target: Path) -> Path:
    """Copy what a build needs, without what earlier builds have left."""
    target.mkdir()
    for name in dist_files.OF_THE_SDIST:
        shutil.copy2(ROOT / name, target)
    shutil.copytree(ROOT / "src", target / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for file in target.rglob("*.*"):
        if file.is_file():
            file.chmod(0o644)  # a wheel has the permissions of its files, which depend on the umask of the clone
    return target


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the wheel of the tree and the sdist."""
    folder = tmp_path_factory.mktemp("built")
    source = clean_copy(folder / "source")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        dist_files.build("sdist", source, folder, isolated=False)
        dist_files.build("wheel", source, folder, isolated=False)
        yield folder


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package(built: Path) -> None:
    wheel = dist_files.only(built, "*.whl")
    assert dist_files.wheel_complaints(wheel) == []
    assert set(NEEDED) <= set(dist_files.of_wheel(wheel))
    assert wheel.stat().st_size < 2e6


@pytest.mark.slow
def test_the_sdist_alone_builds_the_same_wheel(built: Path, tmp_path: Path) -> None:
    sdist = dist_files.only(built, "*.tar.gz")
    assert dist_files.sdist_complaints(sdist) == []
    assert sdist.stat().st_size < 2e6
    rebuilt = dist_files.wheel_of_sdist(sdist, tmp_path, isolated=False)
    assert rebuilt.read_bytes() == dist_files.only(built, "*.whl").read_bytes()


@pytest.mark.nightly
def test_an_sdist_without_a_template_builds_another_wheel(built: Path, tmp_path: Path) -> None:
    source = clean_copy(tmp_path / "source")
    template = "leakbound/reports/documents/notebook.html.jinja"
    (source / "src" / template).unlink()
    sdist = dist_files.build("sdist", source, tmp_path, isolated=False)
    assert dist_files.sdist_complaints(sdist) == [f"{sdist.name}: src/{template} is missing"]
    rebuilt = dist_files.wheel_of_sdist(sdist, tmp_path, isolated=False)
    wheel = dist_files.of_wheel(dist_files.only(built, "*.whl"))
    complaints = dist_files.differences(dist_files.of_wheel(rebuilt), wheel, "wheel")
    assert f"wheel: {template} is missing" in complaints


# What other tools are told


def test_the_recipe_of_conda_has_the_dependencies_and_the_version_of_the_project() -> None:
    recipe = load_yaml(RECIPE)
    expected = {"python": PROJECT["requires-python"]}
    for line in PROJECT["dependencies"]:
        name, _, least = str(line).partition(">=")
        expected[CONDA_NAMES.get(name, name)] = f">={least}"
    assert dict(line.split(" ") for line in recipe["requirements"]["run"]) == expected
    assert recipe["context"]["version"] == leakbound.__version__
    ((command, entry),) = PROJECT["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [f"{command} = {entry}"]
    assert recipe["about"]["license"] == PROJECT["license"]
    assert (RECIPE.parent / recipe["source"]["path"] / "pyproject.toml").resolve() == ROOT / "pyproject.toml"


def options(command: str) -> set[str]:
    """List the flags of a command of leakbound."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    parameters = group.commands[command].params
    return {flag for parameter in parameters for flag in (*parameter.opts, *parameter.secondary_opts)}


@pytest.mark.parametrize("file", [ACTION, HOOKS, PIPELINE, DOCKERFILE, RECIPE], ids=lambda file: file.name)
def test_commands_and_flags_exist(file: Path) -> None:
    found = re.findall(r"leakbound (audit|bound|protect)\b([^\n]*)", file.read_text(encoding="utf-8"))
    assert found or file == ACTION
    for command, rest in found:
        if command == "audit":
            assert set(re.findall(r"--[a-z][\w-]*", rest)) - {"--user"} <= options("audit")
    if file == ACTION:
        script = load_yaml(ACTION)["runs"]["steps"][-1]["run"]
        flags = set(re.findall(r"(--[a-z][\w-]*)", script))
        assert flags == {"--publish", "--out", "--policy", "--allow-modules", "--store"}
        assert flags <= options("audit")


def test_the_action_passes_its_inputs_by_the_environment_alone() -> None:
    """An input that is pasted into a script could end the line and run what it likes."""
    action = load_yaml(ACTION)
    used = set()
    for step in action["runs"]["steps"]:
        assert "${{" not in step["run"]
        used |= set(step["env"].values())
    assert used == {"${{ inputs." + name + " }}" for name in action["inputs"]}
    extras = set(action["inputs"]["extras"]["default"].split(","))
    assert extras <= set(PROJECT["optional-dependencies"])


@pytest.mark.slow
def test_the_audit_of_the_action_runs_in_a_shell(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(SMALL_PLAN, encoding="utf-8")
    command = tmp_path / "leakbound"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m leakbound "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    action = load_yaml(ACTION)
    limits = "tpr@0.01=0.99,accuracy=0.51"  # the second one is not kept
    given = {"plan": "plan.toml", "policy": limits, "allow-modules": "sklearn"}
    values = {name: given.get(name, words.get("default", "")) for name, words in action["inputs"].items()}
    step = action["runs"]["steps"][-1]
    assert step["id"] == "audit"
    inputs = {name: values[value[len("${{ inputs.") : -len(" }}")]] for name, value in step["env"].items()}
    environment = {**os.environ, **inputs, "PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_OUTPUT": "outputs.txt"}
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]  # as GitHub calls it
    done = subprocess.run(shell, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert (tmp_path / "outputs.txt").read_text() == "exit-code=3\n"
    report = json.loads((tmp_path / "leakbound-report" / "report.json").read_text(encoding="utf-8"))
    assert report["records"] == {}  # published


def test_the_first_hook_refuses_what_is_for_the_owner_alone() -> None:
    hooks = {hook["id"]: hook for hook in load_yaml(HOOKS)}
    refused = re.compile(hooks["leakbound-owner-files"]["files"])
    for name in (
        "leakbound-report/report.json",
        "a/wine-mean/owner/values.csv",
        "leakbound-store/x",
        "a/report-records.csv",
    ):
        assert refused.search(name), name
    for name in ("wine-mean/release.json", "src/owner.py", "plan.toml", "audit/report.html"):
        assert not refused.search(name), name


# Installed where nothing is


def instructions(stage: int) -> list[tuple[str, str]]:
    """List the instructions of a stage of the Dockerfile, without comments."""
    lines = [line for line in DOCKERFILE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    stages: list[list[tuple[str, str]]] = []
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "FROM":
            stages.append([])
        stages[-1].append((word, rest))
    return stages[stage]


def test_the_container_has_a_python_that_the_project_allows_and_no_root() -> None:
    for stage in (0, 1):
        python = re.match(r"python:3\.(\d+)-slim", instructions(stage)[0][1])
        assert python
        assert int(python[1]) >= int(PROJECT["requires-python"].removeprefix(">=3."))
    assert dict(instructions(1))["USER"] not in ("root", "0", "0:0")
    ignored = (DOCKERFILE.parent / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    (copied, _), folder = [rest.rpartition(" ")[::2] for word, rest in instructions(0) if word == "COPY"]
    assert {f"!{name}" for name in [*copied.split(), folder[0]]} == {line for line in ignored if line.startswith("!")}


def empty_environment(folder: Path) -> dict[str, str]:
    """Make an environment with Python and pip alone; return the variables that a shell in it has."""
    venv.create(folder, with_pip=True, symlinks=True)
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV"))}
    return {**own, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def run(line: str, folder: Path, environment: dict[str, str]) -> str:
    """Run a line of a shell and return what it prints."""
    done = subprocess.run(
        ["bash", "-ec", line], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{line}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.mark.nightly
def test_the_container_s_lines_run_one_by_one_in_an_empty_environment(tmp_path: Path) -> None:
    """Without Docker: each COPY copies, and each RUN runs, with the folders of the image below ``tmp_path``."""
    environment = empty_environment(tmp_path / "environment")
    home = tmp_path / "work"
    home.mkdir()
    here = tmp_path
    for word, rest in [*instructions(0), *instructions(1)]:
        if word == "WORKDIR":
            here = tmp_path / rest.removeprefix("/")
            here.mkdir(exist_ok=True)
        elif word == "COPY" and not rest.startswith("--from"):
            *files, target = rest.split()
            for name in files:
                if (ROOT / name).is_dir():
                    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
                    shutil.copytree(ROOT / name, here / target, ignore=ignored)
                else:
                    shutil.copy(ROOT / name, here / target)
        elif word == "RUN":
            run(rest.replace("/wheels", str(tmp_path / "wheels")), here, environment)
    shutil.rmtree(tmp_path / "source")
    (entry,) = yaml.safe_load(dict(instructions(1))["ENTRYPOINT"])
    (default,) = yaml.safe_load(dict(instructions(1))["CMD"])
    assert "audit" in run(f"{entry} {default}", home, environment)
    (home / "plan.toml").write_text(SMALL_PLAN, encoding="utf-8")
    run(f"{entry} audit plan.toml", home, environment)
    assert (home / "leakbound-report" / "report.html").is_file()


@pytest.mark.nightly
def test_it_is_installed_without_a_network_from_a_folder_of_wheels(built: Path, tmp_path: Path) -> None:
    """The lines of docs/install.md: the wheels are collected on one machine and installed on another."""
    lines = dict(
        re.findall(r"^<!-- (collect|offline) -->\n```bash\n(.*?)\n```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    )
    environment = empty_environment(tmp_path / "environment")
    shutil.copytree(built / "source", tmp_path / "leakbound")
    run(lines["collect"], tmp_path, environment)
    shutil.rmtree(tmp_path / "leakbound")
    run(lines["offline"], tmp_path, {**environment, "PIP_INDEX_URL": "file:///nowhere", "PIP_EXTRA_INDEX_URL": ""})
    assert run("leakbound --version", tmp_path, environment).split()[-1] == leakbound.__version__
    where = run("python -c 'import leakbound; print(leakbound.__file__)'", tmp_path, environment)
    assert str(tmp_path / "environment") in where
    run("leakbound audit --dry-run", tmp_path, environment)
    run("leakbound bound dp --epsilon 1 --out bound", tmp_path, environment)
    assert (tmp_path / "bound" / "report.html").is_file()


def test_the_page_names_every_extra_and_every_file() -> None:
    page = PAGE.read_text(encoding="utf-8")
    extras = page.partition("\n## Extras\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", extras, re.MULTILINE) == list(PROJECT["optional-dependencies"])
    for file in (DOCKERFILE, RECIPE, PIPELINE, ACTION, HOOKS):
        assert file.relative_to(ROOT).as_posix() in page, file
    for hook in load_yaml(HOOKS):
        assert f"`{hook['id']}`" in page
    for name in load_yaml(ACTION)["inputs"]:
        assert f"`{name}`" in page
