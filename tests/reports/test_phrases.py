"""Words are made by the tables of reports alone: other phrases change the words of a report and nothing else.

Every table of phrases is replaced by one whose entries are markers. A marker names the phrase that it stands for and
repeats its gaps, so that the report with markers can be read back: it must be the report with the phrases.
"""

from __future__ import annotations

import pickle
import re
import string
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import leakbound as ls
from leakbound.cli.gates import exit_code, failures
from leakbound.core import reasons
from leakbound.core.findings import Scope
from leakbound.reports import Report, phrases
from leakbound.reports.sentences import sentences
from tests.marks import nightly_but
from tests.reports import made_bounds, made_designs, made_guesses, made_protected, samples

TABLES = {
    "REASONS": reasons.REASONS,
    "RELEASES": phrases.RELEASES,
}
ROWS = np.random.default_rng(0).normal(size=(60, 2))
TERMS = {
    name: re.sub(r"\{\{ (\w+) \}\}", r"{\1}", text).rstrip(".")  # gaps as in the other tables
    for name, text in sentences().items()
    if name.partition(".")[0] in ("method", "accountant", "assumption", "game", "scope")
}
MARKER = re.compile(r"\u27e6(\w+)/([\w.]+)((?:\u27e8[^\u27e9\u27e8\u27e6]*\u27e9)*)\u27e7")


def gaps(phrase: str) -> list[str]:
    """The gaps of a phrase as they stand in it, as ``{worked:,}``."""
    parsed = [(name, form) for _, name, form, _ in string.Formatter().parse(phrase) if name]
    return [f"{{{name}:{form}}}" if form else f"{{{name}}}" for name, form in parsed]


def markers(name: str, table: Mapping[str, str]) -> dict[str, str]:
    """A table of markers in place of phrases."""
    marked = {}
    for key, phrase in table.items():
        values = "".join(f"\u27e8{gap}\u27e9" for gap in gaps(phrase))
        marked[key] = f"\u27e6{name}/{key}{values}\u27e7"
    return marked


def with_phrases(text: str) -> str:
    """A text with markers as it would be with phrases, but for what `plainly` leaves out."""

    def phrase(found: re.Match[str]) -> str:
        pattern = ORIGINAL[found[1]][found[2]]
        values = re.findall(r"\u27e8([^\u27e9]*)\u27e9", found[3])
        for gap, value in zip(gaps(pattern), values, strict=True):
            pattern = pattern.replace(gap, value)
        return pattern

    text = without_charts(text)
    while MARKER.search(text):
        text = MARKER.sub(phrase, text)
    return text


ORIGINAL = {name: dict(table) for name, table in TABLES.items()} | {"TERMS": TERMS}


# Cells stay in one line, for the lines of two cells that wrap are mixed.
WIDE = 4000


def without_charts(text: str) -> str:
    """Without the charts, in which long names are shortened."""
    return re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL)


def plainly(text: str) -> str:
    """Without charts, line breaks and columns, in small letters."""
    return re.sub(r"[\s-]+", " ", without_charts(text)).lower()


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Replace all phrases by markers, wherever a module holds the table."""

    def mark() -> None:
        for name, table in TABLES.items():
            for module in [each for key, each in sys.modules.items() if key.startswith("leakbound.")]:
                if getattr(module, name, None) is table:
                    monkeypatch.setattr(module, name, markers(name, table))
        for name, marker in markers("TERMS", TERMS).items():
            monkeypatch.setitem(sentences(), name, re.sub(r"\{(\w+)\}", r"{{ \1 }}", marker))

    return mark


def audited(**words: Any) -> Report:
    """A small audit with a claim."""
    x = np.random.default_rng(1).normal(size=(80, 3))
    tree = DecisionTreeClassifier(max_depth=3)
    return ls.audit(tree, x, x[:, 0] > 0, n_models=8, attacks=["loss", "lira"], claims="eta=0.01", n_jobs=1, **words)


MADE: Mapping[str, Callable[[], Report]] = {
    "dp": lambda: ls.bound("dp", epsilon=1.0),
    "dp, a limit": lambda: ls.bound("dp", at_most="accuracy=0.6"),
    "gaussian": lambda: ls.bound("gaussian", mu=1.0),
    "gap": lambda: ls.bound("gap", gap=0.1, low=0.0, high=1.0),
    "information": lambda: ls.bound("information", information=0.1, unit="random walk"),
    "leakage": made_bounds.leakage,
    "cells": made_bounds.many_cells,
    "sub-sampled": made_bounds.subsampled,
    "audit": audited,
    "two models": samples.two_models,
    "attribute": made_guesses.two,
    "protected": lambda: ls.protect("mean", ROWS, promise=ls.Drawn(games=60), eta=0.1, insecure_seed=1).owner,
    "calibrated": made_protected.calibrated,
    "means": made_protected.means,
    **made_designs.ALL,
}
FAST = ("gap", "information", "cells", "attribute", "leave-one-out, public", "dp, owner")


@pytest.mark.usefixtures("without_charts")
@pytest.mark.parametrize("name", nightly_but(MADE, *FAST))
def test_other_phrases_change_the_words_of_a_report_and_nothing_else(name, marked) -> None:
    make = MADE[name]
    report = make()
    table, page, published = report.table(WIDE), report.to_html(), report.to_html(publish=True)
    marked()
    again = make()
    assert again.to_json() == report.to_json()
    assert again.to_json(publish=True) == report.to_json(publish=True)
    for text, other in ((page, again.to_html()), (published, again.to_html(publish=True)), (table, again.table(WIDE))):
        assert plainly(with_phrases(other)) == plainly(text)


def test_other_phrases_change_no_gate(marked) -> None:
    report = samples.judged()
    before = exit_code(report), len(failures(report))
    marked()
    assert (exit_code(report), len(failures(report))) == before


def test_other_words_match_the_same_findings(marked) -> None:
    """Reports are compared by quantity, operating point and bound type, not by the words for them."""
    first, second = made_bounds.dp(1.0), made_bounds.dp(2.0)
    before = ls.compare(first, second).rows
    marked()
    after = ls.compare(first, second).rows
    columns = ("first", "second", "difference")
    assert [[row[name] for name in columns] for row in after] == [[row[name] for name in columns] for row in before]
    assert any(row["difference"] for row in before)


def test_markers_are_seen(marked) -> None:
    """The test above compares something: the page of a bound holds markers."""
    marked()
    assert "\u27e6TERMS/method.bisection" in ls.bound("dp", at_most="accuracy=0.6").to_html()
    assert "\u27e6TERMS/scope.one" in ls.bound("information", information=0.1).table(WIDE)


def test_a_proof_for_every_record_says_so_whatever_the_record_is_called(marked) -> None:
    """The most exposed record is known by its scope, so that what holds for it holds for all."""
    said = "whoever the record is and whatever the attacker computes"
    report = made_bounds.bound([made_bounds.dp().findings[0]], bound="table")
    exposed = Report(report.about, [replace(report.findings[0], scope=Scope("worst", name="Rome"))])
    assert said in plainly(exposed.table(WIDE))
    marked()
    assert said in plainly(exposed.table(WIDE))


def ids(call: str) -> set[str]:
    """The ids in calls of the source, so that none is forgotten."""
    found: set[str] = set()
    for path in Path(ls.__file__).parent.rglob("*.py"):
        found |= set(re.findall(rf"\b{call}\(\s*\"([^\"]+)\"", path.read_text(encoding="utf-8")))
    return found


def test_every_term_that_the_code_makes_has_its_phrase() -> None:
    terms = ids("Term")
    assert not sorted(terms - {name.partition(".")[2] for name in TERMS} - set(reasons.REASONS))
    assert len(terms) > 90


def test_every_reason_of_the_code_has_its_words_and_no_words_are_left_over() -> None:
    """Examples of docstrings may give a sentence, as an attack of the user's own does."""
    given = ids("NotApplicable")
    assert not sorted(reason for reason in given - set(reasons.REASONS) if not reason.startswith("needs the signal"))
    used = given | ids("Term")
    text = "".join(path.read_text(encoding="utf-8") for path in Path(ls.__file__).parent.rglob("*.py"))
    assert not [reason for reason in reasons.REASONS if reason not in used and text.count(f'"{reason}"') < 2]


def test_a_reason_is_the_same_in_the_error_and_in_the_finding() -> None:
    error = ls.NotApplicable("few_references", fewest=2, n=0)
    again = pickle.loads(pickle.dumps(error))
    assert (
        str(again) == str(error) == reasons.words(error.reason) == "needs at least 2 reference models, and there are 0"
    )
    assert again.reason == error.reason
    assert str(ls.NotApplicable("needs {my} signal")) == "needs {my} signal"
