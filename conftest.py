"""Of every run of pytest, also of examples in docstrings: the user's list of ledgers is neither read nor written."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from itertools import count

import pytest

_FOLDER = tempfile.mkdtemp(prefix="leakbound-state-")
_NUMBERS = count()
os.environ["XDG_STATE_HOME"] = f"{_FOLDER}/shared"  # of fixtures of several tests
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)


@pytest.fixture(autouse=True)
def list_of_ledgers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a list of its own: many release the same records, as no owner does."""
    monkeypatch.setenv("XDG_STATE_HOME", f"{_FOLDER}/{next(_NUMBERS)}")
