"""A task for worker processes: which of faked graphics cards is taken there. Imported by the workers."""

from __future__ import annotations

import os
import time
from unittest import mock

from leakbound.releases.networks.devices import device_of
from leakbound.releases.networks.recipe import Recipe


def card(n_cards: int, device: str) -> tuple[int, str]:
    """The process, and the card that a network of this device would be trained on."""
    time.sleep(0.3)  # so that no worker does all tasks
    with (
        mock.patch("torch.cuda.is_available", return_value=True),
        mock.patch("torch.cuda.device_count", return_value=n_cards),
    ):
        return os.getpid(), str(device_of(Recipe(device=device)))
