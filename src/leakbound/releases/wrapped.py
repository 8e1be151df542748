"""What releases share that show something else of another release, or that know a model by its answers alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leakbound.releases.specs import description_or_none, reason

if TYPE_CHECKING:
    from leakbound.releases.factory import Described


@dataclass(frozen=True)
class Wrapped(ABC):
    """A release around another one, with its name and its chunks."""

    release: Described

    @property
    def name(self) -> str:
        """That of the release."""
        return self.release.name

    @property
    def chunk(self) -> int:
        """Rows that are fitted and stored together."""
        return self.release.chunk

    @property
    def description(self) -> str:
        """That of the release."""
        return self.release.description

    def describe(self) -> Mapping[str, Any] | None:
        """Return the description of the release, and of what is seen of it; None if one of them has none."""
        return description_or_none(self._description)

    @property
    def not_stored(self) -> str:
        """Why there is no description, and its models are not stored; empty if there is one."""
        return reason(self._description)

    @abstractmethod
    def _description(self) -> Mapping[str, Any]: ...


class KnownByAnswers:
    """A trained model of which nothing but its name and its answers is known."""

    name: str

    @property
    def description(self) -> str:
        """The name: nothing else is known."""
        return self.name

    def describe(self) -> None:
        """Return None: a model that is known by its answers alone has no canonical description, and is not stored."""
        return

    @property
    def not_stored(self) -> str:
        """Why it is not stored: another run could not recognise it."""
        return "a model that is only known by its answers has no recipe to know it by"
