"""What an experiment would run, without running it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leakbound.papers.lab import Lab


class Asked(Exception):
    """Stops an experiment at its first task."""


class Stopping(Lab):
    """A lab at full size that runs nothing."""

    def repeat(self, task, arguments, what, name=""):
        raise Asked(arguments)


def first_task(measure: Callable[[Lab], Any]) -> list[tuple[Any, ...]]:
    """The arguments of the first task that an experiment repeats, at the sizes of its paper."""
    try:
        measure(Stopping())
    except Asked as asked:
        (arguments,) = asked.args
        return list(arguments)
    raise AssertionError("the experiment repeats nothing")
