"""The lists of statements of the five papers on their pages: each row has an anchor, each name is a link to its code.

The tables are ``papers/items-*.md``. While the documentation is built, ``conf.py`` makes links of names of leakbound
and of tests, to their code, and of figures and claims, to the part of the page that shows them. The files of code that
are linked are pages of the site, under ``code/``, with an anchor at each line.

A comment ``<!-- summary -->`` on the page of a paper is replaced by what is known of it elsewhere: how it is cited
(``references.md``), its experiments with their verdicts (``papers/overview.md``) and its errata (``errata.md``).
"""

from __future__ import annotations

import ast
import inspect
import pydoc
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import leakbound

HERE = Path(__file__).parent
ROOT = HERE.parent
PACKAGE = Path(str(leakbound.__file__)).parent
PAPERS = ("izzo2022", "azize2024", "delgrosso2021", "sablayrolles2019", "lowy2024")
HEADS = ["item", "what it says", "where it is", "test", "verdict"]
SUMMARY = "<!-- summary -->"
SUMMARISED = ("references.md", "papers/overview.md", "errata.md")
NAME = re.compile(r"(?:leakbound|benchmarks)(\.\w+)+")
TEST = re.compile(r"(?P<file>tests/[\w/]+\.py)::(?P<name>[\w:]+)")
EXPERIMENT = re.compile(r"(?P<name>\w+/\w+)(:[\w{}.]+)?")
ENTRY = re.compile(  # of the references; the last author ends with a small letter
    r"(?P<authors>.+?[^\W\d_A-Z])\. (?P<title>.+?[.?]) (?:\*.+\* )?(?P<year>\d{4})\. .*arXiv:(?P<id>[\d.]+)"
)


def anchor(paper: str, item: str) -> str:
    """Name of the row of an item: ``izzo2022-theorem-4-the-bound``."""
    words = re.sub(r"[^\w]+", "-", item.lower()).strip("-")
    return f"{paper}-{words}"


@cache
def lines_of(file: Path) -> dict[str, int]:
    """The line of each definition of a file, by its name with dots; the last one of several."""
    found: dict[str, int] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found[prefix + node.name] = node.lineno
                visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
                found.update({prefix + name.id: node.lineno for name in names})

    visit(ast.parse(file.read_text(encoding="utf-8")).body, "")
    return found


def code_of(name: str) -> tuple[Path, int]:
    """File and line of a name of leakbound, ``leakbound.bounds.exact_eta``.

    Raises
    ------
    LookupError
        If there is none.
    """
    thing: Any = pydoc.locate(name)
    if isinstance(thing, ModuleType):
        return Path(str(thing.__file__)), 1
    thing = inspect.unwrap(thing)
    if inspect.isfunction(thing) or inspect.isclass(thing):
        file = Path(str(inspect.getsourcefile(thing)))
        return file, lines_of(file)[thing.__qualname__]
    module, _, last = name.rpartition(".")  # a constant
    file, _ = code_of(module)
    return file, lines_of(file)[last]


def test_of(file: str, name: str) -> tuple[Path, int]:
    """File and line of a test, ``tests/a.py`` and ``TestB::test_c``."""
    return ROOT / file, lines_of(ROOT / file)[name.replace("::", ".")]


def link(text: str) -> tuple[Path, int] | str | None:
    """Where a name of a row leads to: a line of a file, an anchor of the page, or nowhere."""
    if NAME.fullmatch(text):
        return code_of(text)
    if found := TEST.fullmatch(text):
        return test_of(found["file"], found["name"])
    if found := EXPERIMENT.fullmatch(text):
        return f"#{found['name'].replace('/', '-')}"
    return None


def written_as(file: Path) -> str:
    """The path of a file of code, of leakbound or its tests, for readers: ``leakbound/bounds/dp.py``."""
    is_of_package = file.is_relative_to(PACKAGE)
    return str(file.relative_to(PACKAGE.parent if is_of_package else ROOT))


def shown_as(name: str) -> str:
    """What a row shows for a name: a test in the words of its name, all else as it is, without ``leakbound``."""
    if found := TEST.fullmatch(name):
        return found["name"].rpartition("::")[2].removeprefix("test_").replace("_", " ")
    return name.removeprefix("leakbound.")


def citation(paper: str) -> str:
    """The entry of a paper in the references, and the same for BibTeX, as Markdown."""
    text = (HERE / "references.md").read_text(encoding="utf-8")
    entry = re.search(rf"^\*\*{paper}\*\*\n: ((?:.+\n)+)", text, re.MULTILINE)
    assert entry, paper
    said = " ".join(entry[1].split())
    parts = ENTRY.match(said)
    assert parts, paper
    authors = " and ".join(parts["authors"].split(", "))
    lines = [f"@misc{{{paper},", f"  author = {{{authors}}},", f"  title  = {{{{{parts['title'].rstrip('.')}}}}},"]
    lines += [f"  year   = {{{parts['year']}}},", f"  eprint = {{{parts['id']}}},", "  archivePrefix = {arXiv}", "}"]
    return f"{said}\n\n```bibtex\n" + "\n".join(lines) + "\n```\n"


def experiments(paper: str) -> str:
    """The commands of a paper with their verdicts, as Markdown."""
    rows = ["| command | what the idea is good for | verdicts | CPU time in full |", "|---|---|---|---|"]
    for line in (HERE / "papers" / "overview.md").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"| [{paper}/"):
            name, *rest = line.removeprefix("| ").split(" | ")
            figure = name[1:].partition("]")[0]
            rows.append(f"| [`leakbound reproduce {figure}`](#{figure.replace('/', '-')}) | {' | '.join(rest)}")
    return "\n".join(rows) + "\n"


def errata(paper: str) -> str:
    """The errata of a paper, as Markdown."""
    rows = ["| erratum | place | label | what leakbound does |", "|---|---|---|---|"]
    for line in (HERE / "errata.md").read_text(encoding="utf-8").splitlines():
        found = re.match(rf"\| \[(\d+)\]\(#erratum-\d+\) \| {paper}, (.*)", line)
        if found:
            rest = found[2].replace("(#erratum", "(errata.md#erratum")
            rows.append(f"| [{found[1]}](errata.md#erratum-{found[1]}) | {rest}")
    return "\n".join(rows) + "\n"


def summary(paper: str) -> str:
    """What is known of a paper elsewhere, as Markdown."""
    parts = [citation(paper), "## Experiments", experiments(paper), "## Errata", errata(paper)]
    return "\n\n".join(parts)
