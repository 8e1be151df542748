"""What a unit of privacy is called: one of them, and several of them where English has no rule for it."""

from __future__ import annotations

import re
from typing import Any

_TWO_WORDS = re.compile(r"\s*([^\W\d_][\w -]*?)\s*/\s*([^\W\d_][\w -]*?)\s*")


class UnitWord(str):
    """A word for one unit, with the word for several if that was given: ``Person/Personen``.

    >>> UnitWord("Person/Personen"), UnitWord("Person/Personen").several, UnitWord("record").several
    ('Person', 'Personen', None)
    """

    several: str | None

    def __new__(cls, text: str) -> UnitWord:
        """Split the text."""
        both = _TWO_WORDS.fullmatch(text)
        word = super().__new__(cls, text if both is None else both[1])
        word.several = None if both is None else both[2]
        return word

    @property
    def text(self) -> str:
        """As it was given."""
        return str(self) if self.several is None else f"{self}/{self.several}"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Read it from a string, and write it as it was given."""
        return {
            "type": "function-after",
            "function": {"type": "no-info", "function": lambda text: text if isinstance(text, cls) else cls(text)},
            "schema": {"type": "str", "strict": True},
            "serialization": {
                "type": "function-plain",
                "function": lambda word: word.text if isinstance(word, cls) else word,
                "return_schema": {"type": "str"},
            },
        }
