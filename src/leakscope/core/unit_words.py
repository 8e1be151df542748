"""What a unit of privacy is called: one of them, and several of them where English has no rule for it."""

from __future__ import annotations

from typing import Any


class UnitWord(str):
    """A word for one unit, with the word for several if that was given: ``Person/Personen``.

    Parameters
    ----------
    text : str
        One word, or two with a slash between them.

    Attributes
    ----------
    several : str or None
        The word for several; None if it was not given.

    Raises
    ------
    ValueError
        If one of the two words is missing, or there are more.

    Examples
    --------
    >>> from leakscope.core.unit_words import UnitWord
    >>> UnitWord("Person/Personen"), UnitWord("Person/Personen").several, UnitWord("record").several
    ('Person', 'Personen', None)
    """

    several: str | None

    def __new__(cls, text: str) -> UnitWord:
        """Split the text."""
        one, slash, more = (part.strip() for part in text.partition("/"))
        if slash and (not one or not more or "/" in more):
            raise ValueError(f"unit must be one word, or one/several as person/persons, got {text!r}")
        word = super().__new__(cls, one if slash else text)
        word.several = more or None
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
