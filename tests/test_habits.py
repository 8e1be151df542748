"""What keeps the package small enough to be held: lines of code, and files of a folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.code_map import lines_of, read_modules

REPOSITORY = Path(__file__).parents[1]
PACKAGE = REPOSITORY / "src" / "leakbound"
FOLDERS = sorted({file.parent for file in PACKAGE.rglob("*.py")})
MOST_FILES = 22  # of Python in a folder
ALLOWED_GROWTH = 1.01  # without a new row in docs/design.md


def last_row() -> int:
    """Return the code lines without papers in the last row of the table of sizes in docs/design.md."""
    text = (REPOSITORY / "docs" / "design.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \d{4}-\d\d-\d\d[^|]* \| ([\d,]+) \|", text, re.MULTILINE)
    return int(rows[-1].replace(",", ""))


def test_code_grows_with_a_row_in_the_table_of_sizes_alone():
    """Whoever adds more than 1 % writes the new row, and so sees what the feature costs."""
    modules = {name: module for name, module in read_modules(PACKAGE).items() if module.room.split(".")[0] != "papers"}
    n_lines = sum(len(lines_of(module).code) for module in modules.values())
    assert n_lines <= ALLOWED_GROWTH * last_row(), (
        f"{n_lines:,} code lines without papers, and the last row of docs/design.md has {last_row():,}: take as much "
        "away, or add a row with today's numbers (python -m benchmarks.code_map)"
    )


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(PACKAGE).as_posix())
def test_a_folder_has_at_most_22_files(folder):
    assert len(list(folder.glob("*.py"))) <= MOST_FILES
