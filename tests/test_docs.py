"""The documentation runs: every Python block and every ``leakscope`` line, in order, a folder for each page.

A fence whose first line is ``# name.suffix`` is also a file of that name; ``# exit code 2`` behind a command
is checked.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from leakscope.attacks import ATTACKS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(python|toml|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXIT = re.compile(r"# exit code (\d)$")
KEY = re.compile(r"\b[a-z]+(?:19|20)\d\d\b")


def fences(page: Path) -> list[tuple[str, str]]:
    """Language and text of the fences that can run."""
    return FENCE.findall(page.read_text(encoding="utf-8"))


def run(line: str) -> None:
    """A command line, as it is typed after ``pip install``."""
    expected = EXIT.search(line)
    arguments = shlex.split(line, comments=True)[1:]
    done = subprocess.run([sys.executable, "-m", "leakscope.cli", *arguments], capture_output=True, text=True)
    assert done.returncode == (int(expected[1]) if expected else 0), f"{line}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", [page for page in PAGES if fences(page)], ids=lambda page: page.name)
def test_every_example_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict[str, object] = {"__name__": "__main__"}
    for language, text in fences(page):
        file = re.match(r"# ([\w-]+\.\w+)\n", text)
        if file:
            Path(file[1]).write_text(text, encoding="utf-8")
        if language == "python":
            exec(compile(text, f"{page.name}: {text.splitlines()[0]}", "exec"), names)
        elif language == "bash":
            for line in text.splitlines():
                if line.startswith("leakscope "):
                    run(line)


def test_pages_with_examples_are_found() -> None:
    found = {page.name for page in PAGES if fences(page)}
    assert found >= {"README.md", "tour.md", "measure.md", "report.md", "add-a-method.md"}


def test_every_attack_has_a_section_with_its_source() -> None:
    text = (ROOT / "docs" / "measure.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^###? )", text, re.MULTILINE | re.DOTALL))
    for name, attack in ATTACKS.items():
        assert name in sections
        for key in KEY.findall(attack.source):
            assert key in sections[name], f"{name} does not name {key}"


def test_every_key_has_a_reference() -> None:
    text = (ROOT / "docs" / "references.md").read_text(encoding="utf-8")
    known = set(re.findall(r"^\*\*(\w+)\*\*$", text, re.MULTILINE))
    used: set[str] = set()
    for path in [*(ROOT / "src").rglob("*.py"), *PAGES]:
        used.update(KEY.findall(path.read_text(encoding="utf-8")))
    assert used <= known, f"without a reference: {sorted(used - known)}"


def test_every_plan_is_valid() -> None:
    from leakscope.plans import from_toml

    for path in sorted((ROOT / "docs" / "plans").glob("*.toml")):
        assert from_toml(path).model_dump(exclude_unset=True).keys() == tomllib.loads(path.read_text()).keys()
