"""A second release into the ledger that is named, killed between write and rename."""

from __future__ import annotations

import os
import signal
import sys

from tests.protection.ledger.test_ledger import entries

from leakbound.protection.ledger.drawn import DrawnLedger as Ledger


def replace(source: object, target: object) -> None:
    """The call never comes back."""
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    ledger = Ledger.open(sys.argv[1], "data")
    os.replace = replace
    ledger.append(entries()[len(ledger.releases)])
