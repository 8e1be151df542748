"""The words for what findings hold as ids: one table an id, read by nothing but the reports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeGuard

from leakbound.core import reasons
from leakbound.core.findings import Finding, Scope, Term
from leakbound.core.unit_words import UnitWord
from leakbound.reports import Curve, Verdict
from leakbound.reports.about import About, BoundAbout, TermFacts
from leakbound.reports.sentences import Sentence, in_text, sentences

PLURALS = {"person": "people"}
WITHOUT = "without_noise"  # the release of findings and curves that say what the noise is good for
RELEASES = {  # of reports that name no release of the user's
    WITHOUT: "without noise",
    "joint": "all releases of this draw that this ledger knows of",
    "joint_of_one": "the only release of this draw that this ledger knows of",
    "spent": "all releases of this ledger so far",
    "add_remove": "adjacency add_remove, a record is added or removed, as Opacus and TF Privacy count",
    "replace_one": "adjacency replace_one, a record is replaced by another",
}
DECISIONS = {  # verdicts of a policy
    "release": "release",
    "ask": "ask",
    "do_not_release": "do not release",
}
ROWS = {"table": "cell"}  # what a row of a bound is called, where it is no single record


def plural(unit: str) -> str:
    """Return the word for several of a unit: as it was given, else by the rules of English.

    >>> [plural(unit) for unit in ("record", "canary", "survey", "batch", "person")]
    ['records', 'canaries', 'surveys', 'batches', 'people']
    >>> plural(UnitWord("Person/Personen")), plural("Person")
    ('Personen', 'Person')
    """
    if isinstance(unit, UnitWord) and unit.several is not None:
        return unit.several
    if not unit.isascii() or unit[:1].isupper():  # no English word: how it is written for several must be given
        return unit
    if unit in PLURALS:
        return PLURALS[unit]
    if re.search(r"[^aeiou]y$", unit):
        return f"{unit[:-1]}ies"
    return f"{unit}es" if re.search(r"(s|x|z|ch|sh)$", unit) else f"{unit}s"


def row_word(about: About) -> str:
    """Return what the numbers of a report are about: its unit, or the cell of a table."""
    return ROWS[about.bound] if of_cells(about) else about.unit


def of_cells(about: About) -> TypeGuard[BoundAbout]:
    """Whether the rows of a report are cells, each of which holds several records."""
    return isinstance(about, BoundAbout) and about.bound in ROWS


def game(term: Term) -> str:
    """Write what was played in words.

    >>> game(Term("drawn_records", k=500, n=1000))
    '500 of 1,000 records are drawn; the attacker knows all of them'
    """
    return str(Sentence(f"game.{term.id}", in_text(term.values)))


def words(term: Term | TermFacts) -> str:
    """Write a term in words; an id that this version does not know is printed as it is.

    >>> words(Term("covariance_of_draws", worked=498, drawn=1000))
    'covariance from 498 of 1,000 draws'
    """
    for group in ("method", "assumption", "accountant"):
        if f"{group}.{term.id}" in sentences():
            return str(Sentence(f"{group}.{term.id}", in_text(term.values)))
    return reasons.words(Term(term.id, **term.values))


def claim(verdict: Verdict) -> str:
    """Write the claim that a verdict is about, and whose accountant makes it."""
    text = verdict.claim.text
    return text if verdict.training is None else f"{text}, by {words(verdict.training)}"


def method(terms: Sequence[Term]) -> str:
    """How a number was made, in words."""
    return ", ".join(words(term) for term in terms)


def scope(which: Scope, row: str) -> str:
    """Whom a number is about, with the index of the record or the name of the cell where it is known.

    >>> scope(Scope("worst", 17), "record"), scope(Scope("worst", name="Sales / F"), "cell"), scope(Scope(), "person")
    ('most exposed record (17)', 'most exposed cell: Sales / F', 'every person')
    """
    words = str(Sentence(f"scope.{which.kind}", {"row": row, "rows": plural(row)}))
    if which.name:
        return f"{words}: {which.name}"
    return words if which.index is None else f"{words} ({which.index})"


def place(item: Finding | Curve) -> str:
    """Return the id of a release, else that of a scope: what the numbers of one part have in common."""
    return item.release or ("" if item.scope.kind == "every" else item.scope.kind)


def title(release: str, which: Scope, row: str) -> str:
    """Title a part of a bound or of a protected release: its release, or whom it is about."""
    if release in RELEASES:
        return RELEASES[release]
    if release:
        return release
    return scope(which, row)
