"""Claims of papers as text and as a page."""

from __future__ import annotations

import pytest

from leakbound.reports.render.claims import claims_page, claims_table, counted, measured, number, stated, verdict

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
        ({}, ("7.75", "7.8 +- 0.001", "differs, by 0.05")),
        ({"kind": "at_most"}, ("at most 7.75", "7.8 +- 0.001", "differs, by 0.05")),
        ({"kind": "at_least", "verdict": "agrees"}, ("at least 7.75", "7.8 +- 0.001", "agrees")),
        ({"verdict": "erratum", "erratum": 9}, ("7.75", "7.8 +- 0.001", "the paper errs, by 0.05: erratum 9")),
        (
            {"kind": "holds", "printed": None, "ours": False, "error": 0.0, "difference": None},
            ("so", "not so", "differs"),
        ),
        ({"kind": "holds", "printed": None, "ours": True, "error": 0.0, "verdict": "agrees"}, ("so", "so", "agrees")),
        ({"ours": None, "error": None, "verdict": "not run"}, ("7.75", "", "not run")),
        ({"verdict": "smaller"}, ("7.75", "7.8 +- 0.001", "smaller run")),
        ({"verdict": "identity"}, ("7.75", "7.8 +- 0.001", "identity")),
        ({"at_least": True}, ("7.75", "at least 7.8 +- 0.001", "differs, by at least 0.05")),
        (
            {"verdict": "cannot tell", "can_agree": False},
            ("7.75", "7.8 +- 0.001", "cannot tell, cannot agree at these digits"),
        ),
        ({"explained_by": "code"}, ("7.75", "7.8 +- 0.001", "differs, by 0.05; with code it agrees")),
    ],
)
def test_words(change, words):
    claim = CLAIM | change
    assert (stated(claim), measured(claim), verdict(claim)) == words


def test_long_claims_are_wrapped():
    long = CLAIM | {"says": "word " * 60}
    table = claims_table([DOCUMENT | {"claims": [long]}])
    assert max(map(len, table.splitlines())) <= 100


def test_a_page_says_all_and_escapes():
    page = claims_page([DOCUMENT | {"title": "<b>"}], {"a/b": b"<svg/>"})
    assert "<b>" not in page.split("<main>")[1]
    for words in ("differs, by 0.05", "Figure 1", "7.8 +- 0.001", 'title="rounded"', "1,000 games."):
        assert words in page


def test_verdicts_are_counted():
    assert counted([DOCUMENT, DOCUMENT | {"claims": [CLAIM | {"verdict": "agrees"}] * 2}]) == "2 agree, 1 differs"


@pytest.mark.parametrize(("value", "text"), [(376714, "376,714"), (0.012345, "0.01235"), (1e12, "1e+12"), (0, "0")])
def test_numbers(value, text):
    assert number(value) == text
