"""The words of the field: what is written for readers says "distribution" and not "law", "fraction" and not "share".

`PHRASES` is the table: what is not said, what is said instead, and where the first is right all the same. It is held
against comments, docstrings and messages of the code (and so against the help of the command line, which is made from
them), templates of pages, plans and policies, and the documentation. Code, and names in backticks, are left out there;
`test_names_use_the_words_of_the_field` reads the public names by importing them.
"""

from __future__ import annotations

import ast
import enum
import inspect
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path

import pytest
from pydantic import BaseModel

import leakbound as ls
from leakbound.attacks import ATTACKS
from leakbound.bounds import BOUNDS
from leakbound.core.reasons import REASONS
from leakbound.plans.statistics import STATISTICS
from leakbound.reports.sentences import sentences
from tests.test_public import public_things

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src" / "leakbound"
PAGES_OF_REPORTS = "src/leakbound/reports/"  # for people who do not know the terms; each page explains them
OF_PAPERS = "src/leakbound/papers/"  # these two also use the papers' own words
RUNS_OF_PAPERS = "docs/papers/"


@dataclass(frozen=True)
class Phrase:
    """What is not said, what is said instead, the files (or their folders) and the contexts where it is right."""

    wrong: str
    right: str
    files: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()


PHRASES = (
    Phrase(r"strangers?", "attacker, adversary"),
    Phrase(r"success(es)? (of|in) \d+", "attack accuracy"),
    Phrase(r"blind(ly)? guess(ing|es)?|guess(ing|es)? blind(ly)?", "baseline accuracy, prior"),
    Phrase(
        r"false alarms?",
        "false positive rate",
        (PAGES_OF_REPORTS, OF_PAPERS, RUNS_OF_PAPERS, "docs/tests.md"),
        (
            "its probability of a false alarm",
            "false alarms the claim allows",
        ),  # of a test of the code
    ),
    Phrase(
        r"members found", "true positive rate", (PAGES_OF_REPORTS, OF_PAPERS), ("fraction of members found at an FPR",)
    ),
    Phrase(r"laws?", "distribution", contexts=("law of total", "comply with the law", "in the sense of the law")),
    Phrase(
        r"(the|a|an|this|its|their|each|larger|smaller|same|of|in|by|what) shares?(?! (a|as|the|much)\b)",
        "fraction",
        (OF_PAPERS, RUNS_OF_PAPERS),
    ),
    Phrase(r"right guess(es)?|games? won", "correct guesses", (OF_PAPERS,)),
    Phrase(r"learn(ed|t|s)? by heart", "memorised"),
    Phrase(r"(give|gives|given|gave|giving)( \w+){0,5} away", "revealed"),
    Phrase(r"leav(e|es|ing) the house", "published, released"),
    Phrase(r"(training|loop)s? of (one's|your|their) own", "user-supplied training loop"),
    Phrase(
        r"judged (points?|records?)|numbers? of the (judged|attacked|target) (points?|records?)",
        "indices of the target points",
    ),
    Phrase(r"almost (completely|entirely)", "membership can be inferred almost perfectly"),
    Phrase(r"dear(er|est|ly)?", "expensive"),
    Phrase(
        r"(little|nothing|negligible|small|smaller|large|larger|cheap|error,?|checked|vanish|#) beside", "compared with"
    ),
    Phrase(r"stands?(?! (for|in)\b)", "is, is shown"),
    Phrase(r"(?<!there) is no estimator", "expected an estimator with fit and get_params, got None"),
)
WRONG_IN_NAMES = {
    "stranger", "strangers", "blind", "law", "laws", "share", "shares", "heart", "asked", "subject", "contest", "trial",
    "exposure", "workshop", "judged", "vmapped", "dear", "beside", "success", "successes", "overlap", "averages",
    "side", "alarms",
}  # fmt: skip
NAMES_ALL_THE_SAME = {
    "successes": "of a binomial distribution",
    "pairs_share_points": "a verb",
    "pairs_share_fewer_points": "a verb",
}


def of_python(text: str) -> Iterator[tuple[int, str]]:
    """Yield comments, and strings of several words: docstrings, messages, help."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def of_page(text: str) -> Iterator[tuple[int, str]]:
    """Yield what a page of the documentation says, and the output that it shows, without code."""
    code = re.compile(
        r"^```+\{?(python|bash|toml|yaml|console|diff|code-block|r|sql).*?^```+$", re.MULTILINE | re.DOTALL
    )
    blank = code.sub(lambda found: "\n" * found[0].count("\n"), text)
    yield 1, blank


def of_template(text: str) -> Iterator[tuple[int, str]]:
    """Yield the words of a template."""
    yield 1, re.sub(r"\{\{.*?\}\}|\{%.*?%\}|<[^>]*>", lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def texts() -> list[tuple[str, int, str]]:
    """List what is written for readers: file, the line at which it begins, and the text without names in backticks."""
    readers = {".py": of_python, ".md": of_page, ".jinja": of_template, ".toml": of_page}
    pages = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
    files = [*SOURCES.rglob("*"), *(ROOT / "docs").rglob("*.md"), *pages]
    written = []
    for file in sorted(file for file in files if file.suffix in readers and "_build" not in file.parts):
        for line, text in readers[file.suffix](file.read_text(encoding="utf-8")):
            plain = re.sub(r"`[^`\n]*`", lambda found: "`" + "_" * (len(found[0]) - 2) + "`", text)
            written.append((file.relative_to(ROOT).as_posix(), line, plain))
    return written


def hits(phrase: Phrase, written: list[tuple[str, int, str]]) -> list[str]:
    """List where a phrase is said that should not be."""
    pattern = re.compile(rf"(?<![\w-])(?:{phrase.wrong})(?![\w-])".replace(" ", r"\s+(?:#\s+)?"), re.IGNORECASE)
    found = []
    for file, line, text in written:
        if file.startswith(phrase.files):
            continue
        for match in pattern.finditer(text):
            around = " ".join(text[max(0, match.start() - 40) : match.end() + 40].split())
            if not any(context in around for context in phrase.contexts):
                found.append(f"{file}:{line + text.count(chr(10), 0, match.start())}: {around!r}; say: {phrase.right}")
    return found


@pytest.mark.slow
def test_readers_find_the_words_of_the_field_and_every_exception_is_needed() -> None:
    """An exception for what is written nowhere any more would hide the next mistake."""
    written = texts()  # which takes longer to read than to search: so this is one test
    found, idle = [], []
    for phrase in PHRASES:
        found += hits(phrase, written)
        for file in phrase.files:
            without = replace(phrase, files=tuple(other for other in phrase.files if other != file))
            idle += [] if hits(without, written) else [(phrase.right, file)]
        for context in phrase.contexts:
            without = replace(phrase, contexts=tuple(other for other in phrase.contexts if other != context))
            idle += [] if hits(without, written) else [(phrase.right, context)]
    assert found == []
    assert idle == []


@pytest.mark.parametrize(
    ("text", "n_hits"),
    [
        ('"""The law of the noise."""', 1),
        ("x = 'a message about the law'", 1),
        ("# of a long comment the\n# law", 1),
        ("law = 1  # `law`", 0),
        ("x = 'law'", 0),  # an id, no words
        ('"""By the law of total covariance."""', 0),
        ('f"at {x} the law is"', 1),
    ],
)
def test_words_of_the_code_are_read(text: str, n_hits: int) -> None:
    written = [("a.py", line, re.sub("`[^`]*`", "``", found)) for line, found in of_python(text)]
    (law,) = [phrase for phrase in PHRASES if phrase.right == "distribution"]
    assert len(hits(law, written)) == n_hits


def test_words_of_a_page_are_read_without_its_code() -> None:
    page = "A share.\n\n```python\nthe share\n```\n\n```text\nthe share\n```\nof a\nshare\n"
    (fraction,) = [phrase for phrase in PHRASES if phrase.right == "fraction"]
    found = hits(fraction, [("a.md", line, text) for line, text in of_page(page)])
    assert [int(hit.split(":")[1]) for hit in found] == [1, 8, 10]


def public_names() -> dict[str, str]:
    """List public names, by importing them, and where each is: functions, classes, parameters, fields and ids."""
    names = dict.fromkeys(ls.__all__, "leakbound")
    for path, thing in public_things():
        names[path.rpartition(".")[2]] = path
        if isinstance(thing, type):
            attributes = [name for name in vars(thing) if not name.startswith("_")]
            if is_dataclass(thing):
                attributes += [field.name for field in fields(thing)]
            if issubclass(thing, BaseModel):
                attributes += list(thing.model_fields)
            if issubclass(thing, enum.Enum):
                attributes += [str(member.value) for member in thing]
            names |= dict.fromkeys(attributes, path)
        elif inspect.isfunction(thing):
            names |= dict.fromkeys(inspect.signature(thing).parameters, path)
    terms = [name.partition(".")[2] for name in sentences()]
    for table in (ATTACKS, BOUNDS, STATISTICS, terms, REASONS):
        names |= dict.fromkeys(table, "an id")
    return names


def test_names_use_the_words_of_the_field() -> None:
    names = public_names()
    assert len(names) > 500
    parts = {name: set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())) for name in names}
    wrong = {name: names[name] for name in names if parts[name] & WRONG_IN_NAMES}
    assert wrong.keys() == NAMES_ALL_THE_SAME.keys(), wrong
