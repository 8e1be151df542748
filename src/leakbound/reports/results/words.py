"""What every sentence is made of: patterns with gaps for numbers, never free text.

Every sentence is ``Markup``: what is filled in is escaped, and ``striptags`` gives the plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

from markupsafe import Markup

from leakbound.reports.about import About, AttributeAbout, AuditAbout, ExecutionFacts
from leakbound.reports.numbers import count, near, parameter
from leakbound.reports.phrases import plural

Words = TypeVar("Words", bound=str)
GREEK = {"epsilon": "ε", "delta": "δ", "eta": "η", "mu": "μ"}
PARAMETER = re.compile(r"\b(epsilon|delta|mu|eta) = (inf|\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?![\w.]*\w)")
# with which a sentence of ours may begin; any other small word at its beginning is a name that a user gave
_BEGINNINGS = {
    "a", "all", "an", "at", "by", "each", "every", "everything", "for", "from", "if", "in", "it", "no", "of", "on",
    "some", "that", "the", "there", "these", "this", "where", "with", "without",
}  # fmt: skip
_KEY = re.compile(r"\b([a-z]+)((?:19|20)\d\d)\b")


def say(pattern: str, **gaps: object) -> Markup:
    """Fill and escape the gaps of a sentence.

    >>> print(say("<b>{name}</b> leaks.", name="a < b"))
    <b>a &lt; b</b> leaks.
    """
    text = Markup(pattern).format(**gaps)
    unit = str(gaps.get("unit", ""))
    if unit and " a {unit}" in pattern:
        text = Markup(text.replace(f" a {unit}", f" {article(unit)} {unit}"))
    return text


def article(unit: str) -> str:
    """Return the article of a unit: ``a record``, ``an image``, ``a user``."""
    return "an" if unit[:1].lower() in "aeio" else "a"


def joined(sentences: Iterable[Markup]) -> Markup:
    """Sentences that are not empty, with a space between."""
    return Markup(" ").join(sentence for sentence in sentences if sentence)


def several(n: int, unit: str) -> str:
    """``1,500 records``, ``1 record``."""
    return f"{count(n)} {unit if n == 1 else plural(unit)}"


def listed(items: Iterable[str]) -> str:
    """Join items as ``a, b and c``."""
    *others, last = items
    return f"{', '.join(others)} and {last}" if others else last


def capital(text: Words) -> Words:
    """Write the first letter large and leave the rest as it is."""
    return type(text)(text[:1].upper() + text[1:])


def begun(text: Words, name: str) -> Words:
    """Begin a sentence with a capital, unless it begins with this name, which stays as its owner wrote it.

    >>> begun("no leak of pid", "pid"), begun("pid leaks", "pid")
    ('No leak of pid', 'pid leaks')
    """
    written = str(Markup.escape(name)) if isinstance(text, Markup) else name
    return text if written and text.startswith(written) else capital(text)


def note(text: str, of_names: bool = True) -> str:
    """Write a note as a sentence; one that begins with a column, a model or a file keeps its name as it is.

    >>> note("the file has 3 rows"), note("pid has another value in each record")
    ('The file has 3 rows.', 'pid has another value in each record.')
    >>> note("noise is added", of_names=False), note("people.csv has 3 rows", of_names=False)
    ('Noise is added.', 'people.csv has 3 rows.')
    """
    first = text.partition(" ")[0].rstrip(",:;")
    is_own = first in _BEGINNINGS or (not of_names and first.isalpha())
    return sentence(capital(text) if is_own else text)


def sentence(text: str) -> str:
    """With a full stop."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def cited(source: str) -> str:
    """Keys of the bibliography as a name and a year.

    >>> cited("yeom2018, Adversary 2")
    'Yeom 2018, Adversary 2'
    """
    return _KEY.sub(lambda match: f"{match[1].capitalize()} {match[2]}", source)


def lettered(text: str) -> Markup:
    r"""Parameters with Greek letters and powers of ten.

    >>> lettered("delta = 1e-05 <b>")
    Markup('δ\xa0=\xa010<sup>−5</sup> &lt;b&gt;')
    """
    parts, end = [], 0
    for match in PARAMETER.finditer(text):
        before, letter, value = text[end : match.start()], GREEK[match[1]], parameter(float(match[2]))
        parts.append(say("{before}{letter}\u00a0=\u00a0{value}", before=before, letter=letter, value=value))
        end = match.end()
    return Markup("").join([*parts, Markup.escape(text[end:])])


def baseline(accuracy: float, likelier: str = "") -> str:
    """State the baseline accuracy: that of a guess from the prior alone."""
    right = near(100 * accuracy, 1).removesuffix(".0")
    return f"guessing from the prior alone gives {right}"


def _when(facts: ExecutionFacts) -> str:
    """Say when the models that came from the store were written."""
    if not facts.first_written:
        return ""
    if facts.first_written == facts.last_written:
        return f" (written {facts.first_written})"
    return f" (written {facts.first_written} to {facts.last_written})"


def execution(about: About) -> str:
    """How many models came from the store and how many were made in this run; empty where no store was used."""
    if not isinstance(about, AuditAbout | AttributeAbout) or about.execution is None:
        return ""
    facts = about.execution
    sentences = [f"Models: {facts.reused:,} came from the store{_when(facts)}, {facts.made:,} were made in this run."]
    if facts.other_machine:
        sentences.append(
            f"Chunks that another kind of machine had stored with other bytes, and that were used: "
            f"{facts.other_machine:,}."
        )
    if facts.differing:
        sentences.append(
            f"Chunks that this kind of machine had stored with other bytes, and that were used: {facts.differing:,}; "
            "the models are not the same every time that they are made."
        )
    return " ".join(sentences)
