"""The sentences that results name by id: one table, ``documents/sentences.toml``, which is read by nobody's code."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from types import SimpleNamespace

_GAP = re.compile(r"\{\{ (\w+) \}\}")


@cache
def sentences() -> Mapping[str, str]:
    """Read the table: a sentence with its gaps by group and name, as ``assumption.knows_all_else``."""
    text = resources.files("leakbound.reports").joinpath("documents/sentences.toml").read_text(encoding="utf-8")
    groups = tomllib.loads(text)
    return {f"{group}.{name}": words for group, table in groups.items() for name, words in table.items()}


@dataclass(frozen=True)
class Sentence:
    """The id of a sentence, with the finished text of its gaps.

    >>> str(Sentence("assumption.row_is_a_unit", {"unit": "person"}))
    'Each row of the file is one person, and no person has two: that is not checked.'
    >>> str(Sentence("assumption.of_a_later_version"))
    'of a later version'
    """

    id: str
    gaps: Mapping[str, str | Sentence] = field(default_factory=dict)

    def filled(self, write: Callable[[str | Sentence], str]) -> str:
        """Return the sentence, each gap written by a function; an id that this version does not know as it is."""
        words = sentences().get(self.id)
        if words is None:
            return write(self.id.partition(".")[2].replace("_", " "))
        return _GAP.sub(lambda gap: write(self.gaps[gap[1]]), words)

    def __str__(self) -> str:
        """Return the sentence as plain text, without the marks of what is set bold."""
        words = sentences().get(self.id)
        if words is None:
            return self.filled(str)
        return _GAP.sub(lambda gap: str(self.gaps[gap[1]]), words.replace("**", ""))


class Texts(SimpleNamespace):
    """What a document or a part of one is handed, by the names of its gaps: finished texts, rows, and what is shown.

    >>> Texts(title="Who is in the data?", is_public=True).title
    'Who is in the data?'
    """

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse to change what was written."""
        raise AttributeError(f"{name} is written once")


def in_text(values: Mapping[str, float | int | str]) -> dict[str, str]:
    """Write the values of a term: whole numbers with separators, others to six digits.

    >>> in_text({"n": 1500, "rate": 0.25, "unit": "person"})
    {'n': '1,500', 'rate': '0.25', 'unit': 'person'}
    """
    return {name: _in_text(value) for name, value in values.items()}


def _in_text(value: float | int | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
