"""Claims of papers as text and as a page."""

from __future__ import annotations

import pytest

from leakbound.reports import claims_page, claims_table
from leakbound.reports.results.papers import counted, measured, number, papers_page, stated, verdict

CLAIM = {
    "says": "It is so", "where": "Figure 1", "kind": "about", "printed": 7.75, "tolerance": 0.01, "because": "rounded",
    "ours": 7.8, "error": 0.001, "difference": 0.05, "verdict": "differs", "erratum": None, "note": "",
    "explained_by": "", "tried": [],
}  # fmt: skip
DOCUMENT = {
    "name": "a/b", "title": "A title", "scale": "full", "run": "1,000 games.", "reason": "", "setting": "",
    "settings": [],
    "claims": [CLAIM],
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ("7.75", "7.8 ± 0.001", "differs, by 0.05")),
        ({"kind": "at_most"}, ("at most 7.75", "7.8 ± 0.001", "differs, by 0.05")),
        ({"kind": "at_least", "verdict": "agrees"}, ("at least 7.75", "7.8 ± 0.001", "agrees")),
        ({"verdict": "erratum", "erratum": 9}, ("7.75", "7.8 ± 0.001", "the paper errs, by 0.05: erratum 9")),
        (
            {"kind": "holds", "printed": None, "ours": False, "error": 0.0, "difference": None},
            ("so", "not so", "differs"),
        ),
        ({"kind": "holds", "printed": None, "ours": True, "error": 0.0, "verdict": "agrees"}, ("so", "so", "agrees")),
        ({"ours": None, "error": None, "verdict": "not run"}, ("7.75", "", "not run")),
        ({"verdict": "smaller"}, ("7.75", "7.8 ± 0.001", "smaller run")),
        ({"verdict": "identity"}, ("7.75", "7.8 ± 0.001", "identity")),
        ({"at_least": True}, ("7.75", "at least 7.8 ± 0.001", "differs, by at least 0.05")),
        (
            {"verdict": "cannot tell", "can_agree": False},
            ("7.75", "7.8 ± 0.001", "cannot tell, cannot agree at these digits"),
        ),
        ({"explained_by": "code"}, ("7.75", "7.8 ± 0.001", "differs, by 0.05; with code it agrees")),
    ],
)
def test_words(change, words):
    claim = CLAIM | change
    assert (str(stated(claim)), str(measured(claim)), str(verdict(claim))) == words


def test_a_terminal_shows_the_claims_that_do_not_agree_first_and_the_full_text_all_of_them():
    agrees = [CLAIM | {"says": f"Claim {n}", "verdict": "agrees"} for n in range(9)]
    document = DOCUMENT | {"claims": [*agrees, CLAIM | {"says": "word " * 30}]}
    lines = claims_table([document], 80).splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 80
    whole = " ".join(lines)
    assert "Of 10 claims: 9 agree, 1 differs." in whole
    assert "differs, by 0.05" in whole
    assert "Claim 8" not in whole
    full = claims_table([document], 80, full=True)
    assert all(f"Claim {n}" in full for n in range(9))


def test_several_experiments_are_a_line_each():
    lines = claims_table([DOCUMENT | {"name": f"paper/figure{n}"} for n in range(20)], 80).splitlines()
    assert len(lines) <= 40
    assert sum(line.endswith(" 1 differs") for line in lines) == 20


def test_a_page_says_all_and_escapes():
    page = claims_page([DOCUMENT | {"title": "<b>"}], {"a/b": b"<svg/>"})
    assert "<b>" not in page.split("<main>")[1]
    for words in (
        "differs, by 0.05",
        "Figure 1",
        "7.8 ± 0.001",
        "rounded",
        "1,000 games.",
        "data:image/svg+xml;base64,",
    ):
        assert words in page


def test_the_experiments_of_a_page_are_linked():
    documents = [DOCUMENT, DOCUMENT | {"name": "a/c", "title": "Another title"}]
    page = claims_page(documents, {})
    targets = [experiment.anchor for experiment in papers_page(documents).experiments]
    assert targets == ["h1", "h2"]
    assert all(f'<a href="#{target}">' in page and f'<h2 id="{target}">' in page for target in targets)


def test_verdicts_are_counted():
    documents = [DOCUMENT, DOCUMENT | {"claims": [CLAIM | {"verdict": "agrees"}] * 2}]
    assert str(counted(documents)) == "2 agree, 1 differs"


@pytest.mark.parametrize(("value", "text"), [(376714, "376,714"), (0.012345, "0.01235"), (1e12, "1e+12"), (0, "0")])
def test_numbers(value, text):
    assert number(value) == text
