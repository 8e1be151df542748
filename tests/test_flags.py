"""Messages for readers of both kinds: what names a flag of the command line names the keyword of Python as well."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[1] / "src" / "leakbound"
FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")
# The command line itself, and what writes a command; old flags, beside their keywords; variables of CSS, and Chromium.
OF_OTHERS = (
    "cli/",
    "plans/moved.py",
    "protection/certificate/release_command.py",
    "reports/render/",
    "reports/charts/",
)
NAMES_ALONE = ("--vary", "--trust {}")  # parts of messages, or for the command line alone
KEYWORDS = {"partial": "from_store", "trust": "trusted_types"}  # of flags with another name


def texts(code: str) -> Iterator[str]:
    """All texts of a file but docstrings, whole; what stands in the gaps of an f-string is left out."""
    tree = ast.parse(code)
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            parts.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            parts.update(id(part) for part in ast.walk(node) if part is not node)
    for node in ast.walk(tree):
        if id(node) in parts:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def without_keyword(text: str) -> list[str]:
    """The flags of a text that name no keyword: it says ``levels (--levels``, or what to write "in Python"."""
    if "leakbound " in text or "in Python" in text or text in NAMES_ALONE:  # a command line; both; a name
        return []
    flags = FLAG.findall(text)
    rest = FLAG.sub("", text)
    keywords = {flag: KEYWORDS.get(flag, flag.replace("-", "_")) for flag in flags}
    return [flag for flag, keyword in keywords.items() if not re.search(rf"\b{keyword}\b", rest)]


@pytest.mark.parametrize(
    "text", ["declare them, as --levels a=b", "say --another-design", "as --set edges=[0,20]: of the settings"]
)
def test_a_flag_alone_is_seen(text):
    assert without_keyword(text)


def test_messages_that_name_a_flag_name_the_keyword():
    silent = {}
    for file in sorted(SOURCES.rglob("*.py")):
        name = file.relative_to(SOURCES).as_posix()
        if name.startswith(OF_OTHERS):
            continue
        code = file.read_text(encoding="utf-8")
        for text in texts(code) if "--" in code else ():
            if flags := without_keyword(text):
                silent[f"{name}: {text}"] = flags
    assert silent == {}
