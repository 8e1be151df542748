"""Ledgers of any kind, as their files say."""

from __future__ import annotations

import os

from leakbound.protection.ledger.budget import BudgetLedger
from leakbound.protection.ledger.drawn import DrawnLedger
from leakbound.protection.ledger.ledger import Ledger, read
from leakbound.protection.ledger.schema import FORMATS_OF_DRAWS


def opened(path: str | os.PathLike[str]) -> Ledger:
    """Open a ledger of any design and any data."""
    path, content, digest = read(path)
    kind = DrawnLedger if content.get("format") in FORMATS_OF_DRAWS else BudgetLedger
    return kind.of_content(path, content, digest)
