"""What pages of tests name exists: the simulations that are shorter by day than by night, and accepted mutants."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "tests.md"


def test_the_page_names_tests_that_exist():
    table = PAGE.read_text(encoding="utf-8").partition("| test | by day | nightly |\n|---|---|---|\n")[2]
    rows = re.findall(r"^\| ([\w/]+\.py)(?:,|(?: |::)([\w:, ]+)) ?[^|]*\|", table, re.MULTILINE)
    assert len(rows) >= 20
    for file, named in rows:
        text = (TESTS / file).read_text(encoding="utf-8")
        for name in re.findall(r"\w+", named):
            assert re.search(rf"(def|class) {name}\b", text), f"{file}: {name}"


def test_each_accepted_mutant_changes_one_line_that_exists():
    rows = tomllib.loads((TESTS / "mutants.toml").read_text(encoding="utf-8"))["survivor"]
    assert rows
    for row in rows:
        lines = (TESTS.parent / row["file"]).read_text(encoding="utf-8").splitlines()
        assert [line.strip() for line in lines].count(row["before"]) == 1, f"{row['file']}: {row['before']}"
        assert row["after"] != row["before"]
