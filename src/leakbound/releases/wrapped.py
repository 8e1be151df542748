"""What releases share: whether another run knows them by a description, or they show something else of another one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leakbound.core.types import Points
from leakbound.releases.source_code import NoCanonicalForm

if TYPE_CHECKING:
    from leakbound.releases.factory import Described


# from a trained model, all points, which of them it was trained on, and its seed, to the model that is seen
AfterTraining = Callable[[Any, Points, np.ndarray, int], Any]


class KnownByRecipe(ABC):
    """A release that another run knows by how it is made, where that has a canonical form."""

    def describe(self) -> Mapping[str, Any] | None:
        """Return the recipe as plain data; None if a part of it has no canonical form."""
        try:
            return self._description()
        except NoCanonicalForm:
            return None

    @property
    def not_stored(self) -> str:
        """Why there is no description, and its models are not stored; empty if there is one."""
        try:
            self._description()
        except NoCanonicalForm as error:
            return str(error)
        return ""

    @abstractmethod
    def _description(self) -> Mapping[str, Any]: ...


class AlreadyTrained:
    """A model that is trained already: no other run knows it, and it is not stored."""

    name: str

    @property
    def description(self) -> str:
        """The name: nothing else is known."""
        return self.name

    def describe(self) -> None:
        """Return None: a trained model has no canonical description."""
        return

    @property
    def not_stored(self) -> str:
        """Why it is not stored."""
        return "a trained model has no recipe to know it by"


@dataclass(frozen=True)
class Wrapped(KnownByRecipe):
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
