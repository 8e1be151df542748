"""The page that says how to add a method: its edits are made on a copy of the source, and its lines run there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "add-a-method.md").read_text(encoding="utf-8")
PARTS = re.split(r"^### ", PAGE.partition("## In leakbound itself\n")[2], flags=re.MULTILINE)[1:]
TITLES = ("An attack that needs a new signal", "A kind of release", "A statistic", "A section of a page")
MOST_EDITS = 4


def edits_of(part: str) -> list[tuple[str, list[str]]]:
    """The file of each edit of a part, from the root, and its lines: new ones begin with a plus sign."""
    fences = re.findall(r"^```diff\n# (\S+)\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
    return [(file, text.splitlines()) for file, text in fences]


def edit(file: Path, lines: list[str]) -> None:
    """Add lines at the place that the other lines name, or make a new file."""
    text = "".join(line[1:] + "\n" for line in lines)
    old = "".join(line[1:] + "\n" for line in lines if not line.startswith("+"))
    if not old:
        assert not file.exists(), file
        file.write_text(text, encoding="utf-8")
        return
    before = file.read_text(encoding="utf-8")
    assert before.count(old) == 1, f"{file}: {old!r}"
    file.write_text(before.replace(old, text), encoding="utf-8")


def edited(folder: Path) -> None:
    """Make all edits of the page on a copy of the source."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for part in PARTS:
        for file, lines in edits_of(part):
            edit(folder / file, lines)


def test_each_method_is_added_by_few_edits_that_fit_the_source(tmp_path: Path) -> None:
    assert tuple(part.splitlines()[0] for part in PARTS) == TITLES
    assert all(1 <= len(edits_of(part)) <= MOST_EDITS for part in PARTS)
    edited(tmp_path)


@pytest.mark.slow
def test_what_is_added_on_a_copy_of_the_source_works(tmp_path: Path) -> None:
    edited(tmp_path)
    script = [re.findall(r"^```\{code-block\} python\n(.*?)^```$", part, re.MULTILINE | re.DOTALL) for part in PARTS]
    lines = [
        f"import leakbound\nassert leakbound.__file__.startswith({str(tmp_path)!r})\n",
        *(text for (text,) in script),
    ]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_edit_that_fits_no_place_or_two_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("a = 1\nb = 2\nb = 2\n", encoding="utf-8")
    for lines in (["+c = 3", " d = 4"], ["+c = 3", " b = 2"], ["+c = 3"]):
        with pytest.raises(AssertionError):
            edit(file, lines)
    edit(file, [" a = 1", "+c = 3"])
    assert file.read_text(encoding="utf-8") == "a = 1\nc = 3\nb = 2\nb = 2\n"
