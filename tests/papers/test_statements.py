"""The lists of statements (docs/papers/items-*.md): where their names and tests lead to, and whom formulas cite."""

from __future__ import annotations

import inspect
import pydoc
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from docs import statements

from leakbound.papers import PAPERS

LISTS = Path(statements.HERE) / "papers"
NUMBERED = re.compile(r"(Definition|Theorem|Lemma|Corollary|Proposition|Property|Algorithm|Eq\.) [A-Z\d]")
IN_TEXT = re.compile(r"(Section|Appendix|Table) (?!.*(Future work|Limitations))")
FORMULAS = ("leakbound.attacks.", "leakbound.bounds.", "leakbound.noise.")  # rooms of formulas, also of those in a text
TORCH = find_spec("torch") is not None


def rows(paper: str) -> Iterator[list[str]]:
    """Item, what it says, where it is, test and verdict of each statement."""
    for line in (LISTS / f"items-{paper}.md").read_text(encoding="utf-8").strip().splitlines()[2:]:
        yield [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def written(name: str) -> Any:
    """What a name stands for; None where it needs PyTorch, which is not here."""
    try:
        return pydoc.locate(name)
    except (ModuleNotFoundError, pydoc.ErrorDuringImport):
        if TORCH:
            raise
        return None


def test_every_paper_has_a_page():
    assert set(statements.PAPERS) == {each.paper for each in PAPERS.values()}
    for paper in statements.PAPERS:
        text = (statements.HERE / f"{paper}.md").read_text(encoding="utf-8")
        assert text.count(statements.SUMMARY) == 1
        assert f"```{{include}} papers/items-{paper}.md\n" in text


@pytest.mark.parametrize("paper", statements.PAPERS)
def test_every_row_has_an_anchor_of_its_own(paper):
    anchors = [statements.anchor(paper, item) for item, *_ in rows(paper)]
    assert len(set(anchors)) == len(anchors) >= 50
    assert all(re.fullmatch(r"[\w-]+", each) for each in anchors)


@pytest.mark.parametrize("paper", statements.PAPERS)
def test_every_name_and_test_leads_to_the_line_that_defines_it(paper):
    for item, _, where, test, _ in rows(paper):
        for name in re.findall(r"`([^`]+)`", f"{where} {test}"):
            if statements.NAME.fullmatch(name) and written(name) is None and not TORCH:
                continue
            target = statements.link(name)
            assert target, f"{item}: {name}"
            if isinstance(target, tuple):
                file, line = target
                code = file.read_text(encoding="utf-8").splitlines()[line - 1]
                last = re.split(r"[.:]", name)[-1]
                is_module = file.stem == last and line == 1
                assert is_module or re.search(rf"\b{last}\b", code), f"{item}: {name}"
            else:
                assert target.removeprefix("#") in {each.replace("/", "-") for each in PAPERS}, f"{item}: {name}"


def test_a_name_that_is_not_there_is_seen():
    with pytest.raises((KeyError, TypeError, LookupError)):
        statements.code_of("leakbound.bounds.nothing")
    with pytest.raises(KeyError):
        statements.test_of("tests/papers/test_statements.py", "test_nothing")


def functions_of_formulas(paper: str) -> set[str]:
    """Names of leakbound for definitions, theorems, equations and the like, and in three rooms for a section's text."""
    found: set[str] = set()
    for item, _, where, _, verdict in rows(paper):
        names = re.findall(r"`(leakbound\.[\w.]+)`", where)
        if verdict.startswith("not run"):
            continue
        if NUMBERED.match(item):
            found.update(names)
        elif IN_TEXT.match(item):
            found.update(name for name in names if name.startswith(FORMULAS))
    return found


@pytest.mark.parametrize("paper", statements.PAPERS)
def test_the_function_of_each_formula_cites_the_paper(paper):
    things = {name: written(name) for name in functions_of_formulas(paper)}
    assert len(things) >= 10
    silent = {name for name, thing in things.items() if callable(thing) and paper not in (inspect.getdoc(thing) or "")}
    assert silent == set()


@pytest.mark.parametrize("paper", statements.PAPERS)
def test_the_summary_has_every_experiment_and_erratum_and_a_citation(paper):
    text = statements.summary(paper)
    assert re.search(
        rf"^@misc{{{paper},\n  author = {{.+ and .+}},\n  title  = {{{{.+}}}},\n  year   = {{\d{{4}}}},", text, re.M
    )
    assert re.findall(r"`leakbound reproduce (\S+)`", text) == [
        name for name, each in PAPERS.items() if each.paper == paper
    ]
    listed = re.findall(r"\(errata\.md#erratum-(\d+)\) \|", text)
    table = (statements.HERE / "errata.md").read_text(encoding="utf-8")
    assert listed == re.findall(rf"^\| \[(\d+)\]\(#erratum-\d+\) \| {paper},", table, re.MULTILINE)
    assert len(listed) >= 4


def test_a_test_is_shown_in_the_words_of_its_name():
    assert statements.shown_as("tests/a.py::TestB::test_c_d") == "c d"
    assert statements.shown_as("leakbound.bounds.exact_eta") == "bounds.exact_eta"
    assert statements.shown_as("izzo2022/figure1:no_dp") == "izzo2022/figure1:no_dp"
