"""Small things of English: articles, plurals, lists, capitals and full stops."""

from __future__ import annotations

import re
from collections.abc import Iterable

from leakbound.reports.numbers import count
from leakbound.reports.phrases import plural

GREEK = {"epsilon": "ε", "delta": "δ", "eta": "η", "mu": "μ"}
# with which a sentence of ours may begin; any other small word at its beginning is a name that a user gave
_BEGINNINGS = {
    "a", "all", "an", "at", "by", "each", "every", "everything", "for", "from", "if", "in", "it", "no", "of", "on",
    "some", "that", "the", "there", "these", "this", "where", "with", "without",
}  # fmt: skip
_GREEK = re.compile(r"[\u03b1-\u03c9]")
_KEY = re.compile(r"\b([a-z]+)((?:19|20)\d\d)\b")


def article(unit: str) -> str:
    """Return the article of a unit: ``a record``, ``an image``, ``a user``."""
    return "an" if unit[:1].lower() in "aeio" else "a"


def several(n: int, unit: str) -> str:
    """``1,500 records``, ``1 record``."""
    return f"{count(n)} {unit if n == 1 else plural(unit)}"


def listed(items: Iterable[str]) -> str:
    """Join items as ``a, b and c``."""
    *others, last = items
    return f"{', '.join(others)} and {last}" if others else last


def capital(text: str) -> str:
    """Write the first letter large and leave the rest as it is; a Greek letter is the name of a number, and stays.

    >>> capital("noise"), capital("ε at δ = 10⁻⁵")
    ('Noise', 'ε at δ = 10⁻⁵')
    """
    is_greek = bool(_GREEK.match(text))
    return text if is_greek else text[:1].upper() + text[1:]


def cut(text: str, longest: int) -> str:
    """Cut a text that is too long.

    >>> cut("a column with a long name", 12)
    'a column wi…'
    """
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def unit_words(unit: str) -> dict[str, str]:
    """Return the words for a record, with which the gaps of documents and sentences are filled.

    >>> unit_words("person")
    {'unit': 'person', 'units': 'people', 'a_unit': 'a person'}
    """
    return {"unit": unit, "units": plural(unit), "a_unit": f"{article(unit)} {unit}"}


def begun(text: str, name: str) -> str:
    """Begin a sentence with a capital, unless it begins with this name, which stays as its owner wrote it.

    >>> begun("no leak of pid", "pid"), begun("pid leaks", "pid")
    ('No leak of pid', 'pid leaks')
    """
    return text if name and text.startswith(name) else capital(text)


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
