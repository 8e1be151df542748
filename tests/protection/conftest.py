"""Fixtures of the tests of protection."""

from __future__ import annotations

import pytest

from leakbound.noise import MixtureSwap, Shifts
from leakbound.protection.setting import elsewhere


@pytest.fixture
def without_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    """The certified curve takes half of the time of a calibration, and tests/noise/test_shifts.py tests it."""
    for coupling in (Shifts, MixtureSwap):
        monkeypatch.setattr(coupling, "tradeoff", lambda self, noise, confidence=None: None)


@pytest.fixture
def ledgers_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other ledgers are not asked: for a test that releases the same records under two of them on purpose."""
    monkeypatch.setattr(elsewhere, "_ledgers_to_ask", lambda request, own, known: ([], []))
