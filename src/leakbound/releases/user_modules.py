"""Modules of the folder in which a command is called: found for what the user named, and for nobody else.

The folder is never on ``sys.path``. A library that looks for an optional one, as we do for skops, would otherwise run
whatever file of that name lies beside the user's data.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any


class FolderFinder:
    """Finds the modules that the user named in one folder, and what those import from there."""

    def __init__(self, folder: str, names: Iterable[str] = ()) -> None:
        self.folder = folder
        self.names = set(names)
        self.found: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Find a module as the import system asks for it, after all other places."""
        if path is not None or not (name in self.names or _importing_module() in self.found):
            return None
        spec = self.spec(name)
        if spec is not None:
            self.found.add(name)
        return spec

    def spec(self, name: str) -> ModuleSpec | None:
        """Find a module in the folder, whoever asks."""
        return PathFinder.find_spec(name, [self.folder])


def look_in(folder: str | os.PathLike[str], names: Iterable[str] = ()) -> None:
    """Find modules that the user names in this folder, and in no other one that was given before."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, FolderFinder)]
    sys.meta_path.append(FolderFinder(os.fspath(folder), names))


def may_be_found(module: str) -> None:
    """Let a module that the user named be found in the folder of the command, if there is one."""
    for finder in _finders():
        finder.names.add(module.partition(".")[0])


def for_workers() -> tuple[str, tuple[str, ...]] | None:
    """Return the folder and the names that a worker needs for `look_in`; None outside of commands."""
    for finder in _finders():
        return finder.folder, tuple(sorted(finder.names | finder.found))
    return None


def spec_in_folder(name: str) -> ModuleSpec | None:
    """Find a module that a user's own module imports, without importing it."""
    specs = [finder.spec(name) for finder in _finders()]
    return specs[0] if specs else None


def _finders() -> list[FolderFinder]:
    return [finder for finder in sys.meta_path if isinstance(finder, FolderFinder)]


def _importing_module() -> str:
    """Name the module whose import is under way, without what comes after a dot."""
    is_importing, frame = False, sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        top = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if top in ("importlib", "_frozen_importlib"):
            is_importing = True
        elif is_importing:  # the frame that called the import system
            return top
    return ""
