"""Fixtures of audits."""

from __future__ import annotations

import pytest

from leakbound.auditing import baseline


@pytest.fixture(autouse=True)
def without_the_smallest_shift(request, monkeypatch):
    """The smallest shift of membership without the model takes two thirds of its time: it is simulated on request."""
    if "smallest_shift" not in request.fixturenames:
        monkeypatch.setattr(baseline, "PLANTED", 0)


@pytest.fixture
def smallest_shift():
    """The smallest shift is simulated, as users see it."""
