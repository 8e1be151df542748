"""The files of a release: three for publication, and a folder for the owner of the data alone."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Self

from leakbound.cli.output import say
from leakbound.files import temporary
from leakbound.files.system import OWNER_ALONE, OWNERS_FOLDER, open_new, sync_folder

if TYPE_CHECKING:
    from leakbound.reports import Report

FOLDER = "leakbound-release"
OWNER = "owner"
PUBLIC, PRIVATE = ("release.json", "release.html", "release.csv"), ("private.json", "private.html")
PUBLISHED = f"{', '.join(PUBLIC[:-1])} and {PUBLIC[-1]}"  # in a sentence
FOR_ALL = 0o644


@dataclass(frozen=True)
class ReleaseFiles:
    """The five files of a release, which is never written over: without a ledger its value cannot be made again.

    Parts are written in the owner's folder, so that nothing unfinished lies where files are taken for publication. The
    value appears last: a folder without ``release.json`` holds no release.
    """

    folder: Path
    repeatable: bool = False

    @classmethod
    def of(cls, out: Path, ledger: str | None = None, signals: Path | None = None) -> Self:
        """Take a folder that holds neither ledger nor signals."""
        if out.suffix in (".json", ".html"):
            folder = out.with_suffix("") if out.stem and not out.stem.startswith(".") else Path(FOLDER)
            raise ValueError(
                f"--out {out}: a release is a folder with {PUBLISHED} for publication and {OWNER}/ for you "
                f"alone; write --out {folder}"
            )
        for flag, file in (("ledger", ledger), ("signals", signals)):
            if file is not None and Path(file).resolve().is_relative_to(out.resolve()):
                raise ValueError(f"--out {out}: --{flag} {file} would lie in it; a release is public, and that is not")
        return cls(out, ledger is not None)

    @property
    def release(self) -> Path:
        """Value and public certificate, as JSON."""
        return self.folder / PUBLIC[0]

    @property
    def all(self) -> tuple[Path, ...]:
        """In the order in which they appear: the owner's first, and the released value last."""
        owner = self.folder / OWNER
        return (*(owner / name for name in PRIVATE), *(self.folder / name for name in PUBLIC[1:]), self.release)

    def check(self) -> None:
        """Check that no release is there, and that everything can be written where it belongs."""
        for file in self.all:
            try:
                file.lstat()
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise OSError(f"{self.release} cannot be written: {error.strerror or error}") from error
            # with a ledger the same release is made again, so that what a killed run left may be completed
            unfinished = self.repeatable and file != self.release and file.is_file() and not file.is_symlink()
            if not unfinished:
                raise ValueError(f"{file} exists already, and a release is never written over; choose another --out")
        owner = self.folder / OWNER
        existing = next(path for path in (owner, *owner.parents) if os.path.lexists(path))
        if not existing.is_dir():
            raise ValueError(f"--out {self.folder}: {existing} is a file; give a folder")
        part = temporary.part_of(existing / PRIVATE[0])  # a trial file shows whether the folder can be written
        try:
            part.touch(OWNER_ALONE)
            part.unlink()
        except OSError as error:
            raise OSError(f"{self.release} cannot be written: {error.strerror or error}") from error

    def ready(self) -> None:
        """Make the folders: the last thing before a release is drawn."""
        owner = self.folder / OWNER
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            owner.mkdir(mode=OWNERS_FOLDER, exist_ok=True)
            owner.chmod(OWNERS_FOLDER)
        except OSError as error:
            raise OSError(f"{self.release} cannot be written: {error.strerror or error}") from error
        for file in self.all:
            temporary.sweep(owner, temporary.parts_of(file))
        self.check()

    def write(self, public: Report, owner: Report) -> None:
        """Write all of them as parts, then rename them; what cannot be written is printed on standard output."""
        text = public.to_json()
        as_csv = import_module("leakbound.reports.render.csv_table").released_csv(public)
        parts: dict[Path, Path] = {}
        placed: list[Path] = []
        try:
            contents = (owner.to_json(), owner.to_html(), public.to_html(), as_csv, text)
            for file, content in zip(self.all, contents, strict=True):
                parts[file] = temporary.part_of(self.folder / OWNER / file.name)
                _put(parts[file], content, OWNER_ALONE if file.name in PRIVATE else FOR_ALL)
            for file in self.all:
                self._refuse_another(file, parts[file])
            for file in self.all:
                parts[file].replace(file)
                placed.append(file)
            for folder in (self.folder / OWNER, self.folder):
                sync_folder(folder)
        except BaseException as error:
            sys.stdout.write(text)
            say("the release is on standard output: keep it, for it cannot be made again")
            if self.release not in placed:  # without its value the rest is no release
                for file in placed:
                    temporary.remove(file)
            if isinstance(error, OSError):
                raise OSError(f"{self.release} cannot be written: {error.strerror or error}") from error
            raise
        finally:
            for part in parts.values():
                temporary.remove(part)
            self.remove_empty()

    def remove_empty(self) -> None:
        """Remove the folders that `ready` made, if nothing was released into them."""
        for folder in (self.folder / OWNER, self.folder):
            with suppress(OSError):  # one that holds something stays
                folder.rmdir()

    def _refuse_another(self, file: Path, part: Path) -> None:
        """Refuse to write over a file that came meanwhile, unless a killed run of the same release left it."""
        if not os.path.lexists(file):
            return
        same = self.repeatable and file.is_file() and not file.is_symlink() and file.read_bytes() == part.read_bytes()
        if not same:
            raise OSError(f"{file} exists by now")


def _put(part: Path, text: str, mode: int) -> None:
    """Write it whole to the disk; until it is renamed it lies in a folder that its owner alone can enter."""
    with os.fdopen(open_new(part), "wb") as file:
        file.write(text.encode("utf-8"))
        file.flush()
        os.fsync(file.fileno())
    part.chmod(mode)
