"""Fixtures of the tests of protection."""

from __future__ import annotations

import pytest

from leakscope.noise import MixtureSwap, Shifts


@pytest.fixture
def without_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    """The certified curve takes half of the time of a calibration, and tests/noise/test_shifts.py tests it."""
    for coupling in (Shifts, MixtureSwap):
        monkeypatch.setattr(coupling, "tradeoff", lambda self, noise, confidence=None: None)
