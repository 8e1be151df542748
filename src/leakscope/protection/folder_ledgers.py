"""Other ledgers in the folder where a new one is begun.

They may be of the same people, and nothing adds up the releases of two ledgers. Who is in a ledger can be seen where it
holds hashes of its units, and the units have identifiers: then a new one is refused unless it was named.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from leakscope.noise.release_ledger import ReleaseLedger
from leakscope.plans.protects import ProtectionPlan
from leakscope.protection.other_designs import design_of, ledger_places, releases_of

Array = np.ndarray
_MOST_NAMED = 3  # ledgers


def other_ledgers(path: Path, places: list[Path]) -> list[Path]:
    """List the ledgers in the folder of one, without those of the same data.

    Parameters
    ----------
    path : Path
    places : list of Path
        Where ledgers of the same data are.
    """
    return [other for other in sorted(path.parent.glob("*.ledger")) if other not in places]


def lines_of_other_ledgers(plan: ProtectionPlan) -> Iterator[str]:
    """Tell the owner, where a release will begin a ledger, which others are in its folder.

    Parameters
    ----------
    plan : ProtectionPlan
        Of a file.

    Yields
    ------
    str
        A line for each of the first three: what it has spent, and how to join it.
    """
    if plan.ledger_file is None:
        return
    path = Path(plan.ledger_file)
    places = ledger_places([path, Path(f"{plan.data}.ledger")])
    if any(place.exists() for place in places):
        return
    others = other_ledgers(path, places)
    for other in others[:_MOST_NAMED]:
        yield (
            f"{other} is in the folder of the new ledger {path.name}, {_state(other)}: if it is of the same people, "
            f"say --ledger {other}, or nothing adds up its releases and this one"
        )
    if len(others) > _MOST_NAMED:
        yield f"{len(others) - _MOST_NAMED} more ledgers are in the folder of {path.name}"


def refuse_known_people(plan: ProtectionPlan, path: Path, units: UInt8[Array, "n 16"]) -> None:
    """Refuse a new ledger that was not named, for people whose identifiers another one in its folder holds.

    Parameters
    ----------
    plan : ProtectionPlan
    path : Path
        Of the new ledger.
    units : uint8 array of shape (n, 16)
        Names of the units.

    Raises
    ------
    ValueError
        In one line: how many they are, what the other ledger has spent, and how to join it.
    """
    if plan.ledger is not None or (plan.id is None and plan.group is None):
        return
    for other in other_ledgers(path, ledger_places([path, Path(f"{plan.data}.ledger")])):
        ledger = _opened(other)
        n_known = 0 if ledger is None else ledger.n_known(units)
        if n_known > 0:
            raise ValueError(
                f"{n_known:,} of the {len(units):,} identifiers are in {other} too, {_state(other)}: join it by "
                "--ledger FILE, or name a new ledger if other people have the same identifiers"
            )


def _state(path: Path) -> str:
    """Say what a ledger has spent."""
    ledger = _opened(path)
    if ledger is not None:
        return f"which has spent {ledger.spent():.3g} of its budget of {ledger.budget:g} (design {ledger.design})"
    try:
        design = design_of(path)
        n_releases = len(releases_of(path, design)) if design is not None else 0
    except (OSError, ValueError):
        return "which cannot be read"
    return f"which is of design {design} (releases: {n_releases})"


def _opened(path: Path) -> ReleaseLedger | None:
    """Open a ledger; None for one of design half, and for what is no ledger that can be read."""
    try:
        design = design_of(path)
        return None if design in (None, "half") else ReleaseLedger.open(path, design)
    except (OSError, ValueError):
        return None
