"""How far work is, in a notebook: an output of the cell that is redrawn and removed at the end, without widgets."""

from __future__ import annotations

import sys
import time
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leakbound.runtime.progress import Work

BETWEEN = 0.25  # seconds from one drawing to the next
_BAR = '{name} <progress value="{done}" max="{total}"></progress> {count}, {times}'
_TIME = "{name}, {times}"
_LINE = '<div style="font: 13px sans-serif">{text}</div>'


def is_watched() -> bool:
    """Whether this is a notebook whose reader waits for the cell.

    A run by ``nbconvert`` or ``papermill`` has the same kernel, and nobody at it: it allows no input.
    """
    ipython = sys.modules.get("IPython")
    shell: Any = None if ipython is None else ipython.get_ipython()
    if type(shell).__name__ != "ZMQInteractiveShell":
        return False
    return bool(getattr(shell.kernel, "_allow_stdin", True))


class Cell:
    """The output of a cell: a line for each work that is under way, outermost first.

    It is redrawn when a part is finished, at most four times a second, and empty at the end.
    """

    def __init__(self) -> None:
        self._display = import_module("IPython.display")
        self._under_way: list[Work] = []
        self._handle: Any = None
        self._drawn = 0.0

    def begin(self, work: Work) -> None:
        """Show new work, with its time alone where its amount is not known."""
        self._under_way.append(work)
        self._draw()

    def update(self, work: Work) -> None:
        """Show how far it is, unless that was drawn just now."""
        if time.monotonic() - self._drawn >= BETWEEN:
            self._draw()

    def end(self, work: Work) -> None:
        """Remove its line."""
        self._under_way.remove(work)
        self._draw()

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        html = self._display.HTML("".join(drawing(work) for work in self._under_way))
        if self._handle is None:
            self._handle = self._display.display(html, display_id=True)
        else:
            self._handle.update(html)


def drawing(work: Work) -> str:
    """Write the line of one work as HTML.

    >>> from leakbound.runtime.progress import Work
    >>> drawing(Work("models", 4, clock=lambda: 0.0)).partition("</progress> ")[2]
    '0/4, 0:00</div>'
    """
    pattern = _TIME if work.total is None else _BAR
    text = pattern.format(name=escape(work.name), done=work.done, total=work.total, count=work.count, times=work.times)
    return _LINE.format(text=text)
