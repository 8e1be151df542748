"""The list of the ledgers that a user has begun: their paths, dates and promises, and nothing about people.

It guards an owner against slips: against a release of the same people from another folder, with a ledger of its own. It
guards nobody against an owner who wants to pass it.
"""

from __future__ import annotations

import os
from pathlib import Path

from leakbound.files import private_file
from leakbound.files.system import OWNERS_FOLDER
from leakbound.protection.ledger.schema import ListedRow, ListRow, checked

NONE = "none"  # as a file: no list is read or written


def list_file(chosen: str | None) -> Path | None:
    """Return the file of the list: the one that was chosen, or that of the user; None where no list is kept."""
    if chosen == NONE:
        return None
    if chosen is not None:
        return Path(chosen)
    folder = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(folder) / "leakbound" / "ledgers"


def listed_ledgers(file: Path | None) -> list[ListedRow]:
    """Read the list; nothing where none is kept or there is no file yet."""
    if file is None:
        return []
    private_file.behind_link(file)  # refuses one to nothing
    return _read(file)[0] if file.exists() else []


def note_ledger(file: Path | None, ledger: Path, promise: str, date: str) -> None:
    """Put a ledger on the list, unless it is there."""
    path = str(ledger.resolve())
    if file is None or any(known.path == path for known in listed_ledgers(file)):
        return

    def add() -> None:
        there, digest = _read(file) if file.exists() else ([], None)
        if all(known.path != path for known in there):
            _write(file, [*there, ListedRow(path=path, date=date, promise=promise)], digest)

    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=OWNERS_FOLDER)
        private_file.retried(add)
    except OSError as error:
        raise OSError(
            f"the list of ledgers {file} cannot be written: {_reason(error)}; name another one by "
            f"known_ledgers (--known-ledgers FILE), or say {NONE}"
        ) from None


def forget_ledger(file: Path | None, ledger: Path) -> ListedRow:
    """Take a ledger from the list; its file stays as it is."""
    path = str(ledger.resolve())
    forgotten = [known for known in listed_ledgers(file) if known.path == path]
    if file is None or not forgotten:
        raise ValueError(f"{ledger} is not on the list of ledgers{'' if file is None else f' {file}'}")

    def remove() -> None:
        there, digest = _read(file)
        _write(file, [known for known in there if known.path != path], digest)

    private_file.retried(remove)
    return forgotten[0]


def _read(file: Path) -> tuple[list[ListedRow], str]:
    """Read the ledgers of the list, and the digest of its file."""
    content, digest = private_file.read(file)
    try:
        row = checked(ListRow, content)
    except ValueError as reason:
        raise ValueError(f"{file} is no list of ledgers: {reason}") from None
    return row.ledgers, digest


def _reason(error: OSError) -> str:
    """Return why a file cannot be written, in the words of the system."""
    cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
    return cause.strerror or str(error)


def _write(file: Path, ledgers: list[ListedRow], replaces: str | None) -> None:
    private_file.write(file, ListRow(ledgers=ledgers).model_dump(), replaces)
