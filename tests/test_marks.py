"""The page of tests lists every parametrised test some of whose cases are run at night alone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "tests.md"
MARKS = {"nightly", "nightly_but"}


def names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def with_cases_at_night(file: Path) -> list[str]:
    """Functions and classes whose decorators use a mark of `tests.marks`, also through a name of the module."""
    text = file.read_text(encoding="utf-8")
    if not any(mark in text for mark in MARKS):
        return []
    tree = ast.parse(text)
    assigned = [node for node in tree.body if isinstance(node, ast.Assign) and names(node.value) & MARKS]
    marked = MARKS | {target.id for node in assigned for target in node.targets if isinstance(target, ast.Name)}
    decorated = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef))
    return sorted(node.name for node in decorated if any(names(each) & marked for each in node.decorator_list))


def listed() -> dict[str, list[str]]:
    """By file, as the page has it: ``* file: name, name``."""
    text = PAGE.read_text(encoding="utf-8").split("## Cases at night alone\n")[1].replace("\n  ", " ")
    rows = re.findall(r"^\* ([\w/]+\.py): (.+)$", text, re.MULTILINE)
    return {file: re.findall(r"\w+", functions) for file, functions in rows}


def test_the_page_lists_every_test_with_cases_at_night_alone():
    found = {str(file.relative_to(TESTS)): with_cases_at_night(file) for file in sorted(TESTS.rglob("*.py"))}
    assert listed() == {file: functions for file, functions in found.items() if functions and file != "marks.py"}
