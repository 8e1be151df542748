"""The steps of a release, which each promise fills in; `release` puts them in their order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from leakbound.core.types import Signals
from leakbound.protection.setting.results import CalibratedNoise, Protected


class Counted(ABC):
    """A release whose value is drawn, that its ledger has counted, and that nobody has seen yet."""

    @abstractmethod
    def certified(self) -> Protected:
        """Write both halves of the certificate."""

    @abstractmethod
    def mark_published(self) -> None:
        """Tell the ledger that the value has reached its place."""


class Ready(ABC):
    """A release whose noise is found, that fits into its ledger, and whose people are in no other one."""

    def signals(self) -> Signals:
        """Simulate releases, for an audit of the promise."""
        raise NotImplementedError

    @abstractmethod
    def counted(self) -> Counted:
        """Draw the value, after the ledger has counted it."""


class Steps(ABC):
    """How a promise is kept, for one request."""

    @abstractmethod
    def check_signals(self) -> None:
        """Refuse, before anything is computed, simulated releases that would audit no promise."""

    @abstractmethod
    def calibrated(self, simulated: Callable[[Signals], Any] | None) -> CalibratedNoise:
        """Find the noise and its certificate; nothing is drawn, and no ledger is asked."""

    @abstractmethod
    def ready(self) -> Ready:
        """Find the noise, and refuse what cannot be released."""

    @abstractmethod
    def declared(self) -> str:
        """Announce a query in its ledger before the first output, so that it is counted exactly."""
