"""What every call takes besides its question: what is shown on the page, and where finished work is kept."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import Any

from leakbound.core.unit_words import UnitWord
from leakbound.plans.choices import choice
from leakbound.plans.plan import DependsOn


@choice
class Page:
    """What is shown on the page of a report, as it is given.

    Parameters
    ----------
    title : str
        The question on top of the page.
    unit : str
        The unit of privacy in words: record, person, household.
    date, author : str

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Page("Does it leak?", unit="person").unit
    'person'
    """

    title: str = ""
    unit: UnitWord = UnitWord("record")
    date: str = ""
    author: str = ""

    @property
    def words(self) -> dict[str, Any]:
        """The fields of a plan that its page shows."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # pyright: ignore[reportArgumentType]


@choice
class Store:
    """A folder in which finished work stays, so that what was killed goes on.

    Parameters
    ----------
    path : path or URL
        A folder, or ``s3://BUCKET/FOLDER``.
    depends_on : path or sequence of path
        Files that are read unseen, as those of a program that a training starts. What is stored is used again only
        while they have the same content.

    Examples
    --------
    >>> import leakbound as ls
    >>> ls.Store("store", depends_on="train.sh").depends_on
    ('train.sh',)
    """

    path: Any
    depends_on: DependsOn = ()


def store_of(given: Store | str | os.PathLike[str] | None) -> Store:
    """Return the store of a call; a path alone depends on no files, and without one nothing is kept."""
    return given if isinstance(given, Store) else Store(given)
