"""The page of tests names the simulations that are shorter by day than by night, with what they find: each exists."""

from __future__ import annotations

import re
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
