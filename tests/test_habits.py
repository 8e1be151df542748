"""What keeps the package small enough to be held: lines of code, files of a folder, libraries without files."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from benchmarks.code_map import read_modules, style_of

REPOSITORY = Path(__file__).parents[1]
PACKAGE = REPOSITORY / "src" / "leakbound"
FOLDERS = sorted({file.parent for file in PACKAGE.rglob("*.py")})
MOST_FILES = 22  # of Python in a folder
ALLOWED_GROWTH = 1.01  # without a new row in docs/design.md
LIBRARIES = ("attacks", "metrics", "bounds", "noise", "core")
OF_FILES = {"write_text", "write_bytes", "read_text", "read_bytes", "touch", "unlink", "mkdir"}  # methods of Path
OF_OS = {"open", "replace", "rename", "remove", "unlink", "mkdir", "makedirs", "fdopen"}


def last_row() -> int:
    """Return the code lines without papers in the last row of the table of sizes in docs/design.md."""
    text = (REPOSITORY / "docs" / "design.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \d{4}-\d\d-\d\d \| ([\d,]+) \|", text, re.MULTILINE)
    return int(rows[-1].replace(",", ""))


def test_code_grows_with_a_row_in_the_table_of_sizes_alone():
    """Whoever adds more than 1 % writes the new row, and so sees what the feature costs."""
    modules = {name: module for name, module in read_modules(PACKAGE).items() if module.room.split(".")[0] != "papers"}
    n_lines = style_of(modules).n_code_lines
    assert n_lines <= ALLOWED_GROWTH * last_row(), (
        f"{n_lines:,} code lines without papers, and the last row of docs/design.md has {last_row():,}: take as much "
        "away, or add a row with today's numbers (python -m benchmarks.code_map)"
    )


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(PACKAGE).as_posix())
def test_a_folder_has_at_most_22_files(folder):
    assert len(list(folder.glob("*.py"))) <= MOST_FILES


def file_calls(source: str) -> list[int]:
    """List the lines of calls that open, write, replace or delete a file."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id == "open":
            found.append(node.lineno)
        if isinstance(called, ast.Attribute):
            is_of_os = isinstance(called.value, ast.Name) and called.value.id == "os" and called.attr in OF_OS
            is_of_path = isinstance(called.value, ast.Call) and called.attr == "open"
            if called.attr in OF_FILES or is_of_os or is_of_path:
                found.append(node.lineno)
    return found


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("open('x')", [1]),
        ("Path('x').open()", [1]),
        ("\npath.write_text('x')", [2]),
        ("os.replace(part, path)", [1]),
        ("archive.open(member)", []),
        ("text.replace('a', 'b')", []),
    ],
)
def test_calls_that_touch_files_are_found(source, lines):
    assert file_calls(source) == lines


@pytest.mark.parametrize("library", LIBRARIES)
def test_libraries_open_no_file(library):
    touching = {}
    for file in sorted((PACKAGE / library).rglob("*.py")):
        lines = file_calls(file.read_text(encoding="utf-8"))
        if lines:
            touching[file.relative_to(PACKAGE).as_posix()] = lines
    assert touching == {}
